//! The profiles as all formats use them: rows, their names, and weights in whole cycles.

use std::cell::OnceCell;

use commit_trace::StaticInfo;
use profile::{
    ContextId, ContextWeights, Contexts, Evaluation, ProcessId, Profile, Sample, Thread, ThreadId,
    Window, fold, process_names,
};
use symbols::{Location, Module, Source, Symbolizer, Symbols};

use super::rows::{ContextRow, INSTRUCTION_PART, Rows};
use super::timed::Timed;
use super::{Format, Holds, Options};

/// Calling contexts with less than 1 / `LEAST_PART` of the time, their callees included, are left out of stacks. Most
/// contexts are that small: each is narrower than a pixel of a flame graph, and together they would fill gigabytes.
const LEAST_PART: u64 = 2_000;

/// Profiles of one run, ready to be written.
pub struct Export<'a> {
    pub(super) evaluation: &'a Evaluation,
    pub(super) windows: &'a [Window],
    pub(super) options: Options<'a>,
    pub(super) symbols: Symbols,
    /// Rows of what the profilers name, by calling context, and of the calls of these contexts.
    rows_by_key: Rows<'a>,
    /// Per profiler, units by context that is shown and instruction, ascending; the Oracle first.
    weights: Vec<ContextWeights>,
    pub(super) timed: OnceCell<Timed>,
    /// The context that each context is shown as: itself, or its nearest caller that has [`LEAST_PART`] of the time.
    shown: Vec<ContextId>,
    /// Names of processes, by number.
    names: Vec<String>,
}

/// One profiler's weights and samples.
pub(super) struct Series<'a> {
    pub name: &'a str,
    /// Index into [`Export::weights`].
    profile: usize,
    units_per_cycle: u64,
    /// Cycles between samples; 1 for the Oracle.
    pub period: u64,
    /// The samples; `None` for the Oracle, which has [`Export::windows`] instead.
    log: Option<&'a [Sample]>,
}

/// A sample: cycles given to one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CycleSample {
    /// Cycle in which the sample was taken.
    pub cycle: u64,
    /// Index into [`Export::rows`].
    pub row: usize,
    pub cycles: u64,
}

/// A function, out of line or inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Frame<'a> {
    pub name: &'a str,
    pub source: Option<(&'a str, u32)>,
    pub inlined: bool,
}

impl<'a> Export<'a> {
    /// Names everything in `evaluation`. `windows` are those of [`profile::Timeline`] over the same
    /// streams, hart after hart; formats without time need none.
    pub fn new(
        evaluation: &'a Evaluation,
        windows: &'a [Window],
        symbolizer: &Symbolizer,
        options: Options<'a>,
    ) -> Self {
        let flat;
        let contexts = match &evaluation.contexts {
            Some(contexts) => contexts,
            None => {
                flat = Contexts::flat(evaluation.processes.len());
                &flat
            }
        };
        let oracle = options.oracle.then_some((&evaluation.oracle, &evaluation.by_context));
        let samplers = evaluation.samplers.iter();
        let samplers = samplers.map(|result| (&result.profile, &result.by_context));
        let profiles: Vec<_> = oracle.into_iter().chain(samplers).collect();
        let by_context = profiles.iter().map(|(_, by_context)| *by_context);
        let shown = contexts.shown(by_context, LEAST_PART);
        let flat = evaluation.contexts.is_none();
        let weights = profiles.into_iter().map(|(profile, by_context)| match flat {
            true => by_process(profile),
            false => {
                let mut weights = by_context.clone();
                fold(&mut weights, &shown);
                weights
            }
        });
        let weights: Vec<_> = weights.collect();
        let (rows, symbols) = Rows::new(evaluation, contexts, &weights, symbolizer, &options);
        let processes: Vec<_> = (0..evaluation.processes.len() as u32).map(ProcessId).collect();
        Self {
            evaluation,
            windows,
            options,
            symbols,
            rows_by_key: rows,
            weights,
            timed: OnceCell::new(),
            shown,
            names: process_names(evaluation, &processes),
        }
    }

    /// Returns all rows.
    pub(super) fn rows(&self) -> &[ContextRow] {
        &self.rows_by_key.list
    }

