//! The question that the ledger is kept for: may this VM go to this host?

use super::Ledger;
use super::eligible::{Eligible, HostRules, passes};
use super::fleet::{Row, Signature, Spot, location_level};
use super::id::Id;
use super::installed::At;
use super::tally::{Place, Tally};
use crate::reading::{demand, groups, label, lets_through, matches, required};
use crate::{Violation, ViolationKind, Violations};
use cluster::{
    AffinityKind, Amounts, Dim, HostIx, HostState, Level, Name, Qos, Spread, Strength, Subject, Vm,
};
use rustc_hash::FxHashMap;

impl Ledger {
    /// Every rule that placing `vm` on `host` with `committed` would break; empty = accepted.
    ///
    /// A host that is not there or is another one, and a VM that is placed already, are
    /// reported alone: what the rules would say then has no meaning.
    pub fn check(&self, vm: &Vm, host: HostIx, host_id: &Name, committed: &Amounts) -> Violations {
        let mut found = Found { vm, host: host_id, violations: Vec::new() };
        let Some(row) = self.fleet.row(host) else {
            found.push(ViolationKind::UnknownHost);
            return found.violations;
        };
        if row.id != *host_id {
            found.push(ViolationKind::WrongHost { index: host, found: row.id.clone() });
            return found.violations;
        }
        let id = Id::of_vm(&vm.key.tenant, &vm.key.id);
        if let Some(entry) = self.placed.get(&id) {
            found.push(ViolationKind::AlreadyPlaced { on: self.fleet.name(entry.host) });
            return found.violations;
        }
        let demand = demand(vm, row.speed_permille);
        if demand != *committed {
            wrong_committed(&demand, committed, &mut found);
        }
        let rules = HostRules::new(self, vm);
        static_rules(vm, self.fleet.signature(row.signature), &mut found);
        rules.check(self, host, host_id, &mut found);
        self.neighbourhood(vm, id, host, &mut found);
        self.spreads(vm, host, &rules, &mut found);
        if !self.installed.rules.is_empty() {
            let at = At { ledger: self, ix: host, row };
            let broken = self.installed.rules.check(vm, &demand, &at);
            broken.into_iter().for_each(|kind| found.push(kind));
        }
        self.capacity(row, &demand, vm.qos, &mut found);
        found.violations
    }

    fn neighbourhood(&self, vm: &Vm, own: Id, host: HostIx, found: &mut Found<'_>) {
        let tenant = &vm.key.tenant;
        for rule in required(vm, AffinityKind::Together) {
            let spot = self.fleet.spot(host, &rule.level);
            let joined = spot.is_some_and(|spot| {
                self.members(tenant, &rule.subject, &rule.level, spot) > 0
                    || (belongs(vm, &rule.subject) && !self.exists(tenant, &rule.subject))
            });
            if !joined {
                let (subject, level) = (rule.subject.clone(), rule.level.clone());
                let domain = spot.map(|spot| self.fleet.spot_name(spot));
                found.push(ViolationKind::Affinity { subject, level, domain });
            }
        }
        for rule in required(vm, AffinityKind::Apart) {
            let Some(spot) = self.fleet.spot(host, &rule.level) else { continue };
            let members = self.members(tenant, &rule.subject, &rule.level, spot);
            if members > 0 {
                let (subject, level) = (rule.subject.clone(), rule.level.clone());
                let domain = self.fleet.spot_name(spot);
                found.push(ViolationKind::AntiAffinity { subject, level, domain, members });
            }
        }
        for group in groups(vm) {
            let id = Id::of_group(tenant, group);
            self.repelled(id, host, || Subject::Group(group.clone()), found);
        }
        self.repelled(own, host, || Subject::Vm(vm.key.id.clone()), found);
    }

    fn repelled(&self, id: Id, host: HostIx, subject: impl Fn() -> Subject, found: &mut Found<'_>) {
        let Some(neighbours) = self.subjects.get(&id) else { return };
        for (level, tally) in &neighbours.repellers {
            let Some(spot) = self.fleet.spot(host, level) else { continue };
            let by = self.count_at(tally, level, spot);
            if by > 0 {
                let (level, domain) = (level.clone(), self.fleet.spot_name(spot));
                found.push(ViolationKind::Repelled { subject: subject(), level, domain, by });
            }
        }
    }

    fn spreads(&self, vm: &Vm, host: HostIx, rules: &HostRules<'_>, found: &mut Found<'_>) {
        let required = |spread: &&Spread| spread.strength == Strength::Required;
        for spread in vm.spreads.iter().filter(required) {
            let spot = self.fleet.spot(host, &spread.level);
            let none = Tally::default();
            let id = Id::of_group(&vm.key.tenant, &spread.group);
            let tally = self.subjects.get(&id).map_or(&none, |neighbours| &neighbours.members);
            let members = spot.map_or(0, |spot| self.count_at(tally, &spread.level, spot));
            if spot.is_some() && members < spread.max_skew {
                continue;
            }
            let mut eligible = Eligible::new(self, vm, rules);
            let fewest = self.fewest(&spread.level, tally, members, &mut eligible);
            if spot.is_none() || members - fewest >= spread.max_skew {
                found.push(ViolationKind::Spread {
                    group: spread.group.clone(),
                    level: spread.level.clone(),
                    domain: spot.map(|spot| self.fleet.spot_name(spot)),
                    members,
                    fewest,
                    max_skew: spread.max_skew,
                });
            }
        }
    }

