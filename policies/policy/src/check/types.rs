//! The type of every expression, as far as it is known before a policy runs.

use crate::diagnostic::Findings;
use crate::document::{Document, ParameterType};
use crate::{Expr, ExprKind, Op};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Number,
    Text,
    Bool,
    /// An attribute: only its value tells.
    Unknown,
}

impl Type {
    pub(super) fn name(self) -> &'static str {
        match self {
            Type::Number => "a number",
            Type::Text => "a string",
            Type::Bool => "a condition (true or false)",
            Type::Unknown => "something",
        }
    }

    fn may_be(self, wanted: Type) -> bool {
        self == wanted || self == Type::Unknown
    }
}

/// The type; `None` after a finding, so that one mistake is reported once.
pub(super) fn type_of(
    expr: &Expr,
    document: &Document,
    field: &str,
    findings: &mut Findings,
) -> Option<Type> {
    match &expr.kind {
        ExprKind::Bool(_) => Some(Type::Bool),
        ExprKind::Number(_) => Some(Type::Number),
        ExprKind::Text(_) => Some(Type::Text),
        ExprKind::Attribute(_) => Some(Type::Unknown),
        ExprKind::Parameter(name) => {
            Some(document.parameter(name).map_or(Type::Unknown, |parameter| match parameter.kind {
                ParameterType::String => Type::Text,
                ParameterType::Int | ParameterType::Float => Type::Number,
                ParameterType::Bool => Type::Bool,
            }))
        }
        ExprKind::Not(inner) => {
            let inner = type_of(inner, document, field, findings)?;
            operand(expr, "!", inner, Type::Bool, field, findings)
        }
        ExprKind::Negate(inner) => {
            let inner = type_of(inner, document, field, findings)?;
            operand(expr, "-", inner, Type::Number, field, findings)
        }
        ExprKind::Binary(op, left, right) => {
            let left = type_of(left, document, field, findings);
            let right = type_of(right, document, field, findings);
            binary(expr, *op, left?, right?, field, findings)
        }
    }
}

fn binary(
    expr: &Expr,
    op: Op,
    left: Type,
    right: Type,
    field: &str,
    findings: &mut Findings,
) -> Option<Type> {
    let symbol = op.symbol();
    if op.is_logic() || op.is_arithmetic() {
        let wanted = if op.is_logic() { Type::Bool } else { Type::Number };
        operand(expr, symbol, left, wanted, field, findings)?;
        return operand(expr, symbol, right, wanted, field, findings);
    }
    if left != right && left != Type::Unknown && right != Type::Unknown {
        let message = format!("{symbol} compares {} with {}", left.name(), right.name());
        findings.error("type-mismatch", expr.at, field, message);
        return None;
    }
    if op.is_ordering() && (left == Type::Bool || right == Type::Bool) {
        let message = format!("{symbol} has no meaning for true and false");
        findings
            .error("type-mismatch", expr.at, field, message)
            .hint("comparisons cannot be chained: write a < b && b < c");
        return None;
    }
    Some(Type::Bool)
}

fn operand(
    expr: &Expr,
    symbol: &str,
    found: Type,
    wanted: Type,
    field: &str,
    findings: &mut Findings,
) -> Option<Type> {
    if found.may_be(wanted) {
        return Some(wanted);
    }
    let message = format!("{symbol} takes {}, this is {}", wanted.name(), found.name());
    let finding = findings.error("type-mismatch", expr.at, field, message);
    if symbol == "+" && found == Type::Text {
        finding.hint("strings cannot be joined");
    }
    None
}
