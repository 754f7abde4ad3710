//! The critical path over threads: what the end of the region waited for, followed back from wakeup to wakeup.
//!
//! Yang and Miller, "Critical path analysis for the execution of parallel and distributed programs" (ICDCS 1988), on the records of
//! a kernel's scheduler in the place of a trace of messages.

use super::history::{Histories, HistoryId, ThreadInterval, ThreadState, Waiting};
use super::{KernelEntry, Region, SchedulerLog, WaitReason, WaitSite, WaitUse, Waker};
use crate::{ContextId, ProcessId, ThreadId};

/// The path ends with the program's last thread if that ran in the last 1 / `LAST_PART` of the region.
const LAST_PART: u64 = 20;

/// The critical path of a region. Segments follow each other without a gap: the cycles of all together are those of the region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadPath {
    /// Segments in order of time.
    pub segments: Vec<PathSegment>,
}

/// A stretch of the critical path in which one thread does one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathSegment {
    /// The first cycle.
    pub start: u64,
    /// The first cycle after the segment.
    pub end: u64,
    /// Cycles of the region in the segment.
    pub cycles: u64,
    /// The thread; `None` if it is not known.
    pub thread: Option<ThreadId>,
    /// What the thread does.
    pub kind: PathKind,
    /// How the path comes to the thread from that of the segment before, if that is another thread.
    pub edge: Option<PathEdge>,
}

/// What a thread on the critical path does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// The hart of this number runs the thread.
    Running(u32),
    /// The thread could run, and waits for a hart.
    Ready,
    /// The thread waits for this reason, for no thread that is known: until an interrupt of a timer or a device, or nobody knows for whom.
    Waiting(WaitReason, Waker),
    /// Nothing is known.
    Unknown,
}

/// A step of the critical path from one thread to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathEdge {
    /// The thread that wakes the other one, or makes it.
    pub waker: Option<ThreadId>,
    /// What the other thread waited for; `None` if it is new.
    pub wait: Option<PathWait>,
    /// The kernel's calling context as the waking thread entered the kernel, if calls were followed.
    pub context: Option<ContextId>,
}

/// A wait that a thread on the critical path ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathWait {
    /// The reason; `None` if the wait's begin was not told.
    pub reason: Option<WaitReason>,
    /// The futex's address, if the thread waited for a futex, and where it entered the kernel to do so.
    pub futex: Option<(u64, WaitSite)>,
    /// Cycles of the region in which the thread waited.
    pub cycles: u64,
}

impl ThreadPath {
    /// Returns the cycles of all segments.
    pub fn cycles(&self) -> u64 {
        self.segments.iter().map(|segment| segment.cycles).sum()
    }
}

impl SchedulerLog {
    /// Returns the critical path of the region; `None` if the kernel does not tell. `process` returns a thread's process, `used_for` what a
    /// process uses a futex or a sleep for.
    ///
    /// The path ends with the thread that ran last, of several the one with the least `rank` and then the least number. A thread of the least
    /// rank that ran in the region's last twentieth comes before others: what runs after the program's end, such as what started the program, may
    /// have been ready all the time, so that it waited for nothing that the program did.
    ///
    /// A thread of the kernel that waits for work is woken by whoever has some, often by an interrupt, and who asked for that is not told. If another
    /// thread began to wait for it meanwhile, then the path goes back to that thread at that time, and on with what it did before it waited.
    pub fn critical_path(
        &self,
        process: impl Fn(ThreadId) -> ProcessId,
        used_for: impl Fn(ProcessId, WaitSite) -> WaitUse,
        rank: impl Fn(ThreadId) -> u32,
    ) -> Option<ThreadPath> {
        if !self.tells() {
            return None;
        }
        let region = Region::new(&self.region);
        let histories = Histories::new(self, region.end());
        let last = last_thread(&histories, region.start(), &rank)?;
        let mut walk = Walk {
            region,
            histories: &histories,
            process: &process,
            used_for: &used_for,
            found: Vec::new(),
            dependents: Vec::new(),
        };
        walk.back_from(last);
        walk.found.reverse();
        Some(ThreadPath { segments: walk.found })
    }
}

