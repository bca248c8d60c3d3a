//! Scheduling one VM, and the scheduler's own settings.

use super::answers::Alternative;
use super::go::{go_struct, ids, no_items};
use super::node::NodeResourceInfo;
use super::time::Duration;
use super::vm::VmConfig;
use crate::fault::Fault;
use cluster::{Amounts, Dim, Name, Strategy};
use serde::Serialize;
use utoipa::ToSchema;

/// Asks for a node for a VM.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::ScheduleRequest)]
pub struct ScheduleRequest {
    pub vm: VmConfig,
    /// Only these nodes will do. Left out or empty: all of them.
    #[serde(skip_serializing_if = "no_items")]
    pub candidate_node_ids: Option<Vec<String>>,
    /// The nodes to choose from, for callers that do not keep an inventory here.
    #[serde(skip_serializing_if = "no_items")]
    pub nodes: Option<Vec<NodeResourceInfo>>,
    /// The inventory that the caller has seen. Left out: the service's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// The scheduler's settings for this VM. Left out: the service's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<SchedulerConfig>,
}

go_struct!(ScheduleRequest {
    vm = "vm",
    candidate_node_ids = "candidate_node_ids",
    nodes = "nodes",
    generation = "generation",
    config = "config",
});

impl ScheduleRequest {
    /// The hosts to choose from; empty for all.
    pub fn candidates(&self) -> Result<Vec<Name>, Fault> {
        ids("candidate_node_ids", &self.candidate_node_ids)
    }
}

/// The node that was chosen for a VM, and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::ScheduleAnswer)]
pub struct ScheduleAnswer {
    pub vm_id: String,
    pub node_id: String,
    pub score: f64,
    /// From 0 to 1: how far the node is ahead of the next best.
    pub confidence: f64,
    pub explanation: String,
    pub alternatives: Vec<Alternative>,
    /// The inventory that the choice was made on.
    pub generation: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation_id: Option<String>,
    /// How long the reservation holds unless an event confirms it, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation_ttl: Option<Duration>,
}

/// Settings of NovaCron's VM scheduler.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::SchedulerConfig)]
pub struct SchedulerConfig {
    /// `round_robin`, `bin_packing`, `spread_out` or `custom`.
    pub policy: String,
    pub enable_resource_checking: bool,
    /// Read by nothing in NovaCron, and by nothing here.
    pub enable_anti_affinity: bool,
    pub enable_node_labels: bool,
    /// 0: as many as fit.
    pub max_vms_per_node: i64,
    /// Counts if it is above 1.
    pub max_cpu_overcommit: f64,
    pub max_memory_overcommit: f64,
}

go_struct!(SchedulerConfig {
    policy = "policy",
    enable_resource_checking = "enable_resource_checking",
    enable_anti_affinity = "enable_anti_affinity",
    enable_node_labels = "enable_node_labels",
    max_vms_per_node = "max_vms_per_node",
    max_cpu_overcommit = "max_cpu_overcommit",
    max_memory_overcommit = "max_memory_overcommit",
});

impl SchedulerConfig {
    /// The strategy that its policy stands for; `None` leaves it to the service.
    pub fn strategy(&self) -> Option<Strategy> {
        match self.policy.as_str() {
            "round_robin" => Some(Strategy::FewestVms),
            "bin_packing" => Some(Strategy::BestFit),
            "spread_out" => Some(Strategy::LeastLoaded),
            _ => None,
        }
    }

    /// Overcommit as hosts have it: in permille, rounded down, at most a thousandfold.
    pub fn overcommit_permille(&self) -> Amounts {
        let permille = |factor: f64| match factor {
            factor if factor > 1.0 => (factor.min(1000.0) * 1000.0) as u64,
            _ => 0,
        };
        Amounts::zero()
            .with(Dim::CPU_MILLIS, permille(self.max_cpu_overcommit))
            .with(Dim::MEMORY_MIB, permille(self.max_memory_overcommit))
    }
}

/// What a VM holds on a node. Has no tags in Go, so its keys are the names of its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = novacron::ResourceAllocation)]
pub struct ResourceAllocation {
    #[serde(rename = "VMID")]
    pub vm_id: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    #[serde(rename = "CPUCores")]
    pub cpu_cores: i64,
    #[serde(rename = "MemoryMB")]
    pub memory_mb: i64,
    #[serde(rename = "DiskGB")]
    pub disk_gb: i64,
    #[serde(rename = "RequestID")]
    pub request_id: String,
}

go_struct!(ResourceAllocation {
    vm_id = "VMID",
    node_id = "NodeID",
    cpu_cores = "CPUCores",
    memory_mb = "MemoryMB",
    disk_gb = "DiskGB",
    request_id = "RequestID",
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overcommit_counts_only_above_one() {
        let of = |cpu, memory| {
            let config = SchedulerConfig {
                max_cpu_overcommit: cpu,
                max_memory_overcommit: memory,
                ..Default::default()
            };
            config.overcommit_permille()
        };
        assert_eq!(of(1.5, 0.5), Amounts::cpu_memory(1500, 0));
        assert_eq!(of(1.0, f64::MAX), Amounts::cpu_memory(0, 1_000_000));
        assert_eq!(of(f64::NAN, -3.0), Amounts::zero());
    }
}
