//! Programs whose time has one cause: all that the report has on causes names the same one.

use serde_json::Value;

use crate::common::{assemble, json, scratch, succeed, tipsim};

/// What the sections of a report call one cause.
struct CauseNames {
    /// The component of the cycle stacks that is the verdict's cause at the place.
    component: &'static str,
    /// The published category of the cycle stacks.
    category: &'static str,
    /// Node of the top-down tree.
    node: &'static str,
    /// Events of the instructions (TEA); `none`: they incur none.
    events: &'static str,
    /// Cause on the critical path of the loop; `None`: no loop.
    on_path: Option<&'static str>,
}

/// A load whose address depends on the load before: the datum, which is 0, and a stride are added to the offset.
const DEPENDENT_LOAD: &str =
    "add a2, s3, a4\n ld a3, 0(a2)\n add a4, a4, a3\n add a4, a4, s1\n and a4, a4, s2";

/// Writes page tables. The first 512 pages from 0x4000_0000 on are the physical page at 0x8400_0000, the next 512 the one after it. RAM has its
/// physical addresses.
const WRITE_PAGE_TABLES: &str = "
    li t0, -1
    csrw pmpaddr0, t0
    li t0, 0x1f
    csrw pmpcfg0, t0
    li t0, 0x80800000
    li t1, 0x200000cf           # a page of a gigabyte
    sd t1, 16(t0)
    li t1, 0x20200401
    sd t1, 8(t0)
    li t2, 0x80801000
    li t1, 0x20200801
    sd t1, 0(t2)
    li t1, 0x20200c01
    sd t1, 8(t2)
    li t2, 0x80802000
    li t3, 0
3:  srli t5, t3, 9
    slli t5, t5, 10
    li t6, 0x210000cf
    add t5, t5, t6
    sd t5, 0(t2)
    addi t2, t2, 8
    addi t3, t3, 1
    li t4, 1024
    bne t3, t4, 3b";

/// Enters supervisor mode, with translation by the page tables.
const ENTER_SUPERVISOR_MODE: &str = "
    li t0, (8 << 60) | 0x80800
    csrw satp, t0
    sfence.vma
    li t0, 0x1000
    csrc mstatus, t0
    li t0, 0x800
    csrs mstatus, t0
    la t0, 4f
    csrw mepc, t0
    mret
4:";

/// Executes `body` eight times in each of `rounds` iterations of a loop of the function `measured`, and returns the report. `functions`: code beside.
fn report_of_loop(name: &str, setup: &str, body: &str, rounds: u32, functions: &str) -> Value {
    let dir = scratch(&format!("causes-{name}"));
    let bodies = format!("{body}\n").repeat(8);
    let source = format!(
        ".option norelax
.globl _start
.type _start, @function
_start: li t0, 0x6000
{setup}
    li s0, {rounds}
    call measured
    li a0, 1
    la t0, tohost
1:  sd a0, 0(t0)
    j 1b
.size _start, .-_start
.globl measured
.type measured, @function
.align 6
measured: mv s4, ra
2:
{bodies}
    addi s0, s0, -1
    bnez s0, 2b
    mv ra, s4
    ret
.size measured, .-measured
{functions}
.section .tohost, \"aw\", @progbits
.align 6
.globl tohost
tohost: .dword 0
.align 6
.globl fromhost
fromhost: .dword 0
"
    );
    let elf = assemble(&dir, name, &source);
    succeed(tipsim().arg("exec").arg(&elf).arg("--out").arg(dir.join("out")));
    json(&dir.join("out/report.json"))
}

/// Returns the first row of a table whose `field` is `value`.
#[track_caller]
fn row_with<'a>(table: &'a Value, field: &str, value: &str) -> &'a Value {
    let rows = table.as_array().unwrap_or_else(|| panic!("no table with {field}"));
    rows.iter().find(|row| row[field] == value).unwrap_or_else(|| panic!("no {value}: {rows:?}"))
}

