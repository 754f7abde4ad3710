//! Intervals that were chosen elsewhere, as SimPoint's tools write them.

use crate::stratified::Chosen;

/// Weights become whole numbers, of which the smallest that SimPoint writes is one of many.
const WEIGHT_UNITS: f64 = 10_000.0;
/// Intervals that a file may have.
const MOST_POINTS: usize = 1000;

/// What is wrong with files of points.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PointsError {
    /// A line of the file of intervals.
    #[error("line {0}: expected \"INTERVAL PHASE\", found {1:?}")]
    Interval(usize, String),
    /// A line of the file of weights.
    #[error("line {0}: expected \"WEIGHT PHASE\" with a weight from 0 to 1, found {1:?}")]
    Weight(usize, String),
    /// A second line of the file of intervals is of one interval or phase.
    #[error("line {0}: expected each interval and each phase once, found {1:?}")]
    IntervalTwice(usize, String),
    /// A second line of the file of weights is of one phase.
    #[error("line {0}: expected each phase once, found {1:?}")]
    WeightTwice(usize, String),
    /// A phase has an interval and no weight.
    #[error("expected a weight of phase {0}, found none")]
    NoWeight(u64),
    /// There is nothing, or too much.
    #[error("expected 1 to {MOST_POINTS} intervals with a weight above 0, found {0}")]
    Count(usize),
}

impl PointsError {
    /// Returns whether the file of weights is at fault.
    pub fn is_of_weights(&self) -> bool {
        match self {
            Self::Weight(..) | Self::WeightTwice(..) | Self::NoWeight(_) => true,
            Self::Interval(..) | Self::IntervalTwice(..) | Self::Count(_) => false,
        }
    }
}

/// Reads which intervals stand for which part of a program, in ascending order: `intervals` has lines of an interval's number and a phase (`.simpts`), `weights` of a phase's part of
/// the program and the phase (`.weights`), as SimPoint 3.2 writes them.
///
/// # Errors
/// If a line is of another form, or a phase lacks a weight.
pub fn points(intervals: &str, weights: &str) -> Result<Vec<Chosen>, PointsError> {
    let lines = |text| str::lines(text).enumerate().filter(|(_, line)| !line.trim().is_empty());
    let mut of_phase = std::collections::BTreeMap::new();
    for (number, line) in lines(weights) {
        let fault = || PointsError::Weight(number + 1, line.to_owned());
        let (weight, phase) = pair::<f64>(line).ok_or_else(fault)?;
        if !(0.0..=1.0).contains(&weight) {
            return Err(fault());
        }
        if of_phase.insert(phase, weight).is_some() {
            return Err(PointsError::WeightTwice(number + 1, line.to_owned()));
        }
    }
    let mut chosen: Vec<Chosen> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for (number, line) in lines(intervals) {
        let fault = || PointsError::Interval(number + 1, line.to_owned());
        let (interval, phase) = pair::<usize>(line).ok_or_else(fault)?;
        let weight = of_phase.get(&phase).ok_or(PointsError::NoWeight(phase))?;
        let is_new = chosen.iter().all(|chosen| chosen.phase as u64 != phase);
        if !is_new || !seen.insert(interval) {
            return Err(PointsError::IntervalTwice(number + 1, line.to_owned()));
        }
        if *weight > 0.0 {
            let stands_for = ((weight * WEIGHT_UNITS).round() as u64).max(1);
            let phase = usize::try_from(phase).map_err(|_| fault())?;
            chosen.push(Chosen { interval, stands_for, phase });
        }
        if chosen.len() > MOST_POINTS {
            break;
        }
    }
    if !(1..=MOST_POINTS).contains(&chosen.len()) {
        return Err(PointsError::Count(chosen.len()));
    }
    chosen.sort_unstable_by_key(|chosen| chosen.interval);
    Ok(chosen)
}

/// Returns the number and the phase of a line.
fn pair<T: std::str::FromStr>(line: &str) -> Option<(T, u64)> {
    let mut words = line.split_ascii_whitespace();
    let pair = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    words.next().is_none().then_some(pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_read_as_simpoint_writes_them() {
        let found = points("12 0\n3 1\n100 2\n", "0.25 0\n0.7 1\n0.05 2\n").unwrap();
        let found: Vec<_> = found.iter().map(|it| (it.interval, it.stands_for, it.phase)).collect();
        assert_eq!(found, [(3, 7000, 1), (12, 2500, 0), (100, 500, 2)]);
        // Phases without an interval are left out, and what weighs next to nothing does not vanish.
        let found = points("5 7\n", "0.9 1\n1e-9 7\n\n").unwrap();
        assert_eq!(found, [Chosen { interval: 5, stands_for: 1, phase: 7 }]);
    }

    #[test]
    fn other_files_are_refused() {
        let fault = |intervals, weights| points(intervals, weights).unwrap_err().to_string();
        assert_eq!(fault("x 0", "1 0"), "line 1: expected \"INTERVAL PHASE\", found \"x 0\"");
        assert_eq!(
            fault("1 0", "1 0\n\n1.5 1"),
            "line 3: expected \"WEIGHT PHASE\" with a weight from 0 to 1, found \"1.5 1\""
        );
        assert!(fault("1 0", "nan 0").starts_with("line 1: expected \"WEIGHT"));
        assert_eq!(fault("1 3", "1 0"), "expected a weight of phase 3, found none");
        assert!(fault("1 0\n2 0", "1 0").starts_with("line 2: expected each interval"));
        assert!(fault("1 0\n1 1", "0.5 0\n0.5 1").starts_with("line 2: expected each interval"));
        assert!(fault("1 0", "0.5 0\n0.5 0").starts_with("line 2: expected each phase"));
        assert!(fault("", "1 0").ends_with("found 0"));
        assert!(fault("1 0", "0 0").ends_with("found 0"));
    }
}
