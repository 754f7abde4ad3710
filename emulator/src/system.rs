//! A whole machine: board, guest memory at reset, hart, and the TIP unit with its stream.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use commit_trace::Recorder;
use machine::virtio::{Blk, DiskMode, Latency, P9, Rng, VirtioConsole};
use machine::{
    Board, Boot, BootImages, Bus, Clock, DeviceNode, Hart, Image, Input, Isa, Limit, MmuType,
    Output, ResetState, RunExit,
};
use timing::{Core, Preset};
use tip_device::TipUnit;

use crate::failure::{BadInput, bad_input};
use crate::guest::GuestFiles;
use crate::spec::Mode;
use crate::stream::{SharedTip, Stream};
use crate::tip_bus::{TIP_BASE, TIP_IRQ, TIP_SIZE, TipBus};

/// Time that the guest's clock shows at reset: 2026-01-01 00:00 UTC. Fixed, so that runs are equal.
const EPOCH_SECONDS: u64 = 1_767_225_600;
/// `mtime` ticks per second.
const TIMEBASE_HZ: u64 = 10_000_000;
/// Seed of the guest's entropy.
const ENTROPY_SEED: u64 = 0x7469_7073_696d;

/// What the harts implement, as the device tree says it.
const EXTENSIONS: &[&str] = &[
    "i", "m", "a", "f", "d", "c", "zicntr", "zicsr", "zifencei", "zihpm", "sscofpmf", "sstc",
];

/// How to build a machine.
pub struct Setup<'a> {
    /// Bytes of guest memory.
    pub memory: u64,
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
    /// Host folder for the guest, 9p tag `out`.
    pub share: Option<&'a Path>,
}

/// A machine at rest. Fields are in the order in which they are used.
pub struct System {
    /// Board with memory and devices.
    pub board: Board,
    /// The hart.
    pub hart: Hart,
    tip: SharedTip,
}

/// What executes instructions.
#[expect(clippy::large_enum_variant, reason = "one per run")]
pub enum Engine {
    /// Functional.
    Functional,
    /// Under the timing core.
    Timing(Core<Stream>),
}

impl System {
    /// Puts the machine together.
    pub fn new(setup: Setup<'_>) -> anyhow::Result<Self> {
        let clock_hz = u64::from(setup.preset.clock.mhz) * 1_000_000;
        let clock = Clock::new(clock_hz, TIMEBASE_HZ);
        let mut board = Board::new(setup.memory, 1, clock, EPOCH_SECONDS)
            .map_err(|e| BadInput(format!("memory: {e}")))?;
        board.add_uart(setup.console, setup.input)?;
        for (n, drive) in setup.drives.iter().enumerate() {
            let mode = if setup.write_drives {
                DiskMode::Writable
            } else {
                DiskMode::CopyOnWrite
            };
            let blk =
                Blk::open(drive, mode, &format!("tipsim{n}")).map_err(|e| bad_input(drive, e))?;
            board.add_virtio(Box::new(blk), Latency::STORAGE)?;
        }
        if let Some(share) = setup.share {
            let p9 =
                P9::new(share, "out", false, EPOCH_SECONDS).map_err(|e| bad_input(share, e))?;
            board.add_virtio(Box::new(p9), Latency::STORAGE)?;
        }
        board.add_virtio(Box::new(Rng::new(ENTROPY_SEED)), Latency::BUFFER)?;
        let sink = Output::new(Box::new(std::io::sink()));
        board.add_virtio(
            Box::new(VirtioConsole::new(sink, None, (80, 25))),
            Latency::BUFFER,
        )?;

        let hart = Hart::new(0);
        let width = setup.preset.decode.width as usize;
        let tip = SharedTip::new(TipUnit::new(width, clock_hz));
        let node = DeviceNode::new("tip", &["tipsim,tip"], TIP_BASE, TIP_SIZE, Some(TIP_IRQ));
        board.add(node, Box::new(TipBus::new(tip.clone(), hart.guest_tag())))?;
        Ok(Self { board, hart, tip })
    }

    /// Loads firmware, kernel and RAM disk, and resets the hart.
    pub fn load_guest(&mut self, files: &GuestFiles, bootargs: &str) -> anyhow::Result<()> {
        let read = |path: &Path| std::fs::read(path).map_err(|e| bad_input(path, e));
        let firmware = read(&files.firmware)?;
        let kernel = files.kernel.as_deref().map(read).transpose()?;
        let initrd = files.initrd.as_deref().map(read).transpose()?;
        let name = |path: Option<&PathBuf>| path.map(|p| p.display().to_string());
        let (firmware_name, kernel_name, initrd_name) = (
            files.firmware.display().to_string(),
            name(files.kernel.as_ref()),
            name(files.initrd.as_ref()),
        );
        let images = BootImages {
            firmware: Image {
                name: &firmware_name,
                bytes: &firmware,
            },
            kernel: image(kernel_name.as_deref(), kernel.as_deref()),
            initrd: image(initrd_name.as_deref(), initrd.as_deref()),
        };
        let isa = Isa::new(EXTENSIONS, MmuType::Sv48);
        let mut tree = self.board.device_tree(isa, bootargs, None);
        let boot = Boot::load(images, &mut self.board.bus.ram, |initrd| {
            tree.initrd = initrd;
            tree.build()
        })
        .map_err(|e| BadInput(e.to_string()))?;
        self.reset(boot.reset);
        Ok(())
    }

    /// Sets the hart's registers.
    pub fn reset(&mut self, state: ResetState) {
        self.hart.set_pc(state.pc);
        for (reg, value) in [(10, state.a0), (11, state.a1), (12, state.a2)] {
            self.hart.set_reg(reg, value);
        }
    }

    /// The timing core of `preset` with its stream.
    pub fn engine(&self, mode: Mode, preset: &Preset, recorder: Option<Recorder>) -> Engine {
        match mode {
            Mode::Functional => Engine::Functional,
            Mode::Timing => {
                let irq_at = Rc::clone(&self.board.bus.irq_at);
                let recorder = recorder.unwrap_or_else(|| Recorder::discarding(0));
                let stream = Stream::new(self.tip.clone(), recorder, irq_at);
                Engine::Timing(Core::new(preset, stream))
            }
        }
    }

    /// Runs up to a limit.
    pub fn run(&mut self, engine: &mut Engine, limit: Limit) -> RunExit {
        let bus: &mut Bus = &mut self.board.bus;
        match engine {
            Engine::Functional => self.hart.run(bus, &mut isa::Untimed, limit),
            Engine::Timing(core) => self.hart.run(bus, core, limit),
        }
    }
}

fn image<'a>(name: Option<&'a str>, bytes: Option<&'a [u8]>) -> Option<Image<'a>> {
    Some(Image {
        name: name?,
        bytes: bytes?,
    })
}
