//! What pairs of VMs and crowds rule out: hosts out of a partner's reach, ways that have no more
//! room, and hosts that would have all of what no host can have at once.

use super::propagate::{Branch, DeadEnd};

impl Branch<'_> {
    /// Closes hosts to those who feel it that a VM has come, or to everybody before the first did.
    pub(super) fn revise_ways(&mut self, came: Option<u32>) -> Result<(), DeadEnd> {
        let model = self.model();
        let networks = &model.networks;
        if networks.is_empty() {
            return Ok(());
        }
        for sort in networks.felt_by(came) {
            let all = 0..model.vms() as u32;
            let open = all.filter(|&vm| networks.sort_of(vm) == sort && !self.is_placed(vm));
            let open: Vec<u32> = open.collect();
            // What is true of one of a sort is true of all.
            let Some(&one) = open.first() else { continue };
            let hosts = 0..model.hosts() as u32;
            let closed: Vec<u32> =
                hosts.filter(|&host| !self.state.flows.may_arrive(networks, one, host)).collect();
            for vm in open {
                self.close(vm, &closed)?;
            }
        }
        Ok(())
    }

    /// Closes hosts to those who would complete what no host can have.
    pub(super) fn revise_clashes(&mut self) -> Result<(), DeadEnd> {
        for rule in self.model().clashes.all() {
            for &host in rule.hosts() {
                self.complete(&rule.members, host)?;
            }
        }
        Ok(())
    }

    /// The same for a host that a VM has just come to.
    pub(super) fn revise_clashes_on(&mut self, vm: u32, host: u32) -> Result<(), DeadEnd> {
        for rule in self.model().clashes.felt_on(vm, host) {
            self.complete(&rule.members, host)?;
        }
        Ok(())
    }

    fn complete(&mut self, vms: &[u32], host: u32) -> Result<(), DeadEnd> {
        let clashes = &self.model().clashes;
        for &vm in vms.iter() {
            if !self.is_placed(vm) && !self.state.crowds.may_arrive(clashes, vm, host) {
                self.close(vm, &[host])?;
            }
        }
        Ok(())
    }

    fn close(&mut self, vm: u32, hosts: &[u32]) -> Result<(), DeadEnd> {
        hosts.iter().for_each(|&host| self.forbid(vm, host));
        if self.domains.size(vm) == 0 { Err(DeadEnd) } else { Ok(()) }
    }
}
