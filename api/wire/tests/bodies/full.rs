//! A host, a VM and a decision with every field filled in.

use cluster::*;
use std::sync::Arc;

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

fn names(texts: &[&str]) -> Vec<Name> {
    texts.iter().map(|text| name(text)).collect()
}

pub(crate) fn dimensions() -> Arc<Dimensions> {
    Arc::new(Dimensions::with_extra(names(&["gpu_slots"])).expect("one extra dimension"))
}

pub(crate) fn host() -> Host {
    Host {
        id: name("rack1/h1"),
        incarnation: 3,
        pool: Some(name("gold")),
        location: Location {
            region: Some(name("eu")),
            zone: Some(name("eu-1")),
            rack: Some(name("r1")),
            power_feed: Some(name("f1")),
        },
        labels: Labels::from_iter([(name("arch"), name("x86")), (name("a.b"), name("c"))]),
        taints: vec![
            Taint { key: name("gpu"), value: None, effect: TaintEffect::PreferNoSchedule },
            Taint { key: name("db"), value: Some(name("x")), effect: TaintEffect::NoExecute },
        ],
        state: HostState::Draining,
        capacity: Amounts::from_slice(&[64_000, 262_144, 2_000, 0, 25_000, 4]),
        reserved: Amounts::cpu_memory(1_000, 2_048),
        overcommit_permille: Amounts::cpu_memory(1_500, 0),
        benchmark_permille: 1_250,
        price: Price { kind: PriceKind::Spot, micros_per_hour: 1_250_000 },
        power: Power::Table(Box::new([100, 110, 120, 130, 140, 150, 160, 170, 180, 190, 200])),
        latencies: vec![RegionLatency { region: name("us"), latency_us: 90_000 }],
        failure_ppm_per_year: 20_000,
        heartbeat_deadline_ms: 15_000,
        datastores: names(&["ceph", "nfs:1"]),
        foreign: cluster::Foreign::default(),
        hardware: Box::new(Hardware {
            numa_nodes: vec![NumaNode {
                socket: 0,
                cores: 32,
                threads_per_core: 2,
                memory_mib: 131_072,
                ..NumaNode::default()
            }],
            pcie_ports: vec![
                PciePort { numa_node: Some(0), bandwidth_mbps: 256_000, ..PciePort::default() },
                PciePort { parent: Some(0), bandwidth_mbps: 128_000, ..PciePort::default() },
            ],
            gpus: vec![Gpu {
                compute_capability_tenths: 80,
                pcie_port: Some(1),
                numa_node: Some(0),
                nvlink_group: Some(7),
                ..Gpu::new(name("A100"), 81_920)
            }],
            accelerators: vec![Accelerator {
                kind: name("fpga"),
                count: 2,
                pcie_port: Some(0),
                numa_node: None,
            }],
            ..Hardware::default()
        }),
    }
}

pub(crate) fn vm() -> Vm {
    let affinity = |kind, subject, level, strength| Affinity { kind, subject, level, strength };
    Vm {
        key: VmKey { tenant: name("acme"), id: name("web-1") },
        demand: Amounts::from_slice(&[2_000, 4_096, 20, 0, 0, 1]),
        cpu_unit: CpuUnit::Normalised,
        pool: Some(name("gold")),
        priority: PriorityClass::High,
        qos: Qos::BestEffort,
        labels: Labels::from_iter([(name("app"), name("web"))]),
        groups: names(&["web", "front"]),
        selectors: vec![
            Selector { key: name("arch"), op: SelectorOp::In(names(&["x86", "arm"])) },
            Selector { key: name("disk"), op: SelectorOp::NotIn(names(&["hdd"])) },
            Selector { key: name("tpm"), op: SelectorOp::Exists },
            Selector { key: name("old"), op: SelectorOp::Missing },
        ],
        tolerations: vec![
            Toleration { key: None, op: TolerationOp::Exists, effect: None },
            Toleration {
                key: Some(name("db")),
                op: TolerationOp::Equal(Some(name("x"))),
                effect: Some(TaintEffect::NoSchedule),
            },
            Toleration { key: Some(name("gpu")), op: TolerationOp::Equal(None), effect: None },
        ],
        affinities: vec![
            affinity(
                AffinityKind::Apart,
                Subject::Group(name("web")),
                Level::Rack,
                Strength::Required,
            ),
            affinity(
                AffinityKind::Together,
                Subject::Vm(name("db-1")),
                Level::Label(name("row")),
                Strength::Preferred(40),
            ),
            affinity(
                AffinityKind::Together,
                Subject::Hosts(names(&["h1", "h2"])),
                Level::Host,
                Strength::Required,
            ),
        ],
        spreads: vec![Spread {
            group: name("web"),
            level: Level::Zone,
            max_skew: 2,
            strength: Strength::Preferred(1_000),
        }],
        preferred_hosts: names(&["h1"]),
        excluded_hosts: names(&["h9"]),
        datastores: names(&["ceph"]),
        data: vec![
            DataRef { site: DataSite::Datastore(name("ceph")), weight: 3 },
            DataRef { site: DataSite::Rack(name("r1")), weight: 1 },
        ],
        hints: Hints {
            expected_lifetime_s: Some(86_400),
            colocate_with: names(&["cache-1"]),
            user_region: Some(name("eu")),
            bursty: true,
        },
        migratability: Migratability::Cold,
        spot: true,
        restart: RestartPolicy::OnFailure,
        topology: None,
    }
}

