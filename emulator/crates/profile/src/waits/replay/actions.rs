//! From what threads did to the actions that a replay executes.

use std::collections::{BTreeMap, HashSet};

use super::{FutexKey, ReplayChange};
use crate::waits::history::{Histories, HistoryId, ThreadInterval, ThreadState, Wakeup};
use crate::waits::{WaitReason, WaitUse};
use crate::{ProcessId, ThreadId};

/// Something that a thread does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Action {
    /// The thread runs for so many cycles.
    Run(f64),
    /// The thread lets others have its hart, as it lost its turn.
    Yield,
    /// The thread sleeps for so many cycles.
    Sleep(u64),
    /// The thread waits for the wakeup of this number, which may be over.
    Wait(usize),
    /// The thread ends the wait of this number.
    Wake(usize),
    /// The thread comes to a barrier, and waits until as many have as [`Program::meetings`] says.
    Meet(usize),
    /// The thread starts another one.
    Start(HistoryId),
    /// The thread waits for the end of another one.
    Join(HistoryId),
}

/// All threads' actions.
pub(super) struct Program {
    /// Actions of each thread, in order.
    pub threads: Vec<Vec<Action>>,
    /// Threads that are there from the start: those that run first.
    pub first: Vec<HistoryId>,
    /// Number of waits.
    pub waits: usize,
    /// Number of threads that come to each meeting at a barrier.
    pub meetings: Vec<usize>,
    /// Cycles from a wakeup until the thread runs, if a hart is free.
    pub latency: u64,
    /// Number of waits that the change is about.
    pub changed: u64,
}

/// What a thread does at a cycle in which it runs.
type Point = (u64, Action);

/// A wait at a barrier.
struct BarrierWait {
    woken: u64,
    waiter: HistoryId,
    /// The waiter's interval.
    interval: usize,
    waker: HistoryId,
}

/// Threads that meet at a barrier once.
#[derive(Default)]
struct Meeting {
    /// By thread, the cycle in which it comes.
    comes: BTreeMap<HistoryId, u64>,
    waker: HistoryId,
    /// Waits, by thread and interval.
    waits: Vec<(HistoryId, usize)>,
}

struct Builder<'a> {
    histories: &'a Histories,
    start: u64,
    process: &'a dyn Fn(ThreadId) -> ProcessId,
    /// By thread, what it does while it runs.
    points: Vec<Vec<Point>>,
    /// Waits by thread and interval that are followed, with what the thread does in their place.
    waits: BTreeMap<(HistoryId, usize), Option<Action>>,
    count: usize,
    changed: u64,
}

impl Program {
    /// Returns the actions of all threads from cycle `start` on.
    pub(super) fn new(
        histories: &Histories,
        start: u64,
        change: &ReplayChange,
        process: &dyn Fn(ThreadId) -> ProcessId,
    ) -> Self {
        let mut builder = Builder {
            histories,
            start,
            process,
            points: vec![Vec::new(); histories.threads.len()],
            waits: BTreeMap::new(),
            count: 0,
            changed: 0,
        };
        let meetings = builder.find_waits(change);
        builder.find_starts();
        let mut scales = Scales::default();
        let mut sizes = Vec::new();
        for (number, meeting) in meetings.iter().enumerate() {
            for wait in &meeting.waits {
                builder.waits.insert(*wait, Some(Action::Meet(number)));
            }
            let waker_comes = meeting.comes[&meeting.waker];
            builder.points[meeting.waker].push((waker_comes, Action::Meet(number)));
            sizes.push(meeting.comes.len());
            scales.add(histories, start, meeting);
        }
        for points in &mut builder.points {
            points.sort_by_key(|(cycle, _)| *cycle);
        }
        let ids = 0..histories.threads.len();
        let threads = ids.clone().map(|id| builder.actions(id, &scales)).collect();
        let is_first = |id: &HistoryId| {
            let intervals = &histories.threads[*id].intervals;
            let begins_before = intervals.first().is_some_and(|first| first.start <= start);
            begins_before || builder.starter(*id).is_none()
        };
        let mut first: Vec<HistoryId> = ids.filter(is_first).collect();
        let runs = |id: &HistoryId| histories.threads[*id].runs_before(start.saturating_add(1));
        first.sort_by_key(|id| !runs(id));
        Self {
            threads,
            first,
            waits: builder.count,
            meetings: sizes,
            latency: latency(histories),
            changed: builder.changed,
        }
    }
}

