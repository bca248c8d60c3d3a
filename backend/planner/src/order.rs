//! From a set of moves to waves.

use crate::ties::{Tie, Ties};
use cluster::{
    Amounts, Bindings, Constraint, Host, HostIx, Level, Migratability, Name, Reason, Strategy, Vm,
    VmKey,
};
use rustc_hash::{FxHashMap, FxHashSet};
use solver::explain::{Obstacle, obstacles};
use solver::{How, Problem, Scratch, feasible, place};
use std::sync::Arc;

/// A VM where it is.
#[derive(Clone, Debug)]
pub struct Placed<'a> {
    pub vm: &'a Vm,
    pub host: HostIx,
    /// What it takes there.
    pub committed: Amounts,
    pub bindings: Option<Arc<Bindings>>,
}

/// A VM of the fleet, by position, and where it should go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    pub vm: usize,
    pub to: HostIx,
}

/// How many migrations may run at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caps {
    pub in_all: usize,
    /// To or from one host.
    pub per_host: usize,
    /// To or from one domain of a level, such as a rack or its uplink.
    pub per_domain: Vec<(Level, usize)>,
}

impl Default for Caps {
    fn default() -> Self {
        Self { in_all: 64, per_host: 2, per_domain: vec![(Level::Rack, 8)] }
    }
}

/// One migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub vm: usize,
    pub from: HostIx,
    pub to: HostIx,
    /// What the VM takes where it goes.
    pub committed: Amounts,
    pub bindings: Option<Arc<Bindings>>,
    /// Only to make room: the VM moves on later.
    pub staging: bool,
}

/// Migrations that run together.
pub type Wave = Vec<Step>;

/// A move that no order makes possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    pub vm: usize,
    pub to: HostIx,
    pub why: Obstruction,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstruction {
    /// The VM says that it must not be moved.
    Pinned,
    /// The first rule in its way.
    Rule(Reason),
    /// This neighbour could not stay where it is.
    Neighbour(VmKey),
}

/// Moves in order, and those for which there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ordered {
    pub waves: Vec<Wave>,
    pub blocked: Vec<Blocked>,
}

/// Orders `moves` of a fleet that the tables describe. Leaves the tables as they were.
///
/// Moves come out in the order in which they are given, as far as they do not wait for others.
pub fn order<'a>(
    problem: &mut Problem,
    host: &dyn Fn(HostIx) -> Option<&'a Host>,
    fleet: &[Placed<'a>],
    constraints: &'a [&'a Constraint],
    moves: &[Move],
    caps: &Caps,
) -> Ordered {
    let ties = Ties::new(fleet.iter().map(|placed| placed.vm), constraints);
    let mut blocked = Vec::new();
    let mut left: Vec<Move> = Vec::new();
    for &asked in moves.iter().filter(|asked| fleet[asked.vm].host != asked.to) {
        match fleet[asked.vm].vm.migratability {
            Migratability::Pinned => {
                blocked.push(Blocked { vm: asked.vm, to: asked.to, why: Obstruction::Pinned });
            }
            Migratability::Live | Migratability::Cold => left.push(asked),
        }
    }
    loop {
        let mut now = Now {
            problem,
            host,
            ties: &ties,
            scratch: Scratch::default(),
            fleet: fleet.to_vec(),
            moved: Vec::new(),
            staged: FxHashSet::default(),
        };
        let (waves, stuck) = now.waves(left.clone(), caps);
        let staged = std::mem::take(&mut now.staged);
        now.restore(fleet);
        // A VM that was put aside and then cannot move on was moved for nothing: do without it.
        let (in_vain, others): (Vec<Blocked>, Vec<Blocked>) =
            stuck.into_iter().partition(|it| staged.contains(&it.vm));
        if in_vain.is_empty() {
            blocked.extend(others);
            return Ordered { waves, blocked };
        }
        left.retain(|asked| in_vain.iter().all(|it| it.vm != asked.vm));
        blocked.extend(in_vain);
    }
}

/// The fleet between two waves, and while one is being made.
struct Now<'a, 'p> {
    problem: &'p mut Problem,
    host: &'p dyn Fn(HostIx) -> Option<&'a Host>,
    ties: &'p Ties,
    scratch: Scratch,
    fleet: Vec<Placed<'a>>,
    moved: Vec<usize>,
    /// VMs that were put aside once.
    staged: FxHashSet<usize>,
}

