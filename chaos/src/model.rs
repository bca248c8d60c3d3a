//! The checker's own idea of the cluster, built from log entries and nothing else.
//!
//! Plain maps by name and sums from scratch: slow, obvious, and sharing no code with the engine,
//! the solver or the verifier. Each entry is checked against the model before it changes it.

use crate::limits::Limits;
use crate::reports::{LastReport, Reported};
use crate::sometimes::{Rare, Sometimes};
use crate::violation::{Checked, Finding, Law, broken, ensure};
use cluster::{
    Amounts, Bindings, Dim, Dimensions, Generation, Host, HostState, Name, Revision, Vm, VmKey,
};
use engine::{
    Adoption, Command, DecisionId, Entry, Health, Hold, Outcome, Placement, Placing, Request,
    Resizing,
};
use policy::Policy;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Time may advance by this much with one entry.
pub(crate) const LONGEST_STEP_MS: u64 = 30_000;

#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) revision: u64,
    pub(crate) time_ms: u64,
    pub(crate) dimensions: Dimensions,
    pub(crate) policy: Policy,
    pub(crate) limits: Limits,
    pub(crate) hosts: BTreeMap<Name, Home>,
    pub(crate) guests: BTreeMap<VmKey, Guest>,
    pub(crate) holds: BTreeMap<u64, VmKey>,
    next_reservation: u64,
    pub(crate) reported: Reported,
    /// When VMs ended, according to others.
    pub(crate) gone: BTreeMap<VmKey, u64>,
    /// Names of hosts that were removed while VMs were on them.
    removed_with_vms: BTreeSet<Name>,
    pub(crate) reached: Sometimes,
}

#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) host: Host,
    pub(crate) generation: Generation,
    pub(crate) health: Health,
    pub(crate) report: Option<LastReport>,
}

#[derive(Debug)]
pub(crate) struct Guest {
    pub(crate) vm: Arc<Vm>,
    pub(crate) host: Name,
    pub(crate) committed: Amounts,
    /// What it has of its host's parts.
    pub(crate) bindings: Option<Arc<Bindings>>,
    pub(crate) generation: Generation,
    pub(crate) over_capacity: bool,
    pub(crate) hold: Option<Hold>,
    /// What the caller was told when it was placed; `None` for an adopted VM.
    pub(crate) first: Option<Placement>,
    /// Whether it was running when its place was recorded.
    pub(crate) adopted: bool,
    /// When others last said that it runs; 0 if never.
    pub(crate) heard_ns: u64,
    /// The last report of its host counts it.
    pub(crate) included: bool,
}

