//! The section as text and as a part of the page.

use std::fmt::{self, Write};

use super::{PreciseProfile, PreciseReport};
use crate::columns::LevelError;
use crate::html::escape;
use crate::model::Report;
use crate::text::fit::{count, fit, fit_end, fixed, percent};

/// Instructions of a profile that the text shows.
const SHOWN: usize = 6;

impl PreciseProfile {
    fn period(&self) -> String {
        match self.is_frequency {
            true => format!("{} Hz", count(self.period as f64)),
            false => count(self.period as f64),
        }
    }

    /// `12.3 / 4.5`: the error, and what so many random samples would have.
    fn pair(error: Option<LevelError>) -> String {
        error.map_or("-".to_owned(), |error| {
            format!("{} / {}", fixed(error.error), fixed(error.sampling))
        })
    }

    fn skid(&self) -> String {
        self.skid
            .map_or("-".to_owned(), |skid| format!("{:.2}", skid.mean))
    }

    fn ratio(&self) -> String {
        format!("{:.3}", self.estimate / self.truth)
    }

    /// What was not sampled, and latencies, if there is anything to say.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.exact > 0 {
            notes.push(format!("exact by the kernel: {}", count(self.exact as f64)));
        }
        if self.lost > 0 {
            notes.push(format!("lost: {}", count(self.lost as f64)));
        }
        if self.throttled > 0 {
            notes.push(format!("throttled {} times", count(self.throttled as f64)));
        }
        if let Some(latency) = self.latency {
            let (sampled, truth) = (latency.sampled, latency.truth);
            notes.push(format!(
                "mean latency {sampled:.1} cycles, truly {truth:.1}"
            ));
        }
        notes
    }

    fn classes(&self) -> String {
        let own = self.classes.iter().map(|bias| {
            let class = format!("{:?}", bias.class).to_lowercase();
            format!("{class} {} / {}", fixed(bias.truth), fixed(bias.sampled))
        });
        own.collect::<Vec<_>>().join(", ")
    }
}

impl PreciseReport {
    fn trusted(&self) -> Vec<String> {
        let sentence = |trust: &super::Trust| {
            let profile = &self.profiles[trust.profile];
            format!(
                "{}: {} ({})",
                trust.metric.name(),
                profile.event,
                profile.file
            )
        };
        self.trust.iter().map(sentence).collect()
    }
}

impl Report {
    pub(crate) fn write_precise(&self, out: &mut String) -> fmt::Result {
        let Some(precise) = &self.precise else {
            return Ok(());
        };
        writeln!(
            out,
            "\nPrecise sampling: perf's samples of each event in the guest, judged by its true counts. Error / what so many random\n\
             samples have, in %; wrong: at instructions that never had the event; skid in instructions; count: sampled over true"
        )?;
        writeln!(
            out,
            "{:<28}{:<13}{:>10}{:>9}{:>14}{:>14}{:>14}{:>6}{:>6}{:>6}",
            "Event",
            "file",
            "period",
            "samples",
            "instruction",
            "function",
            "line",
            "wrong",
            "skid",
            "count"
        )?;
        for own in &precise.profiles {
            writeln!(
                out,
                "{:<28}{:<13}{:>10}{:>9}{:>14}{:>14}{:>14}{:>6}{:>6}{:>6}",
                fit(&own.event, 27),
                fit(&own.file, 12),
                own.period(),
                count(own.samples as f64),
                PreciseProfile::pair(Some(own.instruction)),
                PreciseProfile::pair(Some(own.function)),
                PreciseProfile::pair(own.line),
                fixed(own.wrong),
                own.skid(),
                own.ratio(),
            )?;
        }
        let trusted = precise.trusted();
        if !trusted.is_empty() {
            writeln!(out, "Closest to the truth at instructions:")?;
        }
        for sentence in trusted {
            writeln!(out, "  {}", fit(&sentence, 117))?;
        }
        for own in &precise.profiles {
            let title = format!("{}, {}: {}", own.event, own.file, own.metric.name());
            writeln!(
                out,
                "\n{:<100}{:>9}{:>10}",
                fit(&title, 99),
                "truth",
                "sampled"
            )?;
            let notes = own.notes();
            if !notes.is_empty() {
                writeln!(out, "  {}", fit(&notes.join(", "), 117))?;
            }
            writeln!(out, "  by class: {}", fit(&own.classes(), 107))?;
            for row in own.instructions.iter().take(SHOWN) {
                writeln!(
                    out,
                    "  {:<48}{:<50}{:>9}{:>10}",
                    fit_end(&row.name, 47),
                    fit(&row.text.replace('\t', " "), 49),
                    percent(row.truth),
                    percent(row.sampled)
                )?;
            }
        }
        Ok(())
    }

    /// The same as tables of the page; empty if nothing was judged.
    pub(crate) fn precise_html(&self) -> String {
        let Some(precise) = &self.precise else {
            return String::new();
        };
        let mut out = "<section id=\"precise\"><h2>Precise sampling</h2><p>perf's samples of each event in the guest, judged by \
            its true counts: error / what so many random samples have, in %. Wrong: at instructions that never had the event. Skid in \
            instructions. Count: sampled over true.</p><table><thead><tr><th>event</th><th>file</th><th>compared with</th>\
            <th>period</th><th>samples</th><th>exact</th><th>lost</th><th>throttled</th><th>instruction</th><th>function</th>\
            <th>line</th><th>object</th><th>wrong</th><th>skid</th><th>count</th></tr></thead><tbody>"
            .to_owned();
        for own in &precise.profiles {
            out += &row(&[
                escape(&own.event),
                escape(&own.file),
                own.metric.name().to_owned(),
                own.period(),
                count(own.samples as f64),
                count(own.exact as f64),
                count(own.lost as f64),
                count(own.throttled as f64),
                PreciseProfile::pair(Some(own.instruction)),
                PreciseProfile::pair(Some(own.function)),
                PreciseProfile::pair(own.line),
                PreciseProfile::pair(own.object),
                fixed(own.wrong),
                own.skid(),
                own.ratio(),
            ]);
        }
        out += "</tbody></table>";
        let trusted: Vec<String> = precise.trusted().iter().map(|s| escape(s)).collect();
        if !trusted.is_empty() {
            out += &format!(
                "<p>Closest to the truth at instructions:</p><ul><li>{}</li></ul>",
                trusted.join("</li><li>")
            );
        }
        for own in &precise.profiles {
            out += &format!(
                "<details><summary>{}, {}</summary><p>{}</p><table><thead><tr><th>instruction</th><th></th><th>truth</th>\
                 <th>sampled</th></tr></thead><tbody>",
                escape(&own.event),
                escape(&own.file),
                escape(&[own.notes(), vec![own.classes()]].concat().join(", ")),
            );
            for part in &own.instructions {
                out += &row(&[
                    escape(&part.name),
                    escape(&part.text),
                    percent(part.truth),
                    percent(part.sampled),
                ]);
            }
            out += "</tbody></table></details>";
        }
        out + "</section>"
    }
}

fn row(cells: &[String]) -> String {
    format!("<tr><td>{}</td></tr>", cells.join("</td><td>"))
}
