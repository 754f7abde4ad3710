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
        self.load_tlb.flush();
        self.store_tlb.flush();
        self.fetch_tlb.flush();
        self.superpages.clear();
    }

    /// Drops the translations of stores to the page at a physical address.
    pub(crate) fn flush_stores_to(&mut self, pa: u64) {
        let host = pa.wrapping_sub(self.host_to_pa) as *mut u8;
        self.store_tlb.flush_host(host);
    }
}