impl Model {
    /// Checks an entry, takes it over, and returns what its caller should have been told.
    pub(crate) fn apply(&mut self, entry: &Entry, request: Option<&Request>) -> Checked<Outcome> {
        self.revision += 1;
        self.advance(entry.ts_ms)?;
        let outcome = match &entry.command {
            Command::DeclareDimensions(dimensions) => self.declare(dimensions)?,
            Command::PutHost(host) => self.put_host(host)?,
            Command::SetHostState { host, state } => {
                let home = self.home(host)?;
                ensure(home.host.state != *state, Law::Asked, || format!("{host} was so before"))?;
                home.host.state = *state;
                home.generation = home.generation.next();
                Outcome::Host { generation: home.generation, created: false }
            }
            Command::SetHostHealth { host, health } => {
                let home = self.home(host)?;
                home.health = *health;
                Outcome::Host { generation: home.generation, created: false }
            }
            Command::RemoveHost { host } => self.remove_host(host)?,
            Command::Place(placing) => {
                let mut placements = self.place(&[placing.as_ref()])?;
                self.check_rejected_rightly(placing)?;
                Outcome::Placement(placements.remove(0))
            }
            Command::PlaceBatch { atomic, placings } => {
                self.place_batch(*atomic, placings, request)?
            }
            Command::Adopt(adoption) => self.adopt(adoption)?,
            Command::Resize(resizing) => self.resize(resizing)?,
            Command::RemoveVm { vm } => {
                self.remove_guest(vm)?;
                Outcome::VmRemoved
            }
            Command::Confirm { reservation } => self.confirm(*reservation)?,
            Command::Release { reservation } => {
                let vm = self.held(*reservation)?;
                self.end_hold(*reservation)?;
                Outcome::Released { vm: Some(vm) }
            }
            Command::Expire { reservations } => self.expire(reservations)?,
            Command::InstallPolicy(policy) => {
                let next = self.policy.revision + 1;
                ensure(policy.revision == next, Law::Asked, || {
                    format!("policy {} follows policy {}", policy.revision, next - 1)
                })?;
                self.policy = policy.clone();
                Outcome::Policy(policy.clone())
            }
            Command::EditPolicy(_) => {
                // What policies mean for placing is the verifier's to judge.
                self.policy.revision += 1;
                Outcome::Policy(self.policy.clone())
            }
            Command::PutConstraint(constraint) => self.put_constraint(constraint)?,
            Command::RemoveConstraint { name } => self.remove_constraint(name)?,
            Command::Tick => Outcome::Ticked { expired: 0 },
            Command::ReportUse(reports) => self.report_use(reports)?,
            Command::ReportVm(report) => self.report_vm(report)?,
            // Nobody in this world makes plans; `tests/plans.rs` plays them.
            Command::CreatePlan(_)
            | Command::ChangePlan(_)
            | Command::StartWave(_)
            | Command::ReportMigration { .. }
            | Command::SetBudget(_) => {
                return broken(Law::Asked, "a plan that nobody asked for");
            }
        };
        self.check_capacity()?;
        Ok(outcome)
    }

    fn advance(&mut self, ts_ms: u64) -> Checked {
        let (last, revision) = (self.time_ms, self.revision);
        let far = !self.holds.is_empty() && ts_ms > last + LONGEST_STEP_MS;
        ensure(ts_ms >= last && !far, Law::Reservations, || {
            format!("time went from {last} to {ts_ms} at revision {revision}")
        })?;
        self.time_ms = ts_ms;
        Ok(())
    }

    fn declare(&mut self, dimensions: &Dimensions) -> Checked<Outcome> {
        let kept = dimensions.extra().starts_with(self.dimensions.extra());
        ensure(kept, Law::Asked, || "a declared dimension was dropped".into())?;
        self.dimensions = dimensions.clone();
        Ok(Outcome::Dimensions(dimensions.clone()))
    }

    fn put_host(&mut self, host: &Host) -> Checked<Outcome> {
        if let Some(why) = self.shrinks(host) {
            return broken(Law::Capacity, why);
        }
        let revision = self.revision;
        if let Some(home) = self.hosts.get_mut(&host.id) {
            home.host = Host { incarnation: home.host.incarnation, ..host.clone() };
            home.generation = home.generation.next();
            return Ok(Outcome::Host { generation: home.generation, created: false });
        }
        let again = self.removed_with_vms.contains(&host.id);
        self.reached.hit_if(Rare::HostReAdded, again);
        let host = Host { incarnation: revision, ..host.clone() };
        let (generation, health) = (Generation(1), Health::Healthy);
        let home = Home { host, generation, health, report: None };
        self.hosts.insert(home.host.id.clone(), home);
        Ok(Outcome::Host { generation: Generation(1), created: true })
    }

    /// Why a host may not be replaced by `next`, if so.
    pub(crate) fn shrinks(&self, next: &Host) -> Option<String> {
        let home = self.hosts.get(&next.id)?;
        for dim in self.dimensions.iter() {
            let (used, now, then) =
                (self.used(&next.id, dim), room(&home.host, dim), room(next, dim));
            if then < used && then < now {
                return Some(format!(
                    "{} shrinks to {then} in dimension {} with {used} in use",
                    next.id, dim.0
                ));
            }
        }
        let measured = |guest: &Guest| {
            guest.host == next.id && guest.vm.cpu_unit == cluster::CpuUnit::Normalised
        };
        let speed_kept = next.speed_permille() == home.host.speed_permille();
        let measured = !speed_kept && self.guests.values().any(measured);
        measured.then(|| format!("{} changes its speed under a VM measured by it", next.id))
    }

