//! Cycle stacks of many instructions.

use commit_trace::InstId;
use serde::{Deserialize, Serialize};

use crate::ProcessId;
use crate::packed::{Packed, put};
use crate::stack::{Component, CycleStack};

/// Bits of a component's number.
pub(crate) const COMPONENT_BITS: u32 = 5;

/// Cycle stacks per (process, static instruction). Few components of a stack are in use: the others take no memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CycleStacks {
    /// Units by process number. Each key is an instruction's number, with the component in the low [`COMPONENT_BITS`].
    pub(crate) by_process: Vec<Packed>,
}

/// Returns the number under which an instruction's units of a component are packed.
pub(crate) fn number(inst: InstId, component: Component) -> u64 {
    u64::from(inst.0) << COMPONENT_BITS | component as u64
}

/// The stacks of a process, ascending by instruction.
pub(crate) fn unpacked(stacks: &Packed) -> impl Iterator<Item = (InstId, CycleStack)> {
    let mut units = stacks.iter().peekable();
    std::iter::from_fn(move || {
        let inst = units.peek()?.0 >> COMPONENT_BITS;
        let mut stack = CycleStack::default();
        while let Some((number, amount)) =
            units.next_if(|(number, _)| number >> COMPONENT_BITS == inst)
        {
            let component = number as usize & ((1 << COMPONENT_BITS) - 1);
            if let Some(units) = stack.0.get_mut(component) {
                *units += amount;
            }
        }
        Some((InstId(inst as u32), stack))
    })
}

impl CycleStacks {
    /// Returns whether there are no stacks at all.
    pub fn is_empty(&self) -> bool {
        self.by_process.iter().all(Packed::is_empty)
    }

    /// Sets the stacks of a process.
    pub(crate) fn set(&mut self, process: ProcessId, stacks: Packed) {
        put(&mut self.by_process, process.0 as usize, stacks);
    }

    /// Returns the multiple of all units.
    pub(crate) fn times(&self, factor: u64) -> Self {
        Self { by_process: self.by_process.iter().map(|packed| packed.times(factor)).collect() }
    }

    /// Adds other stacks.
    pub(crate) fn add(&mut self, other: &Self) {
        let processes = self.by_process.len().max(other.by_process.len());
        self.by_process.resize(processes, Packed::default());
        for (packed, more) in self.by_process.iter_mut().zip(&other.by_process) {
            packed.add(more.iter());
        }
    }

    /// Returns the stack of one instruction in one process. It reads all of the process's stacks before that one: use
    /// [`CycleStacks::of`] for many instructions.
    pub fn get(&self, process: ProcessId, inst: InstId) -> CycleStack {
        let mut found = self.of(process).filter(|(found, _)| *found == inst);
        found.next().map(|(_, stack)| stack).unwrap_or_default()
    }

    /// Every stack of a process that is not empty, ascending by instruction.
    pub fn of(&self, process: ProcessId) -> impl Iterator<Item = (InstId, CycleStack)> {
        let packed = self.by_process.get(process.0 as usize);
        packed.into_iter().flat_map(unpacked)
    }

    /// Every stack that is not empty, ascending by process and instruction.
    pub fn iter(&self) -> impl Iterator<Item = (ProcessId, InstId, CycleStack)> {
        let processes = (0..self.by_process.len() as u32).map(ProcessId);
        processes
            .flat_map(|process| self.of(process).map(move |(inst, stack)| (process, inst, stack)))
    }
}

const _: () = assert!(Component::COUNT <= 1 << COMPONENT_BITS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        use Component::{Execution, Interrupt, Store};
        let own = [(3, Execution, 7), (3, Interrupt, 1), (9, Store, 5)];
        let packed = own.map(|(inst, component, units)| (number(InstId(inst), component), units));
        let mut stacks = CycleStacks::default();
        stacks.set(ProcessId(1), packed.into_iter().collect());
        let mut nine = CycleStack::default();
        nine[Store] = 5;
        assert_eq!(stacks.get(ProcessId(1), InstId(9)), nine);
        assert_eq!(stacks.get(ProcessId(1), InstId(5)), CycleStack::default());
        assert_eq!(stacks.get(ProcessId(2), InstId(9)), CycleStack::default());
        let listed: Vec<_> = stacks
            .iter()
            .flat_map(|(_, inst, stack)| {
                let some = Component::ALL.into_iter().filter(move |c| stack[*c] > 0);
                some.map(move |component| (inst.0, component, stack[component]))
            })
            .collect();
        assert_eq!(listed, own);
        let text = serde_json::to_string(&stacks).unwrap();
        assert_eq!(serde_json::from_str::<CycleStacks>(&text).unwrap(), stacks);
    }
}
