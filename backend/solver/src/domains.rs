//! Which hosts share a rack, a zone, or any other value of a topology level.
//!
//! Every level has a column from host to domain and a set of hosts for each domain. The five
//! built-in levels are always there. A level by host label is made when a rule first names it,
//! and at most `MAX_LABEL_LEVELS` are kept unless placed VMs need more.

use crate::bits::{Bits, Mask};
use crate::hosts::Hosts;
use cluster::{Host, HostIx, Index, Level, Name};
use rustc_hash::FxHashMap;

/// Label levels beyond this are dropped, least recently used first; each costs four bytes a host.
pub(crate) const MAX_LABEL_LEVELS: usize = 32;

/// A level's row. `HOST` has no table: there, a host's row is its domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LevelIx(pub(crate) u32);

impl LevelIx {
    pub(crate) const HOST: LevelIx = LevelIx(0);
    pub(crate) const RACK: LevelIx = LevelIx(1);
    pub(crate) const POWER_FEED: LevelIx = LevelIx(2);
    pub(crate) const ZONE: LevelIx = LevelIx(3);
    pub(crate) const REGION: LevelIx = LevelIx(4);
}

/// A host's domain when it has no value at the level.
const NOWHERE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Domains {
    /// By `LevelIx`; dropped label levels leave `None`.
    tables: Vec<Option<Table>>,
    labels: FxHashMap<Name, LevelIx>,
    clock: u64,
}

#[derive(Debug)]
struct Table {
    level: Level,
    domain_of: Vec<u32>,
    by_name: FxHashMap<Name, u32>,
    domains: Vec<HostSet>,
    names: Vec<Option<Name>>,
    free: Vec<u32>,
    /// The hosts that have a value.
    somewhere: Bits,
    used_at: u64,
    /// Rules of placed VMs that need the level.
    pins: u32,
}

/// The hosts of one domain: a list while they are few, bits when they are many.
#[derive(Debug)]
pub(crate) enum HostSet {
    Few(Vec<HostIx>),
    Many(Bits),
}

/// Up to here a list is shorter than walking the words of a fleet of 10,000 hosts.
const FEW: usize = 128;

/// A host changed its domain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved {
    pub(crate) level: LevelIx,
    pub(crate) from: Option<u32>,
    pub(crate) to: Option<u32>,
}

impl Default for Domains {
    fn default() -> Self {
        let levels = [Level::Host, Level::Rack, Level::PowerFeed, Level::Zone, Level::Region];
        Self {
            tables: levels.map(|level| Some(Table::new(level))).into(),
            labels: FxHashMap::default(),
            clock: 0,
        }
    }
}

impl Domains {
    /// The host's domain at a level.
    pub(crate) fn of(&self, level: LevelIx, host: HostIx) -> Option<u32> {
        if level == LevelIx::HOST {
            return Some(host.0);
        }
        let domain = *self.table(level).domain_of.get(host.row())?;
        (domain != NOWHERE).then_some(domain)
    }

    /// The domain with this name; `None` when no host is in it.
    pub(crate) fn find(&self, level: LevelIx, name: &Name) -> Option<u32> {
        self.table(level).by_name.get(name).copied()
    }

    /// The level that a row stands for.
    pub(crate) fn named(&self, level: LevelIx) -> &Level {
        &self.table(level).level
    }

    /// The name of a domain, except at `HOST`; `None` when no host is in it.
    pub(crate) fn name(&self, level: LevelIx, domain: u32) -> Option<&Name> {
        self.table(level).names.get(domain as usize)?.as_ref()
    }

    /// The hosts that have a value at a level; `None` stands for all of them.
    pub(crate) fn somewhere(&self, level: LevelIx) -> Option<&Bits> {
        (level != LevelIx::HOST).then(|| &self.table(level).somewhere)
    }

