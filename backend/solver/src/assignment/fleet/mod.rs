//! A fleet as an assignment problem: hosts, VMs and constraints of a snapshot, and VMs to come.
//!
//! An assignment of the problem is one in which each VM might have come last: asked of the rules
//! of `backend/ARCHITECTURE.md` with all others in place, its host takes it. Goals are the caller's
//! to add. Of parts of hosts it has what adds up; `Fleet::solve` asks the binder about the rest.
//! CPU in reference cores counts as on the slowest host that the VM may have. Policies, which may
//! follow the load, are not asked.

mod arrivals;
mod bind;
mod own;
mod parts;
mod rules;

pub use arrivals::arrivals_only;
pub use bind::{Search, Settled};

use super::outcome::Budget;
use crate::engines::{Requirement, conflict_among};
use cluster::assignment::{Host, Problem, ProblemError, Resource, Standing, Vm};
use cluster::{
    Amounts, Bindings, CpuUnit, Dim, Hardware, HostIx, Level, MAX_AMOUNT, Migratability, Name,
    Placed, Qos, Snapshot, Subject, VmIx, VmKey,
};
use own::OwnRules;
use parts::{Kind, Parts};
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::Arc;

/// What is asked.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    pub snapshot: &'a Snapshot,
    /// VMs that have no host yet.
    pub arrivals: &'a [Arc<cluster::Vm>],
    /// Which placed VMs are not to be moved, besides those that cannot be.
    pub stays: &'a dyn Fn(&Placed) -> bool,
    /// Whether a VM's present host will do whatever its own rules say of it now: a host that was
    /// cordoned or tainted later need not be left.
    pub may_stay: bool,
}

/// A fleet's problem, and what its rows mean.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// Hosts are those of the snapshot; VMs are those that are placed, in order, then those to
    /// come.
    pub problem: Problem,
    pub vms: Vec<VmKey>,
    /// Where each of the problem's rules comes from.
    pub origins: Vec<Origin>,
    /// What is taken more strictly than it is.
    pub stricter: Vec<Stricter>,
    parts: Option<Parts>,
}

/// Who demands a rule. Several rules may be one demand.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    Constraint(Name),
    Apart {
        tenant: Name,
        subject: Subject,
        level: Level,
    },
    Together {
        tenant: Name,
        subject: Subject,
        level: Level,
    },
    Spread {
        tenant: Name,
        group: Name,
        level: Level,
        max_skew: u32,
    },
    /// No host of a kind can bind what these ask for together.
    Parts(Vec<VmKey>),
}

/// A VM for which the problem asks for more than the rules do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stricter {
    /// Takes as much CPU everywhere as on the slowest host that it may have.
    SlowestHost(VmKey),
}

/// Why a fleet cannot be asked about as a whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FleetError {
    #[error("VM {0} is on host {1}, which the snapshot does not have")]
    UnknownHost(VmKey, Name),
    #[error("{0}")]
    Problem(#[from] ProblemError),
}

/// One of the demands that cannot all be met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    Rule(Origin),
    /// Hosts have so much of it and no more.
    Capacity(String),
    /// The hosts that the VM's own rules leave it.
    Hosts(VmKey),
}

/// The fleet's VMs and hosts as rows.
struct Rows<'a> {
    snapshot: &'a Snapshot,
    vms: Vec<&'a Arc<cluster::Vm>>,
    /// Where each is now.
    home: Vec<Option<HostIx>>,
    /// What it has of its host.
    bindings: Vec<Option<Arc<Bindings>>>,
    stays: Vec<bool>,
    /// Only arrivals are asked about: those that stay demand nothing for themselves.
    only_arrivals: bool,
}

/// The problem of a fleet, without goals.
pub fn from_fleet(ask: Ask<'_>) -> Result<Fleet, FleetError> {
    build(ask, None)
}

