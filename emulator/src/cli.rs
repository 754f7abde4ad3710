//! The command line.

mod format;
mod phases;
mod profile;
mod report;
mod retime;
mod schemes;
mod tables;
mod trace;
mod what_if;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use user_net::Forward;

use crate::spec::epoch::Epoch;
use crate::spec::{HartOrder, Mode, Net, Threads, Translator};

pub(crate) use format::{
    CoreFormat, EventsFormat, ExpandFormat, Format, ReportFormat, SamplesFormat, TablesFormat,
};
pub(crate) use phases::PhasesArgs;
pub(crate) use profile::ProfileArgs;
pub(crate) use report::ReportArgs;
pub(crate) use retime::RetimeArgs;
pub(crate) use schemes::SchemesArgs;
pub(crate) use tables::TablesArgs;
pub(crate) use trace::{
    Address, DumpArgs, EvaluateArgs, ExpandArgs, PartArgs, TraceArgs, TraceCommand,
};
pub(crate) use what_if::WhatIfArgs;

/// Boots real Linux under an out-of-order timing core, profiles it with a TIP unit that the guest
/// programs, and judges every profiler by an Oracle.
#[derive(Debug, Parser)]
#[command(version = env!("TIPSIM_VERSION"), max_term_width = 100)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a whole experiment: boot, run, record, evaluate, report.
    #[command(
        after_help = "Example:\n  tipsim run workloads/quickstart.toml --out out/quickstart\n  \
        tipsim run spec.toml --set core.rob.entries=128 --set record.trace=false --out out/rob128"
    )]
    Run(RunArgs),
    /// Profile any command: run it in the guest, and say where its time goes and why.
    #[command(after_help = "Examples:
  tipsim profile ./a.out 1000                           a program of yours, built for RISC-V
  tipsim profile --package xz-utils --file data.txt -- xz -9 -k data.txt
  tipsim profile --package python3-minimal -- python3 -c 'print(sum(range(10**6)))'
  tipsim profile --package perl 'perl -e \"print 1\" | sort'   one word is a script for the shell
  tipsim profile --env OMP_NUM_THREADS=2 --harts 2 ./a.out
  tipsim profile --what-if ./a.out 1000                 and what a change would gain, before it is made
  tipsim profile --harts 2 --core mega-boom --package pigz --file data.txt -- pigz -p 2 data.txt
  tipsim profile --debuginfod http://localhost:8002 ./a.out   names, lines and sources of what is stripped
  tipsim profile --image debian -- systemctl list-units       in a Debian that systemd has booted
  tipsim profile --marked --package redis-server 'redis-server --save \"\" --daemonize yes; until redis-cli ping; do sleep 0.1; done
      tipsim-region start; redis-benchmark -q -n 500 -c 4 -t get; tipsim-region stop; redis-cli shutdown'   a server, warmed up

What is found is in the output folder, out/profile-NAME unless told: report.html leads with the answer; profile.toml is the run spec, \
to change and to run again. `tipsim report DIR --format ...` writes it for other tools.")]
    Profile(ProfileArgs),
    /// Say what a program does over time: the phases of its region, by basic blocks, without timing.
    #[command(after_help = "Examples:
  tipsim phases workloads/study/xz.toml --out out/phases-xz
  tipsim phases out/profile-sort/profile.toml --out out/phases-sort --interval 100k

