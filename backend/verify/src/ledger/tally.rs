//! Counts of VMs by host and by domain.

use super::fleet::DomainIx;
use cluster::{HostIx, Index};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A host or a domain, as one number: domains have the top bit set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place(u32);

const DOMAIN: u32 = 1 << 31;

impl Place {
    pub(super) fn host(ix: HostIx) -> Self {
        Self(ix.0)
    }

    pub(super) fn domain(ix: DomainIx) -> Self {
        Self(ix.0 | DOMAIN)
    }

    fn as_host(self) -> Option<HostIx> {
        (self.0 & DOMAIN == 0).then(|| HostIx::new(self.0 as usize))
    }
}

/// The host itself and its domains of the four levels that hosts are located by.
pub(super) type Places = SmallVec<[Place; 5]>;

/// A host with VMs on it that stands elsewhere now.
pub(super) struct Relocation {
    pub(super) host: HostIx,
    pub(super) from: Places,
    pub(super) to: Places,
}

/// How many VMs there are, on each host and in each domain. Domains that are label values are
/// not kept: any label may be one, so they are summed up over `hosts` when a rule asks.
#[derive(Debug, Default)]
pub(super) struct Tally {
    total: u32,
    counts: FxHashMap<Place, u32>,
}

impl Tally {
    pub(super) fn total(&self) -> u32 {
        self.total
    }

    pub(super) fn at(&self, place: Place) -> u32 {
        self.counts.get(&place).copied().unwrap_or(0)
    }

    /// The hosts with VMs on them, in no particular order.
    pub(super) fn hosts(&self) -> impl Iterator<Item = (HostIx, u32)> {
        self.counts.iter().filter_map(|(place, count)| Some((place.as_host()?, *count)))
    }

    pub(super) fn add(&mut self, places: &Places) {
        self.total += 1;
        self.raise(places, 1);
    }

    pub(super) fn take(&mut self, places: &Places) {
        self.total = self.total.saturating_sub(1);
        self.lower(places, 1);
    }

    pub(super) fn relocate(&mut self, relocation: &Relocation) {
        let moved = self.at(Place::host(relocation.host));
        if moved > 0 {
            self.raise(&relocation.to, moved);
            self.lower(&relocation.from, moved);
        }
    }

    fn raise(&mut self, places: &Places, by: u32) {
        for place in places {
            *self.counts.entry(*place).or_default() += by;
        }
    }

    fn lower(&mut self, places: &Places, by: u32) {
        for place in places {
            if let Some(count) = self.counts.get_mut(place) {
                *count = count.saturating_sub(by);
                if *count == 0 {
                    self.counts.remove(place);
                }
            }
        }
    }
}
