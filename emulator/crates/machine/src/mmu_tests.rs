use super::*;
use std::collections::HashMap;

fn table(entries: &[(u64, u64)]) -> impl FnMut(u64) -> Option<u64> + use<> {
    let map: HashMap<u64, u64> = entries.iter().copied().collect();
    move |pa| map.get(&pa).copied()
}

const SV39: Satp = Satp(8 << 60 | 0x80000);
const BASE: PageFeatures = PageFeatures { napot: false, types: false };
const LEAF: u64 = pte::V | pte::R | pte::W | pte::X | pte::A | pte::D;

fn ppn(page: u64) -> u64 {
    page >> 12 << 10
}

#[test]
fn three_levels() {
    let va = 1 << 30 | 2 << 21 | 3 << 12 | 0x123;
    let read = table(&[
        (0x8000_0008, ppn(0x8000_1000) | pte::V),
        (0x8000_1010, ppn(0x8000_2000) | pte::V),
        (0x8000_2018, ppn(0x8765_4000) | LEAF),
    ]);
    let leaf = walk(SV39, BASE, va, read).unwrap();
    assert_eq!((leaf.pa, leaf.page_bits), (0x8765_4123, 12));
}

#[test]
fn superpage_and_its_alignment() {
    let va = 0xffff_ffff_c000_1234; // canonical: index 511
    let good = table(&[(0x8000_0ff8, ppn(0x8000_0000) | LEAF)]);
    assert_eq!(walk(SV39, BASE, va, good).unwrap().pa, 0x8000_1234);
    let bad = table(&[(0x8000_0ff8, ppn(0x8000_1000) | LEAF)]);
    assert_eq!(walk(SV39, BASE, va, bad).unwrap_err(), WalkFault::Page);
}

#[test]
fn faults() {
    assert_eq!(walk(SV39, BASE, 1 << 38, table(&[])).unwrap_err(), WalkFault::Page);
    assert_eq!(walk(SV39, BASE, 0, table(&[])).unwrap_err(), WalkFault::Access);
    for bad in [0, pte::V | pte::W, LEAF | 1 << 63, LEAF | 1 << 54, pte::V | pte::A] {
        assert_eq!(walk(SV39, BASE, 0, table(&[(0x8000_0000, bad)])).unwrap_err(), WalkFault::Page);
    }
}

/// A walk that ends at `leaf` in the last level.
fn last_level(leaf: u64, va: u64, features: PageFeatures) -> Result<u64, WalkFault> {
    let read = table(&[
        (0x8000_0000, ppn(0x8000_1000) | pte::V),
        (0x8000_1000, ppn(0x8000_2000) | pte::V),
        (0x8000_2000 + (va >> 12) * 8, leaf),
    ]);
    walk(SV39, features, va, read).map(|leaf| leaf.pa)
}

#[test]
fn napot_ranges_take_the_low_page_bits_from_the_address() {
    let on = PageFeatures { napot: true, ..BASE };
    let leaf = LEAF | pte::N | ppn(0x9123_8000);
    assert_eq!(last_level(leaf, 0x5abc, on), Ok(0x9123_5abc));
    assert_eq!(last_level(leaf, 0x5abc, BASE), Err(WalkFault::Page));
    let reserved = LEAF | pte::N | ppn(0x9123_4000);
    assert_eq!(last_level(reserved, 0x5abc, on), Err(WalkFault::Page));
}

#[test]
fn memory_types_are_reserved_unless_enabled() {
    let on = PageFeatures { types: true, ..BASE };
    for (kind, legal) in [(1, true), (2, true), (3, false)] {
        let leaf = LEAF | kind << 61 | ppn(0x9123_4000);
        assert_eq!(last_level(leaf, 0x1abc, on).is_ok(), legal);
        assert_eq!(last_level(leaf, 0x1abc, BASE), Err(WalkFault::Page));
    }
}

#[test]
fn permissions() {
    let user = EffectivePrivilege { user: true, sum: false, mxr: false };
    let kernel = EffectivePrivilege { user: false, ..user };
    let sum = EffectivePrivilege { sum: true, ..kernel };
    assert!(permits(LEAF | pte::U, Access::Store, user));
    assert!(!permits(LEAF, Access::Load, user));
    assert!(!permits(LEAF | pte::U, Access::Load, kernel));
    assert!(permits(LEAF | pte::U, Access::Load, sum));
    assert!(!permits(LEAF | pte::U, Access::Fetch, sum));
    assert!(!permits(LEAF & !pte::D, Access::Store, kernel));
    assert!(permits(LEAF & !pte::D, Access::Load, kernel));
    assert!(!permits(LEAF & !pte::A, Access::Load, kernel));
    let exec_only = pte::V | pte::X | pte::A;
    assert!(!permits(exec_only, Access::Load, kernel));
    assert!(permits(exec_only, Access::Load, EffectivePrivilege { mxr: true, ..kernel }));
}

#[test]
fn satp_modes() {
    assert_eq!(Satp::legalize(10 << 60, Extensions::ALL), None);
    assert_eq!(
        Satp::legalize(8 << 60 | 0xffff << 44 | 5, Extensions::NONE),
        Some(Satp(8 << 60 | 5))
    );
    assert_eq!(Satp(9 << 60).levels(), 4);
    // A write of the mode that a hart does not have is void: Linux finds out so.
    for present in [false, true] {
        let set = Extensions::ALL.with(Extension::Sv48, present);
        assert_eq!(Satp::legalize(9 << 60, set).is_some(), present);
    }
}
