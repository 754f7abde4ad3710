//! The section as text and as a part of the page.

use std::fmt::{self, Write};

use maud::{Markup, html};
use truth::UnitTotals;

use super::{NotJudged, PreciseProfile, PreciseReport, PreciseRow};
use crate::columns::LevelError;
use crate::model::Common;
use crate::options::Options;
use crate::section::Section;
use crate::widths::{count, fit, fit_end, fixed, percent};

/// Instructions of a profile that the text shows.
const SHOWN: usize = 6;

impl PreciseProfile {
    fn period(&self) -> String {
        match self.is_frequency {
            true => format!("{} Hz", count(self.period as f64)),
            false => count(self.period as f64),
        }
    }

    /// Returns `12.3 / 4.5`: the error, and the error of as many random samples, in %.
    fn pair(error: Option<LevelError>) -> String {
        error.map_or("-".to_owned(), |error| {
            format!("{} / {}", fixed(error.error), fixed(error.sampling))
        })
    }

    fn skid(&self) -> String {
        self.skid.map_or("-".to_owned(), |skid| format!("{:.2}", skid.mean))
    }

    fn ratio(&self) -> String {
        format!("{:.3}", self.estimate / self.truth)
    }

    /// Returns sentences on latencies, if they are known.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(latency) = self.latency {
            let (sampled, truth) = (latency.sampled, latency.truth);
            notes.push(format!("mean latency {sampled:.1} cycles, truly {truth:.1}"));
        }
        notes
    }

    /// Returns true and sampled shares, by class, slot and data source.
    fn biases(&self) -> Vec<String> {
        let share = |name: String, truth: f64, sampled: f64| {
            format!("{name} {} / {}", fixed(truth), fixed(sampled))
        };
        let classes = self.classes.iter().map(|bias| {
            let class = format!("{:?}", bias.class).to_lowercase();
            share(class, bias.truth, bias.sampled)
        });
        let slots =
            self.slots.iter().map(|bias| share(bias.slot.to_string(), bias.truth, bias.sampled));
        let sources =
            self.sources.iter().map(|bias| share(bias.source.clone(), bias.truth, bias.sampled));
        let lines: [(&str, Vec<String>); 3] = [
            ("class", classes.collect()),
            ("decode slot", slots.collect()),
            ("data source", sources.collect()),
        ];
        let filled = lines.iter().filter(|(_, shares)| !shares.is_empty());
        filled.map(|(by, shares)| format!("by {by}: {}", shares.join(", "))).collect()
    }

    /// Errors at all levels.
    fn errors(&self) -> [String; 5] {
        [Some(self.instruction), Some(self.block), Some(self.function), self.line, self.object]
            .map(Self::pair)
    }
}

impl PreciseRow {
    /// True and sampled mean latency.
    fn latencies(&self) -> [String; 2] {
        let text = |cycles: f64| format!("{cycles:.1}");
        match self.latency {
            Some(latency) => [text(latency.truth), text(latency.sampled)],
            None => ["-"; 2].map(str::to_owned),
        }
    }
}

/// The identity of a unit's overflows.
fn overflows(unit: &UnitTotals) -> String {
    let [overflows, samples, collisions, filtered, dropped, under_way] = [
        unit.overflows,
        unit.samples,
        unit.collisions,
        unit.filtered,
        unit.dropped,
        unit.under_way(),
    ]
    .map(|n| count(n as f64));
    format!(
        "hart {}: {overflows} overflows = {samples} recorded + {collisions} collisions + {filtered} filtered + {dropped} dropped + \
         {under_way} under way",
        unit.hart
    )
}

impl PreciseReport {
    fn trusted(&self) -> Vec<String> {
        let sentence = |trust: &super::Trust| {
            let profile = &self.profiles[trust.profile];
            format!("{}: {} ({})", trust.metric.name(), profile.event, profile.file)
        };
        self.trust.iter().map(sentence).collect()
    }

    fn not_judged(&self) -> Vec<String> {
        let sentence =
            |event: &NotJudged| format!("{} ({}): {}", event.event, event.file, event.why);
        self.not_judged.iter().map(sentence).collect()
    }

    /// Lists under headings, those that are not empty.
    fn lists(&self) -> Vec<(&'static str, Vec<String>)> {
        let sampled = self.units.iter().filter(|unit| unit.overflows > 0);
        let lists = [
            ("Closest to the truth at instructions", self.trusted()),
            ("Not judged", self.not_judged()),
            ("Instruction sampling (pdis) since reset", sampled.map(overflows).collect()),
        ];
        lists.into_iter().filter(|(_, list)| !list.is_empty()).collect()
    }

