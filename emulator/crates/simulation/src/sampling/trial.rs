//! Trials of sampling plans on a region all of which was timed. Nothing is simulated: the code of a sampled run chooses the units, and their known
//! cycles give the estimates.

use phases::Survey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use timing::MissCounts;

use super::{Known, PlannedUnit, RegionMisses, Sampled, SampledUnits, SamplingPlan, Unit};

/// A region that was timed in units which follow each other without a gap.
#[derive(Clone, Debug)]
pub struct TimedRegion {
    /// Instructions before each unit, and those of all.
    instructions: Vec<u64>,
    /// Cycles before each unit, and those of all.
    cycles: Vec<u64>,
    /// Misses before each unit, and those of all.
    misses: Vec<MissCounts>,
    /// Misses of the region, if they were counted.
    known: Option<RegionMisses>,
    /// Instructions of a unit.
    grain: u64,
}

/// What a plan says of a region whose cycles are known, over seeds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Seeds that were tried, but for those none of whose units lies in the region.
    pub seeds: u64,
    /// Number of units in the mean.
    pub units: f64,
    /// Share of the region's instructions that are in units, in the mean.
    pub timed: f64,
    /// Error of the cycles in the mean: the estimate less the cycles, relative to the cycles.
    pub bias: f64,
    /// Size of that error in the mean.
    pub mean_error: f64,
    /// Largest size of that error.
    pub largest_error: f64,
    /// Share of the seeds whose interval of 95 % holds the cycles; `None` if the scheme has no interval.
    pub holds_95: Option<f64>,
    /// Share of the seeds whose interval of 99.7 % holds the cycles.
    pub holds_99_7: Option<f64>,
    /// Half the width of the interval of 95 %, relative to the cycles, in the mean.
    pub half_width_95: Option<f64>,
}

impl TimedRegion {
    /// Takes the units of a run. `None` if they do not follow each other without a gap, or there is none.
    pub fn new(units: &SampledUnits) -> Option<Self> {
        let (mut instructions, mut cycles) = (vec![0], vec![0]);
        let (mut sum, mut taken) = (0u64, 0u64);
        let mut misses = vec![MissCounts::default()];
        let mut missed = MissCounts::default();
        let first = *units.at.first()?;
        let counted = units.at.iter().zip(&units.instructions).zip(&units.cycles);
        for (number, ((at, count), of_unit)) in counted.enumerate() {
            // A core that times may retire a few instructions more before it stops.
            if at.checked_sub(first)?.abs_diff(sum) > MAX_START_DELAY {
                return None;
            }
            sum = sum.checked_add(*count)?;
            taken = taken.checked_add(*of_unit)?;
            instructions.push(sum);
            cycles.push(taken);
            missed = missed.plus(units.unit_misses(number));
            misses.push(missed);
        }
        let grain = *units.instructions.iter().max()?;
        let known = units.region_misses();
        (sum > 0 && taken > 0).then_some(Self { instructions, cycles, misses, known, grain })
    }

    /// Returns the instructions of the region.
    pub fn instructions(&self) -> u64 {
        self.instructions.last().copied().unwrap_or(0)
    }

    /// Returns the cycles of the region.
    pub fn cycles(&self) -> u64 {
        self.cycles.last().copied().unwrap_or(0)
    }

    /// Returns the instructions of a timed unit: units of other plans have to be much longer.
    pub fn grain(&self) -> u64 {
        self.grain
    }

    /// Returns a planned unit of so many instructions with its cycles. Its ends are moved to the nearest edges of timed units, between which cycles
    /// are known.
    fn unit(&self, planned: PlannedUnit, instructions: u64) -> Unit {
        let edge = |place: u64| {
            let after = self.instructions.partition_point(|edge| *edge < place);
            let before = after.saturating_sub(1);
            match self.instructions.get(after) {
                Some(edge) if edge - place <= place - self.instructions[before] => after,
                _ => before,
            }
        };
        let from = edge(planned.at);
        let to = edge(planned.at.saturating_add(instructions));
        Unit {
            planned,
            instructions: self.instructions[to] - self.instructions[from],
            cycles: self.cycles[to] - self.cycles[from],
            misses: self.misses[to].since(self.misses[from]),
        }
    }

