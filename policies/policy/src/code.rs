//! Expressions as flat lists: children before parents, the result last.

use crate::{Expr, ExprKind, Op, Path, Root, Value};
use smol_str::SmolStr;

/// A part of an expression. Numbers point at earlier nodes of the same list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Constant(Value),
    /// The attribute with this number among those of its root.
    Attribute(Root, usize),
    /// The parameter with this number; gone once values are bound.
    Parameter(usize),
    Not(usize),
    Negate(usize),
    Binary(Op, usize, usize),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Code {
    pub(crate) nodes: Vec<Node>,
    /// For each node whether it can differ from host to host.
    pub(crate) per_host: Vec<bool>,
}

impl Code {
    /// Flattens `expr`; the two functions number its attributes and parameters.
    pub(crate) fn of(
        expr: &Expr,
        attribute: &mut dyn FnMut(&Path) -> usize,
        parameter: &dyn Fn(&SmolStr) -> usize,
    ) -> Self {
        let mut code = Self::default();
        code.add(expr, attribute, parameter);
        code
    }

    fn add(
        &mut self,
        expr: &Expr,
        attribute: &mut dyn FnMut(&Path) -> usize,
        parameter: &dyn Fn(&SmolStr) -> usize,
    ) -> usize {
        let node = match &expr.kind {
            ExprKind::Bool(value) => Node::Constant(Value::Bool(*value)),
            ExprKind::Number(value) => Node::Constant(Value::Number(*value)),
            ExprKind::Text(value) => Node::Constant(Value::Text(value.clone())),
            ExprKind::Attribute(path) => Node::Attribute(path.root, attribute(path)),
            ExprKind::Parameter(name) => Node::Parameter(parameter(name)),
            ExprKind::Not(inner) => Node::Not(self.add(inner, attribute, parameter)),
            ExprKind::Negate(inner) => Node::Negate(self.add(inner, attribute, parameter)),
            ExprKind::Binary(op, left, right) => {
                let left = self.add(left, attribute, parameter);
                let right = self.add(right, attribute, parameter);
                Node::Binary(*op, left, right)
            }
        };
        self.push(node)
    }

    fn push(&mut self, node: Node) -> usize {
        let differs = |child: &usize| self.per_host.get(*child).copied().unwrap_or(true);
        let per_host = match &node {
            Node::Constant(_) | Node::Parameter(_) => false,
            Node::Attribute(root, _) => *root == Root::Candidate,
            Node::Not(inner) | Node::Negate(inner) => differs(inner),
            Node::Binary(_, left, right) => differs(left) || differs(right),
        };
        self.nodes.push(node);
        self.per_host.push(per_host);
        self.nodes.len() - 1
    }

    /// The same with parameters as constants and attributes numbered anew.
    pub(crate) fn bind(
        &self,
        parameters: &[(SmolStr, Value)],
        attribute: &dyn Fn(Root, usize) -> usize,
    ) -> Self {
        let bound = self.nodes.iter().map(|node| match node {
            Node::Parameter(index) => {
                let value = parameters.get(*index).map(|(_, value)| value.clone());
                Node::Constant(value.unwrap_or_default())
            }
            Node::Attribute(root, index) => Node::Attribute(*root, attribute(*root, *index)),
            other => other.clone(),
        });
        Self { nodes: bound.collect(), per_host: self.per_host.clone() }
    }

    pub(crate) fn steps(&self) -> Steps {
        let per_host = self.per_host.iter().filter(|differs| **differs).count() as u64;
        Steps { per_host, per_request: self.nodes.len() as u64 - per_host }
    }
}

/// What running something costs: parts of expressions evaluated, and actions taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Steps {
    pub per_host: u64,
    /// What depends on the VM alone, however many hosts there are.
    pub per_request: u64,
}

impl Steps {
    pub(crate) fn add(&mut self, more: Steps) {
        self.per_host += more.per_host;
        self.per_request += more.per_request;
    }
}
