//! For everything that can be wrong: a right case, one thing changed, and exactly that found.

mod batch;
mod constraints;
mod plans;
mod scene;

use batch::Batch;
use cluster::{
    Alternative, Amounts, Architecture, CpuUnit, Dim, GpuAmount, GpuRequest, HostState, Keep,
    Level, Near, NicRequest, Qos, Reason, Revision, Sharing, Step, Subject, Taint, TaintEffect,
    Verdict, Vm, VmSet,
};
use constraints::{
    depends_on, exclusive, fence, group, labelled, limit, min_domains, reserve, spare, talk,
};
use plans::{plan, release, shift};
use scene::{Scene, apart, name, small_vm, together};
use verify::{Violation, ViolationKind};

/// Lists the mutations of each kind of violation.
///
/// The match over the kinds is exhaustive, so that a new kind does not compile until it has a
/// mutation here.
macro_rules! mutations {
    ($($kind:ident { $($what:literal => $found:expr,)+ })+) => {
        fn kind_of(violation: &Violation) -> &'static str {
            match violation.kind {
                $(ViolationKind::$kind { .. } => stringify!($kind),)+
            }
        }

        #[test]
        fn every_planted_mutation_is_found_and_nothing_else() {
            let mut failures = Vec::new();
            $($(
                let found: Vec<Violation> = $found;
                let kinds: Vec<&str> = found.iter().map(kind_of).collect();
                if kinds != [stringify!($kind)] {
                    failures.push(format!("{} is {}, found {found:?}", $what, stringify!($kind)));
                }
                found.iter().for_each(sentence);
            )+)+
            assert!(failures.is_empty(), "{}", failures.join("\n"));
        }
    };
}

