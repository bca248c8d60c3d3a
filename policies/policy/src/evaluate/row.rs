//! One node of flat code on plain values: for what is the same for all hosts, and for columns of
//! mixed kinds.

use crate::code::Node;
use crate::scalar::Fault;
use crate::{Op, Root, Value};
use std::cmp::Ordering;

/// A value, or why there is none.
pub(super) type Cell = Result<Value, Fault>;

/// The value of `node` when those before it have `values`.
pub(super) fn apply(node: &Node, values: &[Cell], lookup: &dyn Fn(Root, usize) -> Value) -> Cell {
    match node {
        Node::Constant(value) => Ok(value.clone()),
        Node::Attribute(root, index) => Ok(lookup(*root, *index)),
        // Bound code has none.
        Node::Parameter(_) => Ok(Value::Null),
        Node::Not(inner) => truth(at(values, *inner)).map(|value| Value::Bool(!value)),
        Node::Negate(inner) => points(at(values, *inner)).map(|value| Value::Number(-value)),
        Node::Binary(op, left, right) => binary(*op, at(values, *left), at(values, *right)),
    }
}

pub(super) fn binary(op: Op, left: &Cell, right: &Cell) -> Cell {
    match op {
        // The right side counts only where the left side does not decide.
        Op::And => Ok(Value::Bool(truth(left)? && truth(right)?)),
        Op::Or => Ok(Value::Bool(truth(left)? || truth(right)?)),
        Op::Add | Op::Subtract | Op::Multiply | Op::Divide => {
            let (left, right) = (points(left)?, points(right)?);
            let result = match op {
                Op::Add => left + right,
                Op::Subtract => left - right,
                Op::Multiply => left * right,
                _ => left / right,
            };
            if result.is_finite() { Ok(Value::Number(result)) } else { Err(Fault::NotFinite) }
        }
        _ => compare(op, left.as_ref().map_err(|fault| *fault)?, right.as_ref().map_err(|f| *f)?),
    }
}

/// A condition's outcome; what is not there is false.
pub(super) fn truth(cell: &Cell) -> Result<bool, Fault> {
    match cell {
        Ok(Value::Bool(value)) => Ok(*value),
        Ok(Value::Null) => Ok(false),
        Ok(_) => Err(Fault::Type),
        Err(fault) => Err(*fault),
    }
}

pub(super) fn points(cell: &Cell) -> Result<f64, Fault> {
    match cell {
        Ok(Value::Number(value)) => Ok(*value),
        Ok(Value::Null) => Err(Fault::Missing),
        Ok(_) => Err(Fault::Type),
        Err(fault) => Err(*fault),
    }
}

fn at(values: &[Cell], index: usize) -> &Cell {
    values.get(index).unwrap_or(&Err(Fault::Type))
}

fn compare(op: Op, left: &Value, right: &Value) -> Cell {
    let equal = |same: bool| match op {
        Op::Equal => Ok(Value::Bool(same)),
        Op::NotEqual => Ok(Value::Bool(!same)),
        _ => Err(Fault::Type),
    };
    let order = match (left, right) {
        (Value::Null, _) | (_, Value::Null) => return Ok(Value::Bool(false)),
        (Value::Bool(left), Value::Bool(right)) => return equal(left == right),
        (Value::Number(left), Value::Number(right)) => {
            // Finite numbers always have an order.
            left.partial_cmp(right).unwrap_or(Ordering::Equal)
        }
        (Value::Text(left), Value::Text(right)) => left.as_str().cmp(right.as_str()),
        _ => return equal(false),
    };
    Ok(Value::Bool(match op {
        Op::Equal => order == Ordering::Equal,
        Op::NotEqual => order != Ordering::Equal,
        Op::Less => order == Ordering::Less,
        Op::LessOrEqual => order != Ordering::Greater,
        Op::Greater => order == Ordering::Greater,
        _ => order != Ordering::Less,
    }))
}
