//! Sampled simulation: units of a program are timed, and the rest is executed functionally with warm caches.
//!
//! A region of interest is divided into intervals of as many instructions. In each, one unit is timed and recorded, after a stretch that
//! is timed only to fill the core's window and to train its predictors. All units have the same length and stand for as much, so that
//! profiles of the recorded units are profiles of the region, and a ratio of sums is an estimate (Wunderlich et al., *SMARTS*, ISCA 2003).

mod estimate;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use estimate::{Estimate, Interval};

/// Where units lie in their intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// In the same place of each interval, which the seed says.
    #[default]
    Systematic,
    /// In a place of its own in each interval, by the seed.
    Random,
}

/// How a region is sampled.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SamplingPlan {
    /// Where units lie.
    pub scheme: Scheme,
    /// Instructions of a unit.
    pub unit: u64,
    /// Instructions that are timed before a unit, and are no part of it.
    pub warm_up: u64,
    /// Instructions of an interval, in which there is one unit.
    pub every: u64,
    /// Number that the places of units follow from.
    pub seed: u64,
}

impl Default for SamplingPlan {
    fn default() -> Self {
        Self {
            scheme: Scheme::default(),
            unit: 50_000,
            warm_up: 100_000,
            every: 4_000_000,
            seed: 0,
        }
    }
}

impl SamplingPlan {
    /// Returns what is wrong with the plan, as field, what is expected and what was found.
    pub fn fault(&self) -> Option<(&'static str, String, u64)> {
        match self {
            Self { unit, .. } if *unit < 1000 => Some(("unit", "at least 1000".to_owned(), *unit)),
            Self { every, unit, .. } if every < unit => {
                Some(("every", format!("at least the unit, {unit}"), *every))
            }
            _ => None,
        }
    }
}

/// A unit that was timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Instructions of the region before the unit.
    pub at: u64,
    /// Instructions of the unit.
    pub instructions: u64,
    /// Cycles of the unit in which the hart was awake.
    pub cycles: u64,
}

/// What became of the sampling of a region.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Sampled {
    /// What a user should know first, in a line.
    pub in_words: String,
    /// The plan.
    pub plan: SamplingPlan,
    /// Instructions of the region, timed or not.
    pub instructions: u64,
    /// Instructions that were timed, those before units too.
    pub timed_instructions: u64,
    /// Number of units.
    pub units: u64,
    /// Cycles that the region would take while the hart is awake; `None` without two units.
    pub cycles: Option<Estimate>,
    /// Cycles for each instruction; `None` without two units.
    pub cpi: Option<Estimate>,
}

impl Sampled {
    fn describe(&self) -> String {
        let Self { plan, instructions, units, .. } = self;
        let sampled = format!(
            "{units} units of {} instructions, {:.2} % of {:.1} M",
            plan.unit,
            100.0 * (*units * plan.unit) as f64 / (*instructions).max(1) as f64,
            *instructions as f64 / 1e6
        );
        let (Some(cycles), Some(cpi)) = (&self.cycles, &self.cpi) else {
            return format!("{sampled}: too few for an estimate (run.sampling.every)");
        };
        let percent = |interval: Interval| 100.0 * interval.half_width / cycles.value;
        format!(
            "{sampled}: {:.1} M cycles ± {:.2} % (95 %), ± {:.2} % (99.7 %) by chance, {:.4} cycles per instruction",
            cycles.value / 1e6,
            percent(cycles.within_95),
            percent(cycles.within_99_7),
            cpi.value
        )
    }
}

/// Units of a region, column by column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct SampledUnits {
    /// Version of the file's format.
    pub format: u32,
    /// Instructions of the region before each unit.
    pub at: Vec<u64>,
    /// Instructions of each unit.
    pub instructions: Vec<u64>,
    /// Cycles of each unit in which the hart was awake.
    pub cycles: Vec<u64>,
}

impl SampledUnits {
    /// Version of the file's format that is written.
    pub const FORMAT: u32 = 1;

    fn of(units: &[Unit]) -> Self {
        let column = |field: fn(&Unit) -> u64| units.iter().map(field).collect();
        Self {
            format: Self::FORMAT,
            at: column(|unit| unit.at),
            instructions: column(|unit| unit.instructions),
            cycles: column(|unit| unit.cycles),
        }
    }
}

