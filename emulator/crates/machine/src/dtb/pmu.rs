//! The `riscv,pmu` node (OpenSBI docs/pmu_support.md): which counters can count what.
//!
//! Cycles and instructions are mapped to programmable counters only: `mcycle` and `minstret`
//! cannot raise overflow interrupts, and perf could not sample them.

use isa::SBI_EVENTS;
use vm_fdt::FdtWriter;

use super::Result;

/// Counters 3 to 31.
const COUNTERS: u32 = 0xffff_fff8;

/// Raw events: every selector, with or without a condition.
const RAW: [u32; 5] = [0, 0, 0xffff_fc00, 0, COUNTERS];

pub(super) fn properties(fdt: &mut FdtWriter) -> Result {
    let selectors: Vec<u32> = { SBI_EVENTS.iter() }
        .flat_map(|&(sbi, event)| [sbi, 0, event.selector()])
        .collect();
    let counters: Vec<u32> = { SBI_EVENTS.iter() }
        .flat_map(|&(sbi, _)| [sbi, sbi, COUNTERS])
        .collect();
    fdt.property_string("compatible", "riscv,pmu")?;
    fdt.property_array_u32("riscv,event-to-mhpmevent", &selectors)?;
    fdt.property_array_u32("riscv,event-to-mhpmcounters", &counters)?;
    fdt.property_array_u32("riscv,raw-event-to-mhpmcounters", &RAW)
}
