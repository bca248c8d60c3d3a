//! Deciding where VMs go: the solver chooses, the verifier agrees, a `Placing` comes out.
//!
//! Nothing is changed here. What is decided becomes true when its command is applied.

use crate::command::{Hold, Placing};
use crate::core::Core;
use crate::planted::{self, Bug};
use crate::request::{PlaceRequest, Refusal};
use crate::state::State;
use crate::together::Together;
use cluster::{
    Affinity, AffinityKind, Alternative, Breakdown, Decision, HostIx, Level, Name, PolicyRejection,
    Strength, Subject, Verdict, Vm,
};
use policy::ActiveSet;
use solver::{Choice, Chosen, How};
use std::borrow::Cow;
use verify::Ledger;

impl Core {
    /// Decides one request against the state as it is.
    ///
    /// A request for certain hosts is decided as if the VM had a rule that names them, so that it
    /// takes the same path, the same checks and the same accounting as any other.
    pub fn decide(&mut self, request: &PlaceRequest) -> Result<Placing, Refusal> {
        let how = self.how(request);
        self.decide_by(request, &how)
    }

    /// The same by other weights or another strategy than those in force.
    pub(crate) fn decide_by(
        &mut self,
        request: &PlaceRequest,
        how: &How,
    ) -> Result<Placing, Refusal> {
        if let Some(host) = &request.pinned {
            let known = self.state.find_host(host);
            let (ix, _) = known.ok_or_else(|| Refusal::UnknownHost(host.clone()))?;
            if planted::is(Bug::NoRevalidation) {
                let choice = unchecked(ix, &request.vm);
                return Ok(self.placing(request, request.fingerprint(), how, choice));
            }
        }
        let vm = asked_of(request);
        let choice = solver::place(&mut self.problem, &mut self.scratch, &vm, how);
        if let Some(chosen) = &choice.host {
            verified(&self.state, &self.ledger, &self.policies, &vm, chosen)?;
            self.check_tied(&[(&vm, chosen)])?;
        }
        Ok(self.placing(request, request.fingerprint(), how, choice))
    }

    /// Decides many requests together, each on the result of those before it. With `atomic`, one
    /// that cannot be placed rejects them all.
    ///
    /// The requests share the first one's strategy. Refused when it is `abandoned` on the way.
    pub fn decide_batch(
        &mut self,
        requests: &[PlaceRequest],
        atomic: bool,
        abandoned: &dyn Fn() -> bool,
    ) -> Result<Vec<Placing>, Refusal> {
        let Some(first) = requests.first() else { return Ok(Vec::new()) };
        let how = self.how(first);
        let Together { choices, prints } =
            self.choose_together(requests, &how, atomic, abandoned)?;
        if self.state.plans().moving().len() > 0 {
            let chosen = requests
                .iter()
                .zip(&choices)
                .filter_map(|(request, choice)| Some((request.vm.as_ref(), choice.host.as_ref()?)));
            self.check_tied(&chosen.collect::<Vec<_>>())?;
        }
        let placings = requests.iter().zip(prints).zip(choices);
        let placing = |((request, print), choice)| self.placing(request, print, &how, choice);
        Ok(placings.map(placing).collect())
    }

    fn how(&self, request: &PlaceRequest) -> How {
        let policy = self.state.policy();
        How {
            weights: policy.weights,
            strategy: request.strategy.unwrap_or(policy.strategy),
            round_robin_after: self.state.round_robin_after,
        }
    }

