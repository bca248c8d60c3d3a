//! `POST /scheduler/vms/{vm_id}/schedule`: a node for a VM, held until an event confirms it.

use super::fleet::{self, Nodes};
use super::{Failures, senseless};
use crate::ask::{Ask, Id};
use crate::body::Sent;
use crate::failure::Failure;
use crate::routes::{Answer, answer, unexpected};
use crate::service::Service;
use axum::extract::State as Handle;
use axum::http::StatusCode;
use cluster::{Amounts, Decision, HostIx, Index, Name, Reason, Strategy, Term, Verdict, Vm};
use engine::{Hold, Outcome, PlaceRequest, Placement, Request, State};
use policy::Weights;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::novacron::{
    Alternative, Duration, INSUFFICIENT_CAPACITY, PLACEMENT_UNAVAILABLE, ScheduleAnswer,
    ScheduleRequest, SchedulerConfig,
};
use wire::{Code, NameSchema};

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(schedule))
}

/// Find a node for a VM and hold its place there.
///
/// The place is held until a `created` or `started` event confirms it, a `deleted` event gives it
/// back, or its time is over. Asking again for the same VM gives the same answer.
#[utoipa::path(post, path = "/scheduler/vms/{vm_id}/schedule", tag = "novacron",
    params(("vm_id" = NameSchema, Path)), request_body = ScheduleRequest,
    responses((status = 200, description = "The node", body = ScheduleAnswer), Failures))]
async fn schedule(
    Handle(service): Handle<Service>,
    id: Id,
    ask: Ask,
    Sent(sent): Sent<ScheduleRequest>,
) -> Answer {
    let wish = Wish::new(&service, &id.name()?, &sent)?;
    let brought = Nodes::new(&service, "nodes", sent.nodes.as_deref().unwrap_or_default())?;
    if brought.len() > 0 {
        // For callers that keep no inventory here.
        brought.take_over(&service, &ask).await?;
    }
    if let Some(overcommit) = sent.config.as_ref().map(SchedulerConfig::overcommit_permille) {
        allow(&service, &ask, overcommit).await?;
    }
    let (known, view) = look(&service, &wish, sent.generation).await?;
    if let Some(known) = known {
        return answer(StatusCode::OK, &repeated(&service, &wish, known, &view).await?);
    }
    let advising = service.options.advise;
    let ask = ask.without_key().dry(advising);
    let mut request = PlaceRequest {
        vm: Arc::clone(&wish.vm),
        strategy: wish.strategy,
        hold_ttl_ms: (!advising).then_some(service.options.hold_ttl_ms),
        pinned: None,
        among: view.preferred.clone(),
    };
    let mut placement = None;
    if !request.among.is_empty() {
        placement = Some(place(&service, &ask, &request).await?).filter(|it| it.host.is_some());
    }
    if placement.is_none() {
        request.among = if view.everybody { Vec::new() } else { view.candidates.clone() };
        let mut found = place(&service, &ask, &request).await?;
        if found.host.as_ref().is_some_and(|host| view.everybody && !wish.means(host)) {
            // A host came after the list was looked at, and it is not on the list.
            give_back(&service, &ask, &found).await?;
            request.among = view.candidates.clone();
            found = place(&service, &ask, &request).await?;
        }
        placement = Some(found);
    }
    if advising {
        service.advice.asked(request);
    }
    match placement {
        Some(Placement { host: Some(host), hold, decision: Some(decision), .. }) => {
            answer(StatusCode::OK, &told(&wish, &host, hold, &decision, &view))
        }
        Some(Placement { decision: Some(decision), .. }) => Err(nowhere(&decision, &view)),
        other => Err(Failure::new(Code::INTERNAL, format!("no decision in {other:?}"))),
    }
}

/// What is asked, in the engine's words.
struct Wish {
    vm: Arc<Vm>,
    strategy: Option<Strategy>,
    preferred: Vec<Name>,
    /// Nodes to choose from; empty for all.
    candidates: Vec<Name>,
    /// How long the place is held.
    ttl_ms: u64,
    /// Most VMs on the node, where the request says so; 0 for no limit.
    most_vms: u64,
}

