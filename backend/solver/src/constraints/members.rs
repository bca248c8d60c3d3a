//! Members of a set of VMs, counted by host and by domain of one level.
//!
//! Plain columns, so that a VM that comes or goes costs two additions however many there are.

use crate::domains::{Domains, LevelIx, Moved};
use cluster::{HostIx, Index};

#[derive(Debug)]
pub(crate) struct Members {
    pub(crate) level: LevelIx,
    by_host: Vec<u32>,
    /// Not kept at `HOST`, where the host is the domain.
    by_domain: Vec<u32>,
    /// Domains with a member.
    covered: u32,
    /// Members on hosts without a value at the level.
    strays: u32,
}

impl Members {
    pub(crate) fn at(level: LevelIx) -> Self {
        Self { level, by_host: Vec::new(), by_domain: Vec::new(), covered: 0, strays: 0 }
    }

    pub(crate) fn on(&self, host: HostIx) -> u32 {
        self.by_host.get(host.row()).copied().unwrap_or(0)
    }

    /// How many domains have members.
    pub(crate) fn covered(&self) -> u32 {
        self.covered
    }

    pub(crate) fn strays(&self) -> u32 {
        self.strays
    }

    /// The domains with members, and how many each has.
    pub(crate) fn each_domain(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let counts = if self.level == LevelIx::HOST { &self.by_host } else { &self.by_domain };
        (0..).zip(counts).filter(|(_, count)| **count > 0).map(|(domain, count)| (domain, *count))
    }

    pub(crate) fn add(&mut self, host: HostIx, domains: &Domains) {
        raise(&mut self.by_host, host.0, 1);
        match domains.of(self.level, host) {
            Some(_) if self.level == LevelIx::HOST => self.covered += u32::from(self.on(host) == 1),
            Some(domain) => self.enter(domain, 1),
            None => self.strays += 1,
        }
    }

    pub(crate) fn remove(&mut self, host: HostIx, domains: &Domains) {
        lower(&mut self.by_host, host.0, 1);
        match domains.of(self.level, host) {
            Some(_) if self.level == LevelIx::HOST => self.covered -= u32::from(self.on(host) == 0),
            Some(domain) => self.leave(domain, 1),
            None => self.strays -= 1,
        }
    }

    /// Takes the members on the host along to its new domain; says whether there are any.
    pub(crate) fn move_host(&mut self, host: HostIx, moved: Moved) -> bool {
        let members = self.on(host);
        if members == 0 || moved.level != self.level {
            return false;
        }
        match moved.from {
            Some(from) => self.leave(from, members),
            None => self.strays -= members,
        }
        match moved.to {
            Some(to) => self.enter(to, members),
            None => self.strays += members,
        }
        true
    }

    fn enter(&mut self, domain: u32, members: u32) {
        self.covered += u32::from(raise(&mut self.by_domain, domain, members) == members);
    }

    fn leave(&mut self, domain: u32, members: u32) {
        self.covered -= u32::from(lower(&mut self.by_domain, domain, members) == 0);
    }
}

fn raise(counts: &mut Vec<u32>, row: u32, by: u32) -> u32 {
    if counts.len() <= row as usize {
        counts.resize(row as usize + 1, 0);
    }
    counts[row as usize] += by;
    counts[row as usize]
}

fn lower(counts: &mut [u32], row: u32, by: u32) -> u32 {
    counts[row as usize] -= by;
    counts[row as usize]
}
