//! The simulated world: a service, a disk that fails on purpose, clients that retry, and a
//! checker that trusts nobody, all in one process under one seed.
//!
//! `simulate` runs fault cycles: live for a while, go wrong, die, come back, check. Each seed is
//! run twice and must come out the same. Nothing here reads a clock but the report's stopwatch.

mod answers;
mod checker;
mod clients;
mod faults;
mod history;
mod limits;
mod machine;
mod model;
mod parts;
#[cfg(feature = "planted-bugs")]
pub mod planted;
mod recovery;
mod replica;
mod report;
mod reporter;
mod reports;
mod rules;
mod shapes;
mod simulate;
mod sometimes;
mod story;
mod violation;
mod world;

pub use faults::{Fault, FaultCounts};
pub use report::Report;
pub use simulate::{Spec, Storage, simulate};
pub use sometimes::{Rare, Sometimes};
pub use violation::{Finding, Law, Violation};
