//! A whole machine: board, guest memory at reset, harts, and their TIP units with their streams.

mod engine;
mod new_hart;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use commit_trace::Recorder;
use devices::memory_map::TIP_UNITS;
use devices::virtio::{Blk, DiskMode, Fs, Latency, Net, Rng, VirtioConsole};
use devices::{Bus, Clock, Device, Input, Output};
use isa::{Extensions, Privilege};
use machine::{
    Board, Boot, BootImages, DeviceNode, Hart, Image, Isa, Limit, LoadError, ResetState, RunExit,
    TakenException, run_together,
};
use snapshot::{Archive, Snapshot};
use timing::{Preset, SharedMemory};
use tip_device::{Reg, TipUnit};
use truth::UnitTotals;
use user_net::UserNet;

use crate::failure::{BadInput, MAX_IMAGE_BYTES, bad_input, read_at_most};
use crate::guest::GuestFiles;
use crate::interpreters::{Interpreters, RunningThread};
use crate::kernel;
use crate::net::Cable;
use crate::pace::Pace;
use crate::spec::{MAX_HARTS, Mode, Threads, Translator};
use crate::stream::{SharedTip, SpareWorker};
use crate::timed::{CoreStart, timed};
use crate::tip_bus::{Programs, TipBus};
use crate::uncore::Uncore;
pub use engine::Engine;
use new_hart::{new_hart, translate};

/// `mtime` ticks per second.
const TIMEBASE_HZ: u64 = 10_000_000;
/// Seed of the guest's entropy.
const ENTROPY_SEED: u64 = 0x7469_7073_696d;

/// How to build a machine.
pub struct Setup<'a> {
    /// Bytes of guest memory.
    pub memory: u64,
    /// Number of harts.
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
}

/// Checks `--harts`: a machine can have so many.
pub fn harts(harts: u32) -> Result<usize, BadInput> {
    if (1..=MAX_HARTS).contains(&harts) {
        return Ok(harts as usize);
    }
    Err(BadInput(format!("--harts: expected 1 to {MAX_HARTS}, found {harts}")))
}

/// A machine at rest. Fields are in the order in which they are used.
pub struct System {
    /// Board with memory and devices.
    pub board: Board,
    /// The first hart.
    pub hart: Hart,
    /// The other harts.
    others: Vec<Hart>,
    /// TIP units by hart.
    tips: Vec<SharedTip>,
    /// The thread that runs, by hart, and the programs of all.
    running: Vec<RunningThread>,
    programs: Rc<RefCell<Programs>>,
    /// The PMUs of last-level cache and memory controller.
    pub uncore: Uncore,
    pace: Option<Pace>,
    /// What the harts implement beyond RV64GC.
    extensions: Extensions,
    threads: Threads,
    translator: Translator,
}

/// Saves and loads the state without guest memory. What the machine must be built with again is checked.
impl Snapshot for System {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        let Self {
            board,
            hart,
            others,
            // Devices of the board.
            tips: _,
            running: _,
            programs: _,
            uncore,
            pace: _,
            extensions,
            // Results are the same.
            threads: _,
            translator: _,
        } = self;
        archive.same("bytes of memory", &board.bus.ram.size().to_string())?;
        archive.same("harts", &(1 + others.len()).to_string())?;
        let clock = board.bus.clock().clock_hz();
        archive.same("core clock in hertz", &clock.to_string())?;
        archive.same("extensions", &format!("{extensions:?}"))?;
        uncore.snapshot(archive)?;
        board.bus.snapshot(archive)?;
        hart.snapshot(archive)?;
        others.iter_mut().try_for_each(|hart| hart.snapshot(archive))
    }
}

