//! Random constraints over the names that the random clusters use.

use super::{Dice, name};
use cluster::{
    Constraint, ConstraintRule, Dependency, Exclusive, Fence, HostSet, Keep, Level, Limit, Link,
    Links, MinDomains, Network, Selector, SelectorOp, Sharing, Spare, VmSet, Within,
};
use std::sync::Arc;

impl Dice {
    /// Up to four constraints in order of their names, and the links that some of them are over.
    pub(crate) fn constraints(&mut self) -> Vec<Arc<Constraint>> {
        let mut all = vec![("fabric".to_owned(), ConstraintRule::Links(self.links()))];
        for number in 0..self.below(5) {
            all.push((format!("c{number}"), self.constraint()));
        }
        all.sort_by(|one, other| one.0.cmp(&other.0));
        let named = |(text, rule): (String, _)| Arc::new(Constraint { name: name(&text), rule });
        all.into_iter().map(named).collect()
    }

    fn constraint(&mut self) -> ConstraintRule {
        let (vms, level) = (self.vm_set(), self.counted_level());
        match self.below(8) {
            0 => ConstraintRule::Fence(Fence {
                vms,
                hosts: self.host_set(),
                reserved: self.once_in(2),
            }),
            1 => ConstraintRule::MinDomains(MinDomains { vms, level, min: 2 + self.count(3) }),
            2 => ConstraintRule::Limit(Limit { vms, level, max: 1 + self.count(3) }),
            3 => ConstraintRule::Exclusive(Exclusive {
                vms,
                sharing: *self.pick(&[Sharing::Members, Sharing::Nobody]),
            }),
            4 => ConstraintRule::Dependency(Dependency { vms, on: self.vm_set(), level }),
            5 | 6 => {
                let bandwidth_mbps = *self.pick(&[0, 5, 10]);
                let bounded = bandwidth_mbps == 0 || self.once_in(2);
                ConstraintRule::Network(Network {
                    vms,
                    to: self.vm_set(),
                    over: name("fabric"),
                    max_latency_us: bounded.then(|| 1 + self.count(4)),
                    bandwidth_mbps,
                })
            }
            _ => ConstraintRule::Spare(Spare {
                hosts: self.host_set(),
                each: if self.once_in(2) { Some(level) } else { None },
                keep: match self.below(2) {
                    0 => Keep::Permille(1 + self.count(500)),
                    _ => Keep::Hosts(1 + self.count(2)),
                },
                except: if self.once_in(3) { Some(vms) } else { None },
            }),
        }
    }

    fn count(&mut self, below: usize) -> u32 {
        self.below(below) as u32
    }

    fn vm_set(&mut self) -> VmSet {
        let tenant = if self.once_in(2) { Some(self.named("tenant", 2)) } else { None };
        let group = if self.once_in(2) { Some(self.named("group", 3)) } else { None };
        let label = self.once_in(3);
        VmSet {
            tenant: tenant.or(group.is_some().then(|| name("tenant0"))),
            group,
            labels: label.then(|| self.condition("role")).into_iter().collect(),
        }
    }

    fn host_set(&mut self) -> HostSet {
        match self.below(5) {
            0 => HostSet { pool: Some(self.named("p", 2)), ..HostSet::default() },
            1 => {
                let within = Within { level: Level::Zone, names: vec![name("z0"), name("z1")] };
                HostSet { within: vec![within], ..HostSet::default() }
            }
            2 => {
                let names = (0..4).map(|_| self.named("h", 8)).collect();
                let within = vec![Within { level: Level::Host, names }];
                HostSet { within, ..HostSet::default() }
            }
            3 => HostSet { labels: vec![self.condition("k0")], ..HostSet::default() },
            _ => HostSet::default(),
        }
    }

    fn condition(&mut self, key: &str) -> Selector {
        let values = vec![self.named("v", 2)];
        let op = if self.once_in(3) { SelectorOp::NotIn(values) } else { SelectorOp::In(values) };
        Selector { key: name(key), op }
    }

    fn counted_level(&mut self) -> Level {
        let label = Level::Label(name("k0"));
        self.pick(&[Level::Host, Level::Rack, Level::Zone, Level::Region, label]).clone()
    }

    /// Links between some zones, racks, hosts or label values, many of them equally long.
    fn links(&mut self) -> Links {
        let label = Level::Label(name("k0"));
        let (level, prefix, count) = self
            .pick(&[
                (Level::Zone, "z", 3),
                (Level::Rack, "r", 4),
                (Level::Host, "h", 8),
                (label, "v", 3),
            ])
            .clone();
        let mut links = Vec::new();
        for a in 0..count {
            for b in 0..a {
                if self.once_in(2) {
                    let [a, b] = [a, b].map(|number| name(&format!("{prefix}{number}")));
                    let latency_us = 1 + self.count(2);
                    let bandwidth_mbps = *self.pick(&[10, 20, 1_000]);
                    links.push(Link { a, b, latency_us, bandwidth_mbps });
                }
            }
        }
        Links { level, links }
    }
}
