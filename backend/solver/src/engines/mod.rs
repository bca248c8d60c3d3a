//! Engines: ways to search for a good assignment, one a file.
//!
//! Each takes a `Task` and returns an `Outcome`; none reads a clock, and with a limit of steps each
//! gives the same answer every time. What an engine cannot express it says by finding nothing.

mod annealing;
mod board;
mod conflict;
mod consolidation;
mod csp;
mod genetic;
mod greedy;
mod improve;
mod lns;
pub mod nsga2;
mod rebalance;
mod start;
mod swarm;
mod undo;
mod variation;

pub use annealing::Annealing;
pub use board::Board;
pub use conflict::{Conflict, Requirement, conflict, conflict_among};
pub use consolidation::Consolidation;
pub use csp::Csp;
pub use genetic::Genetic;
pub use greedy::Greedy;
pub use lns::Lns;
pub use nsga2::Nsga2;
pub use rebalance::Rebalance;
pub use start::{Begun, Start, StartError, begin};
pub use swarm::Swarm;
pub use undo::{approach, moved, undo};

use crate::assignment::{Budget, Model, Outcome};
use cluster::assignment::Problem;

/// What an engine is asked.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    pub problem: &'a Problem,
    /// The problem, compiled.
    pub model: &'a Model,
    /// A feasible assignment to do better than.
    pub start: Option<&'a [u32]>,
    pub seed: u64,
    /// Where better answers are told on the way, if somebody watches.
    pub board: Option<&'a Board>,
}

impl<'a> Task<'a> {
    pub fn new(problem: &'a Problem, model: &'a Model, seed: u64) -> Self {
        Self { problem, model, start: None, seed, board: None }
    }

    /// The same, to do better than this.
    pub fn from(self, start: &'a [u32]) -> Self {
        Self { start: Some(start), ..self }
    }

    /// The same, watched.
    pub fn on(self, board: &'a Board) -> Self {
        Self { board: Some(board), ..self }
    }

    /// Tells whoever watches of an answer.
    pub fn tell(&self, objective: i64, hosts: &[u32]) {
        if let Some(board) = self.board {
            board.offer(objective, hosts);
        }
    }
}

pub trait Engine {
    /// How it is called on the command line and in answers.
    fn name(&self) -> &'static str;

    fn solve(&self, task: Task<'_>, budget: &mut Budget) -> Outcome;
}
