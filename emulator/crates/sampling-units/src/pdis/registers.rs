//! Registers of the unit that samples instructions, and its totals.

/// Fields of `mpdisctl`, and of `spdisctl`, which lacks [`M`](control::M).
pub mod control {
    /// Which instructions are counted: 0 all, 1 loads, 2 stores, 3 both, 4 control transfers.
    pub const SEL: u64 = 7;
    /// By counter: records whether the instruction incurred the counter's event.
    pub const HPM: u64 = 0xffff_fff8;
    /// Records go to memory.
    pub const MEM: u64 = 1 << 32;
    /// After a record that was discarded, the next instruction is selected.
    pub const ACC: u64 = 1 << 33;
    /// Records have the time.
    pub const TS: u64 = 1 << 34;
    /// Records have the physical address.
    pub const PA: u64 = 1 << 35;
    /// Records have the target of the control transfer before.
    pub const EPT: u64 = 1 << 36;
    /// Custom: intervals are random, by up to 128 more or less.
    pub const RAND: u64 = 1 << 57;
    /// Custom: cycles are counted, and the instruction that is decoded next is selected.
    pub const CYC: u64 = 1 << 58;
    /// Custom: fetch packets are counted and sampled.
    pub const FETCH: u64 = 1 << 59;
    /// Samples in user mode.
    pub const U: u64 = 1 << 60;
    /// Samples in supervisor mode.
    pub const S: u64 = 1 << 61;
    /// Samples in machine mode.
    pub const M: u64 = 1 << 62;
    /// A record was made since this bit was cleared.
    pub const OF: u64 = 1 << 63;
    /// Bits that `mpdisctl` holds.
    pub const MACHINE: u64 =
        SEL | HPM | MEM | ACC | TS | PA | EPT | RAND | CYC | FETCH | U | S | M | OF;
    /// Bits of `mpdisctl` that `spdisctl` shows.
    pub const SUPERVISOR: u64 = MACHINE & !M;
}

/// A register of the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// `mpdisctl`.
    MachineControl,
    /// `spdisctl`.
    SupervisorControl,
    /// `spdiscounter`.
    Counter,
    /// `spdisevmask`.
    EventMask,
    /// `spdisevmatch`.
    EventMatch,
    /// `spdisfilter`.
    Filter,
    /// `spdisambcs`.
    BufferControl,
    /// `spdisambaddr`.
    BufferAddress,
}

/// What became of the counter's overflows (the draft's PDIS.SAMPLES, and so on); a sample that is active is not counted yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Overflows, and selections after a discarded record.
    pub selected: u64,
    /// Samples that were recorded.
    pub samples: u64,
    /// Overflows while a sample was active.
    pub collisions: u64,
    /// Samples that a filter discarded.
    pub filtered: u64,
    /// Samples that were lost, since nobody had taken the record before, or the buffer takes none.
    pub dropped: u64,
}

snapshot::snapshot!(Totals { selected, samples, collisions, filtered, dropped });
