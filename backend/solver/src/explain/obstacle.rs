//! Everything that keeps one VM off one host, each with the deficit in its own unit.
//!
//! Placing stops at the first rule that a host fails; here every rule is looked at, in the same
//! order and on the same tables.

use super::change::Change;
use crate::bits::{Bits, Mask};
use crate::constraints;
use crate::constraints::affinity::Near;
use crate::constraints::installed::Tables;
use crate::policies::removers;
use crate::problem::Problem;
use crate::request::Request;
use crate::topology::Unbound;
use cluster::{
    Affinity, AffinityKind, Dim, HostIx, HostState, Level, Name, Reason, Rejections, Selector,
    Spread, Strength, Subject, Taint, TaintEffect, Vm,
};

/// One rule that a host fails for a VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    HostState(HostState),
    Pool {
        wanted: Name,
        found: Option<Name>,
    },
    Selector {
        wanted: Selector,
        found: Option<Name>,
    },
    Taint(Taint),
    Datastore(Name),
    ExcludedHost,
    HostAffinity {
        rule: Affinity,
        domain: Option<Name>,
    },
    /// The domain holds none of the VMs to be together with.
    Affinity {
        rule: Affinity,
        domain: Option<Name>,
    },
    /// The domain holds `members` of those to be apart from.
    AntiAffinity {
        rule: Affinity,
        domain: Name,
        members: u32,
    },
    /// The domain holds `by` VMs that keep away a subject to which the VM belongs.
    Repelled {
        subject: Subject,
        level: Level,
        domain: Name,
        by: u32,
    },
    /// With the VM the skew would be `skew`; without a domain there is none to speak of.
    Spread {
        rule: Spread,
        domain: Option<Name>,
        members: u32,
        fewest: u32,
        skew: u32,
    },
    Policy {
        policy: String,
        rule: String,
        reason: String,
    },
    /// An installed constraint, or those over one fabric, leave the host out.
    Constraint {
        name: Name,
        reason: Reason,
    },
    /// `need` and `free` are in the host's own units: normalised CPU is turned into its cores.
    Capacity {
        dim: Dim,
        need: u64,
        free: u64,
        allocatable: u64,
    },
    /// The host cannot give the VM the parts that it asks for; `missing` is the first of them.
    Parts {
        reason: Reason,
        missing: Box<Unbound>,
    },
}

impl Obstacle {
    /// The reason that it is counted under.
    pub fn reason(&self) -> Reason {
        match self {
            Obstacle::HostState(_) => Reason::HostState,
            Obstacle::Pool { .. } => Reason::Pool,
            Obstacle::Selector { .. } => Reason::Selector,
            Obstacle::Taint(_) => Reason::Taint,
            Obstacle::Datastore(_) => Reason::Datastore,
            Obstacle::ExcludedHost => Reason::ExcludedHost,
            Obstacle::HostAffinity { .. } => Reason::HostAffinity,
            Obstacle::Affinity { .. } => Reason::Affinity,
            Obstacle::AntiAffinity { .. } | Obstacle::Repelled { .. } => Reason::AntiAffinity,
            Obstacle::Spread { .. } => Reason::Spread,
            Obstacle::Policy { .. } => Reason::Policy,
            Obstacle::Capacity { dim, .. } => Reason::Capacity(*dim),
            Obstacle::Constraint { reason, .. } | Obstacle::Parts { reason, .. } => *reason,
        }
    }
}

/// A VM's rules looked up once, ready to be held against each host.
#[derive(Debug)]
pub(super) struct Case<'v> {
    vm: &'v Vm,
    request: Request,
    /// Members of the emptiest eligible domain of each spread rule.
    fewest: Vec<Option<u32>>,
    /// Hosts that no policy removes.
    allowed: Mask,
    /// Constraints that leave hosts out, and the hosts that each allows.
    constraints: Vec<(Name, Reason, Mask)>,
}

