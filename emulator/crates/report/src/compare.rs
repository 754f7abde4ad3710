//! Two runs side by side, before and after a change: what got faster or slower, and in which category of the cycle stack; or more runs,
//! each beside the first.
//!
//! Rows are matched by name: a process by its command (all processes of one command are one row), a function by process, module and symbol, an
//! instruction by process, distance from its function's start, and text. Code that only moved is therefore compared with itself, and the instructions
//! of a function that changed appear as gone and new. `report.json` has the hottest thousand instructions: one that is not among them in a run counts
//! as having no cycles there.
//!
//! A process with another name in the second run can be declared the same.

mod more;
mod renamed;
mod run;
pub(crate) mod scaling;
mod speedup;
#[cfg(test)]
mod tests;
mod text;
mod waiting;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::margins::Margins;

pub(crate) use more::BY_CHANCE;
pub use more::{Compared, ComparedRow};
use renamed::known;
pub(crate) use renamed::{file_now, now};
pub(crate) use run::Totals;
use run::Uncertainty;
pub use run::{Run, RunTitle};
pub use speedup::{LostSpeedup, Speedup};
pub(crate) use text::{TOTALS, relative};
pub use waiting::{ThreadChange, ThreadTime, WaitChange, WaitTime, WaitingChanges};

/// A command, function or instruction in both runs. Cycles are the Oracle's; 0 in a run that does not have it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Change {
    /// The command whose processes have the function or instruction; in the row of a command or a process, its own name.
    pub process: String,
    /// Function or instruction; empty for a process.
    pub name: String,
    /// Module of a function, source line of an instruction, if known.
    pub place: String,
    /// Cycles before.
    pub before: f64,
    /// Cycles after.
    pub after: f64,
    /// Change of the cycles by category.
    pub stack: Vec<f64>,
    /// Margin of the change, if one of the runs was sampled: by chance alone it is off by no more for 95 % of seeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// What makes up the margin, before and after; `None` where a run does not have the row.
    #[serde(skip)]
    uncertainty: [Option<Uncertainty>; 2],
    /// Number of processes that the command has before and after; `None` for functions and instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<[usize; 2]>,
    /// Processes of the command, if it has several; before and after are matched in the order in which they were made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Change>,
}

impl Change {
    /// Returns the cycles after minus the cycles before: negative if the code got faster.
    pub fn delta(&self) -> f64 {
        self.after - self.before
    }

    /// Returns whether the change may be there by chance.
    pub(crate) fn is_within_chance(&self) -> bool {
        self.margin.is_some_and(|margin| self.delta().abs() <= margin)
    }

    /// The command with its number of processes, if it has several in a run.
    pub(crate) fn process_title(&self) -> String {
        match self.count {
            Some([before, after]) if before.max(after) < 2 => self.process.clone(),
            Some([count, same]) if count == same => format!("{} ({count} processes)", self.process),
            Some([before, after]) => format!("{} ({before} → {after} processes)", self.process),
            None => self.process.clone(),
        }
    }
}

/// Two runs side by side. Lists begin with the largest change.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// What identifies the two runs: before and after.
    pub runs: [RunTitle; 2],
    /// Settings of core and spec that are not the same, with their values before and after.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
    /// Names of the categories.
    pub categories: Vec<String>,
    /// Totals before.
    pub before: Totals,
    /// Totals after.
    pub after: Totals,
    /// Why a run is not whole, a sentence each; none if both are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
    /// What became of the sampling of runs whose region was sampled, a line each: their cycles are estimates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sampled: Vec<String>,
    /// Margin of the change of all cycles that are not idle, if one of the runs was sampled ([`Change::margin`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// How many times as fast several harts are as one, if the first run has one hart and the second several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speedup: Option<Speedup>,
    /// What threads waited for, if both runs tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<WaitingChanges>,
    /// All processes, those of one command together; "all" is their sum.
    pub processes: Vec<Change>,
    /// The functions that either report names.
    pub functions: Vec<Change>,
    /// The instructions that either report names.
    pub instructions: Vec<Change>,
    /// Harts of each run, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harts: Option<(usize, usize)>,
    /// Names before and after of a process that may have been renamed: each takes much time in one run and is not in the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed: Option<(String, String)>,
    /// How many times as long the region is as what was recorded of it, before and after.
    #[serde(skip)]
    pub(crate) scales: [f64; 2],
    /// The commands of processes whose names are others, before and after: those with several processes.
    #[serde(skip)]
    commands: [BTreeMap<String, String>; 2],
}

