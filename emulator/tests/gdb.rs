//! GDB's server, asked by its protocol.

use crate::common::debugger::{Debugger, start};
use crate::common::{assemble, htif, scratch, tipsim};

/// GDB's number of the program counter.
const PC: u16 = 32;

#[test]
fn a_debugger_steps_breaks_and_writes_registers() {
    let dir = scratch("gdb-one");
    let body = "li a0, 5\n li a1, 3\n2: addi a1, a1, -1\n bnez a1, 2b\n addi a0, a0, -5";
    let elf = assemble(&dir, "debugged", &htif(body));
    for mode in ["functional", "timing"] {
        let (mut child, port) =
            start(tipsim().arg("exec").arg(&elf).args(["--mode", mode, "--gdb", "0"]));
        let mut gdb = Debugger::connect(port);
        let (a0, a1, pc) = (10, 11, 32);
        for _ in 0..2 {
            let stop = gdb.ask("vCont;s:1");
            assert!(stop[1..].starts_with("05"), "{stop}");
        }
        assert_eq!((gdb.register(a0), gdb.register(a1)), (5, 3));
        let (csr, mtvec, fcsr, mcycle, mhartid) = (65, 0x305, 3, 0xb00, 0xf14);
        assert_eq!(gdb.ask(&format!("P{:x}=0100ff0000000000", csr + mtvec)), "OK");
        assert_eq!(gdb.register(csr + mtvec), 0xff_0001);
        assert_eq!((gdb.register(csr + fcsr), gdb.register(csr + mhartid)), (0, 0));
        assert_eq!(gdb.ask(&format!("p{:x}", csr + 4096)), "03", "machine mode");
        for refused in
            [format!("p{:x}", csr + mcycle), format!("P{:x}=0000000000000000", csr + mhartid)]
        {
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

/// The first hart makes a call and waits for the last one's store; the others wait for ever.
const SEVERAL: &str = "\
    la t0, handler\n csrw mtvec, t0\n bnez a0, other\n\
    .globl call\ncall: ecall\n nop\n la t1, shared\n\
    wait: ld t2, 0(t1)\n beqz t2, wait\n li a0, 3\n j 9f\n\
    other: li t3, 2\n bne a0, t3, idle\n li t4, 50000\n1: addi t4, t4, -1\n bnez t4, 1b\n la t1, shared\n li t4, 5\n\
    .globl store\nstore: sd t4, 0(t1)\nidle: j idle\n\
    .align 2\n.globl handler\nhandler: csrr t5, mepc\n addi t5, t5, 4\n csrw mepc, t5\n\
    .globl back\nback: mret\n\
    .align 3\n.globl shared\nshared: .dword 0\n9:";

/// Addresses of symbols of a program.
fn symbols<const N: usize>(elf: &std::path::Path, names: [&str; N]) -> [u64; N] {
    let text = crate::common::succeed(std::process::Command::new("riscv64-linux-gnu-nm").arg(elf));
    names.map(|name| {
        let line = text.lines().find(|line| line.ends_with(&format!(" {name}")));
        u64::from_str_radix(line.unwrap().split(' ').next().unwrap(), 16).unwrap()
    })
}

#[test]
fn harts_are_threads_and_steps_go_where_the_hart_goes() {
    let dir = scratch("gdb-threads");
    let elf = assemble(&dir, "several", &htif(SEVERAL));
    let [call, store, handler, back, shared] =
        symbols(&elf, ["call", "store", "handler", "back", "shared"]);
    for mode in ["functional", "timing"] {
        let mut exec = tipsim();
        exec.arg("exec").arg(&elf).args(["--mode", mode, "--harts", "3", "--gdb", "0"]);
        let (mut child, port) = start(&mut exec);
        let mut gdb = Debugger::connect(port);
        let threads = gdb.ask("qfThreadInfo");
        assert_eq!(threads.matches(',').count(), 2, "{threads}");
        let mhartid = 65 + 0xf14;
        assert_eq!([1, 2, 3].map(|thread| gdb.of_thread(thread, mhartid)), [0, 1, 2]);

        // The others stand still while one steps.
        while gdb.of_thread(1, PC) != call {
            let stop = gdb.ask("vCont;s:1");
            assert!(stop.starts_with("T05") && stop.contains("thread:"), "{stop}");
        }
        let start = gdb.of_thread(2, PC);
        assert_eq!(gdb.of_thread(3, PC), start, "{mode}");
        // Into the handler, and out of it.
        gdb.ask("vCont;s:1");
        assert_eq!(gdb.of_thread(1, PC), handler, "{mode}: stepi on ecall");
        while gdb.of_thread(1, PC) != back {
            gdb.ask("vCont;s:1");
        }
        gdb.ask("vCont;s:1");
        assert_eq!(gdb.of_thread(1, PC), call + 4, "{mode}: stepi on mret");

        assert_eq!(gdb.ask(&format!("Z0,{store:x},2")), "OK");
        let stop = gdb.ask("vCont;c");
        assert!(stop.contains("swbreak"), "{stop}");
        assert_eq!(gdb.of_thread(3, PC), store, "{mode}: any hart meets a breakpoint");
        assert_eq!(gdb.ask(&format!("z0,{store:x},2")), "OK");
        assert_eq!(gdb.ask(&format!("Z2,{shared:x},8")), "OK");
        let stop = gdb.ask("vCont;c");
        assert!(stop.contains("watch") && stop.contains("thread:"), "{stop}");
        assert_eq!(gdb.ask(&format!("z2,{shared:x},8")), "OK");
        assert_eq!(gdb.ask("vCont;c"), "W03");
        assert_eq!(child.wait().unwrap().code(), Some(3), "{mode}");
    }
}

#[test]
fn monitor_commands_and_one_debugger_after_another() {
    let dir = scratch("gdb-monitor");
    let body = "la t0, word\n ld t1, 0(t0)\n li t2, 1\n sd t2, 0(t0)\n\
                .globl turn\nturn: mv a0, t1\n bnez a1, 9f\n j turn\n\
                .align 3\n.globl word\nword: .dword 0\n9:";
    let elf = assemble(&dir, "monitor", &htif(body));
    let [entry, turn, word] = symbols(&elf, ["_start", "turn", "word"]);
    for mode in ["functional", "timing"] {
        let mut exec = tipsim();
        exec.arg("exec").arg(&elf).args(["--mode", mode, "--gdb", "0"]);
        let (mut child, port) = start(&mut exec);
        let mut gdb = Debugger::connect(port);
        let help = gdb.monitor("help");
        for command in ["info", "cycle", "region", "reset", "quit"] {
            assert!(help.contains(command), "{help}");
        }
        assert!(gdb.monitor("info").contains("hart 0, machine mode, pc 0x80000000"));
        assert!(gdb.monitor("cycle").contains("hart 0: 0 cycles, 0 instructions"));
        assert!(gdb.monitor("regoin").contains("regoin: expected help"));
        let region = gdb.monitor("region start");
        assert_eq!(region.contains("starts at cycle"), mode == "timing", "{region}");
        // What was written and executed is undone.
        assert_eq!(gdb.ask(&format!("Z0,{turn:x},2")), "OK");
        for _ in 0..2 {
            gdb.ask("vCont;c");
            assert_eq!(gdb.register(PC), turn);
            assert_eq!(gdb.ask(&format!("m{word:x},8")), "0100000000000000");
            assert!(gdb.monitor("reset").contains("first instruction"));
            assert_eq!(gdb.register(PC), entry);
            assert_eq!(gdb.ask(&format!("m{word:x},8")), "0000000000000000");
        }
        gdb.ask("vCont;c");

        // Another debugger has to wait, and is told so.
        let refused = Debugger::connect(port).ask("qSupported");
        assert!(refused.starts_with("E.tipsim: another debugger"), "{refused}");
        assert_eq!(gdb.ask("D"), "OK");
        drop(gdb);
        // The debugger before may not be quite gone.
        let mut next = loop {
            let mut next = Debugger::connect(port);
            if !next.ask("?").starts_with('E') {
                break next;
            }
        };
        assert_eq!(next.ask("Pb=0100000000000000"), "OK", "a1 ends the loop");
        // The second debugger goes without a word.
        drop(next);
        assert_eq!(child.wait().unwrap().code(), Some(0), "{mode}");
    }
    let mut exec = tipsim();
    exec.arg("exec").arg(&elf).args(["--gdb", "0"]);
    let (mut child, port) = start(&mut exec);
    Debugger::connect(port).monitor("quit");
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn an_interrupt_stops_all_harts_and_a_debugger_may_be_killed() {
    let dir = scratch("gdb-interrupt");
    let elf = assemble(&dir, "interrupt", &htif("2: j 2b"));
    for mode in ["functional", "timing"] {
        let mut exec = tipsim();
        exec.arg("exec")
            .arg(&elf)
            .args(["--mode", mode, "--harts", "3", "--gdb", "0"])
            .args(["--max-insts", "1000000000000"]);
        let (mut child, port) = start(&mut exec);
        for _ in 0..2 {
            let mut gdb = Debugger::next(port);
            gdb.go_on();
            let stop = gdb.interrupt();
            assert!(stop.starts_with("T02"), "{mode}: {stop}");
            for thread in 1..=3 {
                assert!(gdb.of_thread(thread, PC) >= 0x8000_0000);
                assert!(gdb.ask(&format!("vCont;s:{thread}")).starts_with("T05"));
            }
            // Killed while the machine runs: it says nothing.
            gdb.go_on();
        }
        let mut gdb = Debugger::next(port);
        gdb.monitor("quit");
        assert_eq!(child.wait().unwrap().code(), Some(1));
    }
}

#[test]
fn a_run_of_a_spec_is_debugged() {
    let dir = scratch("gdb-run");
    // Switches the machine off by the test device.
    let body = ".globl _start\n_start: li a0, 5\n li t0, 0x100000\n li t1, 0x5555\n sw t1, 0(t0)\n1: j 1b\n";
    let elf = assemble(&dir, "off", body);
    let spec = dir.join("spec.toml");
    let elf = elf.display();
    std::fs::write(
        &spec,
        format!("[guest]\nfirmware = \"{elf}\"\nkernel = \"{}\"\n", spec.display()),
    )
    .unwrap();
    let mut run = tipsim();
    run.arg("run").arg(&spec).arg("--out").arg(dir.join("out"));
    run.args(["--gdb", "0"]).stdout(std::process::Stdio::null());
    let (mut child, port) = start(&mut run);
    let mut gdb = Debugger::connect(port);
    gdb.ask("vCont;s:1");
    assert_eq!(gdb.register(10), 5);
    assert!(gdb.monitor("reset").contains("cannot begin anew"));
    assert_eq!(gdb.ask("vCont;c"), "W00");
    child.wait().unwrap();
    assert!(dir.join("out/run.json").exists());
}
