//! The inventory: every node at once by generation, and what has changed since.

use super::go::{go_struct, no_items};
use super::node::NodeResourceInfo;
use super::vm::VmConfig;
use crate::fault::code;
use crate::json::Value;
use crate::read::{At, Read};
use serde::Serialize;
use utoipa::ToSchema;

/// Every node there is. What is not in it is not there any more.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::Inventory)]
pub struct Inventory {
    /// Counts up with every change. The sender's own number.
    #[schema(minimum = 1)]
    pub generation: u64,
    pub nodes: Option<Vec<NodeResourceInfo>>,
    /// The VMs that the nodes' use includes. Left out: the service works it out from events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vms: Option<Vec<InventoryVm>>,
}

/// What has changed since a generation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = novacron::InventoryDelta)]
pub struct InventoryDelta {
    /// The generation that this builds on. Another one is answered with 409.
    pub base_generation: u64,
    /// The generation that this leads to. Left out: the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// Nodes that are new or have changed.
    #[serde(skip_serializing_if = "no_items")]
    pub upsert: Option<Vec<NodeResourceInfo>>,
    /// Ids of nodes that are gone.
    #[serde(skip_serializing_if = "no_items")]
    pub remove: Option<Vec<String>>,
    /// The VMs that run on the changed nodes. Left out: the service works it out from events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vms: Option<Vec<InventoryVm>>,
}

/// A VM that runs on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::InventoryVM)]
pub struct InventoryVm {
    pub vm_id: String,
    pub node_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<VmConfig>,
}

go_struct!(InventoryVm { vm_id = "vm_id", node_id = "node_id", config = "config" });

impl Read for Inventory {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let generation = fields.required_integer("generation", 1..=u64::MAX);
        let (nodes, vms) = (fields.or_default("nodes"), fields.or_default("vms"));
        fields.ignore_others();
        Some(Self { generation: generation?, nodes, vms })
    }
}

impl Read for InventoryDelta {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let base_generation = fields.required_integer("base_generation", 0..=u64::MAX);
        let generation: Option<u64> = fields.or_default("generation");
        let upsert = fields.or_default("upsert");
        let remove = fields.or_default("remove");
        let vms = fields.or_default("vms");
        fields.ignore_others();
        let base_generation = base_generation?;
        if generation.is_some_and(|generation| generation <= base_generation) {
            let message = format!("the generation after {base_generation} is not above it");
            at.fault_in("generation", code::NUMBER_TOO_SMALL, message, "count up");
        }
        Some(Self { base_generation, generation, upsert, remove, vms })
    }
}

impl InventoryDelta {
    /// The generation that this leads to.
    pub fn next_generation(&self) -> u64 {
        self.generation.unwrap_or_else(|| self.base_generation.saturating_add(1))
    }
}
