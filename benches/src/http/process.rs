//! The service in a process of its own.

use super::connection::Connection;
use crate::recovery::Failure;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How often, and how many times, the service is asked whether it is ready.
const READY_EVERY: Duration = Duration::from_millis(50);
const READY_LOOKS: usize = 1_200;

/// A running service; killed when it is dropped without `stop`.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    address: SocketAddr,
}

impl Process {
    /// Starts it with these arguments more, on a free port of the loopback address, and waits
    /// until it listens.
    pub(crate) fn start(program: &Path, data_dir: &Path, more: &[&OsStr]) -> Result<Self, Failure> {
        let mut child = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--log-format", "json", "--data-dir"])
            .arg(data_dir)
            .args(more)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = child.stderr.take().ok_or("the service has no standard error")?;
        let mut lines = BufReader::new(stderr).lines();
        let mut last = String::new();
        for line in lines.by_ref() {
            last = line?;
            if let Some(address) = listening(&last) {
                // Whatever it says later is read and dropped, or it would block on a full pipe.
                std::thread::spawn(move || lines.for_each(drop));
                let process = Self { child, address };
                process.wait_until_ready()?;
                return Ok(process);
            }
        }
        child.wait()?;
        Err(format!("the service did not start: {last}").into())
    }

    /// The port is open while the state is still being recovered.
    fn wait_until_ready(&self) -> Result<(), Failure> {
        for _ in 0..READY_LOOKS {
            if Connection::open(self.address)?.get("/ready")?.status == 200 {
                return Ok(());
            }
            std::thread::sleep(READY_EVERY);
        }
        Err("the service does not get ready".into())
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn stop(mut self) -> Result<(), Failure> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Already gone after `stop`; otherwise nobody is left who could use it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address in the log line that says where the service listens.
fn listening(line: &str) -> Option<SocketAddr> {
    let value: serde_json::Value = serde_json::from_str(line).ok()?;
    let fields = value.get("fields")?;
    if fields.get("message")?.as_str()? != "listening" {
        return None;
    }
    fields.get("address")?.as_str()?.parse().ok()
}
