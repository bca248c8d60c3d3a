//! A packing of bundles: a number that fits for certain.

use super::{Fleet, Host};

/// Bundles that a greedy packing finds room for: host by host, the shape that is furthest behind
/// its share comes next. Tried with the roomiest hosts first and last, and the better one counts.
pub(super) fn pack(fleet: &Fleet) -> u64 {
    let mut order: Vec<&Host> = fleet.hosts.iter().collect();
    order.sort_by_key(|host| (room(fleet, host), host.ix));
    let ascending = fill(fleet, &order);
    order.reverse();
    ascending.max(fill(fleet, &order))
}

/// Shares of bundles that the host has room for, each shape alone, in thousandths.
fn room(fleet: &Fleet, host: &Host) -> u64 {
    let shapes = 0..fleet.per_bundle.len();
    shapes.map(|shape| host.alone[shape].0 * 1000 / fleet.per_bundle[shape]).sum()
}

fn fill(fleet: &Fleet, order: &[&Host]) -> u64 {
    let shapes = fleet.per_bundle.len();
    let mut counts = vec![0_u64; shapes];
    for host in order {
        let mut left = host.left();
        let mut fitting: Vec<usize> =
            (0..shapes).filter(|&shape| host.alone[shape].0 > 0).collect();
        // Behind means the smaller part of its share; compared by cross-multiplying.
        while let Some(&shape) = fitting.iter().min_by(|&&a, &&b| {
            let part = |shape: usize, other: usize| {
                u128::from(counts[shape]) * u128::from(fleet.per_bundle[other])
            };
            part(a, b).cmp(&part(b, a)).then(a.cmp(&b))
        }) {
            if host.take_one(shape, &mut left) {
                counts[shape] += 1;
            } else {
                // What does not fit now will not fit later.
                fitting.retain(|&other| other != shape);
            }
        }
    }
    fleet.bundles(&counts)
}
