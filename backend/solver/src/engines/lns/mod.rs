//! Large neighbourhoods: takes a few VMs or hosts out, puts the VMs back where they cost least,
//! and keeps the result if it is better, or not much worse while the search is hot.
//!
//! A step is one such attempt. Rules hold after every step: a VM goes only where it may, and an
//! attempt after which some rule is broken or a VM has no place is taken back. Prices are the
//! objective's own, softened by a `Guide` where hosts cost something for being on.
//!
//! With a limit of steps there are always the same `WORKERS` searches, on as many threads as there
//! are, which go on from where the best of them is at fixed counts: the same answer on any
//! number of threads. With a deadline there is one for each thread.

mod destroy;
mod guide;

use super::greedy::by_size;
use super::improve::improve;
use super::{Engine, Task};
use crate::assignment::{Budget, Outcome, State};
use crate::dice::{Dice, exp, ln};
use destroy::Destroy;
use guide::Guide;

#[derive(Clone, Copy, Debug)]
pub struct Lns {
    pub threads: u32,
    /// Losses that are taken about once in three times, at the start and at the end, as a share of
    /// the mean loss of attempts from the first assignment.
    pub start_heat: f64,
    pub end_heat: f64,
    /// How soft the price of a host that is on is at the start: see `guide`. It falls to nothing.
    pub softness: f64,
    /// VMs that are taken out at once at most.
    pub most_vms: usize,
    /// Hosts that are looked at for them at most, besides those that they come from.
    pub most_hosts: usize,
}

impl Default for Lns {
    fn default() -> Self {
        Self {
            threads: 1,
            start_heat: 0.05,
            end_heat: 0.001,
            softness: 1.0,
            most_vms: 16,
            most_hosts: 50,
        }
    }
}

/// Searches that share a limit of steps.
const WORKERS: u64 = 2;
/// VMs x hosts up to which everything is placed anew at first: beyond, that takes as long as greed.
const MOST_PRICED: u64 = 1 << 22;
/// How often searches with a limit of steps go on from the best of them.
const EXCHANGES: u64 = 8;
/// Steps between changes of temperature and softness.
const ROUND: u64 = 32;
/// Share of the search after which prices are softened less: making them costs time.
const SOFTENING: f64 = 0.002;
/// One host with VMs in so many is passed over when a VM is put back, so that repeating differs;
/// and one host without VMs in so many is looked at, because all of them have room.
const PASSED_OVER: u32 = 50;
const EMPTY_LOOKED_AT: u32 = 4;

impl Engine for Lns {
    fn name(&self) -> &'static str {
        "lns"
    }

    fn solve(&self, task: Task<'_>, budget: &mut Budget) -> Outcome {
        improve(self, task, budget, |start, budget| self.search(task, start, budget))
    }
}

impl Lns {
    fn search(&self, task: Task<'_>, start: &[u32], budget: &mut Budget) -> (i64, Vec<u32>) {
        let (model, seed) = (task.model, task.seed);
        let by_steps = budget.left() < u64::MAX;
        let workers = if by_steps { WORKERS } else { u64::from(self.threads.max(1)) };
        let search =
            |number| Search::new(self, State::new(model, start), Dice::stream(seed, number));
        let mut searches: Vec<Search<'_>> = (0..workers).map(search).collect();
        let (rounds, all) = if by_steps { (EXCHANGES, budget.left()) } else { (1, u64::MAX) };
        for round in 0..rounds {
            // Split without loss: the last round and the last worker end where the budget does.
            let upto =
                |round: u64| (u128::from(all) * u128::from(round) / u128::from(rounds)) as u64;
            let steps = upto(round + 1) - upto(round);
            let heat = Heat { from: round as f64 / rounds as f64, span: 1.0 / rounds as f64 };
            let mut parts: Vec<Budget> = (0..workers)
                .map(|number| match by_steps {
                    true => budget.part((steps + workers - 1 - number) / workers),
                    false => budget.part(u64::MAX),
                })
                .collect();
            run_all(&mut searches, &mut parts, (heat, task), self.threads);
            budget.spend(parts.iter().map(Budget::used).sum());
            if budget.is_over() {
                break;
            }
            exchange(&mut searches);
        }
        let best = searches.into_iter().min_by_key(|search| search.best);
        best.map_or_else(|| (i64::MAX, start.to_vec()), |search| (search.best, search.best_hosts))
    }
}

