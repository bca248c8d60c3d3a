//! How long will this VM live? Lives that were seen go in, a distribution comes out; asked again
//! while the VM runs, it answers for what is left.
//!
//! Knows no host and no clock, and reads nothing: callers hand over what they have seen.

pub mod counts;
pub mod curve;
pub mod forest;
pub mod generated;
pub mod score;
pub mod seen;
mod tree;

pub use curve::{Class, Curve, Remaining};
pub use forest::{Forest, Training};
pub use seen::{Life, Traits};
