//! Sampling of a region that several harts execute: the pace of each between units, and what the units say of all of it.
//!
//! Places of units are counted in instructions of all harts together, so that the mean over units is a mean over the program's instructions, however
//! the pace changes. Between units, each hart runs at the pace that it had in recent units, waits for cache lines of other harts where it asks for
//! them, and sleeps as the guest tells it to. Simulated time is therefore an estimate of the elapsed time, but it lags behind when the pace changes.
//! A ratio estimate corrects it: the cycles that units took, relative to the cycles that they would have taken at the pace before them
//! (Cochran, *Sampling Techniques*, chapter 6). Carlson et al., *Sampled simulation of multi-threaded applications* (ISPASS 2013), has each thread go
//! on at a pace of its own, too.

use profile::Estimate;

use super::{Phase, RECENT_UNITS};
use crate::engine::{KeptWarm, MAX_HARTS};

/// Divisor for the least rate without waiting: that rate is at least the whole rate divided by this. A timed core hides a part of the waiting behind
/// other work, so that the whole rate less all of the waiting could be nothing.
const MIN_RATE_DIVISOR: u64 = 4;

/// How far the machine has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MachinePosition {
    /// What each hart has done.
    pub harts: Vec<HartPosition>,
    /// Cycle of the hart that is furthest.
    pub cycle: u64,
    /// Cycles between units in which all harts slept.
    pub slept: u64,
}

/// What a hart has done since reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HartPosition {
    /// Instructions that were retired.
    pub instructions: u64,
    /// Cycles that its timing core has spent awake.
    pub awake: u64,
    /// Cycles between units in which the hart waited for cache lines of other harts.
    pub waited: u64,
}

/// What a hart did in a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct HartUnit {
    instructions: u64,
    /// Cycles in which the hart was awake.
    cycles: u64,
    /// Cycles that the instructions would have taken at the pace before the unit.
    expected: f64,
    /// Instructions that kept caches warm before the unit.
    warming: u64,
    /// Cycles of that warming in which the hart waited for cache lines of other harts.
    waited: u64,
}

/// What is known of a hart in the whole region.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct HartSums {
    /// Cycles in which the hart was awake and timed.
    timed: u64,
    /// Cycles that the instructions outside of timed stretches took, at the pace that the hart had then.
    expected: f64,
}

/// What units say of a region that several harts executed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HartEstimates {
    /// Cycles that all harts together would be awake.
    pub cycles: Estimate,
    /// Cycles from the region's begin to its end.
    pub elapsed: Estimate,
    /// Cycles that each hart would be awake.
    pub harts: Vec<Estimate>,
}

/// Follows what several harts do in a sampled region.
#[derive(Debug)]
pub(crate) struct SampledHarts {
    /// Instructions of a unit that are one hart's share.
    share: u64,
    /// Cycles per instruction of each hart between units, in multiples of 2^-16, without the cycles in which the hart waits for cache lines of other
    /// harts.
    rates: [u64; MAX_HARTS],
    /// Cycles per instruction in which each hart waits for cache lines of other harts between units, in multiples of 2^-16.
    waits: [u64; MAX_HARTS],
    /// Where the present phase began.
    since: MachinePosition,
    /// What each hart has done in the present unit and in the warming before it, up to the present phase.
    partial: Vec<HartUnit>,
    units: Vec<Vec<HartUnit>>,
    harts: Vec<HartSums>,
    /// Cycles of the region: timed; not timed, while a hart was awake; not timed, while all harts slept.
    elapsed: [u64; 3],
}

impl SampledHarts {
    /// Returns what follows `harts` harts, with units of so many instructions of all together.
    pub(crate) fn new(harts: usize, unit: u64) -> Self {
        Self {
            share: unit / harts as u64,
            rates: [1 << 16; MAX_HARTS],
            waits: [0; MAX_HARTS],
            since: MachinePosition::default(),
            partial: vec![HartUnit::default(); harts],
            units: Vec::new(),
            harts: vec![HartSums::default(); harts],
            elapsed: [0; 3],
        }
    }

