//! The real binary: started, loaded, killed, stopped, and started again.

mod client;
mod format;
mod half_sent;
mod kill;
mod ledger;
mod process;
mod stop;
