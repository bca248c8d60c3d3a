//! The attributes that the service itself fills in, and how they are read from the live fleet.
//!
//! Names are matched once, when the active policies change: a `HostField` or `VmField` then reads
//! its value without looking at text. Callers of the policy API may send attributes of their own;
//! those are theirs to look up.

mod host;
mod vm;

pub use host::{HostField, HostView};
pub use vm::VmField;

use crate::diagnostic::nearest;
use crate::{Path, Root, Value};
use cluster::{Dim, Dimensions, Host, Vm};

/// One attribute as it is listed for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Attribute {
    /// Without its root; `<..>` stands for a name.
    pub name: &'static str,
    pub kind: &'static str,
    pub meaning: &'static str,
}

const fn attribute(name: &'static str, kind: &'static str, meaning: &'static str) -> Attribute {
    Attribute { name, kind, meaning }
}

/// Of `candidateNode` and `sourceNode`.
pub const HOST: &[Attribute] = &[
    attribute("id", "string", "the host's id"),
    attribute("pool", "string", "the pool it belongs to"),
    attribute("region", "string", "its region"),
    attribute("zone", "string", "its zone"),
    attribute("datacenter", "string", "its label datacenter, or else its zone"),
    attribute("rack", "string", "its rack"),
    attribute("power_feed", "string", "its power feed"),
    attribute("state", "string", "available, cordoned, draining, maintenance or down"),
    attribute("labels[\"<key>\"]", "string", "a label"),
    attribute("capacity.<dimension>", "number", "what the machine has"),
    attribute("allocatable.<dimension>", "number", "less what is kept back, times overcommit"),
    attribute("allocated.<dimension>", "number", "what its VMs were promised"),
    attribute("free.<dimension>", "number", "allocatable less allocated"),
    attribute("utilisation.<dimension>", "number", "allocated in percent of allocatable"),
    attribute("total_cpu_cores", "number", "allocatable cores"),
    attribute("cpu", "number", "the same as total_cpu_cores"),
    attribute("used_cpu_cores", "number", "allocated cores"),
    attribute("used_cpu", "number", "the same as used_cpu_cores"),
    attribute("available_cpu", "number", "free cores"),
    attribute("total_memory_gb", "number", "allocatable memory in GiB"),
    attribute("used_memory_gb", "number", "allocated memory in GiB"),
    attribute("memory", "number", "allocatable memory in MiB"),
    attribute("used_memory", "number", "allocated memory in MiB"),
    attribute("available_memory", "number", "free memory in MiB"),
    attribute(
        "resources[\"<resource>.<amount>\"]",
        "number",
        "cpu in cores, memory in MiB, disk in GiB, network in Mbit/s, gpu in devices; capacity, used or available",
    ),
    attribute(
        "metrics[\"<resource>.utilization\"]",
        "number",
        "allocated in percent of allocatable, for cpu, memory, disk and network",
    ),
    attribute(
        "metrics[\"network.latency.to.<region>\"]",
        "number",
        "milliseconds to a user region",
    ),
    attribute("latency_ms[\"<region>\"]", "number", "the same"),
    attribute(
        "capabilities.<name>",
        "bool",
        "gpu: whether it has any; others: an accelerator of that kind, or a label of that name that is true or false",
    ),
    attribute("vm_count", "number", "VMs on it, held ones included"),
    attribute("cost_per_hour", "number", "what an hour of it costs, in currency units"),
    attribute("price_kind", "string", "on_demand, spot or reserved"),
    attribute("benchmark", "number", "speed of a core against the reference, 1 being equal"),
    attribute("failure_per_year", "number", "chance to fail within a year, 0 to 1"),
    attribute("network_bandwidth", "number", "allocatable network in Mbit/s"),
    attribute("network_performance_score", "number", "its label of that name, as a number"),
    attribute("power_watts", "number", "power drawn at the present CPU load"),
    attribute("power_idle_watts", "number", "power drawn by an idle machine"),
    attribute("power_peak_watts", "number", "power drawn under full load"),
    attribute(
        "power_efficiency",
        "number",
        "share of the peak power that an idle machine saves, 0 to 1",
    ),
    attribute("power_utilization", "number", "power drawn in percent of the peak"),
    attribute(
        "maintenance_scheduled",
        "bool",
        "draining, in maintenance, or its label of that name is true",
    ),
    attribute("maintenance_window", "string", "its label of that name"),
];

