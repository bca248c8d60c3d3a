//! Obstacles and changes as sentences.

use cluster::{AffinityKind, Dimensions, Level, Name, Selector, SelectorOp, Subject, Taint};
use solver::explain::{Change, Obstacle, Part};
use wire::Choice;

pub(super) fn obstacle(obstacle: &Obstacle, dimensions: &Dimensions) -> String {
    match obstacle {
        Obstacle::HostState(state) => format!("the host is {} and takes no new VMs", state.word()),
        Obstacle::Pool { wanted, found: Some(found) } => {
            format!("the host is in pool {found}, not {wanted}")
        }
        Obstacle::Pool { wanted, found: None } => format!("the host is in no pool, not {wanted}"),
        Obstacle::Selector { wanted, found } => {
            let has = match found {
                Some(found) => format!("{}={found}", wanted.key),
                None => format!("no label {}", wanted.key),
            };
            format!("the VM asks for {}, the host has {has}", selector(wanted))
        }
        Obstacle::Taint(it) => format!("taint {} is not tolerated", taint(it)),
        Obstacle::Datastore(store) => format!("the host does not reach datastore {store}"),
        Obstacle::ExcludedHost => "the VM excludes this host".into(),
        Obstacle::HostAffinity { rule, domain } => {
            let (here, hosts) = (place(&rule.level, domain.as_ref()), subject(&rule.subject));
            match rule.kind {
                AffinityKind::Together => format!("{here} is that of none of {hosts}"),
                AffinityKind::Apart => format!("{here} is that of one of {hosts}"),
            }
        }
        Obstacle::Affinity { rule, domain } => {
            let here = place(&rule.level, domain.as_ref());
            format!("{here} has none of {}, to be together with", subject(&rule.subject))
        }
        Obstacle::AntiAffinity { rule, domain, members } => {
            let here = place(&rule.level, Some(domain));
            format!("{here} has {members} of {}, to be apart from", subject(&rule.subject))
        }
        Obstacle::Repelled { subject: it, level, domain, by } => {
            let here = place(level, Some(domain));
            format!("{here} has {by} VMs that keep away from {}", subject(it))
        }
        Obstacle::Spread { rule, domain: None, .. } => {
            let level = rule.level.name();
            format!("group {} is spread by {level}, of which the host has none", rule.group)
        }
        Obstacle::Spread { rule, domain, members, fewest, skew } => {
            let here = place(&rule.level, domain.as_ref());
            format!(
                "{here} has {members} of group {}, the emptiest {fewest}: skew would be {skew}, \
                 at most {} is allowed",
                rule.group, rule.max_skew
            )
        }
        Obstacle::Policy { policy, rule, reason } => {
            format!("rule {rule} of policy {policy} removes the host: {reason}")
        }
        Obstacle::Constraint { name, reason } => {
            let kind = reason.name().unwrap_or("constraint");
            format!("constraint {name} ({kind}) leaves the host out")
        }
        Obstacle::Parts { missing, .. } => format!("the host cannot give its parts: {missing}"),
        Obstacle::Capacity { dim, need, free, allocatable } => {
            let (name, short) = (dimensions.name(*dim), need.saturating_sub(*free));
            format!("{name}: {need} needed, {free} of {allocatable} free, short by {short}")
        }
    }
}

/// The kind of a change on the wire.
pub(super) fn kind(change: &Change) -> &'static str {
    match change {
        Change::Demand { .. } => "demand",
        Change::AnyPool { .. } => "any_pool",
        Change::DropSelector(_) => "drop_selector",
        Change::Tolerate(_) => "tolerate",
        Change::DropDatastore(_) => "drop_datastore",
        Change::AllowHost(_) => "allow_host",
        Change::PreferAffinity(_) => "prefer_affinity",
        Change::RaiseSkew { .. } => "raise_skew",
        Change::PreferSpread(_) => "prefer_spread",
        Change::WaiveRepulsion { .. } => "waive_repulsion",
        Change::WaivePolicy { .. } => "waive_policy",
        Change::WaiveConstraint { .. } => "waive_constraint",
        Change::Relax(_) => "relax_topology",
        Change::Reopen { .. } => "reopen",
    }
}

