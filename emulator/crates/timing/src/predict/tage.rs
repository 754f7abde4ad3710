//! TAGE (`ifu/bpd/tage.scala`): six tables of tagged counters, indexed by address and ever longer history.

use super::Place;
use crate::mem::Lfsr;

const TABLES: usize = 6;
/// Per table: log2 of the rows, bits of the tag (`BoomTageParams`; histories 2, 4, 8, 16, 32, 64).
const ROW_BITS: [u32; TABLES] = [7, 7, 8, 8, 7, 7];
const TAG_BITS: [u32; TABLES] = [7, 7, 8, 8, 9, 9];
const MAX_ROWS: usize = 256;
/// Branches after which one row's useful bits are cleared. (Hardware: every 2048 cycles.)
const CLEAR_EVERY: u32 = 512;

/// Row and tag in each table.
type Places = [(u32, u16); TABLES];
/// All tables, a bit each.
const ALL: u32 = (1 << TABLES) - 1;

/// A row: per bank and slot the tag (bits 0–8), a 3-bit counter, 2 useful bits, and a valid bit.
type Row = [u16; 8];
const COUNTER: u32 = 9;
const USEFUL: u32 = 12;
const VALID: u16 = 1 << 14;
const TAG: u16 = VALID | 0x1ff;

/// Both banks of all tables.
pub(super) struct Tage {
    tables: Box<[[Row; MAX_ROWS]; TABLES]>,
    random: Lfsr,
    trained: u32,
}

/// Row and tag of a branch in each table.
#[inline(always)]
fn index(block: u32, h: u64) -> Places {
    // Histories folded to the width of index and tag by exclusive or.
    let h32 = h & 0xffff_ffff;
    let h16 = (h ^ h >> 8) & 0xff;
    let fold32_7 = fold7((h32 ^ h32 >> 14 ^ h32 >> 28) & 0x3fff);
    let fold32_9 = fold9((h32 ^ h32 >> 18) & 0x3_ffff);
    let w = (h ^ h >> 35) & 0x7_ffff_ffff;
    let fold64_7 = fold7((w ^ w >> 14 ^ w >> 28) & 0x3fff);
    let w = (h ^ h >> 36) & 0xf_ffff_ffff;
    let fold64_9 = fold9((w ^ w >> 18) & 0x3_ffff);
    let index = [h & 3, h & 15, h & 255, h16, fold32_7, fold64_7];
    let tag = [h & 3, h & 15, h & 255, h16, fold32_9, fold64_9];
    let mut result = [(0, 0); TABLES];
    for t in 0..TABLES {
        let row = (block ^ index[t] as u32) & ((1 << ROW_BITS[t]) - 1);
        let tag = (block >> ROW_BITS[t] ^ tag[t] as u32) & ((1 << TAG_BITS[t]) - 1);
        result[t] = (row, tag as u16 | VALID);
    }
    result
}

#[inline(always)]
fn fold7(h: u64) -> u64 {
    (h ^ h >> 7) & 0x7f
}

#[inline(always)]
fn fold9(h: u64) -> u64 {
    (h ^ h >> 9) & 0x1ff
}

impl Tage {
    pub fn new() -> Self {
        let tables = vec![[[0; 8]; MAX_ROWS]; TABLES].into_boxed_slice();
        let tables = tables.try_into().unwrap_or_else(|_| unreachable!("six tables"));
        Self { tables, random: Lfsr::new(0x1357), trained: 0 }
    }

    #[inline(always)]
    fn entry(&mut self, table: usize, at: Place, places: &Places) -> &mut u16 {
        let row = places[table].0 as usize % MAX_ROWS;
        &mut self.tables[table % TABLES][row][(at.bank & 1) * 4 + (at.slot & 3)]
    }

