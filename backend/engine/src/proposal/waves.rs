//! How a wave begins: held against the state as it is now, by the solver's tables and by the ledger.
//!
//! A wave that only has to wait, for another migration or for its budget, changes nothing. One that
//! would break something makes its plan stale, or goes on without the steps in question.

use super::Proposal;
use crate::command::Command;
use crate::core::Core;
use crate::decide::verified;
use crate::plans::{Charge, Migration, OnFailure, PlanChange, PlanEntry, PlanId, PlanStatus};
use crate::plans::{Started, WaveStart};
use crate::request::{Outcome, Refusal};
use crate::state::{State, VmEntry};
use cluster::{Constraint, Host, HostIx, Migratability, Reason, Vm, VmKey};
use planner::{Caps, Move, Obstruction, Ordered, Placed};
use rustc_hash::FxHashMap;
use solver::{Chosen, Problem};
use std::sync::Arc;
use verify::Ledger;

/// Reasons that are told when a plan becomes stale.
const TOLD: usize = 5;

/// What stands between a step and its begin.
enum Not {
    /// Something that passes.
    Yet,
    Because(String),
}

/// A step that may begin as far as it alone is concerned.
struct Candidate {
    position: u32,
    vm: Arc<VmEntry>,
    to: HostIx,
}

impl Core {
    pub(super) fn propose_wave(&mut self, id: PlanId, time_ms: u64) -> Result<Proposal, Refusal> {
        let plan = Arc::clone(self.known_plan(id)?);
        let wait = Outcome::Plan { plan: id, status: plan.status };
        let (true, Some(wave)) = (plan.is_due(), plan.waiting_wave()) else {
            return Proposal::nothing(wait);
        };
        let (mut candidates, mut skipped, mut charged) = (Vec::new(), Vec::new(), Vec::new());
        for (position, migration) in (0u32..).zip(wave) {
            match self.alone(migration, &charged, time_ms) {
                Ok((vm, to)) => {
                    charged.push((&migration.planned.vm, migration.planned.brownout_ms));
                    candidates.push(Candidate { position, vm, to });
                }
                Err(Not::Yet) => return Proposal::nothing(wait),
                Err(Not::Because(why)) => skipped.push((position, why)),
            }
        }
        let started = self.together(candidates, &mut skipped)?;
        let outcome = |status| Outcome::Plan { plan: id, status };
        if !skipped.is_empty() && plan.on_failure == OnFailure::Pause {
            let because = told(&plan, &skipped);
            let status = PlanStatus::Stale;
            let change = PlanChange { plan: id, status, because, abandon: false };
            return Proposal::change(Command::ChangePlan(change), outcome(status));
        }
        skipped.sort_unstable();
        let start = WaveStart { plan: id, started, skipped };
        Proposal::change(Command::StartWave(Box::new(start)), outcome(plan.status))
    }

    /// What one step needs, whatever the others of its wave do.
    fn alone(
        &self,
        migration: &Migration,
        charged: &[(&VmKey, u64)],
        time_ms: u64,
    ) -> Result<(Arc<VmEntry>, HostIx), Not> {
        let planned = &migration.planned;
        let because = |why: String| Err(Not::Because(why));
        let state = &self.state;
        let Some((ix, entry)) = state.find_vm(&planned.vm) else {
            return because("the VM is no more".into());
        };
        let Some((to, _)) = state.find_host(&planned.to) else {
            return because(format!("host {} is no more", planned.to));
        };
        let home = state.host(entry.host).map(|home| &home.host.id);
        if home != Some(&planned.from) {
            let is = home.map_or("nowhere", |home| home.as_str());
            return because(format!("the VM is on {is}, not on {}", planned.from));
        }
        if entry.vm.migratability == Migratability::Pinned {
            return because("the VM must not be moved".into());
        }
        if entry.hold.is_some() {
            return because("the VM is a reservation that nobody has confirmed".into());
        }
        if is_in_the_way(state, entry, to) {
            return Err(Not::Yet);
        }
        match state.plans().spent.charge(&planned.vm, planned.brownout_ms, charged, time_ms) {
            Charge::Fits => {}
            Charge::Later => return Err(Not::Yet),
            Charge::Never => {
                let took = planned.brownout_ms;
                return because(format!("{took} ms of brown-out are more than its whole budget"));
            }
        }
        match state.vms.get(ix) {
            Some(vm) => Ok((Arc::clone(vm), to)),
            None => because("the VM is no more".into()),
        }
    }

