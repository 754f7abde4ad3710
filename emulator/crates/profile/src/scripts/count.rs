//! Counts samples as they pass.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    SampleSum, ScriptFrame, ScriptFunction, ScriptFunctionTime, ScriptLineTime, ScriptProcess,
    ScriptRecord, Scripts,
};
use crate::ProcessId;

/// Functions that are told apart at most: a trace from elsewhere may name any number.
const MAX_FUNCTIONS: usize = 1 << 17;
/// Entries in the tables of all processes at most.
const MAX_ENTRIES: usize = 1 << 19;

/// Where a stream is: cycles and instructions that were profiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Profiled {
    pub cycles: u64,
    pub instructions: u64,
}

#[derive(Clone, Debug, Default)]
struct Process {
    whole: SampleSum,
    functions: FxHashMap<u32, (SampleSum, SampleSum)>,
    lines: FxHashMap<(u32, u32), SampleSum>,
}

/// Follows the simulator's own side-band records of one hart's stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScriptSamples {
    functions: Vec<ScriptFunction>,
    numbers: FxHashMap<ScriptFunction, u32>,
    /// The number in `functions` of each function, by its number in the stream.
    defined: Vec<u32>,
    window: Option<Profiled>,
    processes: BTreeMap<ProcessId, Process>,
    entries: usize,
    seen: FxHashSet<u32>,
}

impl ScriptSamples {
    /// Takes a record of the simulator's own. `profiled` is where the stream is, if it is profiled there; its cycles stand for `weight` times as many. False if the bytes
    /// are no such record.
    pub(crate) fn record(
        &mut self,
        (kind, bytes): (u8, &[u8]),
        process: ProcessId,
        profiled: Option<Profiled>,
        weight: f64,
    ) -> bool {
        match ScriptRecord::parse(kind, bytes) {
            Some(ScriptRecord::Function { name, file, line }) => {
                let number = self.number(ScriptFunction { name, file, line });
                if self.defined.len() < MAX_FUNCTIONS {
                    self.defined.push(number);
                }
            }
            Some(ScriptRecord::Window) => self.window = profiled,
            Some(ScriptRecord::Sample { instructions, frames }) => {
                if let Some((begin, end)) = self.window.take().zip(profiled)
                    && let Some(passed) = end.instructions.checked_sub(begin.instructions)
                    && passed > 0
                {
                    let cycles = end.cycles.saturating_sub(begin.cycles) as f64 / passed as f64;
                    self.sample(process, weight * cycles * f64::from(instructions), &frames);
                }
            }
            None => return false,
        }
        true
    }

    /// Drops the open window: another thread runs, or the region of interest begins or ends.
    pub(crate) fn interrupt(&mut self) {
        self.window = None;
    }

    /// Forgets all samples, but not what functions are.
    pub(crate) fn restart_region(&mut self) {
        self.window = None;
        self.processes.clear();
        self.entries = 0;
    }

    fn number(&mut self, function: ScriptFunction) -> u32 {
        if let Some(known) = self.numbers.get(&function) {
            return *known;
        }
        if self.functions.len() >= MAX_FUNCTIONS {
            return ScriptFrame::OTHER;
        }
        let number = self.functions.len() as u32;
        self.functions.push(function.clone());
        self.numbers.insert(function, number);
        number
    }

    fn sample(&mut self, process: ProcessId, cycles: f64, frames: &[ScriptFrame]) {
        let of_process = self.processes.entry(process).or_default();
        of_process.whole.add(cycles);
        self.seen.clear();
        for (depth, frame) in frames.iter().enumerate() {
            let defined = self.defined.get(frame.function as usize).copied();
            let mut function = defined.unwrap_or(ScriptFrame::OTHER);
            let is_full = self.entries >= MAX_ENTRIES;
            if is_full && !of_process.functions.contains_key(&function) {
                function = ScriptFrame::OTHER;
            }
            let before = of_process.functions.len();
            let (own, total) = of_process.functions.entry(function).or_default();
            if depth == 0 {
                own.add(cycles);
            }
            // A function that calls itself counts once.
            if self.seen.insert(function) {
                total.add(cycles);
            }
            self.entries += of_process.functions.len() - before;
            if depth > 0 {
                continue;
            }
            let mut place = (function, frame.line);
            if function == ScriptFrame::OTHER || is_full && !of_process.lines.contains_key(&place) {
                place = (function, 0);
            }
            let before = of_process.lines.len();
            of_process.lines.entry(place).or_default().add(cycles);
            self.entries += of_process.lines.len() - before;
        }
    }