mutations! {
    HostState {
        "the host is cordoned" => rule(|s| s.host_mut("a").state = HostState::Cordoned),
        "the host is down" => rule(|s| s.host_mut("a").state = HostState::Down),
    }
    Pool {
        "the host is of another pool" => rule(|s| s.host_mut("a").pool = Some(name("silver"))),
        "the host is of no pool" => rule(|s| s.host_mut("a").pool = None),
    }
    Selector {
        "the label has another value" =>
            rule(|s| s.host_mut("a").labels.insert(name("disk"), name("hdd"))),
        "the label is missing" => rule(|s| s.host_mut("a").labels = Default::default()),
    }
    Taint {
        "a taint has another value" =>
            rule(|s| s.host_mut("a").taints[0].value = Some(name("web"))),
        "a second taint is not tolerated" => rule(|s| s.host_mut("a").taints.push(Taint {
            key: name("flaky"),
            value: None,
            effect: TaintEffect::NoExecute,
        })),
    }
    Datastore {
        "the datastore is out of reach" => rule(|s| s.host_mut("a").datastores.clear()),
    }
    ExcludedHost {
        "the host is excluded" => rule(|s| s.vm.excluded_hosts.push(name("a"))),
        "a VM stands on a host that it excludes" => standing(|s| {
            let mut vm = small_vm("other");
            vm.excluded_hosts = vec![name("b")];
            s.put(vm, "b");
        }),
    }
    HostAffinity {
        "none of the named hosts is near" => rule(|s| {
            s.vm.affinities[0] = together(Subject::Hosts(vec![name("b")]), Level::Zone);
        }),
        "the named hosts do not exist" => rule(|s| {
            s.vm.affinities[0] = together(Subject::Hosts(vec![name("gone")]), Level::Zone);
        }),
        "a host to be apart from is near" => rule(|s| {
            s.vm.affinities.push(apart(Subject::Hosts(vec![name("a2")]), Level::Rack));
        }),
    }
    Fence {
        "the VM is fenced in elsewhere" => rule(|s| s.install("c", fence("z2"))),
        "the host is reserved for others" => rule(|s| {
            s.install("c", reserve(VmSet { tenant: Some(name("other")), ..VmSet::default() }));
        }),
    }
    Affinity {
        "the only member stands elsewhere" => rule(|s| s.snapshot.placed[0].host = name("b")),
        "the host has no value at the level" => rule(|s| s.host_mut("a").location.rack = None),
        "the VM to be with is not there" => rule(|s| {
            s.vm.affinities.push(together(Subject::Vm(name("gone")), Level::Zone));
        }),
    }
    AntiAffinity {
        "a member stands in the domain" => rule(|s| {
            let mut vm = small_vm("noisy-2");
            vm.groups = vec![name("noisy")];
            s.put(vm, "a2");
        }),
        "a reservation is held in the domain" => rule(|s| {
            let mut vm = small_vm("noisy-2");
            vm.groups = vec![name("noisy")];
            s.put(vm, "a2").held = true;
        }),
        "the VM to be apart from is near" => rule(|s| {
            s.vm.affinities.push(apart(Subject::Vm(name("app-1")), Level::Host));
        }),
    }
    Repelled {
        "a VM in the domain keeps the group away" => rule(|s| {
            let mut vm = small_vm("shy");
            vm.affinities = vec![apart(Subject::Group(name("app")), Level::Host)];
            s.put(vm, "a");
        }),
        "a VM in the domain keeps this VM away" => rule(|s| {
            let mut vm = small_vm("shy");
            vm.affinities = vec![apart(Subject::Vm(name("new")), Level::Rack)];
            s.put(vm, "a2");
        }),
    }
    Spread {
        "the domain holds more than others" => rule(|s| {
            let mut vm = small_vm("web-1");
            vm.groups = vec![name("web")];
            s.put(vm, "a2");
        }),
        "the host has no value at the level" => rule(|s| {
            s.vm.spreads[0].level = Level::PowerFeed;
        }),
    }
    MinDomains {
        "a member is there, and too few racks are covered" =>
            rule(|s| s.install("c", min_domains(Level::Rack, 2))),
        "a host in no domain covers none" =>
            rule(|s| s.install("c", min_domains(Level::PowerFeed, 2))),
    }
    Limit {
        "the host has all it may have" => rule(|s| s.install("c", limit(Level::Host, 1))),
        "a reservation in the zone counts" => rule(|s| {
            let mut vm = small_vm("app-2");
            vm.groups = vec![name("app")];
            s.put(vm, "a2").held = true;
            s.install("c", limit(Level::Zone, 2));
        }),
    }
    Exclusive {
        "others are on the host" =>
            rule(|s| s.install("c", exclusive(group("web"), Sharing::Members))),
        "its own kind is on the host" =>
            rule(|s| s.install("c", exclusive(group("app"), Sharing::Nobody))),
        "somebody else's VM is on the host" => rule(|s| {
            s.host_mut("a").foreign.vms = 1;
            s.install("c", exclusive(group("app"), Sharing::Members));
        }),
        "the host belongs to another" => rule(|s| {
            let mut vm = small_vm("vip");
            vm.labels.insert(name("vip"), name("yes"));
            s.put(vm, "a");
            s.install("c", exclusive(labelled("vip"), Sharing::Members));
        }),
    }
    Dependency {
        "those it needs are elsewhere" =>
            rule(|s| s.install("c", depends_on("noisy", Level::Zone))),
        "the host is in no domain" => rule(|s| s.install("c", depends_on("app", Level::PowerFeed))),
    }
    Latency {
        "a partner is one microsecond too far" => rule(|s| talk(s, Some(499), 0)),
        "no way leads to a partner" => rule(|s| {
            s.host_mut("b").location.zone = Some(name("island"));
            talk(s, None, 1);
        }),
    }
    Bandwidth {
        "a link would carry one more than it can" => rule(|s| talk(s, None, 7)),
    }
    Spare {
        "less of one dimension would be left" => rule(|s| {
            s.put(large_vm(Dim::DISK_IOPS, 9), "a2");
            s.install("c", spare(None, Keep::Permille(500)));
        }),
        "less than the largest host of the zone would be left" => rule(|s| {
            s.put(large_vm(Dim::DISK_IOPS, 6), "a2");
            s.install("c", spare(Some(Level::Zone), Keep::Hosts(1)));
        }),
        "others use what was to be left" => rule(|s| {
            s.host_mut("a2").foreign.used.set(Dim::NET_MBPS, 6);
            s.install("c", spare(None, Keep::Permille(500)));
        }),
    }
    Capacity {
        "cpu is taken" => rule(|s| fill(s, Dim::CPU_MILLIS)),
        "memory is taken" => rule(|s| fill(s, Dim::MEMORY_MIB)),
        "disk is taken" => rule(|s| fill(s, Dim::DISK_GIB)),
        "disk operations are taken" => rule(|s| fill(s, Dim::DISK_IOPS)),
        "network is taken" => rule(|s| fill(s, Dim::NET_MBPS)),
        "an extra dimension is taken" => rule(|s| fill(s, Dim(5))),
        "a reservation holds the room" => rule(|s| {
            fill(s, Dim::MEMORY_MIB);
            s.snapshot.placed.last_mut().expect("the one that fills it").held = true;
        }),
        "the system keeps more back" => rule(|s| {
            s.host_mut("a").reserved = Amounts::zero().with(Dim::NET_MBPS, 6);
        }),
        "less is overcommitted" => rule(|s| {
            s.host_mut("a").overcommit_permille = Amounts::zero().with(Dim::CPU_MILLIS, 499);
        }),
        "more would be guaranteed than there is" => rule(|s| {
            s.host_mut("a").overcommit_permille = Amounts::zero().with(Dim::MEMORY_MIB, 2_000);
            let mut other = large_vm(Dim::MEMORY_MIB, 7);
            (other.qos, s.vm.qos) = (Qos::Guaranteed, Qos::Guaranteed);
            s.put(other, "a");
        }),
        "a slower core takes more of them" => rule(|s| {
            s.vm.cpu_unit = CpuUnit::Normalised;
            s.host_mut("a").benchmark_permille = 444;
            s.committed.set(Dim::CPU_MILLIS, 10);
        }),
    }

    UnknownHost {
        "the chosen host does not exist" => rule(|s| {
            (s.host, s.index) = (name("gone"), cluster::HostIx(9));
        }),
        "a VM stands on a host that does not exist" =>
            standing(|s| s.snapshot.placed[1].host = name("gone")),
    }
    WrongHost {
        "the index is that of another host" => ledger(|s| s.index = cluster::HostIx(1)),
    }
    WrongIncarnation {
        "the host was removed and added again" => decision(|s| s.host_mut("a").incarnation = 4),
    }
    WrongCommitted {
        "one more is committed than asked for" =>
            ledger(|s| s.committed.set(Dim::DISK_GIB, 5)),
        "a dimension is not committed" => ledger(|s| s.committed.set(Dim(5), 0)),
        "normalised CPU is rounded down" => ledger(|s| {
            s.vm.cpu_unit = CpuUnit::Normalised;
            s.host_mut("a").benchmark_permille = 1_500;
            s.committed.set(Dim::CPU_MILLIS, 2);
        }),
        "a VM stands with less than it asks for" =>
            standing(|s| s.snapshot.placed[0].committed.set(Dim::MEMORY_MIB, 0)),
    }
    AlreadyPlaced {
        "a VM is moved to where it is" => plan(|steps| steps[0] = shift("app-1", "a")),
        "the VM is there already" => rule(|s| {
            let vm = s.vm.clone();
            s.put(vm, "a2");
        }),
    }

    Inside {
        "all cores are somebody's alone" => inside(|s| { s.bind("a", &[0, 1, 2, 3]); }),
        "the memory of the node is taken" => inside(|s| {
            s.bind("a", &[3]).nodes[0].memory_mib = 7;
        }),
        "the host has no such GPU" => inside(|s| {
            s.request().gpus = Some(GpuRequest::new(GpuAmount::Whole(1)));
        }),
        "the host is of another architecture" => inside(|s| {
            s.request().architecture = Some(Architecture::Aarch64);
        }),
        "the host cannot carry the heat away" => inside(|s| {
            s.host_mut("a").hardware.thermal_limit_watts = 9;
            s.request().watts = 10;
        }),
        "the host has no such device" => inside(|s| {
            s.request().nic = Some(NicRequest { functions: 1, rdma: false, near: Near::Any });
        }),
    }
    Bindings {
        "another VM has the thread" => parts(|s| { s.bind("a", &[0]); }),
        "the thread does not exist" => parts(|s| s.bindings().cpus = vec![9]),
        "memory lies nowhere" => parts(|s| s.bindings().nodes[0].memory_mib = 0),
        "two placed VMs have one thread" => standing(|s| {
            s.list_parts();
            s.bind("b", &[0, 1]);
            s.bind("b", &[1, 2]);
        }),
    }
    NoBindings {
        "no parts were chosen" => parts(|s| s.unbind()),
        "a placed VM has no parts" => standing(|s| {
            s.list_parts();
            s.bind("b", &[0]);
            s.snapshot.placed.last_mut().expect("the bound one").bindings = None;
        }),
    }
    UnaskedBindings {
        "parts were chosen for a VM that floats" => parts(|s| s.vm.topology = None),
    }
    NotPlaced {
        "a step moves a VM that is nowhere" => plan(|steps| steps[0] = shift("gone", "b")),
        "a step releases a VM that is nowhere" => plan(|steps| steps[0] = release("gone")),
    }
    WrongSource {
        "the VM to move is elsewhere" => plan(|steps| {
            if let Step::Move { from, .. } = &mut steps[0] {
                *from = Some(name("c"));
            }
        }),
        "the VM to release is elsewhere" => plan(|steps| {
            steps[0] = Step::Release { vm: small_vm("app-1").key, from: Some(name("b")) };
        }),
    }
    Pinned {
        "the VM to move must stay" => plans::pinned(),
    }
    TwiceInWave {
        "a VM is moved and released at once" => plan(|steps| steps.push(release("app-1"))),
    }
    DuplicateHost {
        "two hosts have one id" => standing(|s| s.host_mut("c").id = name("a2")),
    }
    DuplicateVm {
        "a VM stands on two hosts" => standing(|s| { s.put(small_vm("noisy-1"), "a"); }),
        "a VM stands twice on one host" => standing(|s| { s.put(small_vm("app-1"), "a"); }),
    }
    Overcommitted {
        "one VM too many" => standing(|s| { s.put(large_vm(Dim::DISK_IOPS, 10), "a"); }),
        "more than adoption explains" => standing(|s| {
            s.put(large_vm(Dim::DISK_IOPS, 20), "a").over_capacity = true;
            let mut other = large_vm(Dim::DISK_IOPS, 10);
            other.key.id = name("other");
            s.put(other, "a");
        }),
        "capacity of a dimension that is not declared" => standing(|s| {
            s.host_mut("a").capacity.set(Dim(6), 10);
            s.put(large_vm(Dim(6), 1), "a");
        }),
    }
    Overguaranteed {
        "more is guaranteed than there is" => standing(|s| {
            s.host_mut("a").overcommit_permille = Amounts::zero().with(Dim::DISK_IOPS, 2_000);
            let mut vm = large_vm(Dim::DISK_IOPS, 11);
            vm.qos = Qos::Guaranteed;
            s.put(vm, "a");
        }),
    }

    Policy {
        "a filter of a policy fires on the host" => by_policy("candidateNode.pool == \"gold\""),
        "a filter follows what is in use on the host" =>
            by_policy("candidateNode.free.cpu_millis < 1000000"),
    }
    WrongVm {
        "the decision is about another VM" => decision(|s| s.decision.vm.id = name("other")),
    }
    WrongRevision {
        "the decision is of an older revision" =>
            decision(|s| s.decision.based_on = Revision(6)),
        "the decision is of a revision to come" =>
            decision(|s| s.decision.based_on = Revision(8)),
    }
    ScoreSum {
        "a part of the score is changed" => decision(|s| {
            if let Verdict::Placed { breakdown, .. } = &mut s.decision.verdict {
                breakdown.terms[2] += 1;
            }
        }),
        "the parts overflow" => decision(|s| {
            if let Verdict::Placed { breakdown, .. } = &mut s.decision.verdict {
                breakdown.terms = [i64::MAX; 5];
            }
        }),
    }
    HostsConsidered {
        "a host was not considered" => decision(|s| s.decision.hosts_considered = 3),
    }
    RejectionCount {
        "more hosts are said to be removed by policies than can be" =>
            rejection(|s| s.decision.rejections.add(Reason::Policy, 1)),
        "a host is left out of the rejections" => rejection(|s| {
            s.decision.rejections.0.last_mut().expect("memory").1 = 1;
        }),
        "a reason is left out" => rejection(|s| { s.decision.rejections.0.remove(0); }),
        "a reason is made up" => rejection(|s| s.decision.rejections.add(Reason::Taint, 1)),
        "a placed VM's rejections are wrong too" =>
            decision(|s| s.decision.rejections.add(Reason::Pool, 1)),
    }
    HostFits {
        "rejected although a host fits" => rejection(|s| {
            s.host_mut("a").capacity.set(Dim::MEMORY_MIB, 2_000);
            s.decision.rejections.0.last_mut().expect("memory").1 = 1;
        }),
    }
    AlternativeUnknown {
        "an alternative does not exist" =>
            decision(|s| s.decision.alternatives[0].host = name("gone")),
    }
    AlternativeUnfit {
        "an alternative cannot take the VM" =>
            decision(|s| s.decision.alternatives[0].host = name("c")),
        "a rejection has an alternative" => rejection(|s| {
            s.decision.alternatives.push(Alternative { host: name("a"), score: 1 });
        }),
    }
    AlternativeRepeated {
        "the chosen host is its own alternative" =>
            decision(|s| s.decision.alternatives[0].host = name("a")),
        "an alternative is listed twice" => decision(|s| {
            let twice = s.decision.alternatives[0].clone();
            s.decision.alternatives.push(twice);
        }),
    }
    AlternativeOutranks {
        "an alternative is better than the choice" =>
            decision(|s| s.decision.alternatives[0].score = 101),
    }
    Undecided {
        "a VM of the batch is passed over" => batch(|_, order| { order.pop(); }),
    }
    Unasked {
        "a decision is taken twice" => batch(|_, order| order.push(0)),
        "a decision answers nobody" => batch(|scenes, _| {
            scenes.decisions.push(scenes.decisions[0].clone());
        }),
    }
}

