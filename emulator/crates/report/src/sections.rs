//! The sections of the report that stand by themselves. To add one, write its file, a field of [`Sections`], a row of `SECTIONS`, and its line in `build.rs`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::contended::{self, ContendedReport};
use crate::counters::{self, CounterReport};
use crate::elapsed_profile::{self, ElapsedProfile};
use crate::harts::{self, HartRow};
use crate::in_guest::{self, InGuest};
use crate::interpreted::{self, InterpretedProcess};
use crate::loops::{self, LoopsReport};
use crate::precise::{self, PreciseReport};
use crate::rule::{ReportPath, Rule};
use crate::section::{Section, TextPosition};
use crate::sensitivity::{self, Sensitivity};
use crate::speedup::{self, SpeedupStack};
use crate::tea::TeaReport;
use crate::thread_path::{self, ThreadPathReport};
use crate::threads::{self, ThreadRow};
use crate::topdown::TopDownReport;
use crate::units::{self, UnitReport};
use crate::verdict::{self, Verdict};
use crate::waiting::{self, WaitingReport};
use crate::what_if::{self, RecordedWhatIf};

/// The content of all sections. The name of each field is the section's name in report.json.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Sections {
    /// Verdicts on what takes the cycles of the commands in focus.
    pub verdict: Vec<Verdict>,
    /// Processes that an interpreter executes, with the program's own functions and lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interpreted: Vec<InterpretedProcess>,
    /// Units of a sampled region, over the region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub units: Option<UnitReport>,
    /// Loops, if excerpts of the execution were kept and show any.
    pub loops: Option<LoopsReport>,
    /// Trials of `tipsim what-if`, if the run's description has any.
    #[serde(skip_serializing_if = "RecordedWhatIf::is_absent")]
    pub what_if: RecordedWhatIf,
    /// Threads by process and share of cycles; threads of a process that have the same name are one row.
    pub threads: Vec<ThreadRow>,
    /// What threads waited for, if the guest's kernel told.
    pub waiting: Option<WaitingReport>,
    /// The critical path over threads, if the guest's kernel told, of several harts or several threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_path: Option<ThreadPathReport>,
    /// What the time of all harts is spent on, if the report is of several and their region was not sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speedup: Option<SpeedupStack>,
    /// Where the elapsed time of several harts goes, if the guest's kernel told who runs and their region was not sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_profile: Option<ElapsedProfile>,
    /// Harts by number, if the report is of several.
    pub harts: Vec<HartRow>,
    /// Top-down: where the commit slots went, if that was counted. The text has it after what is said of single processes.
    pub top_down: Option<TopDownReport>,
    /// Time by event, if that was counted. The text has it beside the other numbers of each process.
    pub tea: Option<TeaReport>,
    /// Error against sampling rate, of the processes in focus and of all together; empty if no profiler sampled at several periods.
    pub sensitivity: Vec<Sensitivity>,
    /// Profiles that perf sampled in the guest, beside the host's model of the same rule.
    pub in_guest: Vec<InGuest>,
    /// Samples of each event by perf in the guest, beside the event's true counts, if those were collected.
    pub precise: Option<PreciseReport>,
    /// Lines that harts wait for each other for, if that was collected and there are any.
    pub contended: Option<ContendedReport>,
    /// Counters beside the profile, if anything was counted.
    pub counters: Option<CounterReport>,
}

/// A section, as the forms of the report (report.json, text, page) ask for it.
pub(crate) struct SectionRow {
    /// The section's name in report.json.
    pub key: &'static str,
    /// The section's place in the text and on the page.
    pub place: TextPosition,
    /// Returns the section's content.
    pub content: fn(&Sections) -> &dyn Section,
    /// Returns where a number of the section comes from, by the keys below `key`.
    pub rule: fn(&ReportPath<'_>, &[&str]) -> Rule,
}

/// All sections that text and page show at a place of their own, in the order of both.
pub(crate) const SECTIONS: [SectionRow; 16] = [
    SectionRow {
        key: "verdict",
        place: TextPosition::First,
        content: |sections| &sections.verdict,
        rule: verdict::rules::rule_of,
    },
    SectionRow {
        key: "interpreted",
        place: TextPosition::Code,
        content: |sections| &sections.interpreted,
        rule: interpreted::rules::rule_of,
    },
    SectionRow {
        key: "loops",
        place: TextPosition::Code,
        content: |sections| &sections.loops,
        rule: loops::rules::rule_of,
    },
    SectionRow {
        key: "what_if",
        place: TextPosition::Code,
        content: |sections| &sections.what_if,
        rule: what_if::rules::rule_of,
    },
    SectionRow {
        key: "threads",
        place: TextPosition::Head,
        content: |sections| &sections.threads,
        rule: threads::rules::rule_of,
    },
    SectionRow {
        key: "waiting",
        place: TextPosition::Head,
        content: |sections| &sections.waiting,
        rule: waiting::rules::rule_of,
    },
    SectionRow {
        key: "thread_path",
        place: TextPosition::Head,
        content: |sections| &sections.thread_path,
        rule: thread_path::rules::rule_of,
    },
    SectionRow {
        key: "speedup",
        place: TextPosition::Head,
        content: |sections| &sections.speedup,
        rule: speedup::rules::rule_of,
    },
    SectionRow {
        key: "elapsed_profile",
        place: TextPosition::Head,
        content: |sections| &sections.elapsed_profile,
        rule: elapsed_profile::rules::rule_of,
    },
    SectionRow {
        key: "harts",
        place: TextPosition::Head,
        content: |sections| &sections.harts,
        rule: harts::rules::rule_of,
    },
    SectionRow {
        key: "units",
        place: TextPosition::Head,
        content: |sections| &sections.units,
        rule: units::rules::rule_of,
    },
    SectionRow {
        key: "sensitivity",
        place: TextPosition::Tail,
        content: |sections| &sections.sensitivity,
        rule: sensitivity::rules::rule_of,
    },
    SectionRow {
        key: "in_guest",
        place: TextPosition::Tail,
        content: |sections| &sections.in_guest,
        rule: in_guest::rules::rule_of,
    },
    SectionRow {
        key: "precise",
        place: TextPosition::Tail,
        content: |sections| &sections.precise,
        rule: precise::rules::rule_of,
    },
    SectionRow {
        key: "contended",
        place: TextPosition::Tail,
        content: |sections| &sections.contended,
        rule: contended::rules::rule_of,
    },
    SectionRow {
        key: "counters",
        place: TextPosition::Tail,
        content: |sections| &sections.counters,
        rule: counters::rules::rule_of,
    },
];

impl Sections {
    /// Returns the sections of a place, in their order.
    pub(crate) fn at(&self, place: TextPosition) -> impl Iterator<Item = &dyn Section> {
        let rows = SECTIONS.iter().filter(move |row| row.place == place);
        rows.map(|row| (row.content)(self))
    }
}
