//! Steering: a fleet whose demand changes all the time is kept on few hosts.
//!
//! Every step the caller says what each VM used, and gets moves. Only what was used before counts:
//! from it follows what VMs will use (`outlook`), what hosts draw and how likely they are to have too
//! little (`load`), and which moves are worth making (`search`). Everything is priced in watts: a host
//! that has too little costs as much as keeps the share of such hosts at what is wished for, which is
//! learned on the way; a move costs what it has to save within the time that it may be of use.
//!
//! Knows CPU alone, and no rules: whoever runs it asks the rest of the product before migrating.

mod load;
mod outlook;
mod search;

use crate::dice::exp;
use load::{Loads, Risk};
use outlook::{Demand, Outlook};
use search::Thrift;

#[derive(Clone, Copy, Debug)]
pub struct Steering {
    /// The share of hosts that may have too little, of those that are on.
    pub overload: f64,
    /// Watts, over one step, that a move has to save.
    pub move_price: f64,
    /// Moves of one step at most.
    pub most_moves: u32,
    /// Hosts are emptied, and VMs change places, every so many steps.
    pub empty_every: u32,
    pub exchange_every: u32,
    /// What a VM uses of what it asked for, and how far off that may be, before it was seen.
    pub unseen: f64,
    pub unseen_spread: f64,
    /// How quickly the two levels follow samples, and what is known of how far off they are.
    pub quick: f64,
    pub slow: f64,
    pub doubt: f64,
    /// How much of the quick level's distance to the slow one is believed for the next step, and
    /// what of that for the steps after.
    pub follow: f64,
    pub lasting: f64,
    /// How much the next step counts compared to those after.
    pub soon: f64,
    /// How quickly the price of having too little is learned.
    pub learning: f64,
}

impl Default for Steering {
    fn default() -> Self {
        Self {
            overload: 0.019,
            move_price: 0.9,
            most_moves: 1_000,
            empty_every: 1,
            exchange_every: 4,
            unseen: 0.17,
            unseen_spread: 0.2,
            quick: 0.25,
            slow: 0.05,
            doubt: 0.03,
            follow: 0.6,
            lasting: 0.3,
            soon: 0.2,
            learning: 0.05,
        }
    }
}

/// What a host has, and what it draws.
#[derive(Clone, Debug, PartialEq)]
pub struct HostKind {
    /// In the unit of what VMs use; above 0.
    pub capacity: u64,
    /// Milliwatts with nothing in use, a tenth, and so on up to all of it.
    pub milliwatts: [u32; 11],
}

impl HostKind {
    #[inline]
    pub fn watts(&self, used: f64) -> f64 {
        let place = (used / self.capacity as f64).clamp(0.0, 1.0) * 10.0;
        let row = (place as usize).min(9);
        let (here, next) = (f64::from(self.milliwatts[row]), f64::from(self.milliwatts[row + 1]));
        (here + (next - here) * (place - row as f64)) / 1000.0
    }
}

/// A VM goes to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    pub vm: u32,
    pub to: u32,
}

/// The fleet as it is between two steps.
#[derive(Clone, Debug)]
pub struct Course {
    settings: Steering,
    kinds: Vec<HostKind>,
    thrifty: Vec<u32>,
    outlooks: Vec<Outlook>,
    hosts: Vec<Option<u32>>,
    /// Watts that a host costs which has too little.
    risk_price: f64,
    steps: u64,
}

/// What a host that has too little costs at first, in hosts at full power; and at least and at most.
const RISK_PRICE: [f64; 3] = [3.0, 0.5, 50.0];

/// No share of hosts is asked to be smaller, and no step teaches more than so many times the share.
const LEAST_OVERLOAD: f64 = 1e-4;
const SHOCK: f64 = 8.0;

/// Watts of the host that draws most.
fn whole_host(kinds: &[HostKind]) -> f64 {
    kinds.iter().map(|kind| kind.watts(kind.capacity as f64)).fold(0.0, f64::max)
}

impl Course {
    /// A fleet without VMs on hosts, and VMs that ask for so much.
    pub fn new(settings: Steering, kinds: Vec<HostKind>, requested: &[u64]) -> Self {
        let per_watt = |host: &u32| {
            let kind = &kinds[*host as usize];
            kind.capacity as f64 / kind.watts(kind.capacity as f64)
        };
        let mut thrifty: Vec<u32> = (0..kinds.len() as u32).collect();
        thrifty
            .sort_by(|one, other| per_watt(other).total_cmp(&per_watt(one)).then(one.cmp(other)));
        let whole = whole_host(&kinds);
        let unseen = |&requested: &u64| Outlook::unseen(requested, &settings);
        Self {
            outlooks: requested.iter().map(unseen).collect(),
            hosts: vec![None; requested.len()],
            risk_price: RISK_PRICE[0] * whole,
            settings,
            kinds,
            thrifty,
            steps: 0,
        }
    }