DIR has phases.json with everything (`tipsim schema phases.json`), and the files of SimPoint's tools: phases.bb with the basic-block vector of \
each interval, phases.simpts with the interval that stands for each phase, phases.weights with the phases' shares. The exit status is that of the guest's command.")]
    Phases(PhasesArgs),
    /// Time the stored units of a sampled run on other cores, in seconds: cycles, profiles and report, without the guest.
    #[command(after_help = "Examples:
  tipsim profile --sampled --set run.sampling.store=true --out out/xz --package xz-utils --file data.txt -- xz -9 -k data.txt
  tipsim retime out/xz --core mega-boom                    results in out/xz-mega-boom
  tipsim retime out/xz --set rob.entries=64 --out out/xz-rob64
  tipsim report out/xz out/xz-mega-boom                    what is faster, and why
  tipsim retime out/xz --sweep rob.entries=32,64,96,128    cycles of four cores, as a table; out/xz-sweep/sweep.json
  tipsim retime out/xz --core boom-4w --core mega-boom --sweep l2.kib=512,1024 --jobs 2

What the guest did is what it did on the core of its run: its timer interrupts come after as many instructions as they came there.")]
    Retime(RetimeArgs),
    /// Say what schemes of sampling would have said of a program all of which was timed: errors, and how often intervals hold.
    #[command(after_help = "Examples:
  tipsim run spec.toml --set run.sampling.unit=10000 --set run.sampling.every=10000 --set run.sampling.warm_up=0 --set run.sampling.check=0 --out out/all
  tipsim phases spec.toml --interval 50k --out out/phases
  tipsim schemes out/all --phases out/phases --unit 50k,1M --budget 0.1,1,2.5

Nothing is simulated: units are added up from those of the run, chosen and judged by the code that samples. What the state costs in which units begin is not in it.")]
    Schemes(SchemesArgs),
    /// Say what a program would gain, before it is changed: runs it again on a core without a cause of lost cycles at some instructions.
    #[command(after_help = "Examples:
  tipsim what-if out/profile-sort                          what the cycle stacks suggest
  tipsim what-if out/profile-sort --without mispredict@compare
  tipsim what-if out/profile-sort --without miss@list.c:31 --without chain@sum+0x1c
  tipsim what-if out/four --without sharing@counters       data on cache lines of their own; sharing@false: all false sharing
  tipsim what-if out/four --without lock@queue_lock        nobody waits for this lock
  tipsim what-if out/four --without imbalance@step_done    all threads do the same work before this barrier

Causes: mispredict (every branch there is foreseen; then also a select takes its place, as in branchless code), select (that alone), miss (every load and store there finds its line in the L1, in time), flush (CSR accesses, fences and atomics there go like other instructions), division (takes what a multiplication takes), chain (an instruction does not wait for what it computed itself, as if a sum had many accumulators).

On several harts: sharing (each aligned 8 bytes of the contended cache lines of a data object, of a physical address, or of all lines with false sharing, `false`, have a line of their own; needs record.truth), lock (no thread waits for the futex, named by its data object, its address, or the function that waits for it), imbalance (before the futex of a barrier, all threads that meet there do the same work). The last two are no runs, but replays of what the kernel's scheduler recorded: threads that spin are not seen to wait, and what threads do to each other in caches and memory stays as it was.

Gains are of the program's cycles; on several harts, of the elapsed ones of the region.

