//! Whole assignments: a host for every VM at once, under rules and goals.
//!
//! A `Model` is a `cluster::assignment::Problem` compiled to dense integer tables. A `State` is an
//! assignment on it that knows what each host has left, how often each group is in each domain and
//! what the goals are worth; it answers what a shift or a swap would change in time that depends
//! on the number of resources alone. Engines (`crate::engines`) search on states within a `Budget`
//! and return an `Outcome`. `from_fleet` makes the problem of a live fleet. No clock here:
//! whoever has one tells the budget's `Deadline`.

mod clashes;
mod classes;
mod counters;
mod counts;
mod fleet;
mod flows;
mod model;
mod networks;
mod outcome;
mod spares;
mod state;
mod tallies;
mod values;

pub use classes::Classes;
pub(crate) use counts::Counts;
pub use fleet::{
    Ask, Cause, Fleet, FleetError, Origin, Search, Settled, Stricter, arrivals_only, from_fleet,
};
pub use model::{Model, NOWHERE};
pub use outcome::{Budget, Deadline, Outcome, StopReason};
pub use state::{Change, State};
pub(crate) use tallies::{Bound, Skew};
