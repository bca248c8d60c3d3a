//! NIC functions and accelerators: how many are free on which nodes, and which ones are taken.

use super::devices::Devices;
use super::layout::{EVERYWHERE, KNOWN_NODES, NodeSet, nodes_of};
use cluster::{
    AcceleratorBinding, AcceleratorRequest, Bindings, MAX_NUMA_NODES, Near, NicRequest,
    PciFunction, Topology,
};
use smallvec::SmallVec;

/// A count of one kind of device that has to be reached from certain nodes.
#[derive(Clone, Debug)]
pub(super) struct Wish<'a> {
    pub kind: Kind<'a>,
    pub near: Near,
    pub count: u32,
    /// Free devices by node, those of no known node last.
    pub free: [u32; MAX_NUMA_NODES + 1],
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind<'a> {
    Functions(&'a NicRequest),
    Accelerators(&'a AcceleratorRequest),
}

pub(super) type Wishes<'a> = SmallVec<[Wish<'a>; 2]>;

pub(super) fn wishes<'a>(devices: &Devices, request: &'a Topology) -> Wishes<'a> {
    let layout = devices.layout();
    let mut wishes = Wishes::new();
    if let Some(nic) = &request.nic {
        let mut free = [0; MAX_NUMA_NODES + 1];
        for (row, &node) in layout.nic_nodes.iter().enumerate() {
            if layout.hardware.nics[row].rdma || !nic.rdma {
                free[usize::from(node)] += devices.free_functions(row);
            }
        }
        let count = u32::from(nic.functions);
        wishes.push(Wish { kind: Kind::Functions(nic), near: nic.near, count, free });
    }
    for asked in &request.accelerators {
        let mut free = [0; MAX_NUMA_NODES + 1];
        for (row, &node) in layout.accelerator_nodes.iter().enumerate() {
            if layout.hardware.accelerators[row].kind == asked.kind {
                free[usize::from(node)] += u32::from(devices.accelerators[row]);
            }
        }
        let count = u32::from(asked.count);
        wishes.push(Wish { kind: Kind::Accelerators(asked), near: asked.near, count, free });
    }
    wishes
}

impl Wish<'_> {
    pub(super) fn free_within(&self, nodes: NodeSet) -> u32 {
        nodes_of(nodes).map(|node| self.free[node]).sum()
    }
}

/// Whether every wish to be near `what` can be met on these nodes.
pub(super) fn enough(wishes: &[Wish<'_>], what: Near, nodes: NodeSet) -> bool {
    let nodes = if what == Near::Any { nodes } else { nodes & KNOWN_NODES };
    let mut wishes = wishes.iter().filter(|wish| wish.near == what);
    wishes.all(|wish| wish.free_within(nodes) >= wish.count)
}

/// Adds devices for every wish to the bindings. The wishes are known to be met.
pub(super) fn grant(
    devices: &Devices,
    wishes: &[Wish<'_>],
    cores: NodeSet,
    gpus: NodeSet,
    bindings: &mut Bindings,
) {
    let layout = devices.layout();
    for wish in wishes {
        let allowed = match wish.near {
            Near::Any => EVERYWHERE,
            Near::Cores => cores,
            Near::Gpus => gpus & KNOWN_NODES,
        };
        let within = |nodes: NodeSet, node: u8| nodes >> node & 1 == 1;
        let mut holes: SmallVec<[Hole; 8]> = SmallVec::new();
        match wish.kind {
            Kind::Functions(nic) => {
                for (row, &node) in layout.nic_nodes.iter().enumerate() {
                    let rdma = layout.hardware.nics[row].rdma;
                    if (rdma || !nic.rdma) && within(allowed, node) {
                        // Whoever needs no RDMA leaves it to those who do; near is better.
                        let last = u8::from(rdma && !nic.rdma) * 2;
                        let rank = last + u8::from(!within(cores | gpus, node));
                        holes.push(Hole { rank, row, free: devices.free_functions(row) });
                    }
                }
                gather(&mut holes, wish.count, |row, count| {
                    let functions = devices.functions_of(row).take(count as usize);
                    let nic = row as u16;
                    bindings
                        .functions
                        .extend(functions.map(|function| PciFunction { nic, function }));
                });
            }
            Kind::Accelerators(asked) => {
                for (row, &node) in layout.accelerator_nodes.iter().enumerate() {
                    let same = layout.hardware.accelerators[row].kind == asked.kind;
                    if same && within(allowed, node) {
                        let rank = u8::from(!within(cores | gpus, node));
                        let free = u32::from(devices.accelerators[row]);
                        holes.push(Hole { rank, row, free });
                    }
                }
                gather(&mut holes, wish.count, |row, count| {
                    let bound = AcceleratorBinding { row: row as u16, count: count as u16 };
                    bindings.accelerators.push(bound);
                });
            }
        }
    }
    bindings.functions.sort_unstable();
    bindings.accelerators.sort_unstable();
}

struct Hole {
    rank: u8,
    row: usize,
    free: u32,
}

/// Takes `count` from the holes, lowest rank first: the smallest hole that has all that is left
/// to take, else the largest one whole.
fn gather(holes: &mut [Hole], count: u32, mut take: impl FnMut(usize, u32)) {
    let mut left = count;
    for rank in 0..4 {
        while left > 0 {
            let open = |hole: &&mut Hole| hole.rank == rank && hole.free > 0;
            let tightest = holes.iter_mut().filter(open).filter(|hole| hole.free >= left);
            let found = match tightest.min_by_key(|hole| (hole.free, hole.row)) {
                Some(hole) => Some(hole),
                None => holes
                    .iter_mut()
                    .filter(open)
                    .max_by_key(|hole| (hole.free, std::cmp::Reverse(hole.row))),
            };
            let Some(hole) = found else { break };
            let taken = hole.free.min(left);
            take(hole.row, taken);
            hole.free -= taken;
            left -= taken;
        }
    }
}
