//! The section's rows, made from the path.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use profile::waits::{PathEdge, PathKind, PathSegment, ThreadPath, WaitReason, WaitSite, Waker};
use profile::{Evaluation, MergedNumbers, ThreadId};
use rustc_hash::FxHashMap;

use super::{
    PathEdgeRow, PathFunction, PathKindRow, PathSegmentRow, PathState, PathThread, ThreadPathReport,
};
use crate::gather::Gathered;
use crate::model::Common;
use crate::waiting::{NamedSites, UNKNOWN, WaitingReport, reason_name};

/// Rows that report.json has at most.
const MAX_FUNCTIONS: usize = 100;
const MAX_EDGES: usize = 100;
const MAX_SEGMENTS: usize = 2_000;
/// Rank of threads of other programs, and of the kernel's own: the path ends with none of these while a thread of the program runs.
const OTHER_PROGRAM: u32 = 1;
const KERNEL_THREAD: u32 = 2;

/// What wakeups of one kind have in common: waiter, waker, reason, futex, and where the waker was.
type EdgeKey = (String, String, String, Option<String>, Option<String>);

/// What the path is made from.
pub(crate) struct PathInputs<'a> {
    /// All harts together.
    pub evaluation: &'a Evaluation,
    /// Single harts.
    pub harts: &'a [Evaluation],
    /// Names of what the Oracle counted.
    pub gathered: &'a Gathered<'a>,
    /// Names of the places at which threads wait.
    pub sites: &'a NamedSites,
    /// What threads wait for.
    pub waiting: &'a WaitingReport,
}

/// Returns the critical path over threads; `None` if the guest's kernel does not tell, or if there is but one thread to tell of on one
/// hart.
pub(crate) fn thread_path(common: &Common, inputs: &PathInputs<'_>) -> Option<ThreadPathReport> {
    let PathInputs { evaluation, sites, waiting, .. } = inputs;
    let focus = common.focus();
    let has_threads =
        |program: &crate::ProgramWaiting| program.threads > 1 && focus.contains(&program.process);
    if inputs.harts.len() < 2 && !waiting.programs.iter().any(has_threads) {
        return None;
    }
    let rank = |thread: ThreadId| {
        let thread = evaluation.threads.get(thread.0 as usize);
        let process = thread.map(|thread| thread.process);
        match process.and_then(|process| common.row_of(process)) {
            Some(row) if focus.contains(&row) => 0,
            _ => {
                let process = process.and_then(|id| evaluation.processes.get(id.0 as usize));
                match process.is_some_and(|process| !process.mappings.is_empty()) {
                    true => OTHER_PROGRAM,
                    false => KERNEL_THREAD,
                }
            }
        }
    };
    let path = evaluation.critical_path(|process, site| sites.used_for(process, site), rank)?;
    (path.cycles() > 0).then(|| PathBuilder { common, inputs, path: &path }.report())
}

struct PathBuilder<'a> {
    common: &'a Common,
    inputs: &'a PathInputs<'a>,
    path: &'a ThreadPath,
}

fn state(kind: PathKind) -> PathState {
    match kind {
        PathKind::Running(_) => PathState::Running,
        PathKind::Ready => PathState::Ready,
        PathKind::Waiting(..) => PathState::Waiting,
        PathKind::Unknown => PathState::Unknown,
    }
}

