//! `tipsim trace`.

use crate::cli::TraceCommand;

/// Runs one of the trace commands.
pub fn trace(_command: &TraceCommand) -> anyhow::Result<()> {
    anyhow::bail!("not yet")
}
