//! What a VM's own rules say of hosts alone: state, pool, selectors, taints, datastores, excluded
//! hosts and affinity to hosts. VMs that ask for the same share one list.

use super::Rows;
use crate::bits::{Bits, ones};
use cluster::{
    Affinity, AffinityKind, CpuUnit, Host, HostIx, HostState, Name, Selector, Snapshot, Strength,
    Subject, TaintEffect, Toleration, Vm,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The hosts that each VM's own rules leave it.
pub(super) struct OwnRules {
    /// `None` where all hosts will do.
    lists: Vec<Option<Arc<[HostIx]>>>,
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
    /// Where a VM runs that counts CPU in reference cores, it takes as much as there wherever it is
    /// no slower: then what runs now counts as what it is.
    no_slower_than: Option<u64>,
}

impl OwnRules {
    pub(super) fn read(rows: &Rows<'_>, may_stay: bool) -> Self {
        let mut known: FxHashMap<Wishes<'_>, usize> = FxHashMap::default();
        // Few VMs are where their rules would not have them, so that most share a list.
        let mut with_home: FxHashMap<(usize, HostIx), usize> = FxHashMap::default();
        // The first is for those that are not asked.
        let mut lists = vec![None];
        let mut parts = Parts::of(rows.snapshot);
        let vms = rows.vms.iter().zip(&rows.home).zip(&rows.stays);
        let of_vm = vms.map(|((vm, home), stays)| {
            if rows.only_arrivals && *stays {
                return 0;
            }
            let home = home.filter(|_| may_stay);
            let speed = |home: HostIx| rows.snapshot.hosts[home.0 as usize].speed_permille();
            let counted = home.filter(|_| vm.cpu_unit == CpuUnit::Normalised);
            let list =
                *known.entry(Wishes::of(vm, counted.map(speed))).or_insert_with_key(|wishes| {
                    lists.push(wishes.list(&mut parts));
                    lists.len() - 1
                });
            match (home, lists[list].clone()) {
                (Some(home), Some(hosts)) if hosts.binary_search(&home).is_err() => {
                    *with_home.entry((list, home)).or_insert_with(|| {
                        let mut hosts = hosts.to_vec();
                        hosts.insert(hosts.partition_point(|host| *host < home), home);
                        let all = hosts.len() == rows.snapshot.hosts.len();
                        lists.push((!all).then(|| hosts.into()));
                        lists.len() - 1
                    })
                }
                _ => list,
            }
        });
        let of_vm = of_vm.collect();
        Self { of_vm, lists }
    }

    /// The only hosts that a VM's own rules leave it; all of them if there is no list.
    pub(super) fn list(&self, vm: usize) -> Option<&[HostIx]> {
        self.lists[self.of_vm[vm]].as_deref()
    }

    /// The same, for several to have.
    pub(super) fn shared(&self, vm: usize) -> Option<Arc<[HostIx]>> {
        self.lists[self.of_vm[vm]].clone()
    }

    /// VMs with the same number have the same list.
    pub(super) fn number(&self, vm: usize) -> usize {
        self.of_vm[vm]
    }
}

impl<'a> Wishes<'a> {
    fn of(vm: &'a Vm, no_slower_than: Option<u64>) -> Self {
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
            no_slower_than,
        }
    }

    fn list(&self, parts: &mut Parts<'a>) -> Option<Arc<[HostIx]>> {
        let snapshot = parts.snapshot;
        let mut left = parts.available.clone();
        if let Some(pool) = self.pool {
            left.retain(parts.pools.get(pool));
        }
        for selector in self.selectors {
            left.retain(Some(parts.selected(selector)));
        }
        left.retain(Some(parts.tolerated(self.tolerations)));
        for datastore in self.datastores {
            left.retain(Some(parts.reaching(datastore)));
        }
        for name in self.excluded {
            parts.rows.get(name).into_iter().for_each(|&host| left.remove(host));
        }
        for rule in &self.hosts {
            let domains = domains(rule, snapshot);
            let near = |host: &Host| {
                let shared =
                    host.domain(&rule.level).is_some_and(|domain| domains.contains(domain));
                shared == (rule.kind == AffinityKind::Together)
            };
            left.retain(Some(&hosts(snapshot, near)));
        }
        if let Some(speed) = self.no_slower_than {
            left.retain(Some(&hosts(snapshot, |host| host.speed_permille() >= speed)));
        }
        let words = left.words().iter().enumerate();
        let list: Vec<HostIx> = words.flat_map(|(word, &bits)| ones(word, bits)).collect();
        (list.len() < snapshot.hosts.len()).then(|| list.into())
    }
}

/// Hosts that each wish by itself leaves, worked out once: few wishes make many combinations.
struct Parts<'a> {
    snapshot: &'a Snapshot,
    rows: FxHashMap<&'a Name, HostIx>,
    available: Bits,
    pools: FxHashMap<&'a Name, Bits>,
    selectors: FxHashMap<&'a Selector, Bits>,
    tolerations: FxHashMap<&'a [Toleration], Bits>,
    datastores: FxHashMap<&'a Name, Bits>,
}

impl<'a> Parts<'a> {
    fn of(snapshot: &'a Snapshot) -> Self {
        let mut pools: FxHashMap<&Name, Bits> = FxHashMap::default();
        let mut rows = FxHashMap::default();
        for (row, host) in (0..).map(HostIx).zip(&snapshot.hosts) {
            rows.insert(&host.id, row);
            if let Some(pool) = &host.pool {
                pools.entry(pool).or_default().insert(row);
            }
        }
        Self {
            snapshot,
            rows,
            available: hosts(snapshot, |host| host.state == HostState::Available),
            pools,
            selectors: FxHashMap::default(),
            tolerations: FxHashMap::default(),
            datastores: FxHashMap::default(),
        }
    }

    fn selected(&mut self, selector: &'a Selector) -> &Bits {
        let snapshot = self.snapshot;
        self.selectors
            .entry(selector)
            .or_insert_with(|| hosts(snapshot, |host| selector.matches(&host.labels)))
    }

    fn tolerated(&mut self, tolerations: &'a [Toleration]) -> &Bits {
        let snapshot = self.snapshot;
        let tolerated = |taint: &cluster::Taint| {
            taint.effect == TaintEffect::PreferNoSchedule
                || tolerations.iter().any(|toleration| toleration.tolerates(taint))
        };
        self.tolerations
            .entry(tolerations)
            .or_insert_with(|| hosts(snapshot, |host| host.taints.iter().all(tolerated)))
    }

    fn reaching(&mut self, datastore: &'a Name) -> &Bits {
        let snapshot = self.snapshot;
        self.datastores
            .entry(datastore)
            .or_insert_with(|| hosts(snapshot, |host| host.datastores.contains(datastore)))
    }
}

fn hosts(snapshot: &Snapshot, wanted: impl Fn(&Host) -> bool) -> Bits {
    let mut found = Bits::default();
    let hosts = (0..).map(HostIx).zip(&snapshot.hosts);
    hosts.filter(|(_, host)| wanted(host)).for_each(|(row, _)| found.insert(row));
    found
}

/// The domains of the hosts that a rule names, of those that exist.
fn domains<'a>(rule: &Affinity, snapshot: &'a Snapshot) -> FxHashSet<&'a Name> {
    let Subject::Hosts(names) = &rule.subject else { return FxHashSet::default() };
    let hosts = snapshot.hosts.iter().filter(|host| names.contains(&host.id));
    hosts.filter_map(|host| host.domain(&rule.level)).collect()
}