Each is a run of its own from the same start. The result is in the run's report, and in run.json (what_if). By hand, for any run: `--set 'core.what_if.without=[\"mispredict 0x105a8\"]'`.")]
    WhatIf(WhatIfArgs),
    /// An interactive machine on this terminal (leave: Ctrl-A x).
    #[command(after_help = "Example:\n  tipsim boot\n  \
        tipsim boot --firmware fw_dynamic.bin --kernel Image --initrd initramfs.cpio --mode timing\n  \
        tipsim boot --save machine.ckpt           # saved when left\n  \
        tipsim boot --restore machine.ckpt --mode timing\n  \
        tipsim boot --append quiet --command 'uname -a; nproc'\n  \
        printf 'uname -a\\nexit\\n' | tipsim boot    # a script for the shell on the console\n  \
        tipsim boot --net user                    # in the guest: wget http://10.0.2.2:8000/\n  \
        tipsim boot --net user --hostfwd 8080:80  # on the host: curl http://localhost:8080/")]
    Boot(BootArgs),
    /// Run a bare-metal ELF with HTIF or semihosting; the exit status is the test's.
    #[command(after_help = "Example:\n  tipsim exec rv64ui-p-add\n  \
        tipsim exec test.elf --signature test.sig --max-insts 1000000\n  \
        tipsim exec test.elf --set isa.zacas=false --translator off\n  \
        tipsim exec hello.elf --semihosting data -- first second\n  \
        tipsim exec dhrystone.elf --out out/dhrystone      # trace, profilers and report, as of a run")]
    Exec(ExecArgs),
    /// Show the report of a finished run, or write its profiles for other tools.
    #[command(after_help = "Examples:
  tipsim report out/quickstart
  tipsim report out/quickstart --level function --format json
  tipsim report out/before out/after
  tipsim report out/before out/after --map sort-old=sort-new
  tipsim report out/before out/after --format html -o difference.html
  tipsim report out/quickstart --explain processes.quickstart.errors.tip.instruction
  tipsim report out/quickstart --explain top_down.processes.quickstart.shares.backend.memory
  tipsim report out/quickstart --rebuild        with the symbols of today
  tipsim report out/quickstart --rebuild --call-stacks
  tipsim report out/two-harts --hart 1          of the second hart
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
      load it at https://ui.perfetto.dev
  tipsim report out/quickstart --format parquet -o tables          every table, as `tipsim tables` lists them
  tipsim report out/quickstart --format parquet --table functions -o functions.parquet")]
    Report(ReportArgs),
    /// Write the samples of a perf.data file, one a line.
    #[command(after_help = "Examples:
  tipsim samples out/run/files/perf.data
  tipsim samples out/run/mem.data --format json -o samples.json
  tipsim samples perf.data --kernel vmlinux --debug-dir rootfs   taken out of another machine
  tipsim samples out/run/files/perf.data --format parquet -o samples.parquet
  tipsim samples perf.data | awk -F, '$15 == \"HITM\"'           loads that found a line modified by another hart

Columns: time (s), comm, pid, tid, cpu, event, period, ip, exact (1: the kernel says that ip is the very instruction), symbol, and as \
far as the event has them addr, phys_addr, op, level, snoop, tlb, lock (perf's data source), weight, ins_lat, retire_lat (cycles; \
of pdis and of precise events: execution, from selection to retirement, from completion to retirement). Files may hold any events. Without symbols, symbol is the file and the address in it.")]
    Samples(SamplesArgs),
    /// Look into a trace.
    #[command(subcommand)]
    Trace(TraceCommand),
    /// What the tables of --format parquet and arrow hold.
    #[command(after_help = "Examples:
  tipsim tables
  tipsim tables spans --format json")]
    Tables(TablesArgs),
    /// Print the JSON Schema of a file of a run.
    #[command(after_help = "Examples:
  tipsim schema                                 the files that have schemas
  tipsim schema report.json > report.schema.json
  check-jsonschema --schemafile report.schema.json out/quickstart/report.json
  tipsim schema report | jq -r '.properties | keys[]'

Schemas are of draft 2020-12. Their descriptions say what each key holds, and in which unit.")]
    Schema(SchemaArgs),
    /// Core presets.
    #[command(subcommand)]
    Core(CoreCommand),
    /// Print what completes this command's words in a shell.
    #[command(after_help = "Example:\n  \
        tipsim completions bash > ~/.local/share/bash-completion/completions/tipsim")]
    Completions {
        /// Shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages, one per command.
    #[command(after_help = "Example:\n  \
        tipsim man ~/.local/share/man/man1; man tipsim-run")]
    Man {
        /// Folder; made if missing.
        folder: PathBuf,
    },
}

/// `tipsim run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Run spec (TOML).
    pub spec: PathBuf,
    /// Set one key of the spec, e.g. `core.rob.entries=128`.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Folder of the results, which take their place when the run is over: until then it works in DIR.partial, and the results of the
    /// run before are kept as DIR.old. What the guest left in its working folder is in DIR/files.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Directory of the built guest, as printed by `guest-sw/build`. Without it, the guest that was built last. Not of a spec with
    /// `guest.image = "debian"`, which has its own.
    #[arg(long, value_name = "DIR", env = "TIPSIM_GUEST")]
    pub guest_dir: Option<PathBuf>,
    /// debuginfod server to ask, after the run, for debug information of stripped programs, and sources, by build ID. Several with
    /// spaces between them. Needs elfutils' debuginfod-find.
    #[arg(long, value_name = "URL", env = "DEBUGINFOD_URLS")]
    pub debuginfod: Option<String>,
    /// Show the guest's console too.
    #[arg(long)]
    pub console: bool,
    /// Wait for GDB on this port of the loopback interface, and run under its control; 0: any free port.
    #[arg(long, value_name = "PORT")]
    pub gdb: Option<u16>,
    /// Sample the simulator itself; run.json then says where its time went.
    #[arg(long)]
    pub self_profile: bool,
    /// The spec, if it is no file yet.
    #[arg(skip)]
    pub made: Option<Made>,
    /// Show the verdict alone, not the whole report.
    #[arg(skip)]
    pub brief: bool,
}