    /// The host of each VM; none before the first step.
    pub fn hosts(&self) -> &[Option<u32>] {
        &self.hosts
    }

    /// Where the VMs begin.
    pub fn begin(&mut self) -> Vec<Move> {
        self.change(|loads, _| {
            let mut vms: Vec<u32> = (0..loads.demands.len() as u32).collect();
            let size = |vm: u32| loads.demands[vm as usize].later[0];
            vms.sort_by(|&one, &other| size(other).total_cmp(&size(one)).then(one.cmp(&other)));
            for vm in vms {
                if let Some((_, host)) = loads.best(vm, None, true) {
                    loads.add(vm, host);
                }
            }
        })
    }

    /// What each VM used in the step that is over -> moves before the next one.
    pub fn step(&mut self, used: &[u64]) -> Vec<Move> {
        self.learn(used);
        for (outlook, &used) in self.outlooks.iter_mut().zip(used) {
            outlook.observe(used, &self.settings);
        }
        self.steps += 1;
        let (settings, steps) = (self.settings, self.steps);
        self.change(|loads, thrift| {
            search::relieve(loads, thrift);
            search::open(loads, thrift);
            if steps.is_multiple_of(u64::from(settings.empty_every.max(1))) {
                search::empty(loads, thrift);
            }
            if steps.is_multiple_of(u64::from(settings.exchange_every.max(1))) {
                search::exchange(loads, thrift);
            }
        })
    }

    /// The price of having too little rises with every host that had, and falls with every other.
    fn learn(&mut self, used: &[u64]) {
        let mut loads = vec![None::<u64>; self.kinds.len()];
        for (host, &used) in self.hosts.iter().zip(used) {
            if let Some(host) = *host {
                *loads[host as usize].get_or_insert(0) += used;
            }
        }
        let on = loads.iter().flatten().count().max(1) as f64;
        let above = |(kind, load): &(&HostKind, &Option<u64>)| {
            load.is_some_and(|load| load > kind.capacity)
        };
        let over = self.kinds.iter().zip(&loads).filter(above).count() as f64;
        let off = (over / on / self.settings.overload.max(LEAST_OVERLOAD) - 1.0).min(SHOCK);
        let whole = whole_host(&self.kinds);
        let changed = self.risk_price * exp(self.settings.learning * off);
        self.risk_price = changed.clamp(RISK_PRICE[1] * whole, RISK_PRICE[2] * whole);
    }

