//! The profile of elapsed time of several harts: each cycle in equal shares to the harts that are busy.

pub(crate) mod rules;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

use maud::{Markup, html};
use profile::{Evaluation, ProcessId, ThreadId};
use schemars::JsonSchema;
use serde::Serialize;

use super::gather::Gathered;
use super::model::Common;
use super::options::Options;
use super::section::Section;
use super::widths::{count, fit, fit_name, percent};

/// Functions that a report keeps.
const MAX_FUNCTIONS: usize = 10_000;

/// The section's content.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ElapsedProfile {
    /// Number of harts.
    pub harts: usize,
    /// Cycles of elapsed time in the region of interest.
    pub cycles: u64,
    /// Cycles in which no hart is busy.
    pub idle: u64,
    /// Cycles in which so many harts are busy, from one on.
    pub busy: Vec<u64>,
    /// Functions by elapsed time, the most first; at most ten thousand.
    pub functions: Vec<ElapsedFunction>,
    /// Threads by elapsed time, the most first; threads of a process that have the same name are one row.
    pub threads: Vec<ElapsedThread>,
}

/// A function's part of the elapsed time.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ElapsedFunction {
    /// Index into [`processes`](Common::processes).
    pub process: usize,
    /// The function's name.
    pub name: String,
    /// Cycles of elapsed time.
    pub cycles: f64,
    /// Share of the elapsed time.
    pub share: f64,
    /// Share of the cycles of all harts in which they are busy: what the profile of all harts says.
    pub of_busy: f64,
}

/// The part of the elapsed time of threads of one name.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ElapsedThread {
    /// Index into [`processes`](Common::processes); 0 if the thread is not known.
    pub process: usize,
    /// The threads' name in the kernel.
    pub name: String,
    /// Number of threads.
    pub count: usize,
    /// Cycles of elapsed time.
    pub cycles: f64,
    /// Share of the elapsed time.
    pub share: f64,
    /// Share of the cycles of all harts in which they are busy.
    pub of_busy: f64,
}

impl ElapsedProfile {
    /// Returns the profile of elapsed time of so many harts; `evaluation` is of all of them. `None` if the guest's kernel does not tell who
    /// runs, or the recording does not tell how many harts are busy.
    pub(super) fn new(
        evaluation: &Evaluation,
        gathered: &Gathered<'_>,
        harts: usize,
    ) -> Option<Self> {
        let told = evaluation.scheduler.elapsed_by_thread(harts)?;
        let any: u64 = told.busy.iter().sum();
        let several = told.busy.iter().skip(1).any(|cycles| *cycles > 0);
        if any == 0 || several && evaluation.shared.is_empty() {
            return None;
        }
        let cycles = told.idle + any;
        let rows: BTreeMap<ProcessId, usize> =
            gathered.processes.iter().map(|summary| summary.process).zip(1..).collect();
        let mut profile = Self {
            harts,
            cycles,
            idle: told.idle,
            busy: told.busy,
            functions: functions(evaluation, gathered, &rows, any as f64),
            threads: Vec::new(),
        };
        let running: u64 = told.threads.iter().map(|thread| thread.running).sum();
        let mut threads: BTreeMap<(usize, &str), ElapsedThread> = BTreeMap::new();
        for of in &told.threads {
            let thread = evaluation.threads.get(of.thread.0 as usize);
            let thread = thread.filter(|_| of.thread != ThreadId::NONE);
            let process = thread.and_then(|thread| rows.get(&thread.process)).copied();
            let name = thread.map_or("?", |thread| thread.name());
            let process = process.unwrap_or(0);
            let row = threads.entry((process, name)).or_insert_with(|| ElapsedThread {
                process,
                name: name.to_owned(),
                count: 0,
                cycles: 0.0,
                share: 0.0,
                of_busy: 0.0,
            });
            row.count += 1;
            row.cycles += of.elapsed;
            row.of_busy += of.running as f64 / running.max(1) as f64;
        }
        profile.threads = threads.into_values().collect();
        profile.threads.sort_by_key(|row| Reverse(row.cycles as u64));
        let whole = cycles as f64;
        profile.threads.iter_mut().for_each(|row| row.share = row.cycles / whole);
        profile.functions.iter_mut().for_each(|row| row.share = row.cycles / whole);
        profile.functions.truncate(MAX_FUNCTIONS);
        Some(profile)
    }

    /// Returns the mean number of busy harts while any is busy.
    fn parallelism(&self) -> f64 {
        let busy: u64 = self.busy.iter().sum();
        let harts: u64 = self.busy.iter().zip(1..).map(|(cycles, harts)| cycles * harts).sum();
        harts as f64 / busy.max(1) as f64
    }

    /// Returns how long no, one, and more harts are busy, in words.
    fn concurrency(&self) -> String {
        let share = |cycles: u64| percent(cycles as f64 / self.cycles.max(1) as f64);
        let none = (self.idle > 0).then(|| format!("none {} %", share(self.idle)));
        let some = self.busy.iter().zip(1..).filter(|(cycles, _)| **cycles > 0);
        let some = some.map(|(cycles, harts)| format!("{harts} {} %", share(*cycles)));
        let all: Vec<String> = none.into_iter().chain(some).collect();
        format!(
            "harts busy: {}; {:.2} in the mean while any is",
            all.join(", "),
            self.parallelism()
        )
    }

    /// Returns the functions to show.
    fn shown(&self, common: &Common, options: &Options) -> Vec<&ElapsedFunction> {
        let of = |row: &&ElapsedFunction| match &options.process {
            Some(name) => common.processes[row.process].name == *name,
            None => row.share >= options.min_share,
        };
        self.functions.iter().filter(of).take(options.functions).collect()
    }

