//! NovaCron's placement interface over HTTP: `PlaceVM` on the live fleet, `EvaluateNodes` on nodes
//! that the caller sends.
//!
//! Upstream's `PlaceVM` says where a VM would go and holds nothing, and so does this: the answer is
//! a preview unless the request's context asks for a reservation.

use super::evaluate::evaluate;
use super::prepare::{Asked, Prepared};
use super::{Failures, senseless};
use crate::ask::Ask;
use crate::body::{Sent, aside};
use crate::failure::Failure;
use crate::routes::{Answer, answer, unexpected};
use crate::service::Service;
use axum::extract::State as Handle;
use axum::http::StatusCode;
use cluster::{Decision, Name, Reason, Strategy, Term, Verdict, Vm};
use engine::{Hold, Outcome, PlaceRequest, Request};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::novacron::{
    Alternative, EvaluateRequest, INSUFFICIENT_CAPACITY, Json, NodeScore, PLACEMENT_UNAVAILABLE,
    PlacementDecision, PlacementRequest, Time,
};
use wire::{Choice, Code, Fault, RejectionCounts};

/// How long a reservation holds if the request does not say.
const DEFAULT_TTL_MS: u64 = 30_000;
/// A place can be taken between being found and being reserved; then another one is looked for.
const MOST_ATTEMPTS: usize = 3;

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(place)).routes(routes!(evaluate_nodes))
}

/// Say where a VM would go (NovaCron's `PlaceVM`).
///
/// Nothing is committed unless `context.reserve` is true; then the place is held for
/// `context.reserve_ttl_ms`, 30000 if left out. For a VM that is placed already, the answer is
/// where it could move to.
#[utoipa::path(post, path = "/api/orchestration/placement", tag = "novacron",
    request_body = PlacementRequest,
    responses((status = 200, description = "The decision", body = PlacementDecision), Failures))]
async fn place(
    Handle(service): Handle<Service>,
    ask: Ask,
    Sent(request): Sent<PlacementRequest>,
) -> Answer {
    let ttl_ms = reservation_ttl(&request).map_err(senseless)?;
    for _ in 0..MOST_ATTEMPTS {
        let asked = Asked::new(&request).map_err(senseless)?;
        let prepared = service.read(move |state| Prepared::new(asked, state)).await?;
        let decision = choose(&service, &ask, &prepared).await?;
        let Some(host) = decision.host() else {
            return Err(refusal(&prepared, &decision, &service));
        };
        let hold = match ttl_ms {
            None => None,
            Some(ttl_ms) => match reserve(&service, &ask, &prepared, host, ttl_ms).await? {
                Some(hold) => Some(hold),
                None => continue,
            },
        };
        return answer(StatusCode::OK, &told(&request, &prepared, &decision, hold, &service));
    }
    let detail = format!("every place found for {} was taken before it was held", request.vm_id);
    Err(Failure::new(Code::CONFLICT, detail))
}

/// Judge nodes for a VM (NovaCron's `EvaluateNodes`).
///
/// The live fleet plays no part in it. Scores come in the order of the nodes.
#[utoipa::path(post, path = "/api/orchestration/placement/evaluate", tag = "novacron",
    request_body = EvaluateRequest,
    responses((status = 200, description = "One score per node", body = Vec<NodeScore>), Failures))]
async fn evaluate_nodes(Sent(request): Sent<EvaluateRequest>) -> Answer {
    let scores = aside(move || evaluate(request).map_err(senseless)).await?;
    answer(StatusCode::OK, &scores)
}

/// `None` when nothing is to be held.
fn reservation_ttl(request: &PlacementRequest) -> Result<Option<u64>, Fault> {
    let context = |key: &str| request.context.as_ref().and_then(|context| context.get(key));
    let wrong = |key: &str, value: &Json, hint: &str| Fault {
        path: format!("context.{key}"),
        code: "invalid_value".into(),
        message: value.describe(),
        hint: hint.into(),
    };
    match context("reserve") {
        None | Some(Json::Null | Json::Bool(false)) => return Ok(None),
        Some(Json::Bool(true)) => {}
        Some(other) => return Err(wrong("reserve", other, "send true or false")),
    }
    match context("reserve_ttl_ms") {
        None | Some(Json::Null) => Ok(Some(DEFAULT_TTL_MS)),
        Some(Json::Integer(ttl)) => match u64::try_from(*ttl) {
            Ok(ttl) if engine::HOLD_TTL_MS.contains(&ttl) => Ok(Some(ttl)),
            _ => Err(wrong("reserve_ttl_ms", &Json::Integer(*ttl), "send 1000 to 3600000")),
        },
        Some(other) => Err(wrong("reserve_ttl_ms", other, "send 1000 to 3600000")),
    }
}

