//! Deciding where VMs go: the solver chooses, the verifier agrees, a `Placing` comes out.
//!
//! Nothing is changed here. What is decided becomes true when its command is applied.

use crate::command::{Hold, Placing};
use crate::core::Core;
use crate::planted::{self, Bug};
use crate::request::{PlaceRequest, Refusal};
use cluster::{
    Affinity, AffinityKind, Alternative, Breakdown, Decision, HostIx, Level, Name, Strength,
    Subject, Verdict, Vm,
};
use solver::{Choice, Chosen, How};
use std::borrow::Cow;

impl Core {
    /// Decides one request against the state as it is.
    ///
    /// A request for certain hosts is decided as if the VM had a rule that names them, so that it
    /// takes the same path, the same checks and the same accounting as any other.
    pub fn decide(&mut self, request: &PlaceRequest) -> Result<Placing, Refusal> {
        let how = self.how(request);
        let vm = match &request.pinned {
            Some(host) => {
                let known = self.state.find_host(host);
                let (ix, _) = known.ok_or_else(|| Refusal::UnknownHost(host.clone()))?;
                if planted::is(Bug::NoRevalidation) {
                    return Ok(self.placing(request, &how, unchecked(ix, &request.vm)));
                }
                Cow::Owned(only_on(&request.vm, vec![host.clone()]))
            }
            None if request.among.is_empty() => Cow::Borrowed(request.vm.as_ref()),
            None => Cow::Owned(only_on(&request.vm, request.among.clone())),
        };
        let choice = solver::place(&mut self.problem, &mut self.scratch, &vm, &how);
        self.verified(&vm, &choice)?;
        Ok(self.placing(request, &how, choice))
    }

    /// Decides many requests together, each on the result of those before it. With `atomic`, one
    /// that cannot be placed rejects them all.
    ///
    /// The requests share the first one's strategy.
    pub fn decide_batch(
        &mut self,
        requests: &[PlaceRequest],
        atomic: bool,
    ) -> Result<Vec<Placing>, Refusal> {
        let Some(first) = requests.first() else { return Ok(Vec::new()) };
        let how = self.how(first);
        let vms: Vec<&Vm> = requests.iter().map(|request| request.vm.as_ref()).collect();
        let choices = solver::place_batch(&mut self.problem, &mut self.scratch, &vms, &how, atomic);
        let order = solver::batch_order(&self.problem, &vms, how.strategy);
        self.verified_together(&vms, &choices, &order)?;
        let placings = requests.iter().zip(choices);
        Ok(placings.map(|(request, choice)| self.placing(request, &how, choice)).collect())
    }

    fn how(&self, request: &PlaceRequest) -> How {
        let policy = self.state.policy();
        How {
            weights: policy.weights,
            strategy: request.strategy.unwrap_or(policy.strategy),
            round_robin_after: self.state.round_robin_after,
        }
    }

    /// Asks the ledger about the chosen host.
    fn verified(&self, vm: &Vm, choice: &Choice) -> Result<(), Refusal> {
        let Some(chosen) = &choice.host else { return Ok(()) };
        let Some(entry) = self.state.host(chosen.host) else {
            return Err(Refusal::Unverified(format!("host row {} is empty", chosen.host.0)));
        };
        let violations = self.ledger.check(vm, chosen.host, &entry.host.id, &chosen.committed);
        match violations.first() {
            None => Ok(()),
            Some(violation) => Err(Refusal::Unverified(violation.to_string())),
        }
    }

    /// Asks the ledger about each choice with those before it in place, and leaves it as it was.
    fn verified_together(
        &mut self,
        vms: &[&Vm],
        choices: &[Choice],
        order: &[usize],
    ) -> Result<(), Refusal> {
        let mut added: Vec<(&Vm, &Chosen)> = Vec::with_capacity(vms.len());
        let mut outcome = Ok(());
        for &position in order {
            let (Some(vm), Some(choice)) = (vms.get(position), choices.get(position)) else {
                continue;
            };
            outcome = self.verified(vm, choice);
            if outcome.is_err() {
                break;
            }
            if let Some(chosen) = &choice.host {
                outcome = self
                    .ledger
                    .add_vm(chosen.host, vm, &chosen.committed)
                    .map_err(|error| Refusal::Unverified(error.to_string()));
                if outcome.is_err() {
                    break;
                }
                added.push((vm, chosen));
            }
        }
        for (vm, chosen) in added.into_iter().rev() {
            self.ledger
                .remove_vm(chosen.host, vm, &chosen.committed)
                .map_err(|error| Refusal::Unverified(error.to_string()))?;
        }
        outcome
    }

    fn placing(&self, request: &PlaceRequest, how: &How, choice: Choice) -> Placing {
        let (verdict, committed) = match choice.host {
            Some(Chosen { host, score, breakdown, committed }) => match self.state.host(host) {
                Some(entry) => {
                    let (host, incarnation) = (entry.host.id.clone(), entry.host.incarnation);
                    (Verdict::Placed { host, incarnation, score, breakdown }, committed)
                }
                None => (Verdict::Rejected, Default::default()),
            },
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
            request_hash: request.fingerprint(),
            committed,
            decision: Decision {
                vm: request.vm.key.clone(),
                verdict,
                strategy: how.strategy,
                alternatives: alternatives.collect(),
                rejections: choice.rejections,
                hosts_considered: choice.considered,
                based_on: self.state.revision(),
                policy_revision: self.state.policy().revision,
                demand_revision: 0,
            },
            vm: request.vm.clone(),
        }
    }

    /// The reservation that a placed request asks for, numbered `ahead` of the next free one.
    pub(crate) fn hold(&self, ttl_ms: Option<u64>, ahead: u64, time_ms: u64) -> Option<Hold> {
        Some(Hold {
            reservation: self.state.next_reservation.saturating_add(ahead),
            expires_ms: time_ms.saturating_add(ttl_ms?),
        })
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
    let (score, breakdown, committed) = (0, Breakdown::default(), vm.demand.clone());
    Choice { host: Some(Chosen { host, score, breakdown, committed }), ..Choice::default() }
}
