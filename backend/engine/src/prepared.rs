//! A change of policies that was worked out beside the writer, ready to be put in force.
//!
//! Compiling, checking, trying it on the fleet and filling the columns that the solver reads all
//! happen on the caller's thread. The writer only looks whether the policies are still those that
//! the change was worked out from, and swaps; whatever changed on the hosts meanwhile is patched.

use crate::fleet::Fleet;
use crate::state::State;
use crate::trial::{Sample, Trial};
use crate::writer::Writer;
use cluster::{Dimensions, Revision};
use policy::{ActiveSet, Edit, EditError, EvaluateError, Installed};
use std::sync::Arc;

/// What a change of policies would lead to.
#[derive(Debug)]
pub struct Prepared {
    /// The policies and weights that it was worked out from.
    pub policy_revision: u64,
    /// Whether the change changes anything.
    pub is_new: bool,
    /// Whether there was a policy of this id before.
    pub existed: bool,
    /// The policy as it would be; `None` once it is removed.
    pub after: Option<Installed>,
    pub tried: Tried,
    edit: Edit,
    dimensions: Dimensions,
}

/// A set of policies that was tried on the hosts as they were at a revision.
#[derive(Debug)]
pub struct Tried {
    pub trial: Trial,
    /// What was read up to here; it may not be durable yet.
    pub revision: Revision,
    fleet: Fleet,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PrepareError {
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error("the policies cannot be evaluated: {0}")]
    Evaluate(#[from] EvaluateError),
}

impl Writer {
    /// Works out a change of policies without making it. The state is held up only while pointers
    /// are copied.
    pub fn prepare(&self, edit: &Edit) -> Result<Prepared, PrepareError> {
        let (mut library, policy_revision, dimensions, time_ms) = self.read(|state| {
            let (library, revision) = (state.library().clone(), state.policy().revision);
            (library, revision, state.dimensions().clone(), state.time_ms())
        });
        let checked = library.check(edit)?;
        let existed = library.get(&edit.policy).is_some();
        library.apply(edit, time_ms);
        Ok(Prepared {
            policy_revision,
            is_new: checked.is_new,
            existed,
            after: library.get(&edit.policy).cloned(),
            tried: self.try_out(Arc::new(checked.active))?,
            edit: edit.clone(),
            dimensions,
        })
    }

    /// Tries policies on the hosts and VMs that are there.
    pub fn try_out(&self, set: Arc<ActiveSet>) -> Result<Tried, EvaluateError> {
        let (mut fleet, hosts, sample, revision) = self.read(|state| {
            let fleet = Fleet::new(Arc::clone(&set), state.dimensions());
            (fleet, state.host_rows(), Sample::of(state, &set), state.revision())
        });
        fleet.follow(hosts);
        let trial = Trial::run(&fleet, &sample)?;
        Ok(Tried { trial, revision, fleet })
    }
}

impl Tried {
    pub fn set(&self) -> &Arc<ActiveSet> {
        self.fleet.set()
    }
}

impl Prepared {
    /// Whether it is this change that was worked out, from what is in force now.
    pub(crate) fn is_for(&self, edit: &Edit, state: &State) -> bool {
        self.policy_revision == state.policy().revision
            && self.dimensions == *state.dimensions()
            && self.edit == *edit
    }

    pub(crate) fn into_fleet(self) -> Fleet {
        self.tried.fleet
    }
}