    /// Tries a plan with as many seeds as are asked for. Plans that choose units by what is executed need a survey whose intervals are as long as their units.
    ///
    /// # Errors
    /// If the plan cannot be tried, in words.
    pub fn trial(&self, plan: &SamplingPlan, survey: &Survey, seeds: u64) -> Result<Trial, String> {
        if plan.unit < 2 * self.grain {
            return Err(format!(
                "expected units of at least {} instructions, twice those of the timed units, found {}",
                2 * self.grain,
                plan.unit
            ));
        }
        let truth = self.cycles() as f64;
        let mut trial = Trial::default();
        let (mut with_interval, mut held, mut width) = (0.0, [0.0; 2], 0.0);
        for seed in 0..seeds {
            let mut plan = SamplingPlan { seed, ..plan.clone() };
            let chosen = match plan.surveys() {
                Some(_) => plan.settle(survey, &[])?.units,
                None => Vec::new(),
            };
            let places = match chosen.is_empty() {
                true => plan.places(self.instructions()).collect(),
                false => chosen,
            };
            let units = places.into_iter().map(|planned| self.unit(planned, plan.unit));
            // The region's end may cut the last.
            let units: Vec<Unit> = units.filter(|unit| unit.instructions > 0).collect();
            let misses = self.known.as_ref().filter(|_| plan.knows_misses());
            let known = Known { misses, ..Known::default() };
            let sampled = Sampled::new(&plan, self.instructions(), 0, &units, known);
            let Some(point) = sampled.point else { continue };
            trial.seeds += 1;
            trial.units += units.len() as f64;
            trial.timed += sampled.unit_instructions as f64 / self.instructions() as f64;
            let error = point.cycles / truth - 1.0;
            trial.bias += error;
            trial.mean_error += error.abs();
            trial.largest_error = trial.largest_error.max(error.abs());
            if let Some(cycles) = sampled.cycles {
                let margin = cycles.margin();
                let off = (cycles.value - truth).abs();
                with_interval += 1.0;
                held[0] += f64::from(off <= margin.within_95);
                held[1] += f64::from(off <= margin.within_99_7);
                width += margin.within_95 / truth;
            }
        }
        if trial.seeds == 0 {
            return Err("the region is too short for a unit".to_owned());
        }
        let tried = trial.seeds as f64;
        for sum in [&mut trial.units, &mut trial.timed, &mut trial.bias, &mut trial.mean_error] {
            *sum /= tried;
        }
        if with_interval > 0.0 {
            trial.holds_95 = Some(held[0] / with_interval);
            trial.holds_99_7 = Some(held[1] / with_interval);
            trial.half_width_95 = Some(width / with_interval);
        }
        Ok(trial)
    }
}

/// Instructions by which a unit may begin after the last one's end.
const MAX_START_DELAY: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::Scheme;

    /// Units of 1,000 instructions, of two phases in turn, a hundred units at a time: in one each takes 1,000 cycles, in the other 1,000 to 4,000.
    fn region() -> TimedRegion {
        let mut random = 1;
        let cycles = (0..20_000u64).map(|unit| {
            random = phases::Random(random).bits();
            1000 + if unit / 100 % 2 == 0 { 0 } else { random % 3001 }
        });
        TimedRegion::new(&SampledUnits {
            at: (0..20_000).map(|unit| 1000 * unit).collect(),
            instructions: vec![1000; 20_000],
            cycles: cycles.collect(),
            ..SampledUnits::default()
        })
        .unwrap()
    }

    #[test]
    fn intervals_of_random_units_hold_as_often_as_they_say() {
        let plan = SamplingPlan {
            scheme: Scheme::Random,
            unit: 2000,
            every: 200_000,
            ..SamplingPlan::default()
        };
        let trial = region().trial(&plan, &Survey::new(1), 1000).unwrap();
        assert_eq!((trial.seeds, trial.units), (1000, 100.0));
        assert!((trial.timed - 0.01).abs() < 1e-6);
        // 1,750 cycles in the mean.
        assert!(trial.bias.abs() < 0.005, "{trial:?}");
        assert!((0.9..0.98).contains(&trial.holds_95.unwrap()), "{trial:?}");
        assert!(trial.holds_99_7.unwrap() > 0.985 && trial.mean_error > 0.01, "{trial:?}");
        let twice = SamplingPlan { every: 50_000, ..plan.clone() };
        let narrower = region().trial(&twice, &Survey::new(1), 300).unwrap();
        let ratio = trial.half_width_95.unwrap() / narrower.half_width_95.unwrap();
        assert!((ratio - 2.0).abs() < 0.15, "{ratio}");
        let refused = region().trial(&SamplingPlan { unit: 1000, ..plan }, &Survey::new(1), 1);
        assert!(refused.unwrap_err().contains("at least 2000"));
    }

    #[test]
    fn chosen_units_are_nearer_where_phases_are() {
        let region = region();
        let mut survey = Survey::new(2000);
        for interval in 0..10_000 {
            let mut vector = vec![0.0; phases::DIMENSIONS];
            vector[interval / 50 % 2] = 1.0;
            survey.instructions.push(2000);
            survey.vectors.push(vector);
        }
        let of = |scheme| {
            let plan =
                SamplingPlan { scheme, unit: 2000, units: Some(100), ..SamplingPlan::default() };
            region.trial(&plan, &survey, 20).unwrap()
        };
        let (stratified, simpoint) = (of(Scheme::Stratified), of(Scheme::Simpoint));
        assert!(
            stratified.holds_99_7.unwrap() > 0.9 && stratified.mean_error < 0.05,
            "{stratified:?}"
        );
        assert!(simpoint.holds_95.is_none() && simpoint.seeds == 20, "{simpoint:?}");
    }

    #[test]
    fn only_units_without_gaps_are_a_region() {
        let units = |at: &[u64]| SampledUnits {
            at: at.to_vec(),
            instructions: vec![5000; at.len()],
            cycles: vec![1; at.len()],
            ..SampledUnits::default()
        };
        assert!(TimedRegion::new(&units(&[0, 5001, 10_000])).is_some());
        assert!(TimedRegion::new(&units(&[0, 5000, 20_000])).is_none());
        assert!(TimedRegion::new(&units(&[9, 3])).is_none());
        assert!(TimedRegion::new(&units(&[])).is_none());
    }
}
