//! The solver against a naive reference, on random clusters that keep changing.

mod world;

use cluster::HostIx;
use solver::{Chosen, Scratch, feasible, place, place_batch};
use world::random::Random;
use world::{Placed, World, reference};

/// Lives through one random history, calling `ask` between changes with tables that were patched
/// all the way.
fn live(seed: u64, mut ask: impl FnMut(&World, &mut solver::Problem, &mut Random, &mut u64)) {
    let mut random = Random::new(seed);
    // Across a block boundary for some, so that more than one word of every set is in play.
    let rows = if random.chance(10) { 200 } else { 3 + random.below(12) as usize };
    let mut world = World { hosts: vec![None; rows], placed: Vec::new() };
    let mut problem = solver::Problem::new(5);
    let mut next = 0;
    for row in 0..rows {
        change_host(&mut world, &mut problem, &mut random, row);
    }
    for _ in 0..40 {
        match random.below(10) {
            0 => {
                let row = random.below(rows as u64) as usize;
                change_host(&mut world, &mut problem, &mut random, row);
            }
            1 => {
                let row = HostIx(random.below(rows as u64) as u32);
                if world.on(row).next().is_none() && world.hosts[row.0 as usize].take().is_some() {
                    problem.remove_host(row);
                }
            }
            2 | 3 if !world.placed.is_empty() => {
                let row = random.below(world.placed.len() as u64) as usize;
                let Placed { host, vm, committed } = world.placed.swap_remove(row);
                problem.remove_vm(host, &vm, &committed);
            }
            // Adopted wherever it is, whatever the rules say and whether or not there is room.
            4 if world.hosts().next().is_some() => {
                let hosts: Vec<HostIx> = world.hosts().map(|(ix, _)| ix).collect();
                let host = random.pick(&hosts);
                let vm = random.vm(&mut next);
                let committed = vm.demand.clone();
                problem.add_vm(host, &vm, &committed);
                world.placed.push(Placed { host, vm, committed });
            }
            _ => ask(&world, &mut problem, &mut random, &mut next),
        }
        // The callback looks only; what it would place is placed here, half of the time.
        if random.chance(50) {
            let vm = random.vm(&mut next);
            let how = random.how(rows);
            let choice = place(&mut problem, &mut Scratch::default(), &vm, &how);
            if let Some(chosen) = choice.host {
                problem.add_vm(chosen.host, &vm, &chosen.committed);
                let (host, committed) = (chosen.host, chosen.committed);
                world.placed.push(Placed { host, vm, committed });
            }
        }
    }
}

fn change_host(world: &mut World, problem: &mut solver::Problem, random: &mut Random, row: usize) {
    let host = random.host(row);
    problem.put_host(HostIx(row as u32), &host);
    world.hosts[row] = Some(host);
}

#[test]
fn every_answer_is_that_of_the_reference() {
    let mut scratch = Scratch::default();
    let (mut placed, mut rejected) = (0, 0);
    for seed in 0..1_000 {
        live(seed, |world, problem, random, next| {
            let vm = random.vm(next);
            let how = random.how(world.hosts.len());
            let expect = reference::place(world, &vm, &how);
            let choice = place(problem, &mut scratch, &vm, &how);
            assert_eq!(choice, expect, "seed {seed}, {how:?}, {vm:#?}");
            let fresh = place(&mut world.problem(), &mut scratch, &vm, &how);
            assert_eq!(fresh, expect, "seed {seed}, fresh tables, {how:?}, {vm:#?}");
            match expect.host {
                Some(_) => placed += 1,
                None => rejected += 1,
            }
        });
    }
    assert!(placed > 2_000 && rejected > 2_000, "{placed} placed, {rejected} rejected");
}

