//! A whole machine: board, guest memory at reset, harts, and their TIP units with their streams.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use commit_trace::Recorder;
use devices::memory_map::TIP_UNITS;
use devices::virtio::{Blk, DiskMode, Fs, Latency, Net, Rng, VirtioConsole};
use devices::{Bus, Clock, Device, Output};
use isa::{Extensions, SharedCycle};
use machine::{
    Board, Boot, BootImages, DeviceNode, Hart, Image, Isa, Limit, LoadError, RunExit,
    TakenException, run_together,
};
use sampling_units::SharedUnits;
use snapshot::{Archive, Snapshot};
use timing::{Preset, SharedMemory};
use tip_device::{Reg, TipUnit};
use truth::UnitTotals;

use crate::commit_stage::SharedTip;
use crate::cores::{CoreStart, StreamOptions, TimingCores, timing_cores};
use crate::engine::{Engine, Executor};
use crate::error::SimulationError;
use crate::harts::Harts;
use crate::options::{MachineOptions, Mode, Threads};
use crate::pace::Pace;
use crate::script_sampler::{RunningThread, ScriptSampler};
use crate::units::tip::{Programs, TipBus};
use crate::units::uncore::Uncore;
use crate::user_net_link::UserNetLink;

/// `mtime` ticks per second.
const TIMEBASE_HZ: u64 = 10_000_000;
/// Seed of the guest's entropy.
const ENTROPY_SEED: u64 = 0x7469_7073_696d;

/// A file of the guest that boots, in memory.
pub struct GuestImage {
    /// What messages call it.
    pub name: String,
    /// The content of the file, in bytes.
    pub bytes: Vec<u8>,
}

impl GuestImage {
    fn as_image(&self) -> Image<'_> {
        Image { name: &self.name, bytes: &self.bytes }
    }
}

/// What boots.
pub struct GuestImages {
    /// The firmware, an ELF or raw.
    pub firmware: GuestImage,
    /// The kernel, unpacked.
    pub kernel: Option<GuestImage>,
    /// The initial RAM file system.
    pub initrd: Option<GuestImage>,
}

/// A machine at rest. Fields are in the order in which they are used.
pub struct System {
    /// Board with memory and devices.
    pub board: Board,
    /// The harts.
    pub harts: Harts,
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
    on_core_thread: fn(),
}

/// Saves and loads the state without guest memory. What the machine must be built with again is checked.
impl Snapshot for System {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        let Self {
            board,
            harts,
            // Devices of the board.
            tips: _,
            running: _,
            programs: _,
            uncore,
            pace: _,
            extensions,
            // Results are the same.
            threads: _,
            on_core_thread: _,
        } = self;
        archive.same("bytes of memory", &board.bus.ram.size().to_string())?;
        archive.same("harts", &harts.len().to_string())?;
        let clock = board.bus.clock().clock_hz();
        archive.same("core clock in hertz", &clock.to_string())?;
        archive.same("extensions", &format!("{extensions:?}"))?;
        uncore.snapshot(archive)?;
        board.bus.snapshot(archive)?;
        harts.snapshot(archive)
    }
}

