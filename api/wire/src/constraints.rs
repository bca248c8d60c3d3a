//! Installed constraints in JSON: their types, the reader, and what the service answers.
//!
//! A constraint is one flat object; `type` says which of the fields it has. The list of types
//! is data for people and programs that write constraints, and a test holds it against the
//! reader.

mod types;

use crate::fault::code;
use crate::fields::Fields;
use crate::host::is_default;
use crate::json::Value;
use crate::limits::{MAX_NAMES, MAX_RULES};
use crate::read::{At, Read};
use crate::rules::SelectorSpec;
use crate::schema::{LevelSchema, NameSchema};
use crate::words::{Word, choice};
use cluster::{
    Constraint, ConstraintRule, Dependency, Exclusive, Fence, HostSet, Keep, Level, Limit, Link,
    Links, MAX_LINKS, MinDomains, Name, Network, Sharing, Spare, VmSet, Within,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use types::{ConstraintParameter, ConstraintType, constraint_types};

/// A constraint as it is sent. Which fields it has depends on its type: see `types` of
/// `GET /v1/constraints`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConstraintSpec {
    #[serde(rename = "type")]
    pub kind: ConstraintWord,
    /// Whom it is about. Left out: all VMs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vms: Option<VmSetSpec>,
    /// Left out: all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<HostSetSpec>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub reserved: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<LevelSchema>)]
    pub level: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 2)]
    pub min: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<SharingWord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<VmSetSpec>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 1024)]
    pub links: Vec<LinkSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<VmSetSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub over: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_latency_us: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub bandwidth_mbps: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<LevelSchema>)]
    pub each: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 999)]
    pub keep_permille: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub keep_hosts: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub except: Option<VmSetSpec>,
}

/// VMs that meet every condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VmSetSpec {
    /// Left out: of every tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub tenant: Option<Name>,
    /// A group of `tenant`, which must be given with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub group: Option<Name>,
    /// Conditions on the VM's own labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 64)]
    pub labels: Vec<SelectorSpec>,
}

/// Hosts that meet every condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostSetSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub pool: Option<Name>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 64)]
    pub within: Vec<WithinSpec>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 64)]
    pub labels: Vec<SelectorSpec>,
}

/// In one of these domains of a level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WithinSpec {
    #[schema(value_type = LevelSchema)]
    pub level: String,
    #[schema(value_type = Vec<NameSchema>, min_items = 1, max_items = 256)]
    pub names: Vec<Name>,
}

/// A link between two domains, the same in both directions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LinkSpec {
    #[schema(value_type = NameSchema)]
    pub a: Name,
    #[schema(value_type = NameSchema)]
    pub b: Name,
    pub latency_us: u32,
    pub bandwidth_mbps: u32,
}

/// A constraint in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConstraintView {
    #[schema(value_type = NameSchema)]
    pub name: Name,
    pub generation: u64,
    #[serde(flatten)]
    pub constraint: ConstraintSpec,
    /// What the fleet cannot give as it is. Only in the answer to a change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What can be installed, and what is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConstraintList {
    pub types: Vec<ConstraintType>,
    /// In order of their names.
    pub items: Vec<ConstraintView>,
    pub revision: u64,
}

/// The type of a constraint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConstraintKind {
    #[default]
    Fence,
    MinDomains,
    Limit,
    Exclusive,
    Dependency,
    Links,
    Network,
    Spare,
}

choice!(ConstraintKind:
    "fence" = Fence, "min_domains" = MinDomains, "limit" = Limit, "exclusive" = Exclusive,
    "dependency" = Dependency, "links" = Links, "network" = Network, "spare" = Spare);
choice!(Sharing: "members" = Members, "nobody" = Nobody);
pub(crate) type ConstraintWord = Word<ConstraintKind>;
pub(crate) type SharingWord = Word<Sharing>;

impl ConstraintView {
    pub fn new(constraint: &Constraint, generation: u64) -> Self {
        let Constraint { name, rule } = constraint;
        Self { name: name.clone(), generation, constraint: rule.into(), warnings: Vec::new() }
    }
}

