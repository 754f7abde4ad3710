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
    assert!(cache.stored(RAM_BASE + 0x100a, 2, &mut ram));
    let lengths = [2, 4, 6].map(|slot: usize| page.slots[slot].get().len);
    assert_eq!(lengths, [4, 0, 4]);
    assert!(!cache.stored(RAM_BASE + 0x1010, 8, &mut ram), "no instruction");
    assert!(cache.stored(RAM_BASE + 0x1006, 1, &mut ram), "its second half");
}

/// Number of stores after which the page is data, so that stores to it no longer take the slow path.
fn stores_until_data(cache: &mut CodeCache, ram: &mut Ram) -> usize {
    for stores in 0.. {
        if ram.page_flags(RAM_BASE + 0x1000) == 0 {
            return stores;
        }
        cache.stored(RAM_BASE + 0x1000, 8, ram);
    }
    unreachable!("the stores have no end");
}

#[test]
fn many_stores_make_it_data_and_each_time_twice_as_many() {
    let (mut ram, mut cache, page) = setup();
    for times in 0..30 {
        page.fill(2000, isa::decode(ADDI), &[]);
        let stores = stores_until_data(&mut cache, &mut ram);
        assert_eq!(stores, 1 << (6 + times).min(20), "{times}");
        assert_eq!(page.slots[2000].get().len, 0);
        assert!(cache.page(RAM_BASE + 0x1000, &mut ram).1, "marked again when code is decoded");
    }
}

#[test]
fn stores_to_code_of_other_harts_are_told_until_they_make_it_data() {
    let mut ram = Ram::new(1 << 20).unwrap();
    ram.share();
    let mut cache = CodeCache::new(1);
    ram.set_page_flags(RAM_BASE + 0x1000, Ram::HAS_CODE);
    let logged = |ram: &mut Ram| ram.page_events_since(0).unwrap().last().unwrap().kind;
    assert!(!cache.stored(RAM_BASE + 0x1008, 4, &mut ram));
    assert_eq!(logged(&mut ram), PageEventKind::Overwritten { from: 8, to: 12 });
    assert_eq!(stores_until_data(&mut cache, &mut ram), 63);
    assert_eq!(logged(&mut ram), PageEventKind::Overwritten { from: 0, to: 4096 });
}

#[test]
fn only_stores_to_translated_instructions_make_regions_void() {
    let (mut ram, mut cache, page) = setup();
    page.fill(2, isa::decode(ADDI), &[]);
    page.fill(8, isa::decode(ADDI), &[]);
    let translate = |cache: &mut CodeCache| {
        cache.translates(&page);
        page.translated().add(2);
        page.fill(2, isa::decode(ADDI), &[]);
    };
    translate(&mut cache);
    let (version, generation) = (page.version(), cache.generation());
    assert!(cache.stored(RAM_BASE + 0x1010, 4, &mut ram));
    assert!(!cache.stored(RAM_BASE + 0x1100, 4, &mut ram));
    assert_eq!((page.version(), cache.generation()), (version, generation));
    // Each time from the fifth on it waits twice as long before it is translated again.
    for (time, waits) in [0, 0, 0, 0, 0, 1, 3, 7, 15].into_iter().enumerate() {
        assert!(cache.stored(RAM_BASE + 0x1004, 4, &mut ram));
        assert_eq!((page.version(), cache.generation()), (0, generation + 1 + time as u64));
        let waited = (0..).take_while(|_| !page.may_be_translated()).count();
        assert_eq!(waited, waits, "{time}");
        translate(&mut cache);
    }
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
    cache.overwritten((RAM_BASE >> 12) + 1, 4, 4096);
    assert_eq!(page.slots[0].get().len, 4);
    cache.overwritten((RAM_BASE >> 12) + 1, 2, 4);
    cache.overwritten(u64::MAX, 0, 4096);
    assert_eq!(page.slots[0].get().len, 0);
    cache.clear(&mut ram);
    assert_eq!(ram.page_flags(RAM_BASE + 0x1000), 0);
}

/// Ids of a slot of `page` in so many address spaces, with the encoding of all.
fn define(cache: &mut CodeCache, page: &CodePage, spaces: u32) {
    page.fill(5, isa::decode(ADDI), &[]);
    for space in 0..spaces {
        let table = cache.ids(space, 0x10, page);
        table.ids[5].set(cache.encodings.len() as u32);
        cache.encodings.push(ADDI);
    }
}

#[test]
fn ids_of_many_address_spaces_are_packed_and_stay_what_they_are() {
    let (mut ram, mut cache, page) = setup();
    define(&mut cache, &page, 20);
    assert!(cache.is_full() && page.ids.borrow().len() == 20);
    let held = cache.ids(7, 0x10, &page);
    cache.make_room(&mut ram);
    assert!(!cache.is_full() && page.ids.borrow().len() == 1);
    // What is held is still told of changes, and what was packed finds them out.
    assert!(Rc::ptr_eq(&held, &cache.ids(7, 0x10, &page)));
    for space in [3, 19] {
        assert_eq!(cache.ids(space, 0x10, &page).ids[5].get(), space);
    }
    page.fill(5, isa::decode(ADDI + (1 << 20)), &cache.encodings);
    for space in [3, 7, 11] {
        assert_eq!(cache.ids(space, 0x10, &page).ids[5].get(), NO_ID);
    }
}

#[test]
fn packed_ids_are_bounded() {
    let (mut ram, mut cache, page) = setup();
    define(&mut cache, &page, 60);
    cache.make_room(&mut ram);
    assert_eq!(cache.ids(59, 0x10, &page).ids[5].get(), 59);
    define(&mut cache, &page, 0);
    for space in 100..110 {
        cache.ids(space, 0x10, &page).ids[5].set(0);
    }
    cache.make_room(&mut ram);
    assert_eq!(cache.ids(3, 0x10, &page).ids[5].get(), NO_ID);
}

#[test]
fn ids_of_a_page_that_was_forgotten_are_those_of_what_it_holds() {
    let (mut ram, mut cache, page) = setup();
    define(&mut cache, &page, 2);
    cache.clear(&mut ram);
    let (page, _) = cache.page(RAM_BASE + 0x1008, &mut ram);
    page.fill(5, isa::decode(ADDI + (1 << 20)), &cache.encodings);
    assert_eq!(cache.ids(1, 0x10, &page).ids[5].get(), NO_ID);
    let (page, _) = cache.page(RAM_BASE + 0x1008, &mut ram);
    page.fill(5, isa::decode(ADDI), &cache.encodings);
    assert_eq!(cache.ids(0, 0x10, &page).ids[5].get(), 0);
}
