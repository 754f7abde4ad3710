//! The section of the page.

use maud::{Markup, html};

use super::ThreadPathReport;
use crate::model::Common;
use crate::widths::{count, fit_name, percent};

/// Rows of a table of the page.
const SHOWN: usize = 30;

/// Returns a table; columns from `words` on are numbers.
fn table(words: usize, titles: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Markup {
    let class = |column: usize| if column < words { "name" } else { "number" };
    html! {
        div class="scroll" {
            table {
                thead {
                    tr {
                        @for (column, title) in titles.iter().enumerate() {
                            th class=(class(column)) { (title) }
                        }
                    }
                }
                tbody {
                    @for row in rows.take(SHOWN) {
                        tr {
                            @for (column, cell) in row.iter().enumerate() {
                                td class=(class(column)) { (cell) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns tables of what the path consists of.
pub(super) fn page(path: &ThreadPathReport, common: &Common) -> Markup {
    let kinds = path
        .kinds
        .iter()
        .map(|row| vec![row.title(), count(row.cycles as f64), percent(row.share)]);
    let threads = path.threads.iter().map(|row| {
        let process = row.process.map_or("", |process| &common.processes[process].name);
        vec![
            process.to_owned(),
            row.thread.clone(),
            count(row.segments as f64),
            count(row.cycles as f64),
            percent(row.share),
            percent(row.running),
            percent(row.ready),
            percent(row.waiting),
        ]
    });
    let functions = path.functions.iter().map(|row| {
        let name = fit_name(&row.function, 80);
        vec![row.thread.clone(), name, count(row.cycles), percent(row.share)]
    });
    let edges = path.edges.iter().map(|row| {
        vec![
            row.waker.clone(),
            row.waiter.clone(),
            row.what(),
            count(row.count as f64),
            count(row.waited as f64),
        ]
    });
    let thread_titles =
        ["process", "thread", "segments", "cycles", "%", "running %", "ready %", "waiting %"];
    html! {
        section id="thread-path" aria-labelledby="thread-path-title" {
            h2 id="thread-path-title" { "Critical path over threads" }
            p {
                "What the end of the region waited for: from the program's last thread back to its wakeup, on in the thread that woke it, and so \
                 on. Its cycles are those of the region. What is not on it can become faster, and the program does not."
            }
            (table(1, &["what the threads on it do", "cycles", "%"], kinds))
            (table(2, &thread_titles, threads))
            @if path.stretch > 0 {
                (table(2, &["thread", "function", "cycles", "%"], functions))
            }
            p class="muted" { (path.precision()) }
            @if !path.edges.is_empty() {
                (table(3, &["from", "to", "waited for", "wakeups", "cycles waited"], edges))
            }
        }
    }
}
