//! Filling small made-up fleets: nothing is refused that fits, what is kept is what a fresh look
//! finds, and what is given back is there again.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use solver::fragmentation::{Chosen, Empty, Fleet, HostState, Knowledge, Mix, Policy, Shape, Ties};

const HOSTS: usize = 24;

fn hosts(random: &mut Xoshiro256PlusPlus) -> Vec<Empty> {
    let kinds = [
        (96_000, 393_216, 0, 8),
        (104_000, 524_288, 1, 2),
        (16_000, 122_880, 2, 2),
        (64_000, 65_536, 0, 0),
    ];
    let host =
        |(cpu_millis, memory_mib, model, gpus)| Empty { cpu_millis, memory_mib, model, gpus };
    (0..HOSTS).map(|_| host(kinds[random.random_range(0..kinds.len())])).collect()
}

fn shapes() -> Vec<(Shape, u64)> {
    vec![
        (Shape::of_whole(11_000, 49_152, 1), 40),
        (Shape::of_share(3000, 5600, 810), 15),
        (Shape::of_share(12_000, 47_104, 470), 12),
        (Shape::of_share(4000, 22_888, 320).on_models(0b010), 8),
        (Shape::of_share(4000, 30_517, 230), 5),
        (Shape::of_whole(32_000, 131_072, 4), 3),
        (Shape::of_whole(88_000, 327_680, 8), 2),
        (Shape::without_gpus(12_500, 57_344), 15),
    ]
}

fn arrivals(random: &mut Xoshiro256PlusPlus) -> Vec<Shape> {
    let shapes = shapes();
    (0..400).map(|_| shapes[random.random_range(0..shapes.len())].0).collect()
}

fn knowledge(online: bool) -> Knowledge {
    if online { Knowledge::Online } else { Knowledge::Given(Mix::given(shapes())) }
}

fn states(fleet: &Fleet) -> Vec<HostState> {
    (0..HOSTS).map(|host| *fleet.state(host)).collect()
}

fn check(mut run: impl FnMut(u64, Policy, bool)) {
    for seed in 0..6 {
        for (_, policy) in Policy::ALL {
            run(seed, policy, seed % 2 == 1);
        }
    }
}

#[test]
fn nothing_is_refused_that_fits_and_nothing_is_taken_that_is_not_there() {
    check(|seed, policy, online| {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut fleet = Fleet::new(&hosts(&mut random), policy, knowledge(online), Ties::Lowest);
        let mut refused = 0;
        for shape in arrivals(&mut random) {
            let before = states(&fleet);
            match fleet.place(&shape) {
                Some(chosen) => {
                    assert!(before[chosen.host].fits(&shape), "{policy:?}, seed {seed}");
                    assert_eq!(chosen.gpus.len(), usize::from(shape.gpus));
                    let idle = fleet.state(chosen.host).idle_millis();
                    assert_eq!(idle + shape.gpu_millis(), before[chosen.host].idle_millis());
                }
                None => {
                    refused += 1;
                    assert!(
                        !before.iter().any(|state| state.fits(&shape)),
                        "{policy:?}, seed {seed}"
                    );
                }
            }
        }
        assert!(refused > 0, "the fleet must become full for this to show anything");
    });
}

#[test]
fn what_is_kept_is_what_a_fresh_look_finds() {
    check(|seed, policy, online| {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut fleet = Fleet::new(&hosts(&mut random), policy, knowledge(online), Ties::Lowest);
        let mut placed: Vec<(Shape, Chosen)> = Vec::new();
        for shape in arrivals(&mut random) {
            let fresh = fleet.choose_uncached(&shape);
            assert_eq!(
                fleet.choose(&shape).map(|chosen| (chosen.host, chosen.cost)),
                fresh,
                "{policy:?}, seed {seed}"
            );
            placed.extend(fleet.place(&shape).map(|chosen| (shape, chosen)));
            if placed.len() > 60 && random.random_range(0..3) == 0 {
                let (shape, chosen) = placed.swap_remove(random.random_range(0..placed.len()));
                fleet.give_back(&shape, &chosen);
            }
        }
    });
}

#[test]
fn what_is_given_back_is_there_again() {
    check(|seed, policy, online| {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut fleet =
            Fleet::new(&hosts(&mut random), policy, knowledge(online), Ties::Random(seed));
        let empty = states(&fleet);
        let mut placed = Vec::new();
        for shape in arrivals(&mut random) {
            placed.extend(fleet.place(&shape).map(|chosen| (shape, chosen)));
        }
        assert_ne!(states(&fleet), empty);
        placed.iter().for_each(|(shape, chosen)| fleet.give_back(shape, chosen));
        assert_eq!(states(&fleet), empty);
    });
}

#[test]
fn equal_arrivals_are_placed_equally_and_another_seed_breaks_ties_otherwise() {
    let run = |ties: Ties| {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut fleet = Fleet::new(&hosts(&mut random), Policy::Default, knowledge(true), ties);
        arrivals(&mut random).iter().map(|shape| fleet.place(shape)).collect::<Vec<_>>()
    };
    assert_eq!(run(Ties::Lowest), run(Ties::Lowest));
    assert_eq!(run(Ties::Random(1)), run(Ties::Random(1)));
    assert_ne!(run(Ties::Random(1)), run(Ties::Random(2)));
}
