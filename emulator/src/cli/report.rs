//! The arguments of `tipsim report`.

use std::path::PathBuf;

use arrow_tables::Table;
use clap::Args;

use super::tables::report_table;
use super::{Level, ReportFormat};

/// `tipsim report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Output directory of a run.
    pub dir: PathBuf,
    /// Output directory of another run, after a change: what got faster or slower by it. If there are several, each is compared
    /// with the first.
    pub after: Vec<PathBuf>,
    /// Only this level.
    #[arg(long, value_enum)]
    pub level: Option<Level>,
    /// Format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: ReportFormat,
    /// Write to this file, not to standard output. For all tables of parquet or arrow: a folder.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The only table to write as parquet or arrow.
    #[arg(long, value_name = "NAME", value_parser = report_table())]
    pub table: Option<&'static Table>,
    /// Only this profiler, or sampler of the run (`oracle`, `tip`, `lci`, `tip@800000`); may be repeated. pprof and
    /// speedscope: by default the Oracle and the first sampler of each profiler; other formats: the Oracle.
    #[arg(long, value_name = "NAME")]
    pub profiler: Vec<String>,
    /// Directory of the built guest, for symbols, if it is no longer where the run found it.
    #[arg(long, value_name = "DIR")]
    pub guest_dir: Option<PathBuf>,
    /// Folder with programs and debug files, at their guest paths, by build ID (`.build-id/xx/yyyy.debug`) or by name anywhere in
    /// it, with `perf-PID.map` and `jit-PID.dump` files, or with source files; may be repeated. For exports and with --rebuild.
    #[arg(long, value_name = "DIR")]
    pub debug_dir: Vec<PathBuf>,
    /// debuginfod server for what is not in the folders: debug information of stripped programs, and sources, by build ID. Several
    /// with spaces between them; `''`: none. Needs elfutils' debuginfod-find.
    #[arg(long, value_name = "URL", env = "DEBUGINFOD_URLS")]
    pub debuginfod: Option<String>,
    /// Only this hart of a run of several. Without it all harts together (perfetto: each with tracks of its own).
    #[arg(long = "hart", value_name = "N")]
    pub one_hart: Option<u32>,
    /// Name of a process in the first of two runs, and its name in the second; may be repeated.
    #[arg(long, value_name = "BEFORE=AFTER")]
    pub map: Vec<String>,
    /// Export without call stacks: faster, and smaller files.
    #[arg(long)]
    pub no_call_stacks: bool,
    /// Export each instruction as the innermost frame of its stacks, below its function (folded, firefox, speedscope).
    #[arg(long)]
    pub instructions: bool,
    /// Export every instruction and every sample: files may be too large for the tools that open them.
    #[arg(long)]
    pub exact: bool,
    /// With --rebuild: follow calls, too, for a flame graph by callers and threads (record.call_stacks of run specs).
    #[arg(long, requires = "rebuild")]
    pub call_stacks: bool,
    /// How this number of the report was computed, and from what: its path in report.json (entries of lists by
    /// name, `processes.quickstart.errors.tip.instruction`), or the number as it shows (`12.3`).
    #[arg(long, value_name = "NUMBER-OR-PATH", allow_hyphen_values = true)]
    pub explain: Option<String>,
    /// Write the report's files anew first: from what the profilers found, if this very simulator kept it
    /// (evaluation.zst), or else from the trace.
    #[arg(long)]
    pub rebuild: bool,
}
