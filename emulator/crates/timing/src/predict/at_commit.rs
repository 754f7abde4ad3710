//! Bimodal table and TAGE that learn as the hardware's do: of a packet at once, when the next packet has committed, from copies of rows.
//!
//! Hardware keeps copies of the two rows that it updated last, in each bank of the bimodal table (`ifu/bpd/bim.scala`) and of each table of
//! TAGE (`ifu/bpd/tage.scala`), since what was read with the prediction may be old by then. A copy goes a step on in all four slots: in
//! those that the update does not name as if their branches were not taken. The table itself is written in the named slots alone. A busy
//! branch therefore makes its row forget another branch in the same 8 bytes of code.
//!
//! Not modelled: entries that a mispredicted indirect jump allocates, and what copies begin with in the slots that no update names, where
//! hardware takes it from another table.

use std::collections::VecDeque;

use super::tage::{
    CLEAR_EVERY, COUNTER_SHIFT, ENTRIES, Places, TABLES, TAG_MASK, USEFUL_SHIFT, clear_useful,
};
use super::{COLUMNS, FetchSlot, saturate};
use crate::mem::Lfsr;

/// Slots of a bank, each with a counter of its own.
const SLOTS: usize = 4;
/// Rows of which a bank of a table has copies.
const COPIES: usize = 2;
/// Number of no table, or of no slot.
const NONE: u8 = u8::MAX;

/// The counters of a row, as the last update left them.
#[derive(Clone, Copy, Default)]
struct RowCopy {
    /// Row and tag, and above them a bit that is set once there is a copy.
    of: u32,
    counters: [u8; SLOTS],
}

snapshot::snapshot!(RowCopy { of, counters });

/// A bank's copies of rows.
#[derive(Clone, Copy, Default)]
struct Copies {
    rows: [RowCopy; COPIES],
    /// The copy that the next row takes.
    next: u8,
}

snapshot::snapshot!(Copies { rows, next });

impl Copies {
    /// Returns the counters of a row, if there is a copy of it.
    fn find(&self, of: u32) -> Option<[u8; SLOTS]> {
        self.rows.iter().find(|row| row.of == of).map(|row| row.counters)
    }

    /// Keeps the counters of a row.
    fn keep(&mut self, of: u32, counters: [u8; SLOTS]) {
        match self.rows.iter_mut().find(|row| row.of == of) {
            Some(row) => row.counters = counters,
            None => {
                self.rows[usize::from(self.next) % COPIES] = RowCopy { of, counters };
                self.next = (self.next + 1) % COPIES as u8;
            }
        }
    }
}

/// What was read when a branch was predicted.
#[derive(Clone, Copy, Default)]
pub(super) struct Lookup {
    /// Counter of the bimodal table.
    base: u8,
    /// Table of TAGE whose counter decides; [`NONE`]: none.
    provider: u8,
    counter: u8,
    useful: u8,
    /// The next longest history says otherwise.
    differs: bool,
    /// Table that takes an entry if the branch is mispredicted; [`NONE`]: none.
    allocate: u8,
    /// Iterations that the loop predictor had counted.
    pub(super) iterations: u16,
}

snapshot::snapshot!(Lookup { base, provider, counter, useful, differs, allocate, iterations });

/// How a packet left a bank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct BankExit {
    /// Slot of the branch or jump; [`NONE`]: it went on to the bank's end.
    slot: u8,
    taken: bool,
    mispredicted: bool,
}

snapshot::snapshot!(BankExit { slot, taken, mispredicted });

/// What is learnt of one bank of a packet.
#[derive(Clone, Copy, Default)]
struct Update {
    /// Number of the packet.
    packet: u64,
    /// First slot of the bank.
    at: FetchSlot,
    history: u64,
    /// Conditional branches, a bit for each slot.
    branches: u8,
    left: BankExit,
    reads: [Lookup; SLOTS],
}

snapshot::snapshot!(Update { packet, at, history, branches, left, reads });

/// Bimodal table and TAGE, both banks.
pub(super) struct AtCommit {
    bimodal: Box<[u8]>,
    bimodal_copies: [Copies; 2],
    /// Entries of TAGE; none without it.
    entries: Box<[u16]>,
    copies: [[Copies; 2]; TABLES],
    random: Lfsr,
    trained: u32,
    /// Updates in order of their packets; the packet that is fetched has the last ones.
    updates: VecDeque<Update>,
}

snapshot::snapshot!(AtCommit {
    bimodal,
    bimodal_copies,
    entries,
    copies,
    random,
    trained,
    updates
});

