//! The functional machine: harts with their memory management ([`Hart::run`] has an example), the board, firmware and device tree.
//!
//! Nothing that a guest, an ELF file or a device image contains may panic or hang the host.

mod board;
mod code_cache;
mod counters;
mod csr;
mod csr_access;
mod csr_indirect;
mod dtb;
mod exec;
mod fp;
mod hart;
mod loader;
mod mmu;
mod mmu_tlb;
mod pmp;
mod sampling;
mod sampling_memory;

pub use board::{Board, BoardError};
pub use dtb::{Cache, Caches, DeviceNode, DeviceTree, DeviceTreeError, Isa, MmuType, Property};
pub use hart::{
    Caller, DebugStop, GuestView, Hart, HostCalls, HostResult, Limit, Mark, Onlooker, RunExit,
    Stuck, TakenException, Translate, Watchpoint, run_paced_together, run_timed_together,
    run_together,
};
pub use loader::{
    Boot, BootImages, Elf, ElfSymbols, Image, KERNEL_BASE, LoadError, ResetState, load_raw,
    nearest_symbol,
};
pub use translator::TranslatorError;
