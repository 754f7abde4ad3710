//! The arguments of `tipsim profile`.

use std::path::PathBuf;

use clap::Args;

use crate::spec::{GuestImage, MAX_HARTS};

/// `tipsim profile`.
#[derive(Debug, Args)]
pub(crate) struct ProfileArgs {
    /// Core preset: a name or a file.
    #[arg(long, default_value = "boom-4w")]
    pub core: String,
    /// Debian package that the command needs, with all that it depends on; its files are at their paths in Debian. May be repeated.
    /// The names of its functions come from Debian's debug archive, where there is one beside the mirror.
    #[arg(long, value_name = "DEB")]
    pub package: Vec<String>,
    /// The guest's system: a small one, over which packages are unpacked, or all of Debian with systemd, where they are installed and
    /// their servers are started at boot. The latter takes some ten minutes to make, once for each set of packages.
    #[arg(long, value_enum, default_value = "minimal")]
    pub image: GuestImage,
    /// File or folder for the command's working folder; may be repeated. A command that is a file of the host is taken there by itself.
    #[arg(long, value_name = "PATH")]
    pub file: Vec<PathBuf>,
    /// Variable of the command's environment; without a value, as it is on the host. May be repeated. None passes by itself: the guest's
    /// own are HOME, PATH and TERM.
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub env: Vec<String>,
    /// Number of harts, up to 16.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_HARTS)))]
    pub harts: u32,
    /// Memory of the guest.
    #[arg(long, default_value = "1G")]
    pub memory: String,
    /// Profile only what the command's programs mark (`tipsim-region start`, `tipsim-region stop`), such as what comes after the start of
    /// a server: all before it is fast.
    #[arg(long)]
    pub marked: bool,
    /// Afterwards, run the command again, each time without one of the causes that it loses most cycles to: what a change of
    /// the cause would gain (tipsim what-if).
    #[arg(long)]
    pub what_if: bool,
    /// Time only units of the command, one in each two million instructions, and execute the rest functionally with warm caches: for
    /// programs that run for long (`run.sampling`; `--set run.sampling.every=40000000` for fewer).
    #[arg(long)]
    pub sampled: bool,
    /// Follow calls, too: what is below each function, and a flame graph by callers and threads (`record.call_stacks`). It takes longer;
    /// `tipsim report DIR --rebuild --call-stacks` does it later.
    #[arg(long)]
    pub call_stacks: bool,
    /// Set one key of the run spec, e.g. `core.rob.entries=128`.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Output directory [default: out/profile-NAME].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Directory of the built guest, as printed by `guest-sw/build`. Without it, the guest that was built last. Not of `--image
    /// debian`, which has its own.
    #[arg(long, value_name = "DIR", env = "TIPSIM_GUEST")]
    pub guest_dir: Option<PathBuf>,
    /// debuginfod server to ask, after the run, for debug information of stripped programs, and sources, by build ID. Several with
    /// spaces between them. Needs elfutils' debuginfod-find.
    #[arg(long, value_name = "URL", env = "DEBUGINFOD_URLS")]
    pub debuginfod: Option<String>,
    /// Show the guest's console too.
    #[arg(long)]
    pub console: bool,
    /// The command and its arguments. Its standard input is that of `tipsim`, read to its end first, if that is a file or a pipe; else it is
    /// empty. The words are as the guest's shell would get them: one word with spaces in it is a script for that shell.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub command: Vec<String>,
}
