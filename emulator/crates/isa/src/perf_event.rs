//! The events that performance counters count: one row each. To add one, write a row here and its count in
//! `timing::Pipeline::count`, which does not compile without it.

macro_rules! events {
    ($( $(#[$doc:meta])* $event:ident = $selector:literal, sbi: [$($sbi:literal),*]; )*) => {
        /// An event that the programmable counters count.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum PerfEvent {
            $($(#[$doc])* $event = $selector,)*
        }

        impl PerfEvent {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$event),*];

            /// The SBI event codes that map to this event (SBI 2.0, section 11.1: hardware events, and
            /// `0x10000 | cache << 3 | operation << 1 | result`).
            pub fn sbi(self) -> &'static [u32] {
                match self {
                    $(Self::$event => &[$($sbi),*],)*
                }
            }

            /// The event that a selector names; the low bits of `mhpmevent` hold the selector, and 0 is no event.
            pub fn of_selector(selector: u64) -> Option<Self> {
                match selector {
                    $($selector => Some(Self::$event),)*
                    _ => None,
                }
            }

            /// Its selector.
            pub fn selector(self) -> u32 {
                self as u32
            }
        }
    };
}

events! {
    /// Core cycles. The clock never changes: SBI's reference cycles are the same.
    Cycles = 1, sbi: [1, 10];
    /// Retired instructions.
    Instructions = 2, sbi: [2];
    /// L1 data cache accesses; to the SBI cache references, and read accesses of L1D.
    CacheReferences = 3, sbi: [3, 0x10000];
    /// Last-level cache misses; to the SBI cache misses, and read misses of LL.
    CacheMisses = 4, sbi: [4, 0x10011];
    /// Retired branches and jumps; to the SBI also accesses to the branch predictor.
    Branches = 5, sbi: [5, 0x10028];
    /// Mispredicted branches and jumps; to the SBI also misses of the branch predictor.
    BranchMisses = 6, sbi: [6, 0x10029];
    /// Cycles with an empty ROB that is not being flushed. (SBI's event 7, bus cycles, has no meaning here.)
    FrontendStalls = 7, sbi: [8];
    /// Cycles in which the oldest instruction is not complete.
    BackendStalls = 8, sbi: [9];
    /// L1 data cache load misses.
    L1dMisses = 9, sbi: [0x10001];
    /// L1 instruction cache misses.
    L1iMisses = 10, sbi: [0x10009];
    /// Data TLB misses, of loads and stores together.
    DtlbMisses = 11, sbi: [0x10019, 0x1001b];
    /// Instruction TLB misses.
    ItlbMisses = 12, sbi: [0x10021];
}
