//! Fabrics: how domains are joined, as the one route that there is between each two of them.
//!
//! Which route that is has been settled before (`backend/ARCHITECTURE.md`, "Routes"); here it is a
//! fact. `Rule::Network` says what travels over it.

use super::{ProblemError, within};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fabric {
    /// What each link can carry.
    pub links: Vec<u64>,
    /// Between domains of the scope of whichever rule speaks of them. Two domains that no route
    /// names are not joined.
    pub routes: Vec<Route>,
}

/// The way between two domains, the same in both directions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    pub between: (u32, u32),
    pub latency: u64,
    /// Rows of `Fabric::links`, each once.
    pub links: Vec<u32>,
}

impl Fabric {
    pub(super) fn check(&self, row: usize) -> Result<(), ProblemError> {
        let mut known = BTreeSet::new();
        for (number, route) in self.routes.iter().enumerate() {
            let name = || format!("fabrics[{row}].routes[{number}]");
            let (a, b) = route.between;
            if a == b || !known.insert((a.min(b), a.max(b))) {
                return Err(ProblemError::Route { field: name(), a, b });
            }
            for &link in &route.links {
                within(|| name() + ".links", link, self.links.len())?;
            }
        }
        Ok(())
    }
}
