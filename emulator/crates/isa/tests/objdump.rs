//! Decoding and disassembly against GNU objdump, on encodings of every table row, random words
//! and compressed encodings. `golden/objdump.txt` is objdump's own output for a sample;
//! the other test asks objdump itself about far more (`scripts/test --quick` leaves it out).
//!
//! To renew the golden file: `BLESS=1 cargo test -p isa --test objdump`
//! (needs Debian's binutils-riscv64-linux-gnu; 2.40 made the present one, up to 2.44 agree).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use isa::{DecodedInst, Extension, InstClass, Op, csr_name, decode, disasm};

/// What binutils 2.40 know of our extensions.
const ARCH: &str = "rv64gc_zfh_zba_zbb_zbc_zbs_zicbom_zicboz_zawrs_svinval";

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/objdump.txt");

#[test]
fn agrees_with_the_golden_file() {
    check(&std::fs::read_to_string(GOLDEN).expect("golden file"));
}

#[test]
fn agrees_with_objdump() {
    let compressed: Vec<u32> = (0..=0xffff).filter(|raw| raw & 3 != 3).collect();
    check(&objdump(&compressed));
    let mut random = Random(1);
    let mut words = samples(&mut random, 500);
    words.extend((0..250_000).map(|_| random.word()));
    check(&objdump(&words));

    if std::env::var_os("BLESS").is_some() {
        let mut words = samples(&mut random, 10);
        words.extend((0..200).map(|_| random.word()));
        let sample: BTreeSet<u32> =
            (0..1500).map(|_| compressed[random.next() as usize % compressed.len()]).collect();
        words.extend(sample);
        std::fs::write(GOLDEN, objdump(&words)).expect("golden file");
    }
}

/// Encodings of every 32-bit instruction: random fields, with registers and immediates often
/// at the values that have an alias.
fn samples(random: &mut Random, each: usize) -> Vec<u32> {
    let mut words = Vec::new();
    for &op in &Op::ALL[1..] {
        let (value, mask) = op.encoding();
        for _ in 0..each {
            let mut fields = random.next();
            for (low, width) in [(7, 5), (15, 5), (20, 5), (25, 7), (20, 12)] {
                let field = ((1 << width) - 1) << low;
                match random.next() % 16 {
                    0 | 1 => fields &= !field,
                    2 => fields |= field,
                    3 => fields = fields & !field | 1 << low,
                    4 if low == 20 => fields = fields & !(31 << 20) | (fields >> 15 & 31) << 20,
                    _ => {}
                }
            }
            words.push(fields & !mask | value);
        }
    }
    words
}

/// Lines of "address, encoding in hex digits, text", separated by tabs. Encodings keep their
/// length: 4 or 8 digits.
fn objdump(encodings: &[u32]) -> String {
    let base = std::env::temp_dir().join(format!("isa-objdump-{}", std::process::id()));
    let (source, object) = (base.with_extension("s"), base.with_extension("o"));
    let text: String = encodings.iter().map(|raw| format!(".insn {raw:#x}\n")).collect();
    std::fs::write(&source, text).expect("temporary file");
    let run = |command: &mut Command| {
        let output = command
            .output()
            .expect("riscv64-linux-gnu binutils: run scripts/test, which installs them");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    run(Command::new("riscv64-linux-gnu-as").arg(format!("-march={ARCH}")).args([
        &source as &Path,
        Path::new("-o"),
        &object,
    ]));
    let listing = run(Command::new("riscv64-linux-gnu-objdump").args(["-z", "-d"]).arg(&object));
    for file in [&source, &object] {
        std::fs::remove_file(file).expect("temporary file");
    }
    let mut lines = String::new();
    for line in listing.lines() {
        let mut columns = line.trim().splitn(3, '\t');
        if let (Some(pc), Some(raw), Some(text)) = (columns.next(), columns.next(), columns.next())
        {
            let pc = pc.trim_end_matches(':');
            let text = without_symbols(&text.replace('\t', " "));
            writeln!(lines, "{pc}\t{}\t{}", raw.trim(), old_data_directive(text)).unwrap();
        }
    }
    assert_eq!(lines.lines().count(), encodings.len());
    lines
}

/// Rewrites data (a reserved encoding) as binutils before 2.42 print it: `.insn 2, 0x000c` → `.2byte 0xc`.
fn old_data_directive(text: String) -> String {
    let data = text
        .strip_prefix(".insn ")
        .and_then(|data| data.split_once(", 0x"))
        .and_then(|(len, raw)| Some((len, u32::from_str_radix(raw, 16).ok()?)));
    match data {
        Some((len, raw)) => format!(".{len}byte {raw:#x}"),
        None => text,
    }
}

/// `j 1f4 <.text+0x1f4>` → `j 0x1f4`.
fn without_symbols(text: &str) -> String {
    let Some((before, _)) = text.split_once(" <") else {
        return text.to_owned();
    };
    match before.rfind([' ', ',']) {
        Some(at) if !before.contains('#') => {
            format!("{}0x{}", &before[..=at], &before[at + 1..])
        }
        _ => before.to_owned(),
    }
}

fn check(listing: &str) {
    let mut failures = String::new();
    let mut count = 0;
    for line in listing.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [pc, raw, expected] = columns[..] else { panic!("malformed line {line:?}") };
        let pc = u64::from_str_radix(pc, 16).expect("address");
        let inst = decode(u32::from_str_radix(raw, 16).expect("encoding"));
        assert_eq!(usize::from(inst.len), raw.len() / 2);
        assert_eq!(inst.op == Op::Illegal, inst.class == InstClass::Illegal);
        let ours = disasm(&inst, pc);
        if ours != expected && !is_known_difference(&inst, &ours, expected) {
            writeln!(failures, "{raw}: ours {ours:?}, objdump {expected:?}").unwrap();
        }
        count += 1;
    }
    assert!(failures.is_empty(), "of {count} encodings:\n{failures}");
}

