//! From an evaluation's waits to the section's rows.

use std::collections::HashMap;

use profile::waits::{
    FUTEX_PRIVATE, FutexWaits, Intervals, ThreadWaits, WaitReason, Waker, futex_wait,
};
use profile::{Evaluation, ProcessId, ThreadId};
use symbols::{BuildId, Place, ProgramData, Symbolizer};
use syscalls::riscv64::Sysno;

use super::{
    FutexRow, PairRow, PlaceRow, ProgramWaiting, SHARED, ThreadWaiting, Time, WaitRow,
    WaitingReport, WakerRow,
};
use crate::model::Report;

/// Rows of report.json.
const MAX_THREADS: usize = 500;
const MAX_FUTEXES: usize = 50;
/// Of each futex.
const MAX_PAIRS: usize = 20;
const MAX_PLACES: usize = 6;
/// Wakers of a thread's reason.
const MAX_WAKERS: usize = 6;

/// The waits of the report's processes; `None` if the guest's kernel does not tell.
pub(super) fn waiting(
    report: &Report,
    evaluation: &Evaluation,
    symbolizer: &Symbolizer,
) -> Option<WaitingReport> {
    let waits = evaluation.waits()?;
    let builder = RowBuilder {
        report,
        evaluation,
        symbolizer,
    };
    let mut threads: Vec<ThreadWaiting> = { waits.threads.iter() }
        .filter_map(|thread| builder.thread(thread))
        .collect();
    threads.sort_by_key(|row| (row.process, std::cmp::Reverse(row.cycles), row.tid));
    let programs = programs(&threads);
    let more_threads = threads.len().saturating_sub(MAX_THREADS);
    threads.truncate(MAX_THREADS);
    let known = |futex: &&FutexWaits| report.row_of(futex.process).is_some();
    let futexes: Vec<&FutexWaits> = waits.futexes.iter().filter(known).collect();
    let more_futexes = futexes.len().saturating_sub(MAX_FUTEXES);
    Some(WaitingReport {
        futexes: builder.futexes(&futexes[..futexes.len() - more_futexes], &programs),
        more_futexes,
        programs,
        threads,
        more_threads,
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
            programs.push(ProgramWaiting {
                process: thread.process,
                ..ProgramWaiting::default()
            });
        }
        let Some(program) = programs.last_mut() else {
            continue;
        };
        program.threads += 1;
        program.cycles = program.cycles.saturating_add(thread.cycles);
        program.running += thread.running.cycles as f64;
        program.ready += thread.ready.cycles as f64;
        for wait in &thread.waits {
            let sum = match wait.reason == reason(WaitReason::Futex) {
                true => &mut program.locks,
                false => &mut program.other,
            };
            *sum += wait.time.cycles as f64;
        }
    }
    for program in &mut programs {
        let whole = program.cycles.max(1) as f64;
        let parts = [&mut program.running, &mut program.ready];
        for part in parts
            .into_iter()
            .chain([&mut program.locks, &mut program.other])
        {
            *part /= whole;
        }
    }
    programs
}

fn reason(reason: WaitReason) -> String {
    match reason {
        WaitReason::Futex => "futex".to_owned(),
        WaitReason::SharedFutex => format!("futex{SHARED}"),
        WaitReason::Syscall(number) => match Sysno::new(number.into()) {
            Some(syscall) => syscall.name().to_owned(),
            None => format!("system call {number}"),
        },
        WaitReason::Fault => "page fault".to_owned(),
        WaitReason::Kernel => "kernel thread".to_owned(),
        WaitReason::Other => "other".to_owned(),
    }
}

/// An operation of `futex`, as its constant is called.
fn operation(argument: u32) -> String {
    // Whoever asked for another operation did not wait for the futex.
    let name = futex_wait(argument).unwrap_or("?");
    match argument & FUTEX_PRIVATE {
        0 => format!("{name}{SHARED}"),
        _ => name.to_owned(),
    }
}

struct RowBuilder<'a> {
    report: &'a Report,
    evaluation: &'a Evaluation,
    symbolizer: &'a Symbolizer,
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
        let process = self.report.row_of(thread.process)?;
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
            waits: { waits.waits.iter() }
                .map(|own| WaitRow {
                    reason: reason(own.reason),
                    time: time(own.all, cycles),
                    wakers: { own.wakers.iter().take(MAX_WAKERS) }
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
        let labels = self.labels(futexes);
        let mut labels = labels.into_iter();
        let mut rows = Vec::new();
        for futex in futexes {
            let Some(process) = self.report.row_of(futex.process) else {
                continue;
            };
            let program = programs.iter().find(|program| program.process == process);
            let names = data.entry(futex.process).or_insert_with(|| {
                let process = self.evaluation.processes.get(futex.process.0 as usize);
                let mappings = process.iter().flat_map(|process| &process.mappings);
                self.symbolizer.program_data(mappings)
            });
            let object = names
                .find(futex.address)
                .map(|(name, within)| match within {
                    0 => name.to_owned(),
                    _ => format!("{name}+{within:#x}"),
                });
            rows.push(FutexRow {
                process,
                address: format!("{:#x}", futex.address),
                object,
                operations: { futex.operations.iter() }
                    .map(|(argument, _)| operation(*argument))
                    .collect(),
                time: time(futex.all, program.map_or(0, |program| program.cycles)),
                pairs: { futex.pairs.iter().take(MAX_PAIRS) }
                    .map(|(waiter, waker, stretches)| PairRow {
                        waiter: self.title(*waiter),
                        waker: self.waker(*waker),
                        time: time(*stretches, futex.all.cycles),
                    })
                    .collect(),
                places: { futex.places.iter().take(MAX_PLACES) }
                    .map(|(_, stretches)| PlaceRow {
                        label: labels.next().unwrap_or_default(),
                        time: time(*stretches, futex.all.cycles),
                    })
                    .collect(),
            });
        }
        rows
    }

    /// The names of all places, in order.
    fn labels(&self, futexes: &[&FutexWaits]) -> Vec<String> {
        let place = |process: ProcessId, pc: u64| {
            // The system call lies before where the program goes on.
            let call = pc.wrapping_sub(4);
            let mapping = { self.evaluation.processes.get(process.0 as usize) }
                .and_then(|process| process.mapping_at(call, u64::MAX));
            let Some(mapping) = mapping else {
                return Place::Unknown(call);
            };
            let id = (!mapping.build_id.is_empty()).then(|| BuildId(mapping.build_id.clone()));
            let offset = call.wrapping_sub(mapping.start);
            Place::file(&mapping.path, id, offset.wrapping_add(mapping.file_offset))
        };
        let places: Vec<Place> = { futexes.iter() }
            .flat_map(|futex| {
                { futex.places.iter().take(MAX_PLACES) }.map(|(pc, _)| place(futex.process, *pc))
            })
            .collect();
        let symbols = self.symbolizer.resolve(&places);
        (0..places.len()).map(|at| symbols.label(at)).collect()
    }
}
