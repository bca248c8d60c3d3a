//! Rules of the active policies that work against each other, found without running them.

mod region;

pub(crate) use region::region_of;