impl AtCommit {
    pub(super) fn new(bimodal_sets: u32, tage: bool) -> Self {
        Self {
            // All counters start weakly taken.
            bimodal: vec![2; bimodal_sets as usize * COLUMNS].into(),
            bimodal_copies: [Copies::default(); 2],
            entries: vec![0; if tage { TABLES * ENTRIES } else { 0 }].into(),
            copies: [[Copies::default(); 2]; TABLES],
            random: Lfsr::new(0x1357),
            trained: 0,
            updates: VecDeque::new(),
        }
    }

    /// Learns of packets up to number `last`.
    #[inline]
    pub(super) fn train(&mut self, last: u64) {
        while let Some(update) = self.updates.front().filter(|update| update.packet <= last) {
            let update = *update;
            self.updates.pop_front();
            self.learn(&update);
        }
    }

    /// Returns the bimodal table's direction.
    #[inline]
    pub(super) fn base(&self, at: FetchSlot) -> bool {
        self.bimodal[at.index() & (self.bimodal.len() - 1)] >= 2
    }

    /// Returns the direction of a conditional branch by TAGE, whether it is of one of its tables, and what was read.
    pub(super) fn predict(&mut self, at: FetchSlot, history: u64) -> (bool, bool, Lookup) {
        let counter = self.bimodal[at.index() & (self.bimodal.len() - 1)];
        let base = counter >= 2;
        let mut read =
            Lookup { base: counter, provider: NONE, allocate: NONE, ..Lookup::default() };
        if self.entries.is_empty() {
            return (base, false, read);
        }
        let places = Places::new(at, history);
        let (mut direction, mut by_table) = (base, false);
        let (mut other, mut longest) = (base, base);
        let mut vacant = 0;
        for table in 0..TABLES {
            let entry = self.entries[places.index(table as u32)];
            let (counter, useful) = (entry >> COUNTER_SHIFT & 7, entry >> USEFUL_SHIFT & 3);
            if entry & TAG_MASK != places.tags[table] {
                vacant |= u32::from(useful == 0) << table;
                continue;
            }
            // A weak counter leaves it to the next longest history.
            let weak = (counter == 3) | (counter == 4);
            by_table = !weak | (read.provider != NONE);
            direction = if weak { longest } else { counter >= 4 };
            (other, longest) = (longest, counter >= 4);
            (read.provider, read.counter, read.useful) = (table as u8, counter as u8, useful as u8);
            // Only tables of longer histories take an entry.
            vacant = 0;
        }
        read.differs = other != direction;
        if vacant != 0 {
            let masked = vacant & self.random.next();
            let chosen = if masked != 0 { masked } else { vacant };
            read.allocate = chosen.trailing_zeros() as u8;
        }
        (direction, by_table, read)
    }

    /// Returns the direction of a conditional branch on a wrong path.
    pub(super) fn expects(&mut self, at: FetchSlot, history: u64) -> bool {
        let random = self.random.clone();
        let (direction, ..) = self.predict(at, history);
        self.random = random;
        direction
    }

    /// Notes the outcome of a conditional branch, of which `read` was read, in packet number `packet`.
    pub(super) fn branch(
        &mut self,
        packet: u64,
        at: FetchSlot,
        history: u64,
        read: Lookup,
        (taken, mispredicted): (bool, bool),
    ) {
        let slot = at.column() % SLOTS;
        let update = self.update(packet, at, history);
        update.branches |= 1 << slot;
        update.reads[slot] = read;
        if taken || mispredicted {
            update.left = BankExit { slot: slot as u8, taken, mispredicted };
        }
    }

    /// Returns the other branches so far of the bank of packet number `packet` that `at` is in, each with the iterations that were counted of it.
    pub(super) fn others(
        &self,
        packet: u64,
        at: FetchSlot,
    ) -> impl Iterator<Item = (FetchSlot, u16)> {
        let own = at.column() % SLOTS;
        let of = self.updates.iter().rev().take_while(move |update| update.packet == packet);
        let of = { of }.find(move |update| update.at.bank() == at.bank());
        of.into_iter().flat_map(move |update| {
            let others =
                (0..SLOTS).filter(move |&slot| slot != own && update.branches >> slot & 1 != 0);
            others.map(move |slot| (update.at.slot(slot), update.reads[slot].iterations))
        })
    }

    /// Notes that a packet ended with a jump. Hardware trains the bimodal table with jumps, too: with indirect ones as if they were not taken.
    pub(super) fn jump(&mut self, packet: u64, at: FetchSlot, is_direct: bool) {
        let slot = at.column() % SLOTS;
        let base = self.bimodal[at.index() & (self.bimodal.len() - 1)];
        // No branch of the bank follows that would need its history.
        let update = self.update(packet, at, 0);
        update.reads[slot] = Lookup { base, provider: NONE, allocate: NONE, ..Lookup::default() };
        update.left = BankExit { slot: slot as u8, taken: is_direct, mispredicted: false };
    }

