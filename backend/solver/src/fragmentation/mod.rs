//! Where a VM that takes GPUs, or CPU from hosts that have them, does least harm.
//!
//! A fleet with shares of GPUs fills up long before its GPUs do: what is left is cut too small, or
//! has no CPU beside it, or is of the wrong model. Here a host's free room has a *worth* to the mix
//! of shapes that come (`worth`, from `prices` and `fillings`), and a VM goes where the worth falls
//! least, unless that destroys what is scarce in the fleet (`guards`, `confined`).
//!
//! `Fleet` keeps hosts by state and costs by (shape, state), and looks at changes only. `policy`
//! has the scores of others beside our own, for comparison.

mod confined;
mod fgd;
mod fillings;
mod fleet;
mod givable;
mod guards;
mod host_state;
mod learning;
mod losses;
mod mix;
pub mod numa;
mod policy;
mod prices;
mod search;
mod shape;
mod states;
mod wanted;
mod worth;

pub use fleet::{Chosen, Empty, Fleet, Knowledge, Ties};
pub use host_state::{HostState, MOST_GPUS};
pub use learning::Learning;
pub(crate) use losses::{Keeping, Losses, points};
pub use mix::Mix;
pub use policy::Policy;
pub use shape::{MOST_MODELS, Shape, WHOLE};
pub use wanted::Wanted;
