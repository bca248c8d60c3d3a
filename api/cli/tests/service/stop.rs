//! Starting and stopping, as a supervisor sees it.

use crate::client::Client;
use crate::process::Process;
use std::io::Write;
use std::net::TcpStream;

const PLACE: &str = r#"{"vm":{"id":"v1","demand":{"cpu_millis":1}}}"#;
const HOST: &str = r#"{"id":"h1","capacity":{"cpu_millis":1000}}"#;

#[test]
fn sigterm_finishes_what_has_begun_takes_a_snapshot_and_ends_with_zero() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let server = Process::start(dir.path(), &[]);
    let mut client = server.wait_until_ready();
    assert_eq!(client.ask("POST /v1/hosts", None, HOST).expect("an answer").status, 201);
    let address = server.address;
    let mut begun = TcpStream::connect(address).expect("accepted");
    let length = PLACE.len();
    write!(
        begun,
        "POST /v1/placements HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n"
    )
    .expect("sent");
    // An answer on another connection, asked for later, shows that the head has arrived.
    client.get("/health");
    server.terminate();
    while Client::connect(address).is_ok() {
        std::thread::yield_now();
    }
    begun.write_all(PLACE.as_bytes()).expect("still open");
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut begun, &mut answer).expect("answered");
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let (status, said) = server.ended();
    assert_eq!(status.code(), Some(0), "{said:?}");
    let log = store::EmbeddedLog::open(dir.path().join(store::LOG_FILE), store::Options::default());
    let log = log.expect("the log opens");
    let snapshots = store::CommandLog::reader(&log).snapshots().expect("readable");
    let newest = snapshots.iter().map(|snapshot| snapshot.revision).max();
    assert_eq!(newest, Some(store::CommandLog::head(&log).revision), "a snapshot of the very end");
    drop(log);
    let server = Process::start(dir.path(), &[]);
    assert_eq!(server.wait_until_ready().get("/v1/vms/v1")["host_id"], "h1");
}

#[test]
fn while_the_state_is_being_recovered_only_questions_about_life_are_answered() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    // Bringing the demo fleet in takes long enough to be watched.
    let server = Process::start(dir.path(), &["--demo"]);
    let mut client = server.connect();
    let health = client.ask("GET /health", None, "").expect("an answer");
    assert_eq!(health.status, 200);
    let early = client.ask("GET /v1/hosts", None, "").expect("an answer");
    if health.json()["status"] == "starting" && early.status != 200 {
        assert_eq!((early.status, early.json()["code"].as_str()), (503, Some("not_ready")));
        assert!(early.head.to_ascii_lowercase().contains("retry-after: 1"), "{early:?}");
    }
    while client.ask("GET /ready", None, "").expect("an answer").status != 200 {
        std::thread::yield_now();
    }
    let health = client.get("/health");
    assert_eq!(health["status"], "ok");
    assert_eq!(client.get("/v1/cluster/capacity")["hosts"], 1_000, "on the same connection");
}
