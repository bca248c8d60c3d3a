//! What binding costs: one `bind`, the filter over a fleet, and both together.
//!
//! `cargo run --release -p solver --example bind [HOSTS]`

#![allow(clippy::print_stdout, reason = "this is a program that prints")]

use cluster::{
    Amounts, Gpu, GpuAmount, GpuRequest, Hardware, Name, Near, Nic, NicRequest, NumaNode,
    NumaPolicy, PciePort, Topology,
};
use fixture::{Dice, hardware};
use solver::topology::{Devices, Layout, Needs, Summary, bind, try_bind};
use std::sync::Arc;
use std::time::Instant;

/// Kinds of machines in the fleet.
const KINDS: usize = 24;
/// Requests that are timed.
const ROUNDS: usize = 20_000;

fn main() {
    let hosts = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let mut dice = Dice::new(1);
    let layouts: Vec<Arc<Layout>> = (0..KINDS).map(|_| layout(&mut dice)).collect();
    let empty: Vec<Devices> = layouts.iter().cloned().map(Devices::new).collect();
    let kinds: Vec<usize> = (0..hosts).map(|_| dice.row(KINDS)).collect();
    let mut fleet: Vec<Devices> =
        kinds.iter().map(|&kind| half_full(&layouts[kind], &mut dice)).collect();
    let mut summaries: Vec<Summary> = fleet.iter().map(Summary::new).collect();

    let (mut alone, mut refused, mut together) = (Vec::new(), Vec::new(), Vec::new());
    let mut asked = Vec::new();
    for _ in 0..ROUNDS {
        let (request, demand) = hardware::request(&mut dice);
        let row = dice.row(fleet.len());
        let began = Instant::now();
        let answer = bind(&fleet[row], &request, &demand);
        let took = began.elapsed();
        if answer.is_ok() {
            alone.push(took)
        } else {
            refused.push(took)
        }
        drop(answer);

        let began = Instant::now();
        let needs = Needs::new(&request, &demand);
        let mut tried = 0;
        // What an empty machine of a kind cannot take, none of that kind can.
        let ever: Vec<bool> =
            empty.iter().map(|empty| try_bind(empty, &request, &demand).is_some()).collect();
        let mut may =
            (0..fleet.len()).filter(|&row| ever[kinds[row]] && summaries[row].may_hold(&needs));
        let found = may.find_map(|row| {
            tried += 1;
            try_bind(&fleet[row], &request, &demand).map(|bindings| (row, bindings))
        });
        // The whole fleet is filtered, as a placement that compares scores would.
        let rest = may.count();
        together.push(began.elapsed());
        asked.push(tried);
        std::hint::black_box(rest);
        if let Some((row, bindings)) = found.filter(|_| dice.chance(100)) {
            fleet[row].take(&bindings).expect("what was bound is free");
            summaries[row] = Summary::new(&fleet[row]);
        }
    }
    println!("hosts {hosts}, summary {} integers", Summary::ROWS);
    report("bind, bound", alone);
    report("bind, refused with a reason", refused);
    report("filter all hosts and bind the first that can", together);
    asked.sort_unstable();
    println!(
        "hosts asked until one could: p50 {}, p99 {}",
        asked[ROUNDS / 2],
        asked[ROUNDS * 99 / 100]
    );
    hardest();
}

/// The most nodes that a host may have, and a request that fails only after all sets of half of
/// them were tried: the NICs near the GPUs have one function too few.
fn hardest() {
    let ports = (0..16).map(|node| PciePort { numa_node: Some(node), ..PciePort::default() });
    let node = NumaNode { cores: 8, threads_per_core: 2, memory_mib: 1000, ..NumaNode::default() };
    let gpu = |port| Gpu {
        pcie_port: Some(port),
        ..Gpu::new(Name::new("A100").expect("a constant that is a valid name"), 80)
    };
    let nic = |port| Nic { functions: 2, pcie_port: Some(port), ..Nic::default() };
    let hardware = Hardware {
        numa_nodes: vec![node; 16],
        pcie_ports: ports.collect(),
        gpus: (0..16).map(gpu).collect(),
        nics: (0..16).map(nic).collect(),
        ..Hardware::default()
    };
    let layout = Layout::new(&hardware, 1000).expect("the hardware is valid");
    let devices = Devices::new(Arc::new(layout));
    let gpus = GpuRequest { near_cores: true, ..GpuRequest::new(GpuAmount::Whole(8)) };
    let request = |functions| Topology {
        numa: NumaPolicy::Split(8),
        gpus: Some(gpus.clone()),
        nic: Some(NicRequest { functions, rdma: false, near: Near::Gpus }),
        ..Topology::default()
    };
    let demand = Amounts::cpu_memory(8000, 800);
    for (functions, binds) in [(16, true), (17, false)] {
        let began = Instant::now();
        assert_eq!(try_bind(&devices, &request(functions), &demand).is_some(), binds);
        println!("hardest request on 16 nodes, {functions} functions: {:?}", began.elapsed());
    }
}

fn layout(dice: &mut Dice) -> Arc<Layout> {
    let hardware = hardware::server(dice);
    Arc::new(Layout::new(&hardware, 1000).expect("generated hardware is valid"))
}

fn half_full(layout: &Arc<Layout>, dice: &mut Dice) -> Devices {
    let mut devices = Devices::new(layout.clone());
    for _ in 0..dice.below(24) {
        let (request, demand) = hardware::request(dice);
        if let Some(bindings) = try_bind(&devices, &request, &demand) {
            devices.take(&bindings).expect("what was bound is free");
        }
    }
    devices
}

fn report(what: &str, mut times: Vec<std::time::Duration>) {
    times.sort_unstable();
    let Some(&max) = times.last() else { return };
    let at = |permille: usize| times[times.len() * permille / 1000];
    println!("{what}: {} times, p50 {:?}, p99 {:?}, max {max:?}", times.len(), at(500), at(990));
}
