//! The generated files are up to date. `BLESS=1` writes them anew.

use std::path::Path;

use devices::memory_map::{Region, TIP_UNITS};
use tip_device::Placement;

fn golden(file: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let command = "BLESS=1 cargo test -p tip-device";
    register_table::is_generated(&path, expected, command).unwrap();
}

/// The documentation, with the units where tipsim's machine has them.
fn documentation() -> String {
    let Region { base, size, first_source, .. } = TIP_UNITS;
    tip_device::markdown(Placement { base, bytes: size, irq: first_source.unwrap() })
}

#[test]
fn header_matches_table() {
    golden("include/tip_regs.h", &tip_device::c_header());
}

#[test]
fn documentation_matches_table() {
    golden("REGISTERS.md", &documentation());
}

#[test]
fn offsets_are_aligned_distinct_and_found() {
    let mut last = None;
    for row in tip_device::regs::TABLE {
        assert_eq!(row.offset % 8, 0, "{}", row.name);
        assert!(last < Some(row.offset), "{}", row.name);
        assert_eq!(tip_device::Reg::at(row.offset), Some(row.reg));
        last = Some(row.offset);
    }
    assert_eq!(tip_device::Reg::at(4), None);
}

/// The words of a sample in memory are where the documentation says, and have what the registers of their names have.
#[test]
fn a_sample_in_memory_is_as_documented() {
    use tip_device::{Reg, SAMPLE_BYTES, SAMPLE_WORDS, Sample, TipUnit, control};

    let sample = Sample { cycle: 1, flags: 2, address: [3, 4, 5, 6], weight: 7 };
    let bytes = sample.bytes(8);
    assert_eq!(bytes.len() as u64, SAMPLE_BYTES);
    let word = |at: usize| u64::from_le_bytes(bytes[8 * at..][..8].try_into().unwrap());
    let document = documentation();
    for (at, (name, _)) in SAMPLE_WORDS.iter().enumerate() {
        let expected = match *name {
            "CYCLE" => sample.cycle,
            "FLAGS" => sample.flags,
            "WEIGHT" => sample.weight,
            "TIME" => 8,
            address => {
                let number = address.strip_prefix("ADDRESS").unwrap();
                sample.address[number.parse::<usize>().unwrap()]
            }
        };
        assert_eq!(word(at), expected, "{name}");
        assert!(document.contains(&format!("| 0x{:02x} | `{name}` |", 8 * at)), "{name}");
        let is_register = tip_device::regs::TABLE.iter().any(|row| row.name == *name);
        assert_eq!(is_register, *name != "TIME", "{name}");
    }
    // What the document says of registers that cannot be read or written.
    let mut unit = TipUnit::new(4, 1_000_000);
    for row in tip_device::regs::TABLE {
        match row.access {
            "RO" => {
                let before = unit.read(row.reg, 0);
                unit.write(row.reg, !0, 0);
                assert_eq!(unit.read(row.reg, 0), before, "{}", row.name);
            }
            "WO" => assert_eq!(unit.read(row.reg, 0), 0, "{}", row.name),
            _ => {}
        }
    }
    assert_eq!(unit.read(Reg::Control, 0) & control::ENABLE, 0);
}
