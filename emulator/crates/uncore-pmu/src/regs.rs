//! The register table, of both units.

register_table::registers! {
    Id "ID" 0x00 "RO" "Identification." id [
        MAGIC 31:0 "0x55504d31, \"UPM1\"",
        VERSION 39:32 "version of this register layout, 1",
        UNIT 47:40 "what is counted: 1 the last-level cache, 2 the memory controller",
        COUNTERS 55:48 "number of counters beside that of cycles, 8",
        HARTS 63:56 "number of harts",
    ];
    Clock "CLOCK" 0x08 "RO" "Core clock, in Hz." [];
    Events "EVENTS" 0x10 "RO" "Bit n: event n is counted on this machine. One that is not reads 0." [];
    Control "CONTROL" 0x18 "RW" "Control." control [
        RUN 0:0 "the counters of ENABLE count; while it is clear, all stand still",
    ];
    Enable "ENABLE" 0x20 "RW" "Counters that count while CONTROL.RUN is set." enable [
        COUNTERS 7:0 "a bit for each of COUNT",
        CYCLES 8:8 "CYCLES",
    ];
    IrqEnable "IRQ_ENABLE" 0x28 "RW" "Counters whose OVERFLOW bit raises the interrupt line; bits as in ENABLE." [];
    Overflow "OVERFLOW" 0x30 "RW" "Counters that went past 2^64 - 1; bits as in ENABLE. Writing a one clears a bit. An overflow shows at the next access of a register. Without one it raises the interrupt up to 1024 cycles late, that of CYCLES at once." [];
    Cycles "CYCLES" 0x38 "RW" "Core cycles counted." [];
    Select "SELECT" 0x40 * 8 "RW" "What a counter counts." select [
        EVENT 7:0 "number of the event; 0 counts nothing",
        HARTS 15:8 "a bit for each of harts 0 to 7 on whose behalf; with HARTS_HIGH 0: all harts",
        ORIGINS 21:16 "a bit for each origin; 0: all",
        HARTS_HIGH 31:24 "a bit for each of harts 8 to 15",
    ];
    Count "COUNT" 0x80 * 8 "RW" "What a counter has counted, modulo 2^64. Of an event that is a level: how much there is now, and writes do nothing." [];
}

/// Value of `ID.MAGIC`.
pub const MAGIC: u64 = 0x5550_4d31;
/// Value of `ID.VERSION`.
pub const VERSION: u64 = 1;
/// Number of counters beside that of cycles.
pub const COUNTERS: usize = enable::COUNTERS.count_ones() as usize;
/// Bit of the counter of cycles in [`Reg::Enable`], [`Reg::IrqEnable`] and [`Reg::Overflow`].
pub const CYCLES: usize = enable::CYCLES.trailing_zeros() as usize;
