//! Optimising many VMs at once: a snapshot, wishes and a limit in; placements, moves or a front of
//! trade-offs out, each accepted by the verifier.
//!
//! Knows which engines there are and how they are called. Changes nothing: who asks carries out
//! what comes back. Answers depend on the clock only through the budget that `timed` drives.

mod ask;
mod front;
mod method;
mod prices;
mod run;
mod timed;

pub use ask::{Ask, Scope};
pub use front::{FrontPoint, Trade};
pub use method::{Facts, Method};
pub use prices::Prices;
pub use run::{Answer, Moved, OptimiseError, Rung, optimise};
pub use timed::timed;
