//! Balance: how far hosts are from being filled as the fleet is, squared.

use super::Used;
use super::share::Share;
use crate::assignment::Model;
use cluster::assignment::PARTS;

#[derive(Clone, Debug)]
pub(crate) struct Balance {
    fill: Share,
    /// By class.
    targets: Vec<i64>,
    weight: i64,
}

impl Balance {
    pub(super) fn compile(model: &Model, goal: &cluster::assignment::Balance) -> Self {
        Self {
            fill: Share::compile(model, &goal.rates),
            targets: goal.targets.iter().map(|&target| target as i64).collect(),
            weight: goal.weight as i64,
        }
    }

    #[inline]
    pub(super) fn host(&self, host: u32, used: &impl Used) -> i64 {
        let class = self.fill.class_of[host as usize];
        self.square(self.fill.of_class(class, used) - self.targets[class as usize])
    }

    #[inline]
    fn square(&self, far: i64) -> i64 {
        ((i128::from(self.weight) * i128::from(far) * i128::from(far)) >> PARTS) as i64
    }

    pub(super) fn weight(&self, amounts: &[i32]) -> f64 {
        let part = self.fill.weight(amounts) as i64;
        let most =
            self.targets.iter().map(|&target| self.square(part + target) - self.square(target));
        most.max().unwrap_or(0) as f64
    }

    /// What is above its target already, and the squares below: the fleet's fill can rise by what
    /// the demand adds at most, and equal distances make the least squares.
    pub(super) fn bound(&self, model: &Model) -> i64 {
        let hosts = 0..model.hosts() as u32;
        let (mut above, mut below, mut short) = (0, 0, 0i128);
        for host in hosts {
            let class = self.fill.class_of[host as usize];
            let standing = model.standing(host);
            let fill = self.fill.of_class(class, &|at: usize| standing[at]);
            let far = fill - self.targets[class as usize];
            if far > 0 {
                above += self.square(far);
            } else {
                below += 1i128;
                short += i128::from(-far);
            }
        }
        let classes = 0..self.targets.len() as u32;
        let most = |vm: u32| {
            let demand = model.demand(vm);
            let fills =
                classes.clone().map(|class| self.fill.of_class(class, &|at: usize| demand[at]));
            i128::from(fills.max().unwrap_or(0)) + 1
        };
        let added: i128 = (0..model.vms() as u32).map(most).sum();
        let left = (short - added).max(0);
        if below == 0 {
            return above;
        }
        // Cauchy and Schwarz; every host rounds down once.
        let squares = (i128::from(self.weight) * left / below * left) >> PARTS;
        above + (squares - below).max(0) as i64
    }
}
