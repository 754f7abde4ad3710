//! What one instruction leaves in the stream.

use serde::{Deserialize, Serialize};

use crate::{Commit, TeaEvents};

/// Dense number of a static instruction (address space, virtual PC, encoding), in order of first use.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub struct InstId(pub u32);

/// Number of a hart.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub struct HartId(pub u32);

/// Number of a record in its hart's stream, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Seq(pub u64);

/// Why the front end was redirected after this instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize)]
#[repr(u8)]
pub enum Redirect {
    /// No redirect.
    #[default]
    None = 0,
    /// A mispredicted branch or jump.
    Mispredict = 1,
    /// A pipeline flush at commit (CSR, fence, atomic, `xret`, memory-ordering failure).
    Flush = 2,
    /// An exception that the instruction raised; it did not commit.
    Exception = 3,
    /// An interrupt that the instruction was tagged with; it did not commit.
    Interrupt = 4,
}

snapshot::snapshot!(InstId(0));
snapshot::snapshot!(CommitRecord { inst, commit_delta, lead, flags });
snapshot::snapshot_enum!(Redirect: None, Mispredict, Flush, Exception, Interrupt);
snapshot::snapshot_enum!(
    CycleClass: Alu, LoadL1, LoadL2, LoadLlc, LoadDram, Store, Divider, Serialize, Device, LoadPeer
);

impl Redirect {
    /// All redirects, in numeric order.
    pub const ALL: [Self; 5] =
        [Self::None, Self::Mispredict, Self::Flush, Self::Exception, Self::Interrupt];

    /// Decodes the three-bit field; unknown values read as `None`.
    #[inline]
    pub const fn from_bits(bits: u32) -> Self {
        match bits {
            1 => Self::Mispredict,
            2 => Self::Flush,
            3 => Self::Exception,
            4 => Self::Interrupt,
            _ => Self::None,
        }
    }

    /// True if the instruction left the ROB without committing.
    #[inline]
    pub const fn is_trap(self) -> bool {
        matches!(self, Self::Exception | Self::Interrupt)
    }
}

/// What the instruction waited for while it was the oldest in the ROB: finer than its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize)]
#[repr(u8)]
pub enum CycleClass {
    /// An execution unit or an operand of one (ALU stall).
    #[default]
    Alu = 0,
    /// A load that hit in the L1 data cache or was forwarded.
    LoadL1 = 1,
    /// A load served by the L2.
    LoadL2 = 2,
    /// A load served by the last-level cache.
    LoadLlc = 3,
    /// A load served by memory.
    LoadDram = 4,
    /// A store, its address or its data.
    Store = 5,
    /// An unpipelined divider (integer or FP).
    Divider = 6,
    /// Serialisation: a CSR access, fence, or atomic.
    Serialize = 7,
    /// A device register.
    Device = 8,
    /// A load or an atomic whose line another hart's cache supplied or had to give up.
    LoadPeer = 9,
}

impl CycleClass {
    /// All classes, in numeric order.
    pub const ALL: [Self; 10] = [
        Self::Alu,
        Self::LoadL1,
        Self::LoadL2,
        Self::LoadLlc,
        Self::LoadDram,
        Self::Store,
        Self::Divider,
        Self::Serialize,
        Self::Device,
        Self::LoadPeer,
    ];

    /// Decodes the four-bit field; unknown values read as `Alu`.
    #[inline]
    pub const fn from_bits(bits: u32) -> Self {
        if bits < Self::ALL.len() as u32 { Self::ALL[bits as usize] } else { Self::Alu }
    }
}

/// One dynamic instruction, 16 bytes. Cycles are relative, so that a record is small; the absolute
/// view is [`crate::SpanBuilder`]'s or a walk from [`crate::Batch::start_cycle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct CommitRecord {
    /// Static instruction.
    pub inst: InstId,
    /// Cycles from the previous record's commit (or from the end of an [`crate::Event::Idle`] between them)
    /// to this one's: 0 for the same commit group. For a trap: to the cycle in which it is taken.
    pub commit_delta: u32,
    /// Bits 19..0: cycles from entering the ROB to `commit`, saturating.
    /// Bits 31..20: cycles from decode to entering the ROB, saturating.
    lead: u32,
    /// Bits 2..0 redirect, 3 first of its ROB row, 7..4 cycle class, from 8 on [`TeaEvents`].
    flags: u32,
}

const RESIDENCE_BITS: u32 = 20;
const RESIDENCE_MAX: u64 = (1 << RESIDENCE_BITS) - 1;
const DECODE_MAX: u64 = (1 << (32 - RESIDENCE_BITS)) - 1;

