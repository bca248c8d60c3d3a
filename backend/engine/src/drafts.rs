//! Making plans: from moves that are wanted to a draft that can be written down.
//!
//! Works on `Tables`, beside placing. Moves are put in waves by `planner`, and the waves are shown
//! to `verify`, which knows nothing of how they were made. Nothing here changes the state: a draft
//! becomes a plan by a request like any other.

mod emptying;
mod scene;

use crate::check;
use crate::plans::{Draft, OnFailure, PlanKind, Worth};
use crate::request::Refusal;
use crate::tables::Tables;
use cluster::{Name, Plan, Snapshot, VmKey};
use planner::{Caps, Link, Move};
use policy::ActiveSet;
use scene::Scene;
use std::collections::BTreeSet;

/// A VM that should be on another host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedMove {
    pub vm: VmKey,
    /// Where it was when that was found; `None` if that does not matter.
    pub from: Option<Name>,
    pub to: Name,
    /// By how much the objective falls.
    pub gain: Option<i64>,
}

/// How migrations are put in waves, and what becomes of the plan.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    pub caps: Caps,
    pub link: Link,
    pub on_failure: OnFailure,
    pub approved: bool,
}

/// A draft, and the same as the verifier reads it.
#[derive(Clone, Debug)]
pub struct Drafted {
    pub draft: Draft,
    pub plan: Plan,
}

impl Drafted {
    fn new(kind: PlanKind, terms: &Terms, tables: &Tables) -> Self {
        let draft = Draft {
            kind,
            hosts: Vec::new(),
            waves: Vec::new(),
            blocked: Vec::new(),
            worth: Worth::default(),
            on_failure: terms.on_failure,
            approved: terms.approved,
            based_on: tables.rows().revision,
            note: String::new(),
            asked: [0; 16],
        };
        Self { draft, plan: Plan::default() }
    }

    /// What the verifier has against it on the state that it was made from; nothing if it is safe
    /// at every instant.
    pub fn violations(&self, snapshot: Snapshot, policies: &ActiveSet) -> Vec<String> {
        let found = verify::certificate(snapshot, &[], &self.plan, policies);
        let steps = found.violations.iter().filter(|it| it.wave.is_some());
        steps.map(|it| it.violation.to_string()).collect()
    }
}

impl Tables {
    /// The moves in waves. Those that cannot be are in the draft too, with what is in their way.
    pub fn draft_moves(
        &mut self,
        kind: PlanKind,
        wanted: &[WantedMove],
        terms: &Terms,
    ) -> Result<Drafted, Refusal> {
        let scene = Scene::of(self);
        let mut moves = Vec::with_capacity(wanted.len());
        let mut seen = BTreeSet::new();
        for (position, it) in wanted.iter().enumerate() {
            let field = |name: &str| format!("moves[{position}].{name}");
            let to = scene.host(&it.to).ok_or_else(|| Refusal::UnknownHost(it.to.clone()))?;
            let row = scene.vm(&it.vm).ok_or_else(|| Refusal::UnknownVm(it.vm.clone()))?;
            let home = scene.home_of(row);
            if let (Some(from), Some(home)) = (&it.from, &home)
                && from != home
            {
                let problem = format!("is {from}, but VM {} is on {home}; look again", it.vm);
                return Err(check::invalid(&field("from"), &problem));
            }
            if !seen.insert(row) {
                let problem = format!("is {}, which is there twice", it.vm);
                return Err(check::invalid(&field("vm_id"), &problem));
            }
            moves.push((Move { vm: row, to }, it.gain));
        }
        let mut drafted = Drafted::new(kind, terms, self);
        scene.order(self, &moves, terms, &mut drafted);
        Ok(drafted)
    }
}
