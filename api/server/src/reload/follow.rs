//! What each file of the directory was the last time, and what to do now that it is different.
//!
//! A file that is new or changed is judged and, if it is good, installed by the command that REST
//! sends. A bad one is noted and changes nothing. Which file speaks for a policy is decided by
//! name, so that it does not depend on which came first.

use super::judge::{Candidate, Change, edit, read, written_by};
use super::scan::{Content, Found, Scan, finding};
use crate::policy_files::{AcceptedFile, RejectedFile};
use crate::service::Service;
use engine::{Call, PrepareError, Refusal, Request};
use policy::{Diagnostic, EditError, EditKind};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A file that is missing this long was removed. Some editors remove a file before they write it
/// again.
const MISSING_FOR: Duration = Duration::from_secs(1);
/// How soon a file that is still being written is looked at again.
const UNSETTLED_FOR: Duration = Duration::from_millis(100);
/// How often an edit is worked out again because somebody else was faster.
const ATTEMPTS: usize = 5;

/// Keeps the installed policies in step with a directory.
#[derive(Debug)]
pub(super) struct Follower {
    service: Service,
    /// Policies whose file is removed stay in force.
    keep_removed: bool,
    /// Nothing has been looked at yet since the service started.
    starting: bool,
    entries: BTreeMap<String, Entry>,
    /// Files were seen that somebody still writes to.
    unsettled: bool,
}

#[derive(Clone, Debug)]
struct Entry {
    print: blake3::Hash,
    /// The policy that the file is of, as far as that could ever be read.
    policy: Option<String>,
    /// Whether that policy was installed from this file.
    installed: bool,
    /// Whether what the file holds now is what was installed.
    good: bool,
    /// Look at it again the next time, even if it is the same.
    again: bool,
    missing_since: Option<Instant>,
}

/// What came of trying to install a file.
enum Outcome {
    Accepted(Vec<Diagnostic>),
    Rejected(Vec<Diagnostic>),
    /// The service is too busy; the file is as good as before.
    Later,
}

impl Follower {
    pub(super) fn new(service: Service, keep_removed: bool) -> Self {
        let entries = BTreeMap::new();
        Self { service, keep_removed, starting: true, entries, unsettled: false }
    }

    /// Whether a file is there that was not there before, or was different.
    pub(super) fn is_news(&self, scan: &Scan) -> bool {
        let mut files = scan.iter();
        files.any(|(name, found)| match (self.entries.get(name), print(&found.content)) {
            (Some(entry), Some(print)) => entry.print != print,
            _ => true,
        })
    }

    /// How soon the directory has to be looked at again, if anything waits for that.
    pub(super) fn patience(&self) -> Option<Duration> {
        let waits = |entry: &Entry| entry.again || entry.missing_since.is_some();
        let waiting = self.unsettled || self.entries.values().any(waits);
        waiting.then_some(if self.unsettled { UNSETTLED_FOR } else { MISSING_FOR })
    }

    /// Brings what is installed in step with what was found.
    pub(super) fn take(&mut self, scan: &Scan, now: Instant) {
        let mut owners: BTreeMap<String, String> = BTreeMap::new();
        let mut orphans: Vec<(String, String)> = Vec::new();
        for (name, found) in scan {
            let known = self.entries.get(name).cloned().or_else(|| self.renamed(name, found, scan));
            let before = known.as_ref().and_then(Entry::installed).map(str::to_owned);
            let Some(entry) = self.take_one(name, &found.content, known, &owners) else { continue };
            if let Some(policy) = before.filter(|it| entry.installed() != Some(it)) {
                orphans.push((name.clone(), policy));
            }
            if let Some(policy) = &entry.policy {
                owners.entry(policy.clone()).or_insert_with(|| name.clone());
            }
            self.entries.insert(name.clone(), entry);
        }
        self.take_missing(scan, now, &mut orphans);
        for (file, policy) in orphans {
            if !owners.contains_key(&policy) {
                self.end(&file, &policy);
            }
        }
        if self.starting {
            self.starting = false;
            self.tell_of_absent(&owners);
        }
        self.service.policy_files().forget(".");
        self.unsettled = scan.values().any(|it| matches!(it.content, Content::Unsettled));
    }

    /// The directory itself cannot be read; everything stays as it is.
    pub(super) fn cannot_read(&self, error: &std::io::Error) {
        let message = format!("the directory cannot be read: {error}");
        let found = finding("unreadable-directory", message, "what was in force stays in force");
        let known = self.service.policy_files().rejected();
        if !known.iter().any(|it| it.file == "." && it.diagnostics.first() == Some(&found)) {
            self.reject(".", None, vec![found]);
        }
    }