/// The problem, with `folded` VMs as use of their hosts and not as rows; `None` if all are rows.
fn build(ask: Ask<'_>, folded: Option<&[(HostIx, &Placed)]>) -> Result<Fleet, FleetError> {
    let mut stricter = Vec::new();
    let mut rows = rows(ask)?;
    rows.only_arrivals = folded.is_some();
    let own = OwnRules::read(&rows, ask.may_stay);
    let dimensions = ask.snapshot.dimensions.len();
    let guaranteed = guaranteed(&rows);
    let (parts, kinds) = (Parts::read(&rows), Kind::all(&rows));
    let fastest = ask.snapshot.hosts.iter().map(|host| host.speed_permille()).max().unwrap_or(1000);
    let mut bindable: FxHashMap<(u32, u32), bool> = FxHashMap::default();
    let resources = resources(&rows, &guaranteed, &kinds);
    let mut problem = Problem { resources, ..Problem::default() };
    let mut shapes: FxHashMap<Vec<u64>, u32> = FxHashMap::default();
    // Of the hosts of a list: the lowest speed, and whether there are others.
    let mut speeds: FxHashMap<usize, (u64, bool)> = FxHashMap::default();
    let mut fixed = vec![vec![0u64; problem.resources.len()]; ask.snapshot.hosts.len()];
    for (row, vm) in rows.vms.iter().enumerate() {
        let (speed, mixed) = match (vm.cpu_unit, rows.stays[row]) {
            (CpuUnit::Raw, _) => (1000, false),
            (CpuUnit::Normalised, true) => rows.slowest(row, None),
            (CpuUnit::Normalised, false) => {
                *speeds.entry(own.number(row)).or_insert_with(|| rows.slowest(row, own.list(row)))
            }
        };
        if mixed {
            stricter.push(Stricter::SlowestHost(vm.key.clone()));
        }
        let taken = taken(vm, speed);
        let amount = |dim: Dim| taken.get(dim).min(MAX_AMOUNT);
        let mut demand: Vec<u64> = (0..dimensions).map(|row| amount(Dim(row as u8))).collect();
        demand.extend(guaranteed.iter().map(|&dim| match vm.qos {
            Qos::Guaranteed => amount(dim),
            _ => 0,
        }));
        demand.extend(kinds.iter().map(|kind| kind.demand(&rows, row, fastest)));
        if let (true, Some(home)) = (rows.stays[row], rows.home[row]) {
            let fixed = fixed[home.0 as usize].iter_mut().zip(&demand);
            fixed.for_each(|(fixed, demand)| *fixed += demand);
        }
        // Nothing is promised beyond the dimensions that are declared, or beyond the largest amount.
        let possible =
            taken.width() <= dimensions && taken.iter().all(|(_, found)| found <= MAX_AMOUNT);
        let next = shapes.len() as u32;
        let shape = *shapes.entry(demand.clone()).or_insert_with(|| {
            problem.shapes.push(demand);
            next
        });
        let allowed = match (rows.stays[row], rows.home[row]) {
            (true, Some(home)) => Some(Arc::from([home])),
            _ if !possible => Some(Arc::from([])),
            _ => match &parts {
                Some(parts) if parts.asks(row) => {
                    let list = own.list(row).map(<[_]>::to_vec);
                    parts.narrow(row, list, &mut bindable).map(Arc::from)
                }
                _ => own.shared(row),
            },
        };
        problem.vms.push(Vm { shape, initial: rows.home[row], allowed });
    }
    let others = folded.unwrap_or_default();
    problem.standing = standing(ask.snapshot, &guaranteed, problem.resources.len(), others);
    problem.hosts = hosts(ask.snapshot, &guaranteed, &kinds, (&fixed, &problem.standing));
    let (rules, levels) = rules::read(&rows, &own, problem.resources.len());
    problem.levels = levels.iter().map(Level::name).collect();
    for (row, host) in problem.hosts.iter_mut().enumerate() {
        host.domains = levels.iter().map(|level| rules.domain(level, row)).collect();
    }
    let origins = rules.into_problem(&mut problem);
    problem.check()?;
    let vms = rows.vms.iter().map(|vm| vm.key.clone()).collect();
    Ok(Fleet { problem, vms, origins, stricter, parts })
}

