//! Arguments of `tipsim phases`.

use std::path::PathBuf;

use clap::Args;

/// `tipsim phases`.
#[derive(Debug, Args)]
pub(crate) struct PhasesArgs {
    /// Run spec (TOML), with one hart and no network. Its region of interest is surveyed: what run.region = "marked" says, or the command.
    pub spec: PathBuf,
    /// Set one key of the spec, e.g. `guest.memory="2G"`.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Folder of the results.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Instructions of an interval, at least 1000: a number, or one with k, M or G.
    #[arg(long, value_name = "N", default_value = "1M", value_parser = parse_interval)]
    pub interval: u64,
    /// Most phases, up to 1000.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = parse_most_phases)]
    pub most: usize,
    /// Numbers that basic-block vectors are projected to, up to 100.
    #[arg(long, value_name = "N", default_value_t = phases::DIMENSIONS, value_parser = parse_dimensions)]
    pub dimensions: usize,
    /// Number that the first centres of phases follow from.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Print everything as JSON.
    #[arg(long)]
    pub json: bool,
    /// Directory of the built guest, as printed by `guest-sw/build`. Without it, the guest that was built last.
    #[arg(long, value_name = "DIR", env = "TIPSIM_GUEST")]
    pub guest_dir: Option<PathBuf>,
}

/// Parses instructions of an interval, such as 100k.
pub(super) fn parse_interval(text: &str) -> Result<u64, String> {
    let (number, factor) = match text.as_bytes().last() {
        Some(b'k') => (&text[..text.len() - 1], 1000),
        Some(b'M') => (&text[..text.len() - 1], 1_000_000),
        Some(b'G') => (&text[..text.len() - 1], 1_000_000_000),
        _ => (text, 1),
    };
    let interval = number.parse().ok().and_then(|number: u64| number.checked_mul(factor));
    let interval = interval.filter(|interval| *interval >= 1000);
    interval.ok_or_else(|| "expected at least 1000 instructions, such as 100k or 1M".to_owned())
}

/// Parses a number of dimensions.
fn parse_dimensions(text: &str) -> Result<usize, String> {
    let dimensions =
        text.parse().ok().filter(|count| (1..=phases::MOST_DIMENSIONS).contains(count));
    dimensions.ok_or_else(|| format!("expected 1 to {}", phases::MOST_DIMENSIONS))
}

/// Parses a number of phases.
fn parse_most_phases(text: &str) -> Result<usize, String> {
    let most = text.parse().ok().filter(|most| (1..=1000).contains(most));
    most.ok_or_else(|| "expected 1 to 1000".to_owned())
}
