//! The clients: what they ask for, what they believe, and how they retry.
//!
//! They know the cluster from the answers they got, so their view is stale whenever an answer
//! was lost or somebody else was faster. Clusters are small and tight on purpose: few names, few
//! cores, so that most requests meet one another.

use crate::history::{History, OpNo};
use crate::limits;
use crate::reporter::Reporter;
use crate::shapes::{self, name};
use cluster::{Dim, Dimensions, Generation, Host, HostState, Name, Strategy, VmKey};
use engine::{
    Call, Health, IdempotencyKey, Outcome, PlaceRequest, Placement, PutMode, Refusal, Reply,
    Request,
};
use fixture::Dice;
use policy::Weights;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Operations whose key may be used again for something else.
const REMEMBERED: usize = 32;

#[derive(Debug)]
pub(crate) struct Clients {
    dice: Dice,
    /// How many hosts there are names for.
    size: u64,
    hosts: BTreeMap<Name, (Host, Generation)>,
    vms: BTreeMap<VmKey, Known>,
    holds: Vec<u64>,
    extra: Vec<Name>,
    policy_revision: u64,
    /// Operations with a key whose outcome is unknown: to be sent again.
    unknown: Vec<OpNo>,
    /// Operations with a key of their own, newest last.
    keyed: Vec<OpNo>,
    next_key: u64,
    reporter: Reporter,
}

/// A VM as some client believes it to be.
#[derive(Debug)]
struct Known {
    /// How it was asked for; `None` if it was adopted.
    asked: Option<PlaceRequest>,
    host: Name,
    generation: Generation,
}

#[derive(Clone, Copy)]
enum Wish {
    Place,
    Pin,
    Batch,
    Again,
    Adopt,
    Resize,
    RemoveVm,
    Confirm,
    Release,
    PutHost,
    ChangeHost,
    HostState,
    Health,
    RemoveHost,
    Policy,
    Constraint,
    Dimensions,
    ReportUse,
    News,
}

const WISHES: &[(Wish, u32)] = &[
    (Wish::Place, 26),
    (Wish::Pin, 8),
    (Wish::Batch, 7),
    (Wish::Again, 3),
    (Wish::Adopt, 5),
    (Wish::Resize, 7),
    (Wish::RemoveVm, 14),
    (Wish::Confirm, 7),
    (Wish::Release, 4),
    (Wish::PutHost, 6),
    (Wish::ChangeHost, 6),
    (Wish::HostState, 6),
    (Wish::Health, 4),
    (Wish::RemoveHost, 3),
    (Wish::Policy, 4),
    (Wish::Constraint, 4),
    (Wish::Dimensions, 1),
    (Wish::ReportUse, 8),
    (Wish::News, 12),
];

impl Clients {
    pub(crate) fn new(seed: u64) -> Self {
        let mut dice = Dice::stream(seed, 2);
        let size = dice.between(3, 8);
        Self {
            dice,
            size,
            hosts: BTreeMap::new(),
            vms: BTreeMap::new(),
            holds: Vec::new(),
            extra: Vec::new(),
            policy_revision: 0,
            unknown: Vec::new(),
            keyed: Vec::new(),
            next_key: 0,
            reporter: Reporter::default(),
        }
    }

    /// The next operation to send: a new one, or one whose outcome is unknown once more.
    pub(crate) fn next(&mut self, history: &mut History) -> OpNo {
        if !self.unknown.is_empty() && self.dice.chance(400) {
            let row = self.dice.row(self.unknown.len());
            return self.unknown.swap_remove(row);
        }
        let request = self.request();
        let reused = (!self.keyed.is_empty() && self.dice.chance(40))
            .then(|| &history.get(*self.dice.pick(&self.keyed)).call)
            .filter(|first| first.request != request);
        if let Some(first) = reused {
            let idempotency_key = first.idempotency_key.clone();
            return history.begin(Call { idempotency_key, ..Call::internal(request) });
        }
        if !self.dice.chance(600) {
            return history.begin(Call::internal(request));
        }
        self.next_key += 1;
        let key = IdempotencyKey::new(&name("default"), &format!("k{}", self.next_key));
        let op = history.begin(Call { idempotency_key: Some(key), ..Call::internal(request) });
        self.keyed.push(op);
        if self.keyed.len() > REMEMBERED {
            self.keyed.remove(0);
        }
        op
    }

