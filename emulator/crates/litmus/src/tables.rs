//! What occurred, as text, Markdown and JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::judge::{Judged, Verdict};
use crate::run::{Histogram, Mode};

/// A test and how often its outcomes occurred in each mode.
pub struct TestResult {
    /// The test.
    pub test: Judged,
    /// Outcomes by mode, in the order of [`Results::modes`].
    pub histograms: Vec<Histogram>,
}

/// All tests that were run.
pub struct Results {
    /// Modes in which they were run.
    pub modes: Vec<Mode>,
    /// The tests.
    pub tests: Vec<TestResult>,
    /// Seconds that each mode took, in the order of the modes.
    pub seconds: Vec<f64>,
}

/// Sums over some tests.
#[derive(Clone, Default)]
struct Sums {
    /// Iterations, and those of them with weak and forbidden outcomes.
    iterations: u64,
    weak_iterations: u64,
    forbidden_iterations: u64,
    /// Different outcomes of interleavings that occurred, and weak ones.
    sequential_outcomes: usize,
    weak_outcomes: usize,
}

impl Results {
    /// Returns in how many iterations outcomes occurred that the model forbids.
    pub fn forbidden(&self) -> u64 {
        (0..self.modes.len()).map(|mode| sums(self.tests.iter(), mode).forbidden_iterations).sum()
    }