impl From<&ConstraintRule> for ConstraintSpec {
    fn from(rule: &ConstraintRule) -> Self {
        let of = |kind| Self { kind: Word(kind), ..Self::default() };
        match rule {
            ConstraintRule::Fence(Fence { vms, hosts, reserved }) => Self {
                vms: some(vms),
                hosts: some(hosts),
                reserved: *reserved,
                ..of(ConstraintKind::Fence)
            },
            ConstraintRule::MinDomains(MinDomains { vms, level, min }) => Self {
                vms: some(vms),
                level: Some(level.name()),
                min: Some(*min),
                ..of(ConstraintKind::MinDomains)
            },
            ConstraintRule::Limit(Limit { vms, level, max }) => Self {
                vms: some(vms),
                level: Some(level.name()),
                max: Some(*max),
                ..of(ConstraintKind::Limit)
            },
            ConstraintRule::Exclusive(Exclusive { vms, sharing }) => Self {
                vms: some(vms),
                sharing: Some(Word(*sharing)),
                ..of(ConstraintKind::Exclusive)
            },
            ConstraintRule::Dependency(Dependency { vms, on, level }) => Self {
                vms: some(vms),
                on: some(on),
                level: Some(level.name()),
                ..of(ConstraintKind::Dependency)
            },
            ConstraintRule::Links(Links { level, links }) => Self {
                level: Some(level.name()),
                links: links.iter().map(Into::into).collect(),
                ..of(ConstraintKind::Links)
            },
            ConstraintRule::Network(rule) => Self {
                vms: some(&rule.vms),
                to: some(&rule.to),
                over: Some(rule.over.clone()),
                max_latency_us: rule.max_latency_us,
                bandwidth_mbps: Some(rule.bandwidth_mbps).filter(|mbps| *mbps > 0),
                ..of(ConstraintKind::Network)
            },
            ConstraintRule::Spare(Spare { hosts, each, keep, except }) => {
                let (keep_permille, keep_hosts) = match *keep {
                    Keep::Permille(permille) => (Some(permille), None),
                    Keep::Hosts(hosts) => (None, Some(hosts)),
                };
                Self {
                    hosts: some(hosts),
                    each: each.as_ref().map(Level::name),
                    keep_permille,
                    keep_hosts,
                    except: except.as_ref().map(Into::into),
                    ..of(ConstraintKind::Spare)
                }
            }
        }
    }
}

/// A set, unless it is that of everything.
fn some<'a, S: Default + PartialEq, T: From<&'a S>>(set: &'a S) -> Option<T> {
    (*set != S::default()).then(|| set.into())
}

impl From<&VmSet> for VmSetSpec {
    fn from(set: &VmSet) -> Self {
        let VmSet { tenant, group, labels } = set;
        let labels = labels.iter().map(Into::into).collect();
        Self { tenant: tenant.clone(), group: group.clone(), labels }
    }
}

impl From<&HostSet> for HostSetSpec {
    fn from(set: &HostSet) -> Self {
        let within = |it: &Within| WithinSpec { level: it.level.name(), names: it.names.clone() };
        Self {
            pool: set.pool.clone(),
            within: set.within.iter().map(within).collect(),
            labels: set.labels.iter().map(Into::into).collect(),
        }
    }
}

impl From<&Link> for LinkSpec {
    fn from(link: &Link) -> Self {
        let Link { a, b, latency_us, bandwidth_mbps } = link.clone();
        Self { a, b, latency_us, bandwidth_mbps }
    }
}

impl Read for ConstraintRule {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let kind: ConstraintKind = fields.required("type")?;
        let rule = read_rule(kind, &mut fields);
        fields.finish();
        rule
    }
}

impl Read for Constraint {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let name = fields.required("name");
        let kind: ConstraintKind = fields.required("type")?;
        let rule = read_rule(kind, &mut fields);
        fields.finish();
        Some(Constraint { name: name?, rule: rule? })
    }
}