/// A wave in the making.
struct Making<'c> {
    caps: &'c Caps,
    steps: Wave,
    /// What each VM holds on its source until the wave is over.
    held: Vec<Held>,
    ties: FxHashSet<Tie>,
    gives: FxHashMap<HostIx, usize>,
    takes: FxHashMap<HostIx, usize>,
    by_domain: FxHashMap<(usize, Name), usize>,
}

/// The room and the parts that a VM still has where it comes from, under a name of their own.
struct Held {
    ghost: Vm,
    host: HostIx,
    committed: Amounts,
    bindings: Option<Arc<Bindings>>,
}

/// Why a move is not part of a wave.
enum Not {
    /// Something else of the wave is in its way.
    Now,
    Because(Obstruction),
}

impl<'a> Now<'a, '_> {
    /// Makes waves until nothing is left, or nothing goes any more.
    fn waves(&mut self, mut left: Vec<Move>, caps: &Caps) -> (Vec<Wave>, Vec<Blocked>) {
        let mut waves = Vec::new();
        while !left.is_empty() {
            let mut wave = Making::new(caps);
            let mut stuck: Vec<(Move, Not)> = Vec::new();
            for asked in left {
                if let Err(not) = self.try_move(asked, &mut wave) {
                    stuck.push((asked, not));
                }
            }
            if wave.steps.is_empty() && !self.put_one_aside(&stuck, &mut wave) {
                let blocked = stuck.into_iter().map(|(Move { vm, to }, not)| {
                    let why = match not {
                        Not::Because(why) => why,
                        // Cannot be: an empty wave is in nobody's way.
                        Not::Now => Obstruction::Rule(Reason::HostState),
                    };
                    Blocked { vm, to, why }
                });
                return (waves, blocked.collect());
            }
            left = stuck.into_iter().map(|(asked, _)| asked).collect();
            wave.held.drain(..).for_each(|held| self.let_go(held));
            waves.push(wave.steps);
        }
        (waves, Vec::new())
    }

    /// Makes the move part of the wave if every rule holds with and without it.
    fn try_move(&mut self, asked: Move, wave: &mut Making<'_>) -> Result<(), Not> {
        let Move { vm: row, to } = asked;
        let from = self.fleet[row].host;
        if !wave.admits(self.ties.of(row), from, to, self.host) {
            return Err(Not::Now);
        }
        let before = self.fleet[row].clone();
        let held = self.lift(row, wave.steps.len());
        let landed = feasible(self.problem, before.vm, to)
            .map_err(Obstruction::Rule)
            .and_then(|committed| self.land(row, to, committed));
        let outcome = landed.and_then(|()| match self.unsettled(row, &before, &held) {
            None => Ok(()),
            Some(neighbour) => {
                self.take_off(row);
                Err(Obstruction::Neighbour(neighbour))
            }
        });
        if let Err(why) = outcome {
            self.put_down(row, before, held);
            return Err(Not::Because(why));
        }
        let Placed { committed, bindings, .. } = self.fleet[row].clone();
        let step = Step { vm: row, from, to, committed, bindings, staging: false };
        wave.add(step, held, self.ties.of(row), self.host);
        self.moved.push(row);
        Ok(())
    }

    /// Moves the first VM that can be to a host where it is in nobody's way, to move on later.
    fn put_one_aside(&mut self, stuck: &[(Move, Not)], wave: &mut Making<'_>) -> bool {
        stuck.iter().any(|(asked, _)| {
            if self.staged.contains(&asked.vm) {
                return false;
            }
            let Some(to) = self.aside(*asked) else { return false };
            let moved = self.try_move(Move { to, ..*asked }, wave).is_ok();
            if moved {
                wave.steps.iter_mut().for_each(|step| step.staging = true);
                self.staged.insert(asked.vm);
            }
            moved
        })
    }

    /// The emptiest host that could take the VM meanwhile.
    fn aside(&mut self, asked: Move) -> Option<HostIx> {
        let before = self.fleet[asked.vm].clone();
        let mut elsewhere = before.vm.clone();
        let names = [before.host, asked.to].into_iter().filter_map(|ix| (self.host)(ix));
        elsewhere.excluded_hosts.extend(names.map(|host| host.id.clone()));
        let held = self.lift(asked.vm, 0);
        let how = How { strategy: Strategy::WorstFit, ..How::default() };
        let choice = place(self.problem, &mut self.scratch, &elsewhere, &how);
        self.put_down(asked.vm, before, held);
        choice.host.map(|chosen| chosen.host)
    }

    /// Takes a VM off its host but for its room and its parts, which stay taken.
    fn lift(&mut self, row: usize, number: usize) -> Held {
        let Placed { vm, host, committed, bindings } = self.fleet[row].clone();
        self.problem.remove_vm(host, vm, &committed);
        // Of a tenant of its own: it takes room, and no rule speaks of it.
        let id = VmKey::stand_in(vm.key.tenant.clone(), 0, number).id;
        let key = VmKey { tenant: id.clone(), id };
        let ghost = Vm { qos: vm.qos, ..Vm::new(key, committed.clone()) };
        self.problem.add_vm(host, &ghost, &committed);
        Held { ghost, host, committed, bindings }
    }

    /// Puts a VM that is nowhere on its target.
    fn land(&mut self, row: usize, to: HostIx, committed: Amounts) -> Result<(), Obstruction> {
        let vm = self.fleet[row].vm;
        let bindings = match self.problem.bind(vm, to) {
            None => None,
            Some(Ok(bindings)) => Some(Arc::new(bindings)),
            Some(Err(_)) => return Err(Obstruction::Rule(Reason::Numa)),
        };
        self.problem.add_vm(to, vm, &committed);
        if let Some(bindings) = &bindings {
            let taken = self.problem.take(to, bindings);
            debug_assert_eq!(taken, Ok(()), "what was bound is free");
        }
        self.fleet[row] = Placed { vm, host: to, committed, bindings };
        Ok(())
    }

    /// Takes a VM off its host with everything that it has there.
    fn take_off(&mut self, row: usize) {
        let Placed { vm, host, committed, bindings } = self.fleet[row].clone();
        if let Some(bindings) = &bindings {
            let given = self.problem.give_back(host, bindings);
            debug_assert_eq!(given, Ok(()), "what was taken is given back");
        }
        self.problem.remove_vm(host, vm, &committed);
    }

    /// Undoes `lift`, for a VM that is nowhere.
    fn put_down(&mut self, row: usize, before: Placed<'a>, held: Held) {
        self.problem.remove_vm(held.host, &held.ghost, &held.committed);
        self.problem.add_vm(before.host, before.vm, &before.committed);
        self.fleet[row] = before;
    }

    /// Ends what a VM held on its source.
    fn let_go(&mut self, held: Held) {
        if let Some(bindings) = &held.bindings {
            let given = self.problem.give_back(held.host, bindings);
            debug_assert_eq!(given, Ok(()), "what was taken is given back");
        }
        self.problem.remove_vm(held.host, &held.ghost, &held.committed);
    }

    /// A neighbour that could stay where it is before the move, and can no longer.
    fn unsettled(&mut self, row: usize, before: &Placed<'a>, held: &Held) -> Option<VmKey> {
        // What is held takes room and is nobody to depend on, although a rule that speaks of all
        // VMs would count it.
        self.problem.remove_vm(held.host, &held.ghost, &held.committed);
        let found = self.unsettled_beside(row, before);
        self.problem.add_vm(held.host, &held.ghost, &held.committed);
        found
    }

    fn unsettled_beside(&mut self, row: usize, before: &Placed<'a>) -> Option<VmKey> {
        let neighbours = self.ties.neighbours(row);
        let now = |now: &mut Self| -> Vec<Vec<Reason>> {
            neighbours.iter().map(|&other| now.against(other)).collect()
        };
        let after = now(self);
        if after.iter().all(Vec::is_empty) {
            return None;
        }
        // Some rule is broken; whether by this move is seen with the VM where it was.
        let landed = self.fleet[row].clone();
        self.take_off(row);
        self.problem.add_vm(before.host, before.vm, &before.committed);
        let earlier = now(self);
        self.problem.remove_vm(before.host, before.vm, &before.committed);
        self.problem.add_vm(landed.host, landed.vm, &landed.committed);
        if let Some(bindings) = &landed.bindings {
            let taken = self.problem.take(landed.host, bindings);
            debug_assert_eq!(taken, Ok(()), "what was free a moment ago is free");
        }
        let broken = |(after, earlier): (&Vec<Reason>, &Vec<Reason>)| {
            after.iter().any(|reason| !earlier.contains(reason))
        };
        let which = after.iter().zip(&earlier).position(broken)?;
        Some(self.fleet[neighbours[which]].vm.key.clone())
    }

    /// The rules that a placed VM would fail on its own host, were it to be placed now.
    fn against(&mut self, row: usize) -> Vec<Reason> {
        let Placed { vm, host, committed, bindings } = self.fleet[row].clone();
        self.take_off(row);
        let found = obstacles(self.problem, vm, host);
        self.problem.add_vm(host, vm, &committed);
        if let Some(bindings) = &bindings {
            let taken = self.problem.take(host, bindings);
            debug_assert_eq!(taken, Ok(()), "what was free a moment ago is free");
        }
        found.iter().map(Obstacle::reason).collect()
    }

    /// Brings every VM back to where the tables had it.
    fn restore(mut self, fleet: &[Placed<'a>]) {
        let mut moved = std::mem::take(&mut self.moved);
        moved.sort_unstable();
        moved.dedup();
        moved.iter().for_each(|&row| self.take_off(row));
        for row in moved {
            let Placed { vm, host, committed, bindings } = &fleet[row];
            self.problem.add_vm(*host, vm, committed);
            if let Some(bindings) = bindings {
                let taken = self.problem.take(*host, bindings);
                debug_assert_eq!(taken, Ok(()), "it had these parts before");
            }
        }
    }
}

