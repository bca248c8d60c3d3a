//! Rules between VMs as counters: how many members of a group each domain has.
//!
//! A tally is a group counted within a scope because some rule asks. Every rule is a statement
//! about one tally, or two of the same scope; what a change does to it is seen in the domains that
//! the change touches. Rules that cannot be broken (one member apart from itself) are left out.

use super::state::Change;
use cluster::assignment::{Problem, Rule, Scope};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The rules, compiled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tallies {
    tallies: Vec<Tally>,
    /// Domain of each host, by scope.
    domains: Vec<Vec<u32>>,
    /// Tallies of each VM are `by_vm[first_of[vm]..first_of[vm + 1]]`.
    first_of: Vec<u32>,
    by_vm: Vec<u32>,
    /// Members of each tally, likewise.
    members: Vec<Vec<u32>>,
    counters: usize,
}

/// A group within a scope, and what must be true of its counters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) scope: usize,
    /// Where its counters begin; one for each domain.
    offset: usize,
    /// No domain has two.
    pub(crate) apart: bool,
    /// All are in one domain.
    pub(crate) together: bool,
    /// At least so many domains have one.
    pub(crate) spread: u32,
    /// Tallies that must be in every domain where this one is, and the other way round.
    pub(crate) needs: Vec<u32>,
    pub(crate) needed_by: Vec<u32>,
}

impl Tallies {
    pub(crate) fn compile(problem: &Problem) -> Self {
        let mut made = Self::default();
        let mut scopes: FxHashMap<Scope, usize> = FxHashMap::default();
        let mut known: FxHashMap<(u32, Scope), u32> = FxHashMap::default();
        let mut tally = |made: &mut Self, group: u32, scope: Scope| {
            *known.entry((group, scope)).or_insert_with(|| {
                let row = *scopes.entry(scope).or_insert_with(|| {
                    made.domains.push(dense_domains(problem, scope));
                    made.domains.len() - 1
                });
                let mut members: Vec<u32> =
                    problem.groups[group as usize].iter().map(|vm| vm.0).collect();
                members.sort_unstable();
                members.dedup();
                let offset = made.counters;
                made.counters +=
                    made.domains[row].iter().max().map_or(0, |&last| last as usize + 1);
                made.tallies.push(Tally { scope: row, offset, ..Tally::default() });
                made.members.push(members);
                made.tallies.len() as u32 - 1
            }) as usize
        };
        for rule in &problem.rules {
            let (group, scope) = rule.subject();
            let members = problem.groups[group as usize].len();
            let several = members > 1;
            match *rule {
                Rule::Apart { .. } if several => {
                    let row = tally(&mut made, group, scope);
                    made.tallies[row].apart = true;
                }
                Rule::Together { .. } if several => {
                    let row = tally(&mut made, group, scope);
                    made.tallies[row].together = true;
                }
                Rule::Spread { domains, .. } if domains > u32::from(members > 0) => {
                    let row = tally(&mut made, group, scope);
                    made.tallies[row].spread = made.tallies[row].spread.max(domains);
                }
                Rule::Dependency { needs, .. } if needs != group => {
                    let (row, needed) =
                        (tally(&mut made, group, scope), tally(&mut made, needs, scope));
                    if !made.tallies[row].needs.contains(&(needed as u32)) {
                        made.tallies[row].needs.push(needed as u32);
                        made.tallies[needed].needed_by.push(row as u32);
                    }
                }
                _ => {}
            }
        }
        made.index_by_vm(problem.vms.len());
        made
    }

    fn index_by_vm(&mut self, vms: usize) {
        let mut of_vm: Vec<Vec<u32>> = vec![Vec::new(); vms];
        for (tally, members) in self.members.iter().enumerate() {
            members.iter().for_each(|&vm| of_vm[vm as usize].push(tally as u32));
        }
        self.first_of.push(0);
        for tallies in of_vm {
            self.by_vm.extend(tallies);
            self.first_of.push(self.by_vm.len() as u32);
        }
    }

    pub(crate) fn of(&self, vm: u32) -> &[u32] {
        let vm = vm as usize;
        &self.by_vm[self.first_of[vm] as usize..self.first_of[vm + 1] as usize]
    }

    pub(crate) fn all(&self) -> &[Tally] {
        &self.tallies
    }

    pub(crate) fn members(&self, tally: u32) -> &[u32] {
        &self.members[tally as usize]
    }

    /// Domains of the hosts within a scope of `Tally::scope`.
    pub(crate) fn domains(&self, scope: usize) -> &[u32] {
        &self.domains[scope]
    }

    fn domain(&self, tally: &Tally, host: u32) -> usize {
        self.domains[tally.scope][host as usize] as usize
    }
}

/// The domains' numbers without holes, in order of the first host.
fn dense_domains(problem: &Problem, scope: Scope) -> Vec<u32> {
    let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
    let hosts = (0..problem.hosts.len() as u32).map(cluster::HostIx);
    let mut dense = |domain| {
        let next = numbers.len() as u32;
        *numbers.entry(domain).or_insert(next)
    };
    hosts.map(|host| dense(problem.domain(scope, host))).collect()
}

/// The counters of one assignment, patched as VMs come and go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    members: Vec<u32>,
    /// Domains with a member, by tally.
    occupied: Vec<u32>,
    /// How much is missing until every rule holds: members too many in a domain, domains too few
    /// or too many, domains without what they need.
    broken: u64,
}

