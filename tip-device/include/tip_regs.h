/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Registers of the TIP unit. Generated from tip-device/src/regs.rs; do not edit. */
#ifndef TIP_REGS_H
#define TIP_REGS_H

#define TIP_MAGIC 0x54495031ULL
#define TIP_VERSION 1

/* Identification. (RO) */
#define TIP_ID 0x00
#define TIP_ID_MAGIC_SHIFT 0
#define TIP_ID_MAGIC_MASK 0xffffffffULL /* 0x54495031, "TIP1" */
#define TIP_ID_VERSION_SHIFT 32
#define TIP_ID_VERSION_MASK 0xff00000000ULL /* version of this register layout, 1 */
#define TIP_ID_WIDTH_SHIFT 40
#define TIP_ID_WIDTH_MASK 0xff0000000000ULL /* commit width b: addresses per sample */
#define TIP_ID_FIFO_DEPTH_SHIFT 48
#define TIP_ID_FIFO_DEPTH_MASK 0xff000000000000ULL /* samples that the FIFO holds */
#define TIP_ID_HEURISTICS_SHIFT 56
#define TIP_ID_HEURISTICS_MASK 0xff00000000000000ULL /* one bit for each value of CONTROL.HEURISTIC that the unit has; 0 in units without that field, which have TIP alone */

/* Control. (RW) */
#define TIP_CONTROL 0x08
#define TIP_CONTROL_ENABLE_SHIFT 0
#define TIP_CONTROL_ENABLE_MASK 0x1ULL /* the timer runs */
#define TIP_CONTROL_RANDOM_SHIFT 1
#define TIP_CONTROL_RANDOM_MASK 0x2ULL /* each trigger falls on a random cycle of its period */
#define TIP_CONTROL_U_SHIFT 2
#define TIP_CONTROL_U_MASK 0x4ULL /* the timer counts cycles in user mode */
#define TIP_CONTROL_S_SHIFT 3
#define TIP_CONTROL_S_MASK 0x8ULL /* the timer counts cycles in supervisor mode */
#define TIP_CONTROL_M_SHIFT 4
#define TIP_CONTROL_M_MASK 0x10ULL /* the timer counts cycles in machine mode */
#define TIP_CONTROL_IRQ_ENABLE_SHIFT 5
#define TIP_CONTROL_IRQ_ENABLE_MASK 0x20ULL /* the interrupt line follows the FIFO or the buffer */
#define TIP_CONTROL_FREEZE_SHIFT 6
#define TIP_CONTROL_FREEZE_MASK 0x40ULL /* the timer stands still from the cycle in which the hart takes an interrupt while the line is high, until the line is low and a trap has returned; a write to this register ends it, too */
#define TIP_CONTROL_HEURISTIC_SHIFT 7
#define TIP_CONTROL_HEURISTIC_MASK 0x780ULL /* which instructions samples name, from the next trigger on: see below; a value that the unit does not have becomes 0 */
#define TIP_CONTROL_BUFFER_SHIFT 11
#define TIP_CONTROL_BUFFER_MASK 0x800ULL /* samples go to the buffer in memory, not to the FIFO; in units without a buffer, which lack the BUFFER registers, it stays 0 */

/* Reload value of the timer, in core cycles (at least 1). (RW) */
#define TIP_PERIOD 0x10

/* Core cycles left until the next trigger. A write also drops the weight carried so far, and the next sample weighs PERIOD: write PERIOD first. (RW) */
#define TIP_COUNT 0x18

/* Status. (RW) */
#define TIP_STATUS 0x20
#define TIP_STATUS_COUNT_SHIFT 0
#define TIP_STATUS_COUNT_MASK 0xffULL /* samples in the FIFO; read-only */
#define TIP_STATUS_PENDING_SHIFT 8
#define TIP_STATUS_PENDING_MASK 0x100ULL /* a trigger has come whose sample is not complete; write 1 to give it up: its cycles go into the next sample */
#define TIP_STATUS_FULL_SHIFT 9
#define TIP_STATUS_FULL_MASK 0x200ULL /* the buffer is full: samples are lost until TAIL moves on; read-only */
#define TIP_STATUS_FAULT_SHIFT 10
#define TIP_STATUS_FAULT_MASK 0x400ULL /* a sample could not be written, since its place in the buffer is not memory: all are lost until 1 is written here; the interrupt line is high */

