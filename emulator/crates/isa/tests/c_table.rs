//! The C table is up to date (`BLESS=1` rewrites it), and the C disassembler that uses it prints what this crate prints.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use isa::{Op, decode, disasm};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../guest-sw/perf")
}

#[test]
fn header_matches_table() {
    let path = folder().join("riscv-insns.h");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, isa::c_table()).expect("write the header");
    }
    assert!(
        std::fs::read_to_string(&path).expect("the header") == isa::c_table(),
        "riscv-insns.h is stale: run BLESS=1 cargo test -p isa --test c_table"
    );
}

/// A C program that reads encodings in hex and prints their disassembly.
const PRINTER_SOURCE: &str = r#"
#include "riscv-disasm.h"
int main(void) {
    unsigned int word;
    char mnemonic[16], operands[64];
    while (scanf("%x", &word) == 1) {
        if (riscv_disasm(word, mnemonic, operands)) printf("%s%s%s\n", mnemonic, *operands ? " " : "", operands);
        else puts("unknown");
    }
    return 0;
}
"#;

#[test]
fn prints_what_this_crate_prints() {
    let words = words();
    let mut kinds = BTreeSet::new();
    for (word, found) in words.iter().zip(printed(&words)) {
        let inst = decode(*word);
        if inst.op == Op::Illegal {
            continue;
        }
        let expected = disasm(&inst, 0).replace(',', ", ");
        assert_eq!(found, expected, "{word:#010x}");
        kinds.insert(inst.op as u16);
    }
    for op in Op::ALL.iter().filter(|op| !op.extensions().is_empty()) {
        assert!(kinds.contains(&(*op as u16)), "{op:?} was not tried");
    }
    // Encodings of RV64GC are unknown to the table.
    assert_eq!(printed(&[0x0000_0013, 0x0000_852e, 0]), ["unknown"; 3]);
}

/// Every instruction of an extension with many values of its fields, and every one of Zcb.
fn words() -> Vec<u32> {
    let zcb = (0x8000..0xa000u32).filter(|raw| {
        let arithmetic =
            raw & 0xfc43 == 0x9c41 && !matches!(raw >> 2 & 15, 14 | 15) && raw & 0x60 != 0;
        raw & 3 == 0 || arithmetic && raw & 0x40 != 0
    });
    let mut words: Vec<u32> = zcb.collect();
    for op in Op::ALL.iter().filter(|op| !op.extensions().is_empty()) {
        let (value, mask) = op.encoding();
        let mut fields = 0x9e37_79b9u32;
        for _ in 0..200 {
            fields = fields.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            words.push(fields.rotate_left(13) & !mask | value);
            words.push(fields.rotate_left(13) & !mask & !(31 << 20) | value);
        }
    }
    words
}

fn printed(words: &[u32]) -> Vec<String> {
    let scratch = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let name = format!("c_table_{}", words.len());
    let (source, program) = (scratch.join(format!("{name}.c")), scratch.join(name));
    std::fs::write(&source, PRINTER_SOURCE).expect("source");
    let status = Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", "-O1", "-I"])
        .args([&folder(), Path::new("-o"), &program, &source])
        .status()
        .expect("cc");
    assert!(status.success());
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the printer");
    let input: String = words.iter().map(|word| format!("{word:x}\n")).collect();
    let mut stdin = child.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("output");
    writer.join().expect("a writer").expect("input");
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}