    fn write_profiles(&self, out: &mut String) -> fmt::Result {
        if self.profiles.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "{:<30}{:<17}{:>12}{:>10}{:>9}{:>9}{:>11}{:>7}{:>7}{:>7}",
            "Event",
            "file",
            "period",
            "samples",
            "exact",
            "lost",
            "throttled",
            "wrong",
            "skid",
            "count"
        )?;
        for own in &self.profiles {
            writeln!(
                out,
                "{:<30}{:<17}{:>12}{:>10}{:>9}{:>9}{:>11}{:>7}{:>7}{:>7}",
                fit(&own.event, 29),
                fit(&own.file, 16),
                own.period(),
                count(own.samples as f64),
                count(own.exact as f64),
                count(own.lost as f64),
                count(own.throttled as f64),
                fixed(own.wrong),
                own.skid(),
                own.ratio(),
            )?;
        }
        writeln!(
            out,
            "{:<30}{:<17}{:>14}{:>14}{:>14}{:>14}{:>14}",
            "Error by", "", "instruction", "block", "function", "line", "object"
        )?;
        for own in &self.profiles {
            write!(out, "{:<30}{:<17}", fit(&own.event, 29), fit(&own.file, 16))?;
            for error in own.errors() {
                write!(out, "{error:>14}")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

impl Section for PreciseReport {
    fn write(&self, _: &Common, _: &Options, out: &mut String) -> fmt::Result {
        writeln!(
            out,
            "\nPrecise sampling: perf's samples of each event in the guest, judged by its true counts. Error / what so many random\n\
             samples have, in %; wrong: at instructions that never had the event; skid in instructions; count: sampled over true"
        )?;
        self.write_profiles(out)?;
        for (heading, list) in self.lists() {
            writeln!(out, "{heading}:")?;
            for line in list {
                writeln!(out, "  {}", fit(&line, 117))?;
            }
        }
        for own in &self.profiles {
            let title = format!("{}, {}: {}", own.event, own.file, own.metric.name());
            let latencies = own.latency.is_some();
            let head = match latencies {
                true => ["truth", "sampled", "cycles", "sampled"],
                false => ["", "", "truth", "sampled"],
            };
            let [a, b, c, d] = head;
            let line = format!("{:<82}{a:>9}{b:>9}{c:>9}{d:>9}", fit(&title, 81));
            writeln!(out, "\n{}", line.trim_end())?;
            let notes = own.notes();
            if !notes.is_empty() {
                writeln!(out, "  {}", fit(&notes.join(", "), 117))?;
            }
            for line in own.biases() {
                writeln!(out, "  {}", fit(&line, 117))?;
            }
            for row in own.instructions.iter().take(SHOWN) {
                let shares = [percent(row.truth), percent(row.sampled)];
                let cells = match latencies {
                    true => [shares, row.latencies()].concat(),
                    false => shares.to_vec(),
                };
                let text = 82 - 42 + 9 * (4 - cells.len());
                write!(
                    out,
                    "  {:<40}{:<text$}",
                    fit_end(&row.name, 39),
                    fit(&row.text.replace('\t', " "), text - 1),
                )?;
                for cell in cells {
                    write!(out, "{cell:>9}")?;
                }
                writeln!(out)?;
            }
        }
        Ok(())
    }

    fn page(&self, _: &Common) -> Markup {
        html! {
            section id="precise" {
                h2 { "Precise sampling" }
                p {
                    "perf's samples of each event in the guest, judged by its true counts: error / what so many random samples have, in \
                     %. Wrong: at instructions that never had the event. Skid in instructions. Count: sampled over true."
                }
                table {
                    thead {
                        tr {
                            @for title in [
                                "event", "file", "compared with", "period", "samples", "exact", "lost", "throttled",
                                "instruction", "block", "function", "line", "object", "wrong", "skid", "count",
                            ] {
                                th { (title) }
                            }
                        }
                    }
                    tbody {
                        @for own in &self.profiles {
                            tr {
                                td { (own.event) }
                                td { (own.file) }
                                td { (own.metric.name()) }
                                td { (own.period()) }
                                @for number in [own.samples, own.exact, own.lost, own.throttled] {
                                    td { (count(number as f64)) }
                                }
                                @for error in own.errors() {
                                    td { (error) }
                                }
                                td { (fixed(own.wrong)) }
                                td { (own.skid()) }
                                td { (own.ratio()) }
                            }
                        }
                    }
                }
                @for (heading, list) in self.lists() {
                    p { (heading) ":" }
                    ul {
                        @for line in list {
                            li { (line) }
                        }
                    }
                }
                @for own in &self.profiles {
                    (own.details())
                }
            }
        }
    }
}

impl PreciseProfile {
    /// Returns the profile's instructions, which open.
    fn details(&self) -> Markup {
        html! {
            details {
                summary { (self.event) ", " (self.file) }
                p { ([self.notes(), self.biases()].concat().join("; ")) }
                table {
                    thead {
                        tr {
                            @for title in ["instruction", "", "truth", "sampled", "cycles", "sampled"] {
                                th { (title) }
                            }
                        }
                    }
                    tbody {
                        @for part in &self.instructions {
                            tr {
                                td { (part.name) }
                                td { (part.text) }
                                td { (percent(part.truth)) }
                                td { (percent(part.sampled)) }
                                @for latency in part.latencies() {
                                    td { (latency) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