/* Samples lost to a full FIFO or buffer, or to a fault; their cycles went into later samples. Any write clears. (RW) */
#define TIP_OVERRUN 0x28

/* Write 1: drop the oldest sample. Without BUFFER, the interrupt line is high while the FIFO is not empty and IRQ_ENABLE is set. (WO) */
#define TIP_POP 0x30

/* Core clock, in Hz. (RO) */
#define TIP_CLOCK 0x38

/* Cycle of the oldest sample's trigger. All sample registers read 0 when the FIFO is empty. (RO) */
#define TIP_CYCLE 0x40

/* Flags of the oldest sample. (RO) */
#define TIP_FLAGS 0x48
#define TIP_FLAGS_VALID_SHIFT 0
#define TIP_FLAGS_VALID_MASK 0xfULL /* one bit per address */
#define TIP_FLAGS_OLDEST_SHIFT 4
#define TIP_FLAGS_OLDEST_MASK 0x30ULL /* index of the oldest instruction */
#define TIP_FLAGS_STALLED_SHIFT 8
#define TIP_FLAGS_STALLED_MASK 0x100ULL /* no instruction committed and the ROB was not empty. This and the next four: of TIP and TIP-ILP alone */
#define TIP_FLAGS_FRONTEND_SHIFT 9
#define TIP_FLAGS_FRONTEND_MASK 0x200ULL /* the ROB was empty for want of instructions (Drained); the address is the first one to arrive */
#define TIP_FLAGS_EXCEPTION_SHIFT 10
#define TIP_FLAGS_EXCEPTION_MASK 0x400ULL /* the ROB was empty after this instruction trapped */
#define TIP_FLAGS_FLUSH_SHIFT 11
#define TIP_FLAGS_FLUSH_MASK 0x800ULL /* the ROB was empty after this instruction flushed the pipeline */
#define TIP_FLAGS_MISPREDICTED_SHIFT 12
#define TIP_FLAGS_MISPREDICTED_MASK 0x1000ULL /* the ROB was empty after this branch was mispredicted */
#define TIP_FLAGS_PRIV_SHIFT 16
#define TIP_FLAGS_PRIV_MASK 0x30000ULL /* privilege of the sampled instruction: 0 U, 1 S, 3 M */

/* Virtual address of the first sampled instruction. (RO) */
#define TIP_ADDRESS0 0x50

/* Second. (RO) */
#define TIP_ADDRESS1 0x58

/* Third. (RO) */
#define TIP_ADDRESS2 0x60

/* Fourth. (RO) */
#define TIP_ADDRESS3 0x68

/* Core cycles that the sample stands for: those since the last trigger that gave one. (RO) */
#define TIP_WEIGHT 0x70

/* State of the random-number generator (RANDOM mode); 0 is replaced by a fixed value. (RW) */
#define TIP_SEED 0x78

/* Appends 8 bytes (little-endian) to the side-band record being written. (WO) */
#define TIP_SB_DATA 0x80

/* Ends the side-band record and sends it to the host. (WO) */
#define TIP_SB_COMMIT 0x88
#define TIP_SB_COMMIT_TYPE_SHIFT 0
#define TIP_SB_COMMIT_TYPE_MASK 0xffULL /* record type */
#define TIP_SB_COMMIT_LENGTH_SHIFT 16
#define TIP_SB_COMMIT_LENGTH_MASK 0xffff0000ULL /* length in bytes */

/* Core cycles that the timer stood still by FREEZE, in the modes that it counts, since reset. (RO) */
#define TIP_FROZEN 0x90

/* Physical address of the buffer, a multiple of 4096. A write empties the buffer. (RW) */
#define TIP_BUFFER_BASE 0x98

