//! The timing core behind one interface, whatever it records: which one is chosen once, before the run.

use commit_trace::RecordError;
use machine::{Bus, Hart, Limit, RunExit};
use snapshot::{Archive, Snapshot};
use timing::{Core, Preset, Stats};

use crate::stream::Stream;

/// A timing core with its stream.
pub trait Timed {
    /// Executes on `hart`, up to a limit.
    fn run(&mut self, hart: &mut Hart, bus: &mut Bus, limit: Limit) -> RunExit;
    /// Cycle of the last commit.
    fn cycle(&self) -> u64;
    /// The hart sleeps until `cycle`.
    fn idle_until(&mut self, cycle: u64);
    /// The region of interest starts or ends.
    fn region(&mut self, start: bool);
    /// What was counted.
    fn stats(&self) -> Stats;
    /// State between runs.
    fn snapshot(&mut self, hart: &mut Hart, archive: &mut Archive<'_>) -> snapshot::Result;
    /// Ends what was recorded.
    fn finish(self: Box<Self>) -> Result<(), RecordError>;
}

/// The core of `preset`, whose first cycle is the one after `start`.
pub fn timed<const STAGES: bool>(
    start: u64,
    preset: &Preset,
    stream: Stream<STAGES>,
) -> Box<dyn Timed> {
    Box::new(Core::starting_at(start, preset, stream))
}

impl<const STAGES: bool> Timed for Core<Stream<STAGES>> {
    fn run(&mut self, hart: &mut Hart, bus: &mut Bus, limit: Limit) -> RunExit {
        hart.run(bus, self, limit)
    }

    fn cycle(&self) -> u64 {
        self.cycle()
    }

    fn idle_until(&mut self, cycle: u64) {
        isa::TimingModel::idle_until(self, cycle);
    }

    fn region(&mut self, start: bool) {
        isa::TimingModel::region(self, start);
    }

    fn stats(&self) -> Stats {
        self.stats()
    }

    fn snapshot(&mut self, hart: &mut Hart, archive: &mut Archive<'_>) -> snapshot::Result {
        Snapshot::snapshot(self, archive)?;
        let cycle = self.cycle();
        let recent = self.sink_mut().recent(cycle, archive)?;
        if archive.is_loading() {
            hart.skip_ids(recent);
            self.skip_ids(recent);
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), RecordError> {
        self.into_sink().finish()
    }
}
