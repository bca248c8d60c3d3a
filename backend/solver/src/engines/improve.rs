//! The frame of engines that make an assignment better.

use super::{Engine, Greedy, Task};
use crate::assignment::{Budget, Outcome, State};

/// Begins with the assignment that is given, or with what greed finds, and returns what `search`
/// makes of it: a better one and its objective. Where there is nothing to choose, it is not asked.
pub(super) fn improve(
    engine: &dyn Engine,
    task: Task<'_>,
    budget: &mut Budget,
    search: impl FnOnce(&[u32], &mut Budget) -> (i64, Vec<u32>),
) -> Outcome {
    let model = task.model;
    let mut outcome = Outcome::nothing(engine.name(), model);
    let start = match task.start {
        Some(start) => Some(start.to_vec()),
        None => Greedy.solve(task, &mut budget.part(u64::MAX)).assignment,
    };
    let Some(start) = start else {
        if budget.is_over() {
            outcome.stop_reason = budget.reason();
        }
        return outcome;
    };
    let (objective, hosts) = if !model.movable().is_empty() && model.hosts() > 1 {
        let found = search(&start, budget);
        outcome.stop_reason = budget.reason();
        found
    } else {
        (State::new(model, &start).objective(), start)
    };
    task.tell(objective, &hosts);
    outcome.steps = budget.used();
    outcome.objective = Some(objective);
    outcome.assignment = Some(hosts);
    outcome
}
