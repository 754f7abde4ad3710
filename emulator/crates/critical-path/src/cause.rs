//! What the cycles of a critical path go to.

use commit_trace::{CycleClass, DataSource, DispatchWait};
use isa::InstClass;
use schemars::JsonSchema;
use serde::Serialize;

use crate::InstTimes;

macro_rules! causes {
    ($($(#[$doc:meta])* $name:ident $text:literal,)*) => {
        /// A cause of cycles on the critical path: what an edge of it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
        #[serde(rename_all = "snake_case")]
        #[schemars(rename = "CriticalPathCause")]
        pub enum Cause {
            $($(#[$doc])* $name,)*
        }

        impl Cause {
            /// All causes.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the cause in words.
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
    /// The latency of an access to a device register.
    Device "device latency",
    /// The address translation of an access that missed in the data TLB.
    DataTlb "data TLB miss",
    /// The way of a store's address or data to the store queue.
    Store "store",
    /// No issue port was free for an instruction that was ready.
    Port "issue port taken",
    /// The divider was busy when an instruction was ready for it.
    DividerBusy "divider busy",
    /// A misprediction: from the issue of the branch until the right path is dispatched.
    Mispredict "mispredicted branch",
    /// A load that had overtaken an older store to its address, and is executed anew: from when it leaves the ROB until it is dispatched again.
    MemoryOrdering "load that overtook a store",
    /// A flush or trap: from the commit of the instruction until what follows is dispatched.
    Flush "flush or trap",
    /// Fetch without a miss: taken branches, packets that are not full.
    Fetch "fetch",
    /// A miss in the instruction cache.
    FetchCache "instruction cache miss",
    /// A miss in the instruction TLB.
    FetchTlb "instruction TLB miss",
    /// Decode and dispatch, one ROB row a cycle.
    Width "decode width",
    /// Dispatch waited because the ROB was full.
    RobFull "ROB full",
    /// Dispatch waited because the free list of physical registers was empty.
    Registers "registers used up",
    /// Dispatch waited because the load queue was full.
    LoadQueue "load queue full",
    /// Dispatch waited because the store queue was full.
    StoreQueue "store queue full",
    /// Dispatch waited because an issue queue was full.
    IssueQueue "issue queue full",
    /// Dispatch waited because all branch tags were taken.
    Tags "branch tags used up",
    /// An instruction that serialises.
    Serialize "serialising instruction",
    /// Commit, in order, one ROB row a cycle.
    Commit "commit width",
    /// What happened before the excerpt, whose instructions are not known.
    Before "before the excerpt",
}

impl Cause {
    /// Returns the cause for the latency of a load whose line was on its way already: it waits for whoever answers that request.
    const fn in_flight(class: CycleClass) -> Self {
        match class {
            CycleClass::LoadL2 => Self::LoadL2,
            CycleClass::LoadLlc => Self::LoadLlc,
            CycleClass::LoadDram => Self::LoadMemory,
            CycleClass::LoadPeer => Self::LoadPeer,
            _ => Self::LoadL1,
        }
    }

    /// Returns the cause for the latency of the instruction of `row`, which has class `class`.
    pub(crate) fn latency(class: InstClass, row: &InstTimes) -> Self {
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

    /// Returns the cause for a wait of dispatch.
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
