//! Optimisations and fronts as callers see them.

use super::Record;
use optimise::{Answer, FrontPoint, Moved, Trade};
use solver::objective::Value;
use wire::{FrontPointView, FrontView, GoalValueView, MoveView, OptimisationView, Word};

impl Record {
    pub(crate) fn view(&self) -> OptimisationView {
        let now = self.now();
        let answer = now.answer.as_deref();
        let moved = |placed: bool| match answer {
            Some(answer) => moves(&answer.moved, placed),
            None => Vec::new(),
        };
        OptimisationView {
            id: format!("o{}", self.number),
            state: Word(now.state),
            scope: Word(self.request.scope),
            engine: Word(self.request.engine),
            mode: Word(self.request.mode),
            seed: self.request.seed,
            budget_ms: self.request.budget_ms,
            progress: now.share,
            elapsed_ms: now.elapsed_ms,
            revision: now.revision,
            incumbents: now.incumbents,
            objective: answer.and_then(|answer| answer.objective),
            bound: answer.map(|answer| answer.bound),
            gap: answer.and_then(|answer| answer.gap),
            stop_reason: answer.map(|answer| answer.stop_reason.as_str().to_owned()),
            rung: answer.map(|answer| answer.rung.as_str().to_owned()),
            how: answer.map(|answer| answer.engine.clone()),
            steps: answer.map(|answer| answer.steps),
            goals: answer
                .map(|answer| self.goals(&answer.after, &answer.before))
                .unwrap_or_default(),
            placements: moved(true),
            moves: moved(false),
            left_out: answer
                .map(|answer| answer.left_out.iter().map(ToString::to_string).collect())
                .unwrap_or_default(),
            front: answer.and_then(|answer| answer.front.as_ref()).map(|_| self.front_id()),
            error: now.error,
        }
    }

    pub(crate) fn front_id(&self) -> String {
        format!("f{}", self.number)
    }

    pub(crate) fn front_view(&self, trade: &Trade, revision: u64, answer: &Answer) -> FrontView {
        let points = (0u32..).zip(&trade.points);
        FrontView {
            id: self.front_id(),
            revision,
            points: points
                .map(|(row, point)| self.point_view(row, point, &answer.before))
                .collect(),
            hypervolume: trade.hypervolume,
            knee: u32::try_from(trade.knee).unwrap_or(0),
        }
    }

    pub(crate) fn point_view(
        &self,
        row: u32,
        point: &FrontPoint,
        before: &[Value],
    ) -> FrontPointView {
        let count = |placed| u32::try_from(moves(&point.moved, placed).len()).unwrap_or(u32::MAX);
        FrontPointView {
            point: row,
            goals: self.goals(&point.values, before),
            placements: count(true),
            moves: count(false),
        }
    }

    fn goals(&self, values: &[Value], before: &[Value]) -> Vec<GoalValueView> {
        let weight = |value: &Value| {
            let found = self.request.goals.iter().find(|(kind, _)| *kind == value.kind);
            found.map_or(0, |(_, weight)| *weight)
        };
        let was = |value: &Value| before.iter().find(|was| was.kind == value.kind);
        let view = |value: &Value| GoalValueView {
            goal: value.kind.name().to_owned(),
            unit: value.kind.unit().to_owned(),
            weight: weight(value),
            before: was(value).map(|was| was.value),
            value: value.value,
            bound: value.bound,
            normalised: value.normalised,
        };
        values.iter().map(view).collect()
    }
}

/// VMs that get a host, or VMs that leave theirs.
pub(crate) fn moves(moved: &[Moved], placed: bool) -> Vec<MoveView> {
    moved.iter().filter(|it| it.from.is_none() == placed).map(move_view).collect()
}

pub(crate) fn move_view(moved: &Moved) -> MoveView {
    MoveView {
        tenant: moved.vm.tenant.clone(),
        vm_id: moved.vm.id.clone(),
        from: moved.from.clone(),
        to: moved.to.clone(),
    }
}
