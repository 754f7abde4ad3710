//! What an event that somebody samples is in terms of the truth.

use commit_trace::{Class, DataSource, Translation};
use sampling_units::pdis::header;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::counts::{Counts, Memory};
use crate::file::Instruction;
use crate::lines::{LineUse, SLOW, is_l1d_miss};
use crate::records::{Executions, RecordFilter};

/// A count of the truth with which samples of an event are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Cycles by the Oracle.
    Cycles,
    /// Retired instructions.
    Instructions,
    /// Instructions that left the ROB, those that trapped or were replayed with them.
    Selected,
    /// Branches and jumps.
    Branches,
    /// Mispredicted branches and jumps.
    Mispredicts,
    /// Loads, atomics with them.
    Loads,
    /// Stores, atomics with them.
    Stores,
    /// Loads and stores.
    Accesses,
    /// Loads and atomics that missed in the L1 data cache.
    L1dLoadMisses,
    /// Stores that missed in the L1 data cache.
    L1dStoreMisses,
    /// Accesses that missed in the L1 data cache.
    L1dMisses,
    /// Accesses that neither L1 nor L2 answered.
    L2Misses,
    /// Accesses that memory answered.
    LlcMisses,
    /// Accesses whose address was not in the first-level data TLB.
    DtlbMisses,
    /// Accesses whose address was in no TLB.
    PageWalks,
    /// Packets whose line was not in the L1 instruction cache.
    L1iMisses,
    /// Packets whose address was not in the first-level instruction TLB.
    ItlbMisses,
    /// Lines that another hart's cache gave.
    PeerAccesses,
    /// Lines that another hart's cache gave and had modified (HITM).
    PeerModified,
    /// Exceptions and interrupts.
    Traps,
    /// Loads that were fetched again, as they had run ahead of a store.
    Replays,
    /// Executions that the unit that samples instructions selects and that pass its filter.
    Filtered(RecordFilter),
}

