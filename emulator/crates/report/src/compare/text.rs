//! A comparison as tables of text.

use std::fmt::Write;

use super::{Change, Comparison, ThreadTime, Totals, WaitChange, WaitingChanges};
use crate::margins::MARGIN_TITLE;
use crate::model::part_line;
use crate::printable::printable_lines;
use crate::widths::{fit, fit_name, wrap};

/// Changes below this share of both runs' cycles are left out of the text.
pub(super) const MIN_CHANGE_SHARE: f64 = 0.0005;

impl Comparison {
    /// Returns the comparison as text: tables of at most `limit` rows each.
    pub fn text(&self, limit: usize) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut out, limit);
        printable_lines(&out).into_owned()
    }

    fn write(&self, out: &mut String, limit: usize) -> std::fmt::Result {
        for part in &self.parts {
            writeln!(out, "{}\n", part_line(part))?;
        }
        for words in &self.sampled {
            writeln!(out, "{words}\n")?;
        }
        for (which, run) in ["before", "after"].into_iter().zip(&self.runs) {
            titled(out, which, &run.line())?;
        }
        if !self.differences.is_empty() {
            titled(out, "differ in", &self.differences.join(", "))?;
        }
        writeln!(out)?;
        if let Some((before, after)) = self.harts {
            let harts = |n| {
                if n == 1 { "one hart".into() } else { format!("{n} harts") }
            };
            let (before, after) = (harts(before), harts(after));
            writeln!(
                out,
                "All harts together: {before} before, {after} after (--hart N: one of them)\n"
            )?;
        }
        writeln!(out, "{:22}{:>12}{:>12}{:>10}", "", "before", "after", "change")?;
        for (name, value) in TOTALS {
            let (Some(before), Some(after)) = (value(&self.before), value(&self.after)) else {
                continue;
            };
            writeln!(out, "{name:22}{before:>12.3}{after:>12.3}{}", relative(before, after))?;
        }
        if let Some(margin) = self.margin {
            writeln!(
                out,
                "By chance, the change of the cycles that are not idle is off by up to {:.3} M (95 %).",
                margin / 1e6
            )?;
        }
        if let Some(speedup) = &self.speedup {
            speedup.write(out)?;
        }
        if let Some(waiting) = &self.waiting {
            waiting.write(out, limit)?;
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
        let noticed = rows.iter().filter(|row| row.delta().abs() > MIN_CHANGE_SHARE * total);
        // Names make room for margins.
        let sampled = !self.sampled.is_empty();
        let width = if sampled { 41 } else { 52 };
        writeln!(
            out,
            "\n{title:width$}{:>11}{:>11}{:>11}{}{:>10}  mostly",
            "M before",
            "M after",
            "M change",
            if sampled { format!("{MARGIN_TITLE:>11}") } else { String::new() },
            "change"
        )?;
        let mut written = 0;
        for row in noticed.take(limit) {
            let margin = match row.margin {
                Some(margin) => format!("{:>11.3}", margin / 1e6),
                None if sampled => format!("{:>11}", "?"),
                None => String::new(),
            };
            writeln!(
                out,
                "{:width$}{:>11.3}{:>11.3}{:>+11.3}{margin}{}  {}",
                fit_name(&row.title(), width - 1),
                row.before / 1e6,
                row.after / 1e6,
                row.delta() / 1e6,
                relative(row.before, row.after),
                if row.is_within_chance() { "within chance" } else { self.mostly(row) },
            )?;
            written += 1;
        }
        say_if_none(out, written)
    }

    /// The category that changed most in the direction of the whole.
    fn mostly(&self, row: &Change) -> &str {
        let sign = row.delta().signum();
        let stack = row.stack.iter().zip(&self.categories);
        let largest = stack.max_by(|(a, _), (b, _)| (sign * **a).total_cmp(&(sign * **b)));
        largest.map_or("", |(_, name)| name)
    }
}

impl Change {
    /// What a row of text is called: its process and its name.
    pub(super) fn title(&self) -> String {
        match self.name.as_str() {
            "" => self.process_title(),
            name => format!("{}: {name}", self.process),
        }
    }
}

/// Gets a value of a run's totals, if the run told it.
type TotalsValue = fn(&Totals) -> Option<f64>;

/// What the totals' lines are called, and their values: what a user waits first.
pub(crate) const TOTALS: [(&str, TotalsValue); 4] = [
    ("M cycles elapsed", |totals| Some(totals.elapsed?.cycles as f64 / 1e6)),
    ("ms elapsed", |totals| totals.elapsed?.ms),
    ("M cycles, not idle", |totals| Some(totals.busy() as f64 / 1e6)),
    ("M instructions", |totals| Some(totals.instructions as f64 / 1e6)),
];