/// Share of their run's cycles from which on two processes of different names may be one that was renamed.
const RENAMED_SHARE: f64 = 0.05;
type Key = (String, String, String);

#[derive(Default)]
struct Changes(BTreeMap<Key, Change>);

impl Changes {
    /// Adds cycles of a row with their margin, `sign` -1 for those before.
    fn add(
        &mut self,
        key: Key,
        place: &str,
        cycles: f64,
        stack: impl Iterator<Item = f64>,
        sign: f64,
        uncertainty: Uncertainty,
    ) {
        let change = self.0.entry(key.clone()).or_insert_with(|| Change {
            process: key.0,
            name: key.1,
            place: place.to_owned(),
            ..Change::default()
        });
        if sign < 0.0 {
            change.before += cycles;
        } else {
            change.after += cycles;
        }
        let side = &mut change.uncertainty[usize::from(sign > 0.0)];
        *side = Some(side.unwrap_or_default().and(uncertainty));
        for (n, cycles) in stack.enumerate() {
            if change.stack.len() <= n {
                change.stack.push(0.0);
            }
            change.stack[n] += sign * cycles;
        }
    }

    /// Returns the changes, the largest first. A run says nothing of what it does not have but that it may have been in no unit.
    fn ranked(self, absent: [Uncertainty; 2]) -> Vec<Change> {
        let mut changes: Vec<Change> = self.0.into_values().collect();
        for change in &mut changes {
            let [before, after] = change.uncertainty;
            let both = before.unwrap_or(absent[0]).and(after.unwrap_or(absent[1]));
            change.margin = match both {
                Uncertainty::Within(margin) => Some(margin),
                Uncertainty::None | Uncertainty::Unknown => None,
            };
        }
        changes.sort_by(|a, b| b.delta().abs().total_cmp(&a.delta().abs()));
        changes
    }
}

impl Change {
    /// Adds the processes of a command.
    fn take_members(&mut self, before: &Run, after: &Run, map: &[(String, String)]) {
        let of = |run: &Run, own: &dyn Fn(&str) -> bool| {
            let members = run.processes.iter().skip(1);
            let mut members: Vec<_> = members.filter(|p| own(p.command())).cloned().collect();
            members.sort_by_key(|process| process.pid);
            members.iter_mut().for_each(|process| process.cycles *= run.scale());
            members
        };
        let members = [
            of(before, &|name| now(name, map) == self.process),
            of(after, &|name| name == self.process),
        ];
        if self.process == "all" && members.iter().all(Vec::is_empty) {
            return;
        }
        let processes = |side: usize| members[side].iter().map(|process| process.count).sum();
        self.count = Some([processes(0), processes(1)]);
        let most = members[0].len().max(members[1].len());
        if most < 2 {
            return;
        }
        for at in 0..most {
            let [before, after] = [members[0].get(at), members[1].get(at)];
            let cycles = |process: Option<&run::Process>, category: usize| {
                process.map_or(0.0, |p| p.cycles * p.stack.get(category).copied().unwrap_or(0.0))
            };
            let name = after.or(before).map_or_else(String::new, |p| p.name.clone());
            self.members.push(Self {
                process: name,
                before: before.map_or(0.0, |process| process.cycles),
                after: after.map_or(0.0, |process| process.cycles),
                stack: { 0..self.stack.len() }
                    .map(|category| cycles(after, category) - cycles(before, category))
                    .collect(),
                ..Self::default()
            });
        }
        self.members.sort_by(|a, b| b.delta().abs().total_cmp(&a.delta().abs()));
    }
}

