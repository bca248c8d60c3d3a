//! Traffic: how far VMs that talk to each other are apart.

use crate::assignment::{Change, NOWHERE};
use cluster::HostIx;
use cluster::assignment::{End, Far, NO_DOMAIN, Problem, Scope, Sites};

#[derive(Clone, Debug)]
pub(crate) struct Traffic {
    /// Partners of each VM are `partners[first_of[vm]..first_of[vm + 1]]`.
    first_of: Vec<u32>,
    partners: Vec<Partner>,
    near: Vec<Near>,
    far: Far,
    /// Weights of all pairs.
    weights: i64,
    least: i64,
}

/// Whom a VM talks to.
#[derive(Clone, Copy, Debug)]
struct Partner {
    end: End,
    weight: i64,
    /// Distances are from the VM to the partner, or the other way round.
    forward: bool,
}

#[derive(Clone, Debug)]
struct Near {
    /// By host; of those in none `NO_DOMAIN`.
    domain_of: Vec<u32>,
    cost: i64,
}

impl Traffic {
    pub(super) fn compile(problem: &Problem, goal: &cluster::assignment::Traffic) -> Self {
        let mut of_vm: Vec<Vec<Partner>> = vec![Vec::new(); problem.vms.len()];
        for pair in &goal.pairs {
            let weight = pair.weight as i64;
            of_vm[pair.vm.0 as usize].push(Partner { end: pair.to, weight, forward: true });
            if let End::Vm(other) = pair.to
                && other != pair.vm
            {
                let back = Partner { end: End::Vm(pair.vm), weight, forward: false };
                of_vm[other.0 as usize].push(back);
            }
        }
        let domains = |scope: Scope| {
            let hosts = (0..problem.hosts.len() as u32).map(HostIx);
            hosts.map(|host| problem.domain(scope, host)).collect()
        };
        let near = goal.near.iter();
        let near = near.map(|near| Near { domain_of: domains(near.scope), cost: near.cost as i64 });
        let mut first_of = vec![0];
        let mut partners = Vec::new();
        for list in of_vm {
            partners.extend(list);
            first_of.push(partners.len() as u32);
        }
        let near: Vec<Near> = near.collect();
        let far = match &goal.far {
            Far::Cost(cost) => *cost as i64,
            Far::Sites(fabric) => fabric.costs.iter().copied().min().unwrap_or(0) as i64,
        };
        Self {
            first_of,
            partners,
            least: near.iter().map(|near| near.cost).fold(far, i64::min),
            near,
            far: goal.far.clone(),
            weights: goal.pairs.iter().map(|pair| pair.weight as i64).sum(),
        }
    }

    fn partners(&self, vm: u32) -> &[Partner] {
        let vm = vm as usize;
        &self.partners[self.first_of[vm] as usize..self.first_of[vm + 1] as usize]
    }

    /// Every pair at the least distance that there is.
    pub(super) fn bound(&self) -> i64 {
        self.weights * self.least
    }

    fn distance(&self, a: u32, b: u32) -> i64 {
        for near in &self.near {
            let domain = near.domain_of[a as usize];
            if domain != NO_DOMAIN && domain == near.domain_of[b as usize] {
                return near.cost;
            }
        }
        match &self.far {
            Far::Cost(cost) => *cost as i64,
            Far::Sites(fabric) => cost(fabric, a, b),
        }
    }

    /// What one pair costs with the VM and its partner on these hosts.
    #[inline]
    fn pair(&self, partner: &Partner, host: u32, other: u32) -> i64 {
        if host == NOWHERE || other == NOWHERE {
            return 0;
        }
        let (a, b) = if partner.forward { (host, other) } else { (other, host) };
        partner.weight * self.distance(a, b)
    }

    /// What a VM's pairs cost with it on this host.
    pub(super) fn vm(&self, vm: u32, host: u32, host_of: &[u32]) -> i64 {
        let pairs = self.partners(vm).iter().map(|partner| match partner.end {
            End::Vm(other) if other.0 == vm => self.pair(partner, host, host),
            End::Vm(other) => self.pair(partner, host, host_of[other.0 as usize]),
            End::Host(other) => self.pair(partner, host, other.0),
        });
        pairs.sum()
    }

    /// How the worth changes with one change, or with two of different VMs at once.
    pub(super) fn delta(&self, changes: &[Change], host_of: &[u32]) -> i64 {
        let mut delta = 0;
        for change in changes {
            delta +=
                self.vm(change.vm, change.to, host_of) - self.vm(change.vm, change.from, host_of);
        }
        let [a, b] = changes else { return delta };
        // The two VMs' own pairs were priced as if the other one had stayed, twice.
        for partner in self.partners(a.vm) {
            if !matches!(partner.end, End::Vm(other) if other.0 == b.vm) || a.vm == b.vm {
                continue;
            }
            let now = self.pair(partner, a.from, b.from);
            let then = self.pair(partner, a.to, b.to);
            let counted =
                self.pair(partner, a.to, b.from) - now + self.pair(partner, a.from, b.to) - now;
            delta += then - now - counted;
        }
        delta
    }
}

fn cost(fabric: &Sites, a: u32, b: u32) -> i64 {
    fabric.cost(HostIx(a), HostIx(b)) as i64
}
