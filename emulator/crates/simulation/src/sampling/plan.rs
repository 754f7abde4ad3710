//! How a region is sampled: what a user says, and what a survey or an estimate settles.

use std::path::PathBuf;

use commit_trace::Event;
use phases::{ChosenInterval, ChosenIntervals, MOST_DIMENSIONS, Point, Random, Survey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ChosenUnits, PlannedUnit, RegionPhases, Sampled};

/// Instructions of intervals of a pass that only counts instructions.
const COUNTING_INTERVAL: u64 = 1 << 22;
/// Units that a ranked set or a stratified sample has if nobody says otherwise.
const DEFAULT_UNITS: u64 = 100;
/// Most phases that SimPoint's scheme may be asked for: the search for more would take longer than timing them.
const MOST_PHASES: u64 = 1000;
/// Fewest instructions that are timed before the warm-up of a unit that is timed twice.
const REFERENCE: u64 = 1_000_000;
/// Most instructions that are timed before the warm-up of a unit that is timed twice, and most instructions of a unit and its warm-up whose
/// misses are counted. The calls that they make to the core are logged in the host's memory, some 15 bytes for each instruction.
const MAX_REFERENCE: u64 = 16_000_000;
/// Length of the timed stretch before a unit that is timed twice, as a multiple of the window in which caches are kept warm
/// ([`SamplingPlan::caches`]).
const WINDOWS: u64 = 4;
/// Share of units that are timed beyond what the wanted error should need, because the error that was found is itself an estimate.
const EXTRA_UNITS: f64 = 0.1;

/// Where units lie in their intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// In the same place of each interval, which the seed says.
    #[default]
    Systematic,
    /// In a place of its own in each interval, by the seed.
    Random,
    /// Where the program does what stands for all that it does, which a pass before tells by basic blocks ([`phases::ranked_set`]).
    RankedSet,
    /// In each phase of the program, at random: a pass before finds phases by basic blocks ([`phases::stratified`]).
    Stratified,
    /// Where a phase of the program is most like itself: one unit stands for a phase ([`phases::representatives`]). It says nothing of how far the estimate is off by chance.
    Simpoint,
    /// In intervals that are drawn while the program runs, with no pass before: the more of a phase the more its units differ. Phases are told by misses of caches and TLBs, which are
    /// always kept warm, as predictors are.
    Live,
}

impl Scheme {
    /// Returns whether how much units differ tells how far estimates are off by chance.
    pub fn tells_chance(self) -> bool {
        self != Self::Simpoint
    }

    /// Returns the scheme's name in a run spec.
    pub fn name(self) -> &'static str {
        match self {
            Self::Systematic => "systematic",
            Self::Random => "random",
            Self::RankedSet => "ranked-set",
            Self::Stratified => "stratified",
            Self::Simpoint => "simpoint",
            Self::Live => "live",
        }
    }

    /// Returns the scheme's name as a run spec has it, in quotes.
    fn quoted(self) -> String {
        format!("\"{}\"", self.name())
    }
}

/// How far an estimate may be off: half the width of its interval, relative to it, such as "1 %".
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String")]
pub struct RelativeError {
    /// In millionths.
    millionths: u64,
}

impl RelativeError {
    /// Returns the error as a share.
    pub fn share(self) -> f64 {
        self.millionths as f64 / 1e6
    }
}

impl std::fmt::Display for RelativeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} %", self.millionths as f64 / 1e4)
    }
}

impl std::str::FromStr for RelativeError {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        let percent = percent.filter(|percent| (0.01..=100.0).contains(percent));
        let percent = percent.ok_or_else(|| {
            format!("expected a percentage from 0.01 to 100 such as \"1 %\", found \"{text}\"")
        })?;
        Ok(Self { millionths: (percent * 1e4).round() as u64 })
    }
}

impl Serialize for RelativeError {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RelativeError {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Percentage)
    }
}

/// Reads a [`RelativeError`].
struct Percentage;

impl serde::de::Visitor<'_> for Percentage {
    type Value = RelativeError;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a percentage in quotes, such as \"1 %\"")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<RelativeError, E> {
        text.parse().map_err(E::custom)
    }
}

