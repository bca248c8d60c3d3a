//! What goals need to know that no host or VM says.

use crate::Name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Every field has a default that is plausible somewhere; operators know better.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Setting {
    /// Hosts without VMs that stay on, the cheapest.
    pub keep_on: u32,
    /// Hour of the day for which carbon is counted, 0 to 23.
    pub hour: u8,
    /// Grams of carbon dioxide for a kilowatt hour, for each hour of the day, by zone or region.
    pub carbon: BTreeMap<Name, [u32; 24]>,
    /// The same where nothing is said of zone and region; about the world's mean.
    pub carbon_elsewhere: u32,
    /// What a rack is cooled for.
    pub rack_limit_watts: u32,
    /// Chance that a spot host is taken back within an hour.
    pub spot_interruption_ppm: u32,
    /// What it costs that a VM of normal priority is interrupted. Priorities count 16, 4, 1, 1/4 and
    /// nothing of it; VMs that agreed to be spot, nothing.
    pub spot_penalty_micros: u64,
    /// From a host to a user region that it knows no latency to.
    pub unknown_region_us: u32,
    /// Between VMs in the same rack, zone and region, and beyond.
    pub rack_us: u32,
    pub zone_us: u32,
    pub region_us: u32,
    pub beyond_us: u32,
    /// How often hosts fail that do not say it, and racks, power feeds and zones as a whole.
    pub host_failures_ppm: u32,
    pub rack_failures_ppm: u32,
    pub power_feed_failures_ppm: u32,
    pub zone_failures_ppm: u32,
    /// How full hosts may be before load on them counts.
    pub safe_permille: u32,
    /// Copying a VM that has to stop for it counts so much of its memory.
    pub cold_permille: u32,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            keep_on: 0,
            hour: 12,
            carbon: BTreeMap::new(),
            carbon_elsewhere: 475,
            rack_limit_watts: 15_000,
            spot_interruption_ppm: 5_000,
            spot_penalty_micros: 5_000_000,
            unknown_region_us: 300_000,
            rack_us: 50,
            zone_us: 250,
            region_us: 1_000,
            beyond_us: 30_000,
            host_failures_ppm: 40_000,
            rack_failures_ppm: 10_000,
            power_feed_failures_ppm: 5_000,
            zone_failures_ppm: 2_000,
            safe_permille: 850,
            cold_permille: 3_000,
        }
    }
}

/// What is wrong with a setting, by field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    #[error("{field} is {found}, at most {most} is allowed")]
    TooLarge { field: &'static str, found: u64, most: u64 },
}

/// Beyond these, sums over large fleets would not fit.
const MOST_PPM: u32 = 1_000_000;
const MOST_US: u32 = 10_000_000;
const MOST_CARBON: u32 = 10_000;
const MOST_PERMILLE: u32 = 100_000;
const MOST_MICROS: u64 = 1_000_000_000_000;

impl Setting {
    pub fn check(&self) -> Result<(), SettingError> {
        let carbon = self.carbon.values().flatten().copied().max().unwrap_or(0);
        let fields: [(&'static str, u64, u64); 16] = [
            ("hour", self.hour.into(), 23),
            ("carbon", carbon.into(), MOST_CARBON.into()),
            ("carbon_elsewhere", self.carbon_elsewhere.into(), MOST_CARBON.into()),
            ("spot_interruption_ppm", self.spot_interruption_ppm.into(), MOST_PPM.into()),
            ("spot_penalty_micros", self.spot_penalty_micros, MOST_MICROS),
            ("unknown_region_us", self.unknown_region_us.into(), MOST_US.into()),
            ("rack_us", self.rack_us.into(), MOST_US.into()),
            ("zone_us", self.zone_us.into(), MOST_US.into()),
            ("region_us", self.region_us.into(), MOST_US.into()),
            ("beyond_us", self.beyond_us.into(), MOST_US.into()),
            ("host_failures_ppm", self.host_failures_ppm.into(), MOST_PPM.into()),
            ("rack_failures_ppm", self.rack_failures_ppm.into(), MOST_PPM.into()),
            ("power_feed_failures_ppm", self.power_feed_failures_ppm.into(), MOST_PPM.into()),
            ("zone_failures_ppm", self.zone_failures_ppm.into(), MOST_PPM.into()),
            ("safe_permille", self.safe_permille.into(), 1_000),
            ("cold_permille", self.cold_permille.into(), MOST_PERMILLE.into()),
        ];
        match fields.into_iter().find(|(_, found, most)| found > most) {
            Some((field, found, most)) => Err(SettingError::TooLarge { field, found, most }),
            None => Ok(()),
        }
    }
}