    /// The candidates that may begin at the same time, with what each gets on its target.
    fn together(
        &mut self,
        candidates: Vec<Candidate>,
        skipped: &mut Vec<(u32, String)>,
    ) -> Result<Vec<Started>, Refusal> {
        if candidates.is_empty() {
            return Ok(Vec::new());
        }
        let ordered = order(&self.state, &mut self.problem, &candidates);
        let mut agreed = Agreed { ledger: &mut self.ledger, added: Vec::new() };
        let mut started = Vec::new();
        for (row, candidate) in candidates.iter().enumerate() {
            let first = ordered.waves.first().into_iter().flatten();
            let step = first.filter(|step| !step.staging).find(|step| step.vm == row);
            let Some(step) = step else {
                skipped.push((candidate.position, obstruction(&ordered, row)));
                continue;
            };
            let (committed, bindings) = (step.committed.clone(), step.bindings.clone());
            let chosen = chosen(candidate.to, committed.clone(), bindings.clone());
            match agreed.add(&self.state, &self.policies, &candidate.vm, &chosen)? {
                None => {
                    let position = candidate.position;
                    started.push(Started { position, committed, bindings });
                }
                Some(violation) => skipped.push((candidate.position, violation)),
            }
        }
        agreed.take_back()?;
        Ok(started)
    }
}

/// Whether another migration that is under way keeps this one from beginning: the same VM, a VM that
/// some rule ties to it, or a host that gives VMs away and would take one, or the other way round.
fn is_in_the_way(state: &State, entry: &VmEntry, to: HostIx) -> bool {
    let constraints = constraints(state);
    let constraints: Vec<&Constraint> = constraints.iter().map(Arc::as_ref).collect();
    state.plans().moving().any(|(key, _)| {
        let Some((_, other)) = state.find_vm(key) else { return false };
        let target = state.target_of(key).map(|target| target.host);
        other.host == to
            || target == Some(entry.host)
            || planner::tied(&entry.vm, &other.vm, &constraints)
    })
}

/// Holds the candidates against the tables, with everybody near them.
fn order(state: &State, problem: &mut Problem, candidates: &[Candidate]) -> Ordered {
    let constraints = constraints(state);
    let constraints: Vec<&Constraint> = constraints.iter().map(Arc::as_ref).collect();
    let wanted = || candidates.iter().map(|it| it.vm.vm.as_ref());
    let everybody: Vec<&VmEntry> = state.entries().map(|(_, entry)| entry).collect();
    let near = planner::neighbourhood(
        wanted(),
        everybody.iter().map(|entry| entry.vm.as_ref()),
        &constraints,
    );
    let mut fleet: Vec<Placed<'_>> = candidates.iter().map(|it| placed(&it.vm)).collect();
    let others = near.iter().filter_map(|&row| everybody.get(row));
    let is_candidate = |entry: &VmEntry| candidates.iter().any(|it| it.vm.vm.key == entry.vm.key);
    fleet.extend(others.filter(|entry| !is_candidate(entry)).map(|entry| placed(entry)));
    let moves: Vec<Move> =
        candidates.iter().enumerate().map(|(vm, it)| Move { vm, to: it.to }).collect();
    let caps = Caps { in_all: usize::MAX, per_host: usize::MAX, per_domain: Vec::new() };
    let hosts: FxHashMap<HostIx, &Host> =
        state.hosts().map(|(ix, entry)| (ix, entry.host.as_ref())).collect();
    let host = |ix: HostIx| hosts.get(&ix).copied();
    planner::order(problem, &host, &fleet, &constraints, &moves, &caps)
}

/// Moves that the ledger has agreed to, each on top of those before it.
struct Agreed<'a> {
    ledger: &'a mut Ledger,
    added: Vec<(Vm, Chosen)>,
}

