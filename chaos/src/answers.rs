//! Whether commands are what was asked for, and answers are true, by the model's account.

use crate::model::Model;
use crate::violation::{Checked, Law, ensure};
use cluster::{Amounts, ConstraintRule, Generation, Name, VmKey};
use engine::{
    Command, Entry, Outcome, PlaceRequest, Placement, Placing, PutMode, Refusal, Request,
};

/// Checks that `entry` does what `request` asked, on the model before it.
pub(crate) fn check_asked(model: &Model, entry: &Entry, request: &Request) -> Checked {
    ensure(is_asked(model, entry, request), Law::Asked, || {
        format!("asked: {request:?}, logged: {:?}", entry.command)
    })
}

fn is_asked(model: &Model, entry: &Entry, request: &Request) -> bool {
    match (request, &entry.command) {
        (Request::DeclareDimensions(asked), Command::DeclareDimensions(logged)) => asked == logged,
        (Request::PutHost { host, mode, if_generation }, Command::PutHost(logged)) => {
            let known = model.hosts.contains_key(&host.id);
            host == logged
                && !(known && *mode == PutMode::Create)
                && host_generation(model, &host.id, *if_generation)
        }
        (
            Request::SetHostState { host, state, if_generation },
            Command::SetHostState { host: logged, state: new },
        ) => host == logged && state == new && host_generation(model, host, *if_generation),
        (
            Request::SetHostHealth { host, health },
            Command::SetHostHealth { host: logged, health: new },
        ) => host == logged && health == new,
        (
            Request::RemoveHost { host, evict, if_generation },
            Command::RemoveHost { host: logged },
        ) => {
            host == logged
                && (*evict || model.on(host).next().is_none())
                && host_generation(model, host, *if_generation)
        }
        (Request::Place(asked), Command::Place(placing)) => is_placing(asked, placing, entry.ts_ms),
        (
            Request::PlaceBatch { requests, atomic },
            Command::PlaceBatch { placings, atomic: logged },
        ) => {
            let fresh = requests.iter().filter(|it| !model.guests.contains_key(&it.vm.key));
            let fresh: Vec<&PlaceRequest> = fresh.collect();
            atomic == logged
                && fresh.len() == placings.len()
                && fresh
                    .iter()
                    .zip(placings)
                    .all(|(it, placing)| is_placing(it, placing, entry.ts_ms))
        }
        (Request::Adopt { vm, host, bindings }, Command::Adopt(adoption)) => {
            *vm == adoption.vm && *host == adoption.host && *bindings == adoption.bindings
        }
        (Request::Resize { vm, changes, if_generation }, Command::Resize(resizing)) => {
            let before = model.guests.get(vm);
            *vm == resizing.vm
                && before.is_some_and(|it| it.vm.demand.changed(changes) == resizing.demand)
                && vm_generation(model, vm, *if_generation)
        }
        (Request::RemoveVm { vm, if_generation }, Command::RemoveVm { vm: logged }) => {
            vm == logged && vm_generation(model, vm, *if_generation)
        }
        (Request::Confirm { reservation }, Command::Confirm { reservation: logged }) => {
            reservation == logged
        }
        (Request::Release { reservation }, Command::Release { reservation: logged }) => {
            reservation == logged
        }
        (Request::SetWeights { weights, if_revision }, Command::InstallPolicy(policy)) => {
            *weights == policy.weights
                && policy.strategy == model.policy.strategy
                && if_revision.is_none_or(|seen| seen == model.policy.revision)
        }
        (Request::SetStrategy { strategy, if_revision }, Command::InstallPolicy(policy)) => {
            *strategy == policy.strategy
                && policy.weights == model.policy.weights
                && if_revision.is_none_or(|seen| seen == model.policy.revision)
        }
        (
            Request::PutConstraint { constraint, if_generation: None },
            Command::PutConstraint(logged),
        ) => constraint == logged,
        (
            Request::RemoveConstraint { name, if_generation: None },
            Command::RemoveConstraint { name: logged },
        ) => name == logged,
        (Request::Tick, Command::Tick | Command::Expire { .. }) => true,
        (Request::ReportUse(asked), Command::ReportUse(logged)) => asked == logged,
        (Request::ReportVm { vm, at_ns, news }, Command::ReportVm(logged)) => {
            *vm == logged.vm && *at_ns == logged.at_ns && model.is_news(vm, news, &logged.fact)
        }
        _ => false,
    }
}

