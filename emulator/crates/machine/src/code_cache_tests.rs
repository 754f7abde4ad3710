use super::*;

const ADDI: u32 = 0x0010_0093; // addi x1, x0, 1

fn setup() -> (Ram, CodeCache, Rc<CodePage>) {
    let mut ram = Ram::new(1 << 20).unwrap();
    let mut cache = CodeCache::new(0);
    let (page, unmarked) = cache.page(RAM_BASE + 0x1008, &mut ram);
    assert!(unmarked && ram.page_flags(RAM_BASE + 0x1000) & Ram::HAS_CODE != 0);
    (ram, cache, page)
}

#[test]
fn a_store_clears_what_it_touches() {
    let (mut ram, mut cache, page) = setup();
    for slot in [2, 4, 6] {
        page.fill(slot, isa::decode(ADDI), &[]);
    }
    assert!(!cache.stored(RAM_BASE + 0x100a, 2, &mut ram));
    let lengths = [2, 4, 6].map(|slot: usize| page.slots[slot].get().len);
    assert_eq!(lengths, [4, 0, 4]);
}

#[test]
fn many_stores_make_it_data() {
    let (mut ram, mut cache, page) = setup();
    page.fill(2000, isa::decode(ADDI), &[]);
    let data = (0..STORES_UNTIL_DATA).position(|_| cache.stored(RAM_BASE + 0x1000, 8, &mut ram));
    assert_eq!(data, Some(STORES_UNTIL_DATA as usize - 1));
    assert_eq!(page.slots[2000].get().len, 0);
    assert_eq!(ram.page_flags(RAM_BASE + 0x1000), 0);
    assert!(
        cache.page(RAM_BASE + 0x1000, &mut ram).1,
        "marked again when code is decoded"
    );
}

#[test]
fn ids_survive_the_same_encoding_only() {
    let (_, mut cache, page) = setup();
    let (one, two) = (cache.ids(2, 0x10, &page), cache.ids(3, 0x10, &page));
    one.ids[5].set(0);
    two.ids[5].set(1);
    page.fill(5, isa::decode(ADDI), &[ADDI, ADDI + (1 << 20)]);
    assert_eq!((one.ids[5].get(), two.ids[5].get()), (0, NO_ID));
    assert!(Rc::ptr_eq(&one, &cache.ids(2, 0x10, &page)));
}

#[test]
fn device_writes_and_clear() {
    let (mut ram, mut cache, page) = setup();
    page.fill(0, isa::decode(ADDI), &[]);
    cache.overwritten((RAM_BASE >> 12) + 1);
    cache.overwritten(u64::MAX);
    assert_eq!(page.slots[0].get().len, 0);
    cache.clear(&mut ram);
    assert_eq!(ram.page_flags(RAM_BASE + 0x1000), 0);
}
