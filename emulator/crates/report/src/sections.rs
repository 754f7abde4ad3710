//! The sections of the report that stand by themselves: one row each. To add one, write its file and a row here.

use std::fmt::{self, Write as _};

use serde_json::{Value, json};

use super::explain::{ReportPath, Rule};
use super::model::Report;
use super::sensitivity;
use super::text::Options;
use super::what_if::WhatIf;

/// A section, as the forms of the report (report.json, text, page) ask for it.
pub(super) struct Section {
    /// The section's name in report.json.
    pub key: &'static str,
    /// The section's place in the text.
    pub place: TextPosition,
    /// Writes the section's lines of the text; none if there is nothing to say.
    pub text: fn(&Report, &mut String, &Options) -> fmt::Result,
    /// Returns the section's part of the page; empty if there is nothing to say.
    pub html: fn(&Report) -> String,
    /// Returns the section's value in report.json, if it is worked out of the rest; else [`Report`] has a field of this
    /// name, which `build.rs` fills.
    pub json: Option<fn(&Report) -> Value>,
    /// Tells where a number of the section comes from, by the keys below `key`.
    pub rule: fn(&ReportPath<'_>, &[&str]) -> Rule,
}

/// A place in the text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TextPosition {
    /// Before all but the totals; on the page, too.
    First,
    /// After the sections of [`Self::First`]; on the page after the code.
    Code,
    /// After the processes.
    Head,
    /// After all that is said of single processes.
    Tail,
}

/// All sections, in the order of text and page.
pub(super) const SECTIONS: [Section; 12] = [
    Section {
        key: "verdict",
        place: TextPosition::First,
        text: Report::write_verdict,
        html: Report::verdict_html,
        json: None,
        rule: |path, below| path.verdict(below),
    },
    Section {
        key: "interpreted",
        place: TextPosition::Code,
        text: Report::write_interpreted,
        html: Report::interpreted_html,
        json: None,
        rule: |path, below| path.interpreted(below),
    },
    Section {
        key: "loops",
        place: TextPosition::Code,
        text: Report::write_loops,
        html: Report::loops_html,
        json: None,
        rule: |path, below| path.loops(below),
    },
    Section {
        key: "what_if",
        place: TextPosition::Code,
        text: |report, out, _| write!(out, "{}", WhatIf::of(&report.meta).unwrap_or_default()),
        html: Report::what_if_html,
        json: Some(|report| report.meta["what_if"].clone()),
        rule: |path, below| path.what_if(below),
    },
    Section {
        key: "threads",
        place: TextPosition::Head,
        text: Report::write_threads,
        html: Report::threads_html,
        json: None,
        rule: |path, below| path.thread(below),
    },
    Section {
        key: "waiting",
        place: TextPosition::Head,
        text: Report::write_waiting,
        html: Report::waiting_html,
        json: None,
        rule: |path, below| path.waiting(below),
    },
    Section {
        key: "harts",
        place: TextPosition::Head,
        text: |report, out, _| report.write_harts(out),
        html: Report::harts_html,
        json: None,
        rule: |path, below| path.hart(below),
    },
    Section {
        key: "sensitivity",
        place: TextPosition::Tail,
        text: |report, out, _| sensitivity::write(out, report),
        html: |report| sensitivity::charts(&report.sensitivity()),
        json: Some(|report| json!(report.sensitivity())),
        rule: |path, below| path.sensitivity(below),
    },
    Section {
        key: "in_guest",
        place: TextPosition::Tail,
        text: |report, out, _| report.write_in_guest(out),
        html: Report::in_guest_html,
        json: None,
        rule: |path, below| path.in_guest(below),
    },
    Section {
        key: "precise",
        place: TextPosition::Tail,
        text: |report, out, _| report.write_precise(out),
        html: Report::precise_html,
        json: None,
        rule: |path, below| path.precise(below),
    },
    Section {
        key: "contended",
        place: TextPosition::Tail,
        text: |report, out, _| report.write_contended(out),
        html: Report::contended_html,
        json: None,
        rule: |path, below| path.contended(below),
    },
    Section {
        key: "counters",
        place: TextPosition::Tail,
        text: |report, out, _| report.write_counters(out),
        html: Report::counters_html,
        json: None,
        rule: |path, below| path.counters(below),
    },
];

impl Report {
    /// Writes the sections of a place.
    pub(super) fn write_sections(
        &self,
        out: &mut String,
        place: TextPosition,
        options: &Options,
    ) -> fmt::Result {
        SECTIONS
            .iter()
            .filter(|section| section.place == place)
            .try_for_each(|section| (section.text)(self, out, options))
    }
}
