//! A front of trade-offs: verified point by point, written to a file and summed up.

use super::{summary, verified};
use crate::output::print;
use anyhow::{Context, ensure};
use cluster::HostIx;
use cluster::assignment::{Goal, Problem};
use formats::placement;
use solver::engines::Task;
use solver::engines::nsga2::{Front, FrontPoint};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// Writes the front to `path`, its best point by the problem's own weights to `output`, and says
/// how it was found.
pub(super) fn tell(
    task: Task<'_>,
    front: Front<3>,
    path: &Path,
    output: Option<&Path>,
    started: Instant,
) -> anyhow::Result<ExitCode> {
    front.points.iter().try_for_each(|point| checked(task.problem, point))?;
    let points: Vec<&[u32]> = front.points.iter().map(|point| &point.assignment[..]).collect();
    std::fs::write(path, placement::write_front(&points))
        .with_context(|| path.display().to_string())?;
    let outcome = front.best(task);
    if let Some(hosts) = &outcome.assignment {
        verified(task.problem, hosts, &outcome)?;
        if let Some(path) = output {
            std::fs::write(path, placement::write_assignment(hosts))
                .with_context(|| path.display().to_string())?;
        }
    }
    let mut told = summary(&outcome, started);
    told["evaluations"] = front.evaluations.into();
    told["delta_evaluations"] = front.priced.into();
    told["points"] = front.points.len().into();
    told["hypervolume"] = front.hypervolume.into();
    print(told.to_string())?;
    Ok(if outcome.assignment.is_some() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The verifier accepts the point and finds the same cost.
fn checked(problem: &Problem, point: &FrontPoint<3>) -> anyhow::Result<()> {
    let rows: Vec<HostIx> = point.assignment.iter().copied().map(HostIx).collect();
    let worth = verify::assignment(problem, &rows).map_err(|faults| {
        let first = faults.first().map(ToString::to_string).unwrap_or_default();
        anyhow::anyhow!("the verifier refused a point of the front: {first}")
    })?;
    let goals = problem.goals.iter().zip(&worth.goals);
    let counted = goals.filter(|(goal, _)| !matches!(goal, Goal::Peak { .. } | Goal::Moves { .. }));
    let cost: i64 = counted.map(|(_, worth)| worth).sum();
    ensure!(
        cost as f64 == point.values[0],
        "the verifier says that a point of the front costs {cost}, the engine {}",
        point.values[0]
    );
    Ok(())
}
