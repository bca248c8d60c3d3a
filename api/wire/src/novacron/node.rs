//! Nodes: NovaCron's scheduler entries and its runtime's list, and the hosts they stand for.

use super::go::{amount, go_struct, id, is_zero, no_entries};
use super::labels::{label_name, label_text, to_labels};
use crate::fault::Fault;
use cluster::{Amounts, Dim, Host, HostState, Location, Name};
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Where a status that no host state stands for is kept, so that it is shown again.
const STATUS_LABEL: &str = "novacron/status";

/// Host states by the status that NovaCron writes. Everything else takes no VMs either.
const STATUSES: [(&str, HostState); 6] = [
    ("available", HostState::Available),
    ("cordoned", HostState::Cordoned),
    ("draining", HostState::Draining),
    ("maintenance", HostState::Maintenance),
    ("down", HostState::Down),
    ("offline", HostState::Down),
];

/// A node as NovaCron's VM scheduler keeps it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::NodeResourceInfo)]
pub struct NodeResourceInfo {
    pub node_id: String,
    /// Cores.
    pub total_cpu: i64,
    pub used_cpu: i64,
    pub total_memory_mb: i64,
    pub used_memory_mb: i64,
    pub total_disk_gb: i64,
    pub used_disk_gb: i64,
    /// From 0 to 100. Set by the service; what is sent is ignored.
    pub cpu_usage_percent: f64,
    pub memory_usage_percent: f64,
    pub disk_usage_percent: f64,
    pub vm_count: i64,
    /// Only `available` takes VMs.
    pub status: String,
    #[serde(skip_serializing_if = "no_entries")]
    pub labels: Option<BTreeMap<String, String>>,
}

go_struct!(NodeResourceInfo {
    node_id = "node_id",
    total_cpu = "total_cpu",
    used_cpu = "used_cpu",
    total_memory_mb = "total_memory_mb",
    used_memory_mb = "used_memory_mb",
    total_disk_gb = "total_disk_gb",
    used_disk_gb = "used_disk_gb",
    cpu_usage_percent = "cpu_usage_percent",
    memory_usage_percent = "memory_usage_percent",
    disk_usage_percent = "disk_usage_percent",
    vm_count = "vm_count",
    status = "status",
    labels = "labels",
});

impl NodeResourceInfo {
    /// The host that this node is. The labels `region`, `zone` and `rack` say where it stands.
    ///
    /// What is in use is not part of a host: see `used`.
    pub fn to_host(&self) -> Result<Host, Fault> {
        let capacity = Amounts::zero()
            .with(Dim::CPU_MILLIS, amount("total_cpu", self.total_cpu, 1000)?)
            .with(Dim::MEMORY_MIB, amount("total_memory_mb", self.total_memory_mb, 1)?)
            .with(Dim::DISK_GIB, amount("total_disk_gb", self.total_disk_gb, 1)?);
        let mut host = Host::new(id("node_id", &self.node_id)?, capacity);
        host.labels = to_labels("labels", &self.labels)?;
        host.location = Location {
            region: host.labels.get("region").cloned(),
            zone: host.labels.get("zone").cloned(),
            rack: host.labels.get("rack").cloned(),
            power_feed: None,
        };
        let known = STATUSES.iter().find(|(status, _)| *status == self.status);
        host.state = known.map_or(HostState::Cordoned, |(_, state)| *state);
        // `offline` is a second word for a state, and an unknown one is a word for none.
        if status_of(host.state) != self.status
            && let (Some(key), Some(value)) = (label_name(STATUS_LABEL), label_name(&self.status))
        {
            host.labels.insert(key, value);
        }
        Ok(host)
    }

    /// The name of the host that this node is.
    pub fn name(&self) -> Result<Name, Fault> {
        id("node_id", &self.node_id)
    }

    /// What the node says is in use on it.
    pub fn used(&self) -> Result<Amounts, Fault> {
        Ok(Amounts::zero()
            .with(Dim::CPU_MILLIS, amount("used_cpu", self.used_cpu, 1000)?)
            .with(Dim::MEMORY_MIB, amount("used_memory_mb", self.used_memory_mb, 1)?)
            .with(Dim::DISK_GIB, amount("used_disk_gb", self.used_disk_gb, 1)?))
    }

