//! Drivers that do anything: registers, rings and descriptors of any content, requests of any kind, resets between.
#![no_main]

use std::collections::VecDeque;

use devices::virtio::{Backend, Blk, DiskMode, Fs, Latency, Link, Net, Rng, VirtioConsole};
use devices::{Clock, Input, Output, RAM_BASE};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use machine::Board;

/// The first virtio device.
const BASE: u64 = 0x1000_1000;
/// Descriptors of a queue.
const SIZE: u64 = 8;
/// Requests and replies.
const BUFFERS: u64 = RAM_BASE + 0x4_0000;

#[derive(Arbitrary, Debug)]
enum Device {
    Disk { mode: u8 },
    Console,
    Entropy,
    Folder { read_only: bool },
    Network,
}

#[derive(Arbitrary, Debug)]
enum Step {
    /// A store to any register.
    Write {
        offset: u16,
        size: u8,
        value: u64,
    },
    Read {
        offset: u16,
        size: u8,
    },
    /// What a driver does at first.
    Start {
        features: u64,
    },
    /// A descriptor, mostly one that makes sense.
    Descriptor {
        queue: u8,
        index: u8,
        at: u16,
        length: u16,
        flags: u8,
        next: u8,
    },
    WildDescriptor {
        queue: u8,
        index: u8,
        at: u64,
        length: u32,
        flags: u16,
        next: u16,
    },
    Offer {
        queue: u8,
        head: u8,
    },
    /// The driver's index jumps.
    Jump {
        queue: u8,
        index: u16,
    },
    /// Bytes of requests.
    Request {
        at: u16,
        bytes: Vec<u8>,
    },
    /// A whole request of one descriptor, and room for the reply.
    Call {
        queue: u8,
        bytes: Vec<u8>,
        room: u16,
    },
    /// A message of FUSE, with a header that makes sense.
    Message {
        opcode: u8,
        node: u8,
        body: Vec<u8>,
        room: u16,
    },
    /// Time passes.
    Wait {
        cycles: u32,
    },
}

/// What is sent comes back.
struct Loop(VecDeque<Vec<u8>>);

impl Link for Loop {
    fn send(&mut self, frame: &[u8], _nanos: u64) {
        self.0.push_back(frame.to_vec());
    }
    fn receive(&mut self) -> Option<Vec<u8>> {
        self.0.pop_front()
    }
    fn poll(&mut self, _nanos: u64) {}
    fn reset(&mut self) {
        self.0.clear();
    }
}

/// Descriptors, available and used ring of a queue.
fn areas(queue: u8) -> [u64; 3] {
    let base = RAM_BASE + 0x4000 * u64::from(queue % 4);
    [base, base + 0x1000, base + 0x2000]
}

fuzz_target!(|input: (Device, Vec<Step>)| {
    let (device, steps) = input;
    let folder = tempfile::tempdir().unwrap();
    let backend: Box<dyn Backend> = match device {
        Device::Disk { mode } => {
            let image = folder.path().join("disk");
            std::fs::write(&image, [7; 5000]).unwrap();
            let modes = [DiskMode::ReadOnly, DiskMode::Writable, DiskMode::CopyOnWrite];
            Box::new(Blk::open(&image, modes[usize::from(mode) % 3], "disk").unwrap())
        }
        Device::Console => {
            let output = Output::new(Box::new(std::io::sink()));
            Box::new(VirtioConsole::new(output, Some(Input::script(b"typed\n")), (80, 25)))
        }
        Device::Entropy => Box::new(Rng::new(1)),
        Device::Folder { read_only } => {
            std::fs::write(folder.path().join("file"), "text").unwrap();
            Box::new(Fs::new(folder.path(), "out", read_only, 0).unwrap())
        }
        Device::Network => Box::new(Net::new([2; 6], Box::new(Loop(VecDeque::new())))),
    };
    let mut board = Board::new(1 << 20, 1, Clock::default(), 0).unwrap();
    board.add_virtio(backend, Latency::BUFFER).unwrap();
    let mut machine = Machine { board, offered: [0; 4] };
    for step in steps {
        machine.step(step);
    }
    machine.wait(u32::MAX);
});

struct Machine {
    board: Board,
    offered: [u16; 4],
}

impl Machine {
    fn write(&mut self, offset: u64, value: u64) {
        let _ = self.board.bus.store(BASE + offset, 4, value);
    }

