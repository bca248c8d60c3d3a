//! A handful of equal hosts to try one rule or term on.

// Each test binary uses its own part of this.
#![allow(dead_code)]

use cluster::{Amounts, Host, HostIx, Name, Vm, VmKey};
use solver::{Choice, How, Problem, Scratch, place};

pub(crate) struct Tiny {
    pub(crate) problem: Problem,
    pub(crate) how: How,
}

impl Tiny {
    pub(crate) fn new(hosts: &[Host]) -> Self {
        let mut problem = Problem::new(5);
        for (row, host) in hosts.iter().enumerate() {
            problem.put_host(HostIx(row as u32), host);
        }
        Self { problem, how: How::default() }
    }

    pub(crate) fn place(&mut self, vm: &Vm) -> Choice {
        place(&mut self.problem, &mut Scratch::default(), vm, &self.how)
    }

    /// Puts a VM on a host whatever the rules say.
    pub(crate) fn put(&mut self, row: u32, vm: &Vm) {
        self.problem.add_vm(HostIx(row), vm, &vm.demand);
    }

    pub(crate) fn take(&mut self, row: u32, vm: &Vm) {
        self.problem.remove_vm(HostIx(row), vm, &vm.demand);
    }
}

/// Hosts `h0`, `h1`, ... with 8 cores and 16 GiB.
pub(crate) fn hosts(count: usize) -> Vec<Host> {
    let host = |row| Host::new(name(&format!("h{row}")), Amounts::cpu_memory(8_000, 16_384));
    (0..count).map(host).collect()
}

/// A VM with one core and 2 GiB, an eighth of a host.
pub(crate) fn vm(id: &str) -> Vm {
    Vm::new(VmKey::in_default_tenant(name(id)), Amounts::cpu_memory(1_000, 2_048))
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

pub(crate) fn names(texts: &[&str]) -> Vec<Name> {
    texts.iter().map(|text| name(text)).collect()
}
