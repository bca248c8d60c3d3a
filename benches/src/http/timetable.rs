//! Open-loop load from one thread: requests leave on a timetable, whatever the answers do.
//!
//! One thread, because the service shares the machine: a thread for each connection would fight
//! it for the cores, and the figures would tell of that fight.

use super::Answered;
use super::connection::{self, Answer};
use crate::recovery::Failure;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Connections that share the timetable: enough that one slow answer delays nobody else.
const CONNECTIONS: usize = 48;
/// How long to wait for answers after the last request has left.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends `request(i)` for each `i` below `count` when it is due, `i / rps` seconds from now, on
/// whichever connection is free, and shows every answer to `see`. Answers are in the order of
/// arrival.
pub(crate) fn drive(
    address: SocketAddr,
    count: usize,
    request: &dyn Fn(usize) -> Vec<u8>,
    rps: u32,
    see: &dyn Fn(&[u8]),
) -> Result<Vec<Answered>, Failure> {
    let mut lines = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS.min(count) {
        lines.push(Line::open(address)?);
    }
    let started = Instant::now() + Duration::from_millis(20);
    let due = |row: usize| started + Duration::from_secs_f64(row as f64 / f64::from(rps));
    let last = due(count) + PATIENCE;
    let (mut answers, mut next) = (Vec::with_capacity(count), 0);
    while answers.len() < count && Instant::now() < last {
        while next < count && due(next) <= Instant::now() {
            let Some(line) = lines.iter_mut().find(|line| line.asked.is_none()) else { break };
            if line.was_closed() {
                *line = Line::open(address)?;
            }
            line.ask(next, request(next));
            next += 1;
        }
        wait(&lines, (next < count).then(|| due(next)))?;
        for line in lines.iter_mut().filter(|line| line.asked.is_some()) {
            let status = match line.go_on() {
                Ok(None) => continue,
                Ok(Some(answer)) => {
                    see(&answer.body);
                    Some(answer.status)
                }
                Err(_) => None,
            };
            if let Some(row) = line.asked.take() {
                answers.push(Answered { status, took: due(row).elapsed() });
            }
            if status.is_none() {
                *line = Line::open(address)?;
            }
        }
    }
    let unanswered = lines.iter().filter_map(|line| line.asked).chain(next..count);
    answers.extend(unanswered.map(|row| Answered { status: None, took: due(row).elapsed() }));
    Ok(answers)
}

/// Sleeps until a line has news or the next request is due.
fn wait(lines: &[Line], due: Option<Instant>) -> Result<(), Failure> {
    let mut busy: Vec<PollFd<'_>> = lines.iter().filter_map(Line::waits_for).collect();
    // With every line busy a request that is due leaves when one of them is answered.
    let until = due.filter(|_| busy.len() < lines.len());
    let pause = until
        .map_or(Duration::from_millis(100), |due| due.saturating_duration_since(Instant::now()));
    let pause = Timespec::try_from(pause)?;
    match poll(&mut busy, Some(&pause)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A connection with at most one request on it.
#[derive(Debug)]
struct Line {
    stream: TcpStream,
    /// The request that waits for its answer.
    asked: Option<usize>,
    unsent: Vec<u8>,
    received: Vec<u8>,
}

impl Line {
    fn open(address: SocketAddr) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, asked: None, unsent: Vec::new(), received: Vec::new() })
    }

    /// Whether the service has closed the line while nothing was asked on it, as it does with
    /// lines that are idle for long. Most are, until a stall needs them all.
    fn was_closed(&mut self) -> bool {
        let waiting = self.stream.peek(&mut [0]);
        !waiting.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }

    fn ask(&mut self, row: usize, request: Vec<u8>) {
        self.asked = Some(row);
        self.unsent = request;
        self.received.clear();
        // What does not go out now goes out when the line is looked at next; so does an error.
        let _ = self.send();
    }

    fn send(&mut self) -> Result<(), Failure> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Sends and receives what can be without waiting; the answer when it is complete.
    fn go_on(&mut self) -> Result<Option<Answer>, Failure> {
        self.send()?;
        let mut piece = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return Err("the service closed the connection".into()),
                Ok(length) => self.received.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(connection::read_answer(&self.received)?)
    }

    fn waits_for(&self) -> Option<PollFd<'_>> {
        self.asked?;
        let flags = match self.unsent.is_empty() {
            true => PollFlags::IN,
            false => PollFlags::IN | PollFlags::OUT,
        };
        Some(PollFd::new(&self.stream, flags))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_line_that_was_closed_while_idle_is_noticed_before_it_is_used() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let mut line = Line::open(listener.local_addr().expect("bound")).expect("listening");
        let (served, _) = listener.accept().expect("a client");
        assert!(!line.was_closed());
        drop(served);
        let closed = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(2));
            line.was_closed()
        });
        assert!(closed);
    }
}
