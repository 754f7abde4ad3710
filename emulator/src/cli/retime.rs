//! Arguments of `tipsim retime`.

use std::path::PathBuf;

use clap::Args;

/// `tipsim retime`.
#[derive(Debug, Args)]
pub struct RetimeArgs {
    /// Folder of a sampled run that stored its units (`run.sampling.store = true`).
    pub dir: PathBuf,
    /// Core: a preset or a file [default: that of the run].
    #[arg(long, value_name = "PRESET")]
    pub core: Option<String>,
    /// Set one parameter of the core, e.g. `rob.entries=128` (tipsim core show). Caches and TLBs smaller than those of the run begin units with more in them than
    /// they would have.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Folder of the results [default: DIR with the core's name and what was set behind it]. Results of an earlier retime that are there are kept as DIR.old, and those
    /// of a run are refused.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Find cycles alone: no profilers, and no report for `tipsim report`.
    #[arg(long)]
    pub cycles_only: bool,
    /// Print run.json of the results instead of a summary.
    #[arg(long)]
    pub json: bool,
}
