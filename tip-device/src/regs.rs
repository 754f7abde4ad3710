//! The register table.

use register_table::{find, registers};
pub use sampling_rules::UNIT_HEURISTICS as HEURISTICS;

registers! {
    Id "ID" 0x00 "RO" "Identification." id [
        MAGIC 31:0 "0x54495031, \"TIP1\"",
        VERSION 39:32 "version of this register layout, 1",
        WIDTH 47:40 "commit width b: addresses per sample",
        FIFO_DEPTH 55:48 "samples that the FIFO holds",
        HEURISTICS 63:56 "one bit for each value of CONTROL.HEURISTIC that the unit has; 0 in units without that field, which have TIP alone",
    ];
    Control "CONTROL" 0x08 "RW" "Control." control [
        ENABLE 0:0 "the timer runs",
        RANDOM 1:1 "each trigger falls on a random cycle of its period",
        U 2:2 "the timer counts cycles in user mode",
        S 3:3 "the timer counts cycles in supervisor mode",
        M 4:4 "the timer counts cycles in machine mode",
        IRQ_ENABLE 5:5 "the interrupt line follows the FIFO or the buffer",
        FREEZE 6:6 "the timer stands still from the cycle in which the hart takes an interrupt while the line is high, until the line is low and a trap has returned; a write to this register ends it, too",
        HEURISTIC 10:7 "which instructions samples name, from the next trigger on: see below; a value that the unit does not have becomes 0",
        BUFFER 11:11 "samples go to the buffer in memory, not to the FIFO; in units without a buffer, which lack the BUFFER registers, it stays 0",
    ];
    Period "PERIOD" 0x10 "RW" "Reload value of the timer, in core cycles (at least 1)." [];
    Count "COUNT" 0x18 "RW" "Core cycles left until the next trigger. A write also drops the weight carried so far, and the next sample weighs PERIOD: write PERIOD first." [];
    Status "STATUS" 0x20 "RW" "Status." status [
        COUNT 7:0 "samples in the FIFO; read-only",
        PENDING 8:8 "a trigger has come whose sample is not complete; write 1 to give it up: its cycles go into the next sample",
        FULL 9:9 "the buffer is full: samples are lost until TAIL moves on; read-only",
        FAULT 10:10 "a sample could not be written, since its place in the buffer is not memory: all are lost until 1 is written here; the interrupt line is high",
    ];
    Overrun "OVERRUN" 0x28 "RW" "Samples lost to a full FIFO or buffer, or to a fault; their cycles went into later samples. Any write clears." [];
    Pop "POP" 0x30 "WO" "Write 1: drop the oldest sample. Without BUFFER, the interrupt line is high while the FIFO is not empty and IRQ_ENABLE is set." [];
    Clock "CLOCK" 0x38 "RO" "Core clock, in Hz." [];
    Cycle "CYCLE" 0x40 "RO" "Cycle of the oldest sample's trigger. All sample registers read 0 when the FIFO is empty." [];
    Flags "FLAGS" 0x48 "RO" "Flags of the oldest sample." flags [
        VALID 3:0 "one bit per address",
        OLDEST 5:4 "index of the oldest instruction",
        STALLED 8:8 "no instruction committed and the ROB was not empty. This and the next four: of TIP and TIP-ILP alone",
        FRONTEND 9:9 "the ROB was empty for want of instructions (Drained); the address is the first one to arrive",
        EXCEPTION 10:10 "the ROB was empty after this instruction trapped",
        FLUSH 11:11 "the ROB was empty after this instruction flushed the pipeline",
        MISPREDICTED 12:12 "the ROB was empty after this branch was mispredicted",
        PRIV 17:16 "privilege of the sampled instruction: 0 U, 1 S, 3 M",
    ];
    Address0 "ADDRESS0" 0x50 "RO" "Virtual address of the first sampled instruction." [];
    Address1 "ADDRESS1" 0x58 "RO" "Second." [];
    Address2 "ADDRESS2" 0x60 "RO" "Third." [];
    Address3 "ADDRESS3" 0x68 "RO" "Fourth." [];
    Weight "WEIGHT" 0x70 "RO" "Core cycles that the sample stands for: those since the last trigger that gave one." [];
    Seed "SEED" 0x78 "RW" "State of the random-number generator (RANDOM mode); 0 is replaced by a fixed value." [];
    SbData "SB_DATA" 0x80 "WO" "Appends 8 bytes (little-endian) to the side-band record being written." [];
    SbCommit "SB_COMMIT" 0x88 "WO" "Ends the side-band record and sends it to the host." sb_commit [
        TYPE 7:0 "record type",
        LENGTH 31:16 "length in bytes",
    ];
    Frozen "FROZEN" 0x90 "RO" "Core cycles that the timer stood still by FREEZE, in the modes that it counts, since reset." [];
    BufferBase "BUFFER_BASE" 0x98 "RW" "Physical address of the buffer, a multiple of 4096. A write empties the buffer." [];
    BufferConfig "BUFFER_CONFIG" 0xa0 "RW" "Size and threshold of the buffer. A write empties it." buffer_config [
        SIZE 3:0 "the buffer has 4096 << SIZE bytes, 64 for each sample; more than 10 becomes 10",
        THRESHOLD 47:32 "with BUFFER, the interrupt line is high while IRQ_ENABLE is set and so many samples or more wait, or the buffer is full; 0 is 1",
    ];
    BufferHead "BUFFER_HEAD" 0xa8 "RO" "Samples written since the buffer was last empty by a write to BASE or CONFIG. They are in memory before this is read, and before the interrupt line rises." [];
    BufferTail "BUFFER_TAIL" 0xb0 "RW" "Samples of these that software has taken: at most BUFFER_HEAD, and never less than before; other values are ignored." [];
}

