//! From request to command: what would happen, or why not.
//!
//! Reads the state and changes nothing, so that the same code answers a dry run.

mod constraints;
mod plans;
mod reports;
mod waves;

pub(crate) use waves::rule;

use crate::check;
use crate::command::{Command, Placing, Resizing};
use crate::core::Core;
use crate::planted::{self, Bug};
use crate::request::{Outcome, PlaceRequest, Placement, PutMode, Refusal, Request, fingerprint};
use crate::state::{DecisionId, Health, HostEntry, VmEntry};
use cluster::{
    Amounts, Bindings, CpuUnit, Dim, Generation, Host, HostIx, HostState, Name, Vm, VmKey,
};
use policy::{Edit, EditError, Policy};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// A request worked out: the command to log, if anything changes, and the answer.
#[derive(Debug)]
pub(crate) struct Proposal {
    pub(crate) command: Option<Command>,
    pub(crate) outcome: Outcome,
}

impl Proposal {
    fn change(command: Command, outcome: Outcome) -> Result<Self, Refusal> {
        Ok(Self { command: Some(command), outcome })
    }

    fn nothing(outcome: Outcome) -> Result<Self, Refusal> {
        Ok(Self { command: None, outcome })
    }
}

/// How far the state's time may be behind before a tick is worth a record.
const TICK_EVERY_MS: u64 = 1_000;

/// Most reservations that one `Expire` ends: bounds the command's size.
const EXPIRE_AT_ONCE: usize = 1_000;

impl Core {
    /// Works out `request` at the state's time `time_ms`.
    /// `abandoned` is asked now and then while it takes long.
    pub(crate) fn work_out(
        &mut self,
        request: &Request,
        time_ms: u64,
        abandoned: &dyn Fn() -> bool,
    ) -> Result<Proposal, Refusal> {
        match request {
            Request::DeclareDimensions(dimensions) => {
                let kept = self.state.dimensions().check_extended_by(dimensions);
                kept.map_err(|error| check::invalid("dimensions", &error.to_string()))?;
                let outcome = Outcome::Dimensions(dimensions.clone());
                if dimensions == self.state.dimensions() {
                    return Proposal::nothing(outcome);
                }
                Proposal::change(Command::DeclareDimensions(dimensions.clone()), outcome)
            }
            Request::PutHost { host, mode, if_generation } => {
                self.propose_put_host(host, *mode, *if_generation)
            }
            Request::SetHostState { host, state, if_generation } => {
                self.propose_host_state(host, *state, *if_generation)
            }
            Request::RemoveHost { host, evict, if_generation } => {
                let (_, entry) = self.known_host(host)?;
                check_generation(*if_generation, entry.generation)?;
                let vms = entry.vms.len() as u32;
                if vms > 0 && !evict {
                    return Err(Refusal::HostNotEmpty { host: host.clone(), vms });
                }
                let command = Command::RemoveHost { host: host.clone() };
                Proposal::change(command, Outcome::HostRemoved { vms })
            }
            Request::Place(request) => self.propose_place(request, time_ms),
            Request::PlaceBatch { requests, atomic } => {
                self.propose_batch(requests, *atomic, time_ms, abandoned)
            }
            Request::Adopt { vm, host, bindings } => {
                self.propose_adopt(vm, host, bindings.as_ref())
            }
            Request::Resize { vm, changes, if_generation } => {
                self.propose_resize(vm, changes, *if_generation)
            }
            Request::RemoveVm { vm, if_generation } => {
                let entry = self.known_vm(vm)?;
                check_generation(*if_generation, entry.generation)?;
                Proposal::change(Command::RemoveVm { vm: vm.clone() }, Outcome::VmRemoved)
            }
            Request::Confirm { reservation } => self.propose_confirm(*reservation, time_ms),
            Request::Release { reservation } => self.propose_release(*reservation),
            Request::SetWeights { weights, if_revision } => {
                let policy = Policy { weights: *weights, ..self.state.policy().clone() };
                self.propose_policy(policy, *if_revision)
            }
            Request::SetStrategy { strategy, if_revision } => {
                let policy = Policy { strategy: *strategy, ..self.state.policy().clone() };
                self.propose_policy(policy, *if_revision)
            }
            Request::SetProfile { profile, if_revision } => {
                let (weights, strategy) = (profile.weights(), profile.strategy());
                let policy = Policy { weights, strategy, ..self.state.policy().clone() };
                self.propose_policy(policy, *if_revision)
            }
            Request::EditPolicy { edit, if_revision } => self.propose_edit(edit, *if_revision),
            Request::PutConstraint { constraint, if_generation } => {
                self.propose_put_constraint(constraint, *if_generation)
            }
            Request::RemoveConstraint { name, if_generation } => {
                self.propose_remove_constraint(name, *if_generation)
            }
            Request::Tick => self.propose_tick(time_ms),
            Request::SetHostHealth { host, health } => self.propose_health(host, *health),
            Request::ReportUse(reports) => self.propose_use(reports),
            Request::ReportVm { vm, at_ns, news } => self.propose_news(vm, *at_ns, news),
            Request::CreatePlan(draft) => self.propose_plan(draft),
            Request::ChangePlan { plan, action } => self.propose_change(*plan, action),
            Request::AdvancePlan { plan } => self.propose_wave(*plan, time_ms),
            Request::ReportMigration { plan, vm, to, report } => {
                self.propose_migration_report(*plan, vm, to.as_ref(), report)
            }
            Request::SetBudget(budget) => self.propose_budget(budget),
        }
    }

