//! Cost: what using hosts adds to the bill, in millionths of the currency an hour.
//!
//! On-demand and spot hosts cost their price x the share of them that is taken, by the resource that
//! is taken most. Reserved hosts are paid for: they cost nothing until they are full, so that they
//! are filled first. On spot hosts each VM also costs the chance of an interruption x what that
//! would cost, by its priority. The range is from the cheapest room to the dearest.

use super::Natural;
use super::facts::{Facts, classes};
use cluster::assignment::{Goal, PARTS, Rates};
use cluster::{PriceKind, PriorityClass, Vm};

/// Worth is counted in thousandths, so that cheap hosts are not all alike.
const FINER: u64 = 1_000;
const PPM: u64 = 1_000_000;

pub(super) fn goals(facts: &mut Facts<'_>) -> Natural {
    let class = |row: usize| {
        let price = facts.host(row).price.marginal_micros_per_hour();
        // What is free of charge is alike, whatever it has.
        (price, if price == 0 { Vec::new() } else { facts.whole(row) })
    };
    let (kinds, of_host) = classes((0..facts.hosts()).map(class));
    let resources = facts.problem.resources.len();
    let rates = kinds.iter().map(|(price, whole)| match price {
        0 => vec![0; resources],
        _ => whole.iter().map(|&whole| rate(price * FINER, whole)).collect(),
    });
    let rates = Rates { classes: rates.collect(), of_host };
    let mut goals = vec![Goal::Share(rates)];
    goals.extend(risk(facts));
    Natural { goals, per_unit: FINER }
}

/// What a unit of a resource adds, in parts of `PARTS`, when all of it costs `price`.
pub(super) fn rate(price: u64, whole: u64) -> u64 {
    match whole {
        0 => 0,
        _ => {
            let rate = (u128::from(price) << PARTS) / u128::from(whole);
            u64::try_from(rate).unwrap_or(u64::MAX)
        }
    }
}

fn risk(facts: &Facts<'_>) -> Option<Goal> {
    let spot = |row: usize| u32::from(facts.host(row).price.kind == PriceKind::Spot);
    let hosts: Vec<u32> = (0..facts.hosts()).map(spot).collect();
    let setting = facts.setting;
    let whole = u128::from(setting.spot_penalty_micros) * u128::from(setting.spot_interruption_ppm);
    let quarter = whole * u128::from(FINER) / u128::from(4 * PPM);
    let (quarters, vms) = classes(facts.vms.iter().map(|vm| quarters(vm)));
    let cost = |&quarters: &u64| (quarter * u128::from(quarters)).min(u128::from(u64::MAX)) as u64;
    let costs = quarters.iter().map(|quarters| vec![0, cost(quarters)]).collect();
    hosts.contains(&1).then_some(Goal::Table { costs, vms, hosts })
}

/// How much of the penalty an interruption of a VM costs.
fn quarters(vm: &Vm) -> u64 {
    match vm.priority {
        _ if vm.spot => 0,
        PriorityClass::Critical => 64,
        PriorityClass::High => 16,
        PriorityClass::Normal => 4,
        PriorityClass::Low => 1,
        PriorityClass::Scavenger => 0,
    }
}
