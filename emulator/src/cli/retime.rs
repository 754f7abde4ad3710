//! Arguments of `tipsim retime`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

/// `tipsim retime`.
#[derive(Debug, Args)]
pub(crate) struct RetimeArgs {
    /// Folder of a sampled run that stored its units (`run.sampling.store = true`).
    pub dir: PathBuf,
    /// Core: a preset or a file [default: that of the run]. Several cores are compared in a table (--sweep).
    #[arg(long, value_name = "PRESET")]
    pub core: Vec<String>,
    /// Set one parameter of each core, e.g. `rob.entries=128` (tipsim core show). L1 caches and TLBs that are smaller than those of the run begin units with more in them
    /// than they would have, so that the core seems faster than it is: with an L1 of 4 KiB instead of 32, programs of some million instructions were off by 5 %.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Compare cores by their cycles: each --core with each of the values, and with each combination if several keys are given. The results are a table and sweep.json.
    #[arg(long, value_name = "KEY=VALUE,...")]
    pub sweep: Vec<String>,
    /// Cores that are timed at once when several are compared [default: the host's processors]. One core is timed on one thread with `--jobs 1`. The results do not depend on it.
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Folder of the results [default: DIR with the core's name and what was set behind it; DIR-sweep]. Results of an earlier retime that are there are kept as DIR.old, and
    /// those of a run are refused.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Find cycles alone: no profilers, and no report for `tipsim report`. Several cores have no more than that.
    #[arg(long)]
    pub cycles_only: bool,
    /// Print run.json of the results, or sweep.json, instead of a summary.
    #[arg(long)]
    pub json: bool,
}

impl RetimeArgs {
    /// Returns whether several cores are compared.
    pub(crate) fn is_sweep(&self) -> bool {
        self.core.len() > 1 || !self.sweep.is_empty()
    }
}
