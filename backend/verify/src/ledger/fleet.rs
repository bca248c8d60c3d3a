//! The hosts as the ledger knows them: room, place, and the signature that they share with
//! others.
//!
//! Hosts that agree in everything a VM's static rules look at have one signature, so that a
//! whole domain is judged by testing the few signatures in it.

use super::tally::{Place, Places, Relocation};
use crate::reading::{allocatable, label, physical, speed_permille};
use cluster::{
    Amounts, Column, Dim, Foreign, Host, HostIx, HostState, Labels, Level, Name, Qos, Taint,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// A domain of one of the four location levels. Reused after its last host has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DomainIx(pub(super) u32);

/// A row of the signature table. Reused after its last host has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SignatureIx(pub(super) u32);

/// Everything of a host that static rules look at, except its id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Signature {
    pub(super) state: HostState,
    pub(super) pool: Option<Name>,
    pub(super) labels: Labels,
    pub(super) taints: Vec<Taint>,
    pub(super) datastores: Vec<Name>,
}

#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) id: Name,
    pub(super) signature: SignatureIx,
    pub(super) speed_permille: u64,
    pub(super) vms: u32,
    /// Those of others.
    pub(super) foreign_vms: u32,
    located: [Option<DomainIx>; LOCATION_LEVELS],
    room: SmallVec<[Room; Dim::BUILT_IN]>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room {
    pub(super) committed: u64,
    /// In use by others.
    pub(super) foreign: u64,
    pub(super) allocatable: u64,
    /// The part of `committed` that is guaranteed, and the most that can be.
    pub(super) guaranteed: u64,
    pub(super) physical: u64,
}

/// Rack, power feed, zone and region.
const LOCATION_LEVELS: usize = 4;

#[derive(Debug)]
pub(super) struct Domain {
    pub(super) name: Name,
    pub(super) hosts: Vec<HostIx>,
    /// The signatures of these hosts, and how many have each.
    pub(super) signatures: Vec<(SignatureIx, u32)>,
}

/// Which domain of a level a host is in; two spots of one level are equal if the domain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Spot<'a> {
    Host(HostIx),
    Domain(DomainIx),
    Label(&'a Name),
}

#[derive(Debug)]
pub(super) struct Fleet {
    dimensions: usize,
    rows: Column<HostIx, Option<Row>>,
    by_id: FxHashMap<Name, HostIx>,
    domains: Vec<Domain>,
    free_domains: Vec<DomainIx>,
    by_name: [FxHashMap<Name, DomainIx>; LOCATION_LEVELS],
    signatures: Vec<(Arc<Signature>, u32)>,
    free_signatures: Vec<SignatureIx>,
    by_signature: FxHashMap<Arc<Signature>, SignatureIx>,
}

impl Row {
    /// What is committed and allocatable; nothing of dimensions that are not declared.
    pub(super) fn room(&self, dim: Dim) -> Room {
        self.room.get(dim.row()).copied().unwrap_or_default()
    }

    /// An amount that the sums cannot take up.
    pub(super) fn uncountable(&self, amounts: &Amounts) -> Option<(Dim, u64)> {
        amounts.iter().find(|(dim, amount)| match self.room.get(dim.row()) {
            Some(room) => room.committed.checked_add(*amount).is_none(),
            None => true,
        })
    }

    /// Whether at least this much is committed.
    pub(super) fn covers(&self, amounts: &Amounts) -> bool {
        amounts.iter().all(|(dim, amount)| self.room(dim).committed >= amount)
    }
}

impl Fleet {
    pub(super) fn new(dimensions: usize) -> Self {
        Self {
            dimensions,
            rows: Column::new(),
            by_id: FxHashMap::default(),
            domains: Vec::new(),
            free_domains: Vec::new(),
            by_name: Default::default(),
            signatures: Vec::new(),
            free_signatures: Vec::new(),
            by_signature: FxHashMap::default(),
        }
    }

    pub(super) fn set_dimensions(&mut self, dimensions: usize) {
        self.dimensions = dimensions;
        for row in self.rows.as_mut_slice().iter_mut().flatten() {
            let width = row.room.len().max(dimensions);
            row.room.resize(width, Room::default());
        }
    }

