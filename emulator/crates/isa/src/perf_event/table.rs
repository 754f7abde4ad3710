//! The rows: `event = (set, bit) stage [per_cycle], topic, name`.

use super::{PerfEventRow, Stage};

events! {
    /// Core cycles.
    Cycles = (1, 0) clock, "standard", "CYCLES.HART";
    /// Instructions retired.
    Instructions = (2, 0) commit per_cycle, "standard", "INST.RET";
    /// Loads and atomics that were executed.
    L1dReads = (3, 0) memory, "cache", "CACHE.L1.RD.DATA.ACCESS";
    /// Loads that missed in the L1 data cache. Reads of page tables have events of their own.
    L1dReadMisses = (4, 0) memory, "cache", "CACHE.L1.RD.DATA.MISS";
    /// Branches and jumps. Those of wrong paths are not counted.
    Branches = (5, 0) commit per_cycle, "branch", "INST.BRJMP.SPEC";
    /// Mispredicted branches and jumps.
    BranchMisses = (6, 0) commit per_cycle, "branch", "INST.MISPRED.SPEC";
    /// Cycles of the reference clock, which is the core's: it never changes.
    ReferenceCycles = (10, 0) clock, "standard", "CYCLES.REF";
    /// Fetches from the L1 instruction cache.
    L1iReads = (11, 0) fetch, "cache", "CACHE.L1I.RD.CODE.ACCESS";
    /// Fetches that missed in the L1 instruction cache.
    L1iMisses = (12, 0) fetch, "cache", "CACHE.L1I.RD.CODE.MISS";
    /// Lines read from the last-level cache by this hart.
    LastLevelReads = (13, 0) memory, "cache", "CACHE.LL.RD.DATA.ACCESS";
    /// Lines read that the last-level cache did not have.
    LastLevelMisses = (14, 0) memory, "cache", "CACHE.LL.RD.DATA.MISS";
    /// Loads, stores and atomics that were translated.
    DtlbReads = (15, 0) memory, "tlb", "TLB.L1.LDST.ACCESS";
    /// Loads, stores and atomics that missed in the first-level data TLB.
    DtlbMisses = (16, 0) memory, "tlb", "TLB.L1.LDST.MISS";
    /// Fetches that were translated.
    ItlbReads = (17, 0) fetch, "tlb", "TLB.L1I.CODE.ACCESS";
    /// Fetches that missed in the first-level instruction TLB.
    ItlbMisses = (18, 0) fetch, "tlb", "TLB.L1I.CODE.MISS";
    /// Branches that were taken, and jumps.
    TakenBranches = (19, 0) commit, "branch", "INST.BRJMP.TK.RET";
    /// Slots of decode, those of a core's width in each cycle in which it does not sleep, up to the last decode.
    Slots = (20, 0) decode, "topdown", "TOPDOWN.SLOTS";
    /// Slots of instructions that retired.
    SlotsRetiring = (21, 0) decode per_cycle, "topdown", "TOPDOWN.RETIRING";
    /// Slots for which the front end had no instruction.
    SlotsFrontend = (22, 0) decode per_cycle, "topdown", "TOPDOWN.FRONTEND_BOUND";
    /// Slots in which instructions waited for room behind decode.
    SlotsBackend = (23, 0) decode per_cycle, "topdown", "TOPDOWN.BACKEND_BOUND";
    /// Slots of what did not retire, wrong paths with it, and from the restart of fetch after a misprediction, flush or trap to the next instruction.
    SlotsBadSpeculation = (24, 0) decode per_cycle, "topdown", "TOPDOWN.BAD_SPECULATION";
    /// Integer operations of one cycle.
    IntAlu = (32, 0) commit per_cycle, "instruction", "INST.ALU";
    /// Integer multiplications.
    IntMul = (32, 1) commit per_cycle, "instruction", "INST.MUL";
    /// Integer divisions and remainders.
    IntDiv = (32, 2) commit per_cycle, "instruction", "INST.DIV";
    /// Conditional branches.
    BranchInst = (32, 3) commit per_cycle, "instruction", "INST.BRANCH";
    /// Direct jumps.
    Jal = (32, 4) commit per_cycle, "instruction", "INST.JAL";
    /// Indirect jumps.
    Jalr = (32, 5) commit per_cycle, "instruction", "INST.JALR";
    /// Integer loads.
    Load = (32, 6) commit per_cycle, "instruction", "INST.LOAD";
    /// Integer stores.
    Store = (32, 7) commit per_cycle, "instruction", "INST.STORE";
    /// Floating-point loads.
    FpLoad = (32, 8) commit per_cycle, "instruction", "INST.FP.LOAD";
    /// Floating-point stores.
    FpStore = (32, 9) commit per_cycle, "instruction", "INST.FP.STORE";
    /// Atomic read-modify-writes.
    Amo = (32, 10) commit per_cycle, "instruction", "INST.AMO";
    /// Load-reserved instructions.
    LoadReserved = (32, 11) commit per_cycle, "instruction", "INST.LR";
    /// Store-conditional instructions.
    StoreConditional = (32, 12) commit per_cycle, "instruction", "INST.SC";
    /// Floating-point additions, multiplications, minima and maxima, conversions between formats.
    FpArith = (32, 13) commit per_cycle, "instruction", "INST.FP.ARITH";
    /// Floating-point divisions and square roots.
    FpDivSqrt = (32, 14) commit per_cycle, "instruction", "INST.FP.DIVSQRT";
    /// Moves, conversions and comparisons from floating-point to integer registers.
    FpToInt = (32, 15) commit per_cycle, "instruction", "INST.FP.TOINT";
    /// Moves and conversions from integer to floating-point registers.
    IntToFp = (32, 16) commit per_cycle, "instruction", "INST.FP.FROMINT";
    /// Accesses to control and status registers.
    Csr = (32, 17) commit per_cycle, "instruction", "INST.CSR";
    /// Memory fences.
    Fence = (32, 18) commit per_cycle, "instruction", "INST.FENCE";
    /// Instruction-stream fences.
    FenceI = (32, 19) commit per_cycle, "instruction", "INST.FENCEI";
    /// Address-translation fences.
    SfenceVma = (32, 20) commit per_cycle, "instruction", "INST.SFENCE";
    /// Returns from traps.
    Xret = (32, 21) commit per_cycle, "instruction", "INST.XRET";
    /// Waits for an interrupt.
    Wfi = (32, 22) commit per_cycle, "instruction", "INST.WFI";
    /// Exceptions taken; the instruction is not retired.
    Exceptions = (32, 23) commit per_cycle, "instruction", "INST.EXCEPTION";
    /// Conditional branches that were taken.
    CondTaken = (33, 0) commit, "branch", "BR.COND.TAKEN";
    /// Conditional branches that were mispredicted.
    CondMisses = (33, 1) commit per_cycle, "branch", "BR.COND.MISP";
    /// Direct jumps that are no calls.
    DirectJumps = (33, 2) commit per_cycle, "branch", "BR.JUMP";
    /// Direct calls.
    DirectCalls = (33, 3) commit per_cycle, "branch", "BR.CALL";
    /// Indirect jumps that are neither calls nor returns.
    IndirectJumps = (33, 4) commit per_cycle, "branch", "BR.IND";
    /// Indirect calls.
    IndirectCalls = (33, 5) commit per_cycle, "branch", "BR.IND.CALL";
    /// Returns.
    Returns = (33, 6) commit per_cycle, "branch", "BR.RET";
    /// Indirect jumps that are neither calls nor returns, mispredicted.
    IndirectMisses = (33, 7) commit per_cycle, "branch", "BR.IND.MISP";
    /// Indirect calls that were mispredicted.
    IndirectCallMisses = (33, 8) commit per_cycle, "branch", "BR.IND.CALL.MISP";
    /// Returns that were mispredicted.
    ReturnMisses = (33, 9) commit per_cycle, "branch", "BR.RET.MISP";
    /// Fetch packets.
    FetchPackets = (33, 10) fetch, "branch", "BR.FETCH.PACKET";
    /// Fetch packets after which stage F2 restarted fetch: one cycle is lost.
    RedirectsF2 = (33, 11) fetch, "branch", "BR.FETCH.F2";
    /// Fetch packets after which stage F3 restarted fetch: two cycles are lost.
    RedirectsF3 = (33, 12) fetch, "branch", "BR.FETCH.F3";
    /// Stores that were executed.
    L1dWrites = (34, 0) memory, "cache", "MEM.L1D.WR";
    /// Stores and atomics that missed in the L1 data cache.
    L1dWriteMisses = (34, 1) memory, "cache", "MEM.L1D.WR.MISS";
    /// Lines prefetched into the L1 data cache.
    L1dPrefetches = (34, 2) memory, "cache", "MEM.L1D.PREFETCH";
    /// Dirty lines that the L1 data cache wrote back.
    Writebacks = (34, 3) memory, "cache", "MEM.L1D.WRITEBACK";
    /// Lines read from the L2.
    L2Reads = (34, 4) memory, "cache", "MEM.L2.ACCESS";
    /// Lines read that the L2 did not have.
    L2Misses = (34, 5) memory, "cache", "MEM.L2.MISS";
    /// Lines read from the last-level cache behind the L2.
    LlcReads = (34, 6) memory, "cache", "MEM.LLC.ACCESS";
    /// Lines read that the last-level cache behind the L2 did not have.
    LlcMisses = (34, 7) memory, "cache", "MEM.LLC.MISS";
    /// Writes to lines that other harts' caches might hold too.
    Upgrades = (34, 8) memory, "cache", "MEM.UPGRADE";
    /// Lines that another hart's cache supplied.
    Transfers = (34, 9) memory, "cache", "MEM.TRANSFER";
    /// Loads that the store queue answered.
    Forwards = (34, 10) memory, "cache", "MEM.FORWARD";
    /// Loads that found their data bank taken by the other port.
    BankConflicts = (34, 11) memory, "cache", "MEM.BANK.CONFLICT";
    /// Loads that were flushed, since they had run ahead of an older store to the same bytes.
    OrderFailures = (34, 12) commit per_cycle, "cache", "MEM.ORDER.FAIL";
    /// Accesses to device registers.
    DeviceAccesses = (34, 13) memory, "cache", "MEM.DEVICE";
    /// First-level TLB misses that the second level answered.
    L2TlbHits = (34, 14) memory, "cache", "MEM.L2TLB.HIT";
    /// Page-table walks.
    PageWalks = (34, 15) memory, "cache", "MEM.WALK";
    /// Cycles in which instructions commit.
    CyclesCommitting = (35, 0) commit per_cycle, "pipeline", "CYCLES.COMMIT";
    /// Cycles in which the oldest instruction is not complete.
    CyclesStalled = (35, 1) commit per_cycle, "pipeline", "CYCLES.STALLED";
    /// Cycles with an empty reorder buffer after a misprediction, flush or trap.
    CyclesFlushed = (35, 2) commit per_cycle, "pipeline", "CYCLES.FLUSHED";
    /// Cycles with an empty reorder buffer otherwise: the front end delivers nothing.
    CyclesDrained = (35, 3) commit per_cycle, "pipeline", "CYCLES.DRAINED";
    /// Cycles asleep, waiting for an interrupt.
    CyclesIdle = (35, 4) clock, "pipeline", "CYCLES.IDLE";
    /// Cycles by which dispatch was late for want of room in the reorder buffer.
    StallsRob = (36, 0) decode, "pipeline", "STALL.ROB";
    /// Cycles by which dispatch was late for want of a physical register.
    StallsRegisters = (36, 1) decode, "pipeline", "STALL.REGISTERS";
    /// Cycles by which dispatch was late for want of an entry of the load queue.
    StallsLoadQueue = (36, 2) decode, "pipeline", "STALL.LOAD.QUEUE";
    /// Cycles by which dispatch was late for want of an entry of the store queue.
    StallsStoreQueue = (36, 3) decode, "pipeline", "STALL.STORE.QUEUE";
    /// Cycles by which dispatch was late for want of a slot of an issue queue, or a branch tag.
    StallsIssueQueue = (36, 4) decode, "pipeline", "STALL.ISSUE.QUEUE";
    /// Cycles by which dispatch was late, as a serialising instruction waits for an empty machine.
    StallsSerialize = (36, 5) decode, "pipeline", "STALL.SERIALIZE";
    /// Flushes at the commit of a serialising instruction.
    Flushes = (37, 0) commit per_cycle, "pipeline", "FLUSH.COMMIT";
    /// Interrupts taken.
    Interrupts = (37, 1) commit per_cycle, "pipeline", "FLUSH.INTERRUPT";
    /// Slots of cycles for which the front end had no instruction at all.
    SlotsFetchLatency = (38, 0) decode per_cycle, "topdown", "TOPDOWN.FRONTEND_BOUND.LATENCY";
    /// Slots left over by decode groups that were not full.
    SlotsFetchBandwidth = (38, 1) decode per_cycle, "topdown", "TOPDOWN.FRONTEND_BOUND.BANDWIDTH";
    /// Slots of cycles without an instruction before a packet that missed in the L1 instruction cache.
    SlotsIcache = (38, 2) decode per_cycle, "topdown", "TOPDOWN.FRONTEND_BOUND.LATENCY.ICACHE";
    /// Slots of cycles without an instruction before a packet that missed in the instruction TLB.
    SlotsItlb = (38, 3) decode per_cycle, "topdown", "TOPDOWN.FRONTEND_BOUND.LATENCY.ITLB";
    /// Slots of cycles without an instruction otherwise: restarts of fetch by later predictor stages.
    SlotsResteer = (38, 4) decode per_cycle, "topdown", "TOPDOWN.FRONTEND_BOUND.LATENCY.OTHER";
    /// Slots of wrong paths behind mispredicted branches and jumps, and from the restart of fetch to the next instruction.
    SlotsMispredict = (38, 5) decode per_cycle, "topdown", "TOPDOWN.BAD_SPECULATION.MISPREDICT";
    /// Slots of wrong paths behind other flushes and traps, and from the restart of fetch to the next instruction.
    SlotsMachineClear = (38, 6) decode per_cycle, "topdown", "TOPDOWN.BAD_SPECULATION.CLEAR";
    /// Slots from the flush of a serialising instruction to the next instruction.
    SlotsFlush = (38, 7) decode per_cycle, "topdown", "TOPDOWN.BAD_SPECULATION.CLEAR.SERIALIZE";
    /// Slots of loads that were flushed for their order, of what was behind them, and from the restart of fetch to the next instruction.
    SlotsOrder = (38, 8) decode per_cycle, "topdown", "TOPDOWN.BAD_SPECULATION.CLEAR.ORDER";
    /// Slots of instructions that trapped, of what was behind them, and from the restart of fetch to the next instruction.
    SlotsTrap = (38, 9) decode per_cycle, "topdown", "TOPDOWN.BAD_SPECULATION.CLEAR.TRAP";
    /// Slots in which decode waited while the oldest instruction waited for memory.
    SlotsMemory = (38, 10) decode per_cycle, "topdown", "TOPDOWN.BACKEND_BOUND.MEMORY";
    /// Slots in which decode waited otherwise.
    SlotsCore = (38, 11) decode per_cycle, "topdown", "TOPDOWN.BACKEND_BOUND.CORE";
    /// Slots in which decode waited behind a load that the L1 data cache or the store queue answered.
    SlotsMemoryL1 = (38, 12) decode per_cycle, "topdown", "TOPDOWN.BACKEND_BOUND.MEMORY.L1";
    /// Slots in which decode waited behind a load that the L2 answered.
    SlotsMemoryL2 = (38, 13) decode per_cycle, "topdown", "TOPDOWN.BACKEND_BOUND.MEMORY.L2";
    /// Slots in which decode waited behind a load that the last-level cache answered.
    SlotsMemoryLlc = (38, 14) decode per_cycle, "topdown", "TOPDOWN.BACKEND_BOUND.MEMORY.LLC";
    /// Slots in which decode waited behind a load that memory answered.
    SlotsMemoryDram = (38, 15) decode per_cycle, "topdown", "TOPDOWN.BACKEND_BOUND.MEMORY.DRAM";
    /// Slots in which decode waited behind a store.
    SlotsMemoryStore = (38, 16) decode per_cycle, "topdown", "TOPDOWN.BACKEND_BOUND.MEMORY.STORE";
    /// Slots in which decode waited behind an access to a device register.
    SlotsMemoryDevice = (38, 17) decode per_cycle, "topdown", "TOPDOWN.BACKEND_BOUND.MEMORY.DEVICE";
    /// Slots in which decode waited behind a division or square root.
    SlotsCoreDivider = (38, 18) decode per_cycle, "topdown", "TOPDOWN.BACKEND_BOUND.CORE.DIVIDER";
    /// Slots in which decode waited for a serialising instruction, or it for the instructions before.
    SlotsCoreSerialize = (38, 19) decode per_cycle, "topdown", "TOPDOWN.BACKEND_BOUND.CORE.SERIALIZE";
    /// Slots in which decode waited behind an instruction that waited for its operands or port.
    SlotsCoreExecution = (38, 20) decode per_cycle, "topdown", "TOPDOWN.BACKEND_BOUND.CORE.EXECUTION";
    /// Slots in which decode waited though instructions committed.
    SlotsCoreCommit = (38, 21) decode per_cycle, "topdown", "TOPDOWN.BACKEND_BOUND.CORE.COMMIT";
    /// Cycles by which dispatch was late for want of a slot of the memory issue queue.
    StallsMemQueue = (36, 6) decode, "pipeline", "STALL.ISSUE.QUEUE.MEM";
    /// Cycles by which dispatch was late for want of a slot of the integer issue queue, while the memory issue queue had one.
    StallsIntQueue = (36, 7) decode, "pipeline", "STALL.ISSUE.QUEUE.INT";
    /// Cycles by which dispatch was late for want of a slot of the floating-point issue queue, while the others had one.
    StallsFpQueue = (36, 8) decode, "pipeline", "STALL.ISSUE.QUEUE.FP";
    /// Cycles by which dispatch was late for want of a branch tag, while all issue queues had room.
    StallsTags = (36, 9) decode, "pipeline", "STALL.ISSUE.QUEUE.TAG";
    /// Cycles by which dispatch was late for want of a floating-point register.
    StallsFpRegisters = (36, 10) decode, "pipeline", "STALL.REGISTERS.FP";
    /// System calls from user mode.
    EcallUser = (39, 0) commit, "trap", "EXC.ECALL.U";
    /// Environment calls from supervisor mode: calls of the firmware.
    EcallSupervisor = (39, 1) commit, "trap", "EXC.ECALL.S";
    /// Page faults of fetches.
    FetchPageFaults = (39, 2) commit, "trap", "EXC.PAGE.FETCH";
    /// Page faults of loads.
    LoadPageFaults = (39, 3) commit, "trap", "EXC.PAGE.LOAD";
    /// Page faults of stores and atomics.
    StorePageFaults = (39, 4) commit, "trap", "EXC.PAGE.STORE";
    /// Illegal instructions.
    IllegalInstructions = (39, 5) commit, "trap", "EXC.ILLEGAL";
    /// Breakpoints.
    Breakpoints = (39, 6) commit, "trap", "EXC.BREAKPOINT";
    /// Other exceptions.
    OtherExceptions = (39, 7) commit, "trap", "EXC.OTHER";
    /// Cycles in which the oldest instruction waits for its operands, port or unit.
    StalledAlu = (40, 0) commit per_cycle, "stall", "STALL.HEAD.ALU";
    /// Cycles in which the oldest instruction is a load that the L1 data cache or the store queue answers.
    StalledL1 = (40, 1) commit per_cycle, "stall", "STALL.HEAD.L1";
    /// Cycles in which the oldest instruction is a load that the L2 answers.
    StalledL2 = (40, 2) commit per_cycle, "stall", "STALL.HEAD.L2";
    /// Cycles in which the oldest instruction is a load that the last-level cache answers.
    StalledLlc = (40, 3) commit per_cycle, "stall", "STALL.HEAD.LLC";
    /// Cycles in which the oldest instruction is a load that memory answers.
    StalledDram = (40, 4) commit per_cycle, "stall", "STALL.HEAD.DRAM";
    /// Cycles in which the oldest instruction is a store whose address or data is not there.
    StalledStore = (40, 5) commit per_cycle, "stall", "STALL.HEAD.STORE";
    /// Cycles in which the oldest instruction is a division or square root.
    StalledDivider = (40, 6) commit per_cycle, "stall", "STALL.HEAD.DIVIDER";
    /// Cycles in which the oldest instruction is a serialising one.
    StalledSerialize = (40, 7) commit per_cycle, "stall", "STALL.HEAD.SERIALIZE";
    /// Cycles in which the oldest instruction reads a device register.
    StalledDevice = (40, 8) commit per_cycle, "stall", "STALL.HEAD.DEVICE";
    /// Retired instructions that were delivered late by a miss in the L1 instruction cache.
    RetiredIcacheMiss = (41, 0) commit per_cycle, "instruction", "INST.RET.L1I_MISS";
    /// Retired instructions that were delivered late by a miss in the instruction TLB.
    RetiredItlbMiss = (41, 1) commit per_cycle, "instruction", "INST.RET.ITLB_MISS";
    /// Retired stores that waited for an entry of the store queue.
    RetiredStoreQueueFull = (41, 2) commit per_cycle, "instruction", "INST.RET.STORE_QUEUE_FULL";
    /// Retired loads and atomics that missed in the L1 data cache.
    RetiredL1dMiss = (41, 3) commit per_cycle, "instruction", "INST.RET.L1D_MISS";
    /// Retired loads, stores and atomics that missed in the data TLB.
    RetiredDtlbMiss = (41, 4) commit per_cycle, "instruction", "INST.RET.DTLB_MISS";
    /// Retired loads and atomics that memory answered.
    RetiredLlcMiss = (41, 5) commit per_cycle, "instruction", "INST.RET.LLC_MISS";
    /// Retired loads that the L1 data cache or the store queue answered.
    RetiredLoadL1 = (41, 6) commit per_cycle, "instruction", "INST.RET.LOAD.L1";
    /// Retired loads that the L2 answered, or a prefetched line.
    RetiredLoadL2 = (41, 7) commit per_cycle, "instruction", "INST.RET.LOAD.L2";
    /// Retired loads that the last-level cache answered.
    RetiredLoadLlc = (41, 8) commit per_cycle, "instruction", "INST.RET.LOAD.LLC";
    /// Retired loads that memory answered.
    RetiredLoadDram = (41, 9) commit per_cycle, "instruction", "INST.RET.LOAD.DRAM";
    /// Retired loads of device registers.
    RetiredLoadDevice = (41, 10) commit per_cycle, "instruction", "INST.RET.LOAD.DEVICE";
    /// Instructions decoded, those of wrong paths left out.
    Decoded = (42, 0) decode per_cycle, "pipeline", "INST.DECODED";
    /// Instructions in the reorder buffer, summed over cycles.
    RobOccupancy = (42, 1) commit per_cycle, "pipeline", "OCCUPANCY.ROB";
    /// Loads in the load queue, summed over cycles.
    LoadQueueOccupancy = (42, 2) commit per_cycle, "pipeline", "OCCUPANCY.LOAD.QUEUE";
    /// Stores in the store queue, summed over cycles: from dispatch to the write of the cache.
    StoreQueueOccupancy = (42, 3) memory, "pipeline", "OCCUPANCY.STORE.QUEUE";
    /// Miss registers of the L1 data cache in use, summed over cycles.
    L1dMshrOccupancy = (42, 4) memory, "cache", "OCCUPANCY.MSHR.L1D";
    /// Miss registers of the L2 in use, summed over cycles.
    L2MshrOccupancy = (42, 5) memory, "cache", "OCCUPANCY.MSHR.L2";
    /// Cycles in which the integer divider is busy.
    DividerBusy = (42, 6) execute, "pipeline", "BUSY.DIV";
    /// Cycles in which the floating-point divider is busy.
    FpDividerBusy = (42, 7) execute, "pipeline", "BUSY.FP.DIV";
    /// Cycles by which misses of loads, atomics and walks were late, as all miss registers of the L1 data cache were in use.
    MshrFull = (42, 8) memory, "cache", "STALL.MSHR.L1D";
    /// Cycles by which stores that missed were written late, as all miss registers of the L1 data cache were in use.
    StoreMshrFull = (42, 9) memory, "cache", "STALL.MSHR.L1D.STORE";
    /// Cycles by which misses were late, as all miss registers of the L2 were in use.
    L2MshrFull = (42, 10) memory, "cache", "STALL.MSHR.L2";
    /// Cycles by which this hart's misses were late, as all miss registers of the last-level cache were in use.
    LlcMshrFull = (42, 11) memory, "cache", "STALL.MSHR.LLC";
    /// Miss registers of the last-level cache in use for this hart, summed over cycles.
    LlcMshrOccupancy = (42, 12) memory, "cache", "OCCUPANCY.MSHR.LLC";
    /// Cycles by which stores that missed were written late for want of an entry for their data.
    StoreDataFull = (42, 13) memory, "cache", "STALL.STORE.DATA";
    /// Loads and atomics whose line was on its way to the L1 data cache.
    PendingHits = (43, 0) memory, "cache", "MEM.L1D.PENDING";
    /// Misses in the L1 data cache whose line had been prefetched.
    PrefetchHits = (43, 1) memory, "cache", "MEM.L1D.PREFETCH.HIT";
    /// Page-table entries read from the L1 data cache.
    WalkReads = (43, 2) memory, "cache", "MEM.WALK.RD";
    /// Page-table entries that the L1 data cache did not have.
    WalkReadMisses = (43, 3) memory, "cache", "MEM.WALK.RD.MISS";
    /// Page-table entries that the walker had.
    PteCacheHits = (43, 4) memory, "tlb", "MEM.WALK.PTE.HIT";
    /// Loads that wait for an older store to be written, as it has only some of their bytes.
    PartialForwards = (43, 5) memory, "cache", "MEM.FORWARD.PARTIAL";
    /// Loads that find an older store to their bytes without its data.
    ForwardWaits = (43, 6) memory, "cache", "MEM.FORWARD.WAIT";
    /// Store-conditional instructions that failed.
    FailedStoreConditionals = (43, 7) execute, "instruction", "INST.SC.FAIL";
    /// Lines read from the L2 for the L1 instruction cache.
    L2Fetches = (43, 8) memory, "cache", "MEM.L2.ACCESS.FETCH";
    /// Lines read for the L1 instruction cache that the L2 did not have.
    L2FetchMisses = (43, 9) memory, "cache", "MEM.L2.MISS.FETCH";
    /// Lines read from the L2 by prefetchers.
    L2Prefetches = (43, 10) memory, "cache", "MEM.L2.ACCESS.PREFETCH";
    /// Lines read by prefetchers that the L2 did not have.
    L2PrefetchMisses = (43, 11) memory, "cache", "MEM.L2.MISS.PREFETCH";
    /// Lines read from the L2 to be written.
    L2Writes = (43, 12) memory, "cache", "MEM.L2.ACCESS.WR";
    /// Lines to be written that the L2 did not have.
    L2WriteMisses = (43, 13) memory, "cache", "MEM.L2.MISS.WR";
    /// Lines read from the L2 by page-table walks.
    L2Walks = (43, 14) memory, "cache", "MEM.L2.ACCESS.WALK";
    /// Lines read by page-table walks that the L2 did not have.
    L2WalkMisses = (43, 15) memory, "cache", "MEM.L2.MISS.WALK";
    /// Lines read that were on their way to the L2.
    L2PendingHits = (43, 16) memory, "cache", "MEM.L2.PENDING";
    /// Dirty lines that the L2 wrote back.
    L2Writebacks = (43, 17) memory, "cache", "MEM.L2.WRITEBACK";
    /// Lines that the L2 gave up for others.
    L2Evictions = (43, 18) memory, "cache", "MEM.L2.EVICT";
    /// Loads that were refused, as a store was replayed, and tried again.
    RefusedLoads = (43, 19) memory, "cache", "MEM.LOAD.REFUSED";
    /// Further tries of loads that found their data bank taken.
    BankRetries = (43, 20) memory, "cache", "MEM.BANK.RETRY";
    /// Loads that were tried again: after a miss of the data TLB, a refusal, a bank conflict, or for a store's data; each time counts.
    LoadReplays = (43, 21) memory, "cache", "MEM.LOAD.REPLAY";
    /// Stores that missed in the L1 data cache, or whose line was on its way, and were replayed when it was there.
    StoreReplays = (43, 22) memory, "cache", "MEM.STORE.REPLAY";
    /// Stores that were written later, as a load took the data cache's port.
    DelayedStores = (43, 23) memory, "cache", "MEM.STORE.DELAYED";
    /// Misses of the data TLB that the second level answered.
    DtlbL2Hits = (44, 0) memory, "tlb", "TLB.L2.DATA.HIT";
    /// Page-table walks for data.
    DtlbWalks = (44, 1) memory, "tlb", "TLB.WALK.DATA";
    /// Cycles from a miss of the data TLB to its translation.
    DtlbWalkCycles = (44, 2) memory, "tlb", "TLB.WALK.DATA.CYCLES";
    /// Misses of the instruction TLB that the second level answered.
    ItlbL2Hits = (44, 3) fetch, "tlb", "TLB.L2.CODE.HIT";
    /// Page-table walks for fetches.
    ItlbWalks = (44, 4) fetch, "tlb", "TLB.WALK.CODE";
    /// Cycles from a miss of the instruction TLB to its translation.
    ItlbWalkCycles = (44, 5) fetch, "tlb", "TLB.WALK.CODE.CYCLES";
    /// Flushes of all translations.
    TlbFlushes = (44, 6) execute, "tlb", "TLB.FLUSH";
    /// Loads and atomics that were translated.
    DtlbLoads = (44, 7) memory, "tlb", "TLB.L1.LD.ACCESS";
    /// Loads and atomics that missed in the first-level data TLB.
    DtlbLoadMisses = (44, 8) memory, "tlb", "TLB.L1.LD.MISS";
    /// Stores that were translated.
    DtlbStores = (44, 9) memory, "tlb", "TLB.L1.ST.ACCESS";
    /// Stores that missed in the first-level data TLB.
    DtlbStoreMisses = (44, 10) memory, "tlb", "TLB.L1.ST.MISS";
    /// Cycles by which fetch packets were late for want of their line.
    FetchIcacheCycles = (45, 0) fetch, "fetch", "FETCH.L1I.CYCLES";
    /// Cycles by which fetch packets were late for want of room in the fetch buffer.
    FetchBufferCycles = (45, 1) fetch, "fetch", "FETCH.STALL.BUFFER";
    /// Cycles by which fetch packets were late for want of an entry of the fetch target queue.
    FetchTargetCycles = (45, 2) fetch, "fetch", "FETCH.STALL.TARGETS";
    /// Lines prefetched into the L1 instruction cache.
    L1iPrefetches = (45, 3) fetch, "cache", "FETCH.L1I.PREFETCH";
    /// Restarts of fetch by mispredictions, flushes, traps and wake-ups.
    Redirects = (45, 4) fetch, "fetch", "FETCH.REDIRECT";
    /// Conditional branches mispredicted by the bimodal table: neither TAGE nor the loop predictor knew better.
    MissesBimodal = (46, 0) commit, "branch", "BR.MISP.BIMODAL";
    /// Conditional branches mispredicted by TAGE.
    MissesTage = (46, 1) commit, "branch", "BR.MISP.TAGE";
    /// Conditional branches mispredicted by the loop predictor, which overruled the others.
    MissesLoop = (46, 2) commit, "branch", "BR.MISP.LOOP";
    /// Returns mispredicted by the return stack.
    MissesReturns = (46, 3) commit, "branch", "BR.MISP.RETURNS";
    /// Indirect jumps and calls for which the BTB had another target.
    MissesBtb = (46, 4) commit, "branch", "BR.MISP.BTB";
    /// Indirect jumps and calls that only the micro BTB had, with another target.
    MissesMicroBtb = (46, 5) commit, "branch", "BR.MISP.MICRO_BTB";
    /// Indirect jumps and calls of which no buffer knew a target.
    MissesUnknown = (46, 6) commit, "branch", "BR.MISP.UNKNOWN";
    /// Branches and jumps that the BTB had, right or wrong.
    BtbHits = (46, 7) fetch, "branch", "BR.BTB.HIT";
    /// Branches and jumps that the BTB had not.
    BtbMisses = (46, 8) fetch, "branch", "BR.BTB.MISS";
    /// Branches and jumps that the micro BTB had, right or wrong.
    MicroBtbHits = (46, 9) fetch, "branch", "BR.MICRO_BTB.HIT";
    /// Branches and jumps that the micro BTB had not.
    MicroBtbMisses = (46, 10) fetch, "branch", "BR.MICRO_BTB.MISS";
    /// Restarts of fetch by F2, as F1 (the micro BTB) had gone elsewhere.
    F2Address = (46, 11) fetch, "branch", "BR.FETCH.F2.ADDRESS";
    /// Restarts of fetch by F2, as F1 had only missed a branch that was not taken, which is part of the history.
    F2History = (46, 12) fetch, "branch", "BR.FETCH.F2.HISTORY";
    /// Restarts of fetch by F3 (TAGE, loop predictor, return stack, decoded jumps), as F2 (bimodal table, BTB) had gone elsewhere.
    F3Address = (46, 13) fetch, "branch", "BR.FETCH.F3.ADDRESS";
    /// Restarts of fetch by F3, as F2 had only missed a branch that was not taken, which is part of the history.
    F3History = (46, 14) fetch, "branch", "BR.FETCH.F3.HISTORY";
    /// Calls that found the return stack full: the oldest address is lost.
    ReturnsFull = (46, 15) fetch, "branch", "BR.RETURNS.OVERFLOW";
    /// Returns that found the return stack empty.
    ReturnsEmpty = (46, 16) fetch, "branch", "BR.RETURNS.UNDERFLOW";
    /// Micro-ops that issued to integer port 0, which has the jump unit.
    IssuedInt0 = (47, 0) execute, "issue", "ISSUE.INT0";
    /// Micro-ops that issued to integer port 1.
    IssuedInt1 = (47, 1) execute, "issue", "ISSUE.INT1";
    /// Micro-ops that issued to integer port 2.
    IssuedInt2 = (47, 2) execute, "issue", "ISSUE.INT2";
    /// Micro-ops that issued to integer port 3.
    IssuedInt3 = (47, 3) execute, "issue", "ISSUE.INT3";
    /// Micro-ops that issued to integer port 4.
    IssuedInt4 = (47, 4) execute, "issue", "ISSUE.INT4";
    /// Micro-ops that issued to memory port 0: loads, and addresses and data of stores, as one or two.
    IssuedMem0 = (47, 5) execute, "issue", "ISSUE.MEM0";
    /// Micro-ops that issued to memory port 1.
    IssuedMem1 = (47, 6) execute, "issue", "ISSUE.MEM1";
    /// Micro-ops that issued to floating-point port 0, which has divider and store data.
    IssuedFp0 = (47, 7) execute, "issue", "ISSUE.FP0";
    /// Micro-ops that issued to floating-point port 1.
    IssuedFp1 = (47, 8) execute, "issue", "ISSUE.FP1";
    /// Slots of the memory issue queue in use, summed over cycles: from dispatch to issue.
    MemQueueOccupancy = (47, 9) execute, "issue", "OCCUPANCY.ISSUE.QUEUE.MEM";
    /// Slots of the integer issue queue in use, summed over cycles.
    IntQueueOccupancy = (47, 10) execute, "issue", "OCCUPANCY.ISSUE.QUEUE.INT";
    /// Slots of the floating-point issue queue in use, summed over cycles.
    FpQueueOccupancy = (47, 11) execute, "issue", "OCCUPANCY.ISSUE.QUEUE.FP";
    /// Instructions decoded; of wrong paths as many as decode could take.
    DecodedInstructions = (48, 0) decode, "sampling", "INST.DEC.SPEC";
    /// Branches, jumps and trap returns decoded, but for those of wrong paths.
    DecodedBranches = (48, 1) decode, "sampling", "INST.DEC.BRJMP.SPEC";
    /// Loads and atomics decoded, but for those of wrong paths.
    DecodedLoads = (48, 2) decode, "sampling", "INST.DEC.LOAD.SPEC";
    /// Stores and atomics decoded, but for those of wrong paths.
    DecodedStores = (48, 3) decode, "sampling", "INST.DEC.STORE.SPEC";
    /// Loads, stores and atomics decoded, but for those of wrong paths.
    DecodedLoadsStores = (48, 4) decode, "sampling", "INST.DEC.LDST.SPEC";
    /// Sampled instructions that were recorded.
    SamplesRecorded = (48, 5) commit, "sampling", "PDIS.SAMPLES";
    /// Overflows of the sampling counter while a sampled instruction was under way.
    SampleCollisions = (48, 6) commit, "sampling", "PDIS.COLLISIONS";
    /// Sampled instructions that a filter discarded.
    SamplesFiltered = (48, 7) commit, "sampling", "PDIS.FILTERED";
    /// Records of sampled instructions that were lost.
    SamplesDropped = (48, 8) commit, "sampling", "PDIS.DROPPED";
    /// Lines that loads of this hart read from the last-level cache.
    LastLevelLoads = (49, 0) memory, "cache", "CACHE.LL.LD.ACCESS";
    /// Lines that loads read and the last-level cache did not have.
    LastLevelLoadMisses = (49, 1) memory, "cache", "CACHE.LL.LD.MISS";
}
