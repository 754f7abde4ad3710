//! The register table as a C header and as documentation.

use std::fmt::Write;

use register_table::{c_defines, markdown_rows};

use crate::Reg;
use crate::regs::{HEURISTICS, MAGIC, SIDE_BAND, SIDE_BAND_VALUES, TABLE, VERSION};
use crate::sample::{SAMPLE_BYTES, SAMPLE_WORDS};

/// `compatible` of the units' node in the device tree.
pub const COMPATIBLE: &str = "tipsim,tip";

/// Where a machine has its units. The unit itself knows no addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Physical address of the registers of hart 0's unit.
    pub base: u64,
    /// Bytes of a unit's page: the page of hart n is n pages behind that of hart 0.
    pub bytes: u64,
    /// PLIC source of the interrupt of hart 0's unit; the source of hart n is n more.
    pub irq: u32,
}

/// The header that the kernel driver includes: offsets as `TIP_<REG>`, fields as
/// `TIP_<REG>_<FIELD>_MASK` (already shifted) and `TIP_<REG>_<FIELD>_SHIFT`, heuristics as
/// `TIP_HEURISTIC_<NAME>`, side-band types and values as `TIP_SB_<NAME>`.
pub fn c_header() -> String {
    let mut out = String::from(
        "/* SPDX-License-Identifier: GPL-2.0 OR MIT */\n\
         /* Registers of the TIP unit. Generated from tip-device/src/regs.rs; do not edit. */\n\
         #ifndef TIP_REGS_H\n#define TIP_REGS_H\n\n",
    );
    let _ = writeln!(out, "#define TIP_MAGIC 0x{MAGIC:x}ULL");
    let _ = writeln!(out, "#define TIP_VERSION {VERSION}");
    out += &c_defines("TIP", TABLE);
    out.push_str("\n/* Values of TIP_CONTROL_HEURISTIC. */\n");
    for (number, heuristic) in HEURISTICS.iter().enumerate() {
        let (name, doc) = (heuristic.name(), heuristic.doc());
        let name = name.to_uppercase().replace('-', "_");
        let _ = writeln!(out, "#define TIP_HEURISTIC_{name} {number} /* {doc} */");
    }
    out.push_str("\n/* Side-band record types; fields are packed, little-endian. */\n");
    for (name, kind, doc) in SIDE_BAND {
        let _ = writeln!(out, "#define TIP_SB_{name} {kind} /* {doc} */");
    }
    out.push_str("\n/* Values of their fields. */\n");
    for (name, value, doc) in SIDE_BAND_VALUES {
        let _ = writeln!(out, "#define TIP_SB_{name} {value} /* {doc} */");
    }
    out.push_str("\n#endif\n");
    out
}

/// Addresses, interrupts and accesses of the units of a machine.
fn where_it_is(place: Placement) -> String {
    let Placement { base, bytes, irq } = place;
    format!(
        "\n## Where a unit is\n\n\
         Each hart has a unit, a page of registers: that of hart n is at physical address {base:#x} + n * {bytes:#x}, and its interrupt is the PLIC's\n\
         source {irq} + n. The device tree has one node for all, `tip@{base:x}`, `compatible = \"{COMPATIBLE}\"`: `reg` spans the pages, `interrupts`\n\
         lists the sources in the order of the harts' ids. The interrupt is level-sensitive, and high by what is said at `POP`, `BUFFER_CONFIG` and `STATUS`.\n\
         A unit with `ENABLE` and `IRQ_ENABLE` raises it again at each period, whether or not anybody takes the samples: a driver writes 0 to\n\
         `CONTROL` where no event uses the unit.\n\n\
         Registers are 64 bits wide. They are accessed by aligned 64-bit loads and stores alone (`ld`, `sd`); an access of another size, or at an offset\n\
         that is no register's, raises an access fault. Whoever page tables and PMP let reach the page may use it. Reads of\n\
         write-only registers give 0, writes to read-only ones are ignored. Cycles are core cycles.\n"
    )
}

/// The layout of a sample in the buffer.
fn sample_in_memory() -> String {
    let mut out = format!(
        "\n## A sample in memory\n\n\
         With `CONTROL.BUFFER`, sample i (from 0, see `BUFFER_HEAD`) is at `BUFFER_BASE` + {SAMPLE_BYTES} * (i mod n), where n = (4096 << `SIZE`) / {SAMPLE_BYTES}. It has\n\
         {SAMPLE_BYTES} bytes: eight little-endian words, the first six and `WEIGHT` as the registers of the same name have them.\n\n\
         | offset | word | meaning |\n|---|---|---|\n"
    );
    for (at, (name, doc)) in SAMPLE_WORDS.iter().enumerate() {
        let _ = writeln!(out, "| 0x{:02x} | `{name}` | {doc} |", 8 * at);
    }
    let register = |reg: Reg| TABLE.iter().find(|row| row.reg == reg).map_or("", |row| row.name);
    let (head, tail) = (register(Reg::BufferHead), register(Reg::BufferTail));
    let _ = writeln!(
        out,
        "\nTo take samples: read `{head}`, read the samples from `{tail}` to before it, then write that number to `{tail}`. The buffer is\n\
         physically contiguous memory; what the unit writes is coherent with the harts' caches. To begin: write 0 to `CONTROL`, then `BUFFER_BASE`,\n\
         `BUFFER_CONFIG`, `PERIOD`, `COUNT`, and last `CONTROL`."
    );
    out
}

/// The register documentation, in Markdown, for a machine that has its units at `place`.
pub fn markdown(place: Placement) -> String {
    let mut out = String::from(
        "# TIP unit: registers\n\nGenerated from `src/regs.rs`, `src/sample.rs` and the machine's memory map (`BLESS=1 cargo test -p tip-device` \
         writes it anew).\nWhat a driver has to know is here; that of the guest's kernel is `linux-patches/0003` and `0086`.\n",
    );
    out += &where_it_is(place);
    out.push_str("\n## Registers\n\n| offset | name | access | meaning |\n|---|---|---|---|\n");
    out += &markdown_rows(TABLE);
    out += &sample_in_memory();
    out.push_str(
        "\n## Heuristics\n\n| `CONTROL.HEURISTIC` | name | a sample names |\n|---|---|---|\n",
    );
    for (number, heuristic) in HEURISTICS.iter().enumerate() {
        let (name, doc) = (heuristic.name(), heuristic.doc());
        let _ = writeln!(out, "| {number} | `{name}` | {doc} |");
    }
    out.push_str("\n## Side-band records\n\n| type | name | payload |\n|---|---|---|\n");
    for (name, kind, doc) in SIDE_BAND {
        let _ = writeln!(out, "| {kind} | `{name}` | {doc} |");
    }
    out.push_str("\n| field's value | name | meaning |\n|---|---|---|\n");
    for (name, value, doc) in SIDE_BAND_VALUES {
        let _ = writeln!(out, "| {value} | `{name}` | {doc} |");
    }
    out
}
