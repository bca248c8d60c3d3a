//! Batches: order, atomicity, and that equal VMs are answered like different ones.

mod tiny;

use cluster::{Amounts, Dim, HostIx, Reason, Strategy, Vm};
use solver::assignment::Budget;
use solver::dice::Dice;
use solver::joint::{best_order, keeps_order};
use solver::{Choice, How, Scratch, place, place_batch};
use tiny::{Tiny, hosts, name, vm};

fn check(tiny: &mut Tiny, vms: &[Vm], atomic: bool, expect: &[Option<u32>]) {
    let vms: Vec<&Vm> = vms.iter().collect();
    let how = tiny.how;
    let choices = place_batch(&mut tiny.problem, &mut Scratch::default(), &vms, &how, atomic);
    let hosts: Vec<Option<u32>> =
        choices.iter().map(|choice| choice.host.as_ref().map(|chosen| chosen.host.0)).collect();
    assert_eq!(hosts, expect);
}

fn cores(id: &str, cores: u64) -> Vm {
    Vm { demand: Amounts::cpu_memory(cores * 1_000, 0), ..vm(id) }
}

#[test]
fn later_vms_see_earlier_ones_and_nothing_stays() {
    let mut tiny = Tiny::new(&hosts(2));
    let vms = [cores("a", 6), cores("b", 6), cores("c", 6)];
    check(&mut tiny, &vms, false, &[Some(0), Some(1), None]);
    check(&mut tiny, &vms, false, &[Some(0), Some(1), None]);
}

#[test]
fn an_atomic_batch_is_all_or_nothing_and_says_which_failed() {
    let mut tiny = Tiny::new(&hosts(2));
    let vms = [cores("a", 6), cores("b", 9), cores("c", 6)];
    check(&mut tiny, &vms, true, &[None, None, None]);
    let vms: Vec<&Vm> = vms.iter().collect();
    let how = How::default();
    let choices = place_batch(&mut tiny.problem, &mut Scratch::default(), &vms, &how, true);
    let reasons: Vec<usize> = choices.iter().map(|choice| choice.rejections.0.len()).collect();
    assert_eq!(reasons, [0, 1, 0]);
    assert_eq!(choices[1].rejections.0[0], (Reason::Capacity(Dim::CPU_MILLIS), 2));
}

#[test]
fn decreasing_strategies_place_the_largest_first() {
    let mut tiny = Tiny::new(&hosts(2));
    let vms = [cores("a", 3), cores("b", 5), cores("c", 5), cores("d", 3)];
    tiny.how.strategy = Strategy::FirstFit;
    check(&mut tiny, &vms, false, &[Some(0), Some(0), Some(1), Some(1)]);
    tiny.how.strategy = Strategy::FirstFitDecreasing;
    check(&mut tiny, &vms, false, &[Some(0), Some(0), Some(1), Some(1)]);
    let vms = [cores("a", 3), cores("b", 3), cores("c", 5), cores("d", 5)];
    tiny.how.strategy = Strategy::FirstFit;
    check(&mut tiny, &vms, false, &[Some(0), Some(0), Some(1), None]);
    tiny.how.strategy = Strategy::BestFitDecreasing;
    check(&mut tiny, &vms, false, &[Some(0), Some(1), Some(0), Some(1)]);
}

#[test]
fn a_round_goes_on_within_a_batch() {
    let mut tiny = Tiny::new(&hosts(3));
    tiny.how.strategy = Strategy::RoundRobin;
    tiny.how.round_robin_after = Some(HostIx(1));
    let vms = ["a", "b", "c", "d"].map(vm);
    check(&mut tiny, &vms, false, &[Some(2), Some(0), Some(1), Some(2)]);
}

#[test]
fn many_vms_of_few_shapes_are_answered_as_one_by_one() {
    let mut fleet = hosts(150);
    for (row, host) in fleet.iter_mut().enumerate() {
        host.capacity = Amounts::cpu_memory(8_000 + 1_000 * (row as u64 % 7), 16_384);
        host.price.micros_per_hour = row as u64 * 37 % 101;
    }
    for strategy in Strategy::ALL {
        let mut tiny = Tiny::new(&fleet);
        tiny.how.strategy = strategy;
        let vms: Vec<Vm> = (0..600).map(|n| cores(&format!("v{n}"), 1 + n * 7 % 5)).collect();
        let vms: Vec<&Vm> = vms.iter().collect();
        let mut scratch = Scratch::default();
        let choices = place_batch(&mut tiny.problem, &mut scratch, &vms, &tiny.how, false);

        let mut order: Vec<usize> = (0..vms.len()).collect();
        if matches!(strategy, Strategy::FirstFitDecreasing | Strategy::BestFitDecreasing) {
            order.sort_by_key(|&row| std::cmp::Reverse(vms[row].demand.get(Dim::CPU_MILLIS)));
        }
        let mut fresh = Tiny::new(&fleet);
        let mut how = tiny.how;
        for row in order {
            let choice = place(&mut fresh.problem, &mut scratch, vms[row], &how);
            assert_eq!(choices[row], choice, "{strategy:?}, VM {row}");
            if let Some(chosen) = choice.host {
                fresh.problem.add_vm(chosen.host, vms[row], &chosen.committed);
                how.round_robin_after = Some(chosen.host);
            }
        }
    }
}

