//! More than two runs as a page of tables.

use maud::{Markup, html};

use super::{part_notices, policy, style};
use crate::compare::{BY_CHANCE, Compared, ComparedRow, TOTALS, relative, scaling};
use crate::markup::{document, filled, words};
use crate::widths::fit_name;

const PAGE: &str = include_str!("several.html");
/// Rows of a table.
const MAX_ROWS: usize = 200;
/// Letters of a name; the whole name is its tooltip.
const NAME: usize = 60;

impl Compared {
    /// The tables as an HTML page.
    pub fn html(&self) -> String {
        let page = filled(PAGE, |name| match name {
            "part" => part_notices(&self.parts, &self.sampled),
            "style" => style(),
            "policy" => policy(&[]),
            "runs" => self.runs_table(),
            "totals" => {
                let rows = TOTALS.iter().filter_map(|(name, value)| {
                    let values = self.totals.iter().map(value);
                    let values = values.collect::<Option<_>>()?;
                    Some(((*name).to_owned(), String::new(), values, &[][..]))
                });
                table("", self.runs.len(), rows)
            }
            "speedup" => scaling::page(&self.speedups),
            "processes" => self.cycles_table("Process, M cycles", &self.processes),
            "functions" => self.cycles_table("Function, M cycles", &self.functions),
            other => unreachable!("several.html asks for {other:?}"),
        });
        document(page)
    }

    fn runs_table(&self) -> Markup {
        html! {
            dl id="runs" {
                @for (at, run) in self.runs.iter().enumerate() {
                    dt { "run " (at + 1) }
                    dd {
                        (run.line())
                        @if !self.differences[at].is_empty() {
                            br;
                            "differs in " (self.differences[at].join(", "))
                        }
                    }
                }
            }
        }
    }

    fn cycles_table(&self, title: &str, rows: &[ComparedRow]) -> Markup {
        let rows = self.noticed(rows).take(MAX_ROWS).map(|row| {
            let cycles = row.cycles.iter().map(|cycles| cycles / 1e6).collect();
            (row.title(), row.place.clone(), cycles, &*row.within_chance)
        });
        table(title, self.runs.len(), rows)
    }
}

/// A row of a table: its name, its place, its values by run, and the runs whose change may be there by chance.
type ChangesRow<'a> = (String, String, Vec<f64>, &'a [usize]);

/// Returns a table with a value of each run in a row, and its change from the first run's.
fn table<'a>(title: &str, runs: usize, rows: impl Iterator<Item = ChangesRow<'a>>) -> Markup {
    html! {
        div class="scroll changes" {
            table {
                thead {
                    tr {
                        th scope="col" { (title) }
                        th scope="col" class="number" { "run 1" }
                        @for run in 2..=runs {
                            th scope="col" class="number" { "run " (run) }
                            th scope="col" class="number" { "change" }
                        }
                    }
                }
                tbody {
                    @for (name, place, values, within_chance) in rows {
                        tr {
                            td class="wide" title=([&*name, &*place].join("\n")) { (fit_name(&name, NAME)) }
                            td class="number" { (format_args!("{:.3}", values[0])) }
                            @for (run, value) in values.iter().enumerate().skip(1) {
                                td class="number" { (format_args!("{value:.3}")) }
                                td class="number" {
                                    @if within_chance.contains(&run) {
                                        span title="It may be there by chance (95 %)." { (BY_CHANCE) }
                                    }
                                    (words(relative(values[0], *value).trim()))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
