//! The generated files are up to date. `BLESS=1` writes them anew.

use std::path::Path;

use uncore_pmu::{Event, Reg, Unit, regs};

fn golden(file: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let command = "BLESS=1 cargo test -p uncore-pmu";
    register_table::is_generated(&path, expected, command).unwrap();
}

#[test]
fn header_matches_tables() {
    golden("include/tipsim_uncore_regs.h", &uncore_pmu::c_header());
}

#[test]
fn documentation_matches_tables() {
    golden("REGISTERS.md", &uncore_pmu::markdown());
}

#[test]
fn registers_do_not_overlap() {
    let mut end = 0;
    for row in regs::TABLE {
        assert!(row.offset >= end && row.offset % 8 == 0, "{}", row.name);
        end = row.offset + 8 * row.count;
    }
    assert_eq!(register_table::find(regs::TABLE, 0xb8), Some((Reg::Count, 7)));
    assert_eq!(register_table::find(regs::TABLE, end), None);
    assert_eq!(register_table::find(regs::TABLE, 4), None);
}

#[test]
fn events_are_found_by_their_numbers() {
    for row in Event::TABLE {
        assert_eq!(row.event.row().name, row.name);
        assert_eq!(Event::of(row.unit, row.number), Some(row.event));
        assert!((1..64).contains(&row.number));
    }
    assert_eq!(Event::of(Unit::Llc, 0), None);
}
