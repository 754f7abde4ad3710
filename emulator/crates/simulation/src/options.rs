//! What a machine is built of, and how it executes.

use std::path::{Path, PathBuf};

use devices::memory_map::TIP_UNITS;
use devices::{Input, Output};
use serde::{Deserialize, Serialize};
use timing::Preset;
use user_net::UserNet;

/// Most harts of a machine: as many as have a place for their TIP unit. The guest's kernel is built for so many.
pub const MAX_HARTS: u32 = TIP_UNITS.count;

/// What executes the guest's instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Under the timing core.
    #[default]
    Timing,
    /// Functional: one cycle per instruction, no profilers.
    Functional,
}

/// What is translated to host code; the guest cannot tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Translator {
    /// Code that is executed often, where the host has a translator (x86-64).
    #[default]
    Auto,
    /// Nothing: the interpreter executes everything.
    Off,
    /// All code, at once: slow, for tests.
    Eager,
}

impl From<Translator> for machine::Translate {
    fn from(translator: Translator) -> Self {
        match translator {
            Translator::Auto => Self::Hot,
            Translator::Off => Self::Nothing,
            Translator::Eager => Self::Everything,
        }
    }
}

/// Threads of the host that simulate under the timing core, and whether hot code is translated beside them; the results are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Threads {
    /// Two, if the host has so many processors and the guest one hart, as long as they seldom wait for each other.
    #[default]
    Auto,
    /// One, which translates hot code, too.
    One,
    /// Two, if the guest has one hart.
    Two,
}

impl Threads {
    /// Returns the threads for this host: one, if it has but one processor and nobody says otherwise.
    pub fn of_this_host(self) -> Self {
        let several = std::thread::available_parallelism().is_ok_and(|n| n.get() > 1);
        match self {
            Self::Auto if !several => Self::One,
            other => other,
        }
    }
}

/// How close to the order of simulated time several harts execute under timing cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum HartOrder {
    /// Accesses to devices and to lines that harts contend for are in order to within 16 cycles, others to within 512.
    #[default]
    Near,
    /// Each instruction of the hart that is furthest behind has its turn.
    EachInstruction,
}

/// What is profiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Region {
    /// From reset to the end.
    #[default]
    Run,
    /// While the command runs, and of that what its programs mark, if they do.
    Command,
    /// What the command's programs mark, alone: after a functional boot the command is functional, too, up to the first mark.
    Marked,
}

impl Region {
    /// Returns whether the region begins and ends by marks, not with the run.
    pub fn is_marked(self) -> bool {
        self != Self::Run
    }
}

/// How to build a machine.
pub struct MachineOptions<'a> {
    /// Bytes of guest memory.
    pub memory: u64,
    /// Number of harts, 1 to [`MAX_HARTS`].
    pub harts: usize,
    /// The core; its clock is the machine's also in functional mode.
    pub preset: &'a Preset,
    /// Serial port's output.
    pub console: Output,
    /// Serial port's input.
    pub input: Option<Input>,
    /// Disk images.
    pub drives: &'a [PathBuf],
    /// What guests write to disks reaches the files.
    pub write_drives: bool,
    /// What is translated to host code in functional mode.
    pub translator: Translator,
    /// Threads that simulate under the timing core.
    pub threads: Threads,
    /// How close to the order of simulated time several harts execute under timing cores.
    pub hart_order: HartOrder,
    /// Unix time that the guest's clock shows at reset, in seconds.
    pub epoch: u64,
    /// Host folder for the guest, virtio-fs tag `out`.
    pub share: Option<&'a Path>,
    /// Host folder with packages for the guest, virtio-fs tag `packages`, which the guest cannot write.
    pub packages: Option<&'a Path>,
    /// The network of the guest's card.
    pub net: Option<UserNet>,
    /// All virtio devices have the legacy interface.
    pub virtio_legacy: bool,
    /// Somebody outside waits for the guest, or the guest for them: its time does not run ahead of the host's.
    pub live: bool,
    /// Called on each thread of a core when it begins, e.g. to sample where its time goes.
    pub on_core_thread: fn(),
}

impl<'a> MachineOptions<'a> {
    /// Returns a machine with one hart and nothing but memory and the core.
    pub fn new(memory: u64, preset: &'a Preset) -> Self {
        Self {
            memory,
            harts: 1,
            preset,
            console: Output::new(Box::new(std::io::sink())),
            input: None,
            drives: &[],
            write_drives: false,
            translator: Translator::default(),
            threads: Threads::default(),
            hart_order: HartOrder::default(),
            epoch: 0,
            share: None,
            packages: None,
            net: None,
            virtio_legacy: false,
            live: false,
            on_core_thread: || {},
        }
    }
}
