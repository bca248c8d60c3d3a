//! What became of the files in the directory of policies: shared by whoever reads it and whoever
//! shows it.
//!
//! Says which file each policy came from and why files were rejected. What is in force is the
//! state's to say; a rejected file never changed it.

use policy::Diagnostic;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most files of one directory that are read, and most that are remembered here.
pub const MAX_POLICY_FILES: usize = 256;

/// A handle to what is known of the files. Cloning it is cheap; all clones see the same.
#[derive(Clone, Debug, Default)]
pub struct PolicyFiles(Arc<Mutex<Known>>);

/// A file that is not in force, because something is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RejectedFile {
    /// Its name in the directory.
    pub file: String,
    /// When it was first seen as it is now.
    pub at_ms: u64,
    /// The policy that it is of, if that much could be read. An earlier version of it may be in
    /// force.
    pub policy: Option<String>,
    /// What is wrong, with line and column; never empty.
    pub diagnostics: Vec<Diagnostic>,
}

/// A file whose policy was installed, or was installed already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AcceptedFile {
    pub file: String,
    pub at_ms: u64,
    pub policy: String,
    /// What is doubtful in it.
    pub warnings: Vec<Diagnostic>,
}

#[derive(Debug, Default)]
struct Known {
    directory: Option<PathBuf>,
    rejected: BTreeMap<String, RejectedFile>,
    accepted: BTreeMap<String, AcceptedFile>,
}

impl PolicyFiles {
    /// The directory that is read; `None` when there is none.
    pub fn directory(&self) -> Option<PathBuf> {
        self.known().directory.clone()
    }

    /// By name.
    pub fn rejected(&self) -> Vec<RejectedFile> {
        self.known().rejected.values().cloned().collect()
    }

    /// By name.
    pub fn accepted(&self) -> Vec<AcceptedFile> {
        self.known().accepted.values().cloned().collect()
    }

    /// The file that a policy was last read from.
    pub fn file_of(&self, policy: &str) -> Option<String> {
        let known = self.known();
        known.accepted.values().find(|file| file.policy == policy).map(|file| file.file.clone())
    }

    pub fn rejected_count(&self) -> usize {
        self.known().rejected.len()
    }

    pub(crate) fn read_from(&self, directory: &Path) {
        self.known().directory = Some(directory.to_owned());
    }

    /// Notes a rejection. What the file held before stays known as accepted: it is in force.
    pub(crate) fn reject(&self, file: RejectedFile) {
        let mut known = self.known();
        let room = known.rejected.len() < MAX_POLICY_FILES;
        if room || known.rejected.contains_key(&file.file) {
            known.rejected.insert(file.file.clone(), file);
        }
    }

    pub(crate) fn accept(&self, file: AcceptedFile) {
        let mut known = self.known();
        known.rejected.remove(&file.file);
        // A policy comes from one file: when it was renamed, from the new one.
        known.accepted.retain(|_, other| other.policy != file.policy);
        let room = known.accepted.len() < MAX_POLICY_FILES;
        if room || known.accepted.contains_key(&file.file) {
            known.accepted.insert(file.file.clone(), file);
        }
    }

    /// The file is gone.
    pub(crate) fn forget(&self, file: &str) {
        let mut known = self.known();
        known.rejected.remove(file);
        known.accepted.remove(file);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Every change is one insertion or removal, so a panic elsewhere leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected(file: &str) -> RejectedFile {
        RejectedFile { file: file.into(), at_ms: 1, policy: None, diagnostics: Vec::new() }
    }

    fn accepted(file: &str, policy: &str) -> AcceptedFile {
        AcceptedFile { file: file.into(), at_ms: 1, policy: policy.into(), warnings: Vec::new() }
    }

    #[test]
    fn a_file_that_is_mended_is_no_longer_rejected() {
        let files = PolicyFiles::default();
        files.reject(rejected("a.policy"));
        assert_eq!(files.clone().rejected_count(), 1);
        files.accept(accepted("a.policy", "a"));
        assert_eq!((files.rejected(), files.file_of("a")), (Vec::new(), Some("a.policy".into())));
        files.forget("a.policy");
        assert_eq!(files.accepted(), []);
    }

    #[test]
    fn a_policy_comes_from_one_file() {
        let files = PolicyFiles::default();
        files.accept(accepted("a.policy", "x"));
        files.accept(accepted("b.policy", "x"));
        assert_eq!(files.accepted(), [accepted("b.policy", "x")]);
    }

    #[test]
    fn no_more_files_are_remembered_than_are_read() {
        let files = PolicyFiles::default();
        for number in 0..2 * MAX_POLICY_FILES {
            files.reject(rejected(&format!("{number}.policy")));
            files.accept(accepted(&format!("{number}.policy"), &format!("p{number}")));
            files.reject(rejected(&format!("{number}.policy")));
        }
        assert_eq!(files.rejected_count(), MAX_POLICY_FILES);
        assert_eq!(files.accepted().len(), MAX_POLICY_FILES);
    }
}