    fn propose_put_host(
        &self,
        host: &Host,
        mode: PutMode,
        if_generation: Option<Generation>,
    ) -> Result<Proposal, Refusal> {
        check::host(host, self.state.dimensions())?;
        let Some((_, entry)) = self.state.find_host(&host.id) else {
            if let Some(seen) = if_generation {
                return Err(Refusal::Stale { seen: seen.0, current: 0 });
            }
            let outcome = Outcome::Host { generation: Generation(1), created: true };
            return Proposal::change(Command::PutHost(Box::new(host.clone())), outcome);
        };
        check_generation(if_generation, entry.generation)?;
        if same_host(host, &entry.host) {
            let outcome = Outcome::Host { generation: entry.generation, created: false };
            return Proposal::nothing(outcome);
        }
        if mode == PutMode::Create {
            return Err(Refusal::HostExists(host.id.clone()));
        }
        self.check_room_kept(host, entry)?;
        self.check_parts_kept(host, entry)?;
        let outcome = Outcome::Host { generation: entry.generation.next(), created: false };
        Proposal::change(Command::PutHost(Box::new(host.clone())), outcome)
    }

    /// A host may not shrink below what is promised on it, nor change the speed that VMs on it
    /// were measured by.
    fn check_room_kept(&self, host: &Host, entry: &HostEntry) -> Result<(), Refusal> {
        let short = entry.allocated.iter().find(|(dim, committed)| {
            let room = host.allocatable(*dim);
            room < *committed && room < entry.host.allocatable(*dim)
        });
        if let Some((dim, committed)) = short {
            let field = format!("capacity.{}", self.state.dimensions().name(dim));
            let room = host.allocatable(dim);
            let problem =
                format!("leaves {room} for VMs, but {committed} is committed; move VMs first");
            return Err(check::invalid(&field, &problem));
        }
        let guaranteed = self.state.guaranteed_on(entry, None);
        let short = guaranteed.iter().find(|(dim, amount)| {
            host.physical(*dim) < *amount && host.physical(*dim) < entry.host.physical(*dim)
        });
        if let Some((dim, amount)) = short {
            let field = format!("capacity.{}", self.state.dimensions().name(dim));
            let there = host.physical(dim);
            let problem = format!("is {there} less reserved, but {amount} is guaranteed to VMs");
            return Err(check::invalid(&field, &problem));
        }
        let measured = |ix: &cluster::VmIx| {
            self.state.vm(*ix).is_some_and(|entry| entry.vm.cpu_unit == CpuUnit::Normalised)
        };
        if host.speed_permille() != entry.host.speed_permille() && entry.vms.iter().any(measured) {
            let problem = "cannot change while VMs with normalised CPU are on the host";
            return Err(check::invalid("benchmark_permille", problem));
        }
        Ok(())
    }

    fn propose_host_state(
        &self,
        host: &Name,
        state: HostState,
        if_generation: Option<Generation>,
    ) -> Result<Proposal, Refusal> {
        let (_, entry) = self.known_host(host)?;
        check_generation(if_generation, entry.generation)?;
        if entry.host.state == state {
            let outcome = Outcome::Host { generation: entry.generation, created: false };
            return Proposal::nothing(outcome);
        }
        let outcome = Outcome::Host { generation: entry.generation.next(), created: false };
        Proposal::change(Command::SetHostState { host: host.clone(), state }, outcome)
    }

