//! What left the ROB last, as the spans that the sampling rules are shown.

use commit_trace::{Commit, CommitRecord, RECENT, Seq, SpanSink, gap_spans, group_spans};

/// The last commits, youngest last: enough to see one commit group, and what committed before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentCommits {
    ring: [Option<Commit>; RECENT],
    next: usize,
}

impl RecentCommits {
    #[inline]
    pub(crate) fn push(&mut self, commit: &Commit) {
        self.ring[self.next % RECENT] = Some(*commit);
        self.next += 1;
    }

    /// Replaces the last commits by those given, youngest first.
    pub(crate) fn replace(&mut self, youngest_first: impl Iterator<Item = Commit>) {
        self.ring = [None; RECENT];
        self.next = 0;
        for (slot, commit) in self.ring.iter_mut().rev().zip(youngest_first) {
            *slot = Some(commit);
        }
    }

    /// Returns the Offending Instruction Register: the youngest instruction that left the ROB.
    pub(crate) fn oir(&self) -> Option<&Commit> {
        self.ring[(self.next + RECENT - 1) % RECENT].as_ref()
    }

    /// Returns all last commits, oldest first.
    fn iter(&self) -> impl Iterator<Item = &Commit> {
        (self.next..self.next + RECENT).filter_map(|i| self.ring[i % RECENT].as_ref())
    }

    /// Returns the youngest instruction that committed before the end of `cycle`.
    pub(crate) fn committed_by(&self, cycle: u64) -> Option<CommitRecord> {
        let committed = |commit: &&Commit| commit.commit <= cycle && !commit.redirect.is_trap();
        self.iter().filter(committed).last().map(|c| c.record(0))
    }

    /// Shows the cycles after `seen` and before `head` leaves the ROB: the last commit group, and those in which nothing
    /// commits; of a hart that went to sleep the group alone.
    pub(crate) fn spans(&self, seen: u64, head: Option<&Commit>, sink: &mut impl SpanSink) {
        let oir = self.oir();
        let last = oir.map_or(0, |oir| oir.commit);
        if last > seen {
            let group = self.iter().filter(|commit| commit.commit == last);
            let group = (0..).zip(group);
            let group: Vec<_> = group.map(|(at, c)| c.record(u32::from(at == 0))).collect();
            // A core's own stream is one that a core can have produced.
            let shown = group_spans(&group, None, last - 1, Seq(0), sink);
            debug_assert!(shown.is_ok_and(|(records, _)| records == group.len()));
        }
        let start = last.max(seen) + 1;
        let Some(head) = head else { return };
        let gap = head.commit.saturating_sub(start);
        if gap > 0 {
            let before = oir.map(|oir| (oir.record(0), oir.commit));
            let before = before.as_ref().map(|(record, commit)| (record, *commit));
            let first = head.record(u32::try_from(gap + 1).unwrap_or(u32::MAX));
            gap_spans(before, &first, start, gap, head.commit, sink);
        }
    }
}