impl<'v> Case<'v> {
    /// `waived` changes outside the VM are taken as made.
    pub(super) fn new(problem: &mut Problem, vm: &'v Vm, waived: &[Change]) -> Self {
        let mut request = Request::compile(problem, vm, false);
        let names = waived.iter().filter_map(|change| match change {
            Change::WaiveConstraint { name } => Some(name),
            _ => None,
        });
        problem.installed.waive(&names.collect::<Vec<_>>(), &mut request.classes);
        let mut eligible = Mask::default();
        eligible.reset_to(problem.hosts.present());
        let mut union = Bits::default();
        let (mask, counts) = (&mut eligible, &mut Rejections::default());
        constraints::eligibility::narrow(problem, &request, mask, &mut union, counts);
        let emptiest = request.spreads.iter().map(|spread| spread.emptiest(problem, &eligible));
        let fewest = emptiest.collect();
        let mut allowed = Mask::default();
        allowed.reset_to(problem.hosts.present());
        let Problem { policies, hosts, room, installed, domains, .. } = problem;
        policies.narrow(&mut allowed, hosts, room);
        let tables = Tables { hosts, domains, room };
        let constraints = installed.each(&request.classes, &request.asks, &tables);
        Self { vm, request, fewest, allowed, constraints }
    }

    /// Every rule that the host fails, in the order in which rules are tried, but for those that
    /// `waived` changes outside the VM take away.
    ///
    /// Spread compares with the eligible domains and the host's own, as if the host were eligible.
    pub(super) fn obstacles(
        &self,
        problem: &Problem,
        ix: HostIx,
        waived: &[Change],
    ) -> Vec<Obstacle> {
        let Some(host) = problem.hosts.get(ix) else {
            return vec![Obstacle::HostState(HostState::Down)];
        };
        let mut found = Vec::new();
        self.host_alone(problem, ix, &mut found);
        self.constraints(ix, true, &mut found);
        self.neighbours(problem, ix, &mut found);
        self.spreads(problem, ix, &mut found);
        self.constraints(ix, false, &mut found);
        self.policies(problem, ix, waived, &mut found);
        self.room(problem, ix, &mut found);
        self.parts(problem, ix, &mut found);
        if !waived.is_empty() {
            found.retain(|it| !waived.iter().any(|change| change.waives(it, &host.id)));
        }
        found
    }

    /// Fences, which come before rules about other VMs, or all other constraints.
    fn constraints(&self, ix: HostIx, fences: bool, found: &mut Vec<Obstacle>) {
        let these = self.constraints.iter().filter(|it| (it.1 == Reason::Fence) == fences);
        for (name, reason, allowed) in these {
            if !allowed.contains(ix) {
                found.push(Obstacle::Constraint { name: name.clone(), reason: *reason });
            }
        }
    }

    fn parts(&self, problem: &Problem, ix: HostIx, found: &mut Vec<Obstacle>) {
        if let Some(reason) = problem.inside.lacking(self.vm, ix)
            && let Some(Err(missing)) = problem.bind(self.vm, ix)
        {
            found.push(Obstacle::Parts { reason, missing });
        }
    }

    fn policies(
        &self,
        problem: &Problem,
        ix: HostIx,
        waived: &[Change],
        found: &mut Vec<Obstacle>,
    ) {
        let reopened = waived.iter().any(|change| matches!(change, Change::Reopen { .. }));
        if self.allowed.contains(ix) && !reopened {
            return;
        }
        for rule in removers(problem, self.vm, ix, reopened) {
            let Some((policy, rule)) = problem.policies.set().rule(rule) else { continue };
            found.push(Obstacle::Policy {
                policy: policy.id().into(),
                rule: rule.id.to_string(),
                reason: rule.filter_reason().unwrap_or_default().into(),
            });
        }
    }

    fn host_alone(&self, problem: &Problem, ix: HostIx, found: &mut Vec<Obstacle>) {
        let Some(host) = problem.hosts.get(ix) else { return };
        let vm = self.vm;
        if host.state != HostState::Available {
            found.push(Obstacle::HostState(host.state));
        }
        if let Some(wanted) = vm.pool.as_ref().filter(|pool| host.pool.as_ref() != Some(pool)) {
            found.push(Obstacle::Pool { wanted: wanted.clone(), found: host.pool.clone() });
        }
        for wanted in vm.selectors.iter().filter(|selector| !selector.matches(&host.labels)) {
            let value = host.labels.get(wanted.key.as_str()).cloned();
            found.push(Obstacle::Selector { wanted: wanted.clone(), found: value });
        }
        for taint in &host.taints {
            let soft = taint.effect == TaintEffect::PreferNoSchedule;
            if !soft && !vm.tolerations.iter().any(|toleration| toleration.tolerates(taint)) {
                found.push(Obstacle::Taint(taint.clone()));
            }
        }
        for store in vm.datastores.iter().filter(|store| !host.datastores.contains(store)) {
            found.push(Obstacle::Datastore(store.clone()));
        }
        if vm.excluded_hosts.contains(&host.id) {
            found.push(Obstacle::ExcludedHost);
        }
        for (rule, looked_up) in self.required(true) {
            if !looked_up.holds(problem, ix) {
                let domain = host.domain(&rule.level).cloned();
                found.push(Obstacle::HostAffinity { rule: rule.clone(), domain });
            }
        }
    }

