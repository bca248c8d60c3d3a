//! Full re-derivation: is this state right, is this decision right, is this batch right.
//!
//! The functions trust nothing but the snapshot that they are given.

use crate::inside;
use crate::reading::{demand_on, physical};
use crate::world::{Case, World};
use crate::{Checked, Report, Violation, ViolationKind, Violations};
use cluster::{
    Amounts, CpuUnit, Decision, Dim, Host, INSIDE_REASONS, Level, Name, Placed, Qos, Reason,
    Revision, Snapshot, Strategy, Verdict, Vm, VmKey,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// Whether the state is one that placements can have led to.
///
/// Violations are what can never be; rules that bind only while a VM is being placed, and that
/// later changes of hosts or of other VMs may leave broken, are drift. Adopted VMs came without
/// asking, so whatever they or their neighbours break because of them is drift too.
pub fn snapshot(snapshot: &Snapshot) -> Report {
    let world = World::new(snapshot);
    let asked = Snapshot {
        placed: snapshot.placed.iter().filter(|placed| !placed.adopted).cloned().collect(),
        ..snapshot.clone()
    };
    let asked = World::new(&asked);
    let mut report = Report { checked: looked_at(snapshot, 0), ..Report::default() };

    let mut ids = BTreeSet::new();
    for host in &snapshot.hosts {
        if !ids.insert(&host.id) {
            report.violations.push(about_host(&host.id, ViolationKind::DuplicateHost));
        }
    }
    let mut keys: BTreeMap<&VmKey, &Name> = BTreeMap::new();
    for placed in &snapshot.placed {
        if let Some(other) = keys.insert(&placed.vm.key, &placed.host) {
            let kind = ViolationKind::DuplicateVm { other: other.clone() };
            report.violations.push(about(&placed.vm.key, &placed.host, kind));
            continue;
        }
        standing(&world, &asked, placed, &mut report);
    }
    overcommitted(&world, snapshot, &mut report.violations);
    inside::standing(snapshot, &mut report);
    report
}

/// Everything that keeps `vm` off `host` on this snapshot; empty when it may be placed there.
pub fn violations(snapshot: &Snapshot, vm: &Vm, host: &Name) -> Violations {
    let world = World::new(snapshot);
    on_host(&world, &Case::new(&world, vm), vm, host)
}

/// Whether the decision is right on this snapshot: the host can take the VM, or really none can,
/// and every count and sum that the decision states is true.
pub fn placement(snapshot: &Snapshot, vm: &Vm, decision: &Decision) -> Report {
    let world = World::new(snapshot);
    let violations = decided(&world, vm, decision, snapshot.revision..=snapshot.revision);
    Report { violations, drift: Vec::new(), checked: looked_at(snapshot, 1) }
}

/// Whether each decision is right on the snapshot and the decisions taken before it.
///
/// `decisions[i]` answers `vms[i]`; `order` lists those positions in the order in which they
/// were decided, which is not the order of asking for strategies that sort the batch.
pub fn batch(snapshot: &Snapshot, vms: &[Vm], decisions: &[Decision], order: &[usize]) -> Report {
    let mut world = World::new(snapshot);
    let checked = looked_at(snapshot, decisions.len());
    let mut report = Report { checked, ..Report::default() };
    let mut seen = BTreeSet::new();
    for &position in order {
        let (Some(vm), Some(decision)) = (vms.get(position), decisions.get(position)) else {
            continue;
        };
        if !seen.insert(position) {
            report.violations.push(about_vm(&vm.key, ViolationKind::Unasked));
            continue;
        }
        // At most one command for each decision before this one has been applied since.
        let latest = Revision(snapshot.revision.0.saturating_add(seen.len() as u64 - 1));
        let found = decided(&world, vm, decision, snapshot.revision..=latest);
        report.violations.extend(found);
        if let Some(row) = decision.host().and_then(|host| world.row(host)) {
            let taken = demand_on(world.hosts[row], vm);
            world.place(vm, row, &taken, decision.bindings().map(|bindings| &**bindings));
        }
    }
    let undecided = (0..vms.len()).filter(|position| !seen.contains(position));
    for position in undecided {
        report.violations.push(about_vm(&vms[position].key, ViolationKind::Undecided));
    }
    for decision in decisions.iter().skip(vms.len()) {
        report.violations.push(about_vm(&decision.vm, ViolationKind::Unasked));
    }
    report
}

/// Checks one placed VM where it stands: in the whole world, and in the one of those that asked.
fn standing(world: &World<'_>, asked: &World<'_>, placed: &Placed, report: &mut Report) {
    let key = &placed.vm.key;
    let Some(row) = world.row(&placed.host) else {
        report.violations.push(about(key, &placed.host, ViolationKind::UnknownHost));
        return;
    };
    for kind in wrong_committed(world.hosts[row], &placed.vm, &placed.committed) {
        let cpu = matches!(kind, ViolationKind::WrongCommitted { dimension: Dim::CPU_MILLIS, .. });
        // The benchmark factor may have been corrected since; what was committed stays.
        let drift = cpu && placed.vm.cpu_unit == CpuUnit::Normalised;
        let list = if drift { &mut report.drift } else { &mut report.violations };
        list.push(about(key, &placed.host, kind));
    }
    let mut violations: Vec<ViolationKind> = match placed.adopted {
        true => Vec::new(),
        false => Case::new(asked, &placed.vm).rules(row),
    };
    violations.retain(binds_always);
    let broken = Case::new(world, &placed.vm).rules(row);
    let drift =
        broken.into_iter().filter(|kind| !violations.iter().any(|known| same_rule(known, kind)));
    report.drift.extend(drift.map(|kind| about(key, &placed.host, kind)));
    report.violations.extend(violations.into_iter().map(|kind| about(key, &placed.host, kind)));
}

/// Rules that no order of placements and removals can leave broken. Racks, zones and labels of a
/// host may be corrected while VMs run on it, so those levels bind at placement only.
fn binds_always(kind: &ViolationKind) -> bool {
    use ViolationKind as K;
    match kind {
        K::ExcludedHost => true,
        K::AntiAffinity { level, .. } | K::Repelled { level, .. } => *level == Level::Host,
        _ => false,
    }
}

/// Whether two findings are about the same rule, however many neighbours each one counted.
fn same_rule(one: &ViolationKind, other: &ViolationKind) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other) && binds_always(other)
}

