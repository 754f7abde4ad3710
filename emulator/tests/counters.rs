//! What programmable counters count, in a program of which it is known: every event of the instruction table, and sums.

mod matrix;

use std::collections::HashMap;
use std::path::Path;

use crate::common::{assemble, htif, scratch, stderr, tipsim};
use isa::PerfEvent;

/// A turn of the program's loop: code, and what each piece of it is counted as beside `INST.RET`.
const TURN: &[(&str, &[&str])] = &[
    ("add t1, t2, t3", &["INST.ALU"]),
    ("mul t1, t2, t3", &["INST.MUL"]),
    ("mulh t1, t2, t3", &["INST.MUL"]),
    ("div t1, t2, t3", &["INST.DIV"]),
    ("ld t1, 0(s1)", &["INST.LOAD"]),
    ("lb t1, 1(s1)", &["INST.LOAD"]),
    ("sd t1, 8(s1)", &["INST.STORE", "MEM.L1D.WR"]),
    ("fld ft1, 0(s1)", &["INST.FP.LOAD"]),
    ("fsd ft1, 16(s1)", &["INST.FP.STORE", "MEM.L1D.WR"]),
    ("amoadd.d t1, t2, (s1)", &["INST.AMO", "FLUSH.COMMIT"]),
    ("lr.d t1, (s1)", &["INST.LR", "FLUSH.COMMIT"]),
    ("sc.d t1, t2, (s1)", &["INST.SC", "FLUSH.COMMIT"]),
    ("fadd.d ft2, ft2, ft1", &["INST.FP.ARITH"]),
    ("fdiv.d ft3, ft2, ft1", &["INST.FP.DIVSQRT"]),
    ("fsqrt.d ft3, ft1", &["INST.FP.DIVSQRT"]),
    ("fcvt.l.d t1, ft1", &["INST.FP.TOINT"]),
    ("fcvt.d.l ft4, t2", &["INST.FP.FROMINT"]),
    ("csrr t1, mscratch", &["INST.CSR", "FLUSH.COMMIT"]),
    ("fence", &["INST.FENCE", "FLUSH.COMMIT"]),
    ("fence.i", &["INST.FENCEI", "FLUSH.COMMIT"]),
    ("sfence.vma", &["INST.SFENCE", "FLUSH.COMMIT"]),
    ("j 1f\n1:", &["INST.JAL", "BR.JUMP"]),
    ("call direct", &["INST.JAL", "BR.CALL"]),
    // The two returns.
    ("lla t4, direct\n jalr t4", &["INST.ALU", "INST.ALU", "INST.JALR", "BR.IND.CALL"]),
    ("", &["INST.JALR", "BR.RET", "INST.JALR", "BR.RET"]),
    ("lla t4, 1f\n jr t4\n1:", &["INST.ALU", "INST.ALU", "INST.JALR", "BR.IND"]),
    ("beq zero, zero, 1f\n nop\n1:", &["INST.BRANCH", "BR.COND.TAKEN"]),
    ("bne zero, zero, 1f\n1:", &["INST.BRANCH"]),
    ("ecall", &["INST.EXCEPTION"]),
    // The handler of the environment call.
    (
        "",
        &[
            "INST.CSR",
            "FLUSH.COMMIT",
            "INST.ALU",
            "INST.CSR",
            "FLUSH.COMMIT",
            "INST.XRET",
            "FLUSH.COMMIT",
        ],
    ),
    // The loop's end.
    ("addi s0, s0, -1\n bnez s0, 3b", &["INST.ALU", "INST.BRANCH", "BR.COND.TAKEN"]),
];

/// Counters 3 to 31.
const COUNTERS: usize = 29;
const TURNS: [u64; 2] = [100, 300];

