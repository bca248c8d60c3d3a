//! Requests that are never finished, on the real binary.

use crate::process::Process;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

const HALVES: [&str; 3] = [
    "POST /v1/placements HTTP/1.1\r\nHost: t\r\nX-Half: ",
    "POST /v1/placements HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n\
     Content-Length: 500\r\n\r\n{\"vm\":",
    "GE",
];

#[test]
fn five_hundred_half_sent_requests_do_not_delay_a_good_one() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let server = Process::start(dir.path(), &[]);
    let mut client = server.wait_until_ready();
    let host = r#"{"id":"h1","capacity":{"cpu_millis":64000}}"#;
    assert_eq!(client.ask("POST /v1/hosts", None, host).expect("an answer").status, 201);
    let mut held = Vec::new();
    for half in HALVES.iter().cycle().take(500) {
        let mut stream = TcpStream::connect(server.address).expect("accepted");
        stream.write_all(half.as_bytes()).expect("sent");
        held.push(stream);
    }
    let mut times: Vec<Duration> = (0..50)
        .map(|number| {
            let body = format!(r#"{{"vm":{{"id":"v{number}","demand":{{"cpu_millis":1}}}}}}"#);
            let started = Instant::now();
            // A connection of its own, so that the accept loop is part of what is measured.
            let placed = server.connect().ask("POST /v1/placements", None, &body);
            assert_eq!(placed.expect("an answer").status, 201);
            started.elapsed()
        })
        .collect();
    times.sort();
    println!(
        "50 placements beside 500 half-sent requests: median {:?}, slowest {:?}",
        times[25], times[49]
    );
    // The figure belongs to a quiet machine; on a busy one a half-sent request that held others
    // up would still show, because it is only cut off after five seconds.
    assert!(times[49] < Duration::from_secs(4), "{times:?}");
    drop(held);
}
