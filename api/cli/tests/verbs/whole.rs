//! The cluster as a whole: `weights`, `capacity`, `state hash`, `events`.

use crate::service::Service;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn a_weight_is_set_and_the_others_stay() {
    let (_dir, service) = Service::with_two_hosts();
    let before = service.run(&["weights", "get", "-o", "json"]).ends(0).json();
    service.run(&["weights", "set", "fit=77", "--dry-run"]).ends(0).says(&["77"]);
    assert_eq!(service.run(&["weights", "get", "-o", "json"]).json(), before);
    service.run(&["weights", "set", "fit=77", "cost=0"]).ends(0).says(&["WEIGHT", "77"]);
    let mut after = service.run(&["weights", "get", "-o", "json"]).json();
    assert_eq!((&after["fit"], &after["cost"]), (&77.into(), &0.into()));
    after["fit"] = before["fit"].clone();
    after["cost"] = before["cost"].clone();
    assert_eq!(after, before);
    service.run(&["weights", "set", "fit=10001"]).ends(255).says(&["fit: 10001 is more than"]);
    service.run(&["weights", "set", "beauty=1"]).ends(2).says(&["no weight \"beauty\"", "fit"]);
}

#[test]
fn capacity_sums_hosts_by_pool() {
    let (_dir, service) = Service::with_two_hosts();
    service.run(&["capacity"]).ends(0).says(&[
        "2 hosts (2 available)",
        "24,000",
        "pool p: 1 hosts",
    ]);
    let json = service.run(&["capacity", "-o", "json"]).ends(0).json();
    assert_eq!(json["capacity"]["gpu_slots"], 4);
}

#[test]
fn the_state_hash_changes_with_the_state_and_is_known_for_the_past() {
    let (_dir, service) = Service::with_two_hosts();
    let before = service.run(&["state", "hash", "-o", "json"]).ends(0).json();
    service.run(&["vm", "place", "a", "--cpu-millis", "1"]).ends(0);
    let after = service.run(&["state", "hash", "-o", "json"]).ends(0).json();
    assert_ne!(before["hash"], after["hash"]);
    let revision = before["revision"].to_string();
    let past = service.run(&["state", "hash", "--revision", &revision, "-o", "json"]).ends(0);
    assert_eq!(past.json(), before);
    service.run(&["state", "hash", "--revision", "99"]).ends(255).says(&["revision_gone"]);
}

#[test]
fn events_are_told_from_a_revision_on_and_followed() {
    let (_dir, service) = Service::with_two_hosts();
    let revision = service.run(&["state", "hash", "-o", "json"]).json()["revision"].to_string();
    let since = ["events", "--since", &revision];
    let mut follow = service.command(&["events", "--follow", "-o", "json", "--since", &revision]);
    let mut follower = follow.stdout(Stdio::piped()).spawn().expect("started");
    let mut lines = BufReader::new(follower.stdout.take().expect("piped")).lines();
    for id in ["a", "b"] {
        service.run(&["vm", "place", id, "--cpu-millis", "1"]).ends(0);
        let line = lines.next().expect("goes on").expect("UTF-8");
        let event: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!((&event["kind"], &event["vm_id"]), (&"vm_placed".into(), &id.into()));
    }
    follower.kill().expect("alive");
    follower.wait().expect("ended");
    let told = service.run(&since).ends(0).says(&["vm_placed", "vm default/a", "vm default/b"]);
    assert_eq!(told.out.lines().count(), 2, "{}", told.out);
    service.run(&["events", "--since", "999"]).ends(255).says(&["invalid_query"]);
}
