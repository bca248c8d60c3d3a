//! A `novaplace serve` of its own for a test, and the binary run as a user would.

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// What a run of the binary said, and how it ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// The same, if it ended with this code.
    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Ran {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// The same, if it said all of this.
    #[track_caller]
    pub(crate) fn says(self, parts: &[&str]) -> Ran {
        let all = format!("{}{}", self.out, self.err);
        for part in parts {
            assert!(all.contains(part), "{part:?} is not in {all}");
        }
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {self:#?}"))
    }
}

/// The binary, without settings of whoever runs the tests.
pub(crate) fn novaplace() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_novaplace"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("NOVAPLACE_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs the binary with nothing on its standard input.
pub(crate) fn run(arguments: &[&str]) -> Ran {
    fed(novaplace().args(arguments), "")
}

/// Runs a command with this text on its standard input.
pub(crate) fn fed(command: &mut Command, input: &str) -> Ran {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("started");
    // Whoever does not read it has closed the pipe.
    let _ = child.stdin.take().expect("piped").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("ended");
    Ran {
        code: output.status.code().expect("not killed"),
        out: String::from_utf8(output.stdout).expect("UTF-8"),
        err: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

#[derive(Debug)]
pub(crate) struct Service {
    child: Child,
    pub(crate) url: String,
}

impl Service {
    /// Starts a service on this directory and waits until it answers.
    pub(crate) fn start(data_dir: &Path) -> Service {
        Service::start_with(data_dir, &[])
    }

    pub(crate) fn start_with(data_dir: &Path, more: &[&str]) -> Service {
        let mut command = novaplace();
        command.args(["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]);
        command.args(["--dimension", "gpu_slots", "--data-dir"]).arg(data_dir).args(more);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("started");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let mut address = None;
        for line in lines.by_ref() {
            let event: Value = serde_json::from_str(&line.expect("UTF-8")).unwrap_or_default();
            let fields = &event["fields"];
            match fields["message"].as_str() {
                Some("listening") => address = fields["address"].as_str().map(str::to_owned),
                // From here on it answers, or says that it is not ready, which callers wait out.
                Some("recovered") => break,
                _ => {}
            }
        }
        let address = address.expect("listens before it has recovered");
        // A full pipe would stop the service.
        std::thread::spawn(move || lines.for_each(drop));
        Service { child, url: format!("http://{address}") }
    }

    /// A service with two hosts: h1 in zone a with 8 cores, h2 in zone b with 16.
    pub(crate) fn with_two_hosts() -> (TempDir, Service) {
        let data_dir = TempDir::new().expect("a directory");
        let service = Service::start(data_dir.path());
        service.fed(&["host", "import", "-"], TWO_HOSTS).ends(0).says(&["2 hosts accepted"]);
        (data_dir, service)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = novaplace();
        command.args(arguments).env("NOVAPLACE_SERVER", &self.url);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.fed(arguments, "")
    }

    pub(crate) fn fed(&self, arguments: &[&str], input: &str) -> Ran {
        fed(&mut self.command(arguments), input)
    }

    /// Ends it as a power cut would.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.end();
    }
}

pub(crate) const TWO_HOSTS: &str = r#"
{"id":"h1","capacity":{"cpu_millis":8000,"memory_mib":32768},"zone":"a","pool":"p"}
{"id":"h2","capacity":{"cpu_millis":16000,"memory_mib":65536,"gpu_slots":4},"zone":"b"}
"#;
