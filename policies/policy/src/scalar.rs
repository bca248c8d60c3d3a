//! Evaluates policies for one host by walking their trees: the plain reading of what they mean.
//!
//! Written apart from the evaluator over columns, for the verifier and for tests: the two share
//! values and documents, and no arithmetic.

use crate::active::{ActivePolicy, ActiveSet, RuleIx};
use crate::document::{ActionKind, LogLevel, PolicyType, Rule};
use crate::value::{MAX_MILLIS, Value, millis};
use crate::{Expr, ExprKind, Op, Path, SOFT_FILTER_POINTS};
use smol_str::SmolStr;

/// Why an expression has no value on a host. The rule does not fire there; nothing else happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("a number is wanted and the attribute is not there")]
    Missing,
    #[error("the values are of the wrong type")]
    Type,
    #[error("the result is not a finite number")]
    NotFinite,
}

/// What the active policies say about one host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowVerdict {
    /// The rule that removed the host, if one did.
    pub filtered_by: Option<RuleIx>,
    /// 0 for a removed host.
    pub score_millis: i64,
    /// Points by policy rule and reason, in the order of evaluation; none for a removed host.
    pub components: Vec<(RuleIx, SmolStr, i64)>,
    /// Rules that did not fire because a part of them had no value.
    pub errors: Vec<RuleIx>,
    /// Policies, by their place in the set, whose target had no value.
    pub target_errors: Vec<usize>,
    pub logs: Vec<(RuleIx, LogLevel, SmolStr)>,
}

/// Evaluates the policies of `set` that count for `asked`. `lookup` gives an attribute's value.
pub fn evaluate(set: &ActiveSet, asked: PolicyType, lookup: &dyn Fn(&Path) -> Value) -> RowVerdict {
    let mut verdict = RowVerdict::default();
    let mut sum = 0_i64;
    for (place, policy) in set.policies().iter().enumerate() {
        let document = policy.program().document();
        if !document.kind.counts_for(asked) {
            continue;
        }
        let scope = Scope { lookup, parameters: policy.parameter_values() };
        match document.target.as_ref().map_or(Ok(true), |target| scope.condition(target)) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(_) => {
                verdict.target_errors.push(place);
                continue;
            }
        }
        for (rule_ix, rule) in policy.rules() {
            let scores = match scope.fires(rule) {
                Ok(Some(scores)) => scores,
                Ok(None) => continue,
                Err(_) => {
                    verdict.errors.push(rule_ix);
                    continue;
                }
            };
            let mut scores = scores.into_iter();
            let weight = f64::from(rule.weight);
            let mut removed = false;
            for action in &rule.then {
                let (points, reason) = match &action.kind {
                    ActionKind::Score { reason, .. } => (scores.next().unwrap_or(0.0), reason),
                    ActionKind::Filter { .. } if rule.removes() => {
                        removed = true;
                        continue;
                    }
                    ActionKind::Filter { reason } => (-SOFT_FILTER_POINTS, reason),
                    ActionKind::Log { text, level } => {
                        verdict.logs.push((rule_ix, *level, text.clone()));
                        continue;
                    }
                };
                let gained = millis(points * weight);
                sum += gained;
                verdict.components.push((rule_ix, reason.clone(), gained));
            }
            if removed {
                verdict.filtered_by = Some(rule_ix);
                verdict.components.clear();
                return verdict;
            }
        }
    }
    verdict.score_millis = sum.clamp(-MAX_MILLIS, MAX_MILLIS);
    verdict
}

/// Every rule that removes the host, also behind the first, in the order of evaluation.
pub fn removers(
    set: &ActiveSet,
    asked: PolicyType,
    lookup: &dyn Fn(&Path) -> Value,
) -> Vec<RuleIx> {
    let counts = |policy: &&ActivePolicy| policy.program().document().kind.counts_for(asked);
    let mut removers = Vec::new();
    for policy in set.policies().iter().filter(counts) {
        let scope = Scope { lookup, parameters: policy.parameter_values() };
        let target = policy.program().document().target.as_ref();
        if target.map_or(Ok(true), |target| scope.condition(target)) != Ok(true) {
            continue;
        }
        let removes =
            policy.rules().filter(|(_, rule)| rule.removes() && rule.filter_reason().is_some());
        let fires = removes.filter(|(_, rule)| matches!(scope.fires(rule), Ok(Some(_))));
        removers.extend(fires.map(|(ix, _)| ix));
    }
    removers
}