impl RunArgs {
    /// Returns the arguments that have a spec run without a terminal.
    pub(crate) fn of_spec(
        spec: PathBuf,
        set: Vec<String>,
        out: PathBuf,
        guest_dir: Option<PathBuf>,
    ) -> Self {
        Self {
            spec,
            set,
            out,
            guest_dir,
            debuginfod: None,
            console: false,
            gdb: None,
            self_profile: false,
            made: None,
            brief: false,
        }
    }
}

/// What `tipsim profile` and `tipsim exec` make of their arguments; it is written among the results.
#[derive(Debug)]
pub(crate) struct Made {
    /// Text of the spec, which gets the name of [`RunArgs::spec`].
    pub spec: String,
    /// What the command has as its standard input, if it has any.
    pub input: Option<Vec<u8>>,
    /// True if nobody named the folder of the results.
    pub has_default_out: bool,
    /// What the guest prints is the output of a program: it goes to standard output.
    pub prints: bool,
}

/// `tipsim boot`.
#[derive(Debug, Args)]
pub(crate) struct BootArgs {
    /// Directory of the built guest, as printed by `guest-sw/build`; the options below replace its parts. Without it
    /// and --firmware, the guest that was built last.
    #[arg(long, value_name = "DIR", env = "TIPSIM_GUEST")]
    pub guest_dir: Option<PathBuf>,
    /// Firmware: OpenSBI's `fw_dynamic`, or anything else that starts in machine mode, ELF or raw. Without --kernel, it boots
    /// alone. `none`: the kernel starts in machine mode.
    #[arg(long, value_name = "FILE")]
    pub firmware: Option<PathBuf>,
    /// Kernel: Image, also packed (gzip, zstd, EFI), vmlinux, or another ELF or raw image.
    #[arg(long, value_name = "FILE")]
    pub kernel: Option<PathBuf>,
    /// Initial RAM file system; `none`: none, where a Linux of one's own would have the guest's.
    #[arg(long, value_name = "FILE")]
    pub initrd: Option<PathBuf>,
    /// Disk image (raw); what the guest writes to it is kept.
    #[arg(long, value_name = "FILE")]
    pub drive: Vec<PathBuf>,
    /// Host folder for the guest, as virtio-fs tag `out`.
    #[arg(long, value_name = "DIR")]
    pub share: Option<PathBuf>,
    /// Added to the kernel command line.
    #[arg(long, default_value = "")]
    pub append: String,
    /// Shell command that the guest runs instead of a shell, in the folder of --share if there is one; then it switches itself off. The exit
    /// status is the command's. Its standard input is that of `tipsim`, if that is a file or a pipe. Needs the init of `guest-sw/build`.
    #[arg(long, value_name = "COMMAND", conflicts_with = "restore")]
    pub command: Option<String>,
    /// Variable of the command's environment; without a value, as it is on the host. May be repeated.
    #[arg(long, value_name = "NAME[=VALUE]", requires = "command")]
    pub env: Vec<String>,
    /// Save the machine to this file when the session is left (Ctrl-A x, a signal, the end of a script, or after --max-insts).
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Go on with a machine that was saved. It brings memory and harts; give the same --drive and --share.
    #[arg(long, value_name = "FILE",
        conflicts_with_all = ["firmware", "kernel", "initrd", "append", "memory", "harts", "clock", "net"])]
    pub restore: Option<PathBuf>,
    /// Memory.
    #[arg(long, default_value = "512M")]
    pub memory: String,
    /// Number of harts, up to 16.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub harts: u32,
    /// Functional (fast) or under the timing core.
    #[arg(long, value_enum, default_value = "functional")]
    pub mode: Mode,
    /// What is translated to host code; the guest cannot tell.
    #[arg(long, value_enum, default_value = "auto")]
    pub translator: Translator,
    /// Threads of the host that simulate one hart under the timing core; the results are the same.
    #[arg(long, value_enum, default_value = "auto")]
    pub threads: Threads,
    /// How close to the order of simulated time several harts execute under the timing core: accesses to devices and to lines that harts contend for to
    /// within 16 cycles, and others to within 512; or each instruction by itself, which takes up to five times as long.
    #[arg(long, value_enum, default_value = "near")]
    pub hart_order: HartOrder,
    /// Core preset: a name or a file. Without it boom-4w, or the core of what is restored.
    #[arg(long)]
    pub core: Option<String>,
    /// Set one parameter of the core, e.g. `isa.svadu=true` (hardware sets the A and D bits of page tables).
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Virtio devices with the legacy interface (version 1), as QEMU's are by default, for guests that know no other.
    #[arg(long)]
    pub virtio_legacy: bool,
    /// What the guest's clock shows at reset: `fixed` (2026-01-01), `host` (the host's time), or a time such as
    /// 2026-06-30T12:00:00Z. It goes on in simulated time.
    #[arg(long, default_value_t, value_name = "TIME")]
    pub clock: Epoch,
    /// Network: `user` is a card whose traffic the host's ordinary sockets carry. The guest is 10.0.2.15
    /// (DHCP), the host's loopback interface 10.0.2.2.
    #[arg(long, value_enum, default_value = "none")]
    pub net: Net,
    /// With --net user: this TCP port of the host's loopback interface leads to that of the guest; 0: any free port.
    #[arg(long, value_name = "HOST:GUEST")]
    pub hostfwd: Vec<Forward>,
    /// Stop after this many instructions.
    #[arg(long, value_name = "N")]
    pub max_insts: Option<u64>,
    /// Wait for GDB on this port of the loopback interface, and run under its control; 0: any free port.
    #[arg(long, value_name = "PORT")]
    pub gdb: Option<u16>,
}

