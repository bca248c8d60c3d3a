//! The nouns of a violation in words, for sentences and for JSON.

use cluster::{
    AffinityKind, Dim, Dimensions, HostState, Level, Name, Reason, Selector, SelectorOp, Subject,
    Taint,
};
use serde::Serializer;

pub(crate) fn place(level: &Level, domain: Option<&Name>) -> String {
    match domain {
        Some(domain) => format!("{} {domain}", level.name()),
        None => format!("the host's missing {}", level.name()),
    }
}

pub(crate) fn subject_text(subject: &Subject) -> String {
    match subject {
        Subject::Vm(id) => format!("vm {id}"),
        Subject::Group(group) => format!("group {group}"),
        Subject::Hosts(hosts) => {
            let names: Vec<&str> = hosts.iter().map(Name::as_str).collect();
            format!("hosts {}", names.join(","))
        }
    }
}

pub(crate) fn selector_text(selector: &Selector) -> String {
    let key = &selector.key;
    let list = |values: &[Name]| values.iter().map(Name::as_str).collect::<Vec<_>>().join(",");
    match &selector.op {
        SelectorOp::In(values) => format!("{key} in {}", list(values)),
        SelectorOp::NotIn(values) => format!("{key} not in {}", list(values)),
        SelectorOp::Exists => format!("{key} exists"),
        SelectorOp::Missing => format!("{key} missing"),
    }
}

pub(crate) fn taint_text(taint: &Taint) -> String {
    match &taint.value {
        Some(value) => format!("{}={value}", taint.key),
        None => taint.key.to_string(),
    }
}

pub(crate) fn state_text(state: HostState) -> &'static str {
    match state {
        HostState::Available => "available",
        HostState::Cordoned => "cordoned",
        HostState::Draining => "draining",
        HostState::Maintenance => "maintenance",
        HostState::Down => "down",
    }
}

/// Extra dimensions are named by configuration, which the ledger does not have.
pub(crate) fn dimension_text(dim: Dim) -> String {
    if dim.row() < Dim::BUILT_IN {
        Dimensions::default().name(dim).to_owned()
    } else {
        format!("dimension_{}", dim.0)
    }
}

pub(crate) fn reason_text(reason: Reason) -> String {
    match reason {
        Reason::Capacity(dim) => dimension_text(dim),
        other => other.name().unwrap_or("capacity").to_owned(),
    }
}

pub(crate) fn host_state<S: Serializer>(state: &HostState, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(state_text(*state))
}

pub(crate) fn selector<S: Serializer>(selector: &Selector, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&selector_text(selector))
}

pub(crate) fn taint<S: Serializer>(taint: &Taint, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&taint_text(taint))
}

pub(crate) fn affinity_kind<S: Serializer>(kind: &AffinityKind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(match kind {
        AffinityKind::Together => "together",
        AffinityKind::Apart => "apart",
    })
}

pub(crate) fn level<S: Serializer>(level: &Level, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&level.name())
}

pub(crate) fn subject<S: Serializer>(subject: &Subject, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&subject_text(subject))
}

pub(crate) fn dimension<S: Serializer>(dim: &Dim, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&dimension_text(*dim))
}

pub(crate) fn reason<S: Serializer>(reason: &Reason, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&reason_text(*reason))
}
