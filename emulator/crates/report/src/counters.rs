//! Counters: what the guest's `perf stat` said beside the host's own count, and what counters and profile say of the same cycles.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::html::escape;
use super::model::Report;
use super::text::fit::{count, fit, percent};

/// What is known of the run's counters.
#[derive(Clone, Debug, Serialize)]
pub struct CounterReport {
    /// Events of the region of interest (or of all that was timed, if there was none), by the host's own count.
    pub events: BTreeMap<String, u64>,
    /// What the guest counted.
    pub guest: Vec<GuestCount>,
    /// The same cycles and instructions by counters and by the Oracle.
    pub checks: Vec<CounterCheck>,
    /// Shares of slots at decode, by counters, and at commit, by the profile.
    pub top_down: Vec<TopDownPair>,
}

/// A line of the guest's `perf stat`.
#[derive(Clone, Debug, Serialize)]
pub struct GuestCount {
    /// Its file in the output folder.
    pub file: String,
    /// The event, as perf calls it.
    pub event: String,
    /// What perf says.
    pub guest: f64,
    /// The host's count of the same event on this hart in the region of interest, if it has one.
    pub host: Option<u64>,
    /// Why the two differ, beside that the region is not exactly what perf counted.
    pub note: String,
}

/// A number of the commit stage in two ways.
#[derive(Clone, Debug, Serialize)]
pub struct CounterCheck {
    /// What it is.
    pub name: &'static str,
    /// By counters.
    pub counters: u64,
    /// By the Oracle's profile.
    pub profile: f64,
}

/// A node of the top-down tree in two ways.
#[derive(Clone, Debug, Serialize)]
pub struct TopDownPair {
    /// Its name.
    pub name: &'static str,
    /// 1 or 2.
    pub level: u8,
    /// Share of slots of decode.
    pub decode: f64,
    /// Share of slots of commit.
    pub commit: f64,
}

/// Node of the profile's tree, level, its name, and the event of its slots.
const TOP_DOWN: [(&str, u8, &str, &str); 10] = [
    ("retiring", 1, "Retiring", "TOPDOWN.RETIRING"),
    (
        "bad_speculation",
        1,
        "Bad Speculation",
        "TOPDOWN.BAD_SPECULATION",
    ),
    (
        "bad_speculation.mispredicts",
        2,
        "Branch Mispredicts",
        "TOPDOWN.BAD_SPECULATION.MISPREDICT",
    ),
    (
        "bad_speculation.clears",
        2,
        "Machine Clears",
        "TOPDOWN.BAD_SPECULATION.CLEAR",
    ),
    ("frontend", 1, "Frontend Bound", "TOPDOWN.FRONTEND_BOUND"),
    (
        "frontend.latency",
        2,
        "Latency",
        "TOPDOWN.FRONTEND_BOUND.LATENCY",
    ),
    (
        "frontend.bandwidth",
        2,
        "Bandwidth",
        "TOPDOWN.FRONTEND_BOUND.BANDWIDTH",
    ),
    ("backend", 1, "Backend Bound", "TOPDOWN.BACKEND_BOUND"),
    (
        "backend.memory",
        2,
        "Memory",
        "TOPDOWN.BACKEND_BOUND.MEMORY",
    ),
    ("backend.core", 2, "Core", "TOPDOWN.BACKEND_BOUND.CORE"),
];

/// Cycles and instructions that counters and profile both have: the counters that are summed, the categories of the cycle stack.
const CHECKS: [(&str, &[&str], &[usize]); 3] = [
    ("cycles that commit", &["CYCLES.COMMIT"], &[0]),
    ("cycles stalled", &["CYCLES.STALLED"], &[1, 2, 3]),
    (
        "cycles with an empty ROB, and of traps",
        &[
            "CYCLES.DRAINED",
            "CYCLES.FLUSHED",
            "INST.EXCEPTION",
            "FLUSH.INTERRUPT",
            "MEM.ORDER.FAIL",
        ],
        &[4, 5, 6],
    ),
];

