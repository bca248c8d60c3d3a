//! How fast the engine decides for VMs that ask for parts of a host: NUMA nodes, GPUs behind PCIe
//! ports, NIC functions, on a fleet of which much is taken in pieces.
//!
//! What is timed is one decision as the service makes it, as in `scale`. Shapes repeat, as they do
//! in a cloud with a price list; the first time that a shape is seen costs more and is reported
//! by itself.

use crate::machine::rss_mib;
use crate::no_log::NoLog;
use crate::scale::{ask, percentile_us};
use cluster::{Amounts, GpuAmount, GpuRequest, Host, Name, Near, NicRequest, Topology, Vm, VmKey};
use engine::{Engine, Options, Outcome, PlaceRequest, PutMode, Refusal, Request};
use fixture::{Dice, hardware};
use serde::Serialize;
use std::time::{Duration, Instant};

/// Kinds of machines in the fleet.
const KINDS: usize = 24;
/// Shapes on the price list.
const SHAPES: usize = 96;

#[derive(Clone, Debug)]
pub struct TopologySpec {
    pub hosts: usize,
    /// VMs with parts that are there when measuring begins.
    pub vms: usize,
    pub seconds: u64,
    pub seed: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct TopologyReport {
    pub hosts: usize,
    pub vms: usize,
    pub seed: u64,
    pub shapes: usize,
    pub place_topology_p50_us: f64,
    pub place_topology_p99_us: f64,
    pub place_topology_max_us: f64,
    /// Decisions for a shape that was not asked for before, on the empty fleet and after.
    pub new_shape_p50_us: f64,
    pub new_shape_max_us: f64,
    /// A shape that nobody asked for before, on the fleet as full as it is.
    pub unknown_shape_p50_us: f64,
    pub unknown_shape_max_us: f64,
    pub decisions: usize,
    pub rejected: usize,
    /// Shares of the shapes, in permille.
    pub with_gpus_permille: usize,
    pub with_pcie_permille: usize,
    pub with_nic_permille: usize,
    pub rss_mib: u64,
}

struct Fleet {
    engine: Engine<NoLog>,
    placed: Vec<VmKey>,
    next: u64,
}

/// Runs the bench. Fails only if the engine breaks a promise on the way.
pub fn run(spec: &TopologySpec) -> Result<TopologyReport, Refusal> {
    let mut dice = Dice::new(spec.seed);
    let kinds: Vec<Host> = (0..KINDS).map(|row| server(&mut dice, row)).collect();
    let shapes: Vec<(Topology, Amounts)> = (0..SHAPES).map(|_| shape(&mut dice)).collect();
    let options = Options { snapshot_every: 0, retain: 0 };
    let engine =
        Engine::open(NoLog::default(), options).map_err(|e| Refusal::Unverified(e.to_string()))?;
    let mut fleet = Fleet { engine, placed: Vec::new(), next: 0 };
    for row in 0..spec.hosts {
        let id = name(&format!("host-{row}"));
        let host = Box::new(Host { id, ..kinds[dice.row(KINDS)].clone() });
        let (mode, if_generation) = (PutMode::Create, None);
        ask(&mut fleet.engine, Request::PutHost { host, mode, if_generation })?;
    }
    let mut first = Vec::new();
    for shape in &shapes {
        first.push(fleet.arrive(shape)?.0);
    }
    // What no longer fits is passed over, so that the fleet fills up whatever the shapes are.
    for _ in 0..spec.vms * 2 {
        if fleet.placed.len() >= spec.vms {
            break;
        }
        fleet.arrive(dice.pick(&shapes))?;
    }
    let mut report = describe(spec, &shapes);
    report.vms = fleet.placed.len();
    let mut taken = Vec::with_capacity(1 << 16);
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(spec.seconds) {
        if fleet.placed.len() >= report.vms {
            let gone = fleet.placed.swap_remove(dice.row(fleet.placed.len()));
            ask(&mut fleet.engine, Request::RemoveVm { vm: gone, if_generation: None })?;
        }
        let (nanos, placed) = fleet.arrive(dice.pick(&shapes))?;
        taken.push(nanos);
        report.rejected += usize::from(!placed);
        if !placed && fleet.placed.len() > report.vms / 2 {
            let gone = fleet.placed.swap_remove(dice.row(fleet.placed.len()));
            ask(&mut fleet.engine, Request::RemoveVm { vm: gone, if_generation: None })?;
        }
    }
    let mut unknown = Vec::new();
    for _ in 0..SHAPES {
        unknown.push(fleet.arrive(&shape(&mut dice))?.0);
    }
    for list in [&mut taken, &mut first, &mut unknown] {
        list.sort_unstable();
    }
    report.decisions = taken.len();
    report.place_topology_p50_us = percentile_us(&taken, 500);
    report.place_topology_p99_us = percentile_us(&taken, 990);
    report.place_topology_max_us = percentile_us(&taken, 1000);
    report.new_shape_p50_us = percentile_us(&first, 500);
    report.new_shape_max_us = percentile_us(&first, 1000);
    report.unknown_shape_p50_us = percentile_us(&unknown, 500);
    report.unknown_shape_max_us = percentile_us(&unknown, 1000);
    report.rss_mib = rss_mib();
    Ok(report)
}

impl Fleet {
    /// Decides for one more VM of a shape and places it if it can be: nanoseconds of the decision,
    /// and whether it was placed.
    fn arrive(&mut self, (topology, demand): &(Topology, Amounts)) -> Result<(u64, bool), Refusal> {
        self.next += 1;
        let key = VmKey::in_default_tenant(name(&format!("vm-{}", self.next)));
        let mut vm = Vm::new(key.clone(), demand.clone());
        vm.topology = Some(Box::new(topology.clone()));
        let request = Request::Place(PlaceRequest::new(vm));
        let before = Instant::now();
        let reply = self.engine.preview(&request, 0)?;
        let nanos = before.elapsed().as_nanos() as u64;
        let placed = match reply.outcome {
            Outcome::Placement(placement) => placement.host.is_some(),
            _ => false,
        };
        if placed {
            ask(&mut self.engine, request)?;
            self.placed.push(key);
        }
        Ok((nanos, placed))
    }
}

fn describe(spec: &TopologySpec, shapes: &[(Topology, Amounts)]) -> TopologyReport {
    let share = |of: &dyn Fn(&Topology) -> bool| {
        shapes.iter().filter(|(topology, _)| of(topology)).count() * 1000 / shapes.len()
    };
    let pcie = |gpus: &GpuRequest| gpus.min_pcie_mbps > 0;
    TopologyReport {
        hosts: spec.hosts,
        seed: spec.seed,
        shapes: shapes.len(),
        with_gpus_permille: share(&|topology| topology.gpus.is_some()),
        with_pcie_permille: share(&|topology| topology.gpus.as_ref().is_some_and(pcie)),
        with_nic_permille: share(&|topology| topology.nic.is_some()),
        ..TopologyReport::default()
    }
}

fn server(dice: &mut Dice, row: usize) -> Host {
    let hardware = hardware::server(dice);
    let threads: u32 = hardware.numa_nodes.iter().map(|node| node.threads()).sum();
    let memory: u32 = hardware.numa_nodes.iter().map(|node| node.memory_mib).sum();
    let capacity = Amounts::cpu_memory(u64::from(threads) * 1000, memory.into());
    let mut host = Host::new(name(&format!("kind-{row}")), capacity);
    host.overcommit_permille = Amounts::cpu_memory(*dice.pick(&[1000, 1000, 2500]), 0);
    host.hardware = Box::new(hardware);
    host
}

/// A request for parts: all of them for NUMA nodes, most for GPUs with enough PCIe bandwidth, many
/// for functions of a NIC near the cores or the GPUs.
fn shape(dice: &mut Dice) -> (Topology, Amounts) {
    let (mut topology, demand) = hardware::request(dice);
    if dice.chance(400) && topology.gpus.is_none() {
        let mut gpus = GpuRequest::new(GpuAmount::Whole(*dice.pick(&[1, 2, 4])));
        gpus.near_cores = dice.chance(500);
        topology.gpus = Some(gpus);
    }
    if let Some(gpus) = &mut topology.gpus
        && dice.chance(600)
    {
        gpus.min_pcie_mbps = *dice.pick(&[128_000, 256_000]);
    }
    if dice.chance(300) && topology.nic.is_none() {
        let near = if topology.gpus.is_some() { Near::Gpus } else { Near::Cores };
        topology.nic = Some(NicRequest { functions: 1, rdma: false, near });
    }
    (topology, demand)
}

fn name(text: &str) -> Name {
    Name::new(text).expect("letters, digits and dashes")
}
