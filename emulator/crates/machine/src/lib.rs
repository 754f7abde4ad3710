//! The functional machine: harts with their memory management, the board, firmware and device tree.
//!
//! ```
//! use devices::{Bus, Clock, RAM_BASE};
//! use isa::Untimed;
//! use machine::{Hart, Limit};
//!
//! let mut bus = Bus::new(1 << 20, 1, Clock::default())?;
//! bus.ram.store(RAM_BASE, 4, 0x0015_0513).unwrap(); // addi a0, a0, 1
//! let mut hart = Hart::new(0);
//! hart.set_pc(RAM_BASE);
//! hart.run(&mut bus, &mut Untimed, Limit { instructions: 1, ..Limit::NONE });
//! assert_eq!(hart.reg(10), 1);
//! # Ok::<(), devices::RamError>(())
//! ```
//!
//! Nothing that a guest, an ELF file or a device image contains may panic or hang the host.

mod board;
mod code_cache;
mod counters;
mod csr;
mod csr_access;
mod dtb;
mod exec;
mod fp;
mod hart;
mod loader;
mod mmu;
mod mmu_tlb;
mod pmp;
mod translate;

pub use board::{Board, BoardError};
pub use dtb::{Cache, Caches, DeviceNode, DeviceTree, DeviceTreeError, Isa, MmuType, Property};
pub use hart::{
    Caller, DebugStop, Hart, HostCalls, HostResult, Limit, Mark, RunExit, Stuck, TakenException,
    Watchpoint, run_timed_together, run_together,
};
pub use loader::{
    Boot, BootImages, Elf, ElfSymbols, Image, KERNEL_BASE, LoadError, ResetState, load_raw,
    nearest_symbol,
};
pub use translate::{Translate, TranslatorError};
