//! Callers who have to wait, who are sent away, who leave, and who come too early.

use crate::world::World;
use server::{AcceptLimits, App};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

fn placement(id: &str) -> String {
    let body = format!(r#"{{"vm":{{"id":"{id}","demand":{{"cpu_millis":1}}}}}}"#);
    format!(
        "POST /v1/placements HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_sends_callers_away_at_once_and_says_when_to_come_back() {
    let world = World::with_queue(AcceptLimits::default(), 1).await;
    world.host("h1", 4).await;
    let release = world.hold_up();
    let mut waits = world.connect().await;
    waits.write_all(placement("waits").as_bytes()).await.expect("sent");
    world.wait_for_queue(1).await;
    let started = Instant::now();
    let refused = world.raw(placement("refused").as_bytes()).await;
    println!("refused in {:?}", started.elapsed());
    assert_eq!(refused.status, 503);
    assert_eq!(refused.json()["code"], "overloaded");
    assert_eq!(refused.header("retry-after"), Some("1"));
    drop(release);
    let mut answer = String::new();
    waits.read_to_string(&mut answer).await.expect("answered");
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    assert_eq!(world.get("/v1/vms/refused").await.status, 404);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_done_for_a_caller_who_has_left() {
    let limits = AcceptLimits { connections: 1, ..AcceptLimits::default() };
    let world = World::with(limits).await;
    world.host("h1", 4).await;
    let release = world.hold_up();
    let mut leaves = loop {
        let mut stream = world.connect().await;
        // The connection before this one may still hold the only place.
        let sent = stream.write_all(placement("left").as_bytes()).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
        if sent.is_ok() && world.queue_depth() > 0 {
            break stream;
        }
    };
    let started = Instant::now();
    leaves.shutdown().await.expect("closed");
    drop(leaves);
    // The only place is free again when the service has noticed.
    while world.get("/health").await.status != 200 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    println!("noticed after {:?}", started.elapsed());
    drop(release);
    world.wait_for_queue(0).await;
    let placed = loop {
        let answer = world.get("/v1/cluster/capacity").await;
        if answer.status == 200 {
            break answer.json()["vms"].clone();
        }
    };
    assert_eq!(placed, 0);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_done_after_the_deadline() {
    let world = World::start().await;
    world.host("h1", 4).await;
    let release = world.hold_up();
    let hurried = placement("late").replace("Host:", "X-Request-Timeout-Ms: 20\r\nHost:");
    let late = world.raw(hurried.as_bytes()).await;
    assert_eq!((late.status, late.json()["code"].as_str()), (504, Some("deadline_exceeded")));
    drop(release);
    world.wait_for_queue(0).await;
    assert_eq!(world.get("/v1/vms/late").await.status, 404);
    world.stop().await;
}

/// A batch that takes the writer for seconds, in any profile.
fn long_batch(headers: &str) -> String {
    let vm =
        |n: u32| format!(r#"{{"id":"b{n}","demand":{{"cpu_millis":1}},"labels":{{"n":"{n}"}}}}"#);
    let vms: Vec<String> = (0..10_000).map(vm).collect();
    let body = format!(r#"{{"vms":[{}]}}"#, vms.join(","));
    format!(
        "POST /v1/placements:batch HTTP/1.1\r\nHost: t\r\nConnection: close\r\n{headers}\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Hosts, and a policy that looks at every one of them for every VM anew.
async fn slow_to_place() -> World {
    let world = World::start().await;
    let hosts = (0..2_000).map(|n| format!(r#"{{"id":"h{n}","capacity":{{"cpu_millis":64000}}}}"#));
    let hosts = hosts.collect::<Vec<_>>().join("\n");
    let headers = ["Content-Type: application/x-ndjson"];
    assert_eq!(world.ask("POST /v1/hosts:bulk", &headers, &hosts).await.status, 200);
    let rule = r#"when { vm.id != node.id } then { score node.vm_count "never the same" }"#;
    let text = format!(r#"policy "slow one" {{ rules {{ rule "r" {{ {rule} }} }} }}"#);
    let policy = serde_json::json!({"text": text, "activate": true}).to_string();
    let installed = world.send("POST /v1/policies", &policy).await;
    assert_eq!(installed.status, 201, "{installed:?}");
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_ends_when_its_caller_leaves_or_its_time_is_over() {
    let world = slow_to_place().await;
    let whole = Instant::now();
    let hurried = world.raw(long_batch("X-Request-Timeout-Ms: 300\r\n").as_bytes()).await;
    assert_eq!((hurried.status, hurried.json()["code"].as_str()), (504, Some("deadline_exceeded")));
    println!("a batch of 300 ms was answered after {:?}", whole.elapsed());
    let free = Instant::now();
    assert_eq!(world.raw(placement("next").as_bytes()).await.status, 201);
    println!("the writer was free {:?} later", free.elapsed());
    assert!(free.elapsed() < Duration::from_millis(1_000), "{:?}", free.elapsed());

    let mut leaves = world.connect().await;
    leaves.write_all(long_batch("").as_bytes()).await.expect("sent");
    tokio::time::sleep(Duration::from_millis(300)).await;
    drop(leaves);
    let free = Instant::now();
    assert_eq!(world.raw(placement("after").as_bytes()).await.status, 201);
    println!("the caller left, and the writer was free {:?} later", free.elapsed());
    assert!(free.elapsed() < Duration::from_millis(1_000), "{:?}", free.elapsed());
    assert_eq!(world.get("/v1/cluster/capacity").await.json()["vms"], 2, "nothing of the batches");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_early_connection_goes_on_when_the_service_is_ready() {
    let world = World::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let app = App::starting();
    let forever = std::future::pending();
    tokio::spawn(server::serve(listener, app.clone(), AcceptLimits::default(), forever));
    let mut early = TcpStream::connect(address).await.expect("accepted");
    let mut ask = async |path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: t\r\n\r\n");
        early.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = [0; 4_096];
        let count = early.read(&mut answer).await.expect("answered");
        String::from_utf8_lossy(&answer[..count]).into_owned()
    };
    let alive = ask("/health").await;
    assert!(alive.starts_with("HTTP/1.1 200") && alive.contains("starting"), "{alive}");
    for path in ["/ready", "/v1/hosts", "/metrics", "/nowhere"] {
        let not_yet = ask(path).await;
        assert!(not_yet.starts_with("HTTP/1.1 503"), "{not_yet}");
        assert!(not_yet.contains("retry-after: 1") && not_yet.contains("not_ready"), "{not_yet}");
    }
    app.open(world.app.clone());
    assert!(ask("/ready").await.starts_with("HTTP/1.1 200"));
    world.stop().await;
}
