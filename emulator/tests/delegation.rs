//! Counters that machine mode delegated (Smcdeleg, Ssccfg): set up, read and heard of in supervisor mode alone.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::common::{assemble, guest, htif, repo, scratch, stderr, stdout, succeed, tipsim};
use isa::PerfEvent;

const ON: [&str; 2] = ["--set", "isa.smcdeleg=true"];
/// Options for a core without Smcdeleg, and without what needs it.
const OFF: [&str; 4] = ["--set", "isa.sspesa=false", "--set", "isa.smcdeleg=false"];
/// Options for a core without Smcsrind, and without what else needs it.
const NO_WINDOWS: [&str; 6] =
    ["--set", "isa.smpdis=false", "--set", "isa.smctr=false", "--set", "isa.smcsrind=false"];
const MODES: [&str; 2] = ["functional", "timing"];

/// Numbers that the assembler does not know by name, and the delegation of everything.
const PRELUDE: &str = ".option norvc\n\
    .equ SCOUNTINHIBIT, 0x120\n .equ SISELECT, 0x150\n .equ SIREG, 0x151\n .equ SIREG2, 0x152\n .equ MISELECT, 0x350\n\
    .equ MENVCFG, 0x30a\n .equ SCOUNTOVF, 0xda0\n\
    .macro select counter\n li t0, 0x40 + \\counter\n csrw SISELECT, t0\n .endm\n\
    .macro put csr, value\n li t0, \\value\n csrw \\csr, t0\n .endm\n\
    put mcounteren, -1\n put mcountinhibit, -1\n li t0, 1 << 60\n csrs MENVCFG, t0\n";

/// Runs a program; what it left between `begin_signature` and its end.
fn exec(dir: &Path, elf: &Path, args: &[&str]) -> (Output, Vec<u64>) {
    let file = dir.join("signature");
    let mut exec = tipsim();
    exec.args(["exec", "--signature-granularity", "8", "--max-insts", "1000000"]);
    exec.args(args).arg("--signature").arg(&file).arg(elf);
    let out = exec.output().unwrap();
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let word = |line: &str| u64::from_str_radix(line, 16).unwrap();
    (out, text.lines().map(word).collect())
}

fn program(dir: &Path, body: &str) -> PathBuf {
    let source = htif(body).replace("end_signature:", ".zero 1024\nend_signature:");
    assemble(dir, "program", &source)
}

/// Supervisor mode counts a program's 1001 instructions in user mode twice: in counter 3, and in counter 5, which overflows
/// after each 100. Whatever enters machine mode ends it.
fn profiler(harts: u32) -> String {
    let user = PerfEvent::Instructions.selector();
    format!(
        "{PRELUDE} .equ USER_INSTRUCTIONS, 1 << 61 | {user}\n\
         la t0, failed\n csrw mtvec, t0\n put mideleg, 1 << 13\n put medeleg, 1 << 8\n\
         csrr s4, mhartid\n li t0, 3 << 11\n csrc mstatus, t0\n li t0, 1 << 11\n csrs mstatus, t0\n\
         la t0, supervisor\n csrw mepc, t0\n mret\n\
         failed: li a0, 1\n j exit\n\
         supervisor: la s1, begin_signature\n slli t0, s4, 6\n add s1, s1, t0\n la t0, trap\n csrw stvec, t0\n\
         select 3\n csrw SIREG, zero\n put SIREG2, USER_INSTRUCTIONS\n call arm\n\
         li s2, 0\n li s3, 0\n li t0, 1 << 13\n csrs sie, t0\n csrw SCOUNTINHIBIT, zero\n\
         la t0, user\n csrw sepc, t0\n li t0, 1 << 8\n csrc sstatus, t0\n li t0, 1 << 5\n csrs sstatus, t0\n sret\n\
         user: li a1, 500\n 1: addi a1, a1, -1\n bnez a1, 1b\n ecall\n\
         arm: select 5\n put SIREG, -100\n put SIREG2, USER_INSTRUCTIONS\n ret\n\
         .align 2\n\
         trap: csrr t0, scause\n bgez t0, called\n\
         addi s2, s2, 1\n sd t0, 32(s1)\n csrr t0, SCOUNTOVF\n sd t0, 40(s1)\n select 5\n csrr t0, SIREG\n\
         addi t0, t0, 100\n add s3, s3, t0\n li t0, 1 << 13\n csrc sip, t0\n call arm\n sret\n\
         called: put SCOUNTINHIBIT, -1\n select 5\n csrr t0, SIREG\n addi t0, t0, 100\n add s3, s3, t0\n\
         select 3\n csrr t0, SIREG\n sd t0, 0(s1)\n csrr t0, hpmcounter3\n sd t0, 8(s1)\n sd s2, 16(s1)\n sd s3, 24(s1)\n\
         fence\n la t0, done\n li t1, 1\n amoadd.w zero, t1, (t0)\n bnez s4, .\n\
         2: lw t1, (t0)\n li t2, {harts}\n bne t1, t2, 2b\n li a0, 0\n j exit\n\
         .align 3\n done: .dword 0\n exit:\n"
    )
}

