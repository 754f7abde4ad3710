//! A fork of a core, which is told what the core was told while it timed a stretch.

use isa::TimingModel as _;
use timing::{Learning, MissCounts, Warming};

use super::{HostThreads, Timing};
use crate::check::{CallLog, LogCursor, WarmEnd};
use crate::engine::KeptWarm;
use crate::sampling::{Phase, SamplingPlan};

/// What a fork of a core measures of a stretch of the program: it goes through the stretch a second time, from the state in which the core began it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ForkMeasurement {
    /// Cycles that the unit takes from the state in which units begin, if the stretch begins long before.
    pub(crate) cycles: Option<u64>,
    /// Misses, if the plan knows those of the region.
    pub(crate) misses: Option<FunctionalWarmingMisses>,
}

/// Misses of caches and TLBs in a timed stretch of the program, as they would be if functional warming had gone through it, which counts those of all of the region.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FunctionalWarmingMisses {
    /// Misses of all of the stretch.
    pub stretch: MissCounts,
    /// Misses of its unit.
    pub unit: MissCounts,
}

impl<const RECORDS_STAGES: bool> Timing<RECORDS_STAGES> {
    /// Returns a core that is as this one, between runs, and whose stream nobody reads; `None` if the core's state cannot be saved.
    pub(super) fn fork(&mut self) -> Option<Self> {
        let Self { core, .. } = self;
        let width = core.preset().decode.width as usize;
        let sink = core.sink().unread(core.cycle(), width);
        core.fork(sink).ok().map(Self::of)
    }

    /// Goes through what another core was told while it timed a stretch, and returns what there is to be found as the plan of sampling says; `is_whole`: the stretch ends with a whole unit.
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

    /// Keeps the core warm by what another one was told up to the next mark, which is returned, or up to the log's end. `kept` says up to how many instructions what is kept warm.
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

    /// Times what another core was told from a mark on, which was that of a phase and began in cycle `since`, and returns the cycles that the unit takes.
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
