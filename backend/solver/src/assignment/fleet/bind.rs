//! Solving a fleet's problem with the parts that VMs get: search, bind, and learn what cannot be.
//!
//! The problem knows what parts add up to; whether those that a search puts on one host can really
//! be bound there the binder says, host by host. Where it cannot, what is least of it becomes a rule
//! that no host of the kind has all of these, and the search goes on. Such a rule is proven if it is
//! about one VM beside others that keep what they have, for the binder's "no" is exact, or about
//! equal VMs that are more than parts add up to. Otherwise it only stands for the orders that were
//! tried: it leads the search, but nothing is called impossible or best because of it.

use super::parts::Parts;
use super::{Fleet, Origin};
use crate::assignment::{Budget, Model, Outcome, State, StopReason};
use crate::engines::{Engine, Task};
use crate::topology::{Devices, at_most, try_bind};
use cluster::assignment::{Crowd, Problem, Rule};
use cluster::{Bindings, HostIx, VmIx};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How a fleet's problem is searched.
#[derive(Clone, Copy)]
pub struct Search<'a> {
    pub engine: &'a dyn Engine,
    /// A feasible assignment to do better than.
    pub start: Option<&'a [u32]>,
    pub seed: u64,
    /// Searches, at most, each knowing what the binder said of the one before.
    pub rounds: u32,
}

/// A host for every VM, and what each has of it.
#[derive(Clone, Debug)]
pub struct Settled {
    pub outcome: Outcome,
    /// By VM, if there is an assignment; `None` for those who asked for nothing, or float.
    pub bindings: Vec<Option<Arc<Bindings>>>,
    pub rounds: u32,
    /// Whether all that was learned is proven. If not, the outcome is never called optimal, nor
    /// the problem infeasible.
    pub certain: bool,
}

/// VMs that one host cannot bind together.
#[derive(Clone, Debug)]
struct Misfit {
    host: usize,
    /// Those who are at home and keep what they have.
    residents: Vec<usize>,
    newcomers: Vec<usize>,
    proven: bool,
}

/// Orders in which VMs of one host are bound before that is given up.
const ORDERS: usize = 24;

impl Fleet {
    /// Searches until an assignment can be bound. What is proven on the way becomes part of the
    /// problem, so that `conflict` knows it too.
    pub fn solve(&mut self, search: Search<'_>, budget: &mut Budget) -> Settled {
        let mut guessed: Vec<(Rule, Vec<Vec<VmIx>>)> = Vec::new();
        let mut bound = i64::MIN;
        let rounds = search.rounds.max(1);
        for round in 1..=rounds {
            let mut problem = self.problem.clone();
            for (rule, groups) in &guessed {
                add(&mut problem, rule.clone(), groups.clone());
            }
            let certain = guessed.is_empty();
            let Ok(model) = Model::compile(&problem) else { break };
            let mut part = match &self.parts {
                // The rest is for what comes after the binder has spoken.
                Some(_) if round < rounds => {
                    budget.part(budget.left() / 2 + 1).share_of(1.0 - 0.5f64.powi(round as i32))
                }
                _ => budget.part(u64::MAX),
            };
            let start = search.start.filter(|start| State::new(&model, start).is_feasible());
            let task = Task { start, ..Task::new(&problem, &model, search.seed) };
            let mut outcome = search.engine.solve(task, &mut part);
            budget.spend(part.used());
            outcome.steps = budget.used();
            if certain {
                bound = outcome.bound;
            } else {
                outcome.bound = bound;
                if outcome.stop_reason == StopReason::Optimal {
                    outcome.stop_reason = StopReason::Stalled;
                }
            }
            let Some(hosts) = &outcome.assignment else {
                return Settled { outcome, bindings: Vec::new(), rounds: round, certain };
            };
            match self.bind(hosts) {
                Ok(bindings) => return Settled { outcome, bindings, rounds: round, certain },
                Err(misfits) => {
                    for misfit in misfits {
                        let (rule, groups) = self.rule_of(&misfit);
                        if misfit.proven {
                            let vms = misfit.residents.iter().chain(&misfit.newcomers);
                            let names = vms.map(|&vm| self.vms[vm].clone()).collect();
                            add(&mut self.problem, rule, groups);
                            self.origins.push(Origin::Parts(names));
                        } else {
                            guessed.push((rule, groups));
                        }
                    }
                }
            }
            if budget.is_over() {
                break;
            }
        }
        let reason = if budget.is_over() { budget.reason() } else { StopReason::Stalled };
        let outcome = Outcome {
            engine: search.engine.name().to_string(),
            assignment: None,
            objective: None,
            bound,
            stop_reason: reason,
            steps: budget.used(),
        };
        Settled { outcome, bindings: Vec::new(), rounds, certain: guessed.is_empty() }
    }

