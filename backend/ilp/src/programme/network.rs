//! Pairs of VMs and the ways between them as rows.
//!
//! What a link carries is a sum of products of counts. Of each product one count is told apart into
//! steps, "at least one", "at least two" and so on, each 0 or 1; a step that is 1 carries all of
//! the other count. With whole numbers that is exact. Links that no assignment fills have no rows.

use super::{Builder, Column, different, greatest_common_divisor};
use cluster::VmIx;
use cluster::assignment::{Problem, Rule, Scope};
use good_lp::{Expression, Variable};
use std::collections::HashMap;

/// A rule's VMs: of its first group only, of its second only, of both; each with its partners.
struct Kind {
    members: Vec<VmIx>,
    partners: Vec<VmIx>,
}

/// Links on the way between two domains, the lower one first, where it is fast enough.
type Ways<'a> = HashMap<(u32, u32), &'a [u32]>;

/// "At least one", "at least two" and so on: rows of columns, and their variables.
type Steps = Vec<(usize, Variable)>;

impl Builder<'_> {
    /// Where one of `group` is, none of `to` is where no way that is fast enough leads.
    pub(super) fn reach(&mut self, rule: &Rule, group: &[VmIx], to: &[VmIx]) {
        let scope = rule.subject().1;
        // Who has a partner is in a domain.
        for (ours, others) in [(group, to), (to, group)] {
            let paired = |vm: &&VmIx| others.iter().any(|other| other != *vm);
            let paired: Vec<VmIx> = ours.iter().filter(paired).copied().collect();
            self.never_without_domain(&paired, scope);
        }
        if group.is_empty() || to.is_empty() {
            return;
        }
        let ways = ways(self.problem, rule);
        let (set, others) = (self.set(group), self.classes_of(to));
        let domains = self.domains(scope);
        for &domain in &domains {
            let far =
                |other: &&u32| **other != domain && !ways.contains_key(&ends(domain, **other));
            let far: Vec<u32> = domains.iter().filter(far).copied().collect();
            if far.is_empty() {
                continue;
            }
            let mut row = to.len() as f64 * self.present(group, set, scope, domain);
            for other in far {
                row += self.in_domain(&others, scope, other);
            }
            self.rows.push(row.leq(to.len() as f64));
        }
    }

    /// No link carries more than it can, over all rules.
    pub(super) fn links(&mut self) {
        let problem = self.problem;
        for (number, fabric) in (0..).zip(&problem.fabrics) {
            let over = problem.rules.iter().filter(|rule| match rule {
                Rule::Network { over, bandwidth, .. } => *over == number && *bandwidth > 0,
                _ => false,
            });
            let rules: Vec<&Rule> = over.collect();
            let unit = rules.iter().map(|rule| bandwidth(rule)).fold(0, greatest_common_divisor);
            let kinds: Vec<Vec<Kind>> = rules.iter().map(|rule| self.kinds(rule)).collect();
            let pairs = |kind: &Kind| (kind.members.len() * kind.partners.len()) as u128;
            let most = rules.iter().zip(&kinds).map(|(rule, kinds)| {
                u128::from(bandwidth(rule)) * kinds.iter().map(pairs).sum::<u128>()
            });
            let most: u128 = most.sum();
            let mut steps = HashMap::new();
            for (link, &carries) in (0..).zip(&fabric.links) {
                if most <= u128::from(carries) {
                    continue;
                }
                let mut load = Expression::default();
                for (row, (rule, kinds)) in rules.iter().zip(&kinds).enumerate() {
                    let share = (bandwidth(rule) / unit) as f64;
                    let carried = self.carried(row, rule, kinds, link, &mut steps);
                    load += carried * share;
                }
                self.rows.push(load.leq((carries / unit) as f64));
            }
        }
    }

    /// How many pairs of a rule go over a link.
    fn carried(
        &mut self,
        row: usize,
        rule: &Rule,
        kinds: &[Kind],
        link: u32,
        steps: &mut HashMap<(usize, usize, u32), Steps>,
    ) -> Expression {
        let scope = rule.subject().1;
        let (ways, domains) = (ways(self.problem, rule), self.domains(scope));
        let mut carried = Expression::default();
        for (position, &domain) in domains.iter().enumerate() {
            // Each two domains once: from the one with the lower number.
            let over = |other: &&u32| {
                ways.get(&ends(domain, **other)).is_some_and(|links| links.contains(&link))
            };
            let beyond: Vec<u32> = domains[position + 1..].iter().filter(over).copied().collect();
            if beyond.is_empty() {
                continue;
            }
            self.across.push(beyond.clone());
            let across = self.across.len() - 1;
            for (number, kind) in kinds.iter().enumerate() {
                if kind.members.is_empty() || kind.partners.is_empty() {
                    continue;
                }
                let partners = self.classes_of(&kind.partners);
                let mut there = Expression::default();
                for &other in &beyond {
                    there += self.in_domain(&partners, scope, other);
                }
                let all = kind.partners.len() as f64;
                let set = self.set(&kind.partners);
                let taken = steps
                    .entry((row, number, domain))
                    .or_insert_with(|| self.steps(&kind.members, scope, domain));
                for &(reached, step) in taken.iter() {
                    let column = Column::Flow { set, reached, across };
                    let flow = self.column(column, all, false, 0.0);
                    self.rows.push((there.clone() - flow + all * step).leq(all));
                    carried.add_mul(1.0, flow);
                }
            }
        }
        carried
    }

    /// "At least one of these is in the domain", "at least two" and so on.
    fn steps(&mut self, vms: &[VmIx], scope: Scope, domain: u32) -> Steps {
        let set = self.set(vms);
        let mut left = self.in_domain(&self.classes_of(vms), scope, domain);
        let mut made = Steps::new();
        for members in 1..=vms.len() as u32 {
            let column = Column::Reached { set, scope, domain, members };
            let step = self.column(column, 1.0, true, 0.0);
            left.add_mul(-1.0, step);
            if let Some(&(_, before)) = made.last() {
                self.rows.push((Expression::from(step) - before).leq(0.0));
            }
            made.push((self.columns.len() - 1, step));
        }
        self.rows.push(left.eq(0.0));
        made
    }

    fn kinds(&self, rule: &Rule) -> Vec<Kind> {
        let groups = rule.groups();
        let group = |row: usize| different(&self.problem.groups[groups[row] as usize]);
        let (first, second) = (group(0), group(1));
        let without = |these: &[VmIx], others: &[VmIx]| -> Vec<VmIx> {
            these.iter().filter(|vm| !others.contains(vm)).copied().collect()
        };
        let alone = [without(&first, &second), without(&second, &first)];
        let both = without(&first, &alone[0]);
        let all = [first.clone(), alone[1].clone()].concat();
        let [of_first, of_second] = alone;
        vec![
            Kind { members: of_first, partners: second },
            Kind { members: of_second, partners: first },
            Kind { members: both, partners: all },
        ]
    }
}

/// The ways of a rule.
fn ways<'a>(problem: &'a Problem, rule: &Rule) -> Ways<'a> {
    let &Rule::Network { over, latency, .. } = rule else { return Ways::new() };
    let routes = problem.fabrics[over as usize].routes.iter();
    let fast = routes.filter(|route| latency.is_none_or(|most| route.latency <= most));
    fast.map(|route| (ends(route.between.0, route.between.1), route.links.as_slice())).collect()
}

fn bandwidth(rule: &Rule) -> u64 {
    match rule {
        Rule::Network { bandwidth, .. } => *bandwidth,
        _ => 0,
    }
}

fn ends(a: u32, b: u32) -> (u32, u32) {
    (a.min(b), a.max(b))
}