impl Wish {
    fn new(service: &Service, id: &Name, sent: &ScheduleRequest) -> Result<Self, Failure> {
        let config = sent.config.as_ref();
        let match_labels = config.is_some_and(|config| config.enable_node_labels);
        let inside = |fault: wire::Fault| {
            let path = format!("vm.{}", fault.path);
            senseless(wire::Fault { path, ..fault })
        };
        let mut vm = sent.vm.to_vm(Some(id), match_labels).map_err(inside)?;
        // Preferred nodes come first here, and not just higher in the score.
        let preferred = std::mem::take(&mut vm.preferred_hosts);
        if let Some(dim) = fleet::slots(service) {
            vm.demand.set(dim, 1);
        }
        // A policy that is left to the scheduler is its configured one.
        let fallback = config.and_then(SchedulerConfig::strategy);
        let strategy = match &sent.vm.placement {
            Some(_) => sent.vm.strategy().or(fallback),
            None => fallback,
        };
        let mut candidates = sent.candidates().map_err(senseless)?;
        if candidates.is_empty() {
            for node in sent.nodes.iter().flatten() {
                candidates.push(node.name().map_err(senseless)?);
            }
        }
        let most_vms = config.map_or(0, |config| config.max_vms_per_node);
        let most_vms = u64::try_from(most_vms).unwrap_or(0);
        let ttl_ms = service.options.hold_ttl_ms;
        Ok(Self { vm: Arc::new(vm), strategy, preferred, candidates, ttl_ms, most_vms })
    }

    /// Whether the list of nodes to choose from, if there is one, has this node.
    fn means(&self, host: &Name) -> bool {
        self.candidates.is_empty() || self.candidates.contains(host)
    }
}

/// What the state says about a wish.
struct View {
    generation: u64,
    weights: Weights,
    /// Preferred nodes that may be tried first.
    preferred: Vec<Name>,
    /// Nodes to choose from; empty for all.
    candidates: Vec<Name>,
    /// Every node that there is may be chosen, by name or because none is named.
    everybody: bool,
    /// How many of them there are at all.
    nodes: usize,
}

/// Where the VM is already.
struct Known {
    host: Name,
    hold: Option<Hold>,
    decided: engine::DecisionId,
    same: bool,
}

async fn look(
    service: &Service,
    wish: &Wish,
    seen: Option<u64>,
) -> Result<(Option<Known>, View), Failure> {
    let (vm, preferred) = (Arc::clone(&wish.vm), wish.preferred.clone());
    let (candidates, most_vms) = (wish.candidates.clone(), wish.most_vms);
    let read = service.read(move |state| {
        let known = state.find_vm(&vm.key).and_then(|(_, entry)| {
            let host = state.host(entry.host)?.host.id.clone();
            let same = entry.vm.demand == vm.demand;
            Some(Known { host, hold: entry.hold, decided: entry.decided, same })
        });
        (known, view(state, &vm, preferred, candidates, most_vms))
    });
    let (known, view) = read.await?;
    if let Some(seen) = seen.filter(|seen| *seen > view.generation) {
        let detail = format!(
            "inventory {seen} has not arrived here, {} has; send it first",
            view.generation
        );
        return Err(Failure::new(Code::CONFLICT, detail));
    }
    Ok((known, view))
}

fn view(
    state: &State,
    vm: &Vm,
    preferred: Vec<Name>,
    candidates: Vec<Name>,
    most_vms: u64,
) -> View {
    let meant = Meant::new(state, &candidates);
    let full = |entry: &engine::HostEntry| {
        let ours = u64::try_from(entry.vms.len()).unwrap_or(u64::MAX);
        most_vms > 0 && ours.saturating_add(entry.foreign().vms.into()) >= most_vms
    };
    let preferred = preferred.into_iter().filter(|host| {
        let usable = |(ix, entry)| meant.has(ix) && !full(entry);
        !vm.excluded_hosts.contains(host) && state.find_host(host).is_some_and(usable)
    });
    let preferred: Vec<Name> = preferred.collect();
    let nodes = meant.count();
    let (candidates, left) = match most_vms {
        0 => (candidates, nodes),
        _ => {
            let free = state.hosts().filter(|(ix, entry)| meant.has(*ix) && !full(entry));
            let free: Vec<Name> = free.map(|(_, entry)| entry.host.id.clone()).collect();
            let left = free.len();
            // Nobody may take it: say so with a list that names nobody who exists.
            (if free.is_empty() { candidates_of_none(state) } else { free }, left)
        }
    };
    let everybody = left > 0 && left == state.host_count();
    View {
        generation: state.inventory().generation,
        weights: state.policy().weights,
        preferred,
        candidates,
        everybody,
        nodes,
    }
}