impl System {
    /// Puts the machine together.
    pub fn new(setup: Setup<'_>) -> anyhow::Result<Self> {
        let clock_hz = u64::from(setup.preset.clock.mhz) * 1_000_000;
        let clock = Clock::new(clock_hz, TIMEBASE_HZ);
        let mut board = Board::new(setup.memory, setup.harts, clock, setup.epoch)
            .map_err(|e| BadInput(format!("memory: {e}")))?;
        board.add_uart(setup.console, setup.input)?;
        board.virtio_legacy = setup.virtio_legacy;
        for (n, drive) in setup.drives.iter().enumerate() {
            let mode = if setup.write_drives { DiskMode::Writable } else { DiskMode::CopyOnWrite };
            let blk = Blk::open(drive, mode, &format!("tipsim{n}"))
                .map_err(|e| BadInput(e.to_string()))?;
            board.add_virtio(Box::new(blk), Latency::STORAGE)?;
        }
        if let Some(share) = setup.share {
            let folder =
                Fs::new(share, "out", false, setup.epoch).map_err(|e| bad_input(share, e))?;
            board.add_virtio(Box::new(folder), Latency::STORAGE)?;
        }
        board.add_virtio(Box::new(Rng::new(ENTROPY_SEED)), Latency::BUFFER)?;
        let sink = Output::new(Box::new(std::io::sink()));
        board.add_virtio(Box::new(VirtioConsole::new(sink, None, (80, 25))), Latency::BUFFER)?;
        // Last, so that the other devices are where they are without them.
        if let Some(packages) = setup.packages {
            let folder = Fs::new(packages, "packages", true, setup.epoch)
                .map_err(|e| bad_input(packages, e))?;
            board.add_virtio(Box::new(folder), Latency::STORAGE)?;
        }
        if let Some(net) = setup.net {
            let net = Net::new(user_net::GUEST_MAC, Box::new(Cable(net)));
            board.add_virtio(Box::new(net), Latency::BUFFER)?;
        }

        let extensions = setup.preset.isa.extensions();
        let hart = new_hart(0, extensions, setup.translator)?;
        let others = (1..setup.harts)
            .map(|id| new_hart(id, extensions, setup.translator))
            .collect::<Result<Vec<_>, _>>()?;
        let width = setup.preset.decode.width as usize;
        let unit = || SharedTip::new(TipUnit::new(width, clock_hz));
        let tips: Vec<_> = (0..setup.harts).map(|_| unit()).collect();
        let programs = Rc::new(RefCell::new(Programs::default()));
        let mut units: Vec<Box<dyn Device>> = Vec::new();
        let running: Vec<RunningThread> = tips.iter().map(|_| RunningThread::default()).collect();
        for ((hart, tip), running) in std::iter::once(&hart).chain(&others).zip(&tips).zip(&running)
        {
            let mut others = tips.clone();
            others.remove(hart.id());
            let (tag, programs) = (hart.guest_tag(), Rc::clone(&programs));
            let running = Rc::clone(running);
            units.push(Box::new(TipBus::new(tip.clone(), others, tag, running, programs)));
        }
        let size = TIP_UNITS.size * units.len() as u64;
        let (base, irq) = (TIP_UNITS.base, TIP_UNITS.first_source);
        let node = DeviceNode::new("tip", &[tip_device::COMPATIBLE], base, size, irq);
        board.add_units(node, units)?;
        let uncore = Uncore::add_to(&mut board, setup.harts, setup.preset)?;
        Ok(Self {
            board,
            hart,
            others,
            tips,
            running,
            programs,
            uncore,
            pace: setup.live.then(|| Pace::new(clock)),
            extensions,
            threads: setup.threads,
            translator: setup.translator,
        })
    }

