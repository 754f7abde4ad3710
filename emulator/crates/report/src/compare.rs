//! Two runs side by side, before and after a change: what got faster or slower, and in which category of the cycle stack.
//!
//! Rows are matched by name: a function by process, module and symbol, an instruction by process, distance from its
//! function's start, and text. So code that moved is compared with itself; a changed function's instructions appear as
//! gone and new. `report.json` has the hottest thousand instructions: one that is not among them in a run counts as
//! without cycles there.
//!
//! Of several harts the rows of all are added up. Processes that are called differently can be said to be the same.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::text::fit::fit;

/// Changes below this share of both runs' cycles are left out of the text.
const NOTICEABLE: f64 = 0.0005;

/// What a comparison needs of a run's `report.json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Run {
    categories: Vec<String>,
    totals: Totals,
    processes: Vec<Process>,
    functions: Vec<Function>,
    instructions: Vec<Instruction>,
    modules: Vec<Module>,
}

/// Totals of a run.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Totals {
    /// Cycles, idle ones included.
    pub cycles: u64,
    /// Cycles in which the hart slept.
    pub idle: u64,
    /// Committed instructions.
    pub instructions: u64,
}

#[derive(Clone, Debug, Deserialize)]
struct Process {
    name: String,
    cycles: f64,
    stack: Vec<f64>,
}

#[derive(Clone, Debug, Deserialize)]
struct Module {
    path: String,
}

#[derive(Clone, Debug, Deserialize)]
struct Function {
    process: usize,
    name: String,
    module: usize,
    cycles: f64,
    stack: Vec<f64>,
}

#[derive(Clone, Debug, Deserialize)]
struct Instruction {
    process: usize,
    label: String,
    text: String,
    source: Option<String>,
    cycles: f64,
    stack: Vec<f64>,
}

/// One thing in both runs. Cycles are the Oracle's; a run without it has 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Change {
    /// Process that it belongs to, or is.
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
}

impl Change {
    /// Cycles gained; negative if it got faster.
    pub fn delta(&self) -> f64 {
        self.after - self.before
    }
}

/// Two runs side by side. Lists begin with the largest change.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Names of the categories.
    pub categories: Vec<String>,
    /// Totals before.
    pub before: Totals,
    /// Totals after.
    pub after: Totals,
    /// All processes; "all" is their sum.
    pub processes: Vec<Change>,
    /// The functions that either report names.
    pub functions: Vec<Change>,
    /// The instructions that either report names.
    pub instructions: Vec<Change>,
    /// Harts of each run, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harts: Option<(usize, usize)>,
    /// Processes that took much time in one run and are not in the other: the same under another name, perhaps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed: Option<(String, String)>,
}

/// Two processes that each take this share of their run's cycles may be one that was renamed.
const MUCH: f64 = 0.05;
/// Characters of a process's name that the kernel keeps.
const NAME_MAX: usize = 15;

type Key = (String, String, String);

#[derive(Default)]
struct Changes(BTreeMap<Key, Change>);

impl Changes {
    /// Adds cycles of a row, `sign` -1 for those before.
    fn add(
        &mut self,
        key: Key,
        place: &str,
        cycles: f64,
        stack: impl Iterator<Item = f64>,
        sign: f64,
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
        for (n, cycles) in stack.enumerate() {
            if change.stack.len() <= n {
                change.stack.push(0.0);
            }
            change.stack[n] += sign * cycles;
        }
    }

    fn ranked(self) -> Vec<Change> {
        let mut changes: Vec<Change> = self.0.into_values().collect();
        changes.sort_by(|a, b| b.delta().abs().total_cmp(&a.delta().abs()));
        changes
    }
}

