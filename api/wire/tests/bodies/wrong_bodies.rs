//! Wrong bodies, each with the place and the code that must come back.

use crate::full;
use policy::Weights;
use wire::certify::Document;
use wire::*;

type Row = (&'static str, &'static str, &'static str);

fn check<T: Read>(rows: &[Row]) {
    let limits = Limits::single(full::dimensions());
    for (body, path, code) in rows {
        let Err(faults) = wire::read::<T>(body.as_bytes(), &limits) else {
            panic!("{body} was accepted");
        };
        let found = faults.iter().any(|fault| fault.path == *path && fault.code == *code);
        assert!(found, "{body}\nwanted {code} at {path}, found {faults:#?}");
        for fault in &faults {
            assert!(!fault.message.is_empty() && !fault.hint.is_empty(), "{body}: {fault:?}");
        }
    }
}

#[test]
fn placement_bodies_are_refused_by_field() {
    check::<PlaceRequest>(&[
        ("", "$", "invalid_json"),
        ("   ", "$", "invalid_json"),
        ("{", "$", "invalid_json"),
        ("nul", "$", "invalid_json"),
        ("\u{feff}{}", "$", "invalid_json"),
        (r#"{"vm":{"id":"a","demand":{}},}"#, "$", "invalid_json"),
        (r#"{"vm":{"id":'a'}}"#, "vm.id", "invalid_json"),
        (r#"{"vm":{"id":"a\x"}}"#, "vm.id", "invalid_json"),
        (r#"{"vm":{"id":"a","demand":{"cpu_millis":01}}}"#, "vm.demand.cpu_millis", "invalid_json"),
        (r#"{"vm":{"id":"a","demand":{"cpu_millis":+1}}}"#, "vm.demand.cpu_millis", "invalid_json"),
        (r#"{"vm":{"id":"a","demand":{}}} {}"#, "$", "invalid_json"),
        ("[]", "$", "wrong_type"),
        ("null", "$", "wrong_type"),
        ("\"vm\"", "$", "wrong_type"),
        ("{}", "vm", "missing_field"),
        (r#"{"vm":null}"#, "vm", "missing_field"),
        (r#"{"vm":[]}"#, "vm", "wrong_type"),
        (r#"{"vm":{}}"#, "vm.id", "missing_field"),
        (r#"{"vm":{}}"#, "vm.demand", "missing_field"),
        (r#"{"vm":{"id":"a","demand":{}},"vn":1}"#, "vn", "unknown_field"),
        (r#"{"vm":{"id":"a","demand":{},"demnd":{}}}"#, "vm.demnd", "unknown_field"),
        (r#"{"vm":{"id":"a","demand":{},"a b":1}}"#, "vm[\"a b\"]", "unknown_field"),
        (r#"{"vm":{"id":"a","demand":{},"":1}}"#, "vm[\"\"]", "unknown_field"),
        (r#"{"vm":{"id":"a","id":"b","demand":{}}}"#, "vm.id", "duplicate_field"),
        (r#"{"vm":{"id":"a","\u0069d":"b","demand":{}}}"#, "vm.id", "duplicate_field"),
        (
            r#"{"vm":{"id":"a","demand":{"cpu_millis":1,"cpu_millis":1}}}"#,
            "vm.demand.cpu_millis",
            "duplicate_field",
        ),
        (r#"{"vm":{"id":"a","demand":{}},"vm":{}}"#, "vm", "duplicate_field"),
        (r#"{"vm":{"id":"","demand":{}}}"#, "vm.id", "invalid_name"),
        (r#"{"vm":{"id":"../x","demand":{}}}"#, "vm.id", "invalid_name"),
        (r#"{"vm":{"id":"a b","demand":{}}}"#, "vm.id", "invalid_name"),
        (r#"{"vm":{"id":"a\u0000","demand":{}}}"#, "vm.id", "invalid_name"),
        (r#"{"vm":{"id":7,"demand":{}}}"#, "vm.id", "wrong_type"),
        (r#"{"vm":{"id":"a","tenant":"é","demand":{}}}"#, "vm.tenant", "invalid_name"),
        (r#"{"vm":{"id":"a","demand":[]}}"#, "vm.demand", "wrong_type"),
        (
            r#"{"vm":{"id":"a","demand":{"cpu_milis":1}}}"#,
            "vm.demand.cpu_milis",
            "unknown_dimension",
        ),
        (r#"{"vm":{"id":"a","demand":{"tpu":1}}}"#, "vm.demand.tpu", "unknown_dimension"),
        (
            r#"{"vm":{"id":"a","demand":{"cpu_millis":-1}}}"#,
            "vm.demand.cpu_millis",
            "negative_number",
        ),
        (
            r#"{"vm":{"id":"a","demand":{"cpu_millis":1.5}}}"#,
            "vm.demand.cpu_millis",
            "fractional_number",
        ),
        (
            r#"{"vm":{"id":"a","demand":{"cpu_millis":1e-1}}}"#,
            "vm.demand.cpu_millis",
            "fractional_number",
        ),
        (
            r#"{"vm":{"id":"a","demand":{"cpu_millis":2147483648}}}"#,
            "vm.demand.cpu_millis",
            "number_too_large",
        ),
        (
            r#"{"vm":{"id":"a","demand":{"cpu_millis":18446744073709551616}}}"#,
            "vm.demand.cpu_millis",
            "number_too_large",
        ),
        (
            r#"{"vm":{"id":"a","demand":{"cpu_millis":1e400}}}"#,
            "vm.demand.cpu_millis",
            "number_too_large",
        ),
        (
            r#"{"vm":{"id":"a","demand":{"cpu_millis":NaN}}}"#,
            "vm.demand.cpu_millis",
            "non_finite_number",
        ),
        (
            r#"{"vm":{"id":"a","demand":{"cpu_millis":-Infinity}}}"#,
            "vm.demand.cpu_millis",
            "non_finite_number",
        ),
        (r#"{"vm":{"id":"a","demand":{"cpu_millis":"2"}}}"#, "vm.demand.cpu_millis", "wrong_type"),
        (r#"{"vm":{"id":"a","demand":{"cpu_millis":null}}}"#, "vm.demand.cpu_millis", "wrong_type"),
        (r#"{"vm":{"id":"a","demand":{"cpu_millis":true}}}"#, "vm.demand.cpu_millis", "wrong_type"),
        (r#"{"vm":{"id":"a","demand":{}},"strategy":"best-fit"}"#, "strategy", "unknown_choice"),
        (r#"{"vm":{"id":"a","demand":{}},"strategy":1}"#, "strategy", "wrong_type"),
        (r#"{"vm":{"id":"a","demand":{}},"hold_ttl_ms":999}"#, "hold_ttl_ms", "number_too_small"),
        (
            r#"{"vm":{"id":"a","demand":{}},"hold_ttl_ms":3600001}"#,
            "hold_ttl_ms",
            "number_too_large",
        ),
        (r#"{"vm":{"id":"a","demand":{},"priority":"urgent"}}"#, "vm.priority", "unknown_choice"),
        (r#"{"vm":{"id":"a","demand":{},"qos":"gold"}}"#, "vm.qos", "unknown_choice"),
        (r#"{"vm":{"id":"a","demand":{},"spot":"yes"}}"#, "vm.spot", "wrong_type"),
        (r#"{"vm":{"id":"a","demand":{},"labels":{"k":1}}}"#, "vm.labels.k", "wrong_type"),
        (
            r#"{"vm":{"id":"a","demand":{},"labels":{"a b":"c"}}}"#,
            "vm.labels[\"a b\"]",
            "invalid_name",
        ),
        (r#"{"vm":{"id":"a","demand":{},"groups":"g"}}"#, "vm.groups", "wrong_type"),
        (r#"{"vm":{"id":"a","demand":{},"groups":["g","-"]}}"#, "vm.groups[1]", "invalid_name"),
        (
            r#"{"vm":{"id":"a","demand":{},"selectors":[{"key":"k"}]}}"#,
            "vm.selectors[0].values",
            "missing_field",
        ),
        (
            r#"{"vm":{"id":"a","demand":{},"selectors":[{"key":"k","op":"exists","values":["v"]}]}}"#,
            "vm.selectors[0].values",
            "conflicting_fields",
        ),
        (
            r#"{"vm":{"id":"a","demand":{},"selectors":[{"key":"k","op":"like"}]}}"#,
            "vm.selectors[0].op",
            "unknown_choice",
        ),
        (
            r#"{"vm":{"id":"a","demand":{},"tolerations":[{"op":"exists","value":"v"}]}}"#,
            "vm.tolerations[0].value",
            "conflicting_fields",
        ),
        (
            r#"{"vm":{"id":"a","demand":{},"affinity":[{"kind":"apart"}]}}"#,
            "vm.affinity[0]",
            "missing_field",
        ),
        (
            r#"{"vm":{"id":"a","demand":{},"affinity":[{"kind":"apart","vm":"x","group":"y"}]}}"#,
            "vm.affinity[0]",
            "conflicting_fields",
        ),
        (
            r#"{"vm":{"id":"a","demand":{},"affinity":[{"kind":"near","vm":"x"}]}}"#,
            "vm.affinity[0].kind",
            "unknown_choice",
        ),
        (
            r#"{"vm":{"id":"a","demand":{},"affinity":[{"kind":"apart","vm":"x","level":"row"}]}}"#,
            "vm.affinity[0].level",
            "unknown_choice",
        ),
        (
            r#"{"vm":{"id":"a","demand":{},"affinity":[{"kind":"apart","vm":"x","level":"label:"}]}}"#,
            "vm.affinity[0].level",
            "invalid_name",
        ),
        (
            r#"{"vm":{"id":"a","demand":{},"affinity":[{"kind":"apart","vm":"x","weight":0}]}}"#,
            "vm.affinity[0].weight",
            "number_too_small",
        ),
        (
            r#"{"vm":{"id":"a","demand":{},"spread":[{"group":"g"}]}}"#,
            "vm.spread[0].level",
            "missing_field",
        ),
        (
            r#"{"vm":{"id":"a","demand":{},"spread":[{"group":"g","level":"zone","max_skew":0}]}}"#,
            "vm.spread[0].max_skew",
            "number_too_small",
        ),
        (r#"{"vm":{"id":"a","demand":{},"data":[{"weight":1}]}}"#, "vm.data[0]", "missing_field"),
        (
            r#"{"vm":{"id":"a","demand":{},"data":[{"host":"h","weight":1001}]}}"#,
            "vm.data[0].weight",
            "number_too_large",
        ),
        (
            r#"{"vm":{"id":"a","demand":{},"hints":{"lifetime":1}}}"#,
            "vm.hints.lifetime",
            "unknown_field",
        ),
        (r#"{"vm":{"id":"a","demand":{},"generation":1}}"#, "vm.generation", "read_only_field"),
    ]);
}

#[test]
fn host_bodies_are_refused_by_field() {
    check::<cluster::Host>(&[
        (r#"{"id":"h"}"#, "capacity", "missing_field"),
        (r#"{"capacity":{}}"#, "id", "missing_field"),
        (r#"{"id":"h","capacity":{},"state":"broken"}"#, "state", "unknown_choice"),
        (r#"{"id":"h","capacity":{},"free":{}}"#, "free", "read_only_field"),
        (r#"{"id":"h","capacity":{},"zone":""}"#, "zone", "invalid_name"),
        (r#"{"id":"h","capacity":{},"taints":[{"key":"k"}]}"#, "taints[0].effect", "missing_field"),
        (
            r#"{"id":"h","capacity":{"cpu_millis":1},"reserved":{"cpu_millis":2}}"#,
            "reserved.cpu_millis",
            "exceeds_capacity",
        ),
        (
            r#"{"id":"h","capacity":{},"overcommit_permille":{"cpu_millis":1.5}}"#,
            "overcommit_permille.cpu_millis",
            "fractional_number",
        ),
        (
            r#"{"id":"h","capacity":{},"overcommit_permille":{"cpu_millis":0}}"#,
            "overcommit_permille.cpu_millis",
            "number_too_small",
        ),
        (
            r#"{"id":"h","capacity":{},"benchmark_permille":0}"#,
            "benchmark_permille",
            "number_too_small",
        ),
        (
            r#"{"id":"h","capacity":{},"price":{"kind":"free","micros_per_hour":1}}"#,
            "price.kind",
            "unknown_choice",
        ),
        (r#"{"id":"h","capacity":{},"price":{}}"#, "price.micros_per_hour", "missing_field"),
        (
            r#"{"id":"h","capacity":{},"power":{"idle_mw":9,"peak_mw":5}}"#,
            "power.peak_mw",
            "number_too_small",
        ),
        (r#"{"id":"h","capacity":{},"power":{"idle_mw":9}}"#, "power.peak_mw", "missing_field"),
        (
            r#"{"id":"h","capacity":{},"power":{"table_mw":[1,2]}}"#,
            "power.table_mw",
            "too_few_items",
        ),
        (
            r#"{"id":"h","capacity":{},"power":{"idle_mw":1,"table_mw":[1,2,3,4,5,6,7,8,9,10,11]}}"#,
            "power.idle_mw",
            "conflicting_fields",
        ),
        (
            r#"{"id":"h","capacity":{},"latencies":[{"region":"r","latency_us":4294967296}]}"#,
            "latencies[0].latency_us",
            "number_too_large",
        ),
        (
            r#"{"id":"h","capacity":{},"failure_ppm_per_year":1000001}"#,
            "failure_ppm_per_year",
            "number_too_large",
        ),
        (
            r#"{"id":"h","capacity":{},"hardware":{"gpus":[{"model":"A","memory_mib":1,"pcie_port":0}]}}"#,
            "hardware.gpus[0].pcie_port",
            "unknown_reference",
        ),
        (
            r#"{"id":"h","capacity":{},"hardware":{"pcie_ports":[{"parent":0,"bandwidth_mbps":1}]}}"#,
            "hardware.pcie_ports[0].parent",
            "unknown_reference",
        ),
    ]);
}

#[test]
fn the_other_bodies_are_refused_by_field() {
    check::<BatchRequest>(&[
        ("{}", "vms", "missing_field"),
        (r#"{"vms":[]}"#, "vms", "too_few_items"),
        (
            r#"{"vms":[{"id":"a","demand":{}},{"id":"b","demand":{}},{"id":"a","demand":{}}]}"#,
            "vms[2].id",
            "duplicate_item",
        ),
        (r#"{"vms":[{"id":"a","demand":{}},{"id":"b"}]}"#, "vms[1].demand", "missing_field"),
        (r#"{"vms":[{"id":"a","demand":{}}],"atomic":1}"#, "atomic", "wrong_type"),
    ]);
    check::<AdoptRequest>(&[
        (r#"{"id":"a","demand":{}}"#, "host_id", "missing_field"),
        (r#"{"id":"a","demand":{},"host_id":"h","host":"h"}"#, "host", "unknown_field"),
    ]);
    check::<ResizeRequest>(&[
        ("{}", "demand", "missing_field"),
        (r#"{"demand":{}}"#, "demand", "too_few_items"),
        (r#"{"demand":{"memory_mib":-1}}"#, "demand.memory_mib", "negative_number"),
    ]);
    check::<Weights>(&[
        ("{}", "$", "number_too_small"),
        (r#"{"fit":0,"cost":0}"#, "$", "number_too_small"),
        (r#"{"fit":10001}"#, "fit", "number_too_large"),
        (r#"{"fit":1,"energy":1}"#, "energy", "unknown_field"),
        (r#"{"fit":0.5}"#, "fit", "fractional_number"),
    ]);
    check::<ExplainRequest>(&[
        ("{}", "vm", "missing_field"),
        (r#"{"vm":{"id":"a"}}"#, "vm.demand", "missing_field"),
        (r#"{"vm":{"id":"a","demand":{}},"vm_id":"a"}"#, "vm", "conflicting_fields"),
        (r#"{"vm":{"id":"a","demand":{}},"tenant":"t"}"#, "tenant", "conflicting_fields"),
        (r#"{"vm_id":"a b"}"#, "vm_id", "invalid_name"),
        (r#"{"vm_id":"a","host":"h"}"#, "host", "unknown_field"),
        (r#"{"vm_id":"a","host_id":7}"#, "host_id", "wrong_type"),
    ]);
    check::<Document>(&[
        (r#"{"waves":[{}]}"#, "waves[0].steps", "missing_field"),
        (r#"{"waves":[{"steps":[{}]}]}"#, "waves[0].steps[0].action", "missing_field"),
        (
            r#"{"waves":[{"steps":[{"action":"swap"}]}]}"#,
            "waves[0].steps[0].action",
            "unknown_choice",
        ),
        (
            r#"{"waves":[{"steps":[{"action":"move","vm_id":"a"}]}]}"#,
            "waves[0].steps[0].host_id",
            "missing_field",
        ),
        (
            r#"{"waves":[{"steps":[{"action":"place","host_id":"h"}]}]}"#,
            "waves[0].steps[0].vm",
            "missing_field",
        ),
        (
            r#"{"waves":[{"steps":[{"action":"release","vm_id":"a","host_id":"h"}]}]}"#,
            "waves[0].steps[0].host_id",
            "conflicting_fields",
        ),
        (r#"{"snapshot":{}}"#, "snapshot.hosts", "missing_field"),
        (
            r#"{"snapshot":{"dimensions":["x","x"],"hosts":[]}}"#,
            "snapshot.dimensions",
            "duplicate_item",
        ),
        (
            r#"{"snapshot":{"hosts":[]},"decisions":[{"vm":{"id":"a","demand":{}},"host_id":"h","answer":{}}]}"#,
            "decisions[0].host_id",
            "conflicting_fields",
        ),
        (
            r#"{"snapshot":{"hosts":[]},"decisions":[{"vm":{"id":"a","demand":{}},"answer":{"rejections":{"capacity:cpu":1}}}]}"#,
            "decisions[0].answer.rejections[\"capacity:cpu\"]",
            "unknown_choice",
        ),
        (
            r#"{"snapshot":{"hosts":[]},"decisions":[{"vm":{"id":"a","demand":{}},"answer":{"outcome":"rejected","host_id":"h"}}]}"#,
            "decisions[0].answer.host_id",
            "conflicting_fields",
        ),
    ]);
}

#[test]
fn bodies_that_are_too_deep_too_long_or_too_many_are_refused() {
    let limits = Limits::single(full::dimensions());
    let fault = |body: String| {
        let faults = wire::read::<PlaceRequest>(body.as_bytes(), &limits).expect_err("too much");
        (faults[0].path.clone(), faults[0].code.clone())
    };
    let deep = format!("{{\"vm\":{}{}}}", "[".repeat(40), "]".repeat(40));
    let (path, code) = fault(deep);
    assert_eq!(
        (path.as_str(), code.as_ref()),
        (format!("vm{}", "[0]".repeat(31)).as_str(), "too_deep")
    );
    let vm = |rest: &str| format!("{{\"vm\":{{\"id\":\"a\",\"demand\":{{}},{rest}}}}}");
    let many = vm(&format!("\"groups\":[{}]", vec!["\"g\""; 10_001].join(",")));
    assert_eq!(fault(many), ("vm.groups".into(), "too_many_items".into()));
    let rules = vm(&format!("\"tolerations\":[{}]", vec!["{}"; 65].join(",")));
    assert_eq!(fault(rules), ("vm.tolerations".into(), "too_many_items".into()));
    let long = vm(&format!("\"pool\":\"{}\"", "x".repeat(257)));
    assert_eq!(fault(long), ("vm.pool".into(), "string_too_long".into()));
    let long = vm(&format!("\"pool\":\"{}\"", "x".repeat(129)));
    assert_eq!(fault(long), ("vm.pool".into(), "invalid_name".into()));
    let digits = vm(&format!("\"hints\":{{\"expected_lifetime_s\":1{}}}", "0".repeat(300)));
    assert_eq!(fault(digits), ("vm.hints.expected_lifetime_s".into(), "number_too_large".into()));
}

#[test]
fn all_faults_of_a_body_are_reported_at_once_and_their_number_is_bounded() {
    let limits = Limits::single(full::dimensions());
    let body =
        br#"{"vm":{"id":"a b","demand":{"cpu_milis":-1},"priority":"urgent"},"strateg":"ffd"}"#;
    let faults = wire::read::<PlaceRequest>(body, &limits).expect_err("five faults");
    let shown: Vec<String> = faults.iter().map(ToString::to_string).collect();
    expect_test::expect![[r#"
        vm.id: "a b" is not a name: name has ' ' in it; allowed are letters, digits and . _ : / @ -; send 1 to 128 letters, digits and . _ : / @ -, starting with a letter or digit (invalid_name)
        vm.demand.cpu_milis: "cpu_milis" is not a declared dimension; did you mean "cpu_millis"? (unknown_dimension)
        vm.demand.cpu_milis: -1 is negative; send an integer from 0 to 2147483647 (negative_number)
        vm.priority: "urgent" is not one of the choices; use one of: critical, high, normal, low, scavenger (unknown_choice)
        strateg: there is no field "strateg" here; did you mean "strategy"? (unknown_field)"#]].assert_eq(&shown.join("\n"));
    let wrong: Vec<String> = (0..500).map(|row| format!("\"field{row}\":1")).collect();
    let faults = wire::read::<PlaceRequest>(format!("{{{}}}", wrong.join(",")).as_bytes(), &limits);
    assert_eq!(faults.expect_err("500 unknown fields").len(), limits.faults);
}
