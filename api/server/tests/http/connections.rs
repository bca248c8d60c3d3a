//! What strangers can hold open, and what happens to the others meanwhile.

use crate::world::World;
use server::AcceptLimits;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_half_sent_requests_hold_up_nobody() {
    let world = World::start().await;
    world.host("h1", 4).await;
    let mut held = Vec::new();
    for number in 0..500 {
        let mut stream = world.connect().await;
        let half = match number % 3 {
            0 => "POST /v1/placements HTTP/1.1\r\nHost: t\r\nX-Half: ",
            1 => {
                "POST /v1/placements HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"vm\":"
            }
            _ => "GE",
        };
        stream.write_all(half.as_bytes()).await.expect("sent");
        held.push(stream);
    }
    let mut slowest = Duration::ZERO;
    for number in 0..20 {
        let started = Instant::now();
        let body = format!(r#"{{"vm":{{"id":"v{number}","demand":{{"cpu_millis":1}}}}}}"#);
        assert_eq!(world.send("POST /v1/placements", &body).await.status, 201);
        slowest = slowest.max(started.elapsed());
    }
    println!("slowest of 20 placements beside 500 half-sent requests: {slowest:?}");
    drop(held);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn half_sent_headers_are_cut_off_in_time() {
    let header_timeout = Duration::from_millis(200);
    let world = World::with(AcceptLimits { header_timeout, ..AcceptLimits::default() }).await;
    let mut stream = world.connect().await;
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: t\r\nX-").await.expect("sent");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(!String::from_utf8_lossy(&answer).contains("200 OK"), "{answer:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_are_bounded_in_number_and_size() {
    let world = World::start().await;
    let many: String = (0..100).map(|n| format!("X-{n}: 1\r\n")).collect();
    let many = format!("GET /health HTTP/1.1\r\nHost: t\r\n{many}\r\n");
    assert_eq!(world.raw(many.as_bytes()).await.status, 431);
    let large = format!("GET /health HTTP/1.1\r\nHost: t\r\nX-A: {}\r\n\r\n", "a".repeat(20_000));
    assert_eq!(world.raw(large.as_bytes()).await.status, 431);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_connections_are_turned_away_at_once() {
    let world = World::with(AcceptLimits { connections: 3, ..AcceptLimits::default() }).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut stream = world.connect().await;
        stream.write_all(b"GE").await.expect("sent");
        held.push(stream);
    }
    let turned_away = world.get("/health").await;
    assert_eq!(turned_away.status, 503);
    assert_eq!(turned_away.header("retry-after"), Some("1"));
    assert_eq!(turned_away.json()["code"], "overloaded");
    held.clear();
    while world.get("/health").await.status != 200 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_finishes_what_has_begun_and_takes_nothing_new() {
    let world = World::start().await;
    world.host("h1", 4).await;
    let address = world.address;
    let body = r#"{"vm":{"id":"v","demand":{"cpu_millis":1}}}"#;
    let head = format!(
        "POST /v1/placements HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    let mut begun = world.connect().await;
    begun.write_all(head.as_bytes()).await.expect("sent");
    let idle = world.connect().await;
    // The head has been read once the service waits for the body; a second request shows that
    // the loop has turned since.
    assert_eq!(world.get("/health").await.status, 200);
    let finishing = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        begun.write_all(body.as_bytes()).await.expect("still open");
        let mut answer = String::new();
        begun.read_to_string(&mut answer).await.expect("answered");
        answer
    });
    let ended = world.stop().await;
    assert_eq!(ended.cut_off, 0);
    assert!(finishing.await.expect("no panic").starts_with("HTTP/1.1 201"));
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nothing listens any more");
    drop(idle);
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_waits_no_longer_than_its_grace() {
    let grace = Duration::from_millis(100);
    let world = World::with(AcceptLimits { grace, ..AcceptLimits::default() }).await;
    let mut stuck = world.connect().await;
    let half = "POST /v1/placements HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n\
                Content-Length: 500\r\n\r\n{";
    stuck.write_all(half.as_bytes()).await.expect("sent");
    assert_eq!(world.get("/health").await.status, 200);
    assert_eq!(world.stop().await.cut_off, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_who_never_read_their_answers_are_cut_off() {
    let unread_timeout = Duration::from_millis(100);
    let limits = AcceptLimits { unread_timeout, connections: 1, ..AcceptLimits::default() };
    let world = World::with(limits).await;
    let mut deaf = world.connect().await;
    // Answers pile up until the kernel's buffers are full; after the cut, sending fails too.
    let asked = "GET /openapi.json HTTP/1.1\r\nHost: t\r\n\r\n".repeat(1_000);
    while deaf.write_all(asked.as_bytes()).await.is_ok() {}
    while world.get("/health").await.status != 200 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    world.stop().await;
}