impl Comparison {
    /// Compares two runs; `map`: the names of processes before, and what they are called after.
    ///
    /// # Errors
    /// If a name of `map` is not that of a process.
    pub fn new(before: &Run, after: &Run, map: &[(String, String)]) -> Result<Self, String> {
        let map: Vec<_> = map
            .iter()
            .map(|(old, new)| Ok((known(old, before)?, known(new, after)?)))
            .collect::<Result<_, String>>()?;
        let mut processes = Changes::default();
        let mut functions = Changes::default();
        let mut instructions = Changes::default();
        for (run, sign) in [(before, -1.0), (after, 1.0)] {
            let today = |name: &str| match sign < 0.0 {
                true => now(name, &map),
                false => name.to_owned(),
            };
            let scale = run.scale();
            let margin = |margins: &Option<Margins>| run.margin(margins.as_ref());
            // Shares are those of the process.
            let total =
                |process: usize| run.processes.get(process).map_or(0.0, |p| scale * p.cycles);
            let name = |process: usize| today(run.command(process));
            for (number, process) in run.processes.iter().enumerate() {
                let cycles = scale * process.cycles;
                let stack = process.stack.iter().map(|share| share * cycles);
                let key = (today(process.command()), String::new(), String::new());
                let margin = match number {
                    0 => run.margin_of_all(),
                    _ => margin(&process.margins),
                };
                processes.add(key, "", cycles, stack, sign, margin);
            }
            for row in &run.functions {
                let module = run.modules.get(row.module).map_or("", |m| &m.path);
                let stack = row.stack.iter().map(|share| share * total(row.process));
                let module = match sign < 0.0 {
                    true => &file_now(module, &map),
                    false => module,
                };
                let key = (name(row.process), row.name.clone(), module.to_owned());
                functions.add(key, module, scale * row.cycles, stack, sign, margin(&row.margins));
            }
            for row in &run.instructions {
                let stack = row.stack.iter().map(|share| share * total(row.process));
                let text = format!("{}  {}", row.label, row.text);
                let place = row.source.as_deref().unwrap_or_default();
                let key = (name(row.process), text, String::new());
                let cycles = scale * row.cycles;
                instructions.add(key, place, cycles, stack, sign, margin(&row.margins));
            }
        }
        let (totals_before, totals_after) = (before.totals(), after.totals());
        let absent = [before.margin_of_absent(), after.margin_of_absent()];
        let mut processes = processes.ranked(absent);
        for change in &mut processes {
            change.take_members(before, after, &map);
        }
        let harts = (before.harts(), after.harts());
        let much = |cycles: f64, totals: &Totals| cycles > RENAMED_SHARE * totals.cycles as f64;
        let gone = processes.iter().find(|p| p.after == 0.0 && much(p.before, &totals_before));
        let new = processes.iter().find(|p| p.before == 0.0 && much(p.after, &totals_after));
        let renamed = gone.zip(new);
        let sampled: Vec<String> = [("before", before), ("after", after)]
            .into_iter()
            .filter_map(|(which, run)| run.sampled(which))
            .collect();
        Ok(Self {
            runs: [before.title(), after.title()],
            differences: before.differences(after),
            speedup: match sampled.is_empty() {
                true => speedup::speedup(before, after),
                false => None,
            },
            // Nobody knows what threads waited for between units.
            waiting: match sampled.is_empty() {
                true => waiting::changes(before, after, &map),
                false => None,
            },
            margin: processes.iter().find(|row| row.process == "all").and_then(|all| all.margin),
            scales: [before.scale(), after.scale()],
            categories: after.categories.clone(),
            before: totals_before,
            after: totals_after,
            parts: [("before", before), ("after", after)]
                .into_iter()
                .filter_map(|(which, run)| Some(format!("{which}: {}", run.part()?)))
                .collect(),
            sampled,
            renamed: renamed.map(|(gone, new)| (gone.process.clone(), new.process.clone())),
            harts: (harts.0.max(harts.1) > 1).then_some(harts),
            commands: [before, after].map(Run::commands),
            processes,
            functions: functions.ranked(absent),
            instructions: instructions.ranked(absent),
        })
    }

    /// Returns the command of a process by its name.
    pub(crate) fn command<'a>(&'a self, is_before: bool, process: &'a str) -> &'a str {
        let commands = &self.commands[usize::from(!is_before)];
        commands.get(process).map_or(process, String::as_str)
    }
}
