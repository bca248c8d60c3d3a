//! Carbon: what hosts draw x the grams for a kilowatt hour of their zone, or else their region, at
//! the hour of day that is set, in milligrams an hour. The range is as of energy.

use super::Natural;
use super::facts::Facts;
use cluster::Host;
use cluster::assignment::Goal;

/// Milliwatts x grams for a kilowatt hour are micrograms an hour.
const MICROGRAMS: u64 = 1_000;

pub(super) fn goals(facts: &mut Facts<'_>) -> Natural {
    let setting = facts.setting;
    let hour = usize::from(setting.hour) % 24;
    let intensity = |host: &Host| {
        let sites = [&host.location.zone, &host.location.region];
        let known = sites.into_iter().flatten().find_map(|site| setting.carbon.get(site));
        known.map_or(setting.carbon_elsewhere, |hours| hours[hour]).into()
    };
    let goal = Goal::Power {
        resource: facts.cpu(),
        curves: facts.curves(intensity),
        keep_on: setting.keep_on,
    };
    Natural { goals: vec![goal], per_unit: MICROGRAMS }
}
