//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::spec::Mode;

/// Boots real Linux under an out-of-order timing core, profiles it with a TIP unit that the guest
/// programs, and judges every profiler by an Oracle.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Output formats of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table.
    #[default]
    Text,
    /// The same as JSON.
    Json,
}

/// Output formats of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CoreFormat {
    /// A table.
    #[default]
    Text,
    /// The same as JSON.
    Json,
    /// A block diagram.
    Svg,
}

/// Commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a whole experiment: boot, run, record, evaluate, report.
    #[command(
        after_help = "Example:\n  tipsim run workloads/quickstart.toml --guest-dir GUEST --out out/quickstart\n  \
        tipsim run spec.toml --set core.rob.entries=128 --set record.trace=false --out out/rob128"
    )]
    Run(RunArgs),
    /// An interactive machine on this terminal (leave: Ctrl-A x).
    #[command(after_help = "Example:\n  tipsim boot --guest-dir GUEST\n  \
        tipsim boot --firmware fw_dynamic.bin --kernel Image --initrd initramfs.cpio --mode timing")]
    Boot(BootArgs),
    /// Run a bare-metal ELF with HTIF; the exit status is the test's.
    #[command(after_help = "Example:\n  tipsim exec rv64ui-p-add\n  \
        tipsim exec test.elf --signature test.sig --max-insts 1000000")]
    Exec(ExecArgs),
    /// Show the report of a finished run, or write its profiles for other tools.
    #[command(after_help = "Examples:
  tipsim report out/quickstart
  tipsim report out/quickstart --level function --format json
  tipsim report out/quickstart --format pprof -o profile.pb.gz
      pprof -top -sample_index=oracle profile.pb.gz
  tipsim report out/quickstart --format perf-data --profiler tip --profiler lci -o perf.data
      perf report -i perf.data
      perf annotate -i perf.data --objdump=riscv64-linux-gnu-objdump FUNCTION
  tipsim report out/quickstart --format folded --profiler oracle | flamegraph.pl > oracle.svg
  tipsim report out/quickstart --format speedscope -o profile.speedscope.json
  tipsim report out/quickstart --format firefox -o profile.json
      load it at https://profiler.firefox.com
  tipsim report out/quickstart --format perfetto -o stacks.pftrace
      load it at https://ui.perfetto.dev")]
    Report(ReportArgs),
    /// Look into a trace.
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Core presets.
    #[command(subcommand)]
    Core(CoreCommand),
}

/// `tipsim run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Run spec (TOML).
    pub spec: PathBuf,
    /// Set one key of the spec, e.g. `core.rob.entries=128`.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Output directory; made if missing.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Directory of the built guest, as printed by `guest-sw/build`.
    #[arg(long, value_name = "DIR", env = "TIPSIM_GUEST")]
    pub guest_dir: Option<PathBuf>,
    /// Show the guest's console too.
    #[arg(long)]
    pub console: bool,
    /// Sample the simulator itself; run.json then says where its time went.
    #[arg(long)]
    pub self_profile: bool,
}

/// `tipsim boot`.
#[derive(Debug, Args)]
pub struct BootArgs {
    /// Directory of the built guest, as printed by `guest-sw/build`; the options below replace its parts.
    #[arg(long, value_name = "DIR", env = "TIPSIM_GUEST")]
    pub guest_dir: Option<PathBuf>,
    /// Firmware: OpenSBI's `fw_dynamic`, ELF or raw.
    #[arg(long, value_name = "FILE")]
    pub firmware: Option<PathBuf>,
    /// Kernel Image.
    #[arg(long, value_name = "FILE")]
    pub kernel: Option<PathBuf>,
    /// Initial RAM file system.
    #[arg(long, value_name = "FILE")]
    pub initrd: Option<PathBuf>,
    /// Disk image; what the guest writes to it is kept.
    #[arg(long, value_name = "FILE")]
    pub drive: Vec<PathBuf>,
    /// Host folder for the guest, as 9p tag `out`.
    #[arg(long, value_name = "DIR")]
    pub share: Option<PathBuf>,
    /// Added to the kernel command line.
    #[arg(long, default_value = "")]
    pub append: String,
    /// Memory.
    #[arg(long, default_value = "512M")]
    pub memory: String,
    /// Functional (fast) or under the timing core.
    #[arg(long, value_enum, default_value = "functional")]
    pub mode: Mode,
    /// Core preset: a name or a file.
    #[arg(long, default_value = "boom-4w")]
    pub core: String,
    /// Stop after this many instructions.
    #[arg(long, value_name = "N")]
    pub max_insts: Option<u64>,
    /// Wait for GDB on this port of the loopback interface, and run under its control; 0: any free port.
    #[arg(long, value_name = "PORT")]
    pub gdb: Option<u16>,
}

