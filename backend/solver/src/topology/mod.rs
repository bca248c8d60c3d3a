//! Inside a host: which cores, memory, GPUs, NIC functions and accelerators a VM gets.
//!
//! `Layout` is what a host has, in the shape that searching needs; `Devices` is what is free of
//! it. `bind` chooses parts for one VM, `Devices::take` and `give_back` keep count of them.
//! `Summary` and `Needs` are a handful of integers each that rule out most hosts without asking
//! `bind`. A refusal by `bind` is exact: it searches, or proves by counting, that nothing fits.
//!
//! What each field of a request means is written in `backend/ARCHITECTURE.md`, "Inside a host".

mod at_most;
mod bind;
mod devices;
mod gpus;
mod lacking;
mod layout;
mod layouts;
mod nodes;
mod summary;
mod unbound;
mod why;
mod wishes;

pub(crate) use at_most::at_most;
pub use bind::{bind, try_bind};
pub use devices::{Clash, Devices};
pub(crate) use lacking::lacking;
pub use layout::Layout;
pub(crate) use layouts::{Layouts, Numbered};
pub use summary::{Fragmentation, Needs, NodeHole, Summary, fragmentation};
pub use unbound::{Missing, Scope, Unbound};
