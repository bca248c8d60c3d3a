//! The compiled problem: dense integer tables by host, VM and shape.
//!
//! Amounts are `i32`, a row of them padded with zeros to a multiple of four, so that a test of all
//! resources is a few instructions on whole registers.

use super::spares::Spares;
use super::tallies::Tallies;
use crate::bits::Bits;
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
    pub(crate) tallies: Tallies,
    pub(crate) spares: Spares,
    pub(crate) goals: Goals,
}

impl Model {
    /// Compiles a problem, or names what is wrong with it.
    pub fn compile(problem: &Problem) -> Result<Self, ProblemError> {
        problem.check()?;
        let resources = problem.resources.len();
        let stride = resources.next_multiple_of(4).max(4);
        let (limited_to, allowed) = lists(problem);
        let shapes = rows(problem.shapes.iter(), stride);
        let by_vm = problem.vms.iter().flat_map(|vm| row(&shapes, stride, vm.shape as usize));
        let transient = problem.resources.iter().map(|resource| -i32::from(resource.transient));
        let mut model = Self {
            hosts: problem.hosts.len(),
            vms: problem.vms.len(),
            resources,
            stride,
            capacity: rows(problem.hosts.iter().map(|host| &host.capacity), stride),
            demand: by_vm.copied().collect(),
            transient: transient.chain(std::iter::repeat(0)).take(stride).collect(),
            initial: problem
                .vms
                .iter()
                .map(|vm| vm.initial.map_or(NOWHERE, |host| host.0))
                .collect(),
            shape_of: problem.vms.iter().map(|vm| vm.shape).collect(),
            shapes: problem.shapes.len(),
            limited_to,
            allowed,
            tallies: Tallies::compile(problem),
            spares: Spares::compile(problem),
            goals: Goals::default(),
        };
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
    let mut lists = Vec::new();
    let limited = problem.vms.iter().zip(fences).map(|(vm, mut fences)| {
        fences.dedup();
        let own = vm.allowed.as_deref();
        if own.is_none() && fences.is_empty() {
            return None;
        }
        Some(*known.entry((own, fences)).or_insert_with_key(|(own, fences)| {
            let fenced = fences.iter().filter_map(|&row| problem.rules[row].hosts());
            lists.push(common(fenced.chain(*own)));
            lists.len() as u32 - 1
        }))
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
