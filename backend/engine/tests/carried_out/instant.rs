//! One instant: every way in which the migrations under way may have got on, by the word of the
//! verifier.
//!
//! Rules bind when a VM comes. What others do to its rules afterwards, by leaving or by coming, is
//! drift, and is forgiven when it happens; a migration never makes any.

use cluster::{Amounts, Bindings, Name, Placed, Reason, Snapshot, Vm, VmKey};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A VM and where it may be instead.
pub struct UnderWay {
    pub vm: VmKey,
    pub to: Name,
    pub committed: Amounts,
    pub bindings: Option<Arc<Bindings>>,
}

type Broken = BTreeSet<(Option<VmKey>, Option<Reason>)>;

/// What is broken already, through no fault of a migration.
#[derive(Default)]
pub struct Instant {
    known: Broken,
    forgiven: Forgiven,
}

#[derive(Default)]
enum Forgiven {
    #[default]
    Nobody,
    Everybody,
    AllBut(VmKey),
}

impl Instant {
    pub fn forgive_all(&mut self) {
        self.forgiven = Forgiven::Everybody;
    }

    /// A VM has come: its own rules hold, those of others may not.
    pub fn forgive_others(&mut self, newcomer: &VmKey) {
        self.forgiven = Forgiven::AllBut(newcomer.clone());
    }

    /// Whether the text of a violation is about somebody whose rules are broken anyway.
    pub fn is_known(&self, text: &str) -> bool {
        self.known.iter().filter_map(|(vm, _)| vm.as_ref()).any(|vm| text.contains(&vm.to_string()))
    }

    pub fn check(&mut self, snapshot: &Snapshot, under_way: &[UnderWay], what: &str) {
        let mut now = Broken::new();
        for arrived in 0..1u32 << under_way.len() {
            let (state, beside) = at(snapshot, under_way, arrived);
            let room = broken(&beside).into_iter().filter(|(vm, it)| is_about_room(vm, *it));
            now.extend(broken(&state).into_iter().chain(room));
        }
        let fresh: Vec<_> = now.difference(&self.known).cloned().collect();
        let allowed = |vm: &Option<VmKey>| match &self.forgiven {
            Forgiven::Nobody => false,
            Forgiven::Everybody => true,
            Forgiven::AllBut(newcomer) => vm.as_ref() != Some(newcomer),
        };
        let found: Vec<_> = fresh.iter().filter(|(vm, _)| !allowed(vm)).collect();
        let who: Vec<_> = under_way.iter().map(|it| (&it.vm.id, &it.to)).collect();
        assert!(found.is_empty(), "{what}: {found:?} with {who:?} under way");
        self.known.extend(fresh);
        self.forgiven = Forgiven::Nobody;
    }
}

/// The state with those arrived whose bit is set; and the same with a copy of each VM under way on
/// its other host, where it has room and parts and nothing else.
fn at(snapshot: &Snapshot, under_way: &[UnderWay], arrived: u32) -> (Snapshot, Snapshot) {
    let mut state = snapshot.clone();
    let mut copies = Vec::new();
    for (number, it) in under_way.iter().enumerate() {
        let placed = state.placed.iter_mut().find(|placed| placed.vm.key == it.vm);
        let placed = placed.expect("a VM that is there");
        let mut other = Placed { ..placed.clone() };
        if arrived >> number & 1 == 1 {
            placed.host = it.to.clone();
            placed.committed = it.committed.clone();
            placed.bindings = it.bindings.clone();
            placed.over_capacity = false;
        } else {
            other.host = it.to.clone();
            other.committed = it.committed.clone();
            other.bindings = it.bindings.clone();
        }
        let key = VmKey { tenant: name("copies"), id: name(&format!("copy-{number}")) };
        let topology = other.vm.topology.clone();
        let vm = Vm { qos: other.vm.qos, topology, ..Vm::new(key, other.committed.clone()) };
        other.vm = Arc::new(vm);
        copies.push(other);
    }
    let mut beside = state.clone();
    beside.placed.extend(copies);
    (state, beside)
}

fn broken(snapshot: &Snapshot) -> Broken {
    let report = verify::snapshot(snapshot);
    let found = report.violations.iter().chain(&report.drift);
    found.map(|it| (it.vm.clone(), it.kind.reason())).collect()
}

/// Room, parts, and room that is kept free, which a copy takes as well as a VM does; but whether
/// the VM may use what is kept free, its copy does not know.
fn is_about_room(vm: &Option<VmKey>, reason: Option<Reason>) -> bool {
    let copy = vm.as_ref().is_some_and(|vm| vm.tenant == name("copies"));
    matches!(reason, None | Some(Reason::Capacity(_)))
        || matches!(reason, Some(Reason::Spare)) && !copy
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}