/// Returns the cycles from a wakeup until a thread runs: those that a quarter of all wakeups took at most, as others may have waited for a hart.
fn latency(histories: &Histories) -> u64 {
    let mut found: Vec<u64> = Vec::new();
    for history in &histories.threads {
        for pair in history.intervals.windows(2) {
            if matches!(pair[0].state, ThreadState::Waiting(_))
                && pair[1].state == ThreadState::Ready
            {
                found.push(pair[1].end.saturating_sub(pair[1].start));
            }
        }
    }
    found.sort_unstable();
    found.get(found.len() / 4).copied().unwrap_or(0)
}

impl Builder<'_> {
    /// Returns the futex of a wait.
    fn futex(&self, interval: &ThreadInterval) -> Option<(FutexKey, WaitReason)> {
        let (ThreadState::Waiting(waiting), Some(thread)) = (interval.state, interval.thread)
        else {
            return None;
        };
        let reason = waiting.reason(thread, self.process, &|_, _| WaitUse::Program);
        let (address, _) = waiting.futex(reason)?;
        Some((((self.process)(thread), address), reason))
    }

    /// Returns the thread whose wakeup ended a wait, if it ran then and the wait was not over as it began.
    fn waker(&self, id: HistoryId, interval: &ThreadInterval) -> Option<(HistoryId, Wakeup)> {
        let wakeup = interval.wakeup?;
        let by = wakeup.by.filter(|by| *by != id)?;
        let is_late = wakeup.cycle > interval.start && wakeup.cycle > self.start;
        (is_late && self.histories.threads[by].runs_before(wakeup.cycle)).then_some((by, wakeup))
    }

    /// Finds the waits that others end, and returns the meetings at barriers of which the work is to be the same.
    fn find_waits(&mut self, change: &ReplayChange) -> Vec<Meeting> {
        let mut at_barriers: BTreeMap<FutexKey, Vec<BarrierWait>> = BTreeMap::new();
        for (id, history) in self.histories.threads.iter().enumerate() {
            for (number, interval) in history.intervals.iter().enumerate() {
                if interval.end <= self.start {
                    continue;
                }
                let futex = self.futex(interval);
                if let Some((key, _)) = futex
                    && change.free.contains(&key)
                {
                    self.waits.insert((id, number), None);
                    self.changed += 1;
                    continue;
                }
                let Some((waker, wakeup)) = self.waker(id, interval) else {
                    continue;
                };
                if let Some((key, _)) = futex
                    && change.even.contains(&key)
                {
                    self.changed += 1;
                    let wait =
                        BarrierWait { woken: wakeup.cycle, waiter: id, interval: number, waker };
                    at_barriers.entry(key).or_default().push(wait);
                    continue;
                }
                self.waits.insert((id, number), Some(Action::Wait(self.count)));
                self.points[waker].push((wakeup.cycle, Action::Wake(self.count)));
                self.count += 1;
            }
        }
        at_barriers.into_values().flat_map(|waits| self.meetings(waits)).collect()
    }

    /// Groups the waits at a barrier into meetings: those that the same thread ends, each waiter once.
    fn meetings(&self, mut waits: Vec<BarrierWait>) -> Vec<Meeting> {
        waits.sort_by_key(|wait| wait.woken);
        let mut meetings: Vec<Meeting> = Vec::new();
        for wait in waits {
            let comes = self.histories.threads[wait.waiter].intervals[wait.interval].start;
            let is_same = meetings.last().is_some_and(|last| {
                last.waker == wait.waker && !last.comes.contains_key(&wait.waiter)
            });
            if !is_same {
                let waker = wait.waker;
                meetings.push(Meeting { waker, ..Meeting::default() });
                meetings.last_mut().expect("a meeting").comes.insert(waker, wait.woken);
            }
            let last = meetings.last_mut().expect("a meeting");
            last.comes.insert(wait.waiter, comes.max(self.start));
            last.waits.push((wait.waiter, wait.interval));
        }
        meetings
    }

    /// Returns the thread that starts a thread after `start`.
    fn starter(&self, id: HistoryId) -> Option<HistoryId> {
        let history = &self.histories.threads[id];
        let begins = history.intervals.first()?.start;
        let parent = history.parent.filter(|parent| *parent != id)?;
        (begins > self.start && self.histories.threads[parent].runs_before(begins))
            .then_some(parent)
    }

    fn find_starts(&mut self) {
        for id in 0..self.histories.threads.len() {
            if let Some(parent) = self.starter(id) {
                let begins = self.histories.threads[id].intervals[0].start;
                self.points[parent].push((begins, Action::Start(id)));
            }
        }
    }

    /// Returns the threads that a thread started and that had ended by a cycle.
    fn ended_by(&self, parent: HistoryId, cycle: u64) -> impl Iterator<Item = HistoryId> {
        let all = self.histories.threads.iter().enumerate();
        all.filter(move |(_, history)| {
            let end = history.intervals.last().map(|last| last.end);
            history.parent == Some(parent)
                && history.has_ended
                && end.is_some_and(|end| end <= cycle && end > self.start)
        })
        .map(|(id, _)| id)
    }

    fn actions(&self, id: HistoryId, scales: &Scales) -> Vec<Action> {
        let history = &self.histories.threads[id];
        let mut actions = Vec::new();
        let mut points = self.points[id].iter().peekable();
        let mut joined = HashSet::new();
        let mut was_running = false;
        for (number, interval) in history.intervals.iter().enumerate() {
            if interval.end <= self.start || interval.thread.is_none() {
                continue;
            }
            let begin = interval.start.max(self.start);
            match interval.state {
                ThreadState::Running(_) => {
                    let mut at = begin;
                    while let Some((cycle, action)) =
                        points.next_if(|(cycle, _)| *cycle <= interval.end)
                    {
                        let cycle = (*cycle).max(at);
                        actions.push(Action::Run(scales.scaled(id, at, cycle)));
                        actions.push(*action);
                        at = cycle;
                    }
                    actions.push(Action::Run(scales.scaled(id, at, interval.end)));
                }
                ThreadState::Ready if was_running => actions.push(Action::Yield),
                ThreadState::Ready => {}
                ThreadState::Waiting(_) | ThreadState::Unknown => {
                    match self.waits.get(&(id, number)) {
                        Some(action) => actions.extend(*action),
                        None if interval.end == self.histories.end => break,
                        None => actions.push(Action::Sleep(interval.end.saturating_sub(begin))),
                    }
                    // The threads that had ended before were joined without a wait.
                    if let Some((_, WaitReason::SharedFutex)) = self.futex(interval) {
                        let ended = self.ended_by(id, interval.end);
                        let newly = ended.filter(|ended| joined.insert(*ended));
                        actions.extend(newly.map(Action::Join));
                    }
                }
            }
            was_running = matches!(interval.state, ThreadState::Running(_));
        }
        let ended = self.ended_by(id, self.histories.end);
        actions.extend(ended.filter(|ended| joined.insert(*ended)).map(Action::Join));
        actions
    }
}

