//! Evaluates the active policies for one VM over all hosts at once, block by block.
//!
//! A request is prepared first: whatever depends on the VM alone is worked out, and rules that
//! cannot fire are dropped. The blocks then run without allocating. What a policy means is written
//! down in `scalar`, and a property test holds the two together.

mod block;
mod prepare;
mod row;
mod verdicts;

pub use verdicts::{LogLine, Verdicts};

use crate::active::{ActiveSet, RuleIx};
use crate::code::Code;
use crate::document::{ActionKind, PolicyType, Rule};
use crate::table::Table;
use crate::{Root, Value};
use block::{BLOCK, Mask, Register, WORDS};
use prepare::{Context, Kind, Plan, Preparation};
use row::Cell;

/// Steps that one evaluation may take when nothing else is asked for: all that the active policies
/// can take, for a hundred thousand hosts.
pub const DEFAULT_FUEL: u64 = 100_000 * crate::MAX_SET_STEPS_PER_HOST;

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub asked: PolicyType,
    /// Values of the VM's attributes, in the order of `ActiveSet::paths().vm`.
    pub vm: &'a [Value],
    /// The same for the host it would leave; empty when there is none.
    pub source: &'a [Value],
    /// Hosts to look at, one bit per row; `None` looks at all.
    pub candidates: Option<&'a [u64]>,
    /// Whether to keep points by rule and reason.
    pub components: bool,
    pub fuel: u64,
}

