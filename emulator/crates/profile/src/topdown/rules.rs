//! The rules by which lost slots are charged to causes and instructions: see the table of the parent module.

use std::hint::select_unpredictable;

use commit_trace::{CommitRecord, CycleClass, InstId, Redirect, TeaEvents};

use super::Slot;
use crate::Category;

/// Cycles from decode to the ROB of an instruction that nothing holds up.
pub(super) const DECODE_TO_ROB: u64 = 2;

/// The back-end slot of a cycle in which the oldest instruction, `record`, is in the ROB and does not commit.
pub(super) const fn backend(record: &CommitRecord) -> Slot {
    match record.class() {
        CycleClass::Alu => Slot::Ports,
        CycleClass::LoadL1 => Slot::L1,
        CycleClass::LoadL2 => Slot::L2,
        CycleClass::LoadLlc => Slot::Llc,
        CycleClass::LoadDram => Slot::Dram,
        CycleClass::LoadPeer => Slot::Peer,
        CycleClass::Store => Slot::Store,
        CycleClass::Divider => Slot::Divider,
        CycleClass::Serialize if record.tea().contains(TeaEvents::ST_LLC) => Slot::Dram,
        CycleClass::Serialize => Slot::Serialize,
        CycleClass::Device => Slot::Device,
    }
}

/// The slot of a cycle in which the ROB is empty because `record` redirected the front end.
pub(super) const fn flush(record: &CommitRecord) -> Slot {
    match record.redirect() {
        Redirect::Mispredict => Slot::Mispredict,
        _ => Slot::MachineClear,
    }
}

/// The slot of a cycle in which dispatch stalls on `record`, which is decoded.
pub(super) const fn refusal(record: &CommitRecord) -> Slot {
    if record.tea().contains(TeaEvents::DR_SQ) {
        return Slot::Store;
    }
    match record.class() {
        CycleClass::Serialize => Slot::Serialize,
        _ => Slot::Ports,
    }
}

/// The slot of a cycle in which the front end has not delivered `record` yet.
pub(super) const fn latency(record: &CommitRecord) -> Slot {
    let tea = record.tea();
    if tea.contains(TeaEvents::DR_L1) {
        Slot::FetchCache
    } else if tea.contains(TeaEvents::DR_TLB) {
        Slot::FetchTlb
    } else {
        Slot::FetchOther
    }
}

/// Which instruction the slots left over in a committing cycle are charged to, and what it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Charged {
    /// The next to commit was not decoded yet, or a row of the ROB was not full.
    NextLate,
    /// Dispatch refused the next.
    NextRefused,
    /// The next was in the ROB, and not done, or it trapped.
    NextWaited,
    /// The oldest of the cycle was late.
    FirstWaited,
    /// The youngest of the cycle redirected the front end.
    LastRedirected,
}

/// Returns which instruction is charged the slots left over in a committing cycle, and what they are lost to. `first` and
/// `last` are the cycle's oldest and youngest instruction, `next` commits or traps `wait` cycles later.
///
/// The answer is looked up without a branch, as the order of commit groups is what the host's branch predictor predicts worst.
#[inline(always)]
pub(super) fn left_over(
    first: &CommitRecord,
    last: &CommitRecord,
    next: &CommitRecord,
    wait: u64,
) -> (InstId, Slot) {
    let residence = u64::from(next.residence());
    // A residence that saturated is longer than it says.
    let is_in_rob = (wait <= residence) | (next.residence() == CommitRecord::MAX_RESIDENCE);
    let is_refused = wait + DECODE_TO_ROB <= residence + u64::from(next.decode_lead());
    let case = usize::from(last.redirect() != Redirect::None)
        | usize::from(is_in_rob) << 1
        | usize::from(is_refused) << 2
        | usize::from(next.first_of_row()) << 3
        | usize::from(first.first_of_row()) << 4;
    let charged = CASES[case];
    let of_cycle = select_unpredictable(charged == Charged::FirstWaited, first, last);
    let is_next = (charged as u8) < Charged::FirstWaited as u8;
    let record = select_unpredictable(is_next, next, of_cycle);
    (record.inst, SLOTS[charged as usize][kind(record)])
}

