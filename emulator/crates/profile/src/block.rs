//! Blocks: up to 64 records of whole commit groups, which the evaluation takes at once.

use commit_trace::{Ahead, CommitRecord, Redirect, Span, SpanSink, State, empty_cycles, gap_spans};
use multiversion::multiversion;

/// Records of a block at most. Each has a bit in the block's `u64` masks.
pub(crate) const BLOCK: usize = 64;

/// Calls a function with each span.
pub(crate) struct ForEachSpan<F>(pub F);

impl<F: FnMut(&Span<'_>)> SpanSink for ForEachSpan<F> {
    #[inline(always)]
    fn span(&mut self, span: &Span<'_>) {
        self.0(span);
    }
}

/// The numbers of the bits that are set, the lowest first.
#[inline(always)]
pub(crate) fn bits(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = bits.trailing_zeros() as usize;
        let is_any = bits != 0;
        bits &= bits.wrapping_sub(1);
        is_any.then_some(lowest)
    })
}

/// Returns the index at which the commit group of the record at `at` begins; `starts` is that of the [`Block`].
#[inline(always)]
pub(crate) fn start_of(starts: u64, at: usize) -> usize {
    // The first record starts a group.
    (starts & u64::MAX >> (BLOCK - 1 - at) | 1).ilog2() as usize
}

/// Whole commit groups without a trap or an event among them. Found without a branch per group: how many
/// instructions commit together is what a host predicts worst.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'a> {
    pub(crate) records: &'a [CommitRecord],
    /// The record before the block, and the cycle in which it committed.
    pub(crate) before: Option<(&'a CommitRecord, u64)>,
    /// The last cycle before the block.
    pub(crate) cycle: u64,
    /// Cycles from there to the last commit in the block.
    pub(crate) cycles: u64,
    /// A bit for each record that is the first of its group.
    pub(crate) starts: u64,
    /// A bit for each record in `starts` that commits after a cycle or more without a commit.
    pub(crate) gaps: u64,
    /// A bit for each record that met an event.
    pub(crate) events: u64,
}

/// A commit group of a block, with the cycles before it in which nothing commits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group<'a> {
    pub(crate) records: &'a [CommitRecord],
    /// The last cycle before the group, which is the commit cycle of the group before.
    pub(crate) before: u64,
    /// Cycles in which nothing commits.
    gap: u64,
    /// Cycles of the gap, at its start, in which the ROB is empty.
    empty: u64,
    /// The last record before the group.
    pub(crate) last: &'a CommitRecord,
}

impl<'a> Group<'a> {
    /// Cycles of the group: the gap, and the one in which it commits.
    #[inline(always)]
    pub(crate) fn cycles(&self) -> u64 {
        self.gap + 1
    }

    /// The commit state after `after` of the group's cycles, the records that the Oracle charges that cycle to, and the
    /// number of the group's cycles after which the state ends.
    #[inline(always)]
    pub(crate) fn state(&self, after: u64) -> (State, &'a [CommitRecord], u64) {
        if after >= self.gap {
            (State::Computing, self.records, self.gap + 1)
        } else if after >= self.empty {
            (State::Stalled, &self.records[..1], self.gap)
        } else if self.last.redirect() != Redirect::None {
            (State::Flushed, std::slice::from_ref(self.last), self.empty)
        } else {
            (State::Drained, &self.records[..1], self.empty)
        }
    }
}

/// A block's masks and sums, made of its records.
#[derive(Debug, PartialEq)]
struct RecordMasks {
    /// A bit for each record that is the first of its group.
    starts: u64,
    /// A bit for each record that commits after a cycle or more without a commit.
    gaps: u64,
    /// A bit for each record that met an event.
    events: u64,
    /// Sum of the commit deltas, in cycles.
    cycles: u64,
    /// True if a record trapped.
    trap: bool,
}

impl RecordMasks {
    fn of(records: &[CommitRecord]) -> Self {
        let (mut starts, mut gaps, mut events, mut cycles, mut trap) = (0, 0, 0, 0, false);
        for record in records.iter().rev() {
            starts = starts << 1 | u64::from(record.commit_delta != 0);
            gaps = gaps << 1 | u64::from(record.commit_delta > 1);
            events = events << 1 | u64::from(record.tea().0 != 0);
            cycles += u64::from(record.commit_delta);
            trap |= record.is_trap();
        }
        Self { starts, gaps, events, cycles, trap }
    }
}

