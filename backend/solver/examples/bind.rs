//! What binding costs: one `bind`, the filter over a fleet, and both together.
//!
//! `cargo run --release -p solver --example bind [HOSTS]`

#![allow(clippy::print_stdout, reason = "this is a program that prints")]

use fixture::{Dice, hardware};
use solver::topology::{Devices, Layout, Needs, Summary, bind, try_bind};
use std::sync::Arc;
use std::time::Instant;

/// Requests that are timed.
const ROUNDS: usize = 20_000;

fn main() {
    let hosts = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let mut dice = Dice::new(1);
    let mut fleet: Vec<Devices> = (0..hosts).map(|_| half_full(&mut dice)).collect();
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
        let mut may = (0..fleet.len()).filter(|&row| summaries[row].may_hold(&needs));
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
}

fn half_full(dice: &mut Dice) -> Devices {
    let layout = Layout::new(&hardware::server(dice), 1000).expect("generated hardware is valid");
    let mut devices = Devices::new(Arc::new(layout));
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