impl System {
    /// Puts the machine together.
    ///
    /// # Errors
    /// If the host lacks memory for it, a drive or folder cannot be opened, or the host cannot translate and must.
    pub fn new(options: MachineOptions<'_>) -> Result<Self, SimulationError> {
        let file = SimulationError::file;
        let clock_hz = u64::from(options.preset.clock.mhz) * 1_000_000;
        let clock = Clock::new(clock_hz, TIMEBASE_HZ);
        let mut board = Board::new(options.memory, options.harts, clock, options.epoch)
            .map_err(|e| SimulationError::Options(format!("memory: {e}")))?;
        board.add_uart(options.console, options.input)?;
        board.virtio_legacy = options.virtio_legacy;
        for (n, drive) in options.drives.iter().enumerate() {
            let mode =
                if options.write_drives { DiskMode::Writable } else { DiskMode::CopyOnWrite };
            let blk = Blk::open(drive, mode, &format!("tipsim{n}"))
                .map_err(|e| SimulationError::Options(e.to_string()))?;
            board.add_virtio(Box::new(blk), Latency::STORAGE)?;
        }
        if let Some(share) = options.share {
            let folder = Fs::new(share, "out", false, options.epoch).map_err(|e| file(share, e))?;
            board.add_virtio(Box::new(folder), Latency::STORAGE)?;
        }
        board.add_virtio(Box::new(Rng::new(ENTROPY_SEED)), Latency::BUFFER)?;
        let sink = Output::new(Box::new(std::io::sink()));
        board.add_virtio(Box::new(VirtioConsole::new(sink, None, (80, 25))), Latency::BUFFER)?;
        // Last, so that the other devices are where they are without them.
        if let Some(packages) = options.packages {
            let folder = Fs::new(packages, "packages", true, options.epoch)
                .map_err(|e| file(packages, e))?;
            board.add_virtio(Box::new(folder), Latency::STORAGE)?;
        }
        if let Some(net) = options.net {
            let net = Net::new(user_net::GUEST_MAC, Box::new(UserNetLink(net)));
            board.add_virtio(Box::new(net), Latency::BUFFER)?;
        }

        let extensions = options.preset.isa.extensions();
        let mut harts = Harts::new(options.harts, extensions, options.translator, options.threads)?;
        harts.set_order(options.hart_order);
        let width = options.preset.decode.width as usize;
        let unit = |_: &Hart| SharedTip::new(TipUnit::new(width, clock_hz));
        let tips: Vec<_> = harts.iter().map(unit).collect();
        let programs = Rc::new(RefCell::new(Programs::default()));
        let mut units: Vec<Box<dyn Device>> = Vec::new();
        let running: Vec<RunningThread> = tips.iter().map(|_| RunningThread::default()).collect();
        for ((hart, tip), running) in harts.iter().zip(&tips).zip(&running) {
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
        let uncore = Uncore::add_to(&mut board, harts.len(), options.preset)?;
        Ok(Self {
            board,
            harts,
            tips,
            running,
            programs,
            uncore,
            pace: options.live.then(|| Pace::new(clock)),
            extensions,
            threads: options.threads,
            on_core_thread: options.on_core_thread,
        })
    }

    /// Loads firmware, kernel and RAM disk, and resets the harts.
    ///
    /// # Errors
    /// If an image is not what it should be, or does not fit into memory.
    pub fn load_guest(
        &mut self,
        guest: &GuestImages,
        bootargs: &str,
    ) -> Result<(), SimulationError> {
        let images = BootImages {
            firmware: guest.firmware.as_image(),
            kernel: guest.kernel.as_ref().map(GuestImage::as_image),
            initrd: guest.initrd.as_ref().map(GuestImage::as_image),
        };
        let isa = Isa::rv64gc(self.extensions);
        let mut tree = self.board.device_tree(isa, bootargs, None);
        let boot = Boot::load(images, &mut self.board.bus.ram, |initrd| {
            tree.initrd = initrd;
            tree.build()
        });
        let boot = boot.map_err(|e| {
            let is_small = matches!(e, LoadError::OutsideRam { .. } | LoadError::Overlap { .. });
            let least = images.least_memory().div_ceil(1 << 20);
            let hint = match is_small && self.board.bus.ram.size() < least << 20 {
                true => format!(
                    "; to load these files takes {least}M of memory, and a guest needs more to run"
                ),
                false => String::new(),
            };
            SimulationError::Options(format!("{e}{hint}"))
        })?;
        self.harts.reset(boot.reset);
        Ok(())
    }

    /// Returns what executes in `mode`; nothing is recorded.
    pub fn engine(&self, mode: Mode, preset: &Preset) -> Engine {
        match mode {
            Mode::Functional => {
                self.uncore.counts().clear_lines();
                Engine::FUNCTIONAL
            }
            Mode::Timing => self.timing(preset, Vec::new(), &StreamOptions::default()),
        }
    }

    /// Returns the timing cores of `preset` with their streams; both start in the harts' present cycles. Without a recorder for
    /// each hart, nothing is recorded.
    pub fn timing(
        &self,
        preset: &Preset,
        recorders: Vec<Recorder>,
        options: &StreamOptions,
    ) -> Engine {
        let starts = self.harts.iter().map(Hart::cycle);
        let recorders = if recorders.len() == self.harts.len() {
            recorders
        } else {
            starts.map(Recorder::discarding).collect()
        };
        let recorded = self.harts.iter().zip(&self.tips).zip(recorders);
        let recorded = recorded.map(|((hart, tip), recorder)| CoreStart {
            start: hart.cycle(),
            recorder,
            tip: tip.clone(),
            units: hart.sampling_units(),
        });
        let counts = self.uncore.counts().clone();
        let memory = &SharedMemory::counting(preset, self.harts.len(), counts);
        let host = (self.threads, self.on_core_thread);
        let irq_at = &self.board.bus.irq_at;
        Engine::timing(timing_cores(memory, preset, recorded, irq_at, options, host))
    }

    /// Returns a core of `preset` for the single hart, to be kept warm: it records nothing, and the guest's counters and units know nothing of it.
    pub(crate) fn core_to_warm(&self, preset: &Preset) -> Box<dyn TimingCores> {
        let start = self.harts.first().cycle();
        let unit = TipUnit::new(preset.decode.width as usize, self.board.bus.clock().clock_hz());
        let core = CoreStart {
            start,
            recorder: Recorder::discarding(start),
            tip: SharedTip::new(unit),
            units: SharedUnits::default(),
        };
        let memory = &SharedMemory::new(preset, 1);
        let host = (self.threads, self.on_core_thread);
        let irq_at = &SharedCycle::new(u64::MAX);
        timing_cores(memory, preset, [core].into_iter(), irq_at, &StreamOptions::default(), host)
    }

    /// Saves or loads the state of the timing cores of `engine`, if there are any, between runs; what they have recorded is
    /// not part of it.
    pub fn snapshot_engine(
        &mut self,
        engine: &mut Engine,
        archive: &mut Archive<'_>,
    ) -> snapshot::Result {
        match engine.cores_mut() {
            Some(cores) => cores.snapshot(&mut self.harts.all(), archive),
            None => Ok(()),
        }
    }

    /// Returns the TIP unit of the first hart.
    pub(crate) fn first_tip(&self) -> Option<&SharedTip> {
        self.tips.first()
    }

    /// Returns what each of the host's threads that simulate calls when it begins.
    pub(crate) fn on_core_thread(&self) -> fn() {
        self.on_core_thread
    }

    /// Samples interpreted programs in timed runs from now on.
    pub fn sample_scripts(&mut self) {
        for (hart, running) in self.harts.iter_mut().zip(&self.running) {
            let sampler = ScriptSampler::new(Rc::clone(running), Rc::clone(&self.programs));
            hart.set_onlooker(Some(Box::new(sampler)));
        }
    }

    /// Returns hart `number`, or the first if there is no such hart, and the bus.
    pub fn hart_and_bus(&mut self, number: usize) -> (&mut Hart, &mut Bus) {
        (self.harts.nth_or_first_mut(number), &mut self.board.bus)
    }

    /// Returns the instruction that raised an exception of a hart, if it is still there.
    pub fn raised_by(&mut self, hart: usize, taken: &TakenException) -> Option<u32> {
        let (hart, bus) = self.hart_and_bus(hart);
        hart.raised_by(bus, taken)
    }

    /// Returns the bits of a page-table entry that raised a page fault by being clear, and nothing else did.
    pub fn clear_page_bits(&mut self, hart: usize, taken: &TakenException) -> Option<&'static str> {
        let (hart, bus) = self.hart_and_bus(hart);
        hart.clear_page_bits(bus, taken)
    }

