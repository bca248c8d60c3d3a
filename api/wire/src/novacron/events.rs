//! What happened to a VM, as the bridge on NovaCron's event listener reports it.

use super::go::go_struct;
use super::time::Time;
use super::vm::VmConfig;
use crate::words::{Choice, choice};
use serde::Serialize;
use utoipa::ToSchema;

/// One event of a VM's life. Events come in any order and more than once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::VMEvent)]
pub struct VmEvent {
    /// `created`, `started`, `stopped`, `deleted`, and so on; unknown ones are let be.
    #[serde(rename = "type")]
    pub kind: String,
    pub vm_id: String,
    pub node_id: String,
    pub timestamp: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<VmConfig>,
}

go_struct!(VmEvent {
    kind = "type",
    vm_id = "vm_id",
    node_id = "node_id",
    timestamp = "timestamp",
    config = "config",
});

impl VmEvent {
    /// The event's kind; `None` for one that NovaCron has not had so far.
    pub fn known_kind(&self) -> Option<EventKind> {
        EventKind::from_word(&self.kind)
    }
}

/// The kinds of events that NovaCron has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    Created,
    Started,
    Stopped,
    Restarted,
    Deleted,
    Paused,
    Resumed,
    Migrating,
    Migrated,
    Snapshot,
    Backup,
    Restore,
    Updated,
    Error,
}

choice!(EventKind:
    "created" = Created, "started" = Started, "stopped" = Stopped, "restarted" = Restarted,
    "deleted" = Deleted, "paused" = Paused, "resumed" = Resumed, "migrating" = Migrating,
    "migrated" = Migrated, "snapshot" = Snapshot, "backup" = Backup, "restore" = Restore,
    "updated" = Updated, "error" = Error);
