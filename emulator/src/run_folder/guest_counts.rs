//! What the guest's `perf stat` wrote into the folder that the guest shared, beside the host's own counts.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use isa::{PerfEvent, SBI_EVENTS, Selection};
use report::GuestCount;
use serde::Deserialize;

use crate::run_folder::Folder;

/// Larger files are none of perf stat's.
const MAX_BYTES: u64 = 1 << 20;

/// perf's names of the SBI's hardware and cache events.
const PERF_NAMES: &[(&str, u32)] = &[
    ("cpu-cycles", 1),
    ("cycles", 1),
    ("instructions", 2),
    ("cache-references", 3),
    ("cache-misses", 4),
    ("branch-instructions", 5),
    ("branches", 5),
    ("branch-misses", 6),
    ("stalled-cycles-frontend", 8),
    ("stalled-cycles-backend", 9),
    ("ref-cycles", 10),
    ("L1-dcache-loads", 0x10000),
    ("L1-dcache-load-misses", 0x10001),
    ("L1-dcache-stores", 0x10002),
    ("L1-dcache-store-misses", 0x10003),
    ("L1-dcache-prefetches", 0x10004),
    ("L1-dcache-prefetch-misses", 0x10005),
    ("L1-icache-loads", 0x10008),
    ("L1-icache-load-misses", 0x10009),
    ("L1-icache-prefetches", 0x1000c),
    ("L1-icache-prefetch-misses", 0x1000d),
    ("LLC-loads", 0x10010),
    ("LLC-load-misses", 0x10011),
    ("dTLB-loads", 0x10018),
    ("dTLB-load-misses", 0x10019),
    ("dTLB-stores", 0x1001a),
    ("dTLB-store-misses", 0x1001b),
    ("iTLB-loads", 0x10020),
    ("iTLB-load-misses", 0x10021),
    ("branch-loads", 0x10028),
    ("branch-load-misses", 0x10029),
];

/// The events whose sum perf's name means; none if it has another meaning here, or a condition.
pub(crate) fn events(name: &str) -> Vec<PerfEvent> {
    let own =
        PerfEvent::ALL.iter().find(|event| event.row().name.eq_ignore_ascii_case(name)).copied();
    let sbi = || {
        let (_, number) = PERF_NAMES.iter().find(|(known, _)| *known == name)?;
        let event = SBI_EVENTS.iter().find(|event| event.number == *number)?;
        (!event.in_cycles).then_some(event.event)
    };
    if let Some(event) = own.or_else(sbi) {
        return vec![event];
    }
    let raw = name.strip_prefix('r').or_else(|| {
        let event = name.strip_prefix("cpu/event=0x")?;
        event.strip_suffix('/')
    });
    let selection = raw.and_then(|raw| u64::from_str_radix(raw, 16).ok());
    let selection = Selection::new(selection.unwrap_or(0));
    match selection.condition() {
        Some(_) => Vec::new(),
        None => selection.events().collect(),
    }
}

/// A line: count, event, and the share of time that it was counted, in percent.
type StatLine = (f64, String, f64);

/// A line as `perf stat -o FILE` writes it: `1,234  event  # …  (50.00%)`.
fn text_line(line: &str) -> Option<StatLine> {
    let mut words = line.split_whitespace();
    let count = words.next()?.replace(',', "").parse().ok()?;
    let event = words.next()?;
    // A unit comes first, or it is a metric.
    if matches!(event, "msec" | "ns" | "seconds" | "#" | "Joules") {
        return None;
    }
    let percent = line.trim_end().strip_suffix("%)");
    let percent = percent.and_then(|line| line.rsplit_once('(')?.1.trim().parse().ok());
    Some((count, event.to_owned(), percent.unwrap_or(100.0)))
}

/// A line as `perf stat -j -o FILE` writes it.
fn json_line(line: &str) -> Option<StatLine> {
    let line: PerfStatJson = serde_json::from_str(line).ok()?;
    let count = line.counter_value.parse().ok()?;
    line.unit.is_empty().then(|| (count, line.event, line.pcnt_running.unwrap_or(100.0)))
}

/// What is read of a line of `perf stat -j`; a metric has a unit, and is no count.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct PerfStatJson {
    counter_value: String,
    event: String,
    #[serde(default)]
    unit: String,
    pcnt_running: Option<f64>,
}

/// What begins a `perf stat` in a text; the command follows, in quotes.
const PERF_STAT_HEADING: &str = "Performance counter stats for ";

/// One `perf stat`: the command that it counted, as far as its text says, and its lines.
#[derive(Debug, PartialEq)]
struct Stat {
    command: Option<String>,
    lines: Vec<StatLine>,
}

