//! Constraints that the right case keeps, and by how little.

use crate::scene::{Scene, name};
use cluster::{
    Constraint, ConstraintRule, Dependency, Dim, Exclusive, Fence, HostSet, Keep, Level, Limit,
    Link, Links, MinDomains, Network, Selector, SelectorOp, Sharing, Spare, VmSet, Within,
};
use std::sync::Arc;

impl Scene {
    pub(crate) fn install(&mut self, text: &str, rule: ConstraintRule) {
        let constraint = Constraint { name: name(text), rule };
        self.snapshot.constraints.push(Arc::new(constraint));
        self.snapshot.constraints.sort_by(|one, other| one.name.cmp(&other.name));
    }
}

pub(crate) fn group(group: &str) -> VmSet {
    VmSet { tenant: Some(name("default")), group: Some(name(group)), labels: Vec::new() }
}

pub(crate) fn labelled(key: &str) -> VmSet {
    let labels = vec![Selector { key: name(key), op: SelectorOp::Exists }];
    VmSet { labels, ..VmSet::default() }
}

fn zone(zone: &str) -> HostSet {
    let within = vec![Within { level: Level::Zone, names: vec![name(zone)] }];
    HostSet { within, ..HostSet::default() }
}

pub(crate) fn fence(zone_name: &str) -> ConstraintRule {
    ConstraintRule::Fence(Fence { vms: group("app"), hosts: zone(zone_name), reserved: false })
}

pub(crate) fn reserve(vms: VmSet) -> ConstraintRule {
    ConstraintRule::Fence(Fence { vms, hosts: zone("z1"), reserved: true })
}

pub(crate) fn min_domains(level: Level, min: u32) -> ConstraintRule {
    ConstraintRule::MinDomains(MinDomains { vms: group("app"), level, min })
}

pub(crate) fn limit(level: Level, max: u32) -> ConstraintRule {
    ConstraintRule::Limit(Limit { vms: group("app"), level, max })
}

pub(crate) fn exclusive(vms: VmSet, sharing: Sharing) -> ConstraintRule {
    ConstraintRule::Exclusive(Exclusive { vms, sharing })
}

pub(crate) fn depends_on(on: &str, level: Level) -> ConstraintRule {
    ConstraintRule::Dependency(Dependency { vms: group("app"), on: group(on), level })
}

/// The VMs of group `app` talk to those of group `noisy`, over a way of 500 us and 12 Mbit/s
/// through a third zone.
pub(crate) fn talk(scene: &mut Scene, max_latency_us: Option<u32>, bandwidth_mbps: u32) {
    let link = |a, b, latency_us, bandwidth_mbps| Link {
        a: name(a),
        b: name(b),
        latency_us,
        bandwidth_mbps,
    };
    let links =
        vec![link("z1", "z3", 200, 12), link("z3", "z2", 300, 90), link("z1", "z2", 900, 90)];
    scene.install("fabric", ConstraintRule::Links(Links { level: Level::Zone, links }));
    let (vms, to, over) = (group("app"), group("noisy"), name("fabric"));
    let rule = Network { vms, to, over, max_latency_us, bandwidth_mbps };
    scene.install("talk", ConstraintRule::Network(rule));
}

pub(crate) fn spare(each: Option<Level>, keep: Keep) -> ConstraintRule {
    ConstraintRule::Spare(Spare { hosts: zone("z1"), each, keep, except: None })
}

#[test]
fn constraints_that_are_just_kept_are_accepted() {
    let check = |what: &str, prepare: &dyn Fn(&mut Scene)| {
        let mut scene = Scene::placed();
        prepare(&mut scene);
        let found = verify::violations(&scene.snapshot, &scene.vm, &scene.host);
        assert_eq!((found, scene.ask_ledger()), (vec![], vec![]), "{what}");
    };
    check("inside", &|s| s.install("c", fence("z1")));
    check("reserved for it", &|s| s.install("c", reserve(group("app"))));
    check("covered already", &|s| {
        let mut vm = crate::scene::small_vm("app-2");
        vm.groups = vec![name("app")];
        s.put(vm, "b");
        s.install("c", min_domains(Level::Zone, 2));
    });
    check("one more is allowed", &|s| s.install("c", limit(Level::Host, 2)));
    check("no domain, no limit", &|s| s.install("c", limit(Level::PowerFeed, 1)));
    check("among its own", &|s| s.install("c", exclusive(group("app"), Sharing::Members)));
    check("it needs its own kind", &|s| s.install("c", depends_on("app", Level::Zone)));
    check("near and wide enough", &|s| talk(s, Some(500), 6));
    check("the rest is kept", &|s| s.install("c", spare(None, Keep::Permille(750))));
    check("an exception", &|s| {
        let ConstraintRule::Spare(rule) = spare(None, Keep::Hosts(2)) else { return };
        let rule = Spare { except: Some(group("app")), ..rule };
        s.install("c", ConstraintRule::Spare(rule));
    });
    check("what others use is theirs", &|s| {
        s.host_mut("a2").foreign.used.set(Dim::CPU_MILLIS, 5);
        s.install("c", spare(None, Keep::Permille(500)));
    });
}

#[test]
fn what_a_constraint_asks_for_is_drift_once_the_vm_is_placed() {
    let check = |rule: ConstraintRule, expect: &[&str]| {
        let mut scene = Scene::placed();
        let vm = scene.vm.clone();
        scene.put(vm, "a");
        scene.install("c", rule);
        let report = verify::snapshot(&scene.snapshot);
        assert!(report.accepted(), "{report}");
        let of = |kind: &str| report.drift.iter().filter(|it| crate::kind_of(it) == kind).count();
        assert_eq!(expect.iter().map(|kind| of(kind)).sum::<usize>(), report.drift.len());
        assert_eq!(report.drift.is_empty(), expect.is_empty(), "{report}");
    };
    check(limit(Level::Host, 2), &[]);
    check(limit(Level::Host, 1), &["Limit"]);
    check(fence("z2"), &["Fence"]);
    check(min_domains(Level::Rack, 2), &["MinDomains"]);
    check(depends_on("noisy", Level::Zone), &["Dependency"]);
    // Without itself there is room for it.
    check(spare(None, Keep::Permille(750)), &[]);
    check(spare(None, Keep::Permille(900)), &["Spare"]);
}