    /// Removes a domain's hosts from the mask; says how many were removed.
    pub(crate) fn remove_from(&self, mask: &mut Mask, level: LevelIx, domain: u32) -> u32 {
        match self.hosts(level, domain) {
            None => mask.remove(HostIx(domain)),
            Some(HostSet::Few(hosts)) => hosts.iter().map(|&host| mask.remove(host)).sum(),
            Some(HostSet::Many(bits)) => mask.subtract(bits),
        }
    }

    /// Adds a domain's hosts to a set.
    pub(crate) fn add_to(&self, set: &mut Bits, level: LevelIx, domain: u32) {
        match self.hosts(level, domain) {
            None => set.insert(HostIx(domain)),
            Some(HostSet::Few(hosts)) => hosts.iter().for_each(|&host| set.insert(host)),
            Some(HostSet::Many(bits)) => set.union(bits),
        }
    }

    /// Whether any of a domain's hosts is in the mask.
    pub(crate) fn meets(&self, mask: &Mask, level: LevelIx, domain: u32) -> bool {
        match self.hosts(level, domain) {
            None => mask.contains(HostIx(domain)),
            Some(HostSet::Few(hosts)) => hosts.iter().any(|&host| mask.contains(host)),
            Some(HostSet::Many(bits)) => mask.meets(bits),
        }
    }

    /// The domains of a level that have hosts, except at `HOST`.
    pub(crate) fn each(&self, level: LevelIx) -> impl Iterator<Item = u32> + '_ {
        let names = self.table(level).names.iter().enumerate();
        names.filter(|(_, name)| name.is_some()).map(|(domain, _)| domain as u32)
    }

    /// `None` at `HOST`, where the domain is the host.
    fn hosts(&self, level: LevelIx, domain: u32) -> Option<&HostSet> {
        (level != LevelIx::HOST).then(|| &self.table(level).domains[domain as usize])
    }

    fn table(&self, level: LevelIx) -> &Table {
        self.tables[level.0 as usize].as_ref().expect("levels in use are never dropped")
    }

    fn table_mut(&mut self, level: LevelIx) -> &mut Table {
        self.tables[level.0 as usize].as_mut().expect("levels in use are never dropped")
    }

    /// A new request begins: levels that it asks for are safe from being dropped.
    pub(crate) fn tick(&mut self) {
        self.clock += 1;
    }

    /// The row of a level. A label level is made if it is not there; `dropped` is told which
    /// level had to go for it.
    pub(crate) fn level(
        &mut self,
        level: &Level,
        hosts: &Hosts,
        dropped: impl FnOnce(LevelIx),
    ) -> LevelIx {
        let key = match level {
            Level::Host => return LevelIx::HOST,
            Level::Rack => return LevelIx::RACK,
            Level::PowerFeed => return LevelIx::POWER_FEED,
            Level::Zone => return LevelIx::ZONE,
            Level::Region => return LevelIx::REGION,
            Level::Label(key) => key,
        };
        let clock = self.clock;
        if let Some(&found) = self.labels.get(key) {
            self.table_mut(found).used_at = clock;
            return found;
        }
        if self.labels.len() >= MAX_LABEL_LEVELS
            && let Some(gone) = self.drop_oldest()
        {
            dropped(gone);
        }
        let mut table = Table::new(level.clone());
        table.used_at = clock;
        for (ix, host) in hosts.iter() {
            table.enter(ix, host.labels.get(key.as_str()));
        }
        let row = self.tables.iter().position(Option::is_none).unwrap_or(self.tables.len());
        if row == self.tables.len() {
            self.tables.push(None);
        }
        self.tables[row] = Some(table);
        let made = LevelIx(row as u32);
        self.labels.insert(key.clone(), made);
        made
    }

    fn drop_oldest(&mut self) -> Option<LevelIx> {
        let tables = self.tables.iter().enumerate();
        let idle =
            tables.filter_map(|(row, table)| Some((row, table.as_ref()?))).filter(|(_, table)| {
                matches!(table.level, Level::Label(_))
                    && table.pins == 0
                    && table.used_at < self.clock
            });
        let (row, _) = idle.min_by_key(|(row, table)| (table.used_at, *row))?;
        if let Some(Table { level: Level::Label(key), .. }) = self.tables[row].take() {
            self.labels.remove(&key);
        }
        Some(LevelIx(row as u32))
    }

    /// A placed VM's rule needs the level until `unpin`.
    pub(crate) fn pin(&mut self, level: LevelIx) {
        self.table_mut(level).pins += 1;
    }

    pub(crate) fn unpin(&mut self, level: LevelIx) {
        let table = self.table_mut(level);
        table.pins = table.pins.saturating_sub(1);
    }

    /// Puts a host where it stands now, or nowhere. `moved` hears of each change while both
    /// domains exist, so that counters can follow the host.
    pub(crate) fn put_host(
        &mut self,
        ix: HostIx,
        host: Option<&Host>,
        mut moved: impl FnMut(Moved),
    ) {
        for (row, table) in self.tables.iter_mut().enumerate().skip(1) {
            let Some(table) = table else { continue };
            let name = host.and_then(|host| host.domain(&table.level));
            let from = table.domain_of.get(ix.row()).copied().filter(|&domain| domain != NOWHERE);
            if from.map(|domain| table.names[domain as usize].as_ref()) == name.map(Some) {
                continue;
            }
            let to = table.enter(ix, name);
            moved(Moved { level: LevelIx(row as u32), from, to });
            if let Some(from) = from {
                table.leave(ix, from);
            }
        }
    }
}