fn is_placing(asked: &PlaceRequest, logged: &Placing, ts_ms: u64) -> bool {
    let placed = logged.decision.host();
    let expires = logged.hold.map(|hold| hold.expires_ms);
    asked.vm == logged.vm
        && asked.strategy == logged.strategy
        && asked.pinned == logged.pinned
        && asked.among == logged.among
        && placed.is_none_or(|host| asked.among.is_empty() || asked.among.contains(host))
        && (placed.is_none() || asked.pinned.is_none() || placed == asked.pinned.as_ref())
        && expires == placed.and(asked.hold_ttl_ms).map(|ttl_ms| ts_ms + ttl_ms)
}

fn host_generation(model: &Model, host: &Name, seen: Option<Generation>) -> bool {
    seen.is_none() || seen == model.hosts.get(host).map(|home| home.generation)
}

fn vm_generation(model: &Model, vm: &VmKey, seen: Option<Generation>) -> bool {
    seen.is_none() || seen == model.guests.get(vm).map(|guest| guest.generation)
}

/// Whether a client was told what it should have been.
pub(crate) fn same(due: &Outcome, told: &Outcome) -> bool {
    match (due, told) {
        (Outcome::Placement(due), Outcome::Placement(told)) => same_placement(due, told),
        (Outcome::Batch(due), Outcome::Batch(told)) => {
            due.len() == told.len() && due.iter().zip(told).all(|(d, t)| same_placement(d, t))
        }
        _ => due == told,
    }
}

fn same_placement(due: &Placement, told: &Placement) -> bool {
    if !due.repeated {
        return due == told;
    }
    // The first decision may be older than what the log keeps, and its reservation may be over.
    told.repeated
        && (due.id, &due.host) == (told.id, &told.host)
        && (told.hold.is_none() || told.hold == due.hold)
        && (told.decision.is_none() || told.decision == due.decision)
}

/// Whether "nothing had to be changed" is true of the model as it is.
pub(crate) fn unchanged(model: &Model, request: &Request, told: &Outcome) -> bool {
    match (request, told) {
        (Request::DeclareDimensions(asked), Outcome::Dimensions(told)) => {
            asked == told && *asked == model.dimensions
        }
        (Request::PutHost { host, .. }, Outcome::Host { generation, created: false }) => {
            model.hosts.get(&host.id).is_some_and(|home| {
                let incarnation = home.host.incarnation;
                let same = cluster::Host { incarnation, ..host.as_ref().clone() } == home.host;
                same && home.generation == *generation
            })
        }
        (
            Request::SetHostState { host, state, .. },
            Outcome::Host { generation, created: false },
        ) => {
            let known = model.hosts.get(host);
            known.is_some_and(|home| home.host.state == *state && home.generation == *generation)
        }
        (Request::SetHostHealth { host, health }, Outcome::Host { generation, created: false }) => {
            let known = model.hosts.get(host);
            known.is_some_and(|home| home.health == *health && home.generation == *generation)
        }
        (Request::Place(asked), Outcome::Placement(told)) => {
            let due = model.repeated(&asked.vm.key);
            due.is_some_and(|due| same_placement(&due, told))
        }
        (Request::PlaceBatch { requests, .. }, Outcome::Batch(told)) => {
            requests.len() == told.len()
                && requests.iter().zip(told).all(|(asked, told)| {
                    let due = model.repeated(&asked.vm.key);
                    due.is_some_and(|due| same_placement(&due, told))
                })
        }
        (
            Request::Adopt { vm, host, .. },
            Outcome::Adopted { generation, over_capacity, repeated: true },
        ) => model.guests.get(&vm.key).is_some_and(|guest| {
            guest.host == *host
                && guest.generation == *generation
                && guest.over_capacity == *over_capacity
        }),
        (Request::Resize { vm, changes, .. }, Outcome::Resized { generation }) => {
            let same = |demand: &Amounts| *demand == demand.changed(changes);
            let known = model.guests.get(vm);
            known.is_some_and(|it| same(&it.vm.demand) && it.generation == *generation)
        }
        (Request::Release { reservation }, Outcome::Released { vm: None }) => {
            !model.holds.contains_key(reservation)
        }
        (Request::SetWeights { weights, .. }, Outcome::Policy(told)) => {
            *told == model.policy && told.weights == *weights
        }
        (Request::SetStrategy { strategy, .. }, Outcome::Policy(told)) => {
            *told == model.policy && told.strategy == *strategy
        }
        (
            Request::PutConstraint { constraint, .. },
            Outcome::Constraint { generation, created: false, .. },
        ) => model.limits.get(&constraint.name).is_some_and(|(limit, known)| {
            constraint.rule == ConstraintRule::Limit(limit.clone()) && known == generation
        }),
        (Request::Tick, Outcome::Ticked { expired: 0 }) => true,
        (Request::ReportUse(asked), Outcome::UseReported { generation, repeated: true }) => {
            asked.generation == *generation
                && model.reported.generation == *generation
                && model.reported.digest == asked.digest
        }
        (Request::ReportVm { vm, at_ns, news }, Outcome::VmReported(told)) => {
            model.nothing_new(vm, *at_ns, news, told)
        }
        _ => false,
    }
}

