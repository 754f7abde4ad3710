//! Amounts of one process.

use std::borrow::Cow;

use commit_trace::InstId;

use crate::packed::{Packed, merged};
use crate::paged::Paged;
use crate::tally::Tally;

/// Instructions that [`Counts::add_each`] looks up in a row.
const AT_ONCE: usize = 64;

/// Amounts per instruction of a process: quick to add to while it runs, in few bytes while it does not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    hot: Paged<u64>,
    cold: Packed,
}

impl Counts {
    /// Adds to an instruction's amount.
    #[inline]
    pub(crate) fn add(&mut self, inst: InstId, amount: u64) {
        *self.hot.entry(inst.0) += amount;
    }

    /// Adds to many instructions' amounts. All are looked up before any is changed: waits for the host's memory overlap.
    pub(crate) fn add_each(&mut self, amounts: &[(InstId, u64)]) {
        for amounts in amounts.chunks(AT_ONCE) {
            let mut places = [0; AT_ONCE];
            for (place, (inst, _)) in places.iter_mut().zip(amounts) {
                *place = self.hot.place_of(inst.0);
            }
            let entries = self.hot.entries_mut();
            for (place, (_, amount)) in places.iter().zip(amounts) {
                entries[*place] += amount;
            }
        }
    }

    /// One amount; it looks at all before.
    pub(crate) fn get(&self, inst: InstId) -> u64 {
        let hot = self.hot.get(inst.0).copied().unwrap_or(0);
        hot + self.cold.get(inst.0.into())
    }

    /// Amounts that are not 0, by ascending instruction.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (InstId, u64)> {
        let all = merged(self.cold.iter(), self.hot());
        all.map(|(inst, amount)| (InstId(inst as u32), amount))
    }

    fn hot(&self) -> impl Iterator<Item = (u64, u64)> {
        self.hot.iter().map(|(inst, amount)| (inst.into(), *amount))
    }

    /// Packs everything.
    pub(crate) fn cool(&mut self) {
        if !self.hot.is_empty() {
            *self = self.packed().into_owned().into();
        }
    }

    /// Everything, packed.
    pub(crate) fn packed(&self) -> Cow<'_, Packed> {
        match self.hot.is_empty() {
            true => Cow::Borrowed(&self.cold),
            false => Cow::Owned(merged(self.cold.iter(), self.hot()).collect()),
        }
    }
}

impl From<Packed> for Counts {
    fn from(cold: Packed) -> Self {
        Self {
            hot: Paged::default(),
            cold,
        }
    }
}

/// A tally with fewer keys than this is not worth a look for what can be packed.
const WORTH: usize = if cfg!(test) { 1 } else { 1 << 16 };

/// Sums by owner (a process), instruction and `BITS` more bits (what for). Those of owners that do not run are packed.
#[derive(Debug, Default)]
pub(crate) struct OwnedTally<const BITS: u32> {
    /// Keys: what for, above the instruction, whose low bits tell most apart; then the owner.
    hot: Tally,
    /// Keys that the last look left there.
    left: usize,
    /// By owner; numbers: what for, below the instruction.
    cold: Vec<Packed>,
}

impl<const BITS: u32> OwnedTally<BITS> {
    const OWNER: u32 = u32::BITS + BITS;

    /// Adds to a sum.
    #[inline(always)]
    pub(crate) fn add(&mut self, owner: usize, inst: InstId, what: u64, amount: u64) {
        let key = (owner as u64) << Self::OWNER | what << u32::BITS | u64::from(inst.0);
        self.hot.add(key, amount);
    }

    /// Packs what belongs to such owners. It looks at everything, and so only if there is twice as much as after
    /// the last time.
    pub(crate) fn cool(&mut self, is_cold: impl Fn(usize) -> bool) {
        if self.hot.len() >= 2 * self.left.max(WORTH) {
            self.pack(is_cold);
        }
    }

    fn pack(&mut self, is_cold: impl Fn(usize) -> bool) {
        let owner = |key: u64| (key >> Self::OWNER) as usize;
        let number = |key: u64| {
            let what = key >> u32::BITS & ((1 << BITS) - 1);
            (key & u64::from(u32::MAX)) << BITS | what
        };
        let mut taken = self.hot.take(|key| is_cold(owner(key)));
        self.left = self.hot.len();
        for sums in taken.chunk_by_mut(|one, next| owner(one.0) == owner(next.0)) {
            let owner = owner(sums[0].0);
            sums.iter_mut().for_each(|(key, _)| *key = number(*key));
            sums.sort_unstable();
            self.add_packed(owner, sums.iter().copied());
        }
    }

    /// Adds to an owner's packed sums; numbers as of [`OwnedTally::finish`], ascending.
    pub(crate) fn add_packed(&mut self, owner: usize, sums: impl Iterator<Item = (u64, u64)>) {
        if self.cold.len() <= owner {
            self.cold.resize_with(owner + 1, Packed::default);
        }
        self.cold[owner].add(sums);
    }

    /// The sums by owner, up to the last that has any, so that equal sums are equal lists; numbers: what for in the low
    /// `BITS`, above it the instruction.
    pub(crate) fn finish(mut self) -> Vec<Packed> {
        self.pack(|_| true);
        while self.cold.pop_if(|sums| sums.is_empty()).is_some() {}
        self.cold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_changes_no_count() {
        let (mut plain, mut cooled) = (Counts::default(), Counts::default());
        for n in 0..1000u32 {
            let (inst, amount) = (InstId(n * n % 777), u64::from(n % 3));
            plain.add(inst, amount);
            cooled.add(inst, amount);
            if n % 100 == 0 {
                cooled.cool();
            }
        }
        let each = [(3, 7), (4, 1), (3, 2), (776, 9)].map(|(inst, amount)| (InstId(inst), amount));
        cooled.add_each(&each);
        each.iter()
            .for_each(|(inst, amount)| plain.add(*inst, *amount));
        assert!(plain.iter().eq(cooled.iter()));
        assert_eq!(plain.packed(), cooled.packed());
        assert_eq!(plain.get(InstId(4)), cooled.get(InstId(4)));
    }

    #[test]
    fn packing_changes_no_sum() {
        let (mut plain, mut cooled) = (OwnedTally::<5>::default(), OwnedTally::<5>::default());
        for n in 0..5000u32 {
            let (owner, inst, what) = (n as usize % 7, InstId(n * n % 777), u64::from(n) % 31);
            plain.add(owner, inst, what, n.into());
            cooled.add(owner, inst, what, n.into());
            if n % 500 == 0 {
                cooled.pack(|owner| owner % 2 == 0);
            }
        }
        assert_eq!(plain.finish(), cooled.finish());
    }
}
