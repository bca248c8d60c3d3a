//! Taking expressions apart: parameters filled in, conditions split at `&&`, scores as slopes.

use crate::{Expr, ExprKind, Op, Path, Root, Value};
use smol_str::SmolStr;

/// The expression with parameters replaced by their values.
pub(super) fn bound(expr: &Expr, parameters: &[(SmolStr, Value)]) -> Expr {
    let again = |inner: &Expr| Box::new(bound(inner, parameters));
    let kind = match &expr.kind {
        ExprKind::Parameter(name) => {
            let value = parameters.iter().find(|(known, _)| known == name);
            match value.map(|(_, value)| value) {
                Some(Value::Bool(value)) => ExprKind::Bool(*value),
                Some(Value::Number(value)) => ExprKind::Number(*value),
                Some(Value::Text(value)) => ExprKind::Text(value.clone()),
                Some(Value::Null) | None => ExprKind::Parameter(name.clone()),
            }
        }
        ExprKind::Not(inner) => ExprKind::Not(again(inner)),
        ExprKind::Negate(inner) => ExprKind::Negate(again(inner)),
        ExprKind::Binary(op, left, right) => ExprKind::Binary(*op, again(left), again(right)),
        other => other.clone(),
    };
    Expr::new(expr.at, kind)
}

/// The parts that must all be true.
pub(super) fn conjuncts(expr: &Expr) -> Vec<&Expr> {
    let mut parts = Vec::new();
    let mut open = vec![expr];
    while let Some(expr) = open.pop() {
        match &expr.kind {
            ExprKind::Binary(Op::And, left, right) => open.extend([&**right, &**left]),
            _ => parts.push(expr),
        }
    }
    parts
}

/// The other way round; `None` of nothing.
pub(super) fn joined(parts: &[Expr]) -> Option<Expr> {
    parts.iter().cloned().reduce(|left, right| {
        Expr::new(left.at, ExprKind::Binary(Op::And, Box::new(left), Box::new(right)))
    })
}

/// How points change with the host.
pub(super) enum Slope {
    /// With one attribute on a straight line: upwards or downwards.
    On(Path, bool),
    /// Not at all: whether they are above zero.
    Flat(bool),
}

/// `None` when the points depend on more, in other ways, or are always zero.
pub(super) fn slope(points: &Expr) -> Option<Slope> {
    let Line { constant, factor, path } = line(points)?;
    match path {
        Some(path) if factor != 0.0 => Some(Slope::On(path, factor > 0.0)),
        _ if constant != 0.0 => Some(Slope::Flat(constant > 0.0)),
        _ => None,
    }
}

/// `constant + factor * path`.
struct Line {
    constant: f64,
    factor: f64,
    path: Option<Path>,
}

fn line(expr: &Expr) -> Option<Line> {
    let scaled = |line: Line, by: f64| Line {
        constant: line.constant * by,
        factor: line.factor * by,
        path: line.path,
    };
    match &expr.kind {
        ExprKind::Number(number) => Some(Line { constant: *number, factor: 0.0, path: None }),
        ExprKind::Attribute(path) if path.root == Root::Candidate => {
            Some(Line { constant: 0.0, factor: 1.0, path: Some(path.clone()) })
        }
        ExprKind::Negate(inner) => Some(scaled(line(inner)?, -1.0)),
        ExprKind::Binary(op, left, right) => {
            let (left, right) = (line(left)?, line(right)?);
            match op {
                Op::Add => sum(left, right),
                Op::Subtract => sum(left, scaled(right, -1.0)),
                Op::Multiply if right.path.is_none() => Some(scaled(left, right.constant)),
                Op::Multiply if left.path.is_none() => Some(scaled(right, left.constant)),
                Op::Divide if right.path.is_none() && right.constant != 0.0 => {
                    Some(scaled(left, 1.0 / right.constant))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

fn sum(left: Line, right: Line) -> Option<Line> {
    let path = match (left.path, right.path) {
        (Some(left), Some(right)) if left != right => return None,
        (left, right) => left.or(right),
    };
    Some(Line {
        constant: left.constant + right.constant,
        factor: left.factor + right.factor,
        path,
    })
}
