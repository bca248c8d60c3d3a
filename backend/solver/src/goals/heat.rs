//! Heat: what the hosts of a rack, or of any domain, draw above what it is cooled for.

use super::power::Power;
use super::{After, Used};
use crate::assignment::Model;
use cluster::HostIx;
use cluster::assignment::{NO_DOMAIN, Problem, Scope};

#[derive(Clone, Debug)]
pub(crate) struct Heat {
    power: Power,
    /// By host; beyond the last limit for those that have none.
    domain_of: Vec<u32>,
    limits: Vec<i64>,
}

/// What each host draws, each domain, and all of them above their limits.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    hosts: Vec<i64>,
    domains: Vec<i64>,
    above: i64,
}

impl Heat {
    pub(super) fn compile(problem: &Problem, power: Power, scope: Scope, limits: &[u64]) -> Self {
        let none = limits.len() as u32;
        let domain = |host: u32| match problem.domain(scope, HostIx(host)) {
            NO_DOMAIN => none,
            domain => domain.min(none),
        };
        Self {
            power,
            domain_of: (0..problem.hosts.len() as u32).map(domain).collect(),
            limits: limits.iter().map(|&limit| limit.min(i64::MAX as u64) as i64).collect(),
        }
    }

    fn above(&self, domain: usize, drawn: i64) -> i64 {
        (drawn - self.limits[domain]).max(0)
    }

    /// What is above limits already, whatever comes.
    pub(super) fn bound(&self, model: &Model) -> i64 {
        Drawn::none(self, model).above
    }
}

impl Drawn {
    pub(super) fn none(goal: &Heat, model: &Model) -> Self {
        let mut drawn = Self {
            hosts: vec![0; goal.domain_of.len()],
            domains: vec![0; goal.limits.len()],
            above: 0,
        };
        for host in 0..goal.domain_of.len() as u32 {
            let standing = model.standing(host);
            drawn.set(goal, host, 0, &|resource: usize| standing[resource]);
        }
        drawn
    }

    pub(super) fn worth(&self) -> i64 {
        self.above
    }

    pub(super) fn set(&mut self, goal: &Heat, host: u32, vms: u32, used: &impl Used) {
        let domain = goal.domain_of[host as usize] as usize;
        let draws = goal.power.host(host, vms, used);
        let before = std::mem::replace(&mut self.hosts[host as usize], draws);
        let Some(sum) = self.domains.get_mut(domain) else { return };
        self.above -= goal.above(domain, *sum);
        *sum += draws - before;
        self.above += goal.above(domain, *sum);
    }

    pub(super) fn delta(&self, goal: &Heat, after: &[After<'_>]) -> i64 {
        let mut delta = 0;
        let mut first: Option<(usize, i64)> = None;
        for after in after {
            let domain = goal.domain_of[after.host as usize] as usize;
            let Some(&now) = self.domains.get(domain) else { continue };
            let mut from = now;
            if let Some((other, sum)) = first
                && other == domain
            {
                from = sum;
            }
            let to = from + goal.power.after(after) - self.hosts[after.host as usize];
            delta += goal.above(domain, to) - goal.above(domain, from);
            first = Some((domain, to));
        }
        delta
    }
}
