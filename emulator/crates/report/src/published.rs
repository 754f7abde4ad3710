//! The published errors that ours are shown beside (TIP, MICRO'21, figures 1, 8 to 10: means over 27
//! SPEC CPU2017 and PARSEC 3.0 programs at 4 kHz).

use serde::Serialize;

use profile::Profiler;

/// What a profile is counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Single instructions.
    Instruction,
    /// Basic blocks.
    Block,
    /// Functions.
    Function,
}

impl Level {
    /// All levels, the finest first.
    pub const ALL: [Self; 3] = [Self::Instruction, Self::Block, Self::Function];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Instruction => "instruction",
            Self::Block => "block",
            Self::Function => "function",
        }
    }
}

/// A published mean error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Published {
    /// The mean, as a fraction.
    Mean(f64),
    /// Only an upper bound was given.
    Below(f64),
}

impl Published {
    /// The mean or its bound, as a fraction.
    pub const fn value(self) -> f64 {
        match self {
            Self::Mean(value) | Self::Below(value) => value,
        }
    }
}

impl std::fmt::Display for Published {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Mean(value) => f.pad(&format!("{:.1}", value * 100.0)),
            Self::Below(value) => f.pad(&format!("<{:.1}", value * 100.0)),
        }
    }
}

/// The published mean error of a profiler, if there is one.
pub fn published(profiler: Profiler, level: Level) -> Option<Published> {
    use Level::*;
    use Profiler::*;
    use Published::*;
    Some(match (level, profiler) {
        (Instruction, Software) => Mean(0.618),
        (Instruction, Dispatch) => Mean(0.531),
        (Instruction, Lci) => Mean(0.554),
        (Instruction, Nci) => Mean(0.093),
        (Instruction, NciIlp) => Mean(0.193),
        (Instruction, TipIlp) => Mean(0.072),
        (Instruction, Tip) => Mean(0.016),
        (Block, Lci) => Mean(0.119),
        (Block, Nci) => Mean(0.023),
        (Block, TipIlp) => Mean(0.012),
        (Block, Tip) => Mean(0.007),
        (Function, Software) => Mean(0.091),
        (Function, Dispatch) => Mean(0.058),
        (Function, Lci | Nci | TipIlp | Tip) => Below(0.016),
        _ => return None,
    })
}
