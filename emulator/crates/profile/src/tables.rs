//! Counts per instruction in many tables, one of which is in use at a time.

use commit_trace::CommitRecord;

use crate::paged::{PAGE_BITS, Paged};

/// The table in use is one step from an instruction's number to its count: what nearly every instruction of a stream adds
/// to must cost little, and where code jumps is what a host foresees worst.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    tables: Vec<Paged<u64>>,
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

impl Tables {
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

    /// Adds to the counts of the records' instructions: to each the units at its index.
    #[inline(always)]
    pub(crate) fn add(&mut self, mut records: &[CommitRecord], mut units: &[u16]) {
        loop {
            let counts = self.tables[self.current].entries_mut();
            let done = add_known(&self.places, counts, records, units);
            let (Some(record), Some(more)) = (records.get(done), units.get(done)) else {
                return;
            };
            *self.look_up(record.inst.0) += u64::from(*more);
            (records, units) = (&records[done + 1..], &units[done + 1..]);
        }
    }

    /// The count of an instruction.
    #[inline(always)]
    pub(crate) fn of(&mut self, inst: u32) -> &mut u64 {
        let place = self.places.get((inst >> PAGE_BITS) as usize);
        let place = place.map_or(UNKNOWN, |place| place.wrapping_add(inst as usize));
        if place >= self.tables[self.current].entries_mut().len() {
            return self.look_up(inst);
        }
        &mut self.tables[self.current].entries_mut()[place]
    }

    #[cold]
    #[inline(never)]
    fn look_up(&mut self, inst: u32) -> &mut u64 {
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
    pub(crate) fn take(&mut self, index: usize) -> Paged<u64> {
        if self.current == index {
            self.forget();
        }
        { self.tables.get_mut(index) }
            .map(std::mem::take)
            .unwrap_or_default()
    }
}

/// Adds up to the first instruction whose place is not known, and returns how many come before it.
#[inline(always)]
fn add_known(
    places: &[usize],
    counts: &mut [u64],
    records: &[CommitRecord],
    units: &[u16],
) -> usize {
    let len = records.len().min(units.len());
    let (records, units) = (&records[..len], &units[..len]);
    for at in 0..len {
        let inst = records[at].inst.0 as usize;
        let Some(place) = places.get(inst >> PAGE_BITS) else {
            return at;
        };
        let Some(count) = counts.get_mut(place.wrapping_add(inst)) else {
            return at;
        };
        *count += u64::from(units[at]);
    }
    len
}

#[cfg(test)]
mod tests {
    use commit_trace::InstId;

    use super::*;

    #[test]
    fn counts_are_those_of_their_table() {
        const FAR: u32 = u32::MAX >> 8;
        let record = |inst: u32| CommitRecord::from_packed(InstId(inst), 1, 0, 0);
        let mut tables = Tables::default();
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
