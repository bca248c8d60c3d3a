//! Changes of policies that are worked out beside the writer: they come into force as any other
//! would, whatever happens to the hosts meanwhile.

mod common;

use cluster::{HostState, Name};
use common::{Bench, host, key, name, vm};
use engine::{Call, Engine, PlaceRequest, Prepared, PutMode, Refusal, Reply, Request, Writer};
use policy::{Activation, Edit, EditKind, Source, Syntax};
use std::sync::Arc;
use std::thread::JoinHandle;
use store::SimulatedLog;

/// Reads something of the host itself and something that follows its load.
const TEXT: &str = r#"
policy "Few and large" {
  rules {
    rule "small" { when { node.total_cpu_cores < 3 } then { filter "too small" } }
    rule "few" { when { true } then { score 0 - 100 * node.vm_count "few VMs" } }
  }
}"#;

fn edit(text: &str) -> Edit {
    let (source, activation) = (Source::new(text, Syntax::Dsl), Some(Activation::default()));
    let (user, description) = ("tests".into(), String::new());
    let change = EditKind::Put { source, activation };
    Edit { policy: "few-and-large".into(), change, user, description }
}

struct World(Writer, JoinHandle<Engine<SimulatedLog>>);

impl World {
    fn new() -> Self {
        let bench = Bench::with_hosts(&[2_000, 4_000, 4_000, 8_000]);
        let spawned = Writer::spawn(bench.engine, 16, Arc::new(|| 1_000_000), Box::new(|_| {}));
        let (writer, thread) = spawned.expect("a thread");
        Self(writer, thread)
    }

    fn ask(&self, request: Request) -> Result<Reply, Refusal> {
        self.0.call(Call::internal(request))
    }

    fn place(&self, id: &str) -> Option<Name> {
        let reply = self.ask(Request::Place(PlaceRequest::new(vm(id, 100)))).expect("an answer");
        match reply.outcome {
            engine::Outcome::Placement(placement) => placement.host,
            other => panic!("not a placement: {other:?}"),
        }
    }

    /// Everything that may happen to hosts.
    fn change_hosts(&self) {
        for id in ["a", "b", "c"] {
            self.place(id);
        }
        self.ask(Request::RemoveVm { vm: key("b"), if_generation: None }).expect("there");
        let (large, mode) = (Box::new(host(0, 6_000)), PutMode::CreateOrReplace);
        self.ask(Request::PutHost { host: large, mode, if_generation: None }).expect("grown");
        let (fresh, mode) = (Box::new(host(9, 5_000)), PutMode::CreateOrReplace);
        self.ask(Request::PutHost { host: fresh, mode, if_generation: None }).expect("new");
        let (cordon, state) = (name("h1"), HostState::Cordoned);
        self.ask(Request::SetHostState { host: cordon, state, if_generation: None }).expect("set");
        self.ask(Request::RemoveHost { host: name("h2"), evict: true, if_generation: None })
            .expect("gone");
    }

    fn send(&self, edit: &Edit, prepared: Option<Prepared>) -> Result<Reply, Refusal> {
        let request = Request::EditPolicy { edit: Box::new(edit.clone()), if_revision: None };
        match prepared {
            Some(prepared) => self.0.call_prepared(Call::internal(request), Box::new(prepared)),
            None => self.ask(request),
        }
    }

    fn end(self) -> [u8; 32] {
        self.0.stop();
        self.1.join().expect("no panic").read(|state| state.freeze().full_hash())
    }
}

/// Where ten VMs go under the policy, and the state that they lead to.
fn story(prepare: bool) -> (Vec<Option<Name>>, [u8; 32]) {
    let (world, edit) = (World::new(), edit(TEXT));
    let prepared = prepare.then(|| world.0.prepare(&edit).expect("a good policy"));
    world.change_hosts();
    world.send(&edit, prepared).expect("installed");
    let places = (0..10).map(|n| world.place(&format!("v{n}"))).collect();
    (places, world.end())
}

#[test]
fn what_was_prepared_comes_into_force_like_what_was_not() {
    let (prepared, ordinary) = (story(true), story(false));
    assert_eq!(prepared, ordinary);
    assert!(prepared.0.iter().all(Option::is_some), "{:?}", prepared.0);
}

#[test]
fn policies_that_changed_in_between_are_worked_out_again() {
    let world = World::new();
    let first = edit(TEXT);
    let prepared = world.0.prepare(&first).expect("a good policy");
    assert!(prepared.is_new && !prepared.existed);
    let other = edit(&TEXT.replace("< 3", "< 7"));
    world.send(&other, None).expect("installed");
    world.send(&first, Some(prepared)).expect("installed");
    let hosts: Vec<Option<Name>> = (0..3).map(|n| world.place(&format!("v{n}"))).collect();
    assert!(hosts.contains(&Some(name("h1"))), "four cores are enough again: {hosts:?}");
    let versions = world
        .0
        .read(|state| state.library().get("few-and-large").expect("installed").versions.len());
    assert_eq!(versions, 2, "neither text is lost");
    world.end();
}

#[test]
fn what_was_prepared_for_one_edit_is_of_no_use_to_another() {
    let world = World::new();
    let prepared = world.0.prepare(&edit(TEXT)).expect("a good policy");
    let other = edit(&TEXT.replace("< 3", "< 7"));
    world.send(&other, Some(prepared)).expect("installed");
    assert_eq!(world.place("v"), Some(name("h3")), "only eight cores are enough");
    world.end();
}
