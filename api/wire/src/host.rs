//! Hosts in JSON: what a caller says about one, and what the service answers.

use crate::bindings::InsideView;
use crate::fault::code;
use crate::hardware::HardwareSpec;
use crate::json::Value;
use crate::limits::{MAX_NAMES, MAX_RULES};
use crate::quantities::{Quantities, amounts_within};
use crate::read::{At, Read, Step};
use crate::rules::{TaintSpec, label_map};
use crate::schema::{LabelsSchema, NameSchema, TotalsSchema};
use crate::words::{HostStateWord, PriceKindWord, Word, choice};
use cluster::{
    Amounts, Dimensions, Generation, Hardware, Host, Location, Name, Power, Price, RegionLatency,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A host as callers describe it. Only `id` and `capacity` are required.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostSpec {
    #[schema(value_type = NameSchema)]
    pub id: Name,
    pub capacity: Quantities,
    /// How many hosts had this id before, plus one. Left out: the service counts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub incarnation: u64,
    #[serde(default)]
    #[schema(required = false)]
    pub state: HostStateWord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub pool: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub region: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub zone: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub rack: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub power_feed: Option<Name>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = LabelsSchema)]
    pub labels: BTreeMap<Name, Name>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 64)]
    pub taints: Vec<TaintSpec>,
    /// Kept back for the system; never given to VMs.
    #[serde(default, skip_serializing_if = "Quantities::is_empty")]
    pub reserved: Quantities,
    /// Overcommit per dimension: 1500 promises half as much again as there is. Left out: 1000.
    #[serde(default, skip_serializing_if = "Quantities::is_empty")]
    pub overcommit_permille: Quantities,
    /// Speed of one core against the reference core. Left out: 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000000)]
    pub benchmark_permille: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<PriceSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<PowerSpec>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 256)]
    pub latencies: Vec<LatencySpec>,
    /// Chance that the host fails within a year, in parts per million.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schema(maximum = 1000000)]
    pub failure_ppm_per_year: u32,
    /// Longest silence before the host is suspected. Left out: no heartbeats are expected.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schema(maximum = 86400000)]
    pub heartbeat_deadline_ms: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<NameSchema>, max_items = 256)]
    pub datastores: Vec<Name>,
    #[serde(default, skip_serializing_if = "HardwareSpec::is_empty")]
    #[schema(required = false)]
    pub hardware: HardwareSpec,
}

/// What an hour of the host costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PriceSpec {
    #[serde(default)]
    #[schema(required = false)]
    pub kind: PriceKindWord,
    /// Millionths of the currency unit.
    pub micros_per_hour: u64,
}

/// Power drawn: either `idle_mw` and `peak_mw`, or `table_mw`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PowerSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_mw: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_mw: Option<u32>,
    /// Readings at 0, 10, ..., 100 percent of load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(min_items = 11, max_items = 11)]
    pub table_mw: Vec<u32>,
}

/// Latency from the host to a user region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LatencySpec {
    #[schema(value_type = NameSchema)]
    pub region: Name,
    pub latency_us: u32,
}

/// What a host's heartbeats say, beside what its operator says in `state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostHealth {
    #[default]
    Healthy,
    Suspect,
    Down,
}

choice!(HostHealth: "healthy" = Healthy, "suspect" = Suspect, "down" = Down);
pub(crate) type HostHealthWord = Word<HostHealth>;

/// A host as the service answers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostView {
    #[serde(flatten)]
    pub spec: HostSpec,
    /// Silent hosts are suspect, then down, and take no new VMs.
    pub health: HostHealthWord,
    /// What VMs may be promised: capacity less reserved, times overcommit.
    pub allocatable: Quantities,
    /// What VMs and reservations on the host have been promised.
    #[schema(value_type = TotalsSchema)]
    pub allocated: Quantities,
    /// What others use beside that, as far as it is reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<TotalsSchema>)]
    pub foreign: Option<Quantities>,
    /// Allocatable less allocated and foreign; zero where more is taken than there is.
    pub free: Quantities,
    /// What is left inside the host and in which pieces, if it lists its hardware. Not in lists
    /// of hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<InsideView>,
    pub vm_count: u64,
    /// How often the host has changed; what `ETag` and `If-Match` carry.
    pub generation: u64,
    /// The cluster revision that this was read at.
    pub revision: u64,
}

