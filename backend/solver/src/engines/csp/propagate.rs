//! What follows from the choices made: hosts that VMs can no longer have.
//!
//! Each rule removes hosts until nothing changes. A VM that is left with one host is placed there
//! at once; one that is left with none ends the branch.

use super::domains::Domains;
use super::nogoods::Nogoods;
use crate::assignment::{Budget, Model, NOWHERE, State};

/// A branch of the search: what is placed, what is still possible, and how to go back.
#[derive(Debug)]
pub(super) struct Branch<'m> {
    pub(super) state: State<'m>,
    pub(super) domains: Domains,
    pub(super) nogoods: Nogoods,
    /// VMs in the order in which they were placed.
    pub(super) placed: Vec<u32>,
    queue: Queue,
    /// Sums over the fleet are looked at if they are cheap beside everything else.
    sums: bool,
    /// What follows from one choice may be long: it ends with the search.
    budget: Budget,
}

/// Tallies to look at again, each once.
#[derive(Debug)]
struct Queue {
    waiting: Vec<u32>,
    is_waiting: Vec<bool>,
}

/// A branch that has no solution, or that there was no time to follow: whoever is told asks the
/// budget which of them it is, because time that is over stays over.
#[derive(Debug)]
pub(super) struct DeadEnd;

/// Problems with more VMs than this are searched without sums over all of them at every choice.
const MOST_VMS_FOR_SUMS: usize = 1_000;

impl<'m> Branch<'m> {
    pub(super) fn root(model: &'m Model, budget: &Budget) -> Self {
        let tallies = model.tallies.all().len();
        Self {
            state: State::empty(model),
            domains: Domains::all(model),
            nogoods: Nogoods::default(),
            placed: Vec::new(),
            queue: Queue { waiting: Vec::new(), is_waiting: vec![false; tallies] },
            sums: model.vms() <= MOST_VMS_FOR_SUMS,
            budget: budget.clone(),
        }
    }

    pub(super) fn model(&self) -> &'m Model {
        self.state.model()
    }

    /// Everything that follows before the first choice.
    pub(super) fn begin(&mut self) -> Result<(), DeadEnd> {
        let model = self.model();
        let singles: Vec<_> = self.nogoods.single().collect();
        singles.into_iter().for_each(|(vm, host)| self.forbid(vm, host));
        for vm in 0..model.vms() as u32 {
            self.in_time()?;
            for host in 0..model.hosts() as u32 {
                if self.domains.contains(vm, host) && !self.state.fits(vm, host) {
                    self.forbid(vm, host);
                }
            }
            if self.domains.size(vm) == 0 {
                return Err(DeadEnd);
            }
        }
        (0..model.tallies.all().len() as u32).for_each(|tally| self.queue.add(tally));
        self.revise_ways(None)?;
        self.revise_clashes()?;
        self.settle(0)
    }

    /// Places a VM and all that follows. After a dead end, `back` undoes it like a success.
    pub(super) fn choose(&mut self, vm: u32, host: u32) -> Result<(), DeadEnd> {
        let first = self.placed.len();
        self.place(vm, host)?;
        self.settle(first)
    }

    /// Goes back to when so many VMs were placed and the domains had this mark.
    pub(super) fn back(&mut self, placed: usize, mark: usize) {
        for vm in self.placed.drain(placed..).rev() {
            self.nogoods.take_back((vm, self.state.host_of(vm)));
            self.state.remove(vm);
        }
        self.domains.undo(mark);
        self.queue.clear();
    }

    /// Rules out a host for a VM that is not placed.
    pub(super) fn forbid(&mut self, vm: u32, host: u32) {
        if self.domains.remove(vm, host) {
            for &tally in self.model().tallies.of(vm) {
                self.queue.add(tally);
            }
        }
    }

    /// Follows up whatever was forbidden since the last call.
    pub(super) fn follow(&mut self) -> Result<(), DeadEnd> {
        let first = self.placed.len();
        self.settle(first)
    }

    fn place(&mut self, vm: u32, host: u32) -> Result<(), DeadEnd> {
        if !self.domains.contains(vm, host) || !self.state.may_place(vm, host) {
            return Err(DeadEnd);
        }
        self.state.place(vm, host);
        self.placed.push(vm);
        self.nogoods.choose((vm, host));
        self.model().tallies.of(vm).iter().for_each(|&tally| self.queue.add(tally));
        Ok(())
    }

    pub(super) fn is_placed(&self, vm: u32) -> bool {
        self.state.host_of(vm) != NOWHERE
    }

    fn in_time(&self) -> Result<(), DeadEnd> {
        if self.budget.is_over() { Err(DeadEnd) } else { Ok(()) }
    }

    /// Until nothing follows any more. VMs from the `first` placed on are news.
    fn settle(&mut self, mut first: usize) -> Result<(), DeadEnd> {
        loop {
            self.in_time()?;
            while let Some(&vm) = self.placed.get(first) {
                first += 1;
                self.in_time()?;
                self.after_placing(vm)?;
            }
            if let Some(tally) = self.queue.next() {
                self.revise(tally)?;
                self.place_what_is_certain(tally)?;
                continue;
            }
            if self.place_singles()? {
                continue;
            }
            return if self.sums { self.sums_fit() } else { Ok(()) };
        }
    }

    /// Room on the host that got fuller, and nogoods that came true but for one choice.
    fn after_placing(&mut self, vm: u32) -> Result<(), DeadEnd> {
        let host = self.state.host_of(vm);
        self.revise_spares(host)?;
        self.revise_ways(Some(vm))?;
        self.revise_clashes_on(vm, host)?;
        for other in 0..self.model().vms() as u32 {
            if !self.is_placed(other)
                && self.domains.contains(other, host)
                && !self.state.fits(other, host)
            {
                self.forbid(other, host);
                if self.domains.size(other) == 0 {
                    return Err(DeadEnd);
                }
            }
        }
        let forbidden: Vec<(u32, u32)> = self
            .nogoods
            .forbidden_by((vm, host))
            .map(|choices| {
                let open = choices.iter().find(|(vm, host)| self.state.host_of(*vm) != *host);
                open.copied().ok_or(DeadEnd)
            })
            .collect::<Result<_, _>>()?;
        for (vm, host) in forbidden {
            if !self.is_placed(vm) {
                self.forbid(vm, host);
                if self.domains.size(vm) == 0 {
                    return Err(DeadEnd);
                }
            }
        }
        Ok(())
    }

    fn place_what_is_certain(&mut self, tally: u32) -> Result<(), DeadEnd> {
        for &vm in self.model().tallies.members(tally) {
            self.place_if_single(vm)?;
        }
        Ok(())
    }

    fn place_singles(&mut self) -> Result<bool, DeadEnd> {
        let before = self.placed.len();
        for vm in 0..self.model().vms() as u32 {
            self.place_if_single(vm)?;
        }
        Ok(self.placed.len() > before)
    }

    fn place_if_single(&mut self, vm: u32) -> Result<(), DeadEnd> {
        if self.is_placed(vm) || self.domains.size(vm) > 1 {
            return Ok(());
        }
        let only = self.domains.hosts(vm).next();
        self.place(vm, only.ok_or(DeadEnd)?)
    }
}

impl Queue {
    fn add(&mut self, tally: u32) {
        if !std::mem::replace(&mut self.is_waiting[tally as usize], true) {
            self.waiting.push(tally);
        }
    }

    fn next(&mut self) -> Option<u32> {
        let tally = self.waiting.pop()?;
        self.is_waiting[tally as usize] = false;
        Some(tally)
    }

    fn clear(&mut self) {
        while self.next().is_some() {}
    }
}
