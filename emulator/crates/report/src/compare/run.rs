//! What a comparison needs of a run's `report.json`.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// What a comparison needs of a run's `report.json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Run {
    #[serde(default)]
    pub(super) meta: Meta,
    pub(super) categories: Vec<String>,
    pub(super) totals: Totals,
    pub(super) processes: Vec<Process>,
    pub(super) functions: Vec<Function>,
    pub(super) instructions: Vec<Instruction>,
    pub(super) modules: Vec<Module>,
    /// Of a report of several harts.
    #[serde(default)]
    pub(super) harts: Vec<IgnoredAny>,
}

/// What a comparison needs of how a run went.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Meta {
    /// Why it is not whole, if it is not.
    #[serde(default)]
    pub(super) part: Option<String>,
}

impl Run {
    /// Why it is not of a whole run, if it is not.
    pub fn part(&self) -> Option<&str> {
        self.meta.part.as_deref()
    }

    /// Harts that it is of.
    pub(super) fn harts(&self) -> usize {
        self.harts.len().max(1)
    }
}

/// Totals of a run.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Totals {
    /// Cycles, idle ones included.
    pub cycles: u64,
    /// Cycles in which the hart slept.
    pub idle: u64,
    /// Committed instructions.
    pub instructions: u64,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Process {
    pub(super) name: String,
    pub(super) cycles: f64,
    pub(super) stack: Vec<f64>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Module {
    pub(super) path: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Function {
    pub(super) process: usize,
    pub(super) name: String,
    pub(super) module: usize,
    pub(super) cycles: f64,
    pub(super) stack: Vec<f64>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Instruction {
    pub(super) process: usize,
    pub(super) label: String,
    pub(super) text: String,
    pub(super) source: Option<String>,
    pub(super) cycles: f64,
    pub(super) stack: Vec<f64>,
}
