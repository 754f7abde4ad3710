//! Which instructions are translated together: blocks of one page that reach each other by branches, direct jumps
//! and falling through, as far as they were executed before.

use std::collections::{BTreeSet, HashSet};

use isa::{DecodedInst, InstClass, NOWHERE, Op, Reg, SLOTS, Slot};

use crate::CodeKind;

/// Most instructions of a region.
const MAX_INSTRUCTIONS: usize = 256;
/// Most instructions of a region of runs. Runs end anywhere, so that many regions have much in common.
const MAX_RUN_INSTRUCTIONS: usize = 64;

/// An instruction and the slot where it stands.
#[derive(Clone, Copy)]
pub(crate) struct PlacedInst {
    pub index: usize,
    pub inst: DecodedInst,
}

impl PlacedInst {
    /// Slot of the instruction that follows.
    pub(crate) fn following(self) -> usize {
        self.index + usize::from(self.inst.len) / 2
    }

    /// Slot that it branches or jumps to, which may lie in another page.
    pub(crate) fn target(self) -> isize {
        self.index as isize + self.inst.imm as isize / 2
    }
}

/// How a block ends.
#[derive(Clone, Copy)]
pub(crate) enum End {
    Branch(PlacedInst),
    Jal(PlacedInst),
    Jalr(PlacedInst),
    /// The block goes on with the block at this slot.
    Next(usize),
    /// The instruction at this slot is for the interpreter.
    Leave(usize),
}

/// Instructions that are executed one after the other.
pub(crate) struct Block {
    pub start: usize,
    pub body: Vec<PlacedInst>,
    pub end: End,
}

impl Block {
    /// Instructions in it.
    pub(crate) fn len(&self) -> usize {
        let jump = matches!(self.end, End::Branch(_) | End::Jal(_) | End::Jalr(_));
        self.body.len() + usize::from(jump)
    }

    /// The instructions in it, the jump at its end too.
    pub(crate) fn instructions(&self) -> impl Iterator<Item = PlacedInst> {
        let jump = match self.end {
            End::Branch(placed) | End::Jal(placed) | End::Jalr(placed) => Some(placed),
            End::Next(_) | End::Leave(_) => None,
        };
        self.body.iter().copied().chain(jump)
    }

    /// Slots that it goes on at, as far as they are known; they may lie in another page.
    pub(crate) fn successors(&self) -> impl Iterator<Item = isize> + use<> {
        let slots = match self.end {
            End::Branch(placed) => [Some(placed.target()), Some(placed.following() as isize)],
            End::Jal(placed) => [Some(placed.target()), None],
            End::Next(index) => [Some(index as isize), None],
            End::Jalr(_) | End::Leave(_) => [None; 2],
        };
        slots.into_iter().flatten()
    }
}

/// The region of a page that is entered at slot `entry`; its first block starts there. Empty if the instruction is
/// for the interpreter, or the blocks are too long.
pub(crate) fn discover(slots: &[Slot; SLOTS], entry: usize, kind: CodeKind) -> Vec<Block> {
    let most = match kind {
        CodeKind::Untimed | CodeKind::Warming | CodeKind::Logged => MAX_INSTRUCTIONS,
        CodeKind::Runs => MAX_RUN_INSTRUCTIONS,
    };
    let mut leaders = BTreeSet::from([entry]);
    let mut reached = HashSet::new();
    let mut open = vec![entry];
    while let Some(leader) = open.pop() {
        let mut index = leader;
        while let Some(placed) = translatable(slots, index, kind)
            && reached.len() < most
            && reached.insert(index)
        {
            let class = placed.inst.class;
            let target = usize::try_from(placed.target()).unwrap_or(SLOTS);
            let next = match class {
                InstClass::Branch => [target, placed.following()],
                InstClass::Jal => [target, SLOTS],
                InstClass::Jalr => [SLOTS; 2],
                _ => {
                    index = placed.following();
                    continue;
                }
            };
            for next in next {
                if translatable(slots, next, kind).is_some() && leaders.insert(next) {
                    open.push(next);
                }
            }
            break;
        }
    }
    leaders.retain(|leader| reached.contains(leader));
    let rest: Vec<usize> = leaders.iter().copied().filter(|&l| l != entry).collect();
    let starts = leaders.contains(&entry).then_some(entry);
    let starts = starts.into_iter().chain(rest);
    let blocks: Vec<Block> =
        starts.map(|start| block(slots, start, kind, &leaders, &reached)).collect();
    // Blocks that decode the same bytes from different places can have much in common. A region that does not fit
    // between two checks of the interpreter would never get past its own first check.
    let length: usize = blocks.iter().map(Block::len).sum();
    if length > SLOTS { Vec::new() } else { blocks }
}

