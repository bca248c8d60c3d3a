//! Which GPUs a VM gets: whole ones, a share of one, or MIG pieces.
//!
//! Every GPU can give some number of units (one GPU, one share, so many pieces). A pick takes
//! units from GPUs that are near enough to each other, on nodes that are allowed, so that devices
//! which have to be near the GPUs are there too. All sets of nodes are tried if need be.

use super::devices::{Devices, GpuUse};
use super::layout::{Cut, Layout, NodeSet, bits};
use super::nodes::Subsets;
use super::wishes::{Wish, enough};
use cluster::{GpuAmount, GpuBinding, GpuGrouping, GpuRequest, GpuShare, MAX_GPUS, Near};

/// What the GPUs of a host can give towards one request.
#[derive(Debug)]
pub(super) struct Units<'a> {
    devices: &'a Devices,
    pub request: &'a GpuRequest,
    pub count: u32,
    each: [u8; MAX_GPUS],
    /// GPUs with at least one unit.
    pub usable: u64,
}

/// Units taken of each GPU.
#[derive(Clone, Debug)]
pub(super) struct Pick {
    taken: [u8; MAX_GPUS],
    pub gpus: u64,
    /// What is left over where the pick was made; less is better.
    pub cost: u32,
}

/// Why a GPU is not of the kind that is asked for, in the order in which it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unfit {
    Model,
    Memory,
    ComputeCapability,
    Driver,
    Pcie,
    Profile,
}

/// Whether a GPU is of the kind that is asked for, whatever is free of it.
pub(super) fn fitness(
    layout: &Layout,
    row: usize,
    request: &GpuRequest,
    vm_memory_mib: u64,
) -> Result<(), Unfit> {
    let gpu = &layout.hardware.gpus[row];
    let fail = |bad: bool, why| if bad { Err(why) } else { Ok(()) };
    fail(!request.models.is_empty() && !request.models.contains(&gpu.model), Unfit::Model)?;
    let profile = profile_row(layout, row, request);
    let unknown = matches!(request.amount, GpuAmount::Mig { .. }) && profile.is_none();
    fail(unknown, Unfit::Profile)?;
    let memory = memory_mib(layout, row, request, vm_memory_mib);
    fail(memory < u64::from(request.min_memory_mib), Unfit::Memory)?;
    let capability = gpu.compute_capability_tenths;
    fail(capability < request.min_compute_capability_tenths, Unfit::ComputeCapability)?;
    let low = request.min_driver.is_some_and(|min| gpu.driver.is_none_or(|driver| driver < min));
    let high = request.max_driver.is_some_and(|max| gpu.driver.is_none_or(|driver| driver > max));
    fail(low || high, Unfit::Driver)?;
    fail(layout.gpus[row].pcie_mbps < request.min_pcie_mbps, Unfit::Pcie)
}

/// The memory that one unit of a GPU comes with.
pub(super) fn memory_mib(
    layout: &Layout,
    row: usize,
    request: &GpuRequest,
    vm_memory_mib: u64,
) -> u64 {
    let gpu = &layout.hardware.gpus[row];
    let whole = u64::from(gpu.memory_mib);
    if gpu.unified_memory {
        return whole.min(vm_memory_mib);
    }
    match request.amount {
        GpuAmount::Whole(_) => whole,
        GpuAmount::Milli(milli) => whole * u64::from(milli) / 1000,
        GpuAmount::Mig { .. } => profile_row(layout, row, request)
            .map_or(0, |profile| u64::from(gpu.mig_profiles[profile].memory_mib)),
    }
}

fn profile_row(layout: &Layout, row: usize, request: &GpuRequest) -> Option<usize> {
    let GpuAmount::Mig { profile, .. } = &request.amount else { return None };
    layout.hardware.gpus[row].mig_profiles.iter().position(|cut| cut.name == *profile)
}

impl<'a> Units<'a> {
    pub(super) fn new(devices: &'a Devices, request: &'a GpuRequest, vm_memory_mib: u64) -> Self {
        let layout = devices.layout();
        let (mut each, mut usable) = ([0; MAX_GPUS], 0);
        for (row, used) in devices.gpus.iter().enumerate() {
            if fitness(layout, row, request, vm_memory_mib).is_err() {
                continue;
            }
            each[row] = match &request.amount {
                GpuAmount::Whole(_) => u8::from(*used == GpuUse::default()),
                GpuAmount::Milli(milli) => {
                    u8::from(used.slices == 0 && used.milli + milli.min(&1000) <= 1000)
                }
                GpuAmount::Mig { .. } if used.milli > 0 => 0,
                GpuAmount::Mig { .. } => profile_row(layout, row, request)
                    .map_or(0, |profile| pieces(layout.gpus[row].profiles[profile], used.slices)),
            };
            if each[row] > 0 {
                usable |= 1 << row;
            }
        }
        Self { devices, request, count: u32::from(request.amount.count()), each, usable }
    }

