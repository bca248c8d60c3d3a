//! What operators decide: how the parts of a score weigh, and how a host is chosen when the
//! request does not say.

mod weights;

pub use weights::{MAX_WEIGHT, WeightError, Weights};

use cluster::Strategy;
use serde::{Deserialize, Serialize};

/// The policy that is in force. Replaced as a whole; each replacement has a new revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Policy {
    pub revision: u64,
    pub weights: Weights,
    /// Used by requests that name no strategy.
    pub strategy: Strategy,
}