    fn remove_host(&mut self, host: &Name) -> Checked<Outcome> {
        self.home(host)?;
        let evicted: Vec<VmKey> = self.on(host).map(|(key, _)| key.clone()).collect();
        for vm in &evicted {
            self.remove_guest(vm)?;
        }
        if !evicted.is_empty() {
            self.removed_with_vms.insert(host.clone());
        }
        self.hosts.remove(host);
        Ok(Outcome::HostRemoved { vms: evicted.len() as u32 })
    }

    fn place_batch(
        &mut self,
        atomic: bool,
        placings: &[Placing],
        request: Option<&Request>,
    ) -> Checked<Outcome> {
        let Some(Request::PlaceBatch { requests, .. }) = request else {
            return broken(Law::Asked, "a batch that nobody asked for");
        };
        let before = requests.iter().map(|request| self.repeated(&request.vm.key));
        let before: Vec<Option<Placement>> = before.collect();
        let placed = placings.iter().filter(|placing| placing.decision.host().is_some()).count();
        ensure(!atomic || placed == 0 || placed == placings.len(), Law::Asked, || {
            format!("{placed} of {} VMs of an atomic batch were placed", placings.len())
        })?;
        self.reached.hit_if(Rare::AtomicBatchRejected, atomic && placed == 0);
        self.reached.hit_if(Rare::BatchPartlyPlaced, placed > 0 && placed < placings.len());
        let mut fresh = self.place(&placings.iter().collect::<Vec<_>>())?.into_iter();
        let told = before.into_iter().map(|before| before.or_else(|| fresh.next()));
        Ok(Outcome::Batch(told.flatten().collect()))
    }

    /// What an equal request for a VM that is there is told.
    pub(crate) fn repeated(&self, vm: &VmKey) -> Option<Placement> {
        let first = self.guests.get(vm)?.first.clone()?;
        Some(Placement { repeated: true, ..first })
    }

    /// Takes over decisions that were made together, then checks each against all the others.
    fn place(&mut self, placings: &[&Placing]) -> Checked<Vec<Placement>> {
        let mut placements = Vec::with_capacity(placings.len());
        for (position, placing) in (0u32..).zip(placings) {
            let id = DecisionId { revision: Revision(self.revision), position };
            let placement = Placement {
                id,
                host: placing.decision.host().cloned(),
                hold: placing.hold,
                decision: Some(Arc::new(placing.decision.clone())),
                repeated: false,
            };
            self.check_decision(placing)?;
            if let Some(host) = &placement.host {
                self.add_guest(Guest {
                    vm: Arc::clone(&placing.vm),
                    host: host.clone(),
                    committed: placing.committed.clone(),
                    bindings: placing.decision.bindings().cloned(),
                    generation: Generation(1),
                    over_capacity: false,
                    hold: placing.hold,
                    first: Some(placement.clone()),
                    adopted: false,
                    heard_ns: 0,
                    included: false,
                })?;
            }
            placements.push(placement);
        }
        for placement in &placements {
            if let (Some(host), Some(decision)) = (&placement.host, &placement.decision) {
                self.check_placed(&decision.vm, host)?;
            }
        }
        Ok(placements)
    }

