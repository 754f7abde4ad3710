//! Programs whose time has one cause: all that the report has on causes names the same one.

use std::path::Path;

use serde_json::Value;

use crate::common::{assemble, json, scratch, succeed, tipsim};

/// What the sections of a report call one cause.
struct Names {
    /// The component of the cycle stacks that is the verdict's cause at the place.
    component: &'static str,
    /// The published category of the cycle stacks, by its number.
    category: usize,
    /// Node of the top-down tree.
    node: &'static str,
    /// Events of the instructions (TEA); `none`: they incur none.
    events: &'static str,
    /// Cause on the critical path of the loop; `None`: no loop.
    on_path: Option<&'static str>,
}

const ALU: usize = 1;
const LOAD: usize = 2;
const FRONT_END: usize = 4;
const MISPREDICT: usize = 5;
const FLUSH: usize = 6;

/// Adds the loaded datum, which is 0, and a stride to the offset of the next load.
const CHASE: &str =
    "add a2, s3, a4\n ld a3, 0(a2)\n add a4, a4, a3\n add a4, a4, s1\n and a4, a4, s2";

/// Page tables: 1,024 pages from 0x4000_0000 on, of which all even and all odd halves of 512 are one physical page each; memory itself is at its place.
const PAGES: &str = "
    li t0, -1
    csrw pmpaddr0, t0
    li t0, 0x1f
    csrw pmpcfg0, t0
    li t0, 0x80800000
    li t1, 0x200000cf           # a gigabyte, at its place
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

/// Turns translation on, in supervisor mode.
const TRANSLATE: &str = "
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

/// Executes `body` eight times in each of `rounds` rounds of a loop of a function, and returns the report.
fn report(name: &str, setup: &str, body: &str, rounds: u32, functions: &str) -> Value {
    let dir = scratch(&format!("causes-{name}"));
    let bodies = format!("{body}\n").repeat(8);
    let source = format!(
        ".option norelax
.globl _start
.type _start, @function
_start: li t0, 0x6000
{setup}
    li s0, {rounds}
    call kernel
    li a0, 1
    la t0, tohost
1:  sd a0, 0(t0)
    j 1b
.size _start, .-_start
.globl kernel
.type kernel, @function
.align 6
kernel: mv s4, ra
2:
{bodies}
    addi s0, s0, -1
    bnez s0, 2b
    mv ra, s4
    ret
.size kernel, .-kernel
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
    json(&Path::new(&dir).join("out/report.json"))
}

/// Returns the entry of a list that is of a function.
fn of<'a>(list: &'a Value, field: &str, function: &str) -> Option<&'a Value> {
    list.as_array()?.iter().find(|entry| entry[field] == function)
}

/// Checks that each section names the cause, for at least a share of the time of a function.
#[track_caller]
fn check(name: &str, report: &Value, function: &str, names: &Names, least: f64) {
    let most = |what: &str, share: &Value, of: f64| {
        let share = share.as_f64().unwrap_or(0.0);
        assert!(share > least * of, "{name}: {what}: {share}, of {of}");
    };
    let row = of(&report["functions"], "name", function).unwrap_or_else(|| panic!("{name}"));
    let whole = row["share"].as_f64().unwrap();
    assert!(whole > 0.3, "{name}: {whole}");
    let place = of(&report["verdict"][0]["places"], "function", function);
    let cause = &place.unwrap_or_else(|| panic!("{name}: no place"))["cause"];
    assert_eq!(cause["component"], names.component, "{name}: {cause}");
    most("verdict", &cause["share"], whole);
    most("cycle stack", &row["stack"][names.category], 1.0);
    let slots = of(&report["top_down"]["functions"], "name", function).unwrap();
    most(names.node, &slots["shares"][names.node], 1.0);
    let events = &report["tea"]["processes"][0]["stack"];
    most(names.events, &events[names.events], whole);
    let Some(on_path) = names.on_path else { return };
    let loops = report["loops"]["loops"].as_array().unwrap_or_else(|| panic!("{name}: no loops"));
    let found = loops.iter().find(|found| found["label"] == function || loops.len() == 1);
    let found = found.unwrap_or_else(|| panic!("{name}: {loops:?}"));
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
        let report = report(name, &setup, CHASE, 1500, "");
        let names = Names { component, category: LOAD, node, events, on_path: Some(on_path) };
        check(name, &report, "kernel", &names, 0.5);
    }
    let names = Names {
        component: "load-l1",
        category: LOAD,
        node: "backend.memory.l1",
        events: "none",
        on_path: Some("load_l1"),
    };
    let setup = "li a3, 0x81000000\n sd a3, 0(a3)\n fence";
    check("l1", &report("l1", setup, "ld a3, 0(a3)", 1500, ""), "kernel", &names, 0.5);
}