pub(super) fn change(change: &Change, dimensions: &Dimensions) -> String {
    match change {
        Change::Demand { dim, from, to } => {
            format!("ask for {to} {} instead of {from}", dimensions.name(*dim))
        }
        Change::AnyPool { pool } => format!("take any pool, not only {pool}"),
        Change::DropSelector(it) => format!("drop the selector {}", selector(it)),
        Change::Tolerate(it) => format!("tolerate the taint {}", taint(it)),
        Change::DropDatastore(store) => format!("do without datastore {store}"),
        Change::AllowHost(host) => format!("do not exclude host {host}"),
        Change::PreferAffinity(rule) => {
            let kind = rule.kind.word();
            let (whom, level) = (subject(&rule.subject), rule.level.name());
            format!("only prefer to be {kind} at {level}: {whom}")
        }
        Change::RaiseSkew { rule, to } => {
            let (group, level, from) = (&rule.group, rule.level.name(), rule.max_skew);
            format!("allow group {group} a skew of {to} by {level} instead of {from}")
        }
        Change::PreferSpread(rule) => {
            format!("only prefer to spread group {} by {}", rule.group, rule.level.name())
        }
        Change::WaiveRepulsion { subject: it, level, domain, by } => {
            let here = place(level, Some(domain));
            format!("let {by} VMs in {here} no longer keep away from {}", subject(it))
        }
        Change::WaivePolicy { policy, rule } => {
            format!("exempt the VM from rule {rule} of policy {policy}")
        }
        Change::WaiveConstraint { name } => format!("exempt the VM from constraint {name}"),
        Change::Relax(part) => relaxed(*part).into(),
        Change::Reopen { host, from } => {
            format!("make host {host}, which is {}, available", from.word())
        }
    }
}

fn relaxed(part: Part) -> &'static str {
    match part {
        Part::GpusNearCores => "take GPUs that are not near the cores",
        Part::GpusTogether => "take GPUs that are not near each other",
        Part::DevicesNear => "take NIC functions and accelerators on any NUMA node",
        Part::CoreClass => "take cores of any class",
        Part::GpuKind => "take GPUs of any kind",
        Part::Numa => "take any NUMA nodes",
        Part::Cores => "share cores with others",
        Part::Hugepages => "do without huge pages",
        Part::CpuFeatures => "do without CPU features",
        Part::Heat => "do not count the heat",
        Part::Devices => "do without NIC functions and accelerators",
        Part::Gpus => "do without GPUs",
        Part::Architecture => "take any architecture",
        Part::Everything => "ask for no parts of the host at all",
    }
}

fn place(level: &Level, domain: Option<&Name>) -> String {
    match domain {
        Some(domain) => format!("{} {domain}", level.name()),
        None => format!("the host's missing {}", level.name()),
    }
}

fn subject(subject: &Subject) -> String {
    match subject {
        Subject::Vm(id) => format!("VM {id}"),
        Subject::Group(group) => format!("group {group}"),
        Subject::Hosts(hosts) => format!("hosts {}", list(hosts)),
    }
}

fn selector(selector: &Selector) -> String {
    let key = &selector.key;
    match &selector.op {
        SelectorOp::In(values) => format!("{key} in {}", list(values)),
        SelectorOp::NotIn(values) => format!("{key} not in {}", list(values)),
        SelectorOp::Exists => format!("{key} exists"),
        SelectorOp::Missing => format!("{key} missing"),
    }
}

fn taint(taint: &Taint) -> String {
    match &taint.value {
        Some(value) => format!("{}={value}:{}", taint.key, taint.effect.word()),
        None => format!("{}:{}", taint.key, taint.effect.word()),
    }
}

fn list(names: &[Name]) -> String {
    names.iter().map(Name::as_str).collect::<Vec<_>>().join(", ")
}
