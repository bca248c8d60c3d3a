//! What one client has been told, and what it still has to find out.

use crate::client::{Answer, Client};
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::io;

/// VMs that a client keeps at a time.
const MOST: usize = 30;

/// A client's own VMs. No other client touches them, so what it was told must be what is.
#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) client: u64,
    pub(crate) vms: BTreeMap<String, Known>,
    pub(crate) acknowledged: u64,
    /// Sent, and not answered before the process died.
    pub(crate) unknown: Option<Operation>,
    operations: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) host: String,
    pub(crate) cpu_millis: u64,
    pub(crate) reservation: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Operation {
    key: String,
    line: String,
    body: String,
    change: Change,
}

#[derive(Clone, Debug)]
enum Change {
    Place { vm: String, cpu_millis: u64 },
    Confirm { vm: String },
    Resize { vm: String, cpu_millis: u64 },
    Remove { vm: String },
}

impl Ledger {
    pub(crate) fn new(client: u64) -> Self {
        Self { client, ..Self::default() }
    }

    /// Works until the connection breaks.
    pub(crate) fn work(&mut self, server: &mut Client, dice: &mut Xoshiro256PlusPlus) {
        loop {
            let operation = self.next(dice);
            self.unknown = Some(operation.clone());
            if self.carry_out(server, &operation).is_err() {
                return;
            }
            self.unknown = None;
        }
    }

    /// Repeats what was left open, with the same key and the same body.
    pub(crate) fn settle(&mut self, server: &mut Client) -> bool {
        let Some(operation) = self.unknown.take() else { return false };
        self.carry_out(server, &operation).expect("an answer after the restart");
        true
    }

    fn next(&mut self, dice: &mut Xoshiro256PlusPlus) -> Operation {
        self.operations += 1;
        let key = format!("c{}-{}", self.client, self.operations);
        let picked = match self.vms.len() {
            0 => None,
            count => self.vms.iter().nth(dice.random_range(0..count)),
        };
        let cpu_millis = dice.random_range(100..400);
        let (line, body, change) = match (dice.random_range(0..8), picked) {
            (_, Some((vm, Known { reservation: Some(reservation), .. }))) => {
                let line = format!("POST /v1/reservations/{reservation}/confirm");
                (line, String::new(), Change::Confirm { vm: vm.clone() })
            }
            (0 | 1, Some((vm, _))) => {
                let body = format!(r#"{{"demand":{{"cpu_millis":{cpu_millis}}}}}"#);
                (format!("PATCH /v1/vms/{vm}"), body, Change::Resize { vm: vm.clone(), cpu_millis })
            }
            (kind, Some((vm, _))) if kind == 2 || self.vms.len() >= MOST => {
                let line = format!("DELETE /v1/vms/{vm}");
                (line, String::new(), Change::Remove { vm: vm.clone() })
            }
            (kind, _) => {
                // Longer than the whole test, so that none ends by itself.
                let hold = if kind == 3 { r#","hold_ttl_ms":3600000"# } else { "" };
                let vm = format!("vm-{key}");
                let demand = format!(r#"{{"cpu_millis":{cpu_millis},"memory_mib":64}}"#);
                let body = format!(r#"{{"vm":{{"id":"{vm}","demand":{demand}}}{hold}}}"#);
                ("POST /v1/placements".to_owned(), body, Change::Place { vm, cpu_millis })
            }
        };
        Operation { key, line, body, change }
    }

    fn carry_out(&mut self, server: &mut Client, operation: &Operation) -> io::Result<()> {
        let Operation { key, line, body, change } = operation;
        let answer = server.ask(line, Some(key), body)?;
        let Answer { status, .. } = answer;
        assert!(status < 500, "{operation:?}: {answer:?}");
        match change {
            Change::Place { vm, cpu_millis } => {
                assert_eq!(status, 201, "{operation:?}: {answer:?}");
                let placed = answer.json();
                let word = |name: &str| placed[name].as_str().map(str::to_owned);
                let known = Known {
                    host: word("host_id").expect("a host"),
                    cpu_millis: *cpu_millis,
                    reservation: word("reservation_id"),
                };
                self.vms.insert(vm.clone(), known);
            }
            Change::Confirm { vm } => {
                assert_eq!(status, 200, "{operation:?}: {answer:?}");
                self.known(vm).reservation = None;
            }
            Change::Resize { vm, cpu_millis } => {
                assert_eq!(answer.json()["outcome"], "resized", "{operation:?}: {answer:?}");
                self.known(vm).cpu_millis = *cpu_millis;
            }
            Change::Remove { vm } => {
                assert_eq!(status, 204, "{operation:?}: {answer:?}");
                self.vms.remove(vm);
            }
        }
        self.acknowledged += 1;
        Ok(())
    }

    fn known(&mut self, vm: &str) -> &mut Known {
        self.vms.get_mut(vm).expect("only what is known is changed")
    }
}
