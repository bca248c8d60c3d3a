//! Changes of a placement that mean something: a host is emptied, gets the VMs that it has in
//! another placement, or a few hosts are mixed anew. A change that leaves a VM without a place or
//! a rule broken is taken back.

use super::Placement;
use crate::assignment::{NOWHERE, State};
use crate::dice::Dice;

/// Makes changes on one placement after the other; keeps its lists between them.
#[derive(Clone, Debug)]
pub(crate) struct Changes {
    /// Hosts that are looked at for a VM that is put back, besides where it was.
    pub(crate) looked_at: u32,
    /// VMs that were taken out, and from where; the first `placed` have a place again.
    out: Vec<(u32, u32)>,
    placed: usize,
}

/// Another placement, as seen by one of its hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Other<'a> {
    pub(crate) hosts: &'a [u32],
    pub(crate) on_host: &'a [u32],
}

impl<'a> Other<'a> {
    pub(crate) fn of(state: &'a State<'_>, host: u32) -> Self {
        Self { hosts: state.assignment(), on_host: state.vms_on(host) }
    }
}

impl Changes {
    pub(crate) fn new(looked_at: u32) -> Self {
        Self { looked_at, out: Vec::new(), placed: 0 }
    }

    /// Takes all VMs from a host and puts them elsewhere; false if that cannot be.
    pub(crate) fn empty<'m>(
        &mut self,
        on: &mut impl Placement<'m>,
        host: u32,
        dice: &mut Dice,
    ) -> bool {
        self.begin();
        while let Some(&vm) = on.state().vms_on(host).last() {
            self.take(on, vm);
        }
        self.largest_first(on.state());
        self.put_back(on, host, dice)
    }

    /// Takes up to `each` VMs from each of a few hosts and puts them where they cost least.
    pub(crate) fn mix<'m>(
        &mut self,
        on: &mut impl Placement<'m>,
        hosts: u32,
        each: u32,
        dice: &mut Dice,
    ) -> bool {
        self.begin();
        for _ in 0..hosts {
            let Some(host) = some_host(on.state(), dice) else { continue };
            for _ in 0..each.min(on.state().vms_on(host).len() as u32) {
                let there = on.state().vms_on(host);
                let vm = there[dice.below(there.len() as u32) as usize];
                self.take(on, vm);
            }
        }
        self.largest_first(on.state());
        self.put_back(on, NOWHERE, dice)
    }

    /// Gives a host the VMs that it has in another placement. Those that have to leave go where the
    /// other placement has them if they can, and otherwise where they cost least.
    pub(crate) fn inherit<'m>(
        &mut self,
        on: &mut impl Placement<'m>,
        host: u32,
        other: Other<'_>,
        dice: &mut Dice,
    ) -> bool {
        self.begin();
        for &vm in other.on_host {
            if on.state().host_of(vm) != host {
                self.take(on, vm);
            }
        }
        let arriving = self.out.len();
        let mut row = 0;
        while let Some(&vm) = on.state().vms_on(host).get(row) {
            if other.hosts[vm as usize] == host {
                row += 1;
            } else {
                self.take(on, vm);
            }
        }
        if self.out.is_empty() {
            return false;
        }
        while let Some(&(vm, _)) = self.out.get(self.placed) {
            let wanted = if self.placed < arriving { host } else { other.hosts[vm as usize] };
            if !on.state().may_place(vm, wanted) {
                break;
            }
            on.place(vm, wanted);
            self.placed += 1;
        }
        self.put_back(on, NOWHERE, dice)
    }

    fn begin(&mut self) {
        self.out.clear();
        self.placed = 0;
    }

    fn take<'m>(&mut self, on: &mut impl Placement<'m>, vm: u32) {
        self.out.push((vm, on.state().host_of(vm)));
        on.remove(vm);
    }

    /// By the largest share of their old host that they take; equals by row.
    fn largest_first(&mut self, state: &State<'_>) {
        let model = state.model();
        let size = |vm: u32, home: u32| {
            let amounts = model.demand(vm).iter().zip(model.capacity(home));
            amounts.map(|(&demand, &room)| i64::from(demand) * 4096 / i64::from(room.max(1))).max()
        };
        self.out.sort_by_cached_key(|&(vm, home)| (std::cmp::Reverse(size(vm, home)), vm));
    }

    /// Puts what is out where it costs least, but not on `closed`; takes everything back if one
    /// finds no place or a rule is broken in the end.
    fn put_back<'m>(&mut self, on: &mut impl Placement<'m>, closed: u32, dice: &mut Dice) -> bool {
        while let Some(&(vm, home)) = self.out.get(self.placed) {
            let Some(host) = self.cheapest(on, vm, [home, closed], dice) else { break };
            on.place(vm, host);
            self.placed += 1;
        }
        let whole = self.placed == self.out.len() && on.state().broken() == 0;
        if !whole {
            self.take_back(on);
        }
        whole
    }

    /// Undoes the last change.
    pub(crate) fn take_back<'m>(&mut self, on: &mut impl Placement<'m>) {
        self.out[..self.placed].iter().for_each(|&(vm, _)| on.remove(vm));
        self.out.iter().for_each(|&(vm, home)| on.place(vm, home));
        self.begin();
    }

    /// The host where a VM that is not placed costs least: of the one that it comes from, the one
    /// where it is at home, and a row of hosts that is drawn.
    fn cheapest<'m>(
        &self,
        on: &mut impl Placement<'m>,
        vm: u32,
        [from, closed]: [u32; 2],
        dice: &mut Dice,
    ) -> Option<u32> {
        let model = on.state().model();
        let hosts = model.hosts() as u32;
        let first = dice.below(hosts);
        let row = (first..hosts).chain(0..first).take(self.looked_at as usize);
        let known = [from, model.initial(vm)];
        let mut best = (f64::INFINITY, None);
        for host in row.chain(known).filter(|&host| host != closed && host != NOWHERE) {
            if !on.state().fits(vm, host) {
                continue;
            }
            let cost = on.place_delta(vm, host);
            if cost < best.0 && on.state().may_place(vm, host) {
                best = (cost, Some(host));
            }
        }
        best.1
    }
}