/// Runs every search for its part, on one thread or on one each: the same either way.
fn run_all(searches: &mut [Search<'_>], parts: &mut [Budget], how: (Heat, Task<'_>), threads: u32) {
    let work = searches.iter_mut().zip(parts);
    if threads < 2 {
        work.for_each(|(search, part)| search.run(how, part));
        return;
    }
    std::thread::scope(|scope| {
        for (search, part) in work {
            scope.spawn(move || search.run(how, part));
        }
    });
}

/// Searches go on from where the one is that is best by softened prices; of equals the first. Not
/// from the best answer so far: while prices are soft, an old one would undo what they led to.
fn exchange(searches: &mut [Search<'_>]) {
    let costs: Vec<f64> = searches.iter().map(Search::softened_cost).collect();
    let Some(best) = (0..costs.len()).min_by(|&a, &b| costs[a].total_cmp(&costs[b])) else {
        return;
    };
    let hosts = searches[best].state.assignment().to_vec();
    for (row, search) in searches.iter_mut().enumerate() {
        if row != best {
            search.go_on_from(&hosts);
        }
    }
}

/// Which part of the whole cooling this is.
#[derive(Clone, Copy, Debug)]
struct Heat {
    from: f64,
    span: f64,
}

struct Search<'m> {
    lns: Lns,
    state: State<'m>,
    guide: Guide,
    destroy: Destroy,
    dice: Dice,
    /// By VM: place in the order of sizes, largest first.
    rank: Vec<u32>,
    best: i64,
    best_hosts: Vec<u32>,
    /// Mean loss of attempts, before anything is taken; 0 until it is known.
    usual: f64,
    /// The share of the search for which prices were softened last.
    softened_at: f64,
    out: Vec<(u32, u32)>,
    touched: Vec<u32>,
    /// Hosts that are looked at in this attempt.
    open: Vec<u32>,
}

impl<'m> Search<'m> {
    fn new(lns: &Lns, state: State<'m>, dice: Dice) -> Self {
        let model = state.model();
        let mut rank = vec![0; model.vms()];
        (0..).zip(by_size(model)).for_each(|(place, vm)| rank[vm as usize] = place);
        let mut guide = Guide::new(model);
        guide.set_power(&state, lns.softness);
        Self {
            lns: *lns,
            guide,
            destroy: Destroy::new(model.vms(), lns.most_vms),
            dice,
            rank,
            best: state.objective(),
            best_hosts: state.assignment().to_vec(),
            state,
            usual: 0.0,
            softened_at: 0.0,
            out: Vec::new(),
            touched: Vec::new(),
            open: Vec::new(),
        }
    }

    fn softened_cost(&self) -> f64 {
        self.state.objective() as f64 + self.guide.sum()
    }

    fn go_on_from(&mut self, hosts: &[u32]) {
        self.state = State::new(self.state.model(), hosts);
        self.guide.refresh_all(&self.state);
        self.note();
    }

