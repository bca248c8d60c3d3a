//! Shapes in query strings, and how many of them fit, in JSON.

use crate::quantities::Quantities;
use crate::schema::NameSchema;
use cluster::{Amounts, Dimensions, MAX_AMOUNT, Name};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Most VMs of one shape in a bundle.
const MOST_PER_BUNDLE: u32 = 1_000;

/// How many more VMs fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SlotsView {
    pub shapes: Vec<ShapeSlots>,
    /// Whether the shapes are those of the placed VMs, because none were asked for.
    pub from_placed_vms: bool,
    pub bundles: BundleView,
    /// What a unit of each dimension is worth, by class of hosts; largest classes first.
    pub prices: Vec<ClassPriceView>,
    pub revision: u64,
}

/// How many more of one shape fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShapeSlots {
    pub demand: Quantities,
    /// VMs of this shape in each bundle.
    pub per_bundle: u32,
    /// How many more fit if no other shape comes. Exact.
    pub slots: u64,
}

/// How many bundles fit: all shapes at once, so many of each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BundleView {
    /// So many fit for certain.
    pub at_least: u64,
    /// Not one more than this fits.
    pub at_most: u64,
    /// Whether the two are the same.
    pub exact: bool,
}

/// What a unit of each dimension is worth on hosts of one pool with the same capacity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClassPriceView {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub pool: Option<Name>,
    /// Left out for all hosts beyond the largest classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Quantities>,
    pub hosts: u32,
    /// By dimension: bundles that one more unit makes room for, in billionths. 0 for what is not
    /// scarce.
    pub bundles_per_unit_billionths: BTreeMap<String, u64>,
}

/// Reads a shape: `cpu_millis:2000,memory_mib:4096`, or `3*cpu_millis:2000,...` for three in each
/// bundle. The error says what is wrong.
pub fn read_shape(text: &str, dimensions: &Dimensions) -> Result<(Amounts, u32), String> {
    let (per_bundle, amounts) = match text.split_once('*') {
        Some((count, rest)) => {
            let count = count.trim().parse().ok().filter(|n| (1..=MOST_PER_BUNDLE).contains(n));
            let wrong = || format!("{text:?}: before * comes a number from 1 to {MOST_PER_BUNDLE}");
            (count.ok_or_else(wrong)?, rest)
        }
        None => (1, text),
    };
    let mut demand = Amounts::zero();
    for part in amounts.split(',') {
        let (name, amount) = part
            .split_once(':')
            .ok_or_else(|| format!("{part:?} in a shape is not DIMENSION:AMOUNT"))?;
        let known = || dimensions.iter().map(|dim| dimensions.name(dim)).collect::<Vec<_>>();
        let dim = dimensions
            .find(name.trim())
            .ok_or_else(|| format!("{name:?} is no dimension; there are {}", known().join(", ")))?;
        let amount = amount.trim().parse().ok().filter(|amount| (1..=MAX_AMOUNT).contains(amount));
        let wrong = || format!("{part:?}: the amount must be from 1 to {MAX_AMOUNT}");
        if demand.get(dim) > 0 {
            return Err(format!("{name:?} is there twice in {text:?}"));
        }
        demand.set(dim, amount.ok_or_else(wrong)?);
    }
    Ok((demand, per_bundle))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::Dim;

    #[test]
    fn shapes_are_read_or_refused_with_what_is_wrong() {
        let read = |text| read_shape(text, &Dimensions::default());
        let demand = Amounts::cpu_memory(2_000, 4_096);
        assert_eq!(read("cpu_millis:2000,memory_mib:4096"), Ok((demand.clone(), 1)));
        assert_eq!(read("3*memory_mib:4096,cpu_millis:2000"), Ok((demand, 3)));
        let disk = Amounts::zero().with(Dim::DISK_GIB, 1);
        assert_eq!(read("disk_gib:1"), Ok((disk, 1)));
        for (wrong, says) in [
            ("", "not DIMENSION:AMOUNT"),
            ("cpu_millis", "not DIMENSION:AMOUNT"),
            ("cpu_millis:0", "from 1 to"),
            ("cpu_millis:-1", "from 1 to"),
            ("cpu_millis:99999999999", "from 1 to"),
            ("ram:1", "no dimension"),
            ("cpu_millis:1,cpu_millis:2", "twice"),
            ("0*cpu_millis:1", "before *"),
            ("many*cpu_millis:1", "before *"),
        ] {
            let error = read(wrong).expect_err(wrong);
            assert!(error.contains(says), "{wrong}: {error}");
        }
    }
}
