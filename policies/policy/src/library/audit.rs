//! Who changed which policy, when and how; as much of it as is kept at hand.

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::collections::VecDeque;
use std::sync::Arc;

/// Changes remembered; the oldest go first. The log has them all.
pub const MAX_AUDIT: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    pub at_ms: u64,
    pub user: String,
    pub policy: SmolStr,
    pub action: AuditAction,
    pub from_version: Option<u32>,
    pub to_version: Option<u32>,
    pub description: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AuditAction {
    Registered,
    Updated,
    Activated,
    /// Active before and after, with other parameters or another priority.
    Tuned,
    Deactivated,
    RolledBack,
    Removed,
}

impl AuditAction {
    pub fn name(self) -> &'static str {
        match self {
            AuditAction::Registered => "register",
            AuditAction::Updated => "update",
            AuditAction::Activated => "activate",
            AuditAction::Tuned => "tune",
            AuditAction::Deactivated => "deactivate",
            AuditAction::RolledBack => "rollback",
            AuditAction::Removed => "remove",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Audit(VecDeque<Arc<AuditEntry>>);

impl Audit {
    pub(super) fn push(&mut self, entry: AuditEntry) {
        if self.0.len() == MAX_AUDIT {
            self.0.pop_front();
        }
        self.0.push_back(Arc::new(entry));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &AuditEntry> {
        self.0.iter().map(Arc::as_ref)
    }
}
