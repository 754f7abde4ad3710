//! The section of the page.

use super::FutexRow;
use super::text::{pairs, reasons};
use crate::html::escape;
use crate::model::Report;
use crate::text::fit::{count, percent};

/// Each in a line of a cell.
fn lines(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| escape(word)).collect();
    words.join("<br>")
}

fn places(futex: &FutexRow) -> Vec<String> {
    let places = futex.places.iter().map(|place| place.label.clone());
    places.collect()
}

impl Report {
    /// Tables of threads and futexes; empty if nobody waited.
    pub(crate) fn waiting_html(&self) -> String {
        let Some(waiting) = &self.waiting else {
            return String::new();
        };
        let shown = self.shown_waiting(None);
        let row = |cells: &[String]| format!("<tr><td>{}</td></tr>", cells.join("</td><td>"));
        let threads: String = { shown.iter() }
            .flat_map(|process| waiting.listed(*process))
            .map(|thread| {
                row(&[
                    escape(&self.processes[thread.process].name),
                    escape(&thread.title()),
                    count(thread.cycles as f64),
                    percent(thread.running.share),
                    percent(thread.ready.share),
                    count(thread.ready.longest as f64),
                    percent(thread.waiting()),
                    percent(thread.unknown),
                    lines(&reasons(thread)),
                ])
            })
            .collect();
        if threads.is_empty() {
            return String::new();
        }
        let mut out = format!(
            "<section id=\"waiting\"><h2>Waiting</h2><p>Threads run, are ready (new, woken, or out of turn) without a hart, or wait; \
             shares of their time in the region.</p><div class=\"scroll\"><table><thead><tr><th>process</th><th>thread</th>\
             <th>cycles</th><th>running %</th><th>ready %</th><th>longest ready</th><th>waiting %</th><th>not told %</th>\
             <th>for what, and woken by whom</th></tr></thead><tbody>{threads}</tbody></table></div>"
        );
        let futexes: String = { waiting.futexes.iter() }
            .filter(|futex| shown.contains(&futex.process))
            .map(|futex| {
                row(&[
                    escape(&futex.title()),
                    escape(&futex.operations.join(", ")),
                    count(futex.time.count as f64),
                    count(futex.time.cycles as f64),
                    percent(futex.time.share),
                    count(futex.time.longest as f64),
                    lines(&pairs(futex, usize::MAX)),
                    lines(&places(futex)),
                ])
            })
            .collect();
        if !futexes.is_empty() {
            out += &format!(
                "<div class=\"scroll\"><table><thead><tr><th>futex</th><th>operation</th><th>waits</th><th>cycles</th>\
                 <th>% of the program's time</th><th>longest</th><th>who waits, woken by whom</th><th>where</th></tr></thead>\
                 <tbody>{futexes}</tbody></table></div>"
            );
        }
        out + "</section>"
    }
}
