//! The stages that a record leaves out.

/// When an instruction passed the stages that its [`crate::CommitRecord`] leaves out, in cycles before its
/// commit (for a trap: before it is taken). Recorded only if the run asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// Cycles since F0 of the instruction's fetch packet; of the last try, if the packet missed the cache or the TLB.
    pub fetch: u32,
    /// Cycles since the instruction's issue (for a store: of its address); 0: it never issued.
    pub issue: u32,
    /// Cycles since the first cycle in which the instruction could have committed, had it been the oldest.
    pub complete: u32,
}

/// The stages that an instruction's [`crate::CommitRecord`] leaves out, as absolute cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageCycles {
    /// F0 of the instruction's fetch packet.
    pub fetch: u64,
    /// Issue; `None` for instructions that never issue, as a fence.
    pub issue: Option<u64>,
    /// First cycle in which the instruction could have committed.
    pub complete: u64,
}

impl Stages {
    /// Converts absolute cycles, given the one in which the instruction commits. Differences saturate.
    pub fn new(cycles: &StageCycles, commit: u64) -> Self {
        let before = |cycle: u64| u32::try_from(commit.saturating_sub(cycle)).unwrap_or(u32::MAX);
        Self {
            fetch: before(cycles.fetch),
            issue: cycles.issue.map_or(0, before),
            complete: before(cycles.complete),
        }
    }

    /// Returns absolute cycles, given the one in which the instruction commits.
    pub fn at(&self, commit: u64) -> StageCycles {
        let cycle = |before: u32| commit.saturating_sub(u64::from(before));
        StageCycles {
            fetch: cycle(self.fetch),
            issue: (self.issue != 0).then(|| cycle(self.issue)),
            complete: cycle(self.complete),
        }
    }
}
