//! `policy check`, which needs no service, and a service that reads policies from a directory.

use crate::service::{Service, fed, novaplace, run};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const ONLY_ZONE_B: &str = r#"policy "Only zone b" {
  parameters { param "zone" { type = "string" default = "b" } }
  rules {
    rule "elsewhere" {
      when { candidateNode.zone != param.zone }
      then { filter "not in the zone" }
    }
  }
}
"#;

const MISSPELT: &str = r#"policy "Only zone b" {
  rules {
    rule "elsewhere" {
      when { candidateNode.zone != param.zone }
      than { filter "not in the zone" }
    }
  }
}
"#;

/// Puts a file in place as a whole.
fn replace(directory: &Path, name: &str, text: &str) {
    fs::write(directory.join("next"), text).expect("written");
    fs::rename(directory.join("next"), directory.join(name)).expect("renamed");
}

#[test]
fn checking_shows_every_mistake_with_its_line() {
    let dir = TempDir::new().expect("a directory");
    let path = |name: &str, text: &str| {
        fs::write(dir.path().join(name), text).expect("written");
        dir.path().join(name).to_string_lossy().into_owned()
    };
    let (good, bad) = (path("good.policy", ONLY_ZONE_B), path("bad.policy", MISSPELT));
    run(&["policy", "check", &good]).ends(0).says(&["good", "only-zone-b, 1 rules"]);
    run(&["policy", "check", &good, &bad]).ends(1).says(&[
        "bad.policy:5:7: error[unknown-key]",
        "5 |       than { filter \"not in the zone\" }",
        "did you mean then?",
        "param.zone",
    ]);
    let told = run(&["policy", "check", &good, &bad, "-o", "json"]).ends(1).json();
    assert_eq!(told["valid"], false);
    assert_eq!(told["files"][0]["id"], "only-zone-b");
    assert!(told["files"][0]["cost"]["per_host"].as_u64() > Some(0));
    let errors = told["files"][1]["errors"].as_array().expect("a list");
    let lines: Vec<_> = errors.iter().map(|error| error["line"].as_u64()).collect();
    assert!(lines.contains(&Some(4)) && lines.contains(&Some(5)), "{told}");
    run(&["policy", "check", "absent.policy"]).ends(255).says(&["cannot read absent.policy"]);
    run(&["policy", "check"]).ends(2);
}

#[test]
fn doubts_are_mistakes_where_that_is_wanted() {
    let twice = format!("# the same\n{ONLY_ZONE_B}");
    let check = |arguments: &[&str], text: &str| {
        let all = [&["policy", "check", "-"], arguments].concat();
        fed(novaplace().args(all), text)
    };
    check(&["--deny-warnings"], &twice).ends(0);
    let yaml = "policy: Never here\nrules:\n  - rule: one\n    when: node.vm_count > 3\n    then:\n      - filter: full\n";
    check(&[], yaml).ends(0).says(&["warning[no-end-marker]"]);
    check(&["--deny-warnings"], yaml).ends(1);
    check(&["--deny-warnings"], &format!("{yaml}...\n")).ends(0);
}

#[test]
fn files_that_cannot_be_active_together_are_told_so() {
    let dir = TempDir::new().expect("a directory");
    let paths = ["a.policy", "b.policy"].map(|name| {
        fs::write(dir.path().join(name), ONLY_ZONE_B).expect("written");
        dir.path().join(name).to_string_lossy().into_owned()
    });
    let both = run(&["policy", "check", &paths[0], &paths[1]]).ends(1);
    both.says(&["policy only-zone-b is active twice"]);
}

/// The hosts of this many VMs that were just placed.
fn hosts(service: &Service, first: usize) -> Vec<String> {
    let place = |number: usize| {
        let id = format!("vm-{number}");
        let placed = service.run(&["vm", "place", &id, "--cpu-millis", "1", "-o", "json"]).ends(0);
        placed.json()["host_id"].as_str().expect("a host").to_owned()
    };
    (first..first + 3).map(place).collect()
}

#[test]
fn a_directory_of_policies_counts_from_the_first_request_on_and_survives_a_kill() {
    let (data, policies) = (TempDir::new().expect("made"), TempDir::new().expect("made"));
    let directory = policies.path().to_string_lossy().into_owned();
    replace(policies.path(), "zone.policy", ONLY_ZONE_B);
    replace(policies.path(), "broken.policy", MISSPELT);
    let service = Service::start_with(data.path(), &["--policies", &directory]);
    service.fed(&["host", "import", "-"], crate::service::TWO_HOSTS).ends(0);
    assert_eq!(hosts(&service, 0), ["h2"; 3]);
    // The other zone, within a second or so.
    replace(policies.path(), "zone.policy", &ONLY_ZONE_B.replace("\"b\" }", "\"a\" }"));
    let started = Instant::now();
    let mut number = 10;
    while hosts(&service, number) != ["h1"; 3] {
        assert!(started.elapsed() < Duration::from_secs(30), "the new text is not in force");
        number += 3;
    }
    // Broken, then killed: what was in force still is.
    replace(policies.path(), "zone.policy", "policy \"");
    service.kill();
    let service = Service::start_with(data.path(), &["--policies", &directory]);
    assert_eq!(hosts(&service, 1_000), ["h1"; 3]);
    let metrics = ureq::get(format!("{}/metrics", service.url)).call().expect("answered");
    let metrics = metrics.into_body().read_to_string().expect("text");
    assert!(metrics.contains("policy_files_total{outcome=\"rejected\"} 2"), "{metrics}");
}

