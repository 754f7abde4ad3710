//! What the program would gain if it lost no cycles in some way at some place, as `tipsim what-if` found by running it so.

pub(crate) mod rules;

use std::fmt::{self, Write};

use maud::{Markup, html};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::model::Common;
use super::options::Options;
use super::run_description::RunDescription;
use super::section::Section;
use super::widths::{fit, fit_label, fit_name, wrap};

/// What run.json has under `what_if`.
#[derive(Debug, Default, JsonSchema, Deserialize)]
pub struct WhatIf {
    /// The program's name.
    program: String,
    /// Cycles of the run that the trials are compared with.
    cycles: f64,
    /// Harts of the run. On several, cycles are elapsed ones of the region, not the program's own.
    #[serde(default)]
    harts: u32,
    /// Trials, in the order in which they were made.
    trials: Vec<Trial>,
}

/// A run without a cause of lost cycles at some instructions.
#[derive(Debug, JsonSchema, Deserialize)]
#[schemars(rename = "WhatIfTrial")]
struct Trial {
    /// Name of the cause, as `tipsim what-if --without` takes it.
    cause: String,
    /// What the instructions are, in the plural.
    kind: String,
    /// Name of the function, or where the user asked for.
    function: String,
    /// Share of the program's cycles that the Oracle charges to the cause at these instructions.
    lost: f64,
    /// Share of the cycles that the run without the cause takes less.
    gain: f64,
    /// Cycles of the run without the cause.
    cycles: f64,
    /// The instructions, those that lose most first.
    instructions: Vec<Instruction>,
    /// What became of selects in the place of branches, if the instructions are branches that are foreseen.
    #[serde(default)]
    #[schemars(skip_serializing_if = "Option::is_none")]
    select: Option<Select>,
    /// The replay that the cycles are estimated from, if the trial is no run of its own.
    #[serde(default)]
    #[schemars(skip_serializing_if = "Option::is_none")]
    replay: Option<Replay>,
}

/// A replay of what the kernel's scheduler recorded, with a change.
#[derive(Debug, JsonSchema, Deserialize)]
#[schemars(rename = "WhatIfReplay")]
struct Replay {
    /// Cycles that the region took.
    recorded: u64,
    /// Cycles of the replay as it was. The difference from what was recorded is what the replay does not model.
    unchanged: u64,
    /// Cycles of the replay with the change.
    #[expect(dead_code, reason = "a key of the schema, which the report does not show")]
    changed: u64,
    /// Number of waits that the change is about.
    waits: u64,
}

impl Replay {
    /// Returns what the estimate is made of, in words.
    fn basis(&self) -> String {
        let off = self.unchanged as f64 / self.recorded.max(1) as f64 - 1.0;
        format!(
            "estimated by a replay of the scheduler's records: {} waits; as it was, the replay is off by {:+.1} %",
            self.waits,
            100.0 * off
        )
    }
}

/// The result of selects in the place of branches.
#[derive(Debug, JsonSchema, Deserialize)]
#[serde(untagged)]
#[schemars(rename = "WhatIfSelect")]
enum Select {
    /// Branches were tried as selects.
    Tried {
        /// Share of the cycles that the run with selects takes less.
        gain: f64,
        /// Cycles of the run with selects.
        cycles: f64,
        /// The branches that selects took the place of.
        instructions: Vec<Instruction>,
    },
    /// No select could take the place of a branch.
    None {
        /// Why there is none.
        none: String,
    },
}

/// An instruction that was tried without a cause.
#[derive(Debug, JsonSchema, Deserialize)]
#[schemars(rename = "WhatIfInstruction")]
struct Instruction {
    /// Cause, address and encoding, as the core's parameter `what_if.without` has them.
    #[serde(default)]
    #[expect(dead_code, reason = "a key of the schema, which the report does not show")]
    without: String,
    /// The instruction's function, with the distance from the function's start.
    label: String,
    /// The instruction in assembly.
    text: String,
    /// `file:line`, if known.
    source: Option<String>,
}

impl WhatIf {
    /// Reads the trials of `tipsim what-if` from a run's run.json; `None` if there are none.
    pub fn of(run: &RunDescription) -> Option<Self> {
        RecordedWhatIf::of(run).trials()
    }

    fn read(what_if: &Value) -> Option<Self> {
        let what_if = Self::deserialize(what_if).ok()?;
        (!what_if.trials.is_empty()).then_some(what_if)
    }

    /// Returns the cycles that gains are shares of, in words.
    fn all_cycles(&self) -> String {
        let cycles = self.cycles / 1e6;
        match self.harts {
            0 | 1 => format!("{cycles:.1} M cycles"),
            harts => format!("{cycles:.1} M cycles elapsed on {harts} harts"),
        }
    }
}

/// The two trials of a branch, in words: the change of the source that each stands for.
const FORESEEN_TRIAL: &str = "foreseen (what independent work side by side could gain)";
const SELECT_TRIAL: &str = "as selects (what branchless code would gain)";

impl Trial {
    /// Returns what the trial changed, in words.
    fn gone(&self) -> &str {
        match (&*self.cause, &*self.kind) {
            ("mispredict", "branches") => FORESEEN_TRIAL,
            ("mispredict", _) => "foreseen",
            ("select", _) => SELECT_TRIAL,
            ("miss", _) => "in the L1 in time",
            ("flush", _) => "without a flush",
            ("division", _) => "as multiplications",
            ("chain", _) => "that do not wait for themselves",
            ("sharing", _) => "on cache lines of their own",
            ("lock", _) => "that nobody has to wait for",
            ("imbalance", _) => "that all threads come to after the same work",
            (cause, _) => cause,
        }
    }

