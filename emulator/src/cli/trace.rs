//! Arguments of `tipsim trace`.

use std::path::PathBuf;

use arrow_tables::Table;
use clap::{Args, Subcommand};
use commit_trace::Place;

use super::{ExpandFormat, Format, tables};

/// `tipsim trace`.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// What a trace holds and whether it is whole.
    #[command(after_help = "Examples:
  tipsim trace info out/quickstart/trace.tip
  tipsim trace info trace.tip --format json")]
    Info(TraceArgs),
    /// Print records as text.
    #[command(after_help = "Examples:
  tipsim trace dump out/quickstart/trace.tip --count 20
  tipsim trace dump trace.tip --from 1200000c --to 1200100c    cycles
  tipsim trace dump trace.tip --from 5.25ms                    guest time
  tipsim trace dump out/quickstart/trace.tip --function stall_chase --count 20")]
    Dump(DumpArgs),
    /// Write a part of a trace in other tools' formats.
    #[command(after_help = "Examples:
  tipsim trace expand trace.tip --format konata --from 5ms --to 5.001ms -o view.kanata
  tipsim trace expand out/quickstart/trace.tip --format konata --function stall_chase -o view.kanata
  tipsim trace expand trace.tip --format konata --pc 0x105a8 --from 5ms -o view.kanata
  tipsim trace expand trace.tip --format o3pipeview --from 100000 --to 101000 > view.out
  tipsim trace expand trace.tip --format csv | head
  tipsim trace expand trace.tip --format token512 --to 10000000c -o tokens.bin
  tipsim trace expand trace.tip --format parquet --table spans -o spans.parquet

A run with `--set record.stages=true` also knows when each instruction was fetched, issued and
completed; without, those columns are empty and the views show decode, dispatch and commit.
token512 takes 64 bytes for every cycle. A trace that is cut or damaged is read up to there.
What each format holds: emulator/crates/commit-trace/README.md.")]
    Expand(ExpandArgs),
    /// Check every chunk and the stream's invariants.
    #[command(after_help = "Example:\n  tipsim trace verify out/quickstart/trace.tip")]
    Verify(TraceArgs),
    /// Replay the trace into the profilers and print their errors by instruction.
    #[command(after_help = "\
Examples:
  tipsim trace evaluate out/quickstart/trace.tip --format json
  tipsim trace evaluate out/quickstart/trace.tip --samplers workloads/sensitivity.toml")]
    Evaluate(EvaluateArgs),
}

/// A trace and a format.
#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// Trace file.
    pub trace: PathBuf,
    /// Format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// `tipsim trace evaluate`.
#[derive(Debug, Args)]
pub(crate) struct EvaluateArgs {
    /// Trace file.
    pub trace: PathBuf,
    /// Evaluate the `[[sampler]]` tables of this run spec instead of those of the trace's own run.
    #[arg(long, value_name = "SPEC")]
    pub samplers: Option<PathBuf>,
    /// Hart.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub hart: u32,
    /// Format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// `tipsim trace dump`.
#[derive(Debug, Args)]
pub(crate) struct DumpArgs {
    /// Trace file.
    pub trace: PathBuf,
    #[command(flatten)]
    pub part: PartArgs,
    /// Most records to print; without it and `--to`: 1000.
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
}

/// A part of a trace.
#[derive(Debug, Args)]
pub(crate) struct PartArgs {
    /// First place: a record (1000), a cycle (1000c) or a guest time since reset (1.5ms; s, ms, us, ns).
    #[arg(long, value_name = "PLACE")]
    pub from: Option<Place>,
    /// First place after it.
    #[arg(long, value_name = "PLACE")]
    pub to: Option<Place>,
    /// Begin where this function is first executed, after --from; without --to, with 1000 records. The report beside the trace has its
    /// thousand most expensive instructions: the part begins with the first of these of the function, in whichever process has that
    /// address (--pc takes an address).
    #[arg(long, value_name = "NAME", conflicts_with = "pc")]
    pub function: Option<String>,
    /// Begin where the instruction at this address is executed first, after --from; without --to, with 1000 records.
    #[arg(long, value_name = "ADDRESS")]
    pub pc: Option<Address>,
    /// Hart.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub hart: u32,
}

/// An address, in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address(pub u64);

impl std::str::FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let address = u64::from_str_radix(digits, 16).map(Self);
        address.map_err(|_| {
            format!("expected an address in hexadecimal, such as 0x105a8, found \"{text}\"")
        })
    }
}

/// `tipsim trace expand`.
#[derive(Debug, Args)]
pub(crate) struct ExpandArgs {
    /// Trace file.
    pub trace: PathBuf,
    /// Format.
    #[arg(long, value_enum)]
    pub format: ExpandFormat,
    #[command(flatten)]
    pub part: PartArgs,
    /// The table to write as parquet or arrow [default: records].
    #[arg(long, value_name = "NAME", value_parser = tables::trace_table())]
    pub table: Option<&'static Table>,
    /// Output file; otherwise standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
