//! Nodes and VMs as the open maps that NovaCron's policies are evaluated over.
//!
//! Attributes are looked up as they were sent. For simulations a map also stands for a host or a
//! VM: whatever of it has a place there is translated, under each of the names that NovaCron's
//! samples use.

use super::free::Json;
use super::go::{fault, id};
use super::labels::label_name;
use crate::fault::{Fault, code};
use cluster::{
    Amounts, Dim, Dimensions, Foreign, Host, HostState, MAX_AMOUNT, Name, Power, Price, PriceKind,
    PriorityClass, RegionLatency, Vm, VmKey,
};
use policy::{Path, Value};

/// The dimensions that maps have amounts in: the built-in ones and GPUs.
pub fn map_dimensions() -> Dimensions {
    let gpu = Name::new("gpu").ok().into_iter().collect();
    Dimensions::with_extra(gpu).unwrap_or_default()
}

impl Json {
    /// An attribute of this map; null where there is none.
    ///
    /// Keys with dots may be written as one key or as maps within maps.
    pub fn attribute(&self, path: &Path) -> Value {
        let keys: Vec<&str> = path.keys.iter().map(|key| key.as_str()).collect();
        self.find(&keys).map_or(Value::Null, Json::to_value)
    }

    fn find(&self, keys: &[&str]) -> Option<&Json> {
        let (first, rest) = match keys {
            [] => return Some(self),
            ["id"] => return self.get("id").or_else(|| self.get("node_id")),
            [first, rest @ ..] => (first, rest),
        };
        match self.get(first).and_then(|inner| inner.find(rest)) {
            Some(found) => Some(found),
            None if rest.is_empty() => None,
            None => self.get(&keys.join(".")),
        }
    }

    /// The id of a node or VM; empty where there is none.
    pub fn map_id(&self) -> &str {
        let names = ["id", "node_id", "vm_id", "ID", "NodeID"];
        names.iter().find_map(|name| self.get(name)?.as_str()).unwrap_or_default()
    }

    /// The first of these keys that has a number.
    fn number(&self, keys: &[&[&str]]) -> Option<f64> {
        keys.iter().find_map(|keys| self.find(keys)?.as_f64())
    }

    fn name(&self, path: &str, keys: &[&str]) -> Result<Option<Name>, Fault> {
        match self.find(keys).and_then(Json::as_str).filter(|text| !text.is_empty()) {
            None => Ok(None),
            Some(text) => label(&format!("{path}.{}", keys.join(".")), text).map(Some),
        }
    }
}

fn label(path: &str, text: &str) -> Result<Name, Fault> {
    let long = || fault(path, code::STRING_TOO_LONG, "is too long for a label", "shorten it");
    label_name(text).ok_or_else(long)
}

/// `number` times `unit`, rounded up, as an amount.
fn amount(path: &str, number: f64, unit: f64) -> Result<u64, Fault> {
    let whole = (number * unit).ceil();
    if (0.0..=MAX_AMOUNT as f64).contains(&whole) {
        return Ok(whole as u64);
    }
    let hint = format!("send 0 to {}", MAX_AMOUNT as f64 / unit);
    Err(fault(path, code::NUMBER_TOO_LARGE, format!("{number} is out of range"), hint))
}

/// Names of an amount, each with what one of it is in the cluster's unit.
type Names<'a> = &'a [(&'a [&'a str], f64)];

fn named(map: &Json, path: &str, names: Names<'_>) -> Result<Option<u64>, Fault> {
    for (keys, unit) in names {
        if let Some(number) = map.number(&[keys]) {
            return amount(&format!("{path}.{}", keys.join(".")), number, *unit).map(Some);
        }
    }
    Ok(None)
}

