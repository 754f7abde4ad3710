//! Loops within which registers stay in host registers from block to block, and need not be put into their places in
//! the hart before something leaves the loop.

use crate::discover::Block;
use crate::discover::writes;

/// Instructions of such a loop at most. Larger ones keep more than the host has registers for, and each way out of
/// them has to store all of that.
const MAX_INSTRUCTIONS: usize = 16;

/// What is known of a block from its loop.
#[derive(Clone, Copy, Default)]
pub(crate) struct BlockInLoop {
    /// Number of its loop.
    loop_number: Option<usize>,
    /// Registers that may not be in their places when it begins.
    pub dirty: u64,
    /// Code goes back to it, or enters the region here: every way around a loop leads over such a block.
    pub is_head: bool,
}

impl BlockInLoop {
    /// True if registers stay where they are on the way to a block at `to`.
    pub(crate) fn keeps(self, to: Self) -> bool {
        self.loop_number.is_some() && self.loop_number == to.loop_number
    }
}

/// The places of blocks, which are in the order of their addresses but for the first.
pub(crate) fn block_loops(blocks: &[Block]) -> Vec<BlockInLoop> {
    let mut block_loops = vec![BlockInLoop::default(); blocks.len()];
    // Loops are mostly stretches of code from where their last branch goes to; what else may be in such a stretch, or
    // is not, makes no difference but to speed.
    let mut stretches = Vec::new();
    block_loops[0].is_head = true;
    for block in blocks {
        for first in block.successors() {
            if let Ok(first) = usize::try_from(first)
                && first <= block.start
            {
                let within = |b: &&Block| (first..=block.start).contains(&b.start);
                let length: usize = blocks.iter().filter(within).map(Block::len).sum();
                stretches.push((length, first, block.start));
                for (block, block_loop) in blocks.iter().zip(&mut block_loops) {
                    block_loop.is_head |= block.start == first;
                }
            }
        }
    }
    stretches.retain(|&(length, ..)| length <= MAX_INSTRUCTIONS);
    stretches.sort_unstable_by(|a, b| b.cmp(a));
    for (number, (_, first, last)) in stretches.into_iter().enumerate() {
        for (block, block_loop) in blocks.iter().zip(&mut block_loops) {
            if (first..=last).contains(&block.start) && block_loop.loop_number.is_none() {
                block_loop.loop_number = Some(number);
            }
        }
    }
    spread(blocks, &mut block_loops);
    block_loops
}

/// What blocks write is dirty in those that they go to within the loop.
fn spread(blocks: &[Block], block_loops: &mut [BlockInLoop]) {
    let index_of = |start: isize| blocks.iter().position(|b| b.start as isize == start);
    let edges: Vec<(usize, usize)> = blocks
        .iter()
        .enumerate()
        .flat_map(|(from, block)| block.successors().map(move |to| (from, to)))
        .filter_map(|(from, to)| Some((from, index_of(to)?)))
        .filter(|&(from, to)| block_loops[from].keeps(block_loops[to]))
        .collect();
    let written: Vec<u64> = blocks.iter().map(written).collect();
    let mut changed = true;
    while changed {
        changed = false;
        for &(from, to) in &edges {
            let dirty = block_loops[to].dirty | block_loops[from].dirty | written[from];
            changed |= dirty != block_loops[to].dirty;
            block_loops[to].dirty = dirty;
        }
    }
}

fn written(block: &Block) -> u64 {
    let rds = block.instructions().map(|placed| placed.inst.rd);
    rds.filter(|&rd| writes(rd)).fold(0, |set, rd| set | 1 << rd)
}
