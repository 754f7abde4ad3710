//! Bare-metal programs under HTIF, as a test suite would run them.

mod common;

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::Output;

use common::{assemble, assert_error, scratch, stderr, stdout, tipsim};

/// A program with the HTIF symbols around `body`, which ends with an exit code in a0.
fn htif(body: &str) -> String {
    format!(
        ".globl _start\n_start:\n{body}\n  slli a0, a0, 1\n  ori a0, a0, 1\n  la t0, tohost\n\
         1: sd a0, 0(t0)\n  j 1b\n\
         .section .tohost, \"aw\", @progbits\n.align 6\n.globl tohost\ntohost: .dword 0\n\
         .align 6\n.globl fromhost\nfromhost: .dword 0\n\
         .data\n.align 4\n.globl begin_signature\nbegin_signature:\n.word 0x11223344, 0x55667788\n\
         .dword 0\n.globl end_signature\nend_signature:\n"
    )
}

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

/// As on Spike, whose reset opens the first entry of the PMP.
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
        let set: Vec<_> = { set.iter() }.flat_map(|set| ["--set", set]).collect();
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
    assert_error(&out, 1, &["1000 instructions"]);
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
    assert!(
        (64..=68).contains(&dependent),
        "1024 dependent adds: {} cycles",
        dependent * 16
    );
    assert!(
        (16..=20).contains(&independent),
        "1024 adds, 4-wide: {} cycles",
        independent * 16
    );
}

/// GDB's end of its remote protocol.
struct Debugger(BufReader<std::net::TcpStream>);

impl Debugger {
    /// Sends a packet; the answer, without what the protocol puts around it.
    fn ask(&mut self, packet: &str) -> String {
        let sum = packet.bytes().fold(0u8, u8::wrapping_add);
        write!(self.0.get_mut(), "${packet}#{sum:02x}").unwrap();
        let mut answer = Vec::new();
        self.0.skip_until(b'$').unwrap();
        self.0.read_until(b'#', &mut answer).unwrap();
        self.0.read_exact(&mut [0; 2]).unwrap();
        write!(self.0.get_mut(), "+").unwrap();
        answer.pop();
        // Runs of a character are sent as `c*n`: as many more as the code of n is above 29.
        let mut text: Vec<u8> = Vec::new();
        let mut bytes = answer.into_iter();
        while let Some(byte) = bytes.next() {
            match byte {
                b'*' => {
                    let more = usize::from(bytes.next().unwrap() - 29);
                    text.resize(text.len() + more, text[text.len() - 1]);
                }
                byte => text.push(byte),
            }
        }
        String::from_utf8(text).unwrap()
    }

    /// A register by GDB's number.
    fn register(&mut self, number: u16) -> u64 {
        let hex = self.ask(&format!("p{number:x}"));
        u64::from_str_radix(&hex, 16).expect(&hex).swap_bytes()
    }
}

#[test]
fn a_debugger_steps_breaks_and_writes_registers() {
    let dir = scratch("exec-gdb");
    let body = "li a0, 5\n li a1, 3\n2: addi a1, a1, -1\n bnez a1, 2b\n addi a0, a0, -5";
    let elf = assemble(&dir, "debugged", &htif(body));
    for mode in ["functional", "timing"] {
        let mut child = tipsim()
            .arg("exec")
            .arg(&elf)
            .args(["--mode", mode, "--gdb", "0"])
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let port = line.trim().rsplit(':').next().unwrap().parse().unwrap();
        let stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let mut gdb = Debugger(BufReader::new(stream));
        let (a0, a1, pc) = (10, 11, 32);
        for _ in 0..2 {
            let stop = gdb.ask("vCont;s:1");
            assert!(stop[1..].starts_with("05"), "{stop}");
        }
        assert_eq!((gdb.register(a0), gdb.register(a1)), (5, 3));
        let (csr, mtvec, fcsr, mcycle, mhartid) = (65, 0x305, 3, 0xb00, 0xf14);
        assert_eq!(
            gdb.ask(&format!("P{:x}=0100ff0000000000", csr + mtvec)),
            "OK"
        );
        assert_eq!(gdb.register(csr + mtvec), 0xff_0001);
        assert_eq!(
            (gdb.register(csr + fcsr), gdb.register(csr + mhartid)),
            (0, 0)
        );
        assert_eq!(gdb.ask(&format!("p{:x}", csr + 4096)), "03", "machine mode");
        for refused in [
            format!("p{:x}", csr + mcycle),
            format!("P{:x}=0000000000000000", csr + mhartid),
        ] {
            assert!(gdb.ask(&refused).starts_with('E'), "{refused}");
        }
        let loop_start = gdb.register(pc);
        assert_eq!(gdb.ask(&format!("Z0,{loop_start:x},2")), "OK");
        let stop = gdb.ask("vCont;c");
        assert!(stop.contains("swbreak"), "{stop}");
        assert_eq!((gdb.register(pc), gdb.register(a1)), (loop_start, 2));
        assert_eq!(gdb.ask(&format!("z0,{loop_start:x},2")), "OK");
        assert_eq!(gdb.ask("Pa=0c00000000000000"), "OK");
        assert_eq!(gdb.ask("vCont;c"), "W07");
        assert_eq!(child.wait().unwrap().code(), Some(7), "{mode}");
    }
}
