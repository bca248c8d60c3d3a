//! Whether a file may come into force: from its bytes and the living state to an edit, or to all
//! that is wrong.
//!
//! Changes nothing. The edit is the one that REST would send, already checked against the
//! policies that are installed and tried on the hosts that are there.

use super::scan::finding;
use crate::failure::Failure;
use crate::policies::{Outlook, look_ahead_now};
use engine::{Prepared, Writer};
use policy::{
    Activation, Diagnostic, Document, Edit, EditKind, Library, Program, Severity, Source, Syntax,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Begins the names of users that are files.
const FILE_USER: &str = "file:";

/// A file that holds a policy, whether or not it can be installed.
#[derive(Debug)]
pub(super) struct Candidate {
    file: String,
    source: Source,
    program: Arc<Program>,
    warnings: Vec<Diagnostic>,
    wishes: Wishes,
}

/// What the metadata of a file says about activating its policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wishes {
    activate: bool,
    priority: Option<i32>,
}

/// A file that can come into force.
#[derive(Debug)]
pub(super) struct Good {
    /// What to ask for. `None` leaves things as the operator has set them.
    pub(super) change: Option<Change>,
    pub(super) warnings: Vec<Diagnostic>,
}

/// An edit that was worked out, and the policy revision at which that began.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) edit: Edit,
    pub(super) policy_revision: u64,
    pub(super) prepared: Box<Prepared>,
}

/// Reads the policy in a file.
pub(super) fn read(file: &str, bytes: &[u8]) -> Result<Candidate, Vec<Diagnostic>> {
    guarded(|| {
        let text = std::str::from_utf8(bytes).map_err(|error| vec![not_text(bytes, error)])?;
        if text.trim().is_empty() {
            let hint = "remove the file if the policy is to end";
            return Err(vec![finding("empty-file", "there is nothing in it".into(), hint)]);
        }
        let syntax = Syntax::of_file(file);
        if syntax == Syntax::Yaml && !(text == "...\n" || text.ends_with("\n...\n")) {
            return Err(vec![no_end(text)]);
        }
        let source = Source::new(text, syntax);
        let (program, warnings) = source.load()?;
        let wishes = Wishes::of(program.document())?;
        Ok(Candidate { file: file.to_owned(), source, program, warnings, wishes })
    })
}

impl Candidate {
    pub(super) fn policy(&self) -> &str {
        self.program.id()
    }

    /// Checks the policy against what is installed and tries it on the fleet. `starting`: the
    /// file is seen for the first time since the service started, and may say nothing new.
    pub(super) fn judge(&self, writer: &Writer, starting: bool) -> Result<Good, Vec<Diagnostic>> {
        let (library, policy_revision) =
            writer.read(|state| (state.library().clone(), state.policy().revision));
        let mut warnings = self.warnings.clone();
        if starting && self.is_old_news(&library) {
            return Ok(Good { change: None, warnings });
        }
        let edit = self.edit(&library, &mut warnings);
        let (outlook, prepared) = guarded(|| look_ahead_now(writer, &edit).map_err(refused))?;
        warnings.extend(doubts(&outlook, self.policy()));
        Ok(Good { change: Some(Change { edit, policy_revision, prepared }), warnings })
    }

    /// An operator changed the policy after this text had been installed: tuned it, deactivated
    /// it, or rolled it back. Starting again is no reason to undo that.
    fn is_old_news(&self, library: &Library) -> bool {
        let Some(installed) = library.get(self.policy()) else { return false };
        let mut versions = installed.versions.iter();
        let known = versions.any(|it| it.source == self.source);
        let changes = library.audit().filter(|entry| entry.policy == self.policy());
        let by = changes.last().map(|entry| &entry.user);
        let by = by.or(installed.newest().map(|version| &version.author));
        known && by.is_some_and(|user| !user.starts_with(FILE_USER))
    }

    fn edit(&self, library: &Library, warnings: &mut Vec<Diagnostic>) -> Edit {
        let before = library.get(self.policy()).and_then(|it| it.activation.as_ref());
        let activation = self.wishes.activate.then(|| {
            let document = self.program.document();
            let kept = before.map(|it| kept(it, document, warnings)).unwrap_or_default();
            Activation { priority: self.wishes.priority.unwrap_or(kept.priority), ..kept }
        });
        let source = self.source.clone();
        edit(self.policy(), EditKind::Put { source, activation }, &self.file)
    }
}

/// A change that a file asks for.
pub(super) fn edit(policy: &str, change: EditKind, file: &str) -> Edit {
    let description = match change {
        EditKind::Deactivate => "the file was removed",
        _ => "the file was read",
    };
    Edit {
        policy: policy.into(),
        change,
        user: format!("{FILE_USER}{file}"),
        description: description.into(),
    }
}

