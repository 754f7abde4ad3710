//! Counters: what the guest's `perf stat` said beside the host's own count, and what counters and profile say of the same cycles.

pub(crate) mod rules;

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use maud::{Markup, html};
use profile::{Category, Estimate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::model::Common;
use super::options::Options;
use super::section::Section;
use super::topdown::TopDownReport;
use super::widths::{count, fit, percent};

/// The section's content: the run's counters.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct CounterReport {
    /// The host's own counts, by event, of the region of interest, or of all that was timed if there was no region.
    pub events: BTreeMap<String, u64>,
    /// Counts of the guest's `perf stat`.
    pub guest: Vec<GuestCount>,
    /// Cycles and instructions as counters and as the Oracle count them.
    pub checks: Vec<CounterCheck>,
    /// Shares of slots at decode, by counters, and at commit, by the profile.
    pub top_down: Vec<TopDownPair>,
    /// The guest's top-down of single processes, as far as its perf counted their slots.
    pub top_down_of: Vec<ProcessTopDown>,
}

/// Slots of a process at decode, by the guest's perf, and at commit, by the profile.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ProcessTopDown {
    /// Name of the process in the report.
    pub process: String,
    /// The file of perf's output that has the counts.
    pub file: String,
    /// Nodes of the tree that perf counted.
    pub pairs: Vec<TopDownPair>,
}

/// A line of the guest's `perf stat`.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct GuestCount {
    /// perf's file in the output folder.
    pub file: String,
    /// The event, as perf calls it.
    pub event: String,
    /// The count that perf printed.
    pub guest: f64,
    /// The host's count of the same event, if it has one: in the region of interest if the run has no other `perf stat`, else
    /// in the process that perf counted.
    pub host: Option<u64>,
    /// The command that perf counted, as far as perf's text says.
    pub command: Option<String>,
    /// Which `perf stat` of that command it was, from 0.
    pub run: usize,
    /// The process that was counted, if the run has other `perf stat`s, and as many of this command as it has processes of that
    /// name.
    pub process: Option<String>,
    /// Why the guest's count and the host's differ, beside that the region is not exactly what perf counted.
    pub note: String,
}

/// A number of the commit stage in two ways.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct CounterCheck {
    /// What is counted.
    pub name: &'static str,
    /// The number by the counters.
    pub counters: u64,
    /// The number by the Oracle's profile.
    pub profile: f64,
}

/// A node of the top-down tree in two ways.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct TopDownPair {
    /// The node's name.
    pub name: &'static str,
    /// The node's level in the tree: 1 or 2.
    pub level: u8,
    /// The node's share of the slots at decode.
    pub decode: f64,
    /// The node's share of the slots at commit.
    pub commit: f64,
}

/// Nodes of the top-down tree: path in the profile's tree, level, name, and the event that counts its slots.
const TOP_DOWN: [(&str, u8, &str, &str); 10] = [
    ("retiring", 1, "Retiring", "TOPDOWN.RETIRING"),
    ("bad_speculation", 1, "Bad Speculation", "TOPDOWN.BAD_SPECULATION"),
    ("bad_speculation.mispredicts", 2, "Branch Mispredicts", "TOPDOWN.BAD_SPECULATION.MISPREDICT"),
    ("bad_speculation.clears", 2, "Machine Clears", "TOPDOWN.BAD_SPECULATION.CLEAR"),
    ("frontend", 1, "Frontend Bound", "TOPDOWN.FRONTEND_BOUND"),
    ("frontend.latency", 2, "Latency", "TOPDOWN.FRONTEND_BOUND.LATENCY"),
    ("frontend.bandwidth", 2, "Bandwidth", "TOPDOWN.FRONTEND_BOUND.BANDWIDTH"),
    ("backend", 1, "Backend Bound", "TOPDOWN.BACKEND_BOUND"),
    ("backend.memory", 2, "Memory", "TOPDOWN.BACKEND_BOUND.MEMORY"),
    ("backend.core", 2, "Core", "TOPDOWN.BACKEND_BOUND.CORE"),
];