    /// Returns what is to be learnt of a packet's bank.
    fn update(&mut self, packet: u64, at: FetchSlot, history: u64) -> &mut Update {
        let same = |update: &Update| update.packet == packet && update.at.bank() == at.bank();
        let known = self.updates.iter().rposition(same);
        let index = known.unwrap_or_else(|| {
            let left = BankExit { slot: NONE, ..BankExit::default() };
            let at = at.bank_start();
            self.updates.push_back(Update { packet, at, history, left, ..Update::default() });
            self.updates.len() - 1
        });
        &mut self.updates[index]
    }

    fn learn(&mut self, update: &Update) {
        self.learn_bimodal(update);
        self.learn_tage(update);
        self.trained = self.trained.wrapping_add(update.branches.count_ones());
        if self.trained % CLEAR_EVERY < update.branches.count_ones() {
            clear_useful(&mut self.entries, self.trained);
        }
    }

    fn learn_bimodal(&mut self, update: &Update) {
        let (sets, bank) = (self.bimodal.len() / COLUMNS, update.at.bank());
        let row = update.at.block() as usize & (sets - 1);
        let of = row as u32 | 1 << 31;
        let copies = &mut self.bimodal_copies[bank];
        let copy = copies.find(of);
        let counters = &mut self.bimodal[row * COLUMNS + bank * SLOTS..][..SLOTS];
        let BankExit { slot: left, taken, .. } = update.left;
        let mut fresh = [0; SLOTS];
        for (slot, counter) in counters.iter_mut().enumerate() {
            let is_named = update.branches >> slot & 1 != 0 || usize::from(left) == slot;
            let read = if is_named { update.reads[slot].base } else { *counter };
            let old = copy.map_or(read, |copy| copy[slot]);
            fresh[slot] = saturate(old, taken && usize::from(left) == slot);
            if is_named {
                *counter = fresh[slot];
            }
        }
        copies.keep(of, fresh);
    }

