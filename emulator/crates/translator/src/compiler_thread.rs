//! A thread that compiles regions while the hart goes on in the interpreter.
//!
//! When its code comes changes nothing of what the guest sees, as the interpreter does the same.

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};

use crate::compiler::{Compiled, Compiler};
use crate::discover::Block;
use crate::translator::RegionKey;

/// Regions that may wait to be compiled. Others are asked for again and again, so that the next one is likely to be the one that is executed most.
const MOST_AWAITED: usize = 3;

/// A region to be compiled.
pub(crate) struct Job {
    /// Place and kind.
    pub key: RegionKey,
    /// Version of the page.
    pub version: u64,
    /// Physical address of the page.
    pub page: u64,
    /// The region's blocks.
    pub blocks: Vec<Block>,
}

/// A region that was compiled, with the page's version; `None` if it cannot be.
pub(crate) type CompiledRegion = (RegionKey, u64, Option<Compiled>);

/// The thread, as the hart's thread sees it.
pub(crate) struct CompilerThread {
    /// `None` once the thread is to end.
    jobs: Option<Sender<Job>>,
    finished: Receiver<CompiledRegion>,
    /// Versions of the pages of regions that are to be compiled.
    awaited: HashMap<RegionKey, u64>,
    /// What still waits is no longer wanted.
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl CompilerThread {
    /// Starts the thread; `None` if the host has no more threads.
    pub(crate) fn new(mut compiler: Compiler) -> Option<Self> {
        let (jobs, asked) = channel::<Job>();
        let (answers, finished) = channel();
        let ends = Arc::new(AtomicBool::new(false));
        let is_over = ends.clone();
        let compile = move || {
            for Job { key, version, page, blocks } in asked {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let compiled = compiler.region(&blocks, key.1, page);
                if answers.send((key, version, compiled)).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("translator".to_owned()).spawn(compile).ok()?;
        let (jobs, thread) = (Some(jobs), Some(thread));
        Some(Self { jobs, finished, awaited: HashMap::new(), ends, thread })
    }

    /// Returns whether a region of this version of its page is to be compiled.
    pub(crate) fn awaits(&self, key: RegionKey, version: u64) -> bool {
        self.awaited.get(&key) == Some(&version)
    }

    /// Returns whether so many regions wait that no other should be added.
    pub(crate) fn is_busy(&self) -> bool {
        self.awaited.len() >= MOST_AWAITED
    }

    /// Has a region compiled.
    pub(crate) fn send(&mut self, job: Job) {
        self.awaited.insert(job.key, job.version);
        // If the thread is gone, `next_compiled` says why.
        _ = self.jobs.as_ref().map(|jobs| jobs.send(job));
    }

    /// Returns the next region that was compiled and is still wanted.
    pub(crate) fn next_compiled(&mut self) -> Option<CompiledRegion> {
        loop {
            match self.finished.try_recv() {
                Ok((key, version, compiled)) if self.awaits(key, version) => {
                    self.awaited.remove(&key);
                    return Some((key, version, compiled));
                }
                Ok(_) => {}
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => {
                    if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
                        resume_unwind(panic);
                    }
                    return None;
                }
            }
        }
    }

    /// Wants nothing any more of what was asked for.
    pub(crate) fn forget(&mut self) {
        self.awaited.clear();
    }
}

impl Drop for CompilerThread {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic has been told by the thread itself.
            _ = thread.join();
        }
    }
}