    /// The answer to this operation was lost. It is retried if that is safe.
    pub(crate) fn in_the_dark(&mut self, op: OpNo, history: &History) {
        if history.get(op).call.idempotency_key.is_some() && !self.unknown.contains(&op) {
            self.unknown.push(op);
        }
    }

    fn request(&mut self) -> Request {
        if (self.hosts.len() as u64) < self.size / 2 + 1 && self.dice.chance(700) {
            return self.put_host();
        }
        match *self.dice.weighted(WISHES) {
            Wish::Place => {
                let some = if self.dice.chance(200) { self.dice.between(1, 2) } else { 0 };
                let among = (0..some).map(|_| self.any_host()).collect();
                Request::Place(PlaceRequest { among, ..self.place() })
            }
            Wish::Pin => {
                let pinned = self.any_host();
                Request::Place(PlaceRequest { pinned: Some(pinned), ..self.place() })
            }
            Wish::Batch => {
                let count = self.dice.between(1, 4);
                let mut requests: Vec<PlaceRequest> = (0..count).map(|_| self.place()).collect();
                requests.sort_by(|a, b| a.vm.key.cmp(&b.vm.key));
                requests.dedup_by(|a, b| a.vm.key == b.vm.key);
                Request::PlaceBatch { requests, atomic: self.dice.chance(500) }
            }
            Wish::Again => {
                let asked = self.any_known().and_then(|(_, known)| known.asked.clone());
                Request::Place(asked.unwrap_or_else(|| self.place()))
            }
            Wish::Adopt => {
                let vm = Arc::new(shapes::vm(&mut self.dice, self.extra.len()));
                Request::Adopt { vm, host: self.any_host(), bindings: None }
            }
            Wish::Resize => self.resize(),
            Wish::RemoveVm => {
                let (vm, if_generation) = self.any_vm();
                Request::RemoveVm { vm, if_generation }
            }
            Wish::Confirm => Request::Confirm { reservation: self.any_hold() },
            Wish::Release => Request::Release { reservation: self.any_hold() },
            Wish::PutHost => self.put_host(),
            Wish::ChangeHost => self.change_host(),
            Wish::HostState => {
                let states = [
                    (HostState::Available, 6),
                    (HostState::Cordoned, 2),
                    (HostState::Draining, 1),
                    (HostState::Maintenance, 1),
                    (HostState::Down, 1),
                ];
                let state = *self.dice.weighted(&states);
                let host = self.any_host();
                let if_generation = self.seen(&host);
                Request::SetHostState { host, state, if_generation }
            }
            Wish::Health => {
                let verdicts = [(Health::Healthy, 5), (Health::Suspect, 1), (Health::Down, 1)];
                let health = *self.dice.weighted(&verdicts);
                Request::SetHostHealth { host: self.any_host(), health }
            }
            Wish::RemoveHost => {
                let host = self.any_host();
                let if_generation = self.seen(&host);
                Request::RemoveHost { host, evict: self.dice.chance(600), if_generation }
            }
            Wish::ReportUse => {
                let host = self.any_host();
                self.reporter.report(&mut self.dice, host)
            }
            Wish::News => {
                let known = self.any_known().map(|(key, known)| (key.clone(), known.host.clone()));
                let (host, extra) = (self.any_host(), self.extra.len());
                self.reporter.news(&mut self.dice, known, host, extra)
            }
            Wish::Policy => self.policy(),
            Wish::Constraint => limits::request(&mut self.dice),
            Wish::Dimensions => {
                let mut extra = self.extra.clone();
                if extra.len() < 2 {
                    extra.push(name(["licences", "slots"][extra.len()]));
                }
                let dimensions = Dimensions::with_extra(extra).expect("two different names");
                Request::DeclareDimensions(dimensions)
            }
        }
    }