    /// Forgets all that was sampled: the region begins anew.
    pub(crate) fn restart(&mut self) {
        let since = std::mem::take(&mut self.since);
        *self = Self { share: self.share, since, ..Self::new(self.harts.len(), 0) };
    }

    /// Returns the cycles per instruction of each hart between units, in multiples of 2^-16. Where caches are kept warm, the waits for cache lines of
    /// other harts are simulated when they occur, and the rates do not include them.
    pub(crate) fn rates(&self, kept_warm: KeptWarm) -> [u64; MAX_HARTS] {
        match kept_warm {
            KeptWarm::Nothing => std::array::from_fn(|hart| self.rates[hart] + self.waits[hart]),
            KeptWarm::Caches | KeptWarm::CachesAndPredictors => self.rates,
        }
    }

    /// Goes on from one phase to another.
    pub(crate) fn change(&mut self, before: Phase, phase: Phase, now: MachinePosition) {
        let elapsed = now.cycle - self.since.cycle;
        let slept = (now.slept - self.since.slept).min(elapsed);
        match before {
            Phase::Outside => {}
            Phase::Reference | Phase::WarmUp | Phase::Unit => self.elapsed[0] += elapsed,
            Phase::FastForward | Phase::Warming | Phase::Learning => {
                self.elapsed[1] += elapsed - slept;
                self.elapsed[2] += slept;
            }
        }
        for (number, (now, since)) in now.harts.iter().zip(&self.since.harts).enumerate() {
            let instructions = now.instructions - since.instructions;
            let awake = now.awake - since.awake;
            let waited = now.waited - since.waited;
            let cycles = |rate: u64| instructions as f64 * rate as f64 / 65_536.0;
            let (rate, waits) = (self.rates[number], self.waits[number]);
            let partial = &mut self.partial[number];
            match before {
                Phase::Outside => {}
                Phase::Reference | Phase::WarmUp | Phase::Unit => self.harts[number].timed += awake,
                Phase::FastForward => self.harts[number].expected += cycles(rate + waits),
                Phase::Warming | Phase::Learning => {
                    self.harts[number].expected += cycles(rate) + waited as f64;
                    partial.warming += instructions;
                    partial.waited += waited;
                }
            }
            if before == Phase::Unit {
                partial.instructions += instructions;
                partial.cycles += awake;
                partial.expected += cycles(rate + waits);
            }
        }
        self.since = now;
        // A unit that a stretch of the region cuts goes on in the next.
        if before == Phase::Unit && phase != Phase::Outside {
            self.end_unit();
        }
    }

    /// Keeps the unit that has ended, and has each hart go on as fast as it did in recent units.
    fn end_unit(&mut self) {
        let unit = vec![HartUnit::default(); self.harts.len()];
        let unit = std::mem::replace(&mut self.partial, unit);
        if unit.iter().all(|hart| hart.instructions == 0) {
            return;
        }
        self.units.push(unit);
        let recent = &self.units[self.units.len().saturating_sub(RECENT_UNITS)..];
        let rate = |(instructions, cycles): (u64, u64)| {
            ((u128::from(cycles) << 16) / u128::from(instructions.max(1))).min(1 << 32) as u64
        };
        let sums = |hart: Option<usize>, of: fn(&HartUnit) -> (u64, u64)| {
            let harts = recent.iter().flat_map(|unit| unit.iter().enumerate());
            let harts = harts.filter(|(number, _)| hart.is_none_or(|hart| hart == *number));
            harts.fold((0, 0), |sums, (_, hart)| {
                let (instructions, cycles) = of(hart);
                (sums.0 + instructions, sums.1 + cycles)
            })
        };
        let of_all = rate(sums(None, |unit| (unit.instructions, unit.cycles)));
        for number in 0..self.harts.len() {
            let own = sums(Some(number), |unit| (unit.instructions, unit.cycles));
            // A hart that slept for most of the recent units tells little of its pace when it has work: it gets the mean pace of all harts.
            let all = if own.0 < self.share { of_all } else { rate(own) }.max(1);
            let waits = rate(sums(Some(number), |unit| (unit.warming, unit.waited)));
            self.rates[number] = all.saturating_sub(waits).max(all.div_ceil(MIN_RATE_DIVISOR));
            self.waits[number] = waits;
        }
    }

