//! The register table as a C header and as documentation.

use std::fmt::Write;

use register_table::{c_defines, markdown_rows};

use crate::regs::{HEURISTICS, MAGIC, SIDE_BAND, SIDE_BAND_VALUES, TABLE};

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
    let _ = writeln!(out, "#define TIP_VERSION 1");
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

/// The register documentation, in Markdown.
pub fn markdown() -> String {
    let mut out = String::from(
        "# TIP unit: registers\n\nGenerated from `src/regs.rs` (`BLESS=1 cargo test -p tip-device` \
         writes it anew).\nRegisters are 64 bits wide and accessed with 64-bit loads and stores. \
         Cycles are core cycles.\n\n| offset | name | access | meaning |\n|---|---|---|---|\n",
    );
    out += &markdown_rows(TABLE);
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
