//! Contradictions of every kind: found whole, and gone without any one of their members.

use super::*;
use cluster::{
    Amounts, ConstraintRule, Dependency, Exclusive, Fence, HostSet, Limit, Link, Links, MinDomains,
    Network, Selector, SelectorOp, Sharing, VmSet, Within,
};

fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

/// Two zones of two racks each, two hosts a rack.
fn fleet() -> Vec<Host> {
    let mut hosts = Vec::new();
    for (zone, rack) in [("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b2")] {
        for number in 0..2 {
            let mut host = Host::new(name(&format!("{rack}-{number}")), Amounts::zero());
            host.location.zone = Some(name(zone));
            host.location.rack = Some(name(rack));
            host.labels.insert(name("os"), name(if rack.ends_with('1') { "win" } else { "mac" }));
            hosts.push(host);
        }
    }
    hosts
}

fn group(group: &str) -> VmSet {
    VmSet { tenant: Some(name("t")), group: Some(name(group)), labels: Vec::new() }
}

fn everybody() -> VmSet {
    VmSet::default()
}

fn zone(names: &[&str]) -> HostSet {
    let names = names.iter().map(|text| name(text)).collect();
    HostSet { within: vec![Within { level: Level::Zone, names }], ..HostSet::default() }
}

fn os(value: &str) -> HostSet {
    let op = SelectorOp::In(vec![name(value)]);
    HostSet { labels: vec![Selector { key: name("os"), op }], ..HostSet::default() }
}

fn fence(vms: VmSet, hosts: HostSet) -> ConstraintRule {
    ConstraintRule::Fence(Fence { vms, hosts, reserved: false })
}

fn reserve(vms: VmSet, hosts: HostSet) -> ConstraintRule {
    ConstraintRule::Fence(Fence { vms, hosts, reserved: true })
}

fn min_zones(vms: VmSet, min: u32) -> ConstraintRule {
    ConstraintRule::MinDomains(MinDomains { vms, level: Level::Zone, min })
}

fn limit(vms: VmSet, level: Level, max: u32) -> ConstraintRule {
    ConstraintRule::Limit(Limit { vms, level, max })
}

fn depends(vms: VmSet, on: VmSet, level: Level) -> ConstraintRule {
    ConstraintRule::Dependency(Dependency { vms, on, level })
}

fn together(level: Level) -> CarriedTogether {
    let vm = VmKey { tenant: name("t"), id: name("web-1") };
    CarriedTogether { tenant: name("t"), group: name("web"), level, vm }
}

/// Finds exactly `expect`, whichever rule comes last, and nothing without any one of them.
fn check(rules: &[(&str, ConstraintRule)], carried: &[CarriedTogether], expect: &[&str]) {
    let fleet = fleet();
    let hosts: Vec<&Host> = fleet.iter().collect();
    let all: Vec<Constraint> = rules
        .iter()
        .map(|(text, rule)| Constraint { name: name(text), rule: rule.clone() })
        .collect();
    let find = |kept: &[&Constraint], carried: &[CarriedTogether], new: &Name| {
        contradictions(kept, carried, &hosts, new).contradiction
    };
    let everything: Vec<&Constraint> = all.iter().collect();
    let members: Vec<&Constraint> =
        all.iter().filter(|it| expect.contains(&it.name.as_str())).collect();
    for new in &members {
        let found = find(&everything, carried, &new.name).expect("a contradiction");
        assert_eq!(found.between, expect, "{}", found.why);
        assert!(!found.why.is_empty());
    }
    for gone in &members {
        let kept: Vec<&Constraint> =
            everything.iter().copied().filter(|it| it.name != gone.name).collect();
        for new in members.iter().filter(|new| new.name != gone.name) {
            assert_eq!(find(&kept, carried, &new.name), None, "without {}", gone.name);
        }
    }
    if expect.len() > members.len() {
        assert_eq!(find(&everything, &[], &members[0].name), None, "without the VM's own rule");
    }
}

