//! Chooses the parts of one host for one VM.

use super::devices::Devices;
use super::gpus::{Pick, Units};
use super::layout::{EVERYWHERE, NodeSet};
use super::nodes::{Lot, Offers, Stand};
use super::unbound::Unbound;
use super::wishes::{Wishes, enough, grant, wishes};
use cluster::{
    Amounts, Bindings, CoreClass, Cores, Dim, HugePages, MAX_NUMA_NODES, Near, NodeBinding,
    NumaPolicy, Siblings, Topology,
};

/// The parts that a VM would get, or the first thing that is missing.
///
/// `demand` is the VM's demand on this host. Equal devices and requests get equal bindings, and
/// the choice leaves the largest holes it can. Changes nothing: see `Devices::take`.
pub fn bind(
    devices: &Devices,
    request: &Topology,
    demand: &Amounts,
) -> Result<Bindings, Box<Unbound>> {
    let ask = Ask::new(devices, request, demand);
    ask.answer().ok_or_else(|| Box::new(ask.why()))
}

/// Like `bind`, without looking for what is missing.
pub fn try_bind(devices: &Devices, request: &Topology, demand: &Amounts) -> Option<Bindings> {
    Ask::new(devices, request, demand).answer()
}

/// A request held against the free parts of one host.
pub(super) struct Ask<'a> {
    pub devices: &'a Devices,
    pub request: &'a Topology,
    pub need: Lot,
    pub units: Option<Units<'a>>,
    pub wishes: Wishes<'a>,
    pub vm_memory_mib: u64,
}

/// Everything that has to be decided before threads and functions are counted out.
struct Choice {
    class: CoreClass,
    stand: Option<Stand>,
    pick: Option<Pick>,
}

impl<'a> Ask<'a> {
    pub(super) fn new(devices: &'a Devices, request: &'a Topology, demand: &Amounts) -> Self {
        let vm_memory_mib = demand.get(Dim::MEMORY_MIB);
        Self {
            devices,
            request,
            need: Self::need(request, demand),
            units: request.gpus.as_ref().map(|gpus| Units::new(devices, gpus, vm_memory_mib)),
            wishes: wishes(devices, request),
            vm_memory_mib,
        }
    }

    /// CPU, ordinary memory and huge pages that a VM needs in all.
    pub(super) fn need(request: &Topology, demand: &Amounts) -> Lot {
        let millis = demand.get(Dim::CPU_MILLIS);
        let cpu = match request.cores {
            Cores::Shared => millis,
            Cores::Exclusive(_) => millis.div_ceil(1000),
        };
        let in_pages = request.hugepages.map_or(0, |pages| pages.mib());
        let ordinary = demand.get(Dim::MEMORY_MIB).saturating_sub(in_pages);
        let clamp = |amount: u64| u32::try_from(amount).unwrap_or(u32::MAX);
        [clamp(cpu), clamp(ordinary), request.hugepages.map_or(0, |pages| pages.count)]
    }

    fn answer(&self) -> Option<Bindings> {
        if !self.suits() || !enough(&self.wishes, Near::Any, EVERYWHERE) {
            return None;
        }
        self.classes().find_map(|class| self.choose(class)).map(|choice| self.bindings(&choice))
    }

    /// Whether this kind of host will do, and can carry the VM's heat away.
    fn suits(&self) -> bool {
        let hardware = &self.devices.layout().hardware;
        let architecture = self.request.architecture;
        (architecture.is_none() || architecture == hardware.architecture)
            && self.request.cpu_features.iter().all(|name| hardware.cpu_features.contains(name))
            && self.request.watts <= self.devices.watts
    }

    pub(super) fn classes(&self) -> impl Iterator<Item = CoreClass> {
        let (first, second) = match self.request.core_class {
            Some(class) => (class, None),
            None => {
                let nodes = &self.devices.layout().hardware.numa_nodes;
                let mixed = nodes.iter().any(|node| node.efficiency_cores > 0);
                (CoreClass::Performance, mixed.then_some(CoreClass::Efficiency))
            }
        };
        std::iter::once(first).chain(second)
    }

    pub(super) fn offers(&self, class: CoreClass) -> Offers {
        let nodes = self.devices.nodes.len();
        let size_kib = self.request.hugepages.map_or(0, |pages| pages.size_kib);
        let mut by_node = [[0; 3]; MAX_NUMA_NODES];
        for (node, lot) in by_node.iter_mut().enumerate().take(nodes) {
            let cpu = self.devices.cpu_room(node, class, self.request.cores);
            let memory = self.devices.nodes[node].memory_mib;
            *lot = [cpu, memory, self.devices.pages(node, size_kib)];
        }
        Offers { by_node, nodes, need: self.need, numa: self.request.numa }
    }

    /// Whether nothing is asked that needs to know the host's NUMA nodes.
    pub(super) fn floats(&self) -> bool {
        self.devices.nodes.is_empty()
            && self.request.cores == Cores::Shared
            && self.request.numa == NumaPolicy::Preferred
            && self.request.core_class.is_none()
            && self.request.hugepages.is_none()
    }

