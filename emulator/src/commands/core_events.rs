//! `tipsim core events`: the events of the performance counters, for readers, perf, C and the guide.

use std::collections::BTreeMap;
use std::fmt::Write;

use isa::{PerfEvent, PerfEventRow};
use serde_json::{Value, json};

use crate::cli::EventsFormat;

/// A metric of perf: name, group, what it is, expression, unit.
type Metric = (&'static str, &'static str, &'static str, &'static str, &'static str);

const SHARE: &str = "100%";
const PER_THOUSAND: &str = "1per_1k_inst";

/// perf's metrics, over the events' names.
#[rustfmt::skip]
const PERF_METRICS: &[Metric] = &[
    ("retiring", "TopdownL1;Default", "Slots of instructions that retired", "TOPDOWN.RETIRING / TOPDOWN.SLOTS", SHARE),
    ("frontend_bound", "TopdownL1;Default", "Slots for which the front end had no instruction", "TOPDOWN.FRONTEND_BOUND / TOPDOWN.SLOTS", SHARE),
    ("bad_speculation", "TopdownL1;Default", "Slots lost to mispredictions, flushes and traps", "TOPDOWN.BAD_SPECULATION / TOPDOWN.SLOTS", SHARE),
    ("backend_bound", "TopdownL1;Default", "Slots in which instructions waited for room behind decode", "TOPDOWN.BACKEND_BOUND / TOPDOWN.SLOTS", SHARE),
    ("fetch_latency", "TopdownL2;frontend_bound_group", "Slots of cycles without any instruction", "TOPDOWN.FRONTEND_BOUND.LATENCY / TOPDOWN.SLOTS", SHARE),
    ("fetch_bandwidth", "TopdownL2;frontend_bound_group", "Slots left over by decode groups that were not full", "TOPDOWN.FRONTEND_BOUND.BANDWIDTH / TOPDOWN.SLOTS", SHARE),
    ("branch_mispredicts", "TopdownL2;bad_speculation_group", "Slots lost to mispredictions", "TOPDOWN.BAD_SPECULATION.MISPREDICT / TOPDOWN.SLOTS", SHARE),
    ("machine_clears", "TopdownL2;bad_speculation_group", "Slots lost to other flushes and traps", "TOPDOWN.BAD_SPECULATION.CLEAR / TOPDOWN.SLOTS", SHARE),
    ("memory_bound", "TopdownL2;backend_bound_group", "Slots behind an instruction that waits for memory", "TOPDOWN.BACKEND_BOUND.MEMORY / TOPDOWN.SLOTS", SHARE),
    ("core_bound", "TopdownL2;backend_bound_group", "Slots behind an instruction that waits for the core", "TOPDOWN.BACKEND_BOUND.CORE / TOPDOWN.SLOTS", SHARE),
    ("icache_misses", "TopdownL3;fetch_latency_group", "Slots before packets that missed in the L1 instruction cache", "TOPDOWN.FRONTEND_BOUND.LATENCY.ICACHE / TOPDOWN.SLOTS", SHARE),
    ("itlb_misses", "TopdownL3;fetch_latency_group", "Slots before packets that missed in the instruction TLB", "TOPDOWN.FRONTEND_BOUND.LATENCY.ITLB / TOPDOWN.SLOTS", SHARE),
    ("fetch_restarts", "TopdownL3;fetch_latency_group", "Slots of cycles without any instruction otherwise", "TOPDOWN.FRONTEND_BOUND.LATENCY.OTHER / TOPDOWN.SLOTS", SHARE),
    ("serializing_flushes", "TopdownL3;machine_clears_group", "Slots lost to flushes of serialising instructions", "TOPDOWN.BAD_SPECULATION.CLEAR.SERIALIZE / TOPDOWN.SLOTS", SHARE),
    ("memory_order_flushes", "TopdownL3;machine_clears_group", "Slots lost to loads that were flushed for their order", "TOPDOWN.BAD_SPECULATION.CLEAR.ORDER / TOPDOWN.SLOTS", SHARE),
    ("traps", "TopdownL3;machine_clears_group", "Slots lost to exceptions and interrupts", "TOPDOWN.BAD_SPECULATION.CLEAR.TRAP / TOPDOWN.SLOTS", SHARE),
    ("l1_bound", "TopdownL3;memory_bound_group", "Slots behind a load that the L1 data cache or the store queue answers", "TOPDOWN.BACKEND_BOUND.MEMORY.L1 / TOPDOWN.SLOTS", SHARE),
    ("l2_bound", "TopdownL3;memory_bound_group", "Slots behind a load that the L2 answers", "TOPDOWN.BACKEND_BOUND.MEMORY.L2 / TOPDOWN.SLOTS", SHARE),
    ("llc_bound", "TopdownL3;memory_bound_group", "Slots behind a load that the last-level cache answers", "TOPDOWN.BACKEND_BOUND.MEMORY.LLC / TOPDOWN.SLOTS", SHARE),
    ("dram_bound", "TopdownL3;memory_bound_group", "Slots behind a load that memory answers", "TOPDOWN.BACKEND_BOUND.MEMORY.DRAM / TOPDOWN.SLOTS", SHARE),
    ("store_bound", "TopdownL3;memory_bound_group", "Slots behind a store", "TOPDOWN.BACKEND_BOUND.MEMORY.STORE / TOPDOWN.SLOTS", SHARE),
    ("device_bound", "TopdownL3;memory_bound_group", "Slots behind an access to a device register", "TOPDOWN.BACKEND_BOUND.MEMORY.DEVICE / TOPDOWN.SLOTS", SHARE),
    ("divider", "TopdownL3;core_bound_group", "Slots behind a division or square root", "TOPDOWN.BACKEND_BOUND.CORE.DIVIDER / TOPDOWN.SLOTS", SHARE),
    ("serializing", "TopdownL3;core_bound_group", "Slots around a serialising instruction", "TOPDOWN.BACKEND_BOUND.CORE.SERIALIZE / TOPDOWN.SLOTS", SHARE),
    ("execution", "TopdownL3;core_bound_group", "Slots behind an instruction that waits for operands or a port", "TOPDOWN.BACKEND_BOUND.CORE.EXECUTION / TOPDOWN.SLOTS", SHARE),
    ("commit_bound", "TopdownL3;core_bound_group", "Slots in which decode waited though instructions committed", "TOPDOWN.BACKEND_BOUND.CORE.COMMIT / TOPDOWN.SLOTS", SHARE),
    ("ipc", "IPC", "Instructions per cycle", "INST.RET / CYCLES.HART", "1inst/cycle"),
    ("cpi", "IPC", "Cycles per instruction", "CYCLES.HART / INST.RET", "1cycle/inst"),
    ("branch_miss_rate", "Branches", "Branches and jumps that were mispredicted", "INST.MISPRED.SPEC / INST.BRJMP.SPEC", SHARE),
    ("branch_mpki", "Branches", "Mispredicted branches and jumps", "1000 * INST.MISPRED.SPEC / INST.RET", PER_THOUSAND),
    ("cond_miss_rate", "Branches", "Conditional branches that were mispredicted", "BR.COND.MISP / INST.BRANCH", SHARE),
    ("taken_rate", "Branches", "Conditional branches that were taken", "BR.COND.TAKEN / INST.BRANCH", SHARE),
    ("l1d_miss_rate", "Cache", "Loads that missed in the L1 data cache", "CACHE.L1.RD.DATA.MISS / CACHE.L1.RD.DATA.ACCESS", SHARE),
    ("l1d_mpki", "Cache", "Misses of loads in the L1 data cache", "1000 * CACHE.L1.RD.DATA.MISS / INST.RET", PER_THOUSAND),
    ("l1i_mpki", "Cache", "Misses in the L1 instruction cache", "1000 * CACHE.L1I.RD.CODE.MISS / INST.RET", PER_THOUSAND),
    ("l2_miss_rate", "Cache", "Lines read that the L2 did not have", "MEM.L2.MISS / MEM.L2.ACCESS", SHARE),
    ("l2_mpki", "Cache", "Misses in the L2", "1000 * MEM.L2.MISS / INST.RET", PER_THOUSAND),
    ("llc_mpki", "Cache", "Misses in the last-level cache", "1000 * CACHE.LL.RD.DATA.MISS / INST.RET", PER_THOUSAND),
    ("dtlb_mpki", "TLB", "Misses in the first-level data TLB", "1000 * TLB.L1.LDST.MISS / INST.RET", PER_THOUSAND),
    ("itlb_mpki", "TLB", "Misses in the first-level instruction TLB", "1000 * TLB.L1I.CODE.MISS / INST.RET", PER_THOUSAND),
    ("walks_pki", "TLB", "Page-table walks", "1000 * MEM.WALK / INST.RET", PER_THOUSAND),
    ("walk_cycles", "TLB", "Cycles of walks, data and code together, beside those of the core", "(TLB.WALK.DATA.CYCLES + TLB.WALK.CODE.CYCLES) / CYCLES.HART", SHARE),
    ("memory_read_bandwidth", "Memory_BW", "Lines read from memory by this program", "64 * CACHE.LL.RD.DATA.MISS / 1000000 / duration_time", "1MB/s"),
];

/// An event: its selector, its row of the table, and whether samples of it can be precise.
fn rows() -> impl Iterator<Item = (u32, PerfEventRow, bool)> {
    let events = PerfEvent::ALL.iter();
    events.map(|event| (event.selector(), event.row(), event.is_precise()))
}

/// perf's event files of the core, by name.
fn perf_files() -> BTreeMap<String, Vec<Value>> {
    let mut files: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (selector, row, precise) in rows() {
        let file = files.entry(format!("{}.json", row.topic)).or_default();
        let mut event = json!({
            "EventName": row.name,
            "EventCode": format!("{selector:#x}"),
            "BriefDescription": row.description.trim_end_matches('.'),
        });
        if precise {
            // "(Precise event)" in `perf list`.
            event["PEBS"] = "1".into();
        }
        file.push(event);
    }
    let metrics = PERF_METRICS.iter().map(|&(name, groups, what, expression, unit)| {
        let mut metric = json!({
            "MetricName": name,
            "MetricGroup": groups,
            "BriefDescription": what,
            "MetricExpr": expression,
            "ScaleUnit": unit,
        });
        if groups.contains("Topdown") {
            // All share the count of slots, which each group of events would take a counter for.
            metric["MetricConstraint"] = "NO_GROUP_EVENTS".into();
        }
        if groups.contains("Default") {
            metric["DefaultMetricgroupName"] = "TopdownL1".into();
        }
        metric
    });
    files.insert("metrics.json".to_owned(), metrics.collect());
    files
}

fn yes(value: bool) -> &'static str {
    if value { "yes" } else { "" }
}

