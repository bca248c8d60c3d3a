//! `constraint list|show|set|delete` against a service.

use crate::service::{Service, fed, novaplace};
use tempfile::TempDir;

#[test]
fn constraints_are_set_listed_shown_and_deleted() {
    let dir = TempDir::new().expect("a directory");
    let service = Service::start(dir.path());
    let run = |arguments: &[&str], input: &str| {
        let mut command = novaplace();
        command.arg("constraint").args(arguments).args(["--server", &service.url]);
        fed(&mut command, input)
    };
    run(&["list"], "").ends(0).says(&["no constraints"]);
    run(&["list", "--types"], "").ends(0).says(&["min_domains", "keep_permille", "required"]);

    let limit = r#"{"type": "limit", "max": 2}"#;
    run(&["set", "two", "-", "--dry-run"], limit).ends(0).says(&["would be in force"]);
    run(&["list"], "").ends(0).says(&["no constraints"]);
    run(&["set", "two", "-"], limit).ends(0).says(&["two is in force, generation 1"]);
    run(&["list"], "").ends(0).says(&["two", "limit", r#""max":2"#]);
    run(&["show", "two"], "").ends(0).says(&["generation 1", r#""max": 2"#]);
    let shown = run(&["show", "two", "-o", "json"], "").ends(0).json();
    assert_eq!((&shown["name"], &shown["max"]), (&"two".into(), &2.into()));

    let fence = |zone: &str| {
        format!(
            r#"{{"type":"fence","hosts":{{"within":[{{"level":"zone","names":["{zone}"]}}]}}}}"#
        )
    };
    run(&["set", "in-a", "-"], &fence("a")).ends(0);
    run(&["set", "in-b", "-"], &fence("b"))
        .ends(255)
        .says(&["in-a, in-b", "constraints_contradict"]);
    run(&["set", "bad", "-"], r#"{"type": "limit"}"#).ends(255).says(&["max", "missing"]);

    run(&["delete", "two", "--dry-run"], "").ends(0).says(&["would no longer be in force"]);
    run(&["delete", "two"], "").ends(0).says(&["two is no longer in force"]);
    run(&["show", "two"], "").ends(255).says(&["constraint two is not known"]);
}
