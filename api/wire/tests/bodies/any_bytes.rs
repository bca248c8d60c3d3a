//! Whatever the bytes are, a body is read or refused with reasons, and nothing panics.

use crate::full;
use proptest::prelude::*;
use wire::certify::{Document, DocumentSpec, SnapshotSpec};
use wire::*;

/// Valid bodies of every kind, to be damaged.
fn bodies() -> Vec<Vec<u8>> {
    let dimensions = full::dimensions();
    let vm = VmSpec::new(&full::vm(), &dimensions);
    let place = PlacementSpec { vm: vm.clone(), strategy: None, hold_ttl_ms: Some(1_000) };
    let batch = BatchSpec { vms: vec![vm], atomic: true, strategy: None, joint_ms: None };
    let snapshot = cluster::Snapshot {
        dimensions: dimensions.as_ref().clone(),
        hosts: vec![full::host().into()],
        ..cluster::Snapshot::default()
    };
    let document = DocumentSpec {
        snapshot: Some(SnapshotSpec::new(&snapshot)),
        decisions: Vec::new(),
        waves: Vec::new(),
    };
    let revision = cluster::Revision(1);
    let answer = PlacementAnswer::new(&full::decision(), "d".into(), revision, None, &dimensions);
    vec![
        serde_json::to_vec(&HostSpec::new(&full::host(), &dimensions)).expect("plain data"),
        serde_json::to_vec(&place).expect("plain data"),
        serde_json::to_vec(&batch).expect("plain data"),
        serde_json::to_vec(&document).expect("plain data"),
        serde_json::to_vec(&answer).expect("plain data"),
        serde_json::to_vec(&WeightMap::from(&policy::Weights::default())).expect("plain data"),
        br#"{"text":"policy","syntax":"dsl","activate":true,"priority":-3,
            "parameter_values":{"a":1.5,"b":null,"c":"x"},"description":"why","version":2}"#
            .to_vec(),
        br#"{"policy":{"ID":"p","Name":"P","Metadata":{"a":[1]},"Parameters":{"x":{"DefaultValue":1,
            "AllowedValues":[1,2]}},"Rules":[{"name":"r","weight":1,"when":"true","then":["filter"]}]},
            "author":"op","Priority":7,"ParameterValues":{"x":2},"Version":"v1"}"#
            .to_vec(),
        br#"{"vm":{"id":"v","cpu_cores":2,"labels":{"a":"b"}},"workload":{"id":"v","priority":80},
            "source_node":{"id":"s"},"candidate_nodes":[{"id":"n"}],"limit":3,"policy_ids":["p"],
            "nodes":[{"id":"n","total_cpu_cores":8,"used_cpu":1.5,"memory":2048,"available_memory":7,
            "power_efficiency":0.5,"cost_per_hour":0.1,"capabilities":{"gpu":true,"x":false},
            "metrics":{"network.latency.to.eu":3},"labels":{"k":"v"},"status":"ready"}],
            "vms":[{"id":"v","memory_gb":4}],"config_overrides":{"p":{"priority":1}}}"#
            .to_vec(),
    ]
}

/// Maps of any shape stand for a host and a VM, or are refused.
fn check_maps(bytes: &[u8]) {
    let dimensions = novacron::map_dimensions();
    let limits = Limits::novacron(full::dimensions());
    let Ok(read) = read::<novacron::SimulationRequest>(bytes, &limits) else { return };
    for map in read.nodes.iter().chain(&read.vms) {
        let host = novacron::host_of_map("nodes[0]", map, &dimensions).err();
        let vm = novacron::vm_of_map("vms[0]", map, &dimensions).err();
        assert!([host, vm].iter().flatten().all(|fault| !fault.hint.is_empty()));
    }
}

fn check<T: Read>(bytes: &[u8]) {
    let limits = Limits::single(full::dimensions());
    for faults in [read::<T>(bytes, &limits).err(), read_lines::<T>(bytes, &limits).err()] {
        let Some(faults) = faults else { continue };
        assert!(!faults.is_empty(), "refused without a reason: {bytes:?}");
        for fault in faults {
            assert!(!fault.path.is_empty() && !fault.hint.is_empty(), "{fault:?}");
            assert!(fault.message.len() < 1_000, "{fault:?}");
        }
    }
}

fn check_all(bytes: &[u8]) {
    check::<cluster::Host>(bytes);
    check::<PlaceRequest>(bytes);
    check::<BatchRequest>(bytes);
    check::<AdoptRequest>(bytes);
    check::<ResizeRequest>(bytes);
    check::<Document>(bytes);
    check::<ExplainRequest>(bytes);
    check::<cluster::Decision>(bytes);
    check::<policy::Weights>(bytes);
    check::<PolicyRequest>(bytes);
    check::<ActivationRequest>(bytes);
    check::<TuneRequest>(bytes);
    check::<RollbackRequest>(bytes);
    check::<WeightRollbackRequest>(bytes);
    check::<novacron::PolicyDraft>(bytes);
    check::<novacron::PolicyConfiguration>(bytes);
    check::<novacron::PolicyRollback>(bytes);
    check::<novacron::EvaluationRequest>(bytes);
    check::<novacron::WorkloadOverNodes>(bytes);
    check::<novacron::SimulationRequest>(bytes);
    check_maps(bytes);
}

/// Pieces that hurt where they do not belong.
const PIECES: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b"\\u",
    b"\\ud800",
    b",",
    b":",
    b"-",
    b"0",
    b"1e999999",
    b"NaN",
    b"null",
    b"true",
    b"\xff",
    b"\xc3",
    b"\0",
    b"\n",
    b"18446744073709551616",
    b"\"id\":",
    b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    b"{\"a\":{\"a\":{\"a\":",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn damaged_bodies_are_refused_or_read(
        body in 0usize..9,
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0usize..3, 0..PIECES.len()), 1..6),
    ) {
        let mut bytes = bodies().swap_remove(body);
        for (place, kind, piece) in damage {
            let at = place.index(bytes.len().max(1)).min(bytes.len());
            let piece = PIECES[piece];
            match kind {
                0 => drop(bytes.splice(at..at, piece.iter().copied())),
                1 => drop(bytes.splice(at..bytes.len().min(at + piece.len()), piece.iter().copied())),
                _ => bytes.truncate(at.max(1)),
            }
        }
        check_all(&bytes);
    }

    #[test]
    fn random_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check_all(&bytes);
    }
}

#[test]
fn every_prefix_of_a_valid_body_is_refused() {
    for body in bodies() {
        let limits = Limits::single(full::dimensions());
        for end in 0..body.len() {
            let faults = read::<PlaceRequest>(&body[..end], &limits).expect_err("a prefix");
            assert_eq!(faults[0].code, "invalid_json", "{faults:?}");
        }
    }
}
