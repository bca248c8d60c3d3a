//! A small simplex for packings: maximise `c x` where `A x <= b`, `x >= 0` and `b >= 0`.
//!
//! Dense, with Bland's rule, so that it ends; a limit on pivots makes sure. Meant for a few hundred
//! rows. Its answer is a guide: callers work out for themselves what follows from it.

/// A packing programme.
#[derive(Debug)]
pub(super) struct Packing {
    pub(super) objective: Vec<f64>,
    rows: Vec<Vec<f64>>,
    limits: Vec<f64>,
}

/// Below this a number counts as zero.
const ZERO: f64 = 1e-9;
const MOST_PIVOTS: usize = 20_000;

impl Packing {
    pub(super) fn new(columns: usize) -> Self {
        Self { objective: vec![0.0; columns], rows: Vec::new(), limits: Vec::new() }
    }

    /// Adds a row.
    pub(super) fn at_most(&mut self, row: Vec<f64>, limit: f64) {
        debug_assert!(limit >= 0.0 && row.len() == self.objective.len());
        self.rows.push(row);
        self.limits.push(limit);
    }
}

/// The dual of each row at the optimum, or where the search was given up.
pub(super) fn duals(packing: &Packing) -> Vec<f64> {
    let (rows, columns) = (packing.rows.len(), packing.objective.len());
    let width = columns + rows + 1;
    // Amounts differ by nine orders of magnitude, so each row is scaled to 1 at most.
    let scales: Vec<f64> = packing.rows.iter().map(|row| scale(row)).collect();
    let mut tableau: Vec<Vec<f64>> = Vec::with_capacity(rows + 1);
    for (number, (row, limit)) in packing.rows.iter().zip(&packing.limits).enumerate() {
        let mut line = vec![0.0; width];
        for (cell, value) in line.iter_mut().zip(row) {
            *cell = value / scales[number];
        }
        line[columns + number] = 1.0;
        line[width - 1] = limit / scales[number];
        tableau.push(line);
    }
    let mut costs: Vec<f64> = packing.objective.iter().map(|value| -value).collect();
    costs.resize(width, 0.0);
    let mut basis: Vec<usize> = (columns..columns + rows).collect();
    for _ in 0..MOST_PIVOTS {
        let entering = costs[..width - 1].iter().position(|cost| *cost < -ZERO);
        let Some(entering) = entering else { break };
        let ratio = |row: usize| tableau[row][width - 1] / tableau[row][entering];
        let blocking = (0..rows).filter(|&row| tableau[row][entering] > ZERO);
        let leaving =
            blocking.min_by(|&a, &b| ratio(a).total_cmp(&ratio(b)).then(basis[a].cmp(&basis[b])));
        let Some(leaving) = leaving else { break };
        let pivot = tableau[leaving][entering];
        tableau[leaving].iter_mut().for_each(|cell| *cell /= pivot);
        let line = tableau[leaving].clone();
        let others = tableau.iter_mut().enumerate().filter(|(row, _)| *row != leaving);
        for other in others.map(|(_, other)| other).chain([&mut costs]) {
            let factor = other[entering];
            if factor != 0.0 {
                other.iter_mut().zip(&line).for_each(|(cell, value)| *cell -= factor * value);
            }
        }
        basis[leaving] = entering;
    }
    (0..rows).map(|row| costs[columns + row] / scales[row]).collect()
}

fn scale(row: &[f64]) -> f64 {
    let largest = row.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    if largest > 0.0 { largest } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duals_are_what_one_more_unit_brings() {
        // 3x + 5y, x <= 4, 2y <= 12, 3x + 2y <= 18: the text-book's 36 at (2, 6).
        let mut packing = Packing::new(2);
        packing.objective = vec![3.0, 5.0];
        packing.at_most(vec![1.0, 0.0], 4.0);
        packing.at_most(vec![0.0, 2.0], 12.0);
        packing.at_most(vec![3.0, 2.0], 18.0);
        let duals = duals(&packing);
        for (dual, expected) in duals.iter().zip([0.0, 1.5, 1.0]) {
            assert!((dual - expected).abs() < 1e-6, "{duals:?}");
        }
    }
}
