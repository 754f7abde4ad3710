//! Cycle stacks of many instructions.

use commit_trace::InstId;
use serde::{Deserialize, Serialize};

use crate::ProcessId;
use crate::stack::{Component, CycleStack};

/// Cycle stacks per (process, static instruction). Few components of one are in use: the others take no memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CycleStacks {
    by_process: Vec<Packed>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Packed {
    stacks: Vec<Head>,
    /// The components that are not zero, stack after stack.
    units: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "(InstId, u32, u32)", into = "(InstId, u32, u32)")]
struct Head {
    inst: InstId,
    /// A bit for each component that has units.
    used: u32,
    /// Where those begin.
    first: u32,
}

impl From<(InstId, u32, u32)> for Head {
    fn from((inst, used, first): (InstId, u32, u32)) -> Self {
        Self { inst, used, first }
    }
}

impl From<Head> for (InstId, u32, u32) {
    fn from(head: Head) -> Self {
        (head.inst, head.used, head.first)
    }
}

impl CycleStacks {
    /// Adds the next process's stacks, ascending by instruction.
    pub(crate) fn push(&mut self, stacks: impl Iterator<Item = (InstId, CycleStack)>) {
        let mut packed = Packed::default();
        for (inst, stack) in stacks {
            let first = packed.units.len() as u32;
            let mut used = 0;
            for (bit, units) in stack
                .0
                .into_iter()
                .enumerate()
                .filter(|(_, units)| *units > 0)
            {
                used |= 1 << bit;
                packed.units.push(units);
            }
            packed.stacks.push(Head { inst, used, first });
        }
        packed.stacks.shrink_to_fit();
        packed.units.shrink_to_fit();
        self.by_process.push(packed);
    }

    /// The stack of one instruction in one process.
    pub fn get(&self, process: ProcessId, inst: InstId) -> CycleStack {
        let Some(packed) = self.by_process.get(process.0 as usize) else {
            return CycleStack::default();
        };
        match packed.stacks.binary_search_by_key(&inst, |head| head.inst) {
            Ok(found) => packed.stack(&packed.stacks[found]),
            Err(_) => CycleStack::default(),
        }
    }

    /// Every stack that is not empty, ascending by process and instruction.
    pub fn iter(&self) -> impl Iterator<Item = (ProcessId, InstId, CycleStack)> {
        (0..)
            .map(ProcessId)
            .zip(&self.by_process)
            .flat_map(|(process, packed)| {
                let stacks = packed.stacks.iter();
                stacks.map(move |head| (process, head.inst, packed.stack(head)))
            })
    }
}

impl Packed {
    fn stack(&self, head: &Head) -> CycleStack {
        let mut stack = CycleStack::default();
        let bits = (0..Component::COUNT).filter(|bit| head.used >> bit & 1 != 0);
        let units = self.units.get(head.first as usize..).unwrap_or_default();
        for (bit, units) in bits.zip(units) {
            stack.0[bit] = *units;
        }
        stack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        let stack = |units: &[(Component, u64)]| {
            let mut stack = CycleStack::default();
            units
                .iter()
                .for_each(|(component, n)| stack[*component] = *n);
            stack
        };
        let own = [
            (
                InstId(3),
                stack(&[(Component::Execution, 7), (Component::Interrupt, 1)]),
            ),
            (InstId(4), stack(&[])),
            (InstId(9), stack(&[(Component::Store, 5)])),
        ];
        let mut stacks = CycleStacks::default();
        stacks.push(std::iter::empty());
        stacks.push(own.into_iter());
        assert_eq!(stacks.get(ProcessId(1), InstId(9)), own[2].1);
        assert_eq!(stacks.get(ProcessId(1), InstId(5)), CycleStack::default());
        assert_eq!(stacks.get(ProcessId(2), InstId(9)), CycleStack::default());
        let listed: Vec<_> = stacks
            .iter()
            .map(|(_, inst, stack)| (inst, stack))
            .collect();
        assert_eq!(listed, own);
        let text = serde_json::to_string(&stacks).unwrap();
        assert_eq!(
            serde_json::from_str::<CycleStacks>(&text).unwrap(),
            stacks,
            "{text}"
        );
        // What lacks its units has none.
        let cut: CycleStacks = serde_json::from_str(&text.replace("[7,1,5]", "[7]")).unwrap();
        assert_eq!(cut.get(ProcessId(1), InstId(3)).total(), 7, "{text}");
        assert_eq!(cut.get(ProcessId(1), InstId(9)).total(), 0);
    }
}
