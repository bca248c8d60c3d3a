//! What each host of the tables would lose in worth by taking a VM.
//!
//! Follows hosts and VMs as the other tables do, but only notes who changed: worth is worked out
//! when a VM is to be placed where least is lost, and again for changed hosts alone. What a shape
//! costs on a host is kept until the host changes.
//!
//! The cost is that of taking a share from the fullest GPU that has it, which is what `topology`
//! binds unless something else has to be near. A host is of the model of its first GPU; of more
//! than `MOST_GPUS`, the emptiest count.

use super::confined::ByModel;
use super::guards::{Costs, Lost, Places};
use super::host_state::{HostState, MOST_GPUS};
use super::mix::Mix;
use super::policy::{Largest, Measured, Policy, STEP, Scoring};
use super::search::Scarcity;
use super::shape::{MOST_MODELS, Shape, WHOLE};
use super::wanted::{Models, Wanted};
use crate::bits::{Bits, ones};
use crate::cache::{Cache, Slot};
use crate::hosts::Hosts;
use crate::inside::Inside;
use crate::room::{Room, taken_at};
use cluster::{CpuUnit, Dim, GpuAmount, HostIx, HostState as Readiness, Index, Vm};
use smallvec::SmallVec;
use std::sync::Arc;

/// Shapes whose costs are kept; beyond it the least recently used goes. One takes 1.6 MB for
/// 100,000 hosts.
const SHAPES: usize = 64;

/// The score of a host that loses nothing, and what a host loses of it with one GPU.
const NOTHING_LOST: i64 = 100_000;
const POINTS_A_GPU: i64 = 10_000;

/// Steps of cost that are one point.
const POINT: i64 = super::worth::GPU_WORTH / POINTS_A_GPU * STEP;

#[derive(Debug)]
pub(crate) struct Losses {
    mix: Arc<Mix<Wanted>>,
    models: Models,
    /// Made of the mix when it is first needed.
    scoring: Option<Box<Scoring>>,
    homes: Vec<Option<Home>>,
    /// Hosts that changed since they were measured.
    stale: Bits,
    places: Places,
    left: ByModel,
    shapes: Cache<Asked, Known>,
}

/// One host.
#[derive(Debug)]
struct Home {
    state: HostState,
    measured: Measured,
    speed_permille: u32,
    /// Some GPU is cut into pieces already.
    cut: bool,
    /// Counts in what the fleet has left.
    open: bool,
}

/// All that a cost depends on, beside the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Asked {
    shape: Shape,
    unit: CpuUnit,
    /// Asks for pieces of a GPU.
    pieces: bool,
}

/// What a shape costs on each host.
#[derive(Debug, Default)]
struct Known {
    known: Bits,
    costs: Vec<(i64, Lost)>,
}

/// A VM's shape, looked up.
#[derive(Debug)]
pub(crate) struct Keeping {
    slot: Slot,
    asked: Asked,
    scarcity: Scarcity,
}

impl Default for Losses {
    fn default() -> Self {
        Self {
            mix: Arc::default(),
            models: Models::default(),
            scoring: None,
            homes: Vec::new(),
            stale: Bits::default(),
            places: Places::default(),
            left: [0; MOST_MODELS],
            shapes: Cache::new(SHAPES),
        }
    }
}

impl Losses {
    /// The mix of shapes that are to come.
    pub(crate) fn set_mix(&mut self, mix: Arc<Mix<Wanted>>) {
        if self.mix != mix {
            self.models = Models::of(&mix);
            self.mix = mix;
            self.scoring = None;
        }
    }

    /// Something of the host changed: it came, went, or has another amount free.
    pub(crate) fn note(&mut self, host: HostIx) {
        self.stale.insert(host);
    }

    /// Brings everything up to date and looks the VM's shape up.
    pub(crate) fn ask(&mut self, vm: &Vm, hosts: &Hosts, room: &Room, inside: &Inside) -> Keeping {
        self.refresh(hosts, room, inside);
        let wanted = Wanted::of(vm);
        let gpus = vm.topology.as_ref().and_then(|topology| topology.gpus.as_ref());
        let asked = Asked {
            shape: self.models.shape(&wanted),
            unit: vm.cpu_unit,
            pieces: gpus.is_some_and(|gpus| matches!(gpus.amount, GpuAmount::Mig { .. })),
        };
        self.shapes.tick();
        let slot = self.shapes.slot(&asked, Known::default);
        Keeping { slot, asked, scarcity: self.scarcity(&asked.shape) }
    }

