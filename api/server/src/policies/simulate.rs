//! Simulations: VMs placed one by one on tables that are thrown away afterwards.
//!
//! The solver places them as it would place VMs of the cluster, by the weights and constraints in
//! force and the policies that are asked for. Results are kept in memory, the last few only: they are notes to
//! compare, not facts.

use super::over_maps::points;
use crate::failure::Failure;
use cluster::{Amounts, Constraint, Dim, Dimensions, Host, HostIx, Index, Reason, Vm};
use policy::vocabulary::{HostField, HostView, VmField};
use policy::{ActiveSet, Path, PolicyType, Root, Value, scalar};
use solver::{Choice, Chosen, How, Problem, Scratch};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use wire::Fault;
use wire::novacron::{
    NodeUtilization, SimulatedVm, SimulationRequest, SimulationResult, SimulationSummary,
    host_of_map, map_dimensions, vm_of_map,
};

/// Simulations that are kept; the oldest go first.
const KEPT: usize = 32;
/// Pairs of VM and node that one simulation may look at.
const MOST_PAIRS: usize = 20_000_000;

#[derive(Debug, Default)]
pub(crate) struct Simulations(Mutex<Shelf>);

#[derive(Debug, Default)]
struct Shelf {
    made: u64,
    kept: VecDeque<Arc<SimulationResult>>,
}

impl Simulations {
    /// Keeps a result under an id of its own.
    pub(crate) fn keep(&self, result: SimulationResult) -> Arc<SimulationResult> {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.made = shelf.made.saturating_add(1);
        let result = Arc::new(SimulationResult { id: format!("sim-{}", shelf.made), ..result });
        if shelf.kept.len() == KEPT {
            shelf.kept.pop_front();
        }
        shelf.kept.push_back(Arc::clone(&result));
        result
    }

    /// Oldest first.
    pub(crate) fn list(&self) -> Vec<Arc<SimulationResult>> {
        let shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.kept.iter().cloned().collect()
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<SimulationResult>> {
        self.list().into_iter().find(|result| result.id == id)
    }
}

/// Places the VMs of a request, in their order, on its nodes.
pub(crate) fn simulate(
    request: &SimulationRequest,
    set: Arc<ActiveSet>,
    constraints: &[Arc<Constraint>],
    how: How,
) -> Result<SimulationResult, Failure> {
    let (vms, nodes) = (request.vms.len(), request.nodes.len());
    if vms.saturating_mul(nodes) > MOST_PAIRS {
        return Err(senseless(
            "vms",
            format!("{vms} VMs on {nodes} nodes are too many for one simulation"),
            format!("send at most {MOST_PAIRS} pairs of VM and node"),
        ));
    }
    let mut world = World::new(request, set, constraints)?;
    let mut results = Vec::with_capacity(vms);
    let mut seen = BTreeSet::new();
    for (row, map) in request.vms.iter().enumerate() {
        let path = format!("vms[{row}]");
        let vm = vm_of_map(&path, map, &world.dimensions).map_err(wrong)?;
        if !seen.insert(vm.key.id.clone()) {
            return Err(twice(&path, vm.key.id.as_str()));
        }
        results.push(world.place(&vm, &how));
    }
    Ok(SimulationResult {
        name: request.name.clone(),
        description: request.description.clone(),
        policy_ids: world.set.policies().iter().map(|policy| policy.id().to_owned()).collect(),
        summary: world.summary(&results),
        unknown_attributes: world.unknown_attributes(),
        results,
        ..SimulationResult::default()
    })
}

fn wrong(fault: Fault) -> Failure {
    Failure::faults(vec![fault])
}

fn senseless(path: &str, message: String, hint: String) -> Failure {
    wrong(Fault { path: path.into(), code: "invalid_value".into(), message, hint })
}

fn twice(path: &str, id: &str) -> Failure {
    senseless(&format!("{path}.id"), format!("{id} is there twice"), "use another id".into())
}

struct World {
    dimensions: Dimensions,
    set: Arc<ActiveSet>,
    problem: Problem,
    scratch: Scratch,
    hosts: Vec<Host>,
    used: Vec<Amounts>,
    vms: Vec<u32>,
}

impl World {
    fn new(
        request: &SimulationRequest,
        set: Arc<ActiveSet>,
        constraints: &[Arc<Constraint>],
    ) -> Result<Self, Failure> {
        let dimensions = map_dimensions();
        let mut hosts = Vec::with_capacity(request.nodes.len());
        let mut seen = BTreeSet::new();
        for (row, map) in request.nodes.iter().enumerate() {
            let path = format!("nodes[{row}]");
            let host = host_of_map(&path, map, &dimensions).map_err(wrong)?;
            if !seen.insert(host.id.clone()) {
                return Err(twice(&path, host.id.as_str()));
            }
            hosts.push(host);
        }
        let mut problem = Problem::new(dimensions.len());
        for (row, host) in hosts.iter().enumerate() {
            problem.put_host(HostIx::new(row), host);
        }
        let rows = hosts.iter().enumerate().map(|(row, host)| (HostIx::new(row), host));
        problem.set_policies(Arc::clone(&set), &dimensions, rows);
        problem.set_constraints(constraints, std::iter::empty());
        let used = hosts.iter().map(|host| host.foreign.used.clone()).collect();
        let vms = hosts.iter().map(|host| host.foreign.vms).collect();
        Ok(Self { dimensions, set, problem, scratch: Scratch::default(), hosts, used, vms })
    }

