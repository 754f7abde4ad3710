//! An evaluation as people read it: errors of every profiler at three levels, where the time went, and where each profiler says it went. There are
//! three forms: text, JSON, and one HTML page.
//!
//! ```no_run
//! # fn example(evaluation: &profile::Evaluation) {
//! use report::{Options, Report, ReportInputs};
//! use symbols::{SymbolFiles, Symbolizer};
//!
//! let symbolizer = Symbolizer::new(SymbolFiles::default());
//! let disassemble = |raw: u32, _pc: u64| format!("{raw:08x}");
//! let meta = serde_json::json!({"name": "demo"});
//! let report = Report::build(ReportInputs::new(evaluation, &symbolizer, &disassemble, meta));
//! print!("{}", report.text(&Options::default()));
//! # }
//! ```
//!
//! Levels: an *instruction* is a (process, address); a *basic block* a (process, address of its
//! first instruction); a *function* a (process, symbol). Kernel code is shared by all processes but
//! counted per process. Every profiler's time is scaled to the Oracle's total of the same process
//! before the two are compared, so that an error is about where the time goes inside the process.

mod blocks;
mod build;
mod columns;
mod commands;
mod compare;
mod contended;
mod counters;
mod disagreements;
mod elapsed;
mod elapsed_profile;
mod explain;
mod flame;
mod format;
mod gather;
mod guest;
mod harts;
mod html;
mod in_guest;
mod inclusive;
mod inputs;
mod interpreted;
mod json;
mod listing;
mod loops;
mod margins;
mod markup;
mod model;
mod options;
mod over_time;
mod parts;
mod places;
mod precise;
mod printable;
mod process_sums;
mod report;
mod rows;
mod rule;
mod run_description;
mod section;
mod sections;
mod sensitivity;
mod speedup;
pub mod stored;
mod tables;
mod tea;
mod text;
mod thread_path;
mod threads;
mod topdown;
mod units;
mod verdict;
mod waiting;
mod what_if;
mod widths;

pub use columns::{Column, LevelError, Levels};
pub use compare::{
    Change, Compared, ComparedRow, Comparison, LostSpeedup, Run, RunTitle, Speedup, ThreadChange,
    ThreadTime, WaitChange, WaitTime, WaitingChanges,
};
pub use contended::{ContendedHart, ContendedInstruction, ContendedLine, ContendedReport};
pub use counters::{
    CountedEvents, CounterCheck, CounterInputs, CounterReport, EventCounts, GuestCount,
    TopDownPair, counted,
};
pub use disagreements::{Disagreement, Named};
pub use elapsed::Elapsed;
pub use elapsed_profile::{ElapsedFunction, ElapsedProfile, ElapsedThread};
pub use explain::{Answer, Explanation, explain};
pub use flame::{Flame, FlameNode, FrameKind};
pub use format::{FLAME_FORMAT, REPORT_FORMAT, UnknownFormat, check_format};
pub use harts::{HartRow, HartWindow};
pub use in_guest::{InGuest, InGuestError, InGuestRow};
pub use inclusive::{CalleeRow, InclusiveRow};
pub use inputs::{ReportInputs, TruthInputs};
pub use interpreted::{InterpretedFunction, InterpretedLine, InterpretedProcess};
pub use json::{ErrorsFile, FlameFile, ReportFile};
pub use loops::{CauseCycles, ChainLink, LeastCycles, LoopRow, LoopsReport};
pub use model::{Common, Totals, part_line, sampled_line, sampled_notice};
pub use options::Options;
pub use over_time::{OverTime, TimedItem};
pub use precise::{
    ClassBias, Latency, NotJudged, PreciseProfile, PreciseReport, PreciseRow, Skid, SlotBias,
    SourceBias, Trust,
};
pub use printable::{is_obeyed, printable, printable_json, printable_lines};
pub use report::Report;
pub use run_description::RunDescription;
pub use sections::Sections;
pub use sensitivity::{Curve, CurvePoint, Sensitivity};
pub use speedup::{MemoryTraffic, SpeedupRow, SpeedupStack};
pub use tables::{
    CommandRow, FunctionRow, InstructionRow, Listing, ListingRow, ModuleRow, ProcessReport,
    SourceLine, StaleSource,
};
pub use tea::{EventStack, TeaColumn, TeaInstruction, TeaProcess, TeaReport};
pub use thread_path::{
    PathEdgeRow, PathFunction, PathKindRow, PathSegmentRow, PathState, PathThread, ThreadPathReport,
};
pub use threads::ThreadRow;
pub use topdown::{TopDownReport, TopDownRow, TopDownWindow};
pub use units::{
    PhaseRun, UnitInputs, UnitPhase, UnitReport, UnitStretch, UnitSums, most_frequent_phase,
    phase_character,
};
pub use verdict::{Cause, Place, Verdict};
pub use waiting::{
    CallerRow, FutexRow, PairRow, PlaceRow, ProgramWaiting, ThreadWaiting, Time, WaitRow,
    WaitingReport, WakerRow,
};
pub use what_if::{RecordedWhatIf, WhatIf};
pub use widths::fit_name as short_name;

#[cfg(test)]
pub(crate) mod tests;