impl HostView {
    pub fn new(
        host: &Host,
        health: HostHealth,
        allocated: &Amounts,
        vm_count: u64,
        generation: Generation,
        revision: cluster::Revision,
        dimensions: &Dimensions,
    ) -> Self {
        let promised = |dim| host.allocatable(dim);
        let foreign = &host.foreign.used;
        let taken = |dim| allocated.get(dim).saturating_add(foreign.get(dim));
        let free = |dim| promised(dim).saturating_sub(taken(dim));
        let mut spec = HostSpec::new(host, dimensions);
        spec.capacity = Quantities::full(&host.capacity, dimensions);
        Self {
            spec,
            health: Word(health),
            allocatable: Quantities::of(dimensions.iter().map(|d| (d, promised(d))), dimensions),
            allocated: Quantities::full(allocated, dimensions),
            foreign: (!foreign.is_zero()).then(|| Quantities::full(foreign, dimensions)),
            free: Quantities::of(dimensions.iter().map(|d| (d, free(d))), dimensions),
            inside: None,
            vm_count,
            generation: generation.0,
            revision: revision.0,
        }
    }
}

impl HostSpec {
    pub fn new(host: &Host, dimensions: &Dimensions) -> Self {
        let Location { region, zone, rack, power_feed } = host.location.clone();
        Self {
            id: host.id.clone(),
            capacity: Quantities::sparse(&host.capacity, dimensions),
            incarnation: host.incarnation,
            state: Word(host.state),
            pool: host.pool.clone(),
            region,
            zone,
            rack,
            power_feed,
            labels: label_map(&host.labels),
            taints: host.taints.iter().map(TaintSpec::from).collect(),
            reserved: Quantities::sparse(&host.reserved, dimensions),
            overcommit_permille: Quantities::sparse(&host.overcommit_permille, dimensions),
            benchmark_permille: (host.benchmark_permille != 0).then_some(host.benchmark_permille),
            price: (host.price != Price::default()).then_some(PriceSpec {
                kind: Word(host.price.kind),
                micros_per_hour: host.price.micros_per_hour,
            }),
            power: (host.power != Power::default()).then(|| PowerSpec::from(&host.power)),
            latencies: host.latencies.iter().map(LatencySpec::from).collect(),
            failure_ppm_per_year: host.failure_ppm_per_year,
            heartbeat_deadline_ms: host.heartbeat_deadline_ms,
            datastores: host.datastores.clone(),
            hardware: HardwareSpec::from(host.hardware.as_ref()),
        }
    }
}

impl From<&Power> for PowerSpec {
    fn from(power: &Power) -> Self {
        match power {
            Power::Linear { idle_mw, peak_mw } => {
                Self { idle_mw: Some(*idle_mw), peak_mw: Some(*peak_mw), table_mw: Vec::new() }
            }
            Power::Table(table) => Self { table_mw: table.to_vec(), ..Self::default() },
        }
    }
}

