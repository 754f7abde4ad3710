//! Several harts: what they take from each other costs under the timing core what the preset says; and Linux on them.

mod contended;
mod linux;

use std::path::Path;

use crate::common::{assemble, assert_error, scratch, stderr, tipsim};

/// Passes through the measured loop.
const PASSES: u64 = 1000;

/// Every hart runs `body` at about the same time, with its number in s0, a page of zeros at s1, its own result at s2.
fn program(harts: usize, body: &str) -> String {
    format!(
        ".globl _start\n_start:\n csrr s0, mhartid\n la s1, page\n slli t0, s0, 3\n la s2, begin_signature\n\
         add s2, s2, t0\n la t0, arrived\n li t1, 1\n amoadd.d zero, t1, (t0)\n li t2, {harts}\n\
         1: ld t3, (t0)\n blt t3, t2, 1b\n\
         {body}\n\
         la t0, done\n li t1, 1\n amoadd.d zero, t1, (t0)\n bnez s0, 9f\n li t2, {harts}\n\
         1: ld t3, (t0)\n blt t3, t2, 1b\n la t0, tohost\n li a0, 1\n sd a0, (t0)\n\
         9: wfi\n j 9b\n\
         .data\n.align 6\ntohost: .dword 0\n.globl tohost\n.align 6\narrived: .dword 0\n.align 6\ndone: .dword 0\n\
         .align 12\npage: .zero 8192\n.globl begin_signature\nbegin_signature: .zero 128\n\
         .globl end_signature\nend_signature:\n"
    )
}

/// A loop over `pass`, and its cycles in the hart's result; the first hundred passes warm up.
fn measured(pass: &str) -> String {
    format!(
        "li a3, {}\n li a4, {PASSES}\n li a2, 1\n\
         1: bne a3, a4, 2f\n csrr a5, mcycle\n\
         2: {pass}\n addi a3, a3, -1\n bnez a3, 1b\n csrr a6, mcycle\n sub a6, a6, a5\n sd a6, (s2)",
        PASSES + 100
    )
}

/// Returns what each hart of boom-4w, with these parameters, writes as its result.
fn results(dir: &Path, harts: usize, coherence: &str, body: &str) -> Vec<u64> {
    let elf = assemble(dir, "program", &program(harts, body));
    let (core, signature) = (dir.join("core.toml"), dir.join("signature"));
    std::fs::write(&core, format!("base = \"boom-4w\"\n[coherence]\n{coherence}\n")).unwrap();
    let out = tipsim()
        .args(["exec", "--mode", "timing", "--signature-granularity", "8"])
        .args(["--harts", &harts.to_string(), "--max-insts", "20000000"])
        .args(["--core".as_ref(), core.as_os_str(), "--signature".as_ref()])
        .args([&signature, &elf])
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let text = std::fs::read_to_string(signature).unwrap();
    let numbers = text.lines().map(|line| u64::from_str_radix(line, 16));
    numbers.take(harts).map(Result::unwrap).collect()
}

/// Atomics, or plain increments, each hart of its own word; the words are `stride` bytes apart.
fn counters(stride: u64, increment: &str) -> String {
    let place = format!("li t0, {stride}\n mul t0, t0, s0\n add a1, s1, t0\n");
    place + &measured(increment)
}

const ATOMIC: &str = "amoadd.d zero, a2, (a1)";
const PLAIN: &str = "ld a7, (a1)\n addi a7, a7, 1\n sd a7, (a1)";

#[test]
fn atomics_on_one_line_wait_for_its_transfer_each() {
    let dir = scratch("harts-atomics");
    for harts in [2, 4] {
        // False sharing, and the true one: of one word.
        for stride in [8, 0] {
            for transfer in [35, 135] {
                let body = counters(stride, ATOMIC);
                let found = results(&dir, harts, &format!("transfer = {transfer}"), &body);
                // A transfer goes to the LLC and to the other hart, and up through the L2; the harts take turns.
                let each = harts as u64 * (30 + transfer + 12);
                for cycles in found {
                    let apart = cycles.abs_diff(each * PASSES);
                    assert!(
                        apart * 100 <= each * PASSES,
                        "{harts} harts, transfer {transfer}: {cycles}, expected {each} each"
                    );
                }
            }
        }
    }
}