    pub(super) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Inserts or replaces a host; says so if it has VMs and its place has changed.
    pub(super) fn put(&mut self, ix: HostIx, host: &Host) -> Option<Relocation> {
        self.rows.reach(ix, None);
        let before = self.rows[ix].take();
        // The new place is entered first, so that the number of a domain that is left for
        // good is not given to another one in between.
        let location = &host.location;
        let levels = [&location.rack, &location.power_feed, &location.zone, &location.region];
        let signature = self.intern(host);
        let mut located = [None; LOCATION_LEVELS];
        for (level, name) in levels.into_iter().enumerate() {
            if let Some(name) = name {
                located[level] = Some(self.enter(level, name, ix, signature));
            }
        }
        let mut room = self.room(host);
        let mut vms = 0;
        let mut relocation = None;
        if let Some(before) = before {
            vms = before.vms;
            room.resize(room.len().max(before.room.len()), Room::default());
            for (row, old) in before.room.iter().enumerate() {
                room[row].committed = old.committed;
                room[row].guaranteed = old.guaranteed;
            }
            if vms > 0 && located != before.located {
                let (from, to) = (domains(&before.located), domains(&located));
                relocation = Some(Relocation { host: ix, from, to });
            }
            self.forget(ix, &before);
        }
        self.by_id.insert(host.id.clone(), ix);
        let speed_permille = speed_permille(host);
        let id = host.id.clone();
        let foreign_vms = host.foreign.vms;
        self.rows[ix] =
            Some(Row { id, signature, speed_permille, vms, foreign_vms, located, room });
        relocation
    }

    /// Replaces what others use of a host that is there.
    pub(super) fn set_foreign(&mut self, ix: HostIx, foreign: &Foreign) {
        if let Some(Some(row)) = self.rows.get_mut(ix) {
            row.foreign_vms = foreign.vms;
            for (dim, room) in row.room.iter_mut().enumerate() {
                room.foreign = foreign.used.get(Dim(dim as u8));
            }
        }
    }

    pub(super) fn remove(&mut self, ix: HostIx) {
        if let Some(row) = self.rows.get_mut(ix).and_then(Option::take) {
            self.forget(ix, &row);
        }
    }

    pub(super) fn row(&self, ix: HostIx) -> Option<&Row> {
        self.rows.get(ix)?.as_ref()
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = (HostIx, &Row)> {
        self.rows.iter().filter_map(|(ix, row)| Some((ix, row.as_ref()?)))
    }

    pub(super) fn find(&self, id: &Name) -> Option<HostIx> {
        self.by_id.get(id).copied()
    }

    /// The id of a host that VMs are on.
    pub(super) fn name(&self, ix: HostIx) -> Name {
        let row = self.row(ix).expect("a host is removed only when no VM is on it");
        row.id.clone()
    }

    pub(super) fn commit(&mut self, ix: HostIx, amounts: &Amounts, qos: Qos) {
        if let Some(Some(row)) = self.rows.get_mut(ix) {
            row.vms += 1;
            for (dim, amount) in amounts.iter() {
                row.room[dim.row()].committed += amount;
                if qos == Qos::Guaranteed {
                    row.room[dim.row()].guaranteed += amount;
                }
            }
        }
    }

    pub(super) fn give_back(&mut self, ix: HostIx, amounts: &Amounts, qos: Qos) {
        if let Some(Some(row)) = self.rows.get_mut(ix) {
            row.vms -= 1;
            for (dim, amount) in amounts.iter() {
                row.room[dim.row()].committed -= amount;
                if qos == Qos::Guaranteed {
                    row.room[dim.row()].guaranteed -= amount;
                }
            }
        }
    }

    /// Where VMs on this host are counted.
    pub(super) fn places(&self, ix: HostIx) -> Places {
        let mut places = self.row(ix).map_or_else(Places::new, |row| domains(&row.located));
        places.push(Place::host(ix));
        places
    }

    pub(super) fn spot(&self, ix: HostIx, level: &Level) -> Option<Spot<'_>> {
        let row = self.row(ix)?;
        match (location_level(level), level) {
            (Some(column), _) => row.located[column].map(Spot::Domain),
            (None, Level::Label(key)) => {
                label(&self.signature(row.signature).labels, key).map(Spot::Label)
            }
            (None, _) => Some(Spot::Host(ix)),
        }
    }

    pub(super) fn spot_name(&self, spot: Spot<'_>) -> Name {
        match spot {
            Spot::Host(ix) => self.name(ix),
            Spot::Domain(ix) => self.domain(ix).name.clone(),
            Spot::Label(value) => value.clone(),
        }
    }

    /// The domains of a location level, in no particular order.
    pub(super) fn domains(&self, column: usize) -> impl Iterator<Item = DomainIx> {
        self.by_name[column].values().copied()
    }

    pub(super) fn domain(&self, ix: DomainIx) -> &Domain {
        &self.domains[ix.0 as usize]
    }

    pub(super) fn signature(&self, ix: SignatureIx) -> &Signature {
        &self.signatures[ix.0 as usize].0
    }

