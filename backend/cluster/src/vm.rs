//! A VM: the thing that is placed.

use crate::{Affinity, Amounts, Labels, Name, Selector, Spread, Toleration, Topology};
use serde::{Deserialize, Serialize};

/// A VM's name: unique within its tenant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct VmKey {
    pub tenant: Name,
    pub id: Name,
}

impl VmKey {
    /// A key in the tenant that is used when none is named.
    pub fn in_default_tenant(id: Name) -> Self {
        let tenant = Name::new("default").expect("a constant that is a valid name");
        Self { tenant, id }
    }

    /// Whether it names a stand-in and not a VM: what a VM under way has on the other host. Ids
    /// that begin like this are never given to VMs.
    pub fn is_stand_in(&self) -> bool {
        self.id.as_str().starts_with(STAND_IN)
    }

    /// A stand-in of this tenant; whoever makes several gives them different numbers.
    pub fn stand_in(tenant: Name, first: u64, second: usize) -> Self {
        let id = Name::new(&format!("{STAND_IN}{first}-{second}"));
        Self { tenant, id: id.expect("a prefix that is a name, digits and a hyphen") }
    }
}

/// How ids of stand-ins begin.
const STAND_IN: &str = "moving@";

impl std::fmt::Display for VmKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.tenant, self.id)
    }
}

/// What a VM asks for. Where it is, is the engine's state.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Vm {
    pub key: VmKey,
    pub demand: Amounts,
    pub cpu_unit: CpuUnit,
    /// `None` may use hosts of every pool.
    pub pool: Option<Name>,
    pub priority: PriorityClass,
    pub qos: Qos,
    pub labels: Labels,
    /// Groups of its tenant that the VM is a member of.
    pub groups: Vec<Name>,
    pub selectors: Vec<Selector>,
    pub tolerations: Vec<Toleration>,
    pub affinities: Vec<Affinity>,
    pub spreads: Vec<Spread>,
    pub preferred_hosts: Vec<Name>,
    pub excluded_hosts: Vec<Name>,
    /// Datastores that the host must reach, all of them.
    pub datastores: Vec<Name>,
    /// Where the VM's data is; nearness counts in the locality part of the score.
    pub data: Vec<DataRef>,
    pub hints: Hints,
    pub migratability: Migratability,
    /// May be taken back when capacity is needed.
    pub spot: bool,
    pub restart: RestartPolicy,
    /// What it needs inside its host; `None` may float over all of it.
    pub topology: Option<Box<Topology>>,
}

impl Vm {
    /// A VM with this demand and no wishes.
    pub fn new(key: VmKey, demand: Amounts) -> Self {
        Self {
            key,
            demand,
            cpu_unit: CpuUnit::Raw,
            pool: None,
            priority: PriorityClass::Normal,
            qos: Qos::Burstable,
            labels: Labels::default(),
            groups: Vec::new(),
            selectors: Vec::new(),
            tolerations: Vec::new(),
            affinities: Vec::new(),
            spreads: Vec::new(),
            preferred_hosts: Vec::new(),
            excluded_hosts: Vec::new(),
            datastores: Vec::new(),
            data: Vec::new(),
            hints: Hints::default(),
            migratability: Migratability::Live,
            spot: false,
            restart: RestartPolicy::Always,
            topology: None,
        }
    }
}

/// Whether `cpu_millis` counts cores as they are or cores of the reference machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CpuUnit {
    #[default]
    Raw,
    /// Divided by the host's benchmark factor, rounded up: fewer raw cores on a faster host.
    Normalised,
}

/// Who goes first when capacity is short; earlier variants outrank later ones.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub enum PriorityClass {
    Critical,
    High,
    #[default]
    Normal,
    Low,
    Scavenger,
}

/// What the VM was promised of its demand.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub enum Qos {
    Guaranteed,
    #[default]
    Burstable,
    BestEffort,
}

/// A piece of the VM's data and its share of what the VM reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DataRef {
    pub site: DataSite,
    /// Weight against the VM's other pieces, 1 to 1000.
    pub weight: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DataSite {
    Host(Name),
    Rack(Name),
    Zone(Name),
    Region(Name),
    /// Near means that the host reaches it.
    Datastore(Name),
}

/// What the caller knows and the service cannot: never stronger than a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hints {
    /// How long the VM is expected to live.
    pub expected_lifetime_s: Option<u64>,
    /// VMs of the same tenant to be near to.
    pub colocate_with: Vec<Name>,
    /// The region its users are in.
    pub user_region: Option<Name>,
    /// Load comes in bursts: prefer hosts with headroom.
    pub bursty: bool,
}

/// How the VM may be moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Migratability {
    #[default]
    Live,
    Cold,
    Pinned,
}

/// What to do with the VM after its host or it failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RestartPolicy {
    #[default]
    Always,
    OnFailure,
    Never,
}
