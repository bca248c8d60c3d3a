//! What the policies say about every host.

use super::block::{Mask, WORDS};
use super::{Request, lanes};
use crate::active::{ActiveSet, RuleIx};
use crate::document::{ActionKind, LogLevel};
use crate::table::LANES;
use crate::value::{MAX_MILLIS, millis};
use smol_str::SmolStr;

const KEPT: u32 = u32::MAX;
/// Stands for an action that was not taken on a row.
const NOT_TAKEN: i64 = i64::MIN;

/// The outcome of an evaluation, used again from request to request.
#[derive(Clone, Debug, Default)]
pub struct Verdicts {
    filtered_by: Vec<u32>,
    score_millis: Vec<i64>,
    feasible: Vec<u64>,
    errors: Vec<u32>,
    target_errors: Vec<u32>,
    logs: Vec<LogLine>,
    components: Vec<Component>,
}

/// A log action that was taken, with how many hosts it was taken on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    pub rule: RuleIx,
    pub level: LogLevel,
    pub text: SmolStr,
    pub count: u32,
    place: usize,
}

/// Points of one action by row.
#[derive(Clone, Debug)]
struct Component {
    rule: RuleIx,
    place: usize,
    reason: SmolStr,
    millis: Vec<i64>,
}

impl Verdicts {
    pub fn rows(&self) -> usize {
        self.score_millis.len()
    }

    /// The rule that removed a host, if one did.
    pub fn filtered_by(&self, row: usize) -> Option<RuleIx> {
        self.filtered_by.get(row).copied().filter(|rule| *rule != KEPT).map(RuleIx)
    }

    /// Thousandths of a point; 0 for hosts that were removed or not asked about.
    pub fn score_millis(&self, row: usize) -> i64 {
        self.score_millis.get(row).copied().unwrap_or(0)
    }

    pub fn scores(&self) -> &[i64] {
        &self.score_millis
    }

    /// The hosts that were asked about and not removed, one bit per row.
    pub fn feasible(&self) -> &[u64] {
        &self.feasible
    }

    pub fn is_feasible(&self, row: usize) -> bool {
        self.feasible.get(row / LANES).is_some_and(|word| word >> (row % LANES) & 1 == 1)
    }

