//! Sums by a key of many values, of which few are in use at a time.

/// Number of low bits of a key that do not choose its line. The keys of neighbouring instructions share a line, which is then in the host's caches
/// when the neighbour is counted.
const LINE_BITS: u32 = 2;
const LINE: usize = 1 << LINE_BITS;
/// Log2 of the lines of an empty table.
const FIRST_BITS: u32 = 10;
/// Number of amounts that are gathered before they are added. The table is larger than the host's caches; many cache misses at once overlap, and cost
/// little more than one.
const FRESH: usize = 64;
/// 2^64 over the golden ratio: spreads what differs in a few bits over the upper ones.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Keys and sums; a sum of 0 marks a free place. A line is as long as a cache line of most hosts.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Line([(u64, u64); LINE]);

/// Sums per key: a hash table, half full at most. A key whose place is taken goes to another place in its line, or else to the next line.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// The table's lines; their number is a power of two, `1 << bits`.
    lines: Box<[Line]>,
    bits: u32,
    used: usize,
    /// Keys and amounts that were added and are not in `lines` yet: the first `waiting` ones.
    fresh: [(u64, u64); FRESH],
    waiting: usize,
}

impl Default for Tally {
    fn default() -> Self {
        Self::with_bits(FIRST_BITS)
    }
}

impl Tally {
    fn with_bits(bits: u32) -> Self {
        Self {
            lines: vec![Line::default(); 1 << bits].into(),
            bits,
            used: 0,
            fresh: [(0, 0); FRESH],
            waiting: 0,
        }
    }

    /// Adds to the sum of `key`.
    #[inline(always)]
    pub(crate) fn add(&mut self, key: u64, amount: u64) {
        self.fresh[self.waiting % FRESH] = (key, amount);
        self.waiting += 1;
        if self.waiting == FRESH {
            self.note_fresh();
        }
    }

    #[inline(never)]
    fn note_fresh(&mut self) {
        for at in 0..std::mem::take(&mut self.waiting) {
            let (key, amount) = self.fresh[at];
            self.note(key, amount);
        }
    }

    #[inline(always)]
    fn note(&mut self, key: u64, amount: u64) {
        let line = self.home(key);
        let line = &mut self.lines[line].0;
        // The host's branch predictor could hardly foresee which of the places it is.
        let at = (1..LINE)
            .fold(0, |at, place| std::hint::select_unpredictable(line[place].0 == key, place, at));
        if line[at].0 == key && line[at].1 != 0 {
            line[at].1 += amount;
        } else {
            self.note_elsewhere(key, amount);
        }
    }

    /// The line in which a key lies if there is room.
    #[inline(always)]
    fn home(&self, key: u64) -> usize {
        ((key >> LINE_BITS).wrapping_mul(SPREAD) >> (64 - self.bits)) as usize
    }

    #[inline(never)]
    fn note_elsewhere(&mut self, key: u64, amount: u64) {
        if amount == 0 {
            return;
        }
        let mut line = self.home(key);
        loop {
            for step in 0..LINE {
                let place = &mut self.lines[line].0[(key as usize % LINE) ^ step];
                if place.1 == 0 {
                    *place = (key, amount);
                    self.used += 1;
                    return self.make_room();
                }
                if place.0 == key {
                    place.1 += amount;
                    return;
                }
            }
            line = (line + 1) % self.lines.len();
        }
    }

    fn make_room(&mut self) {
        if self.used <= self.lines.len() * LINE / 2 {
            return;
        }
        let mut larger = Self::with_bits(self.bits + 1);
        for (key, amount) in self.sums() {
            larger.note(key, amount);
        }
        (self.lines, self.bits) = (larger.lines, larger.bits);
    }

    /// The sums in the table that are not zero, in no order.
    fn sums(&self) -> impl Iterator<Item = (u64, u64)> {
        let places = self.lines.iter().flat_map(|line| line.0);
        places.filter(|(_, amount)| *amount != 0)
    }

    /// Returns the number of sums in the table.
    pub(crate) fn len(&self) -> usize {
        self.used
    }

    /// Takes out the sums whose keys are wanted, in no order.
    pub(crate) fn take(&mut self, is_wanted: impl Fn(u64) -> bool) -> Vec<(u64, u64)> {
        self.note_fresh();
        let taken: Vec<_> = self.sums().filter(|(key, _)| is_wanted(*key)).collect();
        // Large enough from the start: the order is that of the hash, which would crowd the front of a smaller one.
        let lines = (self.used - taken.len()) / (LINE / 2) + 1;
        let mut rest = Self::with_bits((lines.ilog2() + 1).max(FIRST_BITS));
        for (key, amount) in self.sums().filter(|(key, _)| !is_wanted(*key)) {
            rest.note(key, amount);
        }
        *self = rest;
        taken
    }

    /// The sums that are not zero, in no order.
    pub(crate) fn into_sums(mut self) -> impl Iterator<Item = (u64, u64)> {
        self.note_fresh();
        let places = self.lines.into_iter().flat_map(|line| line.0);
        places.filter(|(_, amount)| *amount != 0)
    }

    /// Returns the sums that are not zero, by ascending key.
    pub(crate) fn finish(self) -> Vec<(u64, u64)> {
        let mut sums = Vec::with_capacity(self.used + self.waiting);
        sums.extend(self.into_sums());
        sums.sort_unstable();
        sums
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn sums_are_those_of_a_map() {
        let mut tally = Tally::default();
        let mut expected = BTreeMap::new();
        let mut state = 1u64;
        for n in 0..200_000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Neighbours, and the same low bits far apart; more of them than the first table holds.
            let key = ((state >> 40) % 20_000) | ((state >> 60) << 37);
            tally.add(key, n % 3);
            *expected.entry(key).or_insert(0) += n % 3;
        }
        expected.retain(|_, sum| *sum > 0);
        assert!(expected.len() > LINE << FIRST_BITS);
        assert_eq!(tally.finish(), Vec::from_iter(expected));
    }

    #[test]
    fn the_key_zero_and_empty_sums() {
        let mut tally = Tally::default();
        tally.add(0, 0);
        tally.add(7, 0);
        tally.add(0, 1);
        tally.add(0, 2);
        assert_eq!(tally.finish(), [(0, 3)]);
    }
}
