//! `import novacron` against a runtime that the test plays, and a service, played or living.

use crate::service::{Service, run};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

/// What was asked of a stub: `METHOD path` and the body.
type Asked = (String, Value);

/// Answers each request in turn with the next of `answers`, then stops.
fn stub(answers: Vec<(u16, Value)>) -> (SocketAddr, Receiver<Asked>) {
    let answers = answers.into_iter().map(|answer| Box::new(|| answer) as Play).collect();
    play(answers)
}

/// What a stub does before it answers, and its answer.
type Play = Box<dyn FnOnce() -> (u16, Value) + Send>;

/// Answers each request in turn with what the next of `answers` makes of it, then stops.
fn play(answers: Vec<Play>) -> (SocketAddr, Receiver<Asked>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (sender, asked) = channel();
    std::thread::spawn(move || {
        let mut answers = answers.into_iter();
        while answers.len() > 0 {
            let (mut stream, _) = listener.accept().expect("a connection");
            let Some(request) = request(&stream) else { continue };
            let Some(answer) = answers.next() else { return };
            let (status, body) = answer();
            let body = body.to_string();
            let head = format!("HTTP/1.1 {status} Told\r\nContent-Type: application/json\r\n");
            let length = format!("Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            stream.write_all(format!("{head}{length}{body}").as_bytes()).expect("sent");
            // The test may have seen enough.
            let _ = sender.send(request);
        }
    });
    (address, asked)
}

fn request(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
    reader.read_line(&mut first).ok()?;
    while reader.read_line(&mut line).ok()? > 2 {
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let said: Vec<&str> = first.split(' ').take(2).collect();
    Some((said.join(" "), serde_json::from_slice(&body).unwrap_or(Value::Null)))
}

fn node(id: &str, used_cpu: u32) -> Value {
    json!({"id": id, "status": "ready", "cpu": 8, "memory": 16384, "disk": 100,
        "used_cpu": used_cpu, "schedulable": true, "labels": {"runtime": "novacron"}})
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}")
}

#[test]
fn one_pull_sends_every_node_with_its_units() {
    let (runtime, pulled) = stub(vec![(200, json!([node("n1", 2), node("n2", 0)]))]);
    let (service, pushed) = stub(vec![(200, json!({}))]);
    let ran = run(&["import", "novacron", "--url", &url(runtime), "--server", &url(service)]);
    ran.ends(0).says(&["2 nodes in sync: 2 new or changed, 0 gone, all sent"]);
    assert_eq!(pulled.recv().expect("a pull").0, "GET /api/cluster/nodes");
    let (line, body) = pushed.recv().expect("a push");
    assert_eq!(line, "PUT /scheduler/inventory");
    assert!(body["generation"].as_u64() > Some(1_600_000_000_000), "{body}");
    let first = &body["nodes"][0];
    assert_eq!((&first["node_id"], &first["status"]), (&json!("n1"), &json!("available")));
    assert_eq!((&first["total_memory_mb"], &first["used_cpu"]), (&json!(16384), &json!(2)));
}

#[test]
fn later_pulls_send_changes_and_a_gap_sends_everything() {
    let lists =
        [json!([node("n1", 0), node("n2", 0)]), json!([node("n1", 3)]), json!([node("n1", 3)])];
    let (runtime, _pulled) = stub(lists.map(|list| (200, list)).to_vec());
    let gap = json!({"error": {"code": "conflict", "message": "the inventory is elsewhere"}});
    let fine = json!({});
    let (service, pushed) =
        stub(vec![(200, fine.clone()), (200, fine.clone()), (409, gap), (200, fine)]);
    let (runtime, service) = (url(runtime), url(service));
    let ran = run(&[
        "import",
        "novacron",
        "--url",
        &runtime,
        "--server",
        &service,
        "--interval",
        "100ms",
        "--rounds",
        "3",
        "-o",
        "json",
    ]);
    let ran = ran.ends(0);
    let rounds: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let full: Vec<bool> = rounds.iter().map(|round| round["full"] == true).collect();
    assert_eq!(full, [true, false, true]);
    assert_eq!((&rounds[1]["upserted"], &rounds[1]["removed"]), (&json!(1), &json!(1)));
    let asked: Vec<Asked> = pushed.iter().take(4).collect();
    let lines: Vec<&str> = asked.iter().map(|(line, _)| line.as_str()).collect();
    let (put, patch) = ("PUT /scheduler/inventory", "PATCH /scheduler/inventory");
    assert_eq!(lines, [put, patch, patch, put]);
    assert_eq!(asked[1].1["base_generation"], asked[0].1["generation"]);
    assert_eq!(asked[1].1["remove"], json!(["n2"]));
    assert!(asked[3].1["generation"].as_u64() > asked[0].1["generation"].as_u64());
}

/// A node with every key that a runtime writes; it leaves out what is zero.
fn whole_node(id: &str, used_cpu: u32, schedulable: bool) -> Value {
    json!({"id": id, "address": "10.0.0.7:9000", "status": "ready", "cpu": 8, "memory": 16384,
        "disk": 100, "used_cpu": used_cpu, "remaining_cpu": 8 - used_cpu, "used_memory_mb": 1024,
        "remaining_memory_mb": 15360, "used_disk_gb": 10, "remaining_disk_gb": 90,
        "cpu_usage_percent": 12.5, "memory_usage_percent": 6.25, "disk_usage_percent": 10.0,
        "vm_count": 2, "schedulable": schedulable,
        "labels": {"runtime": "novacron", "hypervisor": "kvm", "zone": "z1"}})
}

#[test]
fn a_living_service_follows_a_runtime_round_by_round() {
    let data_dir = tempfile::TempDir::new().expect("a directory");
    let service = Arc::new(Service::start(data_dir.path()));
    let host = |service: &Service, id: &str| service.run(&["host", "get", id, "-o", "json"]);
    let first = Box::new(|| (200, json!([whole_node("n1", 2, true), whole_node("n2", 0, true)])));
    let seen = Arc::clone(&service);
    let second: Play = Box::new(move || {
        let n1 = host(&seen, "n1").ends(0).json();
        assert_eq!(n1["capacity"]["cpu_millis"], 8_000);
        assert_eq!(n1["capacity"]["disk_gib"], 100);
        assert_eq!(n1["free"]["cpu_millis"], 6_000, "what the runtime uses is not ours to give");
        assert_eq!(n1["zone"], "z1");
        let other = whole_node("n3", 0, false);
        (
            200,
            json!([whole_node("n1", 5, true), {"id": "n2", "status": "ready", "schedulable": false}, other]),
        )
    });
    let seen = Arc::clone(&service);
    let third: Play = Box::new(move || {
        assert_eq!(host(&seen, "n1").ends(0).json()["free"]["cpu_millis"], 3_000);
        assert_eq!(host(&seen, "n3").ends(0).json()["state"], "cordoned");
        // Somebody else's inventory comes in between: what is sent next builds on nothing here.
        let theirs = json!({"generation": u64::MAX / 4, "nodes": [{"node_id": "stranger", "total_cpu": 8, "total_memory_mb": 16384}]});
        let put = post(&seen.url, "PUT /scheduler/inventory", &theirs);
        assert!(put.starts_with("HTTP/1.1 200"), "{put}");
        (200, json!([whole_node("n1", 5, true)]))
    });
    let (runtime, _pulled) = play(vec![first, second, third]);
    let arguments = ["import", "novacron", "--url", &url(runtime), "--interval", "100ms"];
    let ran = service.run(&[&arguments[..], &["--rounds", "3", "-o", "json"]].concat());
    let ran = ran.ends(0);
    let rounds: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let full: Vec<bool> = rounds.iter().map(|round| round["full"] == true).collect();
    assert_eq!(full, [true, false, true], "{}", ran.out);
    let hosts = service.run(&["host", "list", "-o", "json"]).ends(0).json();
    let ids: Vec<&str> = hosts["items"]
        .as_array()
        .expect("items")
        .iter()
        .filter_map(|it| it["id"].as_str())
        .collect();
    assert_eq!(ids, ["n1"], "the last inventory is the whole truth");
    service.run(&["vm", "place", "a", "--cpu-millis", "3000"]).ends(0).says(&["n1"]);
    service.run(&["vm", "place", "b", "--cpu-millis", "1000"]).ends(1);
}

fn post(url: &str, line: &str, body: &Value) -> String {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).expect("connected");
    let body = body.to_string();
    let head = format!("{line} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n");
    let length = format!("Content-Type: application/json\r\nContent-Length: {}", body.len());
    stream.write_all(format!("{head}{length}\r\n\r\n{body}").as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    answer
}

#[test]
fn what_is_wrong_is_told() {
    let (runtime, _pulled) = stub(vec![(200, json!([node("n1", 0), node("no name", 0)]))]);
    let (service, _pushed) = stub(vec![(200, json!({}))]);
    run(&["import", "novacron", "--url", &url(runtime), "--server", &url(service)])
        .ends(1)
        .says(&["1 nodes left out", "\"no name\": node_id"]);
    let (runtime, _pulled) = stub(vec![(200, json!({"nodes": []}))]);
    run(&["import", "novacron", "--url", &url(runtime)])
        .ends(255)
        .says(&["cannot be read", "an object of 1 where an array is expected"]);
    let (runtime, _pulled) = stub(vec![(200, json!([]))]);
    let refusal = json!({"error": {"code": "invalid_argument", "message": "generation: no"}});
    let (service, _pushed) = stub(vec![(400, refusal)]);
    run(&["import", "novacron", "--url", &url(runtime), "--server", &url(service)])
        .ends(255)
        .says(&["the inventory was not taken", "generation: no"]);
    run(&["import", "novacron", "--url", "http://127.0.0.1:1"]).ends(255).says(&["NovaCron at"]);
    run(&["import", "novacron"]).ends(2);
    run(&["import", "novacron", "--url", "http://a:1", "--interval", "30"]).ends(2);
}
