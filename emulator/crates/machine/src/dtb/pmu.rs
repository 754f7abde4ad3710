//! The `riscv,pmu` node (OpenSBI docs/pmu_support.md): which counters can count what.
//!
//! Cycles and instructions are mapped to programmable counters only: `mcycle` and `minstret`
//! cannot raise overflow interrupts, and perf could not sample them.

use isa::PerfEvent;
use vm_fdt::FdtWriter;

use super::Result;

/// Counters 3 to 18.
const COUNTERS: u32 = 0x0007_fff8;

/// Raw events are selectors 0 to 255.
const RAW: [u32; 5] = [0, 0, 0xffff_ffff, 0xffff_ff00, COUNTERS];

pub(super) fn properties(fdt: &mut FdtWriter) -> Result {
    let mut events: Vec<(u32, PerfEvent)> = { PerfEvent::ALL.iter() }
        .flat_map(|&event| event.sbi().iter().map(move |&sbi| (sbi, event)))
        .collect();
    events.sort_unstable_by_key(|&(sbi, _)| sbi);
    let selectors: Vec<u32> = { events.iter() }
        .flat_map(|&(sbi, event)| [sbi, 0, event.selector()])
        .collect();
    let counters: Vec<u32> = { events.iter() }
        .flat_map(|&(sbi, _)| [sbi, sbi, COUNTERS])
        .collect();
    fdt.property_string("compatible", "riscv,pmu")?;
    fdt.property_array_u32("riscv,event-to-mhpmevent", &selectors)?;
    fdt.property_array_u32("riscv,event-to-mhpmcounters", &counters)?;
    fdt.property_array_u32("riscv,raw-event-to-mhpmcounters", &RAW)
}
