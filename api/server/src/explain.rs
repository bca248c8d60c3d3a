//! Explanations: worked out on tables of their own, so that the writer is not held up.
//!
//! The tables are made when the first question comes and follow the state from question to
//! question; the state is held up only while pointers to its rows are copied.

mod text;
mod view;

use crate::failure::Failure;
use cluster::{Revision, Vm};
use engine::{Tables, VmEntry, Writer};
use solver::explain::{self, Stopped};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use wire::{Code, ExplainRequest, ExplainedVm, ExplanationView};

/// Tables for questions beside placing.
#[derive(Debug, Default)]
pub(crate) struct Study(Mutex<Option<Tables>>);

impl Study {
    /// Asks something of the cluster as it is. Questions are answered one at a time.
    pub(crate) fn ask<T>(
        &self,
        writer: &Writer,
        ask: impl FnOnce(&mut Tables) -> Result<T, Failure>,
    ) -> Result<(T, Revision), Failure> {
        // Taken first: whoever waits for it looks at the state afterwards, never before.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = writer.look(engine::Core::rows);
        let revision = rows.revision;
        // Taken out while it is in use: tables that a panic left half changed are not kept.
        let mut tables = match kept.take() {
            Some(mut tables) => {
                tables.follow(rows);
                tables
            }
            None => Tables::new(rows),
        };
        let answer = ask(&mut tables);
        *kept = Some(tables);
        Ok((answer?, revision))
    }
}

/// Whether the time is up, for work that polls it.
pub(crate) fn is_over(deadline: Instant) -> impl Fn() -> bool {
    move || Instant::now() >= deadline
}

pub(crate) fn too_late(_: Stopped) -> Failure {
    Failure::new(Code::DEADLINE_EXCEEDED, "the explanation takes longer than the time allowed")
}

/// Explains what is in a VM's way.
pub(crate) fn explained(
    tables: &mut Tables,
    request: &ExplainRequest,
    deadline: Instant,
) -> Result<ExplanationView, Failure> {
    let (vm, placed): (Arc<Vm>, Option<Arc<VmEntry>>) = match &request.vm {
        ExplainedVm::Described(vm) => {
            let placed = tables.find_vm(&vm.key).map(Arc::clone);
            (Arc::new(vm.as_ref().clone()), placed)
        }
        ExplainedVm::Placed(key) => {
            let unknown = || Failure::new(Code::VM_NOT_FOUND, format!("VM {key} is not placed"));
            let placed = tables.find_vm(key).map(Arc::clone).ok_or_else(unknown)?;
            (Arc::clone(&placed.vm), Some(placed))
        }
    };
    match placed {
        Some(placed) => tables.without(&placed, |tables| {
            let mut view = without_it(tables, request, &vm, deadline)?;
            view.placed = Some(view::comparison(tables, &vm, &placed));
            Ok(view)
        }),
        None => without_it(tables, request, &vm, deadline),
    }
}

/// The same for a VM that is not in the tables.
fn without_it(
    tables: &mut Tables,
    request: &ExplainRequest,
    vm: &Vm,
    deadline: Instant,
) -> Result<ExplanationView, Failure> {
    let Some(host) = &request.host else {
        let told = explain::explain(&mut tables.problem, vm, &is_over(deadline));
        return Ok(view::everywhere(tables, vm, &told.map_err(too_late)?));
    };
    let unknown = || Failure::new(Code::HOST_NOT_FOUND, format!("host {host} is not known"));
    let ix = tables.find_host(host).ok_or_else(unknown)?;
    let told = explain::explain_host(&mut tables.problem, vm, ix).ok_or_else(unknown)?;
    Ok(view::on_host(tables, vm, ix, &told))
}