#[test]
fn supervisor_mode_alone_samples_user_mode() {
    let dir = scratch("delegation-samples");
    for harts in [1, 2] {
        let elf = program(&dir, &profiler(harts));
        for mode in MODES {
            let harts = harts.to_string();
            let (out, words) =
                exec(&dir, &elf, &[&["--mode", mode, "--harts", &harts], &ON[..]].concat());
            assert_eq!(out.status.code(), Some(0), "{mode} {}", stderr(&out));
            for words in words.chunks(8).take(harts.parse().unwrap()) {
                let [by_window, by_name, interrupts, sampled, cause, overflows] = words[..6] else {
                    panic!("{words:?}")
                };
                assert_eq!([by_window, by_name, sampled], [1001; 3], "{mode} {harts}");
                assert!((3..=10).contains(&interrupts), "{mode}: {interrupts}");
                assert_eq!((cause, overflows), (1 << 63 | 13, 1 << 5));
            }
        }
    }
}

#[test]
fn without_the_extensions_the_first_access_is_illegal() {
    let dir = scratch("delegation-none");
    let elf = program(&dir, &profiler(1));
    for more in [&[][..], &NO_WINDOWS] {
        let (out, _) = exec(&dir, &elf, &[&OFF[..], more].concat());
        assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    }
    let (out, _) = exec(&dir, &elf, &[&OFF[..], &NO_WINDOWS, &ON].concat());
    crate::common::assert_error(&out, 2, &["`isa.smcdeleg`", "false without isa.smcsrind"]);
}

/// Every event, counted in a loop and then read by both numbers: equal, to the last one.
#[test]
fn a_window_shows_what_the_counter_has() {
    let dir = scratch("delegation-events");
    for events in PerfEvent::ALL.chunks(29) {
        let set: String = (3..)
            .zip(events)
            .map(|(n, event)| {
                format!("select {n}\n put SIREG2, {}\n csrw SIREG, zero\n", event.selector())
            })
            .collect();
        let read: String = (3..).zip(0..events.len())
            .map(|(n, at)| {
                let at = 16 * at;
                format!("select {n}\n csrr t0, SIREG\n sd t0, {at}(s1)\n csrr t0, mhpmcounter{n}\n sd t0, {at} + 8(s1)\n")
            })
            .collect();
        let body = format!(
            "{PRELUDE}{set} la s1, begin_signature\n li s0, 100\n csrw SCOUNTINHIBIT, zero\n\
             1: ld t1, 0(s1)\n mul t1, t1, t1\n sd t1, 8(s1)\n addi s0, s0, -1\n bnez s0, 1b\n\
             put SCOUNTINHIBIT, -1\n{read} li a0, 0\n"
        );
        let elf = program(&dir, &body);
        for mode in MODES {
            let (out, words) = exec(&dir, &elf, &[&["--mode", mode], &ON[..]].concat());
            assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
            for (event, pair) in events.iter().zip(words.chunks(2)) {
                assert_eq!(pair[0], pair[1], "{mode} {}", event.row().name);
            }
            let retired = events.iter().position(|e| *e == PerfEvent::Instructions);
            if let Some(at) = retired {
                // The write that starts it, the loop, and the `li` before the write that stops it.
                assert_eq!(words[2 * at], 502, "{mode}");
            }
        }
    }
}