fn text() -> String {
    let mut out = format!(
        "{:40} {:>10}  {:8} {:5} {:7} {:12} counts\n",
        "event", "selector", "stage", "cond.", "precise", "topic"
    );
    for (selector, row, precise) in rows() {
        let _ = writeln!(
            out,
            "{:40} {selector:>#10x}  {:8} {:5} {:7} {:12} {}",
            row.name,
            row.stage.name(),
            yes(row.per_cycle),
            yes(precise),
            row.topic,
            row.description
        );
    }
    out
}

/// A chapter of the guide.
fn markdown() -> String {
    let events = PerfEvent::ALL.len();
    let precise = rows().filter(|(_, _, precise)| *precise).count();
    let per_cycle = rows().filter(|(_, row, _)| row.per_cycle).count();
    let mut out = format!(
        "# Performance events\n\n\
         What the counters of a hart count: {events} events, which the core counts for itself all the time or while a counter asks. The table\n\
         is written by `tipsim core events --format markdown`; `--format json`, `perf` and `c` have the same for programs. How to use them:\n\
         [Inside the guest with perf](guest-perf.md#counting).\n\n\
         The selector is the low half of `mhpmevent`. Below 0x20 it is a code of the RISC-V performance events draft (v0.1.0). From there on its low\n\
         byte is a set, and bits 31 to 8 are a mask of the set's events, which are summed. For {per_cycle} events it is known how often they occur in\n\
         each cycle (\"cond.\"): bits 39:32 are a threshold, 40 inverts, 41 counts only the first of cycles that follow each other. For the others,\n\
         and sums of which one is counted at decode and another at commit, these bits read as zero.\n\n\
         Of {precise} events (\"precise\") a sample can name the instruction that it is due to: `perf record -e branch-misses:pp`. Samples of other events, and\n\
         of conditions, have the address at which the interrupt was taken.\n\n\
         Stages before commit count instructions that then do not retire, too: those that trap, and loads that are flushed for their order. Wrong\n\
         paths are not simulated. Without the timing core only cycles and instructions count.\n"
    );
    let mut topics: Vec<&str> = Vec::new();
    for (_, row, _) in rows() {
        if !topics.contains(&row.topic) {
            topics.push(row.topic);
        }
    }
    for topic in topics {
        let _ = write!(
            out,
            "\n## {topic}\n\n| event | selector | stage | cond. | precise | counts |\n|---|---|---|---|---|---|\n"
        );
        for (selector, row, precise) in rows().filter(|(_, row, _)| row.topic == topic) {
            let _ = writeln!(
                out,
                "| `{}` | {selector:#x} | {} | {} | {} | {} |",
                row.name,
                row.stage.name(),
                yes(row.per_cycle),
                yes(precise),
                row.description
            );
        }
    }
    out
}