    /// Whether any VM asks for parts of its host.
    pub fn has_parts(&self) -> bool {
        self.parts.is_some()
    }

    /// What each VM would have of its host, if all can be bound.
    pub fn bindings(&self, hosts: &[u32]) -> Option<Vec<Option<Arc<Bindings>>>> {
        self.bind(hosts).ok()
    }

    /// What each VM has of its host, or which VMs cannot be bound together.
    fn bind(&self, hosts: &[u32]) -> Result<Vec<Option<Arc<Bindings>>>, Vec<Misfit>> {
        let Some(parts) = &self.parts else { return Ok(vec![None; hosts.len()]) };
        let mut bindings = parts.fixed.clone();
        let mut on: BTreeMap<usize, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
        for (vm, (guest, &host)) in parts.guests.iter().zip(hosts).enumerate() {
            let Some(guest) = guest else { continue };
            let (residents, newcomers) = on.entry(host as usize).or_default();
            match (guest.home == Some(HostIx(host)), &guest.kept) {
                (true, Some(kept)) => {
                    residents.push(vm);
                    bindings[vm] = Some(Arc::clone(kept));
                }
                (true, None) => {}
                (false, _) => newcomers.push(vm),
            }
        }
        let mut misfits = Vec::new();
        for (host, (residents, newcomers)) in on {
            match parts.settle(host, &residents, &newcomers) {
                Some(found) => {
                    found.into_iter().for_each(|(vm, bound)| bindings[vm] = Some(Arc::new(bound)));
                }
                None => misfits.push(parts.least(host, residents, newcomers)),
            }
        }
        if misfits.is_empty() { Ok(bindings) } else { Err(misfits) }
    }

    /// That no such host has all of these, or of others who ask for the same; and the rule's groups.
    fn rule_of(&self, misfit: &Misfit) -> (Rule, Vec<Vec<VmIx>>) {
        let Some(parts) = &self.parts else {
            return (Rule::Clash { crowds: Vec::new(), hosts: Vec::new() }, Vec::new());
        };
        let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
        for guest in misfit.newcomers.iter().filter_map(|&vm| parts.guests[vm].as_ref()) {
            *counts.entry(guest.shape).or_default() += 1;
        }
        let asks = |shape: u32| {
            let guests = parts.guests.iter().enumerate();
            guests.filter_map(move |(vm, guest)| {
                guest.as_ref().filter(|guest| guest.shape == shape).map(|guest| (vm, guest))
            })
        };
        // Whoever asks for the same and is at home there has other parts than one who comes.
        let is_home = |host: usize| {
            let here = Some(HostIx(host as u32));
            counts.keys().any(|&shape| asks(shape).any(|(_, guest)| guest.home == here))
        };
        let alike = (0..parts.alike.len()).filter(|&host| {
            host == misfit.host
                || misfit.residents.is_empty()
                    && parts.alike[host] == parts.alike[misfit.host]
                    && !is_home(host)
        });
        let hosts: Vec<HostIx> = alike.map(|host| HostIx(host as u32)).collect();
        let mut groups: Vec<Vec<VmIx>> =
            misfit.residents.iter().map(|&vm| vec![VmIx(vm as u32)]).collect();
        let mut needs = vec![1; groups.len()];
        for (&shape, &count) in &counts {
            let elsewhere = asks(shape)
                .filter(|(_, guest)| guest.home.is_none_or(|home| !hosts.contains(&home)));
            groups.push(elsewhere.map(|(vm, _)| VmIx(vm as u32)).collect());
            needs.push(count);
        }
        let crowds = (0..).zip(needs).map(|(group, members)| Crowd { group, members }).collect();
        (Rule::Clash { crowds, hosts }, groups)
    }
}

