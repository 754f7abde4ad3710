//! Sampling by interrupt.

use commit_trace::CommitRecord;

use super::{Outcome, Policy, Trigger};

/// The instruction that a sampling interrupt returns to (`sepc`): the interrupt is taken at decode,
/// so everything decoded before the trigger commits first, and the first instruction that is decoded
/// at or after it is named (skid). An interrupt that lands on a wrong path stays pending, so only
/// the right path counts.
///
/// Left out: that the kernel keeps interrupts disabled for stretches, which bunches the real
/// profiler's samples where it enables them again, and what its handler costs. `perf record -e
/// cycles` in the guest shows both.
#[derive(Debug, Default)]
pub(crate) struct Software {
    trigger: u64,
}

impl Policy for Software {
    fn trigger(&mut self, at: &Trigger<'_>) -> Outcome {
        self.trigger = at.cycle;
        Outcome::Pending
    }

    fn waits_for_records(&self) -> bool {
        true
    }

    fn record(&mut self, commit: u64, record: &CommitRecord) -> Outcome {
        if record.decode(commit) >= self.trigger {
            Outcome::One(record.inst)
        } else {
            Outcome::Pending
        }
    }

    fn groups(&mut self, before: u64, records: &[CommitRecord]) -> Option<(Outcome, usize)> {
        let mut commit = before;
        let at = records.iter().position(|record| {
            commit += u64::from(record.commit_delta);
            record.decode(commit) >= self.trigger
        })?;
        Some((Outcome::One(records[at].inst), at))
    }
}
