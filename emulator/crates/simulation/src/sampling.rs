//! Sampled simulation: units of a program are timed, and the rest is executed functionally with warm caches.
//!
//! By default, a region of interest is divided into intervals of the same number of instructions, and one unit of each interval is timed and
//! recorded. Before the unit comes a warm-up, which is timed only to fill the core's window, and before the warm-up a stretch in which predictors
//! learn from the path. All units have the same length and weight. Profiles of the recorded units are therefore profiles of the region, and a ratio
//! of sums is an estimate (Wunderlich et al., *SMARTS*, ISCA 2003). Other schemes choose units that have weights ([`Scheme`]).

mod harts;
mod live;
mod plan;
mod result;
mod trial;

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use timing::MissCounts;

use crate::cores::FunctionalWarmingMisses;
pub(crate) use harts::{HartPosition, MachinePosition, SampledHarts};
use live::LivePlanner;
pub use plan::{RelativeError, SamplingPlan, Scheme};
pub(crate) use result::{Known, RegionMisses};
pub use result::{MissesOfUnits, PointEstimate, Sampled, SampledUnits, StateError};
pub use trial::{TimedRegion, Trial};

/// A unit that was timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Where the unit begins, and what it stands for.
    pub planned: PlannedUnit,
    /// Instructions of the unit.
    pub instructions: u64,
    /// Cycles of the unit in which the hart was awake, summed over all harts.
    pub cycles: u64,
    /// Misses of the unit as functional warming would count them if nothing were timed.
    pub misses: MissCounts,
}

/// The phase of each interval of a region.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct RegionPhases {
    /// Instructions of an interval.
    pub interval: u64,
    /// Number of each interval's phase, in order.
    pub of: Vec<u32>,
}

/// Units that a survey of a region chose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChosenUnits {
    /// The units, in the order of their places; none if there is one in each interval of the plan.
    pub units: Vec<PlannedUnit>,
    /// Instructions of the region that was surveyed; `None`: there was no survey.
    pub surveyed: Option<u64>,
    /// The phases by which units were chosen, if they were.
    pub phases: Option<RegionPhases>,
}

/// A unit that is to be timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedUnit {
    /// Instructions of the region before the unit.
    pub at: u64,
    /// Weight of the unit: how much of the region it stands for, in relation to other units.
    pub weight: u32,
    /// Number of the stratum that the unit was drawn from.
    pub stratum: u32,
}

impl PlannedUnit {
    /// Returns the unit at a place, for a sample whose units all have the same weight.
    pub fn at(at: u64) -> Self {
        Self { at, weight: 1, stratum: 0 }
    }
}

/// What executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No region is open.
    Outside,
    /// The functional hart, and the timing core's caches stay as they are.
    FastForward,
    /// The functional hart, which keeps caches warm.
    Warming,
    /// The functional hart, which keeps caches and predictors warm.
    Learning,
    /// The timing core, long before a unit that is timed twice.
    Reference,
    /// The timing core, before a unit.
    WarmUp,
    /// The timing core, in a unit.
    Unit,
}

/// Number of recent units whose cycles per instruction set the pace of the guest's time between units.
const RECENT_UNITS: usize = 8;

/// What the hart has done since reset, or all harts together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Instructions that were retired.
    pub retired: u64,
    /// Cycles that the timing core has spent awake, or the sum of those of several.
    pub cycles: u64,
    /// Misses of a single hart's core, timed or not.
    pub misses: MissCounts,
}

/// Says when units begin and end. Places are instructions of the region, over all of its stretches, as if they followed each other.
#[derive(Debug)]
pub(crate) struct Sampler {
    plan: SamplingPlan,
    phase: Phase,
    /// Place at which the phase ends.
    until: u64,
    /// The next unit, or the present one.
    unit: PlannedUnit,
    /// Place at which the next interval begins.
    next_interval: u64,
    /// What was done when the open stretch began.
    opened: Progress,
    /// Instructions of stretches that have ended.
    before: u64,
    /// Units that a survey chose; without any, each interval has a unit.
    chosen: ChosenUnits,
    /// Number of chosen units that have been planned so far.
    planned: usize,
    /// Planner that decides on units while the program runs, if the plan is live, and the units that it has planned but the program has not reached.
    live: Option<(LivePlanner, VecDeque<PlannedUnit>)>,
    random: u64,
    timed: u64,
    /// The region began anew, and there has been no unit since.
    is_anew: bool,
    /// What was done when the present phase began.
    since: Progress,
    /// Progress in the present unit, up to the end of the last phase. The unit may have begun in an earlier stretch of the region.
    partial: Progress,
    units: Vec<Unit>,
    /// The next unit, or the present one, is timed twice; `None`: that was not decided yet.
    checks: Option<bool>,
    /// Units that were timed twice: the number of each, and its cycles from the functionally warmed state in which other units begin.
    checked: Vec<(usize, u64)>,
    /// Misses of the region so far, if they are counted, as they would be if nothing were timed.
    misses: Option<RegionMisses>,
    /// Misses of the present unit.
    unit_misses: MissCounts,
}