/// Factors of the time that threads run between barriers.
#[derive(Default)]
struct Scales {
    /// By thread, ascending stretches of cycles without overlap, with the factor of each.
    by_thread: BTreeMap<HistoryId, Vec<(u64, u64, f64)>>,
}

impl Scales {
    /// Makes the work of all threads that meet the mean of what it was since each thread's last meeting, or since all of them lived.
    fn add(&mut self, histories: &Histories, start: u64, meeting: &Meeting) {
        let born = |id: &HistoryId| histories.threads[*id].intervals.first().map(|own| own.start);
        let together = meeting.comes.keys().filter_map(born).max().unwrap_or(start).max(start);
        let spans: Vec<(HistoryId, u64, u64, u64)> = meeting
            .comes
            .iter()
            .map(|(id, comes)| {
                let last = self.by_thread.get(id).and_then(|own| own.last());
                let since = last.map_or(together, |(_, end, _)| *end);
                let since = since.min(*comes);
                (*id, since, *comes, histories.threads[*id].running(since, *comes))
            })
            .collect();
        let mean = spans.iter().map(|(.., own)| *own as f64).sum::<f64>() / spans.len() as f64;
        for (id, since, comes, own) in spans {
            let factor = if own == 0 { 1.0 } else { mean / own as f64 };
            self.by_thread.entry(id).or_default().push((since, comes, factor));
        }
    }

    /// Returns the cycles that a thread runs instead of those from `from` to before `to`.
    fn scaled(&self, id: HistoryId, from: u64, to: u64) -> f64 {
        let mut cycles = to.saturating_sub(from) as f64;
        for &(start, end, factor) in self.by_thread.get(&id).into_iter().flatten() {
            let part = to.min(end).saturating_sub(from.max(start));
            cycles += part as f64 * (factor - 1.0);
        }
        cycles
    }
}