/// Checks that each section names the cause, for at least a share of the time of a function.
#[track_caller]
fn check(name: &str, report: &Value, function: &str, names: &CauseNames, least: f64) {
    let most = |what: &str, share: &Value, of: f64| {
        let share = share.as_f64().unwrap_or(0.0);
        assert!(share > least * of, "{name}: {what}: {share}, of {of}");
    };
    let row = row_with(&report["functions"], "name", function);
    let whole = row["share"].as_f64().unwrap();
    assert!(whole > 0.3, "{name}: {whole}");
    let place = row_with(&report["verdict"][0]["places"], "function", function);
    let cause = &place["cause"];
    assert_eq!(cause["component"], names.component, "{name}: {cause}");
    most("verdict", &cause["share"], whole);
    let mut categories = report["categories"].as_array().unwrap().iter();
    let category = categories.position(|category| category == names.category).unwrap();
    most("cycle stack", &row["stack"][category], 1.0);
    let slots = row_with(&report["top_down"]["functions"], "name", function);
    most(names.node, &slots["shares"][names.node], 1.0);
    let events = &report["tea"]["processes"][0]["stack"];
    most(names.events, &events[names.events], whole);
    let Some(on_path) = names.on_path else { return };
    let found = row_with(&report["loops"]["loops"], "function", function);
    let causes = found["causes"].as_array().unwrap();
    let cycles = |cause: &Value| cause["cycles"].as_f64().unwrap();
    let all: f64 = causes.iter().map(cycles).sum();
    let of_cause = causes.iter().filter(|cause| cause["cause"] == on_path).map(cycles);
    most(on_path, &of_cause.sum::<f64>().into(), all);
}

#[test]
fn each_wait_for_data_is_of_who_answers() {
    // The stride, and the bytes that are accessed in turn: lines that do not fit the ways of a set of the L1, or of the L2, or that no cache has.
    for (name, stride, bytes, component, node, events, on_path) in [
        ("l2", 1 << 12, 1 << 17, "load-l2", "backend.memory.l2", "ST-L1", "load_l2"),
        ("llc", 1 << 16, 1 << 22, "load-llc", "backend.memory.llc", "ST-L1", "load_llc"),
        ("dram", 4160, 1 << 26, "load-dram", "backend.memory.dram", "ST-L1|ST-LLC", "load_memory"),
    ] {
        let setup = format!("li s1, {stride}\n li s2, {bytes} - 1\n li s3, 0x81000000\n li a4, 0");
        let report = report_of_loop(name, &setup, DEPENDENT_LOAD, 1500, "");
        let names =
            CauseNames { component, category: "Load stall", node, events, on_path: Some(on_path) };
        check(name, &report, "measured", &names, 0.5);
    }
    let names = CauseNames {
        component: "load-l1",
        category: "Load stall",
        node: "backend.memory.l1",
        events: "none",
        on_path: Some("load_l1"),
    };
    let setup = "li a3, 0x81000000\n sd a3, 0(a3)\n fence";
    check("l1", &report_of_loop("l1", setup, "ld a3, 0(a3)", 1500, ""), "measured", &names, 0.5);
}

#[test]
fn waits_of_the_back_end() {
    for (name, setup, body, names) in [
        (
            "multiplications",
            "li a2, 3",
            "mul a2, a2, a2",
            CauseNames {
                component: "alu",
                category: "ALU stall",
                node: "backend.core.ports",
                events: "none",
                on_path: Some("multiply"),
            },
        ),
        (
            "divisions",
            "li a2, -1\n li a3, 3",
            "div a5, a2, a3\n add a2, a5, a2",
            CauseNames {
                component: "divider",
                category: "ALU stall",
                node: "backend.core.divider",
                events: "none",
                on_path: Some("divide"),
            },
        ),
        (
            "stores",
            "li a1, 0x82000000",
            "sd a2, 0(a1)\n addi a1, a1, 64",
            // The published category of a drained ROB, whatever drained it.
            CauseNames {
                component: "front-end-stores",
                category: "Front-end",
                node: "backend.memory.store",
                events: "DR-SQ",
                on_path: Some("store_queue"),
            },
        ),
        (
            "device",
            "li a1, 0x0200bff8",
            "ld a2, 0(a1)",
            CauseNames {
                component: "device",
                category: "Load stall",
                node: "backend.memory.device",
                events: "none",
                on_path: Some("device"),
            },
        ),
    ] {
        check(name, &report_of_loop(name, setup, body, 1500, ""), "measured", &names, 0.5);
    }
}