/// How a region is sampled.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "a table of keys (unit, warm_up, predictors, caches, every, units, error, scheme, points, dimensions, seed, check, store)"
)]
pub struct SamplingPlan {
    /// Where units lie.
    pub scheme: Scheme,
    /// Instructions of a unit.
    pub unit: u64,
    /// Instructions that are timed before a unit, and are no part of it.
    pub warm_up: u64,
    /// Instructions before the warm-up from which predictors learn, though nothing is timed. Before those, predictors stay as they are.
    pub predictors: u64,
    /// Instructions before the warm-up in which caches and TLBs are kept warm, though nothing is timed; before those, they stay as they are.
    /// Without it they are always kept warm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caches: Option<u64>,
    /// Instructions of an interval, in which there is one unit; in the mean, where units are decided while the program runs.
    pub every: u64,
    /// Number of units, which says how long intervals are: a pass before counts the region's instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub units: Option<u64>,
    /// How far the cycles may be off by chance, for 95 % of seeds: the program runs again with shorter intervals if a pass has told less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RelativeError>,
    /// File of intervals that stand for all, as SimPoint writes them (`.simpts`), beside a file of their weights (`.weights`): they are the units, and a pass before counts the region's instructions alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub points: Option<PathBuf>,
    /// Numbers that the basic-block vectors are projected to by which units are chosen, at most 100; 15 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<u32>,
    /// Number that the places of units follow from.
    pub seed: u64,
    /// One unit in so many is timed twice, from the state in which units begin and after a long warm-up, so that the error of that state is known; 0: none.
    pub check: u64,
    /// The units are stored, with all that a core is told in them and between them, so that any core can time them later (`tipsim retime`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub store: bool,
}

impl Default for SamplingPlan {
    fn default() -> Self {
        Self {
            scheme: Scheme::default(),
            unit: 50_000,
            warm_up: 30_000,
            predictors: 1_000_000,
            caches: None,
            every: 2_000_000,
            units: None,
            error: None,
            points: None,
            dimensions: None,
            seed: 0,
            check: 50,
            store: false,
        }
    }
}

impl SamplingPlan {
    /// Returns the plan that a run's description has; `None` if all of its region was to be timed.
    pub fn of_metadata(metadata: &serde_json::Value) -> Option<Self> {
        serde_json::from_value(metadata.get("spec")?.get("run")?.get("sampling")?.clone()).ok()
    }

    /// Returns the first state of the random numbers that [`Self::place`] draws.
    pub(super) fn first_random(&self) -> u64 {
        self.seed ^ 0x9e37_79b9_7f4a_7c15
    }

    /// Returns where in the next interval its unit begins, in instructions from the interval's begin. `random` is [`Self::first_random`] for the
    /// first interval, and what the previous call left there for any other.
    pub(super) fn place(&self, random: &mut u64) -> u64 {
        // Plans are checked before; the interval is as long as the unit at least.
        let room = self.every.saturating_sub(self.unit);
        let number = match self.scheme {
            Scheme::Systematic => Random(self.seed).bits(),
            // Where a survey was to choose units and there was nothing to choose from, their places are random.
            Scheme::Random
            | Scheme::RankedSet
            | Scheme::Stratified
            | Scheme::Simpoint
            | Scheme::Live => {
                *random = Random(*random).bits();
                *random
            }
        };
        number % room.saturating_add(1)
    }

    /// Returns the units of a region of so many instructions, one in each interval.
    pub(super) fn places(&self, instructions: u64) -> impl Iterator<Item = PlannedUnit> {
        let mut random = self.first_random();
        let intervals = 0..instructions.div_ceil(self.every.max(1));
        intervals
            .map(move |interval| PlannedUnit::at(interval * self.every + self.place(&mut random)))
    }