/// The hosts that a list of names means, looked up once: a bit for each row.
struct Meant {
    rows: Vec<u64>,
}

impl Meant {
    /// An empty list means every host.
    fn new(state: &State, names: &[Name]) -> Self {
        let mut meant = Self { rows: Vec::new() };
        if names.is_empty() {
            state.hosts().for_each(|(ix, _)| meant.add(ix));
        } else {
            let known = names.iter().filter_map(|name| state.find_host(name));
            known.for_each(|(ix, _)| meant.add(ix));
        }
        meant
    }

    fn add(&mut self, ix: HostIx) {
        let word = ix.row() / 64;
        if self.rows.len() <= word {
            self.rows.resize(word.saturating_add(1), 0);
        }
        if let Some(word) = self.rows.get_mut(word) {
            *word |= 1 << (ix.row() % 64);
        }
    }

    fn has(&self, ix: HostIx) -> bool {
        self.rows.get(ix.row() / 64).is_some_and(|word| word & (1 << (ix.row() % 64)) != 0)
    }

    fn count(&self) -> usize {
        self.rows.iter().map(|word| word.count_ones() as usize).sum()
    }
}

/// The name of a host that does not exist.
fn candidates_of_none(state: &State) -> Vec<Name> {
    let names = (0..u64::MAX).filter_map(|n| Name::new(&format!("none-{n}")).ok());
    names.filter(|name| state.find_host(name).is_none()).take(1).collect()
}

/// Overcommit is the whole scheduler's, so it becomes that of every node that was reported.
async fn allow(service: &Service, ask: &Ask, overcommit: Amounts) -> Result<(), Failure> {
    let different = service.read(move |state| {
        let reported = state.hosts().filter(|(_, entry)| entry.report.is_some());
        let different = reported.filter(|(_, entry)| entry.host.overcommit_permille != overcommit);
        let hosts = different.map(|(_, entry)| cluster::Host {
            overcommit_permille: overcommit.clone(),
            ..entry.host.as_ref().clone()
        });
        hosts.collect::<Vec<_>>()
    });
    let requests = different.await?.into_iter().map(|host| {
        let (host, mode) = (Box::new(host), engine::PutMode::CreateOrReplace);
        ((), Request::PutHost { host, mode, if_generation: None })
    });
    for (_, reply) in fleet::all(service, ask, requests.collect()).await {
        match reply {
            // More is promised on it than it would have: it keeps what it has.
            Err(failure) if failure.problem.status < 500 => {}
            other => {
                other?;
            }
        }
    }
    Ok(())
}

pub(super) async fn place(
    service: &Service,
    ask: &Ask,
    request: &PlaceRequest,
) -> Result<Placement, Failure> {
    let tenant = &request.vm.key.tenant;
    let reply = service.carry_out(ask, tenant, Request::Place(request.clone())).await?;
    match reply.outcome {
        Outcome::Placement(placement) => Ok(placement),
        other => Err(unexpected(&other)),
    }
}

/// Ends the reservation of a placement that is not wanted.
async fn give_back(service: &Service, ask: &Ask, placement: &Placement) -> Result<(), Failure> {
    if let Some(hold) = placement.hold.filter(|_| !ask.dry_run) {
        let request = Request::Release { reservation: hold.reservation };
        service.carry_out(ask, &ask.actor, request).await?;
    }
    Ok(())
}