/// Hosts that promise more than they may, or guarantee more than they have, apart from what adopted VMs explain.
fn overcommitted(world: &World<'_>, snapshot: &Snapshot, found: &mut Violations) {
    let mut flagged: BTreeMap<&Name, Amounts> = BTreeMap::new();
    let mut exempt: BTreeMap<&Name, Amounts> = BTreeMap::new();
    for placed in snapshot.placed.iter().filter(|placed| placed.over_capacity) {
        let sum = flagged.entry(&placed.host).or_default();
        for (dim, amount) in placed.committed.iter() {
            sum.set(dim, sum.get(dim).saturating_add(amount));
            if placed.vm.qos == Qos::Guaranteed {
                let sum = exempt.entry(&placed.host).or_default();
                sum.set(dim, sum.get(dim).saturating_add(amount));
            }
        }
    }
    for (row, host) in world.hosts.iter().enumerate() {
        for (dimension, committed) in world.committed(row).iter() {
            let allocatable = world.allocatable(row, dimension);
            let flagged = flagged.get(&host.id).map_or(0, |sum| sum.get(dimension));
            if committed.saturating_sub(flagged) > allocatable {
                let kind =
                    ViolationKind::Overcommitted { dimension, committed, flagged, allocatable };
                found.push(about_host(&host.id, kind));
            }
        }
        for (dimension, guaranteed) in world.guaranteed(row).iter() {
            let physical = physical(host, dimension);
            let flagged = exempt.get(&host.id).map_or(0, |sum| sum.get(dimension));
            if guaranteed.saturating_sub(flagged) > physical {
                let kind =
                    ViolationKind::Overguaranteed { dimension, guaranteed, flagged, physical };
                found.push(about_host(&host.id, kind));
            }
        }
    }
}

fn decided(
    world: &World<'_>,
    vm: &Vm,
    decision: &Decision,
    revisions: RangeInclusive<Revision>,
) -> Violations {
    let mut found = Vec::new();
    if decision.vm != vm.key {
        let kind = ViolationKind::WrongVm { decided: decision.vm.clone() };
        found.push(about_vm(&vm.key, kind));
    }
    if !revisions.contains(&decision.based_on) {
        let (decided, expected) = (decision.based_on, *revisions.start());
        found.push(about_vm(&vm.key, ViolationKind::WrongRevision { decided, expected }));
    }
    let case = Case::new(world, vm);
    if let Verdict::Placed { host, incarnation, score, breakdown, bindings } = &decision.verdict {
        found.extend(on_host(world, &case, vm, host));
        if let Some(row) = world.row(host) {
            found.extend(inside::decided(world, row, vm, bindings.as_deref()));
        }
        if let Some(row) = world.row(host)
            && world.hosts[row].incarnation != *incarnation
        {
            let (decided, actual) = (*incarnation, world.hosts[row].incarnation);
            let kind = ViolationKind::WrongIncarnation { decided, found: actual };
            found.push(about(&vm.key, host, kind));
        }
        let parts = breakdown.terms.iter().chain([&breakdown.policy]);
        let sum: i128 = parts.map(|part| i128::from(*part)).sum();
        if sum != i128::from(*score) {
            let sum = sum.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
            let kind = ViolationKind::ScoreSum { score: *score, sum };
            found.push(about(&vm.key, host, kind));
        }
    }
    accounts(world, &case, vm, decision, &mut found);
    alternatives(world, &case, vm, decision, &mut found);
    found
}

/// What keeps the VM off the host that was named.
fn on_host(world: &World<'_>, case: &Case<'_>, vm: &Vm, host: &Name) -> Violations {
    let Some(row) = world.row(host) else {
        return vec![about(&vm.key, host, ViolationKind::UnknownHost)];
    };
    if let Some(on) = world.host_of(&vm.key) {
        let kind = ViolationKind::AlreadyPlaced { on: on.id.clone() };
        return vec![about(&vm.key, host, kind)];
    }
    let kinds = case.violations(row);
    kinds.into_iter().map(|kind| about(&vm.key, host, kind)).collect()
}

