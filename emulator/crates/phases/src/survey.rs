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
        }
    }

    pub(crate) fn add(&mut self, instructions: u64, vector: Vector) {
        self.instructions.push(instructions);
        self.vectors.push(vector);
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
            survey.add(100, vector);
        }
        survey
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
