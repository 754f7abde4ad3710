//! The tables that there are.

use crate::schema::{Column, ColumnType, RunColumns, Table};

macro_rules! columns {
    ($($name:literal: $kind:ident $(? $optional:tt)?, $unit:literal, $about:literal;)*) => {
        &[$(Column {
            name: $name,
            column_type: ColumnType::$kind,
            optional: columns!(@optional $($optional)?),
            unit: $unit,
            about: $about,
        }),*]
    };
    (@optional) => { false };
    (@optional null) => { true };
}

/// Columns for a run's samplers.
const SAMPLERS: RunColumns = RunColumns {
    names: "one per sampler, by its name with _ for what wants quotes in SQL (`tip`, `tip_ilp`, `nci_800000`, …); of a sampled run also `tip_margin_95`, …",
    unit: "share",
    about: "share of the process by this sampler; with `_margin_95` behind its name, the margin of error of that share, by chance, for 95 % of seeds",
};

/// Tables of a trace.
pub const TRACE_TABLES: [&Table; 3] = [&RECORDS, &SPANS, &STATIC_INSTRUCTIONS];

/// Tables of a run's report.
pub const REPORT_TABLES: [&Table; 8] =
    [&PROCESSES, &ERRORS, &FUNCTIONS, &INSTRUCTIONS, &LOOPS, &TOP_DOWN, &WINDOWS, &COUNTERS];

/// Returns every table.
pub fn tables() -> impl Iterator<Item = &'static Table> {
    let report = REPORT_TABLES.into_iter();
    TRACE_TABLES.into_iter().chain(report).chain([&SAMPLES])
}

/// Table of a trace's records.
pub const RECORDS: Table = Table {
    name: "records",
    about: "an instruction that committed or trapped, in the order of the hart's program",
    columns: columns! {
        "hart": U32, "", "hart";
        "record": I64, "", "number in the hart's stream, from 0";
        "pid": U32? null, "", "process that ran; null before the kernel named one";
        "tid": U32, "", "thread that ran";
        "process": Name, "", "name of the process";
        "fetch_cycle": I64? null, "cycle", "F0 of its fetch packet; null without record.stages";
        "decode": I64, "cycle", "decode";
        "dispatch": I64, "cycle", "first cycle in the ROB";
        "issue": I64? null, "cycle", "issue (a store: of its address); null without record.stages and where nothing issues";
        "complete": I64? null, "cycle", "first cycle in which it could have committed; null without record.stages";
        "commit": I64, "cycle", "commit, or the trap";
        "inst": U32, "", "its row in static_instructions";
        "space": U32, "", "address space: 0 bare, 1 kernel, from 2 user";
        "privilege": U8, "", "0 U, 1 S, 3 M";
        "pc": U64, "address", "virtual address";
        "class": Name, "", "coarse class of the instruction";
        "wait": Name, "", "what it waited for as the oldest in the ROB";
        "redirect": Name, "", "why the front end was redirected after it";
        "first_of_row": Bool, "", "it is the first of its ROB row";
        "tea": Name, "", "the events that it met, TEA's (ISCA'23) first, joined by |; empty for none";
        "instruction": Name, "", "disassembly";
    },
    has_cycle_stack: false,
    run_columns: None,
};

/// Table of a trace's spans.
pub const SPANS: Table = Table {
    name: "spans",
    about: "a maximal run of cycles in one state of the commit stage (TIP, MICRO'21, section 2.1), and the instructions that the Oracle charges them to, in equal parts",
    columns: columns! {
        "hart": U32, "", "hart";
        "pid": U32? null, "", "process that ran; null before the kernel named one";
        "tid": U32, "", "thread that ran";
        "process": Name, "", "name of the process";
        "state": Name, "", "computing, stalled, flushed, drained or idle";
        "start": I64, "cycle", "first cycle";
        "cycles": I64, "cycles", "length; 1 if computing";
        "commit": I64? null, "cycle", "when its instructions commit or trap; null if idle";
        "insts": U32s, "", "their rows in static_instructions, oldest first; none if idle";
    },
    has_cycle_stack: false,
    run_columns: None,
};

/// Table of a trace's static instructions.
pub const STATIC_INSTRUCTIONS: Table = Table {
    name: "static_instructions",
    about: "an instruction of the program: address space, address and encoding",
    columns: columns! {
        "hart": U32, "", "hart, whose numbers these are";
        "inst": U32, "", "its number";
        "space": U32, "", "address space: 0 bare, 1 kernel, from 2 user";
        "pc": U64, "address", "virtual address";
        "raw": U32, "", "encoding (of 16 bits in the low half)";
        "length": U8, "bytes", "length";
        "privilege": U8, "", "0 U, 1 S, 3 M";
        "class": Name, "", "coarse class";
        "target": U64? null, "address", "target of a direct branch or jump";
        "instruction": Name, "", "disassembly";
    },
    has_cycle_stack: false,
    run_columns: None,
};

