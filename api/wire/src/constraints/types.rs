//! The types of constraints, as they are described to whoever writes one.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use utoipa::ToSchema;

/// What a type of constraint says, and what it takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConstraintType {
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    pub kind: Cow<'static, str>,
    #[schema(value_type = String)]
    pub doc: Cow<'static, str>,
    /// The name under which hosts that it leaves out are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub reason: Option<Cow<'static, str>>,
    pub parameters: Vec<ConstraintParameter>,
}

/// One field of a constraint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConstraintParameter {
    #[schema(value_type = String)]
    pub name: Cow<'static, str>,
    /// `vm_set`, `host_set`, `level`, `integer`, `boolean`, `name`, `links`, or words to choose
    /// from.
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    pub kind: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub unit: Option<Cow<'static, str>>,
    pub required: bool,
    /// What holds when it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub default: Option<Cow<'static, str>>,
    #[schema(value_type = String)]
    pub doc: Cow<'static, str>,
}

/// Every type that can be installed.
pub fn constraint_types() -> Vec<ConstraintType> {
    let types = TYPES.iter().map(|&(kind, reason, doc, parameters)| ConstraintType {
        kind: kind.into(),
        doc: doc.into(),
        reason: reason.map(Into::into),
        parameters: parameters.iter().map(parameter).collect(),
    });
    types.collect()
}

fn parameter(row: &Row) -> ConstraintParameter {
    let &(name, kind, unit, default, doc) = row;
    let given = |text: &'static str| (!text.is_empty()).then_some(Cow::Borrowed(text));
    ConstraintParameter {
        name: name.into(),
        kind: kind.into(),
        unit: given(unit),
        required: default == NEEDED,
        default: given(default).filter(|default| default != NEEDED),
        doc: doc.into(),
    }
}

/// Name, type, unit, default and meaning.
type Row = (&'static str, &'static str, &'static str, &'static str, &'static str);
/// Type, reason, meaning and parameters.
type Kind = (&'static str, Option<&'static str>, &'static str, &'static [Row]);

/// Stands in the place of a default where there is none.
const NEEDED: &str = "!";
const VMS: Row = ("vms", "vm_set", "", "all VMs", "whom it is about");
const THE_VMS: Row = ("vms", "vm_set", "", NEEDED, "whom it is about");

const TYPES: &[Kind] = &[
    (
        "fence",
        Some("fence"),
        "these VMs run on these hosts only, and no others there if the hosts are reserved",
        &[
            VMS,
            ("hosts", "host_set", "", NEEDED, "where they may run"),
            ("reserved", "boolean", "", "false", "the hosts take no other VMs"),
        ],
    ),
    (
        "min_domains",
        Some("min_domains"),
        "the VMs cover at least so many domains: until they do, each goes where none is yet",
        &[
            VMS,
            ("level", "level", "", NEEDED, "what a domain is"),
            ("min", "integer", "domains", NEEDED, "how many, at least 2"),
        ],
    ),
    (
        "limit",
        Some("limit"),
        "at most so many of the VMs in one domain",
        &[
            VMS,
            ("level", "level", "", "host", "what a domain is"),
            ("max", "integer", "VMs", NEEDED, "how many, at least 1"),
        ],
    ),
    (
        "exclusive",
        Some("exclusive"),
        "the VMs share their hosts with no others",
        &[THE_VMS, ("sharing", "members|nobody", "", "members", "who may be beside one of them")],
    ),
    (
        "dependency",
        Some("dependency"),
        "each domain with one of the VMs has one of those they depend on",
        &[
            THE_VMS,
            ("on", "vm_set", "", NEEDED, "whom they depend on"),
            ("level", "level", "", NEEDED, "what a domain is"),
        ],
    ),
    (
        "links",
        None,
        "a fabric: how the domains of a level are joined; network constraints name it",
        &[
            ("level", "level", "", NEEDED, "what a domain is"),
            ("links", "links", "", NEEDED, "a, b, latency_us and bandwidth_mbps of each"),
        ],
    ),
    (
        "network",
        Some("network"),
        "what each pair of one of the VMs and one of the others needs of a fabric",
        &[
            THE_VMS,
            ("to", "vm_set", "", NEEDED, "whom they talk to"),
            ("over", "name", "", NEEDED, "a constraint of type links"),
            ("max_latency_us", "integer", "us", "any", "the longest way between two"),
            ("bandwidth_mbps", "integer", "Mbit/s", "none", "set aside for each pair on its route"),
        ],
    ),
    (
        "spare",
        Some("spare"),
        "room that is kept free of every dimension",
        &[
            ("hosts", "host_set", "", "all hosts", "whose room"),
            ("each", "level", "", "all together", "in each domain of this level by itself"),
            ("keep_permille", "integer", "permille", "", "this share; or keep_hosts"),
            ("keep_hosts", "integer", "hosts", "", "as much as the largest so many hosts have"),
            ("except", "vm_set", "", "nobody", "VMs that may use it"),
        ],
    ),
];