impl Sampler {
    /// Returns a sampler that waits for a region. Units are those that a survey has `chosen`, if it chose some. `latencies` has the latency of each
    /// kind of miss ([`MissCounts::latencies`]), if the misses of a single core are counted.
    pub(crate) fn new(
        plan: &SamplingPlan,
        chosen: &ChosenUnits,
        latencies: Option<[u32; MissCounts::KINDS]>,
    ) -> Self {
        let misses = latencies.filter(|_| plan.knows_misses()).map(RegionMisses::new);
        let live = plan.scheme == Scheme::Live;
        let mut sampler = Self {
            chosen: chosen.clone(),
            planned: 0,
            live: live.then(|| (LivePlanner::new(plan), VecDeque::new())),
            phase: Phase::Outside,
            until: u64::MAX,
            unit: PlannedUnit::at(0),
            next_interval: 0,
            opened: Progress::default(),
            before: 0,
            random: plan.first_random(),
            timed: 0,
            is_anew: false,
            since: Progress::default(),
            partial: Progress::default(),
            units: Vec::new(),
            checks: None,
            checked: Vec::new(),
            misses,
            unit_misses: MissCounts::default(),
            plan: plan.clone(),
        };
        sampler.plan_unit();
        sampler
    }

    /// Returns the plan.
    pub(crate) fn plan(&self) -> &SamplingPlan {
        &self.plan
    }

    /// Returns whether a fork of the core is to count the misses of timed stretches.
    pub(crate) fn asks_for_misses(&self) -> bool {
        self.misses.is_some() && !self.plan.times_all()
    }

    /// Returns what executes.
    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns how much of the region the present unit stands for, or the next one.
    pub(crate) fn weight(&self) -> u32 {
        self.unit.weight
    }

    /// Returns how many instructions are left of the phase.
    pub(crate) fn left(&self, retired: u64) -> u64 {
        match self.phase {
            Phase::Outside => u64::MAX,
            _ => self.until.min(self.next_decision()).saturating_sub(self.place(retired)),
        }
    }

    /// Returns the place at which it is decided next whether an interval has a unit.
    fn next_decision(&self) -> u64 {
        self.live.as_ref().map_or(u64::MAX, |(live, _)| live.next_decision())
    }

    /// Returns whether it is to be decided now whether an interval has a unit.
    pub(crate) fn is_to_decide(&self, retired: u64) -> bool {
        self.phase != Phase::Outside && self.next_decision() <= self.place(retired)
    }

    /// Decides whether an interval has a unit.
    pub(crate) fn decide(&mut self, now: Progress) {
        let place = self.place(now.retired);
        let Some((live, planned)) = &mut self.live else { return };
        planned.extend(live.decide(place, now.misses));
        if self.unit.at == u64::MAX && !planned.is_empty() {
            self.plan_unit();
            // The phases that come before the unit begin here.
            self.until = place;
        }
    }

    /// Returns the cycles per instruction of recent units, in multiples of 2^-16.
    pub(crate) fn rate(&self) -> u64 {
        let recent = &self.units[self.units.len().saturating_sub(RECENT_UNITS)..];
        // A live plan times more units where cycles vary more, which is where the program is slow: without weights, the rate would be too high.
        let weight = |unit: &Unit| match self.live {
            Some(_) => u64::from(unit.planned.weight),
            None => 1,
        };
        let instructions: u64 = recent.iter().map(|unit| weight(unit) * unit.instructions).sum();
        let cycles: u64 = recent.iter().map(|unit| weight(unit) * unit.cycles).sum();
        match instructions {
            0 => 1 << 16,
            _ => ((u128::from(cycles) << 16) / u128::from(instructions)).clamp(1, 1 << 32) as u64,
        }
    }

    /// Returns true once after the region began anew.
    pub(crate) fn take_anew(&mut self) -> bool {
        std::mem::take(&mut self.is_anew)
    }

