//! Tokens to expressions, by rank of operators.
//!
//! Depth and size are bounded while reading, so that no later walk over the tree can run out of
//! stack.

use super::cursor::Cursor;
use super::lex::Token;
use crate::diagnostic::suggestion;
use crate::{At, Expr, ExprKind, MAX_EXPRESSION_NODES, MAX_NESTING, Op, Path, Root};
use smol_str::SmolStr;

const ROOTS: [&str; 5] = ["vm", "candidateNode", "node", "sourceNode", "param"];

/// Reads one expression; `None` after a finding, with the cursor where reading stopped.
pub(crate) fn expression(cursor: &mut Cursor<'_>) -> Option<Expr> {
    Reader { cursor, nodes: 0 }.binary(1, 0)
}

struct Reader<'c, 'f> {
    cursor: &'c mut Cursor<'f>,
    nodes: usize,
}

impl Reader<'_, '_> {
    /// Operators of at least `rank`, from the left.
    fn binary(&mut self, rank: u8, depth: usize) -> Option<Expr> {
        let mut left = self.operand(depth)?;
        while let Some(op) = self.operator().filter(|op| op.rank() >= rank) {
            let at = self.cursor.at();
            self.cursor.bump();
            let right = self.binary(op.rank() + 1, depth + 1)?;
            left = self.node(at, ExprKind::Binary(op, Box::new(left), Box::new(right)))?;
        }
        Some(left)
    }

    fn operand(&mut self, depth: usize) -> Option<Expr> {
        let at = self.cursor.at();
        if depth > MAX_NESTING {
            let message = format!("nested more than {MAX_NESTING} deep");
            self.cursor.findings.error("too-deep", at, &self.cursor.field, message);
            return None;
        }
        match self.cursor.peek().clone() {
            Token::Mark("(") => {
                self.cursor.bump();
                let inner = self.binary(1, depth + 1)?;
                self.cursor.expect_mark(")").then_some(inner)
            }
            Token::Mark("!") => {
                self.cursor.bump();
                let inner = self.operand(depth + 1)?;
                self.node(at, ExprKind::Not(Box::new(inner)))
            }
            Token::Mark("-") => {
                self.cursor.bump();
                match self.operand(depth + 1)? {
                    // A negative literal is one literal, in both notations.
                    Expr { kind: ExprKind::Number(number), .. } => {
                        Some(Expr::new(at, ExprKind::Number(-number)))
                    }
                    inner => self.node(at, ExprKind::Negate(Box::new(inner))),
                }
            }
            Token::Number(number) => self.leaf(at, ExprKind::Number(number)),
            Token::Text(text) => self.leaf(at, ExprKind::Text(text.into())),
            Token::Mark("$") => {
                self.cursor.bump();
                if self.cursor.is_word("param") {
                    return self.operand(depth + 1);
                }
                self.cursor.expected("`param`");
                None
            }
            Token::Word(word) => match word.as_str() {
                "true" => self.leaf(at, ExprKind::Bool(true)),
                "false" => self.leaf(at, ExprKind::Bool(false)),
                _ => self.attribute(&word, at),
            },
            _ => {
                self.cursor.expected("an expression");
                None
            }
        }
    }

    fn attribute(&mut self, word: &str, at: At) -> Option<Expr> {
        let root = match word {
            "vm" => Some(Root::Vm),
            "candidateNode" | "node" => Some(Root::Candidate),
            "sourceNode" => Some(Root::Source),
            "param" => None,
            _ => {
                let message = format!("{word} is not something that can be asked");
                let hint = suggestion(word, &ROOTS);
                self.cursor
                    .findings
                    .error("unknown-root", at, &self.cursor.field, message)
                    .hint(hint);
                return None;
            }
        };
        self.cursor.bump();
        let mut keys = Vec::new();
        loop {
            if self.cursor.take_mark(".") {
                let Some(key) = self.cursor.take_word() else {
                    self.cursor.expected("a name");
                    return None;
                };
                keys.push(SmolStr::from(key));
            } else if self.cursor.take_mark("[") {
                keys.push(self.index()?);
            } else {
                break;
            }
        }
        match (root, keys.as_slice()) {
            (_, []) => {
                let message = format!("{word} alone is not a value");
                self.cursor
                    .findings
                    .error("no-attribute", at, &self.cursor.field, message)
                    .hint(format!("name an attribute: {word}.id"));
                None
            }
            (Some(root), _) => self.node(at, ExprKind::Attribute(Path { root, keys })),
            (None, [name]) => self.node(at, ExprKind::Parameter(name.clone())),
            (None, _) => {
                let message = "a parameter has one name";
                self.cursor.findings.error("unknown-parameter", at, &self.cursor.field, message);
                None
            }
        }
    }

    fn index(&mut self) -> Option<SmolStr> {
        let at = self.cursor.at();
        let Some(key) = self.cursor.take_text() else {
            let message = "a key in brackets is a string that is written out";
            self.cursor
                .findings
                .error("dynamic-key", at, &self.cursor.field, message)
                .hint("policies run over columns, so every key has to be known beforehand");
            return None;
        };
        self.cursor.expect_mark("]").then(|| key.into())
    }

    fn leaf(&mut self, at: At, kind: ExprKind) -> Option<Expr> {
        self.cursor.bump();
        self.node(at, kind)
    }

    fn node(&mut self, at: At, kind: ExprKind) -> Option<Expr> {
        self.nodes += 1;
        if self.nodes > MAX_EXPRESSION_NODES {
            let message = format!("more than {MAX_EXPRESSION_NODES} parts in one expression");
            self.cursor
                .findings
                .error("too-large", at, &self.cursor.field, message)
                .hint("split it into several rules");
            return None;
        }
        Some(Expr::new(at, kind))
    }

    fn operator(&self) -> Option<Op> {
        let Token::Mark(mark) = self.cursor.peek() else { return None };
        Some(match *mark {
            "||" => Op::Or,
            "&&" => Op::And,
            "==" => Op::Equal,
            "!=" => Op::NotEqual,
            "<" => Op::Less,
            "<=" => Op::LessOrEqual,
            ">" => Op::Greater,
            ">=" => Op::GreaterOrEqual,
            "+" => Op::Add,
            "-" => Op::Subtract,
            "*" => Op::Multiply,
            "/" => Op::Divide,
            _ => return None,
        })
    }
}
