//! `solve placement` with engines that keep many placements, and its fronts; needs no service.

use crate::service::run;
use std::fs;
use tempfile::TempDir;

/// Four VMs on three hosts where two would do; the first two keep apart.
const INSTANCE: &str = r#"{"resources":["cpu_milli","mem_mb"],
    "flavours":[[1000,2048],[2000,1024]],"vms":[0,1,1,0],
    "hosts":[{"cap":[4000,8192],"idle_mw":100,"max_mw":300},
             {"cap":[4000,8192],"idle_mw":150,"max_mw":350},
             {"cap":[4000,8192],"idle_mw":120,"max_mw":330}],
    "groups":[[0,1]],"current":[0,1,2,2],"w_imb_mw":1000}"#;

#[test]
fn a_front_is_written_point_by_point() {
    let dir = TempDir::new().expect("a directory");
    let file = |name: &str| dir.path().join(name).display().to_string();
    fs::write(file("instance"), INSTANCE).expect("a file");
    let asked = ["solve", "placement", "--instance", &file("instance"), "--engine", "nsga2"];
    let how = ["--population", "10", "--generations", "20", "--front", &file("front")];
    let told = run(&[&asked[..], &how, &["--output", &file("best")]].concat()).ends(0).json();
    assert_eq!((&told["engine"], &told["evaluations"]), (&"nsga2".into(), &200.into()), "{told}");
    for key in ["objective", "bound", "gap", "stop_reason", "seconds", "delta_evaluations"] {
        assert!(!told[key].is_null(), "{key}: {told}");
    }
    let text = fs::read_to_string(file("front")).expect("a front");
    let front: Vec<serde_json::Value> = serde_json::from_str(&text).expect("JSON");
    assert_eq!(told["points"], front.len());
    assert!((2..=10).contains(&front.len()), "{text}");
    // Staying is a trade-off: nothing has fewer moves.
    assert!(front.iter().any(|point| point["assignment"] == serde_json::json!([0, 1, 2, 2])));
    let best = fs::read_to_string(file("best")).expect("the best point");
    let best: serde_json::Value = serde_json::from_str(&best).expect("JSON");
    assert!(front.iter().any(|point| point["assignment"] == best), "{best} {text}");
}

#[test]
fn a_seed_and_steps_are_one_answer_on_one_thread_or_two() {
    let dir = TempDir::new().expect("a directory");
    let file = |name: &str| dir.path().join(name).display().to_string();
    fs::write(file("instance"), INSTANCE).expect("a file");
    for engine in ["annealing", "genetic", "nsga2", "swarm", "lns", "auto"] {
        let answer = |threads: &str, start: &str| {
            let asked = ["solve", "placement", "--instance", &file("instance")];
            let how = ["--engine", engine, "--steps", "300", "--threads", threads];
            let told = ["--start", start, "--output", &file("out")];
            run(&[&asked[..], &how, &told].concat()).ends(0);
            fs::read_to_string(file("out")).expect("an answer")
        };
        for start in ["random", "current", "greedy"] {
            assert_eq!(answer("1", start), answer("2", start), "{engine} from {start}");
        }
    }
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let dir = TempDir::new().expect("a directory");
    let file = |name: &str| dir.path().join(name).display().to_string();
    fs::write(file("instance"), INSTANCE).expect("a file");
    let nowhere = INSTANCE.replace(r#""current":[0,1,2,2],"#, "");
    fs::write(file("nowhere"), nowhere).expect("a file");
    let ask = |instance: &str, rest: &[&str]| {
        run(&[&["solve", "placement", "--instance", &file(instance)], rest].concat())
    };
    let front = file("front");
    ask("instance", &["--engine", "lns", "--front", &front]).ends(2).says(&["--front is for"]);
    ask("instance", &["--population", "5"]).ends(2).says(&["--population is for --engine genetic"]);
    ask("instance", &["--generations", "5"]).ends(2).says(&["--generations is for --engine nsga2"]);
    ask("instance", &["--engine", "greedy", "--start", "random"]).ends(2).says(&["--start is for"]);
    ask("nowhere", &["--start", "current"]).ends(255).says(&["where it is now"]);
}
