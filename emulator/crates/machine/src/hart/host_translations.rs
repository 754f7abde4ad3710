//! Translations from the guest's virtual addresses to what the host has for them.

use isa::Privilege;

use crate::mmu_tlb::{DataTlb, FetchTlb, Rights, Superpages};

/// Host pointers and decoded pages by virtual address. They make a hart fast and are no part of what is modelled; all are
/// found anew in each run.
pub(crate) struct HostTranslations {
    /// Host pages of loads.
    pub load_tlb: DataTlb,
    /// Host pages of stores: those that nobody has to hear of.
    pub store_tlb: DataTlb,
    /// Host pages of loads that have contended lines: the hart may have to wait before it accesses one.
    pub contended_loads: DataTlb,
    /// Host pages of stores that have contended lines.
    pub contended_stores: DataTlb,
    /// Rights of data accesses, from the privilege and `mstatus`.
    pub rights: Rights,
    /// Privilege of data accesses (`mstatus.MPRV`).
    pub data_privilege: Privilege,
    /// Physical address minus host address of RAM, while the bus is borrowed for a run.
    pub host_to_pa: u64,
    /// Decoded pages of fetches.
    pub fetch_tlb: FetchTlb,
    /// Superpages of which a part is in the TLBs.
    pub superpages: Superpages,
}

impl HostTranslations {
    /// Returns empty TLBs, for machine mode.
    pub(crate) fn new() -> Self {
        Self {
            load_tlb: DataTlb::new(),
            store_tlb: DataTlb::new(),
            contended_loads: DataTlb::new(),
            contended_stores: DataTlb::new(),
            rights: Rights::Machine,
            data_privilege: Privilege::Machine,
            host_to_pa: 0,
            fetch_tlb: FetchTlb::new(),
            superpages: Superpages::new(),
        }
    }

    /// Returns the physical address of a byte of RAM, from its host address.
    #[inline(always)]
    pub(crate) fn physical(&self, host: *mut u8) -> u64 {
        (host as u64).wrapping_add(self.host_to_pa)
    }

    /// Drops every cached translation.
    pub(crate) fn flush(&mut self) {
        self.flush_loads();
        self.flush_stores();
        self.fetch_tlb.flush();
        self.superpages.clear();
    }

    /// Drops the translations of loads.
    pub(crate) fn flush_loads(&mut self) {
        self.load_tlb.flush();
        self.contended_loads.flush();
    }

    /// Drops the translations of stores.
    pub(crate) fn flush_stores(&mut self) {
        self.store_tlb.flush();
        self.contended_stores.flush();
    }

    /// Drops the translations of data accesses to the aligned region of 2^`bits` bytes that holds a virtual address.
    pub(crate) fn flush_region(&mut self, va: u64, bits: u32) {
        let Self { load_tlb, store_tlb, contended_loads, contended_stores, .. } = self;
        for tlb in [load_tlb, store_tlb, contended_loads, contended_stores] {
            tlb.flush_region(va, bits);
        }
    }

    /// Has loads and stores to the page at a physical address take the slow path.
    pub(crate) fn slow_accesses_to(&mut self, pa: u64) {
        let host = (pa & !0xfff).wrapping_sub(self.host_to_pa) as *mut u8;
        self.load_tlb.flush_host(host);
        self.store_tlb.flush_host(host);
    }

    /// Drops the translations of stores to the page at a physical address.
    pub(crate) fn flush_stores_to(&mut self, pa: u64) {
        let host = pa.wrapping_sub(self.host_to_pa) as *mut u8;
        self.store_tlb.flush_host(host);
    }
}
