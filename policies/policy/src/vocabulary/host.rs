//! Attributes of hosts.

use super::{Unit, gpu_dimension};
use crate::{Path, Value};
use cluster::{Dim, Dimensions, Host, HostState, Power, PriceKind};
use smol_str::SmolStr;

/// A host with what is known of its load.
#[derive(Clone, Copy)]
pub struct HostView<'a> {
    pub host: &'a Host,
    /// What VMs were promised of each dimension.
    pub used: &'a dyn Fn(Dim) -> u64,
    pub vm_count: u64,
}

impl std::fmt::Debug for HostView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostView").field("host", &self.host.id).finish_non_exhaustive()
    }
}

/// An attribute whose name has been understood.
#[derive(Clone, Debug, PartialEq)]
#[expect(private_interfaces, reason = "how amounts are scaled is nobody else's business")]
pub enum HostField {
    /// Not one of ours: its value is null.
    Unknown,
    Id,
    Pool,
    Region,
    Zone,
    Datacenter,
    Rack,
    PowerFeed,
    State,
    Label(SmolStr),
    NumberLabel(SmolStr),
    Capacity(Unit),
    Allocatable(Unit),
    Allocated(Unit),
    Free(Unit),
    Utilisation(Unit),
    GpuCount(Option<Dim>),
    HasGpu(Option<Dim>),
    Capability(SmolStr),
    LatencyMs(SmolStr),
    VmCount,
    CostPerHour,
    PriceKind,
    Benchmark,
    FailurePerYear,
    PowerWatts,
    PowerIdleWatts,
    PowerPeakWatts,
    PowerEfficiency,
    PowerUtilization,
    MaintenanceScheduled,
}

impl HostField {
    /// Understands a path of `candidateNode` or `sourceNode`.
    pub fn resolve(path: &Path, dimensions: &Dimensions) -> Self {
        Self::named(path, &|name| dimensions.find(name))
    }

    pub(super) fn named(path: &Path, find: &dyn Fn(&str) -> Option<Dim>) -> Self {
        let keys: Vec<&str> = path.keys.iter().map(SmolStr::as_str).collect();
        match keys.as_slice() {
            [name] => Self::simple(name),
            ["labels", key] => HostField::Label(SmolStr::new(key)),
            ["capabilities", "gpu"] => HostField::HasGpu(gpu_dimension(find)),
            ["capabilities", name] => HostField::Capability(SmolStr::new(name)),
            ["latency_ms", region] => HostField::LatencyMs(SmolStr::new(region)),
            ["resources", rest @ ..] => Self::resource(&rest.join("."), find),
            ["metrics", rest @ ..] => Self::metric(&rest.join(".")),
            [amount, dimension] => match find(dimension).map(Unit::plain) {
                Some(unit) => Self::amount(amount, unit),
                None => HostField::Unknown,
            },
            _ => HostField::Unknown,
        }
    }

    fn simple(name: &str) -> Self {
        match name {
            "id" => HostField::Id,
            "pool" => HostField::Pool,
            "region" => HostField::Region,
            "zone" => HostField::Zone,
            "datacenter" => HostField::Datacenter,
            "rack" => HostField::Rack,
            "power_feed" => HostField::PowerFeed,
            "state" => HostField::State,
            "total_cpu_cores" | "cpu" => HostField::Allocatable(Unit::CORES),
            "used_cpu_cores" | "used_cpu" => HostField::Allocated(Unit::CORES),
            "available_cpu" => HostField::Free(Unit::CORES),
            "total_memory_gb" => HostField::Allocatable(Unit::MEMORY_GIB),
            "used_memory_gb" => HostField::Allocated(Unit::MEMORY_GIB),
            "memory" => HostField::Allocatable(Unit::MEMORY_MIB),
            "used_memory" => HostField::Allocated(Unit::MEMORY_MIB),
            "available_memory" => HostField::Free(Unit::MEMORY_MIB),
            "network_bandwidth" => HostField::Allocatable(Unit::plain(Dim::NET_MBPS)),
            "network_performance_score" => HostField::NumberLabel(SmolStr::new(name)),
            "maintenance_window" => HostField::Label(SmolStr::new(name)),
            "maintenance_scheduled" => HostField::MaintenanceScheduled,
            "vm_count" => HostField::VmCount,
            "cost_per_hour" => HostField::CostPerHour,
            "price_kind" => HostField::PriceKind,
            "benchmark" => HostField::Benchmark,
            "failure_per_year" => HostField::FailurePerYear,
            "power_watts" => HostField::PowerWatts,
            "power_idle_watts" => HostField::PowerIdleWatts,
            "power_peak_watts" => HostField::PowerPeakWatts,
            "power_efficiency" => HostField::PowerEfficiency,
            "power_utilization" => HostField::PowerUtilization,
            _ => HostField::Unknown,
        }
    }

