//! A comparison as tables of text.

use std::fmt::Write;

use super::{Change, Comparison, Totals};
use crate::model::part_line;
use crate::printable_lines;
use crate::text::fit::fit;

/// Changes below this share of both runs' cycles are left out of the text.
const NOTICEABLE: f64 = 0.0005;

impl Comparison {
    /// As tables of at most `limit` rows each.
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

/// The relative change, in ten columns.
fn relative(before: f64, after: f64) -> String {
    match (before > 0.0, after > 0.0) {
        (true, true) => format!("{:>+8.1} %", 100.0 * (after - before) / before),
        (false, true) => format!("{:>10}", "new"),
        (true, false) => format!("{:>10}", "gone"),
        (false, false) => format!("{:>10}", ""),
    }
}
