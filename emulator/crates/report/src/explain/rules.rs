//! One rule per kind of number.

use serde_json::Value;

use super::find::Found;
use super::{Explanation, number};

const TIP: &str = "TIP: Time-Proportional Instruction Profiling (MICRO 2021)";
const TEA: &str = "TEA: Time-Proportional Event Analysis (ISCA 2023)";
const TMA: &str = "Yasin, A Top-Down method for performance analysis (ISPASS 2014)";
const ORACLE: &str = "profile/src/oracle.rs, from every record of the commit stream";
const TOP_DOWN: &str =
    "profile/src/topdown.rs (its table of rules), from every record of the commit stream";
const SAMPLERS: &str = "profile/src/evaluate.rs and profile/src/profilers/, from the spans in which its clock triggered";
const EVENTS: &str = "profile/src/events.rs, from the records' nine event bits; report/src/tea.rs";
const RUN: &str = "emulator/src/run/outcome.rs (run.json)";

/// A rule's part of an explanation.
#[derive(Default)]
struct Rule {
    meaning: String,
    formula: String,
    inputs: Vec<(String, String)>,
    check: Option<f64>,
    source: &'static str,
    reference: &'static str,
}

/// The number's way through the report.
struct Way<'a> {
    report: &'a Value,
    keys: Vec<&'a str>,
    names: Vec<&'a str>,
    value: f64,
}

pub(super) fn explained(report: &Value, found: &Found) -> Explanation {
    let way = Way {
        report,
        keys: found.steps.iter().map(|step| &*step.key).collect(),
        names: found.steps.iter().map(|step| &*step.name).collect(),
        value: found.value,
    };
    let rule = way.rule();
    Explanation {
        path: found.path(),
        value: found.value,
        meaning: rule.meaning,
        formula: rule.formula,
        inputs: rule.inputs,
        check: rule.check,
        source: rule.source,
        reference: rule.reference,
    }
}

fn rule(
    meaning: impl Into<String>,
    formula: impl Into<String>,
    source: &'static str,
    reference: &'static str,
) -> Rule {
    Rule {
        meaning: meaning.into(),
        formula: formula.into(),
        source,
        reference,
        ..Rule::default()
    }
}

impl Rule {
    /// Adds an input.
    fn from(mut self, name: impl Into<String>, value: Option<f64>) -> Self {
        if let Some(value) = value {
            self.inputs.push((name.into(), number(value)));
        }
        self
    }

    fn check(mut self, check: Option<f64>) -> Self {
        self.check = check.filter(|check| check.is_finite());
        self
    }
}

impl<'a> Way<'a> {
    /// A number at a path of keys.
    fn at(&self, keys: &[&str]) -> Option<f64> {
        let mut value = self.report;
        for key in keys {
            value = match value {
                Value::Array(list) => list.get(key.parse::<usize>().ok()?)?,
                _ => value.get(key)?,
            };
        }
        value.as_f64()
    }

    /// The entry of the list or map that `keys[..2]` (or `[..3]` within a part) name.
    fn own(&self, part: usize, field: &str) -> Option<f64> {
        let mut keys = self.keys[..part].to_vec();
        keys.push(field);
        self.at(&keys)
    }

    /// The name and the cycles of the process that a row belongs to.
    fn process_of(&self, part: usize) -> (String, Option<f64>) {
        let index = self
            .own(part, "process")
            .map(|index| (index as usize).to_string());
        let index = index.as_deref().unwrap_or(self.keys[part - 1]);
        let row = index
            .parse::<usize>()
            .ok()
            .and_then(|index| self.report["processes"].get(index));
        let name = row.and_then(|row| row["name"].as_str()).unwrap_or("?");
        (
            format!("processes.{name}.cycles"),
            self.at(&["processes", index, "cycles"]),
        )
    }