    /// A host as NovaCron sees it, with what is in use on it. Parts of a core count as whole ones
    /// where they are used, and not at all where they are offered.
    pub fn new(host: &Host, used: &Amounts, vm_count: u64) -> Self {
        let whole = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
        let total = |dim: Dim| host.capacity.get(dim);
        let percent = |dim: Dim| percentage(used.get(dim), total(dim));
        let labels: BTreeMap<String, String> = host
            .labels
            .iter()
            .filter(|(key, _)| key.as_str() != STATUS_LABEL)
            .map(|(key, value)| (label_text(key), label_text(value)))
            .collect();
        Self {
            node_id: host.id.to_string(),
            total_cpu: whole(total(Dim::CPU_MILLIS) / 1000),
            used_cpu: whole(used.get(Dim::CPU_MILLIS).div_ceil(1000)),
            total_memory_mb: whole(total(Dim::MEMORY_MIB)),
            used_memory_mb: whole(used.get(Dim::MEMORY_MIB)),
            total_disk_gb: whole(total(Dim::DISK_GIB)),
            used_disk_gb: whole(used.get(Dim::DISK_GIB)),
            cpu_usage_percent: percent(Dim::CPU_MILLIS),
            memory_usage_percent: percent(Dim::MEMORY_MIB),
            disk_usage_percent: percent(Dim::DISK_GIB),
            vm_count: whole(vm_count),
            status: status_text(host),
            labels: (!labels.is_empty()).then_some(labels),
        }
    }
}

fn percentage(used: u64, total: u64) -> f64 {
    if total == 0 { 0.0 } else { used as f64 * 100.0 / total as f64 }
}

/// The status of a host, in the word it came with while its state is still the one of that word.
fn status_text(host: &Host) -> String {
    let kept = host.labels.get(STATUS_LABEL).map(label_text);
    let stands_for = |status: &String| {
        let known = STATUSES.iter().find(|(known, _)| known == status);
        known.map_or(HostState::Cordoned, |(_, state)| *state) == host.state
    };
    kept.filter(stands_for).unwrap_or_else(|| status_of(host.state).to_owned())
}

fn status_of(state: HostState) -> &'static str {
    STATUSES.iter().find(|(_, known)| *known == state).map_or("available", |(status, _)| status)
}

/// A node as NovaCron's runtime lists it at `GET /api/cluster/nodes`. Zeros are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::RuntimeNode)]
pub struct RuntimeNode {
    pub id: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub address: String,
    pub status: String,
    /// Cores.
    #[serde(skip_serializing_if = "is_zero")]
    pub cpu: i64,
    /// Megabytes.
    #[serde(skip_serializing_if = "is_zero")]
    pub memory: i64,
    /// Gigabytes.
    #[serde(skip_serializing_if = "is_zero")]
    pub disk: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub used_cpu: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub remaining_cpu: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub used_memory_mb: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub remaining_memory_mb: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub used_disk_gb: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub remaining_disk_gb: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub cpu_usage_percent: f64,
    #[serde(skip_serializing_if = "is_zero")]
    pub memory_usage_percent: f64,
    #[serde(skip_serializing_if = "is_zero")]
    pub disk_usage_percent: f64,
    #[serde(skip_serializing_if = "is_zero")]
    pub vm_count: i64,
    pub schedulable: bool,
    #[serde(skip_serializing_if = "no_entries")]
    pub labels: Option<BTreeMap<String, String>>,
}

