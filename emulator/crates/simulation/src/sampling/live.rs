//! Which intervals of a region have a unit, decided while the program runs.
//!
//! The region is divided into intervals that are shorter than the mean distance of units. Misses of caches and TLBs, which functional warming counts anyway, say
//! of each interval what the program does in it: intervals that miss about as often are a *phase*, found by leader-follower clustering as in Sherwood et al., *Phase
//! Tracking and Prediction* (ISCA 2003). An interval is expected to be of the phase of the one before it.
//!
//! Expected phases are strata. The intervals that are expected to be of one phase form groups, one after the other; the number of intervals in a
//! group is the phase's *period*. One interval of each group has a unit: it is drawn before the group begins. Each interval therefore has a unit with
//! a probability that was known before, whatever the program does, and the weight of the unit is the period. Periods follow from the units so far:
//! the more the cycles of a phase's units differ, the more units the phase has (Neyman's optimal allocation; Cochran, *Sampling Techniques*, 5.5).
//! When the region has ended, the instructions of each stratum are known; weighting by them removes the chance that lies in the groups that the
//! region's end cuts (poststratification; Cochran, 5A.9).

use phases::Random;
use timing::MissCounts;

use super::{PlannedUnit, RegionPhases, SamplingPlan, Unit};

/// Intervals in the mean distance of two units.
const INTERVALS_PER_UNIT: u64 = 8;
/// Most phases: once there are so many, every further interval joins the nearest one.
const MOST_PHASES: usize = 16;
/// Distance from the centre of the nearest phase at which an interval begins a new phase, in doublings of misses, summed over all kinds of misses.
const NEW_PHASE_DISTANCE: f64 = 4.0;
/// Misses per thousand instructions below which differences between intervals hardly count.
const MISSES_THAT_COUNT: f64 = 0.25;
/// Number of intervals of a phase up to which the phase's centre is their mean; after that, the centre follows new intervals as an exponential moving
/// average.
const CENTRE_MEMORY: u64 = 32;
/// Number of units below which every interval of a phase has a unit, so that the variance of a new phase becomes known.
const FIRST_UNITS: u64 = 4;
/// Weight, in units, of the variance pooled over all phases where the variance of a single phase is estimated.
const POOLED_UNITS: f64 = 2.0;
/// Binary logarithm of the longest period. A phase whose units hardly differ may contain rare intervals that take long, such as the first interval of
/// another phase. The longer the period, the fewer units fall on such intervals, and the less confidence intervals know of them.
const LONGEST_PERIOD: u32 = 4;
/// Number of units by which the number of planned units may miss the plan without much effect on periods.
const UNITS_OFF: f64 = 8.0;

/// Miss rates of an interval: a logarithm for each kind of miss.
type Signature = [f64; MissCounts::KINDS];

/// Plans units while the program runs. Places are instructions of the region.
#[derive(Clone, Debug)]
pub(super) struct LivePlanner {
    every: u64,
    unit: u64,
    /// Places for a unit in an interval.
    slots: u64,
    /// Instructions by which the decision whether an interval has a unit comes before the interval.
    lead: u64,
    phases: Vec<ProgramPhase>,
    /// Expected phase of each interval so far.
    expected: Vec<u8>,
    random: Random,
    /// Misses since the last decision, up to the running totals in `counted`.
    misses: MissCounts,
    /// Running totals of misses when `misses` was last brought up to date.
    counted: MissCounts,
    /// Place of the last decision.
    decided_at: u64,
    /// Units that were planned.
    planned: u64,
}

/// Intervals that miss about as often.
#[derive(Clone, Debug)]
struct ProgramPhase {
    /// Mean signature of the phase's intervals, in which later intervals count more.
    centre: Signature,
    /// Number of intervals that were found to be of the phase.
    members: u64,
    /// Intervals that were expected to be of the phase.
    intervals: u64,
    /// Binary logarithm of the intervals of a group.
    period: u32,
    /// Intervals of the present group that have not begun.
    left: u64,
    /// The value of `left` at which the interval has the group's unit.
    drawn: u64,
    /// Number of the phase's units that have ended.
    units: u64,
    /// Mean of the units' cycles per instruction.
    mean: f64,
    /// Sum of the squared distances of the units' cycles per instruction from `mean`.
    squares: f64,
}

