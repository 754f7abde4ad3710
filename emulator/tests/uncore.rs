//! The PMUs of last-level cache and memory controller: what the guest reads is what the machine counted, to the last event.

mod linux;

use std::path::Path;
use std::process::Command;

use crate::common::{assemble, htif, json, scratch, stderr, stdout, succeed, tipsim};
use serde_json::Value;

/// Lines that a pass of the program loads, and as many that it stores to.
const LINES: u64 = 64;

/// A counter of the program: unit (0: last-level cache), event, harts, origins.
type Counter = (usize, &'static str, u64, u64);

const LOAD: u64 = 1 << 1;
const STORE: u64 = 1 << 2;

/// Counters of the program, in the order in which it prints them.
const COUNTERS: [Counter; 16] = [
    (0, "lookups", 0, 0),
    (0, "misses", 0, LOAD),
    (0, "lookups", 0, STORE),
    (0, "misses", 0, 0),
    (0, "evictions", 0, 0),
    (0, "probes", 1, 0),
    (0, "probes", 2, 0),
    (0, "modified_transfers", 0, 0),
    (1, "reads", 0, 0),
    (1, "writes", 0, 0),
    (1, "read_bytes", 0, 0),
    (1, "write_bytes", 0, 0),
    (1, "activations", 0, 0),
    (1, "row_hits", 0, 0),
    (1, "row_conflicts", 0, 0),
    (1, "queue_occupancy", 0, 0),
];

/// Two passes over other lines each, after which the console has all counts. The second is the region. Then the power is off. Other
/// harts increment a word that the first increments, too. In the middle of each pass the first hart goes round a loop so often.
fn program(others: bool, rounds: u64) -> String {
    let number = |(unit, name, ..): &Counter| {
        let mut rows = uncore_pmu::Event::TABLE.iter();
        let row = rows.find(|row| row.unit as usize == unit + 1 && row.name == *name);
        u64::from(row.unwrap().number)
    };
    let select: String = COUNTERS
        .iter()
        .enumerate()
        .map(|(n, counter)| {
            let (unit, _, harts, origins) = counter;
            let select = number(counter) | harts << 8 | origins << 16;
            let (base, offset) = (["s1", "s2"][*unit], 0x40 + 8 * (n % 8));
            format!("li t0, {select}\n sd t0, {offset}({base})\n")
        })
        .collect();
    let shared = match others {
        true => {
            "la t2, word\n li t1, 1\n li t0, 200\n1: amoadd.d zero, t1, (t2)\n addi t0, t0, -1\n bnez t0, 1b"
        }
        false => "",
    };
    format!(
        ".globl _start\n_start:\n csrr t0, mhartid\n beqz t0, first\n\
         la t2, word\n li t1, 1\nother: amoadd.d zero, t1, (t2)\n j other\n\
         first: li s1, 0x10050000\n li s2, 0x10051000\n li s3, 0x81000000\n li s4, 0x82000000\n li s5, 0\n li s6, 0x10000000\n\
         {select}\n li t0, 0x1ff\n sd t0, 0x20(s1)\n sd t0, 0x20(s2)\n li t0, 4096\n\
         .align 6\n\
         pass: li t1, 1\n sd t1, 0x18(s1)\n sd t1, 0x18(s2)\n\
         beqz s5, 1f\n .option push\n .option norvc\n addi x0, x1, 0\n .option pop\n\
         1: li t3, {LINES}\n li t0, 4096\n\
         1: ld t1, (s3)\n add s3, s3, t0\n sd t1, (s4)\n add s4, s4, t0\n addi t3, t3, -1\n bnez t3, 1b\n\
         li t0, {rounds}\n1: addi t0, t0, -1\n bgtz t0, 1b\n\
         {shared}\n fence\n\
         beqz s5, 1f\n .option push\n .option norvc\n addi x0, x2, 0\n .option pop\n\
         1: sd zero, 0x18(s1)\n sd zero, 0x18(s2)\n\
         mv a0, s1\n call print\n mv a0, s2\n call print\n li t0, 10\n sb t0, (s6)\n\
         addi s5, s5, 1\n li t0, 2\n bne s5, t0, pass\n\
         li t0, 0x5555\n li t1, 0x100000\n sw t0, (t1)\n1: j 1b\n\
         print: li a1, 8\n1: ld t0, 0x80(a0)\n li t1, 16\n\
         2: srli t2, t0, 60\n slli t0, t0, 4\n li t3, 10\n blt t2, t3, 3f\n addi t2, t2, 39\n\
         3: addi t2, t2, 48\n sb t2, (s6)\n addi t1, t1, -1\n bnez t1, 2b\n\
         li t2, 32\n sb t2, (s6)\n addi a0, a0, 8\n addi a1, a1, -1\n bnez a1, 1b\n ret\n\
         .align 6\nword: .dword 0\n"
    )
}

/// Returns what the program printed: the counts after its first pass, and after its second.
fn printed(console: &str) -> [Vec<u64>; 2] {
    let counts = |line: &str| {
        let words = line.split_whitespace();
        words.map(|word| u64::from_str_radix(word, 16).unwrap()).collect::<Vec<_>>()
    };
    let lines: Vec<_> = console.lines().map(counts).collect();
    let [first, second] = &lines[..] else { panic!("{console}") };
    assert_eq!((first.len(), second.len()), (16, 16), "{console}");
    [first.clone(), second.clone()]
}

/// Runs the program: what it printed, and what the machine says in run.json.
fn run(dir: &Path, harts: u32, threads: &str) -> ([Vec<u64>; 2], Value) {
    let elf = assemble(dir, "program", &program(harts > 1, 1));
    let spec = dir.join("spec.toml");
    let text = format!(
        "[guest]\nfirmware = {elf:?}\nharts = {harts}\n[run]\nboot = \"timing\"\nregion = \"marked\"\nthreads = \"{threads}\"\n\
         max_cycles = 20000000\n[record]\ntrace = false\nprofilers = false\n"
    );
    std::fs::write(&spec, text).unwrap();
    let out = dir.join("out");
    let _ = std::fs::remove_dir_all(&out);
    succeed(tipsim().arg("run").arg(&spec).arg("--out").arg(&out));
    let console = std::fs::read_to_string(out.join("console.log")).unwrap();
    (printed(&console), json(&out.join("run.json")))
}

fn unit(number: usize) -> &'static str {
    ["llc", "memory_controller"][number]
}