    /// The fewest VMs of the tally in any eligible domain, and at most `own`.
    fn fewest(&self, level: &Level, tally: &Tally, own: u32, eligible: &mut Eligible<'_>) -> u32 {
        let mut fewest = own;
        match level {
            Level::Host => {
                for (ix, row) in self.fleet.rows() {
                    let count = tally.at(Place::host(ix));
                    if count < fewest && eligible.host(ix, row) {
                        fewest = count;
                    }
                }
            }
            Level::Label(key) => {
                let mut counts: FxHashMap<&Name, u32> = FxHashMap::default();
                for (ix, count) in tally.hosts() {
                    if let Some(Spot::Label(value)) = self.fleet.spot(ix, level) {
                        *counts.entry(value).or_default() += count;
                    }
                }
                for (ix, signature) in self.fleet.signatures() {
                    let Some(value) = label(&signature.labels, key) else { continue };
                    let count = counts.get(value).copied().unwrap_or(0);
                    if count < fewest && eligible.some_host_of(ix) {
                        fewest = count;
                    }
                }
            }
            Level::Rack | Level::PowerFeed | Level::Zone | Level::Region => {
                let column = location_level(level).expect("hosts are located by these levels");
                for ix in self.fleet.domains(column) {
                    let count = tally.at(Place::domain(ix));
                    if count < fewest && eligible.domain(ix) {
                        fewest = count;
                    }
                }
            }
        }
        fewest
    }

    fn capacity(&self, row: &Row, demand: &Amounts, qos: Qos, found: &mut Found<'_>) {
        for (dimension, asked) in demand.iter() {
            let room = row.room(dimension);
            let declared = dimension.row() < self.fleet.dimensions();
            let allocatable = if declared { room.allocatable } else { 0 };
            let taken = room.committed.saturating_add(room.foreign);
            let mut free = allocatable.saturating_sub(taken);
            if qos == Qos::Guaranteed {
                free = free.min(room.physical.saturating_sub(room.guaranteed));
            }
            if asked > free {
                found.push(ViolationKind::Capacity { dimension, asked, free, allocatable });
            }
        }
    }

    /// How many members of `subject` are at `spot`.
    fn members(&self, tenant: &Name, subject: &Subject, level: &Level, spot: Spot<'_>) -> u32 {
        match subject {
            Subject::Group(group) => self
                .subjects
                .get(&Id::of_group(tenant, group))
                .map_or(0, |neighbours| self.count_at(&neighbours.members, level, spot)),
            Subject::Vm(_) | Subject::Hosts(_) => {
                let host = self.host_of(tenant, subject);
                let near = host.and_then(|host| self.fleet.spot(host, level)) == Some(spot);
                u32::from(near)
            }
        }
    }

    /// Whether `subject` has a member anywhere.
    fn exists(&self, tenant: &Name, subject: &Subject) -> bool {
        match subject {
            Subject::Group(group) => self
                .subjects
                .get(&Id::of_group(tenant, group))
                .is_some_and(|neighbours| neighbours.members.total() > 0),
            Subject::Vm(_) | Subject::Hosts(_) => self.host_of(tenant, subject).is_some(),
        }
    }

    pub(super) fn count_at(&self, tally: &Tally, level: &Level, spot: Spot<'_>) -> u32 {
        match spot {
            Spot::Host(ix) => tally.at(Place::host(ix)),
            Spot::Domain(ix) => tally.at(Place::domain(ix)),
            Spot::Label(_) => {
                let here = |(ix, _): &(HostIx, u32)| self.fleet.spot(*ix, level) == Some(spot);
                tally.hosts().filter(here).map(|(_, count)| count).sum()
            }
        }
    }
}

/// Collects violations of one question.
pub(super) struct Found<'a> {
    pub(super) vm: &'a Vm,
    host: &'a Name,
    violations: Violations,
}

impl Found<'_> {
    pub(super) fn push(&mut self, kind: ViolationKind) {
        let (vm, host) = (Some(self.vm.key.clone()), Some(self.host.clone()));
        self.violations.push(Violation { vm, host, kind });
    }
}

/// As `passes`, with a violation for each rule that is broken.
fn static_rules(vm: &Vm, host: &Signature, found: &mut Found<'_>) {
    if passes(vm, host) {
        return;
    }
    if host.state != HostState::Available {
        found.push(ViolationKind::HostState { state: host.state });
    }
    if let Some(wanted) = &vm.pool
        && host.pool.as_ref() != Some(wanted)
    {
        found.push(ViolationKind::Pool { wanted: wanted.clone(), found: host.pool.clone() });
    }
    for selector in vm.selectors.iter().filter(|selector| !matches(selector, &host.labels)) {
        let value = label(&host.labels, &selector.key).cloned();
        found.push(ViolationKind::Selector { wanted: selector.clone(), found: value });
    }
    for taint in host.taints.iter().filter(|taint| !lets_through(taint, &vm.tolerations)) {
        found.push(ViolationKind::Taint { taint: taint.clone() });
    }
    for datastore in vm.datastores.iter().filter(|name| !host.datastores.contains(name)) {
        found.push(ViolationKind::Datastore { datastore: datastore.clone() });
    }
}

fn wrong_committed(demand: &Amounts, committed: &Amounts, found: &mut Found<'_>) {
    for row in 0..demand.width().max(committed.width()) {
        let dimension = Dim(row as u8);
        let (stated, derived) = (committed.get(dimension), demand.get(dimension));
        if stated != derived {
            found.push(ViolationKind::WrongCommitted { dimension, stated, derived });
        }
    }
}

fn belongs(vm: &Vm, subject: &Subject) -> bool {
    match subject {
        Subject::Vm(id) => *id == vm.key.id,
        Subject::Group(group) => groups(vm).any(|own| own == group),
        Subject::Hosts(_) => false,
    }
}