impl LivePlanner {
    pub(crate) fn new(plan: &SamplingPlan) -> Self {
        let unit = plan.unit.max(1);
        Self {
            every: plan.every.max(1),
            unit,
            slots: plan.slots(),
            lead: plan.warm_up,
            phases: vec![ProgramPhase::new()],
            expected: Vec::new(),
            random: Random(plan.seed ^ 0x6c69_7665),
            misses: MissCounts::default(),
            counted: MissCounts::default(),
            decided_at: 0,
            planned: 0,
        }
    }

    /// Returns the place at which it is decided whether the next interval has a unit.
    pub(crate) fn next_decision(&self) -> u64 {
        (self.expected.len() as u64).saturating_mul(self.interval()).saturating_sub(self.lead)
    }

    fn interval(&self) -> u64 {
        self.slots.saturating_mul(self.unit)
    }

    /// Begins a stretch of the region, with running totals of misses.
    pub(crate) fn open(&mut self, misses: MissCounts) {
        self.counted = misses;
    }

    /// Ends a stretch of the region.
    pub(crate) fn close(&mut self, misses: MissCounts) {
        self.misses = self.misses.plus(misses.since(self.counted));
    }

    /// Decides at a place whether the next interval has a unit.
    pub(crate) fn decide(&mut self, place: u64, misses: MissCounts) -> Option<PlannedUnit> {
        self.close(misses);
        self.open(misses);
        let instructions = place - std::mem::replace(&mut self.decided_at, place);
        let found = std::mem::take(&mut self.misses);
        let last = self.expected.last().map_or(0, |phase| usize::from(*phase));
        let number = match instructions {
            // Nothing was executed since the last decision, as at the region's begin: the interval is expected to be of the phase of the last one.
            0 => last,
            _ => self.phase_of(signature(found, instructions)),
        };
        let interval = self.expected.len() as u64;
        self.expected.push(number as u8);
        if self.phases[number].left == 0 {
            self.begin_group(number, place);
        }
        let phase = &mut self.phases[number];
        phase.intervals += 1;
        let is_drawn = phase.left == phase.drawn;
        phase.left -= 1;
        let weight = 1 << phase.period;
        is_drawn.then(|| {
            self.planned += 1;
            let slot = interval.saturating_mul(self.slots) + self.random.bits() % self.slots;
            PlannedUnit { at: slot.saturating_mul(self.unit), weight, stratum: number as u32 }
        })
    }

    /// Learns the cycles per instruction of a unit that has ended.
    pub(crate) fn learn(&mut self, unit: &Unit) {
        if let Some(phase) = self.phases.get_mut(unit.planned.stratum as usize) {
            let cpi = unit.cycles as f64 / unit.instructions.max(1) as f64;
            let off = cpi - phase.mean;
            phase.units += 1;
            phase.mean += off / phase.units as f64;
            phase.squares += off * (cpi - phase.mean);
        }
    }

    /// Returns how many of a region's instructions are of intervals that were expected to be of each phase.
    pub(crate) fn stratum_instructions(&self, region: u64) -> Vec<u64> {
        let mut of = vec![0; self.phases.len()];
        let mut left = region;
        for phase in &self.expected {
            let instructions = self.interval().min(left);
            of[usize::from(*phase)] += instructions;
            left -= instructions;
        }
        of
    }

    /// Returns the phase that each interval was expected to be of.
    pub(crate) fn phases(&self) -> RegionPhases {
        let of = self.expected.iter().map(|phase| u32::from(*phase)).collect();
        RegionPhases { interval: self.interval(), of }
    }