/// The `perf stat`s of a file: several appended to each other, or the console's.
fn stats(text: &str) -> Vec<Stat> {
    if text.trim_start().starts_with('{') || text.contains("\n{\"") {
        let lines = text.lines().filter_map(json_line).collect();
        let command = None;
        return vec![Stat { command, lines }];
    }
    let mut stats: Vec<Stat> = Vec::new();
    for line in text.lines() {
        if let Some((_, command)) = line.split_once(PERF_STAT_HEADING) {
            let command = command.split('\'').nth(1).map(str::to_owned);
            let lines = Vec::new();
            stats.push(Stat { command, lines });
        } else if let Some(stat) = stats.last_mut() {
            stat.lines.extend(text_line(line));
        }
    }
    stats
}

/// The files' lines, in the order in which the guest wrote them; `counts` are the host's.
pub(crate) fn read(folder: &Path, counts: &BTreeMap<String, u64>) -> Vec<GuestCount> {
    let Ok(files) = Folder::open(folder) else {
        return Vec::new();
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<(Option<SystemTime>, String)> = entries
        .filter_map(|entry| {
            let written = entry.metadata().and_then(|found| found.modified()).ok();
            Some((written, entry.file_name().into_string().ok()?))
        })
        .collect();
    names.sort();
    let mut rows = Vec::new();
    let mut runs: BTreeMap<String, usize> = BTreeMap::new();
    for (_, name) in names {
        // Links and what is too large are none of perf stat's.
        let text = files.read(&name, MAX_BYTES).ok().map(String::from_utf8);
        let Some(Ok(text)) = text else {
            continue;
        };
        for Stat { command, lines } in stats(&text) {
            let run = command.clone().map_or(0, |command| {
                let runs = runs.entry(command).or_default();
                std::mem::replace(runs, *runs + 1)
            });
            rows.extend(lines.into_iter().map(|(guest, event, percent)| {
                let (base, modifier) = event.split_once(':').unwrap_or((&event, ""));
                let base = base.trim_end_matches(':');
                let host = events(base).into_iter().map(|event| counts.get(event.row().name));
                let host = host.fold(None, |sum: Option<u64>, count| {
                    Some(sum.unwrap_or(0) + count.copied().unwrap_or(0))
                });
                let mut notes = Vec::new();
                if modifier.contains(['u', 'k', 'h']) {
                    notes.push("some modes only".to_owned());
                }
                if percent < 99.95 {
                    notes.push(format!("estimated from {percent:.0} %"));
                }
                GuestCount {
                    file: name.clone(),
                    guest,
                    host,
                    note: notes.join(", "),
                    command: command.clone(),
                    run,
                    process: None,
                    event,
                }
            }));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_perf_stat_are_read() {
        let text = "# started on Thu\n\n Performance counter stats for './work':\n\n\
            \x20        1,234,567      cycles:u                 #    1.2 GHz      (48.20%)\n\
            \x20            12.34 msec task-clock\n     <not counted>      r420\n\
            \x20                7      inst.div\n\n       0.5 seconds time elapsed\n";
        let expected =
            [(1_234_567.0, "cycles:u".to_owned(), 48.2), (7.0, "inst.div".to_owned(), 100.0)];
        let stat =
            |command: &str| Stat { command: Some(command.to_owned()), lines: expected.to_vec() };
        assert_eq!(stats(text), [stat("./work")]);
        let second = text.replace("./work", "sh -c x");
        assert_eq!(stats(&(text.to_owned() + &second)), [stat("./work"), stat("sh -c x")]);
        let json = "{\"counter-value\" : \"12.000000\", \"unit\" : \"\", \"event\" : \"r420\", \"event-runtime\" : 1, \"pcnt-running\" : 100.00}\n";
        assert_eq!(stats(json)[0].lines, [(12.0, "r420".to_owned(), 100.0)]);
        assert_eq!(stats("12 apples"), []);
    }

    #[test]
    fn names_mean_events() {
        assert_eq!(events("cycles"), [PerfEvent::Cycles]);
        assert_eq!(events("inst.div"), [PerfEvent::IntDiv]);
        assert_eq!(events("r620"), [PerfEvent::IntMul, PerfEvent::IntDiv]);
        assert_eq!(events("cpu/event=0x420/"), [PerfEvent::IntDiv]);
        assert_eq!(events("r100000002"), [], "a condition");
        assert_eq!(events("page-faults"), []);
        for (name, _) in PERF_NAMES {
            let has_condition = name.starts_with("stalled-cycles");
            assert_eq!(events(name).len(), usize::from(!has_condition), "{name}");
        }
    }
}
