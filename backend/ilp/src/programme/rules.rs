//! Rules between VMs as rows.

use super::{Builder, Column};
use cluster::HostIx;
use cluster::assignment::{Rule, Scope};
use good_lp::Expression;

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

    pub(super) fn rules(&mut self) {
        for rule in 0..self.problem.rules.len() {
            let (group, scope) = self.problem.rules[rule].subject();
            let classes = self.classes_in(group);
            let members: f64 = classes.iter().map(|&class| self.members[class].len() as f64).sum();
            let domains = self.domains(scope);
            match self.problem.rules[rule] {
                Rule::Apart { .. } if classes.len() == 1 && scope == Scope::Host => {}
                Rule::Apart { .. } => {
                    for domain in domains {
                        self.rows.push(self.in_domain(&classes, scope, domain).leq(1.0));
                    }
                }
                Rule::Spread { domains: needed, .. } => {
                    let mut present = Expression::default();
                    for domain in domains {
                        let column = Column::Present { rule, domain };
                        let there = self.column(column, 1.0, true, 0.0);
                        present.add_mul(1.0, there);
                        let members = self.in_domain(&classes, scope, domain);
                        self.rows.push((Expression::from(there) - members).leq(0.0));
                    }
                    self.rows.push(present.geq(f64::from(needed)));
                }
                Rule::Dependency { needs, .. } => {
                    let needed = self.classes_in(needs);
                    for domain in domains {
                        let users = self.in_domain(&classes, scope, domain);
                        let served = self.in_domain(&needed, scope, domain) * members;
                        self.rows.push((users - served).leq(0.0));
                    }
                }
                Rule::Together { .. } => {
                    let mut present = Expression::default();
                    for domain in domains {
                        let column = Column::Present { rule, domain };
                        let there = self.column(column, 1.0, true, 0.0);
                        present.add_mul(1.0, there);
                        let all = self.in_domain(&classes, scope, domain);
                        self.rows.push((all - members * there).leq(0.0));
                    }
                    self.rows.push(present.leq(1.0));
                }
            }
        }
    }

    /// The domains of a scope that have a host.
    fn domains(&self, scope: Scope) -> Vec<u32> {
        let hosts = (0..self.problem.hosts.len() as u32).map(HostIx);
        let mut domains: Vec<u32> = hosts.map(|host| self.problem.domain(scope, host)).collect();
        domains.sort_unstable();
        domains.dedup();
        domains
    }
}
