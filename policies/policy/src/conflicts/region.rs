//! Which values of one attribute make a condition true: exact sets, missing and mistyped included.

use crate::scalar::constant;
use crate::{Expr, ExprKind, Op, Path, Value};
use smol_str::SmolStr;
use std::collections::BTreeSet;

/// Conditions with more parts than this are not followed: sets grow with every comparison.
const MAX_FOLLOWED: usize = 128;

/// For which values a condition holds and for which it does not. For the others it has no value:
/// `x < 5` of a string, for instance.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Region {
    pub(crate) holds: Values,
    pub(crate) fails: Values,
}

/// A set of values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Values {
    null: bool,
    yes: bool,
    no: bool,
    texts: Texts,
    numbers: Numbers,
}

/// These strings, or all but these.
#[derive(Clone, Debug, Default, PartialEq)]
struct Texts {
    all_but: bool,
    named: BTreeSet<SmolStr>,
}

/// Sorted points at which membership changes, each with membership at the point and after it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Numbers {
    below: bool,
    steps: Vec<(f64, bool, bool)>,
}

/// The attribute that `expr` depends on and for which of its values it holds; `None` when it asks
/// about anything else too, or in a way that is not followed here.
pub(crate) fn region_of(expr: &Expr) -> Option<(Path, Region)> {
    let mut parts = 0_usize;
    expr.walk(&mut |_| parts += 1);
    if parts > MAX_FOLLOWED {
        return None;
    }
    let mut path: Option<Path> = None;
    let region = follow(expr, &mut path)?;
    Some((path?, region))
}

fn follow(expr: &Expr, path: &mut Option<Path>) -> Option<Region> {
    match &expr.kind {
        ExprKind::Bool(value) => Some(Region::always(*value)),
        ExprKind::Not(inner) => {
            let inner = follow(inner, path)?;
            Some(Region { holds: inner.fails, fails: inner.holds })
        }
        ExprKind::Attribute(found) => {
            // Alone it is a condition: true, or else false when it is false or missing.
            same(found, path)?;
            let holds = Values { yes: true, ..Values::default() };
            let fails = Values { no: true, null: true, ..Values::default() };
            Some(Region { holds, fails })
        }
        ExprKind::Binary(Op::And, left, right) => {
            let (left, right) = (follow(left, path)?, follow(right, path)?);
            Some(Region {
                holds: left.holds.and(&right.holds),
                fails: left.fails.or(&left.holds.and(&right.fails)),
            })
        }
        ExprKind::Binary(Op::Or, left, right) => {
            let (left, right) = (follow(left, path)?, follow(right, path)?);
            Some(Region {
                holds: left.holds.or(&left.fails.and(&right.holds)),
                fails: left.fails.and(&right.fails),
            })
        }
        ExprKind::Binary(op, left, right) if !op.is_arithmetic() => {
            let (attribute, op, value) = match (&left.kind, &right.kind) {
                (ExprKind::Attribute(found), _) => (found, *op, constant(right)?.ok()?),
                (_, ExprKind::Attribute(found)) => (found, flipped(*op), constant(left)?.ok()?),
                _ => return None,
            };
            // Which of two strings is larger is not followed.
            if op.is_ordering() && !matches!(value, Value::Number(_)) {
                return None;
            }
            same(attribute, path)?;
            Some(Region::of_comparison(op, &value))
        }
        _ => None,
    }
}

fn same(found: &Path, path: &mut Option<Path>) -> Option<()> {
    (path.get_or_insert_with(|| found.clone()) == found).then_some(())
}

fn flipped(op: Op) -> Op {
    match op {
        Op::Less => Op::Greater,
        Op::LessOrEqual => Op::GreaterOrEqual,
        Op::Greater => Op::Less,
        Op::GreaterOrEqual => Op::LessOrEqual,
        other => other,
    }
}

impl Region {
    fn always(value: bool) -> Self {
        let (mut holds, mut fails) = (Values::everything(), Values::default());
        if !value {
            std::mem::swap(&mut holds, &mut fails);
        }
        Self { holds, fails }
    }

    fn of_comparison(op: Op, value: &Value) -> Self {
        let everything = Values::everything();
        let mut holds = Values::default();
        match value {
            Value::Null => {}
            Value::Bool(true) => holds.yes = true,
            Value::Bool(false) => holds.no = true,
            Value::Text(text) => holds.texts.named = BTreeSet::from([text.clone()]),
            Value::Number(number) => holds.numbers = Numbers::of(op, *number),
        }
        match op {
            Op::Equal => {}
            Op::NotEqual => {
                holds = holds.complement();
                holds.null = false;
            }
            // Only numbers are larger or smaller than a number.
            _ => {
                let numeric = Values { numbers: everything.numbers, ..Values::default() };
                let fails = holds.complement().and(&numeric);
                return Self { fails: Values { null: true, ..fails }, holds };
            }
        }
        Self { fails: holds.complement(), holds }
    }
}

