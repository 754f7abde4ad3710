//! What programmable counters count, in a program of which it is known: every event of the instruction table, and sums.

mod common;

use std::collections::HashMap;
use std::path::Path;

use common::{assemble, htif, scratch, stderr, tipsim};
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
    (
        "lla t4, direct\n jalr t4",
        &["INST.ALU", "INST.ALU", "INST.JALR", "BR.IND.CALL"],
    ),
    ("", &["INST.JALR", "BR.RET", "INST.JALR", "BR.RET"]),
    (
        "lla t4, 1f\n jr t4\n1:",
        &["INST.ALU", "INST.ALU", "INST.JALR", "BR.IND"],
    ),
    (
        "beq zero, zero, 1f\n nop\n1:",
        &["INST.BRANCH", "BR.COND.TAKEN"],
    ),
    ("bne zero, zero, 1f\n1:", &["INST.BRANCH"]),
    ("ecall", &["INST.EXCEPTION"]),
    // Its handler.
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
    (
        "addi s0, s0, -1\n bnez s0, 3b",
        &["INST.ALU", "INST.BRANCH", "BR.COND.TAKEN"],
    ),
];

/// Counters 3 to 31.
const COUNTERS: usize = 29;
const TURNS: [u64; 2] = [100, 300];

/// What the counters show with these selectors, for so many turns of the loop.
fn counted(dir: &Path, selectors: &[u32], turns: u64) -> Vec<u64> {
    let set: String = (3..)
        .zip(selectors)
        .map(|(n, selector)| {
            format!("li t0, {selector}\n csrw mhpmevent{n}, t0\n csrw mhpmcounter{n}, zero\n")
        })
        .collect();
    let read: String = { (3..).zip(selectors).zip(0..) }
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
    let out = exec
        .arg("--signature")
        .arg(&file)
        .arg(&elf)
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let text = std::fs::read_to_string(file).unwrap();
    let values = text
        .lines()
        .map(|line| u64::from_str_radix(line, 16).unwrap());
    values.take(selectors.len()).collect()
}

#[test]
fn events_are_counted_to_the_last_one() {
    let dir = scratch("counters");
    let mut expected: HashMap<&str, u64> = HashMap::new();
    for event in TURN.iter().flat_map(|(_, events)| *events) {
        *expected.entry(event).or_default() += 1;
    }
    let retired = { expected.iter() }
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
            let known = expected.contains_key(row.name) || row.topic == "instruction";
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
