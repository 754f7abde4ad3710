//! What all formats share: rows, their names, and weights in whole cycles.

use std::collections::HashMap;

use commit_trace::{InstFacts, InstId};

use super::Options;
use crate::names::names;
use crate::report::place;
use crate::symbolize::{Location, Module, Source, Symbolizer, Symbols};
use crate::{Evaluation, ProcessId, Profile, Sample, Window};

/// Profiles of one run, ready to be written.
pub struct Export<'a> {
    pub(super) evaluation: &'a Evaluation,
    pub(super) windows: &'a [Window],
    pub(super) options: Options<'a>,
    pub(super) symbols: Symbols,
    /// Every instruction that any profiler names, by process.
    pub(super) rows: Vec<Row>,
    index: HashMap<(ProcessId, InstId), u32>,
    /// Names of processes, by number.
    names: Vec<String>,
}

/// An instruction as executed by a process.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub process: ProcessId,
    pub inst: InstId,
    /// Index into the symbols' locations.
    location: u32,
}

/// One profiler's view.
pub(super) struct Series<'a> {
    pub name: &'a str,
    pub profile: &'a Profile,
    /// Cycles between samples; 1 for the Oracle.
    pub period: u64,
    /// The samples, or `None` for the Oracle: its time is that of the windows.
    log: Option<&'a [Sample]>,
}