impl From<&RegionLatency> for LatencySpec {
    fn from(latency: &RegionLatency) -> Self {
        Self { region: latency.region.clone(), latency_us: latency.latency_us }
    }
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

const U32: u64 = u32::MAX as u64;
/// A hundredfold; whoever promises more has mixed up his units.
const MAX_OVERCOMMIT_PERMILLE: u64 = 100_000;
const DAY_MS: u64 = 86_400_000;

impl Read for Host {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let id: Option<Name> = fields.required("id");
        let capacity: Option<Amounts> = fields.required("capacity");
        // Both stand in for what is missing; the fault that was noted refuses the body.
        let id = id.or_else(|| Name::new("missing").ok())?;
        let mut host = Host::new(id, capacity.unwrap_or_default());
        host.incarnation = fields.integer("incarnation", 0..=u64::MAX).unwrap_or(0);
        host.state = fields.or_default("state");
        host.pool = fields.optional("pool");
        host.location = Location {
            region: fields.optional("region"),
            zone: fields.optional("zone"),
            rack: fields.optional("rack"),
            power_feed: fields.optional("power_feed"),
        };
        host.labels = fields.or_default("labels");
        host.taints = fields.list("taints", MAX_RULES);
        host.reserved = fields.or_default("reserved");
        let overcommit =
            |value, at: &mut At<'v>| amounts_within(value, at, 1..=MAX_OVERCOMMIT_PERMILLE);
        host.overcommit_permille =
            fields.with("overcommit_permille", overcommit).unwrap_or_default();
        host.benchmark_permille = fields.integer("benchmark_permille", 1..=1_000_000).unwrap_or(0);
        host.price = fields.or_default("price");
        host.power = fields.or_default("power");
        host.latencies = fields.list("latencies", MAX_NAMES);
        host.failure_ppm_per_year =
            fields.integer("failure_ppm_per_year", 0..=1_000_000).unwrap_or(0);
        host.heartbeat_deadline_ms =
            fields.integer("heartbeat_deadline_ms", 0..=DAY_MS).unwrap_or(0);
        host.datastores = fields.list("datastores", MAX_NAMES);
        host.hardware = Box::new(fields.or_default::<Hardware>("hardware"));
        check_reserved(&host, fields.at);
        fields.read_only(&[
            "health",
            "allocatable",
            "allocated",
            "foreign",
            "free",
            "vm_count",
            "generation",
            "revision",
        ]);
        fields.finish();
        Some(host)
    }
}

fn check_reserved(host: &Host, at: &mut At<'_>) {
    let dimensions = at.dimensions.clone();
    for (dim, reserved) in host.reserved.iter() {
        let capacity = host.capacity.get(dim);
        if reserved > capacity {
            let name = dimensions.name(dim);
            let message = format!("{reserved} {name} are reserved of a capacity of {capacity}");
            let hint = "reserve no more than the capacity";
            at.within(Step::Field(Cow::Borrowed("reserved")), |at| {
                at.within(Step::Field(Cow::Owned(name.to_owned())), |at| {
                    at.fault(code::EXCEEDS_CAPACITY, message, hint);
                });
            });
        }
    }
}

impl Read for Price {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let kind = fields.or_default("kind");
        // A million units of currency an hour, times a million micros.
        let micros_per_hour = fields.required_integer("micros_per_hour", 0..=1_000_000_000_000);
        fields.finish();
        Some(Price { kind, micros_per_hour: micros_per_hour? })
    }
}

impl Read for Power {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let idle_mw = fields.integer("idle_mw", 0..=U32);
        let peak_mw = fields.integer("peak_mw", idle_mw.map_or(0, u64::from)..=U32);
        let table = fields.with("table_mw", read_table);
        let hint = "give \"idle_mw\" and \"peak_mw\", or \"table_mw\"";
        for name in ["idle_mw", "peak_mw"] {
            let (code, message) = match (fields.has(name), fields.has("table_mw")) {
                (true, true) => (code::CONFLICTING_FIELDS, "excludes \"table_mw\""),
                (false, false) => (code::MISSING_FIELD, "is missing"),
                _ => continue,
            };
            fields.at.fault_in(name, code, format!("{name:?} {message}"), hint);
        }
        fields.finish();
        if table.is_some() {
            return table;
        }
        Some(Power::Linear { idle_mw: idle_mw?, peak_mw: peak_mw? })
    }
}

fn read_table<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Power> {
    let table: Vec<Milliwatts> = at.list(value, 11)?;
    let table: Vec<u32> = table.into_iter().map(|Milliwatts(reading)| reading).collect();
    let length = table.len();
    let table: Option<[u32; 11]> = table.try_into().ok();
    if table.is_none() && at.is_faultless() {
        let message = format!("{length} readings, 11 are needed");
        at.fault(code::TOO_FEW_ITEMS, message, "send the power at 0, 10, ..., 100 percent of load");
    }
    Some(Power::Table(Box::new(table?)))
}

struct Milliwatts(u32);

impl Read for Milliwatts {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        u32::try_from(at.integer(value, 0..=U32)?).ok().map(Self)
    }
}

impl Read for RegionLatency {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let region = fields.required("region");
        let latency_us = fields.required_integer("latency_us", 0..=U32);
        fields.finish();
        Some(RegionLatency { region: region?, latency_us: latency_us? })
    }
}
