use super::super::driver::{BASE, Driver, SIZE, areas};
use super::super::{Rng, VirtioConsole};
use super::*;
use crate::{Bus, Capture, Clock, Input, Output, RAM_BASE};

/// Answers with its request, twice.
struct Echo;

snapshot::snapshot!(Echo {});

impl Backend for Echo {
    fn device_type(&self) -> u32 {
        42
    }

    fn queues(&self) -> usize {
        2
    }

    fn config(&self) -> Vec<u8> {
        vec![1, 2, 3, 4, 5]
    }

    fn serve(&mut self, request: Request<'_>) -> Option<Vec<u8>> {
        Some([request.bytes, request.bytes].concat())
    }
}

fn echo() -> Driver {
    Driver::new(Box::new(Echo))
}

#[test]
fn identification_and_configuration() {
    let mut driver = echo();
    assert_eq!([0, 4, 8].map(|at| driver.read(at)), [0x7472_6976, 2, 42]);
    // Guests look for QEMU's: xv6 takes no other device.
    assert_eq!(driver.read(0xc), 0x554d_4551);
    assert_eq!(driver.read(0x34), 256);
    driver.write(0x30, 2);
    assert_eq!(driver.read(0x34), 0, "there is no third queue");
    assert_eq!(driver.bus.load(BASE + 0x104, 4), Ok(5));
    assert_eq!(driver.bus.load(BASE + 0x102, 1), Ok(3));
    assert_eq!(driver.bus.load(BASE + 0x700, 8), Ok(0));
    assert_eq!(driver.bus.load(BASE, 8), Err(AccessFault));
}

#[test]
fn requests_complete_in_time() {
    let mut driver = echo();
    driver.send(0, &[7; 1000], 2000);
    assert_eq!((driver.used(0), driver.bus.next_event()), (0, 3100));
    assert_eq!(driver.receive(0), [7; 2000]);
    assert_eq!((driver.bus.now, driver.read(0x60)), (3100, 1));
    driver.write(0x64, 1);
    assert_eq!(driver.read(0x60), 0);
    assert_eq!(driver.transact(0, &[9; 10], 15), [9; 15], "cut to the room");
}

#[test]
fn transfers_queue_up_and_latency_overlaps() {
    let mut driver = echo();
    for index in 0..3 {
        driver.descriptor(0, index, RAM_BASE + 0x5_0000, 1024, 0, 0);
        driver.offer(0, index);
    }
    let mut cycles = Vec::new();
    while driver.bus.next_event() != u64::MAX {
        driver.bus.advance(driver.bus.next_event());
        cycles.push((driver.bus.now, driver.used(0)));
    }
    assert_eq!(cycles, [(1124, 1), (2148, 2), (3172, 3)]);
}

#[test]
fn driver_can_ask_for_silence_and_use_indirect_tables() {
    let mut driver = echo();
    driver.bus.ram.store(areas(0)[1], 2, 1).unwrap();
    let table = RAM_BASE + 0x6_0000;
    driver.bus.ram.write(table + 0x100, b"abc").unwrap();
    for (n, (at, length, flags)) in
        [(table + 0x100, 2, 1), (table + 0x102, 1, 1), (table + 0x200, 9, 2)]
            .into_iter()
            .enumerate()
    {
        let entry = table + 16 * n as u64;
        driver.bus.ram.store(entry, 8, at).unwrap();
        driver.bus.ram.store(entry + 8, 8, length | flags << 32 | (n as u64 + 1) << 48).unwrap();
    }
    driver.descriptor(0, 3, table, 48, 4, 0);
    driver.offer(0, 3);
    driver.bus.advance(10_000);
    assert_eq!((driver.used(0), driver.read(0x60)), (1, 0));
    assert_eq!(driver.bus.ram.slice(table + 0x200, 6), Some(&b"abcabc"[..]));
    assert_eq!(driver.bus.ram.load(areas(0)[2] + 4, 8), Some(6 << 32 | 3));
}

#[test]
fn features_must_be_offered() {
    let mut driver = echo();
    for (low, high, status) in [
        (1, 1, 3),
        (0, 2, 3),
        // A driver that knows nothing of VERSION_1, as xv6's.
        (0, 0, 11),
    ] {
        driver.write(0x70, 0);
        driver.write(0x24, 0);
        driver.write(0x20, low);
        driver.write(0x24, 1);
        driver.write(0x20, high);
        driver.write(0x70, 11);
        assert_eq!(driver.read(0x70), status, "{low} {high}");
    }
}

