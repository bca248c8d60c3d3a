//! Orders moves into waves that are safe at every instant.
//!
//! The migrations of a wave run together; each may be finished, in flight or failed while others
//! are not, in any combination. So a wave is made of migrations that cannot get in each other's
//! way: while it runs, a VM takes room on both of its hosts, a host gives VMs away or takes them
//! but not both, and no rule speaks of two VMs that are under way. Then every rule is touched by
//! one migration at most, and it is enough that it holds before and after that one.
//!
//! Moves that wait for each other in a circle are taken apart by way of a third host. Whether a
//! VM may be on a host is asked of the solver's tables, like everywhere.

mod duration;
mod order;
mod ties;

pub use duration::{Link, Timing, timing};
pub use order::{Blocked, Caps, Move, Obstruction, Ordered, Placed, Step, Wave, order};
pub use ties::{neighbourhood, tied};
