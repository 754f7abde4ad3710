//! Counts per instruction in many tables, one of which is in use at a time.

use commit_trace::{CommitRecord, InstId};

use crate::paged::{PAGE_BITS, Paged};

/// The table in use is one step from an instruction's number to its count: what nearly every instruction of a stream adds
/// to must cost little, and where code jumps is what a host foresees worst.
#[derive(Clone, Debug)]
pub(crate) struct Tables<T> {
    tables: Vec<Paged<T>>,
    /// What is counted now: always a valid index after [`Tables::select`].
    current: usize,
    /// By page of the current table: index of the page's entries less the number of its first instruction, so that an
    /// instruction's number is all that is added. [`UNKNOWN`]: not looked up yet.
    places: Vec<usize>,
    /// Pages that were looked up in the current table.
    known: Vec<u32>,
}

/// Place of a page that was not looked up: with any instruction's number added, it is beyond all entries.
const UNKNOWN: usize = usize::MAX / 2;

impl<T> Default for Tables<T> {
    fn default() -> Self {
        Self { tables: Vec::new(), current: 0, places: Vec::new(), known: Vec::new() }
    }
}

impl Tables<u64> {
    /// Adds to the counts of the records' instructions: to each the units at its index, and so much `more`. Returns the
    /// bits that are set in any of those counts.
    #[inline(always)]
    pub(crate) fn add(&mut self, records: &[CommitRecord], units: &[u16], more: u64) -> u64 {
        let mut bits = 0;
        let counts = records.iter().zip(units);
        let counts = counts.map(|(record, units)| (record.inst, more + u64::from(*units)));
        self.each(counts, |count, units| {
            *count += units;
            bits |= *count;
        });
        bits
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

    /// Calls a function with the entry of each instruction, and with what comes with that.
    #[inline(always)]
    pub(crate) fn each<V: Copy>(
        &mut self,
        mut values: impl Iterator<Item = (InstId, V)>,
        mut entry: impl FnMut(&mut T, V),
    ) {
        loop {
            let entries = self.tables[self.current].entries_mut();
            let unknown = values.find(|(inst, value)| {
                let inst = inst.0 as usize;
                let Some(place) = self.places.get(inst >> PAGE_BITS) else {
                    return true;
                };
                let Some(known) = entries.get_mut(place.wrapping_add(inst)) else {
                    return true;
                };
                entry(known, *value);
                false
            });
            let Some((inst, value)) = unknown else {
                return;
            };
            entry(self.look_up(inst.0), value);
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

    /// True if no entry of any table was ever made.
    pub(crate) fn is_empty(&self) -> bool {
        self.tables.iter().all(Paged::is_empty)
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
        self.tables.get_mut(index).map(std::mem::take).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_their_table() {
        const FAR: u32 = u32::MAX >> 8;
        let record = |inst: u32| CommitRecord::from_packed(InstId(inst), 1, 0, 0);
        let mut tables = Tables::<u64>::default();
        tables.select(0);
        tables.add(&[3, 4, 1000, 3].map(record), &[1, 2, 5, 1], 0);
        tables.select(2);
        tables.add(&[3, FAR].map(record), &[7, 1], 0);
        tables.select(2);
        tables.select(0);
        tables.add(&[1000, 20, 3].map(record), &[1, 0, 1], 0);
        tables.add(&[], &[], 7);
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
        assert_eq!(tables.add(&[1000].map(record), &[2], 4), 6);
        assert_eq!(tables.len(), 3);
        assert_eq!([3, 4, 1000].map(|inst| *tables.of(inst)), [0, 0, 6]);
    }
}