    /// Predicts, given the base prediction, then trains with the outcome.
    #[inline]
    pub fn branch(&mut self, at: Place, history: u64, base: bool, taken: bool) -> bool {
        let places = index(at.block, history);
        let mut hits = 0u32;
        for t in 0..TABLES {
            hits |= u32::from(*self.entry(t, at, &places) & TAG == places[t].1) << t;
        }
        // The longest history that hits provides; a counter that is weak leaves it to the next longest.
        let (mut direction, mut longer) = (base, ALL);
        if hits != 0 {
            let t = 31 - hits.leading_zeros();
            let others = hits & !(1 << t);
            let alternative = match others {
                0 => base,
                _ => *self.entry(31 - others.leading_zeros() as usize, at, &places) >> COUNTER & 4 != 0,
            };
            let entry = self.entry(t as usize, at, &places);
            let counter = *entry >> COUNTER & 7;
            let weak = (counter == 3) | (counter == 4);
            direction = if weak { alternative } else { counter >= 4 };
            let moved = if taken { (counter + 1).min(7) } else { counter.saturating_sub(1) };
            let useful = *entry >> USEFUL & 3;
            let useful = match (alternative != direction, direction == taken) {
                (false, _) => useful,
                (true, false) => useful.saturating_sub(1),
                (true, true) => (useful + 1).min(3),
            };
            *entry = *entry & TAG | moved << COUNTER | useful << USEFUL;
            longer = ALL & !((2 << t) - 1);
        }
        if direction != taken {
            self.allocate(at, &places, hits, longer, taken);
        }
        self.trained += 1;
        if self.trained % CLEAR_EVERY == 0 {
            self.forget();
        }
        direction
    }

    /// After a misprediction: an entry in a longer table, or less use for those in the way.
    #[cold]
    #[inline(never)]
    fn allocate(&mut self, at: Place, places: &Places, hits: u32, longer: u32, taken: bool) {
        let mut vacant = 0;
        for t in 0..TABLES {
            vacant |= u32::from(*self.entry(t, at, places) >> USEFUL & 3 == 0) << t;
        }
        vacant &= longer & !hits;
        if vacant == 0 {
            for t in (0..TABLES).filter(|t| hits != 0 && longer >> t & 1 != 0) {
                *self.entry(t, at, places) &= !(3 << USEFUL);
            }
            return;
        }
        let masked = vacant & self.random.next();
        let t = if masked != 0 { masked } else { vacant }.trailing_zeros() as usize;
        let counter: u16 = if taken { 4 } else { 3 };
        *self.entry(t, at, places) = places[t].1 | counter << COUNTER;
    }

    /// Clears one of the useful bits of one row of every table, in turn.
    #[cold]
    fn forget(&mut self) {
        let step = self.trained / CLEAR_EVERY;
        let row = step as usize % MAX_ROWS;
        let bit = 1 << (USEFUL + (step / MAX_ROWS as u32 & 1));
        for table in self.tables.iter_mut() {
            for entry in &mut table[row] {
                *entry &= !bit;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A branch that is taken every `period` times; how often the last `count` of 4000 are wrong.
    fn wrong(period: u32) -> u32 {
        let mut tage = Tage::new();
        let at = Place::new(0x8000_0104);
        let (mut history, mut wrong) = (0u64, 0);
        for i in 0..4000 {
            let taken = i % period == 0;
            wrong += u32::from(tage.branch(at, history, false, taken) != taken && i >= 3000);
            history = history << 1 | u64::from(taken);
        }
        wrong
    }

    #[test]
    fn learns_patterns_within_its_history() {
        assert_eq!(wrong(2), 0);
        assert!(wrong(7) < 10);
        assert!(wrong(30) < 20);
    }

    #[test]
    fn folding_is_the_exclusive_or_of_chunks() {
        let slow = |h: u64, length: u32, width: u32| {
            (0..length).fold(0u64, |f, i| f ^ (h >> i & 1) << (i % width))
        };
        let mut random = Lfsr::new(99);
        for _ in 0..200 {
            let h = (0..4).fold(0, |h, _| h << 16 | u64::from(random.next() ^ random.next() << 7) & 0xffff);
            let got = index(0, h);
            for (t, length) in [2, 4, 8, 16, 32, 64].into_iter().enumerate() {
                assert_eq!(u64::from(got[t].0), slow(h, length, ROW_BITS[t]), "row {t}");
                let tag = u64::from(got[t].1 & !VALID);
                assert_eq!(tag, slow(h, length, TAG_BITS[t]), "tag {t}");
            }
        }
    }
}
