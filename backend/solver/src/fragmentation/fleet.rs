//! A fleet that is filled shape by shape.
//!
//! Hosts are rows; what each GPU has left is kept with the host, everything else with its state.
//! The mix is given, or learned from the shapes that are placed; when it has moved enough, prices
//! are made anew and what was cached is dropped.

use super::confined::ByModel;
use super::guards::Places;
use super::host_state::{HostState, MOST_GPUS};
use super::learning::Learning;
use super::mix::Mix;
use super::policy::{Largest, Policy, Scoring};
use super::search::{Candidates, Cheapest, Scarcity, scan};
use super::shape::{MOST_MODELS, Shape, WHOLE};
use super::states::{StateIx, States};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Shapes and states that are remembered; beyond it all are forgotten but those in use.
const MOST_SHAPES: usize = 2048;
const MOST_STATES: usize = 1 << 16;

/// A host with nothing on it.
#[derive(Clone, Copy, Debug)]
pub struct Empty {
    pub cpu_millis: u32,
    pub memory_mib: u32,
    pub model: u8,
    pub gpus: u8,
}

/// Where the mix of shapes comes from.
#[derive(Clone, Debug)]
pub enum Knowledge {
    Given(Mix),
    /// From the shapes that are placed here.
    Online,
}

/// Who wins among equally cheap hosts.
#[derive(Clone, Copy, Debug)]
pub enum Ties {
    /// The lowest row.
    Lowest,
    /// Any, by a sequence of random numbers that the seed begins.
    Random(u64),
}

/// Where a shape goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    pub host: usize,
    /// Rows of GPUs on the host.
    pub gpus: SmallVec<[u8; 8]>,
    pub cost: i64,
}

#[derive(Debug)]
pub struct Fleet {
    policy: Policy,
    ties: Ties,
    hosts: Vec<Host>,
    largest: Largest,
    scoring: Scoring,
    states: States,
    shapes: FxHashMap<Shape, Candidates>,
    places: Places,
    left: ByModel,
    learning: Option<Learning<Shape>>,
}

#[derive(Debug)]
struct Host {
    /// Thousandths left, by GPU.
    free: SmallVec<[u16; 8]>,
    cpu_millis: u32,
    memory_mib: u32,
    model: u8,
    state: StateIx,
}

impl Fleet {
    /// Every host has `MOST_GPUS` GPUs at most, and a model below `MOST_MODELS`.
    pub fn new(hosts: &[Empty], policy: Policy, knowledge: Knowledge, ties: Ties) -> Self {
        let largest = Largest {
            cpu_millis: hosts.iter().map(|host| host.cpu_millis).max().unwrap_or(0),
            memory_mib: hosts.iter().map(|host| host.memory_mib).max().unwrap_or(0),
            gpu_millis: hosts
                .iter()
                .map(|host| u32::from(host.gpus) * u32::from(WHOLE))
                .max()
                .unwrap_or(0),
            models: hosts.iter().fold(0, |models, host| models | 1 << host.model),
        };
        let (mix, learning) = match knowledge {
            Knowledge::Given(mix) => (mix, None),
            Knowledge::Online => (Mix::default(), Some(Learning::default())),
        };
        let mut fleet = Self {
            policy,
            ties,
            hosts: hosts.iter().map(Host::new).collect(),
            largest,
            scoring: Scoring::new(policy, &mix, largest),
            states: States::default(),
            shapes: FxHashMap::default(),
            places: Places::default(),
            left: [0; MOST_MODELS],
            learning,
        };
        fleet.forget();
        fleet
    }

    /// Chooses a host for a shape and takes the room there. None if no host has room.
    pub fn place(&mut self, shape: &Shape) -> Option<Chosen> {
        self.learn(shape);
        let chosen = self.choose(shape)?;
        self.take(shape, &chosen);
        Some(chosen)
    }

    /// The host that `place` would choose, if the mix stayed as it is.
    pub fn choose(&mut self, shape: &Shape) -> Option<Chosen> {
        let scarcity = self.scarcity(shape);
        let (cost, host, state) = match self.ties {
            Ties::Lowest => {
                let (cost, state) = if self.keeps_candidates() {
                    if self.shapes.len() >= MOST_SHAPES && !self.shapes.contains_key(shape) {
                        self.shapes.clear();
                    }
                    let candidates = self.shapes.entry(*shape).or_default();
                    candidates.cheapest(shape, &self.states, &self.scoring, &scarcity)
                } else {
                    self.cheapest_by_scan(shape, &scarcity)
                }?;
                (cost, self.states.lowest(state), state)
            }
            Ties::Random(_) => self.any_of_the_cheapest(shape, &scarcity)?,
        };
        let way =
            self.scoring.cost(shape, self.states.state(state), self.states.measured(state))?.way;
        let hole = self.states.state(state).holes().get(usize::from(way)).copied().unwrap_or(0);
        Some(Chosen {
            host: host as usize,
            gpus: self.hosts[host as usize].pick(shape, hole),
            cost,
        })
    }

    /// The same by looking at every host's state afresh, without anything kept.
    pub fn choose_uncached(&self, shape: &Shape) -> Option<(usize, i64)> {
        let (cost, state) = self.cheapest_by_scan(shape, &self.scarcity(shape))?;
        Some((self.states.lowest(state) as usize, cost))
    }