/* Size and threshold of the buffer. A write empties it. (RW) */
#define TIP_BUFFER_CONFIG 0xa0
#define TIP_BUFFER_CONFIG_SIZE_SHIFT 0
#define TIP_BUFFER_CONFIG_SIZE_MASK 0xfULL /* the buffer has 4096 << SIZE bytes, 64 for each sample; more than 10 becomes 10 */
#define TIP_BUFFER_CONFIG_THRESHOLD_SHIFT 32
#define TIP_BUFFER_CONFIG_THRESHOLD_MASK 0xffff00000000ULL /* with BUFFER, the interrupt line is high while IRQ_ENABLE is set and so many samples or more wait, or the buffer is full; 0 is 1 */

/* Samples written since the buffer was last empty by a write to BASE or CONFIG. They are in memory before this is read, and before the interrupt line rises. (RO) */
#define TIP_BUFFER_HEAD 0xa8

/* Samples of these that software has taken: at most BUFFER_HEAD, and never less than before; other values are ignored. (RW) */
#define TIP_BUFFER_TAIL 0xb0

/* Values of TIP_CONTROL_HEURISTIC. */
#define TIP_HEURISTIC_TIP 0 /* all that commit in the trigger's cycle; if none does, the one that the commit stage waits for, or that emptied the ROB */
#define TIP_HEURISTIC_TIP_ILP 1 /* as tip, but of several that commit the oldest */
#define TIP_HEURISTIC_NCI 2 /* the oldest instruction that commits in the next committing cycle */
#define TIP_HEURISTIC_NCI_ILP 3 /* all that commit in the next committing cycle */
#define TIP_HEURISTIC_LCI 4 /* the youngest instruction that committed before the trigger's cycle */
#define TIP_HEURISTIC_DISPATCH 5 /* the first instruction dispatched at or after the trigger; no sample if it was on a wrong path */
#define TIP_HEURISTIC_SOFTWARE 6 /* the first instruction decoded at or after the trigger: where an interrupt would return to */

/* Side-band record types; fields are packed, little-endian. */
#define TIP_SB_SWITCH 1 /* u32 pid (the process), u32 tid (the thread, also of a child between vfork and exec), char comm[16] (the thread's name): this task runs from now on on this hart. Then, unless that was idle, of the task that ran before: u32 tid, u8 why (`LEFT`), u8 entry (`ENTRY`), u16 number; and if it waits and is no thread of the kernel: u64 address, u64 pc (where it goes on), u32 argument. Drivers before WAKE do not write these */
#define TIP_SB_EXEC 2 /* u32 pid, u32 tid, char comm[16]: the task runs a new program; it is the only thread left of its process, and its tid is the pid, whichever thread called exec */
#define TIP_SB_MMAP 3 /* u32 pid, u32 tid, u64 start, u64 len, u64 pgoff (bytes), u32 build_id_len, u8 build_id[20], char path[]: an executable mapping */
#define TIP_SB_EXIT 4 /* u32 pid, u32 tid: the task ended; its tid may be used again after the next FORK that names it */
#define TIP_SB_FORK 5 /* u32 pid, u32 tid, u32 parent_pid, u32 parent_tid: a new task, a thread if pid is parent_pid; it has its parent's name */
#define TIP_SB_KERNEL 6 /* u64 text_start, u64 text_end: where the kernel's text lies */
#define TIP_SB_COMM 7 /* u32 pid, u32 tid, char comm[16]: the task has a new name, given by itself or by another one, and need not be the one that runs. Drivers before this record wrote SWITCH, and only for the task that runs */
#define TIP_SB_WAKE 8 /* u32 tid, u32 waker (its tid; 0: an interrupt): the task need not wait any longer. One that wakes as it is about to leave its hart may be told of before the SWITCH that says that it waits */

/* Values of their fields. */
#define TIP_SB_LEFT_RUNNABLE 1 /* it could go on: another one has its turn */
#define TIP_SB_LEFT_WAITS 2 /* it waits for something */
#define TIP_SB_LEFT_ENDED 3 /* it is over */
#define TIP_SB_ENTRY_NONE 0 /* a thread of the kernel, or not told */
#define TIP_SB_ENTRY_SYSCALL 1 /* a system call: number is its number, address and argument are its first two arguments */
#define TIP_SB_ENTRY_FAULT 2 /* a page fault: number is scause, address what was accessed */
#define TIP_SB_ENTRY_OTHER 3 /* an interrupt, or another exception */

#endif
