//! Bindings, seen from outside: the solver binds, the verifier checks, at random.

mod exhaustive;

use cluster::{Amounts, Bindings, Name, Topology, VmKey};
use fixture::{Dice, hardware};
use solver::topology::{Devices, Layout, Needs, Summary, bind, try_bind};
use std::sync::Arc;
use verify::{Guest, Holder};

/// One VM on a host.
#[derive(Debug)]
pub struct Bound {
    pub vm: VmKey,
    pub request: Topology,
    pub demand: Amounts,
    pub bindings: Bindings,
}

impl Bound {
    pub fn guest(&self) -> Guest<'_> {
        let Self { vm, request, demand, bindings } = self;
        Guest { vm, request, demand, bindings }
    }
}

pub fn key(number: u64) -> VmKey {
    VmKey::in_default_tenant(Name::new(&format!("vm-{number}")).unwrap())
}

/// Operations after which all VMs are held against their requests again.
const FULL_CHECK_EVERY: u64 = 10;

/// Binds and releases on one server until `operations` are done, checking after each; then
/// releases everything. Returns how many requests were bound and refused.
fn churn(seed: u64, operations: u64) -> (u64, u64) {
    let mut dice = Dice::new(seed);
    let hardware = hardware::server(&mut dice);
    let permille = *dice.pick(&[1000, 2500]);
    let layout = Arc::new(Layout::new(&hardware, permille).unwrap());
    let fresh = Devices::new(layout);
    let mut devices = fresh.clone();
    let mut guests: Vec<Bound> = Vec::new();
    let (mut bound, mut refused) = (0, 0);
    for operation in 0..operations {
        // Fills up and empties by turns, so that full and fragmented hosts both come up.
        let leaving = if operation / 150 % 2 == 0 { 300 } else { 650 };
        if !guests.is_empty() && dice.chance(leaving) {
            let gone = guests.swap_remove(dice.row(guests.len()));
            devices.give_back(&gone.bindings).unwrap();
            continue;
        }
        let (request, demand) = hardware::request(&mut dice);
        match bind(&devices, &request, &demand) {
            Ok(bindings) => {
                assert!(
                    Summary::new(&devices).may_hold(&Needs::new(&request, &demand)),
                    "seed {seed}"
                );
                devices.take(&bindings).unwrap();
                guests.push(Bound { vm: key(operation), request, demand, bindings });
                bound += 1;
                let all: Vec<Guest<'_>> = guests.iter().map(Bound::guest).collect();
                let found = match all.split_last() {
                    Some((last, before)) if operation % FULL_CHECK_EVERY != 0 => {
                        let before: Vec<Holder<'_>> =
                            before.iter().map(|guest| Holder::from(*guest)).collect();
                        verify::newcomer(&hardware, permille, &before, last)
                    }
                    _ => verify::bindings(&hardware, permille, &all),
                };
                assert!(found.is_empty(), "seed {seed}, operation {operation}: {}", found[0]);
            }
            Err(why) => {
                refused += 1;
                assert!(why.deficit() > 0, "seed {seed}, operation {operation}: {why}");
                assert!(try_bind(&devices, &request, &demand).is_none());
            }
        }
    }
    while !guests.is_empty() {
        let gone = guests.swap_remove(dice.row(guests.len()));
        devices.give_back(&gone.bindings).unwrap();
    }
    assert_eq!(devices, fresh, "seed {seed}");
    (bound, refused)
}

#[test]
fn a_hundred_thousand_operations_break_nothing_and_leave_nothing_behind() {
    let (mut bound, mut refused) = (0, 0);
    for seed in 0..100 {
        let (more_bound, more_refused) = churn(seed, 1_000);
        bound += more_bound;
        refused += more_refused;
    }
    // Neither side of the answer may be a rarity, or the test says little.
    assert!(bound > 20_000 && refused > 10_000, "{bound} bound, {refused} refused");
}

#[test]
fn the_same_devices_and_request_get_the_same_bindings() {
    for seed in 0..50 {
        let mut dice = Dice::new(seed);
        let layout = Arc::new(Layout::new(&hardware::server(&mut dice), 1000).unwrap());
        let (mut one, mut other) = (Devices::new(layout.clone()), Devices::new(layout));
        for _ in 0..30 {
            let (request, demand) = hardware::request(&mut dice);
            let answers = (bind(&one, &request, &demand), bind(&other, &request, &demand));
            assert_eq!(answers.0, answers.1, "seed {seed}");
            if let Ok(bindings) = answers.0 {
                one.take(&bindings).unwrap();
                other.take(&bindings).unwrap();
            }
        }
    }
}

#[test]
fn what_is_not_free_cannot_be_taken_and_what_is_free_cannot_be_given_back() {
    for seed in 0..300 {
        let mut dice = Dice::new(seed);
        let layout = Arc::new(Layout::new(&hardware::server(&mut dice), 1000).unwrap());
        let mut devices = Devices::new(layout);
        let (request, demand) = hardware::request(&mut dice);
        let Ok(bindings) = bind(&devices, &request, &demand) else { continue };
        let fresh = devices.clone();
        assert!(devices.give_back(&bindings).is_err(), "seed {seed}");
        assert_eq!(devices, fresh, "seed {seed}");
        devices.take(&bindings).unwrap();
        let taken = devices.clone();
        let exclusive = !bindings.cpus.is_empty() || !bindings.functions.is_empty();
        if exclusive {
            assert!(devices.take(&bindings).is_err(), "seed {seed}");
            assert_eq!(devices, taken, "seed {seed}");
        }
        devices.give_back(&bindings).unwrap();
        assert_eq!(devices, fresh, "seed {seed}");
    }
}
