//! `vm place|confirm|release|get|list|adopt|resize`, and `decision show` over HTTP.

use crate::service::Service;

#[test]
fn a_placement_is_told_with_its_score_its_alternatives_and_who_was_left_out() {
    let (_dir, service) = Service::with_two_hosts();
    let placed = service
        .run(&["vm", "place", "a", "--cpu-millis", "2000", "--memory-mib", "4096"])
        .ends(0)
        .says(&["default/a is placed on h", "score ", "locality", "█", "next best", "LESS BY"]);
    assert!(!placed.out.contains("left out"), "{}", placed.out);
    service
        .run(&["vm", "place", "b", "--dimension", "gpu_slots=2", "--strategy", "best_fit"])
        .ends(0)
        .says(&["placed on h2", "best_fit", "1 of 2 hosts left out", "capacity:gpu_slots"]);
    let show = service.run(&["vm", "get", "b"]).ends(0).says(&["default/b on h2", "gpu_slots"]);
    assert!(show.out.contains("placed"));
    let listed = service.run(&["vm", "list", "--host", "h2", "-o", "json"]).ends(0).json();
    assert!(listed["items"].as_array().is_some_and(|vms| !vms.is_empty()));
}

#[test]
fn no_room_is_an_answer_and_ends_with_1() {
    let (_dir, service) = Service::with_two_hosts();
    let ask = ["vm", "place", "big", "--cpu-millis", "99000"];
    service.run(&ask).ends(1).says(&["no host can take", "2 of 2 hosts", "capacity:cpu_millis"]);
    let json = service.run(&[&ask[..], &["-o", "json"]].concat()).ends(1).json();
    assert_eq!(json["outcome"], "rejected");
    let id = json["decision_id"].as_str().expect("an id").to_owned();
    service.run(&["decision", "show", &id]).ends(0).says(&["no host can take default/big", &id]);
    let shown = service.run(&["decision", "show", &id, "-o", "json"]).ends(0).json();
    assert_eq!(shown, json);
    service.run(&["decision", "show", "d999"]).ends(255).says(&["decision_not_found"]);
}

#[test]
fn a_file_is_a_vm_or_a_whole_request() {
    let (_dir, service) = Service::with_two_hosts();
    let vm = r#"{"id":"a","demand":{"cpu_millis":100},"selectors":[]}"#;
    service.fed(&["vm", "place", "--file", "-"], vm).ends(0).says(&["default/a is placed"]);
    let request = r#"{"vm":{"id":"b","tenant":"t","demand":{"cpu_millis":100}},"strategy":"ffd"}"#;
    service.fed(&["vm", "place", "--file", "-"], request).ends(0).says(&["t/b", "strategy ffd"]);
    let held = ["vm", "place", "--file", "-", "--hold-ttl-ms", "60000", "--strategy", "spread"];
    let other = request.replace("\"b\"", "\"c\"");
    service.fed(&held, &other).ends(0).says(&["t/c has its place held", "strategy spread"]);
    let wrong = r#"{"id":"d","demand":{"cpu_millis":-5}}"#;
    service.fed(&["vm", "place", "--file", "-"], wrong).ends(255).says(&[
        "vm.demand.cpu_millis",
        "-5",
        "negative_number",
    ]);
    service.fed(&["vm", "place", "--file", "-"], "[1]").ends(255).says(&["not a JSON object"]);
}

#[test]
fn a_dry_run_says_what_would_happen_and_does_nothing() {
    let (_dir, service) = Service::with_two_hosts();
    let hash = service.run(&["state", "hash"]).ends(0).out;
    let place = ["vm", "place", "a", "--cpu-millis", "100", "--dry-run"];
    service.run(&place).ends(0).says(&["would go to h", "dry run"]);
    service.run(&["vm", "get", "a"]).ends(255).says(&["default/a", "vm_not_found"]);
    let adopt = ["vm", "adopt", "a", "--host", "h1", "--cpu-millis", "1", "--dry-run"];
    service.run(&adopt).ends(0).says(&["default/a on h1"]);
    assert_eq!(service.run(&["state", "hash"]).out, hash);
}