/// The program waits long enough to be saved on its way, then prints whether it has what it had.
#[test]
fn selectors_survive_a_checkpoint() {
    let dir = scratch("delegation-checkpoint");
    let source = format!(
        ".globl _start\n_start: {PRELUDE} put MISELECT, 0x123\n select 7\n put SIREG2, {}\n csrw SCOUNTINHIBIT, zero\n\
         li t1, 1500000\n 1: addi t1, t1, -1\n bnez t1, 1b\n li a0, 'F'\n\
         csrr t0, MISELECT\n li t1, 0x123\n bne t0, t1, 2f\n csrr t0, SISELECT\n li t1, 0x47\n bne t0, t1, 2f\n\
         put SCOUNTINHIBIT, -1\n csrr t1, SIREG\n csrr t0, mhpmcounter7\n bne t0, t1, 2f\n li t1, 3000000\n bltu t0, t1, 2f\n\
         li a0, 'P'\n\
         2: li t0, 0x10000000\n sb a0, 0(t0)\n li t0, 0x100000\n li t1, 0x5555\n sw t1, 0(t0)\n j .\n",
        PerfEvent::Instructions.selector()
    );
    let elf = assemble(&dir, "selectors", &source);
    for mode in MODES {
        let half = dir.join(mode);
        let boot = |more: &[&str], paths: &[(&str, &Path)]| {
            let mut boot = tipsim();
            boot.args(["boot", "--mode", mode]).args(more).env_remove("TIPSIM_GUEST");
            for (option, path) in paths {
                boot.arg(option).arg(path);
            }
            let out = boot.stdin(Stdio::null()).output().unwrap();
            assert_eq!(out.status.code(), Some(0), "{mode} {}", stderr(&out));
            stdout(&out)
        };
        let first = [&["--max-insts", "1500000"], &ON[..]].concat();
        assert_eq!(boot(&first, &[("--firmware", &elf), ("--save", &half)]), "");
        assert_eq!(boot(&[], &[("--restore", &half)]), "P");
    }
}

/// OpenSBI finds the extensions in the device tree and delegates; what a supervisor then does by CSRs is far cheaper.
#[test]
fn a_supervisor_under_opensbi_does_without_its_calls() {
    let elf = scratch("delegation-opensbi").join("access.elf");
    let mut compile = Command::new("riscv64-linux-gnu-gcc");
    let flags = "-O2 -ffreestanding -nostdlib -static -no-pie -march=rv64gc -mcmodel=medany \
        -Wl,-N,--build-id=none,-Ttext=0x80200000 -o";
    compile.args(flags.split_whitespace()).arg(&elf);
    succeed(compile.arg(repo().join("workloads/counters/access.c")));
    let cycles = |on: &[&str]| {
        let mut boot = tipsim();
        boot.args(["boot", "--mode", "timing"]).args(on);
        boot.arg("--firmware").arg(guest().join("fw_dynamic.bin"));
        let text = succeed(boot.arg("--kernel").arg(&elf).stdin(Stdio::null()));
        let (_, table) = text.split_once("cycles\n").unwrap();
        table.replace('\r', "")
    };
    assert!(cycles(&OFF).ends_with("a trap: nothing is delegated\n"));
    let table = cycles(&ON);
    let of = |what: &str| {
        let line = table.lines().find(|line| line.ends_with(what));
        let (cycles, _) = line.unwrap().trim_start().split_once(' ').unwrap();
        cycles.parse::<u64>().unwrap()
    };
    for (call, csrs) in [
        ("set up a counter: SBI", "set up: siselect, sireg2, sireg"),
        ("start it with a value: SBI", "start it with a value: siselect, sireg, scountinhibit"),
        ("stop it: SBI", "stop it: scountinhibit"),
    ] {
        assert!(of(call) > 10 * of(csrs), "{table}");
    }
}