/// Returns what the counters show with these selectors, for so many turns of the loop.
fn counted(dir: &Path, selectors: &[u32], turns: u64) -> Vec<u64> {
    let set: String = (3..)
        .zip(selectors)
        .map(|(n, selector)| {
            format!("li t0, {selector}\n csrw mhpmevent{n}, t0\n csrw mhpmcounter{n}, zero\n")
        })
        .collect();
    let read: String = (3..)
        .zip(selectors)
        .zip(0..)
        .map(|((n, _), at)| format!("csrr t0, mhpmcounter{n}\n sd t0, {}(t1)\n", 8 * at))
        .collect();
    let turn: String = TURN.iter().map(|(code, _)| format!(" {code}\n")).collect();
    let body = format!(
        "li t0, -1\n csrw mcountinhibit, t0\n la t0, handler\n csrw mtvec, t0\n li t0, 0x6000\n csrs mstatus, t0\n\
         {set}la s1, begin_signature\n li t2, 7\n li t3, 3\n li s0, {turns}\n csrw mcountinhibit, zero\n\
         3:\n{turn} li t0, -1\n csrw mcountinhibit, t0\n la t1, begin_signature\n{read} li a0, 0\n j 5f\n\
         direct: ret\n .align 2\nhandler: csrr t0, mepc\n addi t0, t0, 4\n csrw mepc, t0\n mret\n5:"
    );
    let source = htif(&format!(".option norvc\n{body}"))
        .replace("end_signature:", ".zero 256\nend_signature:");
    let elf = assemble(dir, "counters", &source);
    let file = dir.join("counters.sig");
    let mut exec = tipsim();
    exec.args(["exec", "--mode", "timing", "--signature-granularity", "8"]);
    let out = exec.arg("--signature").arg(&file).arg(&elf).output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let text = std::fs::read_to_string(file).unwrap();
    let values = text.lines().map(|line| u64::from_str_radix(line, 16).unwrap());
    values.take(selectors.len()).collect()
}

#[test]
fn events_are_counted_to_the_last_one() {
    let dir = scratch("counters");
    let mut expected: HashMap<&str, u64> = HashMap::new();
    for event in TURN.iter().flat_map(|(_, events)| *events) {
        *expected.entry(event).or_default() += 1;
    }
    let retired = expected
        .iter()
        .filter(|(name, _)| name.starts_with("INST.") && **name != "INST.EXCEPTION")
        .map(|(_, count)| count)
        .sum();
    expected.insert("INST.RET", retired);
    let control = expected["INST.BRANCH"] + expected["INST.JAL"] + expected["INST.JALR"];
    expected.insert("INST.BRJMP.SPEC", control);
    let taken = control - expected["INST.BRANCH"] + expected["BR.COND.TAKEN"];
    expected.insert("INST.BRJMP.TK.RET", taken);

    for events in PerfEvent::ALL.chunks(COUNTERS) {
        let selectors: Vec<u32> = events.iter().map(|event| event.selector()).collect();
        let [few, many] = TURNS.map(|turns| counted(&dir, &selectors, turns));
        for ((event, few), many) in events.iter().zip(few).zip(many) {
            let row = event.row();
            // What is not known of the program is left out: caches, predictors, cycles.
            let known = expected.contains_key(row.name) || row.set == 32;
            if known {
                let each = expected.get(row.name).copied().unwrap_or(0);
                assert_eq!(many - few, each * (TURNS[1] - TURNS[0]), "{}", row.name);
            }
        }
    }
}

#[test]
fn a_mask_counts_the_sum_of_its_events() {
    let dir = scratch("counter-sums");
    let [cycles, committing, stalled, flushed, drained, idle] = [
        PerfEvent::Cycles,
        PerfEvent::CyclesCommitting,
        PerfEvent::CyclesStalled,
        PerfEvent::CyclesFlushed,
        PerfEvent::CyclesDrained,
        PerfEvent::CyclesIdle,
    ]
    .map(PerfEvent::selector);
    let all = committing | stalled | flushed | drained | idle;
    let selectors = [cycles, all, committing, stalled, flushed, drained, idle];
    let counts = counted(&dir, &selectors, TURNS[0]);
    assert_eq!(counts[1], counts[2..].iter().sum::<u64>());
    // The rest are cycles in which traps are taken, and the last ones, which have not ended.
    let rest = counts[0] - counts[1];
    assert!((TURNS[0]..TURNS[0] + 16).contains(&rest), "{counts:?}");
}

/// Reads of all counters, one after the other, of which none misses.
fn reads(selectors: &[u32], at: usize) -> String {
    let read = (3..).zip(selectors).zip(0..);
    read.map(|((n, _), place)| format!("csrr t0, mhpmcounter{n}\n sd t0, {}(t1)\n", at + 8 * place))
        .collect()
}

