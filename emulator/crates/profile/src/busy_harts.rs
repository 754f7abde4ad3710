//! How many harts are busy: they share what a cycle of elapsed time is charged to.
//!
//! The time of a program is not the sum of its harts' times. Each cycle of it is dealt out in equal shares to the harts that are busy then.
//! What a hart does in that cycle, by the Oracle, has the hart's share. A cycle in which one hart works alone weighs as much as one
//! cycle of all harts, as nothing else can be made faster then. Du Bois, Eyerman, Sartor and Eeckhout ("Criticality stacks", ISCA 2013)
//! weigh the time of threads in this way; here each instruction has it, so that the profile is time-proportional to elapsed time.
//!
//! A hart is busy unless it sleeps or runs its idle thread. The simulator tells the stream of each hart how many are, whenever that
//! changes ([`BusyHarts`]). A hart is told within a turn, which is up to 512 cycles.

use commit_trace::{InstId, Span};

use crate::block::Block;
use crate::oracle::Oracle;
use crate::scripts::MIN_KIND;
use crate::{Evaluation, ProcessId, Profile};

/// Type of the side-band record. Types from [`MIN_KIND`] on are the simulator's own.
const KIND: u8 = MIN_KIND + 3;

/// Most harts that are told apart.
const MOST_HARTS: u8 = 64;

/// The number of busy harts, from here on: a side-band record of the simulator's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyHarts(pub u8);

impl BusyHarts {
    /// Returns the record's type and bytes.
    pub fn encode(self) -> (u8, Vec<u8>) {
        (KIND, vec![self.0])
    }

    /// Returns the record of this type and these bytes; `None` if there is none.
    ///
    /// ```
    /// use profile::BusyHarts;
    ///
    /// let (kind, bytes) = BusyHarts(3).encode();
    /// assert_eq!(BusyHarts::parse(kind, &bytes), Some(BusyHarts(3)));
    /// assert_eq!(BusyHarts::parse(1, &bytes), None);
    /// ```
    pub fn parse(kind: u8, bytes: &[u8]) -> Option<Self> {
        match bytes {
            &[harts] if kind == KIND => Some(Self(harts.min(MOST_HARTS))),
            _ => None,
        }
    }
}

/// The Oracle's part in the cycles in which several harts are busy, by their number.
#[derive(Default)]
pub(crate) struct SharedCycles {
    /// What was charged while so many harts are busy: two at index 0.
    oracles: Vec<Oracle>,
    /// Index of the oracle that is charged; beyond the last one if none is.
    open: usize,
}

/// Index of no oracle.
const NONE: usize = usize::MAX;

impl SharedCycles {
    /// A process runs from here on while so many harts are busy.
    pub(crate) fn select(&mut self, process: ProcessId, BusyHarts(busy): BusyHarts) {
        self.open = usize::from(busy).checked_sub(2).unwrap_or(NONE);
        if self.open != NONE {
            if self.oracles.len() <= self.open {
                self.oracles.resize_with(self.open + 1, Oracle::new);
            }
            self.oracles[self.open].select(process, false);
        }
    }

    #[inline]
    pub(crate) fn span(&mut self, span: &Span<'_>) {
        if let Some(oracle) = self.oracles.get_mut(self.open) {
            oracle.span(span);
        }
    }

    #[inline]
    pub(crate) fn block(&mut self, block: &Block<'_>) {
        if let Some(oracle) = self.oracles.get_mut(self.open) {
            oracle.block(block, |_| ());
        }
    }

    /// Packs the counts of inactive processes.
    pub(crate) fn pack_cold(&mut self, newly: &[ProcessId], is_cold: impl Fn(ProcessId) -> bool) {
        for oracle in &mut self.oracles {
            oracle.pack_cold(newly, &is_cold);
        }
    }

    pub(crate) fn finish(self) -> Vec<Profile> {
        self.oracles.into_iter().map(|oracle| oracle.finish().profile).collect()
    }
}

impl Evaluation {
    /// Returns the cycles of elapsed time that each instruction in a process takes, after the Oracle's units of it, ascending by process and
    /// instruction. A cycle in which several harts are busy is shared among them. What idle threads execute is no part of it.
    ///
    /// The evaluation has to be of all harts of the run ([`Evaluation::merged`]). The sum is the number of cycles in which any hart is
    /// busy, but for what harts are told late.
    pub fn elapsed_cycles(&self) -> impl Iterator<Item = (ProcessId, InstId, u64, f64)> {
        let per_cycle = self.oracle.units_per_cycle().max(1) as f64;
        let mut shared: Vec<_> = self.shared.iter().map(|of| of.iter().peekable()).collect();
        let all = self.oracle.iter().map(move |(process, inst, units)| {
            let mut alone = units;
            let mut elapsed = 0.0;
            for (of, harts) in shared.iter_mut().zip(2_u32..) {
                while let Some((_, _, units)) = of
                    .next_if(|(of_process, of_inst, _)| (*of_process, *of_inst) <= (process, inst))
                {
                    alone = alone.saturating_sub(units);
                    elapsed += units as f64 / f64::from(harts);
                }
            }
            (process, inst, units, (alone as f64 + elapsed) / per_cycle)
        });
        all.filter(|(process, ..)| !self.is_idle_thread(*process))
    }
}

#[cfg(test)]
mod tests;
