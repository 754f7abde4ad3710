//! Cycles in which the oldest instruction was not done: counted once for all that is made of them.

use commit_trace::{CommitRecord, InstId, TeaEvents};

use crate::dense::DenseTally;

/// Stalled cycles by owner, instruction, and the [`StallKind`] of its record.
pub(crate) type Stalls = DenseTally<STALL_BITS>;

/// What a record says of the stall before it: class and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StallKind(u32);

/// Bits of a [`StallKind`]: four for the class, then the events.
pub(crate) const STALL_BITS: u32 = 4 + TeaEvents::BITS;
/// Lowest bit of a [`StallKind`] in a record's flags.
const IN_FLAGS: u32 = 4;

impl StallKind {
    #[inline(always)]
    pub(crate) fn of(record: &CommitRecord) -> Self {
        Self(record.packed().1 >> IN_FLAGS & ((1 << STALL_BITS) - 1))
    }

    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// Returns what stalls amount to in other units: `what` returns, for a stalled record, the kind and the units of each cycle.
/// The numbers ascend, with the kind in the low `bits`; some come more than once.
pub(crate) fn counted_as(
    stalls: impl Iterator<Item = (u64, u64)>,
    bits: u32,
    what: impl Fn(&CommitRecord) -> Option<(u64, u64)>,
) -> Vec<(u64, u64)> {
    let amounts = stalls.filter_map(|(number, cycles)| {
        let inst = number >> STALL_BITS;
        let flags = (number as u32 & ((1 << STALL_BITS) - 1)) << IN_FLAGS;
        let record = CommitRecord::from_packed(InstId(inst as u32), 0, 0, flags);
        what(&record).map(|(what, each)| (inst << bits | what, cycles * each))
    });
    let mut amounts: Vec<_> = amounts.collect();
    // Only those of one instruction may be out of order.
    for of_one in amounts.chunk_by_mut(|one, next| one.0 >> bits == next.0 >> bits) {
        of_one.sort_unstable();
    }
    amounts
}

#[cfg(test)]
mod tests {
    use commit_trace::{CycleClass, Redirect};

    use super::*;
    use crate::packed::summed;

    #[test]
    fn kinds_keep_class_and_events_and_amounts_are_added_up() {
        let record = |inst, class, tea| {
            CommitRecord::new(InstId(inst), 1, 0, 0, Redirect::Flush, true, class, tea)
        };
        let stalled = [
            (record(7, CycleClass::LoadL2, TeaEvents::ST_L1), 3),
            (record(7, CycleClass::LoadL2, TeaEvents::ST_TLB), 4),
            (record(7, CycleClass::Store, TeaEvents::default()), 5),
            (record(9, CycleClass::Device, TeaEvents::ALL), 6),
        ];
        let mut stalls = Stalls::default();
        stalls.select(0);
        for (record, cycles) in stalled {
            stalls.add(record.inst, StallKind::of(&record).number().into(), cycles);
        }
        let mut all = Vec::new();
        stalls.owners().next_into(&mut all);
        let stalls = summed(all);
        let counted = |bits, what: &dyn Fn(&CommitRecord) -> Option<(u64, u64)>| {
            summed(counted_as(stalls.iter().copied(), bits, what))
        };
        let by_class = counted(4, &|record| Some((record.class() as u64, 10)));
        assert_eq!(by_class, [(7 << 4 | 2, 70), (7 << 4 | 5, 50), (9 << 4 | 8, 60)]);
        let events =
            |record: &CommitRecord| (record.tea().0 != 0).then_some((record.tea().0.into(), 1));
        let by_events = counted(TeaEvents::BITS, &events);
        let number = |inst: u64, tea: TeaEvents| inst << TeaEvents::BITS | u64::from(tea.0);
        let expected = [
            (number(7, TeaEvents::ST_L1), 3),
            (number(7, TeaEvents::ST_TLB), 4),
            (number(9, TeaEvents::ALL), 6),
        ];
        assert_eq!(by_events, expected);
    }
}
