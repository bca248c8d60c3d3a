//! What a unit of capacity is worth in bundles, and from that the most bundles that can fit.
//!
//! Hosts of one class are thrown together into one large host, which can only make more fit. For
//! that fleet the best mix is a linear programme, and its duals are the prices: a price for each
//! dimension in each class and one for each shape. The programme is solved in floating point, but
//! nothing is believed: whatever the prices are, rounded to integers, the bound that follows from
//! them is worked out exactly, and holds for any prices at all.

use super::simplex::{Packing, duals};
use super::{Fleet, Host};
use crate::problem::Problem;
use cluster::{Amounts, Name};
use std::collections::BTreeMap;

/// Hosts of one pool with the same capacity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostClass {
    pub pool: Option<Name>,
    pub capacity: Amounts,
}

/// What a unit of each dimension is worth in a class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassPrices {
    /// `None` for all hosts beyond the largest classes.
    pub class: Option<HostClass>,
    pub hosts: u32,
    /// By dimension: bundles that one more unit makes room for, in billionths.
    pub billionths: Vec<u64>,
}

#[derive(Debug)]
pub(super) struct Priced {
    pub(super) at_most: u64,
    pub(super) classes: Vec<ClassPrices>,
}

/// Classes with prices of their own; the smallest beyond it share one.
const MOST_CLASSES: usize = 24;

/// Prices are integers in these parts of a bundle when the bound is worked out.
const PARTS: f64 = 1e9;

/// Many hosts that are taken for one.
struct Pool {
    class: Option<HostClass>,
    hosts: u32,
    free: Vec<u64>,
    /// By shape: the least that one VM takes on any of the hosts; `None` where none may come.
    takes: Vec<Option<Vec<u64>>>,
    /// By shape: how many fit if no other comes.
    alone: Vec<u64>,
}

pub(super) fn price(problem: &Problem, fleet: &Fleet) -> Priced {
    let pools = pools(problem, fleet);
    // With the counts of each shape alone as limits the bound is tighter; without them all that
    // is scarce shows in the prices of dimensions, which are what is shown.
    let limited = solve(fleet, &pools, true);
    let plain = solve(fleet, &pools, false);
    let alone: Vec<u64> =
        (0..fleet.per_bundle.len()).map(|shape| fleet.alone_at_most(shape)).collect();
    let bounds = [bound(fleet, &pools, &limited), bound(fleet, &pools, &plain)];
    let at_most = bounds.into_iter().flatten().chain([fleet.bundles(&alone)]).min().unwrap_or(0);
    let classes = pools.into_iter().zip(plain.by_pool).map(|(pool, prices)| ClassPrices {
        class: pool.class,
        hosts: pool.hosts,
        billionths: by_dimension(&prices, fleet.dimensions),
    });
    Priced { at_most, classes: classes.collect() }
}

/// One more unit of a dimension is one more that can be promised and, where that is counted, one
/// more that can be guaranteed.
fn by_dimension(prices: &[u64], dimensions: usize) -> Vec<u64> {
    let guaranteed = |dim: usize| prices.get(dimensions + dim).copied().unwrap_or(0);
    let plain = prices.iter().take(dimensions).enumerate();
    plain.map(|(dim, price)| price.saturating_add(guaranteed(dim))).collect()
}

struct Prices {
    by_shape: Vec<u64>,
    /// By pool and dimension.
    by_pool: Vec<Vec<u64>>,
}