    /// The hosts that were not removed: highest score first, then lowest row.
    pub fn ranked(&self) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..self.rows()).filter(|row| self.is_feasible(*row)).collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(self.score_millis(*row)), *row));
        rows
    }

    /// On how many hosts a rule did not fire because a part of it had no value.
    pub fn errors(&self, rule: RuleIx) -> u32 {
        self.errors.get(rule.0 as usize).copied().unwrap_or(0)
    }

    /// On how many hosts a policy did not apply because its target had no value.
    pub fn target_errors(&self, policy: usize) -> u32 {
        self.target_errors.get(policy).copied().unwrap_or(0)
    }

    pub fn total_errors(&self) -> u64 {
        self.errors.iter().chain(&self.target_errors).map(|count| u64::from(*count)).sum()
    }

    /// Log actions that were taken, in the order of evaluation.
    pub fn logs(&self) -> impl Iterator<Item = &LogLine> {
        self.logs.iter().filter(|line| line.count > 0)
    }

    /// Points of a host by rule and reason, in the order of evaluation. Empty for hosts that were
    /// removed, and unless the request asked for components.
    pub fn components(&self, row: usize) -> impl Iterator<Item = (RuleIx, &SmolStr, i64)> {
        let shown = self.components.iter().filter(move |_| self.is_feasible(row));
        shown.filter_map(move |component| {
            let millis = component.millis.get(row).filter(|millis| **millis != NOT_TAKEN)?;
            Some((component.rule, &component.reason, *millis))
        })
    }

    pub(super) fn start(&mut self, set: &ActiveSet, request: &Request<'_>, rows: usize) {
        reset(&mut self.filtered_by, rows, KEPT);
        reset(&mut self.score_millis, rows, 0);
        reset(&mut self.errors, set.rule_count(), 0);
        reset(&mut self.target_errors, set.policies().len(), 0);
        self.logs.clear();
        self.components.clear();
        let words = rows.div_ceil(LANES);
        reset(&mut self.feasible, words, !0);
        if let Some(last) = self.feasible.last_mut().filter(|_| !rows.is_multiple_of(LANES)) {
            *last = (1 << (rows % LANES)) - 1;
        }
        if let Some(candidates) = request.candidates {
            for (word, bits) in self.feasible.iter_mut().enumerate() {
                *bits &= candidates.get(word).unwrap_or(&0);
            }
        }
        let asked = set
            .policies()
            .iter()
            .filter(|policy| policy.program().document().kind.counts_for(request.asked));
        for (rule, written) in asked.flat_map(|policy| policy.rules()) {
            for (place, action) in written.then.iter().enumerate() {
                let reason = match &action.kind {
                    ActionKind::Log { text, level } => {
                        let (level, text) = (*level, text.clone());
                        self.logs.push(LogLine { rule, level, text, count: 0, place });
                        continue;
                    }
                    ActionKind::Filter { .. } if written.removes() => continue,
                    ActionKind::Filter { reason } | ActionKind::Score { reason, .. } => reason,
                };
                if request.components {
                    let millis = vec![NOT_TAKEN; rows];
                    self.components.push(Component { rule, place, reason: reason.clone(), millis });
                }
            }
        }
    }

    pub(super) fn finish(&mut self) {
        for score in &mut self.score_millis {
            *score = (*score).clamp(-MAX_MILLIS, MAX_MILLIS);
        }
    }

    /// The rows of a block that are still in.
    pub(super) fn feasible_in(&self, start: usize) -> Mask {
        let first = start / LANES;
        std::array::from_fn(|word| self.feasible.get(first + word).copied().unwrap_or(0))
    }

    pub(super) fn keep(&mut self, start: usize, alive: &Mask) {
        let first = start / LANES;
        for (word, alive) in self.feasible.iter_mut().skip(first).take(WORDS).zip(alive) {
            *word = *alive;
        }
    }

    pub(super) fn remove(&mut self, rule: RuleIx, rows: &Mask, start: usize) {
        for lane in lanes(rows) {
            let row = start + lane;
            if let (Some(by), Some(score)) =
                (self.filtered_by.get_mut(row), self.score_millis.get_mut(row))
            {
                (*by, *score) = (rule.0, 0);
            }
        }
    }

    pub(super) fn add(
        &mut self,
        rule: RuleIx,
        place: usize,
        rows: &Mask,
        start: usize,
        points: impl Fn(usize) -> f64,
    ) {
        let found = |component: &&mut Component| (component.rule, component.place) == (rule, place);
        let mut component = self.components.iter_mut().find(found);
        let Some(scores) = self.score_millis.get_mut(start..) else { return };
        for lane in lanes(rows) {
            let Some(score) = scores.get_mut(lane) else { break };
            let gained = millis(points(lane));
            *score += gained;
            if let Some(component) = &mut component
                && let Some(cell) = component.millis.get_mut(start + lane)
            {
                *cell = gained;
            }
        }
    }

    pub(super) fn log(&mut self, rule: RuleIx, place: usize, rows: &Mask) {
        let line = self.logs.iter_mut().find(|line| (line.rule, line.place) == (rule, place));
        if let Some(line) = line {
            line.count += count(rows);
        }
    }

    pub(super) fn rule_failed(&mut self, rule: RuleIx, rows: &Mask) {
        if let Some(errors) = self.errors.get_mut(rule.0 as usize) {
            *errors += count(rows);
        }
    }

    pub(super) fn target_failed(&mut self, policy: usize, rows: &Mask) {
        if let Some(errors) = self.target_errors.get_mut(policy) {
            *errors += count(rows);
        }
    }
}

fn count(rows: &Mask) -> u32 {
    rows.iter().map(|word| word.count_ones()).sum()
}

fn reset<T: Clone>(values: &mut Vec<T>, len: usize, value: T) {
    values.clear();
    values.resize(len, value);
}
