//! One optimisation: what was asked, how far it is, and what came of it.

use optimise::Answer;
use solver::assignment::{Deadline, StopReason};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::watch;
use wire::{IncumbentView, OptimisationRequest, OptimisationState};

/// Better answers that are kept; beyond so many every other one is forgotten, never the first or
/// the newest.
const INCUMBENTS: usize = 256;

#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) number: u64,
    pub(crate) request: OptimisationRequest,
    pub(crate) deadline: Arc<Deadline>,
    progress: Mutex<Progress>,
    /// Counts what became known.
    changed: watch::Sender<u64>,
}

/// How far it is.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    pub(crate) state: OptimisationState,
    pub(crate) share: f64,
    pub(crate) elapsed_ms: u64,
    pub(crate) revision: u64,
    pub(crate) incumbents: Vec<IncumbentView>,
    pub(crate) answer: Option<Arc<Answer>>,
    pub(crate) error: Option<String>,
    started: Option<Instant>,
}

/// Something new.
pub(crate) enum Told {
    Revision(u64),
    Better(i64),
}

impl Record {
    pub(crate) fn new(number: u64, request: OptimisationRequest) -> Self {
        let progress = Progress {
            state: OptimisationState::Queued,
            share: 0.0,
            elapsed_ms: 0,
            revision: 0,
            incumbents: Vec::new(),
            answer: None,
            error: None,
            started: None,
        };
        Self {
            number,
            request,
            deadline: Arc::default(),
            progress: Mutex::new(progress),
            changed: watch::Sender::new(0),
        }
    }

    /// A moment of it.
    pub(crate) fn now(&self) -> Progress {
        self.lock().clone()
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub(crate) fn has_ended(&self) -> bool {
        !matches!(self.lock().state, OptimisationState::Queued | OptimisationState::Running)
    }

    pub(crate) fn started(&self) -> Instant {
        self.lock().started.unwrap_or_else(Instant::now)
    }

    pub(crate) fn begin(&self) {
        self.change(|progress| {
            progress.started = Some(Instant::now());
            if progress.state == OptimisationState::Queued {
                progress.state = OptimisationState::Running;
            }
        });
    }

    pub(crate) fn tell(&self, told: Told) {
        self.change(|progress| match told {
            Told::Revision(revision) => progress.revision = revision,
            Told::Better(objective) => {
                let at_ms = progress.elapsed();
                progress.incumbents.push(IncumbentView { at_ms, objective });
                if progress.incumbents.len() > INCUMBENTS {
                    let newest = progress.incumbents.len().saturating_sub(1);
                    let mut row = 0usize;
                    progress.incumbents.retain(|_| {
                        row = row.saturating_add(1);
                        row % 2 == 1 || row > newest
                    });
                }
            }
        });
    }

    /// Nobody is woken for it: whoever looks sees it.
    pub(crate) fn progress(&self, share: f64) {
        let mut progress = self.lock();
        progress.share = share.clamp(0.0, 1.0);
        progress.elapsed_ms = progress.elapsed();
    }

    pub(crate) fn end(&self, answer: Answer) {
        self.change(|progress| {
            progress.state = match answer.stop_reason {
                StopReason::Cancelled => OptimisationState::Cancelled,
                _ => OptimisationState::Done,
            };
            progress.answer = Some(Arc::new(answer));
        });
    }

    pub(crate) fn fail(&self, error: String) {
        self.change(|progress| {
            progress.state = OptimisationState::Failed;
            progress.error = Some(error);
        });
    }

    /// The search ends at its next look at the deadline, with the best answer that it has.
    pub(crate) fn cancel(&self) {
        self.deadline.cancel();
        self.change(|progress| {
            if progress.state == OptimisationState::Queued {
                progress.state = OptimisationState::Cancelled;
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut Progress)) {
        let mut progress = self.lock();
        change(&mut progress);
        progress.elapsed_ms = progress.elapsed();
        if progress.answer.is_some() {
            progress.share = 1.0;
        }
        drop(progress);
        self.changed.send_modify(|count| *count = count.saturating_add(1));
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress {
    fn elapsed(&self) -> u64 {
        let elapsed = self.started.map_or(0, |started| started.elapsed().as_millis());
        u64::try_from(elapsed).unwrap_or(u64::MAX)
    }
}
