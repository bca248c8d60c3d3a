//! Questions about what is in a VM's way, and the answers, in JSON.

use crate::fault::code;
use crate::json::Value;
use crate::placement::ScoreParts;
use crate::quantities::Quantities;
use crate::read::{At, Read};
use crate::schema::{LevelSchema, NameSchema};
use crate::vm::VmSpec;
use crate::words::StrategyWord;
use cluster::{Name, Vm, VmKey};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Asks what is in a VM's way: one that is described, or one that is placed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExplainSpec {
    /// A VM as `POST /v1/placements` takes it. Either this or `vm_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm: Option<VmSpec>,
    /// A VM that is placed; it is asked about as if it were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub vm_id: Option<Name>,
    /// The tenant of `vm_id`. Left out: `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub tenant: Option<Name>,
    /// Only this host. Left out: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub host_id: Option<Name>,
}

/// `ExplainSpec` as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainRequest {
    pub vm: ExplainedVm,
    pub host: Option<Name>,
}

/// Whom a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExplainedVm {
    Described(Box<Vm>),
    Placed(VmKey),
}

/// What is in a VM's way, everywhere or on one host, and what would help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExplanationView {
    #[schema(value_type = NameSchema)]
    pub vm_id: Name,
    #[schema(value_type = NameSchema)]
    pub tenant: Name,
    /// The host that was asked about; `null` for all of them.
    #[schema(value_type = Option<NameSchema>, required = true)]
    pub host_id: Option<Name>,
    /// Whether the VM can be placed, there or anywhere.
    pub fits: bool,
    /// For one host: every rule that it fails, in the order in which rules are tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub obstacles: Vec<ObstacleView>,
    pub hosts_considered: u32,
    /// For all hosts: how many can take the VM as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts_that_fit: Option<u32>,
    /// For all hosts: how many fail each rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<ReasonView>,
    /// Names in the request that no host has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<UnknownView>,
    /// The least change with which the VM fits; `null` if it does, or if nothing would help.
    #[schema(required = true)]
    pub counterfactual: Option<CounterfactualView>,
    /// For a placed VM: how its host compares with the next best, as if it were placed now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placed: Option<ComparisonView>,
    pub revision: u64,
    pub policy_revision: u64,
}

/// One rule that a host fails. Which fields are there depends on the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ObstacleView {
    /// As in `rejections` of a placement: `taint`, `spread`, `capacity:memory_mib`, ...
    pub reason: String,
    /// The same as the other fields, for people.
    pub text: String,
    /// What the VM takes on this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub need: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_by: Option<u64>,
    /// With the VM, the fullest domain would be this far ahead of the emptiest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skew: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_skew: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<LevelSchema>)]
    pub level: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub domain: Option<Name>,
    /// How many VMs in the domain are in the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<u32>,
    /// The first few of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<NameSchema>)]
    pub vms: Vec<Name>,
}

/// How many hosts fail one rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReasonView {
    pub reason: String,
    /// Hosts that fail this rule first: what a decision counts.
    pub first: u32,
    /// Hosts that fail this rule at all.
    pub any: u32,
    /// Hosts that fail no other rule.
    pub alone: u32,
}

/// A name in a request that no host has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnknownView {
    /// `pool`, `label`, `label_value`, `datastore` or `host`.
    pub what: String,
    #[schema(value_type = NameSchema)]
    pub name: Name,
    /// With `label_value`: the label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub label: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameSchema>)]
    pub did_you_mean: Option<Name>,
}

/// Changes that make a VM fit, checked by making them. No part of them would do alone, and no
/// number in them can be one unit smaller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CounterfactualView {
    /// The host that can take the VM then.
    #[schema(value_type = NameSchema)]
    pub host_id: Name,
    pub changes: Vec<ChangeView>,
    /// What the changes cost together: 1000 is all of the demand in one dimension.
    pub cost_thousandths: u64,
    /// Whether it was shown that nothing smaller does. If not, the time was too short to try.
    pub minimal: bool,
    /// The VM with the changes that are to it.
    pub vm: VmSpec,
}

/// One change. Which fields are there depends on the kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangeView {
    /// `demand`, `any_pool`, `drop_selector`, `tolerate`, `drop_datastore`, `allow_host`,
    /// `prefer_affinity`, `raise_skew` or `prefer_spread` are to the request; `waive_repulsion`,
    /// `waive_policy` and `reopen` are to what is around it.
    pub kind: String,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimension: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    pub cost_thousandths: u64,
}

/// A placed VM's host beside the best other one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ComparisonView {
    pub strategy: StrategyWord,
    pub host: ScoredView,
    /// Left out when no other host can take the VM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner_up: Option<ScoredView>,
    /// How far the host is ahead in each part of the score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<ScoreParts>,
    /// The decision that placed it, as `GET /v1/decisions/{id}` knows it.
    pub decision_id: String,
    /// What the VM takes on its host.
    pub committed: Quantities,
}

/// A host and its score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScoredView {
    #[schema(value_type = NameSchema)]
    pub host_id: Name,
    pub score: i64,
    pub breakdown: ScoreParts,
}

impl Read for ExplainRequest {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let described: Option<Vm> = fields.optional("vm");
        let id: Option<Name> = fields.optional("vm_id");
        let tenant: Option<Name> = fields.optional("tenant");
        let host = fields.optional("host_id");
        let (has_vm, has_id) = (fields.has("vm"), fields.has("vm_id"));
        if has_vm == has_id {
            let (code, message) = match has_vm {
                true => (code::CONFLICTING_FIELDS, "both \"vm\" and \"vm_id\" are given"),
                false => (code::MISSING_FIELD, "neither \"vm\" nor \"vm_id\" is given"),
            };
            fields.at.fault_in("vm", code, message, "give \"vm\", or \"vm_id\" of a placed VM");
        }
        if has_vm && fields.has("tenant") {
            let message = "\"tenant\" belongs to \"vm_id\"";
            let hint = "write the tenant into \"vm\"";
            fields.at.fault_in("tenant", code::CONFLICTING_FIELDS, message, hint);
        }
        fields.finish();
        let vm = match (described, id) {
            (Some(vm), _) => ExplainedVm::Described(Box::new(vm)),
            (None, Some(id)) => {
                let mut key = VmKey::in_default_tenant(id);
                key.tenant = tenant.unwrap_or(key.tenant);
                ExplainedVm::Placed(key)
            }
            (None, None) => return None,
        };
        Some(Self { vm, host })
    }
}
