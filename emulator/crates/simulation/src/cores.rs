//! The timing cores behind one interface, whatever they record: which one is chosen once, before the run.

use commit_trace::{Event, Recorder};
use critical_path::CoreDescription;
use devices::Bus;
use isa::{PerfEvent, SharedCycle};
use machine::{Hart, Limit, RunExit, run_timed_together};
use sampling_units::SharedUnits;
use snapshot::{Archive, Snapshot};
use timing::{
    Ahead, Core, CoreWiring, FastForward, Learning, Preset, SharedMemory, Stats, Warming,
    run_ahead, run_apart,
};
use truth::{Collector, SharedLines};

use crate::commit_stage::{SharedTip, Stream, StreamClosed};
use crate::engine::{BetweenUnits, KeptWarm};
use crate::options::Threads;
use crate::recording::SpareWorker;

/// Timing cores with their streams, one per hart.
pub trait TimingCores {
    /// Runs the harts with their cores, up to a limit.
    fn run(&mut self, harts: &mut [&mut Hart], bus: &mut Bus, limit: Limit) -> RunExit;
    /// Runs a single hart without timing up to a limit; its core sleeps meanwhile, and is kept warm as far as `how` says.
    fn run_between_units(
        &mut self,
        hart: &mut Hart,
        bus: &mut Bus,
        limit: Limit,
        how: BetweenUnits,
    ) -> RunExit;
    /// Ends the warming of cores, if it goes on: counts are then those of timed parts alone.
    fn end_warming(&mut self);
    /// Lets the cores sleep until `cycle`, up to which others have executed for the harts.
    fn go_on(&mut self, cycle: u64);
    /// Tells the cores, and what is recorded of every hart, that the region of interest starts, stops or begins anew.
    fn region(&mut self, event: &Event);
    /// Returns what was counted on each hart, without the cycles in which others executed for it.
    fn stats(&self) -> Vec<Stats>;
    /// Returns the running totals of all events on each hart, in the order of `PerfEvent::ALL`, without the cycles before the core's first
    /// one and those in which others executed for it.
    fn counts(&self) -> Vec<Vec<u64>>;
    /// Saves or loads the state between runs.
    fn snapshot(&mut self, harts: &mut [&mut Hart], archive: &mut Archive<'_>) -> snapshot::Result;
    /// Ends what was recorded.
    fn finish(self: Box<Self>) -> StreamClosed;
}

/// What the streams of all harts record; nothing by default.
#[derive(Clone, Default)]
pub struct StreamOptions {
    /// All stages of an instruction are recorded, not only its commit.
    pub stages: bool,
    /// All events are counted, also those that are counted only if somebody asks.
    pub all_events: bool,
    /// What samples should say is collected, with these cache lines of all harts.
    pub truth: Option<SharedLines>,
    /// Excerpts are taken, which say this of the core.
    pub excerpts: Option<CoreDescription>,
    /// Truth and excerpts are of the region of interest between marks, not of all from the start on.
    pub marked: bool,
    /// The means to read what is recorded while the hart or the core would wait.
    pub spare_worker: Option<SpareWorker>,
}

/// What a core begins with.
pub struct CoreStart {
    /// The cycle before the core's first one.
    pub start: u64,
    /// The recorder, which gets what commits.
    pub recorder: Recorder,
    /// The hart's TIP unit.
    pub tip: SharedTip,
    /// The hart's sampling units.
    pub units: SharedUnits,
}

/// Returns cores of `preset` that share `memory`, one for each of `starts`. A TIP unit's interrupt brings `irq_at` forward; `host`:
/// threads that simulate, and what each calls when it begins.
pub fn timing_cores(
    memory: &SharedMemory,
    preset: &Preset,
    starts: impl Iterator<Item = CoreStart>,
    irq_at: &SharedCycle,
    options: &StreamOptions,
    host: (Threads, fn()),
) -> Box<dyn TimingCores> {
    match options.stages {
        false => Box::new(Cores::<false>::new(memory, preset, starts, irq_at, options, host)),
        true => Box::new(Cores::<true>::new(memory, preset, starts, irq_at, options, host)),
    }
}

/// A core, and the cycles in which others executed for it (`rested`), which the core takes for sleep.
struct Timing<const STAGES: bool> {
    core: Core<Stream<STAGES>>,
    /// The cycle before the core's first one.
    start: u64,
    rested: u64,
    /// Whether the hart rarely waited for the core in the last run, so that a thread for the core is worth it.
    apart: bool,
}

/// Instructions of a run from which on starting a thread for the core is worth it.
const WORTH_A_THREAD: u64 = 1 << 16;
/// Instructions for each time that the hart waits for the core above which a thread for the core is worth it.
const WORTH_WAITING: u64 = 1 << 8;

/// How one hart and its core use the host.
#[derive(Clone)]
struct HostThreads {
    /// Threads for a single hart and its core; several harts and their cores always have one.
    threads: Threads,
    /// Called on each thread of a core when it begins.
    on_core_thread: fn(),
    /// The means to read what is recorded while the hart or the core would wait.
    spare_worker: Option<SpareWorker>,
}

impl<const STAGES: bool> Timing<STAGES> {
    /// Runs the hart with this core, in one thread or two.
    fn run(&mut self, hart: &mut Hart, bus: &mut Bus, limit: Limit, host: &HostThreads) -> RunExit {
        let raised = SharedCycle::new(u64::MAX);
        let irq_at = self.core.sink_mut().raise(raised.clone());
        let spare_worker = host.spare_worker.as_ref();
        let wiring = CoreWiring {
            quiet_until: &self.core.sink().quiet(),
            raised: &raised,
            irq_at: &irq_at,
            spare_work: &|what| spare_worker.is_some_and(|spare_worker| spare_worker.help(what)),
        };
        let before = hart.instructions();
        let run = |ahead: &mut Ahead<'_>| (hart.run(bus, ahead, limit), ahead.waits());
        let apart = match host.threads {
            Threads::One => false,
            Threads::Two => true,
            Threads::Auto => self.apart && limit.instructions >= WORTH_A_THREAD,
        };
        let (exit, waits) = match apart {
            true => run_apart(&mut self.core, wiring, host.on_core_thread, run),
            false => run_ahead(&mut self.core, wiring, run),
        };
        self.apart = hart.instructions() - before > waits * WORTH_WAITING;
        self.core.sink_mut().raise(irq_at);
        exit
    }
}

/// The cores of all harts.
struct Cores<const STAGES: bool> {
    cores: Vec<Timing<STAGES>>,
    host: HostThreads,
}

impl<const STAGES: bool> Cores<STAGES> {
    fn new(
        memory: &SharedMemory,
        preset: &Preset,
        starts: impl Iterator<Item = CoreStart>,
        irq_at: &SharedCycle,
        options: &StreamOptions,
        (threads, on_core_thread): (Threads, fn()),
    ) -> Self {
        let cores = starts.enumerate().map(|(hart, start)| {
            let CoreStart { start, recorder, tip, units } = start;
            let mut stream = Stream::<STAGES>::new(tip, units, recorder, irq_at.clone());
            if let Some(lines) = &options.truth {
                let mut collector = Collector::new(hart, lines.clone());
                if !options.marked {
                    collector.open();
                }
                stream.collect_truth(collector);
            }
            if let Some(description) = options.excerpts {
                stream.take_excerpts(critical_path::Collector::new(description));
            }
            let mut core = Core::sharing(memory, hart, preset, stream).started_at(start);
            if options.all_events {
                core.count_all();
            }
            if !options.marked {
                core.observe_for_host(options.truth.is_some());
                core.excerpts_from(core.sink().next_excerpt(core.cycle()));
            }
            Timing { core, start, rested: 0, apart: true }
        });
        let cores = cores.collect();
        let threads = threads.of_this_host();
        let spare_worker = options.spare_worker.clone();
        Self { cores, host: HostThreads { threads, on_core_thread, spare_worker } }
    }
}

impl<const STAGES: bool> TimingCores for Cores<STAGES> {
    fn run(&mut self, harts: &mut [&mut Hart], bus: &mut Bus, limit: Limit) -> RunExit {
        if let ([hart], [timing]) = (&mut *harts, &mut self.cores[..]) {
            return timing.run(hart, bus, limit, &self.host);
        }
        let cores = self.cores.iter_mut().map(|timing| &mut timing.core);
        let mut pairs: Vec<_> = harts.iter_mut().map(|hart| &mut **hart).zip(cores).collect();
        run_timed_together(&mut pairs, bus, limit)
    }

