//! Rules between VMs as counters: how many members of a group each domain has.
//!
//! A tally is a set of VMs counted within a scope because some rule asks. Every rule is a statement
//! about one tally, or two of the same scope; what a change does to it is seen in the domains that
//! the change touches, and for skews in all of them. Rules that cannot be broken (one member apart
//! from itself) are left out.

use cluster::assignment::{NO_DOMAIN, Problem, Rule, Scope};
use rustc_hash::FxHashMap;

/// The rules, compiled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tallies {
    tallies: Vec<Tally>,
    pub(super) skews: Vec<Skew>,
    scopes: Vec<Domains>,
    /// Tallies of each VM are `by_vm[first_of[vm]..first_of[vm + 1]]`.
    first_of: Vec<u32>,
    by_vm: Vec<u32>,
    /// Members of each tally, likewise.
    members: Vec<Vec<u32>>,
    pub(super) counters: usize,
}

/// The domains of a scope, numbered without holes in order of the first host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Domains {
    /// Of each host; those in no domain have the number after the last.
    pub(crate) of_host: Vec<u32>,
    /// How many there are, not counting "none".
    pub(crate) count: usize,
    numbers: FxHashMap<u32, u32>,
}

/// A set of VMs within a scope, and what must be true of its counters.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    pub(crate) scope: usize,
    /// Where its counters begin: one for each domain, then one for hosts in none.
    pub(super) offset: usize,
    /// The number of "in no domain".
    pub(crate) none: usize,
    /// No domain has more.
    pub(crate) most: u32,
    /// All are in one domain.
    pub(crate) together: bool,
    /// At least so many domains have one.
    pub(crate) spread: u32,
    /// What must be true of others where this one is, and of this one where others are.
    pub(crate) leads: Vec<Bound>,
    pub(crate) follows: Vec<Bound>,
    /// Rows of `skews` that count this one, or bind it.
    pub(super) skews: Vec<u32>,
    /// How many rules a member breaks by being in no domain.
    pub(crate) homeless: u32,
}

/// Where one tally has a member, another has at least and at most so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) other: u32,
    pub(crate) least: u32,
    pub(crate) most: u32,
}

/// Where `group` has a member, `of` has at most `most` more than in any domain of `among`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Skew {
    pub(crate) group: u32,
    pub(crate) of: u32,
    pub(crate) most: u32,
    pub(crate) among: Vec<u32>,
    /// Whether a domain without any host is among them: that one has no member ever.
    pub(crate) beyond: bool,
}

impl Bound {
    /// How much is missing, or too much.
    pub(super) fn gap(&self, members: u32) -> u64 {
        u64::from(self.least.saturating_sub(members)) + u64::from(members.saturating_sub(self.most))
    }
}

impl Tallies {
    pub(crate) fn compile(problem: &Problem) -> Self {
        let mut builder = Builder { problem, made: Self::default(), ..Builder::empty(problem) };
        problem.rules.iter().for_each(|rule| builder.add(rule));
        let mut made = builder.made;
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

    /// Members of the largest tally.
    pub(crate) fn most_members(&self) -> usize {
        self.members.iter().map(Vec::len).max().unwrap_or(0)
    }

    pub(crate) fn domains(&self, tally: &Tally) -> &Domains {
        &self.scopes[tally.scope]
    }

    /// The skews that a tally is part of.
    pub(crate) fn skews(&self, tally: &Tally) -> impl Iterator<Item = &Skew> {
        tally.skews.iter().map(|&row| &self.skews[row as usize])
    }

    pub(super) fn domain(&self, tally: &Tally, host: u32) -> usize {
        self.scopes[tally.scope].of_host[host as usize] as usize
    }
}

impl Domains {
    pub(super) fn of(problem: &Problem, scope: Scope) -> Self {
        let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
        let hosts = (0..problem.hosts.len() as u32).map(cluster::HostIx);
        let mut of_host = Vec::with_capacity(problem.hosts.len());
        for host in hosts {
            let domain = problem.domain(scope, host);
            let next = numbers.len() as u32;
            of_host.push(match domain {
                NO_DOMAIN => NO_DOMAIN,
                _ => *numbers.entry(domain).or_insert(next),
            });
        }
        let count = numbers.len();
        of_host.iter_mut().for_each(|domain| *domain = (*domain).min(count as u32));
        Self { of_host, count, numbers }
    }

    /// The number of a domain; `None` if no host is in it.
    pub(super) fn number(&self, domain: u32) -> Option<u32> {
        self.numbers.get(&domain).copied()
    }
}

/// Puts rules in, so that equal sets within equal scopes share their counters.
struct Builder<'p> {
    problem: &'p Problem,
    made: Tallies,
    groups: Vec<Vec<u32>>,
    scopes: FxHashMap<Scope, usize>,
    known: FxHashMap<(Vec<u32>, Scope), u32>,
}

impl<'p> Builder<'p> {
    fn empty(problem: &'p Problem) -> Self {
        let members = problem.groups.iter().map(|group| {
            let mut members: Vec<u32> = group.iter().map(|vm| vm.0).collect();
            members.sort_unstable();
            members.dedup();
            members
        });
        Self {
            problem,
            made: Tallies::default(),
            groups: members.collect(),
            scopes: FxHashMap::default(),
            known: FxHashMap::default(),
        }
    }