impl<'a> Request<'a> {
    /// A request about all hosts.
    pub fn new(asked: PolicyType, vm: &'a [Value]) -> Self {
        Self { asked, vm, source: &[], candidates: None, components: false, fuel: DEFAULT_FUEL }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluateError {
    #[error("the table has {found} columns, the active policies read {wanted}")]
    Columns { found: usize, wanted: usize },
    #[error("{found} values were given for {root}, the active policies read {wanted}")]
    Values { root: &'static str, found: usize, wanted: usize },
    #[error("evaluating took more than {limit} steps")]
    OutOfFuel { limit: u64 },
}

/// Buffers that are used again from request to request.
#[derive(Debug, Default)]
pub struct Scratch {
    preparation: Preparation,
    policies: Vec<PolicyTask>,
    rules: Vec<RuleTask>,
    plans: Vec<Plan>,
    registers: Vec<Register>,
    cells: Vec<Cell>,
    points: Vec<[f64; BLOCK]>,
}

/// A policy that counts for this request.
#[derive(Clone, Debug)]
struct PolicyTask {
    policy: usize,
    target: Plan,
    /// Its rules end here in the list of rules.
    end: usize,
}

/// A rule that may fire for this request.
#[derive(Clone, Debug)]
struct RuleTask {
    rule: RuleIx,
    place: usize,
    when: Plan,
    /// Plans of its scores end here in the list of plans.
    end: usize,
}

impl ActiveSet {
    /// Evaluates the policies that count for the request and writes what they say to `verdicts`.
    pub fn evaluate(
        &self,
        request: &Request<'_>,
        table: &Table,
        scratch: &mut Scratch,
        verdicts: &mut Verdicts,
    ) -> Result<(), EvaluateError> {
        self.check(request, table)?;
        verdicts.start(self, request, table.rows());
        let context = Context { vm: request.vm, source: request.source, table };
        scratch.prepare(self, request.asked, &context);
        let mut run = Run { set: self, context, scratch, verdicts, fuel: request.fuel };
        for start in (0..table.rows()).step_by(BLOCK) {
            if !run.block(start) {
                return Err(EvaluateError::OutOfFuel { limit: request.fuel });
            }
        }
        verdicts.finish();
        Ok(())
    }

    fn check(&self, request: &Request<'_>, table: &Table) -> Result<(), EvaluateError> {
        let wanted = self.paths().host.len();
        if table.columns() != wanted {
            return Err(EvaluateError::Columns { found: table.columns(), wanted });
        }
        let check = |root: Root, found: usize| {
            let wanted = self.paths().of(root).len();
            if found == wanted {
                return Ok(());
            }
            Err(EvaluateError::Values { root: root.name(), found, wanted })
        };
        check(Root::Vm, request.vm.len())?;
        if request.source.is_empty() {
            return Ok(());
        }
        check(Root::Source, request.source.len())
    }
}

impl Scratch {
    fn prepare(&mut self, set: &ActiveSet, asked: PolicyType, context: &Context<'_>) {
        self.preparation.clear();
        self.policies.clear();
        self.rules.clear();
        self.plans.clear();
        let mut most_scores = 0;
        for (index, policy) in set.policies().iter().enumerate() {
            if !policy.program().document().kind.counts_for(asked) {
                continue;
            }
            let target = match &policy.target {
                Some(target) => self.preparation.plan(target, Kind::Bool, context),
                None => Plan::Known(Ok(Value::Bool(true))),
            };
            if never(&target) {
                continue;
            }
            for (place, (rule, code)) in policy.rules().zip(&policy.rules).enumerate() {
                let when = self.preparation.plan(&code.when, Kind::Bool, context);
                if never(&when) {
                    continue;
                }
                for score in &code.scores {
                    let plan = self.preparation.plan(score, Kind::Number, context);
                    self.plans.push(plan);
                }
                most_scores = most_scores.max(code.scores.len());
                self.rules.push(RuleTask { rule: rule.0, place, when, end: self.plans.len() });
            }
            self.policies.push(PolicyTask { policy: index, target, end: self.rules.len() });
        }
        if self.registers.len() < self.preparation.registers {
            self.registers.resize_with(self.preparation.registers, Register::default);
        }
        if self.points.len() < most_scores {
            self.points.resize(most_scores, [0.0; BLOCK]);
        }
    }
}

/// Known to be false, or not there.
fn never(plan: &Plan) -> bool {
    matches!(plan, Plan::Known(cell) if row::truth(cell) == Ok(false))
}

struct Run<'a> {
    set: &'a ActiveSet,
    context: Context<'a>,
    scratch: &'a mut Scratch,
    verdicts: &'a mut Verdicts,
    fuel: u64,
}

/// Rows for which a condition is true, and rows for which it has no value.
struct Outcome {
    truth: Mask,
    fault: Mask,
}

impl Run<'_> {
    /// Evaluates the rows from `start`; `false` when the fuel is used up.
    fn block(&mut self, start: usize) -> bool {
        let mut alive = self.verdicts.feasible_in(start);
        let (mut next_rule, mut next_plan) = (0, 0);
        for task in 0..self.scratch.policies.len() {
            if is_empty(&alive) {
                break;
            }
            let Some(PolicyTask { policy, target, end }) = self.scratch.policies.get(task).cloned()
            else {
                break;
            };
            let Some(active) = self.set.policies().get(policy) else { break };
            let Some(applies) = self.condition(active.target.as_ref(), &target, &alive, start)
            else {
                return false;
            };
            self.verdicts.target_failed(policy, &applies.fault);
            // Rows that the target leaves out stay as they are.
            let mut here = applies.truth;
            let aside = and_not(&alive, &here);
            while next_rule < end {
                let Some(rule) = self.scratch.rules.get(next_rule).cloned() else { break };
                next_rule += 1;
                let scores = next_plan..rule.end;
                next_plan = rule.end;
                if is_empty(&here) {
                    continue;
                }
                let Some(code) = active.rules.get(rule.place) else { continue };
                let Some((_, written)) = self.set.rule(rule.rule) else { continue };
                let fires = self.condition(Some(&code.when), &rule.when, &here, start);
                let Some(Outcome { truth: mut fires, mut fault }) = fires else { return false };
                for (slot, (plan, score)) in scores.zip(&code.scores).enumerate() {
                    let Some(failed) = self.points(score, plan, slot, &fires, start) else {
                        return false;
                    };
                    for (fault, failed) in fault.iter_mut().zip(failed) {
                        *fault |= failed;
                    }
                }
                fires = and_not(&fires, &fault);
                self.verdicts.rule_failed(rule.rule, &fault);
                if self.act(rule.rule, written, &fires, start) {
                    here = and_not(&here, &fires);
                }
            }
            next_rule = end;
            for (alive, (here, aside)) in alive.iter_mut().zip(here.iter().zip(&aside)) {
                *alive = here | aside;
            }
        }
        self.verdicts.keep(start, &alive);
        true
    }

    /// Takes the actions of a rule on the rows where it fires; `true` when these are removed.
    fn act(&mut self, rule: RuleIx, written: &Rule, fires: &Mask, start: usize) -> bool {
        if is_empty(fires) {
            return false;
        }
        let weight = f64::from(written.weight);
        let mut removed = false;
        let mut slot = 0;
        for (place, action) in written.then.iter().enumerate() {
            match &action.kind {
                ActionKind::Score { .. } => {
                    if let Some(points) = self.scratch.points.get(slot) {
                        self.verdicts.add(rule, place, fires, start, |row| {
                            points.get(row).copied().unwrap_or(0.0) * weight
                        });
                    }
                    slot += 1;
                }
                ActionKind::Filter { .. } if written.removes() => removed = true,
                ActionKind::Filter { .. } => {
                    let points = -crate::SOFT_FILTER_POINTS * weight;
                    self.verdicts.add(rule, place, fires, start, |_| points);
                }
                ActionKind::Log { .. } => self.verdicts.log(rule, place, fires),
            }
        }
        if removed {
            self.verdicts.remove(rule, fires, start);
        }
        removed
    }

    /// A condition on the rows of `alive`; `None` when the fuel is used up.
    fn condition(
        &mut self,
        code: Option<&Code>,
        plan: &Plan,
        alive: &Mask,
        start: usize,
    ) -> Option<Outcome> {
        let none = [0; WORDS];
        match plan {
            Plan::Known(cell) => Some(match row::truth(cell) {
                Ok(true) => Outcome { truth: *alive, fault: none },
                Ok(false) => Outcome { truth: none, fault: none },
                Err(_) => Outcome { truth: none, fault: *alive },
            }),
            Plan::Steps { first, end } => {
                self.steps(*first, *end, start)?;
                let register = self.scratch.registers.first()?;
                Some(Outcome {
                    truth: and(&register.truth, alive),
                    fault: and(&register.fault, alive),
                })
            }
            Plan::Rows => {
                let mut outcome = Outcome { truth: none, fault: none };
                self.rows(code?, alive, start, |lane, cell, _| match row::truth(cell) {
                    Ok(true) => put(&mut outcome.truth, lane),
                    Ok(false) => {}
                    Err(_) => put(&mut outcome.fault, lane),
                })?;
                Some(outcome)
            }
        }
    }

    /// Writes the points of a score to its slot and returns where there are none.
    fn points(
        &mut self,
        code: &Code,
        plan: usize,
        slot: usize,
        fires: &Mask,
        start: usize,
    ) -> Option<Mask> {
        if is_empty(fires) {
            return Some([0; WORDS]);
        }
        match self.scratch.plans.get(plan)?.clone() {
            Plan::Known(cell) => match row::points(&cell) {
                Ok(points) => {
                    *self.scratch.points.get_mut(slot)? = [points; BLOCK];
                    Some([0; WORDS])
                }
                Err(_) => Some(*fires),
            },
            Plan::Steps { first, end } => {
                self.steps(first, end, start)?;
                let register = self.scratch.registers.first()?;
                *self.scratch.points.get_mut(slot)? = register.numbers;
                // A column alone may have holes, which are no faults yet.
                Some(and(&register.not_there(), fires))
            }
            Plan::Rows => {
                let mut fault = [0; WORDS];
                self.rows(code, fires, start, |lane, cell, points| match row::points(cell) {
                    Ok(value) => {
                        if let Some(points) = points.get_mut(slot).and_then(|p| p.get_mut(lane)) {
                            *points = value;
                        }
                    }
                    Err(_) => put(&mut fault, lane),
                })?;
                Some(fault)
            }
        }
    }

    fn steps(&mut self, first: usize, end: usize, start: usize) -> Option<()> {
        let steps = self.scratch.preparation.steps.get(first..end)?;
        let rows = self.context.table.rows().saturating_sub(start).min(BLOCK);
        self.fuel = self.fuel.checked_sub(steps.len() as u64 * rows as u64)?;
        block::run(steps, &mut self.scratch.registers, self.context.table, start);
        Some(())
    }

    /// Evaluates `code` node by node for every row of `rows`.
    fn rows(
        &mut self,
        code: &Code,
        rows: &Mask,
        start: usize,
        mut each: impl FnMut(usize, &Cell, &mut [[f64; BLOCK]]),
    ) -> Option<()> {
        let Scratch { cells, points, .. } = &mut *self.scratch;
        for lane in lanes(rows) {
            self.fuel = self.fuel.checked_sub(code.nodes.len() as u64)?;
            cells.clear();
            let lookup = |root: Root, index: usize| match root {
                Root::Candidate => self.context.table.value(start + lane, index),
                root => self.context.attribute(root, index),
            };
            for node in &code.nodes {
                let cell = row::apply(node, cells, &lookup);
                cells.push(cell);
            }
            each(lane, cells.last()?, points);
        }
        Some(())
    }
}

fn is_empty(mask: &Mask) -> bool {
    mask.iter().all(|word| *word == 0)
}

fn and(a: &Mask, b: &Mask) -> Mask {
    std::array::from_fn(|word| a.get(word).unwrap_or(&0) & b.get(word).unwrap_or(&0))
}

fn and_not(a: &Mask, b: &Mask) -> Mask {
    std::array::from_fn(|word| a.get(word).unwrap_or(&0) & !b.get(word).unwrap_or(&0))
}

fn put(mask: &mut Mask, lane: usize) {
    if let Some(word) = mask.get_mut(lane / crate::table::LANES) {
        *word |= 1 << (lane % crate::table::LANES);
    }
}

/// The rows of a block that are in `mask`, lowest first.
fn lanes(mask: &Mask) -> impl Iterator<Item = usize> + use<> {
    (*mask).into_iter().enumerate().flat_map(|(word, bits)| {
        let mut bits = bits;
        std::iter::from_fn(move || {
            let lane = bits.trailing_zeros() as usize;
            (bits != 0).then(|| {
                bits &= bits - 1;
                word * crate::table::LANES + lane
            })
        })
    })
}