/// Returns what the host added up for a counter with this setting.
fn counter(run: &Value, (number, event, harts, origins): &Counter) -> u64 {
    let counters = run["uncore"][unit(*number)]["counters"].as_array().unwrap();
    let mut same = counters.iter().filter(|counter| {
        counter["event"] == *event && counter["harts"] == *harts && counter["origins"] == *origins
    });
    let found = same.next().unwrap_or_else(|| panic!("{event}: {counters:?}"));
    found["count"].as_u64().unwrap()
}

/// Returns what the host counted in the region of what a counter with this setting counts.
fn region(run: &Value, (number, event, harts, origins): &Counter) -> u64 {
    let unit = &run["uncore"][unit(*number)];
    if (*harts, *origins) == (0, 0) {
        return unit["all"][event].as_u64().unwrap();
    }
    let all = unit["harts"].as_array().unwrap().iter().enumerate();
    let wanted = all.filter(|(hart, _)| *harts == 0 || harts >> hart & 1 != 0);
    let mut sum = 0;
    for (_, by_origin) in wanted {
        for (bit, (name, _)) in uncore_pmu::ORIGINS.iter().enumerate() {
            if *origins == 0 || origins >> bit & 1 != 0 {
                sum += by_origin[name][event].as_u64().unwrap();
            }
        }
    }
    sum
}

#[test]
fn the_guest_counts_what_the_machine_counts_in_the_region() {
    let dir = scratch("uncore-region");
    let ([first, second], described) = run(&dir, 1, "one");
    for ((counter_of, before), after) in COUNTERS.iter().zip(&first).zip(&second) {
        let counted = after - before;
        assert_eq!(counted, region(&described, counter_of), "{counter_of:?}");
        assert_eq!(*after, counter(&described, counter_of), "{counter_of:?}");
    }
    let of = |name: &str, origins: u64| {
        let mut all = COUNTERS.iter().zip(&first).zip(&second);
        let found = all.find(|((c, _), _)| (c.1, c.3) == (name, origins));
        found.map(|((_, before), after)| after - before).unwrap()
    };
    // No cache has the lines, and no two are neighbours.
    assert_eq!(of("misses", LOAD), LINES);
    assert_eq!(of("lookups", STORE), LINES);
    assert_eq!(of("reads", 0), of("misses", 0));
    assert!(of("reads", 0) > 2 * LINES, "with prefetches");
    assert_eq!(of("read_bytes", 0), 64 * of("reads", 0));
    assert_eq!(of("write_bytes", 0), 64 * of("writes", 0));
    assert_eq!(of("activations", 0) + of("row_hits", 0), of("reads", 0) + of("writes", 0));
    // Two threads give the same counts.
    assert_eq!(run(&dir, 1, "two").0, [first, second]);
}

