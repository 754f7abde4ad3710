//! Who has the predictors learn from the log of the path: the hart's thread, or one beside it.
//!
//! Nothing that the hart sees depends on what predictors know, so that a second thread may lag behind, and the results are the same.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use isa::{PathLog, PathSegment};

use crate::Preset;
use crate::path::{Fetch, Path};

/// Logs that are written, wait, or are followed.
const LOGS: usize = 4;

/// Whether predictors learn from the path while a hart executes without timing.
#[derive(Clone, Copy, Debug, Default)]
pub enum Learning {
    /// Predictors stay as they are.
    #[default]
    Off,
    /// On the hart's thread.
    Here,
    /// On a thread of their own, which calls the function first. The results are the same.
    Apart(fn()),
}

impl Learning {
    fn is_off(self) -> bool {
        matches!(self, Self::Off)
    }
}

/// Follows the log of the path.
#[derive(Default)]
pub(super) struct Follower {
    /// What the hart executed since the log was emptied last.
    pub log: PathLog,
    learning: Learning,
    thread: Option<FollowerThread>,
}

/// A thread that has what the path's fetch knows, and makes it follow logs.
struct FollowerThread {
    logs: SyncSender<PathLog>,
    /// Logs that were followed, to be written again.
    emptied: Receiver<PathLog>,
    thread: JoinHandle<Fetch>,
}

impl Follower {
    /// Sets whether the predictors learn from what the hart executes from now on. Once they do not, `path` has all that was learnt.
    pub(super) fn go_on(&mut self, learning: Learning, path: &mut Path) {
        let before = std::mem::replace(&mut self.learning, learning);
        if before.is_off() == learning.is_off() {
            return;
        }
        if let Some(thread) = self.thread.take() {
            path.give_back(thread.finish());
        }
        if learning.is_off() {
            path.fetch_mut().replay(self.log.segments());
        }
        self.log.clear();
        match learning.is_off() {
            // The hart goes on from here.
            true => path.fetch_mut().leave(),
            // What is executed next does not follow what the path knows.
            false => path.fetch_mut().flush(),
        }
    }

    /// Returns whether the predictors learn, so that the path knows where the hart is.
    pub(super) fn is_learning(&self) -> bool {
        !self.learning.is_off()
    }

    /// Returns what the hart executed since the log was emptied last, if the predictors learn from it.
    pub(super) fn to_follow(&self) -> &[PathSegment] {
        match self.is_learning() {
            true => self.log.segments(),
            false => &[],
        }
    }

    /// Follows the log, if the predictors learn, and empties it.
    pub(super) fn follow(&mut self, path: &mut Path, preset: &Preset) {
        if let (Learning::Apart(starts), None) = (self.learning, &self.thread) {
            self.thread = FollowerThread::new(path, preset, starts);
        }
        match &self.thread {
            Some(thread) => {
                // If the thread is gone, `go_on` says why.
                let emptied = thread.emptied.recv().unwrap_or_default();
                _ = thread.logs.send(std::mem::replace(&mut self.log, emptied));
            }
            None if self.learning.is_off() => {}
            None => path.fetch_mut().replay(self.log.segments()),
        }
        self.log.clear();
    }
}

impl FollowerThread {
    /// Starts the thread, with what the path's fetch knows; `None` if the host has no more threads.
    fn new(path: &mut Path, preset: &Preset, starts: fn()) -> Option<Self> {
        let (logs, sent) = sync_channel::<PathLog>(LOGS);
        let (back, emptied) = sync_channel(LOGS);
        for _ in 1..LOGS {
            back.send(PathLog::default()).ok()?;
        }
        let (give, given) = sync_channel::<Fetch>(1);
        let follow = move || {
            starts();
            let mut fetch = given.recv().unwrap_or_else(|_| unreachable!("given at once"));
            for mut log in sent {
                fetch.replay(log.segments());
                log.clear();
                // There are as many logs as there is room for; at the end nobody takes them.
                _ = back.try_send(log);
            }
            fetch
        };
        let thread = thread::Builder::new().name("predictors".to_owned()).spawn(follow).ok()?;
        let apart = Self { logs, emptied, thread };
        if give.send(path.take_fetch(preset)).is_err() {
            // The thread has panicked in what it calls first, and what it took is lost: the panic goes on here.
            apart.finish();
            return None;
        }
        Some(apart)
    }

    /// Waits until all logs are followed.
    fn finish(self) -> Fetch {
        drop(self.logs);
        self.thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}
