//! Assembles a block: fills in the distances of forward branches and jumps.

use crate::layout::*;

/// An instruction of a block before assembly. The last number of a branch or jump is its distance: how many items
/// after the next one its target is.
pub(super) enum Item {
    /// Machine code without a target.
    Word(u32),
    /// A conditional branch, its immediate 0.
    Branch(u32, usize),
    /// `jal` with this destination register.
    Jump(u8, usize),
    /// `auipc` to the first register and `jalr` through it, with the second register as destination.
    Indirect(u8, u8, usize),
}

/// Bytes of an instruction.
pub(super) fn length(raw: u32) -> u64 {
    if raw & 3 == 3 { 4 } else { 2 }
}

/// Machine code of the items, followed by the `ecall` and [`MAGIC`] that end a block.
pub(super) fn link(items: &[Item]) -> Vec<u32> {
    let length_of = |item: &Item| match *item {
        Item::Word(raw) => length(raw),
        Item::Indirect(..) => 8,
        _ => 4,
    };
    // Offset of each item, and of the end, in bytes.
    let mut starts = vec![0];
    for item in items {
        starts.push(starts[starts.len() - 1] + length_of(item));
    }
    let distance = |n: usize, ahead: usize| {
        let to = (n + 1 + ahead).min(items.len());
        (starts[to] - starts[n]) as u32
    };
    let mut insts = Vec::new();
    for (n, item) in items.iter().enumerate() {
        match *item {
            Item::Word(raw) => insts.push(raw),
            Item::Branch(raw, ahead) => {
                let d = distance(n, ahead);
                let imm = (d >> 12 & 1) << 31 | (d >> 5 & 63) << 25 | (d >> 1 & 15) << 8;
                insts.push(raw | imm | (d >> 11 & 1) << 7);
            }
            Item::Jump(rd, ahead) => {
                let d = distance(n, ahead);
                let imm = (d >> 1 & 0x3ff) << 21 | (d >> 11 & 1) << 20 | (d >> 12 & 0xff) << 12;
                insts.push(imm | u32::from(rd) << 7 | 0x6f);
            }
            Item::Indirect(via, rd, ahead) => {
                let via = u32::from(via);
                insts.push(via << 7 | 0x17);
                insts.push(distance(n, ahead) << 20 | via << 15 | u32::from(rd) << 7 | 0x67);
            }
        }
    }
    insts.extend([0x0000_0073, MAGIC]);
    insts
}
