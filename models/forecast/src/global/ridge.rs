//! One linear regression for all series: every step of the horizon from the last samples.
//!
//! Series alone are too short for two hundred coefficients a step; together they are not, and
//! what a week looks like is much the same everywhere.

use super::window::{Layout, Units, tail};
use crate::linear;
use crate::model::{Fitted, Model, Prediction};
use ndarray::{Array2, Axis};
use std::sync::Arc;

/// A trained regression; a `Model` that learns nothing more from a single series.
#[derive(Clone, Debug)]
pub struct Ridge(Arc<Trained>);

#[derive(Debug)]
struct Trained {
    layout: Layout,
    horizon: usize,
    /// One row a lag and one for the constant; one column a step.
    weights: Array2<f64>,
    /// The deviation of errors at each step, in units of the window.
    spread: Vec<f64>,
}

/// What to learn from.
#[derive(Clone, Copy, Debug)]
pub struct Lessons {
    /// At most this many windows, evenly spread.
    pub most: usize,
    /// How strongly coefficients are drawn to 0, as a share of the lessons' variance.
    pub shrink: f64,
}

impl Default for Lessons {
    fn default() -> Self {
        Self { most: 120_000, shrink: 3e-4 }
    }
}

#[derive(Clone, Debug)]
struct Window {
    model: Arc<Trained>,
    values: Vec<f64>,
}

impl Ridge {
    /// Learns from all series together. `None` if they are too short or too few to learn from.
    pub fn train(
        series: &[&[f64]],
        seasons: &[usize],
        horizon: usize,
        lessons: Lessons,
    ) -> Option<Self> {
        let layout = Layout::new(seasons, horizon);
        let places = |len: usize| (len + 1).saturating_sub(layout.span + horizon);
        let total: usize = series.iter().map(|values| places(values.len())).sum();
        let columns = layout.lags.len() + 1;
        if horizon == 0 || total < 10 * columns {
            return None;
        }
        let stride = total.div_ceil(lessons.most).max(1);
        let mut sums = Sums::new(columns, horizon);
        for values in series {
            for start in (0..places(values.len())).step_by(stride) {
                let now = start + layout.span;
                sums.add(&layout, &values[..now], &values[now..now + horizon]);
            }
        }
        sums.flush();
        let (weights, spread) = sums.solve(lessons.shrink)?;
        Some(Self(Arc::new(Trained { layout, horizon, weights, spread })))
    }
}

/// Products of what was seen with itself and with what followed, gathered by the block so that
/// the matrix product does the work.
struct Sums {
    seen: Array2<f64>,
    followed: Array2<f64>,
    filled: usize,
    normal: Array2<f64>,
    right: Array2<f64>,
    squares: Vec<f64>,
    count: f64,
    row: Vec<f64>,
}

const BLOCK: usize = 1024;

impl Sums {
    fn new(columns: usize, horizon: usize) -> Self {
        Self {
            seen: Array2::zeros((BLOCK, columns)),
            followed: Array2::zeros((BLOCK, horizon)),
            filled: 0,
            normal: Array2::zeros((columns, columns)),
            right: Array2::zeros((columns, horizon)),
            squares: vec![0.0; horizon],
            count: 0.0,
            row: Vec::with_capacity(columns),
        }
    }

    fn add(&mut self, layout: &Layout, known: &[f64], next: &[f64]) {
        let units = layout.units(known);
        self.row.clear();
        layout.look(known, units, &mut self.row);
        self.row.push(1.0);
        for (slot, value) in self.seen.row_mut(self.filled).iter_mut().zip(&self.row) {
            *slot = *value;
        }
        for (step, value) in next.iter().enumerate() {
            // What jumped far out of its window would teach everybody to jump.
            let value = units.inside(*value).clamp(-8.0, 8.0);
            self.followed[(self.filled, step)] = value;
            self.squares[step] += value * value;
        }
        self.count += 1.0;
        self.filled += 1;
        if self.filled == BLOCK {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let (seen, _) = self.seen.view().split_at(Axis(0), self.filled);
        let (followed, _) = self.followed.view().split_at(Axis(0), self.filled);
        self.normal += &seen.t().dot(&seen);
        self.right += &seen.t().dot(&followed);
        self.filled = 0;
    }

    fn solve(self, shrink: f64) -> Option<(Array2<f64>, Vec<f64>)> {
        let (columns, horizon) = self.right.dim();
        let mut factor = self.normal.clone();
        for i in 0..columns - 1 {
            factor[(i, i)] += shrink * self.count;
        }
        factor[(columns - 1, columns - 1)] += 1e-9 * self.count;
        let mut factor = factor.into_raw_vec_and_offset().0;
        linear::factor(&mut factor, columns)?;
        let mut weights = Array2::zeros((columns, horizon));
        let mut spread = Vec::with_capacity(horizon);
        for step in 0..horizon {
            let mut solution = self.right.column(step).to_vec();
            linear::solve_factored(&factor, &mut solution);
            let explained: f64 =
                solution.iter().zip(self.right.column(step)).map(|(w, r)| w * r).sum();
            spread.push(((self.squares[step] - explained).max(0.0) / self.count).sqrt());
            weights.column_mut(step).iter_mut().zip(&solution).for_each(|(to, from)| *to = *from);
        }
        Some((weights, spread))
    }
}

impl Model for Ridge {
    fn name(&self) -> &'static str {
        "ridge"
    }