    fn place(&mut self, vm: &Vm, how: &How) -> SimulatedVm {
        let vm_id = vm.key.id.to_string();
        let choice = solver::place(&mut self.problem, &mut self.scratch, vm, how);
        let Some(Chosen { host, score, committed, bindings, .. }) = &choice.host else {
            let filter_reason = self.why_not(&choice);
            return SimulatedVm { vm_id, filtered: true, filter_reason, ..Default::default() };
        };
        let policy_results = self.points(vm, *host);
        self.problem.add_vm(*host, vm, committed);
        if let Some(bindings) = bindings {
            // What was bound is free.
            let _ = self.problem.take(*host, bindings);
        }
        let row = host.row();
        if let (Some(used), Some(vms)) = (self.used.get_mut(row), self.vms.get_mut(row)) {
            // The solver has checked that it fits.
            *used = used.checked_add(committed).unwrap_or_else(|| used.clone());
            *vms = vms.saturating_add(1);
        }
        let node_id = self.hosts.get(row).map(|host| host.id.to_string()).unwrap_or_default();
        let score = points(*score);
        SimulatedVm { vm_id, node_id, score, policy_results, ..Default::default() }
    }

    /// What each policy gives the host, as it is before the VM comes.
    fn points(&self, vm: &Vm, host: HostIx) -> BTreeMap<String, f64> {
        let mut by_policy = BTreeMap::new();
        let (Some(known), Some(used), Some(vms)) =
            (self.hosts.get(host.row()), self.used.get(host.row()), self.vms.get(host.row()))
        else {
            return by_policy;
        };
        let of = |dim: Dim| used.get(dim);
        let view = HostView { host: known, used: &of, vm_count: u64::from(*vms) };
        let lookup = |path: &Path| match path.root {
            Root::Vm => VmField::resolve(path, &self.dimensions).value(vm),
            Root::Candidate => HostField::resolve(path, &self.dimensions).value(&view),
            Root::Source => Value::Null,
        };
        let verdict = scalar::evaluate(&self.set, PolicyType::Placement, &lookup);
        for (rule, _, millis) in verdict.components {
            if let Some((policy, _)) = self.set.rule(rule) {
                *by_policy.entry(policy.id().to_owned()).or_default() += points(millis);
            }
        }
        by_policy
    }

    /// The reason that keeps away the most nodes.
    fn why_not(&self, choice: &Choice) -> String {
        let mut most: Option<(u32, Reason)> = None;
        for &(reason, count) in &choice.rejections.0 {
            if count > 0 && most.is_none_or(|(known, _)| count > known) {
                most = Some((count, reason));
            }
        }
        match most {
            None => "there are no nodes".into(),
            Some((_, Reason::Policy)) => {
                let rule = choice.by_rule.first().and_then(|(rule, _)| self.set.rule(*rule));
                let reason = rule.and_then(|(_, rule)| rule.filter_reason());
                reason.unwrap_or("a policy removes the nodes").to_owned()
            }
            Some((_, Reason::Capacity(dim))) => {
                format!("not enough {}", self.dimensions.name(dim))
            }
            Some((_, reason)) => reason.name().unwrap_or("the nodes may not be used").to_owned(),
        }
    }

    fn summary(&self, results: &[SimulatedVm]) -> SimulationSummary {
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let placed = results.iter().filter(|result| !result.filtered).count();
        let score: f64 = results.iter().map(|result| result.score).sum();
        let share = |part: usize| part as f64 / results.len().max(1) as f64;
        let node = |(row, host): (usize, &Host)| {
            let used = self.used.get(row).cloned().unwrap_or_default();
            let percent = |dim: Dim| match host.allocatable(dim) {
                0 => 0.0,
                room => used.get(dim) as f64 * 100.0 / room as f64,
            };
            let utilization = NodeUtilization {
                vm_count: self.vms.get(row).copied().unwrap_or(0),
                cpu_utilization: percent(Dim::CPU_MILLIS),
                memory_utilization: percent(Dim::MEMORY_MIB),
            };
            (host.id.to_string(), utilization)
        };
        SimulationSummary {
            total_vms: count(results.len()),
            total_nodes: count(self.hosts.len()),
            total_placements: count(placed),
            failed_placements: count(results.len().saturating_sub(placed)),
            placement_percentage: share(placed) * 100.0,
            average_score: if placed == 0 { 0.0 } else { score / placed as f64 },
            node_utilization: self.hosts.iter().enumerate().map(node).collect(),
        }
    }

    fn unknown_attributes(&self) -> Vec<String> {
        let paths = self.set.paths();
        let of_hosts = paths
            .host
            .iter()
            .filter(|path| HostField::resolve(path, &self.dimensions) == HostField::Unknown);
        let of_vms = paths
            .vm
            .iter()
            .filter(|path| VmField::resolve(path, &self.dimensions) == VmField::Unknown);
        of_vms.chain(of_hosts).map(ToString::to_string).collect()
    }
}