    fn neighbours(&self, problem: &Problem, ix: HostIx, found: &mut Vec<Obstacle>) {
        let Some(host) = problem.hosts.get(ix) else { return };
        let broken = |kind| {
            self.required(false)
                .filter(move |(rule, it)| rule.kind == kind && !it.holds(problem, ix))
        };
        for (rule, _) in broken(AffinityKind::Together) {
            let domain = host.domain(&rule.level).cloned();
            found.push(Obstacle::Affinity { rule: rule.clone(), domain });
        }
        for (rule, looked_up) in broken(AffinityKind::Apart) {
            let Some(domain) = host.domain(&rule.level).cloned() else { continue };
            let row = problem.domains.of(looked_up.level, ix).unwrap_or(u32::MAX);
            let members = match &looked_up.near {
                Near::Group(group) => problem.groups.members(*group, looked_up.level).get(row),
                Near::Domains(_) => 1,
            };
            found.push(Obstacle::AntiAffinity { rule: rule.clone(), domain, members });
        }
        let own = &self.request.own_groups;
        for &group in own.iter().chain(&self.request.own_name) {
            for repellers in problem.groups.repellers(group) {
                let row = problem.domains.of(repellers.level, ix);
                let by = row.map_or(0, |row| repellers.by_domain.get(row));
                let level = problem.domains.named(repellers.level).clone();
                let Some(domain) = host.domain(&level).cloned().filter(|_| by > 0) else {
                    continue;
                };
                let subject = problem.groups.subject(group);
                found.push(Obstacle::Repelled { subject, level, domain, by });
            }
        }
    }

    fn spreads(&self, problem: &Problem, ix: HostIx, found: &mut Vec<Obstacle>) {
        let Some(host) = problem.hosts.get(ix) else { return };
        let rules = self.vm.spreads.iter().zip(&self.request.spreads).zip(&self.fewest);
        for ((rule, looked_up), fewest) in rules {
            if rule.strength != Strength::Required {
                continue;
            }
            let domain = host.domain(&rule.level).cloned();
            let members = looked_up.members_near(problem, ix);
            let fewest = fewest.map_or(members, |fewest| fewest.min(members));
            let skew = (members - fewest).saturating_add(1);
            if domain.is_none() || skew > rule.max_skew {
                let rule = rule.clone();
                found.push(Obstacle::Spread { rule, domain, members, fewest, skew });
            }
        }
    }

    fn room(&self, problem: &Problem, ix: HostIx, found: &mut Vec<Obstacle>) {
        for ask in &self.request.asks {
            let need = problem.room.taken(ask, ix);
            let free = problem.room.free_for(ask, ix);
            if need > free {
                let allocatable = problem.room.allocatable(ix, ask.dim);
                found.push(Obstacle::Capacity { dim: ask.dim, need, free, allocatable });
            }
        }
    }

    /// The most of a dimension that the VM could ask for and still fit, in the VM's own units.
    pub(super) fn most(&self, problem: &Problem, ix: HostIx, dim: Dim) -> u64 {
        let ask = self.request.asks.iter().find(|ask| ask.dim == dim);
        ask.map_or(0, |ask| problem.room.most(ask, ix))
    }

    /// Required rules about hosts, or about VMs, each beside what was looked up for it.
    fn required(
        &self,
        about_hosts: bool,
    ) -> impl Iterator<Item = (&Affinity, &constraints::affinity::Rule)> {
        let rules = self.vm.affinities.iter().zip(&self.request.rules);
        rules.filter(move |(rule, looked_up)| {
            rule.strength == Strength::Required && looked_up.about_hosts == about_hosts
        })
    }
}
