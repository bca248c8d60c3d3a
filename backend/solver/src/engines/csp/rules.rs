//! What rules rule out: for each kind of rule, the hosts that VMs can no longer have.

use super::propagate::{Branch, DeadEnd};
use crate::assignment::{Bound, Skew};

/// Members of a tally by domain: those that are placed, and how many others may yet come.
struct Census {
    held: Vec<u32>,
    possible: Vec<u32>,
    open: u32,
}

impl Census {
    /// No domain will ever have more.
    fn highest(&self, domain: usize) -> u32 {
        self.held[domain] + self.possible[domain]
    }
}

impl Branch<'_> {
    /// Removes what the rules of one tally rule out.
    pub(super) fn revise(&mut self, row: u32) -> Result<(), DeadEnd> {
        let tallies = &self.model().tallies;
        let tally = &tallies.all()[row as usize];
        let members = tallies.members(row);
        let none = tally.none;
        if tally.homeless > 0 {
            self.forbid_where(members, row, |domain| domain == none)?;
        }
        let Census { held, possible, open } = self.census(row);
        if tally.homeless > 0 && held[none] > 0 {
            return Err(DeadEnd);
        }
        let occupied = held[..none].iter().filter(|&&held| held > 0).count() as u32;
        let free =
            (0..none).filter(|&domain| held[domain] == 0 && possible[domain] > 0).count() as u32;
        if tally.most < u32::MAX {
            // As many places as members, or a pigeonhole is too few.
            let places = (0..none).map(|domain| {
                u64::from(tally.most.saturating_sub(held[domain]).min(possible[domain]))
            });
            let places = places.sum::<u64>() + u64::from(possible[none]);
            if held[..none].iter().any(|&held| held > tally.most) || u64::from(open) > places {
                return Err(DeadEnd);
            }
            self.forbid_where(members, row, |domain| domain != none && held[domain] >= tally.most)?;
        }
        if tally.together && open > 0 {
            let all = |domain: usize| {
                domain != none && (held[domain] > 0 || occupied == 0) && possible[domain] >= open
            };
            self.forbid_where(members, row, |domain| !all(domain))?;
        }
        if tally.together && occupied > 1 {
            return Err(DeadEnd);
        }
        let missing = tally.spread.saturating_sub(occupied);
        if missing > 0 {
            if missing > open.min(free) {
                return Err(DeadEnd);
            }
            if missing == open {
                // Every member that is left has to open a domain.
                self.forbid_where(members, row, |domain| domain == none || held[domain] > 0)?;
            }
        }
        for bound in &tally.leads {
            self.revise_bound(row, bound.other, *bound)?;
        }
        for bound in &tally.follows {
            self.revise_bound(bound.other, row, *bound)?;
        }
        for skew in tallies.skews(tally) {
            self.revise_skew(skew)?;
        }
        Ok(())
    }

    /// Domains that will never have enough of `follower`, or have too many of it, are closed to
    /// `leader`. Where `leader` is, a full domain is closed to `follower`, and one with just as
    /// many chances as are needed takes them all.
    fn revise_bound(&mut self, leader: u32, follower: u32, bound: Bound) -> Result<(), DeadEnd> {
        let tallies = &self.model().tallies;
        let none = tallies.all()[leader as usize].none;
        let followers = self.census(follower);
        let leads = self.census(leader).held;
        let (least, most) = (bound.least, bound.most);
        let lost = |domain: usize| domain != none && followers.highest(domain) < least;
        let full = |domain: usize, more: u32| {
            domain != none && followers.held[domain].saturating_add(more) > most
        };
        for &vm in tallies.members(leader) {
            // Who leads and follows at once is one more wherever it goes.
            let more = u32::from(tallies.of(vm).contains(&follower));
            self.forbid_where(&[vm], leader, |domain| lost(domain) || full(domain, more))?;
        }
        for domain in (0..none).filter(|&domain| leads[domain] > 0) {
            if lost(domain) || full(domain, 0) {
                return Err(DeadEnd);
            }
            if full(domain, 1) {
                self.forbid_where(tallies.members(follower), follower, |other| other == domain)?;
            }
            if followers.held[domain] < least && followers.highest(domain) == least {
                self.send_all(follower, domain)?;
            }
        }
        Ok(())
    }

    /// No domain with a bound member gets farther ahead of the emptiest than that one can follow,
    /// and those that have to catch up get who can still come.
    fn revise_skew(&mut self, skew: &Skew) -> Result<(), DeadEnd> {
        let tallies = &self.model().tallies;
        let none = tallies.all()[skew.group as usize].none;
        let counted = self.census(skew.of);
        let bound = self.census(skew.group).held;
        let Some(emptiest) = self.emptiest(skew, &counted) else { return Ok(()) };
        let most = emptiest.saturating_add(skew.most);
        let ahead = |domain: usize, more: u32| domain != none && counted.held[domain] + more > most;
        for &vm in tallies.members(skew.group) {
            let more = u32::from(tallies.of(vm).contains(&skew.of));
            self.forbid_where(&[vm], skew.group, |domain| ahead(domain, more))?;
        }
        let mut needed = 0;
        for domain in (0..none).filter(|&domain| bound[domain] > 0) {
            if ahead(domain, 0) {
                return Err(DeadEnd);
            }
            if ahead(domain, 1) {
                self.forbid_where(tallies.members(skew.of), skew.of, |other| other == domain)?;
            }
            needed = needed.max(counted.held[domain].saturating_sub(skew.most));
        }
        let mut missing = 0;
        for &domain in &skew.among {
            let domain = domain as usize;
            let lacks = needed.saturating_sub(counted.held[domain]);
            missing += lacks;
            if lacks > 0 && counted.possible[domain] == lacks {
                self.send_all(skew.of, domain)?;
            }
        }
        if missing > counted.open { Err(DeadEnd) } else { Ok(()) }
    }

    /// The most that the emptiest domain of a skew can end with; `None` if it compares with none.
    fn emptiest(&self, skew: &Skew, counted: &Census) -> Option<u32> {
        if skew.beyond {
            return Some(0);
        }
        let highest = skew.among.iter().map(|&domain| counted.highest(domain as usize)).min()?;
        let held: u32 = skew.among.iter().map(|&domain| counted.held[domain as usize]).sum();
        Some(highest.min((held + counted.open) / skew.among.len() as u32))
    }

    /// Those of a tally that can still come to a domain have to.
    fn send_all(&mut self, tally: u32, domain: usize) -> Result<(), DeadEnd> {
        let tallies = &self.model().tallies;
        let of_host = &tallies.domains(&tallies.all()[tally as usize]).of_host;
        for &vm in tallies.members(tally) {
            let comes = |host: u32| of_host[host as usize] as usize == domain;
            if !self.is_placed(vm) && self.domains.hosts(vm).any(comes) {
                self.forbid_where(&[vm], tally, |other| other != domain)?;
            }
        }
        Ok(())
    }

    fn census(&self, row: u32) -> Census {
        let tallies = &self.model().tallies;
        let tally = &tallies.all()[row as usize];
        let of_host = &tallies.domains(tally).of_host;
        let nothing = vec![0u32; tally.none + 1];
        let mut census = Census { held: nothing.clone(), possible: nothing, open: 0 };
        for &vm in tallies.members(row) {
            if self.is_placed(vm) {
                census.held[of_host[self.state.host_of(vm) as usize] as usize] += 1;
                continue;
            }
            census.open += 1;
            for domain in self.reachable(vm, of_host) {
                census.possible[domain] += 1;
            }
        }
        census
    }

    /// The domains that a VM may still go to, each once.
    fn reachable(&self, vm: u32, domain_of: &[u32]) -> Vec<usize> {
        let hosts = self.domains.hosts(vm);
        let mut domains: Vec<usize> = hosts.map(|host| domain_of[host as usize] as usize).collect();
        domains.sort_unstable();
        domains.dedup();
        domains
    }

    /// Closes domains, of the scope of a tally, to those of the VMs that are not placed.
    fn forbid_where(
        &mut self,
        vms: &[u32],
        tally: u32,
        closed: impl Fn(usize) -> bool,
    ) -> Result<(), DeadEnd> {
        let tallies = &self.model().tallies;
        let domain_of = &tallies.domains(&tallies.all()[tally as usize]).of_host;
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

    /// Closes the hosts of the rules about spare room that a VM has just come to: to all who would
    /// now take what is kept.
    pub(super) fn revise_spares(&mut self, host: u32) -> Result<(), DeadEnd> {
        let model = self.model();
        for &row in model.spares.of(host) {
            let rule = &model.spares.all()[row as usize];
            for vm in 0..model.vms() as u32 {
                if self.is_placed(vm) {
                    continue;
                }
                let demand = model.demand(vm);
                let takes = rule.usable.iter().enumerate().any(|(resource, usable)| {
                    let bound = rule.binds[vm as usize]
                        || self.state.sums.is_bound(&model.spares, row, resource);
                    let used = self.state.sums.used(&model.spares, row, resource);
                    let demand = i64::from(demand[resource]);
                    usable.is_some_and(|usable| bound && demand > 0 && used + demand > usable)
                });
                if !takes {
                    continue;
                }
                rule.hosts.iter().for_each(|&host| self.forbid(vm, host));
                if self.domains.size(vm) == 0 {
                    return Err(DeadEnd);
                }
            }
        }
        Ok(())
    }
}
