//! Where a profiler says that the time went.

use commit_trace::InstId;
use serde::{Deserialize, Serialize};

use crate::ProcessId;
use crate::paged::Paged;

/// Weight per (process, static instruction), in exact integers: [`Profile::units_per_cycle`] units
/// are one cycle, so that a cycle divides evenly among the instructions that commit in it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Profile {
    units_per_cycle: u64,
    processes: Vec<Weights>,
}

#[derive(Clone, Debug, Default)]
struct Weights {
    total: u64,
    by_inst: Paged<u64>,
}

/// The serialised form: per process its non-zero (instruction, weight) pairs, ascending.
#[derive(Serialize, Deserialize)]
struct Stored {
    units_per_cycle: u64,
    processes: Vec<Vec<(u32, u64)>>,
}

impl Profile {
    /// An empty profile.
    pub fn new(units_per_cycle: u64) -> Self {
        Self {
            units_per_cycle,
            processes: Vec::new(),
        }
    }

    /// Units in one cycle.
    pub fn units_per_cycle(&self) -> u64 {
        self.units_per_cycle
    }

    /// Adds `units` to an instruction as executed by a process.
    pub fn add(&mut self, process: ProcessId, inst: InstId, units: u64) {
        let index = process.0 as usize;
        if self.processes.len() <= index {
            self.processes.resize_with(index + 1, Weights::default);
        }
        let weights = &mut self.processes[index];
        weights.total += units;
        *weights.by_inst.entry(inst.0) += units;
    }

    /// Units of one instruction in one process.
    pub fn weight(&self, process: ProcessId, inst: InstId) -> u64 {
        self.processes
            .get(process.0 as usize)
            .and_then(|weights| weights.by_inst.get(inst.0))
            .copied()
            .unwrap_or(0)
    }

    /// Units of one process.
    pub fn process_total(&self, process: ProcessId) -> u64 {
        self.processes
            .get(process.0 as usize)
            .map_or(0, |weights| weights.total)
    }

    /// All units.
    pub fn total(&self) -> u64 {
        self.processes.iter().map(|weights| weights.total).sum()
    }

    /// All units, in cycles.
    pub fn total_cycles(&self) -> f64 {
        self.total() as f64 / self.units_per_cycle.max(1) as f64
    }

    /// Every non-zero weight, ascending by process and instruction.
    pub fn iter(&self) -> impl Iterator<Item = (ProcessId, InstId, u64)> {
        self.processes
            .iter()
            .enumerate()
            .flat_map(|(process, weights)| {
                weights
                    .by_inst
                    .iter()
                    .map(move |(inst, units)| (ProcessId(process as u32), InstId(inst), *units))
            })
    }
}

/// Equal if every weight is: how the storage is laid out does not matter.
impl PartialEq for Profile {
    fn eq(&self, other: &Self) -> bool {
        self.units_per_cycle == other.units_per_cycle && self.iter().eq(other.iter())
    }
}

impl Eq for Profile {}

impl From<Profile> for Stored {
    fn from(profile: Profile) -> Self {
        Self {
            units_per_cycle: profile.units_per_cycle,
            processes: profile
                .processes
                .iter()
                .map(|weights| weights.by_inst.iter().map(|(i, w)| (i, *w)).collect())
                .collect(),
        }
    }
}

impl From<Stored> for Profile {
    fn from(stored: Stored) -> Self {
        let mut profile = Self::new(stored.units_per_cycle);
        for (process, weights) in stored.processes.into_iter().enumerate() {
            for (inst, units) in weights {
                profile.add(ProcessId(process as u32), InstId(inst), units);
            }
        }
        profile
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_serialisation() {
        let mut profile = Profile::new(12);
        profile.add(ProcessId(2), InstId(900), 5);
        profile.add(ProcessId(0), InstId(1), 7);
        profile.add(ProcessId(0), InstId(1), 1);
        let text = serde_json::to_string(&profile).unwrap();
        let back: Profile = serde_json::from_str(&text).unwrap();
        assert_eq!(back, profile);
        assert_eq!(back.total(), 13);
        assert_eq!(back.process_total(ProcessId(0)), 8);
        assert_eq!(back.weight(ProcessId(2), InstId(900)), 5);
        assert_eq!(back.weight(ProcessId(9), InstId(900)), 0);
    }
}
