//! Kernels whose harts contend for lines all the time: cycles and transfers beside those of an exact order, in which each instruction has its turn.

use std::path::Path;

use serde_json::Value;

use super::program;
use crate::common::{assemble, scratch, stderr, tipsim};

/// Passes of each hart through a kernel.
const PASSES: u64 = 300;
/// Most that cycles and transfers may differ, in percent.
const BOUND: f64 = 5.0;

/// A kernel: its name, number of harts, and body. The body finds the hart's number in s0 and a page of zeros at s1; a3 counts passes down, and a2 is 1.
struct Kernel {
    name: &'static str,
    harts: usize,
    /// What is done before the first pass.
    first: &'static str,
    pass: &'static str,
}

/// Two words under a lock are increased, on the lock's own line and on another.
const CRITICAL: &str = "ld t2, 8(s1)\n addi t2, t2, 1\n sd t2, 8(s1)\n ld t2, 128(s1)\n addi t2, t2, 1\n sd t2, 128(s1)\n";

/// Work on registers of a hart's own, some 40 cycles and up to 90 more by pass.
const OWN_WORK: &str = "andi t5, a3, 7\n slli t5, t5, 2\n addi t5, t5, 10\n 7: mul t6, t5, t5\n addi t5, t5, -1\n bnez t5, 7b\n";

const KERNELS: [Kernel; 12] = [
    Kernel {
        name: "test-and-set lock",
        harts: 4,
        first: "",
        pass: "1: amoswap.d.aq t0, a2, (s1)\n bnez t0, 1b\n CRITICAL amoswap.d.rl zero, zero, (s1)\n OWN_WORK",
    },
    Kernel {
        name: "test-and-test-and-set lock",
        harts: 4,
        first: "",
        pass: "1: ld t0, (s1)\n bnez t0, 1b\n lr.d.aq t0, (s1)\n bnez t0, 1b\n sc.d t0, a2, (s1)\n bnez t0, 1b\n CRITICAL \
               fence rw, w\n sd zero, (s1)\n OWN_WORK",
    },
    Kernel {
        name: "ticket lock",
        harts: 4,
        first: "addi a4, s1, 256\n",
        pass: "amoadd.d.aq t0, a2, (a4)\n 1: ld t1, (s1)\n bne t0, t1, 1b\n fence r, rw\n CRITICAL addi t1, t1, 1\n fence rw, w\n sd t1, (s1)\n",
    },
    Kernel {
        name: "MCS lock",
        harts: 4,
        // Each hart's node: the next node, and whether the hart has to wait.
        first: "slli a4, s0, 7\n add a4, a4, s1\n addi a4, a4, 1024\n addi a5, s1, 512\n",
        pass: "sd zero, (a4)\n sd a2, 8(a4)\n amoswap.d.aqrl t0, a4, (a5)\n beqz t0, 2f\n sd a4, (t0)\n 1: ld t1, 8(a4)\n bnez t1, 1b\n fence r, rw\n \
               2: CRITICAL fence rw, w\n ld t0, (a4)\n bnez t0, 5f\n \
               3: lr.d t1, (a5)\n bne t1, a4, 4f\n sc.d t2, zero, (a5)\n bnez t2, 3b\n j 6f\n \
               4: ld t0, (a4)\n beqz t0, 4b\n 5: sd zero, 8(t0)\n 6: OWN_WORK",
    },
    Kernel {
        name: "atomic counter",
        harts: 4,
        first: "",
        pass: "amoadd.d t0, a2, (s1)\n OWN_WORK",
    },
    Kernel {
        name: "counter by LR and SC",
        harts: 4,
        first: "",
        pass: "1: lr.d t0, (s1)\n addi t0, t0, 1\n sc.d t1, t0, (s1)\n bnez t1, 1b\n OWN_WORK",
    },
    Kernel {
        name: "false sharing",
        harts: 4,
        first: "slli a4, s0, 3\n add a4, a4, s1\n",
        pass: "ld t0, (a4)\n addi t0, t0, 1\n sd t0, (a4)\n OWN_WORK",
    },
    Kernel {
        name: "producers and consumers",
        harts: 4,
        // Pairs of harts with rings of eight entries: the count of what was put, of what was taken, and the entries have lines of their own.
        first: "srli a4, s0, 1\n slli a4, a4, 11\n add a4, a4, s1\n andi a5, s0, 1\n li a6, 0\n",
        pass: "bnez a5, 3f\n 1: ld t0, 128(a4)\n addi t0, t0, 8\n bge a6, t0, 1b\n andi t1, a6, 7\n slli t1, t1, 3\n add t1, t1, a4\n sd a3, 256(t1)\n \
               addi a6, a6, 1\n fence rw, w\n sd a6, (a4)\n j 4f\n \
               3: ld t0, (a4)\n bge a6, t0, 3b\n fence r, rw\n andi t1, a6, 7\n slli t1, t1, 3\n add t1, t1, a4\n ld t2, 256(t1)\n add a7, a7, t2\n \
               addi a6, a6, 1\n fence r, w\n sd a6, 128(a4)\n 4: OWN_WORK",
    },
    Kernel {
        name: "barrier",
        harts: 4,
        // The harts' shares of the work differ. The last to come counts the barrier up.
        first: "addi a4, s1, 256\n li a5, 0\n li a6, 4\n",
        pass: "slli t5, s0, 4\n addi t5, t5, 8\n 7: mul t6, t5, t5\n addi t5, t5, -1\n bnez t5, 7b\n \
               addi a5, a5, 1\n mul t0, a5, a6\n amoadd.d.aqrl t1, a2, (s1)\n addi t1, t1, 1\n bne t0, t1, 1f\n sd a5, (a4)\n \
               1: ld t1, (a4)\n blt t1, a5, 1b\n",
    },
    Kernel {
        name: "sequence lock",
        harts: 4,
        // The first hart writes, the others read, and again if a write came between.
        first: "li a4, 0\n",
        pass: "bnez s0, 2f\n addi a4, a4, 1\n sd a4, (s1)\n fence w, w\n sd a4, 128(s1)\n sd a4, 192(s1)\n fence w, w\n addi a4, a4, 1\n sd a4, (s1)\n j 3f\n \
               2: ld t0, (s1)\n andi t1, t0, 1\n bnez t1, 2b\n fence r, r\n ld t1, 128(s1)\n ld t2, 192(s1)\n fence r, r\n ld t3, (s1)\n bne t0, t3, 2b\n \
               3: OWN_WORK",
    },
    Kernel {
        name: "queue of tasks",
        harts: 4,
        // A task's length depends on its number.
        first: "",
        pass: "amoadd.d t0, a2, (s1)\n andi t5, t0, 31\n slli t5, t5, 2\n addi t5, t5, 4\n 7: mul t6, t5, t5\n addi t5, t5, -1\n bnez t5, 7b\n \
               andi t1, t0, 127\n slli t1, t1, 3\n add t1, t1, s1\n sd t6, 1024(t1)\n",
    },
    Kernel {
        name: "Peterson's lock",
        harts: 2,
        first: "slli a4, s0, 6\n add a4, a4, s1\n addi a4, a4, 256\n xori a5, s0, 1\n slli a6, a5, 6\n add a6, a6, s1\n addi a6, a6, 256\n",
        pass: "sd a2, (a4)\n sd a5, (s1)\n fence\n 1: ld t0, (a6)\n beqz t0, 2f\n ld t1, (s1)\n beq t1, a5, 1b\n \
               2: fence\n CRITICAL fence\n sd zero, (a4)\n OWN_WORK",
    },
];