impl Values {
    pub(crate) fn everything() -> Self {
        Self::default().complement()
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.complement().is_empty()
    }

    /// All values that can be there, the missing one left aside.
    pub(crate) fn is_everything_present(&self) -> bool {
        Self { null: true, ..self.clone() }.is_everything()
    }

    /// All numbers, whatever else.
    pub(crate) fn has_every_number(&self) -> bool {
        self.numbers == Self::everything().numbers
    }

    fn complement(&self) -> Self {
        let steps = self.numbers.steps.iter().map(|(point, at, after)| (*point, !at, !after));
        Self {
            null: !self.null,
            yes: !self.yes,
            no: !self.no,
            texts: Texts { all_but: !self.texts.all_but, named: self.texts.named.clone() },
            numbers: Numbers { below: !self.numbers.below, steps: steps.collect() },
        }
    }

    fn and(&self, other: &Self) -> Self {
        self.complement().or(&other.complement()).complement()
    }

    pub(crate) fn or(&self, other: &Self) -> Self {
        Self {
            null: self.null || other.null,
            yes: self.yes || other.yes,
            no: self.no || other.no,
            texts: self.texts.or(&other.texts),
            numbers: self.numbers.or(&other.numbers),
        }
    }
}

impl Texts {
    fn or(&self, other: &Self) -> Self {
        let (a, b) = (&self.named, &other.named);
        let named: BTreeSet<SmolStr> = match (self.all_but, other.all_but) {
            (false, false) => a.union(b).cloned().collect(),
            (true, true) => a.intersection(b).cloned().collect(),
            (true, false) => a.difference(b).cloned().collect(),
            (false, true) => b.difference(a).cloned().collect(),
        };
        Self { all_but: self.all_but || other.all_but, named }
    }
}

impl Numbers {
    fn of(op: Op, point: f64) -> Self {
        let (below, at, after) = match op {
            Op::Less => (true, false, false),
            Op::LessOrEqual => (true, true, false),
            Op::Greater => (false, false, true),
            Op::GreaterOrEqual => (false, true, true),
            // Of `==`; what `!=` holds for is the rest.
            _ => (false, true, false),
        };
        Self { below, steps: vec![(point, at, after)] }
    }

    fn or(&self, other: &Self) -> Self {
        let mut points: Vec<f64> =
            self.steps.iter().chain(&other.steps).map(|step| step.0).collect();
        points.sort_by(f64::total_cmp);
        points.dedup();
        let below = self.below || other.below;
        let mut last = below;
        let mut steps = Vec::new();
        for point in points {
            let (at, after) = (self.at(point), self.after(point));
            let (at, after) = (at || other.at(point), after || other.after(point));
            // A point at which nothing changes says nothing; equal sets must look equal.
            if at != last || after != last {
                steps.push((point, at, after));
            }
            last = after;
        }
        Self { below, steps }
    }

    fn at(&self, point: f64) -> bool {
        let step = self.step(point);
        step.map_or(self.below, |step| if step.0 == point { step.1 } else { step.2 })
    }

    fn after(&self, point: f64) -> bool {
        self.step(point).map_or(self.below, |step| step.2)
    }

    /// The last step at or below `point`.
    fn step(&self, point: f64) -> Option<&(f64, bool, bool)> {
        let above = self.steps.partition_point(|step| step.0 <= point);
        self.steps.get(above.checked_sub(1)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_expression;

    fn region(text: &str) -> Region {
        region_of(&parse_expression(text).expect("an expression")).expect("one attribute").1
    }

    #[test]
    fn ranges_that_meet_cover_every_number() {
        let both = region("node.x < 5").holds.or(&region("node.x >= 5").holds);
        assert!(both.has_every_number() && !both.is_everything_present());
        let gap = region("node.x < 5").holds.or(&region("node.x > 5").holds);
        assert!(!gap.has_every_number());
        assert!(region("node.x > 5 && node.x < 3").holds.is_empty());
    }

    #[test]
    fn equal_and_not_equal_cover_what_is_there() {
        let both = region("node.x == \"a\"").holds.or(&region("node.x != \"a\"").holds);
        assert!(both.is_everything_present() && !both.is_everything());
        let all = region("node.x == \"a\"").holds.or(&region("!(node.x == \"a\")").holds);
        assert!(all.is_everything());
    }

    #[test]
    fn two_attributes_are_not_followed() {
        assert_eq!(region_of(&parse_expression("node.x == node.y").expect("reads")), None);
        assert_eq!(region_of(&parse_expression("node.x == 1 || vm.y == 1").expect("reads")), None);
    }
}