    /// Takes what `choose` chose.
    pub fn take(&mut self, shape: &Shape, chosen: &Chosen) {
        let host = &mut self.hosts[chosen.host];
        host.cpu_millis -= shape.cpu_millis;
        host.memory_mib -= shape.memory_mib;
        chosen.gpus.iter().for_each(|gpu| host.free[usize::from(*gpu)] -= shape.milli);
        self.moved(chosen.host);
    }

    /// Gives back what `take` took.
    pub fn give_back(&mut self, shape: &Shape, chosen: &Chosen) {
        let host = &mut self.hosts[chosen.host];
        host.cpu_millis += shape.cpu_millis;
        host.memory_mib += shape.memory_mib;
        chosen.gpus.iter().for_each(|gpu| host.free[usize::from(*gpu)] += shape.milli);
        self.moved(chosen.host);
    }

    /// What a host has left.
    pub fn state(&self, host: usize) -> &HostState {
        self.states.state(self.hosts[host].state)
    }

    fn keeps_candidates(&self) -> bool {
        // The others cost less to compute than to keep.
        matches!(self.policy, Policy::Default | Policy::Fgd)
    }

    fn learn(&mut self, shape: &Shape) {
        let Some(learning) = &mut self.learning else { return };
        if let Some(mix) = learning.observe(*shape) {
            self.scoring = Scoring::new(self.policy, mix, self.largest);
            self.forget();
        }
    }

    fn scarcity(&self, shape: &Shape) -> Scarcity {
        self.scoring.scarcity(shape, &self.places, &self.left)
    }

    fn cheapest_by_scan(&self, shape: &Shape, scarcity: &Scarcity) -> Cheapest {
        let mut best: Option<(i64, u32, StateIx)> = None;
        scan(shape, &self.states, &self.scoring, scarcity, |cost, state| {
            let candidate = (cost, self.states.lowest(state), state);
            best = Some(best.map_or(candidate, |best| best.min(candidate)));
        });
        best.map(|(cost, _, state)| (cost, state))
    }

    /// Each of the cheapest hosts with the same probability.
    fn any_of_the_cheapest(
        &mut self,
        shape: &Shape,
        scarcity: &Scarcity,
    ) -> Option<(i64, u32, StateIx)> {
        let mut tied: Vec<StateIx> = Vec::new();
        let mut least = i64::MAX;
        scan(shape, &self.states, &self.scoring, scarcity, |cost, state| {
            if cost < least {
                tied.clear();
                least = cost;
            }
            if cost == least {
                tied.push(state);
            }
        });
        let hosts: usize = tied.iter().map(|state| self.states.hosts(*state).len()).sum();
        let mut pick = self.ties.random().checked_rem(hosts as u64)? as usize;
        for state in tied {
            match self.states.hosts(state).get(pick) {
                Some(host) => return Some((least, *host, state)),
                None => pick -= self.states.hosts(state).len(),
            }
        }
        None
    }

    fn moved(&mut self, row: usize) {
        let before = self.hosts[row].state;
        let after = self.hosts[row].measure();
        self.count(before, -1);
        self.states.leave(row as u32, before);
        self.hosts[row].state = self.states.enter(row as u32, after, &self.scoring);
        self.count(self.hosts[row].state, 1);
        if self.states.len() > MOST_STATES + 2 * self.hosts.len() {
            self.forget();
        }
    }

    fn count(&mut self, state: StateIx, hosts: i64) {
        let host = self.states.state(state);
        self.scoring.guards.count(&mut self.places, host, hosts);
        self.left[usize::from(host.model)] +=
            hosts * i64::from(self.states.measured(state).sums.value);
    }

    /// Drops everything that is cached.
    fn forget(&mut self) {
        self.shapes.clear();
        self.states = States::default();
        self.places = Places::default();
        self.left = [0; MOST_MODELS];
        for row in 0..self.hosts.len() {
            let state = self.hosts[row].measure();
            self.hosts[row].state = self.states.enter(row as u32, state, &self.scoring);
            self.count(self.hosts[row].state, 1);
        }
    }
}

impl Host {
    fn new(empty: &Empty) -> Self {
        assert!(usize::from(empty.gpus) <= MOST_GPUS && usize::from(empty.model) < MOST_MODELS);
        Self {
            free: SmallVec::from_elem(WHOLE, empty.gpus.into()),
            cpu_millis: empty.cpu_millis,
            memory_mib: empty.memory_mib,
            model: empty.model,
            state: 0,
        }
    }

    fn measure(&self) -> HostState {
        HostState::new(self.cpu_millis, self.memory_mib, self.model, &self.free)
    }

    /// The lowest GPUs that have exactly this much left.
    fn pick(&self, shape: &Shape, hole: u16) -> SmallVec<[u8; 8]> {
        let such = self.free.iter().enumerate().filter(|(_, free)| **free == hole);
        such.map(|(gpu, _)| gpu as u8).take(shape.gpus.into()).collect()
    }
}

impl Ties {
    /// The next random number (splitmix64).
    fn random(&mut self) -> u64 {
        let Ties::Random(state) = self else { return 0 };
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
