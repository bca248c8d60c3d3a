//! Runs HiGHS on a programme and reads back what it found.
//!
//! HiGHS asks whether to go on from inside most of its loops, but not from all of them: making a
//! large programme smaller before it is solved can take seconds. So it works on a thread of its own.
//! When the deadline is over and it has not answered a moment later, it is left behind: it ends by
//! itself at the next question, and what it found is lost.

use crate::interrupt;
use crate::programme::Programme;
use highs::{HighsModelStatus, HighsSolutionStatus};
use solver::assignment::Deadline;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How a programme is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits<'a> {
    pub(crate) deadline: &'a Arc<Deadline>,
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

/// How often the deadline is looked at, and how long HiGHS may take to see that it is over.
const LOOK: Duration = Duration::from_millis(2);
const MOMENT: Duration = Duration::from_millis(20);

/// Solves that were left behind; with more than this many at once memory would fill with them.
static LEFT_BEHIND: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());
const MOST_LEFT_BEHIND: usize = 2;

pub(crate) fn run(programme: Programme, start: Option<&[f64]>, limits: Limits<'_>) -> Answer {
    let constant = programme.constant;
    let nothing = Answer { values: None, bound: None, proven: false };
    if programme.columns.is_empty() {
        // HiGHS has no opinion about nothing: VMs that may go nowhere do not, and no VMs are fine.
        let values = programme.members.is_empty().then(Vec::new);
        return Answer { bound: values.is_some().then_some(constant), values, proven: true };
    }
    let (done, answer) = channel();
    let (deadline, start) = (Arc::clone(limits.deadline), start.map(<[f64]>::to_vec));
    let (seconds, threads, gap) = (limits.seconds, limits.threads, limits.gap);
    let solve = move || {
        let limits = Limits { deadline: &deadline, seconds, threads, gap };
        // Nobody waits for it any more if this fails.
        let _ = done.send(solved(programme, start.as_deref(), limits));
    };
    match std::thread::Builder::new().name("highs".into()).spawn(solve) {
        Ok(thread) => awaited(thread, &answer, limits.deadline).flatten().unwrap_or(nothing),
        Err(_) => nothing,
    }
}

/// What the thread answers, or `None` if it was left behind.
fn awaited<T>(thread: JoinHandle<()>, answer: &Receiver<T>, deadline: &Deadline) -> Option<T> {
    let mut over_since = None;
    loop {
        match answer.recv_timeout(LOOK) {
            Ok(found) => return Some(found),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) if !deadline.is_over() => continue,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if over_since.get_or_insert_with(Instant::now).elapsed() < MOMENT {
            continue;
        }
        let mut left = LEFT_BEHIND.lock().unwrap_or_else(PoisonError::into_inner);
        left.retain(|thread| !thread.is_finished());
        if left.len() < MOST_LEFT_BEHIND {
            left.push(thread);
            return None;
        }
    }
}

/// What HiGHS finds; `None` if it takes the programme for wrong.
fn solved(programme: Programme, start: Option<&[f64]>, limits: Limits<'_>) -> Option<Answer> {
    let (integer, constant) = (programme.integer, programme.constant);
    let mut model = programme.into_model().ok()?;
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
    let solved = model.try_solve().ok()?;
    let status = solved.status();
    let infeasible =
        matches!(status, HighsModelStatus::Infeasible | HighsModelStatus::UnboundedOrInfeasible);
    let optimal = status == HighsModelStatus::Optimal;
    let found = solved.primal_solution_status() == HighsSolutionStatus::Feasible;
    let bound = match integer {
        true => solved.double_info_value(c"mip_dual_bound").ok(),
        false => optimal.then(|| solved.objective_value()),
    };
    Some(Answer {
        values: (found && !infeasible).then(|| solved.get_solution().columns().to_vec()),
        bound: bound.filter(|bound| bound.is_finite() && !infeasible).map(|b| b + constant),
        proven: optimal || infeasible,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_solve_that_does_not_hear_the_deadline_is_left_behind_and_one_in_time_is_not() {
        let deadline = Deadline::default();
        let (done, answer) = channel();
        let thread = std::thread::spawn(move || done.send(7).unwrap_or(()));
        assert_eq!(awaited(thread, &answer, &deadline), Some(7));

        deadline.tell(1.0);
        let (go_on, wait) = channel::<()>();
        let (done, answer) = channel();
        let deaf = std::thread::spawn(move || {
            wait.recv().unwrap_or(());
            done.send(7).unwrap_or(());
        });
        assert_eq!(awaited(deaf, &answer, &deadline), None);
        drop(go_on);
    }
}