    fn propose_health(&self, host: &Name, health: Health) -> Result<Proposal, Refusal> {
        let (_, entry) = self.known_host(host)?;
        let outcome = Outcome::Host { generation: entry.generation, created: false };
        if entry.health == health {
            return Proposal::nothing(outcome);
        }
        Proposal::change(Command::SetHostHealth { host: host.clone(), health }, outcome)
    }

    fn propose_place(&mut self, request: &PlaceRequest, time_ms: u64) -> Result<Proposal, Refusal> {
        check::vm(&request.vm, self.state.dimensions())?;
        check::hold_ttl(request.hold_ttl_ms)?;
        check::among(&request.among)?;
        if let Some(placement) = self.placed_before(request)? {
            return Proposal::nothing(Outcome::Placement(placement));
        }
        let mut placing = self.decide(request)?;
        if placing.decision.host().is_some() {
            placing.hold = self.hold(request.hold_ttl_ms, 0, time_ms);
        }
        let outcome = Outcome::Placement(self.announced(&placing, 0));
        Proposal::change(Command::Place(Box::new(placing)), outcome)
    }

    fn propose_batch(
        &mut self,
        requests: &[PlaceRequest],
        atomic: bool,
        time_ms: u64,
        abandoned: &dyn Fn() -> bool,
    ) -> Result<Proposal, Refusal> {
        if requests.len() > check::MAX_BATCH {
            let problem =
                format!("has {} VMs; at most {} go in one batch", requests.len(), check::MAX_BATCH);
            return Err(check::invalid("vms", &problem));
        }
        let mut seen = FxHashSet::default();
        let mut before = Vec::with_capacity(requests.len());
        for (position, request) in requests.iter().enumerate() {
            let field = |refusal| at_position(refusal, position);
            check::vm(&request.vm, self.state.dimensions()).map_err(field)?;
            check::hold_ttl(request.hold_ttl_ms).map_err(field)?;
            if !seen.insert(&request.vm.key) {
                let problem = format!("{} is there twice", request.vm.key);
                return Err(check::invalid(&format!("vms[{position}].id"), &problem));
            }
            if let Some(host) = &request.pinned {
                self.known_host(host)?;
            }
            before.push(self.placed_before(request)?);
        }
        let fresh = requests.iter().zip(&before).filter(|(_, before)| before.is_none());
        let fresh: Vec<PlaceRequest> = fresh.map(|(request, _)| request.clone()).collect();
        let mut placings = self.decide_batch(&fresh, atomic, abandoned)?;
        let mut holds = 0u64;
        for (placing, request) in placings.iter_mut().zip(&fresh) {
            if placing.decision.host().is_some() && request.hold_ttl_ms.is_some() {
                placing.hold = self.hold(request.hold_ttl_ms, holds, time_ms);
                holds = holds.saturating_add(1);
            }
        }
        let mut decided = (0u32..).zip(&placings).map(|(at, placing)| self.announced(placing, at));
        let placements = before.into_iter().filter_map(|before| before.or_else(|| decided.next()));
        let outcome = Outcome::Batch(placements.collect());
        if placings.is_empty() {
            return Proposal::nothing(outcome);
        }
        Proposal::change(Command::PlaceBatch { atomic, placings }, outcome)
    }

    fn propose_adopt(
        &mut self,
        vm: &Arc<Vm>,
        host: &Name,
        bindings: Option<&Arc<Bindings>>,
    ) -> Result<Proposal, Refusal> {
        check::vm(vm, self.state.dimensions())?;
        let (ix, entry) = self.known_host(host)?;
        let request_hash = match bindings {
            None => fingerprint(&(vm, host)),
            Some(bindings) => fingerprint(&(vm, host, bindings)),
        };
        if let Some((_, known)) = self.state.find_vm(&vm.key) {
            if known.request_hash == request_hash {
                let (generation, over_capacity) = (known.generation, known.over_capacity);
                let repeated = true;
                return Proposal::nothing(Outcome::Adopted { generation, over_capacity, repeated });
            }
            return Err(self.vm_exists(known));
        }
        if let Some(bindings) = bindings {
            self.check_parts_free(vm, ix, bindings)?;
        }
        let mut adoption = self.adoption(Arc::clone(vm), entry, None, request_hash);
        adoption.bindings = bindings.cloned();
        let over_capacity = adoption.over_capacity;
        let outcome =
            Outcome::Adopted { generation: Generation(1), over_capacity, repeated: false };
        Proposal::change(Command::Adopt(Box::new(adoption)), outcome)
    }

