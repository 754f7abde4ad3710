//! Paths into report.json.

use serde_json::Value;

/// A key or index in a number's path, and the name that people use for it.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub key: String,
    pub name: String,
}

/// A number and its path.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub steps: Vec<Step>,
    pub value: f64,
}

impl Found {
    pub(crate) fn path(&self) -> String {
        let names: Vec<&str> = self.steps.iter().map(|step| &*step.name).collect();
        names.join(".")
    }
}

/// The entries of an object or a list, each with its step.
fn entries<'a>(report: &Value, steps: &[Step], value: &'a Value) -> Vec<(Step, &'a Value)> {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| {
                // Windows of time have processes by index, not by name.
                let index = key
                    .parse::<usize>()
                    .ok()
                    .filter(|_| ends(steps, "processes") || ends(steps, "stacks"));
                let name = index
                    .and_then(|index| report["processes"][index]["name"].as_str())
                    .unwrap_or(key);
                (Step { key: key.clone(), name: name.to_owned() }, value)
            })
            .collect(),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .map(|(index, value)| {
                let name =
                    own_name(value).or_else(|| of_list(report, steps, index).map(str::to_owned));
                let key = index.to_string();
                (Step { name: name.unwrap_or_else(|| key.clone()), key }, value)
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// The name that a list's entry has of itself.
fn own_name(value: &Value) -> Option<String> {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    if let (Some(curve), Some(random)) = (text("profiler"), value["random"].as_bool()) {
        return Some(if random { curve + " random" } else { curve });
    }
    let point = || value["samplers"].as_u64().and(value["period"].as_u64());
    ["name", "path", "pc", "process"]
        .into_iter()
        .find_map(text)
        .or_else(|| point().map(|period| period.to_string()))
}

fn ends(steps: &[Step], key: &str) -> bool {
    steps.last().is_some_and(|step| step.key == key)
}

/// The name of an entry of a list of plain values.
fn of_list<'a>(report: &'a Value, steps: &[Step], index: usize) -> Option<&'a str> {
    match &*steps.last()?.key {
        "stack" => report["categories"][index].as_str(),
        "errors" | "samples" | "shares" => report["columns"][index]["name"].as_str(),
        _ => match &*steps[..steps.len() - 1].last()?.key {
            "processes" => report["top_down"]["nodes"][index]["path"].as_str(),
            "stacks" => report["categories"][index].as_str(),
            _ => None,
        },
    }
}

/// The steps of a path that a user gave. The error lists the keys that could follow where it fails.
pub(super) fn resolve<'a>(report: &'a Value, path: &str) -> Result<(Vec<Step>, &'a Value), String> {
    let words: Vec<&str> = path.split('.').collect();
    let mut known = (0, String::new());
    walk(report, report, &mut Vec::new(), &words, &mut known).ok_or(known.1)
}

fn walk<'a>(
    report: &Value,
    value: &'a Value,
    steps: &mut Vec<Step>,
    words: &[&str],
    known: &mut (usize, String),
) -> Option<(Vec<Step>, &'a Value)> {
    if words.is_empty() {
        return Some((steps.clone(), value));
    }
    let entries = entries(report, steps, value);
    if steps.len() >= known.0 {
        let names: Vec<&str> = entries.iter().take(12).map(|(step, _)| &*step.name).collect();
        *known = (steps.len(), names.join(", "));
    }
    let same = |step: &Step, word: &str| step.name.eq_ignore_ascii_case(word) || step.key == word;
    let begins = |step: &Step, word: &str| {
        let start =
            step.name.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
        start && !step.name[word.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '-')
    };
    type Fits<'a> = &'a dyn Fn(&Step, &str) -> bool;
    let fits: [Fits<'_>; 2] = [&same, &begins];
    for fits in fits {
        for taken in 1..=words.len() {
            let word = words[..taken].join(".");
            for (step, value) in entries.iter().filter(|(step, _)| fits(step, &word)) {
                steps.push(step.clone());
                let found = walk(report, value, steps, &words[taken..], known);
                steps.pop();
                if found.is_some() {
                    return found;
                }
            }
        }
    }
    None
}

/// All numbers below a value.
pub(super) fn numbers_below(
    report: &Value,
    value: &Value,
    steps: &mut Vec<Step>,
    out: &mut Vec<Found>,
) {
    if let Some(value) = value.as_f64() {
        out.push(Found { steps: steps.clone(), value });
    }
    for (step, value) in entries(report, steps, value) {
        steps.push(step);
        numbers_below(report, value, steps, out);
        steps.pop();
    }
}

/// Numbers that show as `shown`: as they are, per cent, or in millions, rounded to as many decimals. Settings of the run and
/// indices are left out.
pub(super) fn with_value(report: &Value, shown: &str) -> Vec<Found> {
    let plain = shown.trim_end_matches(['%', 'M']).trim().replace(',', "");
    let decimals = plain.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let percent = shown.ends_with('%');
    let mut all = Vec::new();
    for (step, value) in entries(report, &[], report) {
        if step.key != "meta" {
            numbers_below(report, value, &mut vec![step], &mut all);
        }
    }
    all.retain(|found| {
        let index = matches!(found.steps.last(), Some(step) if ["process", "column", "module", "pid"].contains(&&*step.key));
        let as_is = !percent && format!("{:.decimals$}", found.value) == plain;
        let in_percent = found.value.abs() <= 1.0 && format!("{:.decimals$}", 100.0 * found.value) == plain;
        // The number's form is the one of cycles and instructions in texts and pages.
        let in_millions = !percent
            && decimals > 0
            && found.value.abs() >= 5e4
            && format!("{:.decimals$}", found.value / 1e6) == plain;
        !index && (as_is || in_percent || in_millions)
    });
    all
}