/// Returns the thread that the path through a region from cycle `start` on ends with.
pub(super) fn last_thread(
    histories: &Histories,
    start: u64,
    rank: &impl Fn(ThreadId) -> u32,
) -> Option<HistoryId> {
    let end = histories.end;
    let last_run = histories.threads.iter().enumerate().filter_map(|(id, history)| {
        let is_run = |interval: &&ThreadInterval| {
            matches!(interval.state, ThreadState::Running(_)) && interval.thread.is_some()
        };
        let interval = history.intervals.iter().rev().find(is_run)?;
        Some((id, interval.end, rank(interval.thread?), history.tid))
    });
    let last_run: Vec<_> = last_run.collect();
    let least = last_run.iter().map(|&(_, _, rank, _)| rank).min()?;
    let near = end - end.saturating_sub(start) / LAST_PART;
    let comes_first = |&(_, end, rank, _): &(_, u64, u32, _)| rank == least && end >= near;
    let latest = last_run.iter().max_by_key(|last| {
        let &(_, end, rank, tid) = *last;
        (comes_first(last), end, std::cmp::Reverse(rank), std::cmp::Reverse(tid))
    });
    latest.map(|&(id, ..)| id)
}

struct Walk<'a> {
    region: Region,
    histories: &'a Histories,
    process: &'a dyn Fn(ThreadId) -> ProcessId,
    used_for: &'a dyn Fn(ProcessId, WaitSite) -> WaitUse,
    /// Segments so far, the latest first.
    found: Vec<PathSegment>,
    /// Threads that the path came from to those that woke them, each with the cycle in which its wait began; the last one is the latest.
    dependents: Vec<(HistoryId, u64)>,
}