/// `tipsim exec`.
#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// ELF file.
    pub elf: PathBuf,
    /// Write the memory between `begin_signature` and `end_signature`, one word a line.
    #[arg(long, value_name = "FILE")]
    pub signature: Option<PathBuf>,
    /// Bytes per line of the signature.
    #[arg(long, default_value = "4", value_name = "N")]
    pub signature_granularity: std::num::NonZeroUsize,
    /// Number of harts, up to 16. All start at the entry point, with their number in a0.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub harts: u32,
    /// Give up after this many instructions of all harts (exit status 1).
    #[arg(long, default_value_t = 1_000_000_000, value_name = "N")]
    pub max_insts: u64,
    /// Memory.
    #[arg(long, default_value = "256M")]
    pub memory: String,
    /// Functional or under the timing core [default: functional; with --out: timing].
    #[arg(long, value_enum)]
    pub mode: Option<Mode>,
    /// What is translated to host code; the guest cannot tell.
    #[arg(long, value_enum, default_value = "auto")]
    pub translator: Translator,
    /// Threads of the host that simulate one hart under the timing core; the results are the same.
    #[arg(long, value_enum, default_value = "auto")]
    pub threads: Threads,
    /// How close to the order of simulated time several harts execute under the timing core: accesses to devices and to lines that harts contend for to
    /// within 16 cycles, and others to within 512; or each instruction by itself, which takes up to five times as long.
    #[arg(long, value_enum, default_value = "near")]
    pub hart_order: HartOrder,
    /// Record and profile the program, and write what `tipsim run` does: trace, profilers, report. Standard input is read to its end
    /// first, if it is a file or a pipe. The run spec is kept there as exec.toml, to change and to run again.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["signature", "stats", "counters"])]
    pub out: Option<PathBuf>,
    /// With --out: profile only what the program marks (guest-sw/tools/region.h), not all from reset to its end.
    #[arg(long, requires = "out")]
    pub marked: bool,
    /// Core preset: a name or a file.
    #[arg(long, default_value = "boom-4w")]
    pub core: String,
    /// Set one parameter of the core, e.g. `isa.zbb=false`.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Print cycles, instructions and speed to standard error, and what each timing core counted, as a line of JSON.
    #[arg(long)]
    pub stats: bool,
    /// Write how often each event of `tipsim core events` occurred on each timing core, as JSON: in the program's region of
    /// interest, if it marks one.
    #[arg(long, value_name = "FILE")]
    pub counters: Option<PathBuf>,
    /// Wait for GDB on this port of the loopback interface, and run under its control; 0: any free port.
    #[arg(long, value_name = "PORT")]
    pub gdb: Option<u16>,
    /// The program's files by RISC-V semihosting are those of this folder; without, it has none. Console, command
    /// line, clocks and exit need nothing.
    #[arg(long, value_name = "DIR")]
    pub semihosting: Option<PathBuf>,
    /// Arguments of the program, by semihosting or HTIF's getmainvars.
    #[arg(last = true, value_name = "ARGUMENT")]
    pub arguments: Vec<String>,
}

