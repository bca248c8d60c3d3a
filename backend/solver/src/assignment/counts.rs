//! The counters of one assignment, patched as VMs come and go, and what they say of the rules.

use super::counters::Counters;
use super::state::Change;
use super::tallies::{Skew, Tallies, Tally};
use smallvec::SmallVec;

#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    members: Counters,
    /// Domains with a member, by tally.
    occupied: Vec<u32>,
    /// How much is missing until every rule holds: members too many in a domain, domains too few
    /// or too many, domains without what they need or with what they must not have.
    broken: u64,
}

impl Counts {
    pub(crate) fn none(tallies: &Tallies) -> Self {
        Self {
            members: Counters::none(tallies.counters, tallies.most_members()),
            occupied: vec![0; tallies.all().len()],
            broken: tallies.all().iter().map(|tally| u64::from(tally.spread)).sum(),
        }
    }

    /// Becomes equal to other counters of the same rules.
    pub(crate) fn copy(&mut self, other: &Self) {
        self.members.copy(&other.members);
        self.occupied.clone_from(&other.occupied);
        self.broken = other.broken;
    }

    pub(crate) fn broken(&self) -> u64 {
        self.broken
    }

    pub(crate) fn arrive(&mut self, tallies: &Tallies, vm: u32, host: u32) {
        for &row in tallies.of(vm) {
            let tally = &tallies.all()[row as usize];
            let domain = tallies.domain(tally, host);
            let uneven = self.uneven(tallies, tally);
            let before = self.at(tally, domain);
            self.members.add(tally.offset + domain);
            if domain == tally.none {
                self.broken += if before == 0 { u64::from(tally.homeless) } else { 0 };
                continue;
            }
            self.broken += u64::from(before >= tally.most);
            if before == 0 {
                self.occupied[row as usize] += 1;
                let occupied = self.occupied[row as usize];
                self.broken -= u64::from(occupied <= tally.spread);
                self.broken += u64::from(tally.together && occupied > 1);
                for bound in &tally.leads {
                    self.broken += bound.gap(self.at(&tallies.all()[bound.other as usize], domain));
                }
            }
            for bound in &tally.follows {
                let led = self.led(tallies, bound.other, row, domain, before);
                self.broken += bound.gap(before + 1) * u64::from(led.1);
                self.broken -= bound.gap(before) * u64::from(led.0);
            }
            self.broken = self.broken + self.uneven(tallies, tally) - uneven;
        }
    }

    pub(crate) fn leave(&mut self, tallies: &Tallies, vm: u32, host: u32) {
        for &row in tallies.of(vm) {
            let tally = &tallies.all()[row as usize];
            let domain = tallies.domain(tally, host);
            let uneven = self.uneven(tallies, tally);
            let after = self.at(tally, domain) - 1;
            self.members.take(tally.offset + domain);
            if domain == tally.none {
                self.broken -= if after == 0 { u64::from(tally.homeless) } else { 0 };
                continue;
            }
            self.broken -= u64::from(after >= tally.most);
            if after == 0 {
                let occupied = self.occupied[row as usize];
                self.broken += u64::from(occupied <= tally.spread);
                self.broken -= u64::from(tally.together && occupied > 1);
                self.occupied[row as usize] -= 1;
                for bound in &tally.leads {
                    self.broken -= bound.gap(self.at(&tallies.all()[bound.other as usize], domain));
                }
            }
            for bound in &tally.follows {
                let led = self.led(tallies, bound.other, row, domain, after);
                self.broken += bound.gap(after) * u64::from(led.0);
                self.broken -= bound.gap(after + 1) * u64::from(led.1);
            }
            self.broken = self.broken + self.uneven(tallies, tally) - uneven;
        }
    }

    /// Whether a tally that leads has a member in a domain: with so few of `row`, and with one more.
    /// They differ if it leads itself.
    fn led(&self, tallies: &Tallies, by: u32, row: u32, domain: usize, fewer: u32) -> (bool, bool) {
        match by == row {
            true => (fewer > 0, true),
            false => {
                let there = self.at(&tallies.all()[by as usize], domain) > 0;
                (there, there)
            }
        }
    }

    /// By how much the skews that a tally is part of are exceeded.
    fn uneven(&self, tallies: &Tallies, tally: &Tally) -> u64 {
        let at = |row: u32, domain| self.at(&tallies.all()[row as usize], domain);
        tallies.skews(tally).map(|skew| exceeded(tallies, skew, at)).sum()
    }

    /// Whether a VM that is not placed could come without breaking what no VM that comes later can
    /// make good. Spread, skews and dependencies may be.
    pub(crate) fn may_arrive(&self, tallies: &Tallies, vm: u32, host: u32) -> bool {
        let own = tallies.of(vm);
        own.iter().all(|&row| {
            let tally = &tallies.all()[row as usize];
            let domain = tallies.domain(tally, host);
            if domain == tally.none {
                return tally.homeless == 0;
            }
            let here = self.at(tally, domain);
            let then = |row: u32| {
                self.at(&tallies.all()[row as usize], domain) + u32::from(own.contains(&row))
            };
            here < tally.most
                && (!tally.together || here > 0 || self.occupied[row as usize] == 0)
                && tally.leads.iter().all(|bound| then(bound.other) <= bound.most)
                && tally.follows.iter().all(|bound| here < bound.most || then(bound.other) == 0)
        })
    }

