//! Labels, taints and the rules a VM carries, in JSON.
//!
//! A rule with a `weight` is a wish and counts that much; without one it must hold.

use crate::fault::code;
use crate::json::{Value, shorten};
use crate::limits::{MAX_LABELS, MAX_NAMES};
use crate::read::{At, Read, Step};
use crate::schema::{LevelSchema, NameSchema};
use crate::words::{AffinityKindWord, TaintEffectWord, Word, choice};
use cluster::{
    Affinity, DataRef, DataSite, Labels, Level, Name, Selector, SelectorOp, Spread, Strength,
    Subject, Taint, Toleration, TolerationOp,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A mark on a host that keeps VMs away unless they tolerate it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaintSpec {
    #[schema(value_type = NameSchema)]
    pub key: Name,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub value: Option<Name>,
    pub effect: TaintEffectWord,
}

/// What lets a VM onto a tainted host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TolerationSpec {
    /// Left out: every key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub key: Option<Name>,
    /// Left out: `equal` if a value is given, otherwise `exists`.
    #[schema(required = false)]
    pub op: TolerationWord,
    /// With `equal`: the taint's value; left out, a taint without value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub value: Option<Name>,
    /// Left out: every effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffectWord>,
}

/// A condition on one host label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SelectorSpec {
    #[schema(value_type = NameSchema)]
    pub key: Name,
    /// Left out: `in`.
    #[schema(required = false)]
    pub op: SelectorWord,
    /// With `in` and `not_in` only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<NameSchema>, max_items = 256)]
    pub values: Vec<Name>,
}

/// Together with or apart from a VM, a group or named hosts: exactly one of the three.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AffinitySpec {
    pub kind: AffinityKindWord,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub vm: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub group: Option<Name>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<NameSchema>, max_items = 256)]
    pub hosts: Vec<Name>,
    /// Left out: `host`.
    #[schema(value_type = LevelSchema, required = false)]
    pub level: String,
    /// Left out: the rule must hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000)]
    pub weight: Option<u16>,
}

/// Keeps the members of a group evenly spread over the domains of a level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpreadSpec {
    #[schema(value_type = NameSchema)]
    pub group: Name,
    #[schema(value_type = LevelSchema)]
    pub level: String,
    /// Largest allowed difference between the fullest and the emptiest domain. Left out: 1.
    #[schema(minimum = 1, required = false)]
    pub max_skew: u32,
    /// Left out: the rule must hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000)]
    pub weight: Option<u16>,
}

/// A piece of the VM's data: exactly one of the five places.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DataSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub host: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub rack: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub zone: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub region: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub datastore: Option<Name>,
    /// Weight against the VM's other pieces. Left out: 1.
    #[schema(minimum = 1, maximum = 1000, required = false)]
    pub weight: u16,
}

/// How a selector compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SelectorKind {
    #[default]
    In,
    NotIn,
    Exists,
    Missing,
}

/// How a toleration compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TolerationKind {
    Exists,
    Equal,
}

choice!(SelectorKind: "in" = In, "not_in" = NotIn, "exists" = Exists, "missing" = Missing);
choice!(TolerationKind: "exists" = Exists, "equal" = Equal);
pub(crate) type SelectorWord = Word<SelectorKind>;
pub(crate) type TolerationWord = Word<TolerationKind>;

impl From<&Taint> for TaintSpec {
    fn from(taint: &Taint) -> Self {
        let Taint { key, value, effect } = taint.clone();
        Self { key, value, effect: Word(effect) }
    }
}

impl From<&Toleration> for TolerationSpec {
    fn from(toleration: &Toleration) -> Self {
        let Toleration { key, op, effect } = toleration.clone();
        let (op, value) = match op {
            TolerationOp::Exists => (TolerationKind::Exists, None),
            TolerationOp::Equal(value) => (TolerationKind::Equal, value),
        };
        Self { key, op: Word(op), value, effect: effect.map(Word) }
    }
}

