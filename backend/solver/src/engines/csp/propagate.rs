//! What follows from the choices made: hosts that VMs can no longer have.
//!
//! Each rule removes hosts until nothing changes. A VM that is left with one host is placed there
//! at once; one that is left with none ends the branch.

use super::domains::Domains;
use super::nogoods::Nogoods;
use crate::assignment::{Model, NOWHERE, State};

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
}

/// Tallies to look at again, each once.
#[derive(Debug)]
struct Queue {
    waiting: Vec<u32>,
    is_waiting: Vec<bool>,
}

/// A branch that has no solution.
#[derive(Debug)]
pub(super) struct DeadEnd;

/// Problems with more VMs than this are searched without sums over all of them at every choice.
const MOST_VMS_FOR_SUMS: usize = 1_000;

impl<'m> Branch<'m> {
    pub(super) fn root(model: &'m Model) -> Self {
        let tallies = model.tallies.all().len();
        Self {
            state: State::empty(model),
            domains: Domains::all(model),
            nogoods: Nogoods::default(),
            placed: Vec::new(),
            queue: Queue { waiting: Vec::new(), is_waiting: vec![false; tallies] },
            sums: model.vms() <= MOST_VMS_FOR_SUMS,
        }
    }

    fn model(&self) -> &'m Model {
        self.state.model()
    }

    /// Everything that follows before the first choice.
    pub(super) fn begin(&mut self) -> Result<(), DeadEnd> {
        let model = self.model();
        let singles: Vec<_> = self.nogoods.single().collect();
        singles.into_iter().for_each(|(vm, host)| self.forbid(vm, host));
        for vm in 0..model.vms() as u32 {
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

    fn is_placed(&self, vm: u32) -> bool {
        self.state.host_of(vm) != NOWHERE
    }

    /// Until nothing follows any more. VMs from the `first` placed on are news.
    fn settle(&mut self, mut first: usize) -> Result<(), DeadEnd> {
        loop {
            while let Some(&vm) = self.placed.get(first) {
                first += 1;
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

    /// Removes what the rules of one tally rule out.
    fn revise(&mut self, row: u32) -> Result<(), DeadEnd> {
        let tallies = &self.model().tallies;
        let tally = &tallies.all()[row as usize];
        let members = tallies.members(row);
        let domain_of = tallies.domains(tally.scope);
        let domains = domain_of.iter().max().map_or(0, |&last| last as usize + 1);
        let mut held = vec![0u32; domains];
        let mut possible = vec![0u32; domains];
        let mut open = 0;
        for &vm in members {
            if self.is_placed(vm) {
                held[domain_of[self.state.host_of(vm) as usize] as usize] += 1;
                continue;
            }
            open += 1;
            self.reachable(vm, domain_of).into_iter().for_each(|domain| possible[domain] += 1);
        }
        let occupied = held.iter().filter(|&&held| held > 0).count();
        let free = (0..domains).filter(|&domain| held[domain] == 0 && possible[domain] > 0).count();
        if tally.apart {
            // As many places as members, or a pigeonhole is too few.
            if held.iter().any(|&held| held > 1) || open > free {
                return Err(DeadEnd);
            }
            self.forbid_where(members, domain_of, |domain| held[domain] > 0)?;
        }
        if tally.together && open > 0 {
            let all = |domain: usize| {
                (held[domain] > 0 || occupied == 0) && possible[domain] as usize >= open
            };
            self.forbid_where(members, domain_of, |domain| !all(domain))?;
        }
        if tally.together && occupied > 1 {
            return Err(DeadEnd);
        }
        let missing = (tally.spread as usize).saturating_sub(occupied);
        if missing > 0 {
            if missing > open.min(free) {
                return Err(DeadEnd);
            }
            if missing == open {
                // Every member that is left has to open a domain.
                self.forbid_where(members, domain_of, |domain| held[domain] > 0)?;
            }
        }
        for &needed in &tally.needs {
            self.revise_dependency(row, needed)?;
        }
        for &user in &tally.needed_by {
            self.revise_dependency(user, row)?;
        }
        Ok(())
    }

    /// Domains without any chance of `needed` are closed to `user`; those that have a member of
    /// `user` and one last chance take it.
    fn revise_dependency(&mut self, user: u32, needed: u32) -> Result<(), DeadEnd> {
        let tallies = &self.model().tallies;
        let domain_of = tallies.domains(tallies.all()[user as usize].scope);
        let domains = domain_of.iter().max().map_or(0, |&last| last as usize + 1);
        let mut served = vec![false; domains];
        let mut chances = vec![0u32; domains];
        let mut last_chance = vec![NOWHERE; domains];
        for &vm in tallies.members(needed) {
            if self.is_placed(vm) {
                served[domain_of[self.state.host_of(vm) as usize] as usize] = true;
                continue;
            }
            for domain in self.reachable(vm, domain_of) {
                chances[domain] += 1;
                last_chance[domain] = vm;
            }
        }
        let lost = |domain: usize| !served[domain] && chances[domain] == 0;
        self.forbid_where(tallies.members(user), domain_of, lost)?;
        for &vm in tallies.members(user) {
            if !self.is_placed(vm) {
                continue;
            }
            let domain = domain_of[self.state.host_of(vm) as usize] as usize;
            if lost(domain) {
                return Err(DeadEnd);
            }
            if !served[domain] && chances[domain] == 1 {
                self.forbid_where(&[last_chance[domain]], domain_of, |other| other != domain)?;
            }
        }
        Ok(())
    }

    /// The domains that a VM may still go to, each once.
    fn reachable(&self, vm: u32, domain_of: &[u32]) -> Vec<usize> {
        let hosts = self.domains.hosts(vm);
        let mut domains: Vec<usize> = hosts.map(|host| domain_of[host as usize] as usize).collect();
        domains.sort_unstable();
        domains.dedup();
        domains
    }

    /// Closes domains to those of the VMs that are not placed.
    fn forbid_where(
        &mut self,
        vms: &[u32],
        domain_of: &[u32],
        closed: impl Fn(usize) -> bool,
    ) -> Result<(), DeadEnd> {
        for &vm in vms {
            if self.is_placed(vm) {
                continue;
            }
            let hosts: Vec<u32> = self
                .domains
                .hosts(vm)
                .filter(|&host| closed(domain_of[host as usize] as usize))
                .collect();
            hosts.into_iter().for_each(|host| self.forbid(vm, host));
            if self.domains.size(vm) == 0 {
                return Err(DeadEnd);
            }
        }
        Ok(())
    }

    /// Packing by sums: what is left to place fits into all that is free; VMs that need more than
    /// half of the largest hole get a hole each; equal VMs are no more than fit by themselves.
    fn sums_fit(&self) -> Result<(), DeadEnd> {
        let model = self.model();
        let open: Vec<u32> = (0..model.vms() as u32).filter(|&vm| !self.is_placed(vm)).collect();
        for resource in 0..model.resources() {
            let mut holes: Vec<i32> =
                (0..model.hosts() as u32).map(|host| self.state.free(host)[resource]).collect();
            let mut needs: Vec<i32> = open.iter().map(|&vm| self.least(vm, resource)).collect();
            let sum = |amounts: &[i32]| -> i64 {
                amounts.iter().map(|&amount| i64::from(amount.max(0))).sum()
            };
            if sum(&needs) > sum(&holes) {
                return Err(DeadEnd);
            }
            holes.sort_unstable_by(|a, b| b.cmp(a));
            needs.sort_unstable_by(|a, b| b.cmp(a));
            let largest = holes.first().copied().unwrap_or(0);
            let alone = needs.iter().take_while(|&&need| need > largest - need);
            for (row, &need) in alone.enumerate() {
                if holes.get(row).is_none_or(|&hole| hole < need) {
                    return Err(DeadEnd);
                }
            }
        }
        self.equals_fit(&open)
    }

    fn equals_fit(&self, open: &[u32]) -> Result<(), DeadEnd> {
        let model = self.model();
        let mut of_shape = vec![(0u32, NOWHERE); model.shapes()];
        for &vm in open {
            let entry = &mut of_shape[model.shape_of(vm) as usize];
            *entry = (entry.0 + 1, vm);
        }
        // What a VM left behind at home makes equal shapes unequal: then there is nothing to say.
        if model.transient().iter().any(|&transient| transient != 0) {
            return Ok(());
        }
        for (count, vm) in of_shape.into_iter().filter(|(count, _)| *count > 1) {
            let fits = (0..model.hosts() as u32).map(|host| {
                let room = model.demand(vm).iter().zip(self.state.free(host));
                let times = room.filter(|(demand, _)| **demand > 0);
                times.map(|(demand, free)| (free / demand).max(0) as u64).min().unwrap_or(u64::MAX)
            });
            if fits.fold(0u64, u64::saturating_add) < u64::from(count) {
                return Err(DeadEnd);
            }
        }
        Ok(())
    }

    /// The least that a VM will take: nothing of a transient resource while it may stay at home.
    fn least(&self, vm: u32, resource: usize) -> i32 {
        let model = self.model();
        let home = model.initial(vm);
        let may_stay = home != NOWHERE && self.domains.contains(vm, home);
        if may_stay && model.transient()[resource] != 0 {
            return 0;
        }
        model.demand(vm)[resource]
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