    /// Begins a stretch of the region.
    pub(crate) fn open(&mut self, now: Progress) {
        (self.opened, self.since) = (now, now);
        if let Some((live, _)) = &mut self.live {
            live.open(now.misses);
        }
        // The region's first interval is decided where it begins.
        if self.next_decision() <= self.before {
            self.decide(now);
        }
        self.enter(self.before);
    }

    /// Ends a stretch of the region. A unit that is open goes on in the next stretch.
    pub(crate) fn close(&mut self, now: Progress) {
        self.leave(now);
        if let Some((live, _)) = &mut self.live {
            live.close(now.misses);
        }
        self.before = self.place(now.retired);
        self.phase = Phase::Outside;
    }

    /// Forgets all that was sampled, between stretches: the region begins anew.
    pub(crate) fn restart(&mut self) {
        // A survey chose places of the region that begins anew.
        let latencies = self.misses.as_ref().map(|misses| misses.latencies);
        *self = Self { is_anew: true, ..Self::new(&self.plan, &self.chosen, latencies) };
    }

    /// Goes on to the next phase, at the end of one.
    pub(crate) fn advance(&mut self, now: Progress) {
        self.leave(now);
        self.enter(self.place(now.retired));
    }

    /// Returns a place in the open stretch.
    fn place(&self, retired: u64) -> u64 {
        self.before + (retired - self.opened.retired)
    }

    /// Leaves the present phase.
    fn leave(&mut self, now: Progress) {
        let instructions = now.retired - self.since.retired;
        let taken = now.cycles - self.since.cycles;
        let is_timed = matches!(self.phase, Phase::Reference | Phase::WarmUp | Phase::Unit);
        if is_timed {
            self.timed += instructions;
        }
        // Misses of timed stretches are counted by a fork; where all is timed there is no fork, and they are counted here.
        let times_all = self.plan.times_all();
        let is_open = self.phase != Phase::Outside;
        if let Some(misses) = self.misses.as_mut().filter(|_| is_open && (times_all || !is_timed)) {
            let found = now.misses.since(self.since.misses);
            misses.add(found);
            if is_timed {
                self.unit_misses = self.unit_misses.plus(found);
            }
        }
        if self.phase == Phase::Unit {
            self.partial.retired += instructions;
            self.partial.cycles += taken;
        }
        self.since = now;
    }

    /// Begins the phase that a place lies in.
    fn enter(&mut self, place: u64) {
        if place >= self.unit.at.saturating_add(self.plan.unit) {
            self.end_unit();
            self.plan_unit();
        }
        if self.unit.at == u64::MAX {
            // A live plan does not know the next unit before it is close; any other plan has no unit left.
            let phase = if self.live.is_some() { Phase::Learning } else { Phase::FastForward };
            (self.phase, self.until) = (phase, u64::MAX);
            return;
        }
        let warm_up_at = self.unit.at.saturating_sub(self.plan.warm_up);
        let learning_at = match self.live {
            Some(_) => 0,
            None => warm_up_at.saturating_sub(self.plan.predictors),
        };
        let caches = self.plan.caches.unwrap_or(u64::MAX);
        let warming_at = warm_up_at.saturating_sub(caches);
        let reference = self.plan.reference();
        let reference_at = warm_up_at.saturating_sub(reference.unwrap_or(0));
        let checks = *self.checks.get_or_insert_with(|| {
            let (number, every) = (self.units.len() as u64, self.plan.check);
            let is_due = every != 0 && number % every == every / 2;
            is_due && reference.is_some() && place <= reference_at
        });
        if checks && place < warm_up_at {
            (self.phase, self.until) = match place {
                _ if place >= reference_at => (Phase::Reference, warm_up_at),
                _ if place < warming_at => (Phase::FastForward, warming_at.min(reference_at)),
                _ => (Phase::Warming, reference_at),
            };
            return;
        }
        (self.phase, self.until) = match place {
            _ if place < warming_at => (Phase::FastForward, warming_at),
            _ if place < learning_at => (Phase::Warming, learning_at),
            _ if place < warm_up_at => (Phase::Learning, warm_up_at),
            _ if place < self.unit.at => (Phase::WarmUp, self.unit.at),
            _ => (Phase::Unit, self.unit.at.saturating_add(self.plan.unit)),
        };
    }

