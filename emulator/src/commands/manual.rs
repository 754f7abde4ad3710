//! `tipsim completions` and `tipsim man`: what is derived from the command line's own description.

use std::fs;
use std::io::Write;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::cannot_write;
use crate::host::terminal::written;

/// Prints the completions of a shell.
pub(crate) fn completions(shell: Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tipsim", &mut script);
    let mut out = std::io::stdout().lock();
    written(None, out.write_all(&script).and_then(|()| out.flush()))
}

/// Writes a manual page per command into `folder`.
pub(crate) fn pages(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).map_err(|e| cannot_write(folder, e))?;
    clap_mangen::generate_to(Cli::command(), folder).map_err(|e| cannot_write(folder, e))?;
    Ok(())
}
