//! Deciding many requests together: the search on this thread, the verifier following on another.
//!
//! The two share nothing but the choices, which are handed over in portions, so that a large batch
//! costs about what its search costs.

use crate::core::Core;
use crate::decide::{asked_of, verified};
use crate::request::{PlaceRequest, Refusal};
use crate::state::State;
use cluster::Vm;
use policy::ActiveSet;
use solver::{Choice, Chosen, How};
use std::borrow::Cow;
use std::sync::mpsc::{Receiver, channel};
use verify::Ledger;

/// From this many requests on, the verifier gets a thread of its own.
const WORTH_A_THREAD: usize = 256;

/// Choices handed over at once: waking the other thread costs as much as verifying one.
const PORTION: usize = 64;

/// A choice and the position of its request.
type Made = (usize, Chosen);

/// What became of a batch: choices and the fingerprints of their requests, by position.
pub(crate) struct Together {
    pub(crate) choices: Vec<Choice>,
    pub(crate) prints: Vec<[u8; 16]>,
}

impl Core {
    /// Chooses for each request on the result of those before it, and has each choice verified
    /// with those before it in place. Leaves both tables as they were. Stops between two of them
    /// when it is `abandoned`.
    pub(crate) fn choose_together(
        &mut self,
        requests: &[PlaceRequest],
        how: &How,
        atomic: bool,
        abandoned: &dyn Fn() -> bool,
    ) -> Result<Together, Refusal> {
        let Self { state, problem, ledger, scratch, policies, .. } = self;
        let (sender, receiver) = channel();
        let search = move || {
            let asked: Vec<Cow<'_, Vm>> = requests.iter().map(asked_of).collect();
            let vms: Vec<&Vm> = asked.iter().map(AsRef::as_ref).collect();
            let mut portion = Vec::with_capacity(PORTION);
            let hand_over = |row, chosen: &Chosen| {
                portion.push((row, chosen.clone()));
                if portion.len() == PORTION {
                    // A verifier that no longer listens has found a violation and says so itself.
                    let _ =
                        sender.send(std::mem::replace(&mut portion, Vec::with_capacity(PORTION)));
                }
            };
            let go_on = || !abandoned();
            let choices =
                solver::place_batch_followed(problem, scratch, &vms, how, atomic, go_on, hand_over);
            let _ = sender.send(portion);
            // The end of the choices, for the verifier.
            drop(sender);
            choices
        };
        let verify = move || follow(state, ledger, policies, requests, receiver);
        let (choices, prints) = if requests.len() < WORTH_A_THREAD {
            (search(), verify())
        } else {
            std::thread::scope(|scope| {
                let verifier = scope.spawn(verify);
                let choices = search();
                let panicked = |_| Err(Refusal::Unverified("the verifier panicked".into()));
                (choices, verifier.join().unwrap_or_else(panicked))
            })
        };
        let (prints, choices) = (prints?, choices.ok_or(Refusal::DeadlinePassed)?);
        Ok(Together { choices, prints })
    }
}

/// Puts each choice to the ledger on top of those before it, then takes them all back.
fn follow(
    state: &State,
    ledger: &mut Ledger,
    policies: &ActiveSet,
    requests: &[PlaceRequest],
    made: Receiver<Vec<Made>>,
) -> Result<Vec<[u8; 16]>, Refusal> {
    let prints = requests.iter().map(PlaceRequest::fingerprint).collect();
    let mut added: Vec<(&Vm, Chosen)> = Vec::with_capacity(requests.len());
    let agreed = made.into_iter().flatten().try_for_each(|(row, chosen)| {
        let Some(request) = requests.get(row) else { return Ok(()) };
        verified(state, ledger, policies, &request.vm, &chosen)?;
        ledger.add_vm(chosen.host, &request.vm, &chosen.committed).map_err(unverified)?;
        if let Some(bindings) = &chosen.bindings {
            ledger.bind(chosen.host, &request.vm.key, bindings).map_err(unverified)?;
        }
        added.push((&request.vm, chosen));
        Ok(())
    });
    for (vm, chosen) in added.into_iter().rev() {
        if let Some(bindings) = &chosen.bindings {
            ledger.unbind(chosen.host, &vm.key, bindings).map_err(unverified)?;
        }
        ledger.remove_vm(chosen.host, vm, &chosen.committed).map_err(unverified)?;
    }
    agreed.map(|()| prints)
}

fn unverified(error: impl std::fmt::Display) -> Refusal {
    Refusal::Unverified(error.to_string())
}
