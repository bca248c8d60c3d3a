//! What follows from the description of a set alone, whoever is in it.

use cluster::{HostSet, Name, Selector, SelectorOp, VmSet};

/// Whether every VM of `inner` is one of `outer`.
pub(super) fn is_within(inner: &VmSet, outer: &VmSet) -> bool {
    let same = |inner: &Option<Name>, outer: &Option<Name>| outer.is_none() || inner == outer;
    let follows = |wanted: &Selector| inner.labels.iter().any(|given| follows_from(wanted, given));
    same(&inner.tenant, &outer.tenant)
        && same(&inner.group, &outer.group)
        && outer.labels.iter().all(follows)
}

/// Whether no VM can be in both.
pub(super) fn are_apart(one: &VmSet, other: &VmSet) -> bool {
    let tenants = one.tenant.as_ref().zip(other.tenant.as_ref());
    tenants.is_some_and(|(one, other)| one != other) || exclude(&one.labels, &other.labels)
}

/// As `are_apart`, taking it that nobody is in two different groups.
pub(super) fn is_other(one: &VmSet, other: &VmSet) -> bool {
    let groups = one.group.as_ref().zip(other.group.as_ref());
    are_apart(one, other) || groups.is_some_and(|(one, other)| one != other)
}

/// Whether no host can be in both, whatever hosts there are.
pub(super) fn share_no_host(one: &HostSet, other: &HostSet) -> bool {
    let pools = one.pool.as_ref().zip(other.pool.as_ref());
    let elsewhere = one.within.iter().any(|a| {
        let mut same_level = other.within.iter().filter(|b| b.level == a.level);
        same_level.any(|b| !a.names.iter().any(|name| b.names.contains(name)))
    });
    pools.is_some_and(|(one, other)| one != other)
        || elsewhere
        || exclude(&one.labels, &other.labels)
}

fn exclude(some: &[Selector], others: &[Selector]) -> bool {
    let pairs = some.iter().flat_map(|one| others.iter().map(move |other| (one, other)));
    pairs.filter(|(one, other)| one.key == other.key).any(|(one, other)| excludes(one, other))
}

/// Whether a label that meets `given` meets `wanted` too.
fn follows_from(wanted: &Selector, given: &Selector) -> bool {
    use SelectorOp as Op;
    given.key == wanted.key
        && match (&given.op, &wanted.op) {
            (Op::In(given), Op::In(wanted)) => given.iter().all(|value| wanted.contains(value)),
            (Op::In(given), Op::NotIn(unwanted)) => {
                !given.iter().any(|value| unwanted.contains(value))
            }
            (Op::NotIn(given), Op::NotIn(unwanted)) => {
                unwanted.iter().all(|value| given.contains(value))
            }
            (Op::In(_) | Op::Exists, Op::Exists) => true,
            (Op::Missing, Op::Missing | Op::NotIn(_)) => true,
            _ => false,
        }
}

/// Whether no value of one label meets both.
fn excludes(one: &Selector, other: &Selector) -> bool {
    use SelectorOp as Op;
    match (&one.op, &other.op) {
        (Op::In(some), Op::In(others)) => !some.iter().any(|value| others.contains(value)),
        (Op::In(wanted), Op::NotIn(unwanted)) | (Op::NotIn(unwanted), Op::In(wanted)) => {
            wanted.iter().all(|value| unwanted.contains(value))
        }
        (Op::In(_) | Op::Exists, Op::Missing) | (Op::Missing, Op::In(_) | Op::Exists) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::Labels;

    fn name(text: &str) -> Name {
        Name::new(text).expect("a valid name")
    }

    #[test]
    fn what_follows_and_what_excludes_is_so_for_every_value() {
        let values = [None, Some("x"), Some("y"), Some("z")];
        let lists = [vec![], vec![name("x")], vec![name("x"), name("y")]];
        let mut ops = vec![SelectorOp::Exists, SelectorOp::Missing];
        for list in lists {
            ops.extend([SelectorOp::In(list.clone()), SelectorOp::NotIn(list)]);
        }
        let selector = |op: &SelectorOp| Selector { key: name("k"), op: op.clone() };
        for one in &ops {
            for other in &ops {
                let (one, other) = (selector(one), selector(other));
                let meets = |value: Option<&str>| {
                    let labels: Labels =
                        value.map(|value| (name("k"), name(value))).into_iter().collect();
                    (one.matches(&labels), other.matches(&labels))
                };
                let all = values.map(meets);
                if follows_from(&other, &one) {
                    assert!(all.iter().all(|(one, other)| !one || *other), "{one:?} {other:?}");
                }
                if excludes(&one, &other) {
                    assert!(all.iter().all(|(one, other)| !one || !other), "{one:?} {other:?}");
                }
            }
        }
    }
}
