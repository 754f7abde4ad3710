//! What a run's profilers found, kept beside its trace: a report can be built anew without the trace being replayed.
//!
//! `excerpts.zst`, in the same form, has what the trace does not: excerpts with all stages. They are of one format, whatever simulator
//! reads them, and lost with the trace.
//!
//! Both are as [`report::stored`] says, under a [`Stamp`]. Whatever does not fit (another simulator,
//! another trace, damage) is as if it were not there, since the trace has it all.

use std::fs::File;
use std::io::{Error, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use critical_path::Excerpts;
use profile::Evaluation;
use report::stored::{self, Stored};
use serde::Serialize;

use crate::failure::{bad_input, cannot_write, whole};
use crate::sha256::sha256;

const NAME: &str = "evaluation.zst";
const EXCERPTS: &str = "excerpts.zst";
/// Who can read such excerpts.
const EXCERPTS_FORMAT: &str = "excerpts 1";
const TRACE: &str = "trace.tip";
/// Bytes of a trace's end that tell it from another of equal length: they have the checksum of its index.
const END: u64 = 24;

/// What an evaluation was made by, and of.
#[derive(Debug, Serialize)]
struct Stamp {
    simulator: String,
    trace_bytes: u64,
    trace_end: Vec<u8>,
}

impl Stamp {
    /// Of this simulator and the trace in `dir`.
    fn now(dir: &Path) -> std::io::Result<Self> {
        Self::of(sha256(File::open(std::env::current_exe()?)?)?, dir)
    }

    fn of(simulator: String, dir: &Path) -> std::io::Result<Self> {
        let mut trace = File::open(dir.join(TRACE))?;
        let trace_bytes = trace.metadata()?.len();
        trace.seek(SeekFrom::Start(trace_bytes.saturating_sub(END)))?;
        let mut trace_end = Vec::new();
        trace.take(END).read_to_end(&mut trace_end)?;
        Ok(Self {
            simulator,
            trace_bytes,
            trace_end,
        })
    }
}

/// Where a report is: that of the whole run, and of several harts that of one.
pub fn folder(out: &Path, hart: Option<u32>) -> PathBuf {
    match hart {
        None => out.to_owned(),
        Some(hart) => out.join(format!("hart{hart}")),
    }
}

/// Keeps the evaluation of the whole trace in `dir`, or of several harts that of one, with its report.
///
/// # Errors
/// If it cannot be written.
pub fn keep(dir: &Path, hart: Option<u32>, evaluation: &Evaluation) -> anyhow::Result<()> {
    let stamp = Stamp::now(dir).map_err(|e| bad_input(&dir.join(TRACE), e))?;
    let path = folder(dir, hart).join(NAME);
    whole(&path, |file| {
        stored::write(file, &packed(&stamp)?, evaluation)
    })
    .map_err(|e| cannot_write(&path, e))
}

fn packed(stamp: &Stamp) -> std::io::Result<Vec<u8>> {
    rmp_serde::to_vec_named(stamp).map_err(Error::other)
}

/// Keeps the excerpts of a hart.
///
/// # Errors
/// If they cannot be written.
pub fn keep_excerpts(dir: &Path, hart: Option<u32>, excerpts: &Excerpts) -> anyhow::Result<()> {
    let stamp =
        Stamp::of(EXCERPTS_FORMAT.into(), dir).map_err(|e| bad_input(&dir.join(TRACE), e))?;
    let path = folder(dir, hart).join(EXCERPTS);
    whole(&path, |file| {
        stored::write(file, &packed(&stamp)?, excerpts)
    })
    .map_err(|e| cannot_write(&path, e))
}

/// The excerpts of a hart that were kept, if they are of the trace in `dir`.
pub fn kept_excerpts(dir: &Path, hart: Option<u32>) -> Option<Excerpts> {
    let stamp = Stamp::of(EXCERPTS_FORMAT.into(), dir).ok()?;
    read(&folder(dir, hart).join(EXCERPTS), &stamp)
}

/// The evaluation that was kept, of one of several harts if `hart` says which, if this simulator made it of the trace in `dir`.
pub fn kept(dir: &Path, hart: Option<u32>) -> Option<Evaluation> {
    read(&folder(dir, hart).join(NAME), &Stamp::now(dir).ok()?)
}

/// What was kept under such a stamp.
fn read<T: Stored>(path: &Path, stamp: &Stamp) -> Option<T> {
    stored::read(File::open(path).ok()?, &packed(stamp).ok()?).ok()
}
