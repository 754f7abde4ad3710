//! The parameters of a core. What each means, with its unit, stands once: beside its value in
//! `presets/boom-4w.toml`, which [`super::Preset::describe`] prints.
#![expect(missing_docs, reason = "each key is documented in presets/boom-4w.toml")]

use serde::{Deserialize, Serialize};

use super::extensions::Isa;
use super::limits::{HasLimits, Limit, LimitKind, key_path};

/// What a number may be, beside its key: `[Range LOW to HIGH]`, `[PowerOfTwo LOW to HIGH]` for a power of two, or
/// `[ZeroOrPowerOfTwo LOW to HIGH]`. What depends on other parameters is in `check.rs`.
macro_rules! sections {
    ($( $(#[$meta:meta])* $name:ident { $( $key:ident: $type:ty $([$kind:ident $low:literal to $high:literal])?, )* } )*) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
            #[serde(deny_unknown_fields)]
            pub struct $name {
                $( pub $key: $type, )*
            }

            impl HasLimits for $name {
                fn limits(&self, path: &str, limits: &mut Vec<Limit>) {
                    $(
                        let key = key_path(path, stringify!($key));
                        $( limits.push(Limit { key: key.clone(), found: self.$key, kind: LimitKind::$kind, low: $low, high: $high }); )?
                        self.$key.limits(&key, limits);
                    )*
                }
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
        what_if: WhatIf,
    }
    /// Clock.
    Clock {
        mhz: u32 [Range 1 to 100_000],
    }
    /// Fetch packets, fetch buffer, fetch target queue.
    Fetch {
        bytes: u32 [PowerOfTwo 8 to 32],
        insts: u32,
        buffer: u32,
        targets: u32 [Range 4 to 256],
    }
    /// Branch prediction.
    Predictor {
        micro_btb: u32 [ZeroOrPowerOfTwo 1 to 16],
        btb_sets: u32 [PowerOfTwo 1 to 4_096],
        bimodal_sets: u32 [PowerOfTwo 1 to 65_536],
        tage: bool,
        loops: bool,
        at_commit: bool,
        returns: u32 [Range 1 to 64],
    }
    /// Decode, dispatch and commit width.
    Decode {
        width: u32 [Range 1 to 8],
    }
    /// Reorder buffer.
    Rob {
        entries: u32,
    }
    /// Physical registers and branch tags.
    Rename {
        int_regs: u32,
        fp_regs: u32,
        branches: u32,
    }
    /// Issue queues.
    Issue {
        mem_entries: u32,
        mem_width: u32 [Range 1 to 2],
        int_entries: u32,
        int_width: u32 [Range 1 to 5],
        fp_entries: u32,
        fp_width: u32 [Range 1 to 2],
    }
    /// Latencies of execution units.
    Execute {
        mul: u32 [Range 1 to 200],
        fp: u32 [Range 1 to 200],
        fdiv: u32 [Range 4 to 200],
        fsqrt: u32 [Range 4 to 200],
        int_to_fp: u32 [Range 1 to 200],
    }
    /// Load and store queue.
    Lsu {
        loads: u32 [Range 2 to 128],
        stores: u32 [Range 2 to 64],
    }
    /// First-level TLB.
    Tlb {
        entries: u32 [Range 1 to 64],
    }
    /// Second-level TLB and page-table walker.
    L2Tlb {
        entries: u32 [ZeroOrPowerOfTwo 1 to 1_048_576],
        latency: u32 [Range 1 to 1000],
        step: u32 [Range 1 to 1000],
    }
    /// L1 instruction cache.
    L1i {
        kib: u32 [PowerOfTwo 1 to 1024],
        ways: u32 [PowerOfTwo 1 to 16],
        prefetch: bool,
        refill: u32 [Range 0 to 1000],
    }
    /// L1 data cache.
    L1d {
        kib: u32 [PowerOfTwo 1 to 1024],
        ways: u32 [PowerOfTwo 1 to 16],
        banks: u32 [PowerOfTwo 1 to 2],
        mshrs: u32 [Range 1 to 16],
        prefetch: bool,
        refill: u32 [Range 2 to 1000],
        release: u32 [Range 0 to 1000],
        writeback: u32 [Range 0 to 1000],
        line_port: u32 [Range 0 to 1000],
    }
    /// L2 cache, inclusive of the L1 data cache.
    L2 {
        kib: u32 [PowerOfTwo 1 to 65_536],
        ways: u32 [PowerOfTwo 1 to 16],
        mshrs: u32 [Range 1 to 16],
        latency: u32 [Range 1 to 1000],
        interval: u32 [Range 0 to 100],
    }
    /// Memory-side last-level cache.
    Llc {
        kib: u32 [ZeroOrPowerOfTwo 1 to 1_048_576],
        ways: u32 [PowerOfTwo 1 to 16],
        mshrs: u32 [Range 1 to 16],
        latency: u32 [Range 1 to 1000],
    }
    /// What several harts' caches ask of each other.
    Coherence {
        probe: u32 [Range 0 to 1000],
        transfer: u32 [Range 0 to 1000],
    }
    /// Memory.
    Dram {
        model: DramModel,
        mhz: u32 [Range 1 to 100_000],
        cas: u32 [Range 1 to 1000],
        rcd: u32 [Range 1 to 1000],
        rp: u32 [Range 1 to 1000],
        burst: u32 [Range 1 to 1000],
        ranks: u32 [PowerOfTwo 1 to 16],
        banks: u32 [PowerOfTwo 1 to 64],
        row_bytes: u32 [PowerOfTwo 64 to 65_536],
        refresh: bool,
        controller: u32 [Range 0 to 100_000],
        latency: u32 [Range 1 to 100_000],
        bytes_per_cycle: u32 [Range 1 to 64],
    }
    /// Device registers.
    Mmio {
        latency: u32 [Range 1 to 100_000],
    }
    /// What no core has.
    WhatIf {
        without: Vec<String>,
        padded: Vec<String>,
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