/// Returns a device of version 1, set up as Linux and small systems do: a page size, and each queue by its page.
fn legacy(alignment: Option<u64>) -> (Bus, impl Fn(&mut Bus)) {
    let mut bus = Bus::new(2 << 20, 1, Clock::default()).unwrap();
    let device = VirtioMmio::new(Box::new(Echo), super::super::driver::LATENCY).legacy();
    bus.add_device(BASE, VIRTIO_SIZE, Some(1), Box::new(device)).unwrap();
    let start = move |bus: &mut Bus| {
        let mut write = |register, value| bus.store(BASE + register, 4, value).unwrap();
        write(0x28, 0x1000);
        for status in [0, 1, 3] {
            write(0x70, status);
        }
        write(0x24, 0);
        write(0x20, 0);
        write(0x30, 0);
        write(0x38, SIZE.into());
        if let Some(alignment) = alignment {
            write(0x3c, alignment);
        }
        write(0x40, (RAM_BASE >> 12) + 4);
        write(0x70, 7);
    };
    start(&mut bus);
    (bus, start)
}

#[test]
fn legacy_queues_are_laid_out_from_their_page_on() {
    for (alignment, used) in [(None, 0x1000), (Some(0x1000), 0x1000), (Some(64), 0xc0)] {
        let (mut bus, start) = legacy(alignment);
        let queue = RAM_BASE + 0x4000;
        for round in 1..3 {
            assert_eq!(bus.load(BASE + 4, 4), Ok(1), "version");
            assert_eq!(bus.load(BASE + 0x40, 4), Ok((RAM_BASE >> 12) + 4));
            bus.store(BASE + 0x14, 4, 1).unwrap();
            assert_eq!(bus.load(BASE + 0x10, 4), Ok(0), "no VERSION_1");
            bus.ram.write(RAM_BASE + 0x1_0000, b"ab").unwrap();
            for (at, word) in [
                (0, RAM_BASE + 0x1_0000),
                (8, 2 | 1 << 32 | 1 << 48),
                (16, RAM_BASE + 0x1_1000),
                (24, 4 | 2 << 32),
                // The available ring: no flags, one request, its first descriptor.
                (16 * u64::from(SIZE), 1 << 16),
            ] {
                bus.ram.store(queue + at, 8, word).unwrap();
            }
            bus.store(BASE + 0x50, 4, 0).unwrap();
            bus.advance(bus.now + 100_000);
            assert_eq!(bus.ram.slice(RAM_BASE + 0x1_1000, 4), Some(&b"abab"[..]));
            let at = queue + used;
            assert_eq!(bus.ram.load(at + 2, 2), Some(1), "round {round}");
            assert_eq!(bus.ram.load(at + 4, 8), Some(4 << 32));
            assert_eq!(bus.load(BASE + 0x60, 4), Ok(1));
            // A page of 0 takes the queue back; the page size outlives a reset.
            bus.store(BASE + 0x40, 4, 0).unwrap();
            assert_eq!(bus.load(BASE + 0x40, 4), Ok(0));
            bus.ram.store(at, 8, 0).unwrap();
            start(&mut bus);
        }
    }
}

#[test]
fn legacy_registers_of_any_content_do_no_harm() {
    let words = [0, 1, 3, 64, 0x1000, 0x8_0000, 0x8000_0000, 0xffff_ffff];
    for page_size in words {
        for alignment in words {
            for page in words {
                let (mut bus, _) = legacy(None);
                for (register, value) in [
                    (0x40, 0),
                    (0x28, page_size),
                    (0x38, SIZE.into()),
                    (0x3c, alignment),
                    (0x40, page),
                    (0x50, 0),
                ] {
                    bus.store(BASE + register, 4, value).unwrap();
                }
                bus.advance(bus.now + 100_000);
            }
        }
    }
    // A device of version 2 has none of it.
    let mut driver = echo();
    for register in [0x28, 0x3c, 0x40] {
        driver.write(register, 0x1000);
        assert_eq!(driver.read(register), 0);
    }
    assert_eq!(driver.transact(0, b"x", 2), b"xx");
}

#[test]
fn hostile_chains_stop_the_device() {
    let end = RAM_BASE + (2 << 20);
    type Setup = fn(&mut Driver, u64);
    let cases: [(&str, Setup); 11] = [
        ("loop", |d, _| {
            d.descriptor(0, 0, RAM_BASE, 1, 1, 1);
            d.descriptor(0, 1, RAM_BASE, 1, 1, 0);
        }),
        ("self loop", |d, _| d.descriptor(0, 0, RAM_BASE, 0, 1, 0)),
        ("next beyond the table", |d, _| d.descriptor(0, 0, RAM_BASE, 1, 1, SIZE)),
        ("outside RAM", |d, end| d.descriptor(0, 0, end - 4, 8, 0, 0)),
        ("device registers", |d, _| d.descriptor(0, 0, BASE, 8, 2, 0)),
        ("wrap-around", |d, _| d.descriptor(0, 0, u64::MAX - 1, u32::MAX, 0, 0)),
        ("read after write", |d, _| {
            d.descriptor(0, 0, RAM_BASE, 8, 3, 1);
            d.descriptor(0, 1, RAM_BASE, 8, 0, 0);
        }),
        ("indirect and next", |d, _| d.descriptor(0, 0, RAM_BASE, 16, 5, 1)),
        ("indirect length", |d, _| d.descriptor(0, 0, RAM_BASE, 17, 4, 0)),
        ("indirect huge", |d, _| d.descriptor(0, 0, RAM_BASE, 0xffff_fff0, 4, 0)),
        ("indirect of itself", |d, _| d.descriptor(0, 0, areas(0)[0], 16, 4, 0)),
    ];
    for (name, setup) in cases {
        let mut driver = echo();
        setup(&mut driver, end);
        driver.offer(0, 0);
        assert!(driver.needs_reset(), "{name}");
        assert_eq!(driver.read(0x60), 2, "{name}: the driver is told");
        assert_eq!(driver.bus.next_event(), u64::MAX, "{name}: nothing more happens");
        driver.start();
        assert_eq!(driver.transact(0, b"again", 10), b"againagain", "{name}: a reset heals");
    }
}

