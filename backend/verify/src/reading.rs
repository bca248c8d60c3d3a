//! How single facts are read: what a host has room for, what a VM takes there, whether a
//! selector matches, whether a taint is tolerated.
//!
//! `cluster` answers some of these too, and the solver asks it. They are read again here from
//! the text, because a slip in a shared answer would pass both opinions unseen.

use cluster::{
    Affinity, AffinityKind, Amounts, CpuUnit, Dim, Host, Labels, Level, MAX_AMOUNT, Name, Selector,
    SelectorOp, Strength, Subject, Taint, TaintEffect, Toleration, TolerationOp, Vm,
};

/// What `vm` takes on `host`: its demand, with normalised CPU turned into cores of this host.
pub fn demand_on(host: &Host, vm: &Vm) -> Amounts {
    demand(vm, speed_permille(host))
}

pub(crate) fn demand(vm: &Vm, speed_permille: u64) -> Amounts {
    let mut taken = vm.demand.clone();
    if vm.cpu_unit == CpuUnit::Normalised {
        let reference = u128::from(taken.get(Dim::CPU_MILLIS)) * 1000;
        let cores = reference.div_ceil(u128::from(speed_permille));
        taken.set(Dim::CPU_MILLIS, u64::try_from(cores).unwrap_or(u64::MAX));
    }
    taken
}

pub(crate) fn speed_permille(host: &Host) -> u64 {
    match host.benchmark_permille {
        0 => 1000,
        permille => u64::from(permille),
    }
}

/// Capacity less what is kept back, times overcommit, rounded down.
pub(crate) fn allocatable(host: &Host, dim: Dim) -> u64 {
    let capacity = host.capacity.get(dim);
    let kept_back = host.reserved.get(dim);
    if kept_back >= capacity {
        return 0;
    }
    let permille = match host.overcommit_permille.get(dim) {
        0 => 1000,
        permille => u128::from(permille),
    };
    let promised = u128::from(capacity - kept_back) * permille / 1000;
    promised.min(u128::from(MAX_AMOUNT)) as u64
}

pub(crate) fn domain<'a>(host: &'a Host, level: &Level) -> Option<&'a Name> {
    match level {
        Level::Host => Some(&host.id),
        Level::Rack => host.location.rack.as_ref(),
        Level::PowerFeed => host.location.power_feed.as_ref(),
        Level::Zone => host.location.zone.as_ref(),
        Level::Region => host.location.region.as_ref(),
        Level::Label(key) => label(&host.labels, key),
    }
}

pub(crate) fn label<'a>(labels: &'a Labels, key: &Name) -> Option<&'a Name> {
    labels.iter().find(|(found, _)| *found == key).map(|(_, value)| value)
}

pub(crate) fn matches(selector: &Selector, labels: &Labels) -> bool {
    match (&selector.op, label(labels, &selector.key)) {
        (SelectorOp::In(values), Some(value)) => values.contains(value),
        (SelectorOp::In(_), None) => false,
        (SelectorOp::NotIn(values), Some(value)) => !values.contains(value),
        (SelectorOp::NotIn(_), None) => true,
        (SelectorOp::Exists, value) => value.is_some(),
        (SelectorOp::Missing, value) => value.is_none(),
    }
}

/// Whether the taint lets the VM through: it only discourages, or some toleration covers it.
pub(crate) fn lets_through(taint: &Taint, tolerations: &[Toleration]) -> bool {
    match taint.effect {
        TaintEffect::PreferNoSchedule => true,
        TaintEffect::NoSchedule | TaintEffect::NoExecute => {
            tolerations.iter().any(|toleration| covers(toleration, taint))
        }
    }
}

fn covers(toleration: &Toleration, taint: &Taint) -> bool {
    if toleration.key.as_ref().is_some_and(|key| *key != taint.key) {
        return false;
    }
    if toleration.effect.is_some_and(|effect| effect != taint.effect) {
        return false;
    }
    match &toleration.op {
        TolerationOp::Exists => true,
        TolerationOp::Equal(value) => *value == taint.value,
    }
}

/// The groups that the VM is a member of: listed, or named by one of its spreads. Each once.
pub(crate) fn groups(vm: &Vm) -> impl Iterator<Item = &Name> {
    let named = move |position: usize| match vm.groups.get(position) {
        Some(group) => group,
        None => &vm.spreads[position - vm.groups.len()].group,
    };
    let all = vm.groups.len() + vm.spreads.len();
    (0..all)
        .filter(move |&position| (0..position).all(|before| named(before) != named(position)))
        .map(named)
}

/// The VMs and groups that the VM must be apart from, and at which level. Each pair once.
pub(crate) fn apart_from(vm: &Vm) -> impl Iterator<Item = (&Subject, &Level)> {
    let rules = required(vm, AffinityKind::Apart);
    rules.enumerate().filter_map(|(position, rule)| {
        let same = |before: &Affinity| before.subject == rule.subject && before.level == rule.level;
        let repeated = required(vm, AffinityKind::Apart).take(position).any(same);
        (!repeated).then_some((&rule.subject, &rule.level))
    })
}

/// The required rules of this kind on VMs and groups, in the order they are written.
pub(crate) fn required(vm: &Vm, kind: AffinityKind) -> impl Iterator<Item = &Affinity> {
    let on_vms = |rule: &&Affinity| !matches!(rule.subject, Subject::Hosts(_));
    vm.affinities
        .iter()
        .filter(move |rule| rule.kind == kind && rule.strength == Strength::Required)
        .filter(on_vms)
}