#[test]
fn harts_with_lines_of_their_own_cost_each_other_nothing() {
    let dir = scratch("harts-apart");
    for increment in [ATOMIC, PLAIN] {
        let body = counters(256, increment);
        let alone = results(&dir, 1, "", &body);
        let together = results(&dir, 4, "transfer = 900\nprobe = 900", &body);
        assert_eq!(together, vec![alone[0]; 4], "{increment}");
    }
}

#[test]
fn plain_increments_share_a_line_falsely() {
    let dir = scratch("harts-plain");
    let own = results(&dir, 4, "", &counters(256, PLAIN))[0];
    // A miss register holds 16 stores: so many hide a transfer, and no more.
    for (harts, slower) in [(2, 20), (4, 100)] {
        for cycles in results(&dir, harts, "", &counters(8, PLAIN)) {
            assert!(cycles * 100 > own * (100 + slower), "{harts}: {cycles}, alone {own}");
        }
    }
}

#[test]
fn a_flag_travels_as_long_as_probe_and_transfer_say() {
    let dir = scratch("harts-flag");
    // Each hart waits for its turn and gives the turn to the other: two ways a pass.
    let body = measured(
        "addi t0, a3, -1\n slli t0, t0, 1\n li t1, 2199\n sub t0, t1, t0\n sub t0, t0, a2\n add t0, t0, s0\n\
         3: ld t1, (s1)\n bne t1, t0, 3b\n addi t1, t1, 1\n sd t1, (s1)",
    );
    let cycles = |coherence: &str| results(&dir, 2, coherence, &body)[0] / (2 * PASSES);
    let (way, transfer, probe) = (cycles(""), cycles("transfer = 135"), cycles("probe = 125"));
    // The reader's transfer (30 + 35 + 12), the writer's upgrade (30 + 25 + 12), and what both cores do about it.
    assert!((30 + 35 + 12 + 30 + 25 + 12..180).contains(&way), "{way}");
    assert!((transfer - way).abs_diff(100) <= 2, "{way}, {transfer}");
    assert!((probe - way).abs_diff(100) <= 2, "{way}, {probe}");
}

#[test]
fn what_all_only_read_costs_nothing_after_the_first_time() {
    let dir = scratch("harts-reading");
    let body = measured("ld a7, (s1)\n ld a7, 64(s1)\n ld a7, 1024(s1)\n ld a7, 1984(s1)");
    let alone = results(&dir, 1, "", &body);
    let together = results(&dir, 4, "transfer = 900\nprobe = 900", &body);
    assert_eq!(together, vec![alone[0]; 4]);
}

#[test]
fn a_lock_of_load_reserved_and_store_conditional_lets_one_in() {
    let dir = scratch("harts-lock");
    let body = "li a2, 1\n li a3, 500\n addi a1, s1, 256\n\
         1: lr.d t0, (s1)\n bnez t0, 1b\n sc.d t0, a2, (s1)\n bnez t0, 1b\n fence\n\
         ld t2, (a1)\n addi t2, t2, 1\n sd t2, (a1)\n fence\n sd zero, (s1)\n\
         addi a3, a3, -1\n bnez a3, 1b\n\
         li t1, 1\n addi a1, a1, 64\n amoadd.d zero, t1, (a1)\n li t2, 4\n\
         2: ld t3, (a1)\n blt t3, t2, 2b\n ld t2, -64(a1)\n sd t2, (s2)";
    assert_eq!(results(&dir, 4, "", body), [2000; 4]);
}

#[test]
fn equal_runs_take_equal_cycles() {
    let dir = scratch("harts-equal");
    let elf = assemble(&dir, "program", &program(3, &counters(8, PLAIN)));
    let run = |most: &str| {
        let mut command = tipsim();
        command.args(["exec", "--mode", "timing", "--harts", "3", "--stats"]);
        let out = command.args(["--max-insts", most]).arg(&elf).output();
        let text = stderr(&out.unwrap());
        let harts = text.lines().filter(|line| line.starts_with("hart "));
        harts.map(str::to_owned).collect::<Vec<_>>()
    };
    let first = run("1000000");
    assert_eq!(first.len(), 3);
    assert_eq!(first, run("1000000"));
}

#[test]
fn numbers_of_harts_that_cannot_be_are_refused() {
    let dir = scratch("harts-refused");
    let elf = assemble(&dir, "program", &program(1, "nop"));
    for harts in ["0", "17"] {
        let mut exec = tipsim();
        exec.arg("exec").arg(&elf).args(["--harts", harts]);
        let out = exec.output().unwrap();
        assert_error(&out, 2, &["--harts", "1 to 16"]);
    }
}