impl Metric {
    /// Returns the metric's name in sentences.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Instructions => "instructions",
            Self::Selected => "instructions that left the ROB",
            Self::Branches => "branches",
            Self::Mispredicts => "mispredictions",
            Self::Loads => "loads",
            Self::Stores => "stores",
            Self::Accesses => "loads and stores",
            Self::L1dLoadMisses => "L1D misses of loads",
            Self::L1dStoreMisses => "L1D misses of stores",
            Self::L1dMisses => "L1D misses",
            Self::L2Misses => "L2 misses",
            Self::LlcMisses => "memory accesses",
            Self::DtlbMisses => "DTLB misses",
            Self::PageWalks => "page walks",
            Self::L1iMisses => "L1I misses",
            Self::ItlbMisses => "ITLB misses",
            Self::PeerAccesses => "peer-cache accesses",
            Self::PeerModified => "modified peer-cache accesses",
            Self::Traps => "traps",
            Self::Replays => "replays",
            Self::Filtered(filter) if filter.fetch => "fetches that pass",
            Self::Filtered(_) => "instructions that pass",
        }
    }

    /// Returns the metric's count of an instruction.
    pub fn of(self, instruction: &Instruction) -> f64 {
        match self {
            // Without profilers, the cycles in which the instruction was the oldest stand in for the Oracle's.
            Self::Cycles if instruction.oracle_cycles > 0.0 => instruction.oracle_cycles,
            _ => self.counted(instruction) as f64,
        }
    }

    fn counted(self, instruction: &Instruction) -> u64 {
        let counts = &instruction.counts;
        let transfers =
            matches!(instruction.class, Class::Branch | Class::Jump | Class::IndirectJump);
        match self {
            Self::Cycles => counts.head_cycles,
            Self::Instructions => counts.executed,
            Self::Selected => counts.executed + counts.trapped + counts.replayed,
            Self::Branches if transfers => counts.executed,
            Self::Branches => 0,
            Self::Mispredicts => counts.mispredicted,
            Self::L1iMisses => counts.l1i_misses,
            Self::ItlbMisses => counts.itlb_misses,
            Self::Traps => counts.trapped,
            Self::Replays => counts.replayed,
            Self::Filtered(filter) => {
                let records = counts.records.iter();
                records.map(|own| filter.passing(own).0).sum()
            }
            _ => counts.memory.as_ref().map_or(0, |memory| self.in_memory(memory)),
        }
    }

    fn in_memory(self, memory: &Memory) -> u64 {
        let sources = |wanted: fn(DataSource) -> bool| -> u64 {
            let pairs = DataSource::ALL.iter().zip(memory.sources);
            pairs.filter(|(s, _)| wanted(**s)).map(|(_, n)| n).sum()
        };
        let stores_only = memory.loads == 0;
        match self {
            Self::Loads => memory.loads,
            Self::Stores => memory.stores,
            Self::Accesses => memory.loads.max(memory.stores),
            Self::L1dLoadMisses if stores_only => 0,
            Self::L1dStoreMisses if !stores_only => 0,
            Self::L1dMisses | Self::L1dLoadMisses | Self::L1dStoreMisses => sources(is_l1d_miss),
            Self::L2Misses => sources(|s| is_l1d_miss(s) && s != DataSource::L2),
            Self::LlcMisses => sources(|s| s == DataSource::Memory),
            Self::PeerAccesses => {
                sources(|s| matches!(s, DataSource::PeerClean | DataSource::PeerModified))
            }
            Self::PeerModified => sources(|s| s == DataSource::PeerModified),
            Self::DtlbMisses => {
                memory.translations[Translation::L2 as usize]
                    + memory.translations[Translation::Walk as usize]
            }
            Self::PageWalks => memory.translations[Translation::Walk as usize],
            _ => 0,
        }
    }

    /// Returns how many of `executions` the metric counts, and the sum of the weights that perf gives them. Metrics other than
    /// [`Self::Filtered`] count only data accesses.
    pub fn passing(self, executions: &Executions) -> (u64, u64) {
        match self {
            Self::Filtered(filter) => filter.passing(executions),
            _ if self.takes(executions.header) => executions.all(),
            _ => (0, 0),
        }
    }

    /// Returns whether the metric counts an access whose record begins with `word`.
    fn takes(self, word: u64) -> bool {
        let (loads, stores) = match word & header::TYPE {
            1 => (true, false),
            2 => (false, true),
            3 => (true, true),
            _ => return false,
        };
        let number = (word >> header::DSRC_SHIFT & 15) as u8;
        let source = DataSource::of_number(number).unwrap_or_default();
        let missed = is_l1d_miss(source);
        word & header::TRAPPED == 0
            && match self {
                Self::Loads => loads,
                Self::Stores => stores,
                Self::Accesses => true,
                Self::L1dLoadMisses => missed && loads,
                Self::L1dStoreMisses => missed && !loads,
                Self::L1dMisses => missed,
                Self::L2Misses => missed && source != DataSource::L2,
                Self::LlcMisses => source == DataSource::Memory,
                Self::PeerAccesses => {
                    matches!(source, DataSource::PeerClean | DataSource::PeerModified)
                }
                Self::PeerModified => source == DataSource::PeerModified,
                Self::DtlbMisses => word & header::L1TLBMISS != 0,
                Self::PageWalks => word & header::LLTLBMISS != 0,
                _ => false,
            }
    }

    /// Returns the metric's count of a hart's use of a line; `None` if the metric is not known by line.
    pub fn of_line(self, line: &LineUse) -> Option<u64> {
        match self {
            Self::Loads => Some(line.loads),
            Self::Stores => Some(line.stores),
            Self::Accesses => Some(line.accesses()),
            Self::L1dMisses => Some(line.misses),
            Self::L1dLoadMisses => Some(line.load_misses),
            Self::L1dStoreMisses => Some(line.misses - line.load_misses),
            Self::LlcMisses => Some(line.memory),
            Self::PeerAccesses => Some(line.peer_clean + line.peer_modified),
            Self::PeerModified => Some(line.peer_modified),
            Self::Filtered(filter) if filter == slow(1) => Some(line.slow_loads),
            Self::Filtered(filter) if filter == slow(3) => Some(line.slow),
            _ => None,
        }
    }
}

/// Returns the filter that lets slow accesses of type `select` pass, whatever their events.
fn slow(select: u8) -> RecordFilter {
    RecordFilter { select, threshold: SLOW as u16, ..RecordFilter::default() }
}

impl Counts {
    /// Returns whether the instruction never left the ROB.
    pub fn is_empty(&self) -> bool {
        self.executed + self.trapped + self.replayed == 0
    }
}
