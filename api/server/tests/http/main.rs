//! The service over real sockets, on a simulated disk.

mod bad_requests;
mod connections;
mod documentation;
mod journey;
mod metrics;
mod patience;
mod policies;
mod policies_novacron;
mod world;
