//! The policies that are installed: their versions, which of them are in force, who changed what.
//!
//! Plain data that the engine logs and keeps in snapshots; a change is worked out and checked
//! here, and applying one that was checked never fails. Compiling is left to `Program`.

mod audit;
mod settings;

pub use audit::{AuditAction, AuditEntry, MAX_AUDIT};
pub use settings::{Setting, Settings};

use crate::PolicyType;
use crate::active::{ActivateError, ActiveSet, Configuration};
use crate::diagnostic::Diagnostic;
use crate::program::Program;
use crate::source::Source;
use audit::Audit;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most policies installed at once, active or not.
pub const MAX_POLICIES: usize = 256;
/// Versions kept of one policy; the oldest go first.
pub const MAX_VERSIONS: usize = 32;
/// Most bytes of text that all kept versions of all policies may take.
pub const MAX_LIBRARY_BYTES: usize = 16 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Library {
    policies: BTreeMap<SmolStr, Arc<Installed>>,
    audit: Audit,
}

/// One policy with its past.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installed {
    pub id: SmolStr,
    pub name: String,
    pub kind: PolicyType,
    /// Oldest first, never empty; the last is the one that counts.
    pub versions: Vec<Version>,
    /// How it is activated; `None` while it is not.
    pub activation: Option<Activation>,
    pub created_ms: u64,
    pub updated_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// From 1, and never used twice for one policy.
    pub number: u32,
    pub source: Source,
    pub created_ms: u64,
    pub author: String,
    pub description: String,
}

/// How an operator activates a policy, as the log keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activation {
    /// Higher goes first.
    pub priority: i32,
    pub settings: Settings,
}

/// A change of the library, as it is asked for and as the log keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    pub policy: SmolStr,
    pub change: EditKind,
    /// Who asks; for the audit.
    pub user: String,
    pub description: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EditKind {
    /// Registers the policy, or gives it a new version. With an activation it is in force at once.
    Put {
        source: Source,
        activation: Option<Activation>,
    },
    Activate(Activation),
    Deactivate,
    /// Makes the text of an older version the newest one.
    Rollback {
        version: u32,
    },
    Remove,
    /// As `Put`, and refused when there is a policy of this id already.
    Register {
        source: Source,
        activation: Option<Activation>,
    },
    /// Gives an active policy another priority or other values of some parameters; what is not
    /// named stays. Null puts a parameter back to its default.
    Tune {
        priority: Option<i32>,
        settings: Settings,
    },
}