impl Comparison {
    /// Compares two runs, each by the reports of its harts; `map`: the names of processes before, and what they are
    /// called after.
    ///
    /// # Errors
    /// If a name of `map` is not that of a process.
    pub fn new(before: &[Run], after: &[Run], map: &[(String, String)]) -> Result<Self, String> {
        let map: Vec<_> = map
            .iter()
            .map(|(old, new)| Ok((known(old, before)?, known(new, after)?)))
            .collect::<Result<_, String>>()?;
        let mut processes = Changes::default();
        let mut functions = Changes::default();
        let mut instructions = Changes::default();
        let before_it = before.iter().map(|run| (run, -1.0));
        for (run, sign) in before_it.chain(after.iter().map(|run| (run, 1.0))) {
            let today = |name: &str| match sign < 0.0 {
                true => now(name, &map),
                false => name.to_owned(),
            };
            // Shares are those of the process.
            let total = |process: usize| run.processes.get(process).map_or(0.0, |p| p.cycles);
            let name = |process: usize| {
                { run.processes.get(process) }.map_or_else(String::new, |p| today(&p.name))
            };
            for process in &run.processes {
                let stack = process.stack.iter().map(|share| share * process.cycles);
                let key = (today(&process.name), String::new(), String::new());
                processes.add(key, "", process.cycles, stack, sign);
            }
            for row in &run.functions {
                let module = run.modules.get(row.module).map_or("", |m| &m.path);
                let stack = row.stack.iter().map(|share| share * total(row.process));
                let module = match sign < 0.0 {
                    true => &file_now(module, &map),
                    false => module,
                };
                let key = (name(row.process), row.name.clone(), module.to_owned());
                functions.add(key, module, row.cycles, stack, sign);
            }
            for row in &run.instructions {
                let stack = row.stack.iter().map(|share| share * total(row.process));
                let text = format!("{}  {}", row.label, row.text);
                let place = row.source.as_deref().unwrap_or_default();
                let key = (name(row.process), text, String::new());
                instructions.add(key, place, row.cycles, stack, sign);
            }
        }
        let (totals_before, totals_after) = (Totals::of(before), Totals::of(after));
        let processes = processes.ranked();
        let much = |cycles: f64, totals: &Totals| cycles > MUCH * totals.cycles as f64;
        let gone = { processes.iter() }.find(|p| p.after == 0.0 && much(p.before, &totals_before));
        let new = { processes.iter() }.find(|p| p.before == 0.0 && much(p.after, &totals_after));
        let renamed = gone.zip(new);
        Ok(Self {
            categories: { after.first() }.map_or_else(Vec::new, |run| run.categories.clone()),
            before: totals_before,
            after: totals_after,
            renamed: renamed.map(|(gone, new)| (gone.process.clone(), new.process.clone())),
            harts: (before.len().max(after.len()) > 1).then_some((before.len(), after.len())),
            processes,
            functions: functions.ranked(),
            instructions: instructions.ranked(),
        })
    }

