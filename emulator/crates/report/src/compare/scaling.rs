//! Runs on more and more harts, each beside the one on one hart: how the speed-up grows, and what takes the rest.

use std::fmt::{self, Write};

use maud::{Markup, html};

use super::speedup::{LostSpeedup, Speedup};
use crate::speedup::{meaning, title};

/// Runs in a block of the text.
const RUNS_IN_BLOCK: usize = 8;
/// Least part of a hart that a component has to take or to give in a run for a row of its own.
const MIN_SHOWN: f64 = 0.000_5;

/// A row: its title, what it means, and its value in each run.
type Row = (&'static str, &'static str, Vec<f64>);

/// Writes the speed-up of each run, and what takes the rest, in harts.
pub(super) fn write(speedups: &[Speedup], out: &mut String) -> fmt::Result {
    for runs in speedups.chunks(RUNS_IN_BLOCK) {
        write!(out, "\n{:<44}", "Speed-up, and what is lost to, in harts")?;
        for run in runs {
            write!(out, "{:>9}", harts(run))?;
        }
        writeln!(out)?;
        for (title, _, values) in rows(runs) {
            write!(out, "{title:<44}")?;
            for value in values {
                write!(out, "{value:>9.3}")?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

/// Returns the section of the page.
pub(crate) fn page(speedups: &[Speedup]) -> Markup {
    html! {
        @if !speedups.is_empty() {
            section aria-labelledby="speedup-title" {
            h2 id="speedup-title" { "Speed-up" }
            p class="muted" {
                "How many times as fast each run is as run 1, which is on one hart, and what each component takes of the number of harts: together they are that number."
            }
            div class="scroll changes" {
                table {
                    thead {
                        tr {
                            th scope="col" { "Harts" }
                            @for run in speedups {
                                th scope="col" class="number" { (harts(run)) }
                            }
                            th scope="col" { "what it is" }
                        }
                    }
                    tbody {
                        @for (title, meaning, values) in rows(speedups) {
                            tr {
                                td { (title) }
                                @for value in values {
                                    td class="number" { (format_args!("{value:.3}")) }
                                }
                                td { (meaning) }
                            }
                        }
                    }
                }
            }
            }
        }
    }
}

fn harts(run: &Speedup) -> String {
    format!("{} harts", run.harts)
}

/// Returns the speed-up of each run, and what each component takes of it.
fn rows(runs: &[Speedup]) -> Vec<Row> {
    let speedups = runs.iter().map(|run| run.speedup).collect();
    let mut rows = vec![("speed-up", "run 1's cycles over this run's", speedups)];
    let components = runs.first().map_or(&[][..], |run| &run.components);
    for (at, LostSpeedup { component, .. }) in components.iter().enumerate() {
        let lost: Vec<f64> = runs.iter().map(|run| run.components[at].lost).collect();
        if lost.iter().any(|lost| lost.abs() >= MIN_SHOWN) {
            rows.push((title(*component), meaning(*component), lost));
        }
    }
    let whole = runs.iter().map(|run| run.speedup + run.lost).collect();
    rows.push(("all", "the number of harts", whole));
    rows
}
