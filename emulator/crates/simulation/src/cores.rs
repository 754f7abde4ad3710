//! The timing cores behind one interface, whatever they record: which one is chosen once, before the run.

mod fork;

use commit_trace::{Event, Recorder};
use critical_path::CoreDescription;
use devices::Bus;
use isa::{PerfEvent, SharedCycle, TimingModel};
use machine::{Hart, Limit, RunExit, run_paced_together, run_timed_together};
use sampling_units::SharedUnits;
use snapshot::{Archive, Snapshot, SnapshotError};
use stored_units::UnitsError;
use timing::{
    Ahead, Core, CoreTap, CoreWiring, FastForward, Learning, MissCounts, Preset, SharedMemory,
    Stats, Warming, run_ahead, run_apart,
};
use truth::{Collector, SharedLines};

use crate::check::{SharedLog, Taps};
use crate::commit_stage::{SharedTip, Stream, StreamClosed};
use crate::engine::{BetweenUnits, KeptWarm};
use crate::options::Threads;
use crate::recording::SpareWorker;
use crate::sampling::{Phase, SamplingPlan};
use crate::stored::{StoredUnits, Switch};
pub(crate) use fork::{ForkMeasurement, FunctionalWarmingMisses};

/// Timing cores with their streams, one per hart.
pub trait TimingCores {
    /// Runs the harts with their cores, up to a limit.
    fn run(&mut self, harts: &mut [&mut Hart], bus: &mut Bus, limit: Limit) -> RunExit;
    /// Runs the harts without timing up to a limit; their cores sleep meanwhile, and are kept warm as far as `how` says.
    fn run_between_units(
        &mut self,
        harts: &mut [&mut Hart],
        bus: &mut Bus,
        limit: Limit,
        how: BetweenUnits,
    ) -> RunExit;
    /// Returns what cores that have timed nothing learnt while they were kept warm, which ends their warming.
    fn warmed_state(&mut self) -> Result<Vec<u8>, SnapshotError>;
    /// Lets cores that have done nothing yet begin with what others [learnt](Self::warmed_state).
    fn begin_warm(&mut self, warmed_state: &[u8]) -> snapshot::Result;
    /// Ends the functional warming of cores, if it has begun. From then on, counts are those of timed parts alone.
    fn end_warming(&mut self);
    /// Lets each core sleep until a cycle, up to which others have executed for its hart.
    fn go_on(&mut self, cycles: &[u64]);
    /// Lets the cores of harts that sleep hear of the time that has passed meanwhile.
    fn pass_sleep(&mut self, harts: &mut [&mut Hart], cycle: u64);
    /// Returns the cycles between units in which all of several harts slept.
    fn slept_between_units(&self) -> u64;
    /// Returns the cycles between units in which a hart waited for cache lines of other harts.
    fn waited_between_units(&self, hart: usize) -> u64;
    /// Taps the calls to a single hart's core: they are logged while the core has a [fork](Self::fork), and passed on to `store`, if there is one.
    fn tap(&mut self, store: Option<Box<dyn CoreTap>>);
    /// Forks the single core at the begin of a timed stretch, whose first phase is `phase`. The fork later finds more of the stretch than its cycles
    /// ([`Self::end_fork`]).
    fn fork(&mut self, phase: Phase);
    /// Notes that the stretch goes on with another phase.
    fn mark_phase(&mut self, phase: Phase);
    /// Ends the stretch, and returns what the fork found of it, if there is one; `is_whole`: the stretch ends with a whole unit.
    fn end_fork(&mut self, plan: &SamplingPlan, is_whole: bool) -> ForkMeasurement;
    /// Replays stored units on the single core up to the next event of the region of interest, and returns that event; `None` at the end of the
    /// units.
    fn replay(&mut self, units: &mut StoredUnits) -> Result<Option<Event>, UnitsError>;
    /// Tells the cores, and what is recorded of every hart, that the region of interest starts, stops or begins anew.
    fn region(&mut self, event: &Event);
    /// Records for every hart the weight of the next stretches: how much of the region they stand for.
    fn weigh(&mut self, weight: u32);
    /// Returns running totals of the misses of a single hart's core, timed or not.
    fn misses(&self) -> MissCounts;
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
    /// Cache lines of all harts, if the truth is collected: what samples should say.
    pub truth: Option<SharedLines>,
    /// What excerpts say of the core, if excerpts are taken.
    pub excerpts: Option<CoreDescription>,
    /// Truth and excerpts are of the region of interest between marks, not of all from the start on.
    pub marked: bool,
    /// The means to read what is recorded while the hart or the core would wait.
    pub spare_worker: Option<SpareWorker>,
}