    /// Units of all these GPUs.
    pub(super) fn sum(&self, gpus: u64) -> u32 {
        bits(gpus & self.usable).map(|row| u32::from(self.each[row])).sum()
    }

    /// The sets within which a VM's GPUs have to be.
    pub(super) fn groups(&self) -> &[u64] {
        let layout = self.devices.layout();
        match self.request.together {
            GpuGrouping::Any => &[u64::MAX],
            GpuGrouping::SameSwitch => &layout.switches,
            GpuGrouping::NvlinkClique => &layout.cliques,
        }
    }

    /// GPUs on the allowed nodes that leave the least behind; `None` only if there are none.
    pub(super) fn pick(&self, allowed: NodeSet, wishes: &[Wish<'_>]) -> Option<Pick> {
        let gpus = self.usable & self.devices.layout().gpus_within(allowed);
        let enough_in = |group: &&u64| self.sum(gpus & **group) >= self.count;
        let tightest = self.groups().iter().filter(enough_in);
        let tightest = tightest.min_by_key(|group| self.sum(gpus & **group))?;
        let pick = self.take(gpus & tightest, 0);
        if !wishes.iter().any(|wish| wish.near == Near::Gpus) {
            return Some(pick);
        }
        let layout = self.devices.layout();
        if enough(wishes, Near::Gpus, layout.nodes_of_gpus(pick.gpus)) {
            return Some(pick);
        }
        let mut best: Option<Pick> = None;
        for group in self.groups().iter().filter(enough_in) {
            let found = self.covering(gpus & group, wishes);
            if let Some(found) = found.filter(|found| {
                best.as_ref().is_none_or(|best| {
                    (found.gpus.count_ones(), found.cost) < (best.gpus.count_ones(), best.cost)
                })
            }) {
                best = Some(found);
            }
        }
        best
    }

    /// A pick with a GPU on every node of the smallest set of nodes that has what has to be near.
    fn covering(&self, gpus: u64, wishes: &[Wish<'_>]) -> Option<Pick> {
        let layout = self.devices.layout();
        let nodes = layout.nodes_of_gpus(gpus);
        // What all nodes do not have, no few of them have.
        if !enough(wishes, Near::Gpus, nodes) {
            return None;
        }
        for size in 1..=nodes.count_ones().min(self.count) {
            let sets = Subsets::new(nodes, size);
            let works = |set: &NodeSet| {
                enough(wishes, Near::Gpus, *set)
                    && self.sum(gpus & layout.gpus_within(*set)) >= self.count
            };
            let picks =
                sets.filter(works).map(|set| self.take(gpus & layout.gpus_within(set), set));
            if let Some(best) = picks.min_by_key(|pick| pick.cost) {
                return Some(best);
            }
        }
        None
    }

    /// Takes the units that are asked for from these GPUs, which have them; at least one on each
    /// node of `cover`.
    fn take(&self, gpus: u64, cover: NodeSet) -> Pick {
        let layout = self.devices.layout();
        let mut pick = Pick { taken: [0; MAX_GPUS], gpus: 0, cost: 0 };
        let mut left = self.count;
        for node in super::layout::nodes_of(cover) {
            left -= self.take_from(gpus & layout.gpus_on[node], 1, &mut pick);
        }
        if let GpuAmount::Whole(_) = self.request.amount {
            // All behind one switch or in one clique if any has them.
            let domains = layout.cliques.iter().chain(&layout.switches);
            let domains = domains.map(|domain| gpus & domain);
            let fits = domains.filter(|&domain| self.rest(domain, &pick) >= left);
            if let Some(domain) = fits.min_by_key(|&domain| self.rest(domain, &pick)) {
                left -= self.take_from(domain, left, &mut pick);
            }
        }
        self.take_from(gpus, left, &mut pick);
        pick.cost = self.left_behind(&pick);
        pick
    }

    /// Takes up to `left` units: from the switch or GPU with the fewest that has all of them, else
    /// from the one with the most. Returns how many were taken.
    fn take_from(&self, gpus: u64, left: u32, pick: &mut Pick) -> u32 {
        let layout = self.devices.layout();
        let mut open = left;
        while open > 0 {
            let whole = matches!(self.request.amount, GpuAmount::Whole(_));
            let count = if whole { layout.switches.len() } else { layout.gpus.len() };
            let hole = |row: usize| gpus & if whole { layout.switches[row] } else { 1 << row };
            let rests = (0..count).map(|row| (self.rest(hole(row), pick), row));
            let rests = rests.filter(|(rest, _)| *rest > 0);
            let tightest = rests.clone().filter(|(rest, _)| *rest >= open);
            let tightest = tightest.min_by_key(|&(rest, row)| (rest, self.spare(row), row));
            let largest = || rests.max_by_key(|&(rest, row)| (rest, std::cmp::Reverse(row)));
            let Some((_, row)) = tightest.or_else(largest) else { break };
            for gpu in bits(hole(row) & self.usable) {
                let taken = u32::from(self.each[gpu] - pick.taken[gpu]).min(open);
                pick.taken[gpu] += taken as u8;
                pick.gpus |= u64::from(taken > 0) << gpu;
                open -= taken;
            }
        }
        left - open
    }

    fn rest(&self, gpus: u64, pick: &Pick) -> u32 {
        bits(gpus & self.usable).map(|row| u32::from(self.each[row] - pick.taken[row])).sum()
    }

    /// Breaks ties between GPUs that can give the same: the fullest, then where least is unused.
    fn spare(&self, row: usize) -> (u32, u32) {
        let used = |row: usize| self.devices.gpus[row];
        match self.request.amount {
            GpuAmount::Whole(_) => (0, 0),
            GpuAmount::Milli(_) => {
                (u32::from(1000 - used(row).milli), self.devices.unused_beside(row))
            }
            GpuAmount::Mig { .. } => (self.free_slices(row), self.devices.unused_beside(row)),
        }
    }

    fn free_slices(&self, row: usize) -> u32 {
        let free = self.devices.layout().gpus[row].slices & !self.devices.gpus[row].slices;
        free.count_ones()
    }

    fn left_behind(&self, pick: &Pick) -> u32 {
        let layout = self.devices.layout();
        match self.request.amount {
            GpuAmount::Whole(_) => {
                let touched = layout.switches.iter().filter(|switch| *switch & pick.gpus != 0);
                touched.map(|switch| self.rest(*switch, pick)).sum()
            }
            GpuAmount::Milli(milli) => bits(pick.gpus)
                .map(|row| u32::from(1000 - self.devices.gpus[row].milli))
                .map(|free| free.saturating_sub(u32::from(milli)))
                .sum(),
            GpuAmount::Mig { .. } => bits(pick.gpus).map(|row| self.free_slices(row)).sum(),
        }
    }

    /// The pick as bindings, in order.
    pub(super) fn bindings(&self, pick: &Pick) -> Vec<GpuBinding> {
        let layout = self.devices.layout();
        let mut bound = Vec::with_capacity(self.count as usize);
        for row in bits(pick.gpus) {
            let gpu = row as u16;
            match &self.request.amount {
                GpuAmount::Whole(_) => bound.push(GpuBinding { gpu, share: GpuShare::Whole }),
                GpuAmount::Milli(milli) => {
                    bound.push(GpuBinding { gpu, share: GpuShare::Milli(*milli) });
                }
                GpuAmount::Mig { .. } => {
                    let Some(profile) = profile_row(layout, row, self.request) else { continue };
                    let used = self.devices.gpus[row].slices;
                    let cuts = &layout.gpus[row].profiles;
                    for start in cut_pieces(cuts, profile, used, pick.taken[row]) {
                        let share = GpuShare::Mig { profile: profile as u8, start };
                        bound.push(GpuBinding { gpu, share });
                    }
                }
            }
        }
        bound.sort_unstable();
        bound
    }
}

/// How many more pieces of a profile a GPU can be cut into. Pieces of one profile have one
/// length, so taking the first that is free, again and again, gets the most.
pub(super) fn pieces(cut: Cut, used: u16) -> u8 {
    let (mut used, mut count) = (used, 0);
    for start in bits(u64::from(cut.starts)) {
        let piece = cut.piece(start as u8);
        if used & piece == 0 {
            used |= piece;
            count += 1;
        }
    }
    count
}

/// Where to cut `count` pieces so that the most places for pieces of any profile are left.
fn cut_pieces(cuts: &[Cut], profile: usize, used: u16, count: u8) -> Vec<u8> {
    let cut = cuts[profile];
    let (mut used, mut starts) = (used, Vec::with_capacity(usize::from(count)));
    for left in (0..count).rev() {
        let free = bits(u64::from(cut.starts)).map(|start| start as u8);
        let free = free.filter(|&start| used & cut.piece(start) == 0);
        let enough = free.filter(|&start| pieces(cut, used | cut.piece(start)) >= left);
        let best = enough.max_by_key(|&start| {
            (places_left(cuts, used | cut.piece(start)), std::cmp::Reverse(start))
        });
        let Some(start) = best else { break };
        used |= cut.piece(start);
        starts.push(start);
    }
    starts
}

/// Places at which something can still be cut, larger pieces counting for more.
fn places_left(cuts: &[Cut], used: u16) -> u32 {
    let places = |cut: &Cut| {
        let starts = bits(u64::from(cut.starts));
        let free = starts.filter(|&start| used & cut.piece(start as u8) == 0).count() as u32;
        free * u32::from(cut.slices) * u32::from(cut.slices)
    };
    cuts.iter().map(places).sum()
}