fn read_rule(kind: ConstraintKind, fields: &mut Fields<'_, '_>) -> Option<ConstraintRule> {
    const ANY: u64 = u32::MAX as u64;
    Some(match kind {
        ConstraintKind::Fence => {
            let (vms, hosts) = (fields.or_default("vms"), fields.required("hosts"));
            let reserved = fields.or_default("reserved");
            ConstraintRule::Fence(Fence { vms, hosts: hosts?, reserved })
        }
        ConstraintKind::MinDomains => {
            let (vms, level) = (fields.or_default("vms"), fields.required("level"));
            let min = fields.required_integer("min", 2..=ANY);
            ConstraintRule::MinDomains(MinDomains { vms, level: level?, min: min? })
        }
        ConstraintKind::Limit => {
            let (vms, level) = (fields.or_default("vms"), fields.optional("level"));
            let max = fields.required_integer("max", 1..=ANY);
            ConstraintRule::Limit(Limit { vms, level: level.unwrap_or(Level::Host), max: max? })
        }
        ConstraintKind::Exclusive => {
            let (vms, sharing) = (fields.required("vms"), fields.or_default("sharing"));
            ConstraintRule::Exclusive(Exclusive { vms: vms?, sharing })
        }
        ConstraintKind::Dependency => {
            let (vms, on) = (fields.required("vms"), fields.required("on"));
            let level = fields.required("level");
            ConstraintRule::Dependency(Dependency { vms: vms?, on: on?, level: level? })
        }
        ConstraintKind::Links => {
            let level = fields.required("level");
            let links = fields.required_with("links", |value, at| at.list(value, MAX_LINKS));
            ConstraintRule::Links(Links { level: level?, links: links? })
        }
        ConstraintKind::Network => {
            let (vms, to) = (fields.required("vms"), fields.required("to"));
            let over = fields.required("over");
            let max_latency_us = fields.integer("max_latency_us", 0..=ANY);
            let bandwidth_mbps = fields.integer("bandwidth_mbps", 1..=ANY).unwrap_or(0);
            if fields.given(&["max_latency_us", "bandwidth_mbps"]).is_empty() {
                let message = "neither \"max_latency_us\" nor \"bandwidth_mbps\" is given";
                fields.at.fault(code::MISSING_FIELD, message, "give at least one of them");
            }
            let (vms, to, over) = (vms?, to?, over?);
            ConstraintRule::Network(Network { vms, to, over, max_latency_us, bandwidth_mbps })
        }
        ConstraintKind::Spare => {
            let (hosts, each) = (fields.or_default("hosts"), fields.optional("each"));
            let permille = fields.integer("keep_permille", 1..=999).map(Keep::Permille);
            let count = fields.integer("keep_hosts", 1..=ANY).map(Keep::Hosts);
            let given = fields.given(&["keep_permille", "keep_hosts"]);
            crate::rules::exactly_one(fields.at, &given, "\"keep_permille\" and \"keep_hosts\"");
            let except = fields.optional("except");
            ConstraintRule::Spare(Spare { hosts, each, keep: permille.or(count)?, except })
        }
    })
}

impl Read for VmSet {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let (tenant, group) = (fields.optional("tenant"), fields.optional("group"));
        let labels = fields.list("labels", MAX_RULES);
        if fields.has("group") && !fields.has("tenant") {
            let message = "a group belongs to a tenant, and none is given";
            fields.at.fault_in("tenant", code::MISSING_FIELD, message, "add \"tenant\"");
        }
        fields.finish();
        Some(VmSet { tenant, group, labels })
    }
}

impl Read for HostSet {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let pool = fields.optional("pool");
        let within = fields.list("within", MAX_RULES);
        let labels = fields.list("labels", MAX_RULES);
        fields.finish();
        Some(HostSet { pool, within, labels })
    }
}

impl Read for Within {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let level = fields.required("level");
        let names = fields.required_with("names", |value, at| at.list(value, MAX_NAMES));
        if names.as_ref().is_some_and(Vec::is_empty) {
            let hint = "name at least one domain";
            fields.at.fault_in("names", code::MISSING_FIELD, "no name is given", hint);
        }
        fields.finish();
        Some(Within { level: level?, names: names? })
    }
}

impl Read for Link {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let (a, b) = (fields.required("a"), fields.required("b"));
        let latency_us = fields.required_integer("latency_us", 0..=u32::MAX.into());
        let bandwidth_mbps = fields.required_integer("bandwidth_mbps", 0..=u32::MAX.into());
        fields.finish();
        let (latency_us, bandwidth_mbps) = (latency_us?, bandwidth_mbps?);
        Some(Link { a: a?, b: b?, latency_us, bandwidth_mbps })
    }
}