impl<'c> Making<'c> {
    fn new(caps: &'c Caps) -> Self {
        Self {
            caps,
            steps: Wave::new(),
            held: Vec::new(),
            ties: FxHashSet::default(),
            gives: FxHashMap::default(),
            takes: FxHashMap::default(),
            by_domain: FxHashMap::default(),
        }
    }

    /// Whether one more migration between these hosts may run beside those that are in.
    fn admits<'a>(
        &self,
        ties: &[Tie],
        from: HostIx,
        to: HostIx,
        host: &dyn Fn(HostIx) -> Option<&'a Host>,
    ) -> bool {
        let on = |hosts: &FxHashMap<HostIx, usize>, ix| hosts.get(&ix).copied().unwrap_or(0);
        self.steps.len() < self.caps.in_all
            && on(&self.takes, from) == 0
            && on(&self.gives, to) == 0
            && on(&self.gives, from) < self.caps.per_host
            && on(&self.takes, to) < self.caps.per_host
            && ties.iter().all(|tie| !self.ties.contains(tie))
            && domains(self.caps, [from, to], host).into_iter().all(|(cap, domain)| {
                let running = self.by_domain.get(&(cap, domain)).copied().unwrap_or(0);
                running < self.caps.per_domain[cap].1
            })
    }

    fn add<'a>(
        &mut self,
        step: Step,
        held: Held,
        ties: &[Tie],
        host: &dyn Fn(HostIx) -> Option<&'a Host>,
    ) {
        *self.gives.entry(step.from).or_default() += 1;
        *self.takes.entry(step.to).or_default() += 1;
        for key in domains(self.caps, [step.from, step.to], host) {
            *self.by_domain.entry(key).or_default() += 1;
        }
        self.ties.extend(ties);
        self.held.push(held);
        self.steps.push(step);
    }
}

/// The domains with a cap that these hosts are in, each once.
fn domains<'a>(
    caps: &Caps,
    hosts: [HostIx; 2],
    host: &dyn Fn(HostIx) -> Option<&'a Host>,
) -> Vec<(usize, Name)> {
    let capped = caps.per_domain.iter().enumerate().flat_map(|(cap, (level, _))| {
        let of = hosts.iter().filter_map(move |&ix| host(ix)?.domain(level).cloned());
        of.map(move |domain| (cap, domain))
    });
    let mut found: Vec<(usize, Name)> = capped.collect();
    found.sort_unstable();
    found.dedup();
    found
}