    fn store(&mut self, pa: u64, size: u8, value: u64) {
        let _ = self.board.bus.ram.store(pa, size, value);
    }

    fn descriptor(
        &mut self,
        queue: u8,
        index: u8,
        (at, length): (u64, u32),
        flags: u16,
        next: u16,
    ) {
        let entry = areas(queue)[0] + 16 * (u64::from(index) % SIZE);
        self.store(entry, 8, at);
        self.store(entry + 8, 4, length.into());
        self.store(entry + 12, 2, flags.into());
        self.store(entry + 14, 2, next.into());
    }

    fn offer(&mut self, queue: u8, head: u16) {
        let index = &mut self.offered[usize::from(queue % 4)];
        let slot = areas(queue)[1] + 4 + 2 * (u64::from(*index) % SIZE);
        *index = index.wrapping_add(1);
        let index = *index;
        self.store(slot, 2, head.into());
        self.store(areas(queue)[1] + 2, 2, index.into());
        self.write(0x50, u64::from(queue % 4));
    }

    /// Events until then, some of them.
    fn wait(&mut self, cycles: u32) {
        let bus = &mut self.board.bus;
        let until = bus.now.saturating_add(cycles.into());
        for _ in 0..100 {
            let next = bus.next_event();
            if next > until {
                break;
            }
            bus.advance(next);
        }
        bus.advance(bus.now.max(until));
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Write { offset, size, value } => {
                let address = BASE + u64::from(offset) % 0x1000;
                let _ = self.board.bus.store(address, 1 << (size % 4), value);
            }
            Step::Read { offset, size } => {
                let address = BASE + u64::from(offset) % 0x1000;
                let _ = self.board.bus.load(address, 1 << (size % 4));
            }
            Step::Start { features } => {
                let features = features | 1 << 32;
                for (register, value) in [
                    (0x70, 0),
                    (0x70, 3),
                    (0x24, 0),
                    (0x20, features & 0xffff_ffff),
                    (0x24, 1),
                    (0x20, features >> 32),
                    (0x70, 11),
                ] {
                    self.write(register, value);
                }
                for queue in 0..4 {
                    self.write(0x30, queue.into());
                    self.write(0x38, SIZE);
                    for (register, area) in [0x80, 0x90, 0xa0].into_iter().zip(areas(queue)) {
                        self.write(register, area & 0xffff_ffff);
                        self.write(register + 4, area >> 32);
                    }
                    self.store(areas(queue)[1] + 2, 2, 0);
                    self.write(0x44, 1);
                }
                self.offered = [0; 4];
                self.write(0x70, 15);
            }
            Step::Descriptor { queue, index, at, length, flags, next } => {
                let place = (BUFFERS + u64::from(at), length.into());
                self.descriptor(
                    queue,
                    index,
                    place,
                    (flags % 8).into(),
                    u64::from(next) as u16 % 8,
                );
            }
            Step::WildDescriptor { queue, index, at, length, flags, next } => {
                self.descriptor(queue, index, (at, length), flags, next);
            }
            Step::Offer { queue, head } => self.offer(queue, u16::from(head) % 9),
            Step::Jump { queue, index } => {
                self.store(areas(queue)[1] + 2, 2, index.into());
                self.write(0x50, u64::from(queue % 4));
            }
            Step::Request { at, bytes } => {
                let _ = self.board.bus.ram.write(BUFFERS + u64::from(at), &bytes);
            }
            Step::Call { queue, bytes, room } => {
                let _ = self.board.bus.ram.write(BUFFERS, &bytes);
                self.descriptor(queue, 0, (BUFFERS, bytes.len() as u32), 1, 1);
                self.descriptor(queue, 1, (BUFFERS + 0x2_0000, room.into()), 2, 0);
                self.offer(queue, 0);
                self.wait(100_000);
            }
            // Nobody's disk is to be filled by a test.
            Step::Message { opcode: 43, .. } => {}
            Step::Message { opcode, node, body, room } => {
                let mut bytes = vec![0; 40];
                bytes[..4].copy_from_slice(&(40 + body.len() as u32).to_le_bytes());
                (bytes[4], bytes[16]) = (opcode, node);
                bytes.extend(body);
                self.step(Step::Call { queue: 1, bytes, room });
            }
            Step::Wait { cycles } => self.wait(cycles),
        }
    }
}