impl Fleet {
    /// Demands that cannot all be met, as few as there have to be, and whether each is known to be
    /// needed; `None` if there is an assignment, or the budget ends before it is known.
    pub fn conflict(&self, budget: &mut Budget) -> Option<(Vec<Cause>, bool)> {
        let problem = &self.problem;
        let mut units: Vec<(Cause, Vec<Requirement>)> = Vec::new();
        for (row, resource) in (0..).zip(&problem.resources) {
            units.push((Cause::Capacity(resource.name.clone()), vec![Requirement::Capacity(row)]));
        }
        for (row, vm) in (0..).zip(&problem.vms) {
            if vm.allowed.is_some() {
                let cause = Cause::Hosts(self.vms[row as usize].clone());
                units.push((cause, vec![Requirement::Allowed(VmIx(row))]));
            }
        }
        let mut of_origin: FxHashMap<&Origin, usize> = FxHashMap::default();
        for (row, origin) in (0..).zip(&self.origins) {
            let unit = *of_origin.entry(origin).or_insert(units.len());
            if unit == units.len() {
                units.push((Cause::Rule(origin.clone()), Vec::new()));
            }
            units[unit].1.push(Requirement::Rule(row));
        }
        let (mut causes, needs): (Vec<Cause>, Vec<Vec<Requirement>>) = units.into_iter().unzip();
        let (rows, minimal) = conflict_among(problem, &needs, budget)?;
        let mut row = 0;
        causes.retain(|_| {
            row += 1;
            rows.contains(&(row - 1))
        });
        Some((causes, minimal))
    }
}

fn rows(ask: Ask<'_>) -> Result<Rows<'_>, FleetError> {
    let snapshot = ask.snapshot;
    let ix: FxHashMap<&Name, HostIx> =
        (0..).zip(&snapshot.hosts).map(|(row, host)| (&host.id, HostIx(row))).collect();
    let mut rows = Rows {
        snapshot,
        vms: Vec::new(),
        home: Vec::new(),
        bindings: Vec::new(),
        stays: Vec::new(),
        only_arrivals: false,
    };
    for placed in &snapshot.placed {
        let Some(&home) = ix.get(&placed.host) else {
            return Err(FleetError::UnknownHost(placed.vm.key.clone(), placed.host.clone()));
        };
        rows.vms.push(&placed.vm);
        rows.home.push(Some(home));
        rows.bindings.push(placed.bindings.clone());
        let pinned = placed.vm.migratability == Migratability::Pinned;
        rows.stays.push(pinned || (ask.stays)(placed));
    }
    for vm in ask.arrivals {
        rows.vms.push(vm);
        rows.home.push(None);
        rows.bindings.push(None);
        rows.stays.push(false);
    }
    Ok(rows)
}

impl Rows<'_> {
    /// The lowest speed of the hosts that a VM may have, and whether others are faster.
    fn slowest(&self, vm: usize, list: Option<&[HostIx]>) -> (u64, bool) {
        let hosts = &self.snapshot.hosts;
        let speed = |host: HostIx| hosts[host.0 as usize].speed_permille();
        if let (true, Some(home)) = (self.stays[vm], self.home[vm]) {
            return (speed(home), false);
        }
        let mut speeds: Vec<u64> = match list {
            Some(list) => list.iter().map(|&host| speed(host)).collect(),
            None => (0..hosts.len() as u32).map(|row| speed(HostIx(row))).collect(),
        };
        speeds.sort_unstable();
        speeds.dedup();
        (speeds.first().copied().unwrap_or(1000), speeds.len() > 1)
    }
}

/// What a VM takes on a host of this speed.
fn taken(vm: &cluster::Vm, speed_permille: u64) -> Amounts {
    match vm.cpu_unit {
        CpuUnit::Raw => vm.demand.clone(),
        CpuUnit::Normalised => {
            let cpu = u128::from(vm.demand.get(Dim::CPU_MILLIS)) * 1000;
            let cores = cpu.div_ceil(u128::from(speed_permille));
            vm.demand.clone().with(Dim::CPU_MILLIS, u64::try_from(cores).unwrap_or(u64::MAX))
        }
    }
}

/// Dimensions of which hosts promise more than they have, and some VM is guaranteed its share.
fn guaranteed(rows: &Rows<'_>) -> Vec<Dim> {
    let asked = |dim| rows.vms.iter().any(|vm| vm.qos == Qos::Guaranteed && vm.demand.get(dim) > 0);
    let hosts = &rows.snapshot.hosts;
    let beyond = |dim| hosts.iter().any(|host| host.physical(dim) < host.allocatable(dim));
    rows.snapshot.dimensions.iter().filter(|&dim| asked(dim) && beyond(dim)).collect()
}

