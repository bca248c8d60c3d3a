//! The inventory: every node at once by generation, and what has changed since.

use super::go::{go_struct, ids, no_items};
use super::node::NodeResourceInfo;
use super::time::Time;
use super::vm::VmConfig;
use crate::fault::{Fault, code};
use crate::json::Value;
use crate::read::{At, Read};
use cluster::Name;
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
    /// When the sender looked, by the clock of its events. With it, late inventories and late
    /// events are told from each other exactly; without it, by the order in which they arrive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_at: Option<Time>,
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
    /// As for a whole inventory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_at: Option<Time>,
    /// The VMs that run on the changed nodes. Left out: the service works it out from events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vms: Option<Vec<InventoryVm>>,
}

/// What an inventory came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = novacron::InventoryAnswer)]
pub struct InventoryAnswer {
    /// The inventory that is known now.
    pub generation: u64,
    /// How many nodes there are now.
    pub nodes: u64,
    /// How many of them were new.
    pub added: u64,
    pub removed: u64,
    /// The same change came before; nothing was done.
    pub repeated: bool,
    /// Nodes that could not be taken over as they are.
    pub refused: Vec<RefusedNode>,
}

/// A node that could not be taken over as it is. It takes no new VMs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = novacron::RefusedNode)]
pub struct RefusedNode {
    pub node_id: String,
    pub reason: String,
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
        let taken_at = fields.or_default("taken_at");
        fields.ignore_others();
        Some(Self { generation: generation?, nodes, taken_at, vms })
    }
}

impl Read for InventoryDelta {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let base_generation = fields.required_integer("base_generation", 0..=u64::MAX);
        let generation: Option<u64> = fields.or_default("generation");
        let upsert = fields.or_default("upsert");
        let remove = fields.or_default("remove");
        let taken_at = fields.or_default("taken_at");
        let vms = fields.or_default("vms");
        fields.ignore_others();
        let base_generation = base_generation?;
        if generation.is_some_and(|generation| generation <= base_generation) {
            let message = format!("the generation after {base_generation} is not above it");
            at.fault_in("generation", code::NUMBER_TOO_SMALL, message, "count up");
        }
        Some(Self { base_generation, generation, upsert, remove, taken_at, vms })
    }
}

impl InventoryDelta {
    /// The hosts that are gone.
    pub fn removed(&self) -> Result<Vec<Name>, Fault> {
        ids("remove", &self.remove)
    }

    /// The generation that this leads to.
    pub fn next_generation(&self) -> u64 {
        self.generation.unwrap_or_else(|| self.base_generation.saturating_add(1))
    }
}
