//! Address translation: Sv39 and Sv48 page walks (Privileged ISA 1.13, sections 4.3 to 4.5).
//!
//! A clear accessed or dirty bit is a page fault (Svade), unless hardware writes them (Svadu, `menvcfg.ADUE`).

use isa::{Exception, Extension, Extensions};

/// What an access wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Read data.
    Load,
    /// Write data, or read and write it (atomics).
    Store,
    /// Fetch an instruction.
    Fetch,
}

impl Access {
    pub(crate) fn page_fault(self) -> Exception {
        match self {
            Self::Load => Exception::LoadPageFault,
            Self::Store => Exception::StorePageFault,
            Self::Fetch => Exception::InstPageFault,
        }
    }

    pub(crate) fn access_fault(self) -> Exception {
        match self {
            Self::Load => Exception::LoadAccessFault,
            Self::Store => Exception::StoreAccessFault,
            Self::Fetch => Exception::InstAccessFault,
        }
    }
}

/// Page-table entry bits.
pub(crate) mod pte {
    pub(crate) const V: u64 = 1 << 0;
    pub(crate) const R: u64 = 1 << 1;
    pub(crate) const W: u64 = 1 << 2;
    pub(crate) const X: u64 = 1 << 3;
    pub(crate) const U: u64 = 1 << 4;
    pub(crate) const G: u64 = 1 << 5;
    pub(crate) const A: u64 = 1 << 6;
    pub(crate) const D: u64 = 1 << 7;
    /// Bits 60..54.
    pub(crate) const RESERVED: u64 = 0x7f << 54;
    /// Memory type (Svpbmt): 0 to 2.
    pub(crate) const TYPE: u64 = 3 << 61;
    /// The page is part of a naturally aligned power-of-two range (Svnapot).
    pub(crate) const N: u64 = 1 << 63;
}

/// The `satp` register, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Satp(pub u64);

snapshot::snapshot!(Satp(0));

impl Satp {
    const SV39: u64 = 8;
    const SV48: u64 = 9;

    /// The value that a write leaves: an unsupported mode makes the write void (`None`). No ASID bits exist.
    pub(crate) fn legalize(value: u64, extensions: Extensions) -> Option<Self> {
        let supported = match value >> 60 {
            0 | Self::SV39 => true,
            Self::SV48 => extensions.has(Extension::Sv48),
            _ => false,
        };
        supported.then_some(Self(value & (0xf << 60 | ((1 << 44) - 1))))
    }

    /// Number of page-table levels; 0 if translation is off.
    pub(crate) fn levels(self) -> u32 {
        match self.0 >> 60 {
            Self::SV39 => 3,
            Self::SV48 => 4,
            _ => 0,
        }
    }

    /// Page number of the root table.
    pub(crate) fn root(self) -> u64 {
        self.0 & ((1 << 44) - 1)
    }
}

/// Which of the extensions to page-table entries are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageFeatures {
    /// Svnapot.
    pub napot: bool,
    /// Svpbmt (`menvcfg.PBMTE`).
    pub types: bool,
}

/// log2 of the one size of a range that Svnapot has.
const NAPOT_BITS: u8 = 16;

/// The leaf that a walk ended at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaf {
    /// Physical address that `va` maps to.
    pub pa: u64,
    /// Entry.
    pub pte: u64,
    /// Physical address of the entry.
    pub at: u64,
    /// log2 of the page size.
    pub page_bits: u8,
}

/// Why a walk failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WalkFault {
    /// No valid mapping.
    Page,
    /// A page-table entry could not be read.
    Access,
}

/// The mapping when translation is off.
pub(crate) fn bare(va: u64) -> Leaf {
    Leaf { pa: va, pte: pte::V | pte::R | pte::W | pte::X, at: 0, page_bits: 12 }
}

/// Walks the tables for `va` under a `satp` that has levels. `read` gets each entry's physical address; `None` is an access fault.
pub(crate) fn walk(
    satp: Satp,
    features: PageFeatures,
    va: u64,
    mut read: impl FnMut(u64) -> Option<u64>,
) -> Result<Leaf, WalkFault> {
    let levels = satp.levels();
    let unused = 64 - (12 + 9 * levels);
    if ((va << unused) as i64 >> unused) as u64 != va {
        return Err(WalkFault::Page);
    }
    let mut table = satp.root() << 12;
    for level in (0..levels).rev() {
        let page_bits = 12 + 9 * level;
        let index = va >> page_bits & 0x1ff;
        let at = table + index * 8;
        let entry = read(at).ok_or(WalkFault::Access)?;
        let memory_type = entry & pte::TYPE;
        let typed = memory_type != 0 && (!features.types || memory_type == pte::TYPE);
        if typed || entry & pte::N != 0 && !features.napot {
            return Err(WalkFault::Page);
        }
        if entry & pte::V == 0 || entry & (pte::R | pte::W) == pte::W || entry & pte::RESERVED != 0
        {
            return Err(WalkFault::Page);
        }
        let target = (entry >> 10 & ((1 << 44) - 1)) << 12;
        if entry & (pte::R | pte::X) != 0 {
            let offset = (1u64 << page_bits) - 1;
            if target & offset != 0 {
                return Err(WalkFault::Page); // misaligned superpage
            }
            if entry & pte::N != 0 {
                let range = (1 << NAPOT_BITS) - 1;
                // The one encoding: page number bits 3 to 0 are 8, in the last level.
                if level != 0 || target & range != 8 << 12 {
                    return Err(WalkFault::Page);
                }
                return Ok(Leaf {
                    pa: target & !range | va & range,
                    pte: entry,
                    at,
                    page_bits: 12,
                });
            }
            return Ok(Leaf {
                pa: target | va & offset,
                pte: entry,
                at,
                page_bits: page_bits as u8,
            });
        }
        // A, D, U, N and the type are reserved in a pointer to the next level.
        if entry & (pte::A | pte::D | pte::U | pte::N | pte::TYPE) != 0 {
            return Err(WalkFault::Page);
        }
        table = target;
    }
    Err(WalkFault::Page)
}

/// Privilege under which memory is accessed, as far as the leaf's permission bits depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EffectivePrivilege {
    /// User mode (else supervisor).
    pub user: bool,
    /// `mstatus.SUM`: the supervisor may touch user pages.
    pub sum: bool,
    /// `mstatus.MXR`: executable pages are readable.
    pub mxr: bool,
}

/// The entry after an access: hardware has written A, and D if that writes.
pub(crate) fn accessed(leaf_pte: u64, access: Access) -> u64 {
    match access {
        Access::Store => leaf_pte | pte::A | pte::D,
        Access::Load | Access::Fetch => leaf_pte | pte::A,
    }
}

/// True if the leaf permits the access (A and D included).
pub(crate) fn permits(leaf_pte: u64, access: Access, by: EffectivePrivilege) -> bool {
    let user_page = leaf_pte & pte::U != 0;
    let reach = match (by.user, user_page) {
        (true, user_page) => user_page,
        (false, false) => true,
        (false, true) => by.sum && access != Access::Fetch,
    };
    let needed = match access {
        Access::Load if by.mxr => leaf_pte & (pte::R | pte::X) != 0,
        Access::Load => leaf_pte & pte::R != 0,
        Access::Store => leaf_pte & (pte::W | pte::D) == pte::W | pte::D,
        Access::Fetch => leaf_pte & pte::X != 0,
    };
    reach && needed && leaf_pte & pte::A != 0
}

#[cfg(test)]
#[path = "mmu_tests.rs"]
mod tests;