#[test]
fn what_the_pipeline_does_anew() {
    for (name, setup, body, names) in [
        (
            "mispredictions",
            // A shift register with linear feedback.
            "li a2, 88172645463325252\n li a3, 0xd800000000000000",
            "andi t1, a2, 1\n neg t1, t1\n and t2, t1, a3\n srli a2, a2, 1\n xor a2, a2, t2\n beqz t1, 5f\n addi a4, a4, 1\n5:",
            CauseNames {
                component: "mispredict",
                category: "Mispredict",
                node: "bad_speculation.mispredicts",
                events: "FL-MB",
                on_path: Some("mispredict"),
            },
        ),
        (
            "fences",
            "",
            "fence rw, rw",
            CauseNames {
                component: "flush",
                category: "Misc. flush",
                node: "bad_speculation.clears",
                events: "FL-EX",
                on_path: Some("flush"),
            },
        ),
        (
            "overtaking-loads",
            "li a1, 0x81000000\n li a4, 97\n li a6, 1",
            "div a5, a4, a6\n sub a5, a5, a5\n add a5, a5, a1\n sd a2, 0(a5)\n ld a2, 0(a1)\n addi a2, a2, 1",
            CauseNames {
                component: "memory-ordering",
                category: "Misc. flush",
                node: "bad_speculation.clears",
                events: "FL-MO",
                on_path: Some("memory_ordering"),
            },
        ),
    ] {
        // Instructions commit meanwhile, and the branches wait for their operands.
        check(name, &report_of_loop(name, setup, body, 1500, ""), "measured", &names, 0.25);
    }
}

#[test]
fn misses_of_tlbs_and_of_the_instruction_cache() {
    // A list whose nodes are in 1,024 pages and 128 lines.
    let list = "
        li t3, 0
    5:  addi t5, t3, 67
        andi t5, t5, 1023
        slli a2, t5, 12
        li t6, 0x40000000
        add a2, a2, t6
        andi t6, t5, 511
        slli t6, t6, 3
        add a2, a2, t6
        slli t6, t3, 3
        li t0, 0x84000000
        add t6, t6, t0
        sd a2, 0(t6)
        addi t3, t3, 1
        li t0, 1024
        bne t3, t0, 5b";
    let to_list =
        format!("{WRITE_PAGE_TABLES}\n{list}\n{ENTER_SUPERVISOR_MODE}\n li a3, 0x40000000");

    // A jump in each of 1,000 pages to the next one, in 125 lines; the last one returns.
    let jumps = "
        li t3, 999
        li t6, 0x84000000
        la t0, 6f
        lw t1, 0(t0)
        lw t2, 4(t0)
    5:  sw t1, 0(t6)
        addi t6, t6, 8
        addi t3, t3, -1
        bnez t3, 5b
        sw t2, 0(t6)
        fence.i
        j 7f
        .align 2
    6:  j .+4104
        ret
    7:";
    let to_jumps =
        format!("{WRITE_PAGE_TABLES}\n{jumps}\n{ENTER_SUPERVISOR_MODE}\n li s1, 0x40000000");

    // 1,024 lines of code, twice what the cache holds, in an order that no prefetch of the next line helps.
    let block = |n: u32| {
        let next = (n + 67) % 1024;
        let go = if next == 0 { "ret".into() } else { format!("j block{next}") };
        format!(".align 6\nblock{n}: addi a2, a2, 1\n {go}\n")
    };
    let blocks: String = (0..1024).map(block).collect();
    let code = format!(
        ".align 6\n.type scattered, @function\nscattered:\n{blocks}.size scattered, .-scattered\n"
    );

    for (name, setup, body, rounds, functions, function, names) in [
        (
            "data-tlb",
            to_list.as_str(),
            "ld a3, 0(a3)",
            1000,
            "",
            "measured",
            CauseNames {
                component: "load-tlb",
                category: "Load stall",
                // Top-down has no node for the data TLB: its misses are a part of L1 Bound, as in Intel's tree.
                node: "backend.memory.l1",
                events: "ST-TLB",
                on_path: Some("data_tlb"),
            },
        ),
        (
            "code-tlb",
            to_jumps.as_str(),
            "jalr s1",
            20,
            "",
            // The jumps were written at run time.
            "[firmware]",
            CauseNames {
                component: "front-end-tlb",
                category: "Front-end",
                node: "frontend.latency.itlb",
                events: "DR-TLB",
                on_path: None,
            },
        ),
        (
            "code-cache",
            "",
            "call block0",
            10,
            code.as_str(),
            "scattered",
            CauseNames {
                component: "front-end-cache",
                category: "Front-end",
                node: "frontend.latency.icache",
                events: "DR-L1",
                on_path: None,
            },
        ),
    ] {
        let report = report_of_loop(name, setup, body, rounds, functions);
        check(name, &report, function, &names, 0.5);
    }
}
