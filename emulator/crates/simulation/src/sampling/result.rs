//! What became of the sampling of a region.

use profile::{CountedUnit, Deviations, Estimate, KnownCounts, StratumUnit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use timing::MissCounts;

use super::harts::HartEstimates;
use super::{PlannedUnit, RegionPhases, SamplingPlan, Scheme, Unit};

/// Number of units below which their variance is hardly known.
const FEW_UNITS: u64 = 30;

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
    /// Instructions of the units.
    pub unit_instructions: u64,
    /// Instructions of the units, each as often as the unit's weight says; `None`: all units weigh as much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weighted_instructions: Option<u64>,
    /// Number of units.
    pub units: u64,
    /// Cycles that the region would take while the hart is awake, of several harts the sum of theirs; `None` without two units, or if the scheme says nothing of chance.
    pub cycles: Option<Estimate>,
    /// Cycles for each instruction; `None` without two units, or if the scheme says nothing of chance.
    pub cpi: Option<Estimate>,
    /// Cycles as the units alone have them, where `cycles` and `cpi` use the misses of all of the region, too; `None` where they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units_alone: Option<Estimate>,
    /// The estimate without intervals; `None` without a unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<PointEstimate>,
    /// How far the state in which units begin is off; `None` without two units that were timed twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateError>,
    /// Cycles that the region would take from its begin to its end, asleep or not, if several harts execute it; `None` without two units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed: Option<Estimate>,
    /// Cycles that the region would take while each hart is awake, if several execute it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub harts: Vec<Estimate>,
}

/// An estimate that says nothing of how far it is off.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct PointEstimate {
    /// Cycles that the region would take while the hart is awake.
    pub cycles: f64,
    /// Cycles for each instruction.
    pub cpi: f64,
}

/// How far the state in which units begin is off, by units that were timed twice.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct StateError {
    /// Units that were timed twice.
    pub units: u64,
    /// Cycles from the state in which units begin, relative to those after a long timed warm-up.
    pub ratio: Estimate,
}

/// What is known of a region beside its units.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known<'a> {
    /// Instructions of each stratum, if these are known beside the units.
    pub strata: &'a [u64],
    /// Units that were timed twice: the number of each, and its cycles from the functionally warmed state; `None` if no unit was to be timed twice.
    pub checked: Option<&'a [(usize, u64)]>,
    /// Misses, if they were counted.
    pub misses: Option<&'a RegionMisses>,
}

/// Misses of a region, as they would be if nothing were timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegionMisses {
    /// Cycles that a miss of each kind takes if nothing hides it.
    pub latencies: [u32; MissCounts::KINDS],
    /// Misses of all of the region.
    pub misses: MissCounts,
}

impl RegionMisses {
    /// Returns the misses of a region that has none yet.
    pub(crate) fn new(latencies: [u32; MissCounts::KINDS]) -> Self {
        Self { latencies, misses: MissCounts::default() }
    }

    /// Adds the misses of a part of the region.
    pub(crate) fn add(&mut self, misses: MissCounts) {
        self.misses = self.misses.plus(misses);
    }

    /// Returns the known sums of a region that has `instructions` instructions and these misses.
    fn known(&self, instructions: u64) -> KnownCounts<{ MissCounts::KINDS }> {
        KnownCounts {
            whole: instructions as f64,
            counts: self.misses.0.map(|misses| misses as f64),
            costs: self.latencies.map(f64::from),
        }
    }

    /// Returns the cycles per instruction of a region that has `instructions` instructions and these misses, as its units estimate them. The estimate
    /// is nearer to the truth than one from the units alone, if the cycles of units correlate with their misses.
    fn estimate(&self, units: &[Unit], instructions: u64, rest: f64) -> Option<Estimate> {
        let counted = |unit: &Unit| CountedUnit {
            part: unit.cycles as f64,
            whole: unit.instructions as f64,
            counts: counts(unit),
        };
        let units: Vec<_> = units.iter().map(counted).collect();
        Estimate::of_counted(&units, &self.known(instructions), rest)
    }

    /// Returns the estimate from units of strata, as [`Self::estimate`] does.
    fn estimate_of_strata(
        &self,
        (units, strata): (&[Unit], &[StratumUnit]),
        instructions: u64,
        deviations: Deviations,
    ) -> Option<Estimate> {
        let units: Vec<_> = strata.iter().copied().zip(units.iter().map(counts)).collect();
        Estimate::of_counted_strata(&units, &self.known(instructions), deviations)
    }
}

fn counts(unit: &Unit) -> [f64; MissCounts::KINDS] {
    unit.misses.0.map(|misses| misses as f64)
}

