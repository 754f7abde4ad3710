//! Counts per instruction in many tables, one of which is in use at a time.

use std::ops::Range;

use commit_trace::CommitRecord;

use crate::paged::{PAGE_BITS, Paged};

/// The table in use is one step from an instruction's number to its count: what nearly every instruction of a stream adds
/// to must cost little, and where code jumps is what a host foresees worst.
#[derive(Debug)]
pub(crate) struct Tables<T> {
    tables: Vec<Paged<T>>,
    /// What is counted now: always a valid index after [`Tables::select`].
    current: usize,
    /// Per page of the current table: where its entries lie, less the number of its first instruction. [`UNKNOWN`]: not
    /// looked up yet.
    places: Vec<usize>,
    /// The pages that were.
    known: Vec<u32>,
}

/// With any instruction's number this is beyond all entries.
const UNKNOWN: usize = usize::MAX / 2;

impl<T> Default for Tables<T> {
    fn default() -> Self {
        Self {
            tables: Vec::new(),
            current: 0,
            places: Vec::new(),
            known: Vec::new(),
        }
    }
}

impl Tables<u64> {
    /// Adds to the counts of the records' instructions: to each the units at its index.
    #[inline(always)]
    pub(crate) fn add(&mut self, records: &[CommitRecord], units: &[u16]) {
        let len = records.len().min(units.len());
        let (records, units) = (&records[..len], &units[..len]);
        let inst = |at: usize| records[at].inst.0;
        self.each(len, inst, |at, count| *count += u64::from(units[at]));
    }
}

impl<T: Copy + Default + PartialEq> Tables<T> {
    /// Counts in the table of this index from here on, which is made if need be.
    pub(crate) fn select(&mut self, index: usize) {
        if self.tables.len() <= index {
            self.tables.resize_with(index + 1, Paged::default);
        }
        if self.current != index {
            self.forget();
            self.current = index;
        }
    }

    fn forget(&mut self) {
        for page in self.known.drain(..) {
            self.places[page as usize] = UNKNOWN;
        }
    }

    /// Calls a function with each index up to `len` and the entry of the instruction that it stands for.
    #[inline(always)]
    pub(crate) fn each(
        &mut self,
        len: usize,
        inst: impl Fn(usize) -> u32,
        mut entry: impl FnMut(usize, &mut T),
    ) {
        let mut at = 0;
        loop {
            let entries = self.tables[self.current].entries_mut();
            at = each_known(&self.places, entries, at..len, &inst, &mut entry);
            if at == len {
                return;
            }
            entry(at, self.look_up(inst(at)));
            at += 1;
        }
    }

    /// The entry of an instruction.
    #[inline(always)]
    pub(crate) fn of(&mut self, inst: u32) -> &mut T {
        let place = self.places.get((inst >> PAGE_BITS) as usize);
        let place = place.map_or(UNKNOWN, |place| place.wrapping_add(inst as usize));
        if place >= self.tables[self.current].entries_mut().len() {
            return self.look_up(inst);
        }
        &mut self.tables[self.current].entries_mut()[place]
    }

    #[cold]
    #[inline(never)]
    fn look_up(&mut self, inst: u32) -> &mut T {
        let page = (inst >> PAGE_BITS) as usize;
        if self.places.len() <= page {
            self.places.resize(page + 1, UNKNOWN);
        }
        let table = &mut self.tables[self.current];
        let first = table.first_entry(page as u32);
        self.places[page] = first.wrapping_sub(page << PAGE_BITS);
        self.known.push(page as u32);
        table.entry(inst)
    }

    /// How many tables there are.
    pub(crate) fn len(&self) -> usize {
        self.tables.len()
    }

    /// Takes what the table of this index has, which is empty from here on.
    pub(crate) fn take(&mut self, index: usize) -> Paged<T> {
        if self.current == index {
            self.forget();
        }
        { self.tables.get_mut(index) }
            .map(std::mem::take)
            .unwrap_or_default()
    }
}

/// Up to the first instruction whose place is not known: returns its index, or the end.
#[inline(always)]
fn each_known<T>(
    places: &[usize],
    entries: &mut [T],
    indices: Range<usize>,
    inst: impl Fn(usize) -> u32,
    mut entry: impl FnMut(usize, &mut T),
) -> usize {
    let end = indices.end;
    for at in indices {
        let inst = inst(at) as usize;
        let Some(place) = places.get(inst >> PAGE_BITS) else {
            return at;
        };
        let Some(known) = entries.get_mut(place.wrapping_add(inst)) else {
            return at;
        };
        entry(at, known);
    }
    end
}

#[cfg(test)]
mod tests {
    use commit_trace::InstId;

    use super::*;

    #[test]
    fn counts_are_those_of_their_table() {
        const FAR: u32 = u32::MAX >> 8;
        let record = |inst: u32| CommitRecord::from_packed(InstId(inst), 1, 0, 0);
        let mut tables = Tables::<u64>::default();
        tables.select(0);
        tables.add(&[3, 4, 1000, 3].map(record), &[1, 2, 5, 1]);
        tables.select(2);
        tables.add(&[3, FAR].map(record), &[7, 1]);
        tables.select(2);
        tables.select(0);
        tables.add(&[1000, 20, 3].map(record), &[1, 0, 1]);
        tables.add(&[], &[]);
        *tables.of(3) += 4;
        *tables.of(77) += 8;
        let mut take = |index: usize| {
            let table = tables.take(index);
            let counts = table.iter().map(|(inst, count)| (inst, *count));
            counts.collect::<Vec<_>>()
        };
        assert_eq!(take(0), [(3, 7), (4, 2), (77, 8), (1000, 6)]);
        assert_eq!(take(1), []);
        assert_eq!(take(2), [(3, 7), (FAR, 1)]);
        assert_eq!(take(3), []);
        tables.add(&[1000].map(record), &[2]);
        assert_eq!(tables.len(), 3);
        assert_eq!([3, 4, 1000].map(|inst| *tables.of(inst)), [0, 0, 2]);
    }
}
