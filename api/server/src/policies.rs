//! Policies beside placing: trying a change before it is made, and answering what policies say.
//!
//! Whatever is worked out here comes from a glance at the state; what is true is decided by the
//! engine when the change is sent to it, and only if nothing came in between.

pub(crate) mod living;
pub(crate) mod over_maps;
mod simulate;

pub(crate) use simulate::{Simulations, simulate};

use crate::ask::Ask;
use crate::failure::Failure;
use crate::service::Service;
use cluster::Revision;
use engine::{Fleet, Outcome, Refusal, Request, Sample, Trial, Writer};
use living::Living;
use policy::{ActiveSet, Conflict, Edit, EditError, EditKind, Installed};
use std::sync::Arc;
use wire::{Code, DiagnosticView, DryRunView, RuleDryRun};

/// How often a change is tried again when others change policies at the same time.
const ATTEMPTS: u32 = 16;

/// Ids that would hide a route of their own.
const TAKEN: [&str; 4] = ["audit", "conflicts", "evaluate", "validate"];

/// What the routes of policies keep between requests.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    pub(crate) living: Living,
    pub(crate) simulations: Simulations,
}

/// A change that was tried.
#[derive(Debug)]
pub(crate) struct Tried {
    /// The policies and weights that it was tried on.
    pub(crate) policy_revision: u64,
    pub(crate) is_new: bool,
    /// Whether there was a policy of this id before.
    pub(crate) existed: bool,
    pub(crate) conflicts: Vec<Conflict>,
    pub(crate) trial: Trial,
    /// The policy as it would be; `None` once it is removed.
    pub(crate) after: Option<Installed>,
}

/// A change that was made, or that would be.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) policy_revision: u64,
    pub(crate) tried: Tried,
}

/// Tries a change on the living fleet and makes it, if nothing else changed meanwhile; otherwise
/// it is tried again, unless the caller insists on what it has seen.
pub(crate) async fn install(service: &Service, ask: &Ask, edit: Edit) -> Result<Done, Failure> {
    let mut attempts = 1..ATTEMPTS;
    loop {
        let tried = match look_ahead(service, edit.clone()).await {
            // What was asked under a key may have been done before; the engine knows.
            Err(failure) if is_repeat(&failure, ask) => {
                let changed = send(service, ask, edit.clone(), None).await.map_err(|_| failure)?;
                return Ok(Done { tried: as_it_is(service, &edit).await?, ..changed });
            }
            tried => tried?,
        };
        let if_revision = Some(ask.seen.unwrap_or(tried.policy_revision));
        match send(service, ask, edit.clone(), if_revision).await {
            Ok(done) => return Ok(Done { tried, ..done }),
            Err(failure) => {
                let stale = failure.problem.code == Code::CONCURRENT_UPDATE.code;
                if !stale || ask.seen.is_some() || attempts.next().is_none() {
                    return Err(failure);
                }
            }
        }
    }
}

fn is_repeat(failure: &Failure, ask: &Ask) -> bool {
    ask.idempotency_key.is_some() && failure.problem.code == Code::POLICY_EXISTS.code
}

async fn send(
    service: &Service,
    ask: &Ask,
    edit: Edit,
    if_revision: Option<u64>,
) -> Result<Done, Failure> {
    let request = Request::EditPolicy { edit: Box::new(edit), if_revision };
    let reply = service.carry_out(ask, &ask.actor, request).await?;
    let Outcome::Policy(policy) = reply.outcome else {
        return Err(Failure::new(Code::INTERNAL, "the answer is about something else"));
    };
    let tried = Tried {
        policy_revision: policy.revision,
        is_new: false,
        existed: true,
        conflicts: Vec::new(),
        trial: Trial::default(),
        after: None,
    };
    Ok(Done { policy_revision: policy.revision, tried })
}

/// What a change would lead to, or why it cannot be made.
pub(crate) async fn look_ahead(service: &Service, edit: Edit) -> Result<Tried, Failure> {
    service.beside(move |writer| look_ahead_now(writer, &edit)).await
}