    fn run_between_units(
        &mut self,
        hart: &mut Hart,
        bus: &mut Bus,
        limit: Limit,
        BetweenUnits { rate, kept_warm }: BetweenUnits,
    ) -> RunExit {
        let Some(Timing { core, .. }) = self.cores.first_mut() else {
            return hart.run(bus, &mut isa::Untimed, limit);
        };
        let learning = match (kept_warm, self.host.threads) {
            (KeptWarm::Nothing, _) => {
                return hart.run(bus, &mut FastForward::new(core, rate), limit);
            }
            (KeptWarm::Caches, _) => Learning::Off,
            (_, Threads::One) => Learning::Here,
            (_, Threads::Auto | Threads::Two) => Learning::Apart(self.host.on_core_thread),
        };
        hart.run(bus, &mut Warming::new(core, rate, learning), limit)
    }

    fn end_warming(&mut self) {
        for Timing { core, .. } in &mut self.cores {
            core.end_warming();
        }
    }

    fn go_on(&mut self, cycle: u64) {
        for Timing { core, rested, .. } in &mut self.cores {
            *rested += cycle.saturating_sub(core.cycle());
            core.end_rest(cycle);
        }
    }

    fn region(&mut self, event: &Event) {
        for Timing { core, .. } in &mut self.cores {
            core.region(event.clone());
            let next = match *event {
                Event::Region(false) => u64::MAX,
                _ => core.sink().next_excerpt(core.cycle()),
            };
            core.excerpts_from(next);
            if core.sink().collects_truth() {
                core.observe_for_host(*event != Event::Region(false));
            }
        }
    }