/// Granularity of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Level {
    /// Functions.
    Function,
    /// Basic blocks.
    Block,
    /// Instructions.
    Instruction,
}

/// `tipsim samples`.
#[derive(Debug, Args)]
pub(crate) struct SamplesArgs {
    /// A file of `perf record`, neither compressed nor streamed. In the output folder of a run, the run's symbols are used.
    pub file: PathBuf,
    /// Format.
    #[arg(long, value_enum, default_value = "csv")]
    pub format: SamplesFormat,
    /// Write to this file, not to standard output.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The kernel's vmlinux, for symbols.
    #[arg(long, value_name = "FILE")]
    pub kernel: Option<PathBuf>,
    /// Folder with programs and debug files, at their guest paths; may be repeated.
    #[arg(long, value_name = "DIR")]
    pub debug_dir: Vec<PathBuf>,
}

/// `tipsim schema`.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The file, such as report.json or report; without it, the files that have schemas are listed.
    pub name: Option<String>,
}

/// `tipsim core`.
#[derive(Debug, Subcommand)]
pub(crate) enum CoreCommand {
    /// Names of the presets.
    List {
        /// Format.
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
    /// The events that the guest's performance counters count.
    #[command(after_help = "Examples:
  tipsim core events
  tipsim core events --format perf > events.json   as perf's tools/perf/pmu-events has them
  perf stat -e r120,r220 -- ls                     in the guest: r and the selector")]
    Events {
        /// Format.
        #[arg(long, value_enum, default_value = "text")]
        format: EventsFormat,
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