/// The answer for a VM that has its place already.
async fn repeated(
    service: &Service,
    wish: &Wish,
    known: Known,
    view: &View,
) -> Result<ScheduleAnswer, Failure> {
    let Known { host, hold, decided, same } = known;
    if !same {
        let detail = format!(
            "VM {} is on node {host} with another size; report it with an event, or delete it first",
            wish.vm.key.id
        );
        return Err(Failure::new(Code::VM_EXISTS, detail));
    }
    let placing = service.recall(move |history| history.placing(decided)).await?;
    let decision = placing.map(|placing| placing.decision);
    match decision.filter(|decision| decision.host() == Some(&host)) {
        Some(decision) => Ok(told(wish, &host, hold, &decision, view)),
        // It runs there because NovaCron says so.
        None => Ok(ScheduleAnswer {
            vm_id: wish.vm.key.id.to_string(),
            node_id: host.to_string(),
            score: 1.0,
            confidence: 1.0,
            explanation: "the VM runs there".into(),
            generation: view.generation,
            ..ScheduleAnswer::default()
        }),
    }
}

fn told(
    wish: &Wish,
    host: &Name,
    hold: Option<Hold>,
    decision: &Decision,
    view: &View,
) -> ScheduleAnswer {
    let most = most(decision.strategy, &view.weights);
    let share = |score: i64| (score as f64 / most as f64).clamp(0.0, 1.0);
    let score = match &decision.verdict {
        Verdict::Placed { score, .. } => *score,
        Verdict::Rejected => 0,
    };
    let alternatives = decision.alternatives.iter().map(|other| Alternative {
        node_id: other.host.to_string(),
        score: share(other.score),
        explanation: format!("{} behind", share(score.saturating_sub(other.score))),
    });
    let alternatives: Vec<Alternative> = alternatives.collect();
    let lead = alternatives.first().map_or(1.0, |next| share(score) - next.score);
    let fit = u64::from(decision.hosts_considered).saturating_sub(decision.rejections.total());
    ScheduleAnswer {
        vm_id: wish.vm.key.id.to_string(),
        node_id: host.to_string(),
        score: share(score),
        confidence: 0.5 + lead.clamp(0.0, 1.0) / 2.0,
        explanation: format!("best by {} of {fit} nodes that fit", decision.strategy.name()),
        alternatives,
        generation: view.generation,
        reservation_id: hold.map(|hold| format!("r{}", hold.reservation)),
        reservation_ttl: hold.map(|_| Duration::from_millis(wish.ttl_ms)),
    }
}

/// The highest score that a strategy can give.
fn most(strategy: Strategy, weights: &Weights) -> i64 {
    match strategy {
        Strategy::BestFit
        | Strategy::BestFitDecreasing
        | Strategy::WorstFit
        | Strategy::LeastLoaded
        | Strategy::FewestVms
        | Strategy::LeastFragmentation => 100_000,
        _ => {
            let sum: i64 = Term::ALL.iter().map(|term| i64::from(weights.get(*term))).sum();
            sum.saturating_mul(1000).max(1)
        }
    }
}

/// No node will do, in the words that NovaCron's scheduler has for it.
fn nowhere(decision: &Decision, view: &View) -> Failure {
    let count = |reason: Reason| {
        let found = decision.rejections.0.iter().find(|(known, _)| *known == reason);
        found.map_or(0u64, |(_, hosts)| (*hosts).into())
    };
    let considered = u64::from(decision.hosts_considered);
    let nodes = u64::try_from(view.nodes).unwrap_or(u64::MAX);
    let elsewhere = count(Reason::HostAffinity);
    let (down, excluded) = (count(Reason::HostState), count(Reason::ExcludedHost));
    if nodes == 0 {
        return Failure::new(PLACEMENT_UNAVAILABLE, "no nodes available for scheduling");
    }
    let left = considered.saturating_sub(elsewhere).saturating_sub(down);
    if left == 0 && excluded == 0 && elsewhere.saturating_add(nodes) <= considered {
        return Failure::new(PLACEMENT_UNAVAILABLE, "no available nodes for scheduling");
    }
    if excluded > 0 && left <= excluded {
        let text = "no available nodes remain after applying placement exclusions";
        return Failure::new(PLACEMENT_UNAVAILABLE, text);
    }
    Failure::new(INSUFFICIENT_CAPACITY, "no node has enough resources for the VM")
}
