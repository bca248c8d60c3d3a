//! Room that is kept free: over all hosts of a set, or in each domain of a level by itself.

use super::installed::{Class, Tables};
use crate::bits::{Bits, Mask, ones};
use crate::domains::LevelIx;
use crate::room::{Ask, Room};
use cluster::{Dim, Host, HostIx, HostSet, HostState, Index, Keep};

#[derive(Debug)]
pub(crate) struct Spare {
    hosts: HostSet,
    each: Option<LevelIx>,
    keep: Keep,
    /// Available hosts of the set.
    inside: Bits,
    dimensions: usize,
    /// What was added for each host, so that it can be taken back.
    shares: Vec<Share>,
    /// By domain; only the first without a level.
    scopes: Vec<Scope>,
}

#[derive(Clone, Debug, Default)]
struct Share {
    scope: Option<u32>,
    /// By dimension.
    amounts: Vec<Amount>,
}

/// The sums over the hosts of one scope, and what of it is to be kept.
#[derive(Clone, Debug, Default)]
struct Scope {
    sums: Vec<Amount>,
    kept: Vec<u64>,
    stale: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amount {
    allocatable: u64,
    free: u64,
}

impl Spare {
    pub(crate) fn new(rule: &cluster::Spare, each: Option<LevelIx>) -> Self {
        Self {
            hosts: rule.hosts.clone(),
            each,
            keep: rule.keep,
            inside: Bits::default(),
            dimensions: 0,
            shares: Vec::new(),
            scopes: Vec::new(),
        }
    }

    pub(crate) fn put_host(&mut self, ix: HostIx, host: Option<&Host>, tables: &Tables<'_>) {
        let counts = |host: &Host| host.state == HostState::Available && self.hosts.contains(host);
        self.inside.put(ix, host.is_some_and(counts));
        self.follow(ix, tables);
    }

    /// Follows what a host has left.
    pub(crate) fn follow(&mut self, ix: HostIx, tables: &Tables<'_>) {
        if self.dimensions < tables.room.dimensions() {
            self.widen(tables.room.dimensions());
        }
        if self.shares.len() <= ix.row() {
            self.shares.resize(ix.row() + 1, Share::default());
        }
        let scope = match self.each {
            _ if !self.inside.contains(ix) => None,
            None => Some(0),
            Some(level) => tables.domains.of(level, ix),
        };
        let Self { shares, scopes, dimensions, .. } = self;
        let share = &mut shares[ix.row()];
        let moved = share.scope != scope;
        if let Some(before) = share.scope {
            scopes[before as usize].take_out(share, moved);
        }
        share.scope = scope;
        let Some(scope) = scope else { return };
        if scopes.len() <= scope as usize {
            scopes.resize(scope as usize + 1, Scope::default());
        }
        let room = tables.room;
        let mut changed = moved;
        share.amounts.resize(*dimensions, Amount::default());
        for (row, amount) in share.amounts.iter_mut().enumerate() {
            let (allocatable, free) = room.left(ix, Dim(row as u8));
            changed |= amount.allocatable != allocatable;
            *amount = Amount { allocatable, free };
        }
        scopes[scope as usize].put_in(share, changed);
    }

    fn widen(&mut self, dimensions: usize) {
        self.dimensions = dimensions;
        self.scopes.iter_mut().for_each(|scope| scope.stale = true);
    }

    /// Removes the hosts whose scope would keep too little; says how many.
    pub(crate) fn narrow(
        &mut self,
        class: Class,
        asks: &[Ask],
        room: &Room,
        mask: &mut Mask,
    ) -> u32 {
        if class.is_about() {
            return 0;
        }
        for scope in 0..self.scopes.len() {
            if self.scopes[scope].stale {
                self.weigh(scope as u32);
            }
        }
        let scopes = &self.scopes;
        if !scopes.iter().any(|scope| asks.iter().any(|ask| !scope.surely_has(ask))) {
            return 0;
        }
        let mut removed = 0;
        for word in mask.scope() {
            for host in ones(word, mask.word(word) & self.inside.word(word)) {
                let Some(scope) = self.shares[host.row()].scope else { continue };
                let scope = &scopes[scope as usize];
                if !asks.iter().all(|ask| scope.has(ask.dim, room.taken(ask, host))) {
                    removed += mask.remove(host);
                }
            }
        }
        removed
    }

    /// Works out what a scope has to keep of each dimension.
    fn weigh(&mut self, scope: u32) {
        let Self { shares, scopes, keep, dimensions, .. } = self;
        let made = &mut scopes[scope as usize];
        made.stale = false;
        made.sums.resize(*dimensions, Amount::default());
        made.kept.clear();
        for dim in 0..*dimensions {
            let kept = match *keep {
                Keep::Permille(permille) => {
                    let share = u128::from(made.sums[dim].allocatable) * u128::from(permille);
                    share.div_ceil(1000) as u64
                }
                Keep::Hosts(count) => {
                    let inside = shares.iter().filter(|share| share.scope == Some(scope));
                    let amount =
                        |share: &Share| share.amounts.get(dim).map_or(0, |it| it.allocatable);
                    let mut all: Vec<u64> = inside.map(amount).collect();
                    all.sort_unstable();
                    all.iter().rev().take(count as usize).sum()
                }
            };
            made.kept.push(kept);
        }
    }
}

impl Scope {
    fn put_in(&mut self, share: &Share, changed: bool) {
        self.stale |= changed;
        if self.sums.len() < share.amounts.len() {
            self.sums.resize(share.amounts.len(), Amount::default());
        }
        for (sum, amount) in self.sums.iter_mut().zip(&share.amounts) {
            sum.allocatable += amount.allocatable;
            sum.free += amount.free;
        }
    }

    fn take_out(&mut self, share: &Share, changed: bool) {
        self.stale |= changed;
        for (sum, amount) in self.sums.iter_mut().zip(&share.amounts) {
            sum.allocatable -= amount.allocatable;
            sum.free -= amount.free;
        }
    }

    /// Whether `amount` can go and what must be kept stays. What is not kept is not looked at.
    fn has(&self, dim: Dim, amount: u64) -> bool {
        let kept = self.kept.get(dim.row()).copied().unwrap_or(0);
        kept == 0 || self.sums[dim.row()].free >= kept.saturating_add(amount)
    }

    /// As `has`, for every host of the scope at once; no means that hosts have to be asked.
    fn surely_has(&self, ask: &Ask) -> bool {
        ask.is_same_everywhere() && self.has(ask.dim, ask.amount)
    }
}
