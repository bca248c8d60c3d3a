//! The engines by name, what each is for, and how it is made.

use ilp::{Auto, Ilp, Tuning};
use solver::engines::{Annealing, Csp, Engine, Genetic, Greedy, Lns, Nsga2, Swarm};

/// How to search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Method {
    #[default]
    Auto,
    Csp,
    Ilp,
    Greedy,
    Annealing,
    Genetic,
    Nsga2,
    Swarm,
    Lns,
}

/// What people should know of an engine before they choose it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// What a step of it is, which limits by steps count.
    pub step: &'static str,
    /// What a step costs, with H hosts, V VMs, R resources and G rules that a VM is in.
    pub complexity: &'static str,
    pub when: &'static str,
    /// Whether its "no" and its "best" are proofs.
    pub proves: bool,
    /// Whether it makes fronts of trade-offs.
    pub fronts: bool,
}

impl Method {
    pub const ALL: [Self; 9] = [
        Self::Auto,
        Self::Csp,
        Self::Ilp,
        Self::Greedy,
        Self::Annealing,
        Self::Genetic,
        Self::Nsga2,
        Self::Swarm,
        Self::Lns,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Csp => "csp",
            Self::Ilp => "ilp",
            Self::Greedy => "greedy",
            Self::Annealing => "annealing",
            Self::Genetic => "genetic",
            Self::Nsga2 => "nsga2",
            Self::Swarm => "swarm",
            Self::Lns => "lns",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// The engine with its usual settings. `timed` tells `auto` that a clock ends the search and
    /// not a number of steps.
    pub fn engine(self, threads: u32, timed: bool) -> Box<dyn Engine + Send + Sync> {
        match self {
            Self::Auto => Box::new(Auto { threads, timed, tuning: Tuning::default() }),
            Self::Csp => Box::new(Csp::default()),
            Self::Ilp => Box::new(Ilp { threads }),
            Self::Greedy => Box::new(Greedy),
            Self::Annealing => Box::new(Annealing::default()),
            Self::Genetic => Box::new(Genetic::default()),
            Self::Nsga2 => Box::new(Nsga2 { threads, ..Nsga2::default() }),
            Self::Swarm => Box::new(Swarm::default()),
            Self::Lns => Box::new(Lns { threads, ..Lns::default() }),
        }
    }

    pub fn facts(self) -> Facts {
        let search = Facts { step: "", complexity: "", when: "", proves: false, fronts: false };
        match self {
            Self::Auto => Facts {
                step: "as the engines that it runs",
                complexity: "greedy, a linear relaxation over classes of equal VMs, then large \
                             neighbourhoods; small problems as one programme",
                when: "always, unless one of the others is known to be better",
                ..search
            },
            Self::Csp => Facts {
                step: "one decision in the search tree",
                complexity: "exponential in V at worst; a step costs O(H x R + G)",
                when: "to know whether there is an answer at all, and which rules are in the way",
                proves: true,
                ..search
            },
            Self::Ilp => Facts {
                step: "one run of the programme solver",
                complexity: "exponential at worst; columns are classes of equal VMs x H",
                when: "up to about fifty hosts, where the best is wanted and not just a good one",
                proves: true,
                ..search
            },
            Self::Greedy => Facts {
                step: "one VM placed",
                complexity: "O(V x H x R)",
                when: "when an answer is due at once; what the others start from",
                ..search
            },
            Self::Annealing => Facts {
                step: "one shift or swap proposed",
                complexity: "O(R + G) a step",
                when: "many equal small gains: balance, headroom, latency",
                ..search
            },
            Self::Genetic => Facts {
                step: "one child",
                complexity: "O(V) to copy a parent, then what changes",
                when: "a few hundred hosts, several good placements that are unlike each other",
                ..search
            },
            Self::Nsga2 => Facts {
                step: "one child",
                complexity: "O(V) to copy a parent, then what changes; O(N^2) a generation to rank \
                             N members",
                when: "trade-offs: a front instead of one answer",
                fronts: true,
                ..search
            },
            Self::Swarm => Facts {
                step: "one move of one particle",
                complexity: "O(V) to remember where it was, then what changes",
                when: "seldom: it is here to be compared with",
                ..search
            },
            Self::Lns => Facts {
                step: "a few VMs taken out and put back",
                complexity: "O(k x h x R) for k VMs and h hosts that are looked at",
                when: "energy, cost, consolidation: whatever is won by emptying hosts",
                ..search
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_found_by_its_name_and_makes_the_engine_of_that_name() {
        for method in Method::ALL {
            assert_eq!(Method::named(method.name()), Some(method));
            assert_eq!(method.engine(1, true).name(), method.name());
            assert!(!method.facts().when.is_empty());
        }
        assert_eq!(Method::named("tabu"), None);
    }
}
