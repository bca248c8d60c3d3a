//! The score of one host for one request.
//!
//! Every strategy is a formula: what the fit and load terms mean and what each term weighs.
//!
//! | strategy | formula |
//! |---|---|
//! | `balanced` | the policy's weights |
//! | `consolidate` | the policy's weights; load counts the highest utilisation itself |
//! | `spread` | the policy's weights; load counts few VMs, 8000 / (8 + n); affinity is multiplied by 32 / (32 + crowd), where the crowd is the members of the VM's own groups in the host's zone, plus 4 for each in its rack, plus 16 for each on the host |
//! | `best_fit`, `bfd` | 100 x mean utilisation after placing |
//! | `worst_fit` | 100 x (1000 - mean utilisation after placing) |
//! | `least_loaded` | 100 x (1000 - highest utilisation before placing) |
//! | `fewest_vms` | 100 x (1000 - VMs on the host, at most 1000) |
//! | `least_fragmentation` | 100,000 less 10,000 for each GPU that the host's free room loses in worth to the VMs that come (`fragmentation`) |
//! | `first_fit`, `ffd`, `round_robin` | as `balanced`, but hosts are taken by index, not by score |
//!
//! A bursty VM doubles the weight of load where the policy's weights are used.

use crate::domains::LevelIx;
use crate::fragmentation::points;
use crate::problem::Problem;
use crate::request::Request;
use crate::room::Use;
use crate::sizes::Added;
use crate::standing::View;
use cluster::{Breakdown, HostIx, Strategy, Term};
use policy::Weights;

/// What an untolerated `PreferNoSchedule` taint takes from the affinity term.
const SOFT_TAINT: i64 = 250;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FitBy {
    /// 1000 less the distance from highest to mean utilisation.
    Evenness,
    /// Mean utilisation.
    Mean,
    /// 1000 less mean utilisation.
    Spare,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LoadBy {
    /// 1000 less the highest utilisation.
    Headroom,
    /// The highest utilisation.
    Busy,
    /// Few VMs, the more so the fewer there are.
    Vms,
    /// 1000 less the number of VMs.
    Count,
}

impl FitBy {
    pub(crate) fn value(self, highest: i64, mean: i64) -> i64 {
        match self {
            FitBy::Evenness => 1000 - (highest - mean),
            FitBy::Mean => mean,
            FitBy::Spare => 1000 - mean,
        }
    }

    /// The most by which the value rises with what a demand adds.
    pub(crate) fn most(self, added: Added) -> i64 {
        match self {
            FitBy::Evenness => added.most_to_mean - added.least_to_highest,
            FitBy::Mean => added.most_to_mean,
            FitBy::Spare => -added.least_to_mean,
        }
    }
}

impl LoadBy {
    pub(crate) fn value(self, host: &Use) -> i64 {
        match self {
            LoadBy::Headroom => 1000 - i64::from(host.highest),
            LoadBy::Busy => host.highest.into(),
            LoadBy::Vms => 8000 / (8 + i64::from(host.vms)),
            LoadBy::Count => 1000 - i64::from(host.vms.min(1000)),
        }
    }
}

/// How the terms of a score are made and weighed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Formula {
    fit_by: FitBy,
    load_by: LoadBy,
    /// Whether members of the VM's own groups nearby lower the affinity term.
    crowding: bool,
    weights: [i64; 5],
}

