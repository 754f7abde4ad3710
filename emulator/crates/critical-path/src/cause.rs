//! What the cycles of a critical path go to.

use commit_trace::{CycleClass, DataSource, DispatchWait};
use isa::InstClass;
use serde::Serialize;

use crate::Row;

macro_rules! causes {
    ($($(#[$doc:meta])* $name:ident $text:literal,)*) => {
        /// What an edge of the critical path is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Cause {
            $($(#[$doc])* $name,)*
        }

        impl Cause {
    /// The latency of a load whose line was on its way already: it waits for whoever answers that request.
    const fn in_flight(class: CycleClass) -> Self {
        match class {
            CycleClass::LoadL2 => Self::LoadL2,
            CycleClass::LoadLlc => Self::LoadLlc,
            CycleClass::LoadDram => Self::LoadMemory,
            CycleClass::LoadPeer => Self::LoadPeer,
            _ => Self::LoadL1,
        }
    }

            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// In words.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

causes! {
    /// The latency of an integer operation.
    Integer "integer latency",
    /// The latency of a multiplication.
    Multiply "multiplier latency",
    /// The latency of a division or square root.
    Divide "divider latency",
    /// The latency of a pipelined FP operation, or of a move between register files.
    Fp "FP latency",
    /// The latency of a load whose line was in the L1 already.
    LoadL1 "L1 latency",
    /// The latency of a load that a store in the store queue answered, the wait for that store included.
    LoadForward "store-to-load forwarding",
    /// The latency of a load whose line the L2 answered.
    LoadL2 "L2 latency",
    /// The latency of a load whose line the last-level cache answered.
    LoadLlc "LLC latency",
    /// The latency of a load whose line memory answered.
    LoadMemory "memory latency",
    /// The latency of a load whose line the cache of another hart answered.
    LoadPeer "another hart's cache",
    /// A device register.
    Device "device latency",
    /// A data TLB miss.
    DataTlb "data TLB miss",
    /// Address or data of a store on its way to the store queue.
    Store "store",
    /// Ready, but no issue port was free.
    Port "issue port taken",
    /// Ready, but the divider was busy.
    DividerBusy "divider busy",
    /// From the issue of a mispredicted branch until the right path is dispatched.
    Mispredict "mispredicted branch",
    /// The same after flushes and traps.
    Flush "flush or trap",
    /// Fetch: taken branches, packets that are not full.
    Fetch "fetch",
    /// A miss in the instruction cache.
    FetchCache "instruction cache miss",
    /// A miss in the instruction TLB.
    FetchTlb "instruction TLB miss",
    /// Decode and dispatch, a row a cycle.
    Width "decode width",
    /// The ROB was full,
    RobFull "ROB full",
    /// the free list of registers empty,
    Registers "registers used up",
    /// the load queue full,
    LoadQueue "load queue full",
    /// the store queue,
    StoreQueue "store queue full",
    /// an issue queue,
    IssueQueue "issue queue full",
    /// or all branch tags taken.
    Tags "branch tags used up",
    /// An instruction that serialises.
    Serialize "serialising instruction",
    /// Commit, in order, a row a cycle.
    Commit "commit width",
    /// It depends on what was before the excerpt.
    Before "before the excerpt",
}

impl Cause {
    /// The latency of a row's instruction, which has this class.
    pub(crate) fn latency(class: InstClass, row: &Row) -> Self {
        use InstClass as C;
        match class {
            C::Load | C::FpLoad | C::LoadReserved | C::Amo | C::StoreConditional => {
                match row.source {
                    DataSource::Unknown | DataSource::L1 => Self::LoadL1,
                    DataSource::InFlight => Self::in_flight(row.class),
                    DataSource::StoreQueue => Self::LoadForward,
                    DataSource::L2 => Self::LoadL2,
                    DataSource::Llc => Self::LoadLlc,
                    DataSource::Memory => Self::LoadMemory,
                    DataSource::PeerClean | DataSource::PeerModified | DataSource::Upgrade => {
                        Self::LoadPeer
                    }
                    DataSource::Device => Self::Device,
                }
            }
            C::Store | C::FpStore => Self::Store,
            C::IntMul => Self::Multiply,
            C::IntDiv | C::FpDivSqrt => Self::Divide,
            C::FpArith | C::FpToInt | C::IntToFp => Self::Fp,
            C::IntAlu | C::Branch | C::Jal | C::Jalr => Self::Integer,
            C::Csr
            | C::Fence
            | C::FenceI
            | C::SfenceVma
            | C::Ecall
            | C::Xret
            | C::Wfi
            | C::Illegal => Self::Serialize,
        }
    }

    /// A wait of dispatch.
    pub(crate) const fn dispatch(wait: DispatchWait) -> Self {
        match wait {
            DispatchWait::None => Self::Width,
            DispatchWait::Rob => Self::RobFull,
            DispatchWait::Registers => Self::Registers,
            DispatchWait::LoadQueue => Self::LoadQueue,
            DispatchWait::StoreQueue => Self::StoreQueue,
            DispatchWait::MemoryIssue | DispatchWait::IntegerIssue | DispatchWait::FpIssue => {
                Self::IssueQueue
            }
            DispatchWait::Tags => Self::Tags,
            DispatchWait::Empty => Self::Serialize,
        }
    }
}
