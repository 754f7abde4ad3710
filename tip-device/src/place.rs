//! Where tipsim's machine has the units. The unit itself knows no addresses; whoever maps it, and the documentation,
//! take them from here.

/// Physical address of the registers of hart 0's unit.
pub const UNITS_BASE: u64 = 0x1004_0000;
/// Bytes of a unit's page: the page of hart n is n pages behind that of hart 0.
pub const UNIT_BYTES: u64 = 0x1000;
/// PLIC source of the interrupt of hart 0's unit; the source of hart n is n more.
pub const FIRST_IRQ: u32 = 32;
/// `compatible` of the units' node in the device tree.
pub const COMPATIBLE: &str = "tipsim,tip";
