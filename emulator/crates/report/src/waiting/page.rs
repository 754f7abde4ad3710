//! The section of the page.

use maud::{Markup, html};

use super::text::{operations, pairs, places, reasons};
use super::{FutexRow, ThreadWaiting, WaitingReport, shown_processes};
use crate::markup::lines;
use crate::model::Common;
use crate::widths::{count, percent};

/// Returns a table's first row: what its rows are called by, their numbers, and words that may take several lines.
fn header(names: &[&str], numbers: &[&str], words: &[&str]) -> Markup {
    html! {
        tr {
            @for (class, titles) in [("name", names), ("number", numbers), ("words", words)] {
                @for title in titles {
                    th class=(class) { (title) }
                }
            }
        }
    }
}

/// Returns a row of such a table.
fn row(names: [&str; 2], numbers: &[String], words: &[Vec<String>]) -> Markup {
    html! {
        tr {
            @for name in names {
                td class="name" { (name) }
            }
            @for number in numbers {
                td class="number" { (number) }
            }
            @for texts in words {
                td class="words" { (lines(texts)) }
            }
        }
    }
}

/// Returns tables of threads and futexes; empty if nobody waited.
pub(super) fn page(waiting: &WaitingReport, common: &Common) -> Markup {
    let shown = shown_processes(common, None);
    let threads: Vec<&ThreadWaiting> =
        shown.iter().flat_map(|process| waiting.listed(*process)).collect();
    if threads.is_empty() {
        return html! {};
    }
    let own = |futex: &&FutexRow| shown.contains(&futex.process);
    let futexes: Vec<&FutexRow> = waiting.futexes.iter().filter(own).collect();
    html! {
        section id="waiting" {
            h2 { "Waiting" }
            p {
                "Threads run, are ready (new, woken, or out of turn) without a hart, or wait; shares of their time in the region."
            }
            div class="scroll" {
                table {
                    thead {
                        (header(
                            &["process", "thread"],
                            &["cycles", "running %", "ready %", "longest ready", "waiting %", "not told %"],
                            &["for what, and woken by whom"],
                        ))
                    }
                    tbody {
                        @for thread in threads {
                            (thread_row(thread, &common.processes[thread.process].name))
                        }
                    }
                }
            }
            @if !futexes.is_empty() {
                div class="scroll" {
                    table {
                        thead {
                            (header(
                                &["futex", "operation"],
                                &["waits", "cycles", "% of the program's time", "longest"],
                                &["who waits, woken by whom", "where"],
                            ))
                        }
                        tbody {
                            @for futex in futexes {
                                (futex_row(futex))
                            }
                        }
                    }
                }
            }
            @if let Some(offer) = waiting.offer_of_callers(common) {
                p class="muted" { (offer) }
            }
        }
    }
}

fn thread_row(thread: &ThreadWaiting, process: &str) -> Markup {
    row(
        [process, &thread.title()],
        &[
            count(thread.cycles as f64),
            percent(thread.running.share),
            percent(thread.ready.share),
            count(thread.ready.longest as f64),
            percent(thread.waiting()),
            percent(thread.unknown),
        ],
        &[reasons(thread)],
    )
}

fn futex_row(futex: &FutexRow) -> Markup {
    row(
        [&futex.title(), &operations(futex)],
        &[
            count(futex.time.count as f64),
            count(futex.time.cycles as f64),
            percent(futex.time.share),
            count(futex.time.longest as f64),
        ],
        &[pairs(futex, usize::MAX), places(futex, usize::MAX)],
    )
}