fn c_header() -> String {
    let mut out = "/* SPDX-License-Identifier: MIT OR Apache-2.0 */\n\
        /* Selectors of mhpmevent, by `tipsim core events --format c`. */\n\
        #ifndef TIPSIM_EVENTS_H\n#define TIPSIM_EVENTS_H\n\n"
        .to_owned();
    for (selector, row, _) in rows() {
        let name = row.name.replace('.', "_");
        let _ = writeln!(out, "/* {} */\n#define TIPSIM_{name} {selector:#x}", row.description);
    }
    out.push_str(
        "\n/* Instead of events, cycles are counted in which at least so many occur. */\n\
         #define TIPSIM_EVENT_THRESHOLD(n) ((n) << 32)\n\
         #define TIPSIM_EVENT_INVERT (1ull << 40)\n\
         #define TIPSIM_EVENT_EDGE (1ull << 41)\n\n#endif\n",
    );
    out
}

/// Prints them.
pub(super) fn print(format: EventsFormat) -> anyhow::Result<()> {
    match format {
        EventsFormat::Text => print!("{}", text()),
        EventsFormat::Markdown => print!("{}", markdown()),
        EventsFormat::C => print!("{}", c_header()),
        EventsFormat::Json => {
            let list: Vec<_> = rows()
                .map(|(selector, row, precise)| {
                    json!({
                        "name": row.name,
                        "selector": selector,
                        "stage": row.stage.name(),
                        "speculative": row.stage.is_speculative(),
                        "condition": row.per_cycle,
                        "precise": precise,
                        "topic": row.topic,
                        "description": row.description,
                    })
                })
                .collect();
            println!("{}", serde_json::to_string_pretty(&list)?);
        }
        EventsFormat::Perf => println!("{}", serde_json::to_string_pretty(&perf_files())?),
    }
    Ok(())
}
