//! How much a request's own wishes can add to each host's score at most.
//!
//! What policies give a host counts as one of them. Wishes come as sets of hosts, each with what it adds for its members. Nothing is worked out
//! for a host or a block of hosts before the search for the best asks for it.

use crate::bits::{Bits, LANES};
use crate::cache::Slot;
use crate::locality::{Locality, NEARNESS, Site};
use crate::problem::Problem;
use crate::request::Request;
use crate::score::Formula;
use cluster::{AffinityKind, HostIx, Index, Term};

/// The most that affinity and locality can add to each host's standing. Kept between requests
/// for its memory.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    /// For every host.
    pub(crate) base: i64,
    /// Sets of hosts with what each adds; the first `used` are this request's.
    terms: Vec<(Bits, i32)>,
    used: usize,
    region: Option<Region>,
}

/// Nearness to users.
#[derive(Clone, Copy, Debug)]
struct Region {
    closeness: Slot,
    weight: i64,
    parts: i64,
}

impl Wishes {
    /// Starts over with what this request wishes.
    pub(crate) fn collect(&mut self, problem: &Problem, request: &Request, formula: &Formula) {
        let (affinity, locality) = (formula.weight(Term::Affinity), formula.weight(Term::Locality));
        (self.base, self.used, self.region) = (0, 0, None);
        if affinity > 0 && request.wished > 0 {
            self.add_rules(problem, request, affinity);
        } else {
            self.base += affinity * 1000;
        }
        if locality > 0 && request.locality.parts > 0 {
            self.add_locality(problem, &request.locality, locality);
        } else {
            self.base += locality * 1000;
        }
    }

    /// The most that any of these hosts of a block gets beyond the base.
    pub(crate) fn most(&self, problem: &Problem, block: usize, lanes: u64) -> i32 {
        let mut most = problem.policies.most(block);
        for (hosts, more) in &self.terms[..self.used] {
            let word = hosts.word(block);
            let gets_it = if *more > 0 { lanes & word != 0 } else { lanes & !word == 0 };
            most += if gets_it { *more } else { 0 };
        }
        if let Some(region) = self.region {
            let column = problem.predicates.closeness(region.closeness);
            let first = column.len().min(block * LANES);
            let last = column.len().min(first + LANES);
            let closest = column[first..last].iter().fold(0, |most, &value| value.max(most));
            most += region.adds(closest);
        }
        most
    }

    /// The most that a host gets beyond the base.
    pub(crate) fn at(&self, problem: &Problem, host: HostIx) -> i32 {
        let held = self.terms[..self.used].iter().filter(|(hosts, _)| hosts.contains(host));
        let mut most = problem.policies.points(host) + held.map(|(_, more)| more).sum::<i32>();
        if let Some(region) = self.region {
            let column = problem.predicates.closeness(region.closeness);
            most += region.adds(column.get(host.row()).copied().unwrap_or(0));
        }
        most
    }

    fn add_rules(&mut self, problem: &Problem, request: &Request, affinity: i64) {
        let part = |weight: u16| most(affinity * 1000 * i64::from(weight), request.wished);
        for rule in &request.rules {
            let Some(weight) = rule.weight else { continue };
            let part = part(weight);
            let near = match rule.kind {
                AffinityKind::Together => part,
                AffinityKind::Apart => -part,
            };
            if rule.open || rule.kind == AffinityKind::Apart {
                self.base += i64::from(part);
            }
            let hosts = self.term(near);
            rule.for_each_domain(problem, |domain| {
                problem.domains.add_to(hosts, rule.level, domain);
            });
        }
        for spread in &request.spreads {
            let Some(weight) = spread.weight else { continue };
            let part = part(weight);
            self.base += i64::from(part);
            let hosts = self.term(-part);
            spread.for_each_blocked(problem, |domain| {
                problem.domains.add_to(hosts, spread.level, domain);
            });
        }
    }

    fn add_locality(&mut self, problem: &Problem, locality: &Locality, weight: i64) {
        let parts = locality.parts;
        let part = |value: i64, share: i64, of: i64| most(weight * value * share, parts * of);
        for &(site, share) in &locality.data {
            let inside = part(1000, share, locality.data_weight);
            match site {
                Site::Unknown => {}
                Site::Host(host) => self.add_nearness(problem, host, |nearness| {
                    part(nearness, share, locality.data_weight)
                }),
                Site::Domain(level, domain) => {
                    problem.domains.add_to(self.term(inside), level, domain);
                }
                Site::Datastore(slot) => {
                    self.term(inside).union(problem.predicates.datastore_hosts(slot));
                }
            }
        }
        if !locality.preferred.is_empty() {
            let hosts = self.term(part(1000, 1, 1));
            locality.preferred.iter().for_each(|&host| hosts.insert(host));
        }
        for &other in &locality.neighbours {
            let all = locality.neighbours.len() as i64;
            self.add_nearness(problem, other, |nearness| part(nearness, 1, all));
        }
        self.region = locality.region.map(|closeness| Region { closeness, weight, parts });
    }

    /// One set for each level of nearness to `host`, without the hosts that are nearer.
    fn add_nearness(&mut self, problem: &Problem, host: HostIx, adds: impl Fn(i64) -> i32) {
        let first = self.used;
        for (level, nearness) in NEARNESS {
            let Some(domain) = problem.domains.of(level, host) else { continue };
            problem.domains.add_to(self.term(adds(nearness)), level, domain);
            let (nearer, last) = self.terms[first..self.used].split_at_mut(self.used - first - 1);
            nearer.iter().for_each(|(nearer, _)| last[0].0.subtract(nearer));
        }
    }

    /// A new set, empty as yet.
    fn term(&mut self, more: i32) -> &mut Bits {
        if self.terms.len() == self.used {
            self.terms.push(Default::default());
        }
        let (hosts, adds) = &mut self.terms[self.used];
        hosts.clear();
        *adds = more;
        self.used += 1;
        hosts
    }
}

impl Region {
    fn adds(self, closeness: u16) -> i32 {
        most(self.weight * i64::from(closeness), self.parts)
    }
}

/// Rounded up, so that a sum of parts is never less than the whole.
fn most(share: i64, of: i64) -> i32 {
    (share + of - 1).div_euclid(of) as i32
}