    /// As tables of at most `limit` rows each.
    pub fn text(&self, limit: usize) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut out, limit);
        out
    }

    fn write(&self, out: &mut String, limit: usize) -> std::fmt::Result {
        if let Some((before, after)) = self.harts {
            let harts = |n| {
                if n == 1 {
                    "one hart".into()
                } else {
                    format!("{n} harts")
                }
            };
            let (before, after) = (harts(before), harts(after));
            writeln!(
                out,
                "All harts together: {before} before, {after} after (--hart N: one of them)\n"
            )?;
        }
        writeln!(
            out,
            "{:22}{:>12}{:>12}{:>10}",
            "", "before", "after", "change"
        )?;
        let busy = |totals: &Totals| totals.cycles.saturating_sub(totals.idle);
        for (name, value) in [
            ("M cycles, not idle", &busy as &dyn Fn(&Totals) -> u64),
            ("M instructions", &|totals| totals.instructions),
        ] {
            let (before, after) = (value(&self.before) as f64, value(&self.after) as f64);
            writeln!(
                out,
                "{name:22}{:>12.3}{:>12.3}{}",
                before / 1e6,
                after / 1e6,
                relative(before, after)
            )?;
        }
        for (title, rows) in [
            ("Process", &self.processes),
            ("Function", &self.functions),
            ("Instruction", &self.instructions),
        ] {
            self.table(out, title, rows, limit)?;
        }
        if let Some((gone, new)) = &self.renamed {
            writeln!(
                out,
                "\nProcesses are matched by name. If {gone} and {new} are the same program: --map {gone}={new}"
            )?;
        }
        Ok(())
    }

    fn table(
        &self,
        out: &mut String,
        title: &str,
        rows: &[Change],
        limit: usize,
    ) -> std::fmt::Result {
        let total = (self.before.cycles + self.after.cycles) as f64 / 2.0;
        let noticed = rows
            .iter()
            .filter(|row| row.delta().abs() > NOTICEABLE * total);
        writeln!(
            out,
            "\n{title:52}{:>11}{:>11}{:>11}{:>10}  mostly",
            "M before", "M after", "M change", "change"
        )?;
        let mut written = 0;
        for row in noticed.take(limit) {
            let name = match row.name.as_str() {
                "" => row.process.clone(),
                name => format!("{}: {name}", row.process),
            };
            writeln!(
                out,
                "{:52}{:>11.3}{:>11.3}{:>+11.3}{}  {}",
                fit(&name, 51),
                row.before / 1e6,
                row.after / 1e6,
                row.delta() / 1e6,
                relative(row.before, row.after),
                self.mostly(row),
            )?;
            written += 1;
        }
        if written == 0 {
            writeln!(
                out,
                "(no change beyond {:.2} % of the cycles)",
                100.0 * NOTICEABLE
            )?;
        }
        Ok(())
    }

    /// The category that changed most in the direction of the whole.
    fn mostly(&self, row: &Change) -> &str {
        let sign = row.delta().signum();
        let stack = row.stack.iter().zip(&self.categories);
        let largest = stack.max_by(|(a, _), (b, _)| (sign * **a).total_cmp(&(sign * **b)));
        largest.map_or("", |(_, name)| name)
    }
}

impl Totals {
    fn of(harts: &[Run]) -> Self {
        let sum = |of: fn(&Self) -> u64| harts.iter().map(|run| of(&run.totals)).sum();
        Self {
            cycles: sum(|totals| totals.cycles),
            idle: sum(|totals| totals.idle),
            instructions: sum(|totals| totals.instructions),
        }
    }
}

/// The name as the kernel has it, if a process of the runs is called so.
fn known(name: &str, runs: &[Run]) -> Result<String, String> {
    let names = || {
        runs.iter()
            .flat_map(|run| &run.processes)
            .map(|p| p.name.as_str())
    };
    let kept = match name.char_indices().nth(NAME_MAX) {
        Some((end, _)) => &name[..end],
        None => name,
    };
    if names().any(|known| known == kept) {
        return Ok(kept.to_owned());
    }
    let mut known: Vec<&str> = names().filter(|name| *name != "all").collect();
    known.sort_unstable();
    known.dedup();
    Err(format!(
        "expected one of the processes {}, found \"{name}\"",
        known.join(", ")
    ))
}

/// What a process is called after the change.
fn now(name: &str, map: &[(String, String)]) -> String {
    let renamed = map.iter().find(|(old, _)| old == name);
    renamed.map_or(name, |(_, new)| new).to_owned()
}

/// What a module is called whose file has a process's name.
fn file_now(path: &str, map: &[(String, String)]) -> String {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let is = |old: &str| match old.len() < NAME_MAX {
        true => file == old,
        false => file.starts_with(old),
    };
    match map.iter().find(|(old, _)| is(old)) {
        Some((_, new)) if folder.is_empty() => new.clone(),
        Some((_, new)) => format!("{folder}/{new}"),
        None => path.to_owned(),
    }
}

