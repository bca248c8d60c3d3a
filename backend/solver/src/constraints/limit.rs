//! At most so many of certain VMs in one domain.

use super::installed::Class;
use super::members::Members;
use crate::bits::Mask;
use crate::domains::{Domains, LevelIx};

#[derive(Debug)]
pub(crate) struct Limit {
    max: u32,
    pub(crate) members: Members,
}

impl Limit {
    pub(crate) fn new(rule: &cluster::Limit, level: LevelIx) -> Self {
        Self { max: rule.max, members: Members::at(level) }
    }

    /// Removes the domains that have all they may have; says how many hosts that are.
    pub(crate) fn narrow(&self, class: Class, domains: &Domains, mask: &mut Mask) -> u32 {
        if !class.is_about() {
            return 0;
        }
        let full = self.members.each_domain().filter(|(_, count)| *count >= self.max);
        full.map(|(domain, _)| domains.remove_from(mask, self.members.level, domain)).sum()
    }
}
