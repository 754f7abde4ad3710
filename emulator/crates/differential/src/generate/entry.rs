//! Generates the state that a block is entered with.

use super::page_tables::SV48_ROOT;
use super::{Entry, Generator};
use crate::layout::*;

/// Values of `satp` for Sv39 and Sv48: the mode and the page number of the root table.
const SV39: u64 = 8 << 60 | TABLES >> 12;
const SV48: u64 = 9 << 60 | SV48_ROOT >> 12;
/// Bits of `medeleg` that may be set: all exceptions but environment calls, which end blocks.
const DELEGABLE: u64 = 0xb0ff;
/// Interrupts that may be pending: SSIP and STIP. (SEIP is left out: QEMU without AIA takes the interrupt with the lowest
/// number first, so SEIP last instead of first.)
const RAISED: u64 = 0x22;

impl Generator {
    pub(super) fn entry(&mut self, start: u64) -> Entry {
        let satp = match self.random.u32(0..10) {
            0..5 => SV39,
            5..7 => SV48,
            _ => 0,
        };
        let (user, supervisor) = (0, 1);
        let mpp = [user, supervisor, 3][self.random.usize(0..3)];
        // With MPRV, machine mode accesses data as user mode.
        let mprv = mpp == 3 && self.percent(50);
        let mut mstatus = 0xa_0000_0000 | mpp << 11 | u64::from(mprv) << 17;
        if !self.percent(10) {
            mstatus |= 3 << 13;
        }
        for bit in [18, 19, 20] {
            mstatus |= self.random.u64(0..2) << bit;
        }
        // Half of the blocks have interrupts; MPIE becomes MIE as they are entered.
        let mut interrupts = [0; 3];
        if self.percent(50) {
            interrupts = interrupts.map(|_| self.random.u64(..) & RAISED);
            for bit in [1, 7] {
                mstatus |= self.random.u64(0..2) << bit;
            }
        }
        let shift = |on: bool| if on && satp != 0 { USER } else { 0 };
        let data = shift(mpp == user || mprv);
        let mut pointers = std::array::from_fn(|_| self.pointer() | data);
        // `sp` can always be accessed, and is aligned.
        pointers[0] = (DATA + self.random.u64(0..32 * 256) * 16) | data;
        Entry {
            pc: start | shift(mpp == user),
            mstatus,
            satp,
            fcsr: self.random.u64(0..5) << 5 | self.random.u64(0..32),
            pointers,
            medeleg: self.medeleg(),
            interrupts,
        }
    }

    /// A value of `medeleg`; in half of the blocks it is 0.
    fn medeleg(&mut self) -> u64 {
        if self.percent(50) {
            return 0;
        }
        let some = self.random.u64(..) & DELEGABLE;
        // QEMU before 9.0 takes faults of atomics, 6, 7 and 15, for a load's: 4, 5 and 13.
        let loads = 1 << 4 | 1 << 5 | 1 << 13;
        some & !(loads << 2) | (some & loads) << 2
    }
}
