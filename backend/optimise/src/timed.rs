//! The one clock here: searches poll a deadline, and somebody has to drive it.

use solver::assignment::Deadline;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The clock is looked at so often: fine enough for cooling, and for nobody to wait.
const TICK: Duration = Duration::from_millis(2);

/// Runs a search on a thread of its own; meanwhile tells the deadline how much of the time since
/// `started` is gone, and `each` as well. An error if the search panicked.
pub fn timed<T: Send>(
    deadline: &Deadline,
    (started, longest): (Instant, Duration),
    mut each: impl FnMut(f64),
    search: impl FnOnce() -> T + Send,
) -> std::thread::Result<T> {
    let (done, ended) = channel::<()>();
    std::thread::scope(|scope| {
        let search = scope.spawn(move || {
            let found = search();
            drop(done);
            found
        });
        while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            let share = started.elapsed().as_secs_f64() / longest.as_secs_f64();
            deadline.tell(share);
            each(share);
        }
        search.join()
    })
}
