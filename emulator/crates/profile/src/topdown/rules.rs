//! What slots are lost to: the rules of the module's table.

use std::hint::select_unpredictable;

use commit_trace::{CommitRecord, CycleClass, InstId, Redirect, TeaEvents};

use super::Slot;

/// Cycles from decode to the ROB of an instruction that nothing holds up.
pub(super) const DECODE_TO_ROB: u64 = 2;

/// What the oldest instruction waits for.
pub(super) const fn backend(record: &CommitRecord) -> Slot {
    match record.class() {
        CycleClass::Alu => Slot::Ports,
        CycleClass::LoadL1 => Slot::L1,
        CycleClass::LoadL2 => Slot::L2,
        CycleClass::LoadLlc => Slot::Llc,
        CycleClass::LoadDram => Slot::Dram,
        CycleClass::Store => Slot::Store,
        CycleClass::Divider => Slot::Divider,
        CycleClass::Serialize if record.tea().contains(TeaEvents::ST_LLC) => Slot::Dram,
        CycleClass::Serialize => Slot::Serialize,
        CycleClass::Device => Slot::Device,
    }
}

/// Why the ROB is empty after this instruction.
pub(super) const fn flush(record: &CommitRecord) -> Slot {
    match record.redirect() {
        Redirect::Mispredict => Slot::Mispredict,
        _ => Slot::MachineClear,
    }
}

/// Why dispatch does not take an instruction that was decoded.
pub(super) const fn refusal(record: &CommitRecord) -> Slot {
    if record.tea().contains(TeaEvents::DR_SQ) {
        return Slot::Store;
    }
    match record.class() {
        CycleClass::Serialize => Slot::Serialize,
        _ => Slot::Ports,
    }
}

/// Why the front end delivers nothing.
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

/// Which instruction the slots left over in a committing cycle are charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    /// The one that commits next.
    Next,
    /// The oldest of the cycle.
    First,
    /// The youngest of the cycle.
    Last,
}

/// What it did.
#[derive(Clone, Copy, Debug)]
enum Why {
    /// It redirected the front end.
    Redirected,
    /// It was in the ROB, and not done.
    Waited,
    /// Dispatch refused it.
    Refused,
    /// It was not decoded yet, or a row was short.
    Late,
}

/// What the slots left over in a committing cycle are lost to, and which instruction is charged. `first` and `last` are
/// those of the cycle, `next` commits or traps `wait` cycles later.
///
/// Looked up without a branch: how groups of instructions follow each other is what a host foresees worst.
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
    let (who, why) = CASES[case];
    let of_cycle = select_unpredictable(who == Who::First, first, last);
    let charged = select_unpredictable(who == Who::Next, next, of_cycle);
    (charged.inst, SLOTS[why as usize][kind(charged)])
}

const fn who_and_why(
    is_redirect: bool,
    is_in_rob: bool,
    is_refused: bool,
    next_is_row: bool,
    first_is_row: bool,
) -> (Who, Why) {
    if is_redirect {
        (Who::Last, Why::Redirected)
    } else if !is_in_rob && is_refused {
        (Who::Next, Why::Refused)
    } else if !is_in_rob {
        (Who::Next, Why::Late)
    } else if !next_is_row {
        (Who::Next, Why::Waited)
    } else if first_is_row {
        (Who::Next, Why::Late)
    } else {
        (Who::First, Why::Waited)
    }
}

/// The same, each condition a bit.
const CASES: [(Who, Why); 1 << 5] = {
    let mut cases = [(Who::Next, Why::Late); 1 << 5];
    let mut case = 0;
    while case < cases.len() {
        let [a, b, c, d, e] = [case & 1, case & 2, case & 4, case & 8, case & 16];
        cases[case] = who_and_why(a != 0, b != 0, c != 0, d != 0, e != 0);
        case += 1;
    }
    cases
};

/// Bits of a record that tell what slots are lost to.
const KIND_BITS: u32 = 9;

/// Those bits, of its packed word: the redirect, the class, and the events that count beside it.
#[inline(always)]
fn kind(record: &CommitRecord) -> usize {
    let flags = record.packed().1;
    let kind = flags & 7 | flags >> 1 & 0x78 | flags >> 3 & 0x80 | flags >> 8 & 0x100;
    kind as usize
}

/// A record of such a kind.
const fn of_kind(kind: u32) -> CommitRecord {
    let flags = kind & 7 | (kind & 0x78) << 1 | (kind & 0x80) << 3 | (kind & 0x100) << 8;
    CommitRecord::from_packed(InstId(0), 0, 0, flags)
}

/// Why, and the kind of the record that is charged.
const SLOTS: [[Slot; 1 << KIND_BITS]; 4] = {
    let mut slots = [[Slot::FetchBandwidth; 1 << KIND_BITS]; 4];
    let mut kind = 0;
    while kind < 1 << KIND_BITS {
        let record = of_kind(kind as u32);
        slots[Why::Redirected as usize][kind] = flush(&record);
        slots[Why::Refused as usize][kind] = refusal(&record);
        slots[Why::Waited as usize][kind] = if record.is_trap() {
            flush(&record)
        } else {
            backend(&record)
        };
        kind += 1;
    }
    slots
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_all_that_tells() {
        for flags in 0..1 << 17 {
            let record = CommitRecord::from_packed(InstId(0), 0, 0, flags);
            let same = of_kind(kind(&record) as u32);
            for rule in [backend, flush, refusal] {
                assert_eq!(rule(&record), rule(&same));
            }
            assert_eq!(record.is_trap(), same.is_trap());
        }
    }
}
