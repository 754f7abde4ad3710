//! Values that parse but describe no core.

use super::{Preset, PresetError};

impl Preset {
    /// Registers of the integer and the FP file that do not hold the architectural state.
    pub(crate) fn renamed_registers(&self) -> [u32; 2] {
        [self.rename.int_regs - 32, self.rename.fp_regs - 32]
    }

    /// A register file can run out before the ROB is full.
    pub(crate) fn registers_are_scarce(&self) -> bool {
        self.renamed_registers()
            .iter()
            .any(|&n| n < self.rob.entries)
    }

    /// Checks every rule; the first broken one is the error.
    pub(super) fn check(&self, file: &str) -> Result<(), PresetError> {
        let bad = |key: &str, expected: String, found: u32| {
            Err(PresetError::Value {
                file: file.to_owned(),
                key: key.to_owned(),
                expected,
                found: found.to_string(),
            })
        };
        let width = self.decode.width;
        // The limits of others are computed from it.
        if !(1..=8).contains(&width) {
            return bad("decode.width", "1 to 8".into(), width);
        }
        let ranges = [
            ("clock.mhz", self.clock.mhz, 1, 100_000),
            ("fetch.insts", self.fetch.insts, 1, self.fetch.bytes / 2),
            ("fetch.targets", self.fetch.targets, 4, 256),
            ("predictor.returns", self.predictor.returns, 1, 64),
            ("rob.entries", self.rob.entries, 2 * width, 256 * width),
            (
                "rename.int_regs",
                self.rename.int_regs,
                33 + width,
                32 + 256,
            ),
            ("rename.fp_regs", self.rename.fp_regs, 33 + width, 32 + 256),
            ("rename.branches", self.rename.branches, width, 127),
            ("issue.mem_entries", self.issue.mem_entries, width, 127),
            ("issue.int_entries", self.issue.int_entries, width, 127),
            ("issue.fp_entries", self.issue.fp_entries, width, 127),
            ("issue.mem_width", self.issue.mem_width, 1, 2),
            ("issue.int_width", self.issue.int_width, 1, 5),
            ("issue.fp_width", self.issue.fp_width, 1, 2),
            ("execute.mul", self.execute.mul, 1, 200),
            ("execute.fp", self.execute.fp, 1, 200),
            ("execute.fdiv", self.execute.fdiv, 4, 200),
            ("execute.fsqrt", self.execute.fsqrt, 4, 200),
            ("execute.int_to_fp", self.execute.int_to_fp, 1, 200),
            ("lsu.loads", self.lsu.loads, 2, 128),
            ("lsu.stores", self.lsu.stores, 2, 64),
            ("itlb.entries", self.itlb.entries, 1, 64),
            ("dtlb.entries", self.dtlb.entries, 1, 64),
            ("l2tlb.latency", self.l2tlb.latency, 1, 1000),
            ("l2tlb.step", self.l2tlb.step, 1, 1000),
            ("l1i.refill", self.l1i.refill, 0, 1000),
            ("l1d.mshrs", self.l1d.mshrs, 1, 16),
            ("l1d.refill", self.l1d.refill, 2, 1000),
            ("l1d.release", self.l1d.release, 0, 1000),
            ("l1d.writeback", self.l1d.writeback, 0, 1000),
            ("l1d.line_port", self.l1d.line_port, 0, 1000),
            ("l2.mshrs", self.l2.mshrs, 1, 16),
            ("l2.latency", self.l2.latency, 1, 1000),
            ("l2.interval", self.l2.interval, 0, 100),
            ("llc.mshrs", self.llc.mshrs, 1, 16),
            ("llc.latency", self.llc.latency, 1, 1000),
            ("coherence.probe", self.coherence.probe, 0, 1000),
            ("coherence.transfer", self.coherence.transfer, 0, 1000),
            ("dram.mhz", self.dram.mhz, 1, 100_000),
            ("dram.cas", self.dram.cas, 1, 1000),
            ("dram.rcd", self.dram.rcd, 1, 1000),
            ("dram.rp", self.dram.rp, 1, 1000),
            ("dram.burst", self.dram.burst, 1, 1000),
            ("dram.controller", self.dram.controller, 0, 100_000),
            ("dram.latency", self.dram.latency, 1, 100_000),
            ("dram.bytes_per_cycle", self.dram.bytes_per_cycle, 1, 64),
            ("mmio.latency", self.mmio.latency, 1, 100_000),
        ];
        for (key, found, low, high) in ranges {
            if !(low..=high).contains(&found) {
                return bad(key, format!("{low} to {high}"), found);
            }
        }
        let isa = &self.isa;
        let needs = [
            (
                "isa.zcb",
                isa.zcb,
                isa.zba && isa.zbb,
                "isa.zba and isa.zbb",
            ),
            ("isa.zfh", isa.zfh, isa.zfhmin, "isa.zfhmin"),
        ];
        for (key, on, present, what) in needs {
            if on && !present {
                return Err(PresetError::Value {
                    file: file.to_owned(),
                    key: key.to_owned(),
                    expected: format!("false without {what}"),
                    found: "true".to_owned(),
                });
            }
        }
        let multiples = [
            ("rob.entries", self.rob.entries),
            ("fetch.buffer", self.fetch.buffer),
        ];
        for (key, found) in multiples {
            if found == 0 || found % width != 0 {
                return bad(key, format!("a multiple of decode.width = {width}"), found);
            }
        }
        let buffer = self.fetch.buffer;
        if buffer <= self.fetch.bytes / 2 || buffer > 16 * width {
            let (low, high) = (self.fetch.bytes / 2 + 1, 16 * width);
            return bad("fetch.buffer", format!("{low} to {high}"), buffer);
        }
        let powers = [
            ("fetch.bytes", self.fetch.bytes, 8, 32),
            ("predictor.btb_sets", self.predictor.btb_sets, 1, 4096),
            (
                "predictor.bimodal_sets",
                self.predictor.bimodal_sets,
                1,
                65536,
            ),
            ("l1d.banks", self.l1d.banks, 1, 2),
            ("l1i.ways", self.l1i.ways, 1, 16),
            ("l1d.ways", self.l1d.ways, 1, 16),
            ("l2.ways", self.l2.ways, 1, 16),
            ("llc.ways", self.llc.ways, 1, 16),
            ("l1i.kib", self.l1i.kib, 1, 1024),
            ("l1d.kib", self.l1d.kib, 1, 1024),
            ("l2.kib", self.l2.kib, 1, 65536),
            ("dram.ranks", self.dram.ranks, 1, 16),
            ("dram.banks", self.dram.banks, 1, 64),
            ("dram.row_bytes", self.dram.row_bytes, 64, 65536),
        ];
        let optional = [
            ("predictor.micro_btb", self.predictor.micro_btb, 16),
            ("l2tlb.entries", self.l2tlb.entries, 1 << 20),
            ("llc.kib", self.llc.kib, 1 << 20),
        ];
        let optional = optional
            .into_iter()
            .filter(|(_, v, _)| *v != 0)
            .map(|(k, v, high)| (k, v, 1, high));
        for (key, found, low, high) in powers.into_iter().chain(optional) {
            if !found.is_power_of_two() || !(low..=high).contains(&found) {
                return bad(key, format!("a power of two, {low} to {high}"), found);
            }
        }
        Ok(())
    }
}
