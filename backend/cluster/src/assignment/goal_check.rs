//! Whether a goal's tables fit its problem, and what it could be worth at most.

use super::{
    Balance, Curves, End, Far, Goal, MAX_GOAL, NO_DOMAIN, Outages, PARTS, Problem, ProblemError,
    Rates, Scope, Traffic, amounts, length, within,
};
use crate::{HostIx, MAX_AMOUNT};
use std::collections::{BTreeMap, BTreeSet};

impl Problem {
    /// What stands has an amount for each resource of each host, and fits in with its capacity.
    pub(super) fn check_standing(&self) -> Result<(), ProblemError> {
        if self.standing.is_empty() {
            return Ok(());
        }
        length(|| "standing".into(), self.standing.len(), self.hosts.len())?;
        for (row, standing) in self.standing.iter().enumerate() {
            let field = || format!("standing[{row}].used");
            amounts(field, &standing.used, self.resources.len())?;
            let whole = standing.used.iter().zip(&self.hosts[row].capacity);
            if let Some(found) = whole.map(|(a, b)| a + b).find(|&found| found > MAX_AMOUNT) {
                return Err(ProblemError::Amount { field: field(), found, most: MAX_AMOUNT });
            }
        }
        Ok(())
    }

    /// No assignment within capacity is worth more than this.
    pub fn worst(&self, goal: &Goal) -> u128 {
        let vms = self.vms.len() as u128;
        match goal {
            Goal::Energy { hosts, .. } => {
                let powers =
                    hosts.iter().map(|power| u128::from(power.idle) + u128::from(power.span));
                powers.sum::<u128>() + vms
            }
            Goal::Peak { weight } => u128::from(*weight),
            Goal::Overload { weights, safe } => self.most_overloaded(weights, safe),
            Goal::Stranded { plenty, scarce, target, weight } => {
                let (plenty, scarce) = (*plenty as usize, *scarce as usize);
                let target = u128::from(*target);
                let lost = |free: u128, other: u128| (target * free).saturating_sub(other);
                let (mut all, mut now) = (0, 0);
                for host in &self.hosts {
                    let free = |resource: usize| u128::from(host.capacity[resource]);
                    all += target * free(plenty);
                    now += lost(free(plenty), free(scarce));
                }
                let taken = self.by_shape().map(|(shape, count)| u128::from(shape[scarce]) * count);
                u128::from(*weight).saturating_mul(all.min(now + taken.sum::<u128>()))
            }
            Goal::Moves { vms: costs, between, busiest } => {
                let far = between.as_ref().map_or(0, |distances| {
                    let farthest = distances.pairs.iter().copied().max().unwrap_or(0);
                    u128::from(distances.weight) * u128::from(farthest)
                });
                let busiest = busiest.as_ref().map_or(0, |busiest| u128::from(busiest.weight));
                costs.iter().map(|&cost| u128::from(cost)).sum::<u128>() + vms * (far + busiest)
            }
            Goal::Power { resource, curves, keep_on } => {
                self.most_drawn(*resource as usize, curves, *keep_on)
            }
            Goal::Heat { curves, scope, limits, .. } => self.hottest(curves, *scope, limits),
            Goal::Share(rates) => self.fullest(rates),
            Goal::Balance(balance) => self.least_even(balance),
            Goal::Table { costs, vms, .. } => {
                let most = |class: &Vec<u64>| u128::from(class.iter().copied().max().unwrap_or(0));
                let most: Vec<u128> = costs.iter().map(most).collect();
                vms.iter().map(|&class| most[class as usize]).sum()
            }
            Goal::Traffic(traffic) => {
                let near = traffic.near.iter().map(|near| near.cost).max().unwrap_or(0);
                let far = match &traffic.far {
                    Far::Cost(cost) => *cost,
                    Far::Sites(fabric) => fabric.costs.iter().copied().max().unwrap_or(0),
                };
                let weights: u128 = traffic.pairs.iter().map(|pair| u128::from(pair.weight)).sum();
                weights.saturating_mul(near.max(far).into())
            }
            Goal::Outages(outages) => self.most_lost(outages),
        }
    }

    /// Each VM of a shape, and how many there are of it.
    fn by_shape(&self) -> impl Iterator<Item = (&Vec<u64>, u128)> {
        let mut counts = vec![0u128; self.shapes.len()];
        self.vms.iter().for_each(|vm| counts[vm.shape as usize] += 1);
        self.shapes.iter().zip(counts).filter(|(_, count)| *count > 0)
    }

