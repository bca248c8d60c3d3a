//! Bodies as callers send and see them.

mod any_bytes;
mod constraints;
mod full;
mod golden;
mod novacron;
mod parts;
mod round_trip;
mod schema;
mod wrong_bodies;
