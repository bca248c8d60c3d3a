//! Bugs that the simulator must be able to find. None exists unless the crate is built with the
//! feature `planted-bugs`, and then one at a time, per thread.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A pinned placement is taken as decided, without looking at the host again.
    NoRevalidation,
    /// A reservation ends when the caller's clock says so, without a command in the log.
    ExpiryByWallClock,
    /// A repeated idempotency key gets the stored reply whatever the body is.
    IdempotencyByKeyOnly,
    /// Deleting a VM leaves its share of the host taken.
    UsageNotReleased,
}

#[cfg(feature = "planted-bugs")]
mod chosen {
    use super::Bug;
    use std::cell::Cell;

    thread_local! {
        static CHOSEN: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Plants `bug` for engines on this thread, or takes it out again.
    pub fn plant(bug: Option<Bug>) {
        CHOSEN.set(bug);
    }

    pub(crate) fn is(bug: Bug) -> bool {
        CHOSEN.get() == Some(bug)
    }
}

#[cfg(feature = "planted-bugs")]
pub(crate) use chosen::is;
#[cfg(feature = "planted-bugs")]
pub use chosen::plant;

#[cfg(not(feature = "planted-bugs"))]
pub(crate) const fn is(_: Bug) -> bool {
    false
}
