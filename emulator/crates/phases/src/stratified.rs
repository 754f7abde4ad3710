//! Intervals that stand for more and less of a region: one for each phase, or a stratified sample.

use crate::cluster::Phases;
use crate::mean::Random;
use crate::survey::Survey;

/// Phases that a region has at most for one interval to stand for each, as in the publications of SimPoint.
const MOST_PHASES: usize = 30;
/// Units for each stratum at least: so many that how much they differ is known.
const UNITS_PER_STRATUM: usize = 4;

/// An interval that stands for some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChosenInterval {
    /// Number of the interval.
    pub interval: usize,
    /// Number of intervals that it stands for, with itself.
    pub stands_for: u64,
    /// The phase that all of these are of.
    pub phase: usize,
}

/// Intervals that were chosen by phases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChosenIntervals {
    /// The intervals, in ascending order.
    pub intervals: Vec<ChosenInterval>,
    /// Phase of each interval of the region; empty if intervals were not chosen by phases.
    pub phases: Vec<usize>,
}

/// Chooses an interval for each phase, in ascending order: the one that is nearest to the phase's centre. There are `count` phases, or up to 30 as the
/// Bayesian information criterion says.
///
/// Sherwood et al., *Automatically Characterizing Large Scale Program Behavior*, ASPLOS 2002.
pub fn representatives(survey: &Survey, count: Option<usize>, seed: u64) -> ChosenIntervals {
    let phases = match count {
        Some(count) => Phases::with_count(survey, count, seed),
        None => Phases::of(survey, MOST_PHASES, seed),
    };
    let whole = survey.whole().len();
    let chosen = phases.phases.iter().enumerate().map(|(number, phase)| ChosenInterval {
        interval: phase.representative,
        stands_for: phase.intervals as u64,
        phase: number,
    });
    // An interval that the region's end has cut is no unit.
    let mut chosen: Vec<ChosenInterval> = chosen.filter(|chosen| chosen.interval < whole).collect();
    chosen.sort_unstable_by_key(|chosen| chosen.interval);
    ChosenIntervals { intervals: chosen, phases: phases.of }
}

/// Chooses about `count` whole intervals at random, in ascending order; all, if there are no more. Phases are strata, each of which has as large a part of the sample as
/// of the region, and two intervals at least. The intervals of a stratum are divided into stretches, from each of which one is drawn that stands for it.
///
/// Ekman, *CPU Simulation Using Two-Phase Stratified Sampling*, arXiv 2603.22605, has such samples of processors.
pub fn stratified(survey: &Survey, count: usize, seed: u64) -> ChosenIntervals {
    let whole = survey.whole().len();
    if whole <= count {
        let all = (0..whole).map(|interval| ChosenInterval { interval, stands_for: 1, phase: 0 });
        return ChosenIntervals { intervals: all.collect(), phases: Vec::new() };
    }
    let strata = (count / UNITS_PER_STRATUM).clamp(1, MOST_PHASES);
    let phases = Phases::of(survey, strata, seed);
    let mut members = vec![Vec::new(); phases.phases.len()];
    for (interval, phase) in phases.of.iter().enumerate().take(whole) {
        members[*phase].push(interval);
    }
    let mut random = Random(seed);
    let mut chosen = Vec::new();
    for (phase, members) in members.iter().enumerate() {
        let share = members.len() as f64 / whole as f64;
        let units = ((share * count as f64).round() as usize).max(2).min(members.len());
        for unit in 0..units {
            let begin = unit * members.len() / units;
            let end = (unit + 1) * members.len() / units;
            let interval = members[begin + random.below(end - begin)];
            chosen.push(ChosenInterval { interval, stands_for: (end - begin) as u64, phase });
        }
    }
    chosen.sort_unstable_by_key(|chosen| chosen.interval);
    ChosenIntervals { intervals: chosen, phases: phases.of }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a survey whose last interval is cut.
    fn cut(phases: &[usize]) -> Survey {
        let mut survey = Survey::near(phases, 0.01);
        if let Some(last) = survey.instructions.last_mut() {
            *last = 40;
        }
        survey
    }

    #[test]
    fn each_phase_has_a_representative() {
        let of: Vec<usize> = (0..601).map(|at| [3, 0, 7, 0, 3, 3, 3][at / 100]).collect();
        let survey = cut(&of);
        let chosen = representatives(&survey, None, 5).intervals;
        assert_eq!(chosen.iter().map(|chosen| chosen.stands_for).sum::<u64>(), 601);
        let found: Vec<_> =
            chosen.iter().map(|chosen| (of[chosen.interval], chosen.stands_for)).collect();
        let mut sorted = found.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [(0, 200), (3, 301), (7, 100)]);
        assert!(chosen.is_sorted_by(|a, b| a.interval < b.interval));
        assert_eq!(representatives(&survey, Some(2), 5).intervals.len(), 2);
        assert_eq!(representatives(&Survey::new(100), None, 5).intervals, []);
        // A program of one interval, which is cut.
        assert_eq!(representatives(&cut(&[3]), None, 5).intervals, []);
    }

    #[test]
    fn strata_have_their_parts_of_a_sample() {
        let of: Vec<usize> =
            (0..1001).map(|at| [0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2][at / 100]).collect();
        let survey = cut(&of);
        for seed in 0..20 {
            let chosen = stratified(&survey, 30, seed).intervals;
            assert!(chosen.is_sorted_by(|a, b| a.interval < b.interval));
            let phase_of = &of;
            let of_phase = |phase| chosen.iter().filter(move |it| phase_of[it.interval] == phase);
            assert_eq!([0, 1, 2].map(|phase| of_phase(phase).count()), [3, 9, 18], "seed {seed}");
            // The last interval is cut, and none that is drawn or stood for.
            let stood_for = |phase: usize| of_phase(phase).map(|it| it.stands_for).sum::<u64>();
            assert_eq!([0, 1, 2].map(stood_for), [100, 300, 600]);
            assert!(chosen.iter().all(|it| (30..=36).contains(&it.stands_for)), "{chosen:?}");
        }
        assert_ne!(stratified(&survey, 30, 1).intervals, stratified(&survey, 30, 2).intervals);
        let all = stratified(&survey, 5000, 1).intervals;
        assert_eq!(all.iter().map(|it| it.stands_for).sum::<u64>(), 1000);
        assert_eq!(stratified(&Survey::new(100), 30, 1).intervals, []);
    }

    #[test]
    fn a_rare_phase_has_two_units() {
        let of: Vec<usize> = (0..2001).map(|at| usize::from((500..504).contains(&at))).collect();
        let chosen = stratified(&cut(&of), 20, 3).intervals;
        assert_eq!(chosen.iter().filter(|chosen| of[chosen.interval] == 1).count(), 2);
        assert_eq!(chosen.iter().map(|chosen| chosen.stands_for).sum::<u64>(), 2000);
    }
}
