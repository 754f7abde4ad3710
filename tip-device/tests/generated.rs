//! The generated files are up to date. `BLESS=1` writes them anew.

use std::path::Path;

fn golden(file: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let command = "BLESS=1 cargo test -p tip-device";
    register_table::is_generated(&path, expected, command).unwrap();
}

#[test]
fn header_matches_table() {
    golden("include/tip_regs.h", &tip_device::c_header());
}

#[test]
fn documentation_matches_table() {
    golden("REGISTERS.md", &tip_device::markdown());
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