    fn choose(&self, class: CoreClass) -> Option<Choice> {
        let free = match &self.units {
            Some(units) if !units.request.near_cores => Some(units.pick(EVERYWHERE, &self.wishes)?),
            _ => None,
        };
        let mut accept = |cores: NodeSet| self.cost(cores, free.as_ref());
        let stand = if self.floats() {
            accept(0)?;
            None
        } else {
            Some(self.offers(class).choose(&mut accept)?)
        };
        let pick = match (&self.units, free) {
            (Some(units), None) => Some(units.pick(self.with_cores(stand), &self.wishes)?),
            (_, free) => free,
        };
        Some(Choice { class, stand, pick })
    }

    /// What it costs to have cores on these nodes; `None` if something cannot be near them.
    fn cost(&self, cores: NodeSet, free: Option<&Pick>) -> Option<u32> {
        if !enough(&self.wishes, Near::Cores, cores) {
            return None;
        }
        let layout = self.devices.layout();
        match (&self.units, free) {
            // Cores beside unused GPUs are left to those who will want them.
            (None, _) => {
                Some((layout.gpus_within(cores) & self.devices.unused_gpus()).count_ones())
            }
            (Some(_), Some(pick)) => Some((layout.nodes_of_gpus(pick.gpus) & !cores).count_ones()),
            (Some(units), None) => units.pick(cores, &self.wishes).map(|pick| pick.cost),
        }
    }

    fn with_cores(&self, stand: Option<Stand>) -> NodeSet {
        if self.need[0] == 0 { 0 } else { stand.map_or(0, |stand| stand.nodes) }
    }

    fn bindings(&self, choice: &Choice) -> Bindings {
        let mut bindings = Bindings {
            core_class: choice.class,
            hugepage_kib: self.request.hugepages.map_or(0, |HugePages { size_kib, .. }| size_kib),
            watts: self.request.watts,
            ..Bindings::default()
        };
        if let Some(stand) = choice.stand {
            let lots = self.offers(choice.class).lots(stand);
            for (node, lot) in lots.into_iter().enumerate().filter(|(_, lot)| *lot != [0; 3]) {
                self.settle(node, lot, &mut bindings);
            }
        }
        let layout = self.devices.layout();
        let gpus = choice.pick.as_ref().map_or(0, |pick| layout.nodes_of_gpus(pick.gpus));
        if let (Some(units), Some(pick)) = (&self.units, &choice.pick) {
            bindings.gpus = units.bindings(pick);
        }
        grant(self.devices, &self.wishes, self.with_cores(choice.stand), gpus, &mut bindings);
        bindings
    }

    /// Adds what lies on one node.
    fn settle(&self, node: usize, [cpu, memory_mib, hugepages]: Lot, bindings: &mut Bindings) {
        let mut bound =
            NodeBinding { node: node as u16, memory_mib, hugepages, ..Default::default() };
        match self.request.cores {
            Cores::Shared => bound.shared_millis = cpu,
            Cores::Exclusive(siblings) => {
                bound.vcpus = cpu as u16;
                self.claim(node, cpu, siblings, bindings);
            }
        }
        bindings.nodes.push(bound);
    }

    /// Counts out threads. Whole cores go first, except that a rest that fills no core is taken
    /// from cores which somebody has a part of already.
    fn claim(&self, node: usize, vcpus: u32, siblings: Siblings, bindings: &mut Bindings) {
        let pool = self.devices.layout().pool(node, bindings.core_class);
        let per_core = pool.threads_per_core;
        let core = |row: u32| {
            let first = pool.first_thread + row * per_core;
            first..first + per_core
        };
        let free = |row: u32| core(row).filter(|&thread| !self.devices.is_claimed(thread));
        let whole = |row: &u32| free(*row).count() as u32 == per_core;
        let first_cpu = bindings.cpus.len();
        match siblings {
            Siblings::Own => {
                let cores = (0..pool.cores).filter(whole).take(vcpus.div_ceil(per_core) as usize);
                bindings.cpus.extend(cores.flat_map(core).map(|thread| thread as u16));
            }
            Siblings::Idle => {
                for row in (0..pool.cores).filter(whole).take(vcpus as usize) {
                    let mut threads = core(row).map(|thread| thread as u16);
                    bindings.cpus.extend(threads.next());
                    bindings.idle_cpus.extend(threads);
                }
            }
            Siblings::Any => {
                let partly = || (0..pool.cores).filter(|row| !whole(row)).flat_map(free);
                let rest = partly().count().min((vcpus % per_core) as usize);
                let wholly = (0..pool.cores).filter(whole).flat_map(core);
                let threads = partly().take(rest).chain(wholly).chain(partly().skip(rest));
                bindings.cpus.extend(threads.take(vcpus as usize).map(|thread| thread as u16));
            }
        }
        bindings.cpus[first_cpu..].sort_unstable();
    }

    /// Whether there is an answer.
    pub(super) fn binds(&self) -> bool {
        self.suits() && enough(&self.wishes, Near::Any, EVERYWHERE) && self.stands()
    }

    /// Whether there are nodes, and GPUs near enough to them, on a host that has every part.
    pub(super) fn stands(&self) -> bool {
        self.classes().any(|class| self.choose(class).is_some())
    }
}
