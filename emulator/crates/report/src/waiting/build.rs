//! The section's rows, made from an evaluation's waits.

use std::collections::{BTreeMap, HashMap};

use profile::waits::{
    FUTEX_PRIVATE, FutexWaits, Intervals, ThreadWaits, WaitReason, WaitUse, Waker, futex_wait,
};
use profile::{Contexts, Evaluation, ProcessId, ThreadId};
use symbols::{ProgramData, Symbolizer};
use syscalls::riscv64::Sysno;

use super::callers::{Caller, NamedSite, NamedSites};
use super::{
    CallerRow, FutexRow, PairRow, PlaceRow, ProgramWaiting, SHARED, ThreadWaiting, Time, UNKNOWN,
    WaitRow, WaitingReport, WakerRow,
};
use crate::model::Common;

/// Rows that report.json has at most: threads, and futexes.
const MAX_THREADS: usize = 500;
const MAX_FUTEXES: usize = 50;
/// Rows of each futex that report.json has at most: pairs, places, and callers.
const MAX_PAIRS: usize = 20;
const MAX_PLACES: usize = 6;
const MAX_CALLERS: usize = 6;
/// Wakers that report.json has at most of a thread's waits for one reason.
const MAX_WAKERS: usize = 6;

/// Returns the waits of the report's processes; `None` if the guest's kernel does not tell.
pub(crate) fn waiting(
    common: &Common,
    evaluation: &Evaluation,
    symbolizer: &Symbolizer,
    sites: &NamedSites,
) -> Option<WaitingReport> {
    let waits = evaluation.waits(|process, site| sites.used_for(process, site))?;
    let builder = RowBuilder { common, evaluation, symbolizer, sites };
    let mut threads: Vec<ThreadWaiting> =
        waits.threads.iter().filter_map(|thread| builder.thread(thread)).collect();
    threads.sort_by_key(|row| (row.process, std::cmp::Reverse(row.cycles), row.tid));
    let programs = programs(&threads);
    let more_threads = threads.len().saturating_sub(MAX_THREADS);
    threads.truncate(MAX_THREADS);
    let known = |futex: &&FutexWaits| common.row_of(futex.process).is_some();
    let futexes: Vec<&FutexWaits> = waits.futexes.iter().filter(known).collect();
    let more_futexes = futexes.len().saturating_sub(MAX_FUTEXES);
    Some(WaitingReport {
        futexes: builder.futexes(&futexes[..futexes.len() - more_futexes], &programs),
        more_futexes,
        programs,
        threads,
        more_threads,
        calls_followed: evaluation.contexts.as_ref().is_some_and(Contexts::have_callers),
    })
}

fn time(stretches: Intervals, whole: u64) -> Time {
    Time {
        count: stretches.count,
        cycles: stretches.cycles,
        longest: stretches.longest,
        share: stretches.cycles as f64 / whole.max(1) as f64,
    }
}

fn programs(threads: &[ThreadWaiting]) -> Vec<ProgramWaiting> {
    let mut programs: Vec<ProgramWaiting> = Vec::new();
    for thread in threads {
        if programs.last().is_none_or(|p| p.process != thread.process) {
            programs.push(ProgramWaiting { process: thread.process, ..ProgramWaiting::default() });
        }
        let Some(program) = programs.last_mut() else {
            continue;
        };
        program.threads += 1;
        program.cycles = program.cycles.saturating_add(thread.cycles);
        program.running += thread.running.cycles as f64;
        program.ready += thread.ready.cycles as f64;
        for wait in &thread.waits {
            let kinds = [
                (WaitReason::Futex, &mut program.locks),
                (WaitReason::Idle, &mut program.idle),
                (WaitReason::Runtime, &mut program.runtime),
            ];
            let known = kinds.into_iter().find(|(kind, _)| wait.reason == reason(*kind));
            let sum = known.map_or(&mut program.other, |(_, sum)| sum);
            *sum += wait.time.cycles as f64;
        }
    }
    for program in &mut programs {
        let whole = program.cycles.max(1) as f64;
        for part in [
            &mut program.running,
            &mut program.ready,
            &mut program.locks,
            &mut program.idle,
            &mut program.runtime,
            &mut program.other,
        ] {
            *part /= whole;
        }
    }
    programs
}

/// Returns what a reason is called.
pub(crate) fn reason(reason: WaitReason) -> String {
    match reason {
        WaitReason::Futex => "futex".to_owned(),
        WaitReason::SharedFutex => format!("futex{SHARED}"),
        WaitReason::Idle => "idle Go thread".to_owned(),
        WaitReason::Runtime => "Go runtime".to_owned(),
        WaitReason::Syscall(number) => match Sysno::new(number.into()) {
            Some(syscall) => syscall.name().to_owned(),
            None => format!("system call {number}"),
        },
        WaitReason::Fault => "page fault".to_owned(),
        WaitReason::Kernel => "kernel thread".to_owned(),
        WaitReason::Other => "other".to_owned(),
    }
}

/// Returns the name of the constant of an operation of `futex`.
fn operation(argument: u32) -> String {
    // Whoever asked for another operation did not wait for the futex.
    let name = futex_wait(argument).unwrap_or("?");
    match argument & FUTEX_PRIVATE {
        0 => format!("{name}{SHARED}"),
        _ => name.to_owned(),
    }
}