/// Cycles that both counters and profile have: name, counters that are summed, categories of the cycle stack.
const CHECKS: [(&str, &[&str], &[Category]); 3] = [
    ("cycles that commit", &["CYCLES.COMMIT"], &[Category::Execution]),
    (
        "cycles stalled",
        &["CYCLES.STALLED"],
        &[Category::AluStall, Category::LoadStall, Category::StoreStall],
    ),
    (
        "cycles with an empty ROB, and of traps",
        &[
            "CYCLES.DRAINED",
            "CYCLES.FLUSHED",
            "INST.EXCEPTION",
            "FLUSH.INTERRUPT",
            "MEM.ORDER.FAIL",
        ],
        &[Category::FrontEnd, Category::Mispredict, Category::MiscFlush],
    ),
];

/// Returns the count of each event, by the run's `run.json`: of the core of `hart`, or of all cores together.
pub fn counted(run: &Value, hart: Option<u32>) -> Option<BTreeMap<String, u64>> {
    let mut harts = CountedEvents::deserialize(run).ok()?.counters?.harts;
    if let Some(hart) = hart {
        return harts.into_iter().nth(hart as usize);
    }
    let mut sums = harts.pop()?;
    for (event, count) in harts.into_iter().flatten() {
        let sum = sums.entry(event).or_default();
        *sum = sum.saturating_add(count);
    }
    Some(sums)
}

/// What a run's run.json says of events.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CountedEvents {
    /// What the cores counted, if the run has it.
    pub counters: Option<EventCounts>,
}

/// What the cores of a run counted.
#[derive(Debug, Deserialize)]
pub struct EventCounts {
    /// Counts by event, by hart.
    pub harts: Vec<BTreeMap<String, u64>>,
    /// Estimates by event, if the region was sampled.
    #[serde(default)]
    pub estimates: BTreeMap<String, Estimate>,
}

/// Names of the event that the profile has of each process: cycles in all modes.
const CYCLES_EVENTS: [&str; 3] = ["cycles", "cpu-cycles", "cycles.hart"];
/// Longest command name of the kernel.
const MAX_COMMAND_NAME: usize = 15;

/// Returns the processes that have the name of a command's program, in the order in which they started.
fn processes_of(common: &Common, command: &str) -> Vec<usize> {
    let program = command.split_whitespace().next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    let comm: String = name.chars().take(MAX_COMMAND_NAME).collect();
    // The process id tells processes with one name apart.
    let is_own = |found: &str| {
        let id = found.strip_prefix(&comm)?.strip_prefix('-')?;
        id.starts_with(|first: char| first.is_ascii_digit()).then_some(())
    };
    let mut own: Vec<usize> = (1..common.processes.len())
        .filter(|&at| {
            let found = &common.processes[at].name;
            *found == comm || is_own(found).is_some()
        })
        .collect();
    own.sort_by_key(|&at| common.processes[at].id);
    own
}

/// Compares each of several `perf stat`s with the process that it counted, since none of them counted the whole region. The
/// process is known if the program ran as often as perf counted it.
fn compare_by_process(common: &Common, guest: &mut [GuestCount]) {
    let mut stats: BTreeMap<String, usize> = BTreeMap::new();
    for row in guest.iter() {
        if let Some(command) = &row.command {
            let stats = stats.entry(command.clone()).or_default();
            *stats = (*stats).max(row.run + 1);
        }
    }
    for row in guest {
        row.host = None;
        let Some(command) = &row.command else {
            continue;
        };
        let processes = processes_of(common, command);
        if processes.len() != stats[command] {
            if processes.len() > 1 {
                let why = format!("one of {} processes", processes.len());
                row.note = match row.note.as_str() {
                    "" => why,
                    note => format!("{note}, {why}"),
                };
            }
            continue;
        }
        let process = &common.processes[processes[row.run]];
        row.process = Some(process.name.clone());
        if CYCLES_EVENTS.contains(&row.event.trim_end_matches(':')) {
            row.host = Some(process.cycles.round() as u64);
        }
    }
}