/// True for known differences in which our disassembly is right.
fn is_known_difference(inst: &DecodedInst, ours: &str, objdump: &str) -> bool {
    // Addresses that objdump computes from earlier `lui` and `auipc` instructions.
    let objdump = objdump.split(" # ").next().unwrap_or(objdump);
    if ours == objdump {
        return true;
    }
    let unknown = [Extension::Zicond, Extension::Zacas, Extension::Zcb, Extension::Zfa];
    if objdump.starts_with('.') && inst.extensions().iter().any(|e| unknown.contains(e)) {
        return true;
    }
    let illegal = inst.op == Op::Illegal;
    let objdump_illegal = objdump.starts_with('.');
    // Reserved rounding modes.
    if objdump.ends_with("unknown") && !objdump.starts_with("fence") {
        return illegal;
    }
    if inst.len == 2 {
        return compressed_difference(inst, objdump);
    }
    match inst.op {
        // What stood here in an early draft of the privileged specification.
        Op::Sctrclr => objdump == "sfence.vm",
        // objdump requires zeros in fields that the specification says to ignore, and rne where the conversion is exact
        // under every mode.
        Op::Fence | Op::FenceI if objdump_illegal => true,
        Op::FcvtDW | Op::FcvtDWu | Op::FcvtDS | Op::FcvtSH | Op::FcvtDH if objdump_illegal => true,
        // objdump names CSRs that we do not, and the reverse.
        _ if inst.class == InstClass::Csr && csr_name(inst.csr()).is_none() => {
            ours.contains(&format!("{:#x}", inst.csr()))
        }
        // binutils 2.40 lacks Smcntrpmf, Smcdeleg, Smctr, and of Smcsrind what the AIA does not have.
        _ if matches!(inst.csr(), 0x120 | 0x14e | 0x14f | 0x15f | 0x34e | 0x321 | 0x322 | 0x152..=0x157 | 0x352..=0x357)
            && inst.class == InstClass::Csr =>
        {
            objdump.contains(&format!("{:#x}", inst.csr()))
        }
        // objdump lacks this alias, but has those of the related instructions.
        Op::Csrrwi if objdump.starts_with("fs") && objdump.contains(" zero,") => true,
        // objdump knows extensions that we do not implement.
        Op::Illegal => !objdump_illegal && !is_implemented(objdump),
        // objdump writes `add` for `addi` and the like.
        _ => with_immediate_suffix(objdump).as_deref() == Some(ours),
    }
}

/// Compressed encodings where objdump is lenient, or does not alias a hint.
fn compressed_difference(inst: &DecodedInst, objdump: &str) -> bool {
    match inst.op {
        Op::Illegal => objdump == "addi sp,sp,0" || objdump == "add sp,sp,0",
        // Hints: the destination is x0, or the shift amount 0.
        _ if objdump.starts_with("c.") => inst.rd == 0 || inst.imm == 0,
        Op::Addi if inst.rd == inst.rs1 && inst.imm == 0 => objdump.ends_with(",0"),
        _ => with_immediate_suffix(objdump).as_deref() == Some(&disasm(inst, 0)),
    }
}

/// True if the disassembly starts with a mnemonic that we implement.
fn is_implemented(text: &str) -> bool {
    let mnemonic = text.split(' ').next().unwrap_or(text);
    Op::ALL.iter().any(|op| op.mnemonic() == mnemonic)
}

/// `add a0,a1,4` → `addi a0,a1,4`, `sllw …,0x1` → `slliw …,0x1`, `csrw fcsr,3` → `csrwi fcsr,3`.
fn with_immediate_suffix(text: &str) -> Option<String> {
    let (mnemonic, operands) = text.split_once(' ')?;
    let last = operands.rsplit(',').next()?;
    if !last.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return None;
    }
    let mnemonic = match mnemonic.strip_suffix('w') {
        Some(stem) if !stem.starts_with("csr") && !stem.starts_with("fs") => format!("{stem}iw"),
        _ => format!("{mnemonic}i"),
    };
    Some(format!("{mnemonic} {operands}"))
}

/// SplitMix64: enough for test inputs, the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) as u32
    }

    /// A 32-bit encoding: not compressed, and not of the longer formats either.
    fn word(&mut self) -> u32 {
        let raw = self.next() | 3;
        if raw & 0x1c == 0x1c { raw & !0x10 } else { raw }
    }
}
