//! The functional machine: hart, memory management, bus and devices, firmware and device tree.
//!
//! ```
//! use machine::{Bus, Clock, RAM_BASE};
//!
//! let mut bus = Bus::new(1 << 20, 1, Clock::default())?;
//! bus.ram.store(RAM_BASE, 4, 0x13).unwrap();
//! bus.store(machine::CLINT_BASE + 0x4000, 8, 5).unwrap(); // hart 0's mtimecmp
//! assert_eq!(bus.next_event(), 5 * 320);
//! # Ok::<(), machine::RamError>(())
//! ```
//!
//! Time is simulated: devices see the cycle of the access and schedule what they do later at a
//! cycle. Nothing that a guest, an ELF file or a device image contains may panic or hang the host.

mod board;
mod bus;
mod clint;
mod clock;
mod code_cache;
mod console;
mod counters;
mod csr;
mod csr_access;
mod device;
mod dtb;
mod exec;
mod fp;
mod hart;
mod htif;
mod loader;
mod mmu;
mod mmu_tlb;
mod plic;
mod pmp;
mod ram;
mod rtc;
mod syscon;
mod translate;
mod uart;
pub mod virtio;

pub use board::{Board, BoardError};
pub use bus::{Bus, CLINT_BASE, Exit, Overlap, PLIC_BASE};
pub use clint::{CLINT_SIZE, Clint};
pub use clock::Clock;
pub use console::{Capture, Input, Output};
pub use device::{AccessFault, Cx, Device};
pub use dtb::{Cache, Caches, DeviceNode, DeviceTree, DeviceTreeError, Isa, MmuType, Property};
pub use hart::{
    Caller, DebugStop, Hart, HostCalls, HostResult, Limit, Mark, RunExit, Stuck, TakenException,
    Watchpoint, run_timed_together, run_together,
};
pub use htif::{Htif, signature};
pub use loader::{
    Boot, BootImages, Elf, ElfSymbols, Image, KERNEL_BASE, LoadError, ResetState, load_raw,
    nearest_symbol,
};
pub use plic::{PLIC_SIZE, PLIC_SOURCES, Plic};
pub use ram::{RAM_BASE, Ram, RamError};
pub use rtc::{RTC_SIZE, Rtc};
pub use syscon::{SYSCON_POWER_OFF, SYSCON_RESET, SYSCON_SIZE, Syscon};
pub use translate::{Translate, TranslatorError};
pub use uart::{UART_SIZE, Uart, Uart16550};