    fn fit(&self, history: &[f64], _seasons: &[usize]) -> Box<dyn Fitted> {
        let values = tail(history, self.0.layout.span);
        Box::new(Window { model: Arc::clone(&self.0), values })
    }
}

impl Window {
    /// One whole horizon after `known`.
    fn ahead(&self, known: &[f64]) -> (Vec<f64>, Units) {
        let Trained { layout, weights, .. } = &*self.model;
        let units = layout.units(known);
        let mut row = Vec::with_capacity(weights.nrows());
        layout.look(known, units, &mut row);
        row.push(1.0);
        let mut points = vec![0.0; self.model.horizon];
        for (value, weights) in row.iter().zip(weights.rows()) {
            points.iter_mut().zip(weights).for_each(|(point, weight)| *point += value * weight);
        }
        points.iter_mut().for_each(|point| *point = units.outside(*point));
        (points, units)
    }
}

impl Fitted for Window {
    /// Beyond the horizon of the training, forecasts are taken for samples and go on from there.
    fn predict(&self, horizon: usize) -> Prediction {
        let mut known = self.values.clone();
        let (mut point, mut spread) = (Vec::new(), Vec::new());
        let mut rounds = 0.0;
        while point.len() < horizon {
            rounds += 1.0;
            let (points, units) = self.ahead(&known);
            known.extend_from_slice(&points);
            point.extend_from_slice(&points);
            let wider = f64::sqrt(rounds) * units.unit;
            spread.extend(self.model.spread.iter().map(|spread| spread * wider));
        }
        point.truncate(horizon);
        spread.truncate(horizon);
        Prediction::even(point, spread)
    }

    fn update(&mut self, value: f64) {
        self.values.rotate_left(1);
        if let Some(last) = self.values.last_mut() {
            *last = value;
        }
    }

    fn refit(&self, history: &[f64], seasons: &[usize]) -> Box<dyn Fitted> {
        Ridge(Arc::clone(&self.model)).fit(history, seasons)
    }

    fn describe(&self) -> String {
        format!("ridge over {} lags of all series", self.model.layout.lags.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;

    #[test]
    fn what_all_series_have_in_common_is_learned() {
        let series: Vec<Vec<f64>> = (0..20)
            .map(|seed| {
                let days = made::daily(seed, 500, 24);
                days.iter().map(|value| value * (seed + 1) as f64).collect()
            })
            .collect();
        let known: Vec<&[f64]> = series.iter().map(|values| &values[..450]).collect();
        let model = Ridge::train(&known, &[24], 24, Lessons::default()).expect("enough lessons");
        for (seed, values) in series.iter().enumerate() {
            let ahead = model.fit(&values[..450], &[24]).predict(50);
            let off = ahead.point.iter().zip(&values[450..]).map(|(a, b)| (a - b).abs());
            let off = off.sum::<f64>() / 50.0 / (seed + 1) as f64;
            assert!(off < 1.3, "series {seed}: {off}");
        }
    }

    #[test]
    fn updates_move_the_window() {
        let series: Vec<Vec<f64>> = (0..10).map(|seed| made::daily(seed, 400, 12)).collect();
        let known: Vec<&[f64]> = series.iter().map(Vec::as_slice).collect();
        let model = Ridge::train(&known, &[12], 6, Lessons::default()).expect("enough lessons");
        let mut short = model.fit(&series[0][..390], &[12]);
        series[0][390..].iter().for_each(|value| short.update(*value));
        assert_eq!(short.predict(6), model.fit(&series[0], &[12]).predict(6));
    }

    #[test]
    fn too_little_to_learn_from_is_said() {
        let values = made::walk(1, 60);
        assert!(Ridge::train(&[&values], &[24], 12, Lessons::default()).is_none());
        assert!(Ridge::train(&[], &[24], 12, Lessons::default()).is_none());
    }
}