/// Returns what [`RecordMasks::of`] returns, written such that several records are looked at together (compilers do not
/// vectorise that function).
#[multiversion(targets = "simd")]
fn masks_of_whole(records: &[CommitRecord; BLOCK]) -> RecordMasks {
    // A byte for each record. Bit 0: it starts a group; 1: it follows a gap; 2: it trapped; 3: it met an event.
    let mut kinds = [0; BLOCK];
    let (mut cycles, mut deltas) = (0u32, 0);
    for (kinds, record) in kinds.iter_mut().zip(records) {
        let delta = record.commit_delta;
        // Bit 2 of the redirect plus one is set for traps (3 and 4) and for no other redirect.
        let redirect = record.packed().1.wrapping_add(1);
        let is_start = u32::from(delta != 0);
        let is_gap = u32::from(delta & !1 != 0);
        let has_event = u32::from(record.tea().0 != 0);
        *kinds = (is_start | is_gap << 1 | redirect & 4 | has_event << 3) as u8;
        cycles = cycles.wrapping_add(delta);
        deltas |= delta;
    }
    let (mut starts, mut gaps, mut events, mut all) = (0, 0, 0, 0);
    for (at, kinds) in (0..).step_by(8).zip(kinds.as_chunks().0) {
        let kinds = u64::from_le_bytes(*kinds);
        starts |= low_bits(kinds) << at;
        gaps |= low_bits(kinds >> 1) << at;
        events |= low_bits(kinds >> 3) << at;
        all |= kinds;
    }
    let cycles = if deltas < 1 << (32 - BLOCK.ilog2()) {
        u64::from(cycles)
    } else {
        records.iter().map(|record| u64::from(record.commit_delta)).sum()
    };
    RecordMasks { starts, gaps, events, cycles, trap: all & 0x0404_0404_0404_0404 != 0 }
}