/// Breaks a rule; the ledger and the plain reading must say the same.
fn rule(mutate: impl FnOnce(&mut Scene)) -> Vec<Violation> {
    let scene = mutated(Scene::placed(), mutate);
    let found = verify::violations(&scene.snapshot, &scene.vm, &scene.host);
    assert_eq!(scene.ask_ledger(), found, "the ledger differs from the plain reading");
    assert_eq!(plans::placing(&scene), found, "a plan that places it is judged differently");
    assert_eq!(plans::moving(&scene), found, "a plan that moves it there is judged differently");
    found
}

/// Makes it impossible for the host to give the VM its parts.
fn inside(mutate: impl FnOnce(&mut Scene)) -> Vec<Violation> {
    let scene = mutated(Scene::bound(), mutate);
    verify::violations(&scene.snapshot, &scene.vm, &scene.host)
}

/// Breaks the parts that were chosen; the ledger and the plain reading must find the same.
fn parts(mutate: impl FnOnce(&mut Scene)) -> Vec<Violation> {
    let scene = mutated(Scene::bound(), mutate);
    let found = scene.certify().violations;
    assert_eq!(scene.ask_ledger_of_parts(), found, "the ledger differs from the plain reading");
    assert_eq!(plans::placing(&scene), found, "a plan that places it is judged differently");
    found
}