    fn adopt(&mut self, adoption: &Adoption) -> Checked<Outcome> {
        let Adoption { vm, host, over_capacity, .. } = adoption;
        self.add_guest(Guest {
            vm: Arc::clone(vm),
            host: host.clone(),
            committed: adoption.committed.clone(),
            bindings: adoption.bindings.clone(),
            generation: Generation(1),
            over_capacity: *over_capacity,
            hold: None,
            first: None,
            adopted: true,
            heard_ns: 0,
            included: false,
        })?;
        self.check_parts(host)?;
        let exceeds = self.exceeds(host, &adoption.committed);
        ensure(exceeds == *over_capacity, Law::Capacity, || {
            format!("{} on {host} is flagged {over_capacity}, but exceeds: {exceeds}", vm.key)
        })?;
        self.reached.hit_if(Rare::OverCapacity, exceeds);
        let over_capacity = *over_capacity;
        Ok(Outcome::Adopted { generation: Generation(1), over_capacity, repeated: false })
    }

    fn resize(&mut self, resizing: &Resizing) -> Checked<Outcome> {
        if let Some(why) = self.cannot_grow(&resizing.vm, &resizing.demand) {
            return broken(Law::Capacity, why);
        }
        let Some(guest) = self.guests.get_mut(&resizing.vm) else {
            return broken(Law::OnePlace, format!("{} is resized but not there", resizing.vm));
        };
        let vm = Vm { demand: resizing.demand.clone(), ..guest.vm.as_ref().clone() };
        let host = guest.host.clone();
        guest.vm = Arc::new(vm);
        guest.committed = resizing.committed.clone();
        guest.bindings = resizing.bindings.clone();
        guest.included = false;
        guest.generation = guest.generation.next();
        let (generation, flagged) = (guest.generation, guest.over_capacity);
        self.check_committed(&resizing.vm)?;
        self.check_parts(&host)?;
        // A VM that shrinks on a host which is over its room is over it still.
        let still = flagged && self.exceeds(&host, &resizing.committed);
        if let Some(guest) = self.guests.get_mut(&resizing.vm) {
            guest.over_capacity = still;
        }
        Ok(Outcome::Resized { generation })
    }

    /// Why a VM cannot have this demand where it is, if so.
    pub(crate) fn cannot_grow(&self, vm: &VmKey, demand: &Amounts) -> Option<String> {
        let guest = self.guests.get(vm)?;
        let home = self.hosts.get(&guest.host)?;
        let resized = Vm { demand: demand.clone(), ..guest.vm.as_ref().clone() };
        self.dimensions.iter().find_map(|dim| {
            let (before, after) = (guest.committed.get(dim), taken(&resized, &home.host, dim));
            let total = self.used(&guest.host, dim) + self.foreign(&guest.host, dim)
                - u128::from(before)
                + after;
            let exceeds = after > u128::from(before) && total > room(&home.host, dim);
            exceeds.then(|| format!("{vm} has no room to grow in dimension {}", dim.0))
        })
    }

    fn confirm(&mut self, reservation: u64) -> Checked<Outcome> {
        let vm = self.held(reservation)?;
        let time_ms = self.time_ms;
        let Some(guest) = self.guests.get_mut(&vm) else {
            return broken(Law::Reservations, format!("reservation {reservation} holds nothing"));
        };
        let expires_ms = guest.hold.map_or(0, |hold| hold.expires_ms);
        ensure(time_ms < expires_ms, Law::Reservations, || {
            format!("reservation {reservation} ended at {expires_ms}, was confirmed at {time_ms}")
        })?;
        guest.hold = None;
        guest.generation = guest.generation.next();
        self.holds.remove(&reservation);
        self.reached.hit(Rare::Confirmed);
        Ok(Outcome::Confirmed { vm })
    }

    fn expire(&mut self, reservations: &[u64]) -> Checked<Outcome> {
        for &reservation in reservations {
            let vm = self.held(reservation)?;
            let hold = self.guests.get(&vm).and_then(|guest| guest.hold);
            let expires_ms = hold.map_or(u64::MAX, |hold| hold.expires_ms);
            ensure(expires_ms <= self.time_ms, Law::Reservations, || {
                format!("reservation {reservation} lasts until {expires_ms} and is ended early")
            })?;
            self.end_hold(reservation)?;
            self.reached.hit(Rare::Expiry);
        }
        Ok(Outcome::Ticked { expired: reservations.len() as u32 })
    }