/// The engine's choice. Where the cheapest will be taken, the lowest price at which there is one.
async fn choose(
    service: &Service,
    ask: &Ask,
    prepared: &Prepared,
) -> Result<Arc<Decision>, Failure> {
    let strategy = Some(prepared.strategy);
    let anywhere = preview(service, ask, strategy, prepared.restricted(None)).await?;
    if anywhere.host().is_none() {
        return Ok(anywhere);
    }
    // With a higher price come more hosts, so that what fits at one price fits at every higher.
    let mut best = anywhere;
    let mut tiers = prepared.prices.as_slice();
    while tiers.len() > 1 {
        let (lower, upper) = tiers.split_at(tiers.len() / 2);
        let most = lower.last().copied();
        let decision = preview(service, ask, strategy, prepared.restricted(most)).await?;
        tiers = match decision.host() {
            Some(_) => {
                best = decision;
                lower
            }
            None => upper,
        };
    }
    Ok(best)
}

/// What the engine would decide.
pub(super) async fn preview(
    service: &Service,
    ask: &Ask,
    strategy: Option<Strategy>,
    vm: Vm,
) -> Result<Arc<Decision>, Failure> {
    let tenant = vm.key.tenant.clone();
    let request = PlaceRequest { strategy, ..PlaceRequest::new(vm) };
    let reply = service.carry_out(&ask.clone().dry(true), &tenant, Request::Place(request)).await?;
    match reply.outcome {
        Outcome::Placement(engine::Placement { decision: Some(decision), .. }) => Ok(decision),
        other => Err(unexpected(&other)),
    }
}

/// Holds the chosen host. `None` if it was taken meanwhile.
async fn reserve(
    service: &Service,
    ask: &Ask,
    prepared: &Prepared,
    host: &Name,
    ttl_ms: u64,
) -> Result<Option<Hold>, Failure> {
    if let Some(present) = &prepared.moves_from {
        let id = &prepared.plain.key.id;
        let detail = format!("{id}: the VM is on {present}; a place to move to cannot be held");
        return Err(Failure::new(Code::CONFLICT, detail));
    }
    let request = PlaceRequest {
        vm: Arc::clone(&prepared.plain),
        strategy: Some(prepared.strategy),
        hold_ttl_ms: Some(ttl_ms),
        pinned: Some(host.clone()),
        among: Vec::new(),
    };
    let tenant = &prepared.plain.key.tenant;
    let reply = service.carry_out(ask, tenant, Request::Place(request)).await?;
    match reply.outcome {
        Outcome::Placement(placement) => Ok(placement.hold),
        other => Err(unexpected(&other)),
    }
}

/// No node will do: the first of NovaCron's two words for it if room is what is missing.
fn refusal(prepared: &Prepared, decision: &Decision, service: &Service) -> Failure {
    if prepared.hosts == 0 {
        let detail = "no available nodes found: the inventory is empty";
        return Failure::new(PLACEMENT_UNAVAILABLE, detail);
    }
    let full = decision.rejections.0.iter().any(|(it, _)| matches!(it, Reason::Capacity(_)));
    let code = if full { INSUFFICIENT_CAPACITY } else { PLACEMENT_UNAVAILABLE };
    let reasons = reasons(prepared, decision, service);
    let reasons: Vec<String> =
        reasons.iter().map(|(reason, hosts)| format!("{hosts} x {reason}")).collect();
    let detail = format!("no feasible nodes found for VM placement: {}", reasons.join("; "));
    Failure::new(code, detail)
}

/// How many nodes each reason left out. Lists that were made here are told by what they were for.
fn reasons(prepared: &Prepared, decision: &Decision, service: &Service) -> Vec<(String, usize)> {
    let RejectionCounts(counts) = RejectionCounts::new(&decision.rejections, &service.dimensions());
    let told = |reason: &str| match reason {
        "host_affinity" => true,
        "policy" => !decision.policy_rejections.is_empty(),
        _ => false,
    };
    let counts = counts.into_iter().filter(|(reason, _)| !told(reason));
    let counts = counts.map(|(reason, hosts)| (reason, usize::try_from(hosts).unwrap_or(0)));
    let policies = decision.policy_rejections.iter().map(|it| {
        let hosts = usize::try_from(it.hosts).unwrap_or(0);
        (format!("policy {}, rule {}: {}", it.policy, it.rule, it.reason), hosts)
    });
    prepared.left_out.iter().cloned().chain(policies).chain(counts).collect()
}