#[test]
fn waits_of_the_back_end() {
    for (name, setup, body, names) in [
        (
            "multiplications",
            "li a2, 3",
            "mul a2, a2, a2",
            Names {
                component: "alu",
                category: ALU,
                node: "backend.core.ports",
                events: "none",
                on_path: Some("multiply"),
            },
        ),
        (
            "divisions",
            "li a2, -1\n li a3, 3",
            "div a5, a2, a3\n add a2, a5, a2",
            Names {
                component: "divider",
                category: ALU,
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
            Names {
                component: "front-end-stores",
                category: FRONT_END,
                node: "backend.memory.store",
                events: "DR-SQ",
                on_path: Some("store_queue"),
            },
        ),
        (
            "device",
            "li a1, 0x0200bff8",
            "ld a2, 0(a1)",
            Names {
                component: "device",
                category: LOAD,
                node: "backend.memory.device",
                events: "none",
                on_path: Some("device"),
            },
        ),
    ] {
        check(name, &report(name, setup, body, 1500, ""), "kernel", &names, 0.5);
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
            Names {
                component: "mispredict",
                category: MISPREDICT,
                node: "bad_speculation.mispredicts",
                events: "FL-MB",
                on_path: Some("mispredict"),
            },
        ),
        (
            "fences",
            "",
            "fence rw, rw",
            Names {
                component: "flush",
                category: FLUSH,
                node: "bad_speculation.clears",
                events: "FL-EX",
                on_path: Some("flush"),
            },
        ),
        (
            "overtaking-loads",
            "li a1, 0x81000000\n li a4, 97\n li a6, 1",
            "div a5, a4, a6\n sub a5, a5, a5\n add a5, a5, a1\n sd a2, 0(a5)\n ld a2, 0(a1)\n addi a2, a2, 1",
            Names {
                component: "memory-ordering",
                category: FLUSH,
                node: "bad_speculation.clears",
                events: "FL-MO",
                on_path: Some("memory_ordering"),
            },
        ),
    ] {
        // Instructions commit meanwhile, and the branches wait for their operands.
        check(name, &report(name, setup, body, 1500, ""), "kernel", &names, 0.25);
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
    let setup = format!("{PAGES}\n{list}\n{TRANSLATE}\n li a3, 0x40000000");
    let names = Names {
        component: "load-tlb",
        category: LOAD,
        // As in Intel's tree, translation is a part of what is bound by the L1.
        node: "backend.memory.l1",
        events: "ST-TLB",
        on_path: Some("data_tlb"),
    };
    check("data-tlb", &report("data-tlb", &setup, "ld a3, 0(a3)", 1000, ""), "kernel", &names, 0.5);

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
    let setup = format!("{PAGES}\n{jumps}\n{TRANSLATE}\n li s1, 0x40000000");
    let names = Names {
        component: "front-end-tlb",
        category: FRONT_END,
        node: "frontend.latency.itlb",
        events: "DR-TLB",
        on_path: None,
    };
    check("code-tlb", &report("code-tlb", &setup, "jalr s1", 20, ""), "[firmware]", &names, 0.5);

    // 1,024 lines of code, twice what the cache holds, in an order that no prefetch of the next line helps.
    let block = |n: u32| {
        let next = (n + 67) % 1024;
        let go = if next == 0 { "ret".into() } else { format!("j block{next}") };
        format!(".align 6\nblock{n}: addi a2, a2, 1\n {go}\n")
    };
    let blocks: String = (0..1024).map(block).collect();
    let code = format!(".align 6\n.type walk, @function\nwalk:\n{blocks}.size walk, .-walk\n");
    let names = Names {
        component: "front-end-cache",
        category: FRONT_END,
        node: "frontend.latency.icache",
        events: "DR-L1",
        on_path: None,
    };
    check("code-cache", &report("code-cache", "", "call block0", 10, &code), "walk", &names, 0.5);
}