/// Returns the top-down shares of the processes whose slots perf counted, beside those of the profile.
fn top_down_by_process(
    common: &Common,
    tree: &TopDownReport,
    guest: &[GuestCount],
) -> Vec<ProcessTopDown> {
    let mut stats: Vec<(&str, &str)> =
        guest.iter().filter_map(|row| Some((row.file.as_str(), row.process.as_deref()?))).collect();
    stats.dedup();
    let of_stat = |(file, process): (&str, &str)| {
        let own = || {
            let rows = guest.iter();
            rows.filter(move |row| row.file == file && row.process.as_deref() == Some(process))
        };
        let counted = |name: &str| {
            let is = |row: &&GuestCount| {
                let base = row.event.split(':').next().unwrap_or_default();
                base.eq_ignore_ascii_case(name)
            };
            own().find(is).map(|row| row.guest)
        };
        let slots = counted("TOPDOWN.SLOTS").filter(|slots| *slots > 0.0)?;
        let at = common.processes.iter().position(|own| own.name == process)?;
        let shares = &tree.processes.get(at)?.shares;
        let pair = |&(path, level, name, counter): &(&'static str, u8, &'static str, &str)| {
            Some(TopDownPair {
                name,
                level,
                decode: counted(counter)? / slots,
                commit: shares.get(path).copied().unwrap_or(0.0),
            })
        };
        let pairs: Vec<_> = TOP_DOWN.iter().filter_map(pair).collect();
        (!pairs.is_empty()).then(|| ProcessTopDown {
            process: process.to_owned(),
            file: file.to_owned(),
            pairs,
        })
    };
    stats.into_iter().filter_map(of_stat).collect()
}

/// What is known of a run's counters.
pub struct CounterInputs {
    /// The host's own counts, by event.
    pub events: BTreeMap<String, u64>,
    /// Counts of the guest's `perf stat`; of these, [`GuestCount::host`] is the host's count of the same event in the region.
    pub guest: Vec<GuestCount>,
}

/// Returns what counters say beside the profile, whose top-down tree is `tree` if slots were counted.
pub(super) fn counters(
    common: &Common,
    tree: Option<&TopDownReport>,
    inputs: CounterInputs,
) -> CounterReport {
    let CounterInputs { events, mut guest } = inputs;
    let first = guest.first().map(|row| (row.file.clone(), row.command.clone(), row.run));
    let is_first = |row: &GuestCount| {
        first.as_ref().is_some_and(|(file, command, run)| {
            (&row.file, &row.command, &row.run) == (file, command, run)
        })
    };
    if !guest.iter().all(is_first) {
        compare_by_process(common, &mut guest);
    }
    let top_down_of = tree.map_or_else(Vec::new, |tree| top_down_by_process(common, tree, &guest));
    let event = |name: &str| events.get(name).copied().unwrap_or(0);
    let all = &common.processes[0];
    let mut checks = vec![CounterCheck {
        name: "instructions",
        counters: event("INST.RET"),
        profile: common.totals.instructions as f64,
    }];
    checks.extend(CHECKS.iter().map(|&(name, counters, categories)| {
        let share: f64 = categories.iter().map(|&category| all.stack[category as usize]).sum();
        CounterCheck {
            name,
            counters: counters.iter().fold(0, |sum, name| sum.saturating_add(event(name))),
            profile: share * all.cycles,
        }
    }));
    let slots = event("TOPDOWN.SLOTS") as f64;
    let at_commit = tree.filter(|_| slots > 0.0).map(|tree| &tree.processes[0].shares);
    let top_down = at_commit.into_iter().flat_map(|shares| {
        TOP_DOWN.map(|(path, level, name, counter)| TopDownPair {
            name,
            level,
            decode: event(counter) as f64 / slots,
            commit: shares.get(path).copied().unwrap_or(0.0),
        })
    });
    let top_down = top_down.collect();
    CounterReport { top_down, top_down_of, checks, guest, events }
}