    /// Returns what is wrong with the plan, as field, what is expected and what was found.
    pub fn fault(&self) -> Option<(&'static str, String, String)> {
        let fault = |field, expected: String, found: &dyn std::fmt::Display| {
            Some((field, expected, found.to_string()))
        };
        match self {
            Self { unit, .. } if *unit < 1000 => fault("unit", "at least 1000".to_owned(), unit),
            // Where units are chosen, how many there are says how long intervals are.
            Self { every, unit, .. } if every < unit && !self.chooses_units() => {
                fault("every", format!("at least the unit, {unit}"), every)
            }
            Self { caches: Some(caches), predictors, .. } if caches < predictors => {
                let expected = format!("at least run.sampling.predictors, {predictors}");
                fault("caches", expected, caches)
            }
            Self { units: Some(units), .. } if *units < 2 => {
                fault("units", "at least 2".to_owned(), units)
            }
            Self { error: Some(_), units: Some(units), .. } => {
                fault("units", "none with run.sampling.error".to_owned(), units)
            }
            Self {
                error: Some(_),
                scheme: scheme @ (Scheme::RankedSet | Scheme::Stratified | Scheme::Simpoint),
                ..
            } => fault(
                "scheme",
                "\"systematic\", \"random\" or \"live\" with run.sampling.error".to_owned(),
                &scheme.quoted(),
            ),
            Self { scheme: Scheme::Simpoint, units: Some(units), .. } if *units > MOST_PHASES => {
                fault("units", format!("at most {MOST_PHASES} with scheme = \"simpoint\""), units)
            }
            Self { points: Some(_), scheme, .. } if *scheme != Scheme::Simpoint => {
                fault("scheme", "\"simpoint\" with run.sampling.points".to_owned(), &scheme.quoted())
            }
            Self { points: Some(_), units: Some(units), .. } => {
                fault("units", "none with run.sampling.points".to_owned(), units)
            }
            Self { scheme: Scheme::Live, caches: Some(caches), .. } => fault(
                "caches",
                "none with scheme = \"live\", which tells phases by the misses of caches that are always warm".to_owned(),
                caches,
            ),
            Self { dimensions: Some(dimensions), .. } if !self.compares_vectors() => fault(
                "dimensions",
                "none without basic-block vectors, which units are chosen by with scheme = \"simpoint\", \"stratified\" or \"ranked-set\" and no run.sampling.points".to_owned(),
                dimensions,
            ),
            Self { dimensions: Some(dimensions), .. }
                if !(1..=MOST_DIMENSIONS).contains(&(*dimensions as usize)) =>
            {
                fault("dimensions", format!("1 to {MOST_DIMENSIONS}"), dimensions)
            }
            _ => None,
        }
    }

    /// Returns whether units are chosen, and not one in each interval.
    fn chooses_units(&self) -> bool {
        match self.scheme {
            Scheme::Systematic | Scheme::Random | Scheme::Live => false,
            Scheme::RankedSet | Scheme::Stratified | Scheme::Simpoint => true,
        }
    }

    /// Returns the keys that have no effect in this plan, each with the setting that overrules it, in words that begin with "with".
    pub fn overruled(&self) -> Vec<(&'static str, String)> {
        let scheme = format!("with scheme = {}", self.scheme.quoted());
        let mut overruled = Vec::new();
        if self.chooses_units() {
            let why = format!("{scheme}, where run.sampling.units says how many units there are");
            overruled.push(("every", why));
        } else if self.units.is_some() {
            let why = "with run.sampling.units, which says how many units there are";
            overruled.push(("every", why.to_owned()));
        }
        if self.scheme == Scheme::Live {
            let why = format!("{scheme}, whose predictors learn all the time");
            overruled.push(("predictors", why));
            let why = format!("{scheme}, whose units are not known long enough before they begin");
            overruled.push(("check", why));
        }
        overruled
    }

    /// Returns whether units are chosen by basic-block vectors.
    fn compares_vectors(&self) -> bool {
        self.chooses_units() && self.points.is_none()
    }

    /// Returns the numbers that basic-block vectors are projected to.
    pub fn dimensions(&self) -> usize {
        self.dimensions.map_or(phases::DIMENSIONS, |dimensions| dimensions as usize)
    }

    /// Returns whether the misses of the region and of its units are counted, so that estimates of cycles use them. This needs caches that are always
    /// kept warm, a scheme whose units tell the error by chance, and short units.
    pub(crate) fn knows_misses(&self) -> bool {
        // The calls to the core during a unit and its warm-up are logged in the host's memory.
        let is_short = self.unit.saturating_add(self.warm_up) <= MAX_REFERENCE;
        self.caches.is_none() && self.scheme.tells_chance() && is_short
    }

