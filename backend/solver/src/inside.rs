//! What is free inside every host, and which hosts can give a VM the parts that it asks for.
//!
//! VMs come in shapes: the answer for a shape is kept for every host from the first time that it
//! is asked, and forgotten when parts of that host are taken or given back. Hosts of which as
//! much is free in the same places are in the same *state*, whichever threads and functions those
//! are, and one answer serves them all. VMs that ask for no parts change nothing here.

use crate::bits::{Bits, Mask, ones};
use crate::cache::{Cache, Slot};
use crate::room::taken_at;
use crate::topology::{Clash, Devices, Layouts, Numbered, Summary, Unbound, bind, lacking};
use cluster::{
    Amounts, Bindings, Column, CpuUnit, Dim, Hardware, Host, HostIx, INSIDE_REASONS, Reason,
    Topology, Vm,
};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Shapes kept; beyond it the least recently used goes. One takes 75 KB for 100,000 hosts.
const SHAPES: usize = 128;

/// Answers by state that a shape keeps. Beyond it they are worked out again.
const ANSWERS: usize = 1 << 16;

/// The state of hosts that list no parts.
const NOTHING: StateId = 0;

/// Never used twice, so that an answer for a state that is no more harms nobody.
type StateId = u64;

#[derive(Debug)]
pub(crate) struct Inside {
    /// `None` where nothing is listed.
    homes: Column<HostIx, Option<Box<Home>>>,
    layouts: Layouts,
    states: States,
    shapes: Cache<Shape, Answers>,
    /// What hosts that list no parts have.
    nothing: Home,
}

/// One host.
#[derive(Clone, Debug)]
struct Home {
    devices: Devices,
    layout: u32,
    summary: Summary,
    speed_permille: u32,
    state: StateId,
    /// What the state is known by.
    key: Arc<[u32]>,
    /// What is taken, so that it can be counted again when the host is described anew.
    bound: Vec<Arc<Bindings>>,
}

/// The states that hosts are in, and how many are in each.
#[derive(Debug, Default)]
struct States {
    by_key: FxHashMap<Arc<[u32]>, (StateId, u32)>,
    last: StateId,
}

/// All that an answer depends on, beside the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Shape {
    topology: Topology,
    cpu_millis: u64,
    memory_mib: u64,
    unit: CpuUnit,
}

#[derive(Debug, Default)]
struct Answers {
    /// The hosts for which the sets below are up to date.
    known: Bits,
    /// The hosts that lack something, by reason; those in none of them can bind the shape.
    lacking: [Bits; INSIDE_REASONS.len()],
    /// The row of what is lacking.
    by_state: FxHashMap<StateId, Option<usize>>,
}

/// A VM's shape, looked up.
#[derive(Debug)]
pub(crate) struct Asked {
    slot: Slot,
    shape: Shape,
}

impl Default for Inside {
    fn default() -> Self {
        let mut layouts = Layouts::default();
        let nothing = Home::new(layouts.nothing(), 1000, Vec::new());
        Self {
            homes: Column::new(),
            layouts,
            states: States::default(),
            shapes: Cache::new(SHAPES),
            nothing,
        }
    }
}

impl Inside {
    /// Inserts a host or replaces what it lists. What is taken of it stays taken, as far as the
    /// new parts have it.
    pub(crate) fn put_host(&mut self, ix: HostIx, host: &Host) {
        self.homes.reach(ix, None);
        let listed = *host.hardware != Hardware::default();
        let layout = listed.then(|| self.layouts.of(host)).flatten();
        let speed_permille = u32::try_from(host.speed_permille()).unwrap_or(u32::MAX);
        let before = self.homes[ix].take();
        if let (Some(home), Some(layout)) = (&before, &layout)
            && (home.layout, home.speed_permille) == (layout.number, speed_permille)
        {
            self.homes[ix] = before;
            return;
        }
        if let Some(home) = &before {
            self.states.leave(&home.key);
        }
        let bound = before.map_or_else(Vec::new, |home| home.bound);
        self.homes[ix] = layout.map(|layout| {
            let mut home = Box::new(Home::new(layout, speed_permille, bound));
            home.state = self.states.enter(&home.key);
            home
        });
        self.forget(ix);
    }

    pub(crate) fn remove_host(&mut self, ix: HostIx) {
        if let Some(home) = self.homes.get_mut(ix).and_then(Option::take) {
            self.states.leave(&home.key);
        }
        self.forget(ix);
    }

    /// Takes parts of a host for a VM.
    pub(crate) fn take(&mut self, ix: HostIx, bindings: &Arc<Bindings>) -> Result<(), Clash> {
        self.change(ix, |home| {
            home.devices.take(bindings)?;
            home.bound.push(Arc::clone(bindings));
            Ok(())
        })
    }

    /// Gives back what `take` took.
    pub(crate) fn give_back(&mut self, ix: HostIx, bindings: &Bindings) -> Result<(), Clash> {
        self.change(ix, |home| {
            home.devices.give_back(bindings)?;
            if let Some(row) = home.bound.iter().position(|bound| **bound == *bindings) {
                home.bound.swap_remove(row);
            }
            Ok(())
        })
    }

    pub(crate) fn devices(&self, ix: HostIx) -> &Devices {
        &self.home(ix).devices
    }

    /// Hosts with the same number have as much free in the same places.
    pub(crate) fn state(&self, ix: HostIx) -> u64 {
        self.home(ix).state
    }

