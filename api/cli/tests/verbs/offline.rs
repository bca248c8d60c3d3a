//! `verify`, which needs no service.

use crate::service::{Ran, Service, TWO_HOSTS, fed, novaplace, run};
use serde_json::Value;
use std::fs;
use tempfile::TempDir;

const SNAPSHOT: &str = r#"{"revision":7,"hosts":[
    {"id":"h1","capacity":{"cpu_millis":1000}},
    {"id":"h2","capacity":{"cpu_millis":400}}],
  "vms":[{"vm":{"id":"a","demand":{"cpu_millis":500}},"host_id":"h1"}]}"#;

fn verified(decisions: &str) -> Ran {
    let document = format!("{{\"snapshot\":{SNAPSHOT},\"decisions\":{decisions}}}");
    fed(novaplace().args(["verify", "-"]), &document)
}

fn claim(vm: &str, cpu_millis: u32, host: &str) -> String {
    format!(
        "{{\"vm\":{{\"id\":\"{vm}\",\"demand\":{{\"cpu_millis\":{cpu_millis}}}}},\"host_id\":{host}}}"
    )
}

#[test]
fn claims_are_judged_with_those_before_them_in_place() {
    let (b, c) = (claim("b", 300, "\"h1\""), claim("c", 300, "\"h1\""));
    verified(&format!("[{b}]")).ends(0).says(&["accepted: 0 violations", "1 decisions"]);
    verified(&format!("[{c}]")).ends(0);
    verified(&format!("[{b},{c}]")).ends(1).says(&["refused", "vm default/c on host h1", "200"]);
    let twice = claim("a", 1, "\"h2\"");
    verified(&format!("[{twice}]")).ends(1).says(&["placed on host h1 already"]);
}

#[test]
fn that_no_host_can_take_a_vm_is_a_claim_too() {
    verified(&format!("[{}]", claim("b", 501, "null"))).ends(0);
    let wrong = verified(&format!("[{}]", claim("b", 400, "null"))).ends(1);
    wrong.says(&["on host h1", "on host h2", "although this host can take it"]);
}

#[test]
fn a_snapshot_that_cannot_be_is_refused() {
    let both = SNAPSHOT.replace("500", "1500");
    let ran =
        fed(novaplace().args(["verify", "-", "-o", "json"]), &format!("{{\"snapshot\":{both}}}"));
    let report = ran.ends(1).json();
    assert_eq!(report["accepted"], false);
    assert_eq!(report["violations"][0]["host"], "h1");
}

#[test]
fn a_wrong_document_is_an_error_with_every_path() {
    let ran = fed(novaplace().args(["verify", "-"]), r#"{"snapshot":{"hosts":[{"id":""}]},"x":1}"#);
    ran.ends(255).says(&["snapshot.hosts[0].id", "snapshot.hosts[0].capacity", "x:"]);
}

#[test]
fn snapshot_and_plan_may_be_two_files() {
    let dir = TempDir::new().expect("a directory");
    let path = |name: &str| dir.path().join(name).display().to_string();
    let claims = format!("[{}]", claim("b", 300, "\"h2\""));
    fs::write(path("s"), SNAPSHOT).expect("written");
    fs::write(path("array"), &claims).expect("written");
    fs::write(path("object"), format!("{{\"decisions\":{claims}}}")).expect("written");
    fs::write(path("neither"), "{}").expect("written");
    let verify = |plan: &str| run(&["verify", "--snapshot", &path("s"), "--plan", &path(plan)]);
    verify("array").ends(0).says(&["1 decisions"]);
    verify("object").ends(0).says(&["1 decisions"]);
    verify("neither").ends(255).says(&["neither a field \"decisions\" nor"]);
    verify("missing").ends(255).says(&["cannot read"]);
}

#[test]
fn answers_of_the_service_are_accepted_until_they_are_tampered_with() {
    let (_dir, service) = Service::with_two_hosts();
    let host = |line: &str| {
        let mut host: Value = serde_json::from_str(line).expect("JSON");
        let id = host["id"].as_str().expect("an id").to_owned();
        let known = service.run(&["host", "get", &id, "-o", "json"]).json();
        host["incarnation"] = known["incarnation"].clone();
        host.to_string()
    };
    let hosts: Vec<String> = TWO_HOSTS.trim().lines().map(host).collect();
    let revision = service.run(&["state", "hash", "-o", "json"]).json()["revision"].clone();
    let mut claims = Vec::new();
    for (id, cpu_millis) in [("a", 7_000), ("b", 9_000), ("c", 9_000)] {
        let vm = format!("{{\"id\":\"{id}\",\"demand\":{{\"cpu_millis\":{cpu_millis}}}}}");
        let answer = service.fed(&["vm", "place", "--file", "-", "-o", "json"], &vm).out;
        claims.push(format!("{{\"vm\":{vm},\"answer\":{answer}}}"));
    }
    let document = format!(
        "{{\"snapshot\":{{\"revision\":{revision},\"dimensions\":[\"gpu_slots\"],\"hosts\":[{}]}},\
         \"decisions\":[{}]}}",
        hosts.join(","),
        claims.join(",")
    );
    fed(novaplace().args(["verify", "-"]), &document).ends(0).says(&["3 decisions"]);
    let tampered = document.replace("\"hosts_considered\":2", "\"hosts_considered\":3");
    fed(novaplace().args(["verify", "-"]), &tampered).ends(1).says(&["3 hosts are said"]);
}
