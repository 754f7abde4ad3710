//! The tables as a C header and as documentation.

use std::fmt::Write;

use register_table::{c_defines, markdown_rows};

use crate::regs::{MAGIC, TABLE, VERSION};
use crate::{Event, ORIGINS, Unit};

/// The header that the kernel driver includes: registers as `UNCORE_<REG>` (see [`c_defines`]), events as
/// `UNCORE_LLC_<EVENT>` and `UNCORE_MEMORY_<EVENT>`.
pub fn c_header() -> String {
    let mut out = String::from(
        "/* SPDX-License-Identifier: GPL-2.0 OR MIT */\n\
         /* Registers of the PMUs of last-level cache and memory controller. Generated from uncore-pmu/src; do not edit. */\n\
         #ifndef TIPSIM_UNCORE_REGS_H\n#define TIPSIM_UNCORE_REGS_H\n\n",
    );
    let _ = writeln!(out, "#define UNCORE_MAGIC 0x{MAGIC:x}ULL");
    let _ = writeln!(out, "#define UNCORE_VERSION {VERSION}");
    out += &c_defines("UNCORE", TABLE);
    for (unit, prefix) in [(Unit::Llc, "UNCORE_LLC"), (Unit::MemoryController, "UNCORE_MEMORY")] {
        let _ = writeln!(out, "\n/* Events of unit {}. */", unit as u8);
        for row in Event::TABLE.iter().filter(|row| row.unit == unit) {
            let name = row.name.to_uppercase();
            let _ = writeln!(out, "#define {prefix}_{name} {} /* {} */", row.number, row.doc);
        }
    }
    out.push_str("\n#endif\n");
    out
}

/// The documentation, in Markdown.
pub fn markdown() -> String {
    let mut out = String::from(
        "# PMUs of last-level cache and memory controller: registers\n\nGenerated from `src/regs.rs` and `src/events.rs` \
         (`BLESS=1 cargo test -p uncore-pmu` writes it anew).\nEach unit is a page of registers, 64 bits wide and accessed \
         with 64-bit loads and stores. Cycles are core cycles, lines 64 bytes.\n\nThe units count what the timing core does. While the \
         machine is in functional mode, only cycles and refreshes go on.\n\n| offset | name | access | meaning |\n|---|---|---|---|\n",
    );
    out += &markdown_rows(TABLE);
    for (unit, title) in [
        (Unit::Llc, "last-level cache (unit 1)"),
        (Unit::MemoryController, "memory controller (unit 2)"),
    ] {
        let _ = writeln!(out, "\n## Events: {title}\n\n| number | name | meaning |\n|---|---|---|");
        for row in Event::TABLE.iter().filter(|row| row.unit == unit) {
            let level = if row.level { " (a level)" } else { "" };
            let whole = if row.filtered { "" } else { "; of no hart and origin" };
            let _ =
                writeln!(out, "| {} | `{}` | {}{level}{whole} |", row.number, row.name, row.doc);
        }
    }
    out.push_str(
        "\nA hart's events are those of its own requests. What a request leads to is counted as its own: the line that is evicted \
         for it, written back to memory, or given by another hart's caches. Writes to memory that an eviction causes have the \
         origin of the line's request.\n\n## Origins\n\n| bit | origin | meaning |\n|---|---|---|\n",
    );
    for (bit, (name, doc)) in ORIGINS.iter().enumerate() {
        let _ = writeln!(out, "| {bit} | {name} | {doc} |");
    }
    out.push_str(
        "\nThe model has no queues of reads and writes in the memory controller: an access waits where `queue_occupancy` says, and \
         takes its bank in the order of the program. With `dram.model = \"fixed\"` there are no rows and no refreshes, with \
         `llc.kib = 0` there is no cache: `EVENTS` says what is left.\n",
    );
    out
}
