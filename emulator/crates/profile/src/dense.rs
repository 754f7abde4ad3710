//! Sums of several kinds per instruction, of which nearly all instructions have one or two.

use commit_trace::InstId;

use crate::counts::{OwnedTally, Owners};
use crate::paged::Paged;
use crate::tables::Tables;

/// Sums by owner (a process), instruction and kind, which has `BITS` bits: an [`OwnedTally`], and in front of it a table that
/// is indexed by the instruction's number and holds the most frequent kinds of each instruction of the present owner.
#[derive(Clone, Debug, Default)]
pub(crate) struct DenseTally<const BITS: u32, T = [Sum<BITS>; 2]> {
    /// Per owner and instruction.
    pub(crate) first: Tables<T>,
    /// Sums that have no room in `first`, and sums that were packed.
    pub(crate) others: OwnedTally<BITS>,
    pub(crate) owner: usize,
}

/// What is counted beside an instruction.
pub(crate) trait Entry: Copy + Default + PartialEq {
    /// Pairs of a kind, ascending, and its amount; some amounts may be 0.
    fn sums(self) -> impl Iterator<Item = (u32, u64)>;
}

/// The first two kinds that were counted for the instruction.
impl<const BITS: u32> Entry for [Sum<BITS>; 2] {
    fn sums(mut self) -> impl Iterator<Item = (u32, u64)> {
        self.sort_unstable_by_key(|sum| sum.what());
        self.into_iter().map(|sum| (sum.what(), sum.amount()))
    }
}

/// A kind in the low `BITS`, and its amount in the bits above. The amount of a free place is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum<const BITS: u32>(u32);

impl<const BITS: u32> Sum<BITS> {
    const WHAT: u32 = (1 << BITS) - 1;
    /// The largest amount.
    pub(crate) const MAX: u32 = u32::MAX >> BITS;

    /// A sum of at most [`Self::MAX`].
    #[inline(always)]
    pub(crate) fn new(what: u32, amount: u32) -> Self {
        Self(amount << BITS | what)
    }

    /// A sum, if the amount is at most [`Self::MAX`].
    #[inline(always)]
    fn of(what: u64, amount: u64) -> Option<Self> {
        let is_small = amount <= Self::MAX.into();
        is_small.then(|| Self::new(what as u32, amount as u32))
    }

    #[inline(always)]
    fn what(self) -> u32 {
        self.0 & Self::WHAT
    }

    fn amount(self) -> u64 {
        (self.0 >> BITS).into()
    }

    /// Adds the other's amount if it is of the same kind and there is room; else it changes nothing.
    #[inline(always)]
    fn takes(&mut self, more: Self) -> bool {
        let sum = self.0.checked_add(more.0 & !Self::WHAT);
        match sum.filter(|_| self.what() == more.what()) {
            Some(sum) => {
                self.0 = sum;
                true
            }
            None => false,
        }
    }
}

impl<const BITS: u32> DenseTally<BITS> {
    /// Adds to a sum of the present owner.
    #[inline(always)]
    pub(crate) fn add(&mut self, inst: InstId, what: u64, amount: u64) {
        match Sum::of(what, amount) {
            Some(sum) => self.add_each([(inst, sum)].into_iter()),
            None => self.others.add(self.owner, inst, what, amount),
        }
    }

    /// Adds to many sums of the present owner.
    #[inline(always)]
    pub(crate) fn add_each(&mut self, sums: impl Iterator<Item = (InstId, Sum<BITS>)>) {
        let (others, owner) = (&mut self.others, self.owner);
        let sums = sums.map(|(inst, sum)| (inst, (inst, sum)));
        self.first.each(sums, |first, (inst, sum)| {
            let place = &mut first[usize::from(first[0].what() != sum.what())];
            if !place.takes(sum) {
                add_elsewhere(first, others, (owner, inst), sum);
            }
        });
    }
}

impl<const BITS: u32, T: Entry> DenseTally<BITS, T> {
    /// An owner's instructions are counted from here on.
    pub(crate) fn select(&mut self, owner: usize) {
        self.owner = owner;
        self.first.select(owner);
    }

