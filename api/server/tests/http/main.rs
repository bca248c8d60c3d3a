//! The service over real sockets, on a simulated disk.

mod bad_requests;
mod connections;
mod constraints;
mod documentation;
mod explain;
mod journey;
mod metrics;
mod novacron_advice;
mod novacron_ai;
mod novacron_feed;
mod novacron_nodes;
mod novacron_orchestration;
mod novacron_schedule;
mod optimisations;
mod parts;
mod patience;
mod plans;
mod policies;
mod policies_novacron;
mod reload;
mod world;
