//! What the ledger counts for installed constraints, and the facts that it answers from that.

use super::Ledger;
use super::fleet::{Row, Spot, location_level};
use super::tally::{Place, Places, Relocation, Tally};
use crate::reading::host_in;
use crate::rules::{ByDomain, Facts, Kind, RuleRow, Rules, Scope, kind_of};
use cluster::{Constraint, Dim, HostIx, HostSet, HostState, Level, Name, Spare, Vm};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// The constraints in force, and where the VMs of each are.
#[derive(Debug, Default)]
pub(super) struct Installed {
    pub(super) rules: Rules,
    /// By constraint, then by kind.
    tallies: Vec<[Tally; 3]>,
}

impl Installed {
    pub(super) fn new(constraints: &[Arc<Constraint>]) -> Self {
        let rules = Rules::new(constraints);
        let tallies = rules.rows.iter().map(|_| Default::default()).collect();
        Self { rules, tallies }
    }

    pub(super) fn count(&mut self, vm: &Vm, places: &Places) {
        for (constraint, tallies) in self.rules.rows.iter().zip(&mut self.tallies) {
            if let Some(kind) = kind_of(&constraint.rule, vm) {
                tallies[kind as usize].add(places);
            }
        }
    }

    pub(super) fn uncount(&mut self, vm: &Vm, places: &Places) {
        for (constraint, tallies) in self.rules.rows.iter().zip(&mut self.tallies) {
            if let Some(kind) = kind_of(&constraint.rule, vm) {
                tallies[kind as usize].take(places);
            }
        }
    }

    pub(super) fn relocate(&mut self, relocation: &Relocation) {
        self.tallies.iter_mut().flatten().for_each(|tally| tally.relocate(relocation));
    }

    fn tally(&self, rule: RuleRow, kind: Kind) -> &Tally {
        &self.tallies[rule][kind as usize]
    }
}

impl Ledger {
    /// Puts these constraints in force, and no others. All placed VMs must be given once more.
    pub fn set_constraints<'a>(
        &mut self,
        constraints: &[Arc<Constraint>],
        vms: impl Iterator<Item = (HostIx, &'a Vm)>,
    ) {
        let mut installed = Installed::new(constraints);
        vms.for_each(|(host, vm)| installed.count(vm, &self.fleet.places(host)));
        self.installed = installed;
    }

    pub(super) fn in_set(&self, ix: HostIx, row: &Row, set: &HostSet) -> bool {
        let signature = self.fleet.signature(row.signature);
        let domain = |level: &Level| {
            let spot = self.fleet.spot(ix, level)?;
            Some(self.fleet.spot_name(spot))
        };
        host_in(set, signature.pool.as_ref(), &signature.labels, domain)
    }
}

/// The ledger's facts about one host.
pub(super) struct At<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) ix: HostIx,
    pub(super) row: &'a Row,
}

impl Facts for At<'_> {
    fn domain(&self, level: &Level) -> Option<Name> {
        let fleet = &self.ledger.fleet;
        fleet.spot(self.ix, level).map(|spot| fleet.spot_name(spot))
    }

    fn vms_on_host(&self) -> u32 {
        self.row.vms.saturating_add(self.row.foreign_vms)
    }

    fn near(&self, rule: RuleRow, kind: Kind, level: &Level) -> u32 {
        let tally = self.ledger.installed.tally(rule, kind);
        let spot = self.ledger.fleet.spot(self.ix, level);
        spot.map_or(0, |spot| self.ledger.count_at(tally, level, spot))
    }

    fn covered(&self, rule: RuleRow, kind: Kind, level: &Level, most: u32) -> u32 {
        let fleet = &self.ledger.fleet;
        let tally = self.ledger.installed.tally(rule, kind);
        let most = most as usize;
        let covered = match (location_level(level), level) {
            (Some(column), _) => {
                let domains = fleet.domains(column);
                domains.filter(|ix| tally.at(Place::domain(*ix)) > 0).take(most).count()
            }
            (None, Level::Label(_)) => {
                let mut values = FxHashSet::default();
                for (ix, _) in tally.hosts() {
                    if let Some(Spot::Label(value)) = fleet.spot(ix, level) {
                        values.insert(value);
                    }
                    if values.len() >= most {
                        break;
                    }
                }
                values.len()
            }
            (None, _) => tally.hosts().take(most).count(),
        };
        covered as u32
    }

    fn everywhere(&self, rule: RuleRow, kind: Kind, level: &Level) -> ByDomain {
        let fleet = &self.ledger.fleet;
        let tally = self.ledger.installed.tally(rule, kind);
        let mut counts = ByDomain::new();
        let mut note = |domain: Option<Name>, count: u32| {
            if count > 0 {
                *counts.entry(domain).or_default() += count;
            }
        };
        if let Some(column) = location_level(level) {
            let mut somewhere = 0;
            for ix in fleet.domains(column) {
                let count = tally.at(Place::domain(ix));
                note(Some(fleet.domain(ix).name.clone()), count);
                somewhere += count;
            }
            note(None, tally.total() - somewhere);
        } else {
            for (ix, count) in tally.hosts() {
                note(fleet.spot(ix, level).map(|spot| fleet.spot_name(spot)), count);
            }
        }
        counts
    }

    fn scope(&self, spare: &Spare, dimension: Dim) -> Option<Scope> {
        let (ledger, fleet) = (self.ledger, &self.ledger.fleet);
        let counts = |ix: HostIx, row: &Row| {
            fleet.signature(row.signature).state == HostState::Available
                && ledger.in_set(ix, row, &spare.hosts)
        };
        let spot = |ix: HostIx| match &spare.each {
            None => Some(None),
            Some(level) => fleet.spot(ix, level).map(Some),
        };
        let here = spot(self.ix).filter(|_| counts(self.ix, self.row))?;
        let mut scope = Scope::default();
        let rows = fleet.rows().filter(|(ix, _)| spot(*ix) == Some(here));
        for (_, row) in rows.filter(|(ix, row)| counts(*ix, row)) {
            let room = row.room(dimension);
            let declared = dimension.row() < fleet.dimensions();
            let allocatable = if declared { room.allocatable } else { 0 };
            let taken = room.committed.saturating_add(room.foreign);
            scope.allocatable.push(allocatable);
            scope.free = scope.free.saturating_add(allocatable.saturating_sub(taken));
        }
        Some(scope)
    }
}
