//! TAGE (`ifu/bpd/tage.scala`): six tables of tagged counters, indexed by address and ever longer history.

use super::{COLUMNS, FetchSlot};
use crate::mem::Lfsr;

pub(super) const TABLES: usize = 6;
/// Per table: log2 of the rows, bits of the tag (`BoomTageParams`; histories 2, 4, 8, 16, 32, 64).
const ROW_BITS: [u32; TABLES] = [7, 7, 8, 8, 7, 7];
const TAG_BITS: [u32; TABLES] = [7, 7, 8, 8, 9, 9];
const MAX_ROWS: usize = 256;
/// Branches after which one row's useful bits are cleared. (Hardware: every 2048 cycles.)
pub(super) const CLEAR_EVERY: u32 = 512;

/// All tables, a bit each.
const ALL: u32 = (1 << TABLES) - 1;
/// Entries of one table: rows by banks by slots.
pub(super) const ENTRIES: usize = MAX_ROWS * COLUMNS;
/// Room for eight tables, so that an index needs no check.
const ALL_ENTRIES: usize = 8 * ENTRIES;

pub(super) const COUNTER_SHIFT: u32 = 9;
pub(super) const USEFUL_SHIFT: u32 = 12;
// An entry: the tag in bits 0–8, a 3-bit counter, 2 useful bits, and a valid bit.
const VALID: u16 = 1 << 14;
pub(super) const TAG_MASK: u16 = VALID | 0x1ff;

/// Branches that are told apart, by a hash of their place, to know which tables may hold an entry of theirs.
const BRANCHES: usize = 4096;
/// Branches after which it is worked out anew which tables may hold an entry, since entries are replaced.
const RENEW_EVERY: u32 = 1 << 15;

/// TAGE, both banks of all tables.
///
/// Most branches never had an entry, or have them in one or two tables. A bit per branch and table tells where to look.
/// (Not modelled: that the entry of one branch answers for another whose tag is the same.)
pub(super) struct Tage {
    entries: Box<[u16; ALL_ENTRIES]>,
    /// By entry: the branch that it belongs to, as a number below [`BRANCHES`].
    owners: Box<[u16; ALL_ENTRIES]>,
    /// Tables that may hold an entry of a branch, a bit each; by branch.
    tables: Box<[u8; BRANCHES]>,
    random: Lfsr,
    trained: u32,
}

/// Returns the number of a branch, below [`BRANCHES`].
#[inline(always)]
fn number(at: FetchSlot) -> usize {
    let hash = u64::from(at.block()).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (hash >> 55) as usize * COLUMNS + at.column()
}

/// Returns the exclusive or of all pieces of `WIDTH` bits of the last 2 << `T` outcomes, in the low bits.
#[inline(always)]
fn folded<const T: usize, const WIDTH: u32>(history: u64) -> u32 {
    let bits = 2 << T;
    let mut sum = history & (u64::MAX >> (64 - bits));
    // Each step folds twice as many pieces together.
    let mut reach = WIDTH;
    while reach < bits {
        sum ^= sum >> reach;
        reach *= 2;
    }
    sum as u32 & ((1 << WIDTH) - 1)
}

/// Index and tag of a branch in each TAGE table, hashed from block number and the table's share of the folded history. Where
/// index and tag are equally wide they see the same of the history.
pub(super) struct Places {
    indices: [u16; 8],
    pub(super) tags: [u16; 8],
}

impl Places {
    #[inline(always)]
    pub(super) fn new(at: FetchSlot, history: u64) -> Self {
        let mut places = Self { indices: [0; 8], tags: [0; 8] };
        macro_rules! places {
            ($($t:literal)*) => {$({
                const ROWS: u32 = ROW_BITS[$t];
                const TAGS: u32 = TAG_BITS[$t];
                let row = (at.block() ^ folded::<$t, ROWS>(history)) & ((1 << ROWS) - 1);
                let tag = (at.block() >> ROWS ^ folded::<$t, TAGS>(history)) & ((1 << TAGS) - 1);
                places.indices[$t] = ($t * ENTRIES + row as usize * COLUMNS + at.column()) as u16;
                places.tags[$t] = tag as u16 | VALID;
            })*};
        }
        places!(0 1 2 3 4 5);
        places
    }

    #[inline(always)]
    pub(super) fn index(&self, table: u32) -> usize {
        usize::from(self.indices[table as usize % 8]) % ALL_ENTRIES
    }
}

snapshot::snapshot!(Tage { entries, owners, tables, random, trained });

impl Tage {
    pub(super) fn new() -> Self {
        Self {
            entries: zeroed(),
            owners: zeroed(),
            tables: zeroed(),
            random: Lfsr::new(0x1357),
            trained: 0,
        }
    }

    /// Predicts, given the base prediction, then trains with the outcome; returns the direction, and whether it comes
    /// from a table.
    #[inline(always)]
    pub(super) fn branch(
        &mut self,
        at: FetchSlot,
        history: u64,
        base: bool,
        taken: bool,
    ) -> (bool, bool) {
        let tables = u32::from(self.tables[number(at) % BRANCHES]);
        let mut direction = (base, false);
        if tables != 0 {
            direction = self.look(tables, at, history, base, taken);
        } else if base != taken {
            self.allocate(&Places::new(at, history), at, ALL, taken);
        }
        self.trained = self.trained.wrapping_add(1);
        if self.trained.is_multiple_of(CLEAR_EVERY) {
            self.forget();
        }
        direction
    }