fn check_none(rules: &[(&str, ConstraintRule)], carried: &[CarriedTogether]) {
    let fleet = fleet();
    let hosts: Vec<&Host> = fleet.iter().collect();
    let all: Vec<Constraint> = rules
        .iter()
        .map(|(text, rule)| Constraint { name: name(text), rule: rule.clone() })
        .collect();
    let all: Vec<&Constraint> = all.iter().collect();
    for new in &all {
        let found = contradictions(&all, carried, &hosts, &new.name);
        assert_eq!(found.contradiction, None);
    }
}

#[test]
fn two_fences_around_different_zones_leave_no_host() {
    check(
        &[
            ("in-a", fence(group("web"), zone(&["a"]))),
            ("in-b", fence(group("web"), zone(&["b"]))),
            ("another", limit(everybody(), Level::Host, 5)),
        ],
        &[],
        &["in-a", "in-b"],
    );
    check(
        &[
            ("far", fence(everybody(), zone(&["nowhere-yet"]))),
            ("in-a", fence(group("web"), zone(&["a"]))),
        ],
        &[],
        &["far", "in-a"],
    );
}

#[test]
fn fences_that_meet_in_no_host_of_this_fleet_are_found_by_looking() {
    let rack = Within { level: Level::Rack, names: vec![name("a1"), name("b2")] };
    let racks = HostSet { within: vec![rack], ..HostSet::default() };
    check(
        &[
            ("1-licence", fence(group("web"), os("mac"))),
            ("2-zone", fence(group("web"), zone(&["a"]))),
            ("3-racks", fence(group("web"), racks.clone())),
        ],
        &[],
        &["1-licence", "2-zone", "3-racks"],
    );
    check_none(
        &[("licence", fence(group("web"), os("mac"))), ("racks", fence(group("web"), racks))],
        &[],
    );
}

#[test]
fn hosts_reserved_for_others_are_no_hosts() {
    let other = VmSet { tenant: Some(name("u")), ..VmSet::default() };
    check(
        &[("in-a", fence(group("web"), zone(&["a"]))), ("theirs", reserve(other, zone(&["a"])))],
        &[],
        &["in-a", "theirs"],
    );
    check_none(
        &[
            ("in-a", fence(group("web"), zone(&["a"]))),
            // A VM of the first group may be of the second as well.
            ("shared", reserve(group("db"), zone(&["a"]))),
        ],
        &[],
    );
}

#[test]
fn a_fence_can_leave_too_few_domains() {
    check(
        &[
            ("cover", min_zones(group("web"), 2)),
            ("in-a", fence(everybody(), zone(&["a"]))),
            ("mac", fence(group("web"), os("mac"))),
        ],
        &[],
        &["cover", "in-a"],
    );
}

#[test]
fn what_the_fleet_alone_cannot_give_is_a_warning() {
    let fleet = fleet();
    let hosts: Vec<&Host> = fleet.iter().collect();
    let check = |rule: ConstraintRule, expect: usize| {
        let constraint = Constraint { name: name("new"), rule };
        let found = contradictions(&[&constraint], &[], &hosts, &constraint.name);
        assert_eq!((found.contradiction, found.warnings.len()), (None, expect));
    };
    check(min_zones(group("web"), 3), 1);
    check(min_zones(group("web"), 2), 0);
    check(fence(group("web"), zone(&["nowhere-yet"])), 1);
    check(fence(group("web"), zone(&["a"])), 0);
}