/// Breaks what only the ledger is told.
fn ledger(mutate: impl FnOnce(&mut Scene)) -> Vec<Violation> {
    mutated(Scene::placed(), mutate).ask_ledger()
}

fn decision(mutate: impl FnOnce(&mut Scene)) -> Vec<Violation> {
    mutated(Scene::placed(), mutate).certify().violations
}

fn rejection(mutate: impl FnOnce(&mut Scene)) -> Vec<Violation> {
    mutated(Scene::rejected(), mutate).certify().violations
}

fn standing(mutate: impl FnOnce(&mut Scene)) -> Vec<Violation> {
    verify::snapshot(&mutated(Scene::placed(), mutate).snapshot).violations
}

fn batch(mutate: impl FnOnce(&mut Batch, &mut Vec<usize>)) -> Vec<Violation> {
    let mut batch = Batch::new();
    let mut order = vec![1, 0];
    assert_eq!(batch.certify(&order), [], "the right batch is accepted");
    mutate(&mut batch, &mut order);
    batch.certify(&order)
}

fn mutated(mut scene: Scene, mutate: impl FnOnce(&mut Scene)) -> Scene {
    let state = verify::snapshot(&scene.snapshot);
    assert!(state.accepted() && state.drift.is_empty(), "{state}");
    assert_eq!(scene.certify().violations, [], "the right decision is accepted");
    if scene.decision.host().is_some() {
        assert_eq!(scene.ask_ledger(), [], "the ledger accepts the right placement");
        assert_eq!(scene.ask_ledger_of_parts(), [], "the ledger accepts the right parts");
    }
    mutate(&mut scene);
    scene
}

