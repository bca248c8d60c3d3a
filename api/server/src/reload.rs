//! Hot reload: a directory whose policy files are in force, and stay so while they change.
//!
//! A thread of its own waits for news of the directory, looks at it twice to let writers finish,
//! and hands what it found to `follow`. A slow look now and then makes up for news that never
//! came. Requests in flight finish under the policies that they began with; nobody waits for this
//! thread.

mod follow;
mod judge;
mod scan;
mod trial;

#[cfg(test)]
mod tests;

use crate::service::Service;
use follow::Follower;
use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long after the first news the directory is looked at: what comes together is read together.
const DEBOUNCE: Duration = Duration::from_millis(20);
/// How long a file must be the same before it is believed.
const SETTLE: Duration = Duration::from_millis(50);
/// How often the directory is looked at without any news.
const POLL: Duration = Duration::from_secs(2);

/// A directory of policy files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyDirectory {
    pub path: PathBuf,
    /// Policies stay in force when their file is removed.
    pub keep_removed: bool,
}

/// A directory that is being followed; no longer when this is dropped.
#[derive(Debug)]
pub struct Watching {
    news: SyncSender<News>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    Changed,
    Stop,
}

impl PolicyDirectory {
    /// Reads the directory once and follows it from then on. When this returns, every good file
    /// is in force. Waits for the disk and for the log.
    pub fn watch(self, service: &Service) -> io::Result<Watching> {
        // One is enough: whatever happened, the whole directory is looked at.
        let (news, heard) = sync_channel(1);
        let mut watch = Watch {
            watcher: watcher(news.clone()),
            watched: None,
            follower: Follower::new(service.clone(), self.keep_removed),
            path: self.path,
        };
        // The first look says whether the directory is there at all.
        scan::scan(&watch.path)?;
        service.policy_files().read_from(&watch.path);
        watch.look();
        let thread = std::thread::Builder::new().name("policy-files".into());
        let thread = thread.spawn(move || watch.run(&heard))?;
        Ok(Watching { news, thread: Some(thread) })
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // Fails only when the thread has ended; a full channel is emptied by it.
        let _ = self.news.send(News::Stop);
        if let Some(thread) = self.thread.take() {
            // It catches what it can; whatever else happened to it, there is nothing left to do.
            let _ = thread.join();
        }
    }
}

struct Watch {
    path: PathBuf,
    /// `None` where the system has no more to give; looking now and then has to do.
    watcher: Option<RecommendedWatcher>,
    /// The directory that news are of.
    watched: Option<(u64, u64)>,
    follower: Follower,
}

impl Watch {
    fn run(mut self, heard: &Receiver<News>) {
        loop {
            match heard.recv_timeout(self.follower.patience().unwrap_or(POLL)) {
                Ok(News::Changed) => {
                    std::thread::sleep(DEBOUNCE);
                    // News from now on are about something that this look may miss.
                    if heard.try_iter().any(|news| news == News::Stop) {
                        return;
                    }
                }
                Ok(News::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.look();
        }
    }

    fn look(&mut self) {
        self.listen();
        match self.settled() {
            Ok(scan) => self.follower.take(&scan, Instant::now()),
            Err(error) => self.follower.cannot_read(&error),
        }
    }

    /// The directory as it is once writers have had a moment to finish.
    fn settled(&self) -> io::Result<scan::Scan> {
        let first = scan::scan(&self.path)?;
        if !self.follower.is_news(&first) {
            return Ok(first);
        }
        std::thread::sleep(SETTLE);
        Ok(scan::settled(&first, scan::scan(&self.path)?))
    }

    /// Sees to it that news are of the directory that has the name now.
    fn listen(&mut self) {
        let Some(watcher) = &mut self.watcher else { return };
        let there = scan::identity(&self.path).ok();
        if there == self.watched {
            return;
        }
        // Forgetting a directory that is gone may fail, which is no matter.
        let _ = watcher.unwatch(&self.path);
        self.watched = match watcher.watch(&self.path, RecursiveMode::NonRecursive) {
            Ok(()) => there,
            Err(error) => {
                tracing::warn!(%error, "no news of the policy directory; it is looked at anyway");
                None
            }
        };
    }
}

/// Sends `News::Changed` when a file may be complete, gone or under another name.
fn watcher(news: SyncSender<News>) -> Option<RecommendedWatcher> {
    let hear = move |event: notify::Result<notify::Event>| {
        if event.map_or(true, |event| event.need_rescan() || is_news(&event.kind)) {
            // Full: a look is due already.
            let _ = news.try_send(News::Changed);
        }
    };
    match notify::recommended_watcher(hear) {
        Ok(watcher) => Some(watcher),
        Err(error) => {
            tracing::warn!(%error, "no news of the policy directory; it is looked at anyway");
            None
        }
    }
}

/// Opening and reading is what this thread does itself; writing is news when it is done.
fn is_news(kind: &EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        EventKind::Modify(ModifyKind::Data(_)) => false,
        _ => true,
    }
}