/// Of `vm`.
pub const VM: &[Attribute] = &[
    attribute("id", "string", "the VM's id"),
    attribute("name", "string", "its label name, or else its id"),
    attribute("tenant", "string", "whose it is"),
    attribute("type", "string", "its label type"),
    attribute("labels[\"<key>\"]", "string", "a label"),
    attribute("groups[\"<name>\"]", "bool", "whether it is a member of the group"),
    attribute("demand.<dimension>", "number", "what it asks for"),
    attribute("cpu_cores", "number", "cores it asks for"),
    attribute("cpu", "number", "the same as cpu_cores"),
    attribute("memory_gb", "number", "memory it asks for, in GiB"),
    attribute("memory", "number", "memory it asks for, in MiB"),
    attribute(
        "resource_requests.<resource>",
        "number",
        "cpu in cores, memory in MiB, disk in GiB, network in Mbit/s, gpu in devices",
    ),
    attribute("metrics[\"disk.used\"]", "number", "disk it asks for, in GiB"),
    attribute("priority", "number", "critical 100, high 75, normal 50, low 25, scavenger 0"),
    attribute("priority_class", "string", "critical, high, normal, low or scavenger"),
    attribute("qos", "string", "guaranteed, burstable or best_effort"),
    attribute("pool", "string", "the pool it asks for"),
    attribute("spot", "bool", "may be taken back when capacity is needed"),
    attribute("bursty", "bool", "its load comes in bursts"),
    attribute("user_region", "string", "where its users are"),
    attribute("expected_lifetime_s", "number", "how long it is expected to live"),
    attribute("migratability", "string", "live, cold or pinned"),
    attribute("created_at", "string", "its label of that name"),
];

/// An attribute of a host. For many hosts, resolve `HostField` once instead.
pub fn host_value(
    host: &Host,
    used: &dyn Fn(Dim) -> u64,
    vm_count: u64,
    dimensions: &Dimensions,
    path: &Path,
) -> Value {
    HostField::resolve(path, dimensions).value(&HostView { host, used, vm_count })
}

/// An attribute of a VM.
pub fn vm_value(vm: &Vm, dimensions: &Dimensions, path: &Path) -> Value {
    VmField::resolve(path, dimensions).value(vm)
}

/// `Some` when the service fills in no such attribute, with the nearest one that it does.
pub(crate) fn misspelt(path: &Path) -> Option<Option<String>> {
    let any_dimension = |_: &str| Some(Dim::CPU_MILLIS);
    let (known, list) = match path.root {
        Root::Vm => (VmField::named(path, &any_dimension) != VmField::Unknown, VM),
        _ => (HostField::named(path, &any_dimension) != HostField::Unknown, HOST),
    };
    if known {
        return None;
    }
    let first = path.keys.first().map_or("", |key| key.as_str());
    let names = list.iter().map(|attribute| stem(attribute.name));
    // The right word with the wrong thing behind it is not a slip of the keyboard.
    let near = nearest(first, names).filter(|name| *name != first);
    Some(near.map(|name| format!("{}.{name}", path.root.name())))
}

fn stem(name: &str) -> &str {
    name.split(['.', '[']).next().unwrap_or(name)
}

/// The dimensions that may count GPUs, the first that is declared does.
fn gpu_dimension(find: &dyn Fn(&str) -> Option<Dim>) -> Option<Dim> {
    ["gpu", "gpus", "gpu_slots", "gpu_count"].iter().find_map(|name| find(name))
}

/// An amount in the unit that its name promises.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Unit {
    pub(crate) dim: Dim,
    pub(crate) per: f64,
}

impl Unit {
    const CORES: Unit = Unit { dim: Dim::CPU_MILLIS, per: 1000.0 };
    const MEMORY_MIB: Unit = Unit { dim: Dim::MEMORY_MIB, per: 1.0 };
    const MEMORY_GIB: Unit = Unit { dim: Dim::MEMORY_MIB, per: 1024.0 };

    fn plain(dim: Dim) -> Self {
        Self { dim, per: 1.0 }
    }

    /// The built-in resource that NovaCron calls by this name.
    fn resource(name: &str) -> Option<Self> {
        Some(match name {
            "cpu" => Self::CORES,
            "memory" => Self::MEMORY_MIB,
            "disk" | "storage" => Self::plain(Dim::DISK_GIB),
            "network" => Self::plain(Dim::NET_MBPS),
            _ => return None,
        })
    }

    fn of(self, amount: u64) -> f64 {
        amount as f64 / self.per
    }
}
