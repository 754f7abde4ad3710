//! Intervals that stand for all, by ranked sets and repeated subsampling.

use crate::mean::{Mean, Random, difference, dot, mean_of};
use crate::survey::{Survey, Vector};

/// Intervals that are drawn for one of them to be taken, by its rank among them.
const SET_SIZE: usize = 5;
/// Samples that are drawn, of which the one is taken that is nearest to the whole region.
const SAMPLES: usize = 1000;
/// Rounds of the power iteration, which is far more than ranks need.
const ROUNDS: usize = 50;

/// Chooses `count` whole intervals of a survey that stand for all, in ascending order; all, if there are no more.
///
/// *Stratified ranked-set sampling* (McIntyre 1952; Samawi 1996): the region is divided into `count` stretches of as many intervals, and of each
/// stretch that interval is taken which has a certain rank among some that are drawn at random; all ranks are taken as often. Intervals are
/// ranked by the first principal component of their basic-block vectors. *Repeated subsampling*: of many such samples that one is taken whose mean
/// vector is nearest to the mean of all, so that the sample executes what the whole region executes. Ekman (arXiv 2603.22598) has ranked sets and
/// repeated subsampling for the simulation of processors.
pub fn ranked_set(survey: &Survey, count: usize, seed: u64) -> Vec<usize> {
    let vectors = survey.whole();
    if vectors.len() <= count {
        return (0..vectors.len()).collect();
    }
    let mean = mean_of(vectors.iter());
    let component = principal_component(vectors, &mean);
    let rank: Vec<f64> =
        vectors.iter().map(|vector| dot(&difference(vector, &mean), &component)).collect();
    let mut random = Random(seed);
    let samples = (0..SAMPLES).map(|_| {
        let sample = sample(&rank, count, &mut random);
        let off = difference_of_means(&mean, &mean_of(sample.iter().map(|at| &vectors[*at])));
        (off, sample)
    });
    samples.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, sample)| sample).unwrap_or_default()
}

/// Draws a sample by ranked sets, in ascending order.
fn sample(rank: &[f64], count: usize, random: &mut Random) -> Vec<usize> {
    let first_rank = random.below(SET_SIZE);
    let begin = |stretch: usize| stretch * rank.len() / count;
    let taken = (0..count).map(|stretch| {
        let (begin, end) = (begin(stretch), begin(stretch + 1));
        let mut set: [usize; SET_SIZE] = std::array::from_fn(|_| begin + random.below(end - begin));
        set.sort_unstable_by(|a, b| rank[*a].total_cmp(&rank[*b]));
        // Ranks of neighbours differ by two, as stretches that are near each other are alike.
        set[(first_rank + 2 * stretch) % SET_SIZE]
    });
    taken.collect()
}

/// Returns the square of the distance.
fn difference_of_means(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// Returns the direction in which vectors differ most, by power iteration.
fn principal_component(vectors: &[Vector], mean: &[f64]) -> Mean {
    let dimensions = mean.len();
    let mut covariance = vec![vec![0.0; dimensions]; dimensions];
    for vector in vectors {
        let off = difference(vector, mean);
        for (row, a) in covariance.iter_mut().zip(&off) {
            for (sum, b) in row.iter_mut().zip(&off) {
                *sum += a * b;
            }
        }
    }
    // Not orthogonal to anything that matters, whatever the vectors are.
    let mut component: Mean = (0..dimensions).map(|at| 1.0 + at as f64 / 100.0).collect();
    for _ in 0..ROUNDS {
        let turned: Mean = covariance.iter().map(|row| dot(row, &component)).collect();
        let length = dot(&turned, &turned).sqrt();
        if length == 0.0 {
            break;
        }
        component = turned.iter().map(|number| number / length).collect();
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IntervalPages;

    #[test]
    fn a_sample_has_what_the_region_has() {
        // A tenth of one phase, three tenths of another, six of a third, in long stretches.
        let phases: Vec<usize> =
            (0..1000).map(|at| [0, 1, 1, 1, 2, 2, 2, 2, 2, 2][at / 100]).collect();
        let survey = Survey::near(&phases, 0.01);
        for seed in 0..20 {
            let chosen = ranked_set(&survey, 30, seed);
            assert_eq!(chosen.len(), 30);
            assert!(chosen.is_sorted_by(|a, b| a < b) && chosen[29] < 1000);
            let of = |phase| chosen.iter().filter(|at| phases[**at] == phase).count();
            assert_eq!([of(0), of(1), of(2)], [3, 9, 18], "seed {seed}");
            let stretch = |at: usize| at * 1000 / 30..(at + 1) * 1000 / 30;
            assert!((0..30).all(|at| stretch(at).contains(&chosen[at])));
        }
        assert_ne!(ranked_set(&survey, 30, 1), ranked_set(&survey, 30, 2));
    }

    #[test]
    fn intervals_that_are_all_the_same_are_chosen_too() {
        let mut same = Survey::new(100);
        (0..50).for_each(|_| same.add(100, vec![0.5; 15], IntervalPages::default()));
        assert_eq!(ranked_set(&same, 10, 3).len(), 10);
        // The last interval is cut by the region's end, and is none of those that are chosen from.
        same.add(20, vec![0.5; 15], IntervalPages::default());
        assert_eq!(ranked_set(&same, 100, 3), (0..50).collect::<Vec<_>>());
        assert_eq!(ranked_set(&Survey::new(100), 10, 3), Vec::<usize>::new());
    }
}