/// Whether a policy is in force and was last written by a file; if so, by which.
pub(super) fn written_by(policy: &policy::Installed) -> Option<&str> {
    let author = policy.newest()?.author.strip_prefix(FILE_USER)?;
    policy.activation.is_some().then_some(author)
}

/// Why a policy that is right in itself cannot be installed here.
fn refused(failure: Failure) -> Vec<Diagnostic> {
    let hint = format!("{}; the version before stays in force", failure.problem.hint);
    vec![finding("not-installable", failure.problem.detail.clone(), &hint)]
}

/// What the dry run and the other policies say against it.
fn doubts(outlook: &Outlook, policy: &str) -> Vec<Diagnostic> {
    let warning = |code, message, hint: &str| Diagnostic {
        severity: Severity::Warning,
        ..finding(code, message, hint)
    };
    let conflicts = outlook.conflicts.iter().filter(|it| it.policies.iter().any(|id| id == policy));
    let mut doubts: Vec<Diagnostic> = conflicts
        .map(|it| warning("conflict", it.message.clone(), "change one of the rules"))
        .collect();
    let trial = &outlook.trial;
    let removes = trial.rules.iter().any(|rule| rule.policy == policy && rule.hosts_removed > 0);
    if removes && trial.vms_without_host > 0 {
        let message = format!(
            "no host is left for {} of {} VMs that the policies were tried with",
            trial.vms_without_host,
            trial.vms.max(1)
        );
        let hint = "a filter removes the hosts for which its `when` is true";
        doubts.push(warning("no-host-left", message, hint));
    }
    doubts
}

/// What an operator has set, as far as the new text allows it.
fn kept(
    activation: &Activation,
    document: &Document,
    warnings: &mut Vec<Diagnostic>,
) -> Activation {
    let mut configuration = activation.configuration();
    configuration.parameter_values.retain(|name, value| {
        let problem = match document.parameter(name) {
            Some(parameter) => parameter.check(value).err(),
            None => Some("there is no such parameter any more".into()),
        };
        let Some(problem) = problem else { return true };
        warnings.push(Diagnostic {
            severity: Severity::Warning,
            field: format!("parameters.{name}"),
            ..finding(
                "setting-dropped",
                format!("the value that was set for it is dropped: {problem}"),
                "set it again over REST if the default is not wanted",
            )
        });
        false
    });
    Activation::from(&configuration)
}

impl Wishes {
    fn of(document: &Document) -> Result<Self, Vec<Diagnostic>> {
        let at = document.marks.of("metadata");
        let mut found = Vec::new();
        let mut complain = |key: &str, value: &str, wanted: &str| {
            found.push(Diagnostic {
                line: at.line,
                column: at.column,
                field: format!("metadata.{key}"),
                ..finding("bad-metadata", format!("{value:?} is not {wanted}"), "correct the value")
            });
        };
        let value = |key: &str| document.metadata.get(key).map(String::as_str);
        let activate = match value("activate") {
            None | Some("true") => true,
            Some("false") => false,
            Some(other) => {
                complain("activate", other, "true or false");
                false
            }
        };
        let priority = value("priority").and_then(|text| {
            let number = text.parse().ok();
            if number.is_none() {
                complain("priority", text, "a whole number");
            }
            number
        });
        if found.is_empty() { Ok(Self { activate, priority }) } else { Err(found) }
    }
}

/// A bug in the language must not end the thread that reads files.
fn guarded<T>(work: impl FnOnce() -> Result<T, Vec<Diagnostic>>) -> Result<T, Vec<Diagnostic>> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let hint = "report the file to the makers of novaplace";
        Err(vec![finding("internal", "trying the policy failed in the service".into(), hint)])
    })
}

fn not_text(bytes: &[u8], error: std::str::Utf8Error) -> Diagnostic {
    let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
    let lines = before.iter().filter(|byte| **byte == b'\n').count().saturating_add(1);
    let column = before.rsplit(|byte| *byte == b'\n').next().map_or(0, <[u8]>::len);
    Diagnostic {
        line: u32::try_from(lines).unwrap_or(u32::MAX),
        column: u32::try_from(column.saturating_add(1)).unwrap_or(u32::MAX),
        ..finding("not-text", "this is not UTF-8".into(), "save the file as UTF-8")
    }
}

/// The beginning of a YAML document may be a document too, with rules missing at the end; only a
/// mark at its end shows that it is whole.
fn no_end(text: &str) -> Diagnostic {
    Diagnostic {
        line: u32::try_from(text.lines().count()).unwrap_or(u32::MAX),
        column: 1,
        ..finding(
            "no-end-marker",
            "the file does not end with a line `...`, so it may be only half of it".into(),
            "end the document with a line of three dots and a line break",
        )
    }
}
