//! Expressions as they were written: a tree with the place of every node.

use smol_str::SmolStr;
use std::fmt;

/// Where something was written; lines and columns count from 1, and 0 means nowhere.
///
/// Two documents that differ only in where things stand are the same document, so every place
/// equals every other.
#[derive(Clone, Copy, Debug, Default)]
pub struct At {
    pub line: u32,
    pub column: u32,
}

impl PartialEq for At {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// One node of an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub at: At,
    pub kind: ExprKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    Bool(bool),
    Number(f64),
    Text(SmolStr),
    /// `vm.labels["tier"]`
    Attribute(Path),
    /// `param.limit` or `$param.limit`
    Parameter(SmolStr),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    Binary(Op, Box<Expr>, Box<Expr>),
}

impl Expr {
    pub fn new(at: At, kind: ExprKind) -> Self {
        Self { at, kind }
    }

    /// Calls `visit` for this node and all below it, parents first.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        visit(self);
        match &self.kind {
            ExprKind::Not(inner) | ExprKind::Negate(inner) => inner.walk(visit),
            ExprKind::Binary(_, left, right) => {
                left.walk(visit);
                right.walk(visit);
            }
            _ => {}
        }
    }

    /// Whether it reads an attribute of the candidate host.
    pub fn mentions_host(&self) -> bool {
        let mut found = false;
        self.walk(&mut |expr| {
            if let ExprKind::Attribute(path) = &expr.kind {
                found |= path.root == Root::Candidate;
            }
        });
        found
    }
}

/// Operators with two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl Op {
    pub fn symbol(self) -> &'static str {
        match self {
            Op::Or => "||",
            Op::And => "&&",
            Op::Equal => "==",
            Op::NotEqual => "!=",
            Op::Less => "<",
            Op::LessOrEqual => "<=",
            Op::Greater => ">",
            Op::GreaterOrEqual => ">=",
            Op::Add => "+",
            Op::Subtract => "-",
            Op::Multiply => "*",
            Op::Divide => "/",
        }
    }

    /// How tightly it binds; operators of one rank are taken from the left.
    pub(crate) fn rank(self) -> u8 {
        match self {
            Op::Or => 1,
            Op::And => 2,
            Op::Equal | Op::NotEqual => 3,
            Op::Less | Op::LessOrEqual | Op::Greater | Op::GreaterOrEqual => 4,
            Op::Add | Op::Subtract => 5,
            Op::Multiply | Op::Divide => 6,
        }
    }

    pub(crate) fn is_logic(self) -> bool {
        matches!(self, Op::Or | Op::And)
    }

    pub(crate) fn is_equality(self) -> bool {
        matches!(self, Op::Equal | Op::NotEqual)
    }

    pub(crate) fn is_ordering(self) -> bool {
        self.rank() == 4
    }

    pub(crate) fn is_arithmetic(self) -> bool {
        self.rank() >= 5
    }
}

/// Whose attribute it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Root {
    /// The VM to be placed or moved.
    Vm,
    /// The host in question; `node` is the same.
    Candidate,
    /// The host that the VM would be moved from. Only migrations have one.
    Source,
}

impl Root {
    pub fn name(self) -> &'static str {
        match self {
            Root::Vm => "vm",
            Root::Candidate => "candidateNode",
            Root::Source => "sourceNode",
        }
    }
}

/// An attribute: a root and at least one key, each a name after a dot or a string in brackets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    pub root: Root,
    pub keys: Vec<SmolStr>,
}

impl Path {
    pub fn new(root: Root, keys: &[&str]) -> Self {
        Self { root, keys: keys.iter().map(SmolStr::new).collect() }
    }
}

/// As it is written in a policy.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.root.name())?;
        for key in &self.keys {
            if is_identifier(key) {
                write!(f, ".{key}")?;
            } else {
                write!(f, "[{}]", quoted(key))?;
            }
        }
        Ok(())
    }
}

pub(crate) fn is_identifier(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A string literal that reads back as `text`, in the policy language and in YAML alike.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Other line ends and invisible marks: YAML would fold or refuse them.
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
