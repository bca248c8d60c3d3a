//! Plans carried out by a core that fails, dawdles and repeats itself, while VMs come and go, hosts
//! are closed and the service crashes. After every event the verifier, which knows nothing of
//! plans, looks at every way in which the migrations under way may have got on.
//!
//! `NOVAPLACE_PLANS` says how many plans are carried out; `NOVAPLACE_SEED` runs one seed alone.

mod world;

use fixture::Dice;
use world::World;

/// Plans in an ordinary run.
const PLANS: usize = 400;
/// Events in one world.
const EVENTS: usize = 60;

#[test]
fn whatever_happens_on_the_way_no_rule_breaks_and_nothing_leaks() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let most = number("NOVAPLACE_PLANS").map_or(PLANS, |plans| plans as usize);
    let only = number("NOVAPLACE_SEED");
    let mut all = world::Tally::default();
    for seed in only.map_or(0..u64::MAX, |seed| seed..seed + 1) {
        let tally = play(seed);
        all.add(&tally);
        if all.plans >= most {
            break;
        }
    }
    println!("{all:?}");
    if only.is_none() {
        let enough = |count: usize, share: usize| count * share >= all.plans;
        assert!(enough(all.done, 2) && enough(all.failed, 6), "{all:?}");
        assert!(enough(all.arrived, 4) && enough(all.crashes, 4), "{all:?}");
        assert!(enough(all.stale, 40) && enough(all.rolled_back, 40), "{all:?}");
        assert!(enough(all.waited_for_budget, 200), "{all:?}");
    }
}

fn play(seed: u64) -> world::Tally {
    let mut dice = Dice::new(seed);
    let mut world = World::new(seed, &mut dice);
    for _ in 0..EVENTS {
        world.event(&mut dice);
    }
    world.end()
}
