//! Kills a real process with SIGKILL under load, again and again, and asks the log what is left.

use cluster::Revision;
use engine::{Command, Engine, Entry, Options, State, apply, check_sums};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{ChildStdout, Stdio};
use std::time::Duration;
use store::{CommandLog, EmbeddedLog};

const KILLS: u64 = 50;
const SEED: u64 = 2;

#[test]
fn nothing_acknowledged_is_lost_or_doubled_by_fifty_kills() {
    println!("seed {SEED}");
    let mut dice = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut acknowledged: Vec<Ack> = Vec::new();
    for round in 0..KILLS {
        acknowledged.extend(run_and_kill(dir.path(), round, dice.random_range(1..120)));
        check(dir.path(), &acknowledged, round);
    }
    let count = acknowledged.len();
    println!("{KILLS} kills, {count} acknowledged operations, all there, all once");
    assert!(count > 1_000, "the load was too small to prove anything: {count} answers");
}

/// What the process said before it died.
struct Ack {
    actor: String,
    revision: u64,
    what: String,
}

fn run_and_kill(dir: &Path, round: u64, after_ms: u64) -> Vec<Ack> {
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_kill-driver"))
        .args([dir.as_os_str(), round.to_string().as_ref()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the driver starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let ready = lines.next().expect("the driver opens the log").expect("a line");
    assert_eq!(ready, "ready", "round {round}");
    let reader = std::thread::spawn(move || read_acks(lines));
    std::thread::sleep(Duration::from_millis(after_ms));
    child.kill().expect("SIGKILL");
    child.wait().expect("the driver is gone");
    reader.join().expect("the reader ends with the pipe")
}

fn read_acks(lines: std::io::Lines<BufReader<ChildStdout>>) -> Vec<Ack> {
    let parse = |line: String| {
        let mut words = line.splitn(3, ' ');
        let actor = words.next()?.to_string();
        let revision = words.next()?.parse().ok()?;
        Some(Ack { actor, revision, what: words.next()?.to_string() })
    };
    lines.map_while(Result::ok).filter_map(parse).collect()
}

/// Every acknowledged operation is in the log at its revision with its content, and once; and
/// the recovered state is the one that the whole log leads to.
fn check(dir: &Path, acknowledged: &[Ack], round: u64) {
    let log = EmbeddedLog::open(dir.join(store::LOG_FILE), store::Options::default())
        .expect("the log opens");
    let head = log.reader().verify(1).expect("the hash chain holds");
    let mut entries: BTreeMap<u64, Entry> = BTreeMap::new();
    let mut times_seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut replayed = State::new();
    log.reader()
        .scan(1, &mut |record| {
            let entry = Entry::decode(&record.body).expect("a readable entry");
            apply(&mut replayed, &entry).expect("an entry that applies");
            assert_eq!(replayed.hash(), record.state_hash, "revision {}", record.revision);
            *times_seen.entry(entry.actor.to_string()).or_default() += 1;
            entries.insert(record.revision, entry);
            ControlFlow::Continue(())
        })
        .expect("the log reads");
    for ack in acknowledged {
        let context = format!("round {round}, {} at {}: {}", ack.actor, ack.revision, ack.what);
        let entry = entries.get(&ack.revision).unwrap_or_else(|| panic!("lost: {context}"));
        assert_eq!(entry.actor.as_str(), ack.actor, "{context}");
        assert_eq!(described(&entry.command), ack.what, "{context}");
        assert_eq!(times_seen[&ack.actor], 1, "doubled: {context}");
    }
    let engine = Engine::open(log, Options { snapshot_every: 0, retain: u64::MAX });
    let engine = engine.expect("the log recovers");
    engine.read(|recovered| {
        assert_eq!(recovered.revision(), Revision(head.revision));
        assert_eq!(recovered.hash(), replayed.hash(), "round {round}: recovery equals replay");
        assert_eq!(recovered.freeze().full_hash(), replayed.freeze().full_hash());
        check_sums(recovered).expect("usage is the sum of the VMs");
        let report = verify::snapshot(&recovered.snapshot());
        assert!(report.violations.is_empty(), "round {round}: {:?}", report.violations);
    });
}

fn described(command: &Command) -> String {
    match command {
        Command::Place(placing) => match placing.decision.host() {
            Some(host) => format!("placed {host}"),
            None => "rejected".into(),
        },
        Command::RemoveVm { .. } => "removed".into(),
        Command::Resize(_) => "resized".into(),
        other => format!("{other:?}"),
    }
}
