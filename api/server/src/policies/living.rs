//! What the policies in force say about the living fleet, for one VM at a time.
//!
//! Keeps the attributes of the hosts from request to request and rewrites only what is different.
//! The state is held up only while pointers to its hosts are copied.

use super::over_maps::told;
use crate::failure::Failure;
use cluster::{Name, Revision};
use engine::{Core, Fleet, HostRows, Writer, host_attribute};
use policy::vocabulary::HostField;
use policy::{ActiveSet, PolicyType, Scratch, Value, Verdicts};
use std::sync::{Arc, Mutex, PoisonError};
use wire::Code;
use wire::novacron::{Evaluation, Json};

/// Nodes in an answer when nothing else is asked for.
const SHOWN: usize = 100;
/// Removed nodes that are named.
const MOST_FILTERED: usize = 100;

#[derive(Debug, Default)]
pub(crate) struct Living(Mutex<Option<Bench>>);

/// The fleet for one set of policies, and buffers.
#[derive(Debug)]
struct Bench {
    fleet: Fleet,
    scratch: Scratch,
    verdicts: Verdicts,
}

/// What is read of the state for one question.
struct Glance {
    set: Arc<ActiveSet>,
    hosts: HostRows,
    source: Vec<Value>,
    policy_revision: u64,
    revision: Revision,
}

impl Living {
    /// Asks the policies in force which hosts they leave for a VM, best first.
    pub(crate) fn evaluate(
        &self,
        writer: &Writer,
        asked: PolicyType,
        vm: &Json,
        source: &Json,
        limit: usize,
    ) -> Result<(Evaluation, Revision), Failure> {
        // Taken first: whoever waits for it looks at the state afterwards, never before.
        let mut bench = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let glance = writer.look(|core| glance(core, source));
        if bench.as_ref().is_none_or(|bench| !Arc::ptr_eq(bench.fleet.set(), &glance.set)) {
            let fleet =
                writer.read(|state| Fleet::new(Arc::clone(&glance.set), state.dimensions()));
            let (scratch, verdicts) = (Scratch::default(), Verdicts::default());
            *bench = Some(Bench { fleet, scratch, verdicts });
        }
        let Some(Bench { fleet, scratch, verdicts }) = bench.as_mut() else {
            return Err(Failure::new(Code::INTERNAL, "there is no table to evaluate on"));
        };
        fleet.follow(glance.hosts);
        let set = &glance.set;
        let vm: Vec<Value> = set.paths().vm.iter().map(|path| vm.attribute(path)).collect();
        let left = source.map_id();
        let mut candidates = fleet.open().to_vec();
        if !left.is_empty() {
            let row = (0..fleet.table().rows())
                .find(|row| fleet.host(*row).is_some_and(|host| host.as_str() == left));
            // A VM does not move to where it is.
            if let Some(row) = row
                && let Some(word) = candidates.get_mut(row / 64)
            {
                *word &= !(1 << (row % 64));
            }
        }
        let request = policy::Request {
            source: &glance.source,
            candidates: Some(&candidates),
            components: true,
            ..policy::Request::new(asked, &vm)
        };
        set.evaluate(&request, fleet.table(), scratch, verdicts)
            .map_err(|error| Failure::new(Code::INTERNAL, error.to_string()))?;
        let id = |row: usize| fleet.host(row).map(ToString::to_string).unwrap_or_default();
        let limit = if limit == 0 { SHOWN } else { limit };
        let mut answer = told(set, verdicts, limit, MOST_FILTERED, &id);
        answer.policy_revision = glance.policy_revision;
        Ok((answer, glance.revision))
    }
}

/// The node that a VM would leave is described by the caller, and by the inventory where the
/// caller says nothing.
fn glance(core: &Core, source: &Json) -> Glance {
    let (state, set) = (core.state(), Arc::clone(core.policies()));
    let known = Name::new(source.map_id()).ok();
    let known = known.and_then(|name| state.find_host(&name)).map(|(_, entry)| entry);
    let values = set.paths().source.iter().map(|path| match (source.attribute(path), known) {
        (Value::Null, Some(entry)) => {
            host_attribute(&HostField::resolve(path, state.dimensions()), entry)
        }
        (value, _) => value,
    });
    Glance {
        source: values.collect(),
        set,
        hosts: state.host_rows(),
        policy_revision: state.policy().revision,
        revision: state.revision(),
    }
}