    fn placing(
        &self,
        request: &PlaceRequest,
        request_hash: [u8; 16],
        how: &How,
        choice: Choice,
    ) -> Placing {
        let (verdict, committed) = match choice.host {
            Some(Chosen { host, score, breakdown, committed, bindings }) => {
                match self.state.host(host) {
                    Some(entry) => {
                        let (host, incarnation) = (entry.host.id.clone(), entry.host.incarnation);
                        let verdict =
                            Verdict::Placed { host, incarnation, score, breakdown, bindings };
                        (verdict, committed)
                    }
                    None => (Verdict::Rejected, Default::default()),
                }
            }
            None => (Verdict::Rejected, Default::default()),
        };
        let alternatives = choice.alternatives.iter().filter_map(|(host, score)| {
            let entry = self.state.host(*host)?;
            Some(Alternative { host: entry.host.id.clone(), score: *score })
        });
        Placing {
            strategy: request.strategy,
            pinned: request.pinned.clone(),
            among: request.among.clone(),
            hold: None,
            request_hash,
            committed,
            decision: Decision {
                vm: request.vm.key.clone(),
                verdict,
                strategy: how.strategy,
                alternatives: alternatives.collect(),
                rejections: choice.rejections,
                policy_rejections: self.named(&choice.by_rule),
                hosts_considered: choice.considered,
                based_on: self.state.revision(),
                policy_revision: self.state.policy().revision,
                demand_revision: 0,
            },
            vm: request.vm.clone(),
        }
    }

    fn named(&self, by_rule: &[(policy::RuleIx, u32)]) -> Vec<PolicyRejection> {
        let named = by_rule.iter().filter_map(|&(rule, hosts)| {
            let (policy, rule) = self.policies.rule(rule)?;
            let reason = rule.filter_reason().unwrap_or_default().to_owned();
            Some(PolicyRejection {
                policy: policy.id().into(),
                rule: rule.id.to_string(),
                reason,
                hosts,
            })
        });
        named.collect()
    }

    /// The reservation that a placed request asks for, numbered `ahead` of the next free one.
    pub(crate) fn hold(&self, ttl_ms: Option<u64>, ahead: u64, time_ms: u64) -> Option<Hold> {
        Some(Hold {
            reservation: self.state.next_reservation.saturating_add(ahead),
            expires_ms: time_ms.saturating_add(ttl_ms?),
        })
    }
}

/// Asks the ledger about a chosen host.
pub(crate) fn verified(
    state: &State,
    ledger: &Ledger,
    policies: &ActiveSet,
    vm: &Vm,
    chosen: &Chosen,
) -> Result<(), Refusal> {
    let Some(entry) = state.host(chosen.host) else {
        return Err(Refusal::Unverified(format!("host row {} is empty", chosen.host.0)));
    };
    let violations = ledger.check(vm, chosen.host, &entry.host.id, &chosen.committed);
    let by_policy = || {
        let dimensions = state.dimensions();
        ledger.check_policies(policies, dimensions, vm, chosen.host, &entry.effective_host())
    };
    let by_parts = || {
        let found = ledger.check_bindings(
            vm,
            chosen.host,
            &entry.host,
            &chosen.committed,
            chosen.bindings.as_deref(),
        );
        found.into_iter().next()
    };
    match violations.into_iter().next().or_else(by_policy).or_else(by_parts) {
        None => Ok(()),
        Some(violation) => Err(Refusal::Unverified(violation.to_string())),
    }
}

/// The VM with what the request says of hosts.
pub(crate) fn asked_of(request: &PlaceRequest) -> Cow<'_, Vm> {
    match &request.pinned {
        Some(host) => Cow::Owned(only_on(&request.vm, vec![host.clone()])),
        None if request.among.is_empty() => Cow::Borrowed(request.vm.as_ref()),
        None => Cow::Owned(only_on(&request.vm, request.among.clone())),
    }
}

/// The VM with a rule that only these hosts will do.
fn only_on(vm: &Vm, hosts: Vec<Name>) -> Vm {
    let mut vm = vm.clone();
    vm.affinities.push(Affinity {
        kind: AffinityKind::Together,
        subject: Subject::Hosts(hosts),
        level: Level::Host,
        strength: Strength::Required,
    });
    vm
}

/// The planted bug: the host that the caller named, taken on trust.
fn unchecked(host: HostIx, vm: &Vm) -> Choice {
    let chosen = Chosen {
        host,
        score: 0,
        breakdown: Breakdown::default(),
        committed: vm.demand.clone(),
        bindings: None,
    };
    Choice { host: Some(chosen), ..Choice::default() }
}
