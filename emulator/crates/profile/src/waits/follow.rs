//! Adds up what threads did.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::history::{Histories, ThreadInterval, ThreadState, Waiting};
use super::{
    FutexWaits, Intervals, KernelEntry, ReasonWaits, Region, SchedulerLog, ThreadWaits, WaitReason,
    WaitSite, WaitUse, Waits, Waker,
};
use crate::{ProcessId, ThreadId};

#[derive(Default)]
struct ThreadTimes {
    running: Intervals,
    ready: Intervals,
    waits: BTreeMap<(WaitReason, Waker), Intervals>,
    unknown: u64,
}

#[derive(Default)]
struct FutexTimes {
    all: Intervals,
    pairs: BTreeMap<(ThreadId, Waker), Intervals>,
    sites: BTreeMap<WaitSite, Intervals>,
    operations: BTreeMap<u32, u64>,
}

/// Sums of what all threads did in the region.
struct WaitSums<'a> {
    region: Region,
    process: &'a dyn Fn(ThreadId) -> ProcessId,
    used_for: &'a dyn Fn(ProcessId, WaitSite) -> WaitUse,
    times: BTreeMap<ThreadId, ThreadTimes>,
    futexes: HashMap<(ProcessId, u64), FutexTimes>,
}

pub(super) fn waits(
    log: &SchedulerLog,
    process: &dyn Fn(ThreadId) -> ProcessId,
    used_for: &dyn Fn(ProcessId, WaitSite) -> WaitUse,
) -> Waits {
    let region = Region::new(&log.region);
    let histories = Histories::new(log, region.end());
    let mut sums =
        WaitSums { region, process, used_for, times: BTreeMap::new(), futexes: HashMap::new() };
    for history in &histories.threads {
        for interval in &history.intervals {
            // A thread that has ended has no interval that is open at the end.
            let is_last = interval.end == histories.end;
            sums.add(interval, is_last);
        }
    }
    sums.finish()
}

impl WaitSums<'_> {
    fn add(&mut self, interval: &ThreadInterval, is_last: bool) {
        let Some(thread) = interval.thread else {
            return;
        };
        let cycles = self.region.cycles(interval.start, interval.end);
        if cycles == 0 && !is_last && !self.region.contains(interval.end) {
            return;
        }
        let times = self.times.entry(thread).or_default();
        match interval.state {
            ThreadState::Running(_) => times.running.add(cycles),
            ThreadState::Ready => times.ready.add(cycles),
            ThreadState::Unknown => times.unknown = times.unknown.saturating_add(cycles),
            ThreadState::Waiting(waiting) => {
                let waker = match interval.wakeup {
                    Some(wakeup) => wakeup.waker,
                    None if is_last => Waker::Nobody,
                    None => Waker::Unknown,
                };
                self.waited(thread, waiting, cycles, waker);
            }
        }
    }

    fn waited(&mut self, thread: ThreadId, waiting: Waiting, cycles: u64, waker: Waker) {
        let reason = waiting.reason(thread, self.process, self.used_for);
        let times = self.times.entry(thread).or_default();
        times.waits.entry((reason, waker)).or_default().add(cycles);
        if let (Some((address, site)), KernelEntry::Syscall { argument, .. }) =
            (waiting.futex(reason), waiting.entry)
        {
            let futex = self.futexes.entry(((self.process)(thread), address)).or_default();
            futex.all.add(cycles);
            futex.pairs.entry((thread, waker)).or_default().add(cycles);
            futex.sites.entry(site).or_default().add(cycles);
            *futex.operations.entry(argument).or_default() += 1;
        }
    }

    fn finish(self) -> Waits {
        let threads = self.times.into_iter().map(|(thread, times)| ThreadWaits {
            thread,
            running: times.running,
            ready: times.ready,
            waits: by_reason(times.waits),
            unknown: times.unknown,
        });
        let mut futexes: Vec<FutexWaits> = self
            .futexes
            .into_iter()
            .map(|((process, address), futex)| FutexWaits {
                process,
                address,
                all: futex.all,
                pairs: longest_first(
                    futex
                        .pairs
                        .into_iter()
                        .map(|((thread, waker), stretches)| (thread, waker, stretches)),
                    |(.., stretches)| *stretches,
                ),
                sites: longest_first(futex.sites.into_iter(), |(_, stretches)| *stretches),
                operations: futex.operations.into_iter().collect(),
            })
            .collect();
        futexes.sort_by_key(|futex| (Reverse(futex.all.cycles), futex.process, futex.address));
        Waits { threads: threads.collect(), futexes }
    }
}

fn by_reason(waits: BTreeMap<(WaitReason, Waker), Intervals>) -> Vec<ReasonWaits> {
    let mut all: Vec<ReasonWaits> = Vec::new();
    for ((reason, waker), stretches) in waits {
        if all.last().is_none_or(|last| last.reason != reason) {
            all.push(ReasonWaits { reason, all: Intervals::default(), wakers: Vec::new() });
        }
        if let Some(last) = all.last_mut() {
            last.all.merge(stretches);
            last.wakers.push((waker, stretches));
        }
    }
    for waits in &mut all {
        let wakers = std::mem::take(&mut waits.wakers);
        waits.wakers = longest_first(wakers.into_iter(), |(_, stretches)| *stretches);
    }
    longest_first(all.into_iter(), |waits| waits.all)
}

fn longest_first<T>(all: impl Iterator<Item = T>, stretches: fn(&T) -> Intervals) -> Vec<T> {
    let mut all: Vec<T> = all.collect();
    all.sort_by_key(|one| Reverse((stretches(one).cycles, stretches(one).count)));
    all
}
