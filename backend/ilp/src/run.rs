//! Runs HiGHS on a programme and reads back what it found.

use crate::interrupt;
use crate::programme::Programme;
use highs::{HighsModelStatus, HighsSolutionStatus};
use solver::assignment::Deadline;

/// How a programme is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits<'a> {
    pub(crate) deadline: &'a Deadline,
    /// For solves that are worth only so much; the deadline ends everything.
    pub(crate) seconds: Option<f64>,
    pub(crate) threads: u32,
    /// Good enough when so close to the best, as a share.
    pub(crate) gap: f64,
}

/// What came out.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The value of each column, if any were found.
    pub(crate) values: Option<Vec<f64>>,
    /// Nothing is worth less; `None` if nothing is known.
    pub(crate) bound: Option<f64>,
    /// The values are the best there are, or there are none.
    pub(crate) proven: bool,
}

/// Relative error of a bound that was computed in floating point, generously.
const BOUND_ERROR: f64 = 1e-7;

/// The lowest whole number that a bound allows.
pub(crate) fn whole(bound: f64) -> i64 {
    (bound - BOUND_ERROR * bound.abs() - 1e-4).ceil() as i64
}

pub(crate) fn run(programme: Programme, start: Option<&[f64]>, limits: Limits<'_>) -> Answer {
    let (integer, constant) = (programme.integer, programme.constant);
    let nothing = Answer { values: None, bound: None, proven: false };
    if programme.columns.is_empty() {
        // HiGHS has no opinion about nothing: VMs that may go nowhere do not, and no VMs are fine.
        let values = programme.members.is_empty().then(Vec::new);
        return Answer { bound: values.is_some().then_some(constant), values, proven: true };
    }
    let Ok(mut model) = programme.into_model() else { return nothing };
    model.make_quiet();
    model.set_option("threads", limits.threads as i32);
    model.set_option("mip_rel_gap", limits.gap);
    // Objectives are whole but for the peak: closer than this is equal.
    model.set_option("mip_abs_gap", 1e-3);
    if let Some(seconds) = limits.seconds {
        model.set_option("time_limit", seconds);
    }
    if start.is_some() {
        model.set_solution(start, None, None, None);
    }
    interrupt::when_over(&mut model, limits.deadline);
    let Ok(solved) = model.try_solve() else { return nothing };
    let status = solved.status();
    let infeasible =
        matches!(status, HighsModelStatus::Infeasible | HighsModelStatus::UnboundedOrInfeasible);
    let optimal = status == HighsModelStatus::Optimal;
    let found = solved.primal_solution_status() == HighsSolutionStatus::Feasible;
    let bound = match integer {
        true => solved.double_info_value(c"mip_dual_bound").ok(),
        false => optimal.then(|| solved.objective_value()),
    };
    Answer {
        values: (found && !infeasible).then(|| solved.get_solution().columns().to_vec()),
        bound: bound.filter(|bound| bound.is_finite() && !infeasible).map(|b| b + constant),
        proven: optimal || infeasible,
    }
}