    fn propose_resize(
        &mut self,
        key: &VmKey,
        changes: &[(Dim, u64)],
        if_generation: Option<Generation>,
    ) -> Result<Proposal, Refusal> {
        let entry = self.known_vm(key)?.clone();
        if let Some(under_way) = self.state.plans().under_way(key) {
            return Err(Refusal::Moving { vm: key.clone(), plan: under_way.plan });
        }
        let demand = entry.vm.demand.changed(changes);
        check::demand(&demand, self.state.dimensions())?;
        check_generation(if_generation, entry.generation)?;
        if entry.vm.demand == demand {
            return Proposal::nothing(Outcome::Resized { generation: entry.generation });
        }
        let mut vm = entry.vm.as_ref().clone();
        vm.demand = demand.clone();
        let Some(host) = self.state.host(entry.host) else {
            return Err(Refusal::UnknownVm(key.clone()));
        };
        let committed = demand_on(&vm, &host.host);
        let room = self.state.room_for(host, &entry);
        let short = committed.iter().find(|(dim, amount)| {
            // Shrinking in a dimension is always possible, even where the host is over its room.
            *amount > entry.committed.get(*dim) && *amount > room.get(*dim)
        });
        if let Some((dim, amount)) = short {
            let free = room.get(dim);
            let name = self.state.dimensions().name(dim);
            return Err(Refusal::DoesNotFit {
                vm: key.clone(),
                host: host.host.id.clone(),
                reason: format!("{name} {amount} asked, {free} there without it"),
            });
        }
        let generation = entry.generation.next();
        let bindings = self.bound_anew(&entry, &vm, &committed)?;
        let resizing = Resizing { vm: key.clone(), demand, committed, bindings };
        Proposal::change(Command::Resize(Box::new(resizing)), Outcome::Resized { generation })
    }

    fn propose_confirm(&self, reservation: u64, time_ms: u64) -> Result<Proposal, Refusal> {
        let Some((_, entry)) = self.state.reservation(reservation) else {
            return Err(Refusal::UnknownReservation(reservation));
        };
        let expires_ms = entry.hold.map_or(0, |hold| hold.expires_ms);
        if expires_ms <= time_ms {
            return Err(Refusal::ReservationExpired { reservation, expires_ms });
        }
        let outcome = Outcome::Confirmed { vm: entry.vm.key.clone() };
        Proposal::change(Command::Confirm { reservation }, outcome)
    }

    /// Releasing is idempotent: what is not held is released already.
    fn propose_release(&self, reservation: u64) -> Result<Proposal, Refusal> {
        if reservation >= self.state.next_reservation {
            return Err(Refusal::UnknownReservation(reservation));
        }
        match self.state.reservation(reservation) {
            None => Proposal::nothing(Outcome::Released { vm: None }),
            Some((_, entry)) => Proposal::change(
                Command::Release { reservation },
                Outcome::Released { vm: Some(entry.vm.key.clone()) },
            ),
        }
    }

    fn propose_policy(
        &self,
        policy: Policy,
        if_revision: Option<u64>,
    ) -> Result<Proposal, Refusal> {
        let current = self.state.policy();
        if let Some(seen) = if_revision.filter(|&seen| seen != current.revision) {
            return Err(Refusal::Stale { seen, current: current.revision });
        }
        if policy == *current {
            return Proposal::nothing(Outcome::Policy(policy));
        }
        let policy = Policy { revision: current.revision.saturating_add(1), ..policy };
        Proposal::change(Command::InstallPolicy(policy.clone()), Outcome::Policy(policy))
    }

    fn propose_edit(&mut self, edit: &Edit, if_revision: Option<u64>) -> Result<Proposal, Refusal> {
        self.prepared.take_if(|prepared| !prepared.is_for(edit, &self.state));
        let current = self.state.policy();
        if let Some(seen) = if_revision.filter(|&seen| seen != current.revision) {
            return Err(Refusal::Stale { seen, current: current.revision });
        }
        let is_new = match &self.prepared {
            Some(prepared) => prepared.is_new,
            None => self.check_edit(edit)?,
        };
        if !is_new {
            return Proposal::nothing(Outcome::Policy(current.clone()));
        }
        let policy = Policy { revision: current.revision.saturating_add(1), ..current.clone() };
        let command = Command::EditPolicy(Box::new(edit.clone()));
        Proposal::change(command, Outcome::Policy(policy))
    }