#[test]
fn held_places_are_confirmed_or_given_back() {
    let (_dir, service) = Service::with_two_hosts();
    let hold = |id| ["vm", "place", id, "--cpu-millis", "100", "--hold-ttl-ms", "60000"];
    service.run(&hold("a")).ends(0).says(&["held on h", "novaplace vm confirm a"]);
    service.run(&["vm", "get", "a"]).ends(0).says(&["held by r1"]);
    service.run(&["vm", "confirm", "a"]).ends(0).says(&["a stays on h"]);
    service.run(&["vm", "confirm", "a"]).ends(0).says(&["for good already"]);
    service.run(&hold("b")).ends(0);
    service.run(&["vm", "release", "b", "--dry-run"]).ends(0).says(&["would be released"]);
    service.run(&["vm", "release", "b"]).ends(0).says(&["b released"]);
    service.run(&["vm", "release", "b"]).ends(255).says(&["vm_not_found"]);
}

#[test]
fn the_same_vm_again_is_the_same_answer_and_another_is_refused() {
    let (_dir, service) = Service::with_two_hosts();
    let first = service.run(&["vm", "place", "a", "--cpu-millis", "100", "-o", "json"]).ends(0);
    let again = service.run(&["vm", "place", "a", "--cpu-millis", "100", "-o", "json"]).ends(0);
    assert_eq!(first.json()["decision_id"], again.json()["decision_id"]);
    service.run(&["vm", "place", "a", "--cpu-millis", "200"]).ends(255).says(&["vm_exists"]);
}

#[test]
fn vms_are_resized_where_they_are_or_it_says_what_is_lacking() {
    let (_dir, service) = Service::with_two_hosts();
    service.run(&["vm", "adopt", "a", "--host", "h1", "--cpu-millis", "1000"]).ends(0);
    let grow = ["vm", "resize", "a", "--cpu-millis", "3000", "--memory-mib", "64"];
    service.run(&grow).ends(0).says(&["a has 3,000 cpu_millis and 64 memory_mib on h1"]);
    let much = ["vm", "resize", "a", "--cpu-millis", "9000"];
    service.run(&much).ends(1).says(&["does not fit", "lacks 1,000 cpu_millis", "keeps 3,000"]);
    let json = service.run(&[&much[..], &["-o", "json"]].concat()).ends(1).json();
    assert_eq!(json["outcome"], "does_not_fit");
    let far_more = ["vm", "resize", "a", "--cpu-millis", "900000"];
    service.run(&far_more).ends(1).says(&["no other host could take it at that size"]);
    service.run(&["vm", "adopt", "b", "--host", "h1", "--cpu-millis", "4000"]).ends(0);
    let some = ["vm", "resize", "a", "--cpu-millis", "4500"];
    service.run(&some).ends(1).says(&["lacks 500 cpu_millis", "it would fit on h2"]);
}

#[test]
fn running_vms_are_taken_in_one_by_one_or_by_file() {
    let (_dir, service) = Service::with_two_hosts();
    let one = ["vm", "adopt", "a", "--host", "h1", "--cpu-millis", "9000"];
    service.run(&one).ends(0).says(&["default/a on h1", "adopted, over capacity"]);
    let many = "{\"id\":\"b\",\"host_id\":\"h1\",\"demand\":{\"cpu_millis\":1}}\n\
                {\"id\":\"c\",\"host_id\":\"h9\",\"demand\":{\"cpu_millis\":1}}";
    service.fed(&["vm", "adopt", "--file", "-"], many).ends(1).says(&[
        "1 VMs accepted",
        "1 VMs refused",
        "[1] c",
        "host_not_found",
    ]);
    let vms = service.run(&["vm", "list"]).ends(0).says(&["over capacity"]);
    assert_eq!(vms.out.lines().count(), 3, "{}", vms.out);
}