impl Counts {
    pub(crate) fn none(tallies: &Tallies) -> Self {
        Self {
            members: vec![0; tallies.counters],
            occupied: vec![0; tallies.tallies.len()],
            broken: tallies.tallies.iter().map(|tally| u64::from(tally.spread)).sum(),
        }
    }

    pub(crate) fn broken(&self) -> u64 {
        self.broken
    }

    pub(crate) fn arrive(&mut self, tallies: &Tallies, vm: u32, host: u32) {
        for &row in tallies.of(vm) {
            let tally = &tallies.tallies[row as usize];
            let domain = tallies.domain(tally, host);
            let before = self.at(tally, domain);
            self.members[tally.offset + domain] = before + 1;
            if before > 0 {
                self.broken += u64::from(tally.apart);
                continue;
            }
            self.occupied[row as usize] += 1;
            let occupied = self.occupied[row as usize];
            self.broken -= u64::from(occupied <= tally.spread);
            self.broken += u64::from(tally.together && occupied > 1);
            for &needed in &tally.needs {
                self.broken += u64::from(self.at(&tallies.tallies[needed as usize], domain) == 0);
            }
            for &user in &tally.needed_by {
                self.broken -= u64::from(self.at(&tallies.tallies[user as usize], domain) > 0);
            }
        }
    }

    pub(crate) fn leave(&mut self, tallies: &Tallies, vm: u32, host: u32) {
        for &row in tallies.of(vm) {
            let tally = &tallies.tallies[row as usize];
            let domain = tallies.domain(tally, host);
            let after = self.at(tally, domain) - 1;
            self.members[tally.offset + domain] = after;
            if after > 0 {
                self.broken -= u64::from(tally.apart);
                continue;
            }
            let occupied = self.occupied[row as usize];
            self.broken += u64::from(occupied <= tally.spread);
            self.broken -= u64::from(tally.together && occupied > 1);
            self.occupied[row as usize] -= 1;
            for &needed in &tally.needs {
                self.broken -= u64::from(self.at(&tallies.tallies[needed as usize], domain) == 0);
            }
            for &user in &tally.needed_by {
                self.broken += u64::from(self.at(&tallies.tallies[user as usize], domain) > 0);
            }
        }
    }

    /// Whether a VM that is not placed could come without being too near or too far from others
    /// of its groups. Spread and dependencies may be made good by VMs that come later.
    pub(crate) fn may_arrive(&self, tallies: &Tallies, vm: u32, host: u32) -> bool {
        tallies.of(vm).iter().all(|&row| {
            let tally = &tallies.tallies[row as usize];
            let here = self.at(tally, tallies.domain(tally, host));
            (!tally.apart || here == 0)
                && (!tally.together || here > 0 || self.occupied[row as usize] == 0)
        })
    }

    /// Whether rules that hold now, with all VMs placed, hold after these changes at once.
    pub(crate) fn hold_after(&self, tallies: &Tallies, changes: &[Change]) -> bool {
        changes.iter().all(|change| {
            tallies.of(change.vm).iter().all(|&row| self.holds_after(tallies, row, change, changes))
        })
    }

    fn holds_after(&self, tallies: &Tallies, row: u32, change: &Change, all: &[Change]) -> bool {
        let tally = &tallies.tallies[row as usize];
        let (from, to) = (tallies.domain(tally, change.from), tallies.domain(tally, change.to));
        if from == to {
            return true;
        }
        let after = |row: u32, domain: usize| self.after(tallies, row, domain, all);
        if tally.apart && after(row, to) > 1 {
            return false;
        }
        if tally.together && after(row, to) < tallies.members[row as usize].len() as i64 {
            return false;
        }
        if tally.spread > 0 && self.occupied_after(tallies, row, all) < i64::from(tally.spread) {
            return false;
        }
        tally.needs.iter().all(|&needed| after(needed, to) > 0)
            && (tally.needed_by.is_empty()
                || after(row, from) > 0
                || tally.needed_by.iter().all(|&user| after(user, from) == 0))
    }

    fn at(&self, tally: &Tally, domain: usize) -> u32 {
        self.members[tally.offset + domain]
    }

    fn after(&self, tallies: &Tallies, row: u32, domain: usize, changes: &[Change]) -> i64 {
        let tally = &tallies.tallies[row as usize];
        let mut count = i64::from(self.at(tally, domain));
        for change in changes.iter().filter(|change| tallies.of(change.vm).contains(&row)) {
            count += i64::from(tallies.domain(tally, change.to) == domain);
            count -= i64::from(tallies.domain(tally, change.from) == domain);
        }
        count
    }

    fn occupied_after(&self, tallies: &Tallies, row: u32, changes: &[Change]) -> i64 {
        let tally = &tallies.tallies[row as usize];
        let mut touched: SmallVec<[usize; 4]> = SmallVec::new();
        for change in changes.iter().filter(|change| tallies.of(change.vm).contains(&row)) {
            touched.push(tallies.domain(tally, change.from));
            touched.push(tallies.domain(tally, change.to));
        }
        touched.sort_unstable();
        touched.dedup();
        let mut occupied = i64::from(self.occupied[row as usize]);
        for domain in touched {
            occupied += i64::from(self.after(tallies, row, domain, changes) > 0);
            occupied -= i64::from(self.at(tally, domain) > 0);
        }
        occupied
    }
}
