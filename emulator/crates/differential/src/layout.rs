//! Layout of the machines' memory, in physical addresses; `harness.S` defines the same numbers.

/// Bytes of memory.
pub(crate) const MEMORY: u64 = 128 << 20;
/// Start of the page tables, and of the image that the generator writes.
pub(crate) const TABLES: u64 = 0x8010_0000;
/// Data that the blocks work on.
pub(crate) const DATA: u64 = 0x8020_0000;
/// Number of 4 KiB pages at [`DATA`].
pub(crate) const DATA_PAGES: u64 = 64;
/// Three 8-byte parameters of the harness: number of blocks, number of block runs, and the machine (0 QEMU, 1 tipsim).
pub(crate) const PARAMETERS: u64 = 0x8040_0000;
/// Array of the blocks' entries ([`Entry`](crate::generate::Entry)).
pub(crate) const ENTRIES: u64 = PARAMETERS + 128;
/// Bytes per entry.
pub(crate) const ENTRY: u64 = 128;
/// Supervisor mode's trap handler, `ecall` and `sret`, mapped with and without translation.
pub(crate) const SUPERVISOR: u64 = 0x8060_0000;
/// The blocks' code.
pub(crate) const CODE: u64 = SUPERVISOR + 64;
/// End of the code.
pub(crate) const CODE_END: u64 = 0x8080_0000;
/// Array of 8-byte checksums of registers, CSRs and memory, one per block run.
pub(crate) const LOG: u64 = 0x8080_0000;
/// Bytes of the harness's save area: registers, CSRs, counts, and the last traps.
pub(crate) const SAVE_SIZE: u64 = 4096;
/// The word after the `ecall` at the end of a block, by which the harness recognises the end; it is never executed.
pub(crate) const MAGIC: u32 = 0x7469_701b;
/// Bit that is set in all virtual addresses of user mode.
pub(crate) const USER: u64 = 1 << 30;
/// Numbers of the registers that point to data when a block is entered.
pub(crate) const POINTERS: [u8; 6] = [2, 8, 9, 10, 11, 18];
/// The CSRs that the harness saves after the registers, in order.
pub(crate) const SAVED_CSRS: [&str; 7] =
    ["mstatus", "fcsr", "sscratch", "sepc", "scause", "stval", "mip"];
/// Index of the saved word that counts the instructions executed in blocks.
pub(crate) const SAVED_INSIDE: usize = 688 / 8;
/// Index of the saved word that counts interrupts.
pub(crate) const SAVED_INTERRUPTS: usize = 696 / 8;
/// Index of the saved word that counts traps.
pub(crate) const SAVED_TRAPS: usize = 672 / 8;
/// Index of the first saved word of the last 64 traps; each has `mcause`, `mepc`, `mtval`, `mstatus`.
pub(crate) const SAVED_LAST: usize = 704 / 8;
