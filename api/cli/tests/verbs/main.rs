//! Every verb as a user types it, against a real service on a real disk.

mod backup;
mod constraints;
mod forecast;
mod fronts;
mod hosts;
mod import;
mod offline;
mod policies;
mod reassignment;
mod service;
mod usage;
mod vms;
mod whole;