/// Table of perf.data's samples.
pub const SAMPLES: Table = Table {
    name: "samples",
    about: "a sample of perf in the guest, as `tipsim samples` has them; null where the event does not have it",
    columns: columns! {
        "time": F64? null, "s", "time of the guest";
        "comm": Name? null, "", "name of the command";
        "pid": U32? null, "", "process";
        "tid": U32? null, "", "thread";
        "cpu": U32? null, "", "hart";
        "event": Name? null, "", "event";
        "period": I64? null, "events", "how many it stands for";
        "ip": U64? null, "address", "sampled address";
        "exact": Bool, "", "the kernel says that ip is the very instruction";
        "symbol": Text? null, "", "function and distance from its start";
        "addr": U64? null, "address", "virtual address of the data";
        "phys_addr": U64? null, "address", "physical address of the data";
        "op": Name? null, "", "perf's data source: kind of access";
        "level": Name? null, "", "perf's data source: level that supplied it";
        "snoop": Name? null, "", "perf's data source: other harts' caches";
        "tlb": Name? null, "", "perf's data source: translation";
        "lock": Name? null, "", "perf's data source: atomic";
        "weight": I64? null, "cycles", "latency of the access or of the execution";
        "ins_lat": I64? null, "cycles", "latency of the instruction";
        "retire_lat": I64? null, "cycles", "from completion to retirement";
    },
    has_cycle_stack: false,
    run_columns: None,
};

/// Columns for the categories of a published cycle stack.
pub const CYCLE_STACK: [Column; 7] = [
    category("execution", "of it, cycles in which instructions commit"),
    category("alu_stall", "of it, stalled on execution units and their operands"),
    category("load_stall", "of it, stalled on loads"),
    category("store_stall", "of it, stalled on stores"),
    category("front_end", "of it, drained"),
    category("mispredict", "of it, flushed by mispredicted branches"),
    category("misc_flush", "of it, flushed by anything else"),
];

const fn category(name: &'static str, about: &'static str) -> Column {
    Column { name, column_type: ColumnType::F64, optional: false, unit: "share", about }
}

/// Table of a report's processes.
pub const PROCESSES: Table = Table {
    name: "processes",
    about: "a process; the first, `all`, is all of them. Its cycle stack is of its own cycles",
    columns: columns! {
        "process": Name, "", "unique name: the command, with the process id where several have it";
        "command": Name? null, "", "the command, which several processes may have";
        "pid": U32? null, "", "process id; null for all and boot";
        "class": Name, "", "compute, flush or stall";
        "cycles": F64, "cycles", "cycles by the Oracle";
        "share": F64, "share", "share of all processes' cycles";
    },
    has_cycle_stack: true,
    run_columns: None,
};

/// Table of a report's errors of samplers.
pub const ERRORS: Table = Table {
    name: "errors",
    about: "the error of a sampler in a process at a level (TIP, MICRO'21, section 5), where it says anything about the process",
    columns: columns! {
        "process": Name, "", "process, or all";
        "sampler": Name, "", "sampler of the run, or the guest's event";
        "profiler": Name? null, "", "its rule; null for the guest's events";
        "period": I64? null, "cycles", "its period";
        "level": Name, "", "function, block or instruction";
        "samples": F64, "samples", "samples in the process";
        "error": F64, "share", "share of time that is charged to the wrong symbol";
        "sampling_error": F64, "share", "what so few samples would give with a perfect rule";
        "error_margin_95": F64? null, "share", "margin of the error, by chance, for 95 % of seeds; null if the region was not sampled, or the process is in too few units";
        "error_margin_99_7": F64? null, "share", "margin of the error, by chance, for 99.7 % of seeds";
    },
    has_cycle_stack: false,
    run_columns: None,
};

/// Table of a report's functions.
pub const FUNCTIONS: Table = Table {
    name: "functions",
    about: "a function of a process, the most expensive first; shares are of the process",
    columns: columns! {
        "process": Name, "", "process";
        "pid": U32? null, "", "process id";
        "function": Text, "", "demangled name";
        "module": Name, "", "guest path of its file";
        "cycles": F64, "cycles", "cycles by the Oracle";
        "oracle": F64, "share", "share by the Oracle";
        "oracle_margin_95": F64? null, "share", "margin of error of that share, by chance, for 95 % of seeds; null if the region was not sampled, or the process is in too few units";
        "oracle_margin_99_7": F64? null, "share", "margin of error of the share by the Oracle, by chance, for 99.7 % of seeds";
        "total": F64? null, "share", "that share with all that it calls; null if calls were not followed";
        "store_queue": F64, "share", "of it, cycles in which a full store queue held dispatch back: part of the cycle stack, too";
    },
    has_cycle_stack: true,
    run_columns: Some(SAMPLERS),
};

