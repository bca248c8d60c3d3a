//! A running `novaplace serve`, which does not outlive its test.

use crate::client::Client;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::Duration;

pub(crate) struct Process {
    pub(crate) address: SocketAddr,
    child: Child,
    log: BufReader<ChildStderr>,
}

pub(crate) fn novaplace() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_novaplace"));
    // What is set where the tests run is not what they are about.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("NOVAPLACE_")) {
        command.env_remove(name);
    }
    command
}

impl Process {
    /// Starts the service on a port of its own and returns once it listens.
    pub(crate) fn start(data_dir: &Path, more: &[&str]) -> Self {
        let mut child = novaplace()
            .args(["serve", "--listen", "127.0.0.1:0", "--log-format", "json", "--data-dir"])
            .arg(data_dir)
            .args(more)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut log = BufReader::new(child.stderr.take().expect("a pipe"));
        let address = loop {
            let mut line = String::new();
            let length = log.read_line(&mut line).expect("a log line");
            assert_ne!(length, 0, "ended before it listened");
            let said: Value = serde_json::from_str(&line).unwrap_or_default();
            if let Some(address) = said["fields"]["address"].as_str() {
                break address.parse().expect("an address");
            }
        };
        Self { address, child, log }
    }

    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.address).expect("accepted")
    }

    pub(crate) fn wait_until_ready(&self) -> Client {
        let mut client = self.connect();
        while client.ask("GET /ready", None, "").expect("an answer").status != 200 {
            std::thread::sleep(Duration::from_millis(2));
        }
        client
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().expect("SIGKILL");
        self.child.wait().expect("gone");
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        let sent = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(sent.expect("kill is there").success());
    }

    /// Waits for the end and returns how it ended and what was logged on the way.
    pub(crate) fn ended(mut self) -> (ExitStatus, Vec<String>) {
        let said = self.log.by_ref().lines().map_while(Result::ok).collect();
        (self.child.wait().expect("an exit status"), said)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A test that fails leaves nothing running; one that ended the process has nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
