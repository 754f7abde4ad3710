//! What a comparison needs of a run's `report.json`.

use std::collections::BTreeMap;

use profile::{Evaluation, unseen_by};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::elapsed::Elapsed;
use crate::margins::Margins;
use crate::model::{estimated_line, sampled_line};
use crate::run_description::RunDescription;
use crate::speedup::SpeedupStack;

/// What a comparison needs of a run's `report.json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Run {
    /// The run's own description (run.json).
    #[serde(default)]
    pub(super) meta: RunDescription,
    pub(super) categories: Vec<String>,
    pub(super) totals: ReportTotals,
    pub(super) processes: Vec<Process>,
    pub(super) functions: Vec<Function>,
    pub(super) instructions: Vec<Instruction>,
    pub(super) modules: Vec<Module>,
    /// The harts, if the run has several; only their number is used.
    #[serde(default)]
    pub(super) harts: Vec<IgnoredAny>,
    /// What the time of all harts was spent on; a report of one hart does not have it ([`Run::with_stack_of`]).
    #[serde(default)]
    pub(super) speedup: Option<SpeedupStack>,
    /// What threads waited for, if the guest's kernel told.
    #[serde(default)]
    pub(super) waiting: Option<Waiting>,
    /// The folder of the run, as the user named it.
    #[serde(skip)]
    pub(super) folder: String,
    /// When it was run, if that is known.
    #[serde(skip)]
    pub(super) when: Option<String>,
}

/// How far cycles of a run may be off by chance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Uncertainty {
    /// The cycles are exact.
    #[default]
    None,
    /// The cycles are off by at most this number of cycles, for 95 % of seeds.
    Within(f64),
    /// The margin is not known.
    Unknown,
}

impl Uncertainty {
    /// Returns the uncertainty of the sum or difference of two amounts whose errors are independent. The errors of several processes of one command
    /// are nearly so.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::None, one) | (one, Self::None) => one,
            (Self::Within(one), Self::Within(other)) => Self::Within(one.hypot(other)),
        }
    }
}

/// What identifies a run in the header of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunTitle {
    /// The run's folder, as the user named it.
    pub folder: String,
    /// The spec's name.
    pub name: Option<String>,
    /// The command that was run.
    pub command: Option<String>,
    /// The core's preset.
    pub core: Option<String>,
    /// Harts of the machine.
    pub harts: usize,
    /// When it was run, if that is known.
    pub when: Option<String>,
}

impl RunTitle {
    /// Returns the folder and what was run there, in a line.
    pub(crate) fn line(&self) -> String {
        let command = self.command.as_deref().map(str::trim);
        let what = command.or(self.name.as_deref()).unwrap_or("?");
        let harts = match self.harts {
            1 => "1 hart".to_owned(),
            harts => format!("{harts} harts"),
        };
        let mut facts = vec![harts];
        facts.splice(0..0, self.core.clone());
        facts.extend(self.when.clone());
        let what = what.lines().collect::<Vec<_>>().join("; ");
        format!("{}: {what} ({})", self.folder, facts.join(", "))
    }
}

/// Most settings that a header lists of those that differ between runs.
const MAX_DIFFERENCES: usize = 8;

impl Run {
    /// Sets the run's folder, and when it was run.
    pub fn titled(self, folder: &str, when: Option<String>) -> Self {
        Self { folder: folder.to_owned(), when, ..self }
    }

    /// Adds what the time of the run's only hart was spent on, by its evaluation.
    pub fn with_stack_of(self, evaluation: &Evaluation) -> Self {
        let stack = SpeedupStack::new(evaluation, 1, self.meta.memory_traffic());
        Self { speedup: Some(stack), ..self }
    }

    /// Returns why no speed-up can be told from this run to another one, for which this one has to be of one hart, and the other of several.
    pub fn no_speedup_to(&self, several: &Self) -> Option<String> {
        let runs = [self, several];
        if let Some(run) = runs.iter().find(|run| run.meta.failure().is_some()) {
            return Some(format!("{} failed", run.folder));
        }
        if let Some(run) = runs.iter().find(|run| run.part().is_some()) {
            return Some(format!("{} is not whole", run.folder));
        }
        if let Some(run) = runs.iter().find(|run| run.meta.sampled_words().is_some()) {
            return Some(format!("{} was sampled", run.folder));
        }
        let [here, there] = runs.map(|run| run.meta.core_name().unwrap_or("not known"));
        if here != there {
            return Some(format!("the cores differ: {here}, {there}"));
        }
        match (self.harts(), several.harts()) {
            (1, 2..)
                if several.speedup.as_ref().is_some_and(|stack| !stack.has_all_components()) =>
            {
                Some(format!(
                    "the report of {} is of an older version, which tells other components of the time apart: tipsim report --rebuild makes it anew",
                    several.folder
                ))
            }
            (1, 2..) if several.speedup.is_some() => None,
            (1, 2..) => Some(format!("the report of {} has no speed-up stack", several.folder)),
            (1, 1) => Some(format!("{} is on one hart, too", several.folder)),
            (_, 1) => Some("the run on one hart has to be named first".to_owned()),
            _ => Some("the first run has to be on one hart".to_owned()),
        }
    }

