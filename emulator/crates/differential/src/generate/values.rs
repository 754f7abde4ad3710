//! Generates values for registers and memory.

use super::Generator;
use crate::layout::*;

impl Generator {
    /// Returns a value that is likely to reach corner cases: a special integer or floating-point number, or one near
    /// it.
    pub(super) fn value(&mut self) -> u64 {
        let random = self.random.u64(..);
        let doubles = [
            0,
            1 << 63,
            0x3ff0_0000_0000_0000,
            0x7ff0_0000_0000_0000,
            0xfff0_0000_0000_0000,
            0x7ff8_0000_0000_0000,
            0x7ff0_0000_0000_0001,
            1,
            0x000f_ffff_ffff_ffff,
            0x7fef_ffff_ffff_ffff,
            0x43e0_0000_0000_0000,
            0x41df_ffff_ffc0_0000,
        ];
        let singles = [
            0,
            0x8000_0000,
            0x3f80_0000,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0000,
            0x7f80_0001,
            1,
            0x007f_ffff,
            0x7f7f_ffff,
            0x5f00_0000,
            0x4f00_0000,
        ];
        let pick = self.random.usize(0..doubles.len());
        // Half-precision numbers, chosen like the doubles and singles.
        let halves =
            [0, 0x8000, 0x3c00, 0x7c00, 0xfc00, 0x7e00, 0x7c01, 1, 0x03ff, 0x7bff, 0x7800, 0x6400];
        match self.random.u32(0..12) {
            0 | 1 => random,
            2 => u64::from(random as u8),
            3 => !u64::from(random as u8),
            4 => 1 << (random & 63),
            5 => doubles[pick],
            // A double near a special value, or an ordinary double.
            6 => doubles[pick].wrapping_add(random & 3).wrapping_sub(1),
            7 => random & 0x800f_ffff_ffff_ffff | (1023 - 8 + (random >> 53 & 15)) << 52,
            8 => 0xffff_ffff_0000_0000 | singles[pick],
            9 => !0xffff | halves[pick],
            10 => !0xffff | random & 0x83ff | (15 - 8 + (random >> 40 & 15)) << 10,
            _ => {
                let number = random & 0x807f_ffff | (127 - 8 + (random >> 40 & 15)) << 23;
                0xffff_ffff_0000_0000 | number
            }
        }
    }

    /// Returns an address in the data for a pointer register.
    pub(super) fn pointer(&mut self) -> u64 {
        let plain = self.percent(70);
        let page = if plain { self.random.u64(0..32) } else { self.random.u64(0..DATA_PAGES) };
        let offset = match self.random.u32(0..20) {
            0..15 => self.random.u64(0..256) * 16,
            15..18 => 4096 - self.random.u64(1..16),
            _ => self.random.u64(0..4096),
        };
        DATA + (page << 12) + offset
    }
}
