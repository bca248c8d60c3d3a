//! Mixed-integer programmes over counts of equal VMs, answered by HiGHS.
//!
//! VMs that are interchangeable are one column for each host, so that a fleet of a few shapes is a
//! small programme however many VMs it has. `Ilp` searches the whole problem and proves;
//! `relaxation` solves it as a linear programme without rules between VMs, which is quick at any
//! size and gives a bound and a good start; `improve` solves a few hosts at a time; `Auto` runs
//! these beside large neighbourhoods on as many threads as it is given.
//!
//! Answers are whole numbers read off a floating-point solver: every assignment is built into a
//! solver `State` and counts only if that one says that it is feasible, at the state's price.

mod auto;
mod engine;
mod hosts_at_a_time;
mod interrupt;
mod programme;
mod relaxation;
mod run;

pub use auto::{Auto, Tuning};
pub use engine::Ilp;
pub use hosts_at_a_time::improve;
pub use relaxation::{Relaxation, relaxation};