/// Instructions that make loads and stores those of supervisor code again after a trap.
const TRANSLATE_AGAIN: &str = "li t0, 0x800\n csrs mstatus, t0\n ";

/// Whatever else the core counts: jumps of every kind, fences, operations, loads of a line that is not there behind which the ROB fills, a
/// load that runs ahead of a store to its bytes, one that waits for a store's data, one of which a store has some of the bytes, exceptions.
const MIXED_OPERATIONS: &str = "
 call direct
 lla t4, direct
 jalr t4
 lla t4, 2f
 jr t4
2: j 2f
2: mul t5, s2, s0
 fence
 fence.i
 la t4, heap
 lr.d t5, (t4)
 sc.d t5, s0, (t4)
 sc.d t5, s0, (t4)
 fld ft2, 0(t4)
 fsd ft2, 8(t4)
 fadd.d ft2, ft2, ft2
 fcvt.l.d t5, ft2
 div t2, s2, s0
 sub t2, t2, t2
 add t2, t2, t4
 sd s2, 0(t2)
 ld t5, 0(t4)
 div t2, s2, s0
 sd t2, 16(t4)
 ld t5, 16(t4)
 sb t2, 24(t4)
 ld t5, 24(t4)
 slli t2, s0, 12
 li t3, 0x1f000
 and t2, t2, t3
 add t4, t4, t2
 ld t5, 64(t4)
 div t6, t5, s0
 .rept 150
 addi t6, t6, 1
 .endr
 .rept 40
 sd s0, 8(t4)
 ld t3, 16(t4)
 .endr
 .word 0
 after_trap
 ebreak
 after_trap
 li t2, 0x700000000
 ld t5, 0(t2)
 after_trap
 sd t5, 0(t2)
 after_trap
 andi t5, s0, 15
 bnez t5, 2f
 sfence.vma
2:
";