/// Whether a refusal is true of the model as it is. What depends on other operations (keys) or
/// is never an honest answer here (a disagreement between solver and verifier) is not.
pub(crate) fn refused_rightly(model: &Model, request: &Request, refusal: &Refusal) -> bool {
    match refusal {
        Refusal::UnknownHost(host) => !model.hosts.contains_key(host),
        Refusal::HostExists(host) => model.hosts.contains_key(host),
        Refusal::HostNotEmpty { host, vms } => model.on(host).count() == *vms as usize && *vms > 0,
        Refusal::UnknownVm(vm) => !model.guests.contains_key(vm),
        Refusal::VmExists { vm, host } => {
            model.guests.get(vm).is_some_and(|guest| guest.host == *host)
        }
        Refusal::Stale { seen, current } => {
            seen != current && generation(model, request) == Some(*current)
        }
        Refusal::DoesNotFit { vm, .. } => match request {
            // Whether parts can grow takes a search, which the model does not do.
            Request::Resize { changes, .. } => model.guests.get(vm).is_some_and(|guest| {
                let demand = guest.vm.demand.changed(changes);
                model.cannot_grow(vm, &demand).is_some() || guest.bindings.is_some()
            }),
            _ => false,
        },
        Refusal::UnknownReservation(reservation) => !model.holds.contains_key(reservation),
        Refusal::ReservationExpired { reservation, expires_ms } => {
            let vm = model.holds.get(reservation);
            let hold = vm.and_then(|vm| model.guests.get(vm)).and_then(|guest| guest.hold);
            let due = hold.map(|hold| hold.expires_ms);
            due == Some(*expires_ms) && *expires_ms <= model.latest_time_ms()
        }
        Refusal::Invalid { .. } => match request {
            Request::PutHost { host, .. } => {
                model.shrinks(host).is_some() || model.takes_parts_away(host)
            }
            Request::DeclareDimensions(asked) => {
                !asked.extra().starts_with(model.dimensions.extra())
            }
            _ => false,
        },
        Refusal::Gap { base, current } => base != current && model.reported.generation == *current,
        Refusal::UnknownConstraint(name) => !model.limits.contains_key(name),
        Refusal::UnknownPolicy(_)
        | Refusal::ConstraintInUse { .. }
        | Refusal::Contradiction { .. }
        | Refusal::PartsRefused { .. }
        | Refusal::PolicyRefused { .. }
        | Refusal::UnknownPlan(_)
        | Refusal::PlanRefused { .. }
        | Refusal::Moving { .. }
        | Refusal::Tied { .. }
        | Refusal::IdempotencyConflict
        | Refusal::Busy { .. }
        | Refusal::DeadlinePassed
        | Refusal::Unverified(_)
        | Refusal::OutcomeUnknown => false,
    }
}

/// The current generation of what a conditional request is about.
fn generation(model: &Model, request: &Request) -> Option<u64> {
    let of_host = |host| model.hosts.get(host).map_or(0, |home| home.generation.0);
    match request {
        Request::PutHost { host, .. } => Some(of_host(&host.id)),
        Request::SetHostState { host, .. } | Request::RemoveHost { host, .. } => {
            Some(of_host(host))
        }
        Request::Resize { vm, .. } | Request::RemoveVm { vm, .. } => {
            model.guests.get(vm).map(|guest| guest.generation.0)
        }
        Request::SetWeights { .. } | Request::SetStrategy { .. } => Some(model.policy.revision),
        _ => None,
    }
}
