/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Registers of the PMUs of last-level cache and memory controller. Generated from uncore-pmu/src; do not edit. */
#ifndef TIPSIM_UNCORE_REGS_H
#define TIPSIM_UNCORE_REGS_H

#define UNCORE_MAGIC 0x55504d31ULL
#define UNCORE_VERSION 1

/* Identification. (RO) */
#define UNCORE_ID 0x00
#define UNCORE_ID_MAGIC_SHIFT 0
#define UNCORE_ID_MAGIC_MASK 0xffffffffULL /* 0x55504d31, "UPM1" */
#define UNCORE_ID_VERSION_SHIFT 32
#define UNCORE_ID_VERSION_MASK 0xff00000000ULL /* version of this register layout, 1 */
#define UNCORE_ID_UNIT_SHIFT 40
#define UNCORE_ID_UNIT_MASK 0xff0000000000ULL /* what is counted: 1 the last-level cache, 2 the memory controller */
#define UNCORE_ID_COUNTERS_SHIFT 48
#define UNCORE_ID_COUNTERS_MASK 0xff000000000000ULL /* number of counters beside that of cycles, 8 */
#define UNCORE_ID_HARTS_SHIFT 56
#define UNCORE_ID_HARTS_MASK 0xff00000000000000ULL /* number of harts */

/* Core clock, in Hz. (RO) */
#define UNCORE_CLOCK 0x08

/* Bit n: event n is counted on this machine. One that is not reads 0. (RO) */
#define UNCORE_EVENTS 0x10

/* Control. (RW) */
#define UNCORE_CONTROL 0x18
#define UNCORE_CONTROL_RUN_SHIFT 0
#define UNCORE_CONTROL_RUN_MASK 0x1ULL /* the counters of ENABLE count; while it is clear, all stand still */

/* Counters that count while CONTROL.RUN is set. (RW) */
#define UNCORE_ENABLE 0x20
#define UNCORE_ENABLE_COUNTERS_SHIFT 0
#define UNCORE_ENABLE_COUNTERS_MASK 0xffULL /* a bit for each of COUNT */
#define UNCORE_ENABLE_CYCLES_SHIFT 8
#define UNCORE_ENABLE_CYCLES_MASK 0x100ULL /* CYCLES */

/* Counters whose OVERFLOW bit raises the interrupt line; bits as in ENABLE. (RW) */
#define UNCORE_IRQ_ENABLE 0x28

/* Counters that went past 2^64 - 1; bits as in ENABLE. Writing a one clears a bit. An overflow shows at the next access of a register. Without one it raises the interrupt up to 1024 cycles late, that of CYCLES at once. (RW) */
#define UNCORE_OVERFLOW 0x30

/* Core cycles counted. (RW) */
#define UNCORE_CYCLES 0x38

/* What a counter counts. (RW) */
#define UNCORE_SELECT(n) (0x40 + 8 * (n))
#define UNCORE_SELECT_EVENT_SHIFT 0
#define UNCORE_SELECT_EVENT_MASK 0xffULL /* number of the event; 0 counts nothing */
#define UNCORE_SELECT_HARTS_SHIFT 8
#define UNCORE_SELECT_HARTS_MASK 0xff00ULL /* a bit for each of harts 0 to 7 on whose behalf; with HARTS_HIGH 0: all harts */
#define UNCORE_SELECT_ORIGINS_SHIFT 16
#define UNCORE_SELECT_ORIGINS_MASK 0x3f0000ULL /* a bit for each origin; 0: all */
#define UNCORE_SELECT_HARTS_HIGH_SHIFT 24
#define UNCORE_SELECT_HARTS_HIGH_MASK 0xff000000ULL /* a bit for each of harts 8 to 15 */

/* What a counter has counted, modulo 2^64. Of an event that is a level: how much there is now, and writes do nothing. (RW) */
#define UNCORE_COUNT(n) (0x80 + 8 * (n))

/* Events of unit 1. */
#define UNCORE_LLC_LOOKUPS 1 /* lines looked up: those read, but for the ones that another hart's caches give, and those written back */
#define UNCORE_LLC_HITS 2 /* lookups that found the line */
#define UNCORE_LLC_MISSES 3 /* lookups that did not: a read goes to memory, a line written back takes a place */
#define UNCORE_LLC_EVICTIONS 4 /* lines that another one took the place of */
#define UNCORE_LLC_WRITEBACKS 5 /* evictions of modified lines, which are written to memory */
#define UNCORE_LLC_PROBES 6 /* caches of other harts that were asked to give or drop a line */
#define UNCORE_LLC_TRANSFERS 7 /* requests for a line that the caches of another hart gave */
#define UNCORE_LLC_MODIFIED_TRANSFERS 8 /* transfers of lines that the other hart had modified */
#define UNCORE_LLC_UPGRADES 9 /* requests to write to a line that was held to be read */
#define UNCORE_LLC_OCCUPANCY 10 /* lines that the cache holds, by the request that brought each */

/* Events of unit 2. */
#define UNCORE_MEMORY_READS 1 /* lines read */
#define UNCORE_MEMORY_WRITES 2 /* lines written */
#define UNCORE_MEMORY_READ_BYTES 3 /* bytes read */
#define UNCORE_MEMORY_WRITE_BYTES 4 /* bytes written */
#define UNCORE_MEMORY_ACTIVATIONS 5 /* rows opened */
#define UNCORE_MEMORY_ROW_HITS 6 /* accesses that found their row open */
#define UNCORE_MEMORY_ROW_CONFLICTS 7 /* accesses that found another row open, which was closed first */
#define UNCORE_MEMORY_QUEUE_OCCUPANCY 8 /* cycles that accesses waited for a refresh, their bank or the bus: divided by cycles, the mean number that wait */
#define UNCORE_MEMORY_REFRESHES 9 /* refreshes begun, in one of which no bank is accessed */

#endif