    fn add(&mut self, rule: &Rule) {
        let (group, scope) = rule.subject();
        let members = self.groups[group as usize].clone();
        if members.is_empty() && !matches!(rule, Rule::Spread { .. }) {
            return;
        }
        match *rule {
            // Which hosts a VM may have is part of its own list; spare room is no count of VMs, and
            // the others are about several counts at once.
            Rule::Fence { .. } | Rule::Spare { .. } | Rule::Network { .. } | Rule::Clash { .. } => {
            }
            Rule::Apart { .. } => self.limit(members, scope, 1),
            Rule::Limit { most, .. } => self.limit(members, scope, most),
            Rule::Together { .. } => {
                let none = self.has_none(scope);
                if members.len() > 1 || none {
                    let tally = self.tally(members, scope);
                    let tally = &mut self.made.tallies[tally as usize];
                    tally.homeless += u32::from(!tally.together);
                    tally.together = true;
                }
            }
            Rule::Spread { domains, .. } => {
                let trivial = u32::from(!members.is_empty() && !self.has_none(scope));
                if domains > trivial {
                    let tally = self.tally(members, scope) as usize;
                    self.made.tallies[tally].spread = self.made.tallies[tally].spread.max(domains);
                }
            }
            Rule::Dependency { needs, .. } => {
                if needs != group || self.has_none(scope) {
                    let needs = self.groups[needs as usize].clone();
                    self.bound(members, needs, scope, (1, u32::MAX));
                }
            }
            Rule::Beside { with, .. } => {
                let with = self.groups[with as usize].clone();
                let (inside, outside) = split(members, &with);
                self.bound(outside, with.clone(), scope, (1, u32::MAX));
                self.bound(inside, with, scope, (2, u32::MAX));
            }
            Rule::Away { from, .. } => {
                let from = self.groups[from as usize].clone();
                let (inside, outside) = split(members, &from);
                self.bound(outside, from.clone(), scope, (0, 0));
                self.bound(inside, from, scope, (0, 1));
            }
            Rule::Skew { of, most, ref among, .. } => {
                let of = self.groups[of as usize].clone();
                self.skew(members, of, scope, most, among);
            }
        }
    }

    fn limit(&mut self, members: Vec<u32>, scope: Scope, most: u32) {
        if members.len() > most as usize {
            let tally = self.tally(members, scope) as usize;
            self.made.tallies[tally].most = self.made.tallies[tally].most.min(most);
        }
    }

    fn bound(&mut self, group: Vec<u32>, other: Vec<u32>, scope: Scope, limits: (u32, u32)) {
        let (least, most) = limits;
        if group.is_empty() || least == 0 && other.len() <= most as usize {
            return;
        }
        let (row, other) = (self.tally(group, scope), self.tally(other, scope));
        let leads = Bound { other, least, most };
        let follows = Bound { other: row, least, most };
        if self.made.tallies[other as usize].follows.contains(&follows) {
            return;
        }
        self.made.tallies[other as usize].follows.push(follows);
        self.made.tallies[row as usize].homeless += u32::from(least > 0);
        if row != other {
            self.made.tallies[row as usize].leads.push(leads);
        }
    }

    fn skew(&mut self, group: Vec<u32>, of: Vec<u32>, scope: Scope, most: u32, among: &[u32]) {
        let (row, of) = (self.tally(group, scope), self.tally(of, scope));
        let numbers = &self.made.scopes[self.scopes[&scope]].numbers;
        let mut known: Vec<u32> =
            among.iter().filter_map(|domain| numbers.get(domain)).copied().collect();
        let beyond = known.len() < among.len();
        known.sort_unstable();
        known.dedup();
        let skew = Skew { group: row, of, most, among: known, beyond };
        if self.made.skews.contains(&skew) {
            return;
        }
        let number = self.made.skews.len() as u32;
        self.made.skews.push(skew);
        self.made.tallies[row as usize].homeless += 1;
        self.made.tallies[row as usize].skews.push(number);
        if of != row {
            self.made.tallies[of as usize].skews.push(number);
        }
    }

    fn scope(&mut self, scope: Scope) -> usize {
        let (made, problem) = (&mut self.made, self.problem);
        *self.scopes.entry(scope).or_insert_with(|| {
            made.scopes.push(Domains::of(problem, scope));
            made.scopes.len() - 1
        })
    }

    fn has_none(&self, scope: Scope) -> bool {
        let hosts = (0..self.problem.hosts.len() as u32).map(cluster::HostIx);
        scope != Scope::Host
            && hosts.into_iter().any(|host| self.problem.domain(scope, host) == NO_DOMAIN)
    }

    fn tally(&mut self, members: Vec<u32>, scope: Scope) -> u32 {
        let row = self.scope(scope);
        let made = &mut self.made;
        *self.known.entry((members, scope)).or_insert_with_key(|(members, _)| {
            let none = made.scopes[row].count;
            made.tallies.push(Tally {
                scope: row,
                offset: made.counters,
                none,
                most: u32::MAX,
                together: false,
                spread: 0,
                leads: Vec::new(),
                follows: Vec::new(),
                skews: Vec::new(),
                homeless: 0,
            });
            made.counters += none + 1;
            made.members.push(members.clone());
            made.tallies.len() as u32 - 1
        })
    }
}

/// Those that are in a sorted set, and those that are not.
fn split(members: Vec<u32>, set: &[u32]) -> (Vec<u32>, Vec<u32>) {
    members.into_iter().partition(|vm| set.binary_search(vm).is_ok())
}