    fn rule(&self) -> Rule {
        let last = *self.keys.last().unwrap_or(&"");
        match self.keys[..] {
            ["meta", ..] => self.meta(),
            ["totals", field] => self.totals(field),
            ["columns", ..] => self.column(last),
            ["processes", _, ..] => self.process(),
            ["functions" | "instructions", ..] => self.row(),
            ["threads", _, ref field @ ..] => self.thread(field),
            ["modules", _, _] => rule(
                "Share of all cycles, by the Oracle, at addresses of this file.",
                "cycles of the instructions in the file / cycles of all instructions",
                "report/src/build.rs, from the Oracle's profile and the guest's mappings",
                TIP,
            ),
            ["top_down", ..] => self.top_down(),
            ["tea", ..] => self.tea(),
            ["sensitivity", _, "curves", _, "points", _, ref field @ ..] => self.sensitivity(field),
            ["disagreements", _, "share"] => rule(
                "Share of the profiler's time in the process that it gave to the one instruction while the Oracle, in \
                 the cycle of the sample's trigger, charged the other.",
                "weights of those samples / weight of the profiler's samples in the process",
                "profile/src/events.rs (Misplaced), from each sample's trigger and what it named",
                TIP,
            ),
            ["disagreements", ..] => self.index(),
            _ => rule(
                "A number of a part of the report that has no rule here.",
                "not known",
                "report/src/explain/rules.rs would have it",
                "none",
            ),
        }
    }

    fn thread(&self, field: &[&str]) -> Rule {
        let source = "report/src/threads.rs, from the profiled cycles between the guest's switches";
        match field {
            ["process"] => self.index(),
            ["share"] => rule(
                "Share of all cycles in which threads of this name ran in this process.",
                "cycles of the threads / (cycles - idle)",
                source,
                "none",
            )
            .from("cycles of the threads", self.own(2, "cycles")),
            ["cycles"] => rule(
                "Profiled cycles in which threads of this name ran in this process, kernel code included.",
                "sum over the threads",
                source,
                "none",
            ),
            _ => rule(
                "How many threads of the process had this name, or the kernel's number of one of them.",
                "counted, or as the guest says",
                source,
                "none",
            ),
        }
    }

    fn sensitivity(&self, field: &[&str]) -> Rule {
        let source = "report/src/sensitivity.rs, from the errors of the samplers of this profiler and period";
        match field {
            ["period"] => rule(
                "Cycles between samples.",
                "as the run spec sets it",
                source,
                TIP,
            ),
            ["samplers"] => rule(
                "Samplers of this profiler and period; they differ in offset or seed.",
                "counted",
                source,
                TIP,
            ),
            ["samples"] => rule(
                "Samples that fell into the process.",
                "mean over the samplers",
                source,
                TIP,
            ),
            [kind, level] => {
                let how = match *kind {
                    "least" => "the least of the samplers'",
                    "greatest" => "the greatest of the samplers'",
                    _ => "mean over the samplers",
                };
                let what = if *kind == "sampling" {
                    "what sampling alone would leave of the error"
                } else {
                    "the profile error"
                };
                rule(
                    format!("Of samplers of this profiler and period, {what} by {level}."),
                    how,
                    source,
                    TIP,
                )
                .from("samplers", self.own(6, "samplers"))
                .from("samples in the process", self.own(6, "samples"))
            }
            _ => self.index(),
        }
    }

    fn index(&self) -> Rule {
        rule(
            "The entry of `processes`, `columns` or `modules` that this belongs to, counted from 0.",
            "an index, not a measurement",
            "report/src/model.rs",
            "none",
        )
    }

    fn meta(&self) -> Rule {
        match self.keys.get(1).copied().unwrap_or("") {
            "core" => rule(
                "A parameter of the core.",
                "as the preset and the run spec set it",
                RUN,
                "timing/presets/",
            ),
            "spec" => rule(
                "A setting of the run spec.",
                "as written, or its default",
                RUN,
                "emulator/guide/src/run-specs.md",
            ),
            "stats" => rule(
                "A counter of the timing core, over the timed part of the run.",
                "counted as the event happens, or the sum of such cycles",
                "timing/src/stats.rs, from the timing core itself and not from the stream",
                "none",
            ),
            "mips" => rule(
                "Speed: millions of instructions per second of host time.",
                "instructions / host_seconds / 10^6",
                RUN,
                "none",
            )
            .from("meta.instructions", self.at(&["meta", "instructions"]))
            .from("meta.host_seconds", self.at(&["meta", "host_seconds"]))
            .check(
                self.ratio(&["meta", "instructions"], &["meta", "host_seconds"])
                    .map(|r| r / 1e6),
            ),
            "ipc" => rule(
                "Instructions per cycle of the whole timed run, boot and sleep included.",
                "instructions / cycles",
                RUN,
                "none",
            )
            .from("meta.instructions", self.at(&["meta", "instructions"]))
            .from("meta.cycles", self.at(&["meta", "cycles"]))
            .check(self.ratio(&["meta", "instructions"], &["meta", "cycles"])),
            _ => rule(
                "A fact that the run recorded about itself.",
                "as measured on the host or read from the guest",
                RUN,
                "none",
            ),
        }
    }