impl PointEstimate {
    fn of(instructions: u64, units: &[Unit]) -> Option<Self> {
        let weighted = |of: fn(&Unit) -> u64| {
            let parts = units.iter().map(|unit| f64::from(unit.planned.weight) * of(unit) as f64);
            parts.sum::<f64>()
        };
        let cpi = weighted(|unit| unit.cycles) / weighted(|unit| unit.instructions);
        cpi.is_finite().then_some(Self { cycles: cpi * instructions as f64, cpi })
    }
}

impl StateError {
    fn of(units: &[Unit], checked: &[(usize, u64)]) -> Option<Self> {
        let pairs = checked.iter().filter_map(|(number, cycles)| {
            Some((*cycles as f64, units.get(*number)?.cycles as f64))
        });
        // The ratio of the units that were timed once is not known: no part of the whole is known exactly.
        let ratio = Estimate::of_ratio(pairs, 1.0)?;
        Some(Self { units: checked.len() as u64, ratio })
    }

    fn describe(&self) -> String {
        let off = 100.0 * (self.ratio.value - 1.0);
        let within = 100.0 * self.ratio.margin().within_95;
        format!(
            "; the state in which units begin {off:+.2} ± {within:.2} % (95 %), by {} that were timed twice",
            self.units
        )
    }
}

impl Sampled {
    /// Returns what became of the sampling of a run's region, as the run's description has it; `None` if all of it was timed.
    pub fn of_metadata(metadata: &serde_json::Value) -> Option<Self> {
        serde_json::from_value(metadata.get("sampling")?.clone()).ok()
    }

    /// Returns what `units` say of a region of so many instructions, of which some were timed.
    pub(crate) fn new(
        plan: &SamplingPlan,
        instructions: u64,
        timed_instructions: u64,
        units: &[Unit],
        known: Known<'_>,
    ) -> Self {
        let Known { strata, checked, misses } = known;
        let unit_instructions: u64 = units.iter().map(|unit| unit.instructions).sum();
        let rest =
            1.0 - unit_instructions as f64 / instructions.max(unit_instructions).max(1) as f64;
        let (units_alone, by_misses) = match plan.scheme {
            Scheme::Systematic | Scheme::Random | Scheme::RankedSet => {
                let ratios =
                    units.iter().map(|unit| (unit.cycles as f64, unit.instructions as f64));
                let known = misses.and_then(|known| known.estimate(units, instructions, rest));
                (Estimate::of_ratio(ratios, rest), known)
            }
            Scheme::Stratified | Scheme::Live => {
                let deviations = match plan.scheme {
                    Scheme::Live => Deviations::Successive,
                    _ => Deviations::FromMean,
                };
                let of_strata = stratum_units(plan, units, strata);
                let known = misses.and_then(|known| {
                    known.estimate_of_strata((units, &of_strata), instructions, deviations)
                });
                (Estimate::of_strata(&of_strata, deviations), known)
            }
            Scheme::Simpoint => (None, None),
        };
        // With few units that hardly resemble each other, the estimate by misses may have a wider interval than that of the units alone.
        let is_narrower = |known: &Estimate| {
            units_alone.is_none_or(|alone| known.margin().within_95 < alone.margin().within_95)
        };
        let by_misses = by_misses.filter(is_narrower);
        let cpi = by_misses.or(units_alone);
        let units_alone = by_misses.and(units_alone);
        let mut sampled = Self {
            in_words: String::new(),
            instructions,
            timed_instructions,
            unit_instructions,
            weighted_instructions: units.iter().any(|unit| unit.planned.weight != 1).then(|| {
                let weighted =
                    units.iter().map(|unit| unit.instructions * u64::from(unit.planned.weight));
                weighted.sum()
            }),
            units: units.len() as u64,
            cycles: cpi.map(|cpi| cpi.times(instructions as f64)),
            cpi,
            units_alone: units_alone.map(|cpi| cpi.times(instructions as f64)),
            point: match cpi {
                Some(Estimate { value: cpi, .. }) => {
                    Some(PointEstimate { cycles: cpi * instructions as f64, cpi })
                }
                None => PointEstimate::of(instructions, units),
            },
            state: checked.and_then(|checked| StateError::of(units, checked)),
            elapsed: None,
            harts: Vec::new(),
            plan: plan.clone(),
        };
        sampled.in_words = sampled.describe(checked.is_some());
        sampled
    }

    /// Takes the estimates that units make of a region which several harts executed.
    pub(crate) fn of_several(mut self, estimates: Option<HartEstimates>) -> Self {
        if let Some(HartEstimates { cycles, elapsed, harts }) = estimates {
            self.cycles = Some(cycles);
            let cpi = cycles.times(1.0 / self.instructions.max(1) as f64);
            self.cpi = Some(cpi);
            self.point = Some(PointEstimate { cycles: cycles.value, cpi: cpi.value });
            (self.elapsed, self.harts) = (Some(elapsed), harts);
        }
        self.in_words = self.describe(false);
        self
    }

