//! Kills the service with SIGKILL under load, again and again, and asks it what is left.

use crate::client::Client;
use crate::ledger::{Known, Ledger};
use crate::process::Process;
use cluster::Revision;
use engine::{Command, Engine, Entry, Options, State, apply, check_sums};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;
use store::{CommandLog, EmbeddedLog};

const KILLS: u64 = 50;
const CLIENTS: u64 = 8;
const HOSTS: u64 = 12;
/// Often enough that kills hit every phase of a snapshot; all history is kept for the replay.
const SETTINGS: [&str; 6] =
    ["--snapshot-every", "300", "--retain", "18446744073709551615", "--log-level", "info"];

#[test]
fn nothing_acknowledged_over_http_is_lost_or_doubled_by_fifty_kills() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(3);
    println!("seed {seed}; repeat with SEED={seed}");
    let mut dice = Xoshiro256PlusPlus::seed_from_u64(seed);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut ledgers: Vec<Ledger> = (0..CLIENTS).map(Ledger::new).collect();
    let mut replay = Replay::default();
    let mut settled = 0;
    for round in 0..=KILLS {
        let server = Process::start(dir.path(), &SETTINGS);
        let mut client = server.wait_until_ready();
        if round == 0 {
            register_hosts(&mut client);
        }
        replay.check_hash(&mut client, round);
        settled += ledgers.iter_mut().filter_map(|it| it.settle(&mut client).then_some(())).count();
        check_service(&mut client, &ledgers, round);
        if round == KILLS {
            server.terminate();
            assert!(server.ended().0.success(), "the last one is asked to go");
            break;
        }
        load_and_kill(server, &mut ledgers, &mut dice);
        replay.catch_up(dir.path(), round);
    }
    replay.catch_up(dir.path(), KILLS);
    check_offline(dir.path(), &replay);
    let acknowledged: u64 = ledgers.iter().map(|ledger| ledger.acknowledged).sum();
    println!("{KILLS} kills, {acknowledged} acknowledged operations, {settled} settled by retries");
    assert!(acknowledged > 1_000, "the load was too small to prove anything: {acknowledged}");
    assert!(settled > 50, "too few operations were cut off to prove anything: {settled}");
}