#[test]
fn harts_that_share_a_line_are_counted_apart() {
    let dir = scratch("uncore-harts");
    let (counts, described) = run(&dir, 2, "auto");
    for (counter_of, count) in COUNTERS.iter().zip(&counts[1]) {
        assert_eq!(*count, counter(&described, counter_of), "{counter_of:?}");
    }
    let of_second = |name: &str, harts| {
        let mut all = COUNTERS.iter().zip(&counts[1]);
        let found = all.find(|(c, _)| (c.1, c.2) == (name, harts));
        *found.unwrap().1
    };
    // Nearly each of the 400 increments takes the line from the other hart.
    let probes = [1, 2].map(|harts| of_second("probes", harts));
    assert!(probes.iter().all(|&n| n > 100), "{probes:?}");
    assert!(of_second("modified_transfers", 0) > 200);
    for event in ["lookups", "probes", "transfers"] {
        let all = region(&described, &(0, event, 0, 0));
        let apart = [1, 2].map(|harts| region(&described, &(0, event, harts, 0)));
        assert_eq!(all, apart[0] + apart[1], "{event}");
    }
    assert_eq!(run(&dir, 2, "auto").0, counts, "deterministic");
}

/// `tipsim boot` of the program.
fn boot(dir: &Path, harts: &str) -> Command {
    let mut command = tipsim();
    command.args(["boot", "--mode", "timing", "--harts", harts, "--memory", "64M"]);
    command.arg("--firmware").arg(dir.join("program.elf"));
    command
}

#[test]
fn a_checkpoint_changes_no_count() {
    for harts in ["1", "2"] {
        let dir = scratch(&format!("uncore-checkpoint-{harts}"));
        assemble(&dir, "program", &program(harts != "1", 1_500_000));
        let whole = stdout(&boot(&dir, harts).output().unwrap());
        printed(&whole);
        let saved = dir.join("saved");
        let mut tried = 0;
        loop {
            let until = (1_000_000 * (tried + 1)).to_string();
            let mut first = boot(&dir, harts);
            let first = succeed(first.args(["--max-insts", &until, "--save"]).arg(&saved));
            // The program ended before.
            if !saved.exists() {
                break;
            }
            let mut second = tipsim();
            second.args(["boot", "--mode", "timing", "--restore"]);
            let second = second.arg(&saved).output().unwrap();
            assert_eq!(first + &stdout(&second), whole, "{until}: {}", stderr(&second));
            std::fs::remove_file(&saved).unwrap();
            tried += 1;
        }
        assert!(tried > 3, "{tried}");
    }
}

#[test]
fn an_overflow_interrupts() {
    let dir = scratch("uncore-overflow");
    // Lookups, from 32 before the overflow; the PLIC's source 48 for machine mode of the first hart.
    let source = htif(
        "la t0, handler\n csrw mtvec, t0\n li s1, 0x10050000\n li s3, 0x80400000\n li s4, 4096\n li s5, 0\n\
         li t0, 0xc000000\n li t1, 1\n sw t1, 192(t0)\n li t0, 0xc002000\n li t1, 0x10000\n sw t1, 4(t0)\n\
         li t0, 0xc200000\n sw zero, (t0)\n li t0, 0x800\n csrs mie, t0\n csrsi mstatus, 8\n\
         li t0, 1\n sd t0, 0x40(s1)\n li t0, -32\n sd t0, 0x80(s1)\n li t0, 1\n sd t0, 0x28(s1)\n sd t0, 0x20(s1)\n sd t0, 0x18(s1)\n\
         li t3, 2000\n1: ld t1, (s3)\n add s3, s3, s4\n addi t3, t3, -1\n beqz t3, 2f\n beqz s5, 1b\n\
         2: la t0, begin_signature\n sd s5, 0(t0)\n sd s6, 8(t0)\n sd s7, 16(t0)\n sd s8, 24(t0)\n\
         ld t1, 0x30(s1)\n sd t1, 32(t0)\n csrr t1, mip\n sd t1, 40(t0)\n li a0, 0\n j 5f\n\
         .align 2\nhandler: addi s5, s5, 1\n ld s6, 0x30(s1)\n ld s7, 0x80(s1)\n li t0, 0xc200004\n lw s8, (t0)\n\
         li t1, -1\n sd t1, 0x30(s1)\n sw s8, (t0)\n mret\n5:",
    )
    .replace("end_signature:", ".zero 64\nend_signature:");
    let elf = assemble(&dir, "overflow", &source);
    let file = dir.join("signature");
    let mut exec = tipsim();
    exec.args(["exec", "--mode", "timing", "--signature-granularity", "8"]);
    succeed(exec.arg("--signature").arg(&file).arg(&elf));
    let text = std::fs::read_to_string(file).unwrap();
    let numbers = text.lines().map(|line| u64::from_str_radix(line, 16));
    let found: Vec<u64> = numbers.take(6).map(Result::unwrap).collect();
    let [taken, overflow, count, source, after, pending] = found[..] else { panic!("{text}") };
    assert_eq!((taken, overflow, source), (1, 1, 48), "{found:?}");
    assert_eq!((after, pending), (0, 0), "{found:?}");
    // The overflow is seen up to 1024 cycles late, and taken up to a run later.
    assert!(count < 512, "{found:?}");
}