const TOTALS: [(Dim, Names<'static>); 4] = [
    (
        Dim::CPU_MILLIS,
        &[
            (&["total_cpu_cores"], 1000.0),
            (&["total_cpu"], 1000.0),
            (&["cpu_cores"], 1000.0),
            (&["cpu"], 1000.0),
            (&["resources", "cpu.capacity"], 1000.0),
        ],
    ),
    (
        Dim::MEMORY_MIB,
        &[
            (&["total_memory_gb"], 1024.0),
            (&["total_memory_mb"], 1.0),
            (&["memory_gb"], 1024.0),
            (&["memory"], 1.0),
            (&["resources", "memory.capacity"], 1.0),
        ],
    ),
    (Dim::DISK_GIB, &[(&["total_disk_gb"], 1.0), (&["disk_gb"], 1.0), (&["disk"], 1.0)]),
    (Dim::NET_MBPS, &[(&["network_bandwidth"], 1.0), (&["network_mbps"], 1.0)]),
];

const USES: [(Dim, Names<'static>); 3] = [
    (Dim::CPU_MILLIS, &[(&["used_cpu_cores"], 1000.0), (&["used_cpu"], 1000.0)]),
    (
        Dim::MEMORY_MIB,
        &[(&["used_memory_gb"], 1024.0), (&["used_memory_mb"], 1.0), (&["used_memory"], 1.0)],
    ),
    (Dim::DISK_GIB, &[(&["used_disk_gb"], 1.0), (&["used_disk"], 1.0)]),
];

const FREE: [(Dim, Names<'static>); 2] = [
    (Dim::CPU_MILLIS, &[(&["available_cpu"], 1000.0), (&["resources", "cpu.available"], 1000.0)]),
    (Dim::MEMORY_MIB, &[(&["available_memory"], 1.0), (&["resources", "memory.available"], 1.0)]),
];

const GPUS: [&[&str]; 3] = [&["resources", "gpu.capacity"], &["gpus"], &["gpu"]];

/// The host that a node's map stands for, with what it says is in use as others' use.
pub fn host_of_map(path: &str, map: &Json, dimensions: &Dimensions) -> Result<Host, Fault> {
    let mut capacity = Amounts::zero();
    for (dim, names) in TOTALS {
        capacity.set(dim, named(map, path, names)?.unwrap_or(0));
    }
    if let Some(gpu) = dimensions.find("gpu") {
        let has = map.find(&["capabilities", "gpu"]).and_then(Json::as_bool);
        let count = map.number(&GPUS).or_else(|| has.map(|has| f64::from(u8::from(has))));
        let path = format!("{path}.resources[\"gpu.capacity\"]");
        capacity.set(gpu, amount(&path, count.unwrap_or(0.0), 1.0)?);
    }
    let mut used = Amounts::zero();
    for (dim, names) in USES {
        used.set(dim, named(map, path, names)?.unwrap_or(0));
    }
    for (dim, names) in FREE {
        if let Some(free) = named(map, path, names)?.filter(|_| used.get(dim) == 0) {
            if capacity.get(dim) == 0 {
                capacity.set(dim, free);
            }
            used.set(dim, capacity.get(dim).saturating_sub(free));
        }
    }
    let mut host = Host::new(id(&format!("{path}.id"), map.map_id())?, capacity);
    let vms = map.number(&[&["vm_count"]]).unwrap_or(0.0).clamp(0.0, 1e6) as u32;
    host.foreign = Foreign { used, vms };
    describe(path, map, &mut host)?;
    Ok(host)
}

/// Everything about a host that is not an amount.
fn describe(path: &str, map: &Json, host: &mut Host) -> Result<(), Fault> {
    host.labels = labels(path, map)?;
    let mut labelled = |key: &str, value: Option<Name>| {
        if let (Ok(key), Some(value)) = (Name::new(key), value) {
            host.labels.insert(key, value);
        }
    };
    labelled("datacenter", map.name(path, &["datacenter"])?);
    labelled("maintenance_window", map.name(path, &["maintenance_window"])?);
    for key in ["maintenance_scheduled", "network_performance_score"] {
        let scalar = map.get(key).filter(|value| !matches!(value, Json::Null));
        labelled(key, scalar.and_then(|value| label_name(&plain(value))));
    }
    if let Some(Json::Object(capabilities)) = map.get("capabilities") {
        for (name, value) in capabilities.iter().filter(|(name, _)| name != "gpu") {
            labelled(name, value.as_bool().and_then(|it| label_name(&it.to_string())));
        }
    }
    host.pool = map.name(path, &["pool"])?;
    host.location.region = map.name(path, &["region"])?;
    host.location.zone = map.name(path, &["zone"])?;
    host.location.rack = map.name(path, &["rack"])?;
    let state = map.get("status").or_else(|| map.get("state")).and_then(Json::as_str);
    host.state = match state {
        None | Some("available" | "ready" | "active") => HostState::Available,
        Some("draining") => HostState::Draining,
        Some("maintenance") => HostState::Maintenance,
        Some("down" | "offline") => HostState::Down,
        Some(_) => HostState::Cordoned,
    };
    if let Some(price) = map.number(&[&["cost_per_hour"], &["cost"]]) {
        let micros = (price.clamp(0.0, 1e9) * 1e6) as u64;
        host.price = Price { kind: PriceKind::OnDemand, micros_per_hour: micros };
    }
    host.power = power(map);
    if let Some(Json::Object(metrics)) = map.get("metrics") {
        for (name, value) in metrics {
            let region = name.strip_prefix("network.latency.to.").and_then(label_name);
            if let (Some(region), Some(millis)) = (region, value.as_f64()) {
                let latency_us = (millis.clamp(0.0, 1e6) * 1e3) as u32;
                host.latencies.push(RegionLatency { region, latency_us });
            }
        }
    }
    Ok(())
}

/// The share of the peak that an idle machine saves is all that NovaCron's maps tell of power.
fn power(map: &Json) -> Power {
    let watts = |key: &str| map.number(&[&[key]]).map(|it| (it.clamp(0.0, 4e6) * 1e3) as u32);
    if let Some(peak_mw) = watts("power_peak_watts") {
        let idle_mw = watts("power_idle_watts").unwrap_or(0);
        return Power::Linear { idle_mw, peak_mw };
    }
    match map.number(&[&["power_efficiency"]]) {
        Some(saved) => {
            let idle_mw = ((1.0 - saved.clamp(0.0, 1.0)) * 1e6) as u32;
            Power::Linear { idle_mw, peak_mw: 1_000_000 }
        }
        None => Power::default(),
    }
}

fn plain(value: &Json) -> String {
    value.as_str().map_or_else(|| value.describe(), str::to_owned)
}

fn labels(path: &str, map: &Json) -> Result<cluster::Labels, Fault> {
    let Some(Json::Object(members)) = map.get("labels") else { return Ok(Default::default()) };
    let pair = |(key, value): &(String, Json)| {
        let path = format!("{path}.labels[{key:?}]");
        Ok((label(&path, key)?, label(&path, &plain(value))?))
    };
    members.iter().map(pair).collect()
}

const DEMANDS: [(Dim, Names<'static>); 4] = [
    (
        Dim::CPU_MILLIS,
        &[(&["cpu_cores"], 1000.0), (&["cpu"], 1000.0), (&["resource_requests", "cpu"], 1000.0)],
    ),
    (
        Dim::MEMORY_MIB,
        &[
            (&["memory_gb"], 1024.0),
            (&["memory_mb"], 1.0),
            (&["memory"], 1.0),
            (&["resource_requests", "memory"], 1.0),
        ],
    ),
    (Dim::DISK_GIB, &[(&["disk_gb"], 1.0), (&["disk_size_gb"], 1.0), (&["disk"], 1.0)]),
    (Dim::NET_MBPS, &[(&["network_mbps"], 1.0)]),
];

/// The VM that a map stands for.
pub fn vm_of_map(path: &str, map: &Json, dimensions: &Dimensions) -> Result<Vm, Fault> {
    let mut demand = Amounts::zero();
    for (dim, names) in DEMANDS {
        demand.set(dim, named(map, path, names)?.unwrap_or(0));
    }
    if let Some(gpu) = dimensions.find("gpu") {
        let keys: [&[&str]; 2] = [&["resource_requests", "gpu"], &["gpu"]];
        let count = map.number(&keys).unwrap_or(0.0);
        demand.set(gpu, amount(&format!("{path}.resource_requests.gpu"), count, 1.0)?);
    }
    let key = VmKey::in_default_tenant(id(&format!("{path}.id"), map.map_id())?);
    let mut vm = Vm::new(key, demand);
    vm.labels = labels(path, map)?;
    for key in ["name", "type", "created_at"] {
        if let (Ok(label), Some(value)) = (Name::new(key), map.name(path, &[key])?) {
            vm.labels.insert(label, value);
        }
    }
    vm.spot = map.get("spot").and_then(Json::as_bool).unwrap_or(false);
    vm.pool = map.name(path, &["pool"])?;
    vm.hints.user_region = map.name(path, &["user_region"])?;
    vm.priority = match map.number(&[&["priority"]]) {
        None => PriorityClass::Normal,
        Some(it) if it >= 100.0 => PriorityClass::Critical,
        Some(it) if it >= 75.0 => PriorityClass::High,
        Some(it) if it >= 50.0 => PriorityClass::Normal,
        Some(it) if it >= 25.0 => PriorityClass::Low,
        Some(_) => PriorityClass::Scavenger,
    };
    Ok(vm)
}
