//! How single facts are read: what a host has room for, what a VM takes there, whether a
//! selector matches, whether a taint is tolerated.
//!
//! `cluster` answers some of these too, and the solver asks it. They are read again here from
//! the text, because a slip in a shared answer would pass both opinions unseen.

use cluster::{
    Affinity, AffinityKind, Amounts, CpuUnit, Dim, Host, HostSet, Labels, Level, MAX_AMOUNT, Name,
    Selector, SelectorOp, Strength, Subject, Taint, TaintEffect, Toleration, TolerationOp, Vm,
    VmSet,
};

/// What `vm` takes on `host`: its demand, with normalised CPU turned into cores of this host.
///
/// Whoever is to be checked must work it out for himself; this is for tests and tools.
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

/// Capacity less what is kept back: what can be guaranteed in all.
pub(crate) fn physical(host: &Host, dim: Dim) -> u64 {
    let (capacity, kept_back) = (host.capacity.get(dim), host.reserved.get(dim));
    if kept_back >= capacity { 0 } else { (capacity - kept_back).min(MAX_AMOUNT) }
}

/// How much shared demand a thread of the host carries, in permille of a thread.
pub(crate) fn cpu_overcommit_permille(host: &Host) -> u64 {
    match host.overcommit_permille.get(Dim::CPU_MILLIS) {
        0 => 1000,
        permille => permille,
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

/// Whether a VM meets every condition of a set.
pub(crate) fn vm_in(set: &VmSet, vm: &Vm) -> bool {
    let VmSet { tenant, group, labels } = set;
    if tenant.as_ref().is_some_and(|tenant| *tenant != vm.key.tenant) {
        return false;
    }
    if let Some(group) = group
        && !groups(vm).any(|own| own == group)
    {
        return false;
    }
    !labels.iter().any(|selector| !matches(selector, &vm.labels))
}

/// Whether a host of this pool, with these labels and in these domains, is in a set.
pub(crate) fn host_in(
    set: &HostSet,
    own_pool: Option<&Name>,
    own_labels: &Labels,
    domain: impl Fn(&Level) -> Option<Name>,
) -> bool {
    let HostSet { pool, within, labels } = set;
    if pool.is_some() && pool.as_ref() != own_pool {
        return false;
    }
    for within in within {
        match domain(&within.level) {
            Some(domain) if within.names.contains(&domain) => {}
            _ => return false,
        }
    }
    !labels.iter().any(|selector| !matches(selector, own_labels))
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

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::{Spread, VmKey};

    fn name(text: &str) -> Name {
        Name::new(text).expect("a valid name")
    }

    fn vm(demand: Amounts) -> Vm {
        Vm::new(VmKey::in_default_tenant(name("vm")), demand)
    }

    #[test]
    fn normalised_cpu_is_divided_by_the_benchmark_factor_and_rounded_up() {
        let check = |cpu_millis, benchmark_permille, expect| {
            let mut host = Host::new(name("h"), Amounts::zero());
            host.benchmark_permille = benchmark_permille;
            let mut vm = vm(Amounts::cpu_memory(cpu_millis, 7));
            vm.cpu_unit = CpuUnit::Normalised;
            assert_eq!(demand_on(&host, &vm), Amounts::cpu_memory(expect, 7));
        };
        check(1_000, 0, 1_000);
        check(1_000, 1_500, 667);
        check(1_000, 750, 1_334);
        check(1, 4_000_000, 1);
        check(0, 500, 0);
        check(u64::MAX, 1, u64::MAX);
    }

    #[test]
    fn allocatable_rounds_down_and_stays_within_bounds() {
        let check = |capacity, reserved, permille, expect| {
            let mut host = Host::new(name("h"), Amounts::cpu_memory(capacity, 0));
            host.reserved = Amounts::cpu_memory(reserved, 0);
            host.overcommit_permille = Amounts::cpu_memory(permille, 0);
            assert_eq!(allocatable(&host, Dim::CPU_MILLIS), expect);
            assert_eq!(host.allocatable(Dim::CPU_MILLIS), expect, "cluster reads it otherwise");
        };
        check(10, 3, 0, 7);
        check(10, 3, 1_500, 10);
        check(10, 10, 1_500, 0);
        check(10, 11, 1_500, 0);
        check(MAX_AMOUNT, 0, 2_000, MAX_AMOUNT);
    }

    #[test]
    fn selectors_and_taints_are_read_as_the_nouns_read_them() {
        let values = [None, Some(name("x")), Some(name("y"))];
        let list = || vec![name("x")];
        let ops = [
            SelectorOp::In(list()),
            SelectorOp::NotIn(list()),
            SelectorOp::Exists,
            SelectorOp::Missing,
        ];
        for value in &values {
            let labels = value.iter().map(|value| (name("k"), value.clone())).collect();
            for op in &ops {
                let selector = Selector { key: name("k"), op: op.clone() };
                assert_eq!(matches(&selector, &labels), selector.matches(&labels), "{selector:?}");
            }
        }
        let effects =
            [TaintEffect::NoSchedule, TaintEffect::NoExecute, TaintEffect::PreferNoSchedule];
        let equal = values.clone().map(TolerationOp::Equal);
        for op in equal.into_iter().chain([TolerationOp::Exists]) {
            for key in [None, Some(name("k")), Some(name("other"))] {
                for effect in [None, Some(TaintEffect::NoSchedule), Some(TaintEffect::NoExecute)] {
                    let toleration = Toleration { key: key.clone(), op: op.clone(), effect };
                    for taint in taints(&values, &effects) {
                        let soft = taint.effect == TaintEffect::PreferNoSchedule;
                        let expect = soft || toleration.tolerates(&taint);
                        let found = lets_through(&taint, std::slice::from_ref(&toleration));
                        assert_eq!(found, expect, "{toleration:?} {taint:?}");
                    }
                }
            }
        }
    }

    fn taints(values: &[Option<Name>], effects: &[TaintEffect]) -> Vec<Taint> {
        let taint =
            |value: &Option<Name>, effect| Taint { key: name("k"), value: value.clone(), effect };
        let of_value = |value| effects.iter().map(move |effect| taint(value, *effect));
        values.iter().flat_map(of_value).collect()
    }

    #[test]
    fn a_vm_is_a_member_once_of_each_group_that_it_lists_or_spreads_over() {
        let mut vm = vm(Amounts::zero());
        vm.groups = ["a", "b", "a"].map(name).to_vec();
        vm.spreads = ["b", "c", "c"]
            .map(|group| Spread {
                group: name(group),
                level: Level::Zone,
                max_skew: 1,
                strength: Strength::Preferred(1),
            })
            .to_vec();
        let found: Vec<&str> = groups(&vm).map(Name::as_str).collect();
        assert_eq!(found, ["a", "b", "c"]);
    }
}