impl Formula {
    pub(crate) fn new(strategy: Strategy, weights: &Weights, bursty: bool) -> Self {
        let single = |term: Term, fit_by| {
            let mut weights = [0; 5];
            weights[term.row()] = 100;
            Self { fit_by, load_by: LoadBy::Headroom, crowding: false, weights }
        };
        let weighted = |load_by, crowding| {
            let mut weights = Term::ALL.map(|term| i64::from(weights.get(term)));
            if bursty {
                weights[Term::Load.row()] *= 2;
            }
            Self { fit_by: FitBy::Evenness, load_by, crowding, weights }
        };
        match strategy {
            Strategy::BestFit | Strategy::BestFitDecreasing => single(Term::Fit, FitBy::Mean),
            // Its one term is made elsewhere.
            Strategy::LeastFragmentation => single(Term::Fit, FitBy::Mean),
            Strategy::WorstFit => single(Term::Fit, FitBy::Spare),
            Strategy::LeastLoaded => single(Term::Load, FitBy::Evenness),
            Strategy::FewestVms => {
                Self { load_by: LoadBy::Count, ..single(Term::Load, FitBy::Evenness) }
            }
            Strategy::Spread => weighted(LoadBy::Vms, true),
            Strategy::Consolidate => weighted(LoadBy::Busy, false),
            Strategy::Balanced
            | Strategy::FirstFit
            | Strategy::FirstFitDecreasing
            | Strategy::RoundRobin => weighted(LoadBy::Headroom, false),
        }
    }

    pub(crate) fn weight(&self, term: Term) -> i64 {
        self.weights[term.row()]
    }

    pub(crate) fn crowding(&self) -> bool {
        self.crowding
    }

    pub(crate) fn view(&self) -> View {
        View {
            fit_by: self.fit_by,
            load_by: self.load_by,
            fit: self.weight(Term::Fit),
            load: self.weight(Term::Load),
            cost: self.weight(Term::Cost),
        }
    }

    /// The exact score of one host, by term.
    pub(crate) fn score(&self, problem: &Problem, request: &Request, host: HostIx) -> Breakdown {
        if let Some(keeping) = &request.keeping {
            let kept = points(problem.losses.cost_afresh(keeping, host));
            let policy = problem.policies.points(host).into();
            return Breakdown { policy, ..Breakdown::of_terms([kept, 0, 0, 0, 0]) };
        }
        let values = [
            self.fit(problem, request, host),
            self.affinity(problem, request, host),
            self.load_by.value(&problem.room.host(host)),
            self.locality(problem, request, host),
            problem.prices.cost(host),
        ];
        let mut parts = [0; 5];
        for ((part, weight), value) in parts.iter_mut().zip(self.weights).zip(values) {
            *part = weight * value;
        }
        Breakdown { terms: parts, policy: problem.policies.points(host).into() }
    }

    /// Affinity and locality of one host, weighed, and the points of policies: what its standing
    /// leaves out.
    pub(crate) fn wishes(&self, problem: &Problem, request: &Request, host: HostIx) -> i64 {
        self.weight(Term::Affinity) * self.affinity(problem, request, host)
            + self.weight(Term::Locality) * self.locality(problem, request, host)
            + i64::from(problem.policies.points(host))
    }

    fn fit(&self, problem: &Problem, request: &Request, host: HostIx) -> i64 {
        if self.weight(Term::Fit) == 0 {
            return 0;
        }
        let (highest, mean) = problem.room.after(&request.asks, host);
        self.fit_by.value(highest, mean)
    }

    fn locality(&self, problem: &Problem, request: &Request, host: HostIx) -> i64 {
        if self.weight(Term::Locality) == 0 { 0 } else { request.locality.value(problem, host) }
    }

    fn affinity(&self, problem: &Problem, request: &Request, host: HostIx) -> i64 {
        if self.weight(Term::Affinity) == 0 {
            return 0;
        }
        let soft = problem.predicates.tolerated(request.tolerated).soft(host);
        let value = request.wishes_held(problem, host) - SOFT_TAINT * i64::from(soft);
        let value = value.max(0);
        if self.crowding { value * 32 / (32 + crowd(problem, request, host)) } else { value }
    }
}

/// Members of the VM's own groups near the host; nearer ones count more.
fn crowd(problem: &Problem, request: &Request, host: HostIx) -> i64 {
    let weighed = [(LevelIx::ZONE, 1), (LevelIx::RACK, 4), (LevelIx::HOST, 16)];
    let mut crowd = 0;
    for &group in &request.own_groups {
        for (level, weight) in weighed {
            if let Some(domain) = problem.domains.of(level, host) {
                let members = problem.groups.members(group, level).get(domain);
                crowd += weight * i64::from(members);
            }
        }
    }
    crowd
}