    /// Keeps the unit that has ended, or was cut by the region's end.
    fn end_unit(&mut self) {
        let Progress { retired: instructions, cycles, .. } = std::mem::take(&mut self.partial);
        if instructions > 0 {
            let misses = std::mem::take(&mut self.unit_misses);
            let unit = Unit { planned: self.unit, instructions, cycles, misses };
            self.live.iter_mut().for_each(|(live, _)| live.learn(&unit));
            self.units.push(unit);
        }
    }

    /// Chooses where the unit of the next interval lies.
    fn plan_unit(&mut self) {
        self.checks = None;
        if let Some((_, planned)) = &mut self.live {
            self.unit = planned.pop_front().unwrap_or(PlannedUnit::at(u64::MAX));
            return;
        }
        let chosen = &self.chosen.units;
        if !chosen.is_empty() {
            self.unit = chosen.get(self.planned).copied().unwrap_or(PlannedUnit::at(u64::MAX));
            self.planned += 1;
            return;
        }
        let at = self.next_interval.saturating_add(self.plan.place(&mut self.random));
        self.unit = PlannedUnit::at(at);
        self.next_interval = self.next_interval.saturating_add(self.plan.every);
    }

    /// Notes the cycles that the last unit takes from the functionally warmed state in which other units begin.
    pub(crate) fn checked(&mut self, cycles: u64) {
        if let Some(number) = self.units.len().checked_sub(1) {
            self.checked.push((number, cycles));
        }
    }

    /// Adds the misses that a fork found in a timed stretch, which has ended. `None`: the fork found none, so that the region's misses are unknown.
    pub(crate) fn missed(&mut self, found: Option<FunctionalWarmingMisses>) {
        if !self.asks_for_misses() {
            return;
        }
        let (Some(FunctionalWarmingMisses { stretch, unit }), Some(misses)) =
            (found, &mut self.misses)
        else {
            // Misses of the region are of use only if those of every stretch are known.
            self.misses = None;
            return;
        };
        misses.add(stretch);
        let of_unit = match self.units.last_mut() {
            // The unit has ended with the stretch.
            Some(last) if self.partial.retired == 0 => &mut last.misses,
            _ => &mut self.unit_misses,
        };
        *of_unit = of_unit.plus(unit);
    }

    /// Returns what became of the region, and its units.
    pub(crate) fn finish(mut self) -> (Sampled, SampledUnits) {
        let sampled = self.summary();
        let phases = match &self.live {
            Some((live, _)) => Some(live.phases()),
            None => self.chosen.phases.take(),
        };
        let strata = self.strata();
        (sampled, SampledUnits::of(&self.units, phases, self.known(&strata)))
    }

    /// Returns the instructions of each stratum of the region, which has ended, if they are known beside the units.
    fn strata(&self) -> Vec<u64> {
        self.live.as_ref().map_or_else(Vec::new, |(live, _)| live.stratum_instructions(self.before))
    }

    /// Returns what is known of the region, which has ended, beside its units.
    fn known<'a>(&'a self, strata: &'a [u64]) -> Known<'a> {
        Known { strata, checked: Some(&self.checked), misses: self.misses.as_ref() }
    }

    /// Returns what became of the region, which has ended.
    pub(crate) fn summary(&mut self) -> Sampled {
        self.end_unit();
        let strata = self.strata();
        let known = self.known(&strata);
        let mut sampled = Sampled::new(&self.plan, self.before, self.timed, &self.units, known);
        let weight = |units: &[PlannedUnit]| -> u64 {
            units.iter().map(|unit| u64::from(unit.weight)).sum()
        };
        let chosen = &self.chosen.units;
        // Units were chosen by the code that they execute. If the region's length has changed, other code may lie at their places.
        if let Some(surveyed) = self.chosen.surveyed.filter(|_| !chosen.is_empty())
            && self.before.abs_diff(surveyed) > self.plan.unit
        {
            sampled.in_words += &format!(
                "; the region has {:+.2} % instructions beside those when its units were chosen, so that they may lie elsewhere in the program",
                100.0 * (self.before as f64 / surveyed as f64 - 1.0)
            );
        }
        if let Some(beyond) = chosen.get(self.units.len()..).filter(|beyond| !beyond.is_empty()) {
            sampled.in_words += &format!(
                "; {} of the {} units that were chosen lie beyond the region's end, with {:.1} % of the weight",
                beyond.len(),
                chosen.len(),
                100.0 * weight(beyond) as f64 / weight(chosen).max(1) as f64
            );
        }
        sampled
    }
}

#[cfg(test)]
mod tests;