    /// What the VM takes of a host's cores and memory.
    pub(crate) fn demand(&self, vm: &Vm, ix: HostIx) -> Amounts {
        let millis = vm.demand.get(Dim::CPU_MILLIS);
        let millis = taken_at(millis, vm.cpu_unit, self.home(ix).speed_permille);
        Amounts::cpu_memory(millis, vm.demand.get(Dim::MEMORY_MIB))
    }

    /// What the VM gets of a host, or what is missing there; `None` for VMs that ask for no parts.
    pub(crate) fn bind(&self, vm: &Vm, host: HostIx) -> Option<Result<Bindings, Box<Unbound>>> {
        let topology = vm.topology.as_deref()?;
        Some(bind(self.devices(host), topology, &self.demand(vm, host)))
    }

    /// The first reason for which a host cannot bind the VM, if any.
    pub(crate) fn lacking(&self, vm: &Vm, host: HostIx) -> Option<Reason> {
        let shape = Shape::of(vm, vm.topology.as_deref()?);
        let home = self.home(host);
        lacking(&home.devices, &home.summary, &shape.topology, &shape.demand(home))
    }

    /// Looks the VM's shape up; `None` for VMs that ask for no parts.
    pub(crate) fn ask(&mut self, vm: &Vm) -> Option<Asked> {
        let shape = Shape::of(vm, vm.topology.as_deref()?);
        self.shapes.tick();
        let slot = self.shapes.slot(&shape, Answers::default);
        Some(Asked { slot, shape })
    }

    /// Removes the hosts that cannot bind the shape; says how many for each reason.
    pub(crate) fn narrow(
        &mut self,
        Asked { slot, shape }: &Asked,
        mask: &mut Mask,
    ) -> [u32; INSIDE_REASONS.len()] {
        let Self { homes, nothing, shapes, .. } = self;
        let answers = shapes.get_mut(*slot);
        for word in mask.scope() {
            for host in ones(word, mask.word(word) & !answers.known.word(word)) {
                let home = homes.get(host).and_then(Option::as_deref).unwrap_or(nothing);
                answers.learn(host, home, shape);
            }
        }
        answers.lacking.each_ref().map(|hosts| mask.subtract(hosts))
    }

    fn home(&self, ix: HostIx) -> &Home {
        self.homes.get(ix).and_then(Option::as_deref).unwrap_or(&self.nothing)
    }

    /// Changes what is free of a host and finds the state that it is in now. There is nothing to
    /// change where nothing is listed, and bindings of such a host name nothing.
    fn change(
        &mut self,
        ix: HostIx,
        change: impl FnOnce(&mut Home) -> Result<(), Clash>,
    ) -> Result<(), Clash> {
        let Some(home) = self.homes.get_mut(ix).and_then(Option::as_deref_mut) else {
            return Ok(());
        };
        change(home)?;
        self.states.leave(&home.key);
        home.summary = Summary::new(&home.devices);
        home.key = home.devices.state_key(home.layout, home.speed_permille);
        home.state = self.states.enter(&home.key);
        self.forget(ix);
        Ok(())
    }

    fn forget(&mut self, ix: HostIx) {
        self.shapes.for_each(|_, answers| answers.known.remove(ix));
    }
}

impl Home {
    /// What is bound already and is not there any more is left out.
    fn new(layout: Numbered, speed_permille: u32, mut bound: Vec<Arc<Bindings>>) -> Self {
        let Numbered { number, layout } = layout;
        let mut devices = Devices::new(layout);
        bound.retain(|bindings| devices.take(bindings).is_ok());
        Self {
            layout: number,
            summary: Summary::new(&devices),
            speed_permille,
            state: NOTHING,
            key: devices.state_key(number, speed_permille),
            devices,
            bound,
        }
    }
}

impl States {
    fn enter(&mut self, key: &Arc<[u32]>) -> StateId {
        if let Some((state, hosts)) = self.by_key.get_mut(key) {
            *hosts += 1;
            return *state;
        }
        self.last += 1;
        self.by_key.insert(Arc::clone(key), (self.last, 1));
        self.last
    }

    fn leave(&mut self, key: &Arc<[u32]>) {
        let Some((_, hosts)) = self.by_key.get_mut(key) else { return };
        *hosts -= 1;
        if *hosts == 0 {
            self.by_key.remove(key);
        }
    }
}

impl Shape {
    fn of(vm: &Vm, topology: &Topology) -> Self {
        Self {
            topology: topology.clone(),
            cpu_millis: vm.demand.get(Dim::CPU_MILLIS),
            memory_mib: vm.demand.get(Dim::MEMORY_MIB),
            unit: vm.cpu_unit,
        }
    }

    /// What the VM takes on a host.
    fn demand(&self, home: &Home) -> Amounts {
        let cpu_millis = taken_at(self.cpu_millis, self.unit, home.speed_permille);
        Amounts::cpu_memory(cpu_millis, self.memory_mib)
    }
}

impl Answers {
    /// Finds out whether a host can bind the shape.
    fn learn(&mut self, host: HostIx, home: &Home, shape: &Shape) {
        if self.by_state.len() >= ANSWERS {
            self.by_state.clear();
        }
        let answer = *self.by_state.entry(home.state).or_insert_with(|| {
            let demand = shape.demand(home);
            let reason = lacking(&home.devices, &home.summary, &shape.topology, &demand)?;
            INSIDE_REASONS.iter().position(|found| *found == reason)
        });
        for (row, hosts) in self.lacking.iter_mut().enumerate() {
            hosts.put(host, answer == Some(row));
        }
        self.known.insert(host);
    }
}
