//! Sample selection (MICRO'21, figure 6), stated over commits with absolute cycles.

use commit_trace::{Commit, Redirect};

use crate::flags;
use crate::unit::Origin;

/// Addresses per sample: the widest commit that the register file can hold.
pub const WIDTH: usize = 4;

/// One sample as software reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Cycle of the trigger.
    pub cycle: u64,
    /// The FLAGS register.
    pub flags: u64,
    /// Virtual addresses; `flags` says which are valid.
    pub address: [u64; WIDTH],
    /// Core cycles that the sample stands for.
    pub weight: u64,
}

snapshot::snapshot!(Sample {
    cycle,
    flags,
    address,
    weight
});

/// The last commits, youngest last: enough to see one commit group, and the youngest is the OIR.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentCommits {
    ring: [Option<Commit>; Self::LEN],
    next: usize,
}

impl RecentCommits {
    const LEN: usize = 8;

    #[inline]
    pub(crate) fn push(&mut self, commit: &Commit) {
        self.ring[self.next % Self::LEN] = Some(*commit);
        self.next += 1;
    }

    /// Replaces them by those given, youngest first.
    pub(crate) fn replace(&mut self, youngest_first: impl Iterator<Item = Commit>) {
        self.ring = [None; Self::LEN];
        self.next = 0;
        for (slot, commit) in self.ring.iter_mut().rev().zip(youngest_first) {
            *slot = Some(commit);
        }
    }

    /// The Offending Instruction Register: the youngest instruction that left the ROB.
    pub(crate) fn oir(&self) -> Option<&Commit> {
        self.ring[self.next.wrapping_sub(1) % Self::LEN].as_ref()
    }

    /// The instructions that committed in `cycle`, oldest first.
    fn committed_in(&self, cycle: u64) -> impl Iterator<Item = &Commit> {
        (self.next..self.next + Self::LEN)
            .filter_map(|i| self.ring[i % Self::LEN].as_ref())
            .filter(move |c| c.commit == cycle && !c.redirect.is_trap())
    }
}

/// A selected sample and the cycle in which it is complete (later than the trigger only in Drained).
pub(crate) struct Selected {
    pub(crate) sample: Sample,
    pub(crate) complete: u64,
}

/// Selects the sample for a trigger in `cycle`. `head` is the first instruction that leaves the ROB
/// after `cycle`; `None` if the hart went to sleep, which only happens when the trigger fell on a
/// commit.
pub(crate) fn select(
    cycle: u64,
    recent: &RecentCommits,
    head: Option<&Commit>,
    origin: &impl Fn(commit_trace::InstId) -> Origin,
) -> Option<Selected> {
    let mut sample = Sample {
        cycle,
        ..Sample::default()
    };
    let mut addresses = 0;
    let mut add_address = |sample: &mut Sample, commit: &Commit| {
        let from = origin(commit.inst);
        if addresses == 0 {
            sample.flags |= u64::from(from.privilege) << flags::PRIV_SHIFT;
        }
        if addresses < WIDTH {
            sample.address[addresses] = from.pc;
            sample.flags |= 1 << addresses;
            addresses += 1;
        }
    };
    let computing = recent
        .committed_in(cycle)
        .inspect(|c| add_address(&mut sample, c))
        .count();
    if computing > 0 {
        return Some(Selected {
            sample,
            complete: cycle,
        });
    }
    let oir = recent.oir();
    let in_rob = head.is_some_and(|h| h.dispatch <= cycle);
    let (offender, flag, complete) = match (in_rob, head, oir.map(|c| (c, c.redirect))) {
        (true, Some(head), _) => (head, flags::STALLED, cycle),
        (_, _, Some((oir, Redirect::Mispredict))) => (oir, flags::MISPREDICTED, cycle),
        (_, _, Some((oir, Redirect::Flush))) => (oir, flags::FLUSH, cycle),
        (_, _, Some((oir, Redirect::Exception | Redirect::Interrupt))) => {
            (oir, flags::EXCEPTION, cycle)
        }
        (_, Some(head), _) => (head, flags::FRONTEND, head.dispatch),
        (_, None, _) => return None,
    };
    add_address(&mut sample, offender);
    sample.flags |= flag;
    Some(Selected { sample, complete })
}
