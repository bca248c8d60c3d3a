//! What the pairs of one assignment take: members by kind and domain, and the load of every link.
//!
//! Loads only grow while VMs are placed, and who is out of reach of a partner stays so: what may
//! not come now may not come later either.

use super::networks::{KINDS, Networks, Pairs, partners};
use super::state::Change;
use smallvec::SmallVec;

#[derive(Clone, Debug, Default)]
pub(crate) struct Flows {
    members: Vec<u32>,
    /// Domains with a member, by rule.
    occupied: Vec<Vec<u32>>,
    load: Vec<i64>,
    /// Pairs out of each other's reach, and what links carry too much.
    broken: u64,
}

/// What is asked of links: by row, some of them more than once.
type Loads = SmallVec<[(u32, i64); 16]>;

impl Flows {
    pub(crate) fn none(networks: &Networks) -> Self {
        let links = if networks.is_empty() { 0 } else { networks.carries.len() };
        Self {
            members: vec![0; networks.counters],
            occupied: vec![Vec::new(); networks.rules.len()],
            load: vec![0; links],
            broken: 0,
        }
    }

    /// Becomes equal to others of the same rules.
    pub(crate) fn copy(&mut self, other: &Self) {
        self.members.clone_from(&other.members);
        self.occupied.clone_from(&other.occupied);
        self.load.clone_from(&other.load);
        self.broken = other.broken;
    }

    pub(crate) fn broken(&self) -> u64 {
        self.broken
    }

    pub(crate) fn arrive(&mut self, networks: &Networks, vm: u32, host: u32) {
        for &(row, kind) in networks.of(vm) {
            let pairs = &networks.rules[row as usize];
            let domain = pairs.domain(host);
            self.count(networks, row, kind, domain, 1);
            let occupied = &mut self.occupied[row as usize];
            if !occupied.contains(&domain) {
                occupied.push(domain);
            }
            self.members[pairs.slot(kind, domain)] += 1;
        }
    }

    pub(crate) fn leave(&mut self, networks: &Networks, vm: u32, host: u32) {
        for &(row, kind) in networks.of(vm) {
            let pairs = &networks.rules[row as usize];
            let domain = pairs.domain(host);
            self.members[pairs.slot(kind, domain)] -= 1;
            if (0..KINDS as u8).all(|kind| self.members[pairs.slot(kind, domain)] == 0) {
                self.occupied[row as usize].retain(|&other| other != domain);
            }
            self.count(networks, row, kind, domain, -1);
        }
    }

    /// Adds, or takes off, what one VM and its partners ask for.
    fn count(&mut self, networks: &Networks, row: u32, kind: u8, domain: u32, times: i64) {
        let pairs = &networks.rules[row as usize];
        let Self { members, occupied, load, broken } = self;
        let at = |slot: usize| i64::from(members[slot]);
        let apart = each_way(pairs, kind, domain, &occupied[row as usize], at, |link, mbps| {
            let (load, carries) = (&mut load[link as usize], networks.carries[link as usize]);
            let before = (*load - carries).max(0);
            *load += times * mbps;
            *broken = broken.wrapping_add_signed((*load - carries).max(0) - before);
        });
        self.broken = self.broken.wrapping_add_signed(times * apart);
    }

    /// Whether a VM that is not placed could come.
    #[inline]
    pub(crate) fn may_arrive(&self, networks: &Networks, vm: u32, host: u32) -> bool {
        networks.is_empty() || self.takes(networks, vm, host)
    }

    fn takes(&self, networks: &Networks, vm: u32, host: u32) -> bool {
        let mut loads = Loads::new();
        let near = networks.of(vm).iter().all(|&(row, kind)| {
            let pairs = &networks.rules[row as usize];
            let domain = pairs.domain(host);
            let at = |slot: usize| i64::from(self.members[slot]);
            let occupied = &self.occupied[row as usize];
            !pairs.is_lost(kind, domain)
                && each_way(pairs, kind, domain, occupied, at, |link, mbps| {
                    loads.push((link, mbps));
                }) == 0
        });
        near && self.carries(networks, loads)
    }

