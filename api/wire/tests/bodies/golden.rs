//! What callers see, to the letter.

use crate::full;
use crate::round_trip::{answer, check_view, golden, limits, placed};
use cluster::*;
use expect_test::expect;
use wire::*;

#[test]
fn a_host_is_shown_with_the_same_dimensions_in_each_of_its_amounts() {
    let allocated = Amounts::cpu_memory(10_000, 262_144);
    let dimensions = full::dimensions();
    let view = HostView::new(
        &full::host(),
        HostHealth::Suspect,
        &allocated,
        12,
        Generation(5),
        Revision(41),
        &dimensions,
    );
    check_view(&view);
    golden(
        &view,
        expect![[r#"
            {
              "id": "rack1/h1",
              "capacity": {
                "cpu_millis": 64000,
                "memory_mib": 262144,
                "disk_gib": 2000,
                "disk_iops": 0,
                "net_mbps": 25000,
                "gpu_slots": 4
              },
              "incarnation": 3,
              "state": "draining",
              "pool": "gold",
              "region": "eu",
              "zone": "eu-1",
              "rack": "r1",
              "power_feed": "f1",
              "labels": {
                "a.b": "c",
                "arch": "x86"
              },
              "taints": [
                {
                  "key": "gpu",
                  "effect": "prefer_no_schedule"
                },
                {
                  "key": "db",
                  "value": "x",
                  "effect": "no_execute"
                }
              ],
              "reserved": {
                "cpu_millis": 1000,
                "memory_mib": 2048
              },
              "overcommit_permille": {
                "cpu_millis": 1500
              },
              "benchmark_permille": 1250,
              "price": {
                "kind": "spot",
                "micros_per_hour": 1250000
              },
              "power": {
                "table_mw": [
                  100,
                  110,
                  120,
                  130,
                  140,
                  150,
                  160,
                  170,
                  180,
                  190,
                  200
                ]
              },
              "latencies": [
                {
                  "region": "us",
                  "latency_us": 90000
                }
              ],
              "failure_ppm_per_year": 20000,
              "heartbeat_deadline_ms": 15000,
              "datastores": [
                "ceph",
                "nfs:1"
              ],
              "hardware": {
                "numa_nodes": [
                  {
                    "socket": 0,
                    "cores": 32,
                    "threads_per_core": 2,
                    "memory_mib": 131072
                  }
                ],
                "pcie_ports": [
                  {
                    "numa_node": 0,
                    "bandwidth_mbps": 256000
                  },
                  {
                    "parent": 0,
                    "bandwidth_mbps": 128000
                  }
                ],
                "gpus": [
                  {
                    "model": "A100",
                    "memory_mib": 81920,
                    "compute_capability_tenths": 80,
                    "pcie_port": 1,
                    "numa_node": 0,
                    "nvlink_group": 7
                  }
                ],
                "accelerators": [
                  {
                    "kind": "fpga",
                    "count": 2,
                    "pcie_port": 0
                  }
                ]
              },
              "health": "suspect",
              "allocatable": {
                "cpu_millis": 94500,
                "memory_mib": 260096,
                "disk_gib": 2000,
                "disk_iops": 0,
                "net_mbps": 25000,
                "gpu_slots": 4
              },
              "allocated": {
                "cpu_millis": 10000,
                "memory_mib": 262144,
                "disk_gib": 0,
                "disk_iops": 0,
                "net_mbps": 0,
                "gpu_slots": 0
              },
              "free": {
                "cpu_millis": 84500,
                "memory_mib": 0,
                "disk_gib": 2000,
                "disk_iops": 0,
                "net_mbps": 25000,
                "gpu_slots": 4
              },
              "vm_count": 12,
              "generation": 5,
              "revision": 41
            }"#]],
    );
}

#[test]
fn a_vm_is_shown_with_its_host() {
    let view = VmView::new(
        &placed(),
        Some("r-42".into()),
        Generation(2),
        Revision(41),
        &full::dimensions(),
    );
    check_view(&view);
    golden(
        &view,
        expect![[r#"
            {
              "id": "web-1",
              "tenant": "acme",
              "demand": {
                "cpu_millis": 2000,
                "memory_mib": 4096,
                "disk_gib": 20,
                "gpu_slots": 1
              },
              "cpu_unit": "normalised",
              "pool": "gold",
              "priority": "high",
              "qos": "best_effort",
              "labels": {
                "app": "web"
              },
              "groups": [
                "web",
                "front"
              ],
              "selectors": [
                {
                  "key": "arch",
                  "op": "in",
                  "values": [
                    "x86",
                    "arm"
                  ]
                },
                {
                  "key": "disk",
                  "op": "not_in",
                  "values": [
                    "hdd"
                  ]
                },
                {
                  "key": "tpm",
                  "op": "exists"
                },
                {
                  "key": "old",
                  "op": "missing"
                }
              ],
              "tolerations": [
                {
                  "op": "exists"
                },
                {
                  "key": "db",
                  "op": "equal",
                  "value": "x",
                  "effect": "no_schedule"
                },
                {
                  "key": "gpu",
                  "op": "equal"
                }
              ],
              "affinity": [
                {
                  "kind": "apart",
                  "group": "web",
                  "level": "rack"
                },
                {
                  "kind": "together",
                  "vm": "db-1",
                  "level": "label:row",
                  "weight": 40
                },
                {
                  "kind": "together",
                  "hosts": [
                    "h1",
                    "h2"
                  ],
                  "level": "host"
                }
              ],
              "spread": [
                {
                  "group": "web",
                  "level": "zone",
                  "max_skew": 2,
                  "weight": 1000
                }
              ],
              "preferred_hosts": [
                "h1"
              ],
              "excluded_hosts": [
                "h9"
              ],
              "datastores": [
                "ceph"
              ],
              "data": [
                {
                  "datastore": "ceph",
                  "weight": 3
                },
                {
                  "rack": "r1",
                  "weight": 1
                }
              ],
              "hints": {
                "expected_lifetime_s": 86400,
                "colocate_with": [
                  "cache-1"
                ],
                "user_region": "eu",
                "bursty": true
              },
              "migratability": "cold",
              "spot": true,
              "restart": "on_failure",
              "host_id": "rack1/h1",
              "committed": {
                "cpu_millis": 1600,
                "memory_mib": 4096,
                "disk_gib": 20,
                "disk_iops": 0,
                "net_mbps": 0,
                "gpu_slots": 1
              },
              "reservation_id": "r-42",
              "adopted": true,
              "over_capacity": true,
              "generation": 2,
              "revision": 41
            }"#]],
    );
}

#[test]
fn decisions_are_shown_with_score_and_reasons() {
    golden(
        &answer(&full::decision()),
        expect![[r#"
            {
              "decision_id": "d-42",
              "outcome": "placed",
              "vm_id": "web-1",
              "tenant": "acme",
              "host_id": "rack1/h1",
              "host_incarnation": 3,
              "score": 70,
              "breakdown": {
                "fit": 50,
                "affinity": 30,
                "load": -20,
                "locality": 10,
                "cost": 0
              },
              "alternatives": [
                {
                  "host_id": "h2",
                  "score": -5
                }
              ],
              "rejections": {
                "capacity:memory_mib": 5,
                "taint": 3
              },
              "policy_rejections": [
                {
                  "policy": "no-old-racks",
                  "rule": "rule-1",
                  "reason": "the rack is to be emptied",
                  "hosts": 4
                }
              ],
              "hosts_considered": 10,
              "strategy": "best_fit",
              "reservation_id": "r-42",
              "revision": 42,
              "based_on": 41,
              "policy_revision": 2,
              "demand_revision": 1
            }"#]],
    );
    let rejected = Decision { verdict: Verdict::Rejected, ..full::decision() };
    let answer =
        PlacementAnswer { alternatives: Vec::new(), reservation_id: None, ..answer(&rejected) };
    golden(
        &answer,
        expect![[r#"
            {
              "decision_id": "d-42",
              "outcome": "rejected",
              "vm_id": "web-1",
              "tenant": "acme",
              "host_id": null,
              "score": null,
              "breakdown": null,
              "alternatives": [],
              "rejections": {
                "capacity:memory_mib": 5,
                "taint": 3
              },
              "policy_rejections": [
                {
                  "policy": "no-old-racks",
                  "rule": "rule-1",
                  "reason": "the rack is to be emptied",
                  "hosts": 4
                }
              ],
              "hosts_considered": 10,
              "strategy": "best_fit",
              "revision": 42,
              "based_on": 41,
              "policy_revision": 2,
              "demand_revision": 1
            }"#]],
    );
    let batch = BatchAnswer {
        outcome: Word(BatchOutcome::Partial),
        placed: 1,
        rejected: 1,
        decisions: vec![answer],
        revision: 42,
        policy_revision: 2,
        joint: None,
    };
    check_view(&batch);
}

#[test]
fn the_other_answers_come_back_as_they_were() {
    let quantities = Quantities::full(&Amounts::cpu_memory(5, 6), &full::dimensions());
    let pool = PoolCapacity {
        pool: full::name("gold"),
        hosts: 1,
        vms: 2,
        capacity: quantities.clone(),
        allocatable: quantities.clone(),
        allocated: quantities.clone(),
        free: quantities,
    };
    let hosts_by_state = [("available".to_owned(), 1)].into_iter().collect();
    check_view(&CapacityView {
        hosts: 1,
        hosts_by_state,
        pools: vec![pool],
        ..CapacityView::default()
    });
    check_view(&StateHash { revision: 1, hash: "00ff".into() });
    let event = Event {
        revision: 9,
        at_ms: 1_700_000_000_000,
        kind: "vm_placed".into(),
        host_id: Some(full::name("h1")),
        vm_id: Some(full::name("v")),
        tenant: Some(full::name("default")),
        decision_id: Some("d-9".into()),
        reservation_id: None,
        plan_id: None,
    };
    golden(
        &event,
        expect![[r#"
        {
          "revision": 9,
          "at_ms": 1700000000000,
          "kind": "vm_placed",
          "host_id": "h1",
          "vm_id": "v",
          "tenant": "default",
          "decision_id": "d-9"
        }"#]],
    );
    check_view(&EventPage { events: vec![event], revision: 9 });
    check_view(&Page { items: vec![1, 2], next_cursor: Some("h2".into()), revision: 9 });
    check_view(&BulkAnswer {
        accepted: 3,
        failed: 1,
        failures: vec![BulkFailure {
            item: 3,
            id: full::name("h"),
            code: "host_exists".into(),
            message: "host h exists with other properties".into(),
        }],
        revision: 9,
    });
    let reservation = ReservationView {
        reservation_id: "r-9".into(),
        state: Word(ReservationState::Held),
        vm_id: Some(full::name("v")),
        tenant: Some(full::name("default")),
        host_id: Some(full::name("h1")),
        expires_at_ms: Some(1_700_000_005_000),
        revision: 9,
    };
    check_view(&reservation);
    golden(
        &reservation,
        expect![[r#"
        {
          "reservation_id": "r-9",
          "state": "held",
          "vm_id": "v",
          "tenant": "default",
          "host_id": "h1",
          "expires_at_ms": 1700000005000,
          "revision": 9
        }"#]],
    );
    let faults =
        wire::read::<PlaceRequest>(br#"{"vm":{"id":"v"}}"#, &limits()).expect_err("no demand");
    let mut problem = Problem::from_faults(faults);
    problem.request_id = Some("q-1".into());
    check_view(&problem);
    golden(
        &problem,
        expect![[r#"
        {
          "type": "urn:novaplace:problem:invalid_body",
          "title": "The body has wrong fields",
          "status": 422,
          "code": "invalid_body",
          "detail": "vm.demand: \"demand\" is missing",
          "hint": "correct what is listed in errors",
          "request_id": "q-1",
          "errors": [
            {
              "path": "vm.demand",
              "code": "missing_field",
              "message": "\"demand\" is missing",
              "hint": "add \"demand\""
            }
          ]
        }"#]],
    );
}
