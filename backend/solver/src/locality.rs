//! Locality: how near a host is to what the VM asks to be near to.
//!
//! It is the mean of the parts that the VM asks for; 1000 when it asks for none:
//!
//! - data: by weight, how near the host is to each piece. A piece on a host counts 1000 there,
//!   700 in its rack, 400 in its zone, 200 in its region; one in a rack, zone or region counts
//!   1000 inside; one in a datastore counts 1000 where the datastore is reached; else 0.
//! - preferred hosts: 1000 on one of them, else 0.
//! - `colocate_with`: mean nearness, as for data, to the hosts of the named VMs that are placed;
//!   not asked when none of them is.
//! - `user_region`: 1000 at no latency, falling evenly to 0 at 100 ms; 0 when not known.

use crate::cache::Slot;
use crate::domains::LevelIx;
use crate::problem::Problem;
use cluster::{DataSite, HostIx, Index, Level, Name, Vm, VmKey};
use smallvec::SmallVec;

/// How near two hosts are that share a domain, nearest first.
pub(crate) const NEARNESS: [(LevelIx, i64); 4] =
    [(LevelIx::HOST, 1000), (LevelIx::RACK, 700), (LevelIx::ZONE, 400), (LevelIx::REGION, 200)];

/// What a VM says about where it would like to be, looked up.
#[derive(Debug)]
pub(crate) struct Locality {
    /// How many parts are asked for.
    pub(crate) parts: i64,
    pub(crate) data: SmallVec<[(Site, i64); 2]>,
    pub(crate) data_weight: i64,
    prefers: bool,
    pub(crate) preferred: SmallVec<[HostIx; 4]>,
    pub(crate) neighbours: SmallVec<[HostIx; 2]>,
    pub(crate) region: Option<Slot>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Site {
    /// Named, but not there: near to nobody.
    Unknown,
    Host(HostIx),
    Domain(LevelIx, u32),
    Datastore(Slot),
}

impl Locality {
    pub(crate) fn compile(problem: &mut Problem, vm: &Vm) -> Self {
        let data: SmallVec<[(Site, i64); 2]> = vm
            .data
            .iter()
            .map(|piece| (site(problem, &piece.site), i64::from(piece.weight)))
            .collect();
        let data_weight = data.iter().map(|(_, weight)| weight).sum();
        let preferred: SmallVec<[HostIx; 4]> =
            vm.preferred_hosts.iter().filter_map(|name| problem.hosts.find(name)).collect();
        let placed = |id: &Name| {
            let key = VmKey { tenant: vm.key.tenant.clone(), id: id.clone() };
            problem.groups.host_of(&key)
        };
        let neighbours: SmallVec<[HostIx; 2]> =
            vm.hints.colocate_with.iter().filter_map(placed).collect();
        let region = vm.hints.user_region.as_ref();
        let region = region.map(|region| problem.predicates.region(region));
        let prefers = !vm.preferred_hosts.is_empty();
        let asked = [data_weight > 0, prefers, !neighbours.is_empty(), region.is_some()];
        Self {
            parts: asked.into_iter().filter(|&asked| asked).count() as i64,
            data,
            data_weight,
            prefers,
            preferred,
            neighbours,
            region,
        }
    }

    /// The locality term of a host, 0 to 1000.
    pub(crate) fn value(&self, problem: &Problem, host: HostIx) -> i64 {
        if self.parts == 0 {
            return 1000;
        }
        let mut sum = 0;
        if self.data_weight > 0 {
            let weighed = |(site, weight): &(Site, i64)| weight * site.nearness(problem, host);
            sum += self.data.iter().map(weighed).sum::<i64>() / self.data_weight;
        }
        if self.prefers && self.preferred.contains(&host) {
            sum += 1000;
        }
        if !self.neighbours.is_empty() {
            let near = self.neighbours.iter().map(|&other| nearness(problem, host, other));
            sum += near.sum::<i64>() / self.neighbours.len() as i64;
        }
        if let Some(region) = self.region {
            let column = problem.predicates.closeness(region);
            sum += column.get(host.row()).copied().map_or(0, i64::from);
        }
        sum / self.parts
    }
}

impl Site {
    fn nearness(self, problem: &Problem, host: HostIx) -> i64 {
        let inside = match self {
            Site::Unknown => false,
            Site::Host(other) => return nearness(problem, host, other),
            Site::Domain(level, domain) => problem.domains.of(level, host) == Some(domain),
            Site::Datastore(slot) => problem.predicates.datastore_hosts(slot).contains(host),
        };
        if inside { 1000 } else { 0 }
    }
}

fn site(problem: &mut Problem, site: &DataSite) -> Site {
    let (level, name) = match site {
        DataSite::Host(name) => {
            return problem.hosts.find(name).map_or(Site::Unknown, Site::Host);
        }
        DataSite::Datastore(name) => {
            return Site::Datastore(problem.predicates.datastore(name));
        }
        DataSite::Rack(name) => (&Level::Rack, name),
        DataSite::Zone(name) => (&Level::Zone, name),
        DataSite::Region(name) => (&Level::Region, name),
    };
    let level = problem.level(level);
    problem.domains.find(level, name).map_or(Site::Unknown, |domain| Site::Domain(level, domain))
}

fn nearness(problem: &Problem, host: HostIx, other: HostIx) -> i64 {
    let shared = NEARNESS.iter().find(|(level, _)| {
        let domain = problem.domains.of(*level, host);
        domain.is_some() && domain == problem.domains.of(*level, other)
    });
    shared.map_or(0, |(_, nearness)| *nearness)
}
