//! What is known of a program's intervals without timing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Numbers that a basic-block vector is projected to unless somebody asks for others, as by SimPoint 3.0.
pub const DIMENSIONS: usize = 15;
/// Most numbers that a basic-block vector is projected to.
pub const MOST_DIMENSIONS: usize = 100;

/// The projection of an interval's basic-block vector, whose blocks have the share of the interval's instructions that they are. All vectors of a survey have as many numbers.
pub type Vector = Vec<f32>;

/// A region's intervals, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Survey {
    /// Version of the file's format.
    pub format: u32,
    /// Instructions of an interval; the last one may be shorter.
    pub interval: u64,
    /// Number of different basic blocks.
    pub blocks: u64,
    /// Instructions of each interval.
    pub instructions: Vec<u64>,
    /// Projected basic-block vector of each interval.
    pub vectors: Vec<Vector>,
    /// Pages that each interval touched.
    #[serde(default)]
    pub pages: Vec<IntervalPages>,
}

/// Pages of 4 KiB that an interval touched, the kernel's too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IntervalPages {
    /// Physical pages that loads, stores and atomics accessed: the interval's working set (Denning, *The working set model for program behavior*, 1968).
    pub data: u32,
    /// The part of them that was stored to.
    pub written: u32,
    /// The part of them that no earlier interval of the region accessed. All intervals' together are the region's footprint.
    pub new: u32,
    /// Pages that code was executed in, by the virtual address of basic blocks.
    pub code: u32,
}

impl Survey {
    /// Version of the file's format that is written.
    pub const FORMAT: u32 = 1;

    /// Returns a survey of no intervals yet.
    pub fn new(interval: u64) -> Self {
        Self {
            format: Self::FORMAT,
            interval,
            blocks: 0,
            instructions: Vec::new(),
            vectors: Vec::new(),
            pages: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, instructions: u64, vector: Vector, pages: IntervalPages) {
        self.instructions.push(instructions);
        self.vectors.push(vector);
        self.pages.push(pages);
    }

    /// Returns the number of different data pages that the region accessed.
    pub fn footprint(&self) -> u64 {
        self.pages.iter().map(|pages| u64::from(pages.new)).sum()
    }

    /// Returns a survey of intervals of 100 instructions, each of which executes mostly what its phase's number says, and up to `noise` of all else.
    #[cfg(test)]
    pub(crate) fn near(phases: &[usize], noise: f64) -> Self {
        let mut survey = Self::new(100);
        let mut random = crate::mean::Random(1);
        for phase in phases {
            let mut vector: Vector =
                (0..DIMENSIONS).map(|_| (noise * random.share()) as f32).collect();
            vector[*phase] += 1.0;
            survey.add(100, vector, IntervalPages::default());
        }
        survey
    }

    /// Returns a survey whose intervals are `count` of these each. Pages are not known of them.
    #[must_use]
    pub fn joined(&self, count: usize) -> Self {
        let count = count.max(1);
        let mut joined = Self::new(self.interval.saturating_mul(count as u64));
        joined.blocks = self.blocks;
        let intervals = self.instructions.chunks(count).zip(self.vectors.chunks(count));
        for (instructions, vectors) in intervals {
            let total: u64 = instructions.iter().sum();
            let mut sum = vec![0.0; vectors.first().map_or(0, Vec::len)];
            for (instructions, vector) in instructions.iter().zip(vectors) {
                let share = *instructions as f64 / total.max(1) as f64;
                sum.iter_mut().zip(vector).for_each(|(sum, x)| *sum += share * f64::from(*x));
            }
            joined.instructions.push(total);
            joined.vectors.push(sum.into_iter().map(|x| x as f32).collect());
        }
        joined
    }

    /// Returns the instructions of the whole region.
    pub fn total(&self) -> u64 {
        self.instructions.iter().sum()
    }

    /// Returns the vectors of the whole intervals: all but the last, if that was cut by the region's end.
    pub(crate) fn whole(&self) -> &[Vector] {
        let whole = self.instructions.iter().take_while(|count| **count >= self.interval).count();
        &self.vectors[..whole]
    }
}
