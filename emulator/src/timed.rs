//! The timing cores behind one interface, whatever they record: which one is chosen once, before the run.

use std::cell::Cell;
use std::rc::Rc;

use commit_trace::{RecordError, Recorder};
use machine::{Bus, Hart, Limit, RunExit, run_timed_together};
use snapshot::{Archive, Snapshot};
use timing::{Core, Preset, SharedMemory, Stats};

use crate::stream::{SharedTip, Stream};

/// Timing cores with their streams, one per hart.
pub trait Timed {
    /// Executes on the harts, up to a limit.
    fn run(&mut self, harts: &mut [&mut Hart], bus: &mut Bus, limit: Limit) -> RunExit;
    /// Others have executed for the harts until `cycle`; the region of interest starts.
    fn go_on(&mut self, cycle: u64);
    /// The region of interest starts or ends.
    fn region(&mut self, start: bool);
    /// What was counted on each hart, without the cycles in which others executed for it.
    fn stats(&self) -> Vec<Stats>;
    /// State between runs.
    fn snapshot(&mut self, harts: &mut [&mut Hart], archive: &mut Archive<'_>) -> snapshot::Result;
    /// Ends what was recorded.
    fn finish(self: Box<Self>) -> Result<(), RecordError>;
}

/// A core, and the cycles in which others executed for it: it takes them for sleep.
struct Timing<const STAGES: bool> {
    core: Core<Stream<STAGES>>,
    rested: u64,
}

/// Cores of `preset`, one for each of what is `recorded`: its first cycle is the one after the number, its stream has
/// recorder and TIP unit, whose interrupt brings `irq_at` forward.
pub fn timed<const STAGES: bool>(
    preset: &Preset,
    recorded: impl ExactSizeIterator<Item = ((u64, Recorder), SharedTip)>,
    irq_at: &Rc<Cell<u64>>,
) -> Box<dyn Timed> {
    let memory = SharedMemory::new(preset, recorded.len());
    let cores = recorded
        .enumerate()
        .map(|(hart, ((start, recorder), tip))| {
            let stream = Stream::<STAGES>::new(tip, recorder, Rc::clone(irq_at));
            Timing {
                core: Core::sharing(&memory, hart, preset, stream).started_at(start),
                rested: 0,
            }
        });
    Box::new(cores.collect::<Vec<_>>())
}

impl<const STAGES: bool> Timed for Vec<Timing<STAGES>> {
    fn run(&mut self, harts: &mut [&mut Hart], bus: &mut Bus, limit: Limit) -> RunExit {
        if let ([hart], [timing]) = (&mut *harts, &mut self[..]) {
            return hart.run(bus, &mut timing.core, limit);
        }
        let cores = self.iter_mut().map(|timing| &mut timing.core);
        let mut pairs: Vec<_> = harts
            .iter_mut()
            .map(|hart| &mut **hart)
            .zip(cores)
            .collect();
        run_timed_together(&mut pairs, bus, limit)
    }

    fn go_on(&mut self, cycle: u64) {
        for Timing { core, rested } in self {
            *rested += cycle.saturating_sub(core.cycle());
            isa::TimingModel::idle_until(core, cycle);
            isa::TimingModel::region(core, true);
        }
    }

    fn region(&mut self, start: bool) {
        for Timing { core, .. } in self {
            isa::TimingModel::region(core, start);
        }
    }

    fn stats(&self) -> Vec<Stats> {
        let counted = self.iter().map(|Timing { core, rested }| {
            let stats = core.stats();
            Stats {
                cycles: stats.cycles - rested,
                cycles_idle: stats.cycles_idle - rested,
                ..stats
            }
        });
        counted.collect()
    }

    fn snapshot(&mut self, harts: &mut [&mut Hart], archive: &mut Archive<'_>) -> snapshot::Result {
        for (Timing { core, .. }, hart) in self.iter_mut().zip(harts) {
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

    fn finish(self: Box<Self>) -> Result<(), RecordError> {
        // All of them end, whatever comes of the first.
        let ends = self
            .into_iter()
            .map(|timing| timing.core.into_sink().finish());
        let ends: Vec<Result<(), RecordError>> = ends.collect();
        ends.into_iter().collect()
    }
}