fn register_hosts(client: &mut Client) {
    for row in 0..HOSTS {
        let capacity = r#"{"cpu_millis":64000,"memory_mib":262144}"#;
        let body = format!(r#"{{"id":"h{row}","capacity":{capacity}}}"#);
        assert_eq!(client.ask("POST /v1/hosts", None, &body).expect("an answer").status, 201);
    }
}

/// Every client works on a connection of its own until the process dies under it.
fn load_and_kill(server: Process, ledgers: &mut [Ledger], dice: &mut Xoshiro256PlusPlus) {
    let after = Duration::from_millis(dice.random_range(2..120));
    std::thread::scope(|scope| {
        for ledger in ledgers {
            let mut client = server.connect();
            let mut dice = Xoshiro256PlusPlus::seed_from_u64(dice.random());
            scope.spawn(move || ledger.work(&mut client, &mut dice));
        }
        std::thread::sleep(after);
        server.kill();
    });
}

/// What the service shows is what the clients were told, no more and no less, and its sums are
/// the sums of what it shows.
fn check_service(client: &mut Client, ledgers: &[Ledger], round: u64) {
    let mut shown = BTreeMap::new();
    let mut taken: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
    for vm in client.list("/v1/vms") {
        let (id, host) = (text(&vm["id"]), text(&vm["host_id"]));
        let cpu_millis = number(&vm["committed"]["cpu_millis"]);
        let memory_mib = number(&vm["committed"]["memory_mib"]);
        let sums = taken.entry(host.clone()).or_default();
        *sums = (sums.0 + cpu_millis, sums.1 + memory_mib, sums.2 + 1);
        let reservation = vm["reservation_id"].as_str().map(str::to_owned);
        let twice = shown.insert(id.clone(), Known { host, cpu_millis, reservation });
        assert_eq!(twice, None, "round {round}: {id} is shown twice");
    }
    let told = ledgers.iter().flat_map(|ledger| ledger.vms.clone()).collect::<BTreeMap<_, _>>();
    assert_eq!(shown, told, "round {round}");
    let (mut cpu_millis, mut free_millis) = (0, 0);
    for host in client.list("/v1/hosts") {
        let id = text(&host["id"]);
        let (cpu, memory, vms) = taken.remove(&id).unwrap_or_default();
        let allocated = &host["allocated"];
        assert_eq!(number(&allocated["cpu_millis"]), cpu, "round {round}: {host}");
        assert_eq!(number(&allocated["memory_mib"]), memory, "round {round}: {host}");
        assert_eq!(number(&host["vm_count"]), vms, "round {round}: {host}");
        assert_eq!(number(&host["free"]["cpu_millis"]), 64_000 - cpu, "round {round}: {host}");
        cpu_millis += cpu;
        free_millis += 64_000 - cpu;
    }
    assert!(taken.is_empty(), "round {round}: VMs on hosts that do not exist: {taken:?}");
    let capacity = client.get("/v1/cluster/capacity");
    assert_eq!(capacity["allocated"]["cpu_millis"], json!(cpu_millis), "round {round}");
    assert_eq!(capacity["free"]["cpu_millis"], json!(free_millis), "round {round}");
    assert_eq!(number(&capacity["vms"]) as usize, told.len(), "round {round}");
}

/// The state that the log leads to, command by command, without the service's help.
#[derive(Default)]
struct Replay {
    state: State,
    times_placed: BTreeMap<String, u32>,
}

impl Replay {
    /// Applies what the log has gained since the last time.
    fn catch_up(&mut self, dir: &Path, round: u64) {
        let log = open(dir);
        let from = self.state.revision().0 + 1;
        let read = log.reader().scan(from, &mut |record| {
            let entry = Entry::decode(&record.body).expect("a readable entry");
            apply(&mut self.state, &entry).expect("an entry that applies");
            assert_eq!(self.state.hash(), record.state_hash, "revision {}", record.revision);
            if let Command::Place(placing) = &entry.command {
                let vm = placing.vm.key.id.to_string();
                let times = self.times_placed.entry(vm).or_default();
                *times += 1;
                assert_eq!(*times, 1, "round {round}: {} was placed twice", placing.vm.key);
            }
            ControlFlow::Continue(())
        });
        read.expect("the log reads");
        assert_eq!(self.state.revision(), Revision(log.head().revision), "round {round}");
    }

    /// The service, started again, has recovered the very state that the replay has reached.
    fn check_hash(&self, client: &mut Client, round: u64) {
        let revision = self.state.revision().0;
        if revision == 0 {
            return;
        }
        let hash: String = self.state.hash().iter().map(|byte| format!("{byte:02x}")).collect();
        let at = client.get(&format!("/v1/state/hash?revision={revision}"));
        assert_eq!(at, json!({"revision": revision, "hash": hash}), "round {round}");
        let now = client.get("/v1/state/hash");
        if now["revision"] == json!(revision) {
            assert_eq!(now["hash"], json!(hash), "round {round}");
        }
    }
}

/// The whole hash chain, and a second opinion on the state.
fn check_offline(dir: &Path, replay: &Replay) {
    let log = open(dir);
    log.reader().verify(1).expect("the hash chain holds");
    let engine = Engine::open(log, Options { snapshot_every: 0, retain: u64::MAX });
    engine.expect("the log recovers").read(|recovered| {
        assert_eq!(recovered.hash(), replay.state.hash());
        assert_eq!(recovered.freeze().full_hash(), replay.state.freeze().full_hash());
        check_sums(recovered).expect("usage is the sum of the VMs");
        let report = verify::snapshot(&recovered.snapshot());
        assert!(report.violations.is_empty(), "{:?}", report.violations);
    });
}

fn open(dir: &Path) -> EmbeddedLog {
    let opened = EmbeddedLog::open(dir.join(store::LOG_FILE), store::Options::default());
    opened.expect("the log opens")
}

fn text(value: &Value) -> String {
    value.as_str().expect("a string").to_owned()
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}
