//! The service over real sockets, on a simulated disk.

mod bad_requests;
mod connections;
mod documentation;
mod journey;
mod metrics;
mod novacron_ai;
mod novacron_orchestration;
mod patience;
mod world;