    /// Loads firmware, kernel and RAM disk, and resets the hart.
    pub fn load_guest(&mut self, files: &GuestFiles, bootargs: &str) -> anyhow::Result<()> {
        let read =
            |path: &Path| read_at_most(path, MAX_IMAGE_BYTES).map_err(|e| bad_input(path, e));
        let firmware = read(&files.firmware)?;
        let unpacked = |path: &Path| kernel::unpack(path, read(path)?, self.board.bus.ram.size());
        let kernel = files.kernel.as_deref().map(unpacked).transpose()?;
        let initrd = files.initrd.as_deref().map(read).transpose()?;
        let name = |path: Option<&PathBuf>| path.map(|p| p.display().to_string());
        let (firmware_name, kernel_name, initrd_name) = (
            files.firmware.display().to_string(),
            name(files.kernel.as_ref()),
            name(files.initrd.as_ref()),
        );
        let images = BootImages {
            firmware: Image { name: &firmware_name, bytes: &firmware },
            kernel: image(kernel_name.as_deref(), kernel.as_deref()),
            initrd: image(initrd_name.as_deref(), initrd.as_deref()),
        };
        let isa = Isa::rv64gc(self.extensions);
        let mut tree = self.board.device_tree(isa, bootargs, None);
        let boot = Boot::load(images, &mut self.board.bus.ram, |initrd| {
            tree.initrd = initrd;
            tree.build()
        })
        .map_err(|e| {
            let is_small = matches!(e, LoadError::OutsideRam { .. } | LoadError::Overlap { .. });
            let least = images.least_memory().div_ceil(1 << 20);
            let hint = match is_small && self.board.bus.ram.size() < least << 20 {
                true => format!(
                    "; to load these files takes {least}M of memory, and a guest needs more to run"
                ),
                false => String::new(),
            };
            BadInput(format!("{e}{hint}"))
        })?;
        self.reset(boot.reset);
        Ok(())
    }

    /// Sets the hart's registers.
    pub fn reset(&mut self, state: ResetState) {
        for hart in std::iter::once(&mut self.hart).chain(&mut self.others) {
            hart.set_pc(state.pc);
            let id = state.a0 + hart.id() as u64;
            for (reg, value) in [(10, id), (11, state.a1), (12, state.a2)] {
                hart.set_reg(reg, value);
            }
        }
    }

    /// Opens all memory to all privileges on every hart, as Spike does at reset: programs of the public suites go
    /// to S and U without setting the PMP.
    pub fn permit_all_memory(&mut self) {
        for hart in std::iter::once(&mut self.hart).chain(&mut self.others) {
            hart.permit_all_memory();
        }
    }

    /// Returns what executes in `mode`.
    pub fn engine(&self, mode: Mode, preset: &Preset) -> Engine {
        match mode {
            Mode::Functional => {
                self.uncore.counts().clear_lines();
                Engine::FUNCTIONAL
            }
            Mode::Timing => self.timing(preset, Vec::new(), false, None),
        }
    }

    /// The timing cores of `preset` with their streams, which record all `stages` or those of commit; both start in
    /// the harts' present cycles. Without a recorder for each hart, nothing is recorded.
    pub fn timing(
        &self,
        preset: &Preset,
        recorders: Vec<Recorder>,
        stages: bool,
        spare_worker: Option<SpareWorker>,
    ) -> Engine {
        let harts = std::iter::once(&self.hart).chain(&self.others);
        let starts: Vec<u64> = harts.map(Hart::cycle).collect();
        let recorders = if recorders.len() == starts.len() {
            recorders
        } else {
            starts.iter().map(|&start| Recorder::discarding(start)).collect()
        };
        let harts = std::iter::once(&self.hart).chain(&self.others);
        let recorded = harts.zip(&self.tips).zip(recorders);
        let recorded = recorded.map(|((hart, tip), recorder)| CoreStart {
            start: hart.cycle(),
            recorder,
            tip: tip.clone(),
            units: hart.sampling_units(),
        });
        let irq_at = &self.board.bus.irq_at;
        let counts = self.uncore.counts().clone();
        let memory = &SharedMemory::counting(preset, self.harts(), counts);
        let cores = match stages {
            false => timed::<false>(memory, preset, recorded, irq_at, spare_worker, self.threads),
            true => timed::<true>(memory, preset, recorded, irq_at, spare_worker, self.threads),
        };
        Engine { cores: Some(cores), rests: false }
    }

