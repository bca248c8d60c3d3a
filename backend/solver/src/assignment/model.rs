//! The compiled problem: dense integer tables by host, VM and shape.
//!
//! Amounts are `i32`, a row of them padded with zeros to a multiple of four, so that a test of all
//! resources is a few instructions on whole registers.

use super::clashes::Clashes;
use super::networks::Networks;
use super::spares::Spares;
use super::tallies::Tallies;
use crate::bits::{Bits, ones};
use crate::goals::Goals;
use cluster::HostIx;
use cluster::assignment::{Problem, ProblemError, Rule};
use rustc_hash::FxHashMap;

/// In place of a host: the VM is not placed, or ran nowhere before.
pub const NOWHERE: u32 = u32::MAX;

/// An assignment problem that engines can search. Never changes.
#[derive(Clone, Debug)]
pub struct Model {
    hosts: usize,
    vms: usize,
    resources: usize,
    stride: usize,
    capacity: Vec<i32>,
    /// In use by VMs that are no rows, and with it all that hosts have; both empty if there is
    /// nothing of the kind.
    standing: Vec<i32>,
    whole: Vec<i32>,
    on: Vec<bool>,
    /// A row without anything.
    nothing: Vec<i32>,
    /// By VM, so that a proposal reads one row.
    demand: Vec<i32>,
    /// All ones where the resource is transient, else zero; a row.
    transient: Vec<i32>,
    initial: Vec<u32>,
    shape_of: Vec<u32>,
    shapes: usize,
    /// Which of `allowed` a VM is limited to.
    limited_to: Vec<Option<u32>>,
    allowed: Vec<Bits>,
    fixed: Vec<bool>,
    movable: Vec<u32>,
    pub(crate) tallies: Tallies,
    pub(crate) spares: Spares,
    pub(crate) networks: Networks,
    pub(crate) clashes: Clashes,
    pub(crate) goals: Goals,
}

impl Model {
    /// Compiles a problem, or names what is wrong with it.
    pub fn compile(problem: &Problem) -> Result<Self, ProblemError> {
        problem.check()?;
        let resources = problem.resources.len();
        let stride = resources.next_multiple_of(4).max(4);
        let (limited_to, allowed) = lists(problem);
        let single: Vec<bool> = allowed.iter().map(|list| list.count() <= 1).collect();
        let is_fixed = |list: &Option<u32>| list.is_some_and(|list| single[list as usize]);
        let fixed: Vec<bool> = limited_to.iter().map(is_fixed).collect();
        let shapes = rows(problem.shapes.iter(), stride);
        let by_vm = problem.vms.iter().flat_map(|vm| row(&shapes, stride, vm.shape as usize));
        let transient = problem.resources.iter().map(|resource| -i32::from(resource.transient));
        let mut model = Self {
            hosts: problem.hosts.len(),
            vms: problem.vms.len(),
            resources,
            stride,
            capacity: rows(problem.hosts.iter().map(|host| &host.capacity), stride),
            standing: rows(problem.standing.iter().map(|standing| &standing.used), stride),
            whole: Vec::new(),
            on: problem.standing.iter().map(|standing| standing.vms > 0).collect(),
            nothing: vec![0; stride],
            demand: by_vm.copied().collect(),
            transient: transient.chain(std::iter::repeat(0)).take(stride).collect(),
            initial: problem
                .vms
                .iter()
                .map(|vm| vm.initial.map_or(NOWHERE, |host| host.0))
                .collect(),
            shape_of: problem.vms.iter().map(|vm| vm.shape).collect(),
            shapes: problem.shapes.len(),
            movable: (0..).zip(&fixed).filter(|(_, fixed)| !**fixed).map(|(vm, _)| vm).collect(),
            fixed,
            limited_to,
            allowed,
            tallies: Tallies::compile(problem),
            spares: Spares::compile(problem),
            networks: Networks::compile(problem),
            clashes: Clashes::compile(problem),
            goals: Goals::default(),
        };
        let sums = model.capacity.iter().zip(&model.standing);
        model.whole = sums.map(|(capacity, standing)| capacity + standing).collect();
        model.goals = Goals::compile(&model, problem);
        Ok(model)
    }

    pub fn hosts(&self) -> usize {
        self.hosts
    }

    pub fn vms(&self) -> usize {
        self.vms
    }

    pub fn resources(&self) -> usize {
        self.resources
    }

    /// Length of a padded row of amounts.
    pub fn stride(&self) -> usize {
        self.stride
    }

    pub fn capacity(&self, host: u32) -> &[i32] {
        row(&self.capacity, self.stride, host as usize)
    }

    /// Whether hosts have VMs that are no rows.
    pub fn has_standing(&self) -> bool {
        !self.standing.is_empty()
    }

    /// What VMs that are no rows use of a host, beyond its capacity.
    pub fn standing(&self, host: u32) -> &[i32] {
        match self.has_standing() {
            true => row(&self.standing, self.stride, host as usize),
            false => &self.nothing,
        }
    }

    /// All that a host has: its capacity and what stands.
    pub fn whole(&self, host: u32) -> &[i32] {
        match self.has_standing() {
            true => row(&self.whole, self.stride, host as usize),
            false => self.capacity(host),
        }
    }

    /// Whether a host has VMs that are no rows.
    pub fn is_on(&self, host: u32) -> bool {
        self.on.get(host as usize).copied().unwrap_or(false)
    }

    pub fn demand(&self, vm: u32) -> &[i32] {
        row(&self.demand, self.stride, vm as usize)
    }