/// What executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No region is open.
    Outside,
    /// The functional hart, which keeps caches warm.
    Warming,
    /// The timing core, before a unit.
    WarmUp,
    /// The timing core, in a unit.
    Unit,
}

/// Says when units begin and end. Positions are numbers of instructions that the machine has retired.
#[derive(Debug)]
pub(crate) struct Sampler {
    plan: SamplingPlan,
    phase: Phase,
    /// Where the phase ends.
    until: u64,
    /// Where the next unit begins, or the present one began.
    unit_at: u64,
    /// Where the next interval begins.
    next_interval: u64,
    /// Where the region's stretch that is open began.
    opened: u64,
    /// Instructions of stretches that have ended.
    before: u64,
    random: u64,
    timed: u64,
    /// The region began anew, and there has been no unit since.
    is_anew: bool,
    /// Where the present phase began, and the cycles then.
    since: (u64, u64),
    pub units: Vec<Unit>,
    /// Instructions and cycles of all units.
    unit_sums: (u64, u64),
}

impl Sampler {
    /// Returns a sampler that waits for a region.
    pub fn new(plan: &SamplingPlan) -> Self {
        Self {
            phase: Phase::Outside,
            until: u64::MAX,
            unit_at: 0,
            next_interval: 0,
            opened: 0,
            before: 0,
            random: plan.seed ^ 0x9e37_79b9_7f4a_7c15,
            timed: 0,
            is_anew: false,
            since: (0, 0),
            units: Vec::new(),
            unit_sums: (0, 0),
            plan: plan.clone(),
        }
    }

    /// Returns what executes.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns how many instructions are left of the phase.
    pub fn left(&self, retired: u64) -> u64 {
        self.until.saturating_sub(retired)
    }

    /// Begins a stretch of the region.
    pub fn open(&mut self, retired: u64) {
        self.opened = retired;
        self.next_interval = retired;
        self.plan_unit(retired);
    }

    /// Forgets all units: the region begins anew.
    pub fn restart(&mut self) {
        (self.before, self.timed, self.is_anew) = (0, 0, true);
        self.units.clear();
    }

    /// Ends a stretch of the region, and the unit that is open, when the core has spent `cycles`.
    pub fn close(&mut self, retired: u64, cycles: u64) {
        self.leave(retired, cycles);
        self.before += retired - self.opened;
        (self.phase, self.until) = (Phase::Outside, u64::MAX);
    }

    /// Returns the cycles for each instruction of the units so far, in units of 2^-16.
    pub fn rate(&self) -> u64 {
        let (instructions, cycles) = self.unit_sums;
        match instructions {
            0 => 1 << 16,
            _ => ((u128::from(cycles) << 16) / u128::from(instructions)).clamp(1, 1 << 32) as u64,
        }
    }

    /// Returns true once after the region began anew.
    pub fn take_anew(&mut self) -> bool {
        std::mem::take(&mut self.is_anew)
    }

    /// Goes on to the next phase.
    pub fn advance(&mut self, retired: u64, cycles: u64) {
        self.leave(retired, cycles);
        self.since = (retired, cycles);
        match self.phase {
            Phase::Outside => {}
            Phase::Warming => {
                (self.phase, self.until) = (Phase::WarmUp, self.unit_at);
            }
            Phase::WarmUp => {
                (self.phase, self.until) = (Phase::Unit, self.unit_at + self.plan.unit);
            }
            Phase::Unit => self.plan_unit(retired),
        }
    }

    /// Leaves the present phase.
    fn leave(&mut self, retired: u64, cycles: u64) {
        let instructions = retired - self.since.0;
        if matches!(self.phase, Phase::WarmUp | Phase::Unit) {
            self.timed += instructions;
        }
        if self.phase == Phase::Unit && instructions > 0 {
            let cycles = cycles - self.since.1;
            self.unit_sums = (self.unit_sums.0 + instructions, self.unit_sums.1 + cycles);
            self.units.push(Unit {
                at: self.before + self.since.0 - self.opened,
                instructions,
                cycles,
            });
        }
        self.since = (retired, cycles);
    }