    /// The state of the timing cores of `engine`, if there are any, between runs; what they have recorded is not
    /// part of it.
    pub fn snapshot_engine(
        &mut self,
        engine: &mut Engine,
        archive: &mut Archive<'_>,
    ) -> snapshot::Result {
        match &mut engine.cores {
            Some(cores) => cores.snapshot(&mut all(&mut self.hart, &mut self.others), archive),
            None => Ok(()),
        }
    }

    /// Looks at interpreted programs in timed runs from now on.
    pub fn look_at_interpreters(&mut self) {
        let harts = std::iter::once(&mut self.hart).chain(&mut self.others);
        for (hart, running) in harts.zip(&self.running) {
            let interpreters = Interpreters::new(Rc::clone(running), Rc::clone(&self.programs));
            hart.set_onlooker(Some(Box::new(interpreters)));
        }
    }

    /// Lets runs end where a region of interest starts or ends.
    pub fn stop_at_regions(&mut self, stop: bool) {
        for hart in std::iter::once(&mut self.hart).chain(&mut self.others) {
            hart.stop_at_regions(stop);
        }
    }

    /// Lets runs end when a hart's exceptions repeat themselves without end.
    pub fn stop_when_stuck(&mut self, stop: bool) {
        for hart in std::iter::once(&mut self.hart).chain(&mut self.others) {
            hart.stop_when_stuck(stop);
        }
    }

    /// Makes the harts what they were when they were new, for a state to be loaded into them.
    pub fn renew_harts(&mut self) -> anyhow::Result<()> {
        let translator = self.translator;
        self.each_hart().try_for_each(|hart| {
            hart.renew();
            translate(hart, translator)
        })
    }

    /// The harts, in order.
    pub fn each_hart(&mut self) -> impl Iterator<Item = &mut Hart> {
        std::iter::once(&mut self.hart).chain(&mut self.others)
    }

    /// Returns hart `number`, or the first if there is no such hart, and the bus.
    pub fn hart_and_bus(&mut self, number: usize) -> (&mut Hart, &mut Bus) {
        let other = number.checked_sub(1).and_then(|n| self.others.get_mut(n));
        (other.unwrap_or(&mut self.hart), &mut self.board.bus)
    }

    /// Returns what a hart does, in words, and its address.
    pub fn describe_hart(&self, number: usize) -> (String, u64) {
        let other = number.checked_sub(1).and_then(|n| self.others.get(n));
        let hart = other.unwrap_or(&self.hart);
        let mode = match hart.privilege() {
            Privilege::User => "user",
            Privilege::Supervisor => "supervisor",
            Privilege::Machine => "machine",
        };
        let asleep = if hart.is_asleep() { ", asleep" } else { "" };
        (format!("hart {number}, {mode} mode{asleep}"), hart.pc())
    }

    /// The instruction that raised an exception of a hart, if it is still there.
    pub fn raised_by(&mut self, hart: usize, taken: &TakenException) -> Option<u32> {
        let (hart, bus) = self.hart_and_bus(hart);
        hart.raised_by(bus, taken)
    }