impl EditKind {
    /// The text that it brings, if any.
    fn source(&self) -> Option<&Source> {
        match self {
            EditKind::Put { source, .. } | EditKind::Register { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Why a change is not made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EditError {
    #[error("policy with ID {0} not found")]
    Unknown(SmolStr),
    #[error("policy with ID {0} already exists")]
    Exists(SmolStr),
    #[error("policy {0} is not active; activate it with the values that it shall have")]
    NotActive(SmolStr),
    #[error("version {version} not found for policy {policy}")]
    UnknownVersion { policy: SmolStr, version: u32 },
    #[error("the policy has {} mistakes; the first is {}", .0.len(), first(.0))]
    Text(Vec<Diagnostic>),
    #[error("the text is of policy {found}, not of {policy}; send it under its own id")]
    OtherId { policy: SmolStr, found: String },
    #[error(transparent)]
    Activation(#[from] ActivateError),
    #[error("{MAX_POLICIES} policies are installed already; remove one that is not needed")]
    TooMany,
    #[error("the policies would take {0} bytes, at most {MAX_LIBRARY_BYTES} are kept")]
    TooLarge(usize),
    #[error("policy {0} is active; deactivate it before removing it")]
    StillActive(SmolStr),
}

fn first(found: &[Diagnostic]) -> String {
    found.first().map(ToString::to_string).unwrap_or_default()
}

/// A change that was checked, with what it leads to.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The policies in force after it.
    pub active: ActiveSet,
    /// Whether the change changes anything.
    pub is_new: bool,
}

impl Library {
    pub fn get(&self, id: &str) -> Option<&Installed> {
        self.policies.get(id).map(Arc::as_ref)
    }

    /// By id.
    pub fn iter(&self) -> impl Iterator<Item = &Installed> {
        self.policies.values().map(Arc::as_ref)
    }

    pub fn len(&self) -> usize {
        self.policies.len()
    }

    pub fn is_empty(&self) -> bool {
        self.policies.is_empty()
    }

    /// What was changed lately, oldest first.
    pub fn audit(&self) -> impl Iterator<Item = &AuditEntry> {
        self.audit.iter()
    }

    /// Compiles the policies that are active.
    pub fn active_set(&self) -> Result<ActiveSet, EditError> {
        let mut active = Vec::new();
        for policy in self.policies.values() {
            let (Some(activation), Some(version)) = (&policy.activation, policy.newest()) else {
                continue;
            };
            active.push((version.program()?, activation.configuration()));
        }
        Ok(ActiveSet::new(active)?)
    }

    /// Works out a change without making it: whether it can be made, and what would be in force.
    pub fn check(&self, edit: &Edit) -> Result<Checked, EditError> {
        if let Some(source) = edit.change.source() {
            let program = source.program().map_err(EditError::Text)?;
            if program.id() != edit.policy {
                let (policy, found) = (edit.policy.clone(), program.id().to_owned());
                return Err(EditError::OtherId { policy, found });
            }
            let exists = self.policies.contains_key(&edit.policy);
            if exists && matches!(edit.change, EditKind::Register { .. }) {
                return Err(EditError::Exists(edit.policy.clone()));
            }
            if self.policies.len() >= MAX_POLICIES && !exists {
                return Err(EditError::TooMany);
            }
            let bytes = self.bytes().saturating_add(source.text().len());
            if bytes > MAX_LIBRARY_BYTES {
                return Err(EditError::TooLarge(bytes));
            }
        } else {
            self.check_known(edit)?;
        }
        let mut after = self.clone();
        after.apply(edit, 0);
        Ok(Checked { active: after.active_set()?, is_new: after.policies != self.policies })
    }

    fn check_known(&self, edit: &Edit) -> Result<(), EditError> {
        let policy =
            self.get(&edit.policy).ok_or_else(|| EditError::Unknown(edit.policy.clone()))?;
        match &edit.change {
            EditKind::Rollback { version } if policy.version(*version).is_none() => {
                let policy = edit.policy.clone();
                Err(EditError::UnknownVersion { policy, version: *version })
            }
            EditKind::Tune { .. } if policy.activation.is_none() => {
                Err(EditError::NotActive(edit.policy.clone()))
            }
            EditKind::Remove if policy.activation.is_some() => {
                Err(EditError::StillActive(edit.policy.clone()))
            }
            _ => Ok(()),
        }
    }

    fn bytes(&self) -> usize {
        let versions = self.policies.values().flat_map(|policy| &policy.versions);
        versions.map(|version| version.source.text().len()).sum()
    }

    /// Makes a change that `check` let through. Anything else changes nothing.
    pub fn apply(&mut self, edit: &Edit, now_ms: u64) {
        let before = self.get(&edit.policy).and_then(Installed::newest).map(|it| it.number);
        let action = match &edit.change {
            EditKind::Register { .. } if before.is_some() => None,
            EditKind::Put { source, activation } | EditKind::Register { source, activation } => {
                self.put(edit, source, activation.as_ref(), now_ms)
            }
            EditKind::Rollback { version } => self.roll_back(edit, *version, now_ms),
            EditKind::Activate(activation) => {
                self.set_activation(edit, Some(activation.clone()), now_ms)
            }
            EditKind::Tune { priority, settings } => {
                let active = self.get(&edit.policy).and_then(|policy| policy.activation.clone());
                active.and_then(|active| {
                    self.set_activation(edit, Some(active.tuned(*priority, settings)), now_ms)
                })
            }
            EditKind::Deactivate => self.set_activation(edit, None, now_ms),
            EditKind::Remove => self.policies.remove(&edit.policy).map(|_| AuditAction::Removed),
        };
        let Some(action) = action else { return };
        let after = self.get(&edit.policy).and_then(Installed::newest).map(|it| it.number);
        self.audit.push(AuditEntry {
            at_ms: now_ms,
            user: edit.user.clone(),
            policy: edit.policy.clone(),
            action,
            from_version: before,
            to_version: after,
            description: edit.description.clone(),
        });
    }

    fn put(
        &mut self,
        edit: &Edit,
        source: &Source,
        activation: Option<&Activation>,
        now_ms: u64,
    ) -> Option<AuditAction> {
        let program = source.program().ok()?;
        let document = program.document();
        let (name, kind) = (document.name.clone(), document.kind);
        let Some(policy) = self.policies.get_mut(&edit.policy).map(Arc::make_mut) else {
            let mut policy = Installed {
                id: edit.policy.clone(),
                name,
                kind,
                versions: Vec::new(),
                activation: activation.cloned(),
                created_ms: now_ms,
                updated_ms: now_ms,
            };
            policy.add_version(edit, source, now_ms);
            self.policies.insert(edit.policy.clone(), Arc::new(policy));
            return Some(AuditAction::Registered);
        };
        let same_text = policy.newest().is_some_and(|it| it.source == *source);
        let same_activation = activation.is_none_or(|it| Some(it) == policy.activation.as_ref());
        if same_text && same_activation {
            return None;
        }
        if !same_text {
            policy.add_version(edit, source, now_ms);
        }
        (policy.name, policy.kind, policy.updated_ms) = (name, kind, now_ms);
        if let Some(activation) = activation {
            policy.activation = Some(activation.clone());
        }
        Some(AuditAction::Updated)
    }

    fn roll_back(&mut self, edit: &Edit, version: u32, now_ms: u64) -> Option<AuditAction> {
        let policy = Arc::make_mut(self.policies.get_mut(&edit.policy)?);
        let old = policy.version(version)?.source.clone();
        if policy.newest().is_some_and(|it| it.source == old) {
            return None;
        }
        if let Ok(program) = old.program() {
            let document = program.document();
            (policy.name, policy.kind) = (document.name.clone(), document.kind);
        }
        policy.add_version(edit, &old, now_ms);
        policy.updated_ms = now_ms;
        Some(AuditAction::RolledBack)
    }

    fn set_activation(
        &mut self,
        edit: &Edit,
        activation: Option<Activation>,
        now_ms: u64,
    ) -> Option<AuditAction> {
        let policy = Arc::make_mut(self.policies.get_mut(&edit.policy)?);
        if policy.activation == activation {
            return None;
        }
        let action = match (&policy.activation, &activation) {
            (_, None) => AuditAction::Deactivated,
            (None, Some(_)) => AuditAction::Activated,
            (Some(_), Some(_)) => AuditAction::Tuned,
        };
        (policy.activation, policy.updated_ms) = (activation, now_ms);
        Some(action)
    }
}

impl Installed {
    /// The version that counts.
    pub fn newest(&self) -> Option<&Version> {
        self.versions.last()
    }

    pub fn version(&self, number: u32) -> Option<&Version> {
        self.versions.iter().find(|version| version.number == number)
    }

    fn add_version(&mut self, edit: &Edit, source: &Source, now_ms: u64) {
        let number = self.newest().map_or(0, |version| version.number).saturating_add(1);
        self.versions.push(Version {
            number,
            source: source.clone(),
            created_ms: now_ms,
            author: edit.user.clone(),
            description: edit.description.clone(),
        });
        let spare = self.versions.len().saturating_sub(MAX_VERSIONS);
        self.versions.drain(..spare);
    }
}

impl Version {
    pub fn program(&self) -> Result<Arc<Program>, EditError> {
        self.source.program().map_err(EditError::Text)
    }
}

impl Activation {
    fn tuned(mut self, priority: Option<i32>, settings: &Settings) -> Self {
        self.priority = priority.unwrap_or(self.priority);
        self.settings.change(settings);
        self
    }

    pub fn configuration(&self) -> Configuration {
        Configuration { priority: self.priority, parameter_values: self.settings.values() }
    }
}

impl From<&Configuration> for Activation {
    fn from(configuration: &Configuration) -> Self {
        let settings = Settings::from(&configuration.parameter_values);
        Self { priority: configuration.priority, settings }
    }
}
