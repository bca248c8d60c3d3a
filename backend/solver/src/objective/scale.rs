//! Multiplies goals by a fraction, so that their worth is multiplied by it but for rounding.

use cluster::assignment::{
    Balance, Busiest, Curves, Distances, Far, Goal, Near, Outages, Power, Rates, Sites, Traffic,
    Watched,
};

#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub(super) times: u128,
    pub(super) per: u128,
}

impl Scale {
    /// Rounded half up.
    fn of(self, amount: u64) -> u64 {
        let product = u128::from(amount).saturating_mul(self.times);
        let scaled = product.saturating_add(self.per / 2) / self.per;
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }

    fn all(self, amounts: &[u64]) -> Vec<u64> {
        amounts.iter().map(|&amount| self.of(amount)).collect()
    }

    fn tables(self, rows: &[Vec<u64>]) -> Vec<Vec<u64>> {
        rows.iter().map(|row| self.all(row)).collect()
    }

    fn curves(self, curves: &Curves) -> Curves {
        Curves { points: self.tables(&curves.points), of_host: curves.of_host.clone() }
    }

    pub(super) fn goal(self, goal: &Goal) -> Goal {
        match goal {
            Goal::Energy { resource, hosts } => {
                let power =
                    |power: &Power| Power { idle: self.of(power.idle), span: self.of(power.span) };
                Goal::Energy { resource: *resource, hosts: hosts.iter().map(power).collect() }
            }
            Goal::Peak { weight } => Goal::Peak { weight: self.of(*weight) },
            Goal::Overload { weights, safe } => {
                Goal::Overload { weights: self.all(weights), safe: safe.clone() }
            }
            Goal::Stranded { plenty, scarce, target, weight } => Goal::Stranded {
                plenty: *plenty,
                scarce: *scarce,
                target: *target,
                weight: self.of(*weight),
            },
            Goal::Moves { vms, between, busiest } => Goal::Moves {
                vms: self.all(vms),
                between: between.as_ref().map(|distances| Distances {
                    weight: self.of(distances.weight),
                    pairs: distances.pairs.clone(),
                }),
                busiest: busiest.as_ref().map(|busiest| Busiest {
                    weight: self.of(busiest.weight),
                    group_of: busiest.group_of.clone(),
                }),
            },
            Goal::Power { resource, curves, keep_on } => {
                Goal::Power { resource: *resource, curves: self.curves(curves), keep_on: *keep_on }
            }
            Goal::Heat { resource, curves, scope, limits } => Goal::Heat {
                resource: *resource,
                curves: self.curves(curves),
                scope: *scope,
                limits: self.all(limits),
            },
            Goal::Share(rates) => Goal::Share(Rates {
                classes: self.tables(&rates.classes),
                of_host: rates.of_host.clone(),
            }),
            Goal::Balance(balance) => {
                Goal::Balance(Balance { weight: self.of(balance.weight), ..balance.clone() })
            }
            Goal::Table { costs, vms, hosts } => {
                Goal::Table { costs: self.tables(costs), vms: vms.clone(), hosts: hosts.clone() }
            }
            Goal::Traffic(traffic) => Goal::Traffic(self.traffic(traffic)),
            Goal::Outages(outages) => {
                let watched = |watched: &Watched| Watched {
                    weight: self.of(watched.weight),
                    ..watched.clone()
                };
                let groups = outages.groups.iter().map(watched).collect();
                Goal::Outages(Outages { groups, scopes: outages.scopes.clone() })
            }
        }
    }

    fn traffic(self, traffic: &Traffic) -> Traffic {
        let near = |near: &Near| Near { cost: self.of(near.cost), ..*near };
        let far = match &traffic.far {
            Far::Cost(cost) => Far::Cost(self.of(*cost)),
            Far::Sites(fabric) => {
                Far::Sites(Sites { costs: self.all(&fabric.costs), ..fabric.clone() })
            }
        };
        Traffic { pairs: traffic.pairs.clone(), near: traffic.near.iter().map(near).collect(), far }
    }
}
