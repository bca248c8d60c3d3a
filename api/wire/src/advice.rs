//! Advice: where the service would have chosen otherwise, and what that would have gained.

use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// How often the service and whoever decides agreed, and the last times that they did not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct AdviceView {
    /// Whether the service only advises.
    pub advising: bool,
    pub totals: AdviceTotals,
    /// Newest first.
    pub entries: Vec<AdviceEntry>,
}

/// Since the service was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct AdviceTotals {
    /// VMs that advice was asked for.
    pub asked: u64,
    /// VMs that have started and could be compared.
    pub compared: u64,
    pub agreed: u64,
    /// Started elsewhere, on a host with a lower score.
    pub better_known: u64,
    /// Started where a rule or the room is broken by it.
    pub broken: u64,
    /// By how much the advised hosts score higher, summed over `better_known`.
    pub score_gain: i64,
}

/// One VM: where it runs and where it would have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct AdviceEntry {
    pub tenant: String,
    pub vm_id: String,
    /// When its start was heard of.
    pub at_ms: u64,
    pub chosen_host: String,
    /// `null`: no host could take it.
    pub advised_host: Option<String>,
    pub agreed: bool,
    /// Why the chosen host should not have taken the VM, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
    /// How much higher the advised host scores; `null` where one of the two has no score.
    pub score_gain: Option<i64>,
    /// The same by term. Terms that do not differ are left out.
    pub gain_by_term: BTreeMap<String, i64>,
    /// What is left of the scarcest dimension with the VM in place, in permille.
    pub chosen_headroom_permille: i64,
    pub advised_headroom_permille: Option<i64>,
}