    /// Whether rules that hold now, with all VMs placed, hold after these changes at once.
    pub(crate) fn hold_after(&self, tallies: &Tallies, changes: &[Change]) -> bool {
        changes.iter().all(|change| {
            let rows = tallies.of(change.vm);
            match changes {
                [_] => rows.iter().all(|&row| self.holds_after_one(tallies, row, change)),
                _ => rows.iter().all(|&row| self.holds_after(tallies, row, change, changes)),
            }
        })
    }

    /// Of a rule that holds now, with one change only.
    fn holds_after_one(&self, tallies: &Tallies, row: u32, change: &Change) -> bool {
        let tally = &tallies.all()[row as usize];
        let (from, to) = (tallies.domain(tally, change.from), tallies.domain(tally, change.to));
        if from == to {
            return true;
        }
        if to == tally.none || from == tally.none || tallies.skews(tally).next().is_some() {
            return self.holds_after(tallies, row, change, std::slice::from_ref(change));
        }
        let (here, there) = (self.at(tally, from), self.at(tally, to));
        let alone = tallies.members(row).len() == 1;
        if there >= tally.most || (tally.together && !alone) {
            return false;
        }
        let occupied = self.occupied[row as usize] + u32::from(there == 0) - u32::from(here == 1);
        let at = |row: u32, domain| self.at(&tallies.all()[row as usize], domain);
        let own = |row: u32| u32::from(tallies.of(change.vm).contains(&row));
        // Where members are already, what they need is there too; if it comes or goes with the VM,
        // that is seen when its own rules are looked at.
        occupied >= tally.spread
            && (there > 0 || tally.leads.iter().all(|b| b.gap(at(b.other, to) + own(b.other)) == 0))
            && tally.follows.iter().all(|b| {
                (b.gap(there + 1) == 0 || at(b.other, to) + own(b.other) == 0)
                    && (here > b.least || at(b.other, from) == own(b.other))
            })
    }

    fn holds_after(&self, tallies: &Tallies, row: u32, change: &Change, all: &[Change]) -> bool {
        let tally = &tallies.all()[row as usize];
        let (from, to) = (tallies.domain(tally, change.from), tallies.domain(tally, change.to));
        if from == to {
            return true;
        }
        let after = |row: u32, domain: usize| self.after(tallies, row, domain, all);
        if to == tally.none {
            if tally.homeless > 0 {
                return false;
            }
        } else {
            let here = after(row, to);
            let comes = here <= tally.most
                && (!tally.together || here as usize == tallies.members(row).len())
                && tally.leads.iter().all(|bound| bound.gap(after(bound.other, to)) == 0)
                && tally.follows.iter().all(|b| b.gap(here) == 0 || after(b.other, to) == 0);
            if !comes {
                return false;
            }
        }
        if tally.spread > 0 && self.occupied_after(tallies, row, all) < i64::from(tally.spread) {
            return false;
        }
        let even = tallies.skews(tally).all(|skew| exceeded(tallies, skew, after) == 0);
        even && (from == tally.none
            || tally.follows.is_empty()
            || tally
                .follows
                .iter()
                .all(|bound| after(row, from) >= bound.least || after(bound.other, from) == 0))
    }

    #[inline]
    fn at(&self, tally: &Tally, domain: usize) -> u32 {
        self.members.at(tally.offset + domain)
    }

    fn after(&self, tallies: &Tallies, row: u32, domain: usize, changes: &[Change]) -> u32 {
        let tally = &tallies.all()[row as usize];
        let (mut comes, mut goes) = (self.at(tally, domain), 0);
        for change in changes.iter().filter(|change| tallies.of(change.vm).contains(&row)) {
            comes += u32::from(tallies.domain(tally, change.to) == domain);
            goes += u32::from(tallies.domain(tally, change.from) == domain);
        }
        comes - goes
    }

    fn occupied_after(&self, tallies: &Tallies, row: u32, changes: &[Change]) -> i64 {
        let tally = &tallies.all()[row as usize];
        let mut touched: SmallVec<[usize; 4]> = SmallVec::new();
        for change in changes.iter().filter(|change| tallies.of(change.vm).contains(&row)) {
            touched.push(tallies.domain(tally, change.from));
            touched.push(tallies.domain(tally, change.to));
        }
        touched.sort_unstable();
        touched.dedup();
        let mut occupied = i64::from(self.occupied[row as usize]);
        for domain in touched.into_iter().filter(|&domain| domain != tally.none) {
            occupied += i64::from(self.after(tallies, row, domain, changes) > 0);
            occupied -= i64::from(self.at(tally, domain) > 0);
        }
        occupied
    }
}

/// By how much a skew is exceeded, over all domains, when each tally has so many members in each.
fn exceeded(tallies: &Tallies, skew: &Skew, members: impl Fn(u32, usize) -> u32) -> u64 {
    let fewest = skew.among.iter().map(|&domain| members(skew.of, domain as usize)).min();
    let fewest = match (fewest, skew.beyond) {
        (_, true) => 0,
        (Some(fewest), _) => fewest,
        (None, _) => return 0,
    };
    let domains = 0..tallies.all()[skew.group as usize].none;
    let bound = domains.filter(|&domain| members(skew.group, domain) > 0);
    let beyond = |domain| members(skew.of, domain).saturating_sub(fewest.saturating_add(skew.most));
    bound.map(|domain| u64::from(beyond(domain))).sum()
}
