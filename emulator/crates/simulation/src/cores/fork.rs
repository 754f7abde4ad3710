//! A fork of a core, which replays the calls that the core got while it timed a stretch.

use isa::TimingModel as _;
use timing::{Learning, MissCounts, Warming};

use super::{HostThreads, Timing};
use crate::check::{CallLog, LogCursor, WarmEnd};
use crate::engine::KeptWarm;
use crate::sampling::{Phase, SamplingPlan};

/// What a fork of a core measures of a stretch of the program: it goes through the stretch a second time, from the state in which the core began it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ForkMeasurement {
    /// Cycles of the unit from the functionally warmed state in which other units begin, if the stretch began with a long timed warm-up
    /// ([`Phase::Reference`]).
    pub(crate) cycles: Option<u64>,
    /// Misses of the stretch, if the plan counts the misses of the region.
    pub(crate) misses: Option<FunctionalWarmingMisses>,
}

/// Misses of caches and TLBs in a timed stretch of the program, as functional warming would have counted them. They can be added to the misses that
/// functional warming counts in the rest of the region.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FunctionalWarmingMisses {
    /// Misses of all of the stretch.
    pub stretch: MissCounts,
    /// Misses of its unit.
    pub unit: MissCounts,
}

impl<const RECORDS_STAGES: bool> Timing<RECORDS_STAGES> {
    /// Returns a copy of this core, which must be between two runs. Nobody reads the copy's stream. `None`: the core's state cannot be saved.
    pub(super) fn fork(&mut self) -> Option<Self> {
        let Self { core, .. } = self;
        let width = core.preset().decode.width as usize;
        let sink = core.sink().unread(core.cycle(), width);
        core.fork(sink).ok().map(Self::of)
    }

    /// Replays the calls that another core got while it timed a stretch, and returns what the sampling plan asks for. `is_whole`: the stretch ends
    /// with a whole unit.
    pub(super) fn follow(
        mut self,
        log: &CallLog,
        plan: &SamplingPlan,
        is_whole: bool,
        host: &HostThreads,
    ) -> ForkMeasurement {
        let mut found = ForkMeasurement::default();
        let mut cursor = LogCursor::default();
        let Some(mut phase) = log.begin(&mut cursor) else { return found };
        let mut misses = FunctionalWarmingMisses::default();
        if phase == Phase::Reference {
            let before = self.core.misses();
            let mark = log.instructions_of_first();
            let caches_from = mark.saturating_sub(plan.caches.unwrap_or(u64::MAX));
            let end = self.keep_warm(
                log,
                &mut cursor,
                &[
                    (caches_from, KeptWarm::Nothing),
                    (mark.saturating_sub(plan.predictors), KeptWarm::Caches),
                    (u64::MAX, KeptWarm::CachesAndPredictors),
                ],
            );
            let now = self.core.cycle();
            self.core.end_rest(now);
            misses.stretch = self.core.misses().since(before);
            let fork = plan.knows_misses().then(|| self.fork()).flatten();
            if let (Some((phase, since)), true) = (end, is_whole) {
                found.cycles = Some(self.times(log, cursor, phase, (since, now), host));
            }
            let Some(fork) = fork else { return found };
            let Some((next, _)) = end else {
                return ForkMeasurement { misses: Some(misses), ..found };
            };
            (self, phase) = (fork, next);
        }
        if !plan.knows_misses() {
            return found;
        }
        let before = self.core.misses();
        let mut unit_from = before;
        loop {
            if phase == Phase::Unit {
                unit_from = self.core.misses();
            }
            match self.keep_warm(log, &mut cursor, &[(u64::MAX, KeptWarm::Caches)]) {
                Some((next, _)) => phase = next,
                None => break,
            }
        }
        misses.stretch = misses.stretch.plus(self.core.misses().since(before));
        if phase == Phase::Unit {
            misses.unit = self.core.misses().since(unit_from);
        }
        found.misses = Some(misses);
        found
    }

    /// Keeps the core warm with the calls in the log up to the next mark, and returns the mark's phase and cycle; `None` at the log's end. Each entry
    /// of `kept` has a number of instructions, and what is kept warm up to that instruction.
    fn keep_warm(
        &mut self,
        log: &CallLog,
        cursor: &mut LogCursor,
        kept: &[(u64, KeptWarm)],
    ) -> Option<(Phase, u64)> {
        for until in kept {
            loop {
                let learning = match until.1 {
                    KeptWarm::CachesAndPredictors => Learning::Here,
                    KeptWarm::Nothing | KeptWarm::Caches => Learning::Off,
                };
                let mut warming = Warming::new(&mut self.core, 1 << 16, learning);
                match log.warm(cursor, *until, &mut warming) {
                    WarmEnd::Mark(phase, cycle) => return Some((phase, cycle)),
                    WarmEnd::Instructions => break,
                    WarmEnd::Define(inst) => self.core.define(&inst),
                    WarmEnd::Log => return None,
                }
            }
        }
        None
    }

    /// Times the calls in the log that follow a mark, and returns the cycles of the unit. The mark began `phase` in cycle `since` of the logged core;
    /// `now` is the cycle of this core.
    fn times(
        &mut self,
        log: &CallLog,
        mut cursor: LogCursor,
        phase: Phase,
        (since, now): (u64, u64),
        host: &HostThreads,
    ) -> u64 {
        if phase != Phase::Unit {
            self.ahead(false, host, |ahead| log.time(&mut cursor, (since, now), ahead));
        }
        let before = self.awake_cycles();
        self.ahead(false, host, |ahead| log.time(&mut cursor, (since, now), ahead));
        self.awake_cycles() - before
    }
}
