//! Misses of a core's caches and TLBs, whether it timed them or was kept warm: a cheap sign of what a program does.

use crate::pipeline::Pipeline;
use crate::preset::DramModel;
use crate::{Core, Preset};

/// Running totals of the misses of a core: of the L1I, the L1D, the L2, the last-level cache, and both TLBs together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissCounts(pub [u64; MissCounts::KINDS]);

impl MissCounts {
    /// Number of kinds of misses.
    pub const KINDS: usize = 5;

    /// Names of the kinds, in their order.
    pub const NAMES: [&'static str; MissCounts::KINDS] = ["l1i", "l1d", "l2", "llc", "tlb"];

    /// Returns how many cycles a miss of each kind takes in a core if nothing hides it: until the next level has the line, or an entry of the second-level TLB or of a page table is read.
    pub fn latencies(preset: &Preset) -> [u32; Self::KINDS] {
        let dram = &preset.dram;
        let memory = match dram.model {
            DramModel::Fixed => dram.latency,
            DramModel::Ddr => {
                let cycles =
                    u64::from(dram.rcd + dram.cas + dram.burst) * u64::from(preset.clock.mhz);
                dram.controller.saturating_add(
                    (cycles / u64::from(dram.mhz.max(1))).min(u64::from(u32::MAX)) as u32,
                )
            }
        };
        let l2 = preset.l2.latency;
        [l2, l2, preset.llc.latency, memory, preset.l2tlb.latency + preset.l2tlb.step]
    }

    /// Returns the misses since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self(std::array::from_fn(|kind| self.0[kind] - before.0[kind]))
    }

    /// Returns the sum of these misses and others.
    #[must_use]
    pub fn plus(self, others: Self) -> Self {
        Self(std::array::from_fn(|kind| self.0[kind].saturating_add(others.0[kind])))
    }

    /// Returns the misses that a core has counted, which [`Core::end_warming`] sets back.
    pub(super) fn of<S>(pipeline: &Pipeline<S>) -> Self {
        let (front, lsu) = (&pipeline.front, &pipeline.lsu);
        Self([
            front.counts.l1i_misses,
            lsu.l1d.counts.misses,
            lsu.lower.counts.l2_misses(),
            lsu.lower.counts.llc_misses,
            lsu.walk.counts.iter().map(|counts| counts.l2_hits + counts.walks).sum(),
        ])
    }
}

impl<S> Core<S> {
    /// Returns running totals of misses, timed or not, between runs.
    pub fn misses(&self) -> MissCounts {
        MissCounts::of(&self.pipeline).plus(self.warm_misses)
    }
}