    /// Returns whether runs are on different numbers of harts.
    pub fn differ_in_harts(runs: &[Self]) -> bool {
        runs.windows(2).any(|two| two[0].harts() != two[1].harts())
    }

    /// Returns the ratio of the region's cycles to the recorded cycles: more than 1 if the region was sampled.
    pub(super) fn scale(&self) -> f64 {
        self.meta.sampled_cycles_scale().unwrap_or(1.0)
    }

    /// Returns the line that says that the run's cycles are estimates, if its region was sampled.
    pub(super) fn sampled(&self, which: &str) -> Option<String> {
        let words = format!("{which}: {}", self.meta.sampled_words()?);
        Some(match self.meta.sampled_scale() {
            Some(_) => estimated_line(&words),
            None => sampled_line(&words),
        })
    }

    /// Returns the margin of what the run says of some code, from the margin in its report: none if all of the region was timed.
    pub(super) fn margin(&self, margins: Option<&Margins>) -> Uncertainty {
        match (self.meta.sampled_words(), self.meta.sampled_cycles_scale(), margins) {
            (None, ..) => Uncertainty::None,
            (Some(_), Some(scale), Some(margins)) => {
                Uncertainty::Within(scale * margins.cycles.within_95)
            }
            _ => Uncertainty::Unknown,
        }
    }

    /// Returns the margin of all cycles that are not idle.
    pub(super) fn margin_of_all(&self) -> Uncertainty {
        match self.meta.cycles_beside_units() {
            Some(cycles) => Uncertainty::Within(cycles.within_95.half_width),
            None => self.margin(self.processes.first().and_then(|all| all.margins.as_ref())),
        }
    }

    /// Returns the margin of code that the run says nothing of: it may have been in no unit.
    pub(super) fn margin_of_absent(&self) -> Uncertainty {
        match (self.meta.sampled_words(), self.meta.sampled_scale(), self.meta.units()) {
            (None, ..) => Uncertainty::None,
            (Some(_), Some(_), Some(units)) if units > 0 => {
                Uncertainty::Within(unseen_by(units).within_95 * self.totals().busy() as f64)
            }
            _ => Uncertainty::Unknown,
        }
    }

    /// Returns why the report is not of a whole run; `None` if it is of a whole run.
    pub fn part(&self) -> Option<&str> {
        self.meta.part()
    }

    /// Returns the number of harts that the report is of.
    pub(super) fn harts(&self) -> usize {
        self.harts.len().max(1)
    }

    pub(super) fn title(&self) -> RunTitle {
        RunTitle {
            folder: self.folder.clone(),
            name: self.meta.name().map(str::to_owned),
            command: self.meta.command().map(str::to_owned),
            core: self.meta.core_name().map(str::to_owned),
            harts: self.meta.harts().unwrap_or(self.harts()),
            when: self.when.clone(),
        }
    }

    /// Returns the settings of core and spec that are not the same in another run: each with its value here and there. What the header
    /// says in other words is not among them.
    pub(super) fn differences(&self, other: &Self) -> Vec<String> {
        const SETTINGS_IN_TITLE: [&str; 6] = [
            "core.name",
            "spec.name",
            "spec.core.preset",
            "spec.run.command",
            "spec.run.files",
            "spec.guest.harts",
        ];
        let mut found = Vec::new();
        for part in ["core", "spec"] {
            let (here, there) = (&self.meta.content()[part], &other.meta.content()[part]);
            if here.is_object() && there.is_object() {
                differences(part, here, there, &mut found);
            }
        }
        found.retain(|(path, _)| {
            !SETTINGS_IN_TITLE.contains(&&**path) && !path.starts_with("spec.core.")
        });
        let more = found.len().saturating_sub(MAX_DIFFERENCES);
        let mut lines: Vec<String> = found
            .into_iter()
            .take(MAX_DIFFERENCES)
            .map(|(path, values)| format!("{path} {values}"))
            .collect();
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        lines
    }

    /// The command that a process runs: what several processes of one program have in common.
    pub(super) fn command(&self, process: usize) -> &str {
        self.processes.get(process).map_or("", Process::command)
    }