fn resources(rows: &Rows<'_>, guaranteed: &[Dim], kinds: &[Kind]) -> Vec<Resource> {
    let dimensions = &rows.snapshot.dimensions;
    let plain = dimensions.iter().map(|dim| dimensions.name(dim).to_string());
    let promised = guaranteed.iter().map(|&dim| format!("guaranteed {}", dimensions.name(dim)));
    let names = plain.chain(promised).chain(kinds.iter().map(Kind::name));
    names.map(|name| Resource { name, transient: false }).collect()
}

/// What others than rows use of each host; nothing at all if nobody does.
fn standing(
    snapshot: &Snapshot,
    guaranteed: &[Dim],
    resources: usize,
    folded: &[(HostIx, &Placed)],
) -> Vec<Standing> {
    let dimensions = &snapshot.dimensions;
    if folded.is_empty() && snapshot.hosts.iter().all(|host| host.foreign.is_zero()) {
        return Vec::new();
    }
    let mut standing: Vec<Standing> = snapshot
        .hosts
        .iter()
        .map(|host| {
            let used = |dim| host.foreign.used.get(dim).min(host.allocatable(dim));
            // Nobody who has parts of a host is folded where parts count.
            let used = dimensions.iter().map(used).chain(std::iter::repeat(0));
            Standing { used: used.take(resources).collect(), vms: host.foreign.vms }
        })
        .collect();
    for (host, placed) in folded {
        let standing = &mut standing[host.0 as usize];
        standing.vms += 1;
        let promised = guaranteed.iter().filter(|_| placed.vm.qos == Qos::Guaranteed);
        let rows = dimensions.iter().chain(promised.copied());
        for (used, dim) in standing.used.iter_mut().zip(rows) {
            *used = (*used + placed.committed.get(dim)).min(MAX_AMOUNT);
        }
    }
    standing
}

/// What VMs may have of each host: at least what those take that stay, whatever others use.
fn hosts(
    snapshot: &Snapshot,
    guaranteed: &[Dim],
    kinds: &[Kind],
    (fixed, standing): (&[Vec<u64>], &[Standing]),
) -> Vec<Host> {
    let nothing = Hardware::default();
    let rows = snapshot.hosts.iter().zip(fixed).enumerate();
    rows.map(|(row, (host, fixed))| {
        let plain = snapshot.dimensions.iter().map(|dim| host.allocatable(dim));
        let promised = guaranteed.iter().map(|&dim| host.physical(dim));
        // A description that contradicts itself describes nothing.
        let known = host.hardware.check().is_ok();
        let hardware = if known { host.hardware.as_ref() } else { &nothing };
        let parts = kinds.iter().map(|kind| kind.of(hardware));
        let room = plain.chain(promised).chain(parts).zip(fixed).enumerate();
        let capacity = room.map(|(resource, (room, &fixed))| {
            let others = standing.get(row).map_or(0, |standing| standing.used[resource]);
            room.saturating_sub(others).max(fixed).min(MAX_AMOUNT - others)
        });
        Host { capacity: capacity.collect(), domains: Vec::new() }
    })
    .collect()
}

impl fmt::Debug for Ask<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ask").field("may_stay", &self.may_stay).finish_non_exhaustive()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whom = |subject: &Subject| match subject {
            Subject::Vm(id) => format!("VM {id}"),
            Subject::Group(group) => format!("group {group}"),
            Subject::Hosts(_) => "hosts".to_string(),
        };
        match self {
            Self::Constraint(name) => write!(f, "constraint {name}"),
            Self::Apart { tenant, subject, level } => {
                write!(f, "VMs of {tenant} apart from {} by {}", whom(subject), level.name())
            }
            Self::Together { tenant, subject, level } => {
                write!(f, "VMs of {tenant} together with {} by {}", whom(subject), level.name())
            }
            Self::Spread { tenant, group, level, max_skew } => {
                let level = level.name();
                write!(f, "group {group} of {tenant} spread by {level}, skew at most {max_skew}")
            }
            Self::Parts(vms) => {
                let names: Vec<String> = vms.iter().map(|vm| vm.to_string()).collect();
                write!(f, "parts of one host for {}", names.join(", "))
            }
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(origin) => origin.fmt(f),
            Self::Capacity(resource) => write!(f, "what hosts have of {resource}"),
            Self::Hosts(vm) => write!(f, "the hosts that VM {vm} may have"),
        }
    }
}