/// What a run of a kernel takes: cycles until the last hart is done, and lines that caches of other harts gave.
fn measure(dir: &Path, kernel: &Kernel, order: &str) -> (f64, f64) {
    let pass = kernel.pass.replace("CRITICAL", CRITICAL).replace("OWN_WORK", OWN_WORK);
    let body = format!(
        "{}li a2, 1\n li a3, {PASSES}\n 9: {pass}\n addi a3, a3, -1\n bnez a3, 9b\n",
        kernel.first
    );
    let elf = assemble(dir, "program", &program(kernel.harts, &body));
    let mut command = tipsim();
    command.args(["exec", "--mode", "timing", "--stats", "--hart-order", order]);
    command.args(["--max-insts", "50000000", "--harts", &kernel.harts.to_string()]);
    let out = command.arg(&elf).output().unwrap();
    let text = stderr(&out);
    assert_eq!(out.status.code(), Some(0), "{}, {order}: {text}", kernel.name);
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let stats: Vec<_> = lines.filter(|line| line.is_object()).collect();
    assert_eq!(stats.len(), kernel.harts, "{text}");
    let of = |key| stats.iter().map(move |stats| stats[key].as_f64().unwrap());
    (of("cycles").fold(0.0, f64::max), of("transfers").sum())
}

#[test]
fn contended_lines_cost_what_they_cost_in_exact_order() {
    let dir = scratch("harts-contended");
    let mut wrong = Vec::new();
    let head = ["cycles", "exact", "", "transfers", "exact", ""];
    println!("{:28}{}", "", head.map(|word| format!("{word:>10}")).concat());
    for kernel in &KERNELS {
        let [near, exact] = ["near", "each-instruction"].map(|order| measure(&dir, kernel, order));
        let off = |near: f64, exact: f64| (near / exact - 1.0) * 100.0;
        let (cycles, transfers) = (off(near.0, exact.0), off(near.1, exact.1));
        let line = format!(
            "{:28}{:10}{:10}{cycles:+9.1}%{:10}{:10}{transfers:+9.1}%",
            kernel.name, near.0, exact.0, near.1, exact.1
        );
        println!("{line}");
        if cycles.abs() > BOUND || transfers.abs() > BOUND {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "more than {BOUND} % off:\n{}", wrong.join("\n"));
}
