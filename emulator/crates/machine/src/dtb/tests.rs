use std::io::Write;
use std::process::{Command, Stdio};

use devices::virtio::{Latency, Rng};
use devices::{Capture, Input, Output};

use super::*;
use crate::Board;

fn board() -> Board {
    let mut board = Board::new(16 << 20, 2, Clock::default(), 0).unwrap();
    let output = Output::new(Box::new(Capture::default()));
    board.add_uart(output, Some(Input::default())).unwrap();
    board.add_virtio(Box::new(Rng::new(0)), Latency::BUFFER).unwrap();
    board
}

fn tree() -> DeviceTree {
    let isa = Isa::new(&["i", "m", "a", "f", "d", "c", "zicsr", "sscofpmf"], MmuType::Sv48);
    let mut tree = board().device_tree(isa, "console=ttyS0", Some(0x8100_0000..0x8100_1000));
    let cache = Cache { size: 32 << 10, sets: 64, line: 64 };
    tree.caches = Some(Caches { l1i: cache, l1d: cache, shared: vec![cache, cache] });
    tree.devices.push(DeviceNode::new("tip", &["tipsim,tip"], 0x1100_0000, 0x1000, Some(12)));
    tree
}

/// The text of a tree, by the device-tree compiler if it is installed.
fn decompile(blob: &[u8]) -> Option<String> {
    let mut dtc = Command::new("dtc")
        .args(["-q", "-I", "dtb", "-O", "dts", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    dtc.stdin.take()?.write_all(blob).ok()?;
    let output = dtc.wait_with_output().ok()?;
    assert!(output.status.success());
    String::from_utf8(output.stdout).ok()
}

#[test]
fn tree_is_deterministic() {
    assert_eq!(tree().build().unwrap(), tree().build().unwrap());
    let other = DeviceTree { seed: 1, ..tree() };
    assert_ne!(other.build().unwrap(), tree().build().unwrap());
}

#[test]
fn isa_string() {
    assert_eq!(tree().isa.string(), "rv64imafdc_zicsr_sscofpmf");
}

/// What both levels have is announced by both names, in `riscv,isa-extensions` and in `riscv,isa`.
#[test]
fn extensions_are_announced_if_they_are_there() {
    let counters = ["smcdeleg", "ssccfg"];
    for deleg in [false, true] {
        let set = Extensions::ALL.with(Extension::Smcdeleg, deleg);
        let isa = Isa::rv64gc(set);
        for name in counters {
            assert_eq!(isa.extensions.iter().any(|e| e == name), deleg, "{name}");
            assert_eq!(isa.string().split('_').any(|e| e == name), deleg, "{name}");
        }
        for name in ["smcsrind", "sscsrind"] {
            assert!(isa.extensions.iter().any(|e| e == name), "{name}");
        }
    }
}

/// `mmu-type` is the most that the hart has, which is no name in `riscv,isa-extensions`.
#[test]
fn levels_of_page_tables_are_announced() {
    for (present, expected) in [(false, MmuType::Sv39), (true, MmuType::Sv48)] {
        let isa = Isa::rv64gc(Extensions::ALL.with(Extension::Sv48, present));
        assert_eq!(isa.mmu, expected);
        assert!(!isa.string().contains("sv48"), "{}", isa.string());
    }
}

#[test]
fn nul_in_a_string_is_an_error() {
    let bad = DeviceTree { bootargs: "a\0b".to_owned(), ..tree() };
    assert!(bad.build().is_err());
}

#[test]
fn compiler_reads_what_was_meant() {
    let Some(text) = decompile(&tree().build().unwrap()) else {
        return;
    };
    for expected in [
        "cpu@1 {",
        r#"riscv,isa-extensions = "i\0m\0a\0f\0d\0c\0zicsr\0sscofpmf";"#,
        "timebase-frequency = <0x989680>;",
        "interrupts-extended = <0x01 0x0b 0x01 0x09 0x02 0x0b 0x02 0x09>;",
        "stdout-path = \"/soc/serial@10000000\";",
        "linux,initrd-start = <0x00 0x81000000>;",
        "reg = <0x00 0x80000000 0x00 0x1000000>;",
        "tip@11000000 {",
        // A code that can have no condition, and one that can.
        "riscv,raw-event-to-mhpmcounters = <0x00 0x01 0xffffffff 0xffffffff 0xfffffff8 \
         0x00 0x02 0xffffffff 0xffffffff 0xfffffff8 0x00 0x02 0xfffffc00 0xffffffff 0xfffffff8 ",
        "compatible = \"syscon-poweroff\";",
        "next-level-cache = <0x06>;",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
}
