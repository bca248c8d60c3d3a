//! The second opinion on every placement.
//!
//! Reads the rules of `backend/ARCHITECTURE.md` ("Meaning of the rules") for itself and shares
//! nothing with the solver: no table, no filter, no arithmetic. There are two readings here, and
//! a property test holds them against each other:
//!
//! - `Ledger` is incremental and sits on the hot path: the engine patches it with every change
//!   and asks it about each host that was chosen.
//! - `snapshot`, `placement`, `batch` and `violations` re-derive everything from a snapshot, in
//!   plain loops.
//!
//! `certificate` puts them together for whole documents and for plans in waves; it serves
//! whoever wants to know, ours or not. `bindings` reads what VMs have inside one host,
//! `assignment` a host for each of many VMs.
//!
//! Says what is broken, never what to do about it. Does no I/O, logs nothing, reads no clock,
//! and has no opinion on scores beyond their adding up.

mod assignment;
mod bindings;
mod certificate;
mod certify;
mod inside;
mod installed;
mod ledger;
mod plan;
mod policies;
mod reading;
mod rules;
mod text;
mod violation;
mod world;

pub use assignment::{AssignmentViolation, AssignmentWorth, assignment};
pub use bindings::{
    BindingViolation, BindingViolationKind, BindingViolations, Guest, Holder, bindings, newcomer,
    shared,
};
pub use certificate::{Certificate, Finding, certificate};
pub use certify::{batch, placement, snapshot, violations};
pub use ledger::{Ledger, LedgerError};
pub use reading::demand_on;
pub use violation::{Checked, Report, Violation, ViolationKind, Violations};