    /// Returns the phase of an interval with this signature, which may be a new phase, and moves the phase's centre towards the signature.
    fn phase_of(&mut self, signature: Signature) -> usize {
        let distance = |phase: &ProgramPhase| -> f64 {
            let pairs = phase.centre.iter().zip(&signature);
            pairs.map(|(centre, found)| (centre - found).abs()).sum()
        };
        // The first phase exists from the start, but has no centre until an interval was found to be of it.
        let known = self.phases.iter().enumerate().filter(|(_, phase)| phase.members > 0);
        let nearest = known.map(|(number, phase)| (number, distance(phase)));
        let number = match nearest.min_by(|a, b| a.1.total_cmp(&b.1)) {
            None => 0,
            Some((number, distance)) => {
                match distance < NEW_PHASE_DISTANCE || self.phases.len() == MOST_PHASES {
                    true => number,
                    false => {
                        self.phases.push(ProgramPhase::new());
                        self.phases.len() - 1
                    }
                }
            }
        };
        let phase = &mut self.phases[number];
        phase.members += 1;
        let share = 1.0 / phase.members.min(CENTRE_MEMORY) as f64;
        for (centre, found) in phase.centre.iter_mut().zip(signature) {
            *centre += share * (found - *centre);
        }
        number
    }

    /// Begins a group of intervals that are expected to be of a phase, and draws the one that has a unit.
    fn begin_group(&mut self, number: usize, place: u64) {
        let period = self.period(number, place);
        let phase = &mut self.phases[number];
        phase.period = period;
        phase.left = 1 << period;
        phase.drawn = 1 + self.random.bits() % phase.left;
    }

    /// Returns the binary logarithm of the period for the group that a phase begins at `place`. The period follows Neyman's allocation, scaled so
    /// that the mean distance of units becomes that of the plan.
    fn period(&self, number: usize, place: u64) -> u32 {
        let phase = &self.phases[number];
        if phase.units < FIRST_UNITS {
            return 0;
        }
        let degrees = |phase: &ProgramPhase| phase.units.saturating_sub(1) as f64;
        let pooled = self.phases.iter().map(|phase| phase.squares).sum::<f64>()
            / self.phases.iter().map(degrees).sum::<f64>();
        let deviation = |phase: &ProgramPhase| {
            let squares = phase.squares + POOLED_UNITS * pooled;
            (squares / (degrees(phase) + POOLED_UNITS)).sqrt()
        };
        let intervals = self.expected.len() as f64;
        let share = |phase: &ProgramPhase| phase.intervals as f64 / intervals;
        let mean: f64 = self.phases.iter().map(|phase| share(phase) * deviation(phase)).sum();
        if mean <= 0.0 {
            return (phase.period + 1).min(LONGEST_PERIOD);
        }
        let asked_for = place as f64 / self.every as f64;
        // The third power keeps the number of units near what was asked for, though periods are powers of two and new phases have more.
        let behind = (asked_for + UNITS_OFF) / (self.planned as f64 + UNITS_OFF);
        let units_per_interval = self.interval() as f64 / self.every as f64;
        let rate = units_per_interval * behind.powi(3) * deviation(phase) / mean;
        let period = (1.0 / rate).log2().round().clamp(0.0, f64::from(LONGEST_PERIOD)) as u32;
        // Few units may be alike by chance; therefore the period at most doubles.
        period.min(phase.period + 1)
    }
}

impl ProgramPhase {
    fn new() -> Self {
        Self {
            centre: [0.0; MissCounts::KINDS],
            members: 0,
            intervals: 0,
            period: 0,
            left: 0,
            drawn: 0,
            units: 0,
            mean: 0.0,
            squares: 0.0,
        }
    }
}

impl SamplingPlan {
    /// Returns how many places for a unit an interval has whose unit is decided while the program runs.
    pub(super) fn slots(&self) -> u64 {
        let unit = self.unit.max(1);
        // An interval must be as long as the warm-up: the warm-up of a unit then begins after the decision on the unit, and before the next decision.
        (self.every / INTERVALS_PER_UNIT / unit).max(self.warm_up.div_ceil(unit)).max(1)
    }
}

