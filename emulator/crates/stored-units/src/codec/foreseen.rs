//! Tables of what came after the same before.

use super::Result;
use crate::columns::{Coder, Column};

/// Pages whose place in memory is remembered; a power of two.
const PAGES: usize = 1 << 12;
/// Pages of lines whose successors are remembered; a power of two.
const WARM_PAGES: usize = 1 << 14;
/// Successors that are remembered of such a page.
const PAGE_SUCCESSORS: usize = 8;
/// Pages that are remembered which followed another page than before; fewer than a byte has values.
const RECENT_PAGES: usize = 250;
/// Lines of a page; a power of two.
const PAGE_LINES: u64 = 1 << (12 - super::LINE_BITS);
/// Counters of branches; a power of two.
const COUNTERS: usize = 1 << 16;

/// Places in memory of virtual pages that were seen last.
pub(super) struct Pages(Box<[(u64, u64); PAGES]>);

impl Pages {
    pub(super) fn new() -> Self {
        Self(Box::new([(u64::MAX, 0); PAGES]))
    }

    #[inline]
    pub(super) fn slot(&mut self, page: u64) -> &mut (u64, u64) {
        &mut self.0[page as usize % PAGES]
    }

    /// Passes on the physical page of a virtual one.
    #[inline]
    pub(super) fn code<C: Coder>(
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

/// The columns of lines that are accessed while nothing is timed, of data or of code.
pub(super) struct WarmColumns {
    pages: Column,
    recent: Column,
    lines: Column,
}

impl WarmColumns {
    pub(super) const DATA: Self =
        Self { pages: Column::WarmPages, recent: Column::RecentPages, lines: Column::WarmLines };
    pub(super) const CODE: Self = Self {
        pages: Column::WarmCodePages,
        recent: Column::RecentCodePages,
        lines: Column::WarmCodeLines,
    };
}

/// A line that is accessed while nothing is timed: virtual and physical number, and whether it is written.
#[derive(Clone, Copy, Default)]
pub(super) struct WarmLine {
    pub line: u64,
    pub physical: u64,
    pub stores: bool,
}

/// What is remembered of a page of lines.
#[derive(Clone, Copy)]
struct WarmPage {
    vpage: u64,
    /// Physical number of the page.
    page: u64,
    /// The line that was accessed last.
    line: u64,
    /// Virtual numbers of the pages that were accessed after it, the last one first.
    successors: [u64; PAGE_SUCCESSORS],
}

/// Lines that are accessed while nothing is timed. Programs go from a page mostly to one of few others, and there near the line of the last access.
pub(super) struct WarmLines {
    /// The page of the last access.
    last: u64,
    /// Physical number of the last page that was elsewhere.
    place: u64,
    pages: Box<[WarmPage; WARM_PAGES]>,
    /// Pages that were no successors, the last one first.
    recent: [u64; RECENT_PAGES],
    columns: WarmColumns,
}

impl WarmLines {
    pub(super) fn new(columns: WarmColumns) -> Self {
        let none = WarmPage { vpage: u64::MAX, page: 0, line: 0, successors: [0; PAGE_SUCCESSORS] };
        let pages = vec![none; WARM_PAGES].try_into();
        let pages = pages.unwrap_or_else(|_| unreachable!("as many as there are"));
        Self { last: 0, place: 0, pages, recent: [0; RECENT_PAGES], columns }
    }

    /// Passes on which line is accessed next.
    pub(super) fn next<C: Coder>(&mut self, coder: &mut C, next: WarmLine) -> Result<WarmLine> {
        let vpage = self.next_page(coder, next.line / PAGE_LINES)?;
        let slot = &mut self.pages[slot(vpage)];
        if slot.vpage != vpage {
            *slot = WarmPage { vpage, page: 0, line: 0, successors: [0; PAGE_SUCCESSORS] };
        }
        let page = next.physical / PAGE_LINES;
        if !coder.foreseen(Column::WarmPlaces, slot.page == page)? {
            slot.page = coder.near(Column::WarmPlaces, self.place, page)?;
            self.place = slot.page;
        }
        let distance = next.line.wrapping_sub(slot.line) % PAGE_LINES;
        let number = || distance as u8 | u8::from(next.stores) << STORE_BIT;
        let number = coder.byte(self.columns.lines, number)?;
        slot.line = slot.line.wrapping_add(number.into()) % PAGE_LINES;
        self.last = vpage;
        let whole = |page: u64| page.wrapping_mul(PAGE_LINES) | slot.line;
        Ok(WarmLine {
            line: whole(vpage),
            physical: whole(slot.page),
            stores: number >> STORE_BIT & 1 != 0,
        })
    }

    /// Passes on which page is accessed next.
    fn next_page<C: Coder>(&mut self, coder: &mut C, vpage: u64) -> Result<u64> {
        let successors = &mut self.pages[slot(self.last)].successors;
        let place = coder.byte(self.columns.pages, || find(successors, vpage))?;
        if let Some(found) = successors.get(usize::from(place)) {
            let found = *found;
            to_front(successors, place.into(), found);
            return Ok(found);
        }
        let recent = coder.byte(self.columns.recent, || find(&self.recent, vpage))?;
        let vpage = match self.recent.get(usize::from(recent)) {
            Some(found) => *found,
            None => coder.near(Column::OtherPages, self.last, vpage)?,
        };
        to_front(successors, PAGE_SUCCESSORS - 1, vpage);
        to_front(&mut self.recent, usize::from(recent).min(RECENT_PAGES - 1), vpage);
        Ok(vpage)
    }
}

/// Bit of a byte of lines that says whether the line is written.
const STORE_BIT: u32 = 6;

/// Returns where a page is remembered.
fn slot(vpage: u64) -> usize {
    // Code, heap, libraries and stack have other bits above, and often the same below.
    (vpage.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % WARM_PAGES
}

/// Returns where a page is in a list, or how many there are.
#[inline]
fn find(pages: &[u64], vpage: u64) -> u8 {
    pages.iter().position(|page| *page == vpage).unwrap_or(pages.len()) as u8
}

/// Puts a page first in a list, in place of the one at `from`.
#[inline]
fn to_front(pages: &mut [u64], from: usize, vpage: u64) {
    pages.copy_within(..from, 1);
    pages[0] = vpage;
}

/// Which way branches go, by the branch and those before it: counters of two bits.
pub(super) struct BranchDirections {
    counters: Box<[u8; COUNTERS]>,
    history: usize,
}

impl BranchDirections {
    pub(super) fn new() -> Self {
        Self {
            counters: vec![1; COUNTERS]
                .try_into()
                .unwrap_or_else(|_| unreachable!("as many as there are")),
            history: 0,
        }
    }

    /// Passes on whether the branch in the segment from `start` on is taken.
    #[inline]
    pub(super) fn next<C: Coder>(
        &mut self,
        coder: &mut C,
        start: u64,
        taken: bool,
    ) -> Result<bool> {
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
