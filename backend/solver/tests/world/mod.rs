//! A small random cluster, and a naive reference for every question that the solver answers.
//!
//! The reference is written from `backend/ARCHITECTURE.md` alone: it walks all hosts and all
//! placed VMs for every question and keeps no table.

pub(crate) mod random;
pub(crate) mod reference;

use cluster::{Amounts, Dim, Host, HostIx, Qos, Vm};
use solver::Problem;

/// Hosts by row, and placed VMs.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    pub(crate) hosts: Vec<Option<Host>>,
    pub(crate) placed: Vec<Placed>,
}

#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) host: HostIx,
    pub(crate) vm: Vm,
    pub(crate) committed: Amounts,
}

impl World {
    /// The hosts that exist, by row.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = (HostIx, &Host)> {
        let rows = self.hosts.iter().enumerate();
        rows.filter_map(|(row, host)| Some((HostIx(row as u32), host.as_ref()?)))
    }

    pub(crate) fn host(&self, ix: HostIx) -> &Host {
        self.hosts[ix.0 as usize].as_ref().expect("a host that exists")
    }

    pub(crate) fn on(&self, ix: HostIx) -> impl Iterator<Item = &Placed> {
        self.placed.iter().filter(move |placed| placed.host == ix)
    }

    /// What VMs are guaranteed on a host.
    pub(crate) fn guaranteed(&self, ix: HostIx, dim: Dim) -> u64 {
        let guaranteed = self.on(ix).filter(|placed| placed.vm.qos == Qos::Guaranteed);
        guaranteed.map(|placed| placed.committed.get(dim)).sum()
    }

    /// Tables made from nothing but what is there now.
    pub(crate) fn problem(&self) -> Problem {
        let mut problem = Problem::new(5);
        for (ix, host) in self.hosts() {
            problem.put_host(ix, host);
        }
        for placed in &self.placed {
            problem.add_vm(placed.host, &placed.vm, &placed.committed);
        }
        problem
    }
}