/// A host with VMs, more likely one with many; none if the VM that is drawn is in hand.
pub(crate) fn some_host(state: &State<'_>, dice: &mut Dice) -> Option<u32> {
    let hosts = state.assignment();
    let host = hosts[dice.below(hosts.len() as u32) as usize];
    (host != NOWHERE).then_some(host)
}

/// Of a few hosts with VMs, the one that takes most for being on, for each VM that has to leave.
pub(crate) fn dear_host(state: &State<'_>, dice: &mut Dice) -> Option<u32> {
    let gain =
        |host: u32| state.model().goals.idle(host) as f64 / state.vms_on(host).len().max(1) as f64;
    let drawn = [0; 4].map(|_| some_host(state, dice)).into_iter().flatten();
    drawn.max_by(|&a, &b| gain(a).total_cmp(&gain(b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assignment::{Budget, Model};
    use crate::engines::{Start, Task};
    use fixture::assignments::{Limits, random};

    const LIMITS: Limits = Limits { hosts: 6, vms: 12, groups: 3, rules: 3 };

    #[test]
    fn changes_are_whole_or_nothing_and_can_be_taken_back() {
        let (mut draws, mut dice) = (fixture::Dice::new(8), Dice::new(8));
        let mut made = [0; 3];
        for seed in 0..200 {
            let problem = random(&mut draws, LIMITS);
            let model = Model::compile(&problem).unwrap();
            let start = |seed| {
                let task = Task::new(&problem, &model, seed);
                Start::Random.assignment(task, &Budget::steps(1 << 40))
            };
            let (Ok(one), Ok(other)) = (start(seed), start(seed + 1_000)) else { continue };
            if one.is_empty() {
                continue;
            }
            let (mut state, other) = (State::new(&model, &one), State::new(&model, &other));
            let mut changes = Changes::new(model.hosts() as u32);
            for round in 0..12 {
                let before = state.assignment().to_vec();
                let objective = state.objective();
                let host = dice.below(model.hosts() as u32);
                let done = match round % 3 {
                    0 => changes.empty(&mut state, host, &mut dice),
                    1 => changes.mix(&mut state, 2, 3, &mut dice),
                    _ => changes.inherit(&mut state, host, Other::of(&other, host), &mut dice),
                };
                assert!(state.is_feasible());
                made[round % 3] += u32::from(done);
                match (done, round % 3) {
                    (false, _) => assert_eq!(state.assignment(), before),
                    (true, 0) => assert!(state.vms_on(host).is_empty()),
                    _ => {}
                }
                if done && dice.below(2) == 0 {
                    changes.take_back(&mut state);
                    assert_eq!((state.assignment(), state.objective()), (&before[..], objective));
                }
            }
        }
        assert!(made.iter().all(|&times| times > 100), "{made:?}");
    }

    #[test]
    fn a_host_is_inherited_as_it_is_where_nothing_is_in_the_way() {
        let problem = cluster::assignment::Problem {
            resources: vec![cluster::assignment::Resource { name: "cpu".into(), transient: false }],
            hosts: vec![cluster::assignment::Host { capacity: vec![3], domains: vec![] }; 3],
            shapes: vec![vec![1]],
            vms: vec![cluster::assignment::Vm { shape: 0, initial: None, allowed: None }; 5],
            ..Default::default()
        };
        let model = Model::compile(&problem).unwrap();
        let mut state = State::new(&model, &[0, 0, 0, 1, 1]);
        let other = State::new(&model, &[1, 2, 2, 0, 0]);
        let mut changes = Changes::new(3);
        assert!(changes.inherit(&mut state, 0, Other::of(&other, 0), &mut Dice::new(1)));
        // Those that come push out those that are elsewhere in the other placement, to there.
        assert_eq!(state.assignment(), other.assignment());
        assert!(!changes.inherit(&mut state, 0, Other::of(&other, 0), &mut Dice::new(1)));
    }
}