    fn ratio(&self, part: &[&str], whole: &[&str]) -> Option<f64> {
        Some(self.at(part)? / self.at(whole)?)
    }

    fn totals(&self, field: &str) -> Rule {
        let stream = "profile/src/evaluate.rs, from the commit stream";
        let total = |meaning: &str, formula: &str| rule(meaning, formula, stream, TIP);
        match field {
            "cycles" => total(
                "Cycles in the region of interest, those in which the hart slept included.",
                "profiled cycles + idle cycles",
            )
            .from(
                "processes.all.cycles",
                self.at(&["processes", "0", "cycles"]),
            )
            .from("totals.idle", self.at(&["totals", "idle"]))
            .check(Some(
                self.at(&["processes", "0", "cycles"]).unwrap_or(f64::NAN)
                    + self.at(&["totals", "idle"]).unwrap_or(f64::NAN),
            )),
            "idle" => total(
                "Cycles in which the hart slept in wfi; not profiled.",
                "sum of the stream's idle events in the region",
            ),
            "instructions" => total(
                "Instructions that committed in the region.",
                "records of the stream less its traps",
            ),
            "traps" => total(
                "Exceptions and interrupts taken in the region.",
                "records that trapped, replays of memory-ordering failures left out",
            ),
            _ => total(
                "Instructions per cycle that was not idle.",
                "instructions / (cycles - idle)",
            )
            .from("totals.instructions", self.at(&["totals", "instructions"]))
            .from("totals.cycles", self.at(&["totals", "cycles"]))
            .from("totals.idle", self.at(&["totals", "idle"]))
            .check(
                self.at(&["totals", "instructions"])
                    .zip(self.at(&["totals", "cycles"]))
                    .zip(self.at(&["totals", "idle"]))
                    .map(|((instructions, cycles), idle)| instructions / (cycles - idle).max(1.0)),
            ),
        }
    }

    fn column(&self, field: &str) -> Rule {
        match field {
            "samples" => rule(
                "Samples that the sampler took.",
                "triggers whose sample named an instruction; a trigger while one is pending adds its cycles to that",
                SAMPLERS,
                TIP,
            ),
            "dropped" => rule(
                "Samples without an instruction; their cycles are in the next sample.",
                "tagged rows that were squashed, samples pending at the region's end; for the guest's, samples lost or malformed",
                SAMPLERS,
                TIP,
            ),
            "tail_cycles" => rule(
                "Cycles after the last sample's trigger, in no sample.",
                "profiled cycles - cycles in samples",
                SAMPLERS,
                TIP,
            ),
            "unmatched_cycles" => rule(
                "Cycles that samples gave to addresses that never executed; they count as wrong.",
                "sum of the periods of such samples",
                "report/src/guest.rs, from the guest's perf.data",
                TIP,
            ),
            "period" | "offset" | "random" => rule(
                "The sampling clock, in profiled cycles: its period, the first trigger's cycle (0: after one period), the seed of random triggers.",
                "as the run spec sets it (period = clock / frequency, rounded)",
                "profile/src/sampler.rs",
                TIP,
            ),
            _ => rule(
                "The published mean error of this profiler at this level, or its bound, over 27 SPEC CPU2017 and PARSEC programs at 4 kHz.",
                "copied from the paper",
                "profile/src/profilers.rs",
                TIP,
            ),
        }
    }