impl Table {
    fn new(level: Level) -> Self {
        Self {
            level,
            domain_of: Vec::new(),
            by_name: FxHashMap::default(),
            domains: Vec::new(),
            names: Vec::new(),
            free: Vec::new(),
            somewhere: Bits::default(),
            used_at: 0,
            pins: 0,
        }
    }

    fn enter(&mut self, ix: HostIx, name: Option<&Name>) -> Option<u32> {
        if self.domain_of.len() <= ix.row() {
            self.domain_of.resize(ix.row() + 1, NOWHERE);
        }
        self.somewhere.put(ix, name.is_some());
        let Some(name) = name else {
            self.domain_of[ix.row()] = NOWHERE;
            return None;
        };
        let domain = match self.by_name.get(name) {
            Some(&domain) => domain,
            None => self.make(name),
        };
        self.domains[domain as usize].insert(ix);
        self.domain_of[ix.row()] = domain;
        Some(domain)
    }

    fn leave(&mut self, ix: HostIx, domain: u32) {
        let row = domain as usize;
        self.domains[row].remove(ix);
        if self.domains[row].is_empty() {
            self.domains[row] = HostSet::Few(Vec::new());
            if let Some(name) = self.names[row].take() {
                self.by_name.remove(&name);
            }
            self.free.push(domain);
        }
    }

    fn make(&mut self, name: &Name) -> u32 {
        let domain = self.free.pop().unwrap_or_else(|| {
            self.domains.push(HostSet::Few(Vec::new()));
            self.names.push(None);
            self.names.len() as u32 - 1
        });
        self.names[domain as usize] = Some(name.clone());
        self.by_name.insert(name.clone(), domain);
        domain
    }
}

impl HostSet {
    fn insert(&mut self, ix: HostIx) {
        match self {
            HostSet::Few(hosts) if hosts.len() < FEW => hosts.push(ix),
            HostSet::Few(hosts) => {
                let mut bits = Bits::default();
                hosts.iter().for_each(|&host| bits.insert(host));
                bits.insert(ix);
                *self = HostSet::Many(bits);
            }
            HostSet::Many(bits) => bits.insert(ix),
        }
    }

    fn remove(&mut self, ix: HostIx) {
        match self {
            HostSet::Few(hosts) => hosts.retain(|&host| host != ix),
            HostSet::Many(bits) => bits.remove(ix),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            HostSet::Few(hosts) => hosts.is_empty(),
            HostSet::Many(bits) => bits.words().iter().all(|&word| word == 0),
        }
    }
}
