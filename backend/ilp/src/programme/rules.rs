//! Rules between VMs as rows.
//!
//! "Where one of these is" is a column of its own, 0 or 1: it is 1 wherever a count is above
//! nothing, and switches on what must be true there.

use super::{Builder, Column, different};
use cluster::assignment::{Crowd, NO_DOMAIN, Rule, Scope};
use cluster::{HostIx, VmIx};
use good_lp::{Expression, Variable};
use std::collections::HashSet;

impl Builder<'_> {
    /// Whether the class is a group whose members are on different hosts: a limit of its columns,
    /// for which no row is needed.
    pub(super) fn at_most_one_a_host(&self, class: usize) -> bool {
        let vm = self.members[class][0];
        self.problem.rules.iter().any(|rule| match *rule {
            Rule::Apart { group, scope: Scope::Host } => {
                self.problem.groups[group as usize].contains(&vm)
            }
            _ => false,
        })
    }

    /// Whether a fence keeps the class off a host.
    pub(super) fn is_fenced(&self, class: usize, host: usize) -> bool {
        let vm = self.members[class][0];
        self.problem.rules.iter().any(|rule| match rule {
            Rule::Fence { group, hosts } => {
                !hosts.contains(&HostIx(host as u32))
                    && self.problem.groups[*group as usize].contains(&vm)
            }
            _ => false,
        })
    }

    pub(super) fn rules(&mut self) {
        let problem = self.problem;
        for (row, rule) in problem.rules.iter().enumerate() {
            let (group, scope) = rule.subject();
            let group = different(&problem.groups[group as usize]);
            let other = rule.object().map(|other| different(&problem.groups[other as usize]));
            let other = other.unwrap_or_default();
            let inside: Vec<VmIx> = group.iter().copied().filter(|vm| other.contains(vm)).collect();
            let outside: Vec<VmIx> =
                group.iter().copied().filter(|vm| !other.contains(vm)).collect();
            match rule {
                Rule::Fence { .. } => {}
                Rule::Apart { .. } => self.limit(&group, scope, 1),
                Rule::Limit { most, .. } => self.limit(&group, scope, *most),
                Rule::Spread { domains, .. } => self.spread(&group, scope, *domains),
                Rule::Together { .. } => self.together(&group, scope),
                Rule::Dependency { .. } => self.at_least(&group, &other, 1, scope),
                Rule::Beside { .. } => {
                    self.at_least(&outside, &other, 1, scope);
                    self.at_least(&inside, &other, 2, scope);
                }
                Rule::Away { .. } => {
                    self.at_most(&outside, &other, 0, scope);
                    self.at_most(&inside, &other, 1, scope);
                }
                Rule::Skew { most, among, .. } => {
                    self.skew(row, (&group, &other), scope, *most, among);
                }
                Rule::Spare { hosts, keep, .. } => self.spare(row, &group, hosts, keep),
                Rule::Network { .. } => self.reach(rule, &group, &other),
                Rule::Clash { crowds, hosts } => self.clash(crowds, hosts),
            }
        }
        self.links();
    }

    fn limit(&mut self, group: &[VmIx], scope: Scope, most: u32) {
        let classes = self.classes_of(group);
        if most == 1 && classes.len() == 1 && scope == Scope::Host {
            // `at_most_one_a_host` has seen to it, unless the limit is not from keeping apart.
            let apart = self.at_most_one_a_host(classes[0]);
            if apart {
                return;
            }
        }
        for domain in self.domains(scope) {
            self.rows.push(self.in_domain(&classes, scope, domain).leq(f64::from(most)));
        }
    }

    fn spread(&mut self, group: &[VmIx], scope: Scope, needed: u32) {
        let classes = self.classes_of(group);
        let set = self.set(group);
        let mut present = Expression::default();
        for domain in self.domains(scope) {
            let there = self.column(Column::Present { set, scope, domain }, 1.0, true, 0.0);
            present.add_mul(1.0, there);
            let members = self.in_domain(&classes, scope, domain);
            self.rows.push((Expression::from(there) - members).leq(0.0));
        }
        self.rows.push(present.geq(f64::from(needed)));
    }

    fn together(&mut self, group: &[VmIx], scope: Scope) {
        if group.is_empty() {
            return;
        }
        let set = self.set(group);
        self.never_without_domain(group, scope);
        let mut present = Expression::default();
        for domain in self.domains(scope) {
            present.add_mul(1.0, self.present(group, set, scope, domain));
        }
        self.rows.push(present.leq(1.0));
    }

    /// Where one of `group` is, there are at least so many of `other`.
    fn at_least(&mut self, group: &[VmIx], other: &[VmIx], least: u32, scope: Scope) {
        if group.is_empty() {
            return;
        }
        let (classes, others) = (self.classes_of(group), self.classes_of(other));
        self.never_without_domain(group, scope);
        let set = self.set(group);
        for domain in self.domains(scope) {
            let there = self.in_domain(&others, scope, domain);
            if least == 1 {
                let members = self.in_domain(&classes, scope, domain);
                self.rows.push((members - there * group.len() as f64).leq(0.0));
            } else {
                let present = self.present(group, set, scope, domain);
                self.rows.push((f64::from(least) * present - there).leq(0.0));
            }
        }
    }

    /// Where one of `group` is, there are at most so many of `other`.
    fn at_most(&mut self, group: &[VmIx], other: &[VmIx], most: u32, scope: Scope) {
        if group.is_empty() || other.len() <= most as usize {
            return;
        }
        let others = self.classes_of(other);
        let set = self.set(group);
        let all = other.len() as f64;
        for domain in self.domains(scope) {
            let present = self.present(group, set, scope, domain);
            let there = self.in_domain(&others, scope, domain);
            self.rows.push((there + (all - f64::from(most)) * present).leq(all));
        }
    }

    fn skew(
        &mut self,
        rule: usize,
        (group, of): (&[VmIx], &[VmIx]),
        scope: Scope,
        most: u32,
        among: &[u32],
    ) {
        if group.is_empty() {
            return;
        }
        self.never_without_domain(group, scope);
        if among.is_empty() {
            return;
        }
        let counted = self.classes_of(of);
        let all = of.len() as f64;
        let fewest = self.column(Column::Fewest { rule }, all, false, 0.0);
        for &domain in among {
            // A domain without hosts has nobody, and the emptiest has no more.
            let there = self.in_domain(&counted, scope, domain);
            self.rows.push((Expression::from(fewest) - there).leq(0.0));
        }
        let set = self.set(group);
        for domain in self.domains(scope) {
            let present = self.present(group, set, scope, domain);
            let there = self.in_domain(&counted, scope, domain);
            let ahead = there - fewest + all * present;
            self.rows.push(ahead.leq(f64::from(most) + all));
        }
    }

    fn spare(&mut self, rule: usize, group: &[VmIx], hosts: &[HostIx], keep: &[u64]) {
        let mut rows: Vec<usize> = hosts.iter().map(|host| host.0 as usize).collect();
        rows.sort_unstable();
        rows.dedup();
        let bound = self.classes_of(group);
        for (resource, &keep) in keep.iter().enumerate() {
            let asks = |&&class: &&usize| self.demand(class)[resource] > 0;
            let asking: Vec<usize> = bound.iter().filter(asks).copied().collect();
            if keep == 0 || asking.is_empty() {
                continue;
            }
            let mut there = Expression::default();
            let mut used = Expression::default();
            let mut whole = 0.0;
            for &host in &rows {
                whole += self.problem.hosts[host].capacity[resource] as f64;
                used += self.used(host, resource);
                for count in asking.iter().filter_map(|&class| self.count[class][host]) {
                    there.add_mul(1.0, count);
                }
            }
            let asked = self.column(Column::Asked { rule, resource }, 1.0, true, 0.0);
            self.rows.push((there - group.len() as f64 * asked).leq(0.0));
            self.rows.push((used + keep as f64 * asked).leq(whole));
        }
    }

    /// No host has so many of every crowd.
    fn clash(&mut self, crowds: &[Crowd], hosts: &[HostIx]) {
        let groups = crowds.iter().map(|it| different(&self.problem.groups[it.group as usize]));
        let groups: Vec<Vec<VmIx>> = groups.collect();
        let sets: Vec<usize> = groups.iter().map(|group| self.set(group)).collect();
        let mut hosts = hosts.to_vec();
        hosts.sort_unstable();
        hosts.dedup();
        for host in hosts {
            let mut all = Expression::default();
            for ((crowd, group), &set) in crowds.iter().zip(&groups).zip(&sets) {
                let (scope, domain, members) = (Scope::Host, host.0, crowd.members);
                let column = Column::Reached { set, scope, domain, members };
                let reached = self.column(column, 1.0, true, 0.0);
                all.add_mul(1.0, reached);
                let there = self.in_domain(&self.classes_of(group), scope, domain);
                let fewer = f64::from(members) - 1.0;
                let beyond = (group.len() as f64 - fewer).max(1.0);
                self.rows.push((there - beyond * reached).leq(fewer));
            }
            self.rows.push(all.leq(crowds.len() as f64 - 1.0));
        }
    }

    /// A column that is 1 if one of the set is in the domain.
    pub(super) fn present(
        &mut self,
        group: &[VmIx],
        set: usize,
        scope: Scope,
        domain: u32,
    ) -> Variable {
        let present = self.column(Column::Present { set, scope, domain }, 1.0, true, 0.0);
        let classes = self.classes_of(group);
        let members = self.in_domain(&classes, scope, domain);
        self.rows.push((members - group.len() as f64 * present).leq(0.0));
        present
    }

    pub(super) fn never_without_domain(&mut self, group: &[VmIx], scope: Scope) {
        let classes = self.classes_of(group);
        self.rows.push(self.in_domain(&classes, scope, NO_DOMAIN).leq(0.0));
    }

    pub(super) fn set(&mut self, group: &[VmIx]) -> usize {
        self.sets.push(group.to_vec());
        self.sets.len() - 1
    }

    /// The classes of a set of VMs that has each class whole.
    pub(super) fn classes_of(&self, group: &[VmIx]) -> Vec<usize> {
        let group: HashSet<VmIx> = group.iter().copied().collect();
        (0..self.members.len()).filter(|&class| group.contains(&self.members[class][0])).collect()
    }

    pub(super) fn in_domain(&self, classes: &[usize], scope: Scope, domain: u32) -> Expression {
        let mut there = Expression::default();
        for host in 0..self.problem.hosts.len() {
            if self.problem.domain(scope, HostIx(host as u32)) == domain {
                for count in classes.iter().filter_map(|&class| self.count[class][host]) {
                    there.add_mul(1.0, count);
                }
            }
        }
        there
    }

    /// The domains of a scope that have a host.
    pub(super) fn domains(&self, scope: Scope) -> Vec<u32> {
        let hosts = (0..self.problem.hosts.len() as u32).map(HostIx);
        let mut domains: Vec<u32> = hosts.map(|host| self.problem.domain(scope, host)).collect();
        domains.retain(|&domain| domain != NO_DOMAIN);
        domains.sort_unstable();
        domains.dedup();
        domains
    }
}
