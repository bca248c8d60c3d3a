//! Chooses hosts for VMs on dense tables that are patched in place.
//!
//! A `Problem` holds what placing needs to know of hosts and placed VMs, by row. `place` narrows
//! the fleet to the hosts that may take a VM, counting what each rule leaves out, and picks the
//! best by score; every host is considered. `place_batch` does so for many VMs as if one by one.
//! `feasible` asks the same rules about one host; `explain` says everything that is in a VM's way.
//! `contradictions` asks whether installed constraints can hold together at all. `assignment` and
//! `engines` answer for many VMs at once, `objective` says what is best for a fleet.
//!
//! No I/O, no clock, no randomness; integers only, and ties go to the lowest row, so equal tables
//! give equal answers. What the rules and terms mean is written in `backend/ARCHITECTURE.md`.

pub mod assignment;
mod attributes;
mod batch;
mod bits;
mod cache;
mod changes;
mod constraints;
mod contradictions;
pub mod dice;
mod domains;
pub mod engines;
pub mod explain;
pub mod fragmentation;
mod free;
mod goals;
mod groups;
mod guarantees;
mod hosts;
mod inside;
pub mod joint;
mod locality;
pub mod objective;
mod place;
mod policies;
mod predicates;
mod prices;
mod problem;
mod request;
mod room;
mod score;
mod sizes;
pub mod slots;
mod standing;
pub mod steering;
mod tally;
pub mod topology;
mod wishes;

pub use batch::{batch_order, place_batch, place_batch_followed};
pub use contradictions::{CarriedTogether, Contradiction, Findings, contradictions};
pub use place::{Choice, Chosen, How, Scratch, feasible, place};
pub use policies::{PolicyColumns, RulesThatRemoved};
pub use problem::Problem;
