//! Arguments, exit codes, completion and a service that is not there.

use crate::service::{Service, run};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

#[test]
fn wrong_arguments_end_with_2_and_say_what_is_wrong() {
    let cases: &[(&[&str], &str)] = &[
        (&[], "Usage"),
        (&["hots"], "host"),
        (&["host", "get"], "<ID>"),
        (&["host", "get", "a b"], "allowed are letters"),
        (&["host", "list", "--state", "up"], "available, cordoned"),
        (&["host", "list", "-o", "xml"], "json"),
        (&["host", "list", "--server", "127.0.0.1:1"], "must start with http://"),
        (&["host", "list", "--timeout-ms", "0"], "1..=30000"),
        (&["vm", "place"], "<ID>"),
        (&["vm", "place", "a"], "--cpu-millis"),
        (&["vm", "place", "a", "--file", "x"], "--file"),
        (&["vm", "place", "--file", "x", "--cpu-millis", "1"], "--cpu-millis"),
        (&["vm", "place", "a", "--cpu-millis", "lots"], "lots"),
        (&["vm", "place", "a", "--dimension", "gpu"], "NAME=NUMBER"),
        (&["vm", "place", "a", "--cpu-millis", "1", "--dimension", "cpu_millis=2"], "twice"),
        (&["vm", "place", "a", "--cpu-millis", "1", "--strategy", "best"], "best_fit"),
        (&["vm", "place", "a", "--cpu-millis", "1", "--hold-ttl-ms", "5"], "1000..=3600000"),
        (&["vm", "adopt", "a", "--cpu-millis", "1"], "--host"),
        (&["vm", "resize", "a"], "say how much"),
        (&["weights", "set"], "NAME=WEIGHT"),
        (&["weights", "set", "fit"], "NAME=NUMBER"),
        (&["decision", "show", "x9"], "look like d42"),
        (&["decision", "replay", "d1"], "--data-dir"),
        (&["events"], "--since"),
        (&["verify"], "<FILE>"),
        (&["verify", "--snapshot", "s"], "--plan"),
        (&["backup", "--to", "x"], "--data-dir"),
        (&["restore", "--data-dir", "x"], "--from"),
        (&["completion", "tcsh"], "fish"),
    ];
    for (arguments, said) in cases {
        let ran = run(arguments);
        assert_eq!(ran.code, 2, "{arguments:?}: {ran:#?}");
        assert!(ran.err.contains(said), "{arguments:?} does not say {said:?}: {}", ran.err);
        assert!(ran.out.is_empty(), "{arguments:?}: {}", ran.out);
    }
}

#[test]
fn help_lists_every_exit_code() {
    run(&["--help"]).ends(0).says(&["Exit codes", "0    done", "255"]);
}

#[test]
fn every_shell_gets_a_script_that_knows_the_verbs() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        run(&["completion", shell]).ends(0).says(&["novaplace", "uncordon", "hold-ttl-ms"]);
    }
}

#[test]
fn settings_are_listed() {
    run(&["config", "schema"]).ends(0).says(&["NOVAPLACE_LISTEN", "precedence"]);
}

#[test]
fn a_service_that_is_not_there_is_an_error_with_what_to_do() {
    // Port 1 of loopback is nobody's.
    let ran = run(&["capacity", "--server", "http://127.0.0.1:1"]).ends(255);
    ran.says(&["cannot reach http://127.0.0.1:1", "novaplace serve", "--server"]);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let (_dir, service) = Service::with_two_hosts();
    let host = |n: usize| format!("{{\"id\":\"x{n:04}\",\"capacity\":{{\"cpu_millis\":1}}}}");
    let hosts: Vec<String> = (0..1_500).map(host).collect();
    service.fed(&["host", "import", "-"], &hosts.join("\n")).ends(0);
    let mut list = service.command(&["host", "list", "-o", "json"]);
    let mut child = list.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    drop(child.stdout.take());
    let mut said = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut said).expect("UTF-8");
    assert_eq!((child.wait().expect("ended").code(), said.as_str()), (Some(0), ""));
}

#[test]
fn a_request_without_an_answer_is_sent_again_under_the_same_key() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let response = |status: u16, body: &str| {
        let length = body.len();
        format!(
            "HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    };
    let busy = r#"{"type":"x","title":"x","status":503,"code":"overloaded","detail":"","hint":""}"#;
    let answers = [String::new(), response(503, busy), response(200, "{\"a\":1}")];
    let server = std::thread::spawn(move || {
        answers.map(|answer| {
            let (mut stream, _) = listener.accept().expect("a caller");
            let key = key_of(&stream);
            stream.write_all(answer.as_bytes()).expect("a caller who listens");
            key
        })
    });
    let ran = run(&["host", "cordon", "h1", "--server", &url, "-o", "json"]).ends(0);
    assert_eq!(ran.out, "{\"a\":1}\n");
    let [first, second, third] = server.join().expect("three callers");
    assert!(first.starts_with("idempotency-key: cli-"), "{first}");
    assert_eq!((&first, &first), (&second, &third));
}

/// Reads a request without a body and returns the line with its key.
fn key_of(stream: &TcpStream) -> String {
    let lines = BufReader::new(stream).lines().map(|line| line.expect("UTF-8"));
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let key = head.iter().find(|line| line.starts_with("idempotency-key"));
    key.unwrap_or_else(|| panic!("no key in {head:?}")).clone()
}