    /// Returns what a user should know first; `checks`: units were to be timed twice if the plan says so.
    fn describe(&self, checks: bool) -> String {
        let Self { plan, instructions, unit_instructions, units, .. } = self;
        let sampled = format!(
            "{units} units of {} instructions, {:.2} % of {:.1} M",
            plan.unit,
            100.0 * *unit_instructions as f64 / (*instructions).max(1) as f64,
            *instructions as f64 / 1e6
        );
        if let (Some(point), false) = (self.point, plan.scheme.tells_chance()) {
            let state = self.state.map_or_else(String::new, |state| state.describe());
            return format!(
                "{sampled}, chosen to stand for {units} phases: {:.1} M cycles, not idle, {:.4} cycles per instruction{state}; how far that is off is not known, as it is with scheme = \"stratified\"",
                point.cycles / 1e6,
                point.cpi
            );
        }
        let (Some(cycles), Some(cpi)) = (&self.cycles, &self.cpi) else {
            return format!(
                "{sampled}: too few for an estimate, which a smaller run.sampling.every gives"
            );
        };
        let margin = cycles.margin();
        let percent = |margin: f64| 100.0 * margin / cycles.value;
        let timed = self.timed_instructions as f64 / (*instructions).max(1) as f64;
        // Users ask for units without gaps, but hardly for warm-ups without gaps.
        let all_timed = match timed > 0.5 && plan.warm_up > 0 {
            true => format!(
                "; {:.0} % of all was timed, as run.sampling.every is short beside unit, warm_up and what check adds",
                100.0 * timed
            ),
            false => String::new(),
        };
        let key = match plan.surveys() {
            Some(_) => "run.sampling.units",
            None => "run.sampling.every",
        };
        let few = match percent(margin.within_95) > 20.0 {
            true if plan.error.is_none() => format!("; more units make it narrower ({key})"),
            _ if *units < FEW_UNITS => format!("; so few units say little of chance ({key})"),
            _ => String::new(),
        };
        let state = match (self.state, plan.check) {
            (Some(state), _) => state.describe(),
            (None, check) if checks && check != 0 && *units >= check.saturating_mul(2) => {
                "; no units were timed twice, as intervals are too short for what run.sampling.check needs".to_owned()
            }
            _ => String::new(),
        };
        let missed = match plan.error {
            Some(wanted) if percent(margin.within_95) > 100.0 * wanted.share() => {
                format!("; ± {wanted} was wanted")
            }
            _ => String::new(),
        };
        let elapsed = self.elapsed.map_or_else(String::new, |elapsed| {
            format!(
                " of {} harts together, {:.1} M cycles from begin to end ± {:.2} % (95 %)",
                self.harts.len(),
                elapsed.value / 1e6,
                100.0 * elapsed.margin().within_95 / elapsed.value
            )
        });
        let seen = self.weighted_instructions.unwrap_or(*unit_instructions);
        let unseen = 100.0 * (1.0 - seen as f64 / (*instructions).max(1) as f64);
        let unseen = match plan.scheme == Scheme::Stratified && unseen > 0.5 {
            true => format!("; the last {unseen:.1} % of the region are in no stratum"),
            false => String::new(),
        };
        let contention = match self.harts.is_empty() {
            true => "",
            false => "; with threads that contend for locks or spin it is off by more than chance",
        };
        format!(
            "{sampled}: {:.1} M cycles, not idle, ± {:.2} % (95 %), ± {:.2} % (99.7 %) by chance{elapsed}, {:.4} cycles per instruction{state}{unseen}{few}{all_timed}{missed}{contention}",
            cycles.value / 1e6,
            percent(margin.within_95),
            percent(margin.within_99_7),
            cpi.value
        )
    }
}