impl CommitRecord {
    /// The greatest residence that a record can hold, in cycles: it stands for this long or longer.
    pub const MAX_RESIDENCE: u32 = RESIDENCE_MAX as u32;

    /// Builds a record. `residence` is commit − dispatch, `decode_lead` dispatch − decode, in cycles;
    /// both saturate (at 1,048,575 and 4,095).
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "one argument per packed field")]
    pub fn new(
        inst: InstId,
        commit_delta: u32,
        residence: u64,
        decode_lead: u64,
        redirect: Redirect,
        first_of_row: bool,
        class: CycleClass,
        tea: TeaEvents,
    ) -> Self {
        let flags = Self::flags_of(redirect, first_of_row, class, tea);
        let lead = Self::lead_of(decode_lead);
        Self::of(inst, commit_delta, residence, lead, flags)
    }

    /// Builds a record from a residence in cycles and what [`Self::lead_of`] and [`Self::flags_of`] give.
    #[inline(always)]
    pub fn of(inst: InstId, commit_delta: u32, residence: u64, lead: u32, flags: u32) -> Self {
        let lead = residence.min(RESIDENCE_MAX) as u32 | lead;
        Self::from_packed(inst, commit_delta, lead, flags)
    }

    /// The cycles from decode to entering the ROB, as a record packs them.
    #[inline(always)]
    pub fn lead_of(decode_lead: u64) -> u32 {
        (decode_lead.min(DECODE_MAX) as u32) << RESIDENCE_BITS
    }

    /// What happened to an instruction, as a record packs it.
    #[inline(always)]
    pub const fn flags_of(
        redirect: Redirect,
        first_of_row: bool,
        class: CycleClass,
        tea: TeaEvents,
    ) -> u32 {
        redirect as u32 | (first_of_row as u32) << 3 | (class as u32) << 4 | (tea.0 as u32) << 8
    }

    /// Rebuilds a record from the two packed words that [`Self::packed`] gave.
    #[inline]
    pub const fn from_packed(inst: InstId, commit_delta: u32, lead: u32, flags: u32) -> Self {
        Self { inst, commit_delta, lead, flags }
    }

    /// The packed words `(lead, flags)`, for storage.
    #[inline]
    pub const fn packed(&self) -> (u32, u32) {
        (self.lead, self.flags)
    }

    /// Cycles in the ROB: commit − dispatch.
    #[inline]
    pub const fn residence(&self) -> u32 {
        self.lead & RESIDENCE_MAX as u32
    }

    /// Cycles from decode to dispatch.
    #[inline]
    pub const fn decode_lead(&self) -> u32 {
        self.lead >> RESIDENCE_BITS
    }

    /// Cycle of entering the ROB, given the cycle in which it commits.
    #[inline]
    pub const fn dispatch(&self, commit: u64) -> u64 {
        commit.saturating_sub(self.residence() as u64)
    }

    /// Cycle of decode, given the cycle in which it commits.
    #[inline]
    pub const fn decode(&self, commit: u64) -> u64 {
        self.dispatch(commit).saturating_sub(self.decode_lead() as u64)
    }

    /// Returns the record with absolute cycles, given the cycle in which it commits.
    pub const fn at(&self, commit: u64) -> Commit {
        Commit {
            inst: self.inst,
            decode: self.decode(commit),
            dispatch: self.dispatch(commit),
            commit,
            redirect: self.redirect(),
            first_of_row: self.first_of_row(),
            class: self.class(),
            tea: self.tea(),
        }
    }

    /// Why the front end was redirected after the instruction.
    #[inline]
    pub const fn redirect(&self) -> Redirect {
        Redirect::from_bits(self.flags & 7)
    }

    /// True if the instruction left the ROB without committing: as [`Redirect::is_trap`], for loops over all records.
    #[inline]
    pub const fn is_trap(&self) -> bool {
        let redirect = self.flags & 7;
        redirect == Redirect::Exception as u32 || redirect == Redirect::Interrupt as u32
    }

    /// True for the first instruction of a ROB row.
    #[inline]
    pub const fn first_of_row(&self) -> bool {
        self.flags >> 3 & 1 != 0
    }

    /// What the instruction waited for at the head of the ROB.
    #[inline]
    pub const fn class(&self) -> CycleClass {
        CycleClass::from_bits(self.flags >> 4 & 15)
    }

    /// The events that the instruction met.
    #[inline]
    pub const fn tea(&self) -> TeaEvents {
        TeaEvents((self.flags >> 8) as u16 & TeaEvents::ALL.0)
    }
}