impl PathBuilder<'_> {
    fn report(&self) -> ThreadPathReport {
        let cycles = self.path.cycles();
        let (threads, numbers) = self.threads(cycles);
        let segments = self.path.segments.iter().take(MAX_SEGMENTS);
        let segments: Vec<PathSegmentRow> = segments
            .map(|segment| PathSegmentRow {
                start: segment.start,
                end: segment.end,
                thread: numbers[&segment.thread],
                state: state(segment.kind),
                hart: match segment.kind {
                    PathKind::Running(hart) => Some(hart),
                    _ => None,
                },
            })
            .collect();
        let mut functions = self.functions(cycles);
        let more_functions = functions.len().saturating_sub(MAX_FUNCTIONS);
        functions.truncate(MAX_FUNCTIONS);
        let mut edges = self.edges();
        let more_edges = edges.len().saturating_sub(MAX_EDGES);
        edges.truncate(MAX_EDGES);
        let bins = self.harts().iter().flat_map(|hart| &hart.over_time);
        ThreadPathReport {
            cycles,
            harts: self.harts().len(),
            kinds: self.kinds(cycles),
            threads,
            functions,
            more_functions,
            stretch: bins.map(|bin| bin.end.saturating_sub(bin.start)).max().unwrap_or(0),
            by_thread: self.harts().iter().all(|hart| hart.contexts.is_some()),
            edges,
            more_edges,
            more_segments: self.path.segments.len() - segments.len(),
            segments,
        }
    }

    fn harts(&self) -> &[Evaluation] {
        match self.inputs.harts {
            [] => std::slice::from_ref(self.inputs.evaluation),
            harts => harts,
        }
    }

    fn title(&self, thread: Option<ThreadId>) -> String {
        let threads = &self.inputs.evaluation.threads;
        match thread.and_then(|thread| threads.get(thread.0 as usize)) {
            Some(thread) => format!("{} {}", thread.name(), thread.tid),
            None => UNKNOWN.to_owned(),
        }
    }

    fn kinds(&self, whole: u64) -> Vec<PathKindRow> {
        let mut sums: BTreeMap<(PathState, Option<String>), u64> = BTreeMap::new();
        for segment in &self.path.segments {
            let reason = match segment.kind {
                PathKind::Waiting(reason, waker) => Some(wait_name(reason, waker)),
                _ => None,
            };
            *sums.entry((state(segment.kind), reason)).or_default() += segment.cycles;
        }
        let row = |((state, reason), cycles)| PathKindRow {
            state,
            reason,
            cycles,
            share: cycles as f64 / whole as f64,
        };
        let mut rows: Vec<PathKindRow> = sums.into_iter().map(row).collect();
        rows.sort_by_key(|row| Reverse(row.cycles));
        rows
    }

    /// Returns the threads, and the number of each.
    fn threads(&self, whole: u64) -> (Vec<PathThread>, HashMap<Option<ThreadId>, usize>) {
        let mut sums: BTreeMap<Option<ThreadId>, (u64, [u64; 4])> = BTreeMap::new();
        for segment in &self.path.segments {
            let (count, cycles) = sums.entry(segment.thread).or_default();
            *count += 1;
            cycles[state(segment.kind) as usize] += segment.cycles;
        }
        let mut rows: Vec<(Option<ThreadId>, u64, [u64; 4])> =
            sums.into_iter().map(|(thread, (count, cycles))| (thread, count, cycles)).collect();
        rows.sort_by_key(|(thread, _, cycles)| (Reverse(cycles.iter().sum::<u64>()), *thread));
        let numbers = rows.iter().enumerate().map(|(at, (thread, ..))| (*thread, at)).collect();
        let share = |cycles: u64| cycles as f64 / whole as f64;
        let threads = rows.into_iter().map(|(id, segments, by_state)| {
            let of = |state: PathState| share(by_state[state as usize]);
            let cycles = by_state.iter().sum();
            let thread = id.and_then(|id| self.inputs.evaluation.threads.get(id.0 as usize));
            PathThread {
                process: thread.and_then(|thread| self.common.row_of(thread.process)),
                thread: self.title(id),
                segments,
                cycles,
                share: share(cycles),
                running: of(PathState::Running),
                ready: of(PathState::Ready),
                waiting: of(PathState::Waiting),
            }
        });
        (threads.collect(), numbers)
    }

    /// Returns the functions that run on the path.
    fn functions(&self, whole: u64) -> Vec<PathFunction> {
        let harts = self.harts();
        let numbers = Evaluation::merged_numbers(harts);
        let mut sums: BTreeMap<(Option<ThreadId>, String), f64> = BTreeMap::new();
        for ((hart, evaluation), numbers) in (0..).zip(harts).zip(&numbers) {
            let bins = RunningByBin::new(evaluation, hart, &self.path.segments);
            for ((bin, thread), cycles) in bins.0 {
                let shares = bin.map(|bin| self.shares(evaluation, numbers, bin, thread));
                let shares = shares.filter(|shares| !shares.is_empty());
                let shares = shares.unwrap_or_else(|| vec![(UNKNOWN.to_owned(), 1.0)]);
                for (function, share) in shares {
                    *sums.entry((thread, function)).or_default() += cycles * share;
                }
            }
        }
        let row = |((thread, function), cycles)| PathFunction {
            thread: self.title(thread),
            function,
            cycles,
            share: cycles / whole as f64,
        };
        let mut rows: Vec<PathFunction> = sums.into_iter().map(row).collect();
        rows.sort_by(|a, b| b.cycles.total_cmp(&a.cycles));
        rows
    }

    /// Returns the shares of functions in what a hart did for a thread in one of its bins: of the thread if calls were followed, else of the
    /// thread's process.
    fn shares(
        &self,
        hart: &Evaluation,
        numbers: &MergedNumbers,
        bin: usize,
        thread: Option<ThreadId>,
    ) -> Vec<(String, f64)> {
        let merged = &self.inputs.evaluation.threads;
        let Some(process) = thread.and_then(|id| merged.get(id.0 as usize)).map(|it| it.process)
        else {
            return Vec::new();
        };
        let gathered = self.inputs.gathered;
        let Some(at) = gathered.processes.iter().position(|summary| summary.process == process)
        else {
            return Vec::new();
        };
        let (insts, places) = gathered.places(at);
        let mut units: FxHashMap<&str, u64> = FxHashMap::default();
        let mut total = 0;
        let mut add = |inst, weight: u64| {
            if let Ok(row) = insts.binary_search(&numbers.inst(inst)) {
                let location = &gathered.symbols.locations[places[row] as usize];
                let name = &*gathered.symbols.function(location.function).name;
                *units.entry(name).or_default() += weight;
                total += weight;
            }
        };
        let own = hart.over_time[bin].processes.iter();
        for time in own.filter(|time| numbers.process(time.process) == process) {
            match &hart.contexts {
                Some(contexts) => {
                    for (context, inst, weight) in time.by_context() {
                        if Some(numbers.thread(contexts.get(context).thread)) == thread {
                            add(inst, weight);
                        }
                    }
                }
                None => time.weights().for_each(|(inst, weight)| add(inst, weight)),
            }
        }
        let shares = units.into_iter();
        shares.map(|(name, own)| (name.to_owned(), own as f64 / total.max(1) as f64)).collect()
    }

    fn edges(&self) -> Vec<PathEdgeRow> {
        let mut rows: Vec<PathEdgeRow> = Vec::new();
        let mut known: HashMap<EdgeKey, usize> = HashMap::new();
        for segment in &self.path.segments {
            let Some(edge) = segment.edge else { continue };
            let row = self.edge(segment.thread, &edge);
            let key = (
                row.waiter.clone(),
                row.waker.clone(),
                row.reason.clone(),
                row.futex.clone(),
                row.waker_place.clone(),
            );
            let at = *known.entry(key).or_insert(rows.len());
            match rows.get_mut(at) {
                Some(sum) => {
                    sum.count += 1;
                    sum.waited = sum.waited.saturating_add(row.waited);
                }
                None => rows.push(row),
            }
        }
        rows.sort_by_key(|row| Reverse((row.count, row.waited)));
        rows
    }

    fn edge(&self, waiter: Option<ThreadId>, edge: &PathEdge) -> PathEdgeRow {
        let PathInputs { evaluation, sites, waiting, .. } = self.inputs;
        let process = |thread: Option<ThreadId>| {
            let thread = thread.and_then(|thread| evaluation.threads.get(thread.0 as usize));
            thread.map(|thread| thread.process)
        };
        let reason = match edge.wait {
            None => "new thread".to_owned(),
            Some(wait) => wait.reason.map_or_else(|| UNKNOWN.to_owned(), reason_name),
        };
        let futex = edge.wait.and_then(|wait| wait.futex);
        let own = process(waiter).and_then(|process| self.common.row_of(process));
        let row = futex.and_then(|(address, _)| waiting.futex_row(own?, address));
        let named = futex.and_then(|(_, site)| sites.get(process(waiter)?, site));
        let caller = named.and_then(|named| named.caller.as_ref().map(|it| it.function.clone()));
        let waker_site = edge.context.map(|entry| WaitSite { pc: 0, entry: Some(entry) });
        let waker = waker_site.and_then(|site| sites.get(process(edge.waker)?, site));
        PathEdgeRow {
            waiter: self.title(waiter),
            waker: self.title(edge.waker),
            reason,
            futex: futex.map(|(address, _)| match row.and_then(|row| row.object.as_ref()) {
                Some(object) => format!("{object} {address:#x}"),
                None => format!("{address:#x}"),
            }),
            place: caller.or_else(|| named.map(|named| named.label.clone())),
            waker_place: waker.and_then(|of| of.caller.as_ref().map(|it| it.function.clone())),
            count: 1,
            waited: edge.wait.map_or(0, |wait| wait.cycles),
        }
    }
}

