//! Many commit groups at once.

use commit_trace::{Ahead, CommitRecord, Span, SpanSink};

/// Records of a block at most: a bit of a `u64` each.
pub(crate) const BLOCK: usize = 64;

/// Calls a function with each span.
pub(crate) struct Each<F>(pub F);

impl<F: FnMut(&Span<'_>)> SpanSink for Each<F> {
    #[inline(always)]
    fn span(&mut self, span: &Span<'_>) {
        self.0(span);
    }
}

/// Whole commit groups without a trap or an event among them. Found without a branch per group: how many
/// instructions commit together is what a host predicts worst.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'a> {
    pub(crate) records: &'a [CommitRecord],
    /// The record before, and the cycle in which it committed.
    pub(crate) before: Option<(&'a CommitRecord, u64)>,
    /// Last cycle before it.
    pub(crate) cycle: u64,
    /// Cycles in it.
    pub(crate) cycles: u64,
    /// A bit for each record that is the first of its group, and for each of those before whose group nothing
    /// commits for a cycle or more.
    pub(crate) starts: u64,
    pub(crate) gaps: u64,
}

impl<'a> Block<'a> {
    /// The block that comes next. If there is none: how many records to look into one by one.
    #[inline(always)]
    pub(crate) fn find(ahead: &Ahead<'a>) -> Result<Self, usize> {
        let mut len = ahead.until.min(BLOCK);
        let (mut starts, mut gaps, mut cycles, mut redirects) = (0u64, 0u64, 0u64, 0);
        for record in ahead.records[..len].iter().rev() {
            starts = starts << 1 | u64::from(record.commit_delta != 0);
            gaps = gaps << 1 | u64::from(record.commit_delta > 1);
            cycles += u64::from(record.commit_delta);
            // Sets bit 2 if the redirect is a trap (3 or 4), and for none of the others.
            redirects |= record.packed().1.wrapping_add(1);
        }
        if starts & 1 == 0 || redirects & 4 != 0 {
            return Err(len);
        }
        let next = ahead.records.get(len);
        if next.is_some_and(|next| next.commit_delta == 0) {
            // Without the group that it ends in.
            len = starts.ilog2() as usize;
            if len == 0 {
                return Err(1);
            }
            cycles -= u64::from(ahead.records[len].commit_delta);
            let kept = (1 << len) - 1;
            (starts, gaps) = (starts & kept, gaps & kept);
        }
        // More than eight in one cycle: eight bits in a row that are no starts.
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