    fn amount(name: &str, unit: Unit) -> Self {
        match name {
            "capacity" => HostField::Capacity(unit),
            "allocatable" => HostField::Allocatable(unit),
            "allocated" => HostField::Allocated(unit),
            "free" => HostField::Free(unit),
            "utilisation" => HostField::Utilisation(unit),
            _ => HostField::Unknown,
        }
    }

    fn resource(name: &str, find: &dyn Fn(&str) -> Option<Dim>) -> Self {
        let Some((resource, amount)) = name.rsplit_once('.') else { return HostField::Unknown };
        if (resource, amount) == ("gpu", "capacity") {
            return HostField::GpuCount(gpu_dimension(find));
        }
        let gpus = || gpu_dimension(find).filter(|_| resource == "gpu").map(Unit::plain);
        match (Unit::resource(resource).or_else(gpus), amount) {
            (Some(unit), "capacity") => HostField::Allocatable(unit),
            (Some(unit), "used") => HostField::Allocated(unit),
            (Some(unit), "available") => HostField::Free(unit),
            _ => HostField::Unknown,
        }
    }

    fn metric(name: &str) -> Self {
        if let Some(region) = name.strip_prefix("network.latency.to.") {
            return HostField::LatencyMs(SmolStr::new(region));
        }
        let resource = name.strip_suffix(".utilization").and_then(Unit::resource);
        resource.map_or(HostField::Unknown, HostField::Utilisation)
    }

    /// Whether the value changes when a VM comes to the host or leaves it.
    pub fn follows_load(&self) -> bool {
        matches!(
            self,
            HostField::Allocated(_)
                | HostField::Free(_)
                | HostField::Utilisation(_)
                | HostField::VmCount
                | HostField::PowerWatts
                | HostField::PowerUtilization
        )
    }