fn block(
    slots: &[Slot; SLOTS],
    start: usize,
    kind: CodeKind,
    leaders: &BTreeSet<usize>,
    reached: &HashSet<usize>,
) -> Block {
    let mut body = Vec::new();
    let mut index = start;
    let end = loop {
        if index != start && leaders.contains(&index) {
            break End::Next(index);
        }
        let Some(placed) = translatable(slots, index, kind).filter(|_| reached.contains(&index))
        else {
            break End::Leave(index);
        };
        match placed.inst.class {
            InstClass::Branch => break End::Branch(placed),
            InstClass::Jal => break End::Jal(placed),
            InstClass::Jalr => break End::Jalr(placed),
            _ => body.push(placed),
        }
        index = placed.following();
    };
    Block { start, body, end }
}

/// The instruction at a slot, unless the interpreter has to execute it: it was not decoded, has effects beyond
/// registers and memory, writes two registers, or cannot be part of a run.
fn translatable(slots: &[Slot; SLOTS], index: usize, kind: CodeKind) -> Option<PlacedInst> {
    let inst = slots.get(index)?.get();
    let atomic = matches!(
        inst.class,
        InstClass::Amo | InstClass::LoadReserved | InstClass::StoreConditional
    );
    let plain = !inst.class.serialises() && inst.op != Op::Illegal;
    let untimed = (atomic && inst.op != Op::AmocasQ) || inst.op == Op::Fence;
    let fits = inst.len != 0 && (plain || (untimed && kind != CodeKind::Runs));
    fits.then_some(PlacedInst { index, inst })
}

/// True if an instruction writes the register.
pub(crate) fn writes(reg: Reg) -> bool {
    (1..NOWHERE).contains(&reg)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Branches into the middle of as many instructions of a straight line; the second half of each is one of its
    /// own, so that every block there is has the rest of the line.
    fn overlapping(branches: usize, line: usize) -> Vec<Block> {
        const BEQ: u32 = 0x63;
        /// `lui x10, 0x5050`; its second half is `c.addi x10, 1`.
        const LUI: u32 = 0x0505_0537;
        let slots: [Slot; SLOTS] = std::array::from_fn(|_| Slot::empty());
        let mut slots = slots;
        for n in 0..branches {
            let distance = 4 * branches as u32 + 2;
            let imm = (distance >> 5 & 63) << 25 | (distance >> 1 & 15) << 8;
            slots[2 * n] = Slot::new(isa::decode(BEQ | imm));
            assert_eq!(slots[2 * n].imm(), distance.into());
        }
        for n in 0..line {
            let at = 2 * (branches + n);
            slots[at] = Slot::new(isa::decode(LUI));
            slots[at + 1] = Slot::new(isa::decode(LUI >> 16));
        }
        discover(&slots, 0, CodeKind::Untimed)
    }

    #[test]
    fn regions_are_not_longer_than_a_page_has_slots() {
        let length = |blocks: &[Block]| blocks.iter().map(Block::len).sum::<usize>();
        // The branches, the line, and of each target itself and what follows it.
        let expected = |branches: usize, line: usize| {
            let targets = (0..branches).map(|n| line - n);
            branches + line + targets.sum::<usize>()
        };
        assert_eq!(length(&overlapping(10, 150)), expected(10, 150));
        assert_eq!(expected(13, 150), 2035);
        assert_eq!(length(&overlapping(13, 150)), 2035);
        assert_eq!(expected(14, 150), 2173);
        assert_eq!(length(&overlapping(14, 150)), 0);
    }
}