impl From<&Selector> for SelectorSpec {
    fn from(selector: &Selector) -> Self {
        let (op, values) = match &selector.op {
            SelectorOp::In(values) => (SelectorKind::In, values.clone()),
            SelectorOp::NotIn(values) => (SelectorKind::NotIn, values.clone()),
            SelectorOp::Exists => (SelectorKind::Exists, Vec::new()),
            SelectorOp::Missing => (SelectorKind::Missing, Vec::new()),
        };
        Self { key: selector.key.clone(), op: Word(op), values }
    }
}

impl From<&Affinity> for AffinitySpec {
    fn from(rule: &Affinity) -> Self {
        let (mut vm, mut group, mut hosts) = (None, None, Vec::new());
        match rule.subject.clone() {
            Subject::Vm(id) => vm = Some(id),
            Subject::Group(name) => group = Some(name),
            Subject::Hosts(ids) => hosts = ids,
        }
        let (kind, level, weight) = (Word(rule.kind), rule.level.name(), weight(rule.strength));
        Self { kind, vm, group, hosts, level, weight }
    }
}

impl From<&Spread> for SpreadSpec {
    fn from(rule: &Spread) -> Self {
        Self {
            group: rule.group.clone(),
            level: rule.level.name(),
            max_skew: rule.max_skew,
            weight: weight(rule.strength),
        }
    }
}

impl From<&DataRef> for DataSpec {
    fn from(data: &DataRef) -> Self {
        let mut spec = Self { weight: data.weight, ..Self::default() };
        match data.site.clone() {
            DataSite::Host(name) => spec.host = Some(name),
            DataSite::Rack(name) => spec.rack = Some(name),
            DataSite::Zone(name) => spec.zone = Some(name),
            DataSite::Region(name) => spec.region = Some(name),
            DataSite::Datastore(name) => spec.datastore = Some(name),
        }
        spec
    }
}

/// Labels as an object.
pub(crate) fn label_map(labels: &Labels) -> BTreeMap<Name, Name> {
    labels.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn weight(strength: Strength) -> Option<u16> {
    match strength {
        Strength::Required => None,
        Strength::Preferred(weight) => Some(weight),
    }
}

impl Read for Labels {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let members = at.members(value)?;
        if members.len() > MAX_LABELS {
            let message = format!("{} labels, at most {MAX_LABELS} are allowed", members.len());
            at.fault(code::TOO_MANY_ITEMS, message, format!("send at most {MAX_LABELS}"));
            return None;
        }
        let mut labels = Labels::default();
        for (key, value) in members {
            at.within(Step::Field(Cow::Borrowed(key.as_ref())), |at| {
                let key = at.name(key);
                let value = Name::read(value, at);
                if let (Some(key), Some(value)) = (key, value) {
                    labels.insert(key, value);
                }
            });
        }
        Some(labels)
    }
}

impl Read for Level {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let text = at.text(value)?;
        if let Some(key) = text.strip_prefix("label:") {
            return at.name(key).map(Level::Label);
        }
        let known = [Level::Host, Level::Rack, Level::PowerFeed, Level::Zone, Level::Region];
        let level = known.into_iter().find(|level| level.name() == text);
        if level.is_none() {
            let choices = ["host", "rack", "power_feed", "zone", "region", "label:KEY"];
            at.unknown_choice(text, &choices);
        }
        level
    }
}

impl Read for Taint {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let key = fields.required("key");
        let value = fields.optional("value");
        let effect = fields.required("effect");
        fields.finish();
        Some(Taint { key: key?, value, effect: effect? })
    }
}

impl Read for Toleration {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let key = fields.optional("key");
        let kind = fields.optional("op");
        let value: Option<Name> = fields.optional("value");
        let effect = fields.optional("effect");
        if kind == Some(TolerationKind::Exists) && value.is_some() {
            let message = "\"exists\" takes any value, so \"value\" has no meaning";
            fields.at.fault_in(
                "value",
                code::CONFLICTING_FIELDS,
                message,
                "leave \"value\" out, or set \"op\" to \"equal\"",
            );
        }
        fields.finish();
        let op = match kind {
            Some(TolerationKind::Exists) => TolerationOp::Exists,
            None if value.is_none() => TolerationOp::Exists,
            Some(TolerationKind::Equal) | None => TolerationOp::Equal(value),
        };
        Some(Toleration { key, op, effect })
    }
}