#[test]
fn a_directory_that_is_not_there_keeps_the_service_from_starting() {
    let data = TempDir::new().expect("a directory");
    let serve = ["serve", "--listen", "127.0.0.1:0", "--policies", "no-such-directory"];
    let ended = fed(novaplace().args(serve).arg("--data-dir").arg(data.path()), "").ends(255);
    ended.says(&["cannot read policies in no-such-directory"]);
}

#[test]
fn the_policy_bench_gives_its_figures_as_json() {
    let report = run(&["bench", "policy", "--hosts", "200", "--json"]).ends(0).json();
    let keys = ["evaluate_p50_ms", "evaluate_p99_ms", "upstream_ms", "speedup_over_upstream"];
    assert!(keys.iter().all(|key| report[*key].as_f64() > Some(0.0)), "{report}");
    assert_eq!((&report["hosts"], &report["seed"]), (&Value::from(200), &Value::from(1)));
}

#[test]
fn policies_are_installed_activated_tuned_and_rolled_back() {
    let (_data, service) = Service::with_two_hosts();
    let dir = TempDir::new().expect("a directory");
    let file = dir.path().join("zone.policy").to_string_lossy().into_owned();
    fs::write(&file, ONLY_ZONE_B).expect("written");
    service.run(&["policy", "list"]).ends(0).says(&["no policies"]);
    let dry = service.run(&["policy", "install", &file, "--activate", "--dry-run"]).ends(0);
    dry.says(&["only-zone-b would be active, version 1"]);
    service.run(&["policy", "install", &file]).ends(0).says(&["only-zone-b is inactive"]);
    let wanted = ["policy", "activate", "only-zone-b", "--priority", "-3", "--set", "zone=a"];
    service.run(&wanted).ends(0).says(&["only-zone-b is active", "priority -3"]);
    assert_eq!(hosts(&service, 0), ["h1"; 3]);
    let tune = ["policy", "tune", "only-zone-b", "--set", "zone=b", "--description", "moved"];
    service.run(&tune).ends(0).says(&["priority -3"]);
    assert_eq!(hosts(&service, 10), ["h2"; 3]);
    let listed = service.run(&["policy", "list", "--type", "placement"]).ends(0);
    listed.says(&["POLICY", "only-zone-b", "active", "-3"]);
    let shown = service.run(&["policy", "show", "only-zone-b"]).ends(0);
    shown.says(&["Only zone b", "PARAMETER", "zone", "rule \"elsewhere\""]);
    let json = service.run(&["policy", "show", "only-zone-b", "-o", "json"]).ends(0).json();
    assert_eq!((&json["version"], &json["status"]), (&Value::from(1), &Value::from("active")));
    // A second version, and back.
    fs::write(&file, ONLY_ZONE_B.replace("!=", "==")).expect("written");
    service.run(&["policy", "install", &file]).ends(0).says(&["active, version 2"]);
    assert_eq!(hosts(&service, 20), ["h1"; 3]);
    service.run(&["policy", "rollback", "only-zone-b", "1"]).ends(0).says(&["version 3"]);
    assert_eq!(hosts(&service, 30), ["h2"; 3]);
    service.run(&["policy", "deactivate", "only-zone-b"]).ends(0).says(&["is inactive"]);
    // What is wrong is said before or by the service.
    fs::write(&file, MISSPELT).expect("written");
    service.run(&["policy", "install", &file]).ends(1).says(&["error[unknown-key]"]);
    service.run(&["policy", "rollback", "only-zone-b", "9"]).ends(255).says(&["version 9"]);
    service.run(&["policy", "show", "absent"]).ends(255).says(&["absent", "not found"]);
    service.run(&["policy", "list", "--type", "beauty"]).ends(2).says(&["placement, migration"]);
}

#[test]
fn a_rejected_file_is_listed_with_its_mistakes() {
    let (data, policies) = (TempDir::new().expect("made"), TempDir::new().expect("made"));
    replace(policies.path(), "broken.policy", MISSPELT);
    let directory = policies.path().to_string_lossy().into_owned();
    let service = Service::start_with(data.path(), &["--policies", &directory]);
    let listed = service.run(&["policy", "list"]).ends(0);
    listed.says(&["no policies", "broken.policy is not in force", "5:7 unknown-key"]);
    let json = service.run(&["policy", "list", "-o", "json"]).ends(0).json();
    assert_eq!(json["rejected_files"][0]["file"], "broken.policy");
}
