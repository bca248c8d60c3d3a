//! What goals need to know that no host or VM says, in JSON.

use crate::fault::code;
use crate::json::Value;
use crate::read::{At, Step};
use cluster::{GoalSetting, Name};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Sites that carbon can be told for at most.
const MOST_SITES: usize = 1_000;

macro_rules! setting {
    ($($(#[$doc:meta])* $field:ident: $type:ty = $most:tt,)+) => {
        /// What goals need to know that no host or VM says. What is left out is as documented.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        pub struct GoalSettingSpec {
            $($(#[$doc])*
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[schema(maximum = $most)]
            pub $field: Option<$type>,)+
            /// Grams of carbon dioxide for a kilowatt hour, for each of the 24 hours of the day, by
            /// zone or region.
            #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
            pub carbon: BTreeMap<String, Vec<u32>>,
        }

        pub(super) fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<GoalSetting> {
            let mut fields = at.fields(value)?;
            let mut setting = GoalSetting::default();
            $(if let Some(found) = fields.integer(stringify!($field), 0..=$most) {
                setting.$field = found;
            })+
            setting.carbon = fields.with("carbon", carbon).unwrap_or_default();
            fields.finish();
            Some(setting)
        }
    };
}

setting! {
    /// Hosts without VMs that stay on, the cheapest. 0 unless said.
    keep_on: u32 = 1_000_000,
    /// Hour of the day for which carbon is counted. 12 unless said.
    hour: u8 = 23,
    /// Grams a kilowatt hour where nothing is said of zone and region. 475 unless said.
    carbon_elsewhere: u32 = 10_000,
    /// What a rack is cooled for. 15000 unless said.
    rack_limit_watts: u32 = 4_000_000,
    /// Chance that a spot host is taken back within an hour. 5000 unless said.
    spot_interruption_ppm: u32 = 1_000_000,
    /// What it costs that a VM of normal priority is interrupted. 5000000 unless said.
    spot_penalty_micros: u64 = 2_000_000_000,
    /// From a host to a user region that it knows no latency to. 300000 unless said.
    unknown_region_us: u32 = 10_000_000,
    /// Between VMs in the same rack. 50 unless said.
    rack_us: u32 = 10_000_000,
    /// Between VMs in the same zone. 250 unless said.
    zone_us: u32 = 10_000_000,
    /// Between VMs in the same region. 1000 unless said.
    region_us: u32 = 10_000_000,
    /// Between VMs in different regions. 30000 unless said.
    beyond_us: u32 = 10_000_000,
    /// How often hosts fail that do not say it, in a year. 40000 unless said.
    host_failures_ppm: u32 = 1_000_000,
    /// How often racks fail as a whole. 10000 unless said.
    rack_failures_ppm: u32 = 1_000_000,
    /// How often power feeds fail. 5000 unless said.
    power_feed_failures_ppm: u32 = 1_000_000,
    /// How often zones fail. 2000 unless said.
    zone_failures_ppm: u32 = 1_000_000,
    /// How full hosts may be before load on them counts. 850 unless said.
    safe_permille: u32 = 1_000,
    /// Copying a VM that has to stop for it counts so much of its memory. 3000 unless said.
    cold_permille: u32 = 100_000,
}

fn carbon<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<BTreeMap<Name, [u32; 24]>> {
    let members = at.members(value)?;
    if members.len() > MOST_SITES {
        let message = format!("{} sites, at most {MOST_SITES} are allowed", members.len());
        at.fault(code::TOO_MANY_ITEMS, message, format!("send at most {MOST_SITES}"));
        return None;
    }
    let mut sites = BTreeMap::new();
    for (name, value) in members {
        let site = at.within(Step::Field(Cow::Borrowed(name)), |at| {
            let (site, hours) = (at.name(name)?, at.items(value, 24)?);
            if hours.len() < 24 {
                let message = format!("{} numbers where 24 are expected", hours.len());
                at.fault(code::INVALID_VALUE, message, "send one for each hour of the day");
                return None;
            }
            let mut grams = [0; 24];
            for (row, (hour, value)) in grams.iter_mut().zip(hours).enumerate() {
                let read = at.within(Step::Item(row), |at| at.integer(value, 0..=10_000));
                *hour = u32::try_from(read?).ok()?;
            }
            Some((site, grams))
        });
        sites.extend(site);
    }
    Some(sites)
}
