//! Bare-metal programs under HTIF, as a test suite would run them.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;
use std::process::{Output, Stdio};

use crate::common::{assemble, assert_error, htif, json, scratch, stderr, stdout, tipsim};

/// Runs an ELF with these options.
fn exec<A: AsRef<OsStr>>(elf: &Path, args: &[A]) -> Output {
    tipsim().arg("exec").arg(elf).args(args).output().unwrap()
}

/// No options.
const PLAIN: &[&str] = &[];

#[test]
fn exit_status_is_the_tests() {
    let dir = scratch("exec-status");
    for code in [0, 7] {
        let elf = assemble(&dir, "status", &htif(&format!("li a0, {code}")));
        for mode in ["functional", "timing"] {
            let out = exec(&elf, &["--mode", mode]);
            assert_eq!(out.status.code(), Some(code), "{mode}: {}", stderr(&out));
        }
    }
}

#[test]
fn signature_is_the_memory_between_the_symbols() {
    let dir = scratch("exec-signature");
    let body = "la t0, begin_signature\n li t1, 0x0102030405060708\n sd t1, 8(t0)\n li a0, 0";
    let elf = assemble(&dir, "signature", &htif(body));
    let file = dir.join("out.sig");
    let out = exec(&elf, &["--signature".as_ref(), file.as_os_str()]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let text = std::fs::read_to_string(file).unwrap();
    assert_eq!(text, "11223344\n55667788\n05060708\n01020304\n");
}

#[test]
fn signatures_that_cannot_be_are_refused_before_the_run() {
    let dir = scratch("exec-no-signature");
    let file = dir.join("out.sig");
    // Neither program ends: it must not get that far.
    let without = htif("2: j 2b").replace("begin_signature", "begin_elsewhere");
    let outside = htif(".globl end_signature\n.set end_signature, 0x40000000\n2: j 2b")
        .replace(".globl end_signature\nend_signature:\n", "");
    for (name, source, says) in [
        ("without", &without, "symbols begin_signature"),
        ("outside", &outside, "0x40000000 is not in memory"),
    ] {
        let elf = assemble(&dir, name, source);
        let out = exec(&elf, &["--signature".as_ref(), file.as_os_str()]);
        assert_error(&out, 2, &[says]);
        assert!(!file.exists());
    }
    let elf = assemble(&dir, "nothing-a-line", &htif("li a0, 0"));
    let out = exec(&elf, &["--signature-granularity", "0"]);
    assert_eq!(out.status.code(), Some(2), "{}", stderr(&out));
}

/// Data in the page of the code that writes it, as just-in-time compilers and small programs have it: after some stores without
/// newly decoded code the page is taken for data, and with it what is executed at that time.
#[test]
fn code_may_write_to_its_own_page() {
    let dir = scratch("exec-own-page");
    for (name, store, each) in [
        ("amo", "amoadd.d t1, t2, (s1)\n bne t1, s2, 4f\n addi s2, s2, 1", 1),
        ("sc", "lr.d t1, (s1)\n add t1, t1, t2\n sc.d t4, t1, (s1)\n bnez t4, 4f", 1),
        ("store", "ld t1, 0(s1)\n add t1, t1, t2\n sd t1, 0(s1)\n addi s2, s2, 1", 1),
        ("twice", "ld t1, 0(s1)\n sd zero, 0(s1)\n c.addi t1, 2\n sd t1, 0(s1)", 2),
    ] {
        // Exits with 1 if x0 is not zero, 2 if the sum is wrong, 3 if an instruction executed twice.
        let body = format!(
            "la s1, begin_signature\n sd zero, 0(s1)\n li t2, 1\n li s2, 0\n li s0, 1000\n\
             3: {store}\n addi s0, s0, -1\n bnez s0, 3b\n\
             mv t3, zero\n li a0, 1\n bnez t3, 5f\n ld t1, 0(s1)\n li t2, {}\n li a0, 2\n bne t1, t2, 5f\n\
             sub a0, a0, a0\n j 5f\n 4: addi a0, zero, 3\n 5:",
            1000 * each
        );
        let elf = assemble(&dir, name, &htif(&body));
        for mode in ["functional", "timing"] {
            for translator in ["off", "auto", "eager"] {
                let out = exec(
                    &elf,
                    &["--mode", mode, "--translator", translator, "--max-insts", "1000000"],
                );
                let status = out.status.code();
                assert_eq!(status, Some(0), "{name}, {mode}, {translator}: {}", stderr(&out));
            }
        }
    }
}

#[test]
fn exit_codes_that_no_status_holds_are_told() {
    let dir = scratch("exec-codes");
    for code in [1337, -1] {
        let elf = assemble(&dir, "code", &htif(&format!("li a0, {code}")));
        let out = exec(&elf, PLAIN);
        assert_eq!(out.status.code(), Some(255));
        let text = stderr(&out);
        assert!(text.contains(&format!("exit code {code}:")), "{text}");
    }
}

/// Enters user mode without setting the PMP up, as programs for Spike do, whose reset opens the PMP's first entry.
#[test]
fn user_mode_needs_no_memory_protection_set_up() {
    let dir = scratch("exec-user");
    // The handler exits with mcause: 8 of the environment call in U, not 1 of a fetch that PMP denies.
    let body = "la t0, 3f\n csrw mtvec, t0\n la t0, 2f\n csrw mepc, t0\n mret\n2: ecall\n\
                .align 2\n3: csrr a0, mcause";
    let elf = assemble(&dir, "user", &htif(body));
    for mode in ["functional", "timing"] {
        let out = exec(&elf, &["--mode", mode]);
        assert_eq!(out.status.code(), Some(8), "{mode}: {}", stderr(&out));
    }
}

#[test]
fn a_core_may_lack_an_extension() {
    let dir = scratch("exec-set");
    // The handler exits with mcause; the program itself with 0.
    let body = "la t0, 3f\n csrw mtvec, t0\n .insn r OP, 2, 16, a1, a1, a1 # sh1add\n li a0, 0\n j 4f\n\
                .align 2\n3: csrr a0, mcause\n4:";
    let elf = assemble(&dir, "zba", &htif(body));
    for (set, status) in [(None, 0), (Some("isa.zba=false"), 2)] {
        let set: Vec<_> = set.iter().flat_map(|set| ["--set", set]).collect();
        let out = exec(&elf, &set);
        assert_eq!(out.status.code(), Some(status), "{}", stderr(&out));
    }
}

#[test]
fn console_output_reaches_the_host() {
    let dir = scratch("exec-console");
    // HTIF device 1, command 1: a character.
    let body = "la t0, tohost\n li t1, 0x0101000000000041\n sd t1, 0(t0)\n li a0, 0";
    let elf = assemble(&dir, "console", &htif(body));
    let out = exec(&elf, PLAIN);
    assert_eq!(stdout(&out), "A");
}

#[test]
fn endless_program_ends_at_the_limit() {
    let dir = scratch("exec-limit");
    let elf = assemble(&dir, "endless", &htif("2: j 2b"));
    let out = exec(&elf, &["--max-insts", "1000"]);
    let says = ["1000 instructions", "pc 0x80000000, _start, a jump to itself"];
    assert_error(&out, 1, &says);
    let elf = assemble(&dir, "asleep", &htif("nop\n.globl rest\nrest: nop\n2: wfi\n j 2b"));
    let out = exec(&elf, PLAIN);
    assert_error(&out, 1, &["nothing can wake it", ", rest+0x"]);
}

/// Runs `body` under the timing core and returns the cycles between two `csrr mcycle`, by exit
/// status: (cycles / 16).
fn cycles(dir: &Path, name: &str, body: &str) -> i32 {
    let source = format!(
        "li a4, 20\n3: csrr a1, mcycle\n{body}\n csrr a2, mcycle\n addi a4, a4, -1\n bnez a4, 3b\n\
         sub a0, a2, a1\n srli a0, a0, 4"
    );
    let elf = assemble(dir, name, &htif(&source));
    let out = exec(&elf, &["--mode", "timing"]);
    out.status.code().expect("an exit status")
}

#[test]
fn dependent_and_independent_adds_take_what_the_width_says() {
    let dir = scratch("exec-adds");
    let dependent = cycles(&dir, "dependent", ".rept 1024\n addi a3, a3, 1\n .endr");
    let independent = cycles(
        &dir,
        "independent",
        ".rept 256\n addi t1, t1, 1\n addi t2, t2, 1\n addi t3, t3, 1\n addi t4, t4, 1\n .endr",
    );
    assert!((64..=68).contains(&dependent), "1024 dependent adds: {} cycles", dependent * 16);
    assert!((16..=20).contains(&independent), "1024 adds, 4-wide: {} cycles", independent * 16);
}

/// What is said of each exception that nobody handles.
#[test]
fn a_trap_without_a_handler_ends_the_run_at_once() {
    let dir = scratch("exec-trap");
    let supervisor = "li t0, 0x800\n csrw mstatus, t0\n la t0, 2f\n csrw mepc, t0\n mret\n2:";
    let user = "la t0, 2f\n csrw mepc, t0\n mret\n2:";
    let delegated = "li t0, -1\n csrw medeleg, t0";
    let cases = [
        ("jump", "jr x0".to_owned(), "access fault (cause 1) at pc 0x0 in machine mode, tval 0x0"),
        (
            "illegal",
            ".4byte 0xffffffff".to_owned(),
            "(cause 2) at pc 0x80000000 in machine mode, tval 0xffffffff",
        ),
        ("vector", ".4byte 0x0c0072d7".to_owned(), "V extension"),
        ("csr", "csrr a0, 0x5d0".to_owned(), "CSR 0x5d0"),
        ("break", "ebreak".to_owned(), "breakpoint (cause 3) at pc 0x80000000"),
        ("call", "ecall".to_owned(), "(cause 11)"),
        (
            "load",
            format!("{supervisor} ld t1, 1(x0)"),
            "supervisor mode, tval 0x1: `ld t1,1(zero)`",
        ),
        ("store", format!("{user} li t0, 8\n sb t1, 0(t0)"), "user mode, tval 0x8: `sb t1,0(t0)`"),
        ("delegated", format!("{delegated}\n{supervisor} ebreak"), "stvec is 0"),
        ("data", "la t0, begin_signature\n csrw mtvec, t0\n ecall".to_owned(), "raises"),
        (
            "later",
            "la t0, 4f\n csrw mtvec, t0\n ecall\n.align 2\n4: nop\n ld t0, 0(x0)".to_owned(),
            "`ld t0,0(zero)`",
        ),
    ];
    for (name, body, says) in cases {
        let elf = assemble(&dir, name, &htif(&body));
        for mode in ["functional", "timing"] {
            let out = exec(&elf, &["--mode", mode]);
            assert_error(&out, 1, &[&format!("{name}.elf: hart 0: "), says]);
        }
    }
    let elf = dir.join("illegal.elf");
    let out = exec(&elf, &["--harts", "4"]);
    assert_error(&out, 1, &["hart 0: illegal", "that is pc 0x80000000, _start"]);
}

/// A handler of machine mode may mend what the supervisor's handler begins with.
#[test]
fn a_handler_whose_first_instruction_is_emulated_is_no_end() {
    let dir = scratch("exec-emulated");
    let body = "la t0, 4f\n csrw mtvec, t0\n la t0, 5f\n csrw stvec, t0\n li t0, 8\n csrw medeleg, t0\n\
                li s0, 1000\n li t0, 0x800\n csrw mstatus, t0\n la t0, 2f\n csrw mepc, t0\n mret\n\
                2: .option push\n.option norvc\n ebreak\n .option pop\n addi s0, s0, -1\n bnez s0, 2b\n li a0, 9\n j 9f\n\
                .align 2\n4: csrr t1, mepc\n addi t1, t1, 4\n csrw mepc, t1\n mret\n\
                .align 2\n5: .4byte 0xffffffff\n csrr t1, sepc\n addi t1, t1, 4\n csrw sepc, t1\n sret\n9:";
    let elf = assemble(&dir, "emulated", &htif(body));
    for mode in ["functional", "timing"] {
        let out = exec(&elf, &["--mode", mode]);
        assert_eq!(out.status.code(), Some(9), "{mode}: {}", stderr(&out));
    }
}

/// Runs an ELF with this as its standard input.
fn exec_with(elf: &Path, input: &[u8], args: &[&str]) -> Output {
    let mut command = tipsim();
    command.arg("exec").arg(elf).args(args);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn htif_console_input_reaches_the_program() {
    let dir = scratch("exec-input");
    // Prints every byte that it reads, until a newline.
    let body = "la s0, tohost\n la s1, fromhost\n li s2, 10\n\
                2: li t0, 1\n slli t0, t0, 56\n sd t0, 0(s0)\n\
                3: ld t1, 0(s1)\n beqz t1, 3b\n sd x0, 0(s1)\n andi t1, t1, 0xff\n\
                li t0, 0x101\n slli t0, t0, 48\n or t0, t0, t1\n sd t0, 0(s0)\n bne t1, s2, 2b\n li a0, 0";
    let elf = assemble(&dir, "echo", &htif(body));
    for mode in ["functional", "timing"] {
        let out = exec_with(&elf, b"some words\nnot these\n", &["--mode", mode]);
        assert_eq!((stdout(&out).as_str(), out.status.code()), ("some words\n", Some(0)));
    }
    for (limit, end) in [("100000", "not done after"), ("1000000000000", "waits for console input")]
    {
        let out = exec_with(&elf, b"some", &["--max-insts", limit]);
        assert_eq!((stdout(&out).as_str(), out.status.code()), ("some", Some(1)));
        let text = stderr(&out);
        assert!(text.contains("input is at its end") && text.contains(end), "{text}");
    }
}

/// A program that looks for input now and then, and asks for it again and again at its end, goes on with its own work.
#[test]
fn htif_console_input_that_is_polled_may_end() {
    let dir = scratch("exec-polled");
    let body = "la s0, tohost\n la s1, fromhost\n li s2, 12\n\
                2: li t0, 1\n slli t0, t0, 56\n sd t0, 0(s0)\n ld a0, 0(s1)\n bnez a0, 9f\n\
                li t1, 10000000\n 3: addi t1, t1, -1\n bnez t1, 3b\n addi s2, s2, -1\n bnez s2, 2b\n9: nop";
    let elf = assemble(&dir, "polled", &htif(body));
    let out = exec_with(&elf, b"", &["--harts", "2"]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
}

#[test]
fn htif_calls_that_are_not_known_are_named() {
    let dir = scratch("exec-unknown");
    let body = "la s0, tohost\n li t0, 7\n slli t0, t0, 56\n sd t0, 0(s0)\n sd t0, 0(s0)\n\
                la t0, begin_signature\n li t1, 56\n sd t1, 0(t0)\n sd t0, 0(s0)\n ld a0, 0(t0)\n neg a0, a0";
    let elf = assemble(&dir, "unknown", &htif(body));
    let out = exec(&elf, PLAIN);
    assert_eq!(out.status.code(), Some(38), "ENOSYS");
    let text = stderr(&out);
    assert_eq!(text.matches("device 7, command 0").count(), 1, "{text}");
    assert!(text.contains("system call 56 (openat)"), "{text}");
}

/// A program that calls its host: what it is called with, a file, and an exit with the file's length.
#[test]
fn semihosting_has_console_arguments_and_the_files_of_one_folder() {
    let dir = scratch("exec-semihosting");
    let call = "call: .option push\n.option norvc\n.align 4\n slli x0, x0, 0x1f\n ebreak\n srai x0, x0, 7\n.option pop\n ret\n";
    let source = format!(
        ".globl _start\n_start: la sp, top\n li a0, 0x15\n la a1, line\n jal call\n bnez a0, failed\n\
         li a0, 4\n la a1, buffer\n jal call\n li a0, 7\n jal call\n la a1, byte\n sb a0, 0(a1)\n li a0, 3\n jal call\n\
         li a0, 1\n la a1, outside\n jal call\n addi a0, a0, 1\n bnez a0, failed\n\
         li a0, 1\n la a1, open\n jal call\n bltz a0, failed\n la a1, handle\n sd a0, 0(a1)\n\
         li a0, 0xc\n jal call\n la a1, end\n sd a0, 8(a1)\n li a0, 0x20\n jal call\n\
         failed: la a1, end\n li t0, 99\n sd t0, 8(a1)\n li a0, 0x18\n jal call\n\
         {call}.data\n.align 4\nline: .dword buffer, 100\nopen: .dword name, 0, 4\noutside: .dword other, 0, 11\n\
         handle: .dword 0\nend: .dword 0x20026, 0\nname: .asciz \"file\"\nother: .asciz \"../semi.elf\"\n\
         byte: .byte 0\nbuffer: .skip 100\n.align 4\n.skip 256\ntop:\n"
    );
    let elf = assemble(&dir, "semi", &source);
    let files = dir.join("files");
    std::fs::create_dir(&files).unwrap();
    std::fs::write(files.join("file"), [0; 42]).unwrap();
    let files = files.to_str().unwrap();
    for mode in ["functional", "timing"] {
        let args = ["--mode", mode, "--semihosting", files, "--", "one", "two"];
        let out = exec_with(&elf, b"x", &args);
        assert_eq!(out.status.code(), Some(42), "{mode}: {}", stderr(&out));
        assert_eq!(stdout(&out), format!("{} one twox", elf.display()));
    }
    // A pipe is no file of the program's, and is not waited for.
    let pipe = Path::new(files).join("file");
    std::fs::remove_file(&pipe).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert_eq!(exec_with(&elf, b"x", &["--semihosting", files]).status.code(), Some(99));
    let out = exec_with(&elf, b"x", &[]);
    assert_eq!(out.status.code(), Some(99));
    assert!(stderr(&out).contains("--semihosting DIR"), "{}", stderr(&out));
}

/// With `--out`, a bare-metal program gets what a run gets, by HTIF and semihosting alike; the spec that is kept does the same again.
#[test]
fn a_program_is_recorded_as_a_run_is() {
    let dir = scratch("exec-out");
    // Reads a byte, prints it, divides for a while, and ends with 7.
    let body = "la s0, tohost\n la s1, fromhost\n li t0, 1\n slli t0, t0, 56\n sd t0, 0(s0)\n\
                3: ld t1, 0(s1)\n beqz t1, 3b\n sd x0, 0(s1)\n andi t1, t1, 0xff\n\
                li t0, 0x101\n slli t0, t0, 48\n or t0, t0, t1\n sd t0, 0(s0)\n\
                li t2, 3000\n li t3, -1\n divide: divu t4, t3, t2\n addi t2, t2, -1\n bnez t2, divide\n li a0, 7";
    let elf = assemble(&dir, "divide", &htif(body));
    let out = dir.join("out");
    let done =
        exec_with(&elf, b"xyz", &["--out", out.to_str().unwrap(), "--set", "rob.entries=64"]);
    assert_eq!(done.status.code(), Some(7), "{}", stderr(&done));
    assert!(stdout(&done).starts_with('x'), "{}", stdout(&done));
    assert_eq!(std::fs::read_to_string(out.join("console.log")).unwrap(), "x");
    let run = json(&out.join("run.json"));
    assert_eq!(run["core"]["rob"]["entries"], 64);
    let divisions = &run["counters"]["harts"][0]["INST.DIV"];
    assert_eq!(divisions.as_u64(), Some(3000));
    let report = json(&out.join("report.json"));
    let hottest = &report["instructions"][0];
    assert_eq!(hottest["function"], "divide", "{hottest}");
    assert!(out.join("trace.tip").exists() && out.join("report.html").exists());

    // The spec in the folder of the results does that again.
    let spec = out.join("exec.toml");
    let again = tipsim()
        .arg("run")
        .arg(&spec)
        .arg("--set")
        .arg("core.rob.entries=64")
        .arg("--out")
        .arg(&out)
        .output();
    assert_eq!(again.unwrap().status.code(), Some(7));
    assert_eq!(json(&out.join("run.json"))["fingerprint"], run["fingerprint"]);
    // The only program is the one that a change is tried on.
    let tried = tipsim().arg("what-if").arg(&out).args(["--most", "1"]).output().unwrap();
    assert!(tried.status.success(), "{}", stderr(&tried));
    let trial = &json(&out.join("run.json"))["what_if"]["trials"][0];
    assert!(trial["cause"] == "division" && trial["gain"].as_f64() > Some(0.5), "{trial}");
    // Only what the program marks is profiled; it marks nothing.
    let unmarked = assemble(&dir, "unmarked", &htif("li a0, 0"));
    let marked = exec(&unmarked, &["--out", out.to_str().unwrap(), "--marked"]);
    assert_error(&marked, 1, &["region of interest"]);
    let endless = assemble(&dir, "endless", &htif("2: addi t0, t0, 1\n j 2b"));
    let limited = exec(&endless, &["--out", out.to_str().unwrap(), "--max-insts", "100000"]);
    assert_error(&limited, 1, &["not done after 100000 instructions"]);
    let waits = exec_with(&elf, b"", &["--out", out.to_str().unwrap()]);
    let says = "the program waits for console input, which is at its end";
    assert!(waits.status.code() == Some(1) && stderr(&waits).contains(says), "{}", stderr(&waits));
}

#[test]
fn what_a_bare_metal_machine_lacks_is_refused_in_a_spec() {
    let dir = scratch("exec-spec");
    for (keys, says) in [
        (
            "program = \"a.elf\"\npackages = [\"xz-utils\"]",
            "guest.packages: expected it without guest.program",
        ),
        ("arguments = [\"a\"]", "guest.arguments: expected guest.program with it"),
        (
            "program = \"a.elf\"\n[run]\ncommand = \"true\"",
            "run.command: expected none with guest.program",
        ),
        ("program = \"none.elf\"", "none.elf: No such file"),
    ] {
        let spec = dir.join("spec.toml");
        std::fs::write(&spec, format!("[guest]\n{keys}\n")).unwrap();
        let run = tipsim().arg("run").arg(&spec).arg("--out").arg(dir.join("out")).output();
        assert_error(&run.unwrap(), 2, &[says]);
    }
    let elf = assemble(&dir, "ends", &htif("li a0, 0"));
    let out = dir.join("out");
    let out = out.to_str().unwrap();
    assert_error(
        &exec(&elf, &["--out", out, "--mode", "functional"]),
        2,
        &["--mode timing", "found functional"],
    );
    let usage = exec(&elf, &["--out", out, "--stats"]);
    assert!(usage.status.code() == Some(2) && stderr(&usage).contains("'--stats'"));
    assert_error(&exec(&elf, &["--out", out, "--max-insts", "0"]), 2, &["expected at least 1"]);
    // Results are no files of the program.
    for folder in [dir.to_str().unwrap(), out] {
        std::fs::create_dir_all(folder).unwrap();
        let within = exec(&elf, &["--out", out, "--semihosting", folder]);
        assert_error(&within, 2, &["guest.semihosting", "without the results in it"]);
    }
    // Nothing is left of runs that were refused.
    for _ in 0..3 {
        assert_error(&exec(Path::new("/dev/null"), &["--out", out]), 2, &["/dev/null"]);
    }
    let left = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().contains("partial")).collect();
    assert!(left.is_empty(), "{left:?}");
}