    /// Whether the change can be made, and if so, whether it changes anything.
    fn check_edit(&self, edit: &Edit) -> Result<bool, Refusal> {
        let checked = self.state.library().check(edit).map_err(|error| match error {
            EditError::Unknown(policy) => Refusal::UnknownPolicy(policy.to_string()),
            other => {
                let (policy, problem) = (edit.policy.to_string(), other.to_string());
                Refusal::PolicyRefused { policy, problem }
            }
        })?;
        Ok(checked.is_new)
    }

    fn propose_tick(&self, time_ms: u64) -> Result<Proposal, Refusal> {
        let reservations = self.state.due_reservations(time_ms, EXPIRE_AT_ONCE);
        let outcome = Outcome::Ticked { expired: reservations.len() as u32 };
        if !reservations.is_empty() {
            return Proposal::change(Command::Expire { reservations }, outcome);
        }
        // Time matters only to reservations: without any, an idle cluster writes nothing. With
        // some, it is written often enough that a crash takes back a second of it at most.
        let since_ms = time_ms.saturating_sub(self.state.time_ms());
        let waiting = self.state.reservation_count() > 0 && since_ms >= TICK_EVERY_MS;
        if waiting { Proposal::change(Command::Tick, outcome) } else { Proposal::nothing(outcome) }
    }

    /// The earlier answer to an equal request for a VM that is there; a refusal if the request
    /// for it was another one.
    fn placed_before(&self, request: &PlaceRequest) -> Result<Option<Placement>, Refusal> {
        let Some((_, entry)) = self.state.find_vm(&request.vm.key) else { return Ok(None) };
        let same = entry.request_hash == request.fingerprint();
        if !same && !planted::is(Bug::IdempotencyByKeyOnly) {
            return Err(self.vm_exists(entry));
        }
        Ok(Some(Placement {
            id: entry.decided,
            host: self.state.host(entry.host).map(|host| host.host.id.clone()),
            hold: entry.hold,
            decision: None,
            repeated: true,
        }))
    }

    /// A decision under the number that it will have in the log.
    fn announced(&self, placing: &Placing, position: u32) -> Placement {
        Placement {
            id: DecisionId { revision: self.state.revision().next(), position },
            host: placing.decision.host().cloned(),
            hold: placing.hold,
            decision: Some(Arc::new(placing.decision.clone())),
            repeated: false,
        }
    }

    fn known_host(&self, host: &Name) -> Result<(HostIx, &HostEntry), Refusal> {
        self.state.find_host(host).ok_or_else(|| Refusal::UnknownHost(host.clone()))
    }

    fn known_vm(&self, vm: &VmKey) -> Result<&VmEntry, Refusal> {
        let found = self.state.find_vm(vm).map(|(_, entry)| entry);
        found.ok_or_else(|| Refusal::UnknownVm(vm.clone()))
    }

    fn vm_exists(&self, entry: &VmEntry) -> Refusal {
        match self.state.host(entry.host) {
            Some(host) => {
                Refusal::VmExists { vm: entry.vm.key.clone(), host: host.host.id.clone() }
            }
            None => Refusal::UnknownVm(entry.vm.key.clone()),
        }
    }
}

/// What the VM takes on this host.
pub fn demand_on(vm: &Vm, host: &Host) -> Amounts {
    match vm.cpu_unit {
        CpuUnit::Raw => vm.demand.clone(),
        CpuUnit::Normalised => {
            let cpu = vm.demand.get(Dim::CPU_MILLIS).saturating_mul(1000);
            vm.demand.clone().with(Dim::CPU_MILLIS, cpu.div_ceil(host.speed_permille().max(1)))
        }
    }
}

/// Whether a host's description says nothing new. The engine assigns the incarnation and knows
/// what others use.
fn same_host(given: &Host, known: &Host) -> bool {
    let (incarnation, foreign) = (known.incarnation, known.foreign.clone());
    Host { incarnation, foreign, ..given.clone() } == *known
}

fn check_generation(expected: Option<Generation>, current: Generation) -> Result<(), Refusal> {
    match expected {
        Some(seen) if seen != current => Err(Refusal::Stale { seen: seen.0, current: current.0 }),
        _ => Ok(()),
    }
}

fn at_position(refusal: Refusal, position: usize) -> Refusal {
    match refusal {
        Refusal::Invalid { field, problem } => {
            Refusal::Invalid { field: format!("vms[{position}].{field}"), problem }
        }
        other => other,
    }
}
