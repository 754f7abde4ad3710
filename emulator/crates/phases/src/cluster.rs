//! Phases: intervals that execute about the same.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mean::{Mean, Random, mean_of, squared_distance};
use crate::survey::{IntervalPages, Survey, Vector};

/// Times that clusters are sought from other first centres, of which the best is taken.
const RESTARTS: u64 = 5;
/// Times that centres move at most.
const ROUNDS: usize = 100;
/// Intervals by which clusters are found; others join the nearest.
const MOST_FOR_CENTRES: usize = 10_000;
/// A number of phases is enough whose score is so far on the way from the worst to the best, as in SimPoint.
const SUFFICIENT_SCORE: f64 = 0.9;

/// A program's phases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phases {
    /// The phases, in the order in which they appear.
    pub phases: Vec<Phase>,
    /// Phase of each interval, from 0.
    pub of: Vec<usize>,
}

/// A phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Share of the region's instructions.
    pub share: f64,
    /// Number of intervals.
    pub intervals: usize,
    /// Number of stretches of intervals that follow each other.
    pub stretches: usize,
    /// The interval that stands for the phase: the one nearest to its centre, and the middle one of several that are as near. One that the region's end has cut stands for none but itself.
    pub representative: usize,
    /// Distance of the phase's intervals from its centre, root of the mean square: how much the phase's intervals differ.
    pub spread: f64,
    /// Pages that an interval of the phase touches in the mean.
    #[serde(default)]
    pub pages: MeanPages,
}

/// Pages of 4 KiB that intervals touch in the mean, as in [`IntervalPages`](crate::IntervalPages).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeanPages {
    /// Pages that loads, stores and atomics accessed.
    pub data: f64,
    /// The part of them that was stored to.
    pub written: f64,
    /// The part of them that no earlier interval of the region accessed.
    pub new: f64,
    /// Pages that code was executed in.
    pub code: f64,
}

impl MeanPages {
    /// Adds the pages of one of so many intervals.
    fn add(&mut self, pages: &IntervalPages, intervals: usize) {
        let IntervalPages { data, written, new, code } = *pages;
        let part = |pages: u32| f64::from(pages) / intervals as f64;
        self.data += part(data);
        self.written += part(written);
        self.new += part(new);
        self.code += part(code);
    }
}

impl Phases {
    /// Finds the phases of a survey: at most `most`, and no more than tell intervals apart well enough, by the Bayesian information criterion (Pelleg
    /// and Moore, *X-means*, ICML 2000) as SimPoint uses it.
    pub fn of(survey: &Survey, most: usize, seed: u64) -> Self {
        let most = most.clamp(1, survey.vectors.len().max(1));
        let sample = sample(&survey.vectors, seed);
        let clusters = |count| Clusters::best_of(&sample, count, seed);
        let (one, all) = (clusters(1), clusters(most));
        let (least, best) = (one.score.min(all.score), one.score.max(all.score));
        let is_enough =
            |clusters: &Clusters| clusters.score >= least + SUFFICIENT_SCORE * (best - least);
        // The smallest number that is enough, as scores rise with the number at first.
        let (mut below, mut found) = (0, if is_enough(&one) { one } else { all });
        while found.centres.len() - below > 1 {
            let middle = clusters(below.midpoint(found.centres.len()));
            match is_enough(&middle) {
                true if middle.centres.len() < found.centres.len() => found = middle,
                true => break,
                false => below = below.midpoint(found.centres.len()),
            }
        }
        Self::with_centres(survey, &found.centres)
    }

    /// Finds `count` phases of a survey, or fewer if it has no more different intervals.
    pub fn with_count(survey: &Survey, count: usize, seed: u64) -> Self {
        let count = count.clamp(1, survey.vectors.len().max(1));
        let clusters = Clusters::best_of(&sample(&survey.vectors, seed), count, seed);
        Self::with_centres(survey, &clusters.centres)
    }

