//! Register dependences that a what-if changes: chains that do not wait for themselves, and branches whose place a data
//! dependence takes. A core has this only if its preset asks for one of the two, and then looks at each instruction
//! before it executes.

use isa::{Extension, InstClass, Op, StaticId, StaticInst};

use crate::Preset;
use crate::micro_op::{MicroOp, NO_REG};
use crate::without::{Cause, Removed, Select, has};

/// Cycles from the condition of a select to its result, as RV64GC computes it: the condition is negated to a
/// mask, which goes by `and` and `or`. With Zicond, `czero` takes the condition itself.
const MASK: u64 = 1;
/// Cycles from an operand of a select to its result: `and` (or `czero`) and `or`.
const MERGE: u64 = 2;

/// What is known of a static instruction.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// The operation, if the instruction adds to the register that it writes ([`accumulates`]).
    accumulates: Option<Op>,
    /// True if the what-if removes the chain through the instruction.
    unchained: bool,
    /// The value that the instruction's register held when it had executed last; see [`RegisterValue::value`].
    left: u64,
    /// The select that takes the instruction's place.
    select: Option<Select>,
    /// The address of a branch, if its two sides meet here.
    join: Option<u64>,
}

/// What a register holds.
#[derive(Clone, Copy, Debug, Default)]
struct RegisterValue {
    /// Counts the values that did not come from the value before by the same operation: a sum is one value however
    /// often something is added to it.
    value: u64,
    /// The operation that adds to the register.
    op: Option<Op>,
}

/// A select whose branch has executed, and whose sides have not met yet.
#[derive(Clone, Copy, Debug)]
struct Open {
    branch: StaticId,
    select: Select,
    /// First cycle in which an instruction that reads the condition can issue.
    condition: u64,
}

/// The changed dependences of a hart. Not in checkpoints: after one, a chain begins anew.
#[derive(Clone, Debug)]
pub(crate) struct Dependences {
    known: Vec<Known>,
    registers: [RegisterValue; NO_REG as usize],
    open: Vec<Open>,
    /// Addresses at which sides meet.
    joins: Vec<u64>,
    /// Cycles from a condition to the select's last two operations.
    mask: u64,
}

/// Returns true if an instruction reads the register that it writes, and computes: it is a link of a chain, if the
/// value is the one that it made itself.
pub(crate) fn accumulates(inst: &isa::DecodedInst) -> bool {
    use InstClass as C;
    matches!(inst.class, C::IntAlu | C::IntMul | C::IntDiv | C::FpArith | C::FpDivSqrt)
        && (1..NO_REG).contains(&inst.rd)
        && [inst.rs1, inst.rs2, inst.rs3].contains(&inst.rd)
}

impl Dependences {
    /// Returns the changes of a preset, if it has any.
    pub(crate) fn new(preset: &Preset, removed: &Removed) -> Option<Box<Self>> {
        let joins: Vec<_> = removed.selects().map(|select| select.join).collect();
        let changes = removed.has(Cause::Chain) || !joins.is_empty();
        changes.then(|| {
            Box::new(Self {
                known: Vec::new(),
                registers: [RegisterValue::default(); NO_REG as usize],
                open: Vec::new(),
                joins,
                mask: if preset.isa.extensions().has(Extension::Zicond) { 0 } else { MASK },
            })
        })
    }

    /// Announces a static instruction without some causes, which a select may take the place of.
    pub(crate) fn define(&mut self, inst: &StaticInst, causes: u8, select: Option<Select>) {
        let index = inst.id.0 as usize;
        if index >= self.known.len() {
            self.known.resize(index + 1, Known::default());
        }
        self.known[index] = Known {
            accumulates: accumulates(&inst.inst).then_some(inst.inst.op),
            unchained: has(causes, Cause::Chain),
            left: 0,
            select,
            join: self.joins.contains(&inst.pc).then_some(inst.pc),
        };
    }

    /// Returns the instruction as it executes next: without the register that it writes among its sources, if it would
    /// wait for itself. `ready` has, by register, the first cycle in which an instruction that reads it can issue;
    /// selects that end here delay it.
    pub(crate) fn next(&mut self, id: StaticId, micro_op: &MicroOp, ready: &mut [u64]) -> MicroOp {
        let mut op = *micro_op;
        let Some(known) = self.known.get_mut(id.0 as usize) else {
            return op;
        };
        if let Some(pc) = known.join {
            for open in self.open.extract_if(.., |open| open.select.join == pc) {
                open.end(self.mask, ready);
            }
        }
        let Some(held) = self.registers.get_mut(usize::from(op.dst)) else {
            return op;
        };
        let goes_on = known.accumulates.is_some() && known.accumulates == held.op;
        if !goes_on {
            held.value += 1;
            held.op = known.accumulates;
        }
        if known.unchained && goes_on && known.left == held.value {
            op.src = op.src.map(|r| if r == op.dst { 0 } else { r });
        }
        known.left = held.value;
        op
    }

    /// Begins a select, if one takes the place of the branch, which executed; an instruction that reads its condition
    /// can issue in cycle `condition`.
    pub(crate) fn decided(&mut self, branch: StaticId, condition: u64) {
        let known = self.known.get(branch.0 as usize);
        if let Some(select) = known.and_then(|known| known.select) {
            self.open.retain(|open| open.branch != branch);
            self.open.push(Open { branch, select, condition });
        }
    }
}

impl Open {
    /// Ends a select: a register that either side writes is ready once the condition and both values of the register are. The value of a side that
    /// did not write it is the old one. Not modelled: what the side that was not taken would have computed, its instructions and its misses.
    fn end(&self, mask: u64, ready: &mut [u64]) {
        for (register, ready) in ready.iter_mut().enumerate().take(usize::from(NO_REG)).skip(1) {
            if self.select.written >> register & 1 != 0 {
                *ready = (*ready).max(self.condition + mask) + MERGE;
            }
        }
    }
}
