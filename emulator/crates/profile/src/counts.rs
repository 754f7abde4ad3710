//! Amounts of one process.

use std::borrow::Cow;

use commit_trace::InstId;

use crate::packed::{Packed, merged, summed};
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

    /// Returns an instruction's amount; it reads all packed amounts before that one.
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
    pub(crate) fn pack_all(&mut self) {
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
        Self { hot: Paged::default(), cold }
    }
}

/// A tally with fewer keys than this is not worth a look for what can be packed.
const WORTH: usize = if cfg!(test) { 1 } else { 1 << 16 };

/// Sums by owner (a process), instruction and `BITS` more bits (what for). The sums of owners that do not run are packed.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnedTally<const BITS: u32> {
    /// Sums by key. The low bits of a key are the instruction, which tells most keys apart; above it is what the sum is for, and then the owner.
    hot: Tally,
    /// Number of keys that the last look left in `hot`.
    left: usize,
    /// Packed sums by owner. The low bits of a number are what the sum is for; above them is the instruction.
    cold: Vec<Packed>,
}

impl<const BITS: u32> OwnedTally<BITS> {
    const OWNER: u32 = u32::BITS + BITS;
    const NUMBER: u64 = (1 << Self::OWNER) - 1;

    /// Adds to a sum.
    #[inline(always)]
    pub(crate) fn add(&mut self, owner: usize, inst: InstId, what: u64, amount: u64) {
        let key = (owner as u64) << Self::OWNER | what << u32::BITS | u64::from(inst.0);
        self.hot.add(key, amount);
    }

    /// Packs the sums of the owners that are cold. This looks at all sums: therefore it waits until there are twice as many sums as after the last
    /// time.
    pub(crate) fn pack_cold(&mut self, is_cold: impl Fn(usize) -> bool) {
        if self.hot.len() >= 2 * self.left.max(WORTH) {
            self.pack(is_cold);
        }
    }

    fn pack(&mut self, is_cold: impl Fn(usize) -> bool) {
        let taken = self.hot.take(|key| is_cold(Self::owner_of(key)));
        self.left = self.hot.len();
        let taken = Self::by_owner(taken.into_iter());
        for sums in taken.chunk_by(|one, next| Self::owner_of(one.0) == Self::owner_of(next.0)) {
            let owner = Self::owner_of(sums[0].0);
            let sums = sums.iter().map(|(key, sum)| (key & Self::NUMBER, *sum));
            self.add_packed(owner, sums);
        }
    }

    fn owner_of(key: u64) -> usize {
        (key >> Self::OWNER) as usize
    }

    /// Sums in order of owner and number, which take the keys' places.
    fn by_owner(sums: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
        let number = |key: u64| {
            let what = key >> u32::BITS & ((1 << BITS) - 1);
            (key & u64::from(u32::MAX)) << BITS | what
        };
        let sums = sums.map(|(key, sum)| (key & !Self::NUMBER | number(key), sum));
        let mut sums: Vec<_> = sums.collect();
        sums.sort_unstable_by_key(|(key, _)| *key);
        sums
    }

    /// Adds to an owner's packed sums; numbers as of [`Owners`], ascending.
    pub(crate) fn add_packed(&mut self, owner: usize, sums: impl Iterator<Item = (u64, u64)>) {
        if self.cold.len() <= owner {
            self.cold.resize_with(owner + 1, Packed::default);
        }
        self.cold[owner].add(sums);
    }

    /// True if nothing was counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.hot.len() == 0 && self.cold.iter().all(Packed::is_empty)
    }

    /// Everything, owner by owner.
    pub(crate) fn owners(self) -> Owners<BITS> {
        Owners { hot: Self::by_owner(self.hot.into_sums()), at: 0, cold: self.cold, next: 0 }
    }

    /// Returns all sums, packed, one [`Packed`] per owner.
    pub(crate) fn finish(self) -> Vec<Packed> {
        let mut owners = self.owners();
        let count = owners.count();
        packed(count, |_, sums| owners.next_into(sums))
    }
}

/// What an [`OwnedTally`] has, owner by owner. Numbers: what for in the low `BITS`, above it the instruction.
pub(crate) struct Owners<const BITS: u32> {
    /// By owner and number.
    hot: Vec<(u64, u64)>,
    at: usize,
    cold: Vec<Packed>,
    next: usize,
}

impl<const BITS: u32> Owners<BITS> {
    /// Returns how many owners may have any sums.
    pub(crate) fn count(&self) -> usize {
        let last = self.hot.last().map(|(key, _)| OwnedTally::<BITS>::owner_of(*key) + 1);
        self.cold.len().max(last.unwrap_or(0))
    }

    /// Appends the next owner's sums, of which two may have one number.
    pub(crate) fn next_into(&mut self, sums: &mut Vec<(u64, u64)>) {
        if let Some(cold) = self.cold.get_mut(self.next) {
            sums.extend(std::mem::take(cold).iter());
        }
        let rest = &self.hot[self.at..];
        let own = rest.partition_point(|(key, _)| OwnedTally::<BITS>::owner_of(*key) <= self.next);
        let sum = |(key, sum): &(u64, u64)| (key & OwnedTally::<BITS>::NUMBER, *sum);
        sums.extend(rest[..own].iter().map(sum));
        self.at += own;
        self.next += 1;
    }
}

/// Packs what a function appends for each of `owners` owners. The owners after the last one with any sums are left out, so
/// that equal sums are equal lists.
pub(crate) fn packed(
    owners: usize,
    mut append: impl FnMut(usize, &mut Vec<(u64, u64)>),
) -> Vec<Packed> {
    let pack = |owner| {
        let mut sums = Vec::new();
        append(owner, &mut sums);
        Packed::from_iter(summed(sums))
    };
    let mut all: Vec<_> = (0..owners).map(pack).collect();
    while all.pop_if(|sums| sums.is_empty()).is_some() {}
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_changes_no_count() {
        let (mut plain, mut packed) = (Counts::default(), Counts::default());
        for n in 0..1000u32 {
            let (inst, amount) = (InstId(n * n % 777), u64::from(n % 3));
            plain.add(inst, amount);
            packed.add(inst, amount);
            if n % 100 == 0 {
                packed.pack_all();
            }
        }
        let each = [(3, 7), (4, 1), (3, 2), (776, 9)].map(|(inst, amount)| (InstId(inst), amount));
        packed.add_each(&each);
        each.iter().for_each(|(inst, amount)| plain.add(*inst, *amount));
        assert!(plain.iter().eq(packed.iter()));
        assert_eq!(plain.packed(), packed.packed());
        assert_eq!(plain.get(InstId(4)), packed.get(InstId(4)));
    }

    #[test]
    fn packing_changes_no_sum() {
        let (mut plain, mut packed) = (OwnedTally::<5>::default(), OwnedTally::<5>::default());
        for n in 0..5000u32 {
            let (owner, inst, what) = (n as usize % 7, InstId(n * n % 777), u64::from(n) % 31);
            plain.add(owner, inst, what, n.into());
            packed.add(owner, inst, what, n.into());
            if n % 500 == 0 {
                packed.pack(|owner| owner % 2 == 0);
            }
        }
        assert_eq!(plain.finish(), packed.finish());
    }
}
