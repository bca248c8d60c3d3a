//! What the machine does beside the work: memory of this process, and how late it lets threads wake.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Resident memory in MiB; 0 where the system does not tell.
pub fn rss_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

/// A thread that asks for short sleeps and notes how much longer each one took.
#[derive(Debug)]
pub(crate) struct LateWakes {
    enough: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Duration>>,
}

/// How late the thread woke, in order.
#[derive(Debug)]
pub(crate) struct Lateness(Vec<Duration>);

impl LateWakes {
    const SLEEP: Duration = Duration::from_millis(1);

    pub(crate) fn start() -> Self {
        let enough = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&enough);
        let thread = std::thread::spawn(move || {
            let mut late = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let asleep = Instant::now();
                std::thread::sleep(Self::SLEEP);
                late.push(asleep.elapsed().saturating_sub(Self::SLEEP));
            }
            late
        });
        Self { enough, thread }
    }

    pub(crate) fn stop(self) -> Lateness {
        self.enough.store(true, Ordering::Relaxed);
        let mut late = self.thread.join().unwrap_or_default();
        late.sort_unstable();
        Lateness(late)
    }
}

impl Lateness {
    pub(crate) fn percentile_ms(&self, permille: usize) -> f64 {
        let row = (self.0.len() * permille / 1000).min(self.0.len().saturating_sub(1));
        self.0.get(row).map_or(0.0, |late| late.as_secs_f64() * 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_wakes_are_ordered_and_an_empty_record_is_no_delay() {
        let late = Lateness((1..=200).map(Duration::from_millis).collect());
        assert_eq!((late.percentile_ms(500), late.percentile_ms(1000)), (101.0, 200.0));
        assert_eq!(Lateness(Vec::new()).percentile_ms(990), 0.0);
        let wakes = LateWakes::start();
        std::thread::sleep(Duration::from_millis(5));
        assert!(!wakes.stop().0.is_empty());
    }
}
