//! Sellable capacity: how many more VMs of which shapes fit, and what capacity is worth.
//!
//! One shape alone is counted exactly: hosts do not share anything, so the count is a sum over
//! hosts. Shapes that ask for parts of a host are counted by binding one VM after the other, as
//! placing would, and bounded from above by what the parts add up to. Several shapes compete for the same room and are counted in *bundles*, so many of each
//! shape at a time. Bundles are counted exactly while the combinations that matter can be listed,
//! and bounded from below by a packing and from above by prices otherwise.

mod frontier;
mod greedy;
mod parts;
mod prices;
mod simplex;
#[cfg(test)]
mod tests;

pub use prices::{ClassPrices, HostClass};

use crate::bits::{Bits, Mask};
use crate::constraints::eligibility;
use crate::problem::Problem;
use crate::request::Request;
use cluster::{Amounts, Dim, HostIx, Qos, Rejections, Vm};
use parts::Parts;

/// Shapes that are counted together, at most.
pub const MOST_SHAPES: usize = 16;

/// So many VMs of a shape in each bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// What one VM asks for, and its rules; rules about other VMs are not looked at.
    pub vm: Vm,
    /// At least 1.
    pub per_bundle: u32,
}

/// What fits.
#[derive(Clone, Debug, PartialEq)]
pub struct Slots {
    /// Of each shape, if only that shape comes, one VM after the other.
    pub alone: Vec<u64>,
    /// Whole bundles that fit for certain.
    pub bundles: u64,
    /// Bundles of which not one more can fit. Equal to `bundles` where the count is exact.
    pub at_most: u64,
    /// What a unit of each dimension is worth in each class of hosts, in bundles.
    pub prices: Vec<ClassPrices>,
}

/// Counts what fits beside what is placed. A shape that asks for nothing has no number of slots
/// and must not be asked about.
pub fn slots(problem: &mut Problem, shapes: &[Shape]) -> Slots {
    let open: Vec<Mask> = shapes.iter().map(|shape| open_to(problem, &shape.vm)).collect();
    let fleet = Fleet::new(problem, shapes, &open);
    let alone = (0..shapes.len()).map(|shape| fleet.alone(shape)).collect();
    let priced = prices::price(problem, &fleet);
    let greedy = greedy::pack(&fleet);
    let (bundles, at_most) = match frontier::exact(&fleet) {
        Some(exact) => (exact, exact),
        None => (greedy.min(priced.at_most), priced.at_most),
    };
    debug_assert!(bundles <= priced.at_most && greedy <= bundles, "bounds cross");
    Slots { alone, bundles, at_most, prices: priced.classes }
}

/// The hosts that may take the shape, but for room and for rules about other VMs.
fn open_to(problem: &mut Problem, vm: &Vm) -> Mask {
    let request = Request::compile(problem, vm, false);
    let mut mask = Mask::default();
    mask.reset_to(problem.hosts.present());
    let counts = &mut Rejections::default();
    eligibility::narrow(problem, &request, &mut mask, &mut Bits::default(), counts);
    let Problem { policies, hosts, room, .. } = problem;
    policies.narrow(&mut mask, hosts, room);
    mask
}

/// What is left on the hosts that any shape may use, and what shapes take there.
#[derive(Debug)]
struct Fleet {
    hosts: Vec<Host>,
    per_bundle: Vec<u64>,
    /// Dimensions that are asked for; what can be guaranteed of each comes after them in rows of
    /// amounts if a shape is guaranteed its share.
    dimensions: usize,
    /// Whether a shape asks for parts of its host.
    parts: bool,
}

#[derive(Debug)]
struct Host {
    ix: HostIx,
    free: Vec<u64>,
    /// By shape: what one VM takes here; `None` where the shape may not come.
    takes: Vec<Option<Vec<u64>>>,
    /// What is free inside, for shapes that ask for that.
    parts: Parts,
    /// By shape: how many come if no other does, and how many at most could.
    alone: Vec<(u64, u64)>,
}

/// What is left of a host while it is filled.
#[derive(Clone, Debug)]
struct Left {
    free: Vec<u64>,
    parts: Parts,
}