/// Returns the units with their strata. A unit stands for the number of units that its weight says, scaled so that the units of a stratum together
/// stand for the stratum's instructions. `strata` has the instructions of each stratum; if it is empty, the weights alone count.
fn stratum_units(plan: &SamplingPlan, units: &[Unit], strata: &[u64]) -> Vec<StratumUnit> {
    let places = if plan.scheme == Scheme::Live { plan.slots() } else { 1 };
    let stands_for = |unit: &Unit| f64::from(unit.planned.weight) * places as f64;
    let of_stratum = |stratum: u32| {
        let own = units.iter().filter(|unit| unit.planned.stratum == stratum);
        own.map(stands_for).sum::<f64>() * plan.unit as f64
    };
    let factors: Vec<f64> =
        (0..).zip(strata).map(|(stratum, known)| *known as f64 / of_stratum(stratum)).collect();
    let units = units.iter().map(|unit| {
        let factor = factors.get(unit.planned.stratum as usize).copied().unwrap_or(1.0);
        StratumUnit {
            stratum: unit.planned.stratum.into(),
            stands_for: stands_for(unit) * factor,
            part: unit.cycles as f64,
            whole: unit.instructions as f64,
        }
    });
    units.collect()
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
    /// How much of the region each unit stands for, beside other units; empty if all stand for as much.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<u32>,
    /// Number of the stratum or phase that each unit was chosen for; empty without strata.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strata: Vec<u32>,
    /// Instructions of the region that are of each stratum, by its number; empty if that is not known but by the weights.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strata_instructions: Vec<u64>,
    /// The phases by which units were chosen, over the region, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<RegionPhases>,
    /// Units that were timed twice, by their number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checked: Vec<u64>,
    /// Cycles of each of these from the state in which units begin; `cycles` has those after a long timed warm-up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checked_cycles: Vec<u64>,
    /// Misses of the region and of each unit, by what was missed; empty if they were not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misses: Vec<MissesOfUnits>,
}

/// Misses of one kind, as they would be if the core were kept warm and nothing were timed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct MissesOfUnits {
    /// What was missed: `l1i`, `l1d`, `l2`, `llc`, or `tlb` for both TLBs of the first level.
    pub kind: String,
    /// Cycles that such a miss takes if nothing hides it.
    pub latency: u32,
    /// Misses of all of the region.
    pub region: u64,
    /// Misses of each unit.
    pub units: Vec<u64>,
}

impl SampledUnits {
    /// Version of the file's format that is written.
    pub const FORMAT: u32 = 1;

    /// Returns the units as they were planned, with their instructions.
    pub(crate) fn planned(&self) -> impl Iterator<Item = (PlannedUnit, u64)> + Clone {
        let of = |column: &Vec<u32>, number, usual| column.get(number).copied().unwrap_or(usual);
        let units = self.at.iter().zip(&self.instructions).enumerate();
        units.map(move |(number, (at, instructions))| {
            let weight = of(&self.weights, number, 1);
            let planned = PlannedUnit { at: *at, weight, stratum: of(&self.strata, number, 0) };
            (planned, *instructions)
        })
    }

    /// Returns the misses of a unit, by its number.
    pub(crate) fn unit_misses(&self, number: usize) -> MissCounts {
        MissCounts(std::array::from_fn(|kind| {
            self.misses.get(kind).and_then(|of| of.units.get(number)).copied().unwrap_or(0)
        }))
    }

    /// Returns the misses of the region, if they were counted, of each unit too.
    pub(crate) fn region_misses(&self) -> Option<RegionMisses> {
        let are_counted = self.misses.len() == MissCounts::KINDS
            && self.misses.iter().zip(MissCounts::NAMES).all(|(of, name)| of.kind == name)
            && self.misses.iter().all(|of| of.units.len() == self.at.len());
        are_counted.then(|| RegionMisses {
            latencies: std::array::from_fn(|kind| self.misses[kind].latency),
            misses: MissCounts(std::array::from_fn(|kind| self.misses[kind].region)),
        })
    }

    pub(crate) fn of(units: &[Unit], phases: Option<RegionPhases>, known: Known<'_>) -> Self {
        let checked = known.checked.unwrap_or_default();
        let column = |field: fn(&Unit) -> u64| units.iter().map(field).collect();
        let planned = |field: fn(&PlannedUnit) -> u32, usual| {
            let column: Vec<u32> = units.iter().map(|unit| field(&unit.planned)).collect();
            if column.iter().all(|found| *found == usual) { Vec::new() } else { column }
        };
        Self {
            format: Self::FORMAT,
            at: column(|unit| unit.planned.at),
            instructions: column(|unit| unit.instructions),
            cycles: column(|unit| unit.cycles),
            weights: planned(|unit| unit.weight, 1),
            strata: planned(|unit| unit.stratum, 0),
            strata_instructions: known.strata.to_vec(),
            phases,
            checked: checked.iter().map(|(number, _)| *number as u64).collect(),
            checked_cycles: checked.iter().map(|(_, cycles)| *cycles).collect(),
            misses: known.misses.map_or_else(Vec::new, |known| {
                let of_kind = |kind: usize| MissesOfUnits {
                    kind: MissCounts::NAMES[kind].to_owned(),
                    latency: known.latencies[kind],
                    region: known.misses.0[kind],
                    units: units.iter().map(|unit| unit.misses.0[kind]).collect(),
                };
                (0..MissCounts::KINDS).map(of_kind).collect()
            }),
        }
    }
}