    /// Ends the pass.
    pub(crate) fn finish(self) -> Scripts {
        let Self { mut functions, processes, .. } = self;
        let other = functions.len() as u32;
        let mut has_other = false;
        let mut number = |function| match function {
            ScriptFrame::OTHER => {
                has_other = true;
                other
            }
            function => function,
        };
        let processes = processes.into_iter().map(|(process, sums)| {
            let functions = sums.functions.into_iter();
            let mut functions: Vec<ScriptFunctionTime> = functions
                .map(|(function, (own, total))| ScriptFunctionTime {
                    function: number(function),
                    own,
                    total,
                })
                .collect();
            functions.sort_unstable_by_key(|time| time.function);
            let mut lines: Vec<ScriptLineTime> = sums
                .lines
                .into_iter()
                .map(|((function, line), own)| ScriptLineTime {
                    function: number(function),
                    line,
                    own,
                })
                .collect();
            lines.sort_unstable_by_key(|time| (time.function, time.line));
            ScriptProcess { process, whole: sums.whole, functions, lines }
        });
        let processes = processes.collect();
        if has_other {
            functions.push(ScriptFunction { name: String::new(), file: String::new(), line: 0 });
        }
        Scripts { functions, processes }
    }
}

impl Scripts {
    /// Adds the samples of another hart; `process` returns the number here of a process of that hart.
    pub(crate) fn merge(&mut self, other: &Self, process: impl Fn(ProcessId) -> ProcessId) {
        let known = self.functions.iter().cloned().zip(0u32..);
        let mut numbers: FxHashMap<ScriptFunction, u32> = known.collect();
        let functions = &mut self.functions;
        let renumbered: Vec<u32> = other
            .functions
            .iter()
            .map(|function| {
                *numbers.entry(function.clone()).or_insert_with(|| {
                    functions.push(function.clone());
                    functions.len() as u32 - 1
                })
            })
            .collect();
        let number = |function: u32| renumbered.get(function as usize).copied();
        for theirs in &other.processes {
            let id = process(theirs.process);
            let at = self.processes.binary_search_by_key(&id, |own| own.process);
            let at = at.unwrap_or_else(|at| {
                self.processes.insert(at, ScriptProcess::new(id));
                at
            });
            self.processes[at].add(theirs, number);
        }
    }
}

impl ScriptProcess {
    /// A process without samples.
    pub(super) fn new(process: ProcessId) -> Self {
        Self { process, whole: SampleSum::default(), functions: Vec::new(), lines: Vec::new() }
    }

    /// Adds another process's samples; `number` returns the number here of a function of that process.
    pub(super) fn add(&mut self, other: &Self, number: impl Fn(u32) -> Option<u32>) {
        self.whole.merge(other.whole);
        for time in &other.functions {
            let Some(function) = number(time.function) else {
                continue;
            };
            match self.functions.binary_search_by_key(&function, |time| time.function) {
                Ok(at) => {
                    self.functions[at].own.merge(time.own);
                    self.functions[at].total.merge(time.total);
                }
                Err(at) => {
                    let time = ScriptFunctionTime { function, ..time.clone() };
                    self.functions.insert(at, time);
                }
            }
        }
        for time in &other.lines {
            let Some(function) = number(time.function) else {
                continue;
            };
            let key = (function, time.line);
            let found = self.lines.binary_search_by_key(&key, |time| (time.function, time.line));
            match found {
                Ok(at) => self.lines[at].own.merge(time.own),
                Err(at) => {
                    let time = ScriptLineTime { function, ..time.clone() };
                    self.lines.insert(at, time);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