    /// Has each interval join the nearest centre.
    fn with_centres(survey: &Survey, centres: &[Mean]) -> Self {
        let total = survey.total().max(1) as f64;
        let mut numbers = vec![None; centres.len()];
        let mut phases: Vec<Phase> = Vec::new();
        // The least distance from each phase's centre, and the intervals that are as near.
        let mut nearest_to: Vec<(f64, Vec<usize>)> = Vec::new();
        let mut of: Vec<usize> = Vec::with_capacity(survey.vectors.len());
        for (interval, vector) in survey.vectors.iter().enumerate() {
            let (centre, distance) = nearest(centres, vector);
            let number = *numbers[centre].get_or_insert_with(|| {
                let new = Phase {
                    share: 0.0,
                    intervals: 0,
                    stretches: 0,
                    representative: interval,
                    spread: 0.0,
                    pages: MeanPages::default(),
                };
                phases.push(new);
                nearest_to.push((f64::INFINITY, Vec::new()));
                phases.len() - 1
            });
            let phase = &mut phases[number];
            phase.share += survey.instructions[interval] as f64 / total;
            phase.intervals += 1;
            phase.stretches += usize::from(of.last() != Some(&number));
            phase.spread += distance;
            let is_whole = survey.instructions[interval] >= survey.interval;
            let (least, as_near) = &mut nearest_to[number];
            if is_whole && distance < *least {
                *least = distance;
                as_near.clear();
            }
            if is_whole && distance == *least {
                as_near.push(interval);
            }
            of.push(number);
        }
        for (phase, (_, as_near)) in phases.iter_mut().zip(nearest_to) {
            // At the edge of a phase, a run that is a little shorter or longer has another one.
            phase.representative =
                as_near.get(as_near.len() / 2).copied().unwrap_or(phase.representative);
            phase.spread = (phase.spread / phase.intervals as f64).sqrt();
        }
        for (number, pages) in of.iter().zip(&survey.pages) {
            let phase = &mut phases[*number];
            phase.pages.add(pages, phase.intervals);
        }
        Self { phases, of }
    }
}

/// Returns the vectors by which centres are found.
fn sample(vectors: &[Vector], seed: u64) -> Vec<Vector> {
    if vectors.len() <= MOST_FOR_CENTRES {
        return vectors.to_vec();
    }
    let mut random = Random(seed);
    (0..MOST_FOR_CENTRES).map(|_| vectors[random.below(vectors.len())].clone()).collect()
}

/// Clusters by k-means, with first centres by k-means++ (Arthur and Vassilvitskii, SODA 2007).
struct Clusters {
    centres: Vec<Mean>,
    /// Sum of the squares of the distances from the centres.
    inertia: f64,
    /// Bayesian information criterion.
    score: f64,
}

impl Clusters {
    fn best_of(vectors: &[Vector], count: usize, seed: u64) -> Self {
        let all = (0..RESTARTS).map(|restart| {
            Self::around(vectors, first_centres(vectors, count, &mut Random(seed ^ restart << 32)))
        });
        let best = all.min_by(|a, b| a.inertia.total_cmp(&b.inertia));
        best.unwrap_or_else(|| unreachable!("there are restarts"))
    }

    fn around(vectors: &[Vector], mut centres: Vec<Mean>) -> Self {
        let mut joined = vec![usize::MAX; vectors.len()];
        for _ in 0..ROUNDS {
            let mut moved = false;
            for (joined, vector) in joined.iter_mut().zip(vectors) {
                let (centre, _) = nearest(&centres, vector);
                moved |= std::mem::replace(joined, centre) != centre;
            }
            if !moved {
                break;
            }
            for (number, centre) in centres.iter_mut().enumerate() {
                let own = joined.iter().zip(vectors).filter(|(joined, _)| **joined == number);
                let mut own = own.map(|(_, vector)| vector).peekable();
                // A centre that nobody has joined stays where it is.
                if own.peek().is_some() {
                    *centre = mean_of(own);
                }
            }
        }
        let inertia = vectors.iter().map(|vector| nearest(&centres, vector).1).sum();
        let mut sizes = vec![0.0; centres.len()];
        for joined in joined {
            if let Some(size) = sizes.get_mut(joined) {
                *size += 1.0;
            }
        }
        let dimensions = vectors.first().map_or(0, Vec::len);
        Self { score: score(&sizes, dimensions, inertia), centres, inertia }
    }
}