    fn place(&mut self) -> PlaceRequest {
        let vm = shapes::vm(&mut self.dice, self.extra.len());
        let strategy = self.dice.chance(200).then(|| *self.dice.pick(&Strategy::ALL));
        let hold_ttl_ms = self.dice.chance(300).then(|| self.dice.between(1_000, 60_000));
        PlaceRequest { strategy, hold_ttl_ms, ..PlaceRequest::new(vm) }
    }

    fn resize(&mut self) -> Request {
        let (vm, if_generation) = self.any_vm();
        let cpu_millis = self.dice.between(1, 12) * 500;
        let mut changes = vec![(Dim::CPU_MILLIS, cpu_millis)];
        if self.dice.chance(700) {
            changes.push((Dim::MEMORY_MIB, self.dice.between(1, 12)));
        }
        Request::Resize { vm, changes, if_generation }
    }

    fn put_host(&mut self) -> Request {
        let row = self.dice.below(self.size);
        let host = Box::new(shapes::host(&mut self.dice, row, self.extra.len()));
        let create = self.dice.chance(500);
        let mode = if create { PutMode::Create } else { PutMode::CreateOrReplace };
        Request::PutHost { host, mode, if_generation: None }
    }

    /// A host with more or less of something; less is often too little for what is on it.
    fn change_host(&mut self) -> Request {
        let Some(id) = self.known_host() else { return self.put_host() };
        let (mut host, _) = self.hosts[&id].clone();
        match self.dice.below(4) {
            0 => host.capacity.set(Dim::CPU_MILLIS, self.dice.between(1, 12) * 1_000),
            1 => host.capacity.set(Dim::MEMORY_MIB, self.dice.between(4, 40)),
            2 => host.benchmark_permille = *self.dice.pick(&[0, 800, 1_500]),
            _ => host.location.zone = Some(shapes::one_of(&mut self.dice, shapes::ZONES)),
        }
        let if_generation = self.seen(&id);
        Request::PutHost { host: Box::new(host), mode: PutMode::CreateOrReplace, if_generation }
    }

    fn policy(&mut self) -> Request {
        let if_revision = self.dice.chance(500).then_some(self.policy_revision);
        if self.dice.chance(500) {
            let strategy = *self.dice.pick(&Strategy::ALL);
            return Request::SetStrategy { strategy, if_revision };
        }
        let weights = [1, 2, 3, 4, 5].map(|_: u32| self.dice.below(50) as u32 + 1);
        let weights = Weights::new(weights).expect("small and not zero");
        Request::SetWeights { weights, if_revision }
    }

    /// Mostly one that some client knows of, sometimes any name at all.
    fn any_host(&mut self) -> Name {
        match self.known_host() {
            Some(host) if self.dice.chance(900) => host,
            _ => shapes::host_name(self.dice.below(self.size)),
        }
    }

    fn known_host(&mut self) -> Option<Name> {
        let row = self.dice.row(self.hosts.len());
        self.hosts.keys().nth(row).cloned()
    }

    fn any_known(&mut self) -> Option<(&VmKey, &Known)> {
        let row = self.dice.row(self.vms.len());
        self.vms.iter().nth(row)
    }

    fn any_vm(&mut self) -> (VmKey, Option<Generation>) {
        let conditional = self.dice.chance(400);
        let known = self.dice.chance(950);
        match self.any_known() {
            Some((key, vm)) if known => (key.clone(), conditional.then_some(vm.generation)),
            _ => (shapes::vm_key(&mut self.dice), None),
        }
    }

    fn any_hold(&mut self) -> u64 {
        if self.holds.is_empty() || self.dice.chance(50) {
            return self.dice.below(20);
        }
        *self.dice.pick(&self.holds)
    }