/// Returns what a thread waits for, and who ends the wait.
fn wait_name(reason: WaitReason, waker: Waker) -> String {
    let waker = match waker {
        Waker::Thread(_) => "a thread that had nothing to do with it",
        Waker::Interrupt => "an interrupt",
        Waker::Unknown => UNKNOWN,
        Waker::Nobody => "nobody",
    };
    format!("{}, ended by {waker}", reason_name(reason))
}

/// Cycles in which a hart runs threads on the path, by bin of its profile over time and by thread; without a bin if the profile has none
/// there.
struct RunningByBin(BTreeMap<(Option<usize>, Option<ThreadId>), f64>);

impl RunningByBin {
    fn new(evaluation: &Evaluation, hart: u32, segments: &[PathSegment]) -> Self {
        let bins = &evaluation.over_time;
        let mut sums: BTreeMap<(Option<usize>, Option<ThreadId>), f64> = BTreeMap::new();
        for segment in segments.iter().filter(|it| it.kind == PathKind::Running(hart)) {
            // Cycles of the region in a cycle of the segment.
            let density = segment.cycles as f64 / (segment.end - segment.start).max(1) as f64;
            let mut left = segment.end - segment.start;
            let first = bins.partition_point(|bin| bin.end <= segment.start);
            for (number, bin) in bins.iter().enumerate().skip(first) {
                if bin.start >= segment.end {
                    break;
                }
                let part = segment.end.min(bin.end).saturating_sub(segment.start.max(bin.start));
                left = left.saturating_sub(part);
                *sums.entry((Some(number), segment.thread)).or_default() += part as f64 * density;
            }
            if left > 0 {
                *sums.entry((None, segment.thread)).or_default() += left as f64 * density;
            }
        }
        Self(sums)
    }
}