    fn run(&mut self, (heat, task): (Heat, Task<'_>), budget: &mut Budget) {
        let mut told = i64::MAX;
        if self.usual == 0.0 {
            self.place_all_anew(budget);
            self.usual = self.usual_loss(budget);
        }
        let fall = ln(self.lns.end_heat / self.lns.start_heat);
        while !budget.is_over() {
            let share = heat.from + heat.span * budget.share();
            let temperature = self.usual * self.lns.start_heat * exp(fall * share);
            self.soften(share);
            for _ in 0..ROUND.min(budget.left()) {
                self.attempt(temperature, budget);
                if !budget.spend(1) {
                    break;
                }
            }
            if self.best < told {
                told = self.best;
                task.tell(told, &self.best_hosts);
            }
        }
    }

    fn soften(&mut self, share: f64) {
        if self.guide.is_needed() && share >= self.softened_at + SOFTENING {
            self.softened_at = share;
            let power = self.lns.softness * (1.0 - share);
            self.guide.set_power(&self.state, power);
        }
    }

    /// Tries without taking anything that loses, to see what losses are like.
    fn usual_loss(&mut self, budget: &mut Budget) -> f64 {
        let (mut sum, mut losses) = (0.0, 0);
        for _ in 0..200u64.min(budget.left() / 4) {
            let loss = self.attempt(0.0, budget);
            if loss.is_finite() && loss > 0.0 {
                sum += loss;
                losses += 1;
            }
            if !budget.spend(1) {
                break;
            }
        }
        if losses == 0 { 1.0 } else { sum / f64::from(losses) }
    }

    /// One attempt, taken if it loses no more than a draw at this temperature; what it lost.
    fn attempt(&mut self, temperature: f64, budget: &Budget) -> f64 {
        self.out.clear();
        for &vm in self.destroy.choose(&self.state, &mut self.dice) {
            self.out.push((vm, self.state.host_of(vm)));
        }
        self.open_hosts();
        self.put_back(temperature, budget)
    }

    /// Where VMs that are taken out may go: home, and to a row of hosts that is drawn.
    fn open_hosts(&mut self) {
        let hosts = self.state.model().hosts() as u32;
        self.open.clear();
        if hosts as usize <= self.lns.most_hosts {
            self.open.extend(0..hosts);
            return;
        }
        let first = self.dice.below(hosts);
        let row = (0..self.lns.most_hosts as u32).map(|next| (first + next) % hosts);
        self.open.extend(row.chain(self.out.iter().map(|(_, home)| *home)));
        self.open.sort_unstable();
        self.open.dedup();
    }

    /// Everything at once, by softened prices: those that greed goes by open too many hosts.
    fn place_all_anew(&mut self, budget: &Budget) {
        let model = self.state.model();
        if model.movable().len() as u64 * model.hosts() as u64 > MOST_PRICED {
            return;
        }
        self.out.clear();
        self.out.extend(model.movable().iter().map(|&vm| (vm, self.state.host_of(vm))));
        self.open.clear();
        self.open.extend(0..self.state.model().hosts() as u32);
        self.put_back(0.0, budget);
    }

    /// Takes out what `out` lists and puts it back.
    fn put_back(&mut self, temperature: f64, budget: &Budget) -> f64 {
        let before = self.state.objective();
        self.touched.clear();
        let mut extra = 0.0;
        for row in 0..self.out.len() {
            let (vm, home) = self.out[row];
            self.state.remove(vm);
            extra += self.guide.refresh(&self.state, home);
            self.touched.push(home);
        }
        self.put_in_order();
        let mut placed = 0;
        while let Some(&(vm, _)) = self.out.get(placed).filter(|_| !budget.is_over()) {
            let Some(host) = self.cheapest(vm) else { break };
            self.state.place(vm, host);
            extra += self.guide.refresh(&self.state, host);
            self.touched.push(host);
            placed += 1;
        }
        let whole = placed == self.out.len() && self.state.broken() == 0;
        let loss = match whole {
            true => (self.state.objective() - before) as f64 + extra,
            false => f64::INFINITY,
        };
        let most = temperature * -ln(1.0 - self.dice.share());
        if loss <= most {
            self.note();
        } else {
            self.take_back(placed);
        }
        loss
    }

    /// Largest first, as a rule; otherwise as drawn.
    fn put_in_order(&mut self) {
        self.dice.shuffle(&mut self.out);
        if self.dice.below(4) > 0 {
            let rank = &self.rank;
            self.out.sort_by_key(|(vm, _)| rank[*vm as usize]);
        }
    }

    fn take_back(&mut self, placed: usize) {
        self.out[..placed].iter().for_each(|(vm, _)| self.state.remove(*vm));
        self.out.iter().for_each(|&(vm, home)| self.state.place(vm, home));
        for row in 0..self.touched.len() {
            self.guide.refresh(&self.state, self.touched[row]);
        }
    }

    fn note(&mut self) {
        let objective = self.state.objective();
        if objective < self.best {
            self.best = objective;
            self.best_hosts.copy_from_slice(self.state.assignment());
        }
    }

    /// The host where a VM costs least by softened prices, but for those that are passed over.
    fn cheapest(&mut self, vm: u32) -> Option<u32> {
        let (state, mut best) = (&self.state, (f64::INFINITY, None));
        for &host in &self.open {
            if !state.fits(vm, host) {
                continue;
            }
            let passed_over = match state.vms_on(host).is_empty() {
                true => self.dice.below(EMPTY_LOOKED_AT) > 0,
                false => self.dice.below(PASSED_OVER) == 0,
            };
            if passed_over {
                continue;
            }
            let own =
                state.own_place_delta(vm, host) as f64 + self.guide.place_delta(state, vm, host);
            if own >= best.0 {
                continue;
            }
            let cost = own + state.highest_place_delta(vm, host) as f64;
            if cost < best.0 && state.may_place(vm, host) {
                best = (cost, Some(host));
            }
        }
        best.1
    }
}
