//! `tipsim report`, and the report's files of a run.

use std::path::{Path, PathBuf};

use profile::Evaluation;

use crate::cli::ReportArgs;
use crate::guest::GuestFiles;

/// Writes the report's files.
pub fn write(
    _evaluation: &Evaluation,
    _files: &GuestFiles,
    _symbols: &[PathBuf],
    _out: &Path,
    _run: serde_json::Value,
) -> anyhow::Result<()> {
    Ok(())
}

/// `tipsim report`.
pub fn report(_args: &ReportArgs) -> anyhow::Result<()> {
    anyhow::bail!("not yet")
}