/// Table of a report's instructions.
pub const INSTRUCTIONS: Table = Table {
    name: "instructions",
    about: "an instruction of a process, the thousand most expensive of all; shares are of the process",
    columns: columns! {
        "process": Name, "", "process";
        "pid": U32? null, "", "process id";
        "pc": U64, "address", "virtual address";
        "function": Name, "", "function";
        "label": Text, "", "function and distance from its start";
        "inlined": Texts, "", "functions inlined here, the innermost first";
        "source": Text? null, "", "file:line: the innermost of the program's own files";
        "library_source": Text? null, "", "file:line of library code that is inlined there";
        "instruction": Text, "", "disassembly";
        "cycles": F64, "cycles", "cycles by the Oracle";
        "oracle": F64, "share", "share by the Oracle";
        "oracle_margin_95": F64? null, "share", "margin of error of that share, by chance, for 95 % of seeds; null if the region was not sampled, or the process is in too few units";
        "oracle_margin_99_7": F64? null, "share", "margin of error of the share by the Oracle, by chance, for 99.7 % of seeds";
        "store_queue": F64, "share", "of it, cycles in which a full store queue held dispatch back: part of the cycle stack, too";
    },
    has_cycle_stack: true,
    run_columns: Some(SAMPLERS),
};

/// Table of a report's loops.
pub const LOOPS: Table = Table {
    name: "loops",
    about: "a loop that the excerpts of the execution show, the most expensive first",
    columns: columns! {
        "process": Name, "", "process";
        "function": Text, "", "function";
        "label": Text, "", "where it begins";
        "source": Text? null, "", "file:line of that";
        "depth": U32, "", "loops around it";
        "cycles": F64, "cycles", "cycles by the Oracle";
        "share": F64, "share", "share of the process";
        "own_share": F64, "share", "of it, outside of inner loops";
        "iterations": F64, "iterations", "about so many";
        "trips": F64? null, "iterations", "iterations per entry";
        "measured": I64, "iterations", "iterations in the excerpts, which the rest is from";
        "cycles_per_iteration": F64, "cycles", "mean";
        "instructions_per_iteration": F64, "instructions", "mean";
        "decode_bound": F64, "cycles", "least cycles of an iteration by the width of decode";
        "int_bound": F64, "cycles", "by the integer units";
        "mem_bound": F64, "cycles", "by the memory units";
        "fp_bound": F64, "cycles", "by the floating-point units";
        "binds": Name? null, "", "first cause on its critical path";
    },
    has_cycle_stack: false,
    run_columns: None,
};

/// Table of a report's top-down analysis.
pub const TOP_DOWN: Table = Table {
    name: "top_down",
    about: "a node of the top-down analysis of a process",
    columns: columns! {
        "process": Name, "", "process, or all";
        "slots": I64, "slots", "commit slots of the process";
        "node": Name, "", "path in the tree, joined by dots";
        "share": F64, "share", "share of the slots";
        "margin_95": F64? null, "share", "margin of error of that share, by chance, for 95 % of seeds; null if the region was not sampled";
        "margin_99_7": F64? null, "share", "margin of error of that share, by chance, for 99.7 % of seeds";
    },
    has_cycle_stack: false,
    run_columns: None,
};

/// Table of a report's cycle stacks over time.
pub const WINDOWS: Table = Table {
    name: "windows",
    about: "a window of time and a process in it; shares are of the process's cycles in the window",
    columns: columns! {
        "process": Name, "", "process, or all";
        "start": I64, "cycle", "first cycle";
        "end_cycle": I64, "cycle", "first cycle after it";
        "cycles": I64, "cycles", "cycles in which the hart did not sleep";
    },
    has_cycle_stack: true,
    run_columns: None,
};

/// Table of a report's counters of the cores.
pub const COUNTERS: Table = Table {
    name: "counters",
    about: "what a core counted of an event (`tipsim core events` says what each is)",
    columns: columns! {
        "hart": U32, "", "hart";
        "event": Name, "", "event";
        "count": I64, "events", "how often; of a sampled region, in its units";
        "estimate": F64? null, "events", "how often in the whole of a sampled region; null if the region was not sampled, or has too few units";
        "estimate_margin_95": F64? null, "events", "margin of error of the estimate, by chance, for 95 % of seeds";
        "estimate_margin_99_7": F64? null, "events", "margin of error of the estimate, by chance, for 99.7 % of seeds";
    },
    has_cycle_stack: false,
    run_columns: None,
};