#[test]
fn hostile_rings_stop_the_device() {
    let mut driver = echo();
    driver.offer(0, SIZE);
    assert!(driver.needs_reset(), "head beyond the table");

    let mut driver = echo();
    driver.bus.ram.store(areas(0)[1] + 2, 2, u64::from(SIZE) + 1).unwrap();
    driver.write(0x50, 0);
    assert!(driver.needs_reset(), "index runs ahead");

    let mut driver = echo();
    driver.descriptor(0, 0, RAM_BASE, 1, 0, 0);
    for _ in 0..=SIZE {
        driver.offer(0, 0);
    }
    assert!(driver.needs_reset(), "more under way than descriptors");

    for area in [0x80, 0x90, 0xa0] {
        for at in [0, !0xf, RAM_BASE + (2 << 20) - 16] {
            let mut driver = echo();
            driver.descriptor(0, 1, RAM_BASE, 1, 0, 0);
            driver.write(0x30, 0);
            driver.write(0x44, 0);
            driver.write(area, at & 0xffff_ffff);
            driver.write(area + 4, at >> 32);
            driver.write(0x44, 1);
            driver.offer(0, 1);
            driver.bus.advance(1_000_000);
        }
    }
    for size in [0, 3, 512, 0x1_0000, 0xffff_ffff] {
        let mut driver = echo();
        driver.write(0x30, 0);
        driver.write(0x44, 0);
        driver.write(0x38, size);
        driver.write(0x44, 1);
        assert!(driver.needs_reset(), "size {size}");
        driver.offer(0, 0);
    }
}

#[test]
fn random_queues_do_no_harm() {
    let mut random = super::super::SplitMix64::new(1);
    for _ in 0..300 {
        let mut driver = echo();
        for index in 0..SIZE {
            let word = random.next_u64();
            let at = if word & 1 == 0 { RAM_BASE + (word >> 8 & 0x1f_ffff) } else { word };
            let length = (random.next_u64() >> (32 + word % 30)) as u32;
            driver.descriptor(
                0,
                index,
                at,
                length,
                (word >> 40 & 7) as u16,
                (word >> 50 & 7) as u16,
            );
        }
        for _ in 0..4 {
            let head = random.next_u64() % u64::from(SIZE + 1);
            driver.offer(random.next_u64() & 1, head as u16);
            driver.bus.advance(driver.bus.now + random.next_u64() % 2000);
        }
        for offset in (0..0x200).step_by(4) {
            driver.write(offset, random.next_u64());
            driver.read(offset);
        }
        driver.bus.advance(u64::MAX >> 1);
    }
}

#[test]
fn reset_forgets_replies_under_way() {
    let mut driver = echo();
    driver.send(0, b"lost", 8);
    driver.start();
    driver.bus.advance(1_000_000);
    assert_eq!((driver.used(0), driver.read(0x60)), (0, 0));
}

#[test]
fn console_input_arrives_by_itself() {
    let (capture, input) = (Capture::default(), Input::default());
    let output = Output::new(Box::new(capture.clone()));
    let mut driver =
        Driver::new(Box::new(VirtioConsole::new(output, Some(input.clone()), (80, 25))));
    driver.send(0, b"", 16);
    input.push(b"typed");
    assert_eq!(driver.receive(0), b"typed");
    driver.send(1, b"prompt> ", 0);
    assert_eq!(capture.text(), "");
    driver.bus.advance(driver.bus.now + 4_000_000);
    assert_eq!((capture.text().as_str(), driver.used(1)), ("prompt> ", 1));
}

#[test]
fn entropy() {
    let mut driver = Driver::new(Box::new(Rng::new(3)));
    let first = driver.transact(0, b"", 64);
    assert_eq!(first.len(), 64);
    assert_ne!(first, driver.transact(0, b"", 64));
}