    /// Returns a line for each test, all weak and forbidden outcomes that occurred, and sums.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{:40} {:>5} {:>9} {:>4} {:>10}",
            "test", "harts", "outcomes", "weak", "its cycle"
        );
        for mode in &self.modes {
            write!(text, "  {:>11}: {:>4} {:>5} {:>9}", mode.name(), "seen", "weak", "forbidden")
                .expect("a string");
        }
        text.push('\n');
        for result in &self.tests {
            let test = &result.test;
            let cycle = match test.verdict_of_condition() {
                Verdict::Forbidden => "forbidden",
                _ => "allowed",
            };
            write!(
                text,
                "{:40} {:>5} {:>9} {:>4} {cycle:>10}",
                test.program.name,
                test.program.harts.len(),
                test.allowed.len(),
                test.weak().count()
            )
            .expect("a string");
            for (mode, histogram) in result.histograms.iter().enumerate() {
                let sums = sums([result].into_iter(), mode);
                write!(
                    text,
                    "  {:>12} {:>4} {:>5} {:>9}",
                    "",
                    histogram.len(),
                    sums.weak_iterations,
                    sums.forbidden_iterations
                )
                .expect("a string");
            }
            text.push('\n');
        }
        self.write_occurrences(&mut text);
        self.write_sums(&mut text);
        text
    }

    /// Lists weak and forbidden outcomes that occurred.
    fn write_occurrences(&self, text: &mut String) {
        for result in &self.tests {
            for (mode, histogram) in self.modes.iter().zip(&result.histograms) {
                for (verdict, what) in [(Verdict::Weak, "weak"), (Verdict::Forbidden, "FORBIDDEN")]
                {
                    for (outcome, count) in result.test.of_verdict(histogram, verdict) {
                        let program = &result.test.program;
                        let outcome = program.describe(outcome);
                        writeln!(
                            text,
                            "{what}: {}, {}: {outcome}, {count} times",
                            program.name,
                            mode.name()
                        )
                        .expect("a string");
                    }
                }
            }
        }
    }

    fn write_sums(&self, text: &mut String) {
        let sequential: usize = self.tests.iter().map(|result| result.test.sequential.len()).sum();
        let weak: usize = self.tests.iter().map(|result| result.test.weak().count()).sum();
        writeln!(
            text,
            "{} tests; allowed outcomes: {sequential} of interleavings, {weak} weak",
            self.tests.len()
        )
        .expect("a string");
        for (mode, seconds) in self.modes.iter().zip(&self.seconds) {
            let at = self.modes.iter().position(|m| m == mode).unwrap_or_default();
            let sums = sums(self.tests.iter(), at);
            writeln!(
                text,
                "{}: {} iterations, {} of {sequential} outcomes of interleavings occurred, {} of {weak} weak ones, \
                 {} iterations with forbidden ones; {seconds:.0} s",
                mode.name(),
                sums.iterations,
                sums.sequential_outcomes,
                sums.weak_outcomes,
                sums.forbidden_iterations
            )
            .expect("a string");
        }
    }

    /// Returns a Markdown table with a line for each family, and sums.
    pub fn markdown(&self) -> String {
        let mut text = "| family | harts | tests | allowed outcomes | of them weak |".to_owned();
        for mode in &self.modes {
            let name = mode.name();
            write!(text, " {name}: interleavings seen | weak seen | forbidden |")
                .expect("a string");
        }
        text += "\n|---|---|---|---|---|";
        text += &"---|---|---|".repeat(self.modes.len());
        text.push('\n');
        let mut families: Vec<&str> = Vec::new();
        for result in &self.tests {
            if !families.contains(&result.test.program.family.as_str()) {
                families.push(&result.test.program.family);
            }
        }
        for family in families {
            let of_family = || self.tests.iter().filter(|r| r.test.program.family == family);
            self.write_markdown_line(&mut text, family, of_family().collect());
        }
        self.write_markdown_line(&mut text, "all", self.tests.iter().collect());
        text.push('\n');
        self.write_sums(&mut text);
        text
    }

    fn write_markdown_line(&self, text: &mut String, name: &str, tests: Vec<&TestResult>) {
        let mut harts: Vec<usize> = tests.iter().map(|r| r.test.program.harts.len()).collect();
        harts.sort_unstable();
        let harts = match (harts.first(), harts.last()) {
            (Some(least), Some(most)) if least != most => format!("{least} to {most}"),
            (Some(least), _) => least.to_string(),
            _ => String::new(),
        };
        let count =
            |count: fn(&Judged) -> usize| -> usize { tests.iter().map(|r| count(&r.test)).sum() };
        let sequential = count(|test| test.sequential.len());
        let (allowed, weak) = (count(|test| test.allowed.len()), count(|test| test.weak().count()));
        write!(text, "| {name} | {harts} | {} | {allowed} | {weak} |", tests.len())
            .expect("a string");
        for mode in 0..self.modes.len() {
            let sums = sums(tests.iter().copied(), mode);
            write!(
                text,
                " {} of {sequential} | {} | {} |",
                sums.sequential_outcomes, sums.weak_outcomes, sums.forbidden_iterations
            )
            .expect("a string");
        }
        text.push('\n');
    }

    /// Returns everything as JSON.
    pub fn json(&self) -> Value {
        let test = |result: &TestResult| {
            let test = &result.test;
            let verdict = |outcome| match test.verdict(outcome) {
                Verdict::Sequential => "sequential",
                Verdict::Weak => "weak",
                Verdict::Forbidden => "forbidden",
            };
            let describe = |outcome| test.program.describe(outcome);
            let allowed = test.allowed.iter();
            let allowed: Vec<Value> = allowed
                .map(|outcome| json!({"outcome": describe(*outcome), "verdict": verdict(*outcome)}))
                .collect();
            let mut occurred = serde_json::Map::new();
            for (mode, histogram) in self.modes.iter().zip(&result.histograms) {
                let outcomes: Vec<Value> = histogram
                    .iter()
                    .map(|(outcome, count)| {
                        json!({"outcome": describe(*outcome), "verdict": verdict(*outcome), "count": count})
                    })
                    .collect();
                occurred.insert(mode.name().to_owned(), outcomes.into());
            }
            json!({
                "name": test.program.name,
                "family": test.program.family,
                "harts": test.program.harts.len(),
                "cycle_allowed": test.verdict_of_condition() != Verdict::Forbidden,
                "allowed": allowed,
                "occurred": occurred,
            })
        };
        let tests: Vec<Value> = self.tests.iter().map(test).collect();
        let mut totals = serde_json::Map::new();
        for (at, (mode, seconds)) in self.modes.iter().zip(&self.seconds).enumerate() {
            let sums = sums(self.tests.iter(), at);
            let total = json!({
                "iterations": sums.iterations,
                "weak": sums.weak_iterations,
                "forbidden": sums.forbidden_iterations,
                "seconds": seconds,
            });
            totals.insert(mode.name().to_owned(), total);
        }
        json!({"format": 1, "tests": tests, "totals": totals})
    }
}

fn sums<'a>(tests: impl Iterator<Item = &'a TestResult>, mode: usize) -> Sums {
    let mut sums = Sums::default();
    for result in tests {
        let Some(histogram) = result.histograms.get(mode) else { continue };
        let of = |verdict| result.test.of_verdict(histogram, verdict);
        let (weak, sequential) = (of(Verdict::Weak), of(Verdict::Sequential));
        sums.iterations += histogram.values().sum::<u64>();
        sums.weak_iterations += weak.values().sum::<u64>();
        sums.forbidden_iterations += of(Verdict::Forbidden).values().sum::<u64>();
        sums.sequential_outcomes += sequential.len();
        sums.weak_outcomes += weak.len();
    }
    sums
}