    fn learn_tage(&mut self, update: &Update) {
        if update.branches == 0 || self.entries.is_empty() {
            return;
        }
        let BankExit { slot: left, taken, mispredicted } = update.left;
        // By table: slots whose counter is written, the one that is allocated, and what becomes of useful bits.
        let mut written = [0_u8; TABLES];
        let mut allocated = [NONE; TABLES];
        let mut useful = [[NONE; SLOTS]; TABLES];
        for slot in (0..SLOTS).filter(|slot| update.branches >> slot & 1 != 0) {
            let read = &update.reads[slot];
            if let Some(written) = written.get_mut(usize::from(read.provider)) {
                *written |= 1 << slot;
                let wrong = mispredicted && usize::from(left) == slot;
                useful[usize::from(read.provider)][slot] = match (read.differs, wrong) {
                    (false, _) => read.useful,
                    (true, true) => read.useful.saturating_sub(1),
                    (true, false) => read.useful.saturating_add(1).min(3),
                };
            }
        }
        if mispredicted && let Some(read) = update.reads.get(usize::from(left)) {
            match allocated.get_mut(usize::from(read.allocate)) {
                Some(slot) => {
                    *slot = left;
                    written[usize::from(read.allocate)] |= 1 << left;
                    useful[usize::from(read.allocate)][usize::from(left)] = 0;
                }
                None if read.provider != NONE => {
                    for table in useful.iter_mut().skip(usize::from(read.provider) + 1) {
                        table[usize::from(left)] = 0;
                    }
                }
                None => {}
            }
        }
        let places = Places::new(update.at, update.history);
        for table in 0..TABLES {
            let first = places.index(table as u32);
            let row = &mut self.entries[first..][..SLOTS];
            if written[table] != 0 {
                let of = (first % ENTRIES / COLUMNS) as u32 | u32::from(places.tags[table]) << 8;
                let copies = &mut self.copies[table][update.at.bank()];
                let copy = copies.find(of);
                let mut fresh = [0; SLOTS];
                for (slot, entry) in row.iter_mut().enumerate() {
                    let is_named = written[table] >> slot & 1 != 0;
                    let read = &update.reads[slot];
                    let read =
                        if is_named { read.counter } else { (*entry >> COUNTER_SHIFT & 7) as u8 };
                    let old = copy.map_or(read, |copy| copy[slot]);
                    let goes = taken && usize::from(left) == slot;
                    fresh[slot] = match (usize::from(allocated[table]) == slot, goes) {
                        (true, true) => 4,
                        (true, false) => 3,
                        (false, true) => old.saturating_add(1).min(7),
                        (false, false) => old.saturating_sub(1),
                    };
                    if is_named {
                        let kept = *entry & 3 << USEFUL_SHIFT;
                        *entry =
                            places.tags[table] | u16::from(fresh[slot]) << COUNTER_SHIFT | kept;
                    }
                }
                copies.keep(of, fresh);
            }
            for (entry, &useful) in row.iter_mut().zip(&useful[table]) {
                if useful != NONE {
                    *entry = *entry & !(3 << USEFUL_SHIFT) | u16::from(useful) << USEFUL_SHIFT;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: FetchSlot = FetchSlot(0x8000_0100);

    fn bimodal() -> AtCommit {
        AtCommit::new(2048, false)
    }

    /// Has a branch in a packet of its own, and what it means learnt; returns the direction that was predicted.
    fn branch(
        at_commit: &mut AtCommit,
        packet: u64,
        at: FetchSlot,
        history: u64,
        taken: bool,
    ) -> bool {
        let (direction, _, read) = at_commit.predict(at, history);
        at_commit.branch(packet, at, history, read, (taken, direction != taken));
        at_commit.train(packet);
        direction
    }

    /// The RTL mispredicts the branch of `gcd`'s outer loop nine times in ten.
    #[test]
    fn a_busy_branch_makes_its_row_forget_another() {
        let (outer, inner) = (FIRST, FIRST.slot(2));
        let mispredicted = |others: u64| {
            let mut at_commit = bimodal();
            let mut packets = 0..;
            let mut next = || packets.next().unwrap();
            let mut missed = 0;
            for _ in 0..100 {
                (0..others).for_each(|_| {
                    branch(&mut at_commit, next(), inner, 0, false);
                });
                missed += u64::from(!branch(&mut at_commit, next(), outer, 0, true));
            }
            missed
        };
        assert_eq!(mispredicted(0), 0);
        // A copy steps from strongly taken to not taken in two steps, and is one step up again after the outer loop's branch.
        assert_eq!(mispredicted(1), 0);
        assert!(mispredicted(2) > 90, "{}", mispredicted(2));
    }

    #[test]
    fn what_a_packet_teaches_is_learnt_when_it_is_trained_with() {
        let mut at_commit = bimodal();
        for packet in 1..=2 {
            let (_, _, read) = at_commit.predict(FIRST, 0);
            at_commit.branch(packet, FIRST, 0, read, (false, true));
        }
        assert!(at_commit.base(FIRST), "weakly taken from the start");
        at_commit.train(0);
        assert!(at_commit.base(FIRST));
        at_commit.train(1);
        assert!(!at_commit.base(FIRST));
        // The second packet read what the first one had not changed yet, and steps on from the copy.
        at_commit.train(2);
        assert_eq!(at_commit.bimodal[FIRST.index() & (at_commit.bimodal.len() - 1)], 0);
    }

    #[test]
    fn an_indirect_jump_is_learnt_as_not_taken() {
        let after = |is_direct| {
            let mut at_commit = bimodal();
            at_commit.jump(1, FIRST, is_direct);
            at_commit.train(1);
            at_commit.base(FIRST)
        };
        assert_eq!([after(true), after(false)], [true, false]);
    }

    #[test]
    fn tage_learns_patterns_within_its_history() {
        let wrong = |period: u64| {
            let mut at_commit = AtCommit::new(2048, true);
            let (mut history, mut wrong) = (0, 0);
            for packet in 0..4000 {
                let taken = packet % period == 0;
                let direction = branch(&mut at_commit, packet, FIRST, history, taken);
                wrong += u32::from(direction != taken && packet >= 3000);
                history = history << 1 | u64::from(taken);
            }
            wrong
        };
        assert_eq!(wrong(2), 0);
        assert!(wrong(7) < 10 && wrong(30) < 20, "{} {}", wrong(7), wrong(30));
    }

    #[test]
    fn other_branches_of_the_bank_are_known_in_their_packet() {
        let mut at_commit = bimodal();
        let mut note = |packet, at| {
            let (_, _, mut read) = at_commit.predict(at, 0);
            read.iterations = packet as u16;
            at_commit.branch(packet, at, 0, read, (false, false));
        };
        note(7, FIRST.slot(1));
        note(8, FIRST);
        note(8, FIRST.slot(2));
        // The other bank.
        note(8, FetchSlot(FIRST.0 + 8));
        let others = |packet| at_commit.others(packet, FIRST.slot(3)).collect::<Vec<_>>();
        assert_eq!(others(8), [(FIRST, 8), (FIRST.slot(2), 8)]);
        assert_eq!(others(9), []);
        assert_eq!(at_commit.others(8, FIRST).count(), 1);
    }
}