/// A program with cache misses, TLB misses, walks and all else, in which the counters are read before and after each mark of the region: what
/// they show at each of the four places, and what the host counted in the region.
fn beside_the_host(
    dir: &Path,
    selectors: &[u32],
    harts: &str,
) -> ([Vec<u64>; 4], HashMap<String, u64>) {
    let set: String = (3..)
        .zip(selectors)
        .map(|(n, selector)| format!("li t0, {selector}\n csrw mhpmevent{n}, t0\n"))
        .collect();
    let all = |at| reads(selectors, at);
    // Supervisor code that maps a gigabyte with 4 KiB pages of one table; loads and stores all over it, branches by a
    // generator of random numbers, divisions, system calls, an atomic, a forwarded load.
    let body = format!(
        "bnez a0, 6f\n la t0, handler\n csrw mtvec, t0\n li t0, 0x6000\n csrs mstatus, t0\n {set}\
         la s1, tables\n la t0, begin_signature\n srli t0, t0, 12\n slli t0, t0, 10\n ori t0, t0, 0xcf\n li t1, 512\n mv t2, s1\n\
         li t3, 4096\n add t2, t2, t3\n\
         9: sd t0, 0(t2)\n addi t2, t2, 8\n addi t1, t1, -1\n bnez t1, 9b\n\
         lla t0, tables+4096\n srli t0, t0, 12\n slli t0, t0, 10\n ori t0, t0, 1\n li t1, 512\n lla t2, tables+8192\n\
         9: sd t0, 0(t2)\n addi t2, t2, 8\n addi t1, t1, -1\n bnez t1, 9b\n\
         lla t0, tables+8192\n srli t0, t0, 12\n slli t0, t0, 10\n ori t0, t0, 1\n sd t0, 0(s1)\n\
         li t0, 0x200000cf\n sd t0, 16(s1)\n\
         srli t0, s1, 12\n li t1, 8\n slli t1, t1, 60\n or t0, t0, t1\n csrw satp, t0\n sfence.vma\n\
         la t1, begin_signature\n li s0, 300\n li s2, 88172645463325252\n\
         {first} addi x0, x1, 0\n {second}\
         li t0, 0x1000\n csrc mstatus, t0\n li t0, 0x20800\n csrs mstatus, t0\n\
         3: slli t2, s2, 13\n xor s2, s2, t2\n srli t2, s2, 7\n xor s2, s2, t2\n slli t2, s2, 17\n xor s2, s2, t2\n\
         li t3, 0x3ffff000\n and t2, s2, t3\n srli t4, s2, 40\n andi t4, t4, 0xf8\n add t2, t2, t4\n\
         ld t5, 0(t2)\n andi t5, s2, 1\n beqz t5, 4f\n div t6, s2, s0\n4: srli t2, s2, 20\n li t3, 0x1fff8\n and t2, t2, t3\n\
         la t4, heap\n add t4, t4, t2\n sd s2, 0(t4)\n ld t5, 0(t4)\n lw t6, 4(t4)\n amoadd.d t5, s0, (t4)\n\
         fcvt.d.l ft0, s2\n fdiv.d ft1, ft0, ft0\n {more}ecall\n{again}addi s0, s0, -1\n bnez s0, 3b\n\
         li t0, 0x20000\n csrc mstatus, t0\n li t2, 0x200bff8\n ld t5, 0(t2)\n\
         {third} addi x0, x2, 0\n {fourth} li a0, 0\n j 5f\n\
         direct: ret\n 6: la t4, heap\n7: amoadd.d t5, t4, (t4)\n ld t5, 64(t4)\n j 7b\n\
         .align 2\nhandler: csrr t0, mepc\n addi t0, t0, 4\n csrw mepc, t0\n mret\n\
         .align 12\ntables: .zero 12288\nheap: .zero 262144\n5:",
        first = all(0),
        second = all(256),
        third = all(512),
        fourth = all(768),
        more = MIXED_OPERATIONS.replace("after_trap", TRANSLATE_AGAIN),
        again = TRANSLATE_AGAIN,
    );
    let source = htif(&format!(".option norvc\n{body}"))
        .replace("begin_signature:", ".align 12\nbegin_signature:")
        .replace("end_signature:", ".zero 4096\nend_signature:");
    let elf = assemble(dir, "beside", &source);
    let (file, counts) = (dir.join("beside.sig"), dir.join("beside.json"));
    let mut exec = tipsim();
    exec.args(["exec", "--mode", "timing", "--signature-granularity", "8"]);
    exec.args(["--harts", harts])
        .arg("--counters")
        .arg(&counts)
        .arg("--signature")
        .arg(&file)
        .arg(&elf);
    let out = exec.output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let text = std::fs::read_to_string(file).unwrap();
    let values: Vec<u64> =
        text.lines().map(|line| u64::from_str_radix(line, 16).unwrap()).collect();
    let shown = [0, 32, 64, 96].map(|at| values[at..at + selectors.len()].to_vec());
    let counts: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(counts).unwrap()).unwrap();
    assert_eq!(counts["region"], true);
    let host = counts["harts"][0].as_object().unwrap().iter();
    let host = host.map(|(name, count)| (name.clone(), count.as_u64().unwrap()));
    (shown, host.collect())
}

/// Compares, for every event, what the guest's counter shows of a region with the host's own count of it. Between a mark and
/// the reads beside it, the counter moves by what the reads themselves are; most events do not occur there, and their counts
/// are equal.
#[test]
fn the_guest_counts_what_the_host_counts() {
    let dir = scratch("counters-host");
    for harts in ["1", "2"] {
        all_events_beside_the_host(&dir, harts);
    }
}

fn all_events_beside_the_host(dir: &Path, harts: &str) {
    let (mut equal, mut occur) = (0, 0);
    for events in PerfEvent::ALL.chunks(COUNTERS) {
        let selectors: Vec<u32> = events.iter().map(|event| event.selector()).collect();
        let ([first, second, third, fourth], host) = beside_the_host(dir, &selectors, harts);
        for (n, event) in events.iter().enumerate() {
            let name = event.row().name;
            let host = host[name];
            let (least, most) = (third[n] - second[n], fourth[n] - first[n]);
            assert!(
                (least..=most).contains(&host),
                "{name}: {least} to {most} in the guest, {host}"
            );
            equal += u32::from(least == most);
            occur += u32::from(host != 0);
        }
    }
    println!(
        "{equal} of {} are the same on both sides of the marks, {occur} occur",
        PerfEvent::ALL.len()
    );
    assert!(equal > 150 && occur > 160, "{equal} {occur}");
}
