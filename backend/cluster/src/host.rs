//! A host: a machine that runs VMs.

use crate::{Amounts, Dim, Hardware, Labels, Level, Location, MAX_AMOUNT, Name, Taint};
use serde::{Deserialize, Serialize};

/// What a host is and has. What runs on it is not here: that is the engine's state.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Host {
    pub id: Name,
    /// Counts the hosts that ever had this id, so that a machine re-added under an old name is
    /// never taken for the one that was removed. The engine assigns it.
    pub incarnation: u64,
    pub pool: Option<Name>,
    pub location: Location,
    pub labels: Labels,
    pub taints: Vec<Taint>,
    pub state: HostState,
    pub capacity: Amounts,
    /// Kept back for the system; never given to VMs.
    pub reserved: Amounts,
    /// Overcommit per dimension in permille of what is left after `reserved`; 0 means 1000.
    pub overcommit_permille: Amounts,
    /// Speed of one core against the reference core, in permille; 0 means 1000.
    pub benchmark_permille: u32,
    pub price: Price,
    pub power: Power,
    /// Latency from this host to named user regions.
    pub latencies: Vec<RegionLatency>,
    /// Chance that the host fails within a year, in parts per million.
    pub failure_ppm_per_year: u32,
    /// Longest silence before the host is suspected; 0 means that no heartbeats are expected.
    pub heartbeat_deadline_ms: u64,
    /// Datastores that VMs on this host can reach.
    pub datastores: Vec<Name>,
    pub hardware: Box<Hardware>,
    /// What others use of it. The engine works it out from reports; descriptions leave it empty.
    pub foreign: Foreign,
}

impl Host {
    /// An available host with this capacity and nothing else said about it.
    pub fn new(id: Name, capacity: Amounts) -> Self {
        Self {
            id,
            incarnation: 0,
            pool: None,
            location: Location::default(),
            labels: Labels::default(),
            taints: Vec::new(),
            state: HostState::Available,
            capacity,
            reserved: Amounts::zero(),
            overcommit_permille: Amounts::zero(),
            benchmark_permille: 0,
            price: Price::default(),
            power: Power::default(),
            latencies: Vec::new(),
            failure_ppm_per_year: 0,
            heartbeat_deadline_ms: 0,
            datastores: Vec::new(),
            hardware: Box::default(),
            foreign: Foreign::default(),
        }
    }

    /// How much of `dim` VMs may be promised: capacity less reserved, times overcommit.
    pub fn allocatable(&self, dim: Dim) -> u64 {
        let physical = self.capacity.get(dim).saturating_sub(self.reserved.get(dim));
        let permille = match self.overcommit_permille.get(dim) {
            0 => 1000,
            permille => permille,
        };
        (physical.saturating_mul(permille) / 1000).min(MAX_AMOUNT)
    }

    /// What is there and not kept back: all that can be guaranteed, whatever else is promised.
    pub fn physical(&self, dim: Dim) -> u64 {
        self.capacity.get(dim).saturating_sub(self.reserved.get(dim)).min(MAX_AMOUNT)
    }

    /// How much shared CPU a thread carries, with its default filled in.
    pub fn cpu_overcommit_permille(&self) -> u64 {
        match self.overcommit_permille.get(Dim::CPU_MILLIS) {
            0 => 1000,
            permille => permille,
        }
    }

    /// The benchmark factor with its default filled in.
    pub fn speed_permille(&self) -> u64 {
        if self.benchmark_permille == 0 { 1000 } else { u64::from(self.benchmark_permille) }
    }

    /// The host's domain at `level`, by name; `None` when it has no value there.
    pub fn domain(&self, level: &Level) -> Option<&Name> {
        match level {
            Level::Host => Some(&self.id),
            Level::Rack => self.location.rack.as_ref(),
            Level::PowerFeed => self.location.power_feed.as_ref(),
            Level::Zone => self.location.zone.as_ref(),
            Level::Region => self.location.region.as_ref(),
            Level::Label(key) => self.labels.get(key.as_str()),
        }
    }
}

/// What is in use on a host beyond the VMs that are recorded here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Foreign {
    pub used: Amounts,
    pub vms: u32,
}

impl Foreign {
    pub fn is_zero(&self) -> bool {
        self.used.is_zero() && self.vms == 0
    }
}

/// What the operator or the health check says of a host. Only `Available` takes new VMs.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub enum HostState {
    #[default]
    Available,
    /// Takes no new VMs; those it has stay.
    Cordoned,
    /// Takes no new VMs; those it has are being moved away.
    Draining,
    Maintenance,
    Down,
}

/// What an hour of the host costs, in millionths of the currency unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Price {
    pub kind: PriceKind,
    pub micros_per_hour: u64,
}

impl Price {
    /// What using the host adds to the bill: reserved capacity is paid for already.
    pub fn marginal_micros_per_hour(&self) -> u64 {
        match self.kind {
            PriceKind::Reserved => 0,
            PriceKind::OnDemand | PriceKind::Spot => self.micros_per_hour,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PriceKind {
    #[default]
    OnDemand,
    Spot,
    Reserved,
}

/// Power drawn as a function of CPU load, in milliwatts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Power {
    /// A straight line from idle to peak.
    Linear { idle_mw: u32, peak_mw: u32 },
    /// Readings at 0, 10, ..., 100 percent of load, as SPECpower publishes them.
    Table(Box<[u32; 11]>),
}

impl Default for Power {
    fn default() -> Self {
        Power::Linear { idle_mw: 0, peak_mw: 0 }
    }
}

/// Latency from a host to a user region.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RegionLatency {
    pub region: Name,
    pub latency_us: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocatable_is_what_is_left_after_reserve_times_overcommit() {
        let mut host = Host::new("h".try_into().expect("a name"), Amounts::cpu_memory(10_000, 64));
        assert_eq!(host.allocatable(Dim::CPU_MILLIS), 10_000);
        host.reserved = Amounts::cpu_memory(2_000, 100);
        host.overcommit_permille = Amounts::cpu_memory(1_500, 1_000);
        assert_eq!(host.allocatable(Dim::CPU_MILLIS), 12_000);
        assert_eq!(host.allocatable(Dim::MEMORY_MIB), 0, "reserved more than there is");
    }
}