/// `tipsim exec`.
#[derive(Debug, Args)]
pub struct ExecArgs {
    /// ELF file.
    pub elf: PathBuf,
    /// Write the memory between `begin_signature` and `end_signature`, one word a line.
    #[arg(long, value_name = "FILE")]
    pub signature: Option<PathBuf>,
    /// Bytes per line of the signature.
    #[arg(long, default_value_t = 4, value_name = "N")]
    pub signature_granularity: usize,
    /// Give up after this many instructions (exit status 1).
    #[arg(long, default_value_t = 1_000_000_000, value_name = "N")]
    pub max_insts: u64,
    /// Memory.
    #[arg(long, default_value = "256M")]
    pub memory: String,
    /// Functional or under the timing core.
    #[arg(long, value_enum, default_value = "functional")]
    pub mode: Mode,
    /// Core preset: a name or a file.
    #[arg(long, default_value = "boom-4w")]
    pub core: String,
    /// Print cycles, instructions and speed to standard error.
    #[arg(long)]
    pub stats: bool,
    /// Wait for GDB on this port of the loopback interface, and run under its control; 0: any free port.
    #[arg(long, value_name = "PORT")]
    pub gdb: Option<u16>,
}

/// Granularity of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// Functions.
    Function,
    /// Basic blocks.
    Block,
    /// Instructions.
    Instruction,
}

/// Formats of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// A table.
    Text,
    /// The same as JSON.
    Json,
    /// One self-contained page.
    Html,
    /// pprof: a sample type per profiler.
    Pprof,
    /// Firefox Profiler: a thread per profiler and process, over time.
    Firefox,
    /// Folded stacks for flame graphs, of one profiler.
    Folded,
    /// speedscope: a profile per profiler.
    Speedscope,
    /// Linux's perf.data: an event per profiler, a record per sample.
    PerfData,
    /// Perfetto: the Oracle's cycle stacks over time.
    Perfetto,
}

/// `tipsim report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Output directory of a run.
    pub dir: PathBuf,
    /// Only this level.
    #[arg(long, value_enum)]
    pub level: Option<Level>,
    /// Format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: ReportFormat,
    /// Write to this file, not to standard output.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Only this profiler, or sampler of the run (`oracle`, `tip`, `lci`, `tip@800000`); may be repeated. pprof and
    /// speedscope: by default the Oracle and the first sampler of each profiler; other formats: tip.
    #[arg(long, value_name = "NAME")]
    pub profiler: Vec<String>,
    /// Directory of the built guest, for symbols, if it is no longer where the run found it.
    #[arg(long, value_name = "DIR")]
    pub guest_dir: Option<PathBuf>,
}

/// `tipsim trace`.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// What a trace holds and whether it is whole.
    Info(TraceArgs),
    /// Print records as text.
    Dump(DumpArgs),
    /// Check every chunk and the stream's invariants.
    Verify(TraceArgs),
    /// Replay the trace into the profilers and print their errors by instruction.
    Evaluate(TraceArgs),
}

/// A trace and a format.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// Trace file.
    pub trace: PathBuf,
    /// Format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// `tipsim trace dump`.
#[derive(Debug, Args)]
pub struct DumpArgs {
    /// Trace file.
    pub trace: PathBuf,
    /// First instruction.
    #[arg(long, default_value_t = 0, value_name = "SEQ")]
    pub from: u64,
    /// Number of instructions.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub count: u64,
}

/// `tipsim core`.
#[derive(Debug, Subcommand)]
pub enum CoreCommand {
    /// Names of the presets.
    List {
        /// Format.
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
    /// Every parameter of a preset, or its block diagram.
    #[command(after_help = "Examples:
  tipsim core show boom-4w
  tipsim core show boom-4w --set core.rob.entries=192 --format svg > core.svg")]
    Show {
        /// A name or a file.
        preset: String,
        /// Set one parameter, e.g. `rob.entries=128`.
        #[arg(long, value_name = "KEY=VALUE")]
        set: Vec<String>,
        /// Format.
        #[arg(long, value_enum, default_value = "text")]
        format: CoreFormat,
    },
}