impl Walk<'_> {
    fn back_from(&mut self, last: HistoryId) {
        let (mut at, mut cycle) = (last, self.histories.end);
        while cycle > self.region.start() {
            let intervals = &self.histories.threads[at].intervals;
            let begun = intervals.partition_point(|interval| interval.start < cycle);
            let Some(number) = begun.checked_sub(1) else {
                // The thread's life begins here.
                match self.parent(at, cycle) {
                    Some(parent) => {
                        self.follow(PathEdge {
                            waker: self.thread_at(parent, cycle),
                            wait: None,
                            context: None,
                        });
                        at = parent;
                    }
                    None => {
                        self.add(self.region.start(), cycle, None, PathKind::Unknown);
                        cycle = self.region.start();
                    }
                }
                continue;
            };
            let interval = intervals[number];
            if interval.end < cycle {
                // The thread has ended.
                self.add(interval.end, cycle, interval.thread, PathKind::Unknown);
                cycle = interval.end;
                continue;
            }
            let waited = match interval.state {
                ThreadState::Running(hart) => {
                    self.add(interval.start, cycle, interval.thread, PathKind::Running(hart));
                    cycle = interval.start;
                    continue;
                }
                ThreadState::Ready => {
                    self.add(interval.start, cycle, interval.thread, PathKind::Ready);
                    cycle = interval.start;
                    number.checked_sub(1).map(|before| intervals[before])
                }
                ThreadState::Waiting(_) | ThreadState::Unknown => Some(interval),
            };
            let waited = waited.filter(|interval| {
                matches!(interval.state, ThreadState::Waiting(_) | ThreadState::Unknown)
            });
            // What was running before it was ready lost its turn, and what is new has no interval before.
            let Some(waited) = waited else { continue };
            match self.waker(at, &waited, cycle) {
                Some((waker, edge)) => {
                    self.follow(edge);
                    self.dependents.push((at, waited.start));
                    at = waker;
                }
                None => {
                    let dependent = self.dependent_within(&waited, cycle);
                    let (back, start) = dependent.unwrap_or((at, waited.start));
                    self.add(start, cycle, waited.thread, self.kind_of_wait(&waited));
                    (at, cycle) = (back, start);
                }
            }
        }
    }

    /// Returns the thread that the path goes back to from a thread of the kernel which waits for nobody knows whom, and the cycle: that which
    /// came to wait for what the kernel's thread was to do, while that waited already. What the kernel's thread then waited for is no older.
    fn dependent_within(
        &mut self,
        waited: &ThreadInterval,
        cycle: u64,
    ) -> Option<(HistoryId, u64)> {
        let ThreadState::Waiting(Waiting { entry: KernelEntry::Kernel, .. }) = waited.state else {
            return None;
        };
        while self.dependents.last().is_some_and(|&(_, since)| since >= cycle) {
            self.dependents.pop();
        }
        self.dependents.pop_if(|&mut (_, since)| since > waited.start)
    }

    /// Adds a segment of which some cycles are in the region.
    fn add(&mut self, start: u64, end: u64, thread: Option<ThreadId>, kind: PathKind) {
        let cycles = self.region.cycles(start, end);
        if cycles > 0 {
            self.found.push(PathSegment { start, end, cycles, thread, kind, edge: None });
        }
    }

    /// Notes how the path came to the earliest segment so far.
    fn follow(&mut self, edge: PathEdge) {
        if let Some(segment) = self.found.last_mut() {
            segment.edge = Some(edge);
        }
    }

    /// Returns the number of a thread in the cycle before this one.
    fn thread_at(&self, id: HistoryId, cycle: u64) -> Option<ThreadId> {
        self.histories.threads[id].at(cycle)?.thread
    }

    /// Returns the thread that made a thread.
    fn parent(&self, id: HistoryId, cycle: u64) -> Option<HistoryId> {
        let parent = self.histories.threads[id].parent;
        parent.filter(|parent| *parent != id && self.histories.threads[*parent].runs_before(cycle))
    }

    /// Returns the thread that ended a wait, if it was one, and if the wait was not over as it began.
    fn waker(
        &self,
        id: HistoryId,
        waited: &ThreadInterval,
        cycle: u64,
    ) -> Option<(HistoryId, PathEdge)> {
        let wakeup = waited.wakeup?;
        let waker = wakeup.by.filter(|waker| *waker != id)?;
        if wakeup.cycle <= waited.start && matches!(waited.state, ThreadState::Waiting(_)) {
            return None;
        }
        if !self.histories.threads[waker].runs_before(cycle) {
            return None;
        }
        let cycles = self.region.cycles(waited.start, waited.end);
        let reason = self.reason_of_wait(waited);
        let futex = match (waited.state, reason) {
            (ThreadState::Waiting(waiting), Some(reason)) => waiting.futex(reason),
            _ => None,
        };
        let wait = PathWait { reason, futex, cycles };
        let thread = self.thread_at(waker, cycle);
        let edge = PathEdge { waker: thread, wait: Some(wait), context: wakeup.context };
        Some((waker, edge))
    }

    fn reason_of_wait(&self, waited: &ThreadInterval) -> Option<WaitReason> {
        match (waited.state, waited.thread) {
            (ThreadState::Waiting(waiting), Some(thread)) => {
                Some(waiting.reason(thread, self.process, self.used_for))
            }
            _ => None,
        }
    }

    /// Returns what a wait is that the path does not leave to another thread.
    fn kind_of_wait(&self, waited: &ThreadInterval) -> PathKind {
        let nobody = match waited.end == self.histories.end {
            true => Waker::Nobody,
            false => Waker::Unknown,
        };
        let waker = waited.wakeup.map_or(nobody, |wakeup| wakeup.waker);
        self.reason_of_wait(waited)
            .map_or(PathKind::Unknown, |reason| PathKind::Waiting(reason, waker))
    }
}

#[cfg(test)]
mod tests;
