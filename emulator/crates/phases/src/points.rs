//! Intervals that were chosen elsewhere, as SimPoint's tools write them.

use crate::stratified::ChosenInterval;

/// Intervals that a file may have.
const MOST_POINTS: usize = 1000;

/// An interval that stands for a part of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Number of the interval.
    pub interval: usize,
    /// Share of the program.
    pub weight: f64,
    /// The phase that the interval is of.
    pub phase: usize,
}

impl Point {
    /// Returns what points stand for in a program of `intervals` intervals. Weights count relative to their sum.
    pub fn chosen(points: &[Self], intervals: u64) -> Vec<ChosenInterval> {
        let sum: f64 = points.iter().map(|point| point.weight).sum();
        let chosen = points.iter().map(|point| ChosenInterval {
            interval: point.interval,
            stands_for: ((point.weight / sum * intervals as f64).round() as u64).max(1),
            phase: point.phase,
        });
        chosen.collect()
    }
}

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
pub fn points(intervals: &str, weights: &str) -> Result<Vec<Point>, PointsError> {
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
    let mut points: Vec<Point> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for (number, line) in lines(intervals) {
        let fault = || PointsError::Interval(number + 1, line.to_owned());
        let (interval, phase) = pair::<usize>(line).ok_or_else(fault)?;
        let weight = of_phase.get(&phase).ok_or(PointsError::NoWeight(phase))?;
        let is_new = points.iter().all(|point| point.phase as u64 != phase);
        if !is_new || !seen.insert(interval) {
            return Err(PointsError::IntervalTwice(number + 1, line.to_owned()));
        }
        if *weight > 0.0 {
            let phase = usize::try_from(phase).map_err(|_| fault())?;
            points.push(Point { interval, weight: *weight, phase });
        }
        if points.len() > MOST_POINTS {
            break;
        }
    }
    if !(1..=MOST_POINTS).contains(&points.len()) {
        return Err(PointsError::Count(points.len()));
    }
    points.sort_unstable_by_key(|point| point.interval);
    Ok(points)
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
        let numbers: Vec<_> = found.iter().map(|it| (it.interval, it.weight, it.phase)).collect();
        assert_eq!(numbers, [(3, 0.7, 1), (12, 0.25, 0), (100, 0.05, 2)]);
        let stand_for = |found: &[Point], intervals| -> Vec<u64> {
            Point::chosen(found, intervals).iter().map(|chosen| chosen.stands_for).collect()
        };
        assert_eq!(stand_for(&found, 200), [140, 50, 10]);
        // Phases without an interval are left out, and what weighs next to nothing does not vanish.
        let found = points("5 7\n6 8\n", "0.9 1\n1e-9 7\n\n0.3 8").unwrap();
        assert_eq!(found[0], Point { interval: 5, weight: 1e-9, phase: 7 });
        assert_eq!(stand_for(&found, 200), [1, 200]);
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
