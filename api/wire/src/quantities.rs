//! Amounts as JSON objects: `{"cpu_millis": 2000, "memory_mib": 4096}`.

use crate::fault::code;
use crate::json::{Value, shorten};
use crate::read::{At, Read, Step, suggestion};
use cluster::{Amounts, Dim, Dimensions, MAX_AMOUNT};
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::ops::RangeInclusive;
use utoipa::openapi::schema::{
    AdditionalProperties, KnownFormat, ObjectBuilder, SchemaFormat, Type,
};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Numbers by dimension, in the order of the dimensions.
///
/// Wide enough for sums over a whole fleet, so not bounded by what one host may have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quantities(pub Vec<(String, u64)>);

impl Quantities {
    /// Every dimension, zeros too, so that objects side by side have the same members.
    pub fn full(amounts: &Amounts, dimensions: &Dimensions) -> Self {
        Self::of(dimensions.iter().map(|dim| (dim, amounts.get(dim))), dimensions)
    }

    /// Only the dimensions that are not zero: what a request would have said.
    pub fn sparse(amounts: &Amounts, dimensions: &Dimensions) -> Self {
        Self::of(amounts.iter(), dimensions)
    }

    pub fn of(rows: impl Iterator<Item = (Dim, u64)>, dimensions: &Dimensions) -> Self {
        Self(rows.map(|(dim, amount)| (dimensions.name(dim).to_owned(), amount)).collect())
    }

    /// The amount of a dimension, zero if it is not there.
    pub fn get(&self, name: &str) -> u64 {
        self.0.iter().find(|(dimension, _)| dimension == name).map_or(0, |(_, amount)| *amount)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Quantities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (dimension, amount) in &self.0 {
            map.serialize_entry(dimension, amount)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Quantities {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Quantities;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of amounts")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Quantities, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Quantities(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// The built-in dimensions; `schema::declare_dimensions` adds the configured ones.
impl PartialSchema for Quantities {
    fn schema() -> RefOr<Schema> {
        let mut object = ObjectBuilder::new()
            .description(Some("An amount per resource dimension; what is left out is zero."))
            .additional_properties(Some(AdditionalProperties::FreeForm(false)));
        let dimensions = Dimensions::default();
        for dim in dimensions.iter() {
            object = object.property(dimensions.name(dim), amount_schema());
        }
        object.build().into()
    }
}

impl ToSchema for Quantities {
    fn name() -> Cow<'static, str> {
        "Quantities".into()
    }
}

pub(crate) fn amount_schema() -> ObjectBuilder {
    unbounded_schema().maximum(Some(MAX_AMOUNT))
}

pub(crate) fn unbounded_schema() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(0))
}

impl Read for Amounts {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        amounts_within(value, at, 0..=MAX_AMOUNT)
    }
}

/// Amounts that each lie in `range`.
pub(crate) fn amounts_within<'v>(
    value: &'v Value<'v>,
    at: &mut At<'v>,
    range: RangeInclusive<u64>,
) -> Option<Amounts> {
    let mut amounts = Amounts::zero();
    for (dim, amount) in pairs_within(value, at, range)? {
        amounts.set(dim, amount);
    }
    Some(amounts)
}

/// The dimensions that are written, zeros too.
pub(crate) fn pairs_within<'v>(
    value: &'v Value<'v>,
    at: &mut At<'v>,
    range: RangeInclusive<u64>,
) -> Option<Vec<(Dim, u64)>> {
    let mut pairs = Vec::new();
    for (name, value) in at.members(value)? {
        let range = range.clone();
        pairs.extend(at.within(Step::Field(Cow::Borrowed(name.as_ref())), |at| {
            let dim = at.dimensions.find(name);
            if dim.is_none() {
                unknown_dimension(name, at);
            }
            let amount = at.integer(value, range);
            dim.zip(amount)
        }));
    }
    Some(pairs)
}

fn unknown_dimension(name: &str, at: &mut At<'_>) {
    let dimensions = at.dimensions.clone();
    let known: Vec<&str> = dimensions.iter().map(|dim| dimensions.name(dim)).collect();
    let message = format!("{:?} is not a declared dimension", shorten(name));
    at.fault(code::UNKNOWN_DIMENSION, message, suggestion(name, &known));
}