/// The charged instruction, indexed by the conditions of [`left_over`], one bit each.
const CASES: [Charged; 1 << 5] = {
    let mut cases = [Charged::NextLate; 1 << 5];
    let mut case = 0;
    while case < cases.len() {
        let [is_redirect, is_in_rob, is_refused, next_is_row, first_is_row] =
            [case & 1 != 0, case & 2 != 0, case & 4 != 0, case & 8 != 0, case & 16 != 0];
        cases[case] = if is_redirect {
            Charged::LastRedirected
        } else if !is_in_rob && is_refused {
            Charged::NextRefused
        } else if !is_in_rob {
            Charged::NextLate
        } else if !next_is_row {
            Charged::NextWaited
        } else if first_is_row {
            Charged::NextLate
        } else {
            Charged::FirstWaited
        };
        case += 1;
    }
    cases
};

/// Kinds of records: values of the 10 bits of a record that slots depend on (see [`kind`]).
const KINDS: usize = 1 << 10;

/// Returns the bits of the packed word that slots depend on: redirect, start of a row, class, and the events `DR_SQ` and
/// `ST_LLC`.
#[inline(always)]
fn kind(record: &CommitRecord) -> usize {
    let flags = record.packed().1;
    (flags & 0xff | flags >> 2 & 0x100 | flags >> 7 & 0x200) as usize
}

/// Returns a record of this kind (see [`kind`]).
const fn of_kind(kind: usize) -> CommitRecord {
    let kind = kind as u32;
    let flags = kind & 0xff | (kind & 0x100) << 2 | (kind & 0x200) << 7;
    CommitRecord::from_packed(InstId(0), 0, 0, flags)
}

/// The slot, indexed by [`Charged`] and by the kind of the charged record.
const SLOTS: [[Slot; KINDS]; 5] = {
    let mut slots = [[Slot::FetchBandwidth; KINDS]; 5];
    let mut kind = 0;
    while kind < KINDS {
        let record = of_kind(kind);
        slots[Charged::NextRefused as usize][kind] = refusal(&record);
        slots[Charged::NextWaited as usize][kind] = match record.is_trap() {
            true => flush(&record),
            false => backend(&record),
        };
        slots[Charged::FirstWaited as usize][kind] = backend(&record);
        slots[Charged::LastRedirected as usize][kind] = flush(&record);
        kind += 1;
    }
    slots
};

/// The category of a stall's cycles and the cause of its slots, by class. Only the classes that the Oracle counts by block
/// ([`crate::oracle::IS_USUAL`]) are used.
pub(super) const STALLS: [(Category, Slot); CycleClass::ALL.len()] = {
    let mut stalls = [(Category::AluStall, Slot::Ports); CycleClass::ALL.len()];
    let mut class = 0;
    while class < stalls.len() {
        let record = of_kind(class << 4);
        let category = match record.class() {
            CycleClass::LoadL1
            | CycleClass::LoadL2
            | CycleClass::LoadLlc
            | CycleClass::LoadDram
            | CycleClass::LoadPeer => Category::LoadStall,
            CycleClass::Store => Category::StoreStall,
            _ => Category::AluStall,
        };
        stalls[class] = (category, backend(&record));
        class += 1;
    }
    stalls
};

#[cfg(test)]
mod tests {
    use commit_trace::{Class, State};

    use super::*;
    use crate::oracle::{IS_USUAL, component};

    #[test]
    fn the_kind_is_all_that_tells() {
        for flags in 0..1 << (8 + TeaEvents::BITS) {
            let record = CommitRecord::from_packed(InstId(0), 0, 0, flags);
            let same = of_kind(kind(&record));
            for rule in [backend, flush, refusal] {
                assert_eq!(rule(&record), rule(&same));
            }
            assert_eq!(record.is_trap(), same.is_trap());
            let class = record.class() as usize;
            if IS_USUAL[class] {
                let (category, slot) = STALLS[class];
                assert_eq!(slot, backend(&record));
                for class in [Class::Load, Class::Store, Class::Int] {
                    let component = component(State::Stalled, &record);
                    assert_eq!(category, component.category(class));
                }
            }
        }
    }
}