    /// Returns the commands of processes that are called differently themselves.
    pub(super) fn commands(&self) -> BTreeMap<String, String> {
        let all = self.processes.iter();
        let others = all.filter(|process| process.command() != process.name);
        others.map(|process| (process.name.clone(), process.command().to_owned())).collect()
    }

    pub(super) fn totals(&self) -> Totals {
        let ReportTotals { cycles, idle, instructions } = self.totals;
        let scaled = |count: u64, scale: f64| match scale {
            1.0 => count,
            scale => (count as f64 * scale).round() as u64,
        };
        Totals {
            // Between units of a sampled run, time goes on by estimates.
            elapsed: match self.meta.sampled_words() {
                Some(_) => None,
                None => self.meta.elapsed(),
            },
            cycles: scaled(cycles, self.scale()),
            idle: scaled(idle, self.scale()),
            instructions: scaled(instructions, self.meta.sampled_scale().unwrap_or(1.0)),
        }
    }
}

/// Adds the paths below which two values are not the same.
fn differences(path: &str, here: &Value, there: &Value, found: &mut Vec<(String, String)>) {
    if let (Value::Object(one), Value::Object(two)) = (here, there) {
        let more = two.keys().filter(|key| !one.contains_key(*key));
        for key in one.keys().chain(more) {
            differences(&format!("{path}.{key}"), &here[key], &there[key], found);
        }
    } else if here != there {
        found.push((path.to_owned(), format!("{here} → {there}")));
    }
}

/// Totals of a report.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct ReportTotals {
    pub(super) cycles: u64,
    pub(super) idle: u64,
    pub(super) instructions: u64,
}

/// Totals of a run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Totals {
    /// Simulated time of the region, if the run told.
    pub elapsed: Option<Elapsed>,
    /// Cycles of all harts together, idle ones included.
    pub cycles: u64,
    /// Cycles in which a hart slept.
    pub idle: u64,
    /// Committed instructions.
    pub instructions: u64,
}

impl Totals {
    /// Returns the cycles in which a hart did not sleep.
    pub(crate) fn busy(&self) -> u64 {
        self.cycles.saturating_sub(self.idle)
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Process {
    pub(super) name: String,
    #[serde(default)]
    pub(super) pid: Option<u32>,
    /// Number of processes that the row stands for; older reports do not have it.
    #[serde(default = "one")]
    pub(super) count: usize,
    /// Older reports do not say.
    #[serde(default)]
    pub(super) command: Option<String>,
    pub(super) cycles: f64,
    pub(super) stack: Vec<f64>,
    /// Margins of error, if the run was sampled.
    #[serde(default)]
    pub(super) margins: Option<Margins>,
}

fn one() -> usize {
    1
}

impl Process {
    pub(super) fn command(&self) -> &str {
        if let Some(command) = &self.command {
            return command;
        }
        let number = self.pid.and_then(|pid| self.name.strip_suffix(&format!("-{pid}")));
        number.unwrap_or(&self.name)
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Module {
    pub(super) path: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Function {
    pub(super) process: usize,
    pub(super) name: String,
    pub(super) module: usize,
    pub(super) cycles: f64,
    pub(super) stack: Vec<f64>,
    /// Margins of error, if the run was sampled.
    #[serde(default)]
    pub(super) margins: Option<Margins>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Instruction {
    pub(super) process: usize,
    pub(super) label: String,
    pub(super) text: String,
    pub(super) source: Option<String>,
    pub(super) cycles: f64,
    pub(super) stack: Vec<f64>,
    /// Margins of error, if the run was sampled.
    #[serde(default)]
    pub(super) margins: Option<Margins>,
}

/// The section *Waiting* of a report.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Waiting {
    pub(super) threads: Vec<Thread>,
    pub(super) futexes: Vec<Futex>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Thread {
    pub(super) process: usize,
    pub(super) name: String,
    pub(super) tid: u32,
    pub(super) running: CountAndCycles,
    pub(super) ready: CountAndCycles,
    pub(super) waits: Vec<Wait>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct CountAndCycles {
    pub(super) count: u64,
    pub(super) cycles: u64,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Wait {
    pub(super) reason: String,
    #[serde(flatten)]
    pub(super) time: CountAndCycles,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Futex {
    pub(super) process: usize,
    pub(super) address: String,
    pub(super) object: Option<String>,
    #[serde(flatten)]
    pub(super) time: CountAndCycles,
    #[serde(default)]
    pub(super) places: Vec<Place>,
    #[serde(default)]
    pub(super) callers: Vec<Caller>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Caller {
    pub(super) function: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Place {
    pub(super) label: String,
}
