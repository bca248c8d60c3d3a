//! Recovery: from snapshot and log back to the state, or a refusal that names the revision.

use crate::apply::Broken;
use crate::history::History;
use crate::state::{HostEntry, State};
use cluster::{Amounts, Revision};
use store::{Head, LogError};

/// Why the log cannot be trusted. Nothing is ever skipped to get past one of these.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Broken(#[from] Broken),
    #[error(
        "command {revision} cannot be decoded; restore a backup, or start from a snapshot after it"
    )]
    Unreadable { revision: Revision },
    #[error("the log goes on at {found} where {expected} should be; records are missing")]
    Gap { expected: Revision, found: Revision },
    #[error("command {revision} leads to another state than it did when it was logged")]
    HashMismatch { revision: Revision },
    #[error("the log ends at {head}, but its records only lead to {reached}")]
    Short { head: Revision, reached: Revision },
    #[error("the recovered state contradicts itself: {0}")]
    Inconsistent(String),
}

pub(crate) struct Recovered {
    pub(crate) state: State,
    /// Revision of the snapshot it started from; 0 without one.
    pub(crate) snapshot: Revision,
}

pub(crate) fn recover(history: &History, head: &Head) -> Result<Recovered, OpenError> {
    let head_revision = Revision(head.revision);
    let mut state = history.newest_snapshot(head_revision)?.unwrap_or_default();
    let snapshot = state.revision();
    history.roll_forward(&mut state, head_revision)?;
    if state.revision() != head_revision {
        return Err(OpenError::Short { head: head_revision, reached: state.revision() });
    }
    if state.revision().0 > 0 && state.hash() != head.state_hash {
        return Err(OpenError::HashMismatch { revision: state.revision() });
    }
    check_sums(&state)?;
    Ok(Recovered { state, snapshot })
}

/// What a report is said to include must be what the VMs in it take.
fn check_report(state: &State, host: &HostEntry) -> Result<(), OpenError> {
    let included = host.vms.iter().filter_map(|vm| state.vm(*vm)).filter(|vm| vm.included);
    let (mut sum, mut vms) = (Amounts::zero(), 0u32);
    let mut exact = true;
    for vm in included {
        exact &= sum.try_add(&vm.committed);
        vms = vms.saturating_add(1);
    }
    let kept = host
        .report
        .as_ref()
        .map_or((Amounts::zero(), 0), |report| (report.included.clone(), report.included_vms));
    if exact && kept == (sum, vms) {
        return Ok(());
    }
    let what = format!("the report of host {} includes other VMs than it says", host.host.id);
    Err(OpenError::Inconsistent(what))
}

/// Every migration under way has a stand-in on its target, and nobody else has one.
fn check_stand_ins(state: &State) -> Result<(), OpenError> {
    let inconsistent = |what: String| Err(OpenError::Inconsistent(what));
    for (vm, under_way) in state.plans().moving() {
        if state.target_of(vm).is_none() {
            return inconsistent(format!("VM {vm} is under way in {} to nowhere", under_way.plan));
        }
    }
    let stand_ins = state.entries().filter(|(_, entry)| entry.vm.key.is_stand_in()).count();
    let moving = state.plans().moving().len();
    if stand_ins != moving {
        return inconsistent(format!("{moving} VMs are under way, {stand_ins} have stand-ins"));
    }
    Ok(())
}

/// What hosts say is taken on them must be what their VMs take.
pub fn check_sums(state: &State) -> Result<(), OpenError> {
    let inconsistent = |what: String| Err(OpenError::Inconsistent(what));
    let mut listed = 0usize;
    for (ix, host) in state.hosts() {
        let mut sum = Amounts::zero();
        for vm in &host.vms {
            let Some(entry) = state.vm(*vm).filter(|entry| entry.host == ix) else {
                return inconsistent(format!("host {} lists a VM that is not on it", host.host.id));
            };
            if !sum.try_add(&entry.committed) {
                return inconsistent(format!("usage of host {} overflows", host.host.id));
            }
        }
        if sum != host.allocated {
            return inconsistent(format!(
                "usage of host {} is not the sum of its VMs",
                host.host.id
            ));
        }
        check_report(state, host)?;
        listed = listed.saturating_add(host.vms.len());
    }
    let entries = state.entries().count();
    if listed != entries {
        return inconsistent(format!("{entries} VMs exist, hosts list {listed}"));
    }
    check_stand_ins(state)?;
    Ok(())
}