    /// Every host full, or what is above now and every VM above.
    fn most_overloaded(&self, weights: &[u64], safe: &[Vec<u64>]) -> u128 {
        let (mut full, mut now, mut vms) = (0u128, 0u128, 0u128);
        for (resource, &weight) in weights.iter().enumerate() {
            let weight = u128::from(weight);
            for (host, safe) in safe.iter().enumerate() {
                let above = |used: u64| weight * u128::from(used.saturating_sub(safe[resource]));
                full += above(self.whole(host, resource));
                now += above(self.standing(host, resource));
            }
            for (shape, count) in self.by_shape() {
                vms = vms.saturating_add(weight * u128::from(shape[resource]) * count);
            }
        }
        full.min(now.saturating_add(vms))
    }

    /// Every host at its end, or what there is now and every VM where it adds most.
    fn most_drawn(&self, resource: usize, curves: &Curves, keep_on: u32) -> u128 {
        let points = |host: usize| &curves.points[curves.of_host[host] as usize];
        let (mut ends, mut now, mut spare) = (0, 0, 0);
        let mut kinds: BTreeSet<(u128, u32, u64)> = BTreeSet::new();
        for host in 0..self.hosts.len() {
            let (whole, on) = (self.whole(host, resource), self.is_on(host));
            ends += u128::from(points(host).last().copied().unwrap_or(0));
            spare = spare.max(points(host).first().copied().unwrap_or(0));
            // Others may use something of a host without a VM, which counts once it is on.
            let draws = curves.at(host, self.standing(host, resource), whole);
            now += if on { draws } else { 0 };
            kinds.insert((if on { 0 } else { draws }, curves.of_host[host], whole));
        }
        let kinds: Vec<(u128, u128, u128)> = kinds
            .into_iter()
            .map(|(begins, curve, whole)| {
                let points = &curves.points[curve as usize];
                let steps = points.windows(2).map(|pair| u128::from(pair[1] - pair[0]));
                let steepest = steps.max().unwrap_or(0) * (points.len() as u128 - 1);
                (begins, steepest, u128::from(whole))
            })
            .collect();
        let added = |demand: u64| {
            let on = |&(idle, steepest, whole): &(u128, u128, u128)| match whole {
                0 => idle,
                _ => idle + (steepest * u128::from(demand)).div_ceil(whole) + 1,
            };
            kinds.iter().map(on).max().unwrap_or(0)
        };
        let vms: u128 = self.by_shape().map(|(shape, count)| added(shape[resource]) * count).sum();
        ends.min(now + vms + u128::from(keep_on) * u128::from(spare))
    }

    fn hottest(&self, curves: &Curves, scope: Scope, limits: &[u64]) -> u128 {
        let mut drawn: BTreeMap<u32, u128> = BTreeMap::new();
        for host in 0..self.hosts.len() {
            let end = curves.points[curves.of_host[host] as usize].last().copied().unwrap_or(0);
            let domain = self.domain(scope, HostIx(host as u32));
            *drawn.entry(domain).or_default() += u128::from(end);
        }
        let above = drawn.into_iter().filter(|(domain, _)| *domain != NO_DOMAIN);
        let above = above.filter_map(|(domain, drawn)| {
            let limit = limits.get(domain as usize)?;
            Some(drawn.saturating_sub((*limit).into()))
        });
        above.sum()
    }

    fn fullest(&self, rates: &Rates) -> u128 {
        let (mut full, mut now) = (0u128, 0u128);
        for host in 0..self.hosts.len() {
            full += rates.fill(host, |resource| self.whole(host, resource));
            now += rates.fill(host, |resource| self.standing(host, resource));
        }
        let classes = used(&rates.of_host);
        let most = |shape: &[u64]| {
            let fills = classes.iter().map(|&class| rates.of_class(class, |r| shape[r]) + 1);
            fills.max().unwrap_or(0)
        };
        let vms: u128 = self.by_shape().map(|(shape, count)| most(shape) * count).sum();
        full.min(now + vms)
    }