    /// Returns what the units say of the region, which has ended; `None` without two units.
    pub(crate) fn estimates(&mut self) -> Option<HartEstimates> {
        self.end_unit();
        let of_all = |hart: Option<usize>| {
            let pairs = self.units.iter().map(move |unit| {
                let harts = unit.iter().enumerate();
                let harts = harts.filter(|(number, _)| hart.is_none_or(|hart| hart == *number));
                harts.fold((0.0, 0.0), |sums, (_, hart)| {
                    (sums.0 + hart.cycles as f64, sums.1 + hart.expected)
                })
            });
            // The ratio is applied only to what was not timed, of which nothing is known exactly.
            Estimate::of_ratio(pairs, 1.0)
        };
        let ratio = of_all(None)?;
        let whole = |ratio: Estimate, known: f64, expected: f64| {
            let rest = ratio.times(expected);
            Estimate { value: known + rest.value, ..rest }
        };
        let harts = self.harts.iter().enumerate().map(|(number, sums)| {
            // A hart that slept in all units has no ratio of its own.
            whole(of_all(Some(number)).unwrap_or(ratio), sums.timed as f64, sums.expected)
        });
        let sum = |of: fn(&HartSums) -> f64| self.harts.iter().map(of).sum();
        let [timed, between, slept] = self.elapsed.map(|cycles| cycles as f64);
        Some(HartEstimates {
            cycles: whole(ratio, sum(|hart| hart.timed as f64), sum(|hart| hart.expected)),
            elapsed: whole(ratio, timed + slept, between),
            harts: harts.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets two harts go through a region in which an instruction of a hart takes as many cycles as `cpi` says of the hart and the interval. Each interval has a warm-up and
    /// a unit of so many instructions of a hart, and a rest that goes as fast as the sampler says; in the rest both sleep for a thousand cycles.
    fn sampled(intervals: u64, cpi: impl Fn(usize, u64) -> u64) -> (SampledHarts, MachinePosition) {
        let mut sampler = SampledHarts::new(2, 2000);
        let mut now =
            MachinePosition { harts: vec![HartPosition::default(); 2], ..Default::default() };
        let mut truth = now.clone();
        sampler.change(Phase::Outside, Phase::Warming, now.clone());
        for interval in 0..intervals {
            for (phase, next, instructions) in [
                (Phase::Warming, Phase::WarmUp, 17_000),
                (Phase::WarmUp, Phase::Unit, 2000),
                (Phase::Unit, Phase::Warming, 1000),
            ] {
                let is_timed = phase != Phase::Warming;
                let mut latest = 0;
                for hart in 0..2 {
                    let cycles = instructions * cpi(hart, interval);
                    truth.harts[hart].awake += cycles;
                    now.harts[hart].instructions += instructions;
                    now.harts[hart].awake += if is_timed { cycles } else { 0 };
                    let taken = match is_timed {
                        true => cycles,
                        false => (instructions * sampler.rates(KeptWarm::Caches)[hart]) >> 16,
                    };
                    latest = latest.max(taken);
                }
                now.cycle += latest + if is_timed { 0 } else { 1000 };
                now.slept += if is_timed { 0 } else { 1000 };
                let slowest = (0..2).map(|hart| instructions * cpi(hart, interval)).max().unwrap();
                truth.cycle += slowest + if is_timed { 0 } else { 1000 };
                sampler.change(phase, next, now.clone());
            }
        }
        (sampler, truth)
    }

    #[test]
    fn harts_that_are_as_fast_all_the_time_are_known_exactly() {
        // The first interval goes on at one cycle for each instruction, as nothing is known of any pace yet.
        let (mut sampler, truth) = sampled(50, |hart, _| [3, 3][hart]);
        assert_eq!(sampler.rates(KeptWarm::Caches)[..2], [3 << 16; 2]);
        let found = sampler.estimates().unwrap();
        assert!((found.elapsed.value / truth.cycle as f64 - 1.0).abs() < 1e-9, "{found:?}");
        let awake: u64 = truth.harts.iter().map(|hart| hart.awake).sum();
        assert!((found.cycles.value / awake as f64 - 1.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn each_hart_goes_on_at_its_own_pace() {
        let (mut sampler, truth) = sampled(50, |hart, _| [2, 5][hart]);
        assert_eq!(sampler.rates(KeptWarm::Caches)[..2], [2 << 16, 5 << 16]);
        let found = sampler.estimates().unwrap();
        for (estimate, hart) in found.harts.iter().zip(&truth.harts) {
            assert!((estimate.value / hart.awake as f64 - 1.0).abs() < 0.02, "{found:?}");
        }
        assert!((found.elapsed.value / truth.cycle as f64 - 1.0).abs() < 0.02, "{found:?}");
    }

    #[test]
    fn a_pace_that_changes_is_within_the_interval() {
        let (mut sampler, truth) = sampled(400, |_, interval| 1 + interval / 100);
        let found = sampler.estimates().unwrap();
        let error = (found.elapsed.value / truth.cycle as f64 - 1.0).abs();
        let within = found.elapsed.margin().within_99_7 / truth.cycle as f64;
        // Without being put right, what lags behind would be missing: some four intervals of one cycle more at each change.
        assert!(error < within && error < 0.01 && within < 0.1, "{error} {within}");
    }

    /// Between units a hart waits as long for lines of others as in units, and for the rest of its pace executes: then both together are the truth.
    #[test]
    fn what_harts_wait_between_units_is_part_of_their_pace() {
        let mut sampler = SampledHarts::new(1, 1000);
        let mut now =
            MachinePosition { harts: vec![HartPosition::default()], ..Default::default() };
        sampler.change(Phase::Outside, Phase::Unit, now.clone());
        let mut truth = 0;
        for _ in 0..500 {
            now.harts[0].instructions += 1000;
            now.harts[0].awake += 5000;
            now.cycle += 5000;
            sampler.change(Phase::Unit, Phase::Warming, now.clone());
            now.harts[0].instructions += 9000;
            now.harts[0].waited += 18_000;
            now.cycle += 18_000 + ((9000 * sampler.rates(KeptWarm::Caches)[0]) >> 16);
            sampler.change(Phase::Warming, Phase::Unit, now.clone());
            truth += 50_000;
        }
        now.harts[0].instructions += 1000;
        now.harts[0].awake += 5000;
        now.cycle += 5000;
        sampler.change(Phase::Unit, Phase::Outside, now.clone());
        truth += 5000;
        assert_eq!(sampler.rates(KeptWarm::Caches)[0], 3 << 16);
        assert_eq!(sampler.rates(KeptWarm::Nothing)[0], 5 << 16, "what is not seen is in the pace");
        let found = sampler.estimates().unwrap();
        assert!((found.cycles.value / truth as f64 - 1.0).abs() < 0.01, "{found:?} {truth}");
        assert!((found.elapsed.value / truth as f64 - 1.0).abs() < 0.01, "{found:?} {truth}");
    }

    #[test]
    fn a_hart_that_slept_goes_on_at_the_pace_of_all() {
        let mut sampler = SampledHarts::new(2, 2000);
        let mut now =
            MachinePosition { harts: vec![HartPosition::default(); 2], ..Default::default() };
        sampler.change(Phase::Outside, Phase::Unit, now.clone());
        now.harts[0] = HartPosition { instructions: 1990, awake: 3980, waited: 0 };
        now.harts[1] = HartPosition { instructions: 10, awake: 900, waited: 0 };
        now.cycle = 4000;
        sampler.change(Phase::Unit, Phase::Warming, now.clone());
        let of_all = (4880u64 << 16) / 2000;
        assert_eq!(sampler.rates(KeptWarm::Caches)[..2], [2 << 16, of_all]);
        assert_eq!(sampler.estimates(), None, "one unit says nothing");
        sampler.restart();
        assert_eq!(
            (sampler.rates(KeptWarm::Caches), sampler.since.cycle),
            ([1 << 16; MAX_HARTS], 4000)
        );
    }
}