impl Fleet {
    fn new(problem: &mut Problem, shapes: &[Shape], open: &[Mask]) -> Self {
        let width = shapes.iter().map(|shape| shape.vm.demand.width()).max().unwrap_or(0);
        let guaranteed = shapes.iter().any(|shape| shape.vm.qos == Qos::Guaranteed);
        let requests: Vec<Request> =
            shapes.iter().map(|shape| Request::compile(problem, &shape.vm, false)).collect();
        let dims = || (0..width).map(|dim| Dim(dim as u8));
        let row = |shape: &Shape, amounts: &Amounts| -> Vec<u64> {
            let plain = dims().map(|dim| amounts.get(dim));
            let kept = dims().filter(|_| guaranteed).map(|dim| match shape.vm.qos {
                Qos::Guaranteed => amounts.get(dim),
                _ => 0,
            });
            plain.chain(kept).collect()
        };
        let mut known = parts::Known::default();
        let mut hosts = Vec::new();
        for (ix, _) in problem.hosts.iter() {
            let takes: Vec<Option<Vec<u64>>> = requests
                .iter()
                .zip(shapes)
                .zip(open)
                .map(|((request, shape), open)| {
                    open.contains(ix).then(|| row(shape, &request.committed(problem, ix)))
                })
                .collect();
            if takes.iter().any(Option::is_some) {
                let plain = dims().map(|dim| problem.room.free(ix, dim));
                let kept = dims().filter(|_| guaranteed);
                let kept = kept.map(|dim| problem.room.guarantees().left(ix.0 as usize, dim));
                let parts = Parts::of(&problem.inside, shapes, ix);
                let free = plain.chain(kept).collect();
                let mut host = Host { ix, free, takes, parts, alone: Vec::new() };
                host.alone = (0..shapes.len()).map(|shape| host.count(shape, &mut known)).collect();
                hosts.push(host);
            }
        }
        Self {
            hosts,
            per_bundle: shapes.iter().map(|shape| shape.per_bundle.into()).collect(),
            dimensions: width,
            parts: shapes.iter().any(|shape| shape.vm.topology.is_some()),
        }
    }

    fn alone(&self, shape: usize) -> u64 {
        self.hosts.iter().map(|host| host.alone[shape].0).sum()
    }

    /// No more of a shape than this can come.
    fn alone_at_most(&self, shape: usize) -> u64 {
        self.hosts.iter().map(|host| host.alone[shape].1).sum()
    }

    /// Whole bundles in so many of each shape.
    fn bundles(&self, counts: &[u64]) -> u64 {
        let each = counts.iter().zip(&self.per_bundle).map(|(count, per)| count / per.max(&1));
        each.min().unwrap_or(0)
    }
}

impl Host {
    /// How many of a shape fit into what is left, by amounts.
    fn most(&self, shape: usize, free: &[u64]) -> u64 {
        let Some(takes) = &self.takes[shape] else { return 0 };
        let each = takes.iter().zip(free).filter(|(take, _)| **take > 0);
        each.map(|(take, free)| free / take).min().unwrap_or(0)
    }

    /// How many of a shape come if no other does, and how many at most could.
    fn count(&self, shape: usize, known: &mut parts::Known) -> (u64, u64) {
        let by_amounts = self.most(shape, &self.free);
        self.parts.count(shape, by_amounts, known)
    }

    fn left(&self) -> Left {
        Left { free: self.free.clone(), parts: self.parts.clone() }
    }

    /// Takes one VM of a shape from what is left; false if that does not have it.
    fn take_one(&self, shape: usize, left: &mut Left) -> bool {
        if self.most(shape, &left.free) == 0 || !left.parts.take(shape) {
            return false;
        }
        self.take(shape, 1, &mut left.free);
        true
    }

    /// Takes `count` of a shape from what is left, which must have them.
    fn take(&self, shape: usize, count: u64, free: &mut [u64]) {
        let Some(takes) = &self.takes[shape] else { return };
        free.iter_mut().zip(takes).for_each(|(free, take)| *free -= take * count);
    }
}