/// Compares the stated number of hosts left out for each reason with a count.
fn accounts(
    world: &World<'_>,
    case: &Case<'_>,
    vm: &Vm,
    decision: &Decision,
    found: &mut Violations,
) {
    let hosts = world.hosts.len();
    if decision.hosts_considered as usize != hosts {
        let stated = decision.hosts_considered;
        let kind = ViolationKind::HostsConsidered { stated, hosts };
        found.push(about_vm(&vm.key, kind));
    }
    let mut counts: BTreeMap<Reason, (u64, u64)> = BTreeMap::new();
    for &(reason, stated) in &decision.rejections.0 {
        counts.entry(reason).or_default().0 += u64::from(stated);
    }
    // A snapshot does not hold the policies of its time, so what they removed cannot be derived.
    // It can be bounded: they are tried before capacity and parts only, so each host that they
    // removed is one that lacks room or fits.
    let by_policy = counts.remove(&Reason::Policy).map_or(0, |(stated, _)| stated);
    let mut unexplained = by_policy;
    for (row, host) in world.hosts.iter().enumerate() {
        match case.first_reason(row) {
            Some(reason) => counts.entry(reason).or_default().1 += 1,
            None if decision.verdict == Verdict::Rejected => match unexplained.checked_sub(1) {
                Some(left) => unexplained = left,
                None => found.push(about(&vm.key, &host.id, ViolationKind::HostFits)),
            },
            None => {}
        }
    }
    for (reason, (stated, counted)) in counts {
        let beyond = counted.saturating_sub(stated);
        if after_policies(reason) && stated < counted && beyond <= unexplained {
            unexplained -= beyond;
        } else if stated != counted {
            let kind = ViolationKind::RejectionCount { reason, stated, counted };
            found.push(about_vm(&vm.key, kind));
        }
    }
    if unexplained > 0 && decision.verdict == Verdict::Rejected {
        let (stated, counted) = (by_policy, by_policy - unexplained);
        let kind = ViolationKind::RejectionCount { reason: Reason::Policy, stated, counted };
        found.push(about_vm(&vm.key, kind));
    }
}

/// Whether the reason is looked for only where no policy has removed the host.
fn after_policies(reason: Reason) -> bool {
    matches!(reason, Reason::Capacity(_)) || INSIDE_REASONS.contains(&reason)
}

/// Alternatives are other hosts that would have done, best first where the score decides.
fn alternatives(
    world: &World<'_>,
    case: &Case<'_>,
    vm: &Vm,
    decision: &Decision,
    found: &mut Violations,
) {
    use Strategy as S;
    let ranked = matches!(decision.strategy, S::Balanced | S::Spread | S::Consolidate);
    let mut listed: BTreeSet<&Name> = decision.host().into_iter().collect();
    let mut before = match &decision.verdict {
        Verdict::Placed { score, .. } => *score,
        Verdict::Rejected => i64::MAX,
    };
    for alternative in &decision.alternatives {
        let host = &alternative.host;
        let mut report = |kind| found.push(about(&vm.key, host, kind));
        if !listed.insert(host) {
            report(ViolationKind::AlternativeRepeated);
        }
        match world.row(host) {
            None => report(ViolationKind::AlternativeUnknown),
            Some(row) => {
                if let Some(reason) = case.first_reason(row) {
                    report(ViolationKind::AlternativeUnfit { reason });
                }
            }
        }
        if ranked && alternative.score > before {
            let score = alternative.score;
            report(ViolationKind::AlternativeOutranks { score, before });
        }
        before = alternative.score;
    }
}

/// The dimensions in which the recorded amount is not the VM's demand on this host.
fn wrong_committed(host: &Host, vm: &Vm, committed: &Amounts) -> Vec<ViolationKind> {
    let demand = demand_on(host, vm);
    let width = demand.width().max(committed.width());
    let dimensions = (0..width).map(|row| Dim(row as u8));
    dimensions
        .map(|dimension| (dimension, committed.get(dimension), demand.get(dimension)))
        .filter(|(_, stated, derived)| stated != derived)
        .map(|(dimension, stated, derived)| ViolationKind::WrongCommitted {
            dimension,
            stated,
            derived,
        })
        .collect()
}

fn looked_at(snapshot: &Snapshot, decisions: usize) -> Checked {
    Checked { hosts: snapshot.hosts.len(), vms: snapshot.placed.len(), decisions, steps: 0 }
}

pub(crate) fn about(vm: &VmKey, host: &Name, kind: ViolationKind) -> Violation {
    Violation { vm: Some(vm.clone()), host: Some(host.clone()), kind }
}

fn about_vm(vm: &VmKey, kind: ViolationKind) -> Violation {
    Violation { vm: Some(vm.clone()), host: None, kind }
}

fn about_host(host: &Name, kind: ViolationKind) -> Violation {
    Violation { vm: None, host: Some(host.clone()), kind }
}