    fn held(&self, reservation: u64) -> Checked<VmKey> {
        let unknown = || Finding {
            law: Law::Reservations,
            what: format!("reservation {reservation} ends but is not held"),
        };
        self.holds.get(&reservation).cloned().ok_or_else(unknown)
    }

    fn end_hold(&mut self, reservation: u64) -> Checked {
        let vm = self.held(reservation)?;
        self.holds.remove(&reservation);
        self.guests.remove(&vm);
        Ok(())
    }

    pub(crate) fn add_guest(&mut self, guest: Guest) -> Checked {
        let key = guest.vm.key.clone();
        self.home(&guest.host)?;
        if let Some(hold) = guest.hold {
            ensure(hold.reservation >= self.next_reservation, Law::Reservations, || {
                format!("reservation number {} is used twice", hold.reservation)
            })?;
            self.next_reservation = hold.reservation + 1;
            self.holds.insert(hold.reservation, key.clone());
        }
        let was = self.guests.insert(key.clone(), guest);
        if let Some(was) = was {
            return broken(Law::OnePlace, format!("{key} was on {} already", was.host));
        }
        self.check_committed(&key)
    }

    pub(crate) fn remove_guest(&mut self, vm: &VmKey) -> Checked {
        match self.guests.remove(vm) {
            None => broken(Law::OnePlace, format!("{vm} is removed but not there")),
            Some(guest) => {
                if let Some(hold) = guest.hold {
                    self.holds.remove(&hold.reservation);
                    self.reached.hit(Rare::HoldEndedWithVm);
                }
                Ok(())
            }
        }
    }

    pub(crate) fn home(&mut self, host: &Name) -> Checked<&mut Home> {
        let unknown = || Finding { law: Law::Asked, what: format!("host {host} is not there") };
        self.hosts.get_mut(host).ok_or_else(unknown)
    }

    pub(crate) fn on<'a>(
        &'a self,
        host: &'a Name,
    ) -> impl Iterator<Item = (&'a VmKey, &'a Guest)> + 'a {
        self.guests.iter().filter(move |(_, guest)| guest.host == *host)
    }

    /// What the VMs on a host take of a dimension.
    pub(crate) fn used(&self, host: &Name, dim: Dim) -> u128 {
        self.on(host).map(|(_, guest)| u128::from(guest.committed.get(dim))).sum()
    }

    /// The latest that time can be for a call that comes next, while something is held.
    pub(crate) fn latest_time_ms(&self) -> u64 {
        self.time_ms + LONGEST_STEP_MS
    }
}

impl Home {
    pub(crate) fn takes_vms(&self) -> bool {
        self.host.state == HostState::Available && self.health == Health::Healthy
    }
}

/// How much of a dimension a host may promise.
pub(crate) fn room(host: &Host, dim: Dim) -> u128 {
    let (has, kept) = (host.capacity.get(dim), host.reserved.get(dim));
    let left = u128::from(has.saturating_sub(kept));
    let permille = u128::from(host.overcommit_permille.get(dim));
    let promised = if permille == 0 { left } else { left * permille / 1000 };
    promised.min((1 << 31) - 1)
}

/// What a VM takes of a dimension on a host.
pub(crate) fn taken(vm: &Vm, host: &Host, dim: Dim) -> u128 {
    let asked = u128::from(vm.demand.get(dim));
    if dim != Dim::CPU_MILLIS || vm.cpu_unit == cluster::CpuUnit::Raw {
        return asked;
    }
    let speed = if host.benchmark_permille == 0 { 1000 } else { host.benchmark_permille.into() };
    let scaled = asked * 1000;
    scaled / speed + u128::from(!scaled.is_multiple_of(speed))
}
