//! Which hosts and domains a VM's own rules leave, before anybody else is looked at.
//!
//! These are the domains that a spread rule counts. Whole domains are judged by the signatures
//! in them; single hosts are looked at only for rules that name hosts.

use super::Ledger;
use super::check::Found;
use super::fleet::{DomainIx, Row, Signature, SignatureIx, Spot};
use crate::ViolationKind;
use crate::reading::{lets_through, matches};
use crate::rules::fence;
use cluster::{
    AffinityKind, ConstraintRule, HostIx, HostSet, HostState, Level, Name, Strength, Subject, Vm,
};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// The rules of a VM that name hosts, with the names looked up.
pub(super) struct HostRules<'a> {
    excluded: SmallVec<[HostIx; 4]>,
    affinities: Vec<HostRule<'a>>,
    /// Fences that matter to the VM, and whether it must be inside.
    fences: Vec<(&'a Name, &'a HostSet, bool)>,
}

struct HostRule<'a> {
    kind: AffinityKind,
    level: &'a Level,
    /// As many as the fleet has hosts, at most.
    named: FxHashSet<Spot<'a>>,
}

impl<'a> HostRules<'a> {
    pub(super) fn new(ledger: &'a Ledger, vm: &'a Vm) -> Self {
        let fleet = &ledger.fleet;
        let excluded = vm.excluded_hosts.iter().filter_map(|id| fleet.find(id)).collect();
        let mut affinities = Vec::new();
        for rule in &vm.affinities {
            let Subject::Hosts(names) = &rule.subject else { continue };
            if rule.strength == Strength::Required {
                let existing = names.iter().filter_map(|id| fleet.find(id));
                let named = existing.filter_map(|ix| fleet.spot(ix, &rule.level)).collect();
                affinities.push(HostRule { kind: rule.kind, level: &rule.level, named });
            }
        }
        let mut fences = Vec::new();
        for constraint in &ledger.installed.rules.rows {
            if let ConstraintRule::Fence(rule) = &constraint.rule
                && let Some(inside) = fence::side(rule, vm)
            {
                fences.push((&constraint.name, &rule.hosts, inside));
            }
        }
        Self { excluded, affinities, fences }
    }

    fn is_empty(&self) -> bool {
        self.excluded.is_empty() && self.affinities.is_empty() && self.fences.is_empty()
    }

    fn pass(&self, ledger: &Ledger, host: HostIx) -> bool {
        let kept = |rule: &HostRule<'_>| rule.keeps(ledger.fleet.spot(host, rule.level));
        !self.excluded.contains(&host)
            && self.affinities.iter().all(kept)
            && self.fences.iter().all(|(_, set, inside)| is_inside(ledger, host, set) == *inside)
    }

    pub(super) fn check(
        &self,
        ledger: &Ledger,
        host: HostIx,
        host_id: &Name,
        found: &mut Found<'_>,
    ) {
        if found.vm.excluded_hosts.contains(host_id) {
            found.push(ViolationKind::ExcludedHost);
        }
        for rule in &self.affinities {
            let spot = ledger.fleet.spot(host, rule.level);
            if !rule.keeps(spot) {
                let (level, domain) =
                    (rule.level.clone(), spot.map(|spot| ledger.fleet.spot_name(spot)));
                found.push(ViolationKind::HostAffinity { rule: rule.kind, level, domain });
            }
        }
        for (name, set, inside) in &self.fences {
            if is_inside(ledger, host, set) != *inside {
                found.push(fence::violation(name, *inside));
            }
        }
    }
}

fn is_inside(ledger: &Ledger, host: HostIx, set: &HostSet) -> bool {
    ledger.fleet.row(host).is_some_and(|row| ledger.in_set(host, row, set))
}

impl HostRule<'_> {
    fn keeps(&self, spot: Option<Spot<'_>>) -> bool {
        let shared = spot.is_some_and(|spot| self.named.contains(&spot));
        shared == (self.kind == AffinityKind::Together)
    }
}

/// Which domains a spread rule of one VM counts, worked out as far as it is asked.
pub(super) struct Eligible<'a> {
    ledger: &'a Ledger,
    vm: &'a Vm,
    rules: &'a HostRules<'a>,
    /// By signature; `None` until it is tested.
    passing: Vec<Option<bool>>,
}

impl<'a> Eligible<'a> {
    pub(super) fn new(ledger: &'a Ledger, vm: &'a Vm, rules: &'a HostRules<'a>) -> Self {
        Self { ledger, vm, rules, passing: vec![None; ledger.fleet.signature_rows()] }
    }

    pub(super) fn host(&mut self, ix: HostIx, row: &Row) -> bool {
        self.signature(row.signature) && self.rules.pass(self.ledger, ix)
    }

    pub(super) fn domain(&mut self, ix: DomainIx) -> bool {
        let fleet = &self.ledger.fleet;
        let domain = fleet.domain(ix);
        if !domain.signatures.iter().any(|(signature, _)| self.signature(*signature)) {
            return false;
        }
        let mut hosts = domain.hosts.iter().filter_map(|ix| Some((*ix, fleet.row(*ix)?)));
        self.rules.is_empty() || hosts.any(|(ix, row)| self.host(ix, row))
    }

    /// Whether a host with this signature is eligible.
    pub(super) fn some_host_of(&mut self, signature: SignatureIx) -> bool {
        let mut hosts = self.ledger.fleet.rows().filter(|(_, row)| row.signature == signature);
        self.signature(signature)
            && (self.rules.is_empty() || hosts.any(|(ix, row)| self.host(ix, row)))
    }

    fn signature(&mut self, ix: SignatureIx) -> bool {
        let known = &mut self.passing[ix.0 as usize];
        let (vm, fleet) = (self.vm, &self.ledger.fleet);
        *known.get_or_insert_with(|| passes(vm, fleet.signature(ix)))
    }
}

/// Whether a host with this signature satisfies every rule that does not need its id.
pub(super) fn passes(vm: &Vm, host: &Signature) -> bool {
    host.state == HostState::Available
        && vm.pool.as_ref().is_none_or(|wanted| host.pool.as_ref() == Some(wanted))
        && vm.selectors.iter().all(|selector| matches(selector, &host.labels))
        && host.taints.iter().all(|taint| lets_through(taint, &vm.tolerations))
        && vm.datastores.iter().all(|datastore| host.datastores.contains(datastore))
}