impl Agreed<'_> {
    /// Asks about one more; a violation comes back as text.
    fn add(
        &mut self,
        state: &State,
        policies: &policy::ActiveSet,
        entry: &VmEntry,
        chosen: &Chosen,
    ) -> Result<Option<String>, Refusal> {
        // While the VM is asked about, its room on the source stays taken, and it is in nobody's
        // way there: a VM is not its own neighbour.
        let held =
            Vm { qos: entry.vm.qos, ..Vm::new(self.key(&entry.vm.key), entry.committed.clone()) };
        let ledger = &mut *self.ledger;
        ledger.remove_vm(entry.host, &entry.vm, &entry.committed).map_err(unverified)?;
        ledger.add_vm(entry.host, &held, &entry.committed).map_err(unverified)?;
        let verdict = verified(state, ledger, policies, &entry.vm, chosen);
        ledger.remove_vm(entry.host, &held, &entry.committed).map_err(unverified)?;
        ledger.add_vm(entry.host, &entry.vm, &entry.committed).map_err(unverified)?;
        if let Err(refusal) = verdict {
            return match refusal {
                Refusal::Unverified(violation) => Ok(Some(violation)),
                other => Err(other),
            };
        }
        let stand_in = Vm { key: self.key(&entry.vm.key), ..entry.vm.as_ref().clone() };
        let ledger = &mut *self.ledger;
        ledger.add_vm(chosen.host, &stand_in, &chosen.committed).map_err(unverified)?;
        if let Some(bindings) = &chosen.bindings {
            ledger.bind(chosen.host, &stand_in.key, bindings).map_err(unverified)?;
        }
        self.added.push((stand_in, chosen.clone()));
        Ok(None)
    }

    /// Leaves the ledger as it was.
    fn take_back(self) -> Result<(), Refusal> {
        for (vm, chosen) in self.added.into_iter().rev() {
            if let Some(bindings) = &chosen.bindings {
                self.ledger.unbind(chosen.host, &vm.key, bindings).map_err(unverified)?;
            }
            self.ledger.remove_vm(chosen.host, &vm, &chosen.committed).map_err(unverified)?;
        }
        Ok(())
    }

    /// A name that nobody has: plans are numbered from 1.
    fn key(&self, of: &VmKey) -> VmKey {
        VmKey::stand_in(of.tenant.clone(), 0, self.added.len())
    }
}

fn chosen(
    host: HostIx,
    committed: cluster::Amounts,
    bindings: Option<Arc<cluster::Bindings>>,
) -> Chosen {
    Chosen { host, score: 0, breakdown: Default::default(), committed, bindings }
}

fn placed(entry: &VmEntry) -> Placed<'_> {
    Placed {
        vm: &entry.vm,
        host: entry.host,
        committed: entry.committed.clone(),
        bindings: entry.bindings.clone(),
    }
}

fn constraints(state: &State) -> Vec<Arc<Constraint>> {
    state.constraints().map(|it| Arc::clone(&it.constraint)).collect()
}

/// Why the planner does not let a move begin with the others.
fn obstruction(ordered: &Ordered, row: usize) -> String {
    match ordered.blocked.iter().find(|it| it.vm == row).map(|it| &it.why) {
        Some(Obstruction::Pinned) => "the VM must not be moved".into(),
        Some(Obstruction::Rule(reason)) => format!("its target fails {}", rule(*reason)),
        Some(Obstruction::Neighbour(other)) => format!("VM {other} could not stay where it is"),
        None => "it can no longer begin together with the rest of its wave".into(),
    }
}

/// A rule by name, for people.
pub(crate) fn rule(reason: Reason) -> String {
    match (reason, reason.name()) {
        (_, Some(name)) => name.to_owned(),
        (reason, None) => format!("{reason:?}"),
    }
}

fn told(plan: &PlanEntry, skipped: &[(u32, String)]) -> String {
    let wave = plan.waiting_wave().unwrap_or_default();
    let reasons = skipped.iter().take(TOLD).filter_map(|(position, why)| {
        let migration = wave.get(*position as usize)?;
        Some(format!("VM {} to {}: {why}", migration.planned.vm, migration.planned.to))
    });
    let mut text = reasons.collect::<Vec<_>>().join("; ");
    if let Some(more) = skipped.len().checked_sub(TOLD).filter(|more| *more > 0) {
        text.push_str(&format!("; and {more} more"));
    }
    text
}

fn unverified(error: impl std::fmt::Display) -> Refusal {
    Refusal::Unverified(error.to_string())
}