    /// What is known of one file after this look; `None` leaves things as they are.
    fn take_one(
        &self,
        name: &str,
        content: &Content,
        known: Option<Entry>,
        owners: &BTreeMap<String, String>,
    ) -> Option<Entry> {
        let Some(print) = print(content) else {
            return known.map(|entry| Entry { missing_since: None, ..entry });
        };
        let taken = |policy: &Option<String>| policy.as_ref().and_then(|it| owners.get(it));
        if let Some(entry) = &known
            && entry.print == print
            && !entry.again
            && taken(&entry.policy).is_none()
        {
            return known.map(|entry| Entry { missing_since: None, ..entry });
        }
        let is_same = known.as_ref().is_some_and(|entry| entry.print == print);
        let candidate = match content {
            Content::Bytes(bytes) => read(name, bytes),
            Content::Unfit(found) => Err(vec![found.as_ref().clone()]),
            Content::Unsettled => return known,
        };
        let entry = Entry {
            print,
            policy: known.as_ref().and_then(|entry| entry.policy.clone()),
            installed: known.as_ref().is_some_and(|entry| entry.installed),
            good: false,
            again: false,
            missing_since: None,
        };
        let candidate = match candidate {
            Ok(candidate) => candidate,
            Err(diagnostics) => {
                self.reject(name, entry.policy.as_deref(), diagnostics);
                return Some(entry);
            }
        };
        let policy = candidate.policy().to_owned();
        if let Some(owner) = owners.get(&policy) {
            if !(is_same && known.is_some_and(|entry| entry.again)) {
                self.reject(name, Some(&policy), vec![duplicate(&policy, owner)]);
            }
            // The other file may go, and then this one speaks for the policy.
            return Some(Entry { policy: Some(policy), installed: false, again: true, ..entry });
        }
        match self.install(&candidate) {
            Outcome::Accepted(warnings) => {
                self.accept(name, &policy, warnings);
                Some(Entry { policy: Some(policy), installed: true, good: true, ..entry })
            }
            Outcome::Rejected(diagnostics) => {
                self.reject(name, Some(&policy), diagnostics);
                Some(if entry.installed { entry } else { Entry { policy: Some(policy), ..entry } })
            }
            Outcome::Later => Some(Entry { again: true, ..entry }),
        }
    }

    /// What is known of a file that had another name the last time. Moving a good file changes
    /// nothing, not even what operators have set since it was read.
    fn renamed(&self, name: &str, found: &Found, scan: &Scan) -> Option<Entry> {
        let print = print(&found.content)?;
        let mut gone = self.entries.iter().filter(|(other, _)| !scan.contains_key(*other));
        let (old, entry) = gone.find(|(_, entry)| entry.good && entry.print == print)?;
        let files = self.service.policy_files();
        let known = files.accepted().into_iter().find(|file| file.file == *old)?;
        tracing::info!(from = old, to = name, policy = known.policy, "a policy file is renamed");
        files.accept(AcceptedFile { file: name.into(), ..known });
        Some(entry.clone())
    }

    fn install(&self, candidate: &Candidate) -> Outcome {
        for _ in 0..ATTEMPTS {
            let good = match candidate.judge(self.service.writer(), self.starting) {
                Ok(good) => good,
                Err(diagnostics) => return Outcome::Rejected(diagnostics),
            };
            let Some(change) = good.change else { return Outcome::Accepted(good.warnings) };
            match self.submit(change) {
                Ok(()) => return Outcome::Accepted(good.warnings),
                Err(Refusal::Stale { .. }) => {}
                Err(refusal @ Refusal::PolicyRefused { .. }) => {
                    let hint = "the version before stays in force";
                    let found = finding("not-installable", refusal.to_string(), hint);
                    return Outcome::Rejected(vec![found]);
                }
                Err(refusal) => {
                    let policy = candidate.policy();
                    tracing::warn!(policy, %refusal, "a policy file is tried again later");
                    return Outcome::Later;
                }
            }
        }
        Outcome::Later
    }

