//! Series in, quantiles out; knows no VM and no host.

pub mod accuracy;
pub mod arima;
pub mod backtest;
pub mod batch;
pub mod change;
pub mod conformal;
pub mod decompose;
pub mod drift;
pub mod ensemble;
pub mod ets;
pub mod fleet;
pub mod global;
pub mod last_value;
mod linear;
pub mod method;
pub mod model;
pub mod mstl;
pub mod normal;
mod optimise;
pub mod parallel;
pub mod plot;
pub mod prepare;
pub mod rolling;
pub mod seasonal_naive;
pub mod stl;
pub mod theta;

#[cfg(test)]
mod made;
