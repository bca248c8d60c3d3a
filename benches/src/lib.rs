//! Benches that are part of the product: anybody can run them on their own machine.
//!
//! Each one returns a report that prints as one line of JSON. The micro benches of the hot path
//! are criterion's, under `benches/`.

pub mod engines;
pub mod fleet_forecast;
pub mod golden_arima;
pub mod http;
pub mod machine;
pub mod no_log;
pub mod optimise;
pub mod policy;
pub mod recovery;
pub mod reload;
pub mod scale;
pub mod topology;
pub mod upstream_policy;
