//! The timing cores behind one interface, whatever they record: which one is chosen once, before the run.

use commit_trace::{Event, Recorder};
use critical_path::CoreDescription;
use devices::Bus;
use isa::SharedCycle;
use machine::{Hart, Limit, RunExit, run_timed_together};
use sampling_units::SharedUnits;
use snapshot::{Archive, Snapshot};
use timing::{Ahead, Core, CoreWiring, Preset, SharedMemory, Stats, run_ahead, run_apart};
use truth::{Collector, SharedLines};

use crate::self_profile::sample_this_thread;
use crate::spec::Threads;
use crate::stream::{SharedTip, SpareWorker, Stream, StreamClosed};

/// Timing cores with their streams, one per hart.
pub trait Timed {
    /// Runs the harts with their cores, up to a limit.
    fn run(&mut self, harts: &mut [&mut Hart], bus: &mut Bus, limit: Limit) -> RunExit;
    /// Lets the cores sleep until `cycle`, up to which others have executed for the harts.
    fn go_on(&mut self, cycle: u64);
    /// Tells the cores that the region of interest starts, stops or begins anew.
    fn region(&mut self, event: &Event);
    /// Returns what was counted on each hart, without the cycles in which others executed for it.
    fn stats(&self) -> Vec<Stats>;
    /// Counts all events from now on.
    fn count_all(&mut self);
    /// Collects what samples should say, of the region of interest or, if there are no marks, from now on. Before anything runs.
    fn collect_truth(&mut self, lines: &SharedLines, marked: bool);
    /// Takes excerpts of the region of interest or, if there are no marks, from now on. Before anything runs.
    fn take_excerpts(&mut self, description: CoreDescription, marked: bool);
    /// Returns the running totals of all events on each hart, in the order of `PerfEvent::ALL`.
    fn counts(&self) -> Vec<Vec<u64>>;
    /// Saves or loads the state between runs.
    fn snapshot(&mut self, harts: &mut [&mut Hart], archive: &mut Archive<'_>) -> snapshot::Result;
    /// Ends what was recorded.
    fn finish(self: Box<Self>) -> StreamClosed;
}

/// A core, and the cycles in which others executed for it (`rested`), which the core takes for sleep.
struct Timing<const STAGES: bool> {
    core: Core<Stream<STAGES>>,
    rested: u64,
    /// The means to read what is recorded while the hart or the core would wait.
    spare_worker: Option<SpareWorker>,
    /// Whether the hart rarely waited for the core in the last run, so that a thread for the core is worth it.
    apart: bool,
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

/// Returns cores of `preset` that share `memory`, one for each of `recorded`. A TIP unit's interrupt brings `irq_at` forward.
pub fn timed<const STAGES: bool>(
    memory: &SharedMemory,
    preset: &Preset,
    recorded: impl Iterator<Item = CoreStart>,
    irq_at: &SharedCycle,
    spare_worker: Option<SpareWorker>,
    threads: Threads,
) -> Box<dyn Timed> {
    let cores = recorded.enumerate().map(|(hart, recorded)| {
        let CoreStart { start, recorder, tip, units } = recorded;
        let stream = Stream::<STAGES>::new(tip, units, recorder, irq_at.clone());
        Timing {
            core: Core::sharing(memory, hart, preset, stream).started_at(start),
            rested: 0,
            spare_worker: spare_worker.clone(),
            apart: true,
        }
    });
    Box::new(Cores { cores: cores.collect(), threads: threads.of_this_host() })
}

/// Instructions of a run from which on starting a thread for the core is worth it.
const WORTH_A_THREAD: u64 = 1 << 16;
/// Instructions for each time that the hart waits for the core above which a thread for the core is worth it.
const WORTH_WAITING: u64 = 1 << 8;

impl<const STAGES: bool> Timing<STAGES> {
    /// Runs the hart with this core, in one thread or two.
    fn run(&mut self, hart: &mut Hart, bus: &mut Bus, limit: Limit, threads: Threads) -> RunExit {
        let raised = SharedCycle::new(u64::MAX);
        let irq_at = self.core.sink_mut().raise(raised.clone());
        let spare_worker = self.spare_worker.as_ref();
        let wiring = CoreWiring {
            quiet_until: &self.core.sink().quiet(),
            raised: &raised,
            irq_at: &irq_at,
            spare_work: &|what| spare_worker.is_some_and(|spare_worker| spare_worker.help(what)),
        };
        let before = hart.instructions();
        let run = |ahead: &mut Ahead<'_>| (hart.run(bus, ahead, limit), ahead.waits());
        let apart = match threads {
            Threads::One => false,
            Threads::Two => true,
            Threads::Auto => self.apart && limit.instructions >= WORTH_A_THREAD,
        };
        let (exit, waits) = match apart {
            true => run_apart(&mut self.core, wiring, sample_this_thread, run),
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
    /// Threads for a single hart and its core; several harts and their cores always have one.
    threads: Threads,
}

impl<const STAGES: bool> Timed for Cores<STAGES> {
    fn run(&mut self, harts: &mut [&mut Hart], bus: &mut Bus, limit: Limit) -> RunExit {
        if let ([hart], [timing]) = (&mut *harts, &mut self.cores[..]) {
            return timing.run(hart, bus, limit, self.threads);
        }
        let cores = self.cores.iter_mut().map(|timing| &mut timing.core);
        let mut pairs: Vec<_> = harts.iter_mut().map(|hart| &mut **hart).zip(cores).collect();
        run_timed_together(&mut pairs, bus, limit)
    }

    fn go_on(&mut self, cycle: u64) {
        for Timing { core, rested, .. } in &mut self.cores {
            *rested += cycle.saturating_sub(core.cycle());
            isa::TimingModel::idle_until(core, cycle);
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

    fn count_all(&mut self) {
        for Timing { core, .. } in &mut self.cores {
            core.count_all();
        }
    }

    fn collect_truth(&mut self, lines: &SharedLines, marked: bool) {
        for (hart, Timing { core, .. }) in self.cores.iter_mut().enumerate() {
            let mut collector = Collector::new(hart, lines.clone());
            if !marked {
                collector.open();
                core.observe_for_host(true);
            }
            core.sink_mut().collect_truth(collector);
        }
    }

    fn take_excerpts(&mut self, description: CoreDescription, marked: bool) {
        for Timing { core, .. } in &mut self.cores {
            core.sink_mut().take_excerpts(critical_path::Collector::new(description));
            if !marked {
                core.excerpts_from(core.sink().next_excerpt(core.cycle()));
            }
        }
    }

    fn counts(&self) -> Vec<Vec<u64>> {
        self.cores.iter().map(|timing| timing.core.counts()).collect()
    }

    fn snapshot(&mut self, harts: &mut [&mut Hart], archive: &mut Archive<'_>) -> snapshot::Result {
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