fn large_vm(dim: Dim, amount: u64) -> Vm {
    let mut vm = small_vm("large");
    vm.demand = Amounts::zero().with(dim, amount);
    vm
}

/// Leaves one less of the dimension than the VM asks for.
fn fill(scene: &mut Scene, dim: Dim) {
    let taken = 10 - 1 - 3;
    scene.put(large_vm(dim, taken), "a");
}

/// Every violation reads as a sentence that names the VM or the host, and as flat JSON.
fn sentence(violation: &Violation) {
    let text = violation.to_string();
    assert!(text.contains(": ") && !text.contains('{'), "{text}");
    let json = serde_json::to_value(violation).expect("violations are plain data");
    let kind = json["kind"].as_str().expect("the kind is named");
    assert!(kind.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{kind}");
}

#[test]
fn what_happens_after_placement_is_drift_and_no_violation() {
    let drift = |kind: &str, change: fn(&mut Scene)| {
        let mut scene = Scene::placed();
        let mut vm = scene.vm.clone();
        vm.cpu_unit = CpuUnit::Normalised;
        vm.affinities.push(apart(Subject::Group(name("app")), Level::Label(name("cage"))));
        scene.put(vm, "a");
        let before = verify::snapshot(&scene.snapshot);
        assert!(before.accepted() && before.drift.is_empty(), "{before}");
        change(&mut scene);
        let after = verify::snapshot(&scene.snapshot);
        let kinds: Vec<&str> = after.drift.iter().map(kind_of).collect();
        assert!(after.accepted() && kinds.join(" ") == kind, "{kind}: {after}");
    };
    drift("HostState HostState", |s| s.host_mut("a").state = HostState::Draining);
    drift("Pool", |s| s.host_mut("a").pool = None);
    drift("Selector", |s| s.host_mut("a").labels = Default::default());
    drift("Taint", |s| s.host_mut("a").taints[0].value = None);
    drift("Datastore", |s| s.host_mut("a").datastores.clear());
    drift("Affinity", |s| s.snapshot.placed[0].host = name("b"));
    drift("Spread", |s| {
        let mut vm = small_vm("web-1");
        vm.groups = vec![name("web")];
        s.put(vm, "a");
    });
    drift("Repelled AntiAffinity", |s| {
        s.host_mut("a").labels.insert(name("cage"), name("1"));
    });
    drift("WrongCommitted", |s| s.host_mut("a").benchmark_permille = 2_000);
}

#[test]
fn a_pair_that_must_be_apart_is_reported_from_both_sides() {
    let found = standing(|s| {
        let mut vm = small_vm("shy");
        vm.affinities = vec![apart(Subject::Group(name("noisy")), Level::Host)];
        s.put(vm, "b");
    });
    let kinds: Vec<&str> = found.iter().map(kind_of).collect();
    assert_eq!(kinds, ["Repelled", "AntiAffinity"], "{found:?}");
}

#[test]
fn an_adopted_vm_explains_what_it_takes_beyond_capacity() {
    let mut scene = Scene::placed();
    scene.put(large_vm(Dim::DISK_IOPS, 50), "a").over_capacity = true;
    let report = verify::snapshot(&scene.snapshot);
    assert!(report.accepted() && report.drift.is_empty(), "{report}");

    let mut modest = small_vm("modest");
    modest.demand.set(Dim::DISK_IOPS, 0);
    let kept_away = |vm: &Vm| verify::violations(&scene.snapshot, vm, &name("a")).len();
    assert_eq!(kept_away(&modest), 0, "it asks for nothing of what is short");
    assert_eq!(kept_away(&small_vm("other")), 1);
}

/// What the ledger says of the right case while a filter with this condition is in force.
fn by_policy(condition: &str) -> Vec<Violation> {
    let scene = Scene::placed();
    let text = format!(
        "policy \"test\" {{ rules {{ rule \"r\" {{ when {{ {condition} }} then {{ filter \"no\" }} }} }} }}"
    );
    let (program, _) = policy::load(&text, policy::Syntax::Dsl).expect("a good policy");
    let active = vec![(program.into(), policy::Configuration::default())];
    let active = policy::ActiveSet::new(active).expect("no parameters");
    let mut ledger = verify::Ledger::new(scene.snapshot.dimensions.len());
    let host = &scene.snapshot.hosts[0];
    ledger.put_host(scene.index, host);
    let none = policy::ActiveSet::default();
    let dimensions = &scene.snapshot.dimensions;
    let check = |set| ledger.check_policies(set, dimensions, &scene.vm, scene.index, host);
    assert_eq!(check(&none), None, "no policy, no violation");
    check(&active).into_iter().collect()
}
