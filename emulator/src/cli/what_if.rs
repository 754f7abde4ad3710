//! The arguments of `tipsim what-if`.

use std::path::PathBuf;

use clap::Args;

/// Runs that are tried unless told.
const MOST: u32 = 5;

/// `tipsim what-if`.
#[derive(Debug, Args)]
pub(crate) struct WhatIfArgs {
    /// Output directory of a run with its trace.
    pub dir: PathBuf,
    /// The program, by its process's name [default: the one with most cycles].
    #[arg(long, value_name = "NAME")]
    pub process: Option<String>,
    /// Try this, and not what the cycle stacks suggest: a cause (mispredict, miss, flush, division, chain, select) and where, a function, an
    /// instruction of it (function+0x12) or a line (file.c:31); or sharing, lock or imbalance and which data. May be repeated.
    #[arg(long, value_name = "CAUSE@WHERE")]
    pub without: Vec<String>,
    /// Try so many at most.
    #[arg(long, default_value_t = MOST, value_parser = clap::value_parser!(u32).range(1..), value_name = "N")]
    pub most: u32,
    /// Folder with programs and debug files that the run's own folders lack, as of `tipsim report --debug-dir`. May be repeated.
    #[arg(long, value_name = "DIR")]
    pub debug_dir: Vec<PathBuf>,
    /// Directory of the built guest that the run had. Without it, the guest that was built last.
    #[arg(long, value_name = "DIR", env = "TIPSIM_GUEST")]
    pub guest_dir: Option<PathBuf>,
}

impl WhatIfArgs {
    /// Returns the arguments to try what the cycle stacks of the run in `dir` suggest.
    pub(crate) fn suggested(dir: PathBuf, guest_dir: Option<PathBuf>) -> Self {
        Self {
            dir,
            process: None,
            without: Vec::new(),
            most: MOST,
            debug_dir: Vec::new(),
            guest_dir,
        }
    }
}
