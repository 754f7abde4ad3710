//! The `riscv,pmu` node (OpenSBI docs/pmu_support.md): which counters can count what.
//!
//! Cycles and instructions are mapped to programmable counters only: `mcycle` and `minstret`
//! cannot raise overflow interrupts, and perf could not sample them.

use isa::{SBI_EVENTS, raw_selectors};
use vm_fdt::FdtWriter;

use super::Result;

/// Counters 3 to 31.
const COUNTERS: u32 = 0xffff_fff8;

/// Bits of `mhpmevent`'s high half that are compared where a condition may be what it likes.
const HIGH_BITS_BESIDE_CONDITION: u32 = 0xffff_fc00;

pub(super) fn properties(fdt: &mut FdtWriter) -> Result {
    let selectors: Vec<u32> = SBI_EVENTS
        .iter()
        .flat_map(|event| {
            let bits = event.selection().bits();
            [event.number, (bits >> 32) as u32, bits as u32]
        })
        .collect();
    let counters: Vec<u32> =
        SBI_EVENTS.iter().flat_map(|event| [event.number, event.number, COUNTERS]).collect();
    // Raw events: the selectors that name an event, with a condition those that can have one, and no others.
    let raw: Vec<u32> = raw_selectors()
        .flat_map(|own| {
            let set = own.set.into();
            let plain = [0, set, u32::MAX, !own.mask, COUNTERS];
            let conditions = own
                .with_condition
                .into_iter()
                .flat_map(move |mask| [0, set, HIGH_BITS_BESIDE_CONDITION, !mask, COUNTERS]);
            plain.into_iter().chain(conditions)
        })
        .collect();
    fdt.property_string("compatible", "riscv,pmu")?;
    fdt.property_array_u32("riscv,event-to-mhpmevent", &selectors)?;
    fdt.property_array_u32("riscv,event-to-mhpmcounters", &counters)?;
    fdt.property_array_u32("riscv,raw-event-to-mhpmcounters", &raw)
}
