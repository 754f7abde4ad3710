//! Samples over time, merged if there are too many for the tools that open them.

use super::Export;
use super::model::CycleSample;

/// Samples that a file has at most, of all its profilers: with more, Firefox Profiler and perf take minutes.
const MOST_SAMPLES: usize = 300_000;
/// Windows that a run is cut into first, if samples must be merged; then half as many, and so on.
const MOST_WINDOWS: u64 = 1 << 14;
/// Windows that are not merged any further.
const FEWEST_WINDOWS: u64 = 1 << 6;

/// The samples of all profilers.
pub(super) struct Timed {
    /// Per profiler, in order of time.
    pub samples: Vec<Vec<CycleSample>>,
    /// Cycles of a window in which samples of one row are merged.
    window: Option<u64>,
}

impl Timed {
    fn of(export: &Export<'_>) -> Self {
        let series = export.series();
        let most = match export.options.exact {
            true => usize::MAX,
            false => MOST_SAMPLES / series.len().max(1),
        };
        let cycles = export.sampled_cycles();
        let mut window = None;
        let samples = series.iter().map(|series| {
            let mut merging = Merging::new(cycles, most);
            export.each_sample(series, |sample| merging.add(sample));
            let (samples, merged) = merging.finish();
            window = window.max(merged);
            samples
        });
        let samples = samples.collect();
        Self { samples, window }
    }

    /// Returns a sentence on merged samples, if any were merged.
    pub(crate) fn note(&self, export: &Export<'_>) -> Option<String> {
        let micros = export.nanos(self.window?) as f64 / 1e3;
        Some(format!(
            "the samples of an instruction in the same {micros:.0} us are one (not with --exact)"
        ))
    }
}

impl Export<'_> {
    /// Returns the samples of all profilers, as files have them.
    pub(super) fn timed(&self) -> &Timed {
        self.timed.get_or_init(|| Timed::of(self))
    }
}

/// Merges samples of a row in the same window, which is as long as is needed for at most `most` samples. A merged sample has
/// the cycle of its last sample.
struct Merging {
    samples: Vec<CycleSample>,
    /// Cycles that the samples are spread over.
    cycles: u64,
    most: usize,
    /// Number of samples at which they are merged before more are taken.
    full: usize,
    window: Option<u64>,
}

impl Merging {
    fn new(cycles: u64, most: usize) -> Self {
        Self { samples: Vec::new(), cycles, most, full: most.saturating_mul(8), window: None }
    }

    /// Takes the next sample, in order of time.
    fn add(&mut self, sample: CycleSample) {
        // Not all are kept until the end: the Oracle has millions.
        if self.samples.len() >= self.full {
            self.merge();
            self.full = self.full.max(self.samples.len().saturating_mul(2));
        }
        self.samples.push(sample);
    }

    /// Returns the samples in order of time and, if they were merged, the cycles of a window.
    fn finish(mut self) -> (Vec<CycleSample>, Option<u64>) {
        if self.window.is_some() || self.samples.len() > self.most {
            self.merge();
        }
        (self.samples, self.window)
    }

    fn merge(&mut self) {
        let first = (self.cycles / MOST_WINDOWS).max(1);
        let mut window = self.window.unwrap_or(first);
        let samples = &mut self.samples;
        loop {
            samples.sort_by_key(|sample| (sample.cycle / window, sample.row, sample.cycle));
            samples.dedup_by(|sample, first| {
                let same = (sample.cycle / window, sample.row) == (first.cycle / window, first.row);
                if same {
                    first.cycle = sample.cycle;
                    first.cycles += sample.cycles;
                }
                same
            });
            if samples.len() <= self.most || window > self.cycles / FEWEST_WINDOWS {
                break;
            }
            window *= 2;
        }
        samples.sort_by_key(|sample| (sample.cycle, sample.row));
        self.window = Some(window);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_samples_stay_as_they_are() {
        let mut merging = Merging::new(1_000, 2);
        let sample = |cycle| CycleSample { cycle, row: 0, cycles: 1 };
        merging.add(sample(3));
        merging.add(sample(3));
        assert_eq!(merging.finish(), (vec![sample(3), sample(3)], None));
    }

    #[test]
    fn merged_samples_keep_their_cycles() {
        let sample =
            |n: u64| CycleSample { cycle: 100 * n, row: (n % 7) as usize, cycles: 1 + n % 5 };
        let all: Vec<_> = (0..100_000).map(sample).collect();
        let sum = |samples: &[CycleSample]| samples.iter().map(|at| at.cycles).sum::<u64>();
        let mut merging = Merging::new(10_000_000, 5_000);
        all.iter().for_each(|sample| merging.add(*sample));
        assert!(merging.samples.len() <= 40_000);
        let (merged, window) = merging.finish();
        let window = window.expect("merged");
        assert!(merged.len() <= 5_000 && merged.len() > 2_000, "{}", merged.len());
        assert_eq!(sum(&merged), sum(&all));
        assert!(merged.is_sorted_by_key(|at| at.cycle));
        for row in 0..7 {
            let of = |samples: &[CycleSample], end: u64| {
                let row = samples.iter().filter(|at| at.row == row && at.cycle / window < end);
                row.map(|at| at.cycles).sum::<u64>()
            };
            assert!(
                (0..10_000_000 / window).step_by(97).all(|end| of(&merged, end) == of(&all, end))
            );
        }
    }
}
