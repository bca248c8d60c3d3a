//! Fences: certain VMs on certain hosts only, and no others there if the hosts are reserved.

use super::installed::Class;
use crate::bits::{Bits, Mask};
use cluster::{Host, HostIx, HostSet};

#[derive(Debug)]
pub(crate) struct Fence {
    hosts: HostSet,
    reserved: bool,
    inside: Bits,
}

impl Fence {
    pub(crate) fn new(rule: &cluster::Fence) -> Self {
        Self { hosts: rule.hosts.clone(), reserved: rule.reserved, inside: Bits::default() }
    }

    pub(crate) fn put_host(&mut self, ix: HostIx, host: Option<&Host>) {
        self.inside.put(ix, host.is_some_and(|host| self.hosts.contains(host)));
    }

    /// Removes the hosts on the wrong side; says how many.
    pub(crate) fn narrow(&self, class: Class, mask: &mut Mask) -> u32 {
        match class.is_about() {
            true => mask.retain(&self.inside),
            false if self.reserved => mask.subtract(&self.inside),
            false => 0,
        }
    }
}
