//! Names of instructions in a trace, from the report beside it: it has the thousand that most time goes to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use crate::failure::{BadInput, nearest};
use crate::run_folder::{Results, report_files};

/// Functions and labels by address.
#[derive(Default)]
pub(super) struct Labels(BTreeMap<u64, (String, String)>);

/// The instructions of a report.
#[derive(Deserialize)]
struct ReportInstructions {
    instructions: Vec<ReportInstruction>,
}

/// What names an instruction in a report.
#[derive(Deserialize)]
struct ReportInstruction {
    /// Address, in hexadecimal.
    pc: String,
    function: String,
    label: String,
}

impl Labels {
    /// Function names of the report in the trace's folder.
    pub(super) fn beside(trace: &Path) -> Result<Self, BadInput> {
        let error = |why: String| {
            BadInput(format!(
                "--function: expected a report beside the trace: {why} (--pc takes an address)"
            ))
        };
        let folder = trace.parent().filter(|folder| !folder.as_os_str().is_empty());
        let results = Results::open_any(folder.unwrap_or(Path::new(".")));
        let report = results.and_then(|results| report_files::part_of_report(&results, None));
        let report = report.map_err(|BadInput(why)| error(why))?;
        Ok(Self::of(report))
    }

    /// Function names of a report.
    fn of(report: ReportInstructions) -> Self {
        let known = report.instructions.into_iter().filter_map(|row| {
            let pc = u64::from_str_radix(row.pc.strip_prefix("0x").unwrap_or(&row.pc), 16).ok()?;
            Some((pc, (row.function, row.label)))
        });
        Self(known.collect())
    }

    /// Returns the addresses of a function's instructions. The function may be named in full, without its arguments and the
    /// namespaces around it, or as reports shorten it.
    pub(super) fn of_function(&self, name: &str) -> Result<BTreeSet<u64>, BadInput> {
        let names: BTreeSet<&str> = self.0.values().map(|(function, _)| &**function).collect();
        let meant: Vec<&str> = match names.get(name) {
            Some(exactly) => vec![*exactly],
            None => names.iter().copied().filter(|own| is_short_for(name, own)).collect(),
        };
        let error = |why: String| Err(BadInput(format!("--function {name}: {why}")));
        if let [function] = meant[..] {
            let own = self.0.iter().filter(|(_, (own, _))| own == function);
            return Ok(own.map(|(pc, _)| *pc).collect());
        }
        if !meant.is_empty() {
            let list = meant.join("`, `");
            return error(format!("several functions are called so; name one of them: `{list}`"));
        }
        let known = names.into_iter().map(without_arguments);
        let nearest = nearest(without_arguments(name), known, 0.7);
        let nearest = nearest.map_or(String::new(), |name| format!("; did you mean `{name}`?"));
        error(format!(
            "none of the report's thousand most expensive instructions is in it{nearest}"
        ))
    }

    /// Function and distance from its start, of an instruction that the report has.
    pub(super) fn label(&self, pc: u64) -> Option<&str> {
        self.0.get(&pc).map(|(_, label)| &**label)
    }
}

/// The name of a function up to its arguments.
fn without_arguments(function: &str) -> &str {
    function.split('(').next().unwrap_or_default()
}

/// True if `name` is a function's name without its arguments or its namespaces, or the name as reports shorten it, with `…`.
fn is_short_for(name: &str, function: &str) -> bool {
    if name.contains('…') {
        let name = name.replace('‹', "<").replace('›', ">");
        let parts: Vec<&str> = name.split('…').collect();
        let [first, .., last] = &parts[..] else {
            return false;
        };
        let mut rest = match function.strip_prefix(first) {
            Some(rest) if rest.len() >= last.len() => rest,
            _ => return false,
        };
        for part in &parts[1..parts.len() - 1] {
            match rest.split_once(part) {
                Some((_, behind)) => rest = behind,
                None => return false,
            }
        }
        return rest.ends_with(last);
    }
    let plain = without_arguments(function);
    plain == name || plain.strip_suffix(name).is_some_and(|before| before.ends_with("::"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn functions_are_those_of_the_report() {
        let row = |pc, function, label| json!({"pc": pc, "function": function, "label": label});
        let report = json!({"instructions": [
            row("0x10", "sum", "sum"), row("0x14", "sum", "sum+0x4"), row("0x20", "main", "main+0x8"),
        ]});
        let labels = Labels::of(serde_json::from_value(report).unwrap());
        assert_eq!(labels.of_function("sum").unwrap(), BTreeSet::from([0x10, 0x14]));
        assert_eq!((labels.label(0x20), labels.label(0x24)), (Some("main+0x8"), None));
        let error = labels.of_function("mian").unwrap_err().to_string();
        assert!(error.contains("--function mian") && error.contains("`main`"), "{error}");
        assert!(Labels::beside(Path::new("/nowhere/trace.tip")).is_err());
        let of = |functions: [&str; 2]| {
            let rows = (0..).zip(functions);
            Labels(rows.map(|(at, own)| (at, (own.to_owned(), String::new()))).collect())
        };
        let map = of(["count(std::map<int, std::less<int> >&, int)", "own::main()"]);
        for name in ["count", "count(std::map‹…›&, int)", "count(…)"] {
            assert_eq!(map.of_function(name).unwrap(), BTreeSet::from([0]), "{name}");
        }
        assert_eq!(map.of_function("main").unwrap(), BTreeSet::from([1]));
        assert!(map.of_function("coun").is_err());
        let error = of(["f(int)", "a::f(char)"]).of_function("f").unwrap_err().to_string();
        assert!(error.contains("`a::f(char)`, `f(int)`"), "{error}");
    }
}