    /// Returns whether units follow each other without a gap.
    pub(crate) fn times_all(&self) -> bool {
        let in_each_interval = matches!(self.scheme, Scheme::Systematic | Scheme::Random);
        in_each_interval && self.units.is_none() && self.unit == self.every && self.warm_up == 0
    }

    /// Returns how many instructions are timed before the warm-up of a unit that is timed twice; `None`: no unit can be timed twice.
    pub(crate) fn reference(&self) -> Option<u64> {
        // The error that a short window of warm caches makes shows only if timing begins long before the window.
        let before_window = self.caches.map_or(0, |caches| caches.saturating_mul(WINDOWS));
        let reference = self.predictors.max(before_window).max(REFERENCE);
        (reference <= MAX_REFERENCE).then_some(reference)
    }

    /// Returns the length, in instructions, of the intervals that a pass before this one has to survey; `None` if no such pass is needed.
    pub fn surveys(&self) -> Option<u64> {
        match self.chooses_units() {
            // The files of points tell where units are. How much each unit stands for follows once the region's length is known.
            true if self.points.is_some() => Some(COUNTING_INTERVAL),
            true => Some(self.unit),
            false => self.units.map(|_| COUNTING_INTERVAL),
        }
    }

    /// Returns whether the program may run more than once.
    pub fn has_passes(&self) -> bool {
        self.surveys().is_some() || self.error.is_some()
    }

    /// Settles what a survey of the region says: how long intervals are, and which units there are if there is not one in each of them. `points`: the intervals that the
    /// plan's files name.
    ///
    /// # Errors
    /// If a point lies beyond the region, in words.
    pub fn settle(&mut self, survey: &Survey, points: &[Point]) -> Result<ChosenUnits, String> {
        let instructions = survey.total();
        let count = |units| usize::try_from(units).unwrap_or(usize::MAX);
        let units = count(self.units.unwrap_or(DEFAULT_UNITS));
        // The region's end may cut the last one.
        let intervals = instructions.div_ceil(self.unit);
        if let Some(beyond) = points.iter().find(|point| point.interval as u64 >= intervals) {
            return Err(format!(
                "points: expected intervals below {intervals}, as the region has {instructions} instructions and run.sampling.unit is {}, found {}",
                self.unit, beyond.interval
            ));
        }
        let mut interval = survey.interval;
        let chosen = match self.scheme {
            Scheme::Simpoint if !points.is_empty() => {
                interval = self.unit;
                ChosenIntervals { intervals: Point::chosen(points, intervals), phases: Vec::new() }
            }
            Scheme::Systematic | Scheme::Random | Scheme::Live => ChosenIntervals::default(),
            Scheme::RankedSet => {
                let chosen = phases::ranked_set(survey, units, self.seed);
                let alike = |interval| ChosenInterval { interval, stands_for: 1, phase: 0 };
                let intervals = chosen.into_iter().map(alike).collect();
                ChosenIntervals { intervals, phases: Vec::new() }
            }
            Scheme::Stratified => phases::stratified(survey, units, self.seed),
            Scheme::Simpoint => phases::representatives(survey, self.units.map(count), self.seed),
        };
        let ChosenIntervals { intervals: chosen, phases } = chosen;
        let units = if chosen.is_empty() { units } else { chosen.len() };
        self.every = instructions.div_ceil(units.max(1) as u64).max(self.unit);
        let number = |phase: usize| u32::try_from(phase).unwrap_or(u32::MAX);
        Ok(ChosenUnits {
            units: planned(&chosen, interval),
            surveyed: Some(instructions),
            phases: (!phases.is_empty())
                .then(|| RegionPhases { interval, of: phases.into_iter().map(number).collect() }),
        })
    }

    /// Returns the length of an interval, in instructions, with which the next pass should meet the wanted error, after a pass whose error was
    /// larger. `None`: the error was met, or intervals cannot be shorter.
    pub fn narrower(&self, sampled: &Sampled) -> Option<u64> {
        let (wanted, cycles) = (self.error?, sampled.cycles?);
        let found = cycles.margin().within_95 / cycles.value;
        let factor = (wanted.share() / found).powi(2) * (1.0 - EXTRA_UNITS);
        let every = ((self.every as f64 * factor) as u64).max(self.unit);
        (found > wanted.share() && every < self.every).then_some(every)
    }
}

