//! The parameters of a core. What each means, with its unit, stands once: beside its value in
//! `presets/boom-4w.toml`, which [`super::Preset::describe`] prints.
#![expect(
    missing_docs,
    reason = "each key is documented in presets/boom-4w.toml"
)]

use isa::{Extension, Extensions};
use serde::{Deserialize, Serialize};

macro_rules! sections {
    ($( $(#[$meta:meta])* $name:ident { $( $key:ident: $type:ty, )* } )*) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
            #[serde(deny_unknown_fields)]
            pub struct $name {
                $( pub $key: $type, )*
            }
        )*
    };
}

sections! {
    /// A core: all its parameters.
    Preset {
        name: String,
        summary: String,
        isa: Isa,
        clock: Clock,
        fetch: Fetch,
        predictor: Predictor,
        decode: Decode,
        rob: Rob,
        rename: Rename,
        issue: Issue,
        execute: Execute,
        lsu: Lsu,
        itlb: Tlb,
        dtlb: Tlb,
        l2tlb: L2Tlb,
        l1i: L1i,
        l1d: L1d,
        l2: L2,
        llc: Llc,
        coherence: Coherence,
        dram: Dram,
        mmio: Mmio,
    }
    /// Extensions beyond RV64GC.
    Isa {
        zicbom: bool, zicboz: bool, zicond: bool, zacas: bool, zawrs: bool, zfa: bool,
        zfh: bool, zfhmin: bool, zba: bool, zbb: bool, zbc: bool, zbs: bool, zcb: bool, smcntrpmf: bool, sstc: bool, svadu: bool, svinval: bool, svnapot: bool, svpbmt: bool,
    }
    /// Clock.
    Clock { mhz: u32, }
    /// Fetch packets, fetch buffer, fetch target queue.
    Fetch { bytes: u32, insts: u32, buffer: u32, targets: u32, }
    /// Branch prediction.
    Predictor {
        micro_btb: u32, btb_sets: u32, bimodal_sets: u32, tage: bool, loops: bool, returns: u32,
    }
    /// Decode, dispatch and commit width.
    Decode { width: u32, }
    /// Reorder buffer.
    Rob { entries: u32, }
    /// Physical registers and branch tags.
    Rename { int_regs: u32, fp_regs: u32, branches: u32, }
    /// Issue queues.
    Issue {
        mem_entries: u32, mem_width: u32, int_entries: u32, int_width: u32, fp_entries: u32,
        fp_width: u32,
    }
    /// Latencies of execution units.
    Execute { mul: u32, fp: u32, fdiv: u32, fsqrt: u32, int_to_fp: u32, }
    /// Load and store queue.
    Lsu { loads: u32, stores: u32, }
    /// First-level TLB.
    Tlb { entries: u32, }
    /// Second-level TLB and page-table walker.
    L2Tlb { entries: u32, latency: u32, step: u32, }
    /// L1 instruction cache.
    L1i { kib: u32, ways: u32, prefetch: bool, refill: u32, }
    /// L1 data cache.
    L1d {
        kib: u32, ways: u32, banks: u32, mshrs: u32, prefetch: bool, refill: u32, release: u32,
        writeback: u32, line_port: u32,
    }
    /// L2 cache, inclusive of the L1 data cache.
    L2 { kib: u32, ways: u32, mshrs: u32, latency: u32, interval: u32, }
    /// Memory-side last-level cache.
    Llc { kib: u32, ways: u32, mshrs: u32, latency: u32, }
    /// What several harts' caches ask of each other.
    Coherence { probe: u32, transfer: u32, }
    /// Memory.
    Dram {
        model: DramModel, mhz: u32, cas: u32, rcd: u32, rp: u32, burst: u32, ranks: u32,
        banks: u32, row_bytes: u32, refresh: bool, controller: u32, latency: u32,
        bytes_per_cycle: u32,
    }
    /// Device registers.
    Mmio { latency: u32, }
}

impl Isa {
    /// The set of them.
    pub fn extensions(&self) -> Extensions {
        use Extension as E;
        let keys = [
            (E::Zicbom, self.zicbom),
            (E::Zicboz, self.zicboz),
            (E::Zicond, self.zicond),
            (E::Zacas, self.zacas),
            (E::Zawrs, self.zawrs),
            (E::Zfa, self.zfa),
            (E::Zfh, self.zfh),
            (E::Zfhmin, self.zfhmin),
            (E::Zba, self.zba),
            (E::Zbb, self.zbb),
            (E::Zbc, self.zbc),
            (E::Zbs, self.zbs),
            (E::Zcb, self.zcb),
            (E::Smcntrpmf, self.smcntrpmf),
            (E::Sstc, self.sstc),
            (E::Svadu, self.svadu),
            (E::Svinval, self.svinval),
            (E::Svnapot, self.svnapot),
            (E::Svpbmt, self.svpbmt),
        ];
        keys.into_iter()
            .fold(Extensions::NONE, |set, (e, on)| set.with(e, on))
    }
}

/// Memory model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DramModel {
    /// Banks and rows, open page.
    Ddr,
    /// Fixed latency, in order.
    Fixed,
}