    /// Whether links carry this as well.
    fn carries(&self, networks: &Networks, mut loads: Loads) -> bool {
        loads.sort_unstable();
        loads.chunk_by(|a, b| a.0 == b.0).all(|of_link| {
            let link = of_link[0].0 as usize;
            let more: i64 = of_link.iter().map(|(_, mbps)| mbps).sum();
            more <= 0 || self.load[link] + more <= networks.carries[link]
        })
    }

    /// Whether rules that hold now, with all VMs placed, hold after these changes at once.
    #[inline]
    pub(crate) fn hold_after(&self, networks: &Networks, changes: &[Change]) -> bool {
        networks.is_empty() || self.still_hold(networks, changes)
    }

    fn still_hold(&self, networks: &Networks, changes: &[Change]) -> bool {
        let mut loads = Loads::new();
        let rules = 0..networks.rules.len() as u32;
        let near =
            rules.into_iter().all(|row| self.holds_after(networks, row, changes, &mut loads));
        near && self.carries(networks, loads)
    }

    /// Whether pairs of one rule reach each other then, and what that adds to links.
    fn holds_after(
        &self,
        networks: &Networks,
        row: u32,
        changes: &[Change],
        loads: &mut Loads,
    ) -> bool {
        let pairs = &networks.rules[row as usize];
        // Who goes from one domain to another, as which kind.
        let mut moves: SmallVec<[(u8, u32, u32); 4]> = SmallVec::new();
        for change in changes {
            let own = networks.of(change.vm).iter().find(|(rule, _)| *rule == row);
            let (from, to) = (pairs.domain(change.from), pairs.domain(change.to));
            if let Some(&(_, kind)) = own.filter(|_| from != to) {
                moves.push((kind, from, to));
            }
        }
        if moves.is_empty() {
            return true;
        }
        let mut occupied: SmallVec<[u32; 16]> = SmallVec::from_slice(&self.occupied[row as usize]);
        for &(_, _, to) in &moves {
            if !occupied.contains(&to) {
                occupied.push(to);
            }
        }
        let mut changed: SmallVec<[(usize, i64); 8]> = SmallVec::new();
        for &(kind, from, _) in &moves {
            changed.push((pairs.slot(kind, from), -1));
            let at = |slot: usize| self.after(&changed, slot);
            each_way(pairs, kind, from, &occupied, at, |link, mbps| loads.push((link, -mbps)));
        }
        moves.iter().all(|&(kind, _, to)| {
            let at = |slot: usize| self.after(&changed, slot);
            let apart =
                each_way(pairs, kind, to, &occupied, at, |link, mbps| loads.push((link, mbps)));
            changed.push((pairs.slot(kind, to), 1));
            apart == 0 && !pairs.is_lost(kind, to)
        })
    }

    fn after(&self, changed: &[(usize, i64)], slot: usize) -> i64 {
        let changes = changed.iter().filter(|(other, _)| *other == slot);
        i64::from(self.members[slot]) + changes.map(|(_, by)| by).sum::<i64>()
    }
}

/// What a VM of a kind and its partners take of each link if it is in a domain; the number of
/// partners that it does not reach.
fn each_way(
    pairs: &Pairs,
    kind: u8,
    domain: u32,
    occupied: &[u32],
    at: impl Fn(usize) -> i64,
    mut take: impl FnMut(u32, i64),
) -> i64 {
    let mut apart = 0;
    for &other in occupied.iter().filter(|&&other| !pairs.is_one_domain(domain, other)) {
        let there: i64 = partners(kind).map(|kind| at(pairs.slot(kind, other))).sum();
        if there == 0 {
            continue;
        }
        match pairs.way(domain, other) {
            None => apart += there,
            Some(links) if pairs.bandwidth > 0 => {
                links.iter().for_each(|&link| take(link, there * pairs.bandwidth));
            }
            Some(_) => {}
        }
    }
    apart
}