    /// All ones where a resource is transient.
    pub fn transient(&self) -> &[i32] {
        &self.transient
    }

    /// Where a VM runs now, or `NOWHERE`.
    pub fn initial(&self, vm: u32) -> u32 {
        self.initial[vm as usize]
    }

    pub fn shape_of(&self, vm: u32) -> u32 {
        self.shape_of[vm as usize]
    }

    pub fn shapes(&self) -> usize {
        self.shapes
    }

    /// Whether the VM's own list and the fences around it let it go there.
    pub fn allows(&self, vm: u32, host: u32) -> bool {
        match self.limited_to[vm as usize] {
            Some(set) => self.allowed[set as usize].contains(HostIx(host)),
            None => true,
        }
    }

    /// Hosts that a VM may have, lowest first; `None` if it may have all.
    pub(crate) fn listed(&self, vm: u32) -> Option<impl Iterator<Item = u32> + '_> {
        let list = &self.allowed[self.limited_to[vm as usize]? as usize];
        let words = list.words().iter().enumerate();
        Some(words.flat_map(|(word, &bits)| ones(word, bits)).map(|host| host.0))
    }

    /// Whether a VM may have one host only: then there is nothing to search for it.
    pub(crate) fn is_fixed(&self, vm: u32) -> bool {
        self.fixed[vm as usize]
    }

    /// Whether a rule counts this VM where it is; spare room is asked of whoever comes.
    pub(crate) fn is_in_a_rule(&self, vm: u32) -> bool {
        !self.tallies.of(vm).is_empty() || !self.networks.of(vm).is_empty()
    }

    /// VMs that may have more than one host, lowest first.
    pub(crate) fn movable(&self) -> &[u32] {
        &self.movable
    }

    /// The list of hosts that a VM is limited to; VMs with equal lists have equal numbers.
    pub fn limited_to(&self, vm: u32) -> Option<u32> {
        self.limited_to[vm as usize]
    }

    /// The VMs' initial hosts, if every VM has one.
    pub fn initial_assignment(&self) -> Option<Vec<u32>> {
        (!self.initial.contains(&NOWHERE)).then(|| self.initial.clone())
    }

    /// What no assignment can be worth less than, from sums over all hosts alone.
    ///
    /// Each goal says how its part is made; parts are reached at once only by luck, so that the
    /// distance is from nothing (load goals of large fleets) to a few per cent (energy).
    pub fn bound(&self) -> i64 {
        self.goals.bound(self)
    }

    /// How many goals the problem has.
    pub fn goals(&self) -> usize {
        self.goals.rows()
    }

    /// What no assignment can be worth less than by one of the problem's goals.
    pub fn bound_of(&self, goal: usize) -> i64 {
        self.goals.row_bound(self, goal)
    }
}

/// The list of hosts that each VM is limited to, by its own list and by fences, and those lists.
fn lists(problem: &Problem) -> (Vec<Option<u32>>, Vec<Bits>) {
    let mut fences: Vec<Vec<usize>> = vec![Vec::new(); problem.vms.len()];
    for (row, rule) in problem.rules.iter().enumerate() {
        if let Rule::Fence { group, .. } = rule {
            let members = &problem.groups[*group as usize];
            members.iter().for_each(|vm| fences[vm.0 as usize].push(row));
        }
    }
    let mut known: FxHashMap<(Option<&[HostIx]>, Vec<usize>), u32> = FxHashMap::default();
    // Lists that VMs share are compared once: they may be as long as the fleet.
    let mut shared: FxHashMap<(Option<*const [HostIx]>, Vec<usize>), u32> = FxHashMap::default();
    let mut lists = Vec::new();
    let limited = problem.vms.iter().zip(fences).map(|(vm, mut fences)| {
        fences.dedup();
        let own = vm.allowed.as_deref();
        if own.is_none() && fences.is_empty() {
            return None;
        }
        let place = (own.map(std::ptr::from_ref), fences);
        if let Some(&list) = shared.get(&place) {
            return Some(list);
        }
        let list = *known.entry((own, place.1.clone())).or_insert_with_key(|(own, fences)| {
            let fenced = fences.iter().filter_map(|&row| problem.rules[row].hosts());
            lists.push(common(fenced.chain(*own)));
            lists.len() as u32 - 1
        });
        shared.insert(place, list);
        Some(list)
    });
    (limited.collect(), lists)
}

/// The hosts that are on all of one or more lists.
fn common<'a>(mut lists: impl Iterator<Item = &'a [HostIx]>) -> Bits {
    let mut hosts: Vec<HostIx> = lists.next().unwrap_or_default().to_vec();
    for list in lists {
        let mut set = Bits::default();
        list.iter().for_each(|&host| set.insert(host));
        hosts.retain(|&host| set.contains(host));
    }
    let mut set = Bits::default();
    hosts.into_iter().for_each(|host| set.insert(host));
    set
}

fn row(table: &[i32], stride: usize, row: usize) -> &[i32] {
    &table[row * stride..][..stride]
}

/// Amounts as padded rows. `Problem::check` has seen that each is below 2^31.
fn rows<'a>(rows: impl Iterator<Item = &'a Vec<u64>>, stride: usize) -> Vec<i32> {
    let amounts = |row: &'a Vec<u64>| row.iter().map(|&amount| amount as i32);
    rows.flat_map(|row| amounts(row).chain(std::iter::repeat(0)).take(stride)).collect()
}
