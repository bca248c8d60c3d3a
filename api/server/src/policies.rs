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
use engine::{Outcome, PrepareError, Prepared, Refusal, Request, Trial, Tried, Writer};
use living::Living;
use policy::{Conflict, Edit, EditError, EditKind, EvaluateError, Installed};
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

/// What a change leads to.
#[derive(Debug, Default)]
pub(crate) struct Outlook {
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
    pub(crate) outlook: Outlook,
}

/// Tries a change on the living fleet and makes it, if nothing else changed meanwhile; otherwise
/// it is tried again, unless the caller insists on what it has seen.
pub(crate) async fn install(service: &Service, ask: &Ask, edit: Edit) -> Result<Done, Failure> {
    let mut attempts = 1..ATTEMPTS;
    loop {
        let (outlook, prepared) = match look_ahead(service, edit.clone()).await {
            // What was asked under a key may have been done before; the engine knows.
            Err(failure) if is_repeat(&failure, ask) => {
                let policy_revision =
                    send(service, ask, edit.clone(), None, None).await.map_err(|_| failure)?;
                let outlook = as_it_is(service, &edit).await?;
                return Ok(Done { policy_revision, outlook });
            }
            ahead => ahead?,
        };
        let if_revision = Some(ask.seen.unwrap_or(prepared.policy_revision));
        match send(service, ask, edit.clone(), if_revision, Some(prepared)).await {
            Ok(policy_revision) => return Ok(Done { policy_revision, outlook }),
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
    prepared: Option<Box<Prepared>>,
) -> Result<u64, Failure> {
    let request = Request::EditPolicy { edit: Box::new(edit), if_revision };
    let reply = service.carry_out_prepared(ask, &ask.actor, request, prepared).await?;
    match reply.outcome {
        Outcome::Policy(policy) => Ok(policy.revision),
        _ => Err(Failure::new(Code::INTERNAL, "the answer is about something else")),
    }
}

/// What a change would lead to, with all that is needed to make it; or why it cannot be made.
pub(crate) async fn look_ahead(
    service: &Service,
    edit: Edit,
) -> Result<(Outlook, Box<Prepared>), Failure> {
    let ahead = service.beside(move |writer| {
        let (outlook, prepared) = look_ahead_now(writer, &edit)?;
        let revision = prepared.tried.revision;
        Ok(((outlook, prepared), revision))
    });
    ahead.await
}

/// The same, on this thread.
pub(crate) fn look_ahead_now(
    writer: &Writer,
    edit: &Edit,
) -> Result<(Outlook, Box<Prepared>), Failure> {
    if TAKEN.contains(&edit.policy.as_str()) && brings_text(&edit.change) {
        let detail =
            format!("no policy can have the id {}; it is the name of a route", edit.policy);
        return Err(Failure::new(Code::POLICY_REFUSED, detail));
    }
    let prepared = writer.prepare(edit).map_err(|error| match error {
        PrepareError::Edit(error) => refused(&error),
        PrepareError::Evaluate(error) => not_evaluated(&error),
    })?;
    let installs = !matches!(edit.change, EditKind::Deactivate | EditKind::Remove);
    let mut rules = prepared.tried.trial.rules.iter();
    let broken = rules
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
    let outlook = Outlook {
        is_new: prepared.is_new,
        existed: prepared.existed,
        after: prepared.after.clone(),
        ..Outlook::of(&prepared.tried)
    };
    Ok((outlook, Box::new(prepared)))
}

impl Outlook {
    /// What policies do to the fleet as it is, and where their rules conflict.
    fn of(tried: &Tried) -> Self {
        let (trial, conflicts) = (tried.trial.clone(), tried.set().conflicts());
        Self { trial, conflicts, ..Self::default() }
    }
}

fn not_evaluated(error: &EvaluateError) -> Failure {
    Failure::new(Code::POLICY_REFUSED, format!("the policies cannot be evaluated: {error}"))
}

fn brings_text(change: &EditKind) -> bool {
    matches!(change, EditKind::Put { .. } | EditKind::Register { .. })
}

/// The policies in force, as if they had just been tried.
async fn as_it_is(service: &Service, edit: &Edit) -> Result<Outlook, Failure> {
    let id = edit.policy.clone();
    let tried = service.beside(move |writer| {
        let (set, after) = writer
            .look(|core| (Arc::clone(core.policies()), core.state().library().get(&id).cloned()));
        let tried = writer.try_out(set).map_err(|error| not_evaluated(&error))?;
        let outlook = Outlook { existed: true, after, ..Outlook::of(&tried) };
        Ok((outlook, tried.revision))
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
