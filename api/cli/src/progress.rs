//! How far long work has come, on a terminal; silent everywhere else.

use crate::output::bar;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

const WIDTH: u32 = 30;
/// Redrawing more often only costs time.
const EVERY: Duration = Duration::from_millis(100);

/// A line on standard error that goes away when the work is done.
#[derive(Debug)]
pub(crate) struct Progress {
    label: &'static str,
    total: u64,
    done: u64,
    drawn: Option<Instant>,
    seen: bool,
}

impl Progress {
    pub(crate) fn new(label: &'static str, total: u64) -> Self {
        Self { label, total, done: 0, drawn: None, seen: io::stderr().is_terminal() }
    }

    pub(crate) fn add(&mut self, done: u64) {
        self.done = self.done.saturating_add(done);
        if self.seen && self.drawn.is_none_or(|at| at.elapsed() >= EVERY) {
            let percent = u128::from(self.done) * 100 / u128::from(self.total.max(1));
            let bar = bar(self.done, self.total, WIDTH);
            // A bar that cannot be drawn is no reason to stop working.
            let _ = write!(
                io::stderr(),
                "\r{} {bar:<width$} {percent:>3} %",
                self.label,
                width = WIDTH as usize
            );
            self.drawn = Some(Instant::now());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