/// What a core begins with.
pub(crate) struct CoreStart {
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
pub(crate) fn timing_cores(
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

/// The timing core of a hart; `RECORDS_STAGES` as for its [`Stream`].
struct Timing<const RECORDS_STAGES: bool> {
    core: Core<Stream<RECORDS_STAGES>>,
    /// The cycle before the core's first one.
    start: u64,
    /// Cycles in which the functional hart executed instead of the core, which takes them for sleep.
    rested: u64,
    /// Whether the hart rarely waited for the core in the last run, so that a thread for the core is worth it.
    apart: bool,
}

/// Instructions of a run from which on starting a thread for the core is worth it.
const WORTH_A_THREAD: u64 = 1 << 16;
/// Instructions per wait of the hart for its core above which a thread for the core is worth it.
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

impl HostThreads {
    /// Returns which thread lets predictors learn from the path that the hart executes.
    fn learning(&self) -> Learning {
        match self.threads {
            Threads::One => Learning::Here,
            Threads::Auto | Threads::Two => Learning::Apart(self.on_core_thread),
        }
    }
}

impl<const RECORDS_STAGES: bool> Timing<RECORDS_STAGES> {
    fn of(core: Core<Stream<RECORDS_STAGES>>) -> Self {
        Self { core, start: 0, rested: 0, apart: true }
    }

    /// Returns the cycles in which the core was awake.
    fn awake_cycles(&self) -> u64 {
        let stats = self.core.stats();
        stats.cycles - stats.cycles_idle
    }

    /// Runs the hart with this core, in one thread or two.
    fn run(&mut self, hart: &mut Hart, bus: &mut Bus, limit: Limit, host: &HostThreads) -> RunExit {
        let apart = match host.threads {
            Threads::One => false,
            Threads::Two => true,
            Threads::Auto => self.apart && limit.instructions >= WORTH_A_THREAD,
        };
        let before = hart.instructions();
        let run = |ahead: &mut Ahead<'_>| (hart.run(bus, ahead, limit), ahead.waits());
        let (exit, waits) = self.ahead(apart, host, run);
        self.apart = hart.instructions() - before > waits * WORTH_WAITING;
        exit
    }

    /// Calls `run` with an [`Ahead`], which stands for the core. The core runs on a thread of its own if `apart`.
    fn ahead<R>(
        &mut self,
        apart: bool,
        host: &HostThreads,
        run: impl FnOnce(&mut Ahead<'_>) -> R,
    ) -> R {
        let raised = SharedCycle::new(u64::MAX);
        let irq_at = self.core.sink_mut().raise(raised.clone());
        let spare_worker = host.spare_worker.as_ref();
        let wiring = CoreWiring {
            quiet_until: &self.core.sink().quiet(),
            raised: &raised,
            irq_at: &irq_at,
            spare_work: &|what| spare_worker.is_some_and(|spare_worker| spare_worker.help(what)),
        };
        // Halves that alternate would wait for each other on two threads.
        let result = match apart && !self.core.halves_alternate() {
            true => run_apart(&mut self.core, wiring, host.on_core_thread, run),
            false => run_ahead(&mut self.core, wiring, run),
        };
        self.core.sink_mut().raise(irq_at);
        result
    }
}

/// Runs harts without timing at the pace of their models. If there are several harts, adds to `slept` the cycles in which all of them slept.
fn run_paced<T: TimingModel>(
    harts: &mut [&mut Hart],
    mut models: Vec<T>,
    bus: &mut Bus,
    limit: Limit,
    slept: &mut u64,
) -> RunExit {
    if let ([hart], [model]) = (&mut *harts, &mut models[..]) {
        return hart.run(bus, model, limit);
    }
    let pairs = harts.iter_mut().map(|hart| &mut **hart).zip(&mut models);
    let (exit, all_slept) = run_paced_together(&mut pairs.collect::<Vec<_>>(), bus, limit);
    *slept += all_slept;
    exit
}

/// The cores of all harts.
struct Cores<const RECORDS_STAGES: bool> {
    cores: Vec<Timing<RECORDS_STAGES>>,
    /// Fork of the single core, made at the begin of the present timed stretch.
    fork: Option<Timing<RECORDS_STAGES>>,
    /// Calls to the single core since the fork was made.
    log: SharedLog,
    /// Cycles between units in which all of several harts slept.
    slept: u64,
    host: HostThreads,
}

impl<const RECORDS_STAGES: bool> Cores<RECORDS_STAGES> {
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
            let mut stream = Stream::<RECORDS_STAGES>::new(tip, units, recorder, irq_at.clone());
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
            Timing { start, ..Timing::of(core) }
        });
        let cores = cores.collect();
        let threads = threads.of_this_host();
        let spare_worker = options.spare_worker.clone();
        let (fork, log) = (None, SharedLog::default());
        Self {
            cores,
            fork,
            log,
            slept: 0,
            host: HostThreads { threads, on_core_thread, spare_worker },
        }
    }
}