/// So many cycles of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Weighted {
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
    /// Names everything in `evaluation`. `windows` are those of [`crate::Timeline`] over the same
    /// stream; formats without time need none.
    pub fn new(
        evaluation: &'a Evaluation,
        windows: &'a [Window],
        symbolizer: &Symbolizer,
        options: Options<'a>,
    ) -> Self {
        let oracle = options.oracle.then_some(&evaluation.oracle);
        let profiles = evaluation.samplers.iter().map(|result| &result.profile);
        let mut keys: Vec<(ProcessId, InstId)> = oracle
            .into_iter()
            .chain(profiles)
            .flat_map(|profile| profile.iter().map(|(process, inst, _)| (process, inst)))
            // A trace that lost its facts must not take the export with it.
            .filter(|(_, inst)| (inst.0 as usize) < evaluation.facts.len())
            .collect();
        keys.sort_unstable();
        keys.dedup();
        let places: Vec<_> = keys
            .iter()
            .map(|(process, inst)| {
                place::place(evaluation, *process, &evaluation.facts[inst.0 as usize])
            })
            .collect();
        let processes: Vec<_> = (0..evaluation.processes.len() as u32)
            .map(ProcessId)
            .collect();
        Self {
            evaluation,
            windows,
            options,
            symbols: symbolizer.resolve(&places),
            index: keys.iter().copied().zip(0..).collect(),
            rows: keys
                .into_iter()
                .zip(0..)
                .map(|((process, inst), location)| Row {
                    process,
                    inst,
                    location,
                })
                .collect(),
            names: names(evaluation, &processes),
        }
    }

    /// The profilers, the Oracle first.
    pub(super) fn series(&self) -> Vec<Series<'a>> {
        let oracle = self.options.oracle.then_some(Series {
            name: "oracle",
            profile: &self.evaluation.oracle,
            period: 1,
            log: None,
        });
        let samplers = self.evaluation.samplers.iter().map(|result| Series {
            name: &result.sampler.name,
            profile: &result.profile,
            period: result.sampler.schedule.period,
            log: Some(&result.log),
        });
        oracle.into_iter().chain(samplers).collect()
    }

    /// Cycles per row of a profile, in order of row; rows with less than a cycle may be missing.
    pub(super) fn cycles(&self, profile: &Profile) -> Vec<(usize, u64)> {
        let mut rounding = Rounding::new(profile);
        profile
            .iter()
            .filter_map(|(process, inst, units)| {
                Some((self.row(process, inst)?, rounding.next(units)?))
            })
            .collect()
    }

    /// The samples of a profiler in order of time. The Oracle has one per window and row, at the
    /// window's end.
    pub(super) fn samples(&self, series: &Series<'_>) -> Vec<Weighted> {
        let mut rounding = Rounding::new(series.profile);
        let mut weighted = |cycle, process, inst, units| {
            Some(Weighted {
                cycle: self.within(process, cycle),
                row: self.row(process, inst)?,
                cycles: rounding.next(units)?,
            })
        };
        match series.log {
            Some(log) => log
                .iter()
                .filter_map(|s| weighted(s.cycle, s.process, s.inst, s.units))
                .collect(),
            None => self
                .windows
                .iter()
                .flat_map(|window| window.weights.iter().map(|weight| (window.end, *weight)))
                .filter_map(|(end, (process, inst, units))| weighted(end, process, inst, units))
                .collect(),
        }
    }

    /// The cycle, or the nearest one in which the process was what it is. Windows know no better, and
    /// a sample may name an instruction that commits after its trigger, and after an `execve`.
    fn within(&self, process: ProcessId, cycle: u64) -> u64 {
        let Some(process) = self.evaluation.processes.get(process.0 as usize) else {
            return cycle;
        };
        let last = process
            .end_cycle
            .map_or(cycle, |end| cycle.min(end.saturating_sub(1)));
        last.max(process.first_cycle)
    }

    fn row(&self, process: ProcessId, inst: InstId) -> Option<usize> {
        self.index.get(&(process, inst)).map(|row| *row as usize)
    }

    pub(super) fn facts(&self, row: usize) -> &InstFacts {
        &self.evaluation.facts[self.rows[row].inst.0 as usize]
    }

    pub(super) fn location(&self, row: usize) -> &Location {
        &self.symbols.locations[self.rows[row].location as usize]
    }

    pub(super) fn module(&self, row: usize) -> &Module {
        self.symbols.module(self.location(row).module)
    }

    pub(super) fn is_kernel(&self, row: usize) -> bool {
        self.facts(row).privilege != 0
    }

    pub(super) fn process_name(&self, process: ProcessId) -> &str {
        self.names.get(process.0 as usize).map_or("?", |name| name)
    }

    /// The kernel's process id; 0 before there are any, which is what Linux calls its first thread.
    pub(super) fn pid(&self, process: ProcessId) -> u32 {
        let process = self.evaluation.processes.get(process.0 as usize);
        process.and_then(|process| process.pid).unwrap_or(0)
    }

    /// The function of a row and what was inlined there, innermost first.
    pub(super) fn frames(&self, row: usize) -> Vec<Frame<'_>> {
        let at = self.location(row);
        let mut source = at.source.as_ref();
        let mut frames = Vec::with_capacity(at.inlined.len() + 1);
        for inlined in &at.inlined {
            frames.push(Frame {
                name: &inlined.function,
                source: source.map(line),
                inlined: true,
            });
            source = inlined.call.as_ref();
        }
        frames.push(Frame {
            name: &self.symbols.function(at.function).name,
            source: source.map(line),
            inlined: false,
        });
        frames
    }

    /// Address and assembly of a row: `0x10152 lw a5,0(a0)`.
    pub(super) fn instruction(&self, row: usize) -> String {
        let facts = self.facts(row);
        let text = (self.options.disassemble)(facts.raw, facts.pc);
        let words: Vec<&str> = text.split_whitespace().collect();
        format!("{:#x} {}", facts.pc, words.join(" "))
    }

    /// Nanoseconds from the stream's cycle 0.
    pub(super) fn nanos(&self, cycle: u64) -> u64 {
        let nanos = u128::from(cycle) * 1_000_000_000 / u128::from(self.options.clock_hz.max(1));
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }
}

fn line(source: &Source) -> (&str, u32) {
    (&source.file, source.line)
}

/// Turns units into whole cycles and carries what is left over, so that a sum never strays by a cycle.
struct Rounding {
    per_cycle: u64,
    rest: u64,
}

impl Rounding {
    fn new(profile: &Profile) -> Self {
        Self {
            per_cycle: profile.units_per_cycle().max(1),
            rest: 0,
        }
    }

    /// Whole cycles; `None` if it is none yet.
    fn next(&mut self, units: u64) -> Option<u64> {
        let units = units + self.rest;
        self.rest = units % self.per_cycle;
        Some(units / self.per_cycle).filter(|cycles| *cycles > 0)
    }
}
