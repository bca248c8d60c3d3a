//! What kinds of goals read: the fleet's rows, who stands without being a row, levels and classes.

use super::Setting;
use crate::assignment::Fleet;
use cluster::assignment::{Curves, NO_DOMAIN, Problem, Scope};
use cluster::{Dim, Host, HostIx, Level, Name, Power, Snapshot, Vm};
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::sync::Arc;

pub(super) struct Facts<'a> {
    pub(super) problem: &'a mut Problem,
    pub(super) snapshot: &'a Snapshot,
    pub(super) setting: &'a Setting,
    /// The VM of each row.
    pub(super) vms: Vec<&'a Vm>,
    /// Placed VMs that are no rows, and their hosts.
    pub(super) folded: Vec<(&'a Vm, HostIx)>,
}

impl<'a> Facts<'a> {
    pub(super) fn of(
        fleet: &'a mut Fleet,
        snapshot: &'a Snapshot,
        arrivals: &'a [Arc<Vm>],
        setting: &'a Setting,
    ) -> Self {
        let ix: FxHashMap<&Name, HostIx> =
            (0..).zip(&snapshot.hosts).map(|(row, host)| (&host.id, HostIx(row))).collect();
        let (mut vms, mut folded): (Vec<&Vm>, Vec<(&Vm, HostIx)>) = (Vec::new(), Vec::new());
        // Rows are placed VMs in their order, then arrivals.
        for placed in &snapshot.placed {
            if fleet.vms.get(vms.len()) == Some(&placed.vm.key) {
                vms.push(&placed.vm);
            } else if let Some(&host) = ix.get(&placed.host) {
                folded.push((&placed.vm, host));
            }
        }
        vms.extend(arrivals.iter().map(Arc::as_ref));
        debug_assert_eq!(vms.len(), fleet.problem.vms.len(), "the fleet is of this snapshot");
        Self { problem: &mut fleet.problem, snapshot, setting, vms, folded }
    }

    pub(super) fn host(&self, row: usize) -> &'a Host {
        &self.snapshot.hosts[row]
    }

    pub(super) fn hosts(&self) -> usize {
        self.problem.hosts.len()
    }

    /// The row of CPU among the problem's resources, which begin with the snapshot's dimensions.
    pub(super) fn cpu(&self) -> u32 {
        Dim::CPU_MILLIS.row() as u32
    }

    /// The dimensions that are declared; what is guaranteed of them comes after, as resources of
    /// their own, and is no further use of a host.
    pub(super) fn dimensions(&self) -> usize {
        self.snapshot.dimensions.len()
    }

    /// All that a host has of each dimension; nothing of other resources.
    pub(super) fn whole(&self, host: usize) -> Vec<u64> {
        let whole = |row: usize| match row < self.dimensions() {
            true => self.problem.whole(host, row),
            false => 0,
        };
        (0..self.problem.resources.len()).map(whole).collect()
    }

    /// What rows and others use of a resource together.
    pub(super) fn demand(&self, resource: usize) -> u64 {
        let vms = self.problem.vms.iter();
        let rows: u64 = vms.map(|vm| self.problem.shapes[vm.shape as usize][resource]).sum();
        rows + (0..self.hosts()).map(|host| self.problem.standing(host, resource)).sum::<u64>()
    }

    /// What all hosts have of a resource.
    pub(super) fn capacity(&self, resource: usize) -> u64 {
        (0..self.hosts()).map(|host| self.problem.whole(host, resource)).sum()
    }

    /// The level as a scope of the problem, which gets it if no rule has it; `None` if no host is in
    /// any domain of it.
    pub(super) fn scope(&mut self, level: &Level) -> Option<Scope> {
        if *level == Level::Host {
            return Some(Scope::Host);
        }
        let name = level.name();
        if let Some(row) = self.problem.levels.iter().position(|known| *known == name) {
            return Some(Scope::Level(row as u32));
        }
        let mut numbers: FxHashMap<&Name, u32> = FxHashMap::default();
        let hosts = self.snapshot.hosts.iter();
        let domains: Vec<u32> = hosts
            .map(|host| match host.domain(level) {
                Some(domain) => {
                    let next = numbers.len() as u32;
                    *numbers.entry(domain).or_insert(next)
                }
                None => NO_DOMAIN,
            })
            .collect();
        if numbers.is_empty() {
            return None;
        }
        for (host, domain) in self.problem.hosts.iter_mut().zip(domains) {
            host.domains.push(domain);
        }
        self.problem.levels.push(name);
        Some(Scope::Level(self.problem.levels.len() as u32 - 1))
    }

    /// One more than the highest number of a domain.
    pub(super) fn domains(&self, scope: Scope) -> usize {
        let hosts = (0..self.hosts() as u32).map(|host| self.problem.domain(scope, HostIx(host)));
        hosts.filter(|&domain| domain != NO_DOMAIN).max().map_or(0, |last| last as usize + 1)
    }

    /// What hosts draw, in milliwatts x `factor` of each. Readings that fall are raised to the one
    /// before.
    pub(super) fn curves(&self, factor: impl Fn(&Host) -> u64) -> Curves {
        let points = |host: &Host| {
            let mut points: Vec<u64> = match &host.power {
                Power::Linear { idle_mw, peak_mw } => vec![(*idle_mw).into(), (*peak_mw).into()],
                Power::Table(table) => table.iter().map(|&point| point.into()).collect(),
            };
            let factor = factor(host);
            let mut highest = 0;
            for point in &mut points {
                highest = highest.max(*point * factor);
                *point = highest;
            }
            points
        };
        let (points, of_host) = classes((0..self.hosts()).map(|row| points(self.host(row))));
        Curves { points, of_host }
    }
}

/// Different values in order of the first, and the number of each.
pub(super) fn classes<T: Hash + Eq + Clone>(values: impl Iterator<Item = T>) -> (Vec<T>, Vec<u32>) {
    let mut numbers: FxHashMap<T, u32> = FxHashMap::default();
    let mut different = Vec::new();
    let of_row = values.map(|value| {
        *numbers.entry(value).or_insert_with_key(|value| {
            different.push(value.clone());
            different.len() as u32 - 1
        })
    });
    let of_row = of_row.collect();
    (different, of_row)
}