go_struct!(RuntimeNode {
    id = "id",
    address = "address",
    status = "status",
    cpu = "cpu",
    memory = "memory",
    disk = "disk",
    used_cpu = "used_cpu",
    remaining_cpu = "remaining_cpu",
    used_memory_mb = "used_memory_mb",
    remaining_memory_mb = "remaining_memory_mb",
    used_disk_gb = "used_disk_gb",
    remaining_disk_gb = "remaining_disk_gb",
    cpu_usage_percent = "cpu_usage_percent",
    memory_usage_percent = "memory_usage_percent",
    disk_usage_percent = "disk_usage_percent",
    vm_count = "vm_count",
    schedulable = "schedulable",
    labels = "labels",
});

impl RuntimeNode {
    /// The node as the scheduler would keep it: available exactly if it is schedulable.
    pub fn to_info(&self) -> NodeResourceInfo {
        let status = match (self.schedulable, self.status.as_str()) {
            (true, _) => "available",
            // The runtime calls a node by what it does, and one that does not schedule is not
            // available whatever else it is.
            (false, "available" | "") => "cordoned",
            (false, other) => other,
        };
        NodeResourceInfo {
            node_id: self.id.clone(),
            total_cpu: self.cpu,
            used_cpu: self.used_cpu,
            total_memory_mb: self.memory,
            used_memory_mb: self.used_memory_mb,
            total_disk_gb: self.disk,
            used_disk_gb: self.used_disk_gb,
            cpu_usage_percent: self.cpu_usage_percent,
            memory_usage_percent: self.memory_usage_percent,
            disk_usage_percent: self.disk_usage_percent,
            vm_count: self.vm_count,
            status: status.to_owned(),
            labels: self.labels.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(status: &str) -> NodeResourceInfo {
        let labels = [("zone", "z 1"), ("hypervisor", "kvm")];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        NodeResourceInfo {
            node_id: " n1 ".into(),
            total_cpu: 16,
            used_cpu: 4,
            total_memory_mb: 32_768,
            used_memory_mb: 8_192,
            total_disk_gb: 500,
            used_disk_gb: 0,
            vm_count: 3,
            status: status.into(),
            labels: Some(labels.into()),
            ..Default::default()
        }
    }

    #[test]
    fn a_node_is_a_host_and_comes_back() {
        for status in ["available", "draining", "offline", "down", "", "Broken?", "cordoned"] {
            let node = node(status);
            let host = node.to_host().expect("a host");
            assert_eq!(host.state == HostState::Available, status == "available", "{status}");
            let shown = NodeResourceInfo::new(&host, &node.used().expect("amounts"), 3);
            let (cpu, memory) = (25.0, 25.0);
            let expected = NodeResourceInfo {
                node_id: "n1".into(),
                cpu_usage_percent: cpu,
                memory_usage_percent: memory,
                ..node
            };
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn a_status_word_is_forgotten_when_the_state_changes() {
        let mut host = node("offline").to_host().expect("a host");
        host.state = HostState::Available;
        assert_eq!(NodeResourceInfo::new(&host, &Amounts::zero(), 0).status, "available");
    }

    #[test]
    fn labels_say_where_a_node_stands() {
        let host = node("available").to_host().expect("a host");
        assert_eq!(host.location.zone.as_ref().map(label_text).as_deref(), Some("z 1"));
        assert_eq!(host.capacity.get(Dim::CPU_MILLIS), 16_000);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let path = |node: NodeResourceInfo| node.to_host().expect_err("wrong").path;
        assert_eq!(path(NodeResourceInfo { total_cpu: -1, ..node("") }), "total_cpu");
        assert_eq!(path(NodeResourceInfo { node_id: "  ".into(), ..node("") }), "node_id");
        let wrong = NodeResourceInfo { used_memory_mb: i64::MAX, ..node("") };
        assert_eq!(wrong.used().expect_err("too much").path, "used_memory_mb");
    }

    #[test]
    fn a_runtime_node_is_available_if_it_is_schedulable() {
        let check = |schedulable, status: &str, expected: &str| {
            let node = RuntimeNode { schedulable, status: status.into(), ..Default::default() };
            assert_eq!(node.to_info().status, expected);
        };
        check(true, "ready", "available");
        check(false, "ready", "ready");
        check(false, "available", "cordoned");
        check(false, "maintenance", "maintenance");
    }
}
