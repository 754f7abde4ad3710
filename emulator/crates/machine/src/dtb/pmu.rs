//! The `riscv,pmu` node (OpenSBI docs/pmu_support.md): which counters can count what.
//!
//! Cycles and instructions are mapped to programmable counters only: `mcycle` and `minstret`
//! cannot raise overflow interrupts, and perf could not sample them.

use vm_fdt::FdtWriter;

use super::Result;

/// Counters 3 to 18.
const COUNTERS: u32 = 0x0007_fff8;

/// SBI event (SBI 2.0, section 11.1: hardware events, and `0x10000 | cache << 3 | operation << 1 |
/// result`) and the selector of `mhpmevent` that counts it. 7 (bus cycles) has no meaning here.
const EVENTS: [(u32, u32); 18] = [
    (1, 1),        // cycles
    (2, 2),        // instructions
    (3, 3),        // cache references
    (4, 4),        // cache misses
    (5, 5),        // branches
    (6, 6),        // branch misses
    (8, 7),        // front-end stalls
    (9, 8),        // back-end stalls
    (10, 1),       // reference cycles: the clock never changes
    (0x10000, 3),  // L1D read accesses
    (0x10001, 9),  // L1D read misses
    (0x10009, 10), // L1I read misses
    (0x10011, 4),  // LLC read misses
    (0x10019, 11), // DTLB read misses
    (0x10021, 12), // ITLB read misses
    (0x10028, 5),  // branch predictor accesses
    (0x10029, 6),  // branch predictor misses
    (0x1001b, 11), // DTLB write misses: the unit does not tell them from read misses
];

/// Raw events are selectors 0 to 255.
const RAW: [u32; 5] = [0, 0, 0xffff_ffff, 0xffff_ff00, COUNTERS];

pub(super) fn properties(fdt: &mut FdtWriter) -> Result {
    let selectors: Vec<u32> = EVENTS
        .iter()
        .flat_map(|&(event, select)| [event, 0, select])
        .collect();
    let counters: Vec<u32> = EVENTS
        .iter()
        .flat_map(|&(event, _)| [event, event, COUNTERS])
        .collect();
    fdt.property_string("compatible", "riscv,pmu")?;
    fdt.property_array_u32("riscv,event-to-mhpmevent", &selectors)?;
    fdt.property_array_u32("riscv,event-to-mhpmcounters", &counters)?;
    fdt.property_array_u32("riscv,raw-event-to-mhpmcounters", &RAW)
}