    /// Returns the cycles that each hart's TIP unit stood still, while its own interrupt was handled.
    pub fn tip_frozen_cycles(&self) -> Vec<u64> {
        let harts = self.harts.iter().zip(&self.tips);
        harts.map(|(hart, tip)| tip.read(|unit| unit.read(Reg::Frozen, hart.cycle()))).collect()
    }

    /// Returns what became of the overflows of each hart's unit that samples instructions.
    pub fn sampled(&self) -> Vec<UnitTotals> {
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
        (0..).zip(&self.harts).map(totals).collect()
    }

    /// Returns the host's threads that simulate.
    pub(crate) fn threads(&self) -> Threads {
        self.threads
    }

    /// Runs up to a limit; a live machine comes back after a millisecond of its time at the latest, unless it makes a
    /// single step.
    pub fn run(&mut self, engine: &mut Engine, mut limit: Limit) -> RunExit {
        if let Some(pace) = &self.pace
            && limit.instructions > 1
        {
            let slice = self.harts.first().cycle().saturating_add(pace.slice());
            limit.cycle = limit.cycle.min(slice);
        }
        let before = self.harts.first().instructions();
        let exit = self.execute(engine, limit);
        if let Some(pace) = &mut self.pace {
            pace.computed(self.harts.first().instructions() - before);
            pace.wait(self.harts.first().cycle());
        }
        exit
    }

    /// Returns a hart that has stopped for good ([`Hart::is_halted`]) and its place, if every other one has, too, or sleeps with
    /// nothing that is going to wake it.
    pub fn halted(&mut self) -> Option<(usize, u64)> {
        let bus = &mut self.board.bus;
        let nothing_due = bus.next_event() == u64::MAX;
        let mut found = None;
        for hart in &self.harts {
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
        match engine.executor() {
            Executor::Timing(cores) => cores.run(&mut self.harts.all(), bus, limit),
            Executor::BetweenUnits(cores, how) => {
                cores.run_between_units(&mut self.harts.all(), bus, limit, how)
            }
            _ if self.harts.len() > 1 => run_together(&mut self.harts.all(), bus, limit),
            Executor::Surveying(surveyor) => self.harts.first_mut().run(bus, surveyor, limit),
            Executor::Functional => self.harts.first_mut().run(bus, &mut isa::Untimed, limit),
        }
    }
}
