//! Micro benches of the hot path, on a fleet of 10,000 hosts and 100,000 VMs.

use benches::scale;
use criterion::{Criterion, criterion_group, criterion_main};
use engine::{PlaceRequest, Request};
use fixture::{Fleet, FleetSpec, MixSpec, Requests};
use std::hint::black_box;

fn hot_path(c: &mut Criterion) {
    let fleet = Fleet::generate(&FleetSpec::new(10_000, 100_000, 1));
    let plain = Requests::new(&fleet, &MixSpec::plain(), 2);
    let mixed = Requests::new(&fleet, &MixSpec::default(), 3);
    let mut engine = scale::load(fleet).expect("a fleet that loads");
    let mut group = c.benchmark_group("place");
    group.sample_size(50);
    for (name, requests) in [("without rules", plain), ("the usual mix", mixed)] {
        let requests: Vec<Request> =
            requests.take(1_000).map(|vm| Request::Place(PlaceRequest::new(vm))).collect();
        let mut next = requests.iter().cycle();
        group.bench_function(name, |b| {
            b.iter(|| {
                let request = next.next().expect("a cycle never ends");
                black_box(engine.preview(request, 0).expect("an answer"))
            });
        });
    }
    group.finish();
}

criterion_group!(hot, hot_path);
criterion_main!(hot);
