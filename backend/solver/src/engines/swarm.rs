//! Particle swarm, for placements: particles that are drawn to where they and others were best.
//!
//! The textbook's position is a placement. Its difference of two positions is the list of hosts
//! that have other VMs in one than in the other; to go a part of that way is to take some of these
//! hosts over, the VMs that are in the way going where they cost least. Its velocity is a list of
//! flows from host to host: what was moved last time. With inertia, further VMs follow some of
//! those flows, so that a host that began to empty goes on emptying. A particle then takes small
//! steps that gain, and what it finds counts for itself and, if nobody was better, for all. Unlike
//! a genetic search nothing is selected: every particle goes on, from a worse position too. A
//! particle that has not been better for long is thrown: hosts are emptied and mixed at random.
//! A step is one move of one particle.

use super::improve::improve;
use super::variation::{Changes, Other, climb, dear_host};
use super::{Engine, Task};
use crate::assignment::{Budget, Outcome, State};
use crate::dice::Dice;

#[derive(Clone, Copy, Debug)]
pub struct Swarm {
    pub particles: usize,
    /// Share of the last flows that go on.
    pub inertia: f64,
    /// Hosts that are taken over from a particle's own best, and from the best of all, at most.
    pub own: u32,
    pub shared: u32,
    /// Moves without anything better after which a particle is thrown.
    pub patience: u32,
    /// Small steps in every move.
    pub tries: u32,
    /// Hosts that are looked at for a VM that has to go somewhere, besides where it was.
    pub looked_at: u32,
}

impl Default for Swarm {
    fn default() -> Self {
        Self {
            particles: 16,
            inertia: 0.5,
            own: 2,
            shared: 2,
            patience: 8,
            tries: 150,
            looked_at: 50,
        }
    }
}

/// Small steps, by VM, that every particle begins with.
const FIRST_TRIES: u32 = 20;
/// VMs that are drawn for each host that is to be taken over.
const DRAWS: u32 = 8;
/// Flows that are remembered.
const FLOWS: usize = 32;

impl Engine for Swarm {
    fn name(&self) -> &'static str {
        "swarm"
    }

    fn solve(&self, task: Task<'_>, budget: &mut Budget) -> Outcome {
        improve(self, task, budget, |start, budget| {
            let mut flight = Flight::new(self, State::new(task.model, start), task.seed);
            flight.run(task, budget);
            (flight.best.objective(), flight.best.assignment().to_vec())
        })
    }
}

/// From one host to another.
type Flow = (u32, u32);

struct Particle<'m> {
    at: State<'m>,
    best: State<'m>,
    velocity: Vec<Flow>,
    /// Moves since it was better than ever.
    in_vain: u32,
}

struct Flight<'m> {
    settings: Swarm,
    particles: Vec<Particle<'m>>,
    best: State<'m>,
    changes: Changes,
    dice: Dice,
    before: Vec<u32>,
}

impl<'m> Flight<'m> {
    fn new(settings: &Swarm, start: State<'m>, seed: u64) -> Self {
        Self {
            settings: *settings,
            particles: Vec::new(),
            best: start,
            changes: Changes::new(settings.looked_at),
            dice: Dice::new(seed),
            before: Vec::new(),
        }
    }

    fn run(&mut self, task: Task<'_>, budget: &mut Budget) {
        let start = self.best.clone();
        while self.particles.len() < self.settings.particles.max(1) && !budget.is_over() {
            self.add(&start);
            budget.spend(1);
        }
        let mut row = 0;
        while !budget.is_over() {
            self.advance(row);
            task.tell(self.best.objective(), self.best.assignment());
            row = (row + 1) % self.particles.len();
            budget.spend(1);
        }
    }

    /// Another particle: the start, a few hosts of which are mixed, and then small steps.
    fn add(&mut self, start: &State<'m>) {
        let model = start.model();
        let tries = FIRST_TRIES.saturating_mul(model.vms() as u32).min(1 << 16);
        let mut at = start.clone();
        for _ in 0..model.hosts() / 8 {
            self.changes.mix(&mut at, 2, 4, &mut self.dice);
        }
        climb(&mut at, tries, 0.0, &mut self.dice);
        if at.objective() < self.best.objective() {
            self.best.clone_from(&at);
        }
        let best = if at.objective() <= start.objective() { at.clone() } else { start.clone() };
        self.particles.push(Particle { at, best, velocity: Vec::new(), in_vain: 0 });
    }

    fn advance(&mut self, row: usize) {
        let settings = self.settings;
        let particle = &mut self.particles[row];
        let (changes, dice) = (&mut self.changes, &mut self.dice);
        self.before.clear();
        self.before.extend_from_slice(particle.at.assignment());
        follow(&mut particle.at, &particle.velocity, settings.inertia, dice);
        if particle.in_vain >= settings.patience {
            particle.in_vain = 0;
            throw(&mut particle.at, changes, dice);
        } else {
            approach(&mut particle.at, &particle.best, settings.own, changes, dice);
            approach(&mut particle.at, &self.best, settings.shared, changes, dice);
            let each = 2 + dice.below(4);
            changes.mix(&mut particle.at, 2, each, dice);
        }
        climb(&mut particle.at, settings.tries, 0.0, dice);
        particle.velocity.clear();
        let pairs = self.before.iter().zip(particle.at.assignment());
        let flows = pairs.filter(|(from, to)| from != to).map(|(&from, &to)| (from, to));
        particle.velocity.extend(flows.take(FLOWS));
        particle.in_vain += 1;
        if particle.at.objective() < particle.best.objective() {
            particle.best.clone_from(&particle.at);
            particle.in_vain = 0;
            if particle.at.objective() < self.best.objective() {
                self.best.clone_from(&particle.at);
            }
        }
    }
}

/// Another VM follows each of some of the flows, if one may.
fn follow(at: &mut State<'_>, velocity: &[Flow], inertia: f64, dice: &mut Dice) {
    for &(from, to) in velocity {
        if from == to || dice.share() >= inertia {
            continue;
        }
        let may = |&&vm: &&u32| at.may_shift(vm, to);
        if let Some(&vm) = at.vms_on(from).iter().find(may) {
            at.shift(vm, to);
        }
    }
}

/// Takes over up to `most` of the hosts that have other VMs in another position.
fn approach(
    at: &mut State<'_>,
    towards: &State<'_>,
    most: u32,
    changes: &mut Changes,
    dice: &mut Dice,
) {
    let vms = at.model().vms() as u32;
    let mut part = dice.below(most + 1);
    // A VM that is elsewhere there names a host; a few draws find one while much differs.
    for _ in 0..part * DRAWS {
        let vm = dice.below(vms);
        let host = towards.host_of(vm);
        let differs = at.host_of(vm) != host;
        part -= u32::from(differs && changes.inherit(at, host, Other::of(towards, host), dice));
        if part == 0 {
            break;
        }
    }
}

fn throw(at: &mut State<'_>, changes: &mut Changes, dice: &mut Dice) {
    for _ in 0..2 {
        if let Some(host) = dear_host(at, dice) {
            changes.empty(at, host, dice);
        }
        changes.mix(at, 4, 4, dice);
    }
}