/// Adds a rule whose groups are new.
fn add(problem: &mut Problem, mut rule: Rule, groups: Vec<Vec<VmIx>>) {
    if let Rule::Clash { crowds, .. } = &mut rule {
        crowds.iter_mut().for_each(|crowd| crowd.group += problem.groups.len() as u32);
    }
    problem.groups.extend(groups);
    problem.rules.push(rule);
}

impl Parts {
    /// The host's devices, with what those have who keep it.
    fn beside(&self, host: usize, residents: &[usize]) -> Devices {
        let mut devices = self.devices[host].clone();
        let kept = residents.iter().filter_map(|&vm| self.guests[vm].as_ref()?.kept.as_ref());
        // What is not there any more cannot be taken from anybody.
        kept.for_each(|kept| _ = devices.take(kept));
        devices
    }

    /// Binds all newcomers: the greediest first, and whoever finds nothing before all others in
    /// the next attempt.
    fn settle(
        &self,
        host: usize,
        residents: &[usize],
        newcomers: &[usize],
    ) -> Option<Vec<(usize, Bindings)>> {
        let fresh = self.beside(host, residents);
        let mut order = newcomers.to_vec();
        order.sort_by_key(|&vm| std::cmp::Reverse(self.size(vm, host)));
        for _ in 0..ORDERS {
            let mut devices = fresh.clone();
            let mut found = Vec::with_capacity(order.len());
            let stuck = order.iter().position(|&vm| {
                let bound = self.asked(vm, host).and_then(|(topology, demand)| {
                    let bindings = try_bind(&devices, topology, &demand)?;
                    devices.take(&bindings).ok().map(|()| bindings)
                });
                found.extend(bound.clone().map(|bindings| (vm, bindings)));
                bound.is_none()
            });
            match stuck {
                None => return Some(found),
                Some(0) => return None,
                Some(place) => order[..=place].rotate_right(1),
            }
        }
        None
    }

    /// How much a VM takes of what others want too.
    fn size(&self, vm: usize, host: usize) -> (bool, u16, bool, u64) {
        let Some((topology, demand)) = self.asked(vm, host) else { return (false, 0, false, 0) };
        let gpus = topology.gpus.as_ref();
        let confined = topology.numa != cluster::NumaPolicy::Preferred;
        let amount = demand.iter().map(|(_, amount)| amount).sum();
        (gpus.is_some(), gpus.map_or(0, |gpus| gpus.amount.count()), confined, amount)
    }

    /// As few as cannot be bound together.
    fn least(&self, host: usize, mut residents: Vec<usize>, mut newcomers: Vec<usize>) -> Misfit {
        for vm in newcomers.clone() {
            let fewer: Vec<usize> = newcomers.iter().copied().filter(|&it| it != vm).collect();
            if self.settle(host, &residents, &fewer).is_none() {
                newcomers = fewer;
            }
        }
        for vm in residents.clone() {
            let fewer: Vec<usize> = residents.iter().copied().filter(|&it| it != vm).collect();
            if self.settle(host, &fewer, &newcomers).is_none() {
                residents = fewer;
            }
        }
        let shape = |vm: usize| self.guests[vm].as_ref().map(|guest| guest.shape);
        let equal = newcomers.windows(2).all(|two| shape(two[0]) == shape(two[1]));
        let most = newcomers
            .first()
            .and_then(|&vm| self.asked(vm, host))
            .map(|(topology, demand)| at_most(&self.beside(host, &residents), topology, &demand));
        let proven =
            newcomers.len() == 1 || equal && most.is_some_and(|most| most < newcomers.len() as u64);
        Misfit { host, residents, newcomers, proven }
    }
}

impl std::fmt::Debug for Search<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Search");
        shown.field("engine", &self.engine.name()).field("rounds", &self.rounds);
        shown.finish_non_exhaustive()
    }
}