#[test]
fn hosts_that_all_changed_since_the_last_request_are_weighed_again() {
    let mut fleet = hosts(128);
    fleet[64..].iter_mut().for_each(|host| host.pool = Some(name("b")));
    let mut tiny = Tiny::new(&fleet);
    let mut vm = vm("new");
    vm.pool = Some(name("b"));
    let chosen = |choice: Choice| choice.host.map(|chosen| chosen.host);
    assert_eq!(chosen(tiny.place(&vm)), Some(HostIx(64)));
    // Every host of the first block, none of which is in the pool, and all but one of the second.
    (0..127).for_each(|row| tiny.put(row, &cores(&format!("v{row}"), 2)));
    assert_eq!(chosen(tiny.place(&vm)), Some(HostIx(127)));
    tiny.put(127, &cores("v127", 2));
    assert_eq!(chosen(tiny.place(&vm)), Some(HostIx(64)));
}

#[test]
fn a_joint_order_places_vms_that_one_by_one_leaves_out() {
    let mut tiny = Tiny::new(&hosts(2));
    let vms = [cores("a", 3), cores("b", 3), cores("c", 5), cores("d", 5)];
    let vms: Vec<&Vm> = vms.iter().collect();
    tiny.how.strategy = Strategy::FirstFit;
    let (how, mut budget) = (tiny.how, Budget::steps(1_000));
    let before = place_batch(&mut tiny.problem, &mut Scratch::default(), &vms, &how, false);
    let joint = best_order(&mut tiny.problem, &mut Scratch::default(), &vms, &how, 1, &mut budget);
    assert_eq!((joint.as_given.placed, joint.served.placed), (3, 4));
    let ordered: Vec<&Vm> = joint.order.iter().map(|&row| vms[row]).collect();
    let after = place_batch(&mut tiny.problem, &mut Scratch::default(), &ordered, &how, false);
    assert!(after.iter().all(|choice| choice.host.is_some()), "what was promised");
    let again = place_batch(&mut tiny.problem, &mut Scratch::default(), &vms, &how, false);
    assert_eq!(again, before, "the tables are as they were");
}

#[test]
fn a_joint_order_is_never_worse_and_the_same_for_a_seed() {
    let ordered = Strategy::ALL.into_iter().filter(|strategy| keeps_order(*strategy));
    let ordered: Vec<Strategy> = ordered.collect();
    for seed in 0..200u64 {
        let mut dice = Dice::new(seed);
        let mut tiny = Tiny::new(&hosts(2 + dice.below(4) as usize));
        tiny.how.strategy = ordered[dice.below(ordered.len() as u32) as usize];
        let how = tiny.how;
        let vms: Vec<Vm> = (0..2 + dice.below(12))
            .map(|number| cores(&format!("v{number}"), 1 + u64::from(dice.below(6))))
            .collect();
        let vms: Vec<&Vm> = vms.iter().collect();
        let mut search = |steps| {
            let (problem, scratch) = (&mut tiny.problem, &mut Scratch::default());
            best_order(problem, scratch, &vms, &how, seed, &mut Budget::steps(steps))
        };
        let (none, some, more) = (search(0), search(300), search(3_000));
        assert_eq!(none.served, none.as_given, "seed {seed}: no steps, no search");
        assert!(some.served >= some.as_given, "seed {seed}");
        assert!(more.served >= some.served, "seed {seed}");
        assert_eq!(search(300).order, some.order, "seed {seed}");
        let ordered: Vec<&Vm> = more.order.iter().map(|&row| vms[row]).collect();
        let placed = place_batch(&mut tiny.problem, &mut Scratch::default(), &ordered, &how, false);
        let scores = placed.iter().flat_map(|choice| &choice.host).map(|chosen| chosen.score);
        assert_eq!(scores.clone().count(), more.served.placed, "seed {seed}");
        assert_eq!(scores.sum::<i64>(), more.served.score, "seed {seed}");
    }
}
