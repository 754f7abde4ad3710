//! Replays what threads did as if a lock never made anybody wait, or as if all did the same work between barriers.
//!
//! The records of the kernel's scheduler become actions of each thread: it runs for so many cycles, wakes others, waits for a wakeup, sleeps. The replay
//! executes the actions on as many harts, first come, first served. A change takes away some of the actions. What spins is running, here as in
//! the records. Not modelled: which harts a thread may run on, and what threads do to each other in caches and memory.

mod actions;
mod schedule;

use std::collections::BTreeSet;

use super::history::Histories;
use super::{Region, SchedulerLog};
use crate::{ProcessId, ThreadId};

/// A futex: the program in whose memory it is, and its address there.
pub type FutexKey = (ProcessId, u64);

/// What a replay changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayChange {
    /// Futexes for which nobody waits: locks that are always free, or that are not shared.
    pub free: BTreeSet<FutexKey>,
    /// Futexes of barriers before which all threads do the same work: the mean of what they did.
    pub even: BTreeSet<FutexKey>,
}

/// What became of a region in a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// Cycles that the region took.
    pub recorded: u64,
    /// Cycles of the replay without a change. The difference from what was recorded tells what the replay does not model.
    pub unchanged: u64,
    /// Cycles of the replay with the change.
    pub changed: u64,
    /// Number of waits that the change is about.
    pub waits: u64,
}

impl SchedulerLog {
    /// Replays the region on so many harts with a change; `None` if the kernel does not tell, or if the records are not enough to get to the
    /// region's end. `process` and `rank` are as in [`SchedulerLog::critical_path`].
    pub fn replay(
        &self,
        harts: usize,
        change: &ReplayChange,
        process: impl Fn(ThreadId) -> ProcessId,
        rank: impl Fn(ThreadId) -> u32,
    ) -> Option<Replayed> {
        if !self.tells() {
            return None;
        }
        let region = Region::new(&self.region);
        let histories = Histories::new(self, region.end());
        let last = super::path::last_thread(&histories, region.start(), &rank)?;
        let cycles = |change: &ReplayChange| {
            let program = actions::Program::new(&histories, region.start(), change, &process);
            Some((schedule::elapsed(&program, harts, last)?, program.changed))
        };
        let (unchanged, _) = cycles(&ReplayChange::default())?;
        let (changed, waits) = cycles(change)?;
        Some(Replayed {
            recorded: region.end().saturating_sub(region.start()),
            unchanged,
            changed,
            waits,
        })
    }
}

#[cfg(test)]
mod tests;