/// Says below a table without rows why it has none.
pub(super) fn say_if_none(out: &mut String, written: usize) -> std::fmt::Result {
    if written > 0 {
        return Ok(());
    }
    let least = 100.0 * MIN_CHANGE_SHARE;
    writeln!(out, "(no change beyond {least:.2} % of the cycles)")
}

/// Writes what a run is called and which it is.
pub(super) fn titled(out: &mut String, which: &str, what: &str) -> std::fmt::Result {
    for (at, line) in wrap(what, 108).iter().enumerate() {
        writeln!(out, "{:<11}{line}", if at == 0 { which } else { "" })?;
    }
    Ok(())
}

impl WaitingChanges {
    fn write(&self, out: &mut String, limit: usize) -> std::fmt::Result {
        let least = MIN_CHANGE_SHARE * self.threads.first().map_or(0.0, |all| all.cycles());
        writeln!(
            out,
            "\n{:<36}{:>11}{:>11}{:>10}{:>12}{:>11}{:>10}",
            "Thread, waiting and ready",
            "M waiting",
            "after",
            "change",
            "M ready",
            "after",
            "change"
        )?;
        for row in self.threads.iter().take(limit) {
            let name = match row.name.as_str() {
                "" => row.process.clone(),
                name if name == row.process => name.to_owned(),
                name => format!("{}: {name}", row.process),
            };
            let cycles = |of: fn(&ThreadTime) -> u64| {
                [row.before, row.after].map(|time| time.as_ref().map_or(0, of) as f64)
            };
            write!(out, "{:<36}", fit(&name, 35))?;
            for (at, of) in [(|t: &ThreadTime| t.waiting) as fn(&ThreadTime) -> u64, |t| t.ready]
                .into_iter()
                .enumerate()
            {
                let [before, after] = cycles(of);
                write!(
                    out,
                    "{:>width$.3}{:>11.3}{}",
                    before / 1e6,
                    after / 1e6,
                    relative(before, after),
                    width = 11 + at
                )?;
            }
            writeln!(out)?;
        }
        if self.threads.len() > limit {
            writeln!(out, "and {} more", self.threads.len() - limit)?;
        }
        for (title, rows) in [("Waiting for", &self.reasons), ("Futex", &self.futexes)] {
            let noticed =
                |row: &&WaitChange| row.before.cycles.abs_diff(row.after.cycles) as f64 > least;
            let mut rows = rows.iter().filter(noticed).take(limit).peekable();
            if rows.peek().is_none() {
                continue;
            }
            writeln!(
                out,
                "\n{title:52}{:>11}{:>11}{:>11}{:>10}  times",
                "M before", "M after", "M change", "change"
            )?;
            for row in rows {
                let (before, after) = (row.before.cycles as f64, row.after.cycles as f64);
                writeln!(
                    out,
                    "{:52}{:>11.3}{:>11.3}{:>+11.3}{}  {} → {}",
                    fit(&format!("{}: {}", row.process, row.name), 51),
                    before / 1e6,
                    after / 1e6,
                    (after - before) / 1e6,
                    relative(before, after),
                    row.before.count,
                    row.after.count,
                )?;
            }
        }
        Ok(())
    }
}

impl super::ThreadChange {
    /// Cycles of both runs.
    fn cycles(&self) -> f64 {
        let times = [self.before, self.after].into_iter().flatten();
        times.map(|time| time.running as f64 + time.ready as f64 + time.waiting as f64).sum()
    }
}

/// The relative change, in ten columns; from eleven times on, how many times as much it is (`×12`).
pub(crate) fn relative(before: f64, after: f64) -> String {
    match (before > 0.0, after > 0.0) {
        (true, true) if after / before >= 11.0 => {
            format!("{:>10}", format!("×{:.0}", after / before))
        }
        (true, true) => format!("{:>+8.1} %", 100.0 * (after - before) / before),
        (false, true) => format!("{:>10}", "new"),
        (true, false) => format!("{:>10}", "gone"),
        (false, false) => format!("{:>10}", ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_ten_columns_however_large_it_is() {
        for (before, after, text) in [
            (2.0, 1.0, "   -50.0 %"),
            (1.0, 10.9, "  +990.0 %"),
            (592.0, 3_634_613.0, "     ×6140"),
            (0.0, 1.0, "       new"),
            (1.0, 0.0, "      gone"),
        ] {
            assert_eq!(relative(before, after), text);
        }
    }
}