/// Returns the units of the chosen intervals, each of which is `interval` instructions long.
fn planned(chosen: &[ChosenInterval], interval: u64) -> Vec<PlannedUnit> {
    // If a weight is too large for the stream, all weights are scaled down together.
    let most = chosen.iter().map(|chosen| chosen.stands_for).max().unwrap_or(1);
    let scale = most.div_ceil(u64::from(Event::MAX_WEIGHT)).max(1);
    let planned = chosen.iter().map(|chosen| PlannedUnit {
        at: (chosen.interval as u64).saturating_mul(interval),
        weight: u32::try_from(chosen.stands_for.div_ceil(scale)).unwrap_or(Event::MAX_WEIGHT),
        stratum: u32::try_from(chosen.phase).unwrap_or(u32::MAX),
    });
    planned.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_survey_settles_how_long_intervals_are() {
        let mut survey = Survey::new(1000);
        survey.instructions = vec![1000; 500];
        survey.vectors = vec![vec![0.0; phases::DIMENSIONS]; 500];
        let plan = SamplingPlan { unit: 1000, units: Some(50), ..SamplingPlan::default() };
        let mut of_each = plan.clone();
        assert_eq!(of_each.settle(&survey, &[]).map(|chosen| chosen.units), Ok(vec![]));
        assert_eq!(of_each.every, 10_000);
        let mut chosen = SamplingPlan { scheme: Scheme::RankedSet, ..plan };
        let places = chosen.settle(&survey, &[]).unwrap().units;
        assert_eq!((places.len(), chosen.every, chosen.surveys()), (50, 10_000, Some(1000)));
        let is_alike = |unit: &PlannedUnit| unit.weight == 1 && unit.at.is_multiple_of(1000);
        assert!(places.iter().all(|unit| is_alike(unit) && unit.at < 500_000));
        // More units than there is room for.
        let mut many = SamplingPlan { unit: 1000, units: Some(9999), ..SamplingPlan::default() };
        many.settle(&survey, &[]).unwrap();
        assert_eq!(many.every, 1000);
        assert!(!SamplingPlan::default().has_passes());
    }

    #[test]
    fn units_weigh_what_they_stand_for() {
        let mut survey = Survey::new(1000);
        for at in 0..400 {
            let mut vector = vec![0.0; phases::DIMENSIONS];
            vector[usize::from(at % 4 == 0)] = 1.0;
            survey.instructions.push(1000);
            survey.vectors.push(vector);
        }
        let plan = |scheme| SamplingPlan { scheme, unit: 1000, ..SamplingPlan::default() };
        let mut simpoint = plan(Scheme::Simpoint);
        let found: Vec<_> =
            simpoint.settle(&survey, &[]).unwrap().units.iter().map(|unit| unit.weight).collect();
        assert_eq!((found, simpoint.every), (vec![100, 300], 200_000));
        let mut stratified = SamplingPlan { units: Some(40), ..plan(Scheme::Stratified) };
        let units = stratified.settle(&survey, &[]).unwrap().units;
        assert_eq!((units.len(), stratified.every), (40, 10_000));
        assert!(units.iter().all(|unit| unit.weight == 10 && unit.at % 1000 == 0));
        assert_eq!(units.iter().filter(|unit| unit.stratum == 0).count(), 10);
        // Points have the weights of their files, and no unit lies beyond the region.
        let point = |interval, weight| Point { interval, weight, phase: interval };
        let points = simpoint.settle(&survey, &[point(3, 0.2), point(399, 0.6)]).unwrap().units;
        let found: Vec<_> = points.iter().map(|unit| (unit.at, unit.weight)).collect();
        assert_eq!(found, [(3000, 100), (399_000, 300)]);
        let error = simpoint.settle(&survey, &[point(400, 1.0)]).unwrap_err();
        assert!(error.starts_with("points: expected intervals below 400"), "{error}");
        let chosen = [(1u64 << 40, 0), (1 << 39, 1), (1, 2)];
        let chosen =
            chosen.map(|(stands_for, phase)| ChosenInterval { interval: phase, stands_for, phase });
        let weights: Vec<_> = planned(&chosen, 10).iter().map(|unit| unit.weight).collect();
        assert_eq!(weights, [Event::MAX_WEIGHT, Event::MAX_WEIGHT / 2, 1]);
    }

    #[test]
    fn keys_that_others_overrule_are_named() {
        let keys = |plan: SamplingPlan| -> Vec<_> {
            plan.overruled().into_iter().map(|(key, _)| key).collect()
        };
        let plan = |scheme| SamplingPlan { scheme, ..SamplingPlan::default() };
        let counted = |scheme| SamplingPlan { units: Some(5), ..plan(scheme) };
        assert!(keys(plan(Scheme::Systematic)).is_empty() && keys(plan(Scheme::Random)).is_empty());
        assert_eq!(keys(counted(Scheme::Random)), ["every"]);
        assert_eq!(keys(plan(Scheme::Stratified)), ["every"]);
        assert_eq!(keys(plan(Scheme::Live)), ["predictors", "check"]);
        assert_eq!(keys(counted(Scheme::Live)), ["every", "predictors", "check"]);
    }

    #[test]
    fn errors_are_percentages() {
        for (text, shown) in [("1 %", "1 %"), ("0.5%", "0.5 %"), ("2.25 %", "2.25 %")] {
            assert_eq!(text.parse::<RelativeError>().unwrap().to_string(), shown);
        }
        for wrong in ["1", "0 %", "-1 %", "101 %", "nan %", "%", ""] {
            let error = wrong.parse::<RelativeError>().unwrap_err();
            assert!(error.contains("such as \"1 %\""), "{error}");
        }
    }

    #[test]
    fn plans_that_cannot_be_are_refused() {
        let plan = SamplingPlan { unit: 10, ..SamplingPlan::default() };
        assert_eq!(plan.fault().unwrap().0, "unit");
        let plan = SamplingPlan { every: 9000, ..SamplingPlan::default() };
        assert_eq!(plan.fault().unwrap().0, "every");
        let long = SamplingPlan { unit: 5_000_000, ..SamplingPlan::default() };
        assert_eq!(long.fault().unwrap().0, "every");
        assert_eq!(SamplingPlan { scheme: Scheme::Stratified, ..long }.fault(), None);
        let plan = SamplingPlan { caches: Some(9000), ..SamplingPlan::default() };
        assert_eq!(plan.fault().unwrap().0, "caches");
        let plan = SamplingPlan { units: Some(1), ..SamplingPlan::default() };
        assert_eq!(plan.fault().unwrap().0, "units");
        let error = Some("1 %".parse().unwrap());
        let plan = SamplingPlan { units: Some(10), error, ..SamplingPlan::default() };
        assert_eq!(plan.fault().unwrap().0, "units");
        let plan = SamplingPlan { scheme: Scheme::RankedSet, error, ..SamplingPlan::default() };
        assert_eq!(plan.fault().unwrap().0, "scheme");
        let points = Some(PathBuf::from("a.simpts"));
        let plan = SamplingPlan { points: points.clone(), ..SamplingPlan::default() };
        assert_eq!(plan.fault().unwrap().2, "\"systematic\"");
        let chosen = SamplingPlan { scheme: Scheme::Simpoint, points, ..SamplingPlan::default() };
        assert_eq!((chosen.fault(), chosen.surveys()), (None, Some(COUNTING_INTERVAL)));
        let plan = SamplingPlan { units: Some(5), ..chosen.clone() };
        assert_eq!(plan.fault().unwrap().0, "units");
        let live = SamplingPlan { scheme: Scheme::Live, ..SamplingPlan::default() };
        assert_eq!((live.fault(), live.surveys()), (None, None));
        let plan = SamplingPlan { caches: Some(5_000_000), ..live.clone() };
        assert_eq!(plan.fault().unwrap().0, "caches");
        for plan in [live, chosen, SamplingPlan::default()] {
            let plan = SamplingPlan { dimensions: Some(20), ..plan };
            assert_eq!(plan.fault().unwrap().0, "dimensions");
        }
        let plan = |dimensions| SamplingPlan {
            scheme: Scheme::Stratified,
            dimensions: Some(dimensions),
            ..SamplingPlan::default()
        };
        assert_eq!((plan(100).fault(), plan(100).dimensions()), (None, 100));
        for wrong in [0, 101] {
            assert_eq!(plan(wrong).fault().unwrap().0, "dimensions");
        }
        assert_eq!(SamplingPlan::default().fault(), None);
    }
}