impl Reg {
    /// The register at a byte offset, if there is one.
    pub fn at(offset: u64) -> Option<Self> {
        find(TABLE, offset).map(|(reg, _)| reg)
    }
}

/// This task runs from now on.
pub const SB_SWITCH: u8 = 1;
/// The task runs a new program.
pub const SB_EXEC: u8 = 2;
/// An executable mapping.
pub const SB_MMAP: u8 = 3;
/// The task ended.
pub const SB_EXIT: u8 = 4;
/// A new task.
pub const SB_FORK: u8 = 5;
/// Where the kernel's text lies.
pub const SB_KERNEL: u8 = 6;

/// A task has a new name.
pub const SB_COMM: u8 = 7;
/// A task need not wait any longer.
pub const SB_WAKE: u8 = 8;

/// Types of side-band records: guest context that the driver reports from the kernel's own hooks.
/// All fields are packed, little-endian.
pub const SIDE_BAND: &[(&str, u8, &str)] = &[
    (
        "SWITCH",
        SB_SWITCH,
        "u32 pid (the process), u32 tid (the thread, also of a child between vfork and exec), \
         char comm[16] (the thread's name): this task runs from now on on this hart. Then, unless that was idle, of the \
         task that ran before: u32 tid, u8 why (`LEFT`), u8 entry (`ENTRY`), u16 number; and if it waits and is no thread of \
         the kernel: u64 address, u64 pc (where it goes on), u32 argument. Drivers before WAKE do not write these",
    ),
    (
        "EXEC",
        SB_EXEC,
        "u32 pid, u32 tid, char comm[16]: the task runs a new program; it is the only thread left of its \
         process, and its tid is the pid, whichever thread called exec",
    ),
    (
        "MMAP",
        SB_MMAP,
        "u32 pid, u32 tid, u64 start, u64 len, u64 pgoff (bytes), u32 build_id_len, \
         u8 build_id[20], char path[]: an executable mapping",
    ),
    (
        "EXIT",
        SB_EXIT,
        "u32 pid, u32 tid: the task ended; its tid may be used again after the next FORK that names it",
    ),
    (
        "FORK",
        SB_FORK,
        "u32 pid, u32 tid, u32 parent_pid, u32 parent_tid: a new task, a thread if pid is parent_pid; it has \
         its parent's name",
    ),
    ("KERNEL", SB_KERNEL, "u64 text_start, u64 text_end: where the kernel's text lies"),
    (
        "COMM",
        SB_COMM,
        "u32 pid, u32 tid, char comm[16]: the task has a new name, given by itself or by another one, and need \
         not be the one that runs. Drivers before this record wrote SWITCH, and only for the task that runs",
    ),
    (
        "WAKE",
        SB_WAKE,
        "u32 tid, u32 waker (its tid; 0: an interrupt): the task need not wait any longer. One that wakes as it is about to leave \
         its hart may be told of before the SWITCH that says that it waits",
    ),
];

/// Values of fields of side-band records: (name, value, meaning).
pub const SIDE_BAND_VALUES: &[(&str, u8, &str)] = &[
    ("LEFT_RUNNABLE", 1, "it could go on: another one has its turn"),
    ("LEFT_WAITS", 2, "it waits for something"),
    ("LEFT_ENDED", 3, "it is over"),
    ("ENTRY_NONE", 0, "a thread of the kernel, or not told"),
    (
        "ENTRY_SYSCALL",
        1,
        "a system call: number is its number, address and argument are its first two arguments",
    ),
    ("ENTRY_FAULT", 2, "a page fault: number is scause, address what was accessed"),
    ("ENTRY_OTHER", 3, "an interrupt, or another exception"),
];

/// Value of `ID.MAGIC`.
pub const MAGIC: u64 = 0x5449_5031;

/// Value of `ID.VERSION`.
pub const VERSION: u64 = 1;

/// Bits that [`Reg::BufferBase`] holds: a physical address of 56 bits, without the place in its page.
pub const BUFFER_BASE: u64 = (1 << 56) - (1 << 12);
/// Largest value of `BUFFER_CONFIG.SIZE`: 4 MiB.
pub const MAX_BUFFER_SIZE: u64 = 10;