    /// Returns how many of the branches selects take the place of, in words.
    fn selected(&self) -> String {
        let of = match &self.select {
            Some(Select::Tried { instructions, .. }) => instructions.len(),
            _ => 0,
        };
        match of == self.instructions.len() {
            true => format!("{} {SELECT_TRIAL}", self.kind),
            false => format!("{of} of these {} {SELECT_TRIAL}", self.kind),
        }
    }

    /// Returns the first instruction's text, and its place with the number of further instructions.
    fn place(&self) -> Option<(&str, String)> {
        let first = self.instructions.first()?;
        let source = first.source.as_deref();
        let source = source.and_then(|source| source.rsplit('/').next());
        let source = source.map_or(String::new(), |source| format!(", {source}"));
        let more = match self.instructions.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        let place = format!("({}{source}){more}", fit_label(&first.label, 40));
        Some((&first.text, place))
    }
}

/// A line for each trial, and one with its place; nothing, if there are none.
impl fmt::Display for WhatIf {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.trials.is_empty() {
            return Ok(());
        }
        let is_estimated = self.trials.iter().any(|trial| trial.replay.is_some());
        writeln!(
            out,
            "\nwhat if ({}, {}; each a run of its own without the cause{})\n   gain    lost  in cycles  if there were",
            fit(&self.program, 40),
            self.all_cycles(),
            if is_estimated { ", unless it is estimated" } else { "" },
        )?;
        for trial in &self.trials {
            writeln!(
                out,
                "{:>6.1} % {:>5.1} % {:>8.1} M  {} of {} {}",
                100.0 * trial.gain,
                100.0 * trial.lost,
                trial.cycles / 1e6,
                trial.kind,
                fit_name(&trial.function, 50),
                trial.gone()
            )?;
            if let Some((text, place)) = trial.place() {
                writeln!(out, "{:28}`{}` {place}", "", fit(text, 40))?;
            }
            if let Some(replay) = &trial.replay {
                for line in wrap(&replay.basis(), 90) {
                    writeln!(out, "{:28}{line}", "")?;
                }
            }
            match &trial.select {
                Some(Select::Tried { gain, cycles, .. }) => writeln!(
                    out,
                    "{:>6.1} % {:>7} {:>8.1} M  {}",
                    100.0 * gain,
                    "",
                    cycles / 1e6,
                    trial.selected()
                )?,
                Some(Select::None { none }) => {
                    writeln!(out, "{:28}no select could take its place: {none}", "")?;
                }
                None => {}
            }
        }
        Ok(())
    }
}

/// What run.json has under `what_if`, as it stands there; report.json has it, too.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
#[serde(transparent)]
pub struct RecordedWhatIf(#[schemars(with = "WhatIf")] Value);

impl RecordedWhatIf {
    /// Returns what a run's run.json has.
    pub(super) fn of(run: &RunDescription) -> Self {
        Self(run.what_if().clone())
    }

    /// True if run.json has nothing.
    pub(super) fn is_absent(&self) -> bool {
        self.0.is_null()
    }

    /// Returns the trials; `None` if there are none.
    fn trials(&self) -> Option<WhatIf> {
        WhatIf::read(&self.0)
    }
}

impl Section for RecordedWhatIf {
    fn write(&self, _: &Common, _: &Options, out: &mut String) -> fmt::Result {
        write!(out, "{}", self.trials().unwrap_or_default())
    }

    fn page(&self, _: &Common) -> Markup {
        let Some(what_if) = self.trials() else {
            return html! {};
        };
        html! {
            section id="what-if" aria-labelledby="what-if-title" {
                h2 id="what-if-title" { "What if" }
                p {
                    "What " b { (what_if.program) } " (" (what_if.all_cycles()) ") would gain without a cause of lost \
                     cycles at some instructions: each a run of its own, all else the same. " i { "Lost" } " is the share of \
                     cycles that the Oracle charges to the cause there; others may hide behind it, or wait in its place."
                }
                div class="scroll" {
                    table {
                        thead { tr { th { "gain" } th { "lost" } th { "if there were" } th { "at" } } }
                        tbody {
                            @for trial in &what_if.trials {
                                (trial.rows())
                            }
                        }
                    }
                }
            }
        }
    }
}

impl Trial {
    /// Returns the trial's row, and that of selects in the place of its branches.
    fn rows(&self) -> Markup {
        let (text, place) = self.place().unwrap_or_default();
        html! {
            tr {
                td { (format_args!("{:.1} %", 100.0 * self.gain)) }
                td { (format_args!("{:.1} %", 100.0 * self.lost)) }
                td { (self.kind) " of " b title=(self.function) { (fit_name(&self.function, 80)) } " " (self.gone()) }
                td {
                    code { (text) }
                    " " (place)
                    @if let Some(replay) = &self.replay {
                        "; " (replay.basis())
                    }
                }
            }
            @match &self.select {
                Some(Select::Tried { gain, .. }) => {
                    tr { td { (format_args!("{:.1} %", 100.0 * gain)) } td {} td { (self.selected()) } td {} }
                }
                Some(Select::None { none }) => {
                    tr { td {} td {} td { "no select could take its place: " (none) } td {} }
                }
                None => {}
            }
        }
    }
}