    /// Chooses where the unit of the next interval lies, and lets the functional hart execute until its warm-up.
    fn plan_unit(&mut self, retired: u64) {
        let SamplingPlan { unit, warm_up, every, .. } = self.plan;
        let room = every - unit;
        let place = match self.plan.scheme {
            Scheme::Systematic => spread(self.plan.seed) % (room + 1),
            Scheme::Random => {
                self.random = spread(self.random);
                self.random % (room + 1)
            }
        };
        // A unit that begins soon after the region, or after the one before, has less to warm up.
        self.unit_at = (self.next_interval + place).max(retired);
        self.until = self.unit_at.saturating_sub(warm_up).max(retired);
        self.phase = Phase::Warming;
        self.next_interval += every;
    }

    /// Returns what became of the region, and its units.
    pub fn finish(self) -> (Sampled, SampledUnits) {
        let instructions = self.before;
        let cpi = Estimate::of_ratio(&self.units, instructions);
        let mut sampled = Sampled {
            in_words: String::new(),
            instructions,
            timed_instructions: self.timed,
            units: self.units.len() as u64,
            cycles: cpi.map(|cpi| cpi.times(instructions as f64)),
            cpi,
            plan: self.plan,
        };
        sampled.in_words = sampled.describe();
        (sampled, SampledUnits::of(&self.units))
    }
}

/// Returns the next number of a sequence that looks random (SplitMix64).
fn spread(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets a sampler go through `instructions`, each of which takes as many cycles as `cpi` says at its place.
    fn sampled(plan: &SamplingPlan, instructions: u64, cpi: impl Fn(u64) -> u64) -> Sampler {
        let mut sampler = Sampler::new(plan);
        let (mut retired, mut cycles) = (500, 0);
        sampler.open(retired);
        while retired < 500 + instructions {
            let step = sampler.left(retired).min(500 + instructions - retired);
            if sampler.phase() != Phase::Warming {
                cycles += (retired..retired + step).map(|at| cpi(at - 500)).sum::<u64>();
            }
            retired += step;
            if sampler.left(retired) == 0 {
                sampler.advance(retired, cycles);
            }
        }
        sampler.close(retired, cycles);
        sampler
    }

    #[test]
    fn units_lie_one_in_each_interval() {
        for scheme in [Scheme::Systematic, Scheme::Random] {
            let plan = SamplingPlan { scheme, unit: 1000, warm_up: 2000, every: 10_000, seed: 7 };
            let sampler = sampled(&plan, 100_000, |_| 2);
            assert_eq!(sampler.units.len(), 10);
            for (interval, unit) in (0..).zip(&sampler.units) {
                assert_eq!((unit.instructions, unit.cycles), (1000, 2000));
                assert!((interval * 10_000..=interval * 10_000 + 9000).contains(&unit.at));
            }
            let places: std::collections::BTreeSet<u64> =
                sampler.units.iter().map(|unit| unit.at % 10_000).collect();
            assert_eq!(places.len() == 1, scheme == Scheme::Systematic);
            let summary = sampler.finish().0;
            assert_eq!(summary.instructions, 100_000);
            assert!((10_000..=30_000).contains(&summary.timed_instructions));
            let cycles = summary.cycles.unwrap();
            assert_eq!((cycles.value, cycles.within_95.half_width), (200_000.0, 0.0));
        }
    }

    #[test]
    fn a_region_that_ends_in_a_unit_cuts_it() {
        let plan = SamplingPlan { unit: 5000, warm_up: 0, every: 5000, ..SamplingPlan::default() };
        let sampler = sampled(&plan, 12_000, |_| 1);
        let lengths: Vec<u64> = sampler.units.iter().map(|unit| unit.instructions).collect();
        assert_eq!(lengths, [5000, 5000, 2000]);
        assert_eq!(sampler.finish().0.cycles.unwrap().value, 12_000.0);
    }

    #[test]
    fn plans_that_cannot_be_are_refused() {
        let plan = SamplingPlan { unit: 10, ..SamplingPlan::default() };
        assert_eq!(plan.fault().unwrap().0, "unit");
        let plan = SamplingPlan { every: 9000, ..SamplingPlan::default() };
        assert_eq!(plan.fault().unwrap().0, "every");
        assert_eq!(SamplingPlan::default().fault(), None);
    }
}