    /// Predicts and trains as [`Self::branch`] does, for a branch that may have entries in `tables`.
    #[inline(always)]
    fn look(
        &mut self,
        tables: u32,
        at: FetchSlot,
        history: u64,
        base: bool,
        taken: bool,
    ) -> (bool, bool) {
        let places = Places::new(at, history);
        let hit = |t: usize| self.entries[places.index(t as u32)] & TAG_MASK == places.tags[t];
        let hits = (0..TABLES).fold(0, |hits, t| hits | u32::from(hit(t)) << t) & tables;
        // The longest history that hits provides, the next longest is the alternative.
        let Some(provider) = hits.checked_ilog2() else {
            if base != taken {
                self.allocate(&places, at, ALL, taken);
            }
            return (base, false);
        };
        let others = hits & !(1 << provider);
        let second = self.entries[places.index((others | 1).ilog2())] >> COUNTER_SHIFT & 4 != 0;
        let other = if others != 0 { second } else { base };
        let entry = &mut self.entries[places.index(provider)];
        let counter = *entry >> COUNTER_SHIFT & 7;
        // A weak counter leaves it to the alternative.
        let weak = (counter == 3) | (counter == 4);
        let direction = if weak { other } else { counter >= 4 };
        let moved = if taken { (counter + 1).min(7) } else { counter.saturating_sub(1) };
        let useful = *entry >> USEFUL_SHIFT & 3;
        let changed =
            if direction == taken { (useful + 1).min(3) } else { useful.saturating_sub(1) };
        let useful = if other == direction { useful } else { changed };
        *entry = *entry & TAG_MASK | moved << COUNTER_SHIFT | useful << USEFUL_SHIFT;
        if direction != taken {
            self.allocate(&places, at, ALL & !((2 << provider) - 1), taken);
        }
        (direction, !weak | (others != 0))
    }

    /// Allocates an entry in a longer table after a misprediction, or takes use from those in the way.
    #[cold]
    #[inline(never)]
    fn allocate(&mut self, places: &Places, at: FetchSlot, longer: u32, taken: bool) {
        let vacant = |t: usize| self.entries[places.index(t as u32)] >> USEFUL_SHIFT & 3 == 0;
        let vacant = (0..TABLES).fold(0, |all, t| all | u32::from(vacant(t)) << t) & longer;
        if vacant == 0 {
            for t in (0..TABLES as u32).filter(|t| longer != ALL && longer >> t & 1 != 0) {
                self.entries[places.index(t)] &= !(3 << USEFUL_SHIFT);
            }
            return;
        }
        let masked = vacant & self.random.next();
        let t = if masked != 0 { masked } else { vacant }.trailing_zeros();
        let counter: u16 = if taken { 4 } else { 3 };
        let index = places.index(t);
        self.entries[index] = places.tags[t as usize % 8] | counter << COUNTER_SHIFT;
        let branch = number(at) % BRANCHES;
        self.owners[index] = branch as u16;
        self.tables[branch] |= 1 << t;
    }

    /// Clears one of the useful bits of one row of every table, in turn.
    #[cold]
    fn forget(&mut self) {
        if self.trained.is_multiple_of(RENEW_EVERY) {
            self.renew();
        }
        clear_useful(&mut self.entries[..], self.trained);
    }
}

impl Tage {
    /// Works out which branches have entries in which tables.
    fn renew(&mut self) {
        self.tables.fill(0);
        for (index, (entry, &owner)) in self.entries.iter().zip(self.owners.iter()).enumerate() {
            if entry & VALID != 0 {
                self.tables[usize::from(owner) % BRANCHES] |= 1 << (index / ENTRIES);
            }
        }
    }
}

/// Returns a boxed array that never lay on the stack.
/// Clears one of the useful bits of one row of every table, in turn, after so many branches.
pub(super) fn clear_useful(entries: &mut [u16], trained: u32) {
    let step = trained / CLEAR_EVERY;
    let row = step as usize % MAX_ROWS;
    let bit = 1 << (USEFUL_SHIFT + ((step / MAX_ROWS as u32) & 1));
    for table in entries.chunks_exact_mut(ENTRIES) {
        for entry in &mut table[row * COLUMNS..][..COLUMNS] {
            *entry &= !bit;
        }
    }
}

fn zeroed<T: Clone + Default, const N: usize>() -> Box<[T; N]> {
    let array = vec![T::default(); N].into_boxed_slice();
    array.try_into().unwrap_or_else(|_| unreachable!("as long as the array"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many of the last 1000 of 4000 predictions are wrong for a branch that is taken every `period` times.
    fn wrong(period: u32) -> u32 {
        let mut tage = Tage::new();
        let at = FetchSlot::new(0x8000_0104);
        let (mut history, mut wrong) = (0u64, 0);
        for i in 0..4000 {
            let taken = i % period == 0;
            let (direction, _) = tage.branch(at, history, false, taken);
            wrong += u32::from(direction != taken && i >= 3000);
            history = history << 1 | u64::from(taken);
        }
        wrong
    }

    #[test]
    fn a_history_is_folded_in_pieces() {
        let history = 0x9e37_79b9_7f4a_7c15;
        let all = |width: u32, seen: u64| {
            let pieces = (0..64).step_by(width as usize).map(|at| seen >> at);
            pieces.fold(0, |sum, piece| sum ^ piece) as u32 & ((1 << width) - 1)
        };
        assert_eq!(folded::<0, 7>(history), all(7, history & 3));
        assert_eq!(folded::<3, 8>(history), all(8, history & 0xffff));
        assert_eq!(folded::<5, 8>(history), all(8, history));
        assert_eq!(folded::<4, 9>(history), all(9, history & 0xffff_ffff));
        assert_eq!(folded::<5, 7>(history), all(7, history));
        assert_eq!(folded::<5, 9>(history), all(9, history));
    }

    #[test]
    fn learns_patterns_within_its_history() {
        assert_eq!(wrong(2), 0);
        assert!(wrong(7) < 10);
        assert!(wrong(30) < 20);
    }
}