    fn change(&mut self, search: impl FnOnce(&mut Loads<'_>, &mut Thrift)) -> Vec<Move> {
        let demands: Vec<Demand> =
            self.outlooks.iter().map(|outlook| outlook.demand(&self.settings)).collect();
        let risk = Risk::new(self.risk_price, &self.settings);
        let mut loads = Loads::new(&self.kinds, &self.thrifty, risk, &demands, &self.hosts);
        let mut thrift =
            Thrift { price: self.settings.move_price, moves: self.settings.most_moves };
        search(&mut loads, &mut thrift);
        let mut hosts = vec![None; self.hosts.len()];
        for (host, vms) in (0..).zip(&loads.vms) {
            vms.iter().for_each(|&vm| hosts[vm as usize] = Some(host));
        }
        let moved = (0..).zip(self.hosts.iter().zip(&hosts)).filter(|(_, (old, new))| old != new);
        let moves = moved.filter_map(|(vm, (_, to))| to.map(|to| Move { vm, to })).collect();
        self.hosts = hosts;
        moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Dice;

    const THRIFTY: HostKind = HostKind {
        capacity: 1_000,
        milliwatts: [
            90_000, 94_000, 98_000, 102_000, 106_000, 110_000, 114_000, 118_000, 122_000, 126_000,
            130_000,
        ],
    };
    const REQUESTED: u64 = 400;

    /// VMs that use `level` of a thousand they asked for, some of them twice as much for a while.
    fn use_of(dice: &mut Dice, vms: usize, level: u64) -> Vec<u64> {
        let one = |dice: &mut Dice| {
            let burst = if dice.below(12) == 0 { 2 } else { 1 };
            (level * burst * (60 + u64::from(dice.below(80))) * REQUESTED / 100_000).min(REQUESTED)
        };
        (0..vms).map(|_| one(dice)).collect()
    }

    struct Day {
        moves: Vec<Vec<Move>>,
        on: Vec<usize>,
        over: usize,
    }

    /// 60 VMs on 40 hosts of two kinds.
    fn day(settings: Steering, level: impl Fn(usize) -> u64) -> Day {
        let greedy = HostKind { milliwatts: THRIFTY.milliwatts.map(|watts| watts * 2), ..THRIFTY };
        let kinds: Vec<HostKind> =
            (0..40).map(|host| if host % 2 == 0 { greedy.clone() } else { THRIFTY }).collect();
        let mut course = Course::new(settings, kinds, &[REQUESTED; 60]);
        let mut dice = Dice::new(3);
        let mut day = Day { moves: vec![course.begin()], on: Vec::new(), over: 0 };
        for step in 0..96 {
            let used = use_of(&mut dice, 60, level(step));
            let mut loads = [0; 40];
            for (host, used) in course.hosts().iter().zip(&used) {
                loads[host.expect("everybody has a host") as usize] += used;
            }
            day.on.push(loads.iter().filter(|&&load| load > 0).count());
            day.over += loads.iter().filter(|&&load| load > THRIFTY.capacity).count();
            day.moves.push(course.step(&used));
        }
        day
    }

    #[test]
    fn few_thrifty_hosts_are_on_and_more_when_demand_rises() {
        let quiet = day(Steering::default(), |_| 100);
        assert_eq!(quiet.moves[0].len(), 60);
        let odd = |made: &Move| made.to % 2 == 1;
        assert!(quiet.moves.iter().flatten().all(odd), "no host that draws twice as much");
        // 60 x 40 x 1.08 is 2.6 hosts' worth.
        assert!(quiet.on[95] <= 6, "{:?}", quiet.on);
        let rising = day(Steering::default(), |step| if step < 48 { 100 } else { 300 });
        assert!(rising.on[95] >= quiet.on[95] + 5, "{:?}", rising.on);
        assert!(rising.over * 10 < rising.on.iter().sum::<usize>(), "{} too full", rising.over);
    }

    #[test]
    fn who_tolerates_less_overload_has_more_hosts_on() {
        let with = |overload: f64| day(Steering { overload, ..Steering::default() }, |_| 250);
        let (strict, lax) = (with(0.002), with(0.2));
        assert!(strict.over < lax.over, "{} and {}", strict.over, lax.over);
        assert!(strict.on.iter().sum::<usize>() > lax.on.iter().sum::<usize>());
    }

    #[test]
    fn dear_moves_are_few_and_never_more_than_allowed() {
        let moves = |settings: Steering| {
            let day = day(settings, |step| 100 + 2 * step as u64);
            let most = day.moves[1..].iter().map(Vec::len).max().unwrap_or(0);
            (most, day.moves[1..].iter().map(Vec::len).sum::<usize>())
        };
        let plain = Steering::default();
        let dear = moves(Steering { move_price: 20.0, ..plain });
        assert!(dear.1 < moves(plain).1);
        assert!(moves(Steering { most_moves: 3, ..plain }).0 <= 3);
    }

    #[test]
    fn every_setting_changes_the_course() {
        let plain = Steering::default();
        let course = |settings: Steering| day(settings, |step| 100 + 2 * step as u64).moves;
        let usual = course(plain);
        let others = [
            Steering { overload: 0.1, ..plain },
            Steering { move_price: 9.0, ..plain },
            Steering { most_moves: 2, ..plain },
            Steering { empty_every: 7, ..plain },
            Steering { exchange_every: 1, ..plain },
            Steering { unseen: 0.5, ..plain },
            Steering { unseen_spread: 0.5, ..plain },
            Steering { quick: 0.9, ..plain },
            Steering { slow: 0.2, ..plain },
            Steering { doubt: 0.2, ..plain },
            Steering { follow: 0.0, ..plain },
            Steering { lasting: 1.0, ..plain },
            Steering { soon: 1.0, ..plain },
            Steering { learning: 0.2, ..plain },
        ];
        for other in others {
            assert_ne!(course(other), usual, "{other:?}");
        }
        assert_eq!(course(plain), usual);
    }
}