    fn process(&self) -> Rule {
        let name = format!("processes.{}", self.names[1]);
        let cycles = self.own(2, "cycles");
        match self.keys[2..] {
            ["pid"] => rule("The guest kernel's process id.", "from the driver's side-band records", "profile/src/guest_context.rs", "none"),
            ["cycles"] => rule("Cycles of the process by the Oracle: each cycle is charged once, to what the commit stage does or waits for.", "sum over its instructions of units / 840 (840 units are a cycle, so that n instructions that commit together share it evenly)", ORACLE, TIP),
            ["share"] => rule("Share of all processes' profiled cycles.", "cycles / processes.all.cycles", "report/src/build.rs", TIP)
                .from(format!("{name}.cycles"), cycles)
                .from("processes.all.cycles", self.at(&["processes", "0", "cycles"]))
                .check(cycles.zip(self.at(&["processes", "0", "cycles"])).map(|(part, whole)| part / whole)),
            ["stack", _] => self.stack(&name, cycles),
            ["samples", _] => rule("Samples of this sampler in the process.", "samples × (its weight in the process / its whole weight): samples are not counted per process, their cycles say how many it got", SAMPLERS, TIP)
                .from(format!("columns.{}.samples", self.names[3]), self.at(&["columns", self.keys[3], "samples"])),
            ["errors", _, level, kind] => self.error(&name, cycles, level, kind),
            _ => self.index(),
        }
    }

    fn stack(&self, of: &str, cycles: Option<f64>) -> Rule {
        let category = *self.names.last().unwrap_or(&"");
        let meaning = format!(
            "Share of the process's cycles that the Oracle charges as \"{category}\": {}.",
            match category {
                "Execution" => "at least one instruction commits",
                "ALU stall" =>
                    "the oldest instruction waits for operands or a unit (or serialises, and is no load, store or atomic)",
                "Load stall" => "the oldest instruction is a load or atomic that waits",
                "Store stall" => "the oldest instruction is a store that waits",
                "Front-end" => "the ROB is empty and nothing flushed it",
                "Mispredict" => "the ROB is empty after a mispredicted branch",
                _ => "the ROB is empty after any other flush, exception or interrupt",
            }
        );
        rule(meaning, "cycles in that state / cycles of the process", "profile/src/stack.rs and profile/src/oracle.rs, from every record of the commit stream", "TIP (MICRO 2021), figure 7")
            .from(format!("{of}.cycles"), cycles)
            .from("cycles in that state", cycles.map(|cycles| cycles * self.value))
    }

    fn error(&self, name: &str, cycles: Option<f64>, level: &str, kind: &str) -> Rule {
        let column = self.names[3];
        let samples = self.at(&["processes", self.keys[1], "samples", self.keys[3]]);
        if kind == "sampling" {
            return rule(
                format!("Error by {level} that as many random samples of the Oracle's own distribution would leave on average: what is beyond it is the profiler's own fault."),
                "sum over symbols of E|k/n - p| / 2, k binomial (n samples, p the symbol's share by the Oracle)",
                "report/src/error.rs",
                "de Moivre's formula for the mean deviation",
            )
            .from(format!("{name}.samples.{column} (n)"), samples);
        }
        // A filter, or the guest's event, leaves a part of the process to be compared with.
        let sampler = &self.report["columns"][self.keys[3].parse::<usize>().unwrap_or(0)];
        let filtered = sampler["filter"]
            .as_object()
            .is_some_and(|filter| !filter.is_empty());
        let partial = filtered || sampler["profiler"].is_null();
        let cycles = cycles.filter(|_| !partial);
        let which = if partial {
            "the cycles that it saw of the process"
        } else {
            "the process's cycles"
        };
        let mut rule = rule(
            format!("Profile error by {level}: the share of {which} that {column} gives to the wrong {level}."),
            "e = (C_total - C_correct) / C_total, C_correct = sum over symbols of min(profiler's share, Oracle's share) × C_total",
            "report/src/error.rs, from the Oracle's and the sampler's weights of every instruction of the process",
            "TIP (MICRO 2021), section 4",
        )
        .from(format!("{name}.cycles (C_total)"), cycles)
        .from("cycles on the right symbol (C_correct)", cycles.map(|cycles| cycles * (1.0 - self.value)))
        .from(format!("{name}.samples.{column}"), samples);
        let (list, label) = match level {
            "function" => ("functions", "name"),
            _ => ("instructions", "label"),
        };
        for (label, share, says) in self.furthest(list, label, self.keys[3]) {
            rule.inputs.push((
                format!("{list}: {label}"),
                format!(
                    "Oracle {:.3} %, {column} {:.3} %: {:+.3} points",
                    100.0 * share,
                    100.0 * says,
                    100.0 * (says - share)
                ),
            ));
        }
        rule
    }

