//! Counts against exhaustive packing on small fleets, and bounds around them.

use super::*;
use cluster::{CpuUnit, HostState, Name, Qos, VmKey};
use fixture::Dice;
use fixture::small::{self, Size};

fn shape(demand: Amounts, per_bundle: u32) -> Shape {
    let key = VmKey::in_default_tenant(Name::new("shape").expect("a name"));
    Shape { vm: Vm::new(key, demand), per_bundle }
}

fn tables(snapshot: &cluster::Snapshot) -> Problem {
    let mut problem = Problem::new(snapshot.dimensions.len());
    for (row, host) in snapshot.hosts.iter().enumerate() {
        problem.put_host(HostIx(row as u32), host);
    }
    for placed in &snapshot.placed {
        let row = snapshot.hosts.iter().position(|host| host.id == placed.host).expect("a host");
        problem.add_vm(HostIx(row as u32), &placed.vm, &placed.committed);
    }
    problem
}

/// A row beyond all dimensions for what is guaranteed of one.
fn guaranteed(dim: cluster::Dim) -> cluster::Dim {
    cluster::Dim(dim.0 + 100)
}

/// What is free on each host that is open, and what a VM takes there, by the text of the rules.
fn plain(snapshot: &cluster::Snapshot, shapes: &[Shape]) -> Vec<(Amounts, Vec<Option<Amounts>>)> {
    let mut hosts = Vec::new();
    for host in &snapshot.hosts {
        let mut free = Amounts::zero();
        for dim in snapshot.dimensions.iter() {
            let on = || snapshot.placed.iter().filter(|placed| placed.host == host.id);
            let taken: u64 = on().map(|placed| placed.committed.get(dim)).sum();
            let taken = taken + host.foreign.used.get(dim);
            free.set(dim, host.allocatable(dim).saturating_sub(taken));
            let kept = on().filter(|placed| placed.vm.qos == Qos::Guaranteed);
            let kept: u64 = kept.map(|placed| placed.committed.get(dim)).sum();
            free.set(guaranteed(dim), host.physical(dim).saturating_sub(kept));
        }
        let hard = |taint: &cluster::Taint| taint.effect != cluster::TaintEffect::PreferNoSchedule;
        let open = host.state == HostState::Available && !host.taints.iter().any(hard);
        let takes = shapes.iter().map(|shape| {
            let in_pool = shape.vm.pool.is_none() || shape.vm.pool == host.pool;
            let mut demand = shape.vm.demand.clone();
            if shape.vm.cpu_unit == CpuUnit::Normalised {
                let cpu = demand.get(cluster::Dim::CPU_MILLIS) * 1000;
                demand.set(cluster::Dim::CPU_MILLIS, cpu.div_ceil(host.speed_permille()));
            }
            if shape.vm.qos == Qos::Guaranteed {
                let plain: Vec<_> = demand.iter().collect();
                plain.into_iter().for_each(|(dim, amount)| demand.set(guaranteed(dim), amount));
            }
            (open && in_pool).then_some(demand)
        });
        hosts.push((free, takes.collect()));
    }
    hosts
}

/// The most bundles by trying every filling of every host.
fn exhaustive(hosts: &[(Amounts, Vec<Option<Amounts>>)], shapes: &[Shape]) -> u64 {
    fn reach(
        hosts: &[(Amounts, Vec<Option<Amounts>>)],
        shape: usize,
        counts: &mut Vec<u64>,
        shapes: &[Shape],
    ) -> u64 {
        let Some(((free, takes), rest)) = hosts.split_first() else {
            let each = counts.iter().zip(shapes);
            return each.map(|(count, it)| count / u64::from(it.per_bundle)).min().unwrap_or(0);
        };
        let Some(take) = takes.get(shape) else { return reach(rest, 0, counts, shapes) };
        let mut best = reach(hosts, shape + 1, counts, shapes);
        if let Some(left) = take.as_ref().and_then(|take| free.checked_sub(take)) {
            let mut now = hosts.to_vec();
            now[0].0 = left;
            counts[shape] += 1;
            best = best.max(reach(&now, shape, counts, shapes));
            counts[shape] -= 1;
        }
        best
    }
    reach(hosts, 0, &mut vec![0; shapes.len()], shapes)
}

#[test]
fn counts_are_those_of_exhaustive_packing_and_bounds_hold() {
    let (mut loose, mut several, mut gap) = (0, 0, 0);
    for number in 0..800 {
        let mut dice = Dice::stream(9, number);
        let size = Size { hosts: 1 + dice.row(4), vms: dice.row(6) };
        let snapshot = small::cluster(&mut dice, size);
        let count = 1 + dice.row(3);
        let shapes: Vec<Shape> = (0..count)
            .map(|_| {
                let demand = [dice.between(1_500, 6_000), dice.between(1_500, 6_000)];
                let mut shape = shape(Amounts::from_slice(&demand), 1 + dice.row(2) as u32);
                shape.vm.cpu_unit = *dice.pick(&[CpuUnit::Raw, CpuUnit::Normalised]);
                shape.vm.qos = *dice.pick(&[Qos::Burstable, Qos::Burstable, Qos::Guaranteed]);
                if dice.chance(200) {
                    shape.vm.pool = Some(Name::new("p0").expect("a name"));
                }
                shape
            })
            .collect();
        let mut problem = tables(&snapshot);
        let hosts = plain(&snapshot, &shapes);
        let found = slots(&mut problem, &shapes);
        for (row, shape) in shapes.iter().enumerate() {
            let one = [Shape { per_bundle: 1, ..shape.clone() }];
            let hosts = plain(&snapshot, &one);
            assert_eq!(found.alone[row], exhaustive(&hosts, &one), "seed {number}");
        }
        let expected = exhaustive(&hosts, &shapes);
        assert_eq!((found.bundles, found.at_most), (expected, expected), "seed {number}");
        let open: Vec<Mask> = shapes.iter().map(|it| open_to(&mut problem, &it.vm)).collect();
        let fleet = Fleet::new(&mut problem, &shapes, &open);
        let (low, high) = (greedy::pack(&fleet), prices::price(&problem, &fleet).at_most);
        assert!(low <= expected && expected <= high, "seed {number}: {low} {expected} {high}");
        if expected > 0 {
            several += 1;
            loose += u32::from(low < high);
            gap += high - low;
        }
    }
    println!("bounds differ on {loose} of {several} fleets, by {gap} bundles in all");
    assert!(several > 100, "only {several} fleets had room");
}

