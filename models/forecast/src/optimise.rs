//! Minimising a function of a few numbers: argmin's simplex and quasi-Newton methods behind two
//! calls, with everything that could be infinite or slow kept away from them.

use argmin::core::{CostFunction, Error, Executor, Gradient, State};
use argmin::solver::linesearch::MoreThuenteLineSearch;
use argmin::solver::neldermead::NelderMead;
use argmin::solver::quasinewton::LBFGS;

/// Stands for "not allowed" and for what is not a number; large enough to lose against anything.
pub const REFUSED: f64 = 1e30;

/// The best point that a simplex starting at `start` with edges `steps` finds, and its cost.
///
/// Needs no derivatives. Ends after `iterations` or when costs on the simplex differ by less
/// than `tolerance`.
pub fn simplex(
    cost: impl Fn(&[f64]) -> f64,
    start: &[f64],
    steps: &[f64],
    iterations: u64,
    tolerance: f64,
) -> (Vec<f64>, f64) {
    let problem = Cost(cost);
    if start.is_empty() {
        return (Vec::new(), problem.at(start));
    }
    let mut corners = vec![start.to_vec()];
    for (axis, step) in steps.iter().enumerate() {
        let mut corner = start.to_vec();
        corner[axis] += step;
        corners.push(corner);
    }
    let fallback = (start.to_vec(), problem.at(start));
    let Ok(solver) = NelderMead::new(corners).with_sd_tolerance(tolerance) else {
        return fallback;
    };
    let run = Executor::new(problem, solver)
        .configure(|state| state.max_iters(iterations))
        .timer(false)
        .run();
    best_of(run.ok().map(|result| result.state), fallback)
}

/// Walks downhill from `start` by differences of the cost; for smooth costs near a minimum.
pub fn downhill(cost: impl Fn(&[f64]) -> f64, start: &[f64], iterations: u64) -> (Vec<f64>, f64) {
    let problem = Cost(cost);
    let fallback = (start.to_vec(), problem.at(start));
    if start.is_empty() || fallback.1 >= REFUSED {
        return fallback;
    }
    let Ok(solver) = LBFGS::new(MoreThuenteLineSearch::new(), 7).with_tolerance_cost(1e-9) else {
        return fallback;
    };
    let run = Executor::new(problem, solver)
        .configure(|state| state.param(start.to_vec()).max_iters(iterations))
        .timer(false)
        .run();
    best_of(run.ok().map(|result| result.state), fallback)
}

fn best_of<S: State<Param = Vec<f64>, Float = f64>>(
    state: Option<S>,
    fallback: (Vec<f64>, f64),
) -> (Vec<f64>, f64) {
    match state {
        Some(state) if state.get_best_cost() < fallback.1 => {
            let cost = state.get_best_cost();
            state.get_best_param().map_or(fallback, |best| (best.clone(), cost))
        }
        _ => fallback,
    }
}

struct Cost<F>(F);

impl<F: Fn(&[f64]) -> f64> Cost<F> {
    fn at(&self, point: &[f64]) -> f64 {
        let cost = (self.0)(point);
        if cost.is_finite() { cost.min(REFUSED) } else { REFUSED }
    }
}

impl<F: Fn(&[f64]) -> f64> CostFunction for Cost<F> {
    type Param = Vec<f64>;
    type Output = f64;

    fn cost(&self, point: &Vec<f64>) -> Result<f64, Error> {
        Ok(self.at(point))
    }
}

impl<F: Fn(&[f64]) -> f64> Gradient for Cost<F> {
    type Param = Vec<f64>;
    type Gradient = Vec<f64>;

    /// Central differences.
    fn gradient(&self, point: &Vec<f64>) -> Result<Vec<f64>, Error> {
        let mut probe = point.clone();
        let slope = |axis: usize| {
            let step = 1e-5 * point[axis].abs().max(1.0);
            probe[axis] = point[axis] + step;
            let above = self.at(&probe);
            probe[axis] = point[axis] - step;
            let below = self.at(&probe);
            probe[axis] = point[axis];
            (above - below) / (2.0 * step)
        };
        Ok((0..point.len()).map(slope).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bowl(x: &[f64]) -> f64 {
        (x[0] - 3.0).powi(2) + 10.0 * (x[1] + 1.0).powi(2) + 5.0
    }

    #[test]
    fn both_find_the_bottom_of_a_bowl() {
        let (at, cost) = simplex(bowl, &[0.0, 0.0], &[0.5, 0.5], 500, 1e-12);
        assert!((at[0] - 3.0).abs() < 1e-4 && (at[1] + 1.0).abs() < 1e-4, "{at:?}");
        assert!((cost - 5.0).abs() < 1e-8);
        let (at, _) = downhill(bowl, &[0.0, 0.0], 50);
        assert!((at[0] - 3.0).abs() < 1e-4 && (at[1] + 1.0).abs() < 1e-4, "{at:?}");
    }

    #[test]
    fn what_is_not_a_number_is_walked_around() {
        let fenced = |x: &[f64]| if x[0] > 2.0 { f64::NAN } else { (x[0] - 3.0).powi(2) };
        let (at, _) = simplex(fenced, &[0.0], &[0.3], 200, 1e-12);
        assert!((at[0] - 2.0).abs() < 1e-3, "{at:?}");
        let everywhere = |_: &[f64]| f64::NAN;
        assert_eq!(simplex(everywhere, &[1.0], &[1.0], 20, 1e-9), (vec![1.0], REFUSED));
        assert_eq!(downhill(everywhere, &[1.0], 20), (vec![1.0], REFUSED));
    }

    #[test]
    fn nothing_to_choose_is_an_answer() {
        assert_eq!(simplex(|_| 7.0, &[], &[], 10, 1e-9), (vec![], 7.0));
        assert_eq!(downhill(|_| 7.0, &[], 10), (vec![], 7.0));
    }
}