    /// The rows of a list that a column is furthest off at.
    fn furthest(&self, list: &str, label: &str, column: &str) -> Vec<(String, f64, f64)> {
        let (Some(rows), Ok(column)) = (self.report[list].as_array(), column.parse::<usize>())
        else {
            return Vec::new();
        };
        let own = rows.iter().filter(|row| {
            self.keys[1] == "0"
                || row["process"]
                    .as_u64()
                    .is_some_and(|p| p.to_string() == self.keys[1])
        });
        let mut rows: Vec<(String, f64, f64)> = own
            .filter_map(|row| {
                Some((
                    row[label].as_str()?.to_owned(),
                    row["share"].as_f64()?,
                    row["shares"][column].as_f64()?,
                ))
            })
            .collect();
        rows.sort_by(|a, b| (b.2 - b.1).abs().total_cmp(&(a.2 - a.1).abs()));
        rows.truncate(5);
        rows
    }

    fn row(&self) -> Rule {
        let what = if self.keys[0] == "functions" {
            "function"
        } else {
            "instruction"
        };
        let own = format!("{}.{}", self.names[0], self.names[1]);
        let (process, whole) = self.process_of(2);
        match self.keys[2..] {
            ["cycles"] => rule(format!("Cycles that the Oracle charges to this {what} in its process."), "sum of its units / 840", ORACLE, TIP),
            ["share"] => rule(format!("Share of its process's cycles that the Oracle charges to this {what}."), "cycles / cycles of the process", ORACLE, TIP)
                .from(format!("{own}.cycles"), self.own(2, "cycles"))
                .from(process, whole)
                .check(self.own(2, "cycles").zip(whole).map(|(part, whole)| part / whole)),
            ["stack", _] => self.stack(&process.replace(".cycles", ""), whole),
            ["shares", column] => rule(
                format!("Share of its own time in the process that {} gives to this {what}; the Oracle's beside it is {own}.share.", self.names[3]),
                "weight of the samples that name it / weight of all its samples in the process; a sample weighs the cycles since the one before, split evenly over the instructions that it names",
                SAMPLERS,
                TIP,
            )
            .from(format!("{own}.share (Oracle)"), self.own(2, "share"))
            .from(format!("columns.{}.samples", self.names[3]), self.at(&["columns", column, "samples"])),
            _ => self.index(),
        }
    }