#[test]
fn feasibility_of_one_host_is_that_of_the_reference() {
    for seed in 0..300 {
        live(seed, |world, problem, random, next| {
            let vm = random.vm(next);
            for (ix, _) in world.hosts() {
                let expect = reference::feasible(world, &vm, ix);
                assert_eq!(feasible(problem, &vm, ix), expect, "seed {seed}, {ix:?}, {vm:#?}");
            }
        });
    }
}

#[test]
fn a_batch_answers_as_if_placed_one_by_one() {
    let mut scratch = Scratch::default();
    for seed in 0..400 {
        live(seed, |world, problem, random, next| {
            let shapes = 1 + random.below(4);
            let mut vms: Vec<cluster::Vm> = (0..shapes).map(|_| random.vm(next)).collect();
            for _ in 0..random.below(16) {
                let mut twin = random.pick(&vms[..shapes as usize]);
                twin.key.id = random.vm(next).key.id;
                vms.push(twin);
            }
            let vms: Vec<&cluster::Vm> = vms.iter().collect();
            let how = random.how(world.hosts.len());
            let expect = reference::place_batch(world, &vms, &how);
            let choices = place_batch(problem, &mut scratch, &vms, &how, false);
            assert_eq!(choices, expect, "seed {seed}, {how:?}, {vms:#?}");

            let atomic = place_batch(problem, &mut scratch, &vms, &how, true);
            if expect.iter().all(|choice| choice.host.is_some()) {
                assert_eq!(atomic, expect, "seed {seed}, the tables are left as they were");
            } else {
                assert!(atomic.iter().all(|choice| choice.host.is_none()), "seed {seed}");
                for (atomic, expect) in atomic.iter().zip(&expect) {
                    if expect.host.is_none() {
                        assert_eq!(atomic, expect, "seed {seed}");
                    }
                }
            }
        });
    }
}

/// What the tables remember of a shape must follow every change, also those that a batch makes and
/// takes back.
#[test]
fn shapes_that_come_again_and_again_are_answered_as_by_fresh_tables() {
    for seed in 0..30 {
        let mut random = Random::new(seed);
        let mut scratch = Scratch::default();
        let mut world = World { hosts: vec![None; 150], placed: Vec::new() };
        let mut problem = solver::Problem::new(5);
        for row in 0..150 {
            change_host(&mut world, &mut problem, &mut random, row);
        }
        let (mut next, how) = (0, random.how(150));
        let shapes: Vec<cluster::Vm> = (0..5).map(|_| random.vm(&mut next)).collect();
        let mut another = |random: &mut Random| {
            let mut vm = random.pick(&shapes);
            vm.key.id = random.vm(&mut next).key.id;
            vm
        };
        for step in 0..120 {
            let vm = another(&mut random);
            match random.below(4) {
                0 => {
                    let count = random.below(12);
                    let vms: Vec<_> = (0..count).map(|_| another(&mut random)).collect();
                    let vms: Vec<&cluster::Vm> = vms.iter().collect();
                    let choices = place_batch(&mut problem, &mut scratch, &vms, &how, false);
                    let fresh = place_batch(&mut world.problem(), &mut scratch, &vms, &how, false);
                    assert_eq!(choices, fresh, "seed {seed}, step {step}, {how:?}, {vms:#?}");
                }
                1 if !world.placed.is_empty() => {
                    let row = random.below(world.placed.len() as u64) as usize;
                    let Placed { host, vm, committed } = world.placed.swap_remove(row);
                    problem.remove_vm(host, &vm, &committed);
                }
                _ => {
                    let choice = place(&mut problem, &mut scratch, &vm, &how);
                    let fresh = place(&mut world.problem(), &mut scratch, &vm, &how);
                    assert_eq!(choice, fresh, "seed {seed}, step {step}, {how:?}, {vm:#?}");
                    if let Some(Chosen { host, committed, .. }) = choice.host {
                        problem.add_vm(host, &vm, &committed);
                        world.placed.push(Placed { host, vm, committed });
                    }
                }
            }
        }
    }
}
