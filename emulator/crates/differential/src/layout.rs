//! Where everything lies in memory; `harness.S` has the same numbers.

/// Bytes of memory.
pub const MEMORY: u64 = 128 << 20;
/// Page tables, and the start of what the generator writes.
pub const TABLES: u64 = 0x8010_0000;
/// Data that the blocks work on.
pub const DATA: u64 = 0x8020_0000;
/// Pages of it.
pub const DATA_PAGES: u64 = 64;
/// Number of blocks, block runs until the end, who runs it; then the blocks.
pub const PARAMETERS: u64 = 0x8040_0000;
/// The first block's entry.
pub const ENTRIES: u64 = PARAMETERS + 128;
/// Bytes of a block's entry.
pub const ENTRY: u64 = 128;
/// Supervisor mode's trap handler, in pages that both translations have: `ecall`, nothing, `sret`.
pub const SUPERVISOR: u64 = 0x8060_0000;
/// The blocks' code.
pub const CODE: u64 = SUPERVISOR + 64;
/// End of the code.
pub const CODE_END: u64 = 0x8080_0000;
/// A checksum after each block run.
pub const LOG: u64 = 0x8080_0000;
/// Bytes of what the harness saves: registers, then CSRs.
pub const SAVE_SIZE: u64 = 4096;
/// Follows the `ecall` at the end of a block.
pub const MAGIC: u32 = 0x7469_701b;
/// User mode sees memory with this bit set.
pub const USER: u64 = 1 << 30;
/// Registers that a block starts with as pointers to data.
pub const POINTERS: [u8; 6] = [2, 8, 9, 10, 11, 18];
/// The CSRs that the harness saves.
pub const SAVED_CSRS: [&str; 7] = [
    "mstatus", "fcsr", "sscratch", "sepc", "scause", "stval", "mip",
];
/// Number of the saved word that counts instructions in blocks.
pub const SAVED_INSIDE: usize = 688 / 8;
/// Number of the saved word that counts interrupts.
pub const SAVED_INTERRUPTS: usize = 696 / 8;
/// Number of the saved word that counts traps.
pub const SAVED_TRAPS: usize = 672 / 8;
/// Number of the first of the last 64 traps' words: `mcause`, `mepc`, `mtval`, `mstatus`.
pub const SAVED_LAST: usize = 704 / 8;