/// What the cores of a run counted of each event, by its `run.json`: one of several, or all together.
pub fn counted(run: &Value, hart: Option<u32>) -> Option<BTreeMap<String, u64>> {
    let harts = run["counters"]["harts"].as_array()?;
    let of_hart = |hart: &Value| BTreeMap::<String, u64>::deserialize(hart).ok();
    if let Some(hart) = hart {
        return of_hart(harts.get(hart as usize)?);
    }
    let mut sums = of_hart(harts.first()?)?;
    for more in harts[1..].iter().filter_map(of_hart) {
        for (event, count) in more {
            let sum = sums.entry(event).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    Some(sums)
}

impl Report {
    /// The same report with counters: the host's counts of events by name, and what the guest counted.
    #[must_use]
    pub fn with_counters(mut self, events: BTreeMap<String, u64>, guest: Vec<GuestCount>) -> Self {
        let event = |name: &str| events.get(name).copied().unwrap_or(0);
        let all = &self.processes[0];
        let mut checks = vec![CounterCheck {
            name: "instructions",
            counters: event("INST.RET"),
            profile: self.totals.instructions as f64,
        }];
        checks.extend(CHECKS.iter().map(|&(name, counters, categories)| {
            let share: f64 = categories.iter().map(|&at| all.stack[at]).sum();
            CounterCheck {
                name,
                counters: { counters.iter() }.fold(0, |sum, name| sum.saturating_add(event(name))),
                profile: share * all.cycles,
            }
        }));
        let slots = event("TOPDOWN.SLOTS") as f64;
        let at_commit = { self.top_down.as_ref() }
            .filter(|_| slots > 0.0)
            .map(|tree| &tree.processes[0].shares);
        let top_down = at_commit.into_iter().flat_map(|shares| {
            TOP_DOWN.map(|(path, level, name, counter)| TopDownPair {
                name,
                level,
                decode: event(counter) as f64 / slots,
                commit: shares.get(path).copied().unwrap_or(0.0),
            })
        });
        let top_down = top_down.collect();
        self.counters = Some(CounterReport {
            top_down,
            checks,
            guest,
            events,
        });
        self
    }

    pub(super) fn write_counters(&self, out: &mut String) -> fmt::Result {
        let Some(counters) = &self.counters else {
            return Ok(());
        };
        if !counters.guest.is_empty() {
            writeln!(
                out,
                "\n{:<42}{:>18}{:>18}{:>10}  file",
                "Counters, as the guest's perf stat has them", "guest", "host", "ratio"
            )?;
            for row in &counters.guest {
                let [guest, host, ratio] = row.cells();
                writeln!(
                    out,
                    "{:<42}{guest:>18}{host:>18}{ratio:>10}  {}",
                    fit(&row.event, 41),
                    fit(&format!("{} {}", row.file, row.note), 28).trim_end(),
                )?;
            }
            writeln!(
                out,
                "Host: the same event in the region of interest, in all modes, by the core's own count."
            )?;
        }
        writeln!(
            out,
            "\n{:<42}{:>18}{:>18}",
            "The same by counters and by the profile", "counters", "profile"
        )?;
        for row in &counters.checks {
            writeln!(
                out,
                "{:<42}{:>18}{:>18}",
                row.name,
                count(row.counters as f64),
                count(row.profile.round())
            )?;
        }
        if counters.top_down.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "\n{:<42}{:>18}{:>18}{:>12}",
            "Top-down, % of slots", "at decode", "at commit", "difference"
        )?;
        for row in &counters.top_down {
            let indent = 2 * usize::from(row.level - 1);
            writeln!(
                out,
                "{:indent$}{:<width$}{:>18}{:>18}{:>+12.1}",
                "",
                row.name,
                percent(row.decode),
                percent(row.commit),
                100.0 * (row.decode - row.commit),
                width = 42 - indent,
            )?;
        }
        writeln!(
            out,
            "At decode: the counters (perf stat -M TopdownL1), where a slot is lost when no instruction enters, though older ones may\n\
             still commit. At commit: what was lost in the end. So refills after mispredictions and flushes weigh more at decode, and\n\
             waits of the oldest instruction, which decode feels only when the ROB or a queue is full, more at commit."
        )
    }

    pub(super) fn counters_html(&self) -> String {
        let rows = { self.counters.iter() }.flat_map(|counters| &counters.guest);
        let rows: Vec<String> = rows
            .map(|row| {
                let [guest, host, ratio] = row.cells();
                let cells = [escape(&row.event), guest, host, ratio, escape(&row.file)];
                format!("<tr><td>{}</td></tr>", cells.join("</td><td>"))
            })
            .collect();
        if rows.is_empty() {
            return String::new();
        }
        format!(
            "<section id=\"counters\"><h2>Counters</h2><table><thead><tr><th>event</th><th>guest</th><th>host</th>\
             <th>ratio</th><th>file</th></tr></thead><tbody>{}</tbody></table></section>",
            rows.concat()
        )
    }
}

impl GuestCount {
    /// The guest's count, the host's, and the one over the other.
    fn cells(&self) -> [String; 3] {
        let host = self.host.map_or("-".to_owned(), |host| count(host as f64));
        let ratio = { self.host }
            .filter(|&host| host != 0)
            .map_or("-".to_owned(), |host| {
                format!("{:.4}", self.guest / host as f64)
            });
        [count(self.guest), host, ratio]
    }
}
