//! Generates the page tables.

use super::Program;
use crate::layout::*;

/// Root table of Sv48; its first entry points to the root table of Sv39.
pub(super) const SV48_ROOT: u64 = TABLES + 0x5000;

impl Program {
    /// Writes page tables that map memory twice: for supervisor mode at its physical addresses, for user mode with
    /// [`USER`] set. Code is in a 2 MiB page, data in 4 KiB pages whose entries have all kinds of permissions and errors.
    pub(super) fn tables(&mut self, clear_bits: bool) {
        let page = |address: u64| address >> 12 << 10;
        let [root, tables] = [TABLES, TABLES + 0x1000];
        self.poke(SV48_ROOT, page(root) | 1);
        for (copy, user) in [(0, 0), (1, 1 << 4)] {
            let middle = tables + copy * 0x2000;
            let last = middle + 0x1000;
            self.poke(root + (2 + copy) * 8, page(middle) | 1);
            self.poke(middle + 8, page(last) | 1);
            let code = CODE & !0x1f_ffff;
            // Valid, readable, writable, executable, accessed, dirty.
            let entry = page(code) | 0xcf | user;
            self.poke(middle + ((code >> 21) & 511) * 8, entry);
            for n in 0..DATA_PAGES {
                let here = page(DATA + (n << 12));
                let plain = here | 0xc7 | user;
                // (QEMU before 8.0 accepts entries with reserved bits or memory types.)
                let entry = match n {
                    32 => here | 0xc3 | user,
                    33 => here | 0xcb | user,
                    34 => here | 0xc9 | user,
                    35 => here | 0xc5 | user,
                    36 => here | 0xc6 | user,
                    37 => plain ^ 1 << 4,
                    39 => plain | 1 << 5,
                    40 => plain | 1 << 61,
                    41 if clear_bits => plain & !(1 << 6),
                    42 if clear_bits => plain & !(1 << 7),
                    43 if clear_bits => plain & !(3 << 6),
                    48.. => page(DATA + (56 << 12)) | 0xc7 | user | 1 << 63,
                    _ => plain,
                };
                self.poke(last + n * 8, entry);
            }
        }
    }
}
