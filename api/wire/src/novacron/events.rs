//! What happened to a VM, as the bridge on NovaCron's event listener reports it.

use super::go::{go_struct, is_zero};
use super::time::Time;
use super::vm::VmConfig;
use crate::json::Value;
use crate::read::{At, Read};
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

/// One event, or `{"events": [..]}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = novacron::VMEvents)]
pub enum VmEvents {
    One(Box<VmEvent>),
    Many { events: Vec<VmEvent> },
}

impl Read for VmEvents {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let events: Option<Vec<VmEvent>> = fields.or_default("events");
        fields.ignore_others();
        match events {
            Some(events) => Some(Self::Many { events }),
            None => VmEvent::read(value, at).map(|event| Self::One(Box::new(event))),
        }
    }
}

/// What events came to, in the order in which they were sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = novacron::EventsAnswer)]
pub struct EventsAnswer {
    pub results: Vec<EventResult>,
}

/// What one event came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = novacron::EventResult)]
pub struct EventResult {
    pub vm_id: String,
    /// `confirmed`, `adopted`, `moved`, `resized`, `released`, `known`, `late`, `ignored` or
    /// `refused`.
    pub outcome: &'static str,
    /// The VM does not fit where it runs.
    #[serde(skip_serializing_if = "is_zero")]
    pub over_capacity: bool,
    /// Why it was refused, or where the VM was before.
    #[serde(skip_serializing_if = "is_zero")]
    pub message: String,
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