    /// Returns the threads to show.
    fn shown_threads(&self, common: &Common, options: &Options) -> Vec<&ElapsedThread> {
        let of = |row: &&ElapsedThread| match &options.process {
            Some(name) => common.processes[row.process].name == *name,
            None => row.share >= options.min_share,
        };
        self.threads.iter().filter(of).take(options.functions).collect()
    }
}

/// Returns the functions, the ones with most elapsed time first. Their cycles are `whole` together, in which any hart is busy.
fn functions(
    evaluation: &Evaluation,
    gathered: &Gathered<'_>,
    rows: &BTreeMap<ProcessId, usize>,
    whole: f64,
) -> Vec<ElapsedFunction> {
    let units = evaluation.oracle.units_per_cycle().max(1) as f64;
    let (mut elapsed, mut busy) = (0.0, 0.0);
    let mut places = Vec::new();
    let mut of_process: Option<(ProcessId, usize)> = None;
    let mut sums: BTreeMap<(usize, u32), (f64, f64)> = BTreeMap::new();
    for (process, inst, own, cycles) in evaluation.elapsed_cycles() {
        if of_process.map(|(known, _)| known) != Some(process) {
            let Some(&row) = rows.get(&process) else { continue };
            let (insts, own) = gathered.places(row - 1);
            places = insts.into_iter().zip(own.iter().copied()).collect();
            of_process = Some((process, row));
        }
        let Some((_, row)) = of_process else { continue };
        let own = own as f64 / units;
        elapsed += cycles;
        busy += own;
        if let Ok(at) = places.binary_search_by_key(&inst, |(inst, _)| *inst) {
            let function = gathered.symbols.locations[places[at].1 as usize].function;
            let sum = sums.entry((row, function.0)).or_default();
            sum.0 += cycles;
            sum.1 += own;
        }
    }
    // Harts are told how many are busy up to a turn late, and the scheduler's records, which add up to the region, are not.
    let scale = whole / f64::max(elapsed, 1.0);
    let functions = sums.into_iter().map(|((process, function), (cycles, own))| ElapsedFunction {
        process,
        name: gathered.symbols.function(symbols::FunctionId(function)).name.to_string(),
        cycles: cycles * scale,
        share: 0.0,
        of_busy: own / f64::max(busy, 1.0),
    });
    let mut functions: Vec<ElapsedFunction> = functions.collect();
    functions.sort_by(|a, b| b.cycles.total_cmp(&a.cycles));
    functions
}

impl Section for ElapsedProfile {
    fn write(&self, common: &Common, options: &Options, out: &mut String) -> std::fmt::Result {
        let process = |index: usize| fit(&common.processes[index].name, 23);
        writeln!(
            out,
            "\n{:<24}{:<42}{:>16}{:>8}{:>9}",
            "Elapsed time of", "function", "cycles", "%", "harts %"
        )?;
        for row in self.shown(common, options) {
            writeln!(
                out,
                "{:<24}{:<42}{:>16}{:>8}{:>9}",
                process(row.process),
                fit_name(&row.name, 41),
                count(row.cycles),
                percent(row.share),
                percent(row.of_busy),
            )?;
        }
        writeln!(
            out,
            "{:<24}{:<42}{:>16}{:>8}{:>9}",
            "Elapsed time of", "thread", "cycles", "%", "harts %"
        )?;
        for row in self.shown_threads(common, options) {
            let times = match row.count {
                1 => String::new(),
                count => format!(" ({count} threads)"),
            };
            writeln!(
                out,
                "{:<24}{:<42}{:>16}{:>8}{:>9}",
                process(row.process),
                fit(&(row.name.clone() + &times), 41),
                count(row.cycles),
                percent(row.share),
                percent(row.of_busy),
            )?;
        }
        writeln!(
            out,
            "{:<24}{:<42}{:>16}{:>8}",
            "all",
            "",
            count(self.cycles as f64),
            percent(1.0)
        )?;
        for line in super::widths::wrap(&self.concurrency(), 116) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// Returns two tables.
    fn page(&self, common: &Common) -> Markup {
        let options = Options::default();
        let row = |process: usize, name: &str, cycles: f64, share: f64, of_busy: f64| {
            html! {
                tr {
                    td { (common.processes[process].name) }
                    td { (name) }
                    td class="number" { (count(cycles)) }
                    td class="number" { (percent(share)) }
                    td class="number" { (percent(of_busy)) }
                }
            }
        };
        let table = |what: &str, rows: Vec<Markup>| {
            html! {
                div class="scroll" {
                    table {
                        thead {
                            tr {
                                th { "process" }
                                th { (what) }
                                @for title in ["cycles", "% of elapsed time", "% of all harts"] {
                                    th class="number" { (title) }
                                }
                            }
                        }
                        tbody { @for row in rows { (row) } }
                    }
                }
            }
        };
        let functions = self.shown(common, &options).into_iter();
        let functions = functions
            .map(|of| row(of.process, &of.name, of.cycles, of.share, of.of_busy))
            .collect();
        let threads = self.shown_threads(common, &options).into_iter();
        let threads = threads
            .map(|of| {
                let name = match of.count {
                    1 => of.name.clone(),
                    count => format!("{} ({count} threads)", of.name),
                };
                row(of.process, &name, of.cycles, of.share, of.of_busy)
            })
            .collect();
        html! {
            section id="elapsed" aria-labelledby="elapsed-title" {
                h2 id="elapsed-title" { "Elapsed time" }
                p {
                    "Each cycle of elapsed time is charged in equal shares to the harts that are busy, and to what the Oracle charges there: a "
                    "part in which one hart works alone weighs as much as all harts together do. Beside it the share of the sum of all harts."
                }
                (table("function", functions))
                (table("thread", threads))
                p class="muted" { (self.concurrency()) }
            }
        }
    }
}