    fn least_even(&self, balance: &Balance) -> u128 {
        let (rates, weight) = (&balance.rates, u128::from(balance.weight));
        let square = |far: u128| (weight.saturating_mul(far * far)) >> PARTS;
        let (mut far, mut now) = (0u128, 0u128);
        let mut above: BTreeMap<u32, u128> = BTreeMap::new();
        for host in 0..self.hosts.len() {
            let class = rates.of_host[host];
            let target = u128::from(balance.targets[class as usize]);
            let full = rates.fill(host, |resource| self.whole(host, resource));
            let stands = rates.fill(host, |resource| self.standing(host, resource));
            far += square(target.max(full.saturating_sub(target)));
            now += square(target.abs_diff(stands));
            let above = above.entry(class).or_default();
            *above = (*above).max(full.saturating_sub(target));
        }
        let most = |shape: &[u64]| {
            let adds = above.iter().map(|(&class, &above)| {
                let part = rates.of_class(class, |resource| shape[resource]) + 1;
                (weight.saturating_mul(2 * part * above) >> PARTS) + 1
            });
            adds.max().unwrap_or(0)
        };
        let vms: u128 = self.by_shape().map(|(shape, count)| most(shape) * count).sum();
        far.min(now + vms)
    }

    fn most_lost(&self, outages: &Outages) -> u128 {
        let rates = outages.scopes.iter().map(|(_, rates)| rates.iter().copied().max());
        let rates: u128 = rates.map(|most| u128::from(most.unwrap_or(0))).sum();
        let group = |watched: &super::Watched| {
            let members = self.groups[watched.group as usize].len() + watched.standing.len();
            let members = members as u128;
            (u128::from(watched.weight).saturating_mul(rates * members * members) >> PARTS) + 1
        };
        outages.groups.iter().map(group).sum()
    }
}

/// Which classes there are hosts of.
fn used(of_host: &[u32]) -> Vec<u32> {
    of_host.iter().copied().collect::<BTreeSet<u32>>().into_iter().collect()
}

impl Curves {
    /// What a host that is on draws with so much in use of all that it has.
    pub fn at(&self, host: usize, used: u64, whole: u64) -> u128 {
        let points = &self.points[self.of_host[host] as usize];
        let steps = points.len() as u128 - 1;
        let whole = u128::from(whole);
        if whole == 0 {
            return points[0].into();
        }
        let place = u128::from(used).min(whole) * steps;
        let step = (place / whole).min(steps - 1);
        let (low, high) = (points[step as usize], points[step as usize + 1]);
        u128::from(low) + (u128::from(high - low) * (place - step * whole)).div_ceil(whole)
    }

    fn check(&self, name: &dyn Fn(&str) -> String, hosts: usize) -> Result<(), ProblemError> {
        classes(&|| name("curves.of_host"), &self.of_host, hosts, self.points.len())?;
        for points in &self.points {
            if points.len() < 2 {
                length(|| name("curves.points"), points.len(), 2)?;
            }
            if let Some(fall) = points.windows(2).find(|pair| pair[1] < pair[0]) {
                let field = name("curves.points");
                return Err(ProblemError::Falls { field, from: fall[0], to: fall[1] });
            }
        }
        Ok(())
    }
}

impl Rates {
    fn of_class(&self, class: u32, used: impl Fn(usize) -> u64) -> u128 {
        let rates = self.classes[class as usize].iter().enumerate();
        let fills = rates.map(|(resource, &rate)| u128::from(rate) * u128::from(used(resource)));
        fills.max().unwrap_or(0) >> PARTS
    }

    /// The fill of a host with so much in use of each resource.
    pub fn fill(&self, host: usize, used: impl Fn(usize) -> u64) -> u128 {
        self.of_class(self.of_host[host], used)
    }

    fn check(&self, name: &dyn Fn(&str) -> String, problem: &Problem) -> Result<(), ProblemError> {
        let hosts = problem.hosts.len();
        classes(&|| name("of_host"), &self.of_host, hosts, self.classes.len())?;
        let resources = problem.resources.len();
        self.classes.iter().try_for_each(|rates| length(|| name("classes"), rates.len(), resources))
    }
}

/// A class for each row, of those that there are.
fn classes(
    field: &dyn Fn() -> String,
    of_row: &[u32],
    rows: usize,
    classes: usize,
) -> Result<(), ProblemError> {
    length(field, of_row.len(), rows)?;
    of_row.iter().try_for_each(|&class| within(field, class, classes))
}

