//! Where a profiler says that the time went.

use std::borrow::Cow;

use commit_trace::InstId;
use serde::{Deserialize, Serialize, Serializer};

use crate::ProcessId;
use crate::counts::Counts;
use crate::packed::Packed;

/// Weight per (process, static instruction), in exact integers: [`Profile::units_per_cycle`] units
/// are one cycle, so that a cycle divides evenly among the instructions that commit in it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "Stored<'static>")]
pub struct Profile {
    units_per_cycle: u64,
    processes: Vec<Weights>,
}

#[derive(Clone, Debug, Default)]
struct Weights {
    total: u64,
    by_inst: Counts,
}

/// The serialised form.
#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    units_per_cycle: u64,
    processes: Vec<Cow<'a, Packed>>,
}

impl Profile {
    /// An empty profile.
    pub fn new(units_per_cycle: u64) -> Self {
        Self { units_per_cycle, processes: Vec::new() }
    }

    /// Returns the multiple of all weights.
    pub(crate) fn times(&self, factor: u64) -> Self {
        let mut multiple = Self::new(self.units_per_cycle);
        for process in (0..self.processes()).map(ProcessId) {
            let weights = self.of(process);
            let weights = weights.map(|(inst, units)| (inst, units.saturating_mul(factor)));
            multiple.set(process, weights);
        }
        multiple
    }

    /// Units in one cycle.
    pub fn units_per_cycle(&self) -> u64 {
        self.units_per_cycle
    }

    /// Adds `units` to an instruction as executed by a process.
    pub fn add(&mut self, process: ProcessId, inst: InstId, units: u64) {
        let weights = self.of_mut(process);
        weights.total += units;
        weights.by_inst.add(inst, units);
    }

    /// Adds to many instructions: faster than one by one.
    pub(crate) fn add_each(&mut self, process: ProcessId, amounts: &[(InstId, u64)]) {
        if !amounts.is_empty() {
            let weights = self.of_mut(process);
            weights.total += amounts.iter().map(|(_, units)| units).sum::<u64>();
            weights.by_inst.add_each(amounts);
        }
    }

    /// Sets the weights of a process, given by ascending instruction.
    pub(crate) fn set(&mut self, process: ProcessId, weights: impl Iterator<Item = (InstId, u64)>) {
        let packed: Packed = weights.map(|(inst, units)| (inst.0.into(), units)).collect();
        *self.of_mut(process) = packed.into();
    }

    fn of_mut(&mut self, process: ProcessId) -> &mut Weights {
        let index = process.0 as usize;
        if self.processes.len() <= index {
            self.processes.resize_with(index + 1, Weights::default);
        }
        &mut self.processes[index]
    }

    /// Returns the units of one instruction in one process. It reads all of the process's units before those: use
    /// [`Profile::of`] for many instructions.
    pub fn weight(&self, process: ProcessId, inst: InstId) -> u64 {
        let weights = self.processes.get(process.0 as usize);
        weights.map_or(0, |weights| weights.by_inst.get(inst))
    }

    /// Units of one process.
    pub fn process_total(&self, process: ProcessId) -> u64 {
        self.processes.get(process.0 as usize).map_or(0, |weights| weights.total)
    }

    /// All units.
    pub fn total(&self) -> u64 {
        self.processes.iter().map(|weights| weights.total).sum()
    }

    /// All units, in cycles.
    pub fn total_cycles(&self) -> f64 {
        self.total() as f64 / self.units_per_cycle.max(1) as f64
    }

    /// Every non-zero weight of a process, ascending by instruction.
    pub fn of(&self, process: ProcessId) -> impl Iterator<Item = (InstId, u64)> {
        let weights = self.processes.get(process.0 as usize).into_iter();
        weights.flat_map(|weights| weights.by_inst.iter())
    }

    /// Every non-zero weight, ascending by process and instruction.
    pub fn iter(&self) -> impl Iterator<Item = (ProcessId, InstId, u64)> {
        let processes = (0..self.processes.len() as u32).map(ProcessId);
        processes
            .flat_map(|process| self.of(process).map(move |(inst, units)| (process, inst, units)))
    }

    /// One more than the greatest number of a process that has any weight, or has been asked for.
    pub fn processes(&self) -> u32 {
        self.processes.len() as u32
    }

    /// The weights of each process in few bytes, by its number.
    pub(crate) fn packed(&self) -> impl Iterator<Item = Cow<'_, Packed>> {
        self.processes.iter().map(|weights| weights.by_inst.packed())
    }

    /// Keeps the weights of a process, which does not run, in few bytes.
    pub(crate) fn pack_cold(&mut self, process: ProcessId) {
        if let Some(weights) = self.processes.get_mut(process.0 as usize) {
            weights.by_inst.pack_all();
        }
    }

    /// Keeps the weights of all processes in few bytes.
    pub(crate) fn cool_all(&mut self) {
        let weights = self.processes.iter_mut();
        weights.for_each(|weights| weights.by_inst.pack_all());
    }
}

/// Equal if every weight is: how the storage is laid out does not matter.
impl PartialEq for Profile {
    fn eq(&self, other: &Self) -> bool {
        self.units_per_cycle == other.units_per_cycle && self.iter().eq(other.iter())
    }
}

impl Eq for Profile {}

impl Serialize for Profile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stored =
            Stored { units_per_cycle: self.units_per_cycle, processes: self.packed().collect() };
        stored.serialize(serializer)
    }
}

impl From<Packed> for Weights {
    fn from(packed: Packed) -> Self {
        Self {
            // A file may say anything; `Evaluation::check` refuses a sum that is too large.
            total: packed.iter().fold(0, |sum, (_, units)| sum.saturating_add(units)),
            by_inst: packed.into(),
        }
    }
}

impl From<Stored<'_>> for Profile {
    fn from(stored: Stored<'_>) -> Self {
        let processes = stored.processes.into_iter().map(|packed| packed.into_owned().into());
        Self { units_per_cycle: stored.units_per_cycle, processes: processes.collect() }
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
