//! Optimisations that run beside placing: one at a time, on threads of their own, each with a clock
//! that drives its budget and a record that callers look at and wait for.

mod record;
mod view;

pub(crate) use record::Record;
pub(crate) use view::move_view;

use crate::failure::Failure;
use crate::service::Service;
use cluster::Snapshot;
use optimise::{Ask, Method, Scope, timed};
use record::Told;
use solver::assignment::Budget;
use solver::engines::Board;
use solver::objective::Wish;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use wire::{Code, EngineName, OptimisationMode, OptimisationRequest, OptimisationScope};

/// Optimisations that are remembered; of those that ended the oldest go first.
const KEPT: usize = 64;
/// Optimisations that may wait for their turn.
const MOST_WAITING: usize = 16;
/// A search that is limited by steps ends after this long all the same.
const LONGEST: Duration = Duration::from_secs(600);

/// Optimisations, oldest first, and who runs.
#[derive(Debug, Default)]
pub(crate) struct Jobs(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    made: u64,
    all: VecDeque<Arc<Record>>,
    waiting: VecDeque<Arc<Record>>,
    busy: bool,
}

impl Jobs {
    /// Takes a question in; it is worked on at once or when those before it are done.
    pub(crate) fn add(
        &self,
        service: &Service,
        request: OptimisationRequest,
    ) -> Result<Arc<Record>, Failure> {
        let mut inner = self.lock();
        if inner.waiting.len() >= MOST_WAITING {
            let detail = format!("{MOST_WAITING} optimisations are waiting already");
            return Err(Failure::new(Code::OVERLOADED, detail));
        }
        inner.made = inner.made.saturating_add(1);
        let record = Arc::new(Record::new(inner.made, request));
        inner.all.push_back(Arc::clone(&record));
        let over = inner.all.len().saturating_sub(KEPT);
        for _ in 0..over {
            let Some(oldest) = inner.all.iter().position(|it| it.has_ended()) else { break };
            inner.all.remove(oldest);
        }
        inner.waiting.push_back(Arc::clone(&record));
        if !inner.busy {
            inner.busy = true;
            drop(inner);
            let (service, handle) = (service.clone(), Handle::current());
            let work = move || work(&service, &handle);
            let spawned = std::thread::Builder::new().name("optimise".into()).spawn(work);
            if let Err(error) = spawned {
                self.lock().busy = false;
                return Err(Failure::new(Code::INTERNAL, error.to_string()));
            }
        }
        Ok(record)
    }

    pub(crate) fn get(&self, number: u64) -> Option<Arc<Record>> {
        self.lock().all.iter().find(|record| record.number == number).map(Arc::clone)
    }

    /// Newest first.
    pub(crate) fn list(&self) -> Vec<Arc<Record>> {
        self.lock().all.iter().rev().map(Arc::clone).collect()
    }

    /// Stops a search, or takes a question back that is not worked on yet.
    pub(crate) fn cancel(&self, record: &Record) {
        self.lock().waiting.retain(|waiting| waiting.number != record.number);
        record.cancel();
    }

    fn next(&self) -> Option<Arc<Record>> {
        let mut inner = self.lock();
        let next = inner.waiting.pop_front();
        inner.busy = next.is_some();
        next
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Works on one question after the other, until there is none.
fn work(service: &Service, handle: &Handle) {
    while let Some(record) = service.jobs.next() {
        record.begin();
        let snapshot = handle.block_on(service.look(|core| core.state().snapshot()));
        match snapshot {
            Ok(snapshot) => run(&record, &snapshot),
            Err(failure) => record.fail(failure.problem.detail.clone()),
        }
    }
}

/// Searches, and meanwhile tells everybody what is found.
fn run(record: &Record, snapshot: &Snapshot) {
    record.tell(Told::Revision(snapshot.revision.0));
    let (ask, board) = (ask(&record.request), Board::default());
    let deadline = &record.deadline;
    let (longest, mut budget) = match record.request.steps {
        Some(steps) => (LONGEST, Budget::steps(steps).and_until(Arc::clone(deadline))),
        None => {
            let budget_ms = record.request.budget_ms;
            (Duration::from_millis(budget_ms), Budget::until(Arc::clone(deadline)))
        }
    };
    let mut seen = 0;
    let mut look = |share| {
        record.progress(share);
        if let Some((objective, _)) = board.news(&mut seen) {
            record.tell(Told::Better(objective));
        }
    };
    let answer = timed(deadline, (record.started(), longest), &mut look, || {
        optimise::optimise(snapshot, &ask, &mut budget, &board)
    });
    look(1.0);
    match answer {
        Ok(Ok(answer)) => record.end(answer),
        Ok(Err(error)) => record.fail(error.to_string()),
        Err(_) => record.fail("the search panicked".to_string()),
    }
}

/// The question in the optimiser's words.
fn ask(request: &OptimisationRequest) -> Ask {
    let default = || cluster::VmKey::in_default_tenant(nobody()).tenant;
    let scope = match (request.scope, &request.group, &request.pool) {
        (OptimisationScope::Cluster, ..) => Scope::Cluster,
        (OptimisationScope::Group, Some(group), _) => Scope::Group {
            tenant: request.tenant.clone().unwrap_or_else(default),
            group: group.clone(),
        },
        (OptimisationScope::Pool, _, Some(pool)) => Scope::Pool(pool.clone()),
        _ => Scope::Pending,
    };
    let pareto = request.mode == OptimisationMode::Pareto;
    let counts = |weight: u32| !pareto || weight > 0;
    let wishes = request.goals.iter().filter(|(_, weight)| counts(*weight));
    Ask {
        scope,
        arrivals: request.vms.iter().cloned().map(Arc::new).collect(),
        wishes: wishes.map(|&(kind, weight)| Wish { kind, weight }).collect(),
        setting: request.settings.clone(),
        method: method(request.engine),
        seed: request.seed,
        threads: 2,
        timed: request.steps.is_none(),
        max_moves: request.max_moves.and_then(|most| usize::try_from(most).ok()),
        prices: Default::default(),
        points: pareto.then(|| usize::try_from(request.points).unwrap_or(usize::MAX)),
    }
}

fn nobody() -> cluster::Name {
    cluster::Name::new("nobody").expect("a constant that is a valid name")
}

pub(crate) fn method(engine: EngineName) -> Method {
    match engine {
        EngineName::Auto => Method::Auto,
        EngineName::Csp => Method::Csp,
        EngineName::Ilp => Method::Ilp,
        EngineName::Greedy => Method::Greedy,
        EngineName::Annealing => Method::Annealing,
        EngineName::Genetic => Method::Genetic,
        EngineName::Nsga2 => Method::Nsga2,
        EngineName::Swarm => Method::Swarm,
        EngineName::Lns => Method::Lns,
    }
}
