use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::super::driver::{Driver, SIZE, areas};
use super::*;
use crate::RAM_BASE;

/// A wire that keeps what was sent, and echoes it if told to.
#[derive(Default)]
struct Wire {
    sent: Vec<(Vec<u8>, u64)>,
    waiting: VecDeque<Vec<u8>>,
    polls: usize,
    resets: usize,
    echoes: bool,
}

#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Wire>>);

impl Link for Shared {
    fn send(&mut self, frame: &[u8], nanos: u64) {
        let mut wire = self.0.borrow_mut();
        wire.sent.push((frame.to_vec(), nanos));
        if wire.echoes {
            wire.waiting.push_back(frame.to_vec());
        }
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        self.0.borrow_mut().waiting.pop_front()
    }

    fn poll(&mut self, _nanos: u64) {
        self.0.borrow_mut().polls += 1;
    }

    fn reset(&mut self) {
        self.0.borrow_mut().resets += 1;
    }
}

const TRANSMIT: u64 = 1;

fn card() -> (Driver, Shared) {
    let wire = Shared::default();
    let net = Net::new([2, 3, 5, 7, 11, 13], Box::new(wire.clone()));
    (Driver::new(Box::new(net)), wire)
}

fn with_header(frame: &[u8]) -> Vec<u8> {
    [&[0; HEADER][..], frame].concat()
}

#[test]
fn identification() {
    let (mut driver, _) = card();
    assert_eq!((driver.read(8), driver.read(0x10)), (1, 1 << 28 | 1 << 5));
    assert_eq!((driver.read(0x100), driver.read(0x104)), (0x0705_0302, 0x0d0b));
}

#[test]
fn frames_go_both_ways() {
    let (mut driver, wire) = card();
    assert_eq!(
        driver.transact(TRANSMIT, &with_header(&[9; 60]), 0),
        [0; 0],
        "nothing is written to a transmit buffer"
    );
    assert_eq!(wire.0.borrow().sent[0].0, [9; 60]);

    wire.0.borrow_mut().waiting.push_back(vec![7; 1514]);
    let received = driver.transact(RECEIVE as u64, &[], 1526);
    assert_eq!(received[..HEADER], RECEIVED);
    assert_eq!(received[HEADER..], [7; 1514]);
}

#[test]
fn a_receive_buffer_waits_for_its_frame() {
    let (mut driver, wire) = card();
    driver.send(RECEIVE as u64, &[], 1526);
    driver.bus.advance(10_000_000);
    assert_eq!(driver.used(RECEIVE as u64), 0);
    wire.0.borrow_mut().waiting.push_back(vec![1; 14]);
    assert_eq!(driver.receive(RECEIVE as u64).len(), HEADER + 14);
    assert_eq!(wire.0.borrow().polls, 4, "3.2 million cycles each");
}

#[test]
fn an_answer_does_not_wait_for_the_poll() {
    let (mut driver, wire) = card();
    wire.0.borrow_mut().echoes = true;
    driver.descriptor(0, 0, RAM_BASE + 0x10_0000, 1526, 2, 0);
    driver.offer(0, 0);
    driver.send(TRANSMIT, &with_header(&[4; 42]), 0);
    driver.receive(TRANSMIT);
    driver.bus.advance(driver.bus.now + 1000);
    assert_eq!((driver.used(0), wire.0.borrow().polls), (1, 0));
}

#[test]
fn bad_frames_are_dropped() {
    let (mut driver, wire) = card();
    for length in [0, 1, HEADER - 1, HEADER, HEADER + 13, HEADER + 1515, 60_000] {
        driver.transact(TRANSMIT, &vec![0xff; length], 0);
    }
    // A transmit request with a writable part, and a receive request with a readable one.
    driver.transact(TRANSMIT, &[1; 8], 100);
    assert!(wire.0.borrow().sent.is_empty());
    assert!(!driver.needs_reset());

    for frame in [vec![1; 1514], vec![2; 100], vec![3; 14]] {
        wire.0.borrow_mut().waiting.push_back(frame);
    }
    let received = driver.transact(RECEIVE as u64, &[5; 30], 26);
    assert_eq!(received[HEADER..], [3; 14], "the others did not fit");
}

#[test]
fn buffers_too_small_for_a_header_stay_empty() {
    let (mut driver, wire) = card();
    for room in 1..HEADER as u32 {
        wire.0.borrow_mut().waiting.push_back(vec![1; 64]);
        driver.descriptor(0, 0, RAM_BASE + 0x10_0000, room, 2, 0);
        driver.offer(0, 0);
        driver.bus.advance(driver.bus.now + 10_000_000);
        assert_eq!(driver.used(0), 0);
        driver.start();
    }
}

#[test]
fn hostile_chains_stop_the_card() {
    type Setup = fn(&mut Driver, u64);
    let cases: [(&str, Setup); 4] = [
        ("loop", |d, queue| {
            d.descriptor(queue, 0, RAM_BASE, 16, 1, 0);
        }),
        ("outside RAM", |d, queue| {
            d.descriptor(queue, 0, u64::MAX - 8, 16, 0, 0);
        }),
        ("no such descriptor", |d, queue| {
            d.descriptor(queue, 0, RAM_BASE, 16, 1, SIZE);
        }),
        ("too long", |d, queue| {
            d.descriptor(queue, 0, RAM_BASE, u32::MAX, 0, 0);
        }),
    ];
    for queue in [RECEIVE as u64, TRANSMIT] {
        for (name, setup) in cases {
            let (mut driver, wire) = card();
            setup(&mut driver, queue);
            driver.offer(queue, 0);
            assert!(driver.needs_reset(), "{name}");
            wire.0.borrow_mut().waiting.push_back(vec![0; 60]);
            driver.bus.advance(driver.bus.now + 100_000_000);
            assert_eq!(driver.used(queue), 0, "{name}");
            // The card works again after a reset.
            driver.start();
            driver.transact(TRANSMIT, &with_header(&[8; 20]), 0);
            assert_eq!(wire.0.borrow().sent.len(), 1, "{name}");
        }
    }
}

#[test]
fn a_reset_forgets_buffers_and_tells_the_network() {
    let (mut driver, wire) = card();
    driver.send(RECEIVE as u64, &[], 1526);
    let resets = wire.0.borrow().resets;
    driver.start();
    assert_eq!(wire.0.borrow().resets, resets + 1);
    wire.0.borrow_mut().waiting.push_back(vec![1; 60]);
    driver.bus.advance(driver.bus.now + 10_000_000);
    assert_eq!(driver.used(RECEIVE as u64), 0, "the old buffer is gone");
    assert_eq!(driver.bus.ram.load(areas(0)[2], 4), Some(0));
    let received = driver.transact(RECEIVE as u64, &[], 1526);
    assert_eq!(received.len(), HEADER + 60);
}

#[test]
fn a_flood_of_frames_ends() {
    let (mut driver, wire) = card();
    wire.0.borrow_mut().echoes = true;
    // Every descriptor is both a request to send and, echoed, a frame to receive.
    for round in 0..1000_u64 {
        for index in 0..SIZE {
            driver.descriptor(TRANSMIT, index, RAM_BASE + 0x5_0000, 72, 0, 0);
            driver.offer(TRANSMIT, index);
        }
        driver.bus.advance((round + 1) * 10_000);
    }
    assert_eq!(wire.0.borrow().sent.len(), 8000);
    assert!(!driver.needs_reset());
}