    /// The value for one host.
    pub fn value(&self, view: &HostView<'_>) -> Value {
        let host = view.host;
        let text = |name: Option<&cluster::Name>| Value::from(name.map(|name| name.as_str()));
        let label = |key: &str| host.labels.get(key).map(|value| value.as_str());
        match self {
            HostField::Unknown => Value::Null,
            HostField::Id => Value::text(host.id.as_str()),
            HostField::Pool => text(host.pool.as_ref()),
            HostField::Region => text(host.location.region.as_ref()),
            HostField::Zone => text(host.location.zone.as_ref()),
            HostField::Datacenter => {
                text(host.labels.get("datacenter").or(host.location.zone.as_ref()))
            }
            HostField::Rack => text(host.location.rack.as_ref()),
            HostField::PowerFeed => text(host.location.power_feed.as_ref()),
            HostField::State => Value::text(state_name(host.state)),
            HostField::Label(key) => label(key).into(),
            HostField::NumberLabel(key) => {
                label(key).and_then(|value| value.parse::<f64>().ok()).into()
            }
            HostField::Capacity(unit) => unit.of(host.capacity.get(unit.dim)).into(),
            HostField::Allocatable(unit) => unit.of(host.allocatable(unit.dim)).into(),
            HostField::Allocated(unit) => unit.of((view.used)(unit.dim)).into(),
            HostField::Free(unit) => {
                let free = host.allocatable(unit.dim).saturating_sub((view.used)(unit.dim));
                unit.of(free).into()
            }
            HostField::Utilisation(unit) => {
                share(100.0 * (view.used)(unit.dim) as f64, host.allocatable(unit.dim) as f64)
            }
            HostField::GpuCount(dim) => Value::from(gpus(host, *dim)),
            HostField::HasGpu(dim) => {
                Value::Bool(gpus(host, *dim) > 0 || label("gpu") == Some("true"))
            }
            HostField::Capability(name) => {
                let kinds = &host.hardware.accelerators;
                if kinds.iter().any(|found| found.kind.as_str() == name && found.count > 0) {
                    return Value::Bool(true);
                }
                label(name).and_then(|value| value.parse::<bool>().ok()).into()
            }
            HostField::LatencyMs(region) => {
                let found = host.latencies.iter().find(|found| found.region.as_str() == region);
                found.map(|found| f64::from(found.latency_us) / 1000.0).into()
            }
            HostField::VmCount => view.vm_count.into(),
            HostField::CostPerHour => (host.price.micros_per_hour as f64 / 1e6).into(),
            HostField::PriceKind => Value::text(match host.price.kind {
                PriceKind::OnDemand => "on_demand",
                PriceKind::Spot => "spot",
                PriceKind::Reserved => "reserved",
            }),
            HostField::Benchmark => (host.speed_permille() as f64 / 1000.0).into(),
            HostField::FailurePerYear => (f64::from(host.failure_ppm_per_year) / 1e6).into(),
            HostField::PowerWatts => present(watts(view)),
            HostField::PowerIdleWatts => present(idle_and_peak(&host.power).0),
            HostField::PowerPeakWatts => present(idle_and_peak(&host.power).1),
            HostField::PowerEfficiency => {
                let (idle, peak) = idle_and_peak(&host.power);
                share(peak - idle, peak)
            }
            HostField::PowerUtilization => share(100.0 * watts(view), idle_and_peak(&host.power).1),
            HostField::MaintenanceScheduled => Value::Bool(
                matches!(host.state, HostState::Maintenance | HostState::Draining)
                    || label("maintenance_scheduled") == Some("true"),
            ),
        }
    }
}

fn state_name(state: HostState) -> &'static str {
    match state {
        HostState::Available => "available",
        HostState::Cordoned => "cordoned",
        HostState::Draining => "draining",
        HostState::Maintenance => "maintenance",
        HostState::Down => "down",
    }
}

/// Devices where they are listed, else what the dimension that counts them says.
fn gpus(host: &Host, dim: Option<Dim>) -> u64 {
    match host.hardware.gpus.len() {
        0 => dim.map_or(0, |dim| host.capacity.get(dim)),
        devices => devices as u64,
    }
}

fn share(part: f64, whole: f64) -> Value {
    if whole > 0.0 { Value::number(part / whole) } else { Value::Null }
}

/// A host that reports no power draws an unknown amount, not none.
fn present(watts: f64) -> Value {
    if watts > 0.0 { Value::Number(watts) } else { Value::Null }
}

fn idle_and_peak(power: &Power) -> (f64, f64) {
    let (idle, peak) = match power {
        Power::Linear { idle_mw, peak_mw } => (*idle_mw, *peak_mw),
        Power::Table(readings) => {
            (readings.first().copied().unwrap_or(0), readings.last().copied().unwrap_or(0))
        }
    };
    (f64::from(idle) / 1000.0, f64::from(peak) / 1000.0)
}

/// Power at the present CPU load, between readings on a straight line.
fn watts(view: &HostView<'_>) -> f64 {
    let allocatable = view.host.allocatable(Dim::CPU_MILLIS);
    let used = (view.used)(Dim::CPU_MILLIS).min(allocatable);
    let load = if allocatable == 0 { 0.0 } else { used as f64 / allocatable as f64 };
    let (low, high, part) = match &view.host.power {
        Power::Linear { idle_mw, peak_mw } => (*idle_mw, *peak_mw, load),
        Power::Table(readings) => {
            let tenth = ((load * 10.0) as usize).min(9);
            let at = |row: usize| readings.get(row).copied().unwrap_or(0);
            (at(tenth), at(tenth + 1), load * 10.0 - tenth as f64)
        }
    };
    (f64::from(low) + (f64::from(high) - f64::from(low)) * part) / 1000.0
}