    /// Files that are gone are forgotten in the end, and their policies with them.
    fn take_missing(&mut self, scan: &Scan, now: Instant, orphans: &mut Vec<(String, String)>) {
        let mut gone = Vec::new();
        for (name, entry) in &mut self.entries {
            if scan.contains_key(name) {
                continue;
            }
            let since = *entry.missing_since.get_or_insert(now);
            if now.saturating_duration_since(since) >= MISSING_FOR {
                gone.push(name.clone());
            }
        }
        for name in gone {
            let Some(entry) = self.entries.remove(&name) else { continue };
            self.service.policy_files().forget(&name);
            self.service.metrics.policy_file("removed");
            if let Some(policy) = entry.installed() {
                orphans.push((name, policy.to_owned()));
            }
        }
    }

    /// No file speaks for the policy any more.
    fn end(&self, file: &str, policy: &str) {
        if self.keep_removed {
            tracing::info!(file, policy, "the file is gone, its policy stays in force");
            return;
        }
        for _ in 0..ATTEMPTS {
            let edit = edit(policy, EditKind::Deactivate, file);
            let prepared = match self.service.writer().prepare(&edit) {
                Ok(prepared) => Box::new(prepared),
                // Somebody has removed it already.
                Err(PrepareError::Edit(EditError::Unknown(_))) => return,
                Err(error) => {
                    tracing::warn!(file, policy, %error, "the policy stays in force");
                    return;
                }
            };
            let policy_revision = prepared.policy_revision;
            match self.submit(Change { edit, policy_revision, prepared }) {
                Ok(()) => {
                    tracing::info!(file, policy, "the file is gone, its policy is deactivated");
                    return;
                }
                Err(Refusal::Stale { .. }) => {}
                // Somebody has removed it already.
                Err(Refusal::UnknownPolicy(_)) => return,
                Err(refusal) => {
                    tracing::warn!(file, policy, %refusal, "the policy stays in force");
                    return;
                }
            }
        }
    }

    /// Policies that files put in force before the service was stopped, and whose files are gone.
    /// They stay: an empty directory may as well be a disk that is not there.
    fn tell_of_absent(&self, owners: &BTreeMap<String, String>) {
        let absent = self.service.writer().read(|state| {
            let policies = state.library().iter().filter(|it| !owners.contains_key(it.id.as_str()));
            let absent =
                policies.filter_map(|it| Some((it.id.to_string(), written_by(it)?.into())));
            absent.collect::<Vec<(String, String)>>()
        });
        for (policy, file) in absent {
            tracing::warn!(policy, file, "the policy is in force, but its file is gone");
        }
    }

    fn submit(&self, change: Change) -> Result<(), Refusal> {
        let Change { edit, policy_revision, prepared } = change;
        let if_revision = Some(policy_revision);
        let request = Request::EditPolicy { edit: Box::new(edit), if_revision };
        self.service.writer().call_prepared(Call::internal(request), prepared).map(|_| ())
    }

    fn accept(&self, file: &str, policy: &str, warnings: Vec<Diagnostic>) {
        let revision = self.service.writer().read(|state| state.policy().revision);
        tracing::info!(file, policy, policy_revision = revision, "a policy file is in force");
        for warning in &warnings {
            tracing::warn!(file, policy, "{warning}");
        }
        self.service.metrics.policy_file("accepted");
        let (file, policy, at_ms) = (file.into(), policy.into(), self.service.now_ms());
        self.service.policy_files().accept(AcceptedFile { file, at_ms, policy, warnings });
    }

    fn reject(&self, file: &str, policy: Option<&str>, diagnostics: Vec<Diagnostic>) {
        let first = diagnostics.first().map(ToString::to_string).unwrap_or_default();
        let count = diagnostics.len();
        tracing::warn!(file, policy, count, first, "a policy file is rejected");
        self.service.metrics.policy_file("rejected");
        let (file, at_ms, policy) = (file.into(), self.service.now_ms(), policy.map(str::to_owned));
        self.service.policy_files().reject(RejectedFile { file, at_ms, policy, diagnostics });
    }
}

impl Entry {
    /// The policy that was installed from the file.
    fn installed(&self) -> Option<&str> {
        self.policy.as_deref().filter(|_| self.installed)
    }
}

/// `None` when nothing can be said of the file.
fn print(content: &Content) -> Option<blake3::Hash> {
    match content {
        Content::Bytes(bytes) => Some(blake3::hash(bytes)),
        // No text can have the print of something that was not read.
        Content::Unfit(found) => Some(blake3::keyed_hash(&[1; 32], found.to_string().as_bytes())),
        Content::Unsettled => None,
    }
}

fn duplicate(policy: &str, owner: &str) -> Diagnostic {
    let message = format!("policy {policy} is in file {owner} already");
    finding("duplicate-policy", message, "remove one of the files, or give this policy another id")
}
