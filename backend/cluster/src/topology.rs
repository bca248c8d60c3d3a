//! Where a host stands, and the levels at which "together" and "apart" are meant.

use crate::Name;
use serde::{Deserialize, Serialize};

/// Region, zone, rack and power feed of a host. Each is optional; names are unique per level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Location {
    pub region: Option<Name>,
    pub zone: Option<Name>,
    pub rack: Option<Name>,
    pub power_feed: Option<Name>,
}

/// A topology level. The hosts that share a value at a level form one domain of it.
///
/// A host without a value at a level is in no domain of that level.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    Host,
    Rack,
    PowerFeed,
    Zone,
    Region,
    /// The value of this host label.
    Label(Name),
}

impl Level {
    /// The name of a level on the wire: `host`, `rack`, ..., or `label:KEY`.
    pub fn name(&self) -> String {
        match self {
            Level::Host => "host".into(),
            Level::Rack => "rack".into(),
            Level::PowerFeed => "power_feed".into(),
            Level::Zone => "zone".into(),
            Level::Region => "region".into(),
            Level::Label(key) => format!("label:{key}"),
        }
    }
}
