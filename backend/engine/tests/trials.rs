//! Policies tried on a fleet: what a trial finds, and that its table follows the state.

use cluster::{
    Amounts, Constraint, ConstraintRule, Fence, Host, HostSet, Level, Name, Vm, VmKey, VmSet,
    Within,
};
use engine::{Call, Engine, Fleet, Options, PlaceRequest, PutMode, Request, Sample, State, Trial};
use policy::vocabulary::{HostField, HostView};
use policy::{ActiveSet, Configuration, Syntax, load};
use std::sync::Arc;
use store::{DiskOptions, SimDisk, SimulatedLog, SimulatedOptions};

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

struct World(Engine<SimulatedLog>);

impl World {
    fn new() -> Self {
        let disk = SimDisk::new(DiskOptions::default());
        let log = SimulatedLog::open(&disk, SimulatedOptions::default()).expect("an empty log");
        Self(Engine::open(log, Options::default()).expect("an empty state"))
    }

    fn ask(&mut self, request: Request) {
        self.0.propose(&Call::internal(request), 1_000).expect("done");
        self.0.commit().expect("durable");
    }

    fn host(&mut self, id: &str, rack: &str) {
        let mut host = Host::new(name(id), Amounts::cpu_memory(8_000, 8_192));
        host.location.rack = Some(name(rack));
        let (host, mode) = (Box::new(host), PutMode::CreateOrReplace);
        self.ask(Request::PutHost { host, mode, if_generation: None });
    }

    fn vm(&mut self, id: &str) {
        let key = VmKey::in_default_tenant(name(id));
        let vm = Vm::new(key, Amounts::cpu_memory(1_000, 512));
        self.ask(Request::Place(PlaceRequest::new(vm)));
    }

    fn trial(&self, set: &Arc<ActiveSet>) -> Trial {
        self.0.read(|state| {
            let mut fleet = Fleet::new(Arc::clone(set), state.dimensions());
            fleet.follow(state.host_rows());
            Trial::run(&fleet, &Sample::of(state, set)).expect("evaluated")
        })
    }
}

fn set(rules: &str) -> Arc<ActiveSet> {
    let text = format!("policy \"Tried\" {{ rules {{ {rules} }} }}");
    let (program, _) = load(&text, Syntax::Dsl).unwrap_or_else(|found| panic!("{found:?}"));
    Arc::new(ActiveSet::new(vec![(Arc::new(program), Configuration::default())]).expect("valid"))
}

#[test]
fn a_trial_counts_whom_rules_remove_and_whom_they_leave_without_a_host() {
    let mut world = World::new();
    for (id, rack) in [("h1", "a"), ("h2", "a"), ("h3", "b")] {
        world.host(id, rack);
    }
    (0..5).for_each(|n| world.vm(&format!("v{n}")));
    let set = set(r#"rule "racks" { when { node.rack == "a" } then { filter "x" } }
           rule "all of v0" { when { vm.id == "v0" } then { filter "x" } }
           rule "broken" { when { node.nothing * 2 > 1 } then { score 1 "x" } }
           rule "half" { when { node.rack == "b" && node.nothing * 2 > 1 } then { score 1 "x" } }"#);
    let trial = world.trial(&set);
    assert_eq!((trial.hosts, trial.vms, trial.stand_in), (3, 5, false));
    assert_eq!((trial.vms_without_host, trial.without_host.len()), (1, 1));
    let counts: Vec<_> =
        trial.rules.iter().map(|it| (it.hosts_removed, it.vms_affected, it.errors)).collect();
    // What is removed before is not asked any more.
    assert_eq!(counts, [(2, 5, 0), (1, 1, 0), (0, 0, 4), (0, 0, 4)]);
    assert!(trial.rules.iter().all(|rule| !rule.never_has_a_value));
    assert!(trial.vms_off_their_host > 0);
}

#[test]
fn a_rule_without_a_value_anywhere_is_told_apart() {
    let mut world = World::new();
    let broken = set(r#"rule "r" { when { node.nothing * 2 > 1 } then { score 1 "x" } }"#);
    assert!(!world.trial(&broken).rules[0].never_has_a_value, "nobody was asked");
    world.host("h1", "a");
    let trial = world.trial(&broken);
    assert!(trial.stand_in && trial.rules[0].never_has_a_value);
    (0..100).for_each(|n| world.vm(&format!("v{n}")));
    let trial = world.trial(&broken);
    assert_eq!(trial.vms, 8, "only those that found room are placed");
    assert!(trial.rules[0].never_has_a_value);
}

/// Every cell of a fleet that followed along is what a fresh look says.
fn check(fleet: &Fleet, state: &State, set: &ActiveSet) {
    for (ix, entry) in state.hosts() {
        let foreign = entry.foreign();
        let used = |dim| entry.allocated.get(dim) + foreign.used.get(dim);
        let vm_count = entry.vms.len() as u64 + u64::from(foreign.vms);
        let host = entry.effective_host();
        let view = HostView { host: &host, used: &used, vm_count };
        assert_eq!(fleet.host(ix.0 as usize), Some(&entry.host.id));
        for (column, path) in set.host_paths().iter().enumerate() {
            let expected = HostField::resolve(path, state.dimensions()).value(&view);
            assert_eq!(fleet.table().value(ix.0 as usize, column), expected, "{path}");
        }
    }
    assert_eq!(fleet.open_count() as usize, state.host_count());
}

#[test]
fn a_trial_asks_about_the_hosts_that_fences_leave() {
    let mut world = World::new();
    for (id, rack) in [("h1", "a"), ("h2", "a"), ("h3", "b")] {
        world.host(id, rack);
    }
    (0..5).for_each(|n| world.vm(&format!("v{n}")));
    let racks = set(r#"rule "racks" { when { node.rack == "a" } then { filter "x" } }"#);
    let before = world.trial(&racks);
    assert_eq!((before.vms_without_host, before.rules[0].hosts_removed), (0, 2));
    let within = Within { level: Level::Rack, names: vec![name("a")] };
    let fence = Fence {
        vms: VmSet::default(),
        hosts: HostSet { within: vec![within], ..HostSet::default() },
        reserved: false,
    };
    let rule = ConstraintRule::Fence(fence);
    let constraint = Box::new(Constraint { name: name("in-a"), rule });
    world.ask(Request::PutConstraint { constraint, if_generation: None });
    let after = world.trial(&racks);
    assert_eq!((after.vms_without_host, after.rules[0].hosts_removed), (5, 2));
    assert_eq!(after.vms_off_their_host, 5, "by the policy in rack a, by the fence in rack b");
    assert!(before.vms_off_their_host < 5);
}

#[test]
fn a_fleet_follows_hosts_that_come_change_and_go() {
    let mut world = World::new();
    let set =
        set(r#"rule "r" { when { node.rack == "a" && node.vm_count > 1 && node.available_cpu < 3 }
           then { filter "x" } }"#);
    let mut fleet = world.0.read(|state| Fleet::new(Arc::clone(&set), state.dimensions()));
    for n in 0..70 {
        world.host(&format!("h{n}"), if n % 2 == 0 { "a" } else { "b" });
    }
    for round in 0..60 {
        match round % 6 {
            0 => world.host(&format!("h{round}"), "c"),
            1 => world.ask(Request::RemoveHost {
                host: name(&format!("h{round}")),
                evict: true,
                if_generation: None,
            }),
            _ => world.vm(&format!("v{round}")),
        }
        world.0.read(|state| {
            fleet.follow(state.host_rows());
            check(&fleet, state, &set);
        });
    }
}