impl Section for CounterReport {
    fn write(&self, _: &Common, _: &Options, out: &mut String) -> fmt::Result {
        if !self.guest.is_empty() {
            writeln!(
                out,
                "\n{:<42}{:>18}{:>18}{:>10}  file",
                "Counters, as the guest's perf stat has them", "guest", "host", "ratio"
            )?;
            for row in self.guest.iter().take(MAX_LINES) {
                let [guest, host, ratio] = row.cells();
                writeln!(
                    out,
                    "{:<42}{guest:>18}{host:>18}{ratio:>10}  {}",
                    fit(&row.event, 41),
                    fit(&format!("{} {}", row.file, row.note), 28).trim_end(),
                )?;
            }
            if let Some(more) = self.guest.len().checked_sub(MAX_LINES).filter(|n| *n > 0) {
                writeln!(out, "{more} more are in report.json (counters.guest).")?;
            }
            let by_process = self.guest.iter().any(|row| row.process.is_some());
            writeln!(
                out,
                "{}",
                match by_process {
                    true =>
                        "Host: of several perf stats, each is compared with its own process: cycles in all modes, by the profile.",
                    false =>
                        "Host: the same event in the region of interest, in all modes, by the core's own count.",
                }
            )?;
        }
        writeln!(
            out,
            "\n{:<42}{:>18}{:>18}",
            "The same by counters and by the profile", "counters", "profile"
        )?;
        for row in &self.checks {
            writeln!(
                out,
                "{:<42}{:>18}{:>18}",
                row.name,
                count(row.counters as f64),
                count(row.profile.round())
            )?;
        }
        if self.top_down.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "\n{:<42}{:>18}{:>18}{:>12}",
            "Top-down, % of slots", "at decode", "at commit", "difference"
        )?;
        self.top_down.iter().try_for_each(|row| row.write(out))?;
        for own in self.top_down_of.iter().take(MAX_LINES) {
            writeln!(out, "{} ({})", own.process, own.file)?;
            own.pairs.iter().try_for_each(|row| row.write(out))?;
        }
        writeln!(
            out,
            "At decode: the counters (perf stat -M TopdownL1), where a slot is lost when no instruction enters, though older ones may\n\
             still commit. At commit: what was lost in the end. So refills after mispredictions and flushes weigh more at decode, and\n\
             waits of the oldest instruction, which decode feels only when the ROB or a queue is full, more at commit. Of functions only the profile\n\
             has slots (section Top-down): a slot of decode is of no instruction."
        )
    }

    fn page(&self, _: &Common) -> Markup {
        if self.guest.is_empty() {
            return html! {};
        }
        html! {
            section id="counters" {
                h2 { "Counters" }
                table {
                    thead { tr { th { "event" } th { "guest" } th { "host" } th { "ratio" } th { "file" } } }
                    tbody {
                        @for row in &self.guest {
                            tr {
                                td { (row.event) }
                                @for cell in row.cells() {
                                    td { (cell) }
                                }
                                td { (row.file) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Lines of a table of the text at most; report.json has all rows.
const MAX_LINES: usize = 60;

impl TopDownPair {
    fn write(&self, out: &mut String) -> fmt::Result {
        let indent = 2 * usize::from(self.level - 1);
        writeln!(
            out,
            "{:indent$}{:<width$}{:>18}{:>18}{:>+12.1}",
            "",
            self.name,
            percent(self.decode),
            percent(self.commit),
            100.0 * (self.decode - self.commit),
            width = 42 - indent,
        )
    }
}

impl GuestCount {
    /// Returns the guest's count, the host's count, and the guest's divided by the host's, as text.
    fn cells(&self) -> [String; 3] {
        let host = self.host.map_or("-".to_owned(), |host| count(host as f64));
        let ratio = self
            .host
            .filter(|&host| host != 0)
            .map_or("-".to_owned(), |host| format!("{:.4}", self.guest / host as f64));
        [count(self.guest), host, ratio]
    }
}
