//! The memory system: caches, TLBs, memory. Every access takes a cycle and returns one.

mod cache;
mod counts;
mod directory;
mod dram;
mod l1d;
mod lower;
mod mshr;
mod origin;
mod padded;
mod replays;
mod shared;
mod slot;
mod store_data;
mod walk;

pub(crate) use cache::{Cache, ShownLines};
pub use counts::{UncoreCount, UncoreCounts};
pub use dram::refresh_period;
pub(crate) use l1d::{L1d, L1dCounts};
pub(crate) use lower::{Counts, Level, Lookups, Lower};
pub use origin::Origin;
pub(crate) use padded::{PaddedLines, padded_line};
pub use shared::SharedMemory;
pub(crate) use walk::{TlbSide, Walk, WalkCounts};

/// Log2 of the bytes of a cache line.
pub(crate) const LINE_BITS: u32 = 6;

/// Returns the numbers of the bits that are set, ascending.
pub(crate) fn bits(mask: impl Into<u64>) -> impl Iterator<Item = usize> {
    let mut rest = mask.into();
    std::iter::from_fn(move || {
        let number = (rest != 0).then(|| rest.trailing_zeros() as usize);
        rest &= rest.wrapping_sub(1);
        number
    })
}

/// A 16-bit linear-feedback shift register: replacement is as random as in the hardware, which takes the
/// low bits and so shifts from one victim to the next.
#[derive(Clone)]
pub(crate) struct Lfsr(u16);

snapshot::snapshot!(Lfsr(0));

impl Lfsr {
    pub(crate) fn new(seed: u16) -> Self {
        Self(seed | 1)
    }

    /// Shifts the register once (taps 16, 15, 13, 4) and returns its new value.
    #[inline]
    pub(crate) fn next(&mut self) -> u32 {
        let bit = (self.0 >> 15 ^ self.0 >> 14 ^ self.0 >> 12 ^ self.0 >> 3) & 1;
        self.0 = self.0 << 1 | bit;
        u32::from(self.0)
    }
}
