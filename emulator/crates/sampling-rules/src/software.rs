//! Sampling by interrupt.

use commit_trace::CommitRecord;

use crate::{Outcome, RecordPolicy};

/// The instruction that a sampling interrupt returns to (`sepc`): the interrupt is taken at
/// decode, so everything decoded before the trigger commits first, and the first instruction that is decoded
/// at or after it is named (skid). An interrupt that lands on a wrong path stays pending, so only
/// the right path counts.
///
/// Left out: that the kernel keeps interrupts disabled for stretches, which bunches the real
/// profiler's samples where it enables them again, and what its handler costs. `perf record -e
/// cycles` in the guest shows both.
#[derive(Clone, Debug, Default)]
pub(crate) struct Software {
    trigger: u64,
}

impl RecordPolicy for Software {
    #[inline]
    fn trigger(&mut self, cycle: u64) {
        self.trigger = cycle;
    }

    #[inline]
    fn records(&mut self, before: u64, records: &[CommitRecord]) -> Outcome {
        let mut commit = before;
        let named = records.iter().find(|record| {
            commit += u64::from(record.commit_delta);
            record.decode(commit) >= self.trigger
        });
        named.map_or(Outcome::Pending, |record| Outcome::One(*record))
    }
}

snapshot::snapshot!(Software { trigger });