impl Goal {
    pub(super) fn check(&self, row: usize, problem: &Problem) -> Result<(), ProblemError> {
        let (resources, hosts) = (problem.resources.len(), problem.hosts.len());
        let vms = problem.vms.len();
        let name = |part: &str| format!("goals[{row}].{part}");
        match self {
            Self::Energy { resource, hosts: powers } => {
                within(|| name("resource"), *resource, resources)?;
                length(|| name("hosts"), powers.len(), hosts)?;
            }
            Self::Peak { .. } => {}
            Self::Overload { weights, safe } => {
                length(|| name("weights"), weights.len(), resources)?;
                length(|| name("safe"), safe.len(), hosts)?;
                safe.iter().try_for_each(|safe| amounts(|| name("safe"), safe, resources))?;
            }
            Self::Stranded { plenty, scarce, target, .. } => {
                within(|| name("plenty"), *plenty, resources)?;
                within(|| name("scarce"), *scarce, resources)?;
                amounts(|| name("target"), &[*target], 1)?;
            }
            Self::Moves { vms: costs, between, busiest } => {
                length(|| name("vms"), costs.len(), vms)?;
                if let Some(distances) = between {
                    length(|| name("between.pairs"), distances.pairs.len(), hosts * hosts)?;
                }
                if let Some(busiest) = busiest {
                    length(|| name("busiest.group_of"), busiest.group_of.len(), vms)?;
                    for &group in &busiest.group_of {
                        within(|| name("busiest.group_of"), group, problem.groups.len())?;
                    }
                }
            }
            Self::Power { resource, curves, .. } => {
                within(|| name("resource"), *resource, resources)?;
                curves.check(&name, hosts)?;
            }
            Self::Heat { resource, curves, scope, .. } => {
                within(|| name("resource"), *resource, resources)?;
                curves.check(&name, hosts)?;
                level(&name, *scope, problem)?;
            }
            Self::Share(rates) => rates.check(&name, problem)?,
            Self::Balance(balance) => {
                balance.rates.check(&name, problem)?;
                let classes = balance.rates.classes.len();
                length(|| name("targets"), balance.targets.len(), classes)?;
            }
            Self::Table { costs, vms: of_vm, hosts: of_host } => {
                classes(&|| name("vms"), of_vm, vms, costs.len())?;
                let width = costs.first().map_or(0, Vec::len);
                costs.iter().try_for_each(|row| length(|| name("costs"), row.len(), width))?;
                classes(&|| name("hosts"), of_host, hosts, width)?;
            }
            Self::Traffic(traffic) => traffic.check(&name, problem)?,
            Self::Outages(outages) => {
                for watched in &outages.groups {
                    within(|| name("groups"), watched.group, problem.groups.len())?;
                    for host in &watched.standing {
                        within(|| name("groups.standing"), host.0, hosts)?;
                    }
                }
                for (scope, _) in &outages.scopes {
                    level(&name, *scope, problem)?;
                }
            }
        }
        let worst = problem.worst(self);
        if worst <= MAX_GOAL {
            return Ok(());
        }
        Err(ProblemError::Goal { field: format!("goals[{row}]"), worst })
    }
}

fn level(
    name: &dyn Fn(&str) -> String,
    scope: Scope,
    problem: &Problem,
) -> Result<(), ProblemError> {
    match scope {
        Scope::Host => Ok(()),
        Scope::Level(level) => within(|| name("scope"), level, problem.levels.len()),
    }
}

impl Traffic {
    fn check(&self, name: &dyn Fn(&str) -> String, problem: &Problem) -> Result<(), ProblemError> {
        let (hosts, vms) = (problem.hosts.len(), problem.vms.len());
        for pair in &self.pairs {
            within(|| name("pairs.vm"), pair.vm.0, vms)?;
            match pair.to {
                End::Vm(other) => within(|| name("pairs.to"), other.0, vms)?,
                End::Host(host) => within(|| name("pairs.to"), host.0, hosts)?,
            }
        }
        self.near.iter().try_for_each(|near| level(name, near.scope, problem))?;
        let Far::Sites(fabric) = &self.far else { return Ok(()) };
        let sites = fabric.sites as usize;
        classes(&|| name("far.of_host"), &fabric.of_host, hosts, sites)?;
        length(|| name("far.costs"), fabric.costs.len(), sites * sites)
    }
}