/// Returns the Bayesian information criterion of clusters of these sizes, which are all as wide, of vectors of so many `dimensions`.
fn score(sizes: &[f64], dimensions: usize, inertia: f64) -> f64 {
    let (count, clusters, dimensions) =
        (sizes.iter().sum::<f64>(), sizes.len() as f64, dimensions.max(1) as f64);
    // A width of 0 would make the score infinite: differences of a millionth are none.
    let variance = (inertia / (dimensions * (count - clusters).max(1.0))).max(1e-12);
    let likelihood: f64 = sizes
        .iter()
        .filter(|size| **size > 0.0)
        .map(|size| size * (size / count).ln())
        .sum::<f64>()
        - count * dimensions / 2.0 * (std::f64::consts::TAU * variance).ln()
        - dimensions * (count - clusters) / 2.0;
    let parameters = clusters - 1.0 + dimensions * clusters + 1.0;
    likelihood - parameters / 2.0 * count.max(1.0).ln()
}

/// Returns centres that are far from each other: each next one is drawn with a probability by its distance from those before.
fn first_centres(vectors: &[Vector], count: usize, random: &mut Random) -> Vec<Mean> {
    let as_mean = |vector: &Vector| -> Mean { vector.iter().copied().map(f64::from).collect() };
    let Some(first) = vectors.get(random.below(vectors.len().max(1))) else { return Vec::new() };
    let mut centres = vec![as_mean(first)];
    let mut distances: Vec<f64> = vec![f64::INFINITY; vectors.len()];
    while centres.len() < count {
        let newest = &centres[centres.len() - 1];
        for (distance, vector) in distances.iter_mut().zip(vectors) {
            *distance = distance.min(squared_distance(vector, newest));
        }
        let mut left = random.share() * distances.iter().sum::<f64>();
        let drawn = distances.iter().position(|distance| {
            left -= distance;
            left < 0.0
        });
        // All are where centres are already.
        let Some(drawn) = drawn else { break };
        centres.push(as_mean(&vectors[drawn]));
    }
    centres
}

/// Returns the nearest centre, and the square of its distance.
fn nearest(centres: &[Mean], vector: &Vector) -> (usize, f64) {
    let distances = centres.iter().map(|centre| squared_distance(vector, centre));
    distances.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_found_with_their_number() {
        let of: Vec<usize> = (0..600).map(|at| [3, 0, 7, 0, 3, 3][at / 100]).collect();
        for noise in [0.0, 0.02, 0.1] {
            let phases = Phases::of(&Survey::near(&of, noise), 30, 5);
            let expected = [(0.5, 300, 2), (1.0 / 3.0, 200, 2), (1.0 / 6.0, 100, 1)];
            assert_eq!(phases.phases.len(), 3, "noise {noise}");
            for (phase, (share, intervals, stretches)) in phases.phases.iter().zip(expected) {
                assert!((phase.share - share).abs() < 1e-9);
                assert_eq!((phase.intervals, phase.stretches), (intervals, stretches));
                // The noise of 15 numbers, each evenly from 0 to `noise`.
                assert!(
                    (phase.spread - noise * (15.0_f64 / 12.0).sqrt()).abs() < 0.1 * noise + 1e-6
                );
            }
            let numbers = [0, 1, 2, 1, 0, 0];
            let expected: Vec<usize> = (0..600).map(|at| numbers[at / 100]).collect();
            assert_eq!(phases.of, expected);
            for (number, phase) in phases.phases.iter().enumerate() {
                assert_eq!(phases.of[phase.representative], number);
            }
        }
    }

    #[test]
    fn a_program_without_phases_has_one() {
        let phases = Phases::of(&Survey::near(&[2; 50], 0.0), 10, 0);
        assert_eq!((phases.phases.len(), phases.phases[0].intervals), (1, 50));
        assert_eq!(phases.phases[0].representative, 25, "the middle one of those that are as near");
        assert_eq!(Phases::of(&Survey::near(&[2], 0.0), 10, 0).phases.len(), 1);
        let none = Phases::of(&Survey::new(100), 10, 0);
        assert_eq!((none.phases, none.of), (Vec::new(), Vec::new()));
    }

    #[test]
    fn an_interval_that_is_cut_stands_for_none_but_itself() {
        let mut survey = Survey::near(&[1, 1], 0.1);
        let vector = survey.vectors[0].clone();
        survey.add(10, vector, IntervalPages::default());
        assert_ne!(Phases::of(&survey, 1, 0).phases[0].representative, 2);
    }
}
