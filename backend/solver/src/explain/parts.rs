//! Which of the parts that a VM asks for have to go so that a host can give the rest.

use super::change::{Change, Cost, total};
use crate::problem::Problem;
use cluster::{Cores, GpuGrouping, GpuRequest, HostIx, Near, NumaPolicy, Topology, Vm};

/// Something that a VM may do without, or take anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    GpusNearCores,
    GpusTogether,
    DevicesNear,
    CoreClass,
    GpuKind,
    Numa,
    Cores,
    Hugepages,
    CpuFeatures,
    Heat,
    Devices,
    Gpus,
    Architecture,
    /// The whole request: the VM floats over the host.
    Everything,
}

const PARTS: [Part; 13] = [
    Part::GpusNearCores,
    Part::GpusTogether,
    Part::DevicesNear,
    Part::CoreClass,
    Part::GpuKind,
    Part::Numa,
    Part::Cores,
    Part::Hugepages,
    Part::CpuFeatures,
    Part::Heat,
    Part::Devices,
    Part::Gpus,
    Part::Architecture,
];

/// Parts that are given up at once, at most, before everything is.
const AT_ONCE: usize = 3;

impl Part {
    /// Where something has to be costs less than what it is, and that less than having it at all.
    pub(super) fn cost_thousandths(self) -> Cost {
        match self {
            Part::GpusNearCores | Part::GpusTogether | Part::DevicesNear => 500,
            Part::CoreClass | Part::GpuKind | Part::Numa => 1000,
            Part::Cores | Part::Hugepages | Part::CpuFeatures | Part::Heat => 1500,
            Part::Devices | Part::Gpus | Part::Architecture => 4000,
            Part::Everything => 20_000,
        }
    }

    /// Gives the part up.
    pub(super) fn relax(self, topology: &mut Option<Box<Topology>>) {
        let Some(asked) = topology else { return };
        match self {
            Part::GpusNearCores => gpus(asked, |gpus| gpus.near_cores = false),
            Part::GpusTogether => gpus(asked, |gpus| gpus.together = GpuGrouping::Any),
            Part::GpuKind => gpus(asked, |gpus| {
                *gpus = GpuRequest {
                    together: gpus.together,
                    near_cores: gpus.near_cores,
                    ..GpuRequest::new(gpus.amount.clone())
                };
            }),
            Part::DevicesNear => {
                asked.nic.iter_mut().for_each(|nic| nic.near = Near::Any);
                asked.accelerators.iter_mut().for_each(|device| device.near = Near::Any);
            }
            Part::CoreClass => asked.core_class = None,
            Part::Numa => asked.numa = NumaPolicy::Preferred,
            Part::Cores => asked.cores = Cores::Shared,
            Part::Hugepages => asked.hugepages = None,
            Part::CpuFeatures => asked.cpu_features.clear(),
            Part::Heat => asked.watts = 0,
            Part::Devices => {
                asked.nic = None;
                asked.accelerators.clear();
            }
            // Nothing can be near GPUs that are not there.
            Part::Gpus => {
                asked.gpus = None;
                let nears = asked.nic.iter_mut().map(|nic| &mut nic.near);
                let devices = asked.accelerators.iter_mut().map(|device| &mut device.near);
                for near in nears.chain(devices).filter(|near| **near == Near::Gpus) {
                    *near = Near::Any;
                }
            }
            Part::Architecture => asked.architecture = None,
            Part::Everything => *topology = None,
        }
    }

    /// Whether the request would be another without it.
    fn is_asked(self, asked: &Topology) -> bool {
        let mut without = Some(Box::new(asked.clone()));
        self.relax(&mut without);
        without.as_deref() != Some(asked)
    }
}

fn gpus(asked: &mut Topology, change: impl FnOnce(&mut GpuRequest)) {
    if let Some(gpus) = &mut asked.gpus {
        change(gpus);
    }
}

/// The part that costs least to give up.
pub(super) fn cheapest(asked: &Topology) -> Option<Part> {
    let parts = PARTS.into_iter().filter(|part| part.is_asked(asked));
    parts.chain([Part::Everything]).min_by_key(|part| part.cost_thousandths())
}

/// The cheapest parts to give up so that the host can give the rest.
pub(super) fn relaxed(problem: &Problem, vm: &Vm, host: HostIx) -> Vec<Change> {
    let everything = vec![Change::Relax(Part::Everything)];
    let Some(asked) = vm.topology.as_deref() else { return everything };
    let parts: Vec<Part> = PARTS.into_iter().filter(|part| part.is_asked(asked)).collect();
    let sets = (1_u32..1 << parts.len()).filter(|set| set.count_ones() as usize <= AT_ONCE);
    let sets = sets.map(|set| {
        let kept = (0..parts.len()).filter(|row| set >> row & 1 == 1);
        kept.map(|row| Change::Relax(parts[row])).collect::<Vec<_>>()
    });
    let mut sets: Vec<Vec<Change>> = sets.collect();
    sets.sort_by_key(|set| total(set));
    let does = |set: &&Vec<Change>| {
        let mut vm = vm.clone();
        set.iter().for_each(|change| change.apply(&mut vm));
        problem.bind(&vm, host).is_none_or(|bound| bound.is_ok())
    };
    sets.iter().find(does).cloned().unwrap_or(everything)
}