    fn stats(&self) -> Vec<Stats> {
        let counted = self.cores.iter().map(|Timing { core, rested, .. }| {
            let stats = core.stats();
            Stats {
                cycles: stats.cycles - rested,
                cycles_idle: stats.cycles_idle - rested,
                ..stats
            }
        });
        counted.collect()
    }

    fn counts(&self) -> Vec<Vec<u64>> {
        let counts = self.cores.iter().map(|Timing { core, start, rested, .. }| {
            let mut counts = core.counts();
            for (count, event) in counts.iter_mut().zip(PerfEvent::ALL) {
                *count -= match event {
                    PerfEvent::Cycles | PerfEvent::ReferenceCycles => start + rested,
                    PerfEvent::CyclesIdle => *rested,
                    _ => 0,
                };
            }
            counts
        });
        counts.collect()
    }

    fn snapshot(&mut self, harts: &mut [&mut Hart], archive: &mut Archive<'_>) -> snapshot::Result {
        self.end_warming();
        for (Timing { core, .. }, hart) in self.cores.iter_mut().zip(harts) {
            core.snapshot(archive)?;
            let cycle = core.cycle();
            let recent = core.sink_mut().recent(cycle, archive)?;
            if archive.is_loading() {
                hart.skip_ids(recent);
                core.skip_ids(recent);
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> StreamClosed {
        StreamClosed::of(self.cores.into_iter().map(|timing| timing.core.into_sink()))
    }
}