/// Maximises bundles: `per_bundle * bundles <= sum over pools of x`, and in each pool
/// `sum over shapes of takes * x <= free` and, if limited, `x <= alone`.
fn solve(fleet: &Fleet, pools: &[Pool], limited: bool) -> Prices {
    let shapes = fleet.per_bundle.len();
    let width = pools.first().map_or(0, |pool| pool.free.len());
    let columns = 1 + pools.len() * shapes;
    let column = |pool: usize, shape: usize| 1 + pool * shapes + shape;
    let mut packing = Packing::new(columns);
    packing.objective[0] = 1.0;
    for shape in 0..shapes {
        let mut row = vec![0.0; columns];
        row[0] = fleet.per_bundle[shape] as f64;
        (0..pools.len()).for_each(|pool| row[column(pool, shape)] = -1.0);
        packing.at_most(row, 0.0);
    }
    for (number, pool) in pools.iter().enumerate() {
        for dim in 0..width {
            let mut row = vec![0.0; columns];
            for shape in 0..shapes {
                let take = pool.takes[shape].as_ref().map_or(0, |takes| takes[dim]);
                row[column(number, shape)] = take as f64;
            }
            packing.at_most(row, pool.free[dim] as f64);
        }
    }
    for (number, pool) in pools.iter().enumerate() {
        for shape in 0..shapes {
            // A shape that may not come is held at none, limits or not.
            if limited || pool.takes[shape].is_none() {
                let mut row = vec![0.0; columns];
                row[column(number, shape)] = 1.0;
                packing.at_most(row, pool.alone[shape] as f64);
            }
        }
    }
    let duals = duals(&packing);
    let parts = |dual: &f64| (dual.max(0.0) * PARTS).min(1e15).round() as u64;
    let by_pool = (0..pools.len()).map(|pool| {
        let first = shapes + pool * width;
        duals[first..first + width].iter().map(parts).collect()
    });
    Prices { by_shape: duals[..shapes].iter().map(parts).collect(), by_pool: by_pool.collect() }
}

/// The most bundles by these prices. Each VM of a shape brings the shape's price; on a host it
/// costs the prices of what it takes, and where it brings more than that, the rest counts as often
/// as the shape fits there alone. So all that is brought is at most all that is paid.
fn bound(fleet: &Fleet, pools: &[Pool], prices: &Prices) -> Option<u64> {
    let per_bundle = fleet.per_bundle.iter().zip(&prices.by_shape);
    let brought: u128 = per_bundle.map(|(per, price)| u128::from(*per) * u128::from(*price)).sum();
    let mut paid: u128 = 0;
    for (pool, prices_here) in pools.iter().zip(&prices.by_pool) {
        let worth = |amounts: &[u64]| -> u128 {
            let each = amounts.iter().zip(prices_here);
            each.map(|(amount, price)| u128::from(*amount) * u128::from(*price)).sum()
        };
        paid += worth(&pool.free);
        for (shape, takes) in pool.takes.iter().enumerate() {
            let Some(takes) = takes else { continue };
            let rest = u128::from(prices.by_shape[shape]).saturating_sub(worth(takes));
            paid += rest * u128::from(pool.alone[shape]);
        }
    }
    u64::try_from(paid.checked_div(brought)?).ok()
}

fn pools(problem: &Problem, fleet: &Fleet) -> Vec<Pool> {
    let mut members: BTreeMap<HostClass, Vec<&Host>> = BTreeMap::new();
    for host in &fleet.hosts {
        let Some(known) = problem.hosts.get(host.ix) else { continue };
        let class = HostClass { pool: known.pool.clone(), capacity: known.capacity.clone() };
        members.entry(class).or_default().push(host);
    }
    let mut sorted: Vec<_> = members.into_iter().collect();
    sorted.sort_by_key(|(class, hosts)| (std::cmp::Reverse(hosts.len()), class.clone()));
    let rest = sorted.split_off(sorted.len().min(MOST_CLASSES));
    let rest: Vec<&Host> = rest.into_iter().flat_map(|(_, hosts)| hosts).collect();
    let mut pools: Vec<Pool> =
        sorted.into_iter().map(|(class, hosts)| thrown_together(Some(class), &hosts)).collect();
    if !rest.is_empty() {
        pools.push(thrown_together(None, &rest));
    }
    pools
}

fn thrown_together(class: Option<HostClass>, hosts: &[&Host]) -> Pool {
    let first = hosts.first();
    let width = first.map_or(0, |host| host.free.len());
    let shapes = first.map_or(0, |host| host.takes.len());
    let takes = (0..shapes).map(|shape| {
        let each = hosts.iter().filter_map(|host| host.takes[shape].as_deref());
        each.map(<[u64]>::to_vec).reduce(|least, takes| {
            least.into_iter().zip(takes).map(|(least, take)| least.min(take)).collect()
        })
    });
    Pool {
        class,
        hosts: hosts.len() as u32,
        free: (0..width).map(|dim| hosts.iter().map(|host| host.free[dim]).sum()).collect(),
        takes: takes.collect(),
        alone: (0..shapes)
            .map(|shape| hosts.iter().map(|host| host.alone[shape].1).sum())
            .collect(),
    }
}
