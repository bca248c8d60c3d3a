//! A data directory without a service on it: opened, locked, and checked to the last record.

use anyhow::{Context, anyhow, bail};
use cluster::Revision;
use engine::{History, State, check_sums};
use std::path::Path;
use store::{CommandLog, EmbeddedLog, Head, LogError};

/// Opens a log that is there. While it is open, no service can start on it.
pub(crate) fn open(data_dir: &Path) -> anyhow::Result<EmbeddedLog> {
    let file = data_dir.join(store::LOG_FILE);
    if !file.try_exists().with_context(|| format!("cannot look at {}", file.display()))? {
        bail!("there is no log in {}", data_dir.display());
    }
    crate::serve::open_log(data_dir).map_err(|error| match error.downcast_ref() {
        Some(LogError::Locked) => {
            anyhow!("a service runs on {}; stop it first", data_dir.display())
        }
        _ => error,
    })
}

/// Checks everything that recovery relies on: every record's checksum and place in the hash
/// chain, the state hash that each command leaves, and the sums in the state they lead to.
pub(crate) fn verified(log: &EmbeddedLog) -> anyhow::Result<(Head, State)> {
    let head = log.reader().verify(0)?;
    let state =
        History::new(log.reader()).state_at(Revision(head.revision))?.with_context(|| {
            format!("the log does not lead to its head, revision {}", head.revision)
        })?;
    if head.revision > 0 && state.hash() != head.state_hash {
        bail!("the state at revision {} has another hash than the log says", head.revision);
    }
    check_sums(&state)?;
    Ok((head, state))
}