    fn top_down(&self) -> Rule {
        match self.keys[1..] {
            ["width"] => rule("Commit slots per cycle.", "the core's commit width (meta.core.decode.width)", TOP_DOWN, TMA),
            ["nodes", _, "threshold"] => rule("Share of slots above which to look closer at this node, if its parent's share is above its own.", "the seed documents' where they name one, else that of Intel's TMA metrics for Skylake", "profile/src/topdown.rs (NODES)", TMA),
            ["nodes", ..] => rule("Depth in the tree: 1 for the roots.", "not a measurement", "profile/src/topdown.rs (NODES)", TMA),
            ["windows", _, "processes", ..] => rule("Share of the window's slots that this process spent on this node of the tree (top_down.nodes, in order).", "slots of the node / slots of all processes in the window", TOP_DOWN, TMA)
                .from("the window's slots", self.own(3, "cycles").zip(self.at(&["top_down", "width"])).map(|(cycles, width)| cycles * width)),
            ["windows", _, "stacks", ..] => {
                let category = self.names[5];
                rule(format!("Share of the window's profiled cycles that this process spent in the category \"{category}\" of the cycle stacks."), "cycles of the process in that state within the window / profiled cycles of the window", TOP_DOWN, "TIP (MICRO 2021), figure 7")
                    .from("the window's cycles", self.own(3, "cycles"))
            }
            ["windows", ..] => rule("The window's first cycle, the first after it, and its profiled cycles.", "equal lengths, ended where spans end", TOP_DOWN, TMA),
            [_, _, "slots"] => {
                let (process, cycles) = self.process_of(3);
                let width = self.at(&["top_down", "width"]);
                let whole = self.keys[1] == "processes";
                let formula = if whole { "width × cycles of the process" } else { "slots of its instructions: those that they committed in and those lost by them" };
                let made = rule("Commit slots.", formula, TOP_DOWN, TMA).from("top_down.width", width);
                if whole { made.from(process, cycles).check(width.zip(cycles).map(|(width, cycles)| width * cycles)) } else { made }
            }
            [_, _, "shares", path] => {
                let slots = self.own(3, "slots");
                let node = self.report["top_down"]["nodes"].as_array().into_iter().flatten().find(|node| node["path"] == path);
                let name = node.and_then(|node| node["name"].as_str()).unwrap_or(path);
                let mut made = rule(format!("Share of the slots that went to {name}."), "slots of the node / slots", TOP_DOWN, TMA)
                    .from("slots", slots)
                    .from("slots of the node", slots.map(|slots| slots * self.value))
                    .from("limit from which to look closer", node.and_then(|node| node["threshold"].as_f64()));
                let children: Vec<(String, f64)> = self.children(path);
                for (child, share) in &children {
                    made = made.from(format!("shares.{child}"), Some(*share));
                }
                let sum = (!children.is_empty()).then(|| children.iter().map(|(_, share)| share).sum());
                made.check(sum)
            }
            _ => self.index(),
        }
    }

    /// The shares of a node's children in the same row.
    fn children(&self, path: &str) -> Vec<(String, f64)> {
        let row =
            &self.report["top_down"][self.keys[1]][self.keys[2].parse::<usize>().unwrap_or(0)];
        let own = row["shares"].as_object().into_iter().flatten();
        own.filter(|(other, _)| {
            other
                .rsplit_once('.')
                .is_some_and(|(parent, _)| parent == path)
        })
        .filter_map(|(other, share)| Some((other.clone(), share.as_f64()?)))
        .collect()
    }

    fn tea(&self) -> Rule {
        let signature = *self.names.last().unwrap_or(&"");
        match self.keys[1..] {
            ["processes", _, "events", event] => {
                let stack = &self.report["tea"]["processes"][self.keys[2].parse::<usize>().unwrap_or(0)]["stack"];
                let with = stack.as_object().into_iter().flatten().filter(|(signature, _)| signature.split('|').any(|e| e == event));
                let with: Vec<(String, f64)> = with.filter_map(|(s, share)| Some((s.clone(), share.as_f64()?))).collect();
                let mut made = rule(format!("Share of the process's cycles, by the Oracle, in instructions that met {event}, alone or with other events."), "sum over the signatures that hold the event", EVENTS, TEA);
                for (signature, share) in &with {
                    made = made.from(format!("stack.{signature}"), Some(*share));
                }
                made.check(Some(with.iter().map(|(_, share)| share).sum()))
            }
            [_, _, "stack", _] => rule(format!("Share of the process's cycles that the Oracle charges to instructions whose execution met exactly: {signature}."), "cycles charged with that signature / cycles of the process", EVENTS, TEA)
                .from(self.process_of(3).0, self.process_of(3).1),
            [_, _, "stacks", column, _] => rule(format!("The same by {column}: share of its samples' weight with this signature ({signature})."), "weight of samples whose instruction has that signature / weight of all its samples in the process", EVENTS, TEA)
                .from("by the Oracle", self.at(&["tea", self.keys[1], self.keys[2], "stack", signature])),
            ["processes", _, "errors", column, level] => rule(format!("Share of the cycles that {column} gives to the wrong {level} or signature."), "as the profile error, with pairs of symbol and signature for symbols", EVENTS, TEA),
            [_, _, "cycles"] => rule("Cycles that the Oracle charges to this instruction.", "sum of its units / 840", ORACLE, TIP),
            _ => self.index(),
        }
    }
}