/// Returns the signature of so many instructions.
fn signature(misses: MissCounts, instructions: u64) -> Signature {
    misses.0.map(|misses| {
        let of_thousand = 1000.0 * misses as f64 / instructions as f64;
        (1.0 + of_thousand / MISSES_THAT_COUNT).log2()
    })
}

#[cfg(test)]
mod tests {
    use profile::Estimate;

    use super::*;

    const UNIT: u64 = 1000;

    /// A program of intervals, each of which has a number of misses and cycles for each instruction.
    struct Program {
        misses: Vec<u64>,
        cpi: Vec<f64>,
    }

    impl Program {
        /// Returns a program of stretches in which little misses and cycles hardly differ, and of others that miss much and differ a lot. Interval by interval cycles look random.
        fn of_two_kinds(intervals: usize) -> Self {
            let mut random = Random(5);
            let misses: Vec<u64> = (0..intervals)
                .map(|at| if at % 300 < 230 { 2 } else { 900 } + random.bits() % 3)
                .collect();
            let cpi = misses.iter().map(|misses| match misses {
                0..100 => 0.5 + 0.1 * random.share(),
                _ => 2.0 + 4.0 * random.share(),
            });
            Self { cpi: cpi.collect(), misses }
        }

        fn truth(&self) -> f64 {
            self.cpi.iter().sum::<f64>() / self.cpi.len() as f64
        }

        /// Lets a planner go through the program, and returns it with the units that it planned.
        fn sampled(&self, plan: &SamplingPlan) -> (LivePlanner, Vec<Unit>) {
            let mut live = LivePlanner::new(plan);
            let (mut units, mut total) = (Vec::new(), MissCounts::default());
            live.open(total);
            for (at, cpi) in self.cpi.iter().enumerate() {
                let place = at as u64 * live.interval();
                assert_eq!(live.next_decision(), place);
                if let Some(planned) = live.decide(place, total) {
                    assert!((place..place + live.interval()).contains(&planned.at));
                    assert_eq!(planned.at % UNIT, 0);
                    let cycles = (cpi * UNIT as f64) as u64;
                    let misses = MissCounts::default();
                    let unit = Unit { planned, instructions: UNIT, cycles, misses };
                    live.learn(&unit);
                    units.push(unit);
                }
                total.0[1] += self.misses[at];
            }
            (live, units)
        }

        fn instructions(&self, live: &LivePlanner) -> u64 {
            self.cpi.len() as u64 * live.interval()
        }
    }

    fn plan(seed: u64) -> SamplingPlan {
        SamplingPlan {
            scheme: super::super::Scheme::Live,
            unit: UNIT,
            warm_up: 0,
            every: 8 * UNIT,
            seed,
            ..SamplingPlan::default()
        }
    }

    #[test]
    fn weighted_units_are_the_program_in_the_mean_of_seeds() {
        let program = Program::of_two_kinds(3000);
        let truth = program.truth();
        let (mut sum, mut counted, seeds) = (0.0, 0.0, 1000);
        for seed in 0..seeds {
            for unit in program.sampled(&plan(seed)).1 {
                let weight = f64::from(unit.planned.weight);
                sum += weight * unit.cycles as f64 / UNIT as f64;
                counted += weight;
            }
        }
        // No ratio: each unit is divided by its probability alone.
        let intervals = (program.cpi.len() * seeds as usize) as f64;
        assert!((sum / intervals / truth - 1.0).abs() < 0.003, "{} {truth}", sum / intervals);
        assert!((counted / intervals - 1.0).abs() < 0.003, "{}", counted / intervals);
    }