/// Hosts with parts, and how many VMs of a shape placing one after the other finds room for.
#[test]
fn shapes_with_parts_are_counted_as_they_are_placed() {
    let (mut some, mut fewer, mut exact, mut together) = (0, 0, 0, 0);
    for number in 0..150 {
        let mut dice = Dice::stream(12, number);
        let mut problem = Problem::new(2);
        for row in 0..3 {
            let id = Name::new(&format!("h{row}")).expect("a name");
            let mut host = cluster::Host::new(id, Amounts::cpu_memory(200_000, 2_000_000));
            *host.hardware = fixture::hardware::server(&mut dice);
            problem.put_host(HostIx(row), &host);
        }
        let mut asked = |per_bundle| {
            let (topology, demand) = fixture::hardware::request(&mut dice);
            let millis = demand.get(Dim::CPU_MILLIS).max(1_000);
            let demand = demand.with(Dim::CPU_MILLIS, millis);
            let mut shape = shape(demand, per_bundle);
            shape.vm.topology = Some(Box::new(topology));
            shape
        };
        let shapes = [asked(1), asked(2)];
        let found = slots(&mut problem, &shapes);
        together += u32::from(found.bundles > 0);
        let one = slots(&mut problem, &shapes[..1]);
        assert_eq!(one.alone[0], found.alone[0], "seed {number}");
        assert!(one.bundles == one.alone[0] && one.bundles <= one.at_most, "seed {number}");
        let by_amounts = Shape { vm: Vm { topology: None, ..shapes[0].vm.clone() }, per_bundle: 1 };
        let by_amounts = slots(&mut problem, &[by_amounts]).alone[0];
        let mut placed = 0;
        for host in (0..3).map(HostIx) {
            while let Some(Ok(bindings)) = problem.bind(&shapes[0].vm, host) {
                let committed = shapes[0].vm.demand.clone();
                let room = committed.iter().all(|(dim, it)| it <= problem.room.free(host, dim));
                if !room {
                    break;
                }
                problem.take(host, &bindings.into()).expect("parts that are free");
                problem.add_vm(host, &shapes[0].vm, &committed);
                placed += 1;
            }
        }
        assert_eq!(placed, found.alone[0], "seed {number}");
        some += u32::from(placed > 0);
        fewer += u32::from(placed < by_amounts);
        exact += u32::from(placed > 0 && one.bundles == one.at_most);
        assert_eq!(slots(&mut problem, &shapes[..1]).alone, [0], "seed {number}: all is taken");
    }
    let seen = format!("{some} with room, {fewer} held back by parts, {exact} exact, {together}");
    assert!(some > 80 && fewer > 80 && exact > 20 && together > 40, "{seen}");
}

#[test]
fn prices_are_paid_for_what_is_scarce_only() {
    let mut dice = Dice::new(3);
    let mut snapshot = small::cluster(&mut dice, Size { hosts: 0, vms: 0 });
    for row in 0..10 {
        let id = Name::new(&format!("h{row}")).expect("a name");
        let host = cluster::Host::new(id, Amounts::cpu_memory(8_000, 1_000_000));
        snapshot.hosts.push(host.into());
    }
    let found = slots(&mut tables(&snapshot), &[shape(Amounts::cpu_memory(2_000, 1_000), 1)]);
    assert_eq!(found.alone, [40]);
    assert_eq!(found.prices.len(), 1);
    assert_eq!(found.prices[0].hosts, 10);
    assert_eq!(found.prices[0].billionths, [500_000, 0], "a slot for 2,000 millis, memory is free");
}

#[test]
fn a_large_fleet_is_bounded_from_both_sides() {
    let fleet = fixture::Fleet::generate(&fixture::FleetSpec::new(2_000, 8_000, 4));
    let snapshot = fleet.snapshot();
    let shapes = [
        shape(Amounts::cpu_memory(2_000, 4_096), 4),
        shape(Amounts::cpu_memory(8_000, 65_536), 1),
        shape(Amounts::cpu_memory(16_000, 32_768), 1),
    ];
    let mut problem = tables(&snapshot);
    let found = slots(&mut problem, &shapes);
    println!("{} to {} bundles", found.bundles, found.at_most);
    assert!(found.bundles > 0 && found.bundles <= found.at_most);
    assert!(found.at_most - found.bundles <= found.at_most / 4, "{found:?}");
}