impl<const RECORDS_STAGES: bool> TimingCores for Cores<RECORDS_STAGES> {
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
        harts: &mut [&mut Hart],
        bus: &mut Bus,
        limit: Limit,
        BetweenUnits { rates, kept_warm }: BetweenUnits,
    ) -> RunExit {
        let learning = match kept_warm {
            KeptWarm::Nothing | KeptWarm::Caches => Learning::Off,
            KeptWarm::CachesAndPredictors => self.host.learning(),
        };
        let cores = self.cores.iter_mut().map(|timing| &mut timing.core).zip(rates);
        match kept_warm {
            KeptWarm::Nothing => {
                let models = cores.map(|(core, rate)| FastForward::new(core, rate));
                run_paced(harts, models.collect(), bus, limit, &mut self.slept)
            }
            KeptWarm::Caches | KeptWarm::CachesAndPredictors => {
                let models = cores.map(|(core, rate)| Warming::new(core, rate, learning));
                run_paced(harts, models.collect(), bus, limit, &mut self.slept)
            }
        }
    }

    fn pass_sleep(&mut self, harts: &mut [&mut Hart], cycle: u64) {
        for (hart, Timing { core, .. }) in harts.iter_mut().zip(&mut self.cores) {
            hart.pass_sleep(core, cycle);
        }
    }

    fn slept_between_units(&self) -> u64 {
        self.slept
    }

    fn waited_between_units(&self, hart: usize) -> u64 {
        self.cores.get(hart).map_or(0, |timing| timing.core.warm_delay())
    }

    fn tap(&mut self, store: Option<Box<dyn CoreTap>>) {
        if let Some(Timing { core, .. }) = self.cores.first_mut() {
            core.set_tap(Box::new(Taps { store, log: SharedLog::clone(&self.log) }));
        }
    }

    fn fork(&mut self, phase: Phase) {
        // Calls to the cores of several harts pass no tap, so a fork would have no log to follow.
        let [timing] = &mut self.cores[..] else { return };
        // A core whose state cannot be saved has no fork: only the cycles of the stretch are known.
        self.fork = timing.fork();
        if self.fork.is_some() {
            self.log.borrow_mut().open();
            self.mark_phase(phase);
        }
    }

    fn mark_phase(&mut self, phase: Phase) {
        if let Some(Timing { core, .. }) = self.cores.first() {
            self.log.borrow_mut().mark(phase, core.cycle());
        }
    }

    fn end_fork(&mut self, plan: &SamplingPlan, is_whole: bool) -> ForkMeasurement {
        let log = std::mem::take(&mut *self.log.borrow_mut());
        let Some(fork) = self.fork.take() else { return ForkMeasurement::default() };
        fork.follow(&log, plan, is_whole, &self.host)
    }

    fn replay(&mut self, units: &mut StoredUnits) -> Result<Option<Event>, UnitsError> {
        loop {
            let switch = match (units.resting, self.cores.first_mut()) {
                (_, None) => return Ok(None),
                (None, Some(timing)) => {
                    let apart = self.host.threads != Threads::One;
                    timing.ahead(apart, &self.host, |ahead| units.time(ahead))?
                }
                (Some(learns), Some(Timing { core, .. })) => {
                    let learning = match learns {
                        true => self.host.learning(),
                        false => Learning::Off,
                    };
                    units.warm(&mut Warming::new(core, 1 << 16, learning))?
                }
            };
            match switch {
                None => return Ok(None),
                Some(Switch::Region(event)) => return Ok(Some(event)),
                Some(Switch::Rest { learns }) => units.rest(learns),
                Some(Switch::Wake { cycle }) => {
                    let now = self.cores.first().map_or(0, |timing| timing.core.cycle());
                    self.go_on(&[units.wake(cycle, now)]);
                }
            }
        }
    }

    fn warmed_state(&mut self) -> Result<Vec<u8>, SnapshotError> {
        let mut archive = Archive::saving();
        self.cores.iter_mut().try_for_each(|timing| timing.core.warmed_state(&mut archive))?;
        Ok(archive.into_bytes())
    }

    fn begin_warm(&mut self, warmed_state: &[u8]) -> snapshot::Result {
        let mut archive = Archive::loading(warmed_state);
        self.cores.iter_mut().try_for_each(|timing| timing.core.warmed_state(&mut archive))?;
        archive.end()
    }

    fn end_warming(&mut self) {
        for Timing { core, .. } in &mut self.cores {
            core.end_warming();
        }
    }

    fn go_on(&mut self, cycles: &[u64]) {
        for (Timing { core, rested, .. }, &cycle) in self.cores.iter_mut().zip(cycles) {
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

    fn weigh(&mut self, weight: u32) {
        for Timing { core, .. } in &mut self.cores {
            core.region(Event::Weight(weight));
        }
    }

    fn misses(&self) -> MissCounts {
        self.cores.first().map_or_else(MissCounts::default, |timing| timing.core.misses())
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