/// The relative change, in ten columns.
fn relative(before: f64, after: f64) -> String {
    match (before > 0.0, after > 0.0) {
        (true, true) => format!("{:>+8.1} %", 100.0 * (after - before) / before),
        (false, true) => format!("{:>10}", "new"),
        (true, false) => format!("{:>10}", "gone"),
        (false, false) => format!("{:>10}", ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(main: f64, other: Option<f64>) -> Run {
        let total = main + other.unwrap_or(0.0);
        let mut functions = vec![
            json!({"process": 1, "name": "main", "module": 0, "cycles": main, "share": main / total,
            "stack": [0.0, main / total]}),
        ];
        if let Some(other) = other {
            functions.push(json!({"process": 1, "name": "other", "module": 0, "cycles": other, "stack": [other / total, 0.0]}));
        }
        let row = json!({"process": 1, "label": "main+4", "text": "ld a0, 0(a1)", "source": "a.c:3", "cycles": main,
            "stack": [0.0, main / total]});
        let process = |name: &str| json!({"name": name, "cycles": total, "stack": [other.unwrap_or(0.0) / total, main / total]});
        serde_json::from_value(json!({
            "categories": ["Execution", "Load stall"],
            "totals": {"cycles": total as u64 + 7, "idle": 7, "instructions": 1000, "ipc": 1.0},
            "processes": [process("all"), process("a")],
            "functions": functions,
            "instructions": [row],
            "modules": [{"path": "/bin/a"}],
        }))
        .unwrap()
    }

    #[test]
    fn a_run_equals_itself() {
        let run = run(3e6, Some(1e6));
        let run = [run];
        let comparison = Comparison::new(&run, &run, &[]).unwrap();
        let all = comparison.functions.iter().chain(&comparison.instructions);
        assert!(
            all.chain(&comparison.processes)
                .all(|row| row.delta() == 0.0 && row.before > 0.0)
        );
        assert_eq!(comparison.text(10).matches("no change").count(), 3);
    }

    #[test]
    fn what_got_faster_and_why() {
        let (before, after) = ([run(3e6, None)], [run(1e6, Some(5e5))]);
        let comparison = Comparison::new(&before, &after, &[]).unwrap();
        let [main, other] = &comparison.functions[..] else {
            panic!("two functions");
        };
        assert_eq!(
            (main.name.as_str(), main.delta(), main.stack[1].round()),
            ("main", -2e6, -2e6)
        );
        assert_eq!((other.before, other.after), (0.0, 5e5));
        assert_eq!(
            (
                comparison.instructions[0].before,
                comparison.instructions[0].after
            ),
            (3e6, 1e6)
        );
        let text = comparison.text(10);
        for part in [
            "a: main ",
            "-2.000",
            "-66.7 %",
            "Load stall",
            "new",
            "a: main+4  ld a0, 0(a1)",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        assert!(!comparison.text(1).contains("a: other"));
    }

    #[test]
    fn harts_are_added_up() {
        let one = [run(3e6, Some(1e6))];
        let two = [run(2e6, Some(1e6)), run(1e6, None)];
        let comparison = Comparison::new(&one, &two, &[]).unwrap();
        assert!({ comparison.functions.iter() }.all(|row| row.delta() == 0.0));
        let all = { comparison.processes.iter() }.find(|row| row.process == "all");
        assert_eq!(all.map(|row| (row.before, row.after)), Some((4e6, 4e6)));
        let text = comparison.text(10);
        assert!(text.contains("one hart before, 2 harts after"), "{text}");
        assert_eq!(
            (comparison.after.cycles, comparison.after.idle),
            (4_000_014, 14)
        );
    }

    #[test]
    fn renamed_processes_are_matched_if_one_says_so() {
        let before = [run(3e6, None)];
        let mut after = run(1e6, None);
        after.processes[1].name = "b".into();
        after.modules[0].path = "/bin/b".into();
        let after = [after];
        let hint = "--map a=b";
        let unmatched = Comparison::new(&before, &after, &[]).unwrap();
        let text = unmatched.text(10);
        assert!(text.contains(hint) && text.contains("gone"), "{text}");
        let map = [("a".to_owned(), "b".to_owned())];
        let matched = Comparison::new(&before, &after, &map).unwrap();
        let [main] = &matched.functions[..] else {
            panic!("one function: {:?}", matched.functions);
        };
        assert_eq!((main.before, main.after), (3e6, 1e6));
        assert!(!matched.text(10).contains(hint));
        let error = Comparison::new(&before, &before, &map).unwrap_err();
        assert_eq!(error, "expected one of the processes a, found \"b\"");
    }
}