impl Read for Selector {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let key = fields.required("key");
        let kind = fields.optional("op").unwrap_or_default();
        let values: Vec<Name> = fields.list("values", MAX_NAMES);
        let takes_values = matches!(kind, SelectorKind::In | SelectorKind::NotIn);
        if takes_values && !fields.has("values") {
            let message = "\"in\" and \"not_in\" compare with values, and none are given";
            fields.at.fault_in("values", code::MISSING_FIELD, message, "add \"values\"");
        }
        if !takes_values && fields.has("values") {
            let message = "\"exists\" and \"missing\" compare with no values";
            let hint = "leave \"values\" out, or set \"op\" to \"in\" or \"not_in\"";
            fields.at.fault_in("values", code::CONFLICTING_FIELDS, message, hint);
        }
        fields.finish();
        let op = match kind {
            SelectorKind::In => SelectorOp::In(values),
            SelectorKind::NotIn => SelectorOp::NotIn(values),
            SelectorKind::Exists => SelectorOp::Exists,
            SelectorKind::Missing => SelectorOp::Missing,
        };
        Some(Selector { key: key?, op })
    }
}

impl Read for Affinity {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let kind = fields.required("kind");
        let vm = fields.optional("vm").map(Subject::Vm);
        let group = fields.optional("group").map(Subject::Group);
        let hosts = fields.with("hosts", |value, at| at.list(value, MAX_NAMES));
        let hosts = hosts.map(Subject::Hosts);
        let given = fields.given(&["vm", "group", "hosts"]);
        exactly_one(fields.at, &given, "\"vm\", \"group\" and \"hosts\"");
        let level = fields.optional("level").unwrap_or(Level::Host);
        let strength = strength(fields.integer("weight", 1..=1000));
        fields.finish();
        Some(Affinity { kind: kind?, subject: vm.or(group).or(hosts)?, level, strength })
    }
}

impl Read for Spread {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let group = fields.required("group");
        let level = fields.required("level");
        let max_skew = fields.integer("max_skew", 1..=u64::from(u32::MAX)).unwrap_or(1);
        let strength = strength(fields.integer("weight", 1..=1000));
        fields.finish();
        Some(Spread { group: group?, level: level?, max_skew, strength })
    }
}

impl Read for DataRef {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let host = fields.optional("host").map(DataSite::Host);
        let rack = fields.optional("rack").map(DataSite::Rack);
        let zone = fields.optional("zone").map(DataSite::Zone);
        let region = fields.optional("region").map(DataSite::Region);
        let datastore = fields.optional("datastore").map(DataSite::Datastore);
        let given = fields.given(&["host", "rack", "zone", "region", "datastore"]);
        let places = "\"host\", \"rack\", \"zone\", \"region\" and \"datastore\"";
        exactly_one(fields.at, &given, places);
        let weight = fields.integer("weight", 1..=1000).unwrap_or(1);
        fields.finish();
        let site = host.or(rack).or(zone).or(region).or(datastore);
        Some(DataRef { site: site?, weight })
    }
}

fn strength(weight: Option<u16>) -> Strength {
    weight.map_or(Strength::Required, Strength::Preferred)
}

pub(crate) fn exactly_one(at: &mut At<'_>, given: &[&str], of: &str) {
    let hint = format!("give exactly one of {of}");
    match given {
        [_] => {}
        [] => at.fault(code::MISSING_FIELD, format!("none of {of} is given"), hint),
        [..] => {
            let message = format!("{} exclude each other", shorten(&given.join(", ")));
            at.fault(code::CONFLICTING_FIELDS, message, hint);
        }
    }
}