    /// Returns the profilers, the Oracle first.
    pub(super) fn series(&self) -> Vec<Series<'a>> {
        let evaluation = self.evaluation;
        let oracle = self.options.oracle.then(|| Series {
            name: "oracle",
            profile: 0,
            units_per_cycle: evaluation.oracle.units_per_cycle(),
            period: 1,
            log: None,
        });
        let first = usize::from(self.options.oracle);
        let samplers = (first..).zip(&evaluation.samplers).map(|(profile, result)| Series {
            name: &result.sampler.name,
            profile,
            units_per_cycle: result.profile.units_per_cycle(),
            period: result.sampler.schedule.period,
            log: Some(&result.log),
        });
        oracle.into_iter().chain(samplers).collect()
    }

    /// Returns what a file of this format leaves out or merges of the profiles, a sentence each.
    pub fn left_out(&self, format: Format) -> Vec<String> {
        let stacks = (self.has_call_stacks() && format.holds() != Holds::CycleStacks).then(|| {
            format!("calls with less than 1/{LEAST_PART} of the time are left out of stacks")
        });
        let are_seen = self.options.instructions || format.is_by_address();
        let functions = (are_seen && self.rows_by_key.has_functions()).then(|| {
            format!("instructions with less than 1/{INSTRUCTION_PART} of a profile are charged to their functions (not with --exact)")
        });
        let merged = format.is_timed().then(|| self.timed().note(self)).flatten();
        stacks.into_iter().chain(functions).chain(merged).collect()
    }

    /// Returns the name of this program with its version, and what a file of this format leaves out.
    pub(super) fn exporter(&self, format: Format) -> String {
        let mut text = concat!("tipsim ", env!("CARGO_PKG_VERSION")).to_owned();
        for note in self.left_out(format) {
            text.push_str("; ");
            text.push_str(&note);
        }
        text
    }

    /// Cycles per row of a profiler, in order of row; rows with less than a cycle may be missing.
    pub(super) fn cycles(&self, series: &Series<'_>) -> Vec<(usize, u64)> {
        let mut units = vec![0; self.rows().len()];
        for (context, inst, more) in &self.weights[series.profile] {
            if let Some(row) = self.rows_by_key.of(*context, *inst) {
                units[row] += more;
            }
        }
        let mut rounding = Rounding::new(series);
        let rows = units.into_iter().enumerate();
        rows.filter_map(|(row, units)| Some((row, rounding.next(units)?))).collect()
    }

    /// Gives the samples of a profiler to `take`, in order of time, as they were taken. The Oracle has one per window and
    /// row, at the window's end.
    pub(super) fn each_sample(&self, series: &Series<'_>, mut take: impl FnMut(CycleSample)) {
        let mut rounding = Rounding::new(series);
        let mut weight = |cycle, context: ContextId, inst, units| {
            let shown = self.shown.get(context.0 as usize);
            let row = shown.and_then(|shown| self.rows_by_key.of(*shown, inst));
            let Some(row) = row else { return };
            if let Some(cycles) = rounding.next(units) {
                let cycle = self.clamp_to_lifetime(&self.rows()[row], cycle);
                take(CycleSample { cycle, row, cycles });
            }
        };
        let flat = self.evaluation.contexts.is_none();
        let Some(log) = series.log else {
            // Each hart has its own.
            let mut windows: Vec<&Window> = self.windows.iter().collect();
            windows.sort_by_key(|window| window.end);
            for window in windows {
                let by_process = if flat { &window.weights[..] } else { &[] };
                for (process, inst, units) in by_process {
                    weight(window.end, ContextId(process.0), *inst, *units);
                }
                for (context, inst, units) in &window.by_context {
                    weight(window.end, *context, *inst, *units);
                }
            }
            return;
        };
        for sample in log {
            let context = match flat {
                true => ContextId(sample.process.0),
                false => sample.context,
            };
            weight(sample.cycle, context, sample.inst, sample.units);
        }
    }

    /// Cycles from the first to the last sample of all profilers. Harts have the same, side by side.
    pub(super) fn sampled_cycles(&self) -> u64 {
        let windows = self.windows.iter().map(|window| (window.start, window.end));
        let logs = self
            .evaluation
            .samplers
            .iter()
            .filter_map(|result| Some((result.log.first()?.cycle, result.log.last()?.cycle)));
        let ends = windows.chain(logs);
        let (first, last) = ends
            .fold((u64::MAX, 0), |(first, last), (start, end)| (first.min(start), last.max(end)));
        last.saturating_sub(first)
    }

    /// The cycle nearest to `cycle` in which the row's process and thread existed. They may not have existed in `cycle`: a
    /// window's cycle is its end, and a sample may name an instruction that commits after its trigger and an `execve`.
    fn clamp_to_lifetime(&self, row: &ContextRow, cycle: u64) -> u64 {
        let Some(process) = self.evaluation.processes.get(row.process.0 as usize) else {
            return cycle;
        };
        let thread = self.thread(row.thread);
        let ends = [process.end_cycle, thread.and_then(|thread| thread.end_cycle)];
        let end = ends.into_iter().flatten().min();
        let last = end.map_or(cycle, |end| cycle.min(end.saturating_sub(1)));
        let first = thread.map_or(0, |thread| thread.first_cycle);
        last.max(process.first_cycle).max(first)
    }

    pub(super) fn has_call_stacks(&self) -> bool {
        self.evaluation.contexts.as_ref().is_some_and(Contexts::have_callers)
    }

    pub(super) fn thread(&self, thread: ThreadId) -> Option<&'a Thread> {
        self.evaluation.threads.get(thread.0 as usize)
    }

    /// The thread's name, if it is not its process's.
    pub(super) fn own_name(&self, row: usize) -> Option<&'a str> {
        let row = &self.rows()[row];
        let name = self.thread(row.thread)?.name();
        let process = self.evaluation.processes.get(row.process.0 as usize)?;
        (name != process.name && !name.is_empty()).then_some(name)
    }

    /// The kernel's thread id of a row; the process id if threads are not told apart.
    pub(super) fn tid(&self, row: usize) -> u32 {
        let row = &self.rows()[row];
        self.thread(row.thread).map_or_else(|| self.pid(row.process), |thread| thread.tid)
    }

    /// The call stack of a row: itself, its caller's row, and so on outwards.
    pub(super) fn stack(&self, row: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(row), |row| self.rows()[*row].caller)
    }

    pub(super) fn static_info(&self, row: usize) -> &StaticInfo {
        &self.evaluation.static_info[self.rows()[row].inst.0 as usize]
    }

    pub(super) fn location(&self, row: usize) -> &Location {
        &self.symbols.locations[self.rows()[row].location as usize]
    }

    pub(super) fn module(&self, row: usize) -> &Module {
        self.symbols.module(self.location(row).module)
    }

    pub(super) fn is_kernel(&self, row: usize) -> bool {
        self.static_info(row).privilege != 0
    }

    pub(super) fn process_name(&self, process: ProcessId) -> &str {
        self.names.get(process.0 as usize).map_or("?", |name| name)
    }

    /// The kernel's process id; 0 before the first process, as for Linux's first thread.
    pub(super) fn pid(&self, process: ProcessId) -> u32 {
        let process = self.evaluation.processes.get(process.0 as usize);
        process.and_then(|process| process.pid).unwrap_or(0)
    }

    /// Address of a row's instruction, or the first one of its function.
    pub(super) fn address(&self, row: usize) -> u64 {
        let (pc, at) = (self.static_info(row).pc, self.location(row));
        let within = at.offset.checked_sub(self.symbols.function(at.function).start);
        match within {
            Some(within) if self.rows()[row].is_function => pc.wrapping_sub(within),
            _ => pc,
        }
    }

    /// The function of a row and, if it is an instruction's, what was inlined there, innermost first.
    pub(super) fn frames(&self, row: usize) -> Vec<Frame<'_>> {
        let at = self.location(row);
        let mut source = at.source.as_ref();
        let mut frames = Vec::with_capacity(at.inlined.len() + 1);
        for inlined in &at.inlined {
            frames.push(Frame { name: &inlined.function, source: source.map(line), inlined: true });
            source = inlined.call.as_ref();
        }
        frames.push(Frame {
            name: &self.symbols.function(at.function).name,
            source: source.map(line),
            inlined: false,
        });
        if self.rows()[row].is_function {
            frames.drain(..frames.len() - 1);
            frames[0].source = frames[0].source.map(|(file, _)| (file, 0));
        }
        frames
    }

    /// Address and assembly of a row, if it is an instruction's and those are frames: `0x10152 lw a5,0(a0)`.
    pub(super) fn instruction(&self, row: usize) -> Option<String> {
        if self.rows()[row].is_function || !self.options.instructions {
            return None;
        }
        let static_info = self.static_info(row);
        let text = (self.options.disassemble)(static_info.raw, static_info.pc);
        let words: Vec<&str> = text.split_whitespace().collect();
        Some(format!("{:#x} {}", static_info.pc, words.join(" ")))
    }

    /// Nanoseconds from the stream's cycle 0.
    pub(super) fn nanos(&self, cycle: u64) -> u64 {
        let nanos = u128::from(cycle) * 1_000_000_000 / u128::from(self.options.clock_hz.max(1));
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }
}

/// A profile's weights in an evaluation without contexts: each process is one.
fn by_process(profile: &Profile) -> ContextWeights {
    let weights = profile.iter();
    weights.map(|(process, inst, units)| (ContextId(process.0), inst, units)).collect()
}

fn line(source: &Source) -> (&str, u32) {
    (&source.file, source.line)
}

/// Converts units to whole cycles and carries the remainder, so that a sum is never off by a cycle.
struct Rounding {
    per_cycle: u64,
    /// Units carried to the next call, less than a cycle.
    remainder: u64,
}

impl Rounding {
    fn new(series: &Series<'_>) -> Self {
        Self { per_cycle: series.units_per_cycle.max(1), remainder: 0 }
    }

    /// The whole cycles in `units` and the remainder so far; `None` if less than one.
    fn next(&mut self, units: u64) -> Option<u64> {
        let units = units + self.remainder;
        self.remainder = units % self.per_cycle;
        Some(units / self.per_cycle).filter(|cycles| *cycles > 0)
    }
}