/// Gathers the lowest bit of each of eight bytes into one byte.
#[inline(always)]
fn low_bits(bytes: u64) -> u64 {
    // Bit 8 i times bit 7 (8 - i) is bit 56 + i; no two products meet elsewhere.
    (bytes & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

impl<'a> Block<'a> {
    /// The next block, or, if there is none, the number of records to take one by one.
    #[inline(always)]
    pub(crate) fn find(ahead: &Ahead<'a>) -> Result<Self, usize> {
        let mut len = ahead.until.min(BLOCK);
        let RecordMasks { mut starts, mut gaps, mut events, mut cycles, trap } =
            match ahead.records[..len].first_chunk() {
                Some(whole) => masks_of_whole(whole),
                None => RecordMasks::of(&ahead.records[..len]),
            };
        if starts & 1 == 0 || trap {
            return Err(len);
        }
        let next = ahead.records.get(len);
        if next.is_some_and(|next| next.commit_delta == 0) {
            // The last group goes on after these records: it is left to the next block.
            len = starts.ilog2() as usize;
            if len == 0 {
                return Err(1);
            }
            cycles -= u64::from(ahead.records[len].commit_delta);
            let kept = (1 << len) - 1;
            (starts, gaps, events) = (starts & kept, gaps & kept, events & kept);
        }
        // A group of more than eight records has eight bits in a row that are no starts.
        let beside = !starts & u64::MAX >> (BLOCK - len);
        let beside = beside & beside >> 1;
        let beside = beside & beside >> 2;
        if beside & beside >> 4 != 0 {
            return Err(len);
        }
        Ok(Self {
            records: &ahead.records[..len],
            before: ahead.before,
            cycle: ahead.cycle,
            cycles,
            starts,
            gaps,
            events,
        })
    }

    /// Calls `group` with the index and the size of each commit group.
    #[inline(always)]
    pub(crate) fn groups(&self, mut group: impl FnMut(usize, usize)) {
        let mut at = 0;
        let mut rest = self.starts & (self.starts - 1);
        while rest != 0 {
            let next = rest.trailing_zeros() as usize;
            group(at, next - at);
            at = next;
            rest &= rest - 1;
        }
        group(at, self.records.len() - at);
    }

    /// Searches from the group at `at`, which follows `cycle`, for the first one that ends `ahead` cycles or more after the
    /// block's start. Returns its index (or the number of records, if there is none) and the cycle before it.
    #[inline(always)]
    pub(crate) fn reach(&self, at: usize, mut cycle: u64, ahead: u64) -> (usize, u64) {
        let target = self.cycle.saturating_add(ahead);
        let from = u64::MAX << at;
        let (mut starts, mut gaps) = (self.starts & from, self.gaps & from);
        loop {
            // Up to the next gap each group takes one cycle.
            let until = gaps & gaps.wrapping_neg();
            let mut close = starts & until.wrapping_sub(1);
            let left = target.saturating_sub(cycle).max(1);
            if u64::from(close.count_ones()) >= left {
                for _ in 1..left {
                    close &= close - 1;
                }
                return (close.trailing_zeros() as usize, cycle + left - 1);
            }
            cycle += u64::from(close.count_ones());
            if until == 0 {
                return (self.records.len(), cycle);
            }
            let first = until.trailing_zeros() as usize;
            let delta = u64::from(self.records[first].commit_delta);
            if cycle + delta >= target {
                return (first, cycle);
            }
            cycle += delta;
            gaps &= gaps - 1;
            starts &= !(until | until.wrapping_sub(1));
        }
    }

    /// The group at `at`, which follows cycle `before`; `None` at the start of a stream.
    #[inline(always)]
    pub(crate) fn group(&self, at: usize, before: u64) -> Option<Group<'a>> {
        let (last, _) = self.before(at)?;
        let first = &self.records[at];
        let gap = u64::from(first.commit_delta).saturating_sub(1);
        Some(Group {
            records: &self.records[at..at + self.size_of(at)],
            before,
            gap,
            empty: empty_cycles(first, gap),
            last,
        })
    }

    /// The size of the commit group that the record at `at` is in.
    #[inline(always)]
    pub(crate) fn size_of(&self, at: usize) -> usize {
        let after = self.starts & (u64::MAX - 1) << at;
        let end = after.trailing_zeros() as usize;
        end.min(self.records.len()) - start_of(self.starts, at)
    }

    /// A bit for each record that follows a group of `width` records.
    #[inline(always)]
    pub(crate) fn ends_of(&self, width: usize) -> u64 {
        let starts = self.starts;
        let inside = (1..width).fold(0, |inside, size| inside | starts << size);
        starts & starts << width & !inside
    }

    /// Emits the spans of the gap before the group at `at`. Their cycles count from the gap's start.
    #[inline(always)]
    pub(crate) fn gap_spans(&self, at: usize, sink: &mut impl SpanSink) {
        let first = &self.records[at];
        let gap = u64::from(first.commit_delta) - 1;
        gap_spans(self.before(at), first, 0, gap, 0, sink);
    }

    /// The record before the one at `at`.
    #[inline(always)]
    pub(crate) fn before(&self, at: usize) -> Option<(&'a CommitRecord, u64)> {
        match at.checked_sub(1) {
            // When it committed does not matter to who is charged.
            Some(before) => Some((&self.records[before], 0)),
            None => self.before,
        }
    }
}

#[cfg(test)]
mod tests {
    use commit_trace::InstId;

    use super::*;

    /// Records of pseudo-random commit deltas below `most`; the one at `trap` has this redirect.
    fn records(seed: u64, most: u64, trap: usize, redirect: u32) -> [CommitRecord; BLOCK] {
        let mut state = seed;
        std::array::from_fn(|at| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let flags = if at == trap { redirect } else { 0 };
            CommitRecord::from_packed(InstId(0), ((state >> 32) % most) as u32, 9, flags)
        })
    }

    #[test]
    fn masks_are_those_of_records_one_by_one() {
        for (seed, redirect) in (1..200).zip((0..5).cycle()) {
            for most in [1, 2, 3, 4, 1 << 27, 1 << 32] {
                let records = records(seed, most, seed as usize % BLOCK, redirect);
                assert_eq!(masks_of_whole(&records), RecordMasks::of(&records));
            }
        }
    }

    #[test]
    fn the_group_of_a_trigger_is_that_found_by_counting() {
        for seed in 1..100 {
            let mut records = records(seed, 2 + seed % 4, 0, 0);
            records[0].commit_delta = 1;
            let ahead = Ahead { records: &records, until: BLOCK, before: None, cycle: 1000 };
            let Ok(block) = Block::find(&ahead) else {
                continue;
            };
            let mut counted = Vec::new();
            let mut cycle = 1000;
            for (at, record) in records.iter().enumerate() {
                if record.commit_delta > 0 {
                    counted.push((at, cycle));
                }
                cycle += u64::from(record.commit_delta);
            }
            for (n, (at, start)) in counted.iter().enumerate() {
                for target in 0..=block.cycles + 1 {
                    let ends = counted[n..].iter().find(|(at, before)| {
                        before + u64::from(records[*at].commit_delta) >= 1000 + target
                    });
                    let expected = ends.copied().unwrap_or((BLOCK, cycle));
                    assert_eq!(block.reach(*at, *start, target), expected);
                }
            }
        }
    }
}