    /// What the VM costs on a host, in steps; what was worked out is kept.
    pub(crate) fn cost(&mut self, keeping: &Keeping, host: HostIx) -> i64 {
        let Self { shapes, scoring, homes, .. } = self;
        let Some(home) = homes.get(host.row()).and_then(Option::as_ref) else { return 0 };
        let costs = shapes.get_mut(keeping.slot);
        if !costs.known.contains(host) {
            if costs.costs.len() <= host.row() {
                costs.costs.resize(homes.len(), (0, 0));
            }
            costs.costs[host.row()] = home.cost(scoring, &keeping.asked);
            costs.known.insert(host);
        }
        let (cost, lost) = costs.costs[host.row()];
        cost + keeping.scarcity.adds(home.state.model, lost)
    }

    /// The same, without keeping anything.
    pub(crate) fn cost_afresh(&self, keeping: &Keeping, host: HostIx) -> i64 {
        let Some(home) = self.homes.get(host.row()).and_then(Option::as_ref) else { return 0 };
        let (cost, lost) = home.cost(&self.scoring, &keeping.asked);
        cost + keeping.scarcity.adds(home.state.model, lost)
    }

    fn scarcity(&self, shape: &Shape) -> Scarcity {
        match &self.scoring {
            Some(scoring) => scoring.scarcity(shape, &self.places, &self.left),
            None => Scarcity { places: Costs::default(), models: [0; MOST_MODELS], price: 0 },
        }
    }

    fn refresh(&mut self, hosts: &Hosts, room: &Room, inside: &Inside) {
        if self.scoring.is_none() {
            let mix = self.models.mix(&self.mix);
            let models = self.models.bits();
            let largest = Largest { cpu_millis: 0, memory_mib: 0, gpu_millis: 0, models };
            self.scoring = Some(Box::new(Scoring::new(Policy::Default, &mix, largest)));
            self.shapes = Cache::new(SHAPES);
            self.homes.clear();
            self.places = Places::default();
            self.left = [0; MOST_MODELS];
            self.stale.clear();
            self.stale.union(hosts.present());
        }
        let stale = std::mem::take(&mut self.stale);
        for (word, bits) in stale.words().iter().enumerate().filter(|(_, bits)| **bits != 0) {
            ones(word, *bits).for_each(|host| self.measure(host, hosts, room, inside));
            self.shapes.for_each(|_, costs| costs.known.clear_in(word, *bits));
        }
    }

    fn measure(&mut self, ix: HostIx, hosts: &Hosts, room: &Room, inside: &Inside) {
        let Some(scoring) = &self.scoring else { return };
        if self.homes.len() <= ix.row() {
            self.homes.resize_with(ix.row() + 1, || None);
        }
        let fresh = hosts.get(ix).map(|host| {
            let free = |dim: Dim| u32::try_from(room.free(ix, dim)).unwrap_or(u32::MAX);
            let devices = inside.devices(ix);
            let mut holes: SmallVec<[u16; MOST_GPUS]> = devices.gpus_free_milli().collect();
            holes.sort_unstable_by(|a, b| b.cmp(a));
            holes.truncate(MOST_GPUS);
            let model = devices.gpu_models().next().map_or(0, |name| self.models.bit(name));
            let state = HostState::new(free(Dim::CPU_MILLIS), free(Dim::MEMORY_MIB), model, &holes);
            Home {
                measured: scoring.measure(&state),
                state,
                speed_permille: room.speed_permille(ix),
                cut: devices.has_pieces(),
                open: host.state == Readiness::Available,
            }
        });
        let before = std::mem::replace(&mut self.homes[ix.row()], fresh);
        let after = self.homes[ix.row()].as_ref();
        for (home, sign) in before.iter().map(|home| (home, -1)).chain(after.map(|home| (home, 1)))
        {
            if home.open {
                scoring.guards.count(&mut self.places, &home.state, sign);
                self.left[usize::from(home.state.model)] +=
                    sign * i64::from(home.measured.sums.value);
            }
        }
    }
}

impl Home {
    fn cost(&self, scoring: &Option<Box<Scoring>>, asked: &Asked) -> (i64, Lost) {
        let Some(scoring) = scoring else { return (0, 0) };
        let mut shape = asked.shape;
        let cpu = taken_at(shape.cpu_millis.into(), asked.unit, self.speed_permille);
        shape.cpu_millis = cpu.min(self.state.cpu_millis.into()) as u32;
        shape.memory_mib = shape.memory_mib.min(self.state.memory_mib);
        if asked.pieces && !self.cut {
            (shape.gpus, shape.milli) = (1, WHOLE);
        }
        match scoring.cost_of_tightest(&shape, &self.state, &self.measured) {
            Some(cost) => (cost.cost, cost.lost),
            // The host is not as it is seen here: its GPUs are of several models, or are more.
            None => (self.measured.worth() * STEP, 0),
        }
    }
}

/// The score of a host on which a VM costs so many steps.
pub(crate) fn points(cost: i64) -> i64 {
    NOTHING_LOST - cost.div_euclid(POINT)
}
