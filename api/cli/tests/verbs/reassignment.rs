//! `solve roadef`, which needs no service.

use crate::service::run;
use std::fs;
use tempfile::TempDir;

/// Two machines, the first overloaded by two processes of which either may go.
const MODEL: &str = "1 0 10
    2 0 0 20 5 0 1 0 1 20 5 1 0
    2 1 0 1 0
    2 0 5 3 1 5 3
    0
    1 1 1";

#[test]
fn a_running_fleet_is_rebalanced_and_the_answer_is_written() {
    let dir = TempDir::new().expect("a directory");
    let file = |name: &str| dir.path().join(name).display().to_string();
    fs::write(file("model"), MODEL).expect("a file");
    fs::write(file("initial"), "0 0").expect("a file");
    let asked = ["solve", "roadef", "--model", &file("model"), "--initial", &file("initial")];
    let how = ["--output", &file("out"), "--steps", "20000", "--seed", "3"];
    let told = run(&[&asked[..], &how].concat()).ends(0).json();
    // One process moves: 3 for it, 1 for its service and 1 between the machines.
    assert_eq!((&told["initial"], &told["objective"]), (&50.into(), &5.into()), "{told}");
    assert_eq!((&told["moved"], &told["bound"]), (&1.into(), &0.into()), "{told}");
    let text = fs::read_to_string(file("out")).expect("an answer");
    assert!(["0 1\n", "1 0\n"].contains(&text.as_str()), "{text:?}");
}

#[test]
fn what_is_wrong_with_the_files_is_said() {
    let dir = TempDir::new().expect("a directory");
    let file = |name: &str| dir.path().join(name).display().to_string();
    fs::write(file("model"), MODEL).expect("a file");
    fs::write(file("short"), "0").expect("a file");
    let ask = |model: &str, initial: &str| {
        run(&["solve", "roadef", "--model", model, "--initial", initial, "--steps", "10"])
    };
    ask(&file("model"), &file("short")).ends(255).says(&["before the machine of a process"]);
    ask(&file("none"), &file("short")).ends(255).says(&["cannot read"]);
    ask(&file("short"), &file("short")).ends(255).says(&["ends after 1 numbers"]);
}
