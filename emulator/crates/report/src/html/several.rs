//! More than two runs as a page of tables.

use std::fmt::Write;

use super::{STYLE, filled, part_notice, policy};
use crate::compare::{Compared, ComparedRow, TOTALS, relative};
use crate::markup::escape;
use crate::widths::fit_name;

const PAGE: &str = include_str!("several.html");
/// Rows of a table.
const MAX_ROWS: usize = 200;
/// Letters of a name; the whole name is its tooltip.
const NAME: usize = 60;

impl Compared {
    /// The tables as an HTML page.
    pub fn html(&self) -> String {
        filled(PAGE, |name, out| match name {
            "part" => out.extend(self.parts.iter().map(|part| part_notice(part))),
            "style" => out.extend(STYLE),
            "policy" => out.push_str(&policy(&[])),
            "runs" => self.runs_table(out),
            "totals" => {
                let rows = TOTALS.iter().filter_map(|(name, value)| {
                    let values = self.totals.iter().map(value);
                    Some(((*name).to_owned(), String::new(), values.collect::<Option<_>>()?))
                });
                table(out, "", self.runs.len(), rows);
            }
            "processes" => self.cycles_table(out, "Process, M cycles", &self.processes),
            "functions" => self.cycles_table(out, "Function, M cycles", &self.functions),
            other => unreachable!("several.html asks for {other:?}"),
        })
    }

    fn runs_table(&self, out: &mut String) {
        *out += "<dl id=\"runs\">";
        for (at, run) in self.runs.iter().enumerate() {
            let _ = write!(out, "<dt>run {}</dt><dd>{}", at + 1, escape(&run.line()));
            if !self.differences[at].is_empty() {
                let differs = escape(&self.differences[at].join(", "));
                let _ = write!(out, "<br>differs in {differs}");
            }
            *out += "</dd>";
        }
        *out += "</dl>";
    }

    fn cycles_table(&self, out: &mut String, title: &str, rows: &[ComparedRow]) {
        let rows = self.noticed(rows).take(MAX_ROWS).map(|row| {
            let cycles = row.cycles.iter().map(|cycles| cycles / 1e6).collect();
            (row.title(), row.place.clone(), cycles)
        });
        table(out, title, self.runs.len(), rows);
    }
}

/// Writes a table with a value of each run in a row, and its change from the first run's.
fn table(
    out: &mut String,
    title: &str,
    runs: usize,
    rows: impl Iterator<Item = (String, String, Vec<f64>)>,
) {
    let _ = write!(
        out,
        "<div class=\"scroll changes\"><table><thead><tr><th scope=\"col\">{title}</th><th scope=\"col\" class=\"number\">run 1</th>"
    );
    for run in 2..=runs {
        let _ = write!(
            out,
            "<th scope=\"col\" class=\"number\">run {run}</th><th scope=\"col\" class=\"number\">change</th>"
        );
    }
    *out += "</tr></thead><tbody>";
    for (name, place, values) in rows {
        let _ = write!(
            out,
            "<tr><td class=\"wide\" title=\"{}\">{}</td><td class=\"number\">{:.3}</td>",
            escape(&[&*name, &*place].join("\n")),
            escape(&fit_name(&name, NAME)),
            values[0]
        );
        for value in &values[1..] {
            let change = relative(values[0], *value);
            let _ = write!(
                out,
                "<td class=\"number\">{value:.3}</td><td class=\"number\">{}</td>",
                change.trim().replace(" %", "\u{a0}%")
            );
        }
        *out += "</tr>";
    }
    *out += "</tbody></table></div>";
}