/// The same, on this thread.
pub(crate) fn look_ahead_now(writer: &Writer, edit: &Edit) -> Result<(Tried, Revision), Failure> {
    if TAKEN.contains(&edit.policy.as_str()) && brings_text(&edit.change) {
        let detail =
            format!("no policy can have the id {}; it is the name of a route", edit.policy);
        return Err(Failure::new(Code::POLICY_REFUSED, detail));
    }
    let (mut library, policy_revision, time_ms) =
        writer.read(|state| (state.library().clone(), state.policy().revision, state.time_ms()));
    let checked = library.check(edit).map_err(|error| refused(&error))?;
    let existed = library.get(&edit.policy).is_some();
    library.apply(edit, time_ms);
    let (trial, revision) = try_out(writer, Arc::new(checked.active))?;
    let installs = !matches!(edit.change, EditKind::Deactivate | EditKind::Remove);
    let broken = trial
        .0
        .rules
        .iter()
        .find(|rule| installs && rule.policy == edit.policy.as_str() && rule.never_has_a_value);
    if let Some(rule) = broken {
        let detail = format!(
            "rule {} of policy {} has no value on any host for any VM that was tried, so it \
             would never fire",
            rule.rule, rule.policy
        );
        let mut failure = Failure::new(Code::POLICY_REFUSED, detail);
        failure.problem.hint = "an attribute in it is not there, or is of another type: ask for \
                                it in the condition first, as in node.x >= 0 && node.x * 2 > 1"
            .into();
        return Err(failure);
    }
    let (trial, conflicts) = trial;
    let after = library.get(&edit.policy).cloned();
    let is_new = checked.is_new;
    Ok((Tried { policy_revision, is_new, existed, conflicts, trial, after }, revision))
}

fn brings_text(change: &EditKind) -> bool {
    matches!(change, EditKind::Put { .. } | EditKind::Register { .. })
}

/// What a set of policies does to the fleet as it is, and where its rules conflict.
fn try_out(
    writer: &Writer,
    set: Arc<ActiveSet>,
) -> Result<((Trial, Vec<Conflict>), Revision), Failure> {
    let (mut fleet, hosts, sample, revision) = writer.read(|state| {
        let fleet = Fleet::new(Arc::clone(&set), state.dimensions());
        (fleet, state.host_rows(), Sample::of(state, &set), state.revision())
    });
    fleet.follow(&hosts);
    let trial = Trial::run(&fleet, &sample).map_err(|error| {
        Failure::new(Code::POLICY_REFUSED, format!("the policies cannot be evaluated: {error}"))
    })?;
    Ok(((trial, set.conflicts()), revision))
}

/// The policies in force, as if they had just been tried.
async fn as_it_is(service: &Service, edit: &Edit) -> Result<Tried, Failure> {
    let id = edit.policy.clone();
    let tried = service.beside(move |writer| {
        let (set, policy_revision, after) = writer.look(|core| {
            let after = core.state().library().get(&id).cloned();
            (Arc::clone(core.policies()), core.state().policy().revision, after)
        });
        let ((trial, conflicts), revision) = try_out(writer, set)?;
        let (is_new, existed) = (false, true);
        Ok((Tried { policy_revision, is_new, existed, conflicts, trial, after }, revision))
    });
    tried.await
}

/// Why a change cannot be made, in HTTP.
pub(crate) fn refused(error: &EditError) -> Failure {
    let detail = error.to_string();
    match error {
        EditError::Unknown(id) => Refusal::UnknownPolicy(id.to_string()).into(),
        EditError::UnknownVersion { .. } => Failure::new(Code::POLICY_VERSION_NOT_FOUND, detail),
        EditError::Exists(_) => Failure::new(Code::POLICY_EXISTS, detail),
        EditError::Text(found) => {
            let mut failure = Failure::new(Code::POLICY_REFUSED, validation_failed(found));
            failure.problem.diagnostics = found.iter().map(DiagnosticView::from).collect();
            failure
        }
        EditError::OtherId { .. } | EditError::Activation(_) => {
            Failure::new(Code::POLICY_REFUSED, detail)
        }
        EditError::NotActive(_)
        | EditError::StillActive(_)
        | EditError::TooMany
        | EditError::TooLarge(_) => Failure::new(Code::CONFLICT, detail),
    }
}

/// In NovaCron's words.
fn validation_failed(found: &[policy::Diagnostic]) -> String {
    const SHOWN: usize = 8;
    let errors: Vec<String> =
        found.iter().filter(|it| it.is_error()).map(|it| it.to_string()).collect();
    let shown = errors.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("; ");
    let more = errors.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("policy validation failed: {shown}{more}")
}

/// A trial as it is shown: the rules that do something or go wrong.
pub(crate) fn dry_run_view(trial: &Trial) -> DryRunView {
    let told = trial.rules.iter().filter(|rule| rule.hosts_removed > 0 || rule.errors > 0);
    DryRunView {
        hosts: trial.hosts,
        vms: trial.vms,
        stand_in: trial.stand_in,
        vms_without_host: trial.vms_without_host,
        without_host: trial.without_host.iter().map(ToString::to_string).collect(),
        vms_off_their_host: trial.vms_off_their_host,
        rules: told
            .map(|rule| RuleDryRun {
                policy: rule.policy.clone(),
                rule: rule.rule.clone(),
                hosts_removed: rule.hosts_removed,
                vms_affected: rule.vms_affected,
                errors: rule.errors,
            })
            .collect(),
    }
}
