//! What a run's profilers found, kept beside its trace: a report can be built anew without the trace being replayed.
//!
//! `excerpts.zst`, in the same form, has what the trace does not: excerpts with all stages. They are of one format, whatever simulator
//! reads them, and lost with the trace.
//!
//! Both are as [`report::stored`] says, under a [`Stamp`]. Whatever does not fit (another simulator,
//! another trace, damage) is as if it were not there, since the trace has it all.

use std::fs::File;
use std::io::{Error, ErrorKind};

use critical_path::Excerpts;
use profile::Evaluation;
use report::stored::{self, Stored, StoredError};
use serde::Serialize;

use crate::failure::cannot_write;
use crate::host::sha256::sha256;
use crate::run_folder::{Results, TRACE, size_and_end};

/// Name of the file with the evaluation.
pub(crate) const EVALUATION: &str = "evaluation.zst";
/// Name of the file with the excerpts.
pub(crate) const EXCERPTS: &str = "excerpts.zst";
/// Version of the excerpts' format: whoever knows it can read them.
const EXCERPTS_FORMAT: &str = "excerpts 1";

/// What an evaluation was made by, and of.
#[derive(Debug, Serialize)]
struct Stamp {
    simulator: String,
    trace_bytes: u64,
    trace_end: Vec<u8>,
}

impl Stamp {
    /// Returns the stamp of this simulator and a run's trace.
    fn now(run: &Results) -> std::io::Result<Self> {
        Self::of(sha256(File::open(std::env::current_exe()?)?)?, run)
    }

    fn of(simulator: String, run: &Results) -> std::io::Result<Self> {
        let (trace_bytes, trace_end) = size_and_end(run.file(TRACE)?)?;
        Ok(Self { simulator, trace_bytes, trace_end })
    }
}

/// The name of a file of the report of the whole run, or of several harts that of one, in the run's folder.
pub(crate) fn name(hart: Option<u32>, file: &str) -> String {
    match hart {
        None => file.to_owned(),
        Some(hart) => format!("hart{hart}/{file}"),
    }
}

/// Keeps the evaluation of a run's whole trace, or of several harts that of one, with its report.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn keep(
    run: &Results,
    hart: Option<u32>,
    evaluation: &Evaluation,
) -> anyhow::Result<()> {
    Stamp::now(run)
        .and_then(|stamp| write(run, &name(hart, EVALUATION), &stamp, evaluation))
        .map_err(|e| cannot_write(&run.path().join(name(hart, EVALUATION)), e))
}

/// Stores a content under a stamp among a run's results.
fn write(run: &Results, name: &str, stamp: &Stamp, content: &impl Stored) -> Result<(), Error> {
    let stamp = packed(stamp)?;
    run.folder().replace(name, |file| stored::write(file, &stamp, content))
}

fn packed(stamp: &Stamp) -> std::io::Result<Vec<u8>> {
    rmp_serde::to_vec_named(stamp).map_err(Error::other)
}

/// Keeps the excerpts of a hart.
///
/// # Errors
/// If they cannot be written.
pub(crate) fn keep_excerpts(
    run: &Results,
    hart: Option<u32>,
    excerpts: &Excerpts,
) -> anyhow::Result<()> {
    Stamp::of(EXCERPTS_FORMAT.into(), run)
        .and_then(|stamp| write(run, &name(hart, EXCERPTS), &stamp, excerpts))
        .map_err(|e| cannot_write(&run.path().join(name(hart, EXCERPTS)), e))
}

/// The excerpts of a hart that were kept; none if there are none.
///
/// # Errors
/// If there are some, but damaged or of another trace: nothing else has them.
pub(crate) fn kept_excerpts(
    run: &Results,
    hart: Option<u32>,
) -> Result<Option<Excerpts>, StoredError> {
    let stamp = Stamp::of(EXCERPTS_FORMAT.into(), run)?;
    match read(run, &name(hart, EXCERPTS), &stamp) {
        Err(StoredError::Io(error)) if error.kind() == ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// The evaluation that was kept, of one of several harts if `hart` says which.
///
/// # Errors
/// If this simulator has not made it of the run's trace, or it is damaged.
pub(crate) fn kept(run: &Results, hart: Option<u32>) -> Result<Evaluation, StoredError> {
    read(run, &name(hart, EVALUATION), &Stamp::now(run)?)
}

/// Returns what was kept under such a stamp.
fn read<T: Stored>(run: &Results, name: &str, stamp: &Stamp) -> Result<T, StoredError> {
    stored::read(run.file(name)?, &packed(stamp)?)
}