    /// The bits of a page-table entry that raised a page fault by being clear, and nothing else did.
    pub fn clear_page_bits(&mut self, hart: usize, taken: &TakenException) -> Option<&'static str> {
        let (hart, bus) = self.hart_and_bus(hart);
        hart.clear_page_bits(bus, taken)
    }

    /// Number of harts.
    pub fn harts(&self) -> usize {
        1 + self.others.len()
    }

    /// Instructions that each hart retired, and cycles, since reset.
    pub fn each(&self) -> impl Iterator<Item = (u64, u64)> {
        let harts = std::iter::once(&self.hart).chain(&self.others);
        harts.map(|hart| (hart.instructions(), hart.cycle()))
    }

    /// Cycles that each hart's TIP unit stood still, while its own interrupt was handled.
    pub fn tip_frozen_cycles(&self) -> Vec<u64> {
        let harts = self.each().zip(&self.tips);
        harts.map(|((_, now), tip)| tip.read(|unit| unit.read(Reg::Frozen, now))).collect()
    }

    /// Returns what became of the overflows of each hart's unit that samples instructions.
    pub fn sampled(&self) -> Vec<UnitTotals> {
        let harts = std::iter::once(&self.hart).chain(&self.others);
        let totals = |(number, hart): (u32, &Hart)| {
            let units = hart.sampling_units().samplers;
            let totals = units.with(|units| units.instructions.totals());
            UnitTotals {
                hart: number,
                overflows: totals.selected,
                samples: totals.samples,
                collisions: totals.collisions,
                filtered: totals.filtered,
                dropped: totals.dropped,
            }
        };
        (0..).zip(harts).map(totals).collect()
    }

    /// Instructions that all harts retired since reset.
    pub fn instructions(&self) -> u64 {
        let harts = std::iter::once(&self.hart).chain(&self.others);
        harts.map(Hart::instructions).sum()
    }

    /// Runs up to a limit; a live machine comes back after a millisecond of its time at the latest, unless it makes a
    /// single step.
    pub fn run(&mut self, engine: &mut Engine, mut limit: Limit) -> RunExit {
        if let Some(pace) = &self.pace
            && limit.instructions > 1
        {
            let slice = self.hart.cycle().saturating_add(pace.slice());
            limit.cycle = limit.cycle.min(slice);
        }
        let before = self.hart.instructions();
        let exit = self.execute(engine, limit);
        if let Some(pace) = &mut self.pace {
            pace.computed(self.hart.instructions() - before);
            pace.wait(self.hart.cycle());
        }
        exit
    }

    /// Returns how often harts entered user mode since the machine was built; `None` while a hart is in user mode. Between two
    /// equal numbers no program has executed an instruction.
    pub fn user_entries(&self) -> Option<u64> {
        let harts = std::iter::once(&self.hart).chain(&self.others);
        harts.map(Hart::user_entries).sum()
    }

    /// A hart that has stopped for good ([`Hart::is_halted`]) and its place, if every other one has, too, or sleeps with nothing
    /// that is going to wake it.
    pub fn halted(&mut self) -> Option<(usize, u64)> {
        let bus = &mut self.board.bus;
        let nothing_due = bus.next_event() == u64::MAX;
        let mut found = None;
        for hart in std::iter::once(&self.hart).chain(&self.others) {
            if hart.is_halted(bus) {
                found = found.or(Some((hart.id(), hart.pc())));
            } else if !(nothing_due && hart.is_asleep()) {
                return None;
            }
        }
        found
    }

    /// Lets a live machine's time run ahead of the host's from now on: nobody outside is left who could act on it.
    pub fn run_ahead(&mut self) {
        if let Some(pace) = &mut self.pace {
            pace.let_go();
        }
    }

    /// Returns how long a live machine waited for the host's time.
    pub fn asleep(&self) -> Duration {
        self.pace.as_ref().map_or(Duration::ZERO, Pace::asleep)
    }

    fn execute(&mut self, engine: &mut Engine, limit: Limit) -> RunExit {
        let bus: &mut Bus = &mut self.board.bus;
        match &mut engine.cores {
            Some(cores) if !engine.rests => {
                cores.run(&mut all(&mut self.hart, &mut self.others), bus, limit)
            }
            _ if self.others.is_empty() => self.hart.run(bus, &mut isa::Untimed, limit),
            _ => run_together(&mut all(&mut self.hart, &mut self.others), bus, limit),
        }
    }
}

/// All harts, in order.
fn all<'a>(first: &'a mut Hart, others: &'a mut [Hart]) -> Vec<&'a mut Hart> {
    std::iter::once(first).chain(others).collect()
}

fn image<'a>(name: Option<&'a str>, bytes: Option<&'a [u8]>) -> Option<Image<'a>> {
    Some(Image { name: name?, bytes: bytes? })
}