    fn seen(&mut self, host: &Name) -> Option<Generation> {
        let known = self.hosts.get(host).map(|(_, generation)| *generation);
        known.filter(|_| self.dice.chance(400))
    }

    /// Believes an answer.
    pub(crate) fn learn(&mut self, request: &Request, told: &Result<Reply, Refusal>) {
        match told {
            Ok(reply) => self.learn_outcome(request, &reply.outcome),
            Err(Refusal::UnknownVm(vm)) => {
                self.vms.remove(vm);
            }
            Err(Refusal::UnknownHost(host)) => self.forget_host(host),
            Err(
                Refusal::UnknownReservation(gone)
                | Refusal::ReservationExpired { reservation: gone, .. },
            ) => self.holds.retain(|hold| hold != gone),
            Err(Refusal::Gap { current, .. }) => self.reporter.learn(*current),
            Err(Refusal::Stale { current, .. }) => match request {
                Request::Resize { vm, .. } | Request::RemoveVm { vm, .. } => {
                    if let Some(known) = self.vms.get_mut(vm) {
                        known.generation = Generation(*current);
                    }
                }
                Request::SetWeights { .. } | Request::SetStrategy { .. } => {
                    self.policy_revision = *current;
                }
                _ => {}
            },
            Err(_) => {}
        }
    }

    fn learn_outcome(&mut self, request: &Request, outcome: &Outcome) {
        match (request, outcome) {
            (Request::PutHost { host, .. }, Outcome::Host { generation, .. }) => {
                self.hosts.insert(host.id.clone(), (host.as_ref().clone(), *generation));
            }
            (Request::SetHostState { host, state, .. }, Outcome::Host { generation, .. }) => {
                if let Some((known, seen)) = self.hosts.get_mut(host) {
                    (known.state, *seen) = (*state, *generation);
                }
            }
            (Request::RemoveHost { host, .. }, Outcome::HostRemoved { .. }) => {
                self.forget_host(host);
            }
            (Request::Place(asked), Outcome::Placement(told)) => self.learn_placement(asked, told),
            (Request::PlaceBatch { requests, .. }, Outcome::Batch(told)) => {
                requests
                    .iter()
                    .zip(told)
                    .for_each(|(asked, told)| self.learn_placement(asked, told));
            }
            (Request::Adopt { vm, host, .. }, Outcome::Adopted { generation, .. }) => {
                let known = Known { asked: None, host: host.clone(), generation: *generation };
                self.vms.insert(vm.key.clone(), known);
            }
            (Request::Resize { vm, .. }, Outcome::Resized { generation }) => {
                if let Some(known) = self.vms.get_mut(vm) {
                    known.generation = *generation;
                }
            }
            (Request::RemoveVm { vm, .. }, Outcome::VmRemoved) => {
                self.vms.remove(vm);
            }
            (
                Request::Confirm { reservation } | Request::Release { reservation },
                Outcome::Confirmed { .. } | Outcome::Released { .. },
            ) => self.holds.retain(|hold| hold != reservation),
            (_, Outcome::UseReported { generation, .. }) => self.reporter.learn(*generation),
            (_, Outcome::Dimensions(dimensions)) => self.extra = dimensions.extra().to_vec(),
            (_, Outcome::Policy(policy)) => self.policy_revision = policy.revision,
            _ => {}
        }
    }

    fn learn_placement(&mut self, asked: &PlaceRequest, told: &Placement) {
        let Some(host) = &told.host else { return };
        let (host, generation) = (host.clone(), Generation(1));
        let known = Known { asked: Some(asked.clone()), host, generation };
        self.vms.insert(asked.vm.key.clone(), known);
        if let Some(hold) = told.hold.filter(|hold| !self.holds.contains(&hold.reservation)) {
            self.holds.push(hold.reservation);
        }
    }

    fn forget_host(&mut self, host: &Name) {
        self.hosts.remove(host);
        self.vms.retain(|_, known| known.host != *host);
    }
}