    #[test]
    fn intervals_hold_and_are_narrower_than_those_of_units_at_equal_distances() {
        let program = Program::of_two_kinds(6000);
        let truth = program.truth();
        let (mut held_95, mut held_99_7, mut width, mut count) = (0, 0, 0.0, 0);
        let seeds = 1000;
        for seed in 0..seeds {
            let plan = plan(seed);
            let (live, units) = program.sampled(&plan);
            let strata = live.stratum_instructions(program.instructions(&live));
            let sampled = super::super::Sampled::new(
                &plan,
                program.instructions(&live),
                0,
                &units,
                super::super::Known { strata: &strata, ..Default::default() },
            );
            let cpi = sampled.cpi.unwrap();
            let error = (cpi.value - truth).abs();
            held_95 += usize::from(error <= cpi.margin().within_95);
            held_99_7 += usize::from(error <= cpi.margin().within_99_7);
            width += cpi.margin().within_95 / f64::from(seeds as u32);
            count += units.len();
        }
        // The first interval of each long stretch is rare in its stratum, and intervals know little of it.
        assert!((920..=970).contains(&held_95), "{held_95} of 1000");
        assert!(held_99_7 >= 990, "{held_99_7} of 1000");
        // There are about as many units as were asked for.
        let asked_for = program.cpi.len() * seeds as usize / 8;
        assert!((count as f64 / asked_for as f64 - 1.0).abs() < 0.1, "{count} {asked_for}");
        let equal: Vec<_> = program.cpi.iter().step_by(8).map(|cpi| (*cpi, 1.0)).collect();
        let equal = Estimate::of_ratio(equal.into_iter(), 7.0 / 8.0).unwrap().margin().within_95;
        assert!(width < 0.6 * equal, "{width} {equal}");
    }

    #[test]
    fn what_differs_more_has_more_units_and_a_new_phase_has_one_in_each_interval() {
        let program = Program::of_two_kinds(3000);
        let (live, units) = program.sampled(&plan(3));
        assert_eq!(live.phases.len(), 2);
        let of = |stratum| units.iter().filter(move |unit| unit.planned.stratum == stratum);
        let share = |stratum: u32| {
            of(stratum).count() as f64 / live.phases[stratum as usize].intervals as f64
        };
        assert!(share(1) > 4.0 * share(0), "{} {}", share(0), share(1));
        for stratum in 0..2 {
            let first = of(stratum).take(FIRST_UNITS as usize);
            assert!(first.clone().all(|unit| unit.planned.weight == 1));
            assert!(of(stratum).any(|unit| unit.planned.weight > 1));
            assert!(of(stratum).all(|unit| unit.planned.weight <= 1 << LONGEST_PERIOD));
        }
    }

    #[test]
    fn strata_have_the_instructions_of_the_region_whatever_its_end_cuts() {
        let program = Program::of_two_kinds(700);
        let (live, _) = program.sampled(&plan(1));
        let all = program.instructions(&live);
        for region in [0, 1, 499_500, all - 1, all] {
            assert_eq!(live.stratum_instructions(region).iter().sum::<u64>(), region);
        }
        let known: u64 = live.phases.iter().map(|phase| phase.intervals * live.interval()).sum();
        assert_eq!(known, all);
    }

    #[test]
    fn a_warm_up_fits_between_two_decisions() {
        let plan =
            SamplingPlan { unit: 1000, warm_up: 4500, every: 16_000, ..SamplingPlan::default() };
        assert_eq!(plan.slots(), 5);
        let mut live = LivePlanner::new(&plan);
        live.open(MissCounts::default());
        let decisions: Vec<u64> = (0..4)
            .map(|_| {
                let place = live.next_decision();
                live.decide(place, MissCounts::default());
                place
            })
            .collect();
        assert_eq!(decisions, [0, 500, 5500, 10_500]);
        // A spec has no longer ones.
        let most = i64::MAX as u64;
        let absurd = SamplingPlan { unit: most, warm_up: most, every: most, ..plan };
        let mut live = LivePlanner::new(&absurd);
        let decisions = [0, 0, most].map(|place| {
            assert_eq!(live.next_decision(), place);
            live.decide(place, MissCounts::default())
        });
        assert_eq!(decisions[0].map(|unit| unit.at), Some(0));
        assert!(live.next_decision() > most);
    }
}
