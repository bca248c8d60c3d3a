//! The HTTP service: accept loop, limits, routes, OpenAPI.
//!
//! Translates between HTTP and the engine and decides nothing itself. What goes over the wire is
//! `wire`'s; what is true is the engine's. Nothing that arrives here can take more than its share:
//! connections, headers, bodies, time and queues all have limits, and a body that is wrong never
//! reaches the engine.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects)
)]

mod accept;
mod advice;
mod app;
mod ask;
mod body;
mod envelope;
mod events;
mod explain;
mod failure;
mod gate;
mod listen;
mod metrics;
mod opening;
mod optimisations;
mod options;
mod plans;
mod policies;
mod policy_files;
mod reload;
mod routes;
mod service;
mod unread;

pub use accept::{AcceptLimits, Ended, serve};
pub use app::{openapi, router};
pub use gate::{Gate, Pass};
pub use listen::{ListenError, check_listen};
pub use opening::App;
pub use options::{Options, VM_SLOTS};
pub use policy_files::{AcceptedFile, MAX_POLICY_FILES, PolicyFiles, RejectedFile};
pub use reload::{PolicyDirectory, Watching};
pub use service::Service;
