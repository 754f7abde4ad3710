//! The published errors that ours are shown beside (TIP, MICRO'21, figures 1, 8 to 10: means over 27
//! SPEC CPU2017 and PARSEC 3.0 programs at 4 kHz).

use schemars::JsonSchema;
use serde::Serialize;

/// What a profile is counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, JsonSchema, Serialize)]
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

    /// Returns the level's name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Instruction => "instruction",
            Self::Block => "block",
            Self::Function => "function",
        }
    }
}

/// A published mean error.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
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