    /// Packs the sums of `owners`, for which nothing is counted at present.
    pub(crate) fn pack_cold(
        &mut self,
        owners: impl Iterator<Item = usize>,
        is_cold: impl Fn(usize) -> bool,
    ) {
        owners.for_each(|owner| self.pack(owner));
        self.others.pack_cold(is_cold);
    }

    fn pack(&mut self, owner: usize) {
        let first = self.first.take(owner);
        self.others.add_packed(owner, sums::<BITS, T>(&first));
    }

    /// Adds to an owner's packed sums. `sums` has numbers as [`Owners`] has them, ascending, and their amounts.
    pub(crate) fn add_packed(&mut self, owner: usize, sums: impl Iterator<Item = (u64, u64)>) {
        self.others.add_packed(owner, sums);
    }

    /// True if nothing was counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_empty() && self.others.is_empty()
    }

    /// Everything, owner by owner.
    pub(crate) fn owners(self) -> DenseOwners<BITS, T> {
        DenseOwners { first: self.first, next: 0, others: self.others.owners() }
    }
}

/// Iterates over the sums of a [`DenseTally`], as [`Owners`] does.
pub(crate) struct DenseOwners<const BITS: u32, T> {
    first: Tables<T>,
    next: usize,
    others: Owners<BITS>,
}

impl<const BITS: u32, T: Entry> DenseOwners<BITS, T> {
    /// Returns how many owners may have any sums.
    pub(crate) fn count(&self) -> usize {
        self.first.len().max(self.others.count())
    }

    /// Appends the next owner's sums, of which several may have one number, as [`Owners::next_into`] does.
    pub(crate) fn next_into(&mut self, all: &mut Vec<(u64, u64)>) {
        all.extend(sums::<BITS, T>(&self.first.take(self.next)));
        self.next += 1;
        self.others.next_into(all);
    }
}

/// What is counted beside an owner's instructions.
fn sums<const BITS: u32, T: Entry>(first: &Paged<T>) -> impl Iterator<Item = (u64, u64)> {
    first.iter().flat_map(|(inst, entry)| {
        let sums = entry.sums().filter(|(_, amount)| *amount != 0);
        sums.map(move |(what, amount)| (u64::from(inst) << BITS | u64::from(what), amount))
    })
}

/// Adds a sum that neither place took: to a full place of its kind, whose amount goes to `others`, to a free one, or to
/// `others`.
#[cold]
#[inline(never)]
fn add_elsewhere<const BITS: u32>(
    first: &mut [Sum<BITS>; 2],
    others: &mut OwnedTally<BITS>,
    (owner, inst): (usize, InstId),
    sum: Sum<BITS>,
) {
    let is_full = |place: &Sum<BITS>| place.amount() != 0 && place.what() == sum.what();
    let is_free = |place: &Sum<BITS>| place.amount() == 0;
    let place = first.iter().position(is_full).or_else(|| first.iter().position(is_free));
    let elsewhere = match place {
        Some(at) => std::mem::replace(&mut first[at], sum),
        None => sum,
    };
    if elsewhere.amount() != 0 {
        let (what, amount) = (elsewhere.what().into(), elsewhere.amount());
        others.add(owner, inst, what, amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::packed;

    #[test]
    fn sums_are_those_of_a_plain_tally() {
        let mut plain = OwnedTally::<3>::default();
        let mut dense: DenseTally<3> = DenseTally::default();
        let mut state = 1u64;
        for n in 0..20_000usize {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (owner, inst, what) = (n / 100 % 3, InstId((state >> 40) as u32 % 77), state >> 61);
            // Some are too much for a place at once, others come to be.
            let amount = match n % 100 {
                0 => state >> 20,
                1..30 => state >> 37,
                _ => state >> 62,
            };
            dense.select(owner);
            plain.add(owner, inst, what, amount);
            dense.add(inst, what, amount);
            if n % 500 == 0 {
                dense.pack_cold([0, 2].into_iter(), |owner| owner != 1);
            }
        }
        let mut dense = dense.owners();
        let dense = packed(dense.count(), |_, sums| dense.next_into(sums));
        assert_eq!(plain.finish(), dense);
    }
}
