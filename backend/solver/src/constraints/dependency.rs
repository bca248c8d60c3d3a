//! Each domain with one of these has one of those: newcomers go where one of those is.

use super::installed::Class;
use super::members::Members;
use crate::bits::{Bits, Mask};
use crate::domains::{Domains, LevelIx};

#[derive(Debug)]
pub(crate) struct Dependency {
    /// Those that are depended on.
    pub(crate) members: Members,
}

impl Dependency {
    pub(crate) fn at(level: LevelIx) -> Self {
        Self { members: Members::at(level) }
    }

    /// Removes the hosts whose domain has nobody to depend on; says how many. A VM that is
    /// itself one of those needs a domain only.
    pub(crate) fn narrow(
        &self,
        class: Class,
        domains: &Domains,
        mask: &mut Mask,
        union: &mut Bits,
    ) -> u32 {
        let level = self.members.level;
        if !class.is_about() {
            return 0;
        }
        if class.is_against() {
            return domains.somewhere(level).map_or(0, |somewhere| mask.retain(somewhere));
        }
        union.clear();
        self.members.each_domain().for_each(|(domain, _)| domains.add_to(union, level, domain));
        mask.retain(union)
    }
}
