//! Evenly over the domains of a level: no domain may be too far ahead of the emptiest.

use crate::bits::Mask;
use crate::domains::LevelIx;
use crate::groups::GroupIx;
use crate::problem::Problem;
use crate::tally::Tally;
use cluster::HostIx;

/// A spread rule with its group looked up.
#[derive(Debug)]
pub(crate) struct SpreadRule {
    pub(crate) level: LevelIx,
    /// `None` while the group has no member.
    pub(crate) group: Option<GroupIx>,
    pub(crate) max_skew: u32,
    /// `None` when the rule is required.
    pub(crate) weight: Option<u16>,
    /// Members of the emptiest eligible domain; known after `settle`.
    pub(crate) fewest: u32,
}

impl SpreadRule {
    /// Finds the emptiest eligible domain.
    pub(crate) fn settle(&mut self, problem: &Problem, eligible: &Mask) {
        self.fewest = self.emptiest(problem, eligible).unwrap_or(0);
    }

    /// Members of the emptiest eligible domain, if any domain is. It has no members unless all
    /// eligible domains do, so the search mostly ends at the first domain that it looks at.
    pub(crate) fn emptiest(&self, problem: &Problem, eligible: &Mask) -> Option<u32> {
        let members = self.members(problem);
        let mut fewest = None;
        let mut look = |count: u32, is_eligible: &dyn Fn() -> bool| {
            if fewest.is_none_or(|fewest| count < fewest) && is_eligible() {
                fewest = Some(count);
            }
            fewest == Some(0)
        };
        if self.level == LevelIx::HOST {
            for host in eligible.iter() {
                if look(members.get(host.0), &|| true) {
                    break;
                }
            }
        } else {
            for domain in problem.domains.each(self.level) {
                let met = || problem.domains.meets(eligible, self.level, domain);
                if look(members.get(domain), &met) {
                    break;
                }
            }
        }
        fewest
    }

    /// Members in the host's domain; none where it has no domain.
    pub(crate) fn members_near(&self, problem: &Problem, host: HostIx) -> u32 {
        let domain = problem.domains.of(self.level, host);
        domain.map_or(0, |domain| self.members(problem).get(domain))
    }

    /// Whether the answer for this host depends on the emptiest domain. If the host's own domain
    /// is within the skew of an empty one, it is within the skew of any.
    pub(crate) fn needs_fewest(&self, problem: &Problem, host: HostIx) -> bool {
        let domain = problem.domains.of(self.level, host);
        self.weight.is_none() && domain.is_some_and(|domain| self.blocks(problem, domain))
    }

    /// Whether the rule holds on a host.
    pub(crate) fn holds(&self, problem: &Problem, host: HostIx) -> bool {
        let domain = problem.domains.of(self.level, host);
        domain.is_some_and(|domain| !self.blocks(problem, domain))
    }

    /// Removes the hosts where the rule does not hold; says how many.
    pub(crate) fn narrow(&self, problem: &Problem, mask: &mut Mask) -> u32 {
        if self.max_skew == 0 {
            return mask.subtract_all();
        }
        let somewhere = problem.domains.somewhere(self.level);
        let mut removed = somewhere.map_or(0, |somewhere| mask.retain(somewhere));
        self.for_each_blocked(problem, |domain| {
            removed += problem.domains.remove_from(mask, self.level, domain);
        });
        removed
    }

    /// Calls `each` for the domains that are too full. With a skew of at least 1 those have
    /// members: an empty domain is either an emptiest one or not eligible.
    pub(crate) fn for_each_blocked(&self, problem: &Problem, mut each: impl FnMut(u32)) {
        let members = self.members(problem);
        let full = members.iter().filter(|&(_, count)| self.is_too_many(count));
        full.for_each(|(domain, _)| each(domain));
    }

    fn blocks(&self, problem: &Problem, domain: u32) -> bool {
        self.is_too_many(self.members(problem).get(domain))
    }

    fn is_too_many(&self, count: u32) -> bool {
        u64::from(count) + 1 > u64::from(self.fewest) + u64::from(self.max_skew)
    }

    fn members<'p>(&self, problem: &'p Problem) -> &'p Tally {
        self.group.map_or(Tally::EMPTY, |group| problem.groups.members(group, self.level))
    }
}
