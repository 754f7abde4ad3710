//! The state that a block is entered with.

use super::page_tables::SV48_ROOT;
use super::{Entry, Generator};
use crate::layout::*;

/// Sv39 and Sv48 in `satp`, with the tables' roots.
const SV39: u64 = 8 << 60 | TABLES >> 12;
const SV48: u64 = 9 << 60 | SV48_ROOT >> 12;
/// Exceptions that supervisor mode may be given: all but calls, which end blocks.
const DELEGABLE: u64 = 0xb0ff;
/// Interrupts that software raises: SSIP and STIP. (QEMU without AIA takes the lowest number first: SEIP last instead of
/// first.)
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
        // Machine mode may access data as user mode does.
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

    /// Half of the blocks have supervisor mode handle some exceptions.
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
