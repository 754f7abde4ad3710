//! The folder of a run's results, and its life cycle.
//!
//! ```text
//!  DIR.partial/   a run that goes on works here, under a lock (`.lock`): `tipsim.json` says "running"
//!      |  the run ends, or is interrupted: everything is written, `tipsim.json` lists it
//!      v  rename, both folders at once
//!  DIR/           results that belong together
//!      |  the next run into DIR has ended
//!      v  rename
//!  DIR.old/       the run before
//! ```
//!
//! - If DIR has other files, too, or a shell was called there, DIR stays, and the results are moved into it one by one (`move_in.rs`).
//!   A folder in which others made something that is named as a result is refused before the guest boots. Of a folder that makes room
//!   (`DIR.old`, what a killed run left), only what its `tipsim.json` lists is removed; if anything else is in it, it keeps it under a
//!   number (`DIR.old.1`).
//! - What the guest made lies in `files/`, which is the folder that it shared with the host. The host writes no result there, and reads
//!   what is there as from an enemy: no links, regular files only, of bounded size.
//! - A reader ([`Results`]) refuses a folder whose last run goes on or was killed, and files that are not those that
//!   the run wrote: `tipsim.json` has the SHA-256 of each.

pub(crate) mod evaluation;
mod folder;
pub(crate) mod guest_counts;
pub(crate) mod guest_profiles;
mod marker;
mod move_in;
mod reader;
mod remove_tree;
pub(crate) mod report_files;
mod room;
pub(crate) mod run_json;
pub(crate) mod sampled_events;
pub(crate) mod trace_metadata;
pub(crate) mod truth;
mod work;

pub(crate) use folder::Folder;
pub(crate) use marker::size_and_end;
pub(crate) use reader::Results;
pub(crate) use remove_tree::remove_tree;
pub(crate) use work::Work;

/// What the guest made, in the folder of a run.
pub(crate) const GUEST_FILES: &str = "files";
/// The trace of a run.
pub(crate) const TRACE: &str = "trace.tip";
/// The folder of the runs that `tipsim what-if` made.
pub(crate) const TRIALS: &str = "what-if";
/// The spec that `tipsim profile` made of its arguments.
pub(crate) const PROFILE_SPEC: &str = "profile.toml";
/// The run spec that `tipsim exec --out` made of its arguments.
pub(crate) const EXEC_SPEC: &str = "exec.toml";
/// What was found of each unit of a region that was sampled.
pub(crate) const UNITS: &str = "units.json";
/// Units that were stored, for `tipsim retime`.
pub(crate) const STORED_UNITS: &str = "stored-units.bin";
/// What several cores take for the stored units of a run.
pub(crate) const SWEEP: &str = "sweep.json";
/// What a survey found: phases and intervals, and the files of SimPoint's tools.
pub(crate) const PHASES: &str = "phases.json";
/// Basic-block vectors of a survey's intervals.
pub(crate) const PHASES_VECTORS: &str = "phases.bb";
/// Intervals that stand for the phases of a survey.
pub(crate) const PHASES_POINTS: &str = "phases.simpts";
/// Shares of the phases of a survey.
pub(crate) const PHASES_WEIGHTS: &str = "phases.weights";
/// How a run went.
pub(crate) const RUN: &str = "run.json";
/// What the guest's console printed.
pub(crate) const CONSOLE: &str = "console.log";
/// Bytes of a result that is read at once; the largest are pages and reports, of some hundred megabytes.
pub(crate) const MAX_RESULT_BYTES: u64 = 4 << 30;