struct RowBuilder<'a> {
    common: &'a Common,
    evaluation: &'a Evaluation,
    symbolizer: &'a Symbolizer,
    sites: &'a NamedSites,
}

impl RowBuilder<'_> {
    fn title(&self, thread: ThreadId) -> String {
        match self.evaluation.threads.get(thread.0 as usize) {
            Some(thread) => format!("{} {}", thread.name(), thread.tid),
            None => "?".to_owned(),
        }
    }

    fn waker(&self, waker: Waker) -> String {
        match waker {
            Waker::Thread(thread) => self.title(thread),
            Waker::Interrupt => "interrupt".to_owned(),
            Waker::Unknown => "?".to_owned(),
            Waker::Nobody => "nobody".to_owned(),
        }
    }

    fn thread(&self, waits: &ThreadWaits) -> Option<ThreadWaiting> {
        let thread = self.evaluation.threads.get(waits.thread.0 as usize)?;
        let process = self.common.row_of(thread.process)?;
        let waiting = waits.waits.iter().map(|own| own.all.cycles);
        let all = waiting.chain([waits.running.cycles, waits.ready.cycles, waits.unknown]);
        let cycles = all.fold(0, u64::saturating_add);
        Some(ThreadWaiting {
            process,
            name: thread.name().to_owned(),
            tid: thread.tid,
            cycles,
            running: time(waits.running, cycles),
            ready: time(waits.ready, cycles),
            waits: waits
                .waits
                .iter()
                .map(|own| WaitRow {
                    reason: reason(own.reason),
                    time: time(own.all, cycles),
                    wakers: own
                        .wakers
                        .iter()
                        .take(MAX_WAKERS)
                        .map(|(waker, stretches)| WakerRow {
                            waker: self.waker(*waker),
                            time: time(*stretches, own.all.cycles),
                        })
                        .collect(),
                })
                .collect(),
            unknown: waits.unknown as f64 / cycles.max(1) as f64,
        })
    }

    fn futexes(&self, futexes: &[&FutexWaits], programs: &[ProgramWaiting]) -> Vec<FutexRow> {
        let mut data: HashMap<ProcessId, ProgramData> = HashMap::new();
        let mut rows = Vec::new();
        for futex in futexes {
            let Some(process) = self.common.row_of(futex.process) else {
                continue;
            };
            let program = programs.iter().find(|program| program.process == process);
            let names = data.entry(futex.process).or_insert_with(|| {
                let process = self.evaluation.processes.get(futex.process.0 as usize);
                let mappings = process.iter().flat_map(|process| &process.mappings);
                self.symbolizer.program_data(mappings)
            });
            let object = names.find(futex.address).map(|(name, within)| match within {
                0 => name.to_owned(),
                _ => format!("{name}+{within:#x}"),
            });
            rows.push(FutexRow {
                process,
                address: format!("{:#x}", futex.address),
                object,
                operations: futex
                    .operations
                    .iter()
                    .map(|(argument, _)| operation(*argument))
                    .collect(),
                time: time(futex.all, program.map_or(0, |program| program.cycles)),
                pairs: futex
                    .pairs
                    .iter()
                    .take(MAX_PAIRS)
                    .map(|(waiter, waker, stretches)| PairRow {
                        waiter: self.title(*waiter),
                        waker: self.waker(*waker),
                        time: time(*stretches, futex.all.cycles),
                    })
                    .collect(),
                places: self.places(futex),
                callers: self.callers(futex),
                of_runtime: self.named(futex).any(|(named, _)| named.used_for == WaitUse::Runtime),
            });
        }
        rows
    }

    /// The places from which threads waited for a futex.
    fn named(&self, futex: &FutexWaits) -> impl Iterator<Item = (&NamedSite, Intervals)> {
        let sites = futex.sites.iter();
        sites.filter_map(|(site, stretches)| {
            Some((self.sites.get(futex.process, *site)?, *stretches))
        })
    }

    fn places(&self, futex: &FutexWaits) -> Vec<PlaceRow> {
        let labels = self.named(futex).map(|(named, stretches)| (&named.label, stretches));
        longest_first(labels)
            .into_iter()
            .take(MAX_PLACES)
            .map(|(label, stretches)| PlaceRow {
                label: label.clone(),
                time: time(stretches, futex.all.cycles),
            })
            .collect()
    }

    fn callers(&self, futex: &FutexWaits) -> Vec<CallerRow> {
        let callers = self.named(futex).map(|(named, stretches)| (&named.caller, stretches));
        let callers = longest_first(callers);
        if callers.iter().all(|(caller, _)| caller.is_none()) {
            return Vec::new();
        }
        callers
            .into_iter()
            .take(MAX_CALLERS)
            .map(|(caller, stretches)| {
                let (function, source) = match caller {
                    Some(Caller { function, source }) => (function.clone(), source.clone()),
                    None => (UNKNOWN.to_owned(), None),
                };
                CallerRow { function, source, time: time(stretches, futex.all.cycles) }
            })
            .collect()
    }
}

/// Adds up the stretches of equal keys; the longest first.
fn longest_first<K: Ord>(parts: impl Iterator<Item = (K, Intervals)>) -> Vec<(K, Intervals)> {
    let mut sums: BTreeMap<K, Intervals> = BTreeMap::new();
    for (key, stretches) in parts {
        sums.entry(key).or_default().merge(stretches);
    }
    let mut sums: Vec<(K, Intervals)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse((sum.cycles, sum.count)));
    sums
}
