//! Arguments of `tipsim schemes`.

use std::path::PathBuf;

use clap::Args;

use super::phases::parse_interval;

/// `tipsim schemes`.
#[derive(Debug, Args)]
pub(crate) struct SchemesArgs {
    /// Folder of a run whose units follow each other without a gap, so that all of its region was timed.
    pub dir: PathBuf,
    /// Folder of `tipsim phases` of the same program, for schemes that choose units by what is executed. Units have to be multiples of its interval.
    #[arg(long, value_name = "DIR")]
    pub phases: Option<PathBuf>,
    /// Instructions of a unit: numbers, or ones with k, M or G.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values = ["50k", "1M"], value_parser = parse_interval)]
    pub unit: Vec<u64>,
    /// Parts of the region that are in units, in per cent.
    #[arg(long, value_name = "PERCENT,…", value_delimiter = ',', default_values = ["0.1", "0.3", "1", "2.5", "10"], value_parser = parse_budget)]
    pub budget: Vec<f64>,
    /// Also so many units, whatever part of the region they are.
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(2..=1_000_000))]
    pub units: Vec<u64>,
    /// Seeds that are tried.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub seeds: u64,
    /// Seeds that are tried of schemes that look for phases or ranks, each of which takes a while.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub choosing_seeds: u64,
    /// Print everything as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Parses a part of a region in per cent.
fn parse_budget(text: &str) -> Result<f64, String> {
    let budget = text.parse().ok().filter(|budget| (0.001..=100.0).contains(budget));
    budget.ok_or_else(|| "expected 0.001 to 100 (per cent)".to_owned())
}
