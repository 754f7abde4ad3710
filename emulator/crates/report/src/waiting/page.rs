//! The section of the page.

use super::text::{operations, pairs, places, reasons};
use super::{WaitingReport, shown_processes};
use crate::markup::escape;
use crate::model::Common;
use crate::widths::{count, percent};

/// Each in a line of a cell.
fn lines(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| escape(word)).collect();
    words.join("<br>")
}

/// A row: what is called so, its numbers, and words that may take several lines.
/// The cells are `td` or, of a header, `th`.
fn row(cell: &str, names: &[String], numbers: &[String], words: &[String]) -> String {
    let cells = |class: &str, texts: &[String]| -> String {
        texts.iter().map(|text| format!("<{cell} class=\"{class}\">{text}</{cell}>")).collect()
    };
    format!(
        "<tr>{}{}{}</tr>",
        cells("name", names),
        cells("number", numbers),
        cells("words", words)
    )
}

/// The row above such rows.
fn header(names: &[&str], numbers: &[&str], words: &[&str]) -> String {
    let owned = |cells: &[&str]| -> Vec<String> { cells.iter().map(|cell| escape(cell)).collect() };
    row("th", &owned(names), &owned(numbers), &owned(words))
}

/// Returns tables of threads and futexes; empty if nobody waited.
pub(super) fn page(waiting: &WaitingReport, common: &Common) -> String {
    let shown = shown_processes(common, None);
    let threads: String = shown
        .iter()
        .flat_map(|process| waiting.listed(*process))
        .map(|thread| {
            row(
                "td",
                &[escape(&common.processes[thread.process].name), escape(&thread.title())],
                &[
                    count(thread.cycles as f64),
                    percent(thread.running.share),
                    percent(thread.ready.share),
                    count(thread.ready.longest as f64),
                    percent(thread.waiting()),
                    percent(thread.unknown),
                ],
                &[lines(&reasons(thread))],
            )
        })
        .collect();
    if threads.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "<section id=\"waiting\"><h2>Waiting</h2><p>Threads run, are ready (new, woken, or out of turn) without a hart, or wait; \
         shares of their time in the region.</p><div class=\"scroll\"><table><thead>{}</thead><tbody>{threads}</tbody></table></div>",
        header(
            &["process", "thread"],
            &["cycles", "running %", "ready %", "longest ready", "waiting %", "not told %"],
            &["for what, and woken by whom"],
        )
    );
    let futexes: String = waiting
        .futexes
        .iter()
        .filter(|futex| shown.contains(&futex.process))
        .map(|futex| {
            row(
                "td",
                &[escape(&futex.title()), escape(&operations(futex))],
                &[
                    count(futex.time.count as f64),
                    count(futex.time.cycles as f64),
                    percent(futex.time.share),
                    count(futex.time.longest as f64),
                ],
                &[lines(&pairs(futex, usize::MAX)), lines(&places(futex, usize::MAX))],
            )
        })
        .collect();
    if !futexes.is_empty() {
        out += &format!(
            "<div class=\"scroll\"><table><thead>{}</thead><tbody>{futexes}</tbody></table></div>",
            header(
                &["futex", "operation"],
                &["waits", "cycles", "% of the program's time", "longest"],
                &["who waits, woken by whom", "where"],
            )
        );
    }
    if let Some(offer) = waiting.offer_of_callers(common) {
        out += &format!("<p class=\"muted\">{}</p>", escape(offer));
    }
    out + "</section>"
}
