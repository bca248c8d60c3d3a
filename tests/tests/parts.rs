//! Parts of hosts over a long time: placed through the solver's tables, checked by the verifier's
//! ledger, and after everything is released, every host is as new.

use cluster::{Amounts, Bindings, Dim, Host, HostIx, Name, Placed, Revision, Snapshot, Vm, VmKey};
use fixture::{Dice, hardware};
use solver::{Chosen, How, Problem, Scratch};
use std::sync::Arc;
use verify::Ledger;

const OPERATIONS: u64 = 100_000;
const HOSTS: u32 = 12;
/// Operations after which everything is derived again from scratch.
const FULL_CHECK_EVERY: u64 = 5_000;

struct Fleet {
    hosts: Vec<Arc<Host>>,
    problem: Problem,
    ledger: Ledger,
    scratch: Scratch,
    placed: Vec<(HostIx, Placed)>,
}

impl Fleet {
    fn new(dice: &mut Dice) -> Self {
        let mut problem = Problem::new(Dim::BUILT_IN);
        let mut ledger = Ledger::new(Dim::BUILT_IN);
        let hosts: Vec<Arc<Host>> = (0..HOSTS).map(|row| Arc::new(server(dice, row))).collect();
        for (row, host) in hosts.iter().enumerate() {
            problem.put_host(HostIx(row as u32), host);
            ledger.put_host(HostIx(row as u32), host);
        }
        Self { hosts, problem, ledger, scratch: Scratch::default(), placed: Vec::new() }
    }

    fn place(&mut self, vm: Vm) -> bool {
        let how = How::default();
        let choice = solver::place(&mut self.problem, &mut self.scratch, &vm, &how);
        let Some(Chosen { host: ix, committed, bindings, .. }) = choice.host else { return false };
        let host = Arc::clone(&self.hosts[ix.0 as usize]);
        let mut found = self.ledger.check(&vm, ix, &host.id, &committed);
        let parts = bindings.as_deref();
        found.extend(self.ledger.check_bindings(&vm, ix, &host, &committed, parts));
        assert!(found.is_empty(), "{}", found[0]);
        self.problem.add_vm(ix, &vm, &committed);
        self.ledger.add_vm(ix, &vm, &committed).expect("a new VM");
        let bound: &Arc<Bindings> = bindings.as_ref().expect("every VM here asks for parts");
        self.problem.take(ix, bound).expect("free parts");
        self.ledger.bind(ix, &vm.key, bound).expect("free parts");
        let placed = Placed {
            vm: Arc::new(vm),
            host: host.id.clone(),
            committed,
            bindings,
            over_capacity: false,
            adopted: false,
            held: false,
        };
        self.placed.push((ix, placed));
        true
    }

    fn release(&mut self, row: usize) {
        let (ix, Placed { vm, committed, bindings, .. }) = self.placed.swap_remove(row);
        let bindings = bindings.expect("every VM here has parts");
        self.problem.give_back(ix, &bindings).expect("taken parts");
        self.ledger.unbind(ix, &vm.key, &bindings).expect("taken parts");
        self.problem.remove_vm(ix, &vm, &committed);
        self.ledger.remove_vm(ix, &vm, &committed).expect("a placed VM");
    }

    fn check(&self) {
        let snapshot = Snapshot {
            revision: Revision(1),
            dimensions: Default::default(),
            hosts: self.hosts.clone(),
            placed: self.placed.iter().map(|(_, placed)| placed.clone()).collect(),
            constraints: Vec::new(),
        };
        let report = verify::snapshot(&snapshot);
        assert!(report.accepted() && report.drift.is_empty(), "{report}");
    }
}

fn server(dice: &mut Dice, row: u32) -> Host {
    let hardware = hardware::server(dice);
    let threads: u32 = hardware.numa_nodes.iter().map(|node| node.threads()).sum();
    let memory: u32 = hardware.numa_nodes.iter().map(|node| node.memory_mib).sum();
    let capacity = Amounts::cpu_memory(u64::from(threads) * 1000, memory.into());
    let mut host = Host::new(Name::new(&format!("h{row}")).unwrap(), capacity);
    host.overcommit_permille = Amounts::cpu_memory(*dice.pick(&[1000, 2500]), 0);
    host.hardware = Box::new(hardware);
    host
}

#[test]
fn a_hundred_thousand_placements_and_releases_leave_every_host_as_new() {
    let mut dice = Dice::new(1);
    let mut fleet = Fleet::new(&mut dice);
    let fresh: Vec<_> = (0..HOSTS).map(|row| fleet.problem.devices(HostIx(row)).clone()).collect();
    let (mut placed, mut refused) = (0_u64, 0_u64);
    for operation in 0..OPERATIONS {
        // Fills up and empties by turns, so that full and fragmented hosts both come up.
        let leaving = if operation / 2_000 % 2 == 0 { 300 } else { 700 };
        if !fleet.placed.is_empty() && dice.chance(leaving) {
            fleet.release(dice.row(fleet.placed.len()));
            continue;
        }
        let (topology, demand) = hardware::request(&mut dice);
        let key = VmKey::in_default_tenant(Name::new(&format!("vm-{operation}")).unwrap());
        let vm = Vm { topology: Some(Box::new(topology)), ..Vm::new(key, demand) };
        if fleet.place(vm) {
            placed += 1;
        } else {
            refused += 1;
        }
        if operation % FULL_CHECK_EVERY == 0 {
            fleet.check();
        }
    }
    assert!(placed > 20_000 && refused > 1_000, "{placed} placed, {refused} refused");
    fleet.check();
    while !fleet.placed.is_empty() {
        fleet.release(dice.row(fleet.placed.len()));
    }
    for (row, fresh) in fresh.iter().enumerate() {
        assert_eq!(fleet.problem.devices(HostIx(row as u32)), fresh, "host {row}");
    }
}