    /// One more than the highest signature row.
    pub(super) fn signature_rows(&self) -> usize {
        self.signatures.len()
    }

    /// The signatures that hosts have at present.
    pub(super) fn signatures(&self) -> impl Iterator<Item = (SignatureIx, &Signature)> {
        let rows = self.signatures.iter().enumerate();
        let used = rows.filter(|(_, (_, hosts))| *hosts > 0);
        used.map(|(row, (signature, _))| (SignatureIx(row as u32), &**signature))
    }

    fn room(&self, host: &Host) -> SmallVec<[Room; Dim::BUILT_IN]> {
        let width = self.dimensions.max(host.capacity.width());
        let rows = (0..width).map(|row| Dim(row as u8));
        let room = |dim| {
            let foreign = host.foreign.used.get(dim);
            let (allocatable, physical) = (allocatable(host, dim), physical(host, dim));
            Room { foreign, allocatable, physical, ..Room::default() }
        };
        rows.map(room).collect()
    }

    fn intern(&mut self, host: &Host) -> SignatureIx {
        let signature = Signature {
            state: host.state,
            pool: host.pool.clone(),
            labels: host.labels.clone(),
            taints: host.taints.clone(),
            datastores: host.datastores.clone(),
        };
        if let Some(&ix) = self.by_signature.get(&signature) {
            self.signatures[ix.0 as usize].1 += 1;
            return ix;
        }
        let signature = Arc::new(signature);
        let ix = match self.free_signatures.pop() {
            Some(ix) => {
                self.signatures[ix.0 as usize] = (signature.clone(), 1);
                ix
            }
            None => {
                self.signatures.push((signature.clone(), 1));
                SignatureIx(self.signatures.len() as u32 - 1)
            }
        };
        self.by_signature.insert(signature, ix);
        ix
    }

    fn enter(
        &mut self,
        level: usize,
        name: &Name,
        host: HostIx,
        signature: SignatureIx,
    ) -> DomainIx {
        let ix = match self.by_name[level].get(name) {
            Some(&ix) => ix,
            None => {
                let domain =
                    Domain { name: name.clone(), hosts: Vec::new(), signatures: Vec::new() };
                let ix = match self.free_domains.pop() {
                    Some(ix) => {
                        self.domains[ix.0 as usize] = domain;
                        ix
                    }
                    None => {
                        self.domains.push(domain);
                        DomainIx(self.domains.len() as u32 - 1)
                    }
                };
                self.by_name[level].insert(name.clone(), ix);
                ix
            }
        };
        let domain = &mut self.domains[ix.0 as usize];
        domain.hosts.push(host);
        match domain.signatures.iter_mut().find(|(found, _)| *found == signature) {
            Some((_, hosts)) => *hosts += 1,
            None => domain.signatures.push((signature, 1)),
        }
        ix
    }

    /// Takes a row's host out of its domains, its signature and the names.
    fn forget(&mut self, ix: HostIx, row: &Row) {
        for (level, domain) in row.located.iter().enumerate() {
            if let Some(domain) = domain {
                self.leave(level, *domain, ix, row.signature);
            }
        }
        if self.by_id.get(&row.id) == Some(&ix) {
            self.by_id.remove(&row.id);
        }
        let (signature, hosts) = &mut self.signatures[row.signature.0 as usize];
        *hosts -= 1;
        if *hosts == 0 {
            self.by_signature.remove(&**signature);
            self.free_signatures.push(row.signature);
        }
    }

    fn leave(&mut self, level: usize, ix: DomainIx, host: HostIx, signature: SignatureIx) {
        let domain = &mut self.domains[ix.0 as usize];
        if let Some(at) = domain.hosts.iter().position(|found| *found == host) {
            domain.hosts.swap_remove(at);
        }
        if let Some(at) = domain.signatures.iter().position(|(found, _)| *found == signature) {
            domain.signatures[at].1 -= 1;
            if domain.signatures[at].1 == 0 {
                domain.signatures.swap_remove(at);
            }
        }
        if domain.hosts.is_empty() {
            self.by_name[level].remove(&domain.name);
            self.free_domains.push(ix);
        }
    }
}

/// The column of a level that hosts are located by; `None` for hosts and labels.
pub(super) fn location_level(level: &Level) -> Option<usize> {
    match level {
        Level::Rack => Some(0),
        Level::PowerFeed => Some(1),
        Level::Zone => Some(2),
        Level::Region => Some(3),
        Level::Host | Level::Label(_) => None,
    }
}

fn domains(located: &[Option<DomainIx>; LOCATION_LEVELS]) -> Places {
    located.iter().flatten().map(|ix| Place::domain(*ix)).collect()
}
