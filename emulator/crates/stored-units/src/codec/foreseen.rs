//! Tables of what came after the same before.

use super::Result;
use crate::columns::{Coder, Column};

/// Pages whose place in memory is remembered; a power of two.
const PAGES: usize = 1 << 12;
/// Lines whose successor is remembered, and places of counters of branches; powers of two.
const LINES: usize = 1 << 14;
const COUNTERS: usize = 1 << 16;

/// Places in memory of virtual pages that were seen last.
pub struct Pages(Box<[(u64, u64); PAGES]>);

impl Pages {
    pub fn new() -> Self {
        Self(Box::new([(u64::MAX, 0); PAGES]))
    }

    #[inline]
    pub fn slot(&mut self, page: u64) -> &mut (u64, u64) {
        &mut self.0[page as usize % PAGES]
    }

    /// Passes on the physical page of a virtual one.
    #[inline]
    pub fn code<C: Coder>(
        &mut self,
        coder: &mut C,
        column: Column,
        vpage: u64,
        page: u64,
    ) -> Result<u64> {
        let slot = self.slot(vpage);
        if !coder.foreseen(column, *slot == (vpage, page))? {
            *slot = (vpage, coder.near(column, slot.1, page)?);
        }
        Ok(slot.1)
    }
}

/// Virtual lines, by which of them was accessed after which.
pub struct Successors {
    last: u64,
    next: Box<[u64; LINES]>,
}

impl Successors {
    pub fn new() -> Self {
        Self { last: 0, next: Box::new([0; LINES]) }
    }

    /// Passes on which line is accessed next.
    #[inline]
    pub fn next<C: Coder>(&mut self, coder: &mut C, column: Column, line: u64) -> Result<u64> {
        let next = &mut self.next[(self.last ^ self.last >> 14) as usize % LINES];
        if !coder.foreseen(column, *next == line)? {
            *next = coder.near(column, self.last, line)?;
        }
        self.last = *next;
        Ok(self.last)
    }
}

/// Which way branches go, by the branch and those before it: counters of two bits.
pub struct BranchDirections {
    counters: Box<[u8; COUNTERS]>,
    history: usize,
}

impl BranchDirections {
    pub fn new() -> Self {
        Self {
            counters: vec![1; COUNTERS]
                .try_into()
                .unwrap_or_else(|_| unreachable!("as many as there are")),
            history: 0,
        }
    }

    /// Passes on whether the branch in the segment from `start` on is taken.
    #[inline]
    pub fn next<C: Coder>(&mut self, coder: &mut C, start: u64, taken: bool) -> Result<bool> {
        let counter = &mut self.counters
            [(start as usize >> 1 ^ start as usize >> 15 ^ self.history << 4) % COUNTERS];
        let foreseen = *counter >= 2;
        let taken = foreseen == coder.foreseen(Column::Directions, taken == foreseen)?;
        *counter = match taken {
            true => 3.min(*counter + 1),
            false => counter.saturating_sub(1),
        };
        self.history = (self.history << 1 | usize::from(taken)) & 0xfff;
        Ok(taken)
    }
}
