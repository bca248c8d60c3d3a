//! Forecasts for very many series: time to take samples in and to look ahead, and memory.

use crate::machine::rss_mib;
use fixture::Dice;
use forecast::fleet::Fleet;
use forecast::global::quantile::{Kind, Quantiles, Training};
use serde::Serialize;
use std::time::Instant;

/// A day in five-minute steps.
const DAY: usize = 288;
/// Series that the model learns from.
const TEACHERS: usize = 200;

#[derive(Clone, Copy, Debug)]
pub struct FleetSpec {
    pub series: usize,
    pub horizon: usize,
    pub threads: usize,
    pub seed: u64,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetReport {
    pub series: usize,
    pub horizon: usize,
    pub quantiles: usize,
    pub threads: usize,
    pub seed: u64,
    pub train_s: f64,
    /// All series, all steps, all quantiles.
    pub predict_s: f64,
    pub update_us: f64,
    pub rss_mib: u64,
    /// The share of next samples within the 90 % interval, over a tenth of the series.
    pub coverage: f64,
}

#[derive(Debug, thiserror::Error)]
#[error("a model could not be trained on series of {0} samples")]
pub struct Untrained(usize);

/// Fills a fleet with two days of samples each, looks ahead, and takes one more sample each.
pub fn run(spec: &FleetSpec) -> Result<FleetReport, Untrained> {
    let FleetSpec { series, horizon, threads, seed } = *spec;
    let teachers: Vec<Vec<f64>> = (0..TEACHERS)
        .map(|row| {
            let mut load = Load::new(seed, row as u64);
            (0..5 * DAY).map(|_| f64::from(load.next())).collect()
        })
        .collect();
    let known: Vec<&[f64]> = teachers.iter().map(Vec::as_slice).collect();
    let training = Training { threads, ..Training::new(Kind::Net, horizon, 0.9, Some(DAY)) };
    let started = Instant::now();
    let model = Quantiles::train(&known, training).ok_or(Untrained(5 * DAY))?;
    let train_s = started.elapsed().as_secs_f64();

    let mut fleet = Fleet::new(model);
    let mut loads: Vec<Load> = Vec::with_capacity(series);
    let mut samples = vec![0.0f32; 2 * DAY];
    let mut update = 0.0;
    for number in 0..series {
        let row = fleet.add();
        let mut load = Load::new(seed, (TEACHERS + number) as u64);
        samples.iter_mut().for_each(|sample| *sample = load.next());
        let started = Instant::now();
        samples.iter().for_each(|sample| fleet.update(row, *sample));
        update += started.elapsed().as_secs_f64();
        loads.push(load);
    }
    let started = Instant::now();
    let ahead = fleet.predict(threads);
    let predict_s = started.elapsed().as_secs_f64();
    let rss_mib = rss_mib();
    let mut inside = 0usize;
    let looked_at = series.div_ceil(10);
    for (row, load) in loads.iter_mut().enumerate().take(looked_at) {
        let sample = load.next();
        inside += usize::from(ahead.lower(row)[0] <= sample && sample <= ahead.upper(row)[0]);
        fleet.update(row, sample);
    }
    Ok(FleetReport {
        series,
        horizon,
        quantiles: 3,
        threads,
        seed,
        train_s,
        predict_s,
        update_us: update * 1e6 / (series * samples.len()).max(1) as f64,
        rss_mib,
        coverage: inside as f64 / looked_at.max(1) as f64,
    })
}

/// The load of a made-up machine: a level, a day, noise that lingers, and bursts.
struct Load {
    dice: Dice,
    level: f32,
    day: f32,
    phase: f32,
    noise: f32,
    lingering: f32,
    burst: u64,
    left: u64,
    at: u32,
}

impl Load {
    fn new(seed: u64, row: u64) -> Self {
        let mut dice = Dice::stream(seed, row);
        let mut share = || dice.below(1_000) as f32 / 1_000.0;
        let (level, day) = (5.0 + 50.0 * share() * share(), 20.0 * share() * share());
        let (phase, noise) = (share() * DAY as f32, 0.2 + 4.0 * share() * share());
        let burst = 50 + (share() * 500.0) as u64;
        Self { dice, level, day, phase, noise, lingering: 0.0, burst, left: 0, at: 0 }
    }

    fn next(&mut self) -> f32 {
        let even = self.dice.below(2_001) as f32 / 1_000.0 - 1.0;
        self.lingering = 0.8 * self.lingering + self.noise * even;
        if self.left > 0 {
            self.left -= 1;
        } else if self.dice.below(self.burst) == 0 {
            self.left = self.dice.between(2, 12);
        }
        let burst = if self.left > 0 { 15.0 } else { 0.0 };
        let turn = (self.at as f32 + self.phase) / DAY as f32 * std::f32::consts::TAU;
        self.at += 1;
        (self.level + self.day * turn.sin() + self.lingering + burst).clamp(0.0, 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_fleet_is_measured() {
        let spec = FleetSpec { series: 300, horizon: 12, threads: 2, seed: 1 };
        let report = run(&spec).expect("a trained model");
        assert!(report.coverage > 0.7 && report.coverage < 1.0, "{report:?}");
        assert!(report.predict_s > 0.0 && report.update_us > 0.0);
    }
}
