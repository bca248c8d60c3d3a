//! Names in a request that exist nowhere in the fleet, with the nearest that does.

use crate::hosts::Hosts;
use cluster::{AffinityKind, Level, Name, SelectorOp, Strength, Subject, Vm};
use policy::nearest;
use std::collections::BTreeSet;

/// A name that no host has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    pub what: UnknownKind,
    pub name: Name,
    /// The nearest name that some host has, if it is near enough to be a slip.
    pub nearest: Option<Name>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnknownKind {
    Pool,
    LabelKey,
    /// A value that no host has for this label.
    LabelValue {
        key: Name,
    },
    Datastore,
    Host,
}

/// The names that no host has, in the order of the request. Looks at every host once for each.
pub(super) fn unknown(hosts: &Hosts, vm: &Vm) -> Vec<Unknown> {
    let mut found = Vec::new();
    if let Some(pool) = &vm.pool {
        let known = hosts.iter().filter_map(|(_, host)| host.pool.as_ref());
        look_up(UnknownKind::Pool, pool, known, &mut found);
    }
    for selector in &vm.selectors {
        // A selector against a label is at ease where nobody has it.
        let values: &[Name] = match &selector.op {
            SelectorOp::In(values) => values,
            SelectorOp::Exists => &[],
            SelectorOp::NotIn(_) | SelectorOp::Missing => continue,
        };
        if label_key(hosts, &selector.key, &mut found) {
            for value in values {
                let key = selector.key.clone();
                let known =
                    hosts.iter().filter_map(|(_, host)| host.labels.get(selector.key.as_str()));
                look_up(UnknownKind::LabelValue { key }, value, known, &mut found);
            }
        }
    }
    for store in &vm.datastores {
        let known = hosts.iter().flat_map(|(_, host)| &host.datastores);
        look_up(UnknownKind::Datastore, store, known, &mut found);
    }
    let required = vm.affinities.iter().filter(|rule| rule.strength == Strength::Required);
    for rule in required.filter(|rule| rule.kind == AffinityKind::Together) {
        if let Level::Label(key) = &rule.level {
            label_key(hosts, key, &mut found);
        }
        let Subject::Hosts(named) = &rule.subject else { continue };
        for name in named {
            look_up(UnknownKind::Host, name, hosts.iter().map(|(_, host)| &host.id), &mut found);
        }
    }
    for rule in vm.spreads.iter().filter(|rule| rule.strength == Strength::Required) {
        if let Level::Label(key) = &rule.level {
            label_key(hosts, key, &mut found);
        }
    }
    found
}

/// Whether some host has a label with this key.
fn label_key(hosts: &Hosts, key: &Name, found: &mut Vec<Unknown>) -> bool {
    let known = hosts.iter().flat_map(|(_, host)| host.labels.iter().map(|(key, _)| key));
    look_up(UnknownKind::LabelKey, key, known, found)
}

fn look_up<'h>(
    what: UnknownKind,
    name: &Name,
    known: impl Iterator<Item = &'h Name>,
    found: &mut Vec<Unknown>,
) -> bool {
    let known: BTreeSet<&Name> = known.collect();
    if known.contains(name) {
        return true;
    }
    let nearest = nearest(name.as_str(), known.iter().map(|known| known.as_str()));
    let nearest = nearest.and_then(|text| known.iter().find(|known| known.as_str() == text));
    let unknown = Unknown { what, name: name.clone(), nearest: nearest.copied().cloned() };
    if !found.contains(&unknown) {
        found.push(unknown);
    }
    false
}