pub(crate) fn decision() -> Decision {
    let mut rejections = Rejections::default();
    rejections.add(Reason::Taint, 3);
    rejections.add(Reason::Capacity(Dim::MEMORY_MIB), 5);
    Decision {
        vm: vm().key,
        verdict: Verdict::Placed {
            host: name("rack1/h1"),
            incarnation: 3,
            score: 70,
            breakdown: Breakdown::of_terms([50, 30, -20, 10, 0]),
            bindings: None,
        },
        strategy: Strategy::BestFit,
        alternatives: [Alternative { host: name("h2"), score: -5 }].into_iter().collect(),
        rejections,
        policy_rejections: vec![PolicyRejection {
            policy: "no-old-racks".into(),
            rule: "rule-1".into(),
            reason: "the rack is to be emptied".into(),
            hosts: 4,
        }],
        hosts_considered: 10,
        based_on: Revision(41),
        policy_revision: 2,
        demand_revision: 1,
    }
}

/// One constraint of each type, with every field that it can have.
pub(crate) fn constraints() -> Vec<Constraint> {
    let labels =
        || vec![Selector { key: name("os"), op: SelectorOp::NotIn(names(&["linux", "bsd"])) }];
    let vms = |group: &str| VmSet {
        tenant: Some(name("acme")),
        group: Some(name(group)),
        labels: labels(),
    };
    let hosts = || HostSet {
        pool: Some(name("gold")),
        within: vec![Within { level: Level::Zone, names: names(&["eu-1", "eu-2"]) }],
        labels: labels(),
    };
    let rack = || Level::Label(name("cage"));
    let link = Link { a: name("a"), b: name("b"), latency_us: 400, bandwidth_mbps: 10_000 };
    let network = Network {
        vms: vms("web"),
        to: vms("db"),
        over: name("6-links"),
        max_latency_us: Some(500),
        bandwidth_mbps: 100,
    };
    let spare = |keep| Spare { hosts: hosts(), each: Some(rack()), keep, except: Some(vms("ha")) };
    let rules = [
        (
            "1-fence",
            ConstraintRule::Fence(Fence { vms: vms("web"), hosts: hosts(), reserved: true }),
        ),
        (
            "2-cover",
            ConstraintRule::MinDomains(MinDomains { vms: vms("web"), level: rack(), min: 3 }),
        ),
        ("3-limit", ConstraintRule::Limit(Limit { vms: vms("web"), level: rack(), max: 2 })),
        (
            "4-alone",
            ConstraintRule::Exclusive(Exclusive { vms: vms("web"), sharing: Sharing::Nobody }),
        ),
        (
            "5-needs",
            ConstraintRule::Dependency(Dependency {
                vms: vms("web"),
                on: vms("db"),
                level: rack(),
            }),
        ),
        ("6-links", ConstraintRule::Links(Links { level: rack(), links: vec![link] })),
        ("7-network", ConstraintRule::Network(network)),
        ("8-spare", ConstraintRule::Spare(spare(Keep::Hosts(2)))),
        ("9-spare", ConstraintRule::Spare(spare(Keep::Permille(50)))),
    ];
    rules.map(|(text, rule)| Constraint { name: name(text), rule }).to_vec()
}
