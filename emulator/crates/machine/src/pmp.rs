//! Physical memory protection (Privileged ISA 1.13, section 3.7): 16 entries, granularity 4 bytes.

use isa::Privilege;

use crate::mmu::Access;

/// Number of implemented entries.
pub(crate) const ENTRIES: usize = 16;

/// `pmpaddr` holds bits 55..2 of an address.
const ADDR_MASK: u64 = (1 << 54) - 1;

const READ: u8 = 1;
const WRITE: u8 = 2;
const EXEC: u8 = 4;
const LOCK: u8 = 0x80;
/// R, W, X, A and L; bits 5 and 6 are reserved.
const CFG_MASK: u8 = 0x9f;

/// The address-matching field of a configuration byte.
const fn mode(cfg: u8) -> u8 {
    cfg >> 3 & 3
}
const TOR: u8 = 1;
const NA4: u8 = 2;

/// The protection registers, with the ranges that they describe worked out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pmp {
    cfg: [u8; ENTRIES],
    addr: [u64; ENTRIES],
    /// First byte and last byte of each entry; `first > last` for one that matches nothing.
    range: [(u64, u64); ENTRIES],
}

snapshot::snapshot!(Pmp { cfg, addr, range });

impl Pmp {
    pub(crate) fn new() -> Self {
        let mut pmp = Self::default();
        pmp.update_ranges();
        pmp
    }

    /// Reads `pmpcfg<2 * half>`: eight configuration bytes.
    pub(crate) fn config(&self, half: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.cfg[half * 8..half * 8 + 8]);
        u64::from_le_bytes(bytes)
    }

    /// Writes `pmpcfg<2 * half>`; locked entries keep their configuration.
    pub(crate) fn set_config(&mut self, half: usize, value: u64) {
        for (cfg, new) in self.cfg[half * 8..half * 8 + 8].iter_mut().zip(value.to_le_bytes()) {
            // W without R is reserved: such a write leaves the entry as it is.
            if *cfg & LOCK == 0 && new & (READ | WRITE) != WRITE {
                *cfg = new & CFG_MASK;
            }
        }
        self.update_ranges();
    }

    /// Reads `pmpaddr<index>`.
    pub(crate) fn address(&self, index: usize) -> u64 {
        self.addr[index]
    }

    /// Writes `pmpaddr<index>`, unless it is locked, or is the base of a locked top-of-range entry.
    pub(crate) fn set_address(&mut self, index: usize, value: u64) {
        let next = self.cfg.get(index + 1).copied().unwrap_or(0);
        let base_locked = next & LOCK != 0 && mode(next) == TOR;
        if self.cfg[index] & LOCK == 0 && !base_locked {
            self.addr[index] = value & ADDR_MASK;
            self.update_ranges();
        }
    }

    fn update_ranges(&mut self) {
        for i in 0..ENTRIES {
            let addr = self.addr[i];
            self.range[i] = match mode(self.cfg[i]) {
                0 => (1, 0),
                TOR => {
                    let base = if i == 0 { 0 } else { self.addr[i - 1] };
                    if addr > base { (base << 2, (addr << 2) - 1) } else { (1, 0) }
                }
                NA4 => (addr << 2, (addr << 2) + 3),
                _ => {
                    let ones = addr.trailing_ones();
                    let size = 8u64 << ones.min(54);
                    let base = (addr << 2) & !(size - 1);
                    (base, base + (size - 1))
                }
            };
        }
    }

    /// True if the access to `size` bytes at `pa` in `privilege` is allowed.
    pub(crate) fn allows(&self, pa: u64, size: u64, access: Access, privilege: Privilege) -> bool {
        let last = pa + (size - 1);
        for (i, &(first_byte, last_byte)) in self.range.iter().enumerate() {
            if first_byte > last || last_byte < pa {
                continue;
            }
            // The lowest-numbered entry that matches any byte decides, and must match all of them.
            return first_byte <= pa && last <= last_byte && self.grants(i, access, privilege);
        }
        privilege == Privilege::Machine
    }

    /// The decision for a whole page, or `None` if it differs within the page.
    pub(crate) fn allows_page(
        &self,
        page: u64,
        access: Access,
        privilege: Privilege,
    ) -> Option<bool> {
        let last = page | 0xfff;
        for (i, &(first_byte, last_byte)) in self.range.iter().enumerate() {
            if first_byte > last || last_byte < page {
                continue;
            }
            let whole = first_byte <= page && last <= last_byte;
            return whole.then(|| self.grants(i, access, privilege));
        }
        Some(privilege == Privilege::Machine)
    }

    fn grants(&self, entry: usize, access: Access, privilege: Privilege) -> bool {
        let cfg = self.cfg[entry];
        let needed = match access {
            Access::Load => READ,
            Access::Store => WRITE,
            Access::Fetch => EXEC,
        };
        cfg & needed != 0 || (privilege == Privilege::Machine && cfg & LOCK == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Privilege::{Machine, Supervisor};

    #[test]
    fn without_entries_only_machine_mode_passes() {
        let pmp = Pmp::new();
        assert!(pmp.allows(0x8000_0000, 8, Access::Store, Machine));
        assert!(!pmp.allows(0x8000_0000, 8, Access::Load, Supervisor));
    }

    #[test]
    fn napot_all_of_memory() {
        let mut pmp = Pmp::new();
        pmp.set_address(0, u64::MAX);
        pmp.set_config(0, 0x1f);
        assert_eq!(pmp.allows_page(0x8000_0000, Access::Fetch, Supervisor), Some(true));
        assert!(pmp.allows((1 << 56) - 8, 8, Access::Load, Supervisor));
    }

    #[test]
    fn lower_entry_wins_and_must_cover() {
        let mut pmp = Pmp::new();
        pmp.set_address(0, (0x8000_0000 >> 2) | 1); // 16 bytes, NAPOT, no access
        pmp.set_address(1, u64::MAX);
        pmp.set_config(0, 0x1f18);
        assert!(!pmp.allows(0x8000_0008, 4, Access::Load, Supervisor));
        assert!(!pmp.allows(0x8000_000c, 8, Access::Load, Supervisor));
        assert!(pmp.allows(0x8000_0010, 8, Access::Load, Supervisor));
        assert_eq!(pmp.allows_page(0x8000_0000, Access::Load, Supervisor), None);
        assert_eq!(pmp.allows_page(0x8000_1000, Access::Load, Supervisor), Some(true));
    }

    #[test]
    fn locked_entries_bind_machine_mode_and_stay() {
        let mut pmp = Pmp::new();
        pmp.set_address(0, 0x1000 >> 2);
        pmp.set_address(1, 0x2000 >> 2);
        pmp.set_config(0, 0x8900); // entry 1: TOR, R, locked
        pmp.set_config(0, 0);
        pmp.set_address(0, 0);
        pmp.set_address(1, 0);
        assert_eq!(pmp.address(0), 0x1000 >> 2);
        assert!(pmp.allows(0x1ff8, 8, Access::Load, Machine));
        assert!(!pmp.allows(0x1ff8, 8, Access::Store, Machine));
    }
}