fn told(
    request: &PlacementRequest,
    prepared: &Prepared,
    decision: &Decision,
    hold: Option<Hold>,
    service: &Service,
) -> PlacementDecision {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let most = prepared.most.max(1) as f64;
    let share = |score: i64| (score as f64 / most).clamp(0.001, 1.0);
    let (selected_node, score) = match &decision.verdict {
        Verdict::Placed { host, score, .. } => (host.to_string(), *score),
        Verdict::Rejected => (String::new(), 0),
    };
    let alternatives: Vec<Alternative> = decision
        .alternatives
        .iter()
        .map(|other| Alternative {
            node_id: other.host.to_string(),
            score: share(other.score),
            explanation: behind(score, other.score),
        })
        .collect();
    PlacementDecision {
        request_id: format!("placement-{}-{number}", decision.based_on.0),
        vm_id: request.vm_id.clone(),
        confidence: lead(score, decision.alternatives.first().map(|other| other.score)),
        explanation: explained(&selected_node, request, prepared, decision),
        selected_node,
        score: share(score),
        alternatives: Some(alternatives),
        timestamp: Time::from_unix_millis(service.now_ms()),
        metadata: Some(metadata(request, prepared, decision, hold, service)),
    }
}

/// One half, and the other half by the lead over the next best: 1 where there is no other.
pub(super) fn lead(score: i64, next: Option<i64>) -> f64 {
    match next {
        None => 1.0,
        Some(_) if score <= 0 => 0.5,
        Some(next) => {
            let lead = score.saturating_sub(next) as f64 / score as f64;
            0.5 + 0.5 * lead.clamp(0.0, 1.0)
        }
    }
}

fn behind(best: i64, score: i64) -> String {
    match best.saturating_sub(score) {
        0 => "as good; the other one comes first".into(),
        points => format!("{points} points behind"),
    }
}

fn explained(
    node: &str,
    request: &PlacementRequest,
    prepared: &Prepared,
    decision: &Decision,
) -> String {
    let left_out = decision.rejections.total();
    let fit = u64::from(decision.hosts_considered).saturating_sub(left_out);
    let considered = decision.hosts_considered;
    let mut text = format!(
        "Node {node} is the best of {fit} that will do, out of {considered}, by {}",
        prepared.strategy.name()
    );
    if let Verdict::Placed { breakdown, .. } = &decision.verdict {
        let parts = Term::ALL.map(|term| format!("{} {}", term.name(), breakdown.get(term)));
        text.push_str(&format!(" ({}, policies {})", parts.join(", "), breakdown.policy));
    }
    if let Some(present) = &prepared.moves_from {
        text.push_str(&format!("; the VM is on {present} now"));
    } else if prepared.plain.demand.is_zero() {
        text.push_str(&format!("; {} is not known here and no size is given", request.vm_id));
    }
    text
}

fn metadata(
    request: &PlacementRequest,
    prepared: &Prepared,
    decision: &Decision,
    hold: Option<Hold>,
    service: &Service,
) -> BTreeMap<String, Json> {
    let number = |number: u64| Json::Integer(i64::try_from(number).unwrap_or(i64::MAX));
    let considered = u64::from(decision.hosts_considered);
    let left_out = reasons(prepared, decision, service);
    let left_out = left_out.into_iter().map(|(reason, hosts)| (reason, number(hosts as u64)));
    let mut entries: Vec<(&str, Json)> = vec![
        ("algorithm", prepared.strategy.name().into()),
        ("strategy", request.known_strategy().unwrap_or_default().word().into()),
        ("nodes_evaluated", number(considered)),
        ("feasible_nodes", number(considered.saturating_sub(decision.rejections.total()))),
        ("left_out", Json::object(left_out)),
        ("revision", number(decision.based_on.0)),
        ("policy_revision", number(decision.policy_revision)),
        ("committed", hold.is_some().into()),
    ];
    if let Verdict::Placed { breakdown, .. } = &decision.verdict {
        let terms = Term::ALL.map(|term| (term.name(), Json::Integer(breakdown.get(term))));
        let policy = ("policy", Json::Integer(breakdown.policy));
        entries.push(("breakdown", Json::object(terms.into_iter().chain([policy]))));
    }
    if let Some(hold) = hold {
        entries.push(("reservation_id", format!("r{}", hold.reservation).into()));
        let expires = Time::from_unix_millis(hold.expires_ms).to_string();
        entries.push(("reservation_expires", expires.into()));
    }
    if let Some(present) = &prepared.moves_from {
        entries.push(("present_node", present.to_string().into()));
    }
    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_is_the_lead_over_the_next_best() {
        assert_eq!(lead(100, None), 1.0);
        assert_eq!(lead(100, Some(100)), 0.5);
        assert_eq!(lead(100, Some(50)), 0.75);
        assert_eq!(lead(0, Some(0)), 0.5);
    }
}