/// The value of an expression without attributes and parameters; `None` when it has such.
pub(crate) fn constant(expr: &Expr) -> Option<Result<Value, Fault>> {
    let mut fixed = true;
    expr.walk(&mut |expr| {
        fixed &= !matches!(expr.kind, ExprKind::Attribute(_) | ExprKind::Parameter(_));
    });
    let scope = Scope { lookup: &|_| Value::Null, parameters: &[] };
    fixed.then(|| scope.value(expr))
}

struct Scope<'a> {
    lookup: &'a dyn Fn(&Path) -> Value,
    parameters: &'a [(SmolStr, Value)],
}

impl Scope<'_> {
    /// The points of a rule that fires; `None` when its condition is false.
    fn fires(&self, rule: &Rule) -> Result<Option<Vec<f64>>, Fault> {
        let points = |expr| self.points(expr);
        self.condition(&rule.when).and_then(|fires| {
            fires.then(|| rule.score_expressions().map(points).collect()).transpose()
        })
    }

    fn value(&self, expr: &Expr) -> Result<Value, Fault> {
        Ok(match &expr.kind {
            ExprKind::Bool(value) => Value::Bool(*value),
            ExprKind::Number(value) => Value::Number(*value),
            ExprKind::Text(value) => Value::Text(value.clone()),
            ExprKind::Attribute(path) => (self.lookup)(path),
            ExprKind::Parameter(name) => {
                let found = self.parameters.iter().find(|(known, _)| known == name);
                found.map_or(Value::Null, |(_, value)| value.clone())
            }
            ExprKind::Not(inner) => Value::Bool(!self.condition(inner)?),
            ExprKind::Negate(inner) => Value::Number(-self.points(inner)?),
            ExprKind::Binary(Op::And, left, right) => {
                Value::Bool(self.condition(left)? && self.condition(right)?)
            }
            ExprKind::Binary(Op::Or, left, right) => {
                Value::Bool(self.condition(left)? || self.condition(right)?)
            }
            ExprKind::Binary(op, left, right) if op.is_arithmetic() => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                arithmetic(*op, number(left)?, number(right)?)?
            }
            ExprKind::Binary(op, left, right) => {
                Value::Bool(compare(*op, &self.value(left)?, &self.value(right)?)?)
            }
        })
    }

    /// True or false; what is not there is false.
    fn condition(&self, expr: &Expr) -> Result<bool, Fault> {
        match self.value(expr)? {
            Value::Bool(value) => Ok(value),
            Value::Null => Ok(false),
            _ => Err(Fault::Type),
        }
    }

    fn points(&self, expr: &Expr) -> Result<f64, Fault> {
        number(self.value(expr)?)
    }
}

fn number(value: Value) -> Result<f64, Fault> {
    match value {
        Value::Number(number) => Ok(number),
        Value::Null => Err(Fault::Missing),
        _ => Err(Fault::Type),
    }
}

fn arithmetic(op: Op, left: f64, right: f64) -> Result<Value, Fault> {
    let result = match op {
        Op::Add => left + right,
        Op::Subtract => left - right,
        Op::Multiply => left * right,
        _ => left / right,
    };
    if result.is_finite() { Ok(Value::Number(result)) } else { Err(Fault::NotFinite) }
}

fn compare(op: Op, left: &Value, right: &Value) -> Result<bool, Fault> {
    use std::cmp::Ordering;
    if left.is_null() || right.is_null() {
        return Ok(false);
    }
    let order = match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.partial_cmp(right),
        (Value::Text(left), Value::Text(right)) => Some(left.as_bytes().cmp(right.as_bytes())),
        (Value::Bool(left), Value::Bool(right)) if op.is_equality() => Some(left.cmp(right)),
        // Values of two types differ; which is larger has no answer.
        _ => None,
    };
    match (op, order) {
        (Op::Equal, order) => Ok(order == Some(Ordering::Equal)),
        (Op::NotEqual, order) => Ok(order != Some(Ordering::Equal)),
        (Op::Less, Some(order)) => Ok(order.is_lt()),
        (Op::LessOrEqual, Some(order)) => Ok(order.is_le()),
        (Op::Greater, Some(order)) => Ok(order.is_gt()),
        (_, Some(order)) => Ok(order.is_ge()),
        (_, None) => Err(Fault::Type),
    }
}
