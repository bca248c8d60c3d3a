//! What a VM's own rules say of hosts alone: state, pool, selectors, taints, datastores, excluded
//! hosts and affinity to hosts. VMs that ask for the same share one list.

use super::Rows;
use cluster::{
    Affinity, AffinityKind, Host, HostIx, HostState, Level, Name, Selector, Snapshot, Strength,
    Subject, TaintEffect, Toleration, Vm,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// The hosts that each VM's own rules leave it.
pub(super) struct OwnRules {
    /// `None` where all hosts will do.
    lists: Vec<Option<Vec<HostIx>>>,
    of_vm: Vec<usize>,
}

/// All that the answer depends on.
#[derive(PartialEq, Eq, Hash)]
struct Wishes<'a> {
    pool: Option<&'a Name>,
    selectors: &'a [Selector],
    tolerations: &'a [Toleration],
    datastores: &'a [Name],
    excluded: &'a [Name],
    hosts: Vec<&'a Affinity>,
    /// A host that will do whatever the rules say.
    stays_on: Option<HostIx>,
}

impl OwnRules {
    pub(super) fn read(rows: &Rows<'_>, may_stay: bool) -> Self {
        let mut known: FxHashMap<Wishes<'_>, usize> = FxHashMap::default();
        let mut lists = Vec::new();
        let of_vm = rows.vms.iter().zip(&rows.home).map(|(vm, home)| {
            let wishes = Wishes::of(vm, home.filter(|_| may_stay));
            *known.entry(wishes).or_insert_with_key(|wishes| {
                lists.push(wishes.list(rows.snapshot));
                lists.len() - 1
            })
        });
        let of_vm = of_vm.collect();
        Self { of_vm, lists }
    }

    /// The only hosts that a VM's own rules leave it; all of them if there is no list.
    pub(super) fn list(&self, vm: usize) -> Option<&[HostIx]> {
        self.lists[self.of_vm[vm]].as_deref()
    }

    /// VMs with the same number have the same list.
    pub(super) fn number(&self, vm: usize) -> usize {
        self.of_vm[vm]
    }
}

impl<'a> Wishes<'a> {
    fn of(vm: &'a Vm, stays_on: Option<HostIx>) -> Self {
        let on_hosts = |rule: &&Affinity| {
            rule.strength == Strength::Required && matches!(rule.subject, Subject::Hosts(_))
        };
        Self {
            pool: vm.pool.as_ref(),
            selectors: &vm.selectors,
            tolerations: &vm.tolerations,
            datastores: &vm.datastores,
            excluded: &vm.excluded_hosts,
            hosts: vm.affinities.iter().filter(on_hosts).collect(),
            stays_on,
        }
    }

    fn list(&self, snapshot: &Snapshot) -> Option<Vec<HostIx>> {
        let named: Vec<(AffinityKind, &Level, FxHashSet<&Name>)> = self
            .hosts
            .iter()
            .map(|rule| (rule.kind, &rule.level, domains(rule, snapshot)))
            .collect();
        let near = |host: &Host| {
            named.iter().all(|(kind, level, domains)| {
                let shared = host.domain(level).is_some_and(|domain| domains.contains(domain));
                shared == (*kind == AffinityKind::Together)
            })
        };
        let hosts = (0..).map(HostIx).zip(&snapshot.hosts);
        let list: Vec<HostIx> = hosts
            .filter(|(ix, host)| self.stays_on == Some(*ix) || self.accept(host) && near(host))
            .map(|(ix, _)| ix)
            .collect();
        (list.len() < snapshot.hosts.len()).then_some(list)
    }

    fn accept(&self, host: &Host) -> bool {
        let tolerated = |taint: &cluster::Taint| {
            taint.effect == TaintEffect::PreferNoSchedule
                || self.tolerations.iter().any(|toleration| toleration.tolerates(taint))
        };
        host.state == HostState::Available
            && self.pool.is_none_or(|pool| host.pool.as_ref() == Some(pool))
            && self.selectors.iter().all(|selector| selector.matches(&host.labels))
            && host.taints.iter().all(tolerated)
            && self.datastores.iter().all(|datastore| host.datastores.contains(datastore))
            && !self.excluded.contains(&host.id)
    }
}

/// The domains of the hosts that a rule names, of those that exist.
fn domains<'a>(rule: &Affinity, snapshot: &'a Snapshot) -> FxHashSet<&'a Name> {
    let Subject::Hosts(names) = &rule.subject else { return FxHashSet::default() };
    let hosts = snapshot.hosts.iter().filter(|host| names.contains(&host.id));
    hosts.filter_map(|host| host.domain(&rule.level)).collect()
}