#[test]
fn a_limit_of_one_is_too_few_to_be_together() {
    check(
        &[("one-each", limit(group("web"), Level::Host, 1))],
        &[together(Level::Host)],
        &["one-each", "vm t/web-1: together with group web by host"],
    );
    check(
        &[(
            "alone",
            ConstraintRule::Exclusive(Exclusive { vms: everybody(), sharing: Sharing::Nobody }),
        )],
        &[together(Level::Host)],
        &["alone", "vm t/web-1: together with group web by host"],
    );
    check(
        &[("one-a-zone", limit(group("web"), Level::Zone, 1))],
        &[together(Level::Rack)],
        &["one-a-zone", "vm t/web-1: together with group web by rack"],
    );
    check_none(&[("one-each", limit(group("web"), Level::Host, 1))], &[together(Level::Rack)]);
    check_none(&[("two-each", limit(group("web"), Level::Host, 2))], &[together(Level::Host)]);
    check_none(&[("others", limit(group("db"), Level::Host, 1))], &[together(Level::Host)]);
}

#[test]
fn one_domain_cannot_cover_several() {
    check(
        &[("cover", min_zones(group("web"), 2))],
        &[together(Level::Rack)],
        &["cover", "vm t/web-1: together with group web by rack"],
    );
    check(
        &[
            ("cover", min_zones(group("web"), 2)),
            ("one-in-all", limit(everybody(), Level::Label(name("everywhere")), 1)),
            ("rare", limit(group("web"), Level::Zone, 1)),
        ],
        &[together(Level::Zone)],
        &["cover", "vm t/web-1: together with group web by zone"],
    );
}

#[test]
fn dependents_that_are_fenced_off_never_meet() {
    let here = fence(group("web"), zone(&["a"]));
    let there = fence(group("db"), zone(&["b"]));
    check(
        &[
            ("db-there", there.clone()),
            ("needs", depends(group("web"), group("db"), Level::Zone)),
            ("web-here", here.clone()),
        ],
        &[],
        &["db-there", "needs", "web-here"],
    );
    check_none(&[("db-there", there), ("web-here", here)], &[]);
}

#[test]
fn those_that_wait_for_each_other_never_begin() {
    check(
        &[
            ("1", depends(group("web"), group("db"), Level::Zone)),
            ("2", depends(group("db"), group("cache"), Level::Rack)),
            ("3", depends(group("cache"), group("web"), Level::Zone)),
        ],
        &[],
        &["1", "2", "3"],
    );
    check_none(
        &[
            ("1", depends(group("web"), group("db"), Level::Zone)),
            ("2", depends(group("db"), group("cache"), Level::Rack)),
        ],
        &[],
    );
}

#[test]
fn a_host_for_oneself_is_not_shared_with_those_one_depends_on() {
    let alone = |sharing| ConstraintRule::Exclusive(Exclusive { vms: group("web"), sharing });
    check(
        &[
            ("alone", alone(Sharing::Members)),
            ("needs", depends(group("web"), group("db"), Level::Host)),
        ],
        &[],
        &["alone", "needs"],
    );
    check_none(
        &[
            ("alone", alone(Sharing::Nobody)),
            ("needs", depends(group("web"), group("db"), Level::Zone)),
        ],
        &[],
    );
}

#[test]
fn partners_too_far_apart_are_found_with_the_fabric_between_them() {
    let link = Link { a: name("a"), b: name("b"), latency_us: 900, bandwidth_mbps: 1 };
    let links = ConstraintRule::Links(Links { level: Level::Zone, links: vec![link] });
    let near = |max_us| {
        ConstraintRule::Network(Network {
            vms: group("web"),
            to: group("db"),
            over: name("backbone"),
            max_latency_us: Some(max_us),
            bandwidth_mbps: 0,
        })
    };
    let fences = [
        ("db-there", fence(group("db"), zone(&["b"]))),
        ("web-here", fence(group("web"), zone(&["a"]))),
    ];
    let all = |max_us| {
        let mut all = vec![("backbone", links.clone())];
        all.extend(fences.clone());
        all.push(("near", near(max_us)));
        all
    };
    check(&all(899), &[], &["backbone", "db-there", "web-here", "near"]);
    check_none(&all(900), &[]);
}
