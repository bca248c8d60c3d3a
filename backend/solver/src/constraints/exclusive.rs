//! Hosts that certain VMs have for themselves.

use super::installed::Class;
use super::members::Members;
use crate::bits::{Bits, Mask};
use crate::domains::{Domains, LevelIx};
use crate::room::Room;
use cluster::{HostIx, Sharing};

#[derive(Debug)]
pub(crate) struct Exclusive {
    sharing: Sharing,
    members: Members,
    /// Hosts with members.
    taken: Bits,
    /// Hosts with VMs that are not members, those of others included.
    open: Bits,
}

impl Exclusive {
    pub(crate) fn new(rule: &cluster::Exclusive) -> Self {
        Self {
            sharing: rule.sharing,
            members: Members::at(LevelIx::HOST),
            taken: Bits::default(),
            open: Bits::default(),
        }
    }

    pub(crate) fn add(&mut self, host: HostIx, class: Class, domains: &Domains, room: &Room) {
        if class.is_about() {
            self.members.add(host, domains);
        }
        self.look_again(host, room);
    }

    pub(crate) fn remove(&mut self, host: HostIx, class: Class, domains: &Domains, room: &Room) {
        if class.is_about() {
            self.members.remove(host, domains);
        }
        self.look_again(host, room);
    }

    /// Follows the number of VMs on a host.
    pub(crate) fn look_again(&mut self, host: HostIx, room: &Room) {
        let members = self.members.on(host);
        self.taken.put(host, members > 0);
        self.open.put(host, room.host(host).vms > members);
    }

    /// Removes the hosts that would be shared; says how many.
    pub(crate) fn narrow(&self, class: Class, mask: &mut Mask) -> u32 {
        match (class.is_about(), self.sharing) {
            (false, _) => mask.subtract(&self.taken),
            (true, Sharing::Members) => mask.subtract(&self.open),
            (true, Sharing::Nobody) => mask.subtract(&self.open) + mask.subtract(&self.taken),
        }
    }
}
