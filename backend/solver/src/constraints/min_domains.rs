//! At least so many domains: until they are covered, newcomers go where no member is yet.

use super::installed::Class;
use super::members::Members;
use crate::bits::Mask;
use crate::domains::{Domains, LevelIx};

#[derive(Debug)]
pub(crate) struct MinDomains {
    min: u32,
    pub(crate) members: Members,
}

impl MinDomains {
    pub(crate) fn new(rule: &cluster::MinDomains, level: LevelIx) -> Self {
        Self { min: rule.min, members: Members::at(level) }
    }

    /// While too few are covered, removes the hosts that would cover none; says how many.
    pub(crate) fn narrow(&self, class: Class, domains: &Domains, mask: &mut Mask) -> u32 {
        let Self { min, members } = self;
        if !class.is_about() || members.covered() >= *min {
            return 0;
        }
        let somewhere = domains.somewhere(members.level);
        let nowhere = somewhere.map_or(0, |somewhere| mask.retain(somewhere));
        let covered = members.each_domain();
        nowhere
            + covered
                .map(|(domain, _)| domains.remove_from(mask, members.level, domain))
                .sum::<u32>()
    }
}
