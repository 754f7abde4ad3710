//! A small guest driver, for tests.

use crate::virtio::{Backend, Latency, VIRTIO_SIZE, VirtioMmio};
use crate::{Bus, Clock, RAM_BASE, memory_map};

pub(crate) const BASE: u64 = memory_map::VIRTIO.base;
pub(crate) const LATENCY: Latency = Latency { fixed: 100, per_kib: 1024 };
pub(crate) const SIZE: u16 = 8;
/// Bytes of memory for requests that are larger than those of Linux.
pub(crate) const LARGE_DISK_MEMORY: u64 = 32 << 20;

const AREAS: u64 = RAM_BASE;
const BUFFERS: u64 = RAM_BASE + 0x4_0000;

/// Physical addresses of a virtqueue's descriptor table, available ring and used ring.
pub(crate) fn areas(queue: u64) -> [u64; 3] {
    [0, 0x1000, 0x2000].map(|area| AREAS + queue * 0x4000 + area)
}

pub(crate) struct Driver {
    pub bus: Bus,
    pub available: Vec<u16>,
}

impl Driver {
    /// Creates a bus with one device of this backend and initialises the device as a guest driver would.
    pub(crate) fn new(backend: Box<dyn Backend>) -> Self {
        Self::with_memory(backend, 2 << 20)
    }

    /// Creates a bus with one device and so many bytes of memory.
    pub(crate) fn with_memory(backend: Box<dyn Backend>, memory: u64) -> Self {
        let mut bus = Bus::new(memory, 1, Clock::default()).unwrap();
        let queues = backend.queues();
        let device = VirtioMmio::new(backend, LATENCY);
        bus.add_device(BASE, VIRTIO_SIZE, memory_map::VIRTIO.first_source, Box::new(device))
            .unwrap();
        let mut driver = Self { bus, available: vec![0; queues] };
        driver.start();
        driver
    }

    pub(crate) fn write(&mut self, register: u64, value: u64) {
        self.bus.store(BASE + register, 4, value).unwrap();
    }

    pub(crate) fn read(&mut self, register: u64) -> u64 {
        self.bus.load(BASE + register, 4).unwrap()
    }

    pub(crate) fn start(&mut self) {
        for status in [0, 1, 3] {
            self.write(0x70, status);
        }
        self.write(0x24, 1);
        self.write(0x20, 1);
        self.write(0x70, 11);
        assert_eq!(self.read(0x70), 11, "features are accepted");
        for queue in 0..self.available.len() as u64 {
            self.write(0x30, queue);
            self.write(0x38, SIZE.into());
            for (register, area) in [0x80, 0x90, 0xa0].into_iter().zip(areas(queue)) {
                self.bus.ram.slice_mut(area, 0x1000).unwrap().fill(0);
                self.write(register, area & 0xffff_ffff);
                self.write(register + 4, area >> 32);
            }
            self.write(0x44, 1);
            self.available[queue as usize] = 0;
        }
        self.write(0x70, 15);
    }

    pub(crate) fn descriptor(
        &mut self,
        queue: u64,
        index: u16,
        at: u64,
        length: u32,
        flags: u16,
        next: u16,
    ) {
        let entry = areas(queue)[0] + 16 * u64::from(index);
        self.bus.ram.store(entry, 8, at).unwrap();
        self.bus.ram.store(entry + 8, 4, length.into()).unwrap();
        self.bus.ram.store(entry + 12, 2, flags.into()).unwrap();
        self.bus.ram.store(entry + 14, 2, next.into()).unwrap();
    }

    /// Makes the chain that starts at `head` available, and notifies.
    pub(crate) fn offer(&mut self, queue: u64, head: u16) {
        let index = &mut self.available[queue as usize];
        let slot = areas(queue)[1] + 4 + 2 * u64::from(*index % SIZE);
        *index = index.wrapping_add(1);
        self.bus.ram.store(slot, 2, head.into()).unwrap();
        self.bus.ram.store(areas(queue)[1] + 2, 2, (*index).into()).unwrap();
        self.write(0x50, queue);
    }

    pub(crate) fn used(&self, queue: u64) -> u16 {
        self.bus.ram.load(areas(queue)[2] + 2, 2).unwrap() as u16
    }

    /// Offers a request with `room` bytes for the reply; its buffers start at `BUFFERS`.
    pub(crate) fn send(&mut self, queue: u64, request: &[u8], room: u32) {
        self.bus.ram.write(BUFFERS, request).unwrap();
        let reply = BUFFERS + 0x8_0000;
        match (request.len() as u32, room) {
            (length, 0) => self.descriptor(queue, 0, BUFFERS, length, 0, 0),
            (0, room) => self.descriptor(queue, 0, reply, room, 2, 0),
            (length, room) => {
                self.descriptor(queue, 0, BUFFERS, length, 1, 1);
                self.descriptor(queue, 1, reply, room, 2, 0);
            }
        }
        self.offer(queue, 0);
    }

    /// Lets time pass until the queue's next completion.
    pub(crate) fn wait(&mut self, queue: u64) {
        let used = self.used(queue);
        while self.used(queue) == used {
            let next = self.bus.next_event();
            assert_ne!(next, u64::MAX, "the device sleeps");
            self.bus.advance(next);
        }
    }

    /// Lets time pass until the queue's next completion; returns the reply.
    pub(crate) fn receive(&mut self, queue: u64) -> Vec<u8> {
        let used = self.used(queue);
        self.wait(queue);
        let slot = areas(queue)[2] + 4 + 8 * u64::from(used % SIZE);
        let written = self.bus.ram.load(slot + 4, 4).unwrap();
        self.bus.ram.slice(BUFFERS + 0x8_0000, written).unwrap().to_vec()
    }

    pub(crate) fn transact(&mut self, queue: u64, request: &[u8], room: u32) -> Vec<u8> {
        self.send(queue, request, room);
        self.receive(queue)
    }

    pub(crate) fn needs_reset(&mut self) -> bool {
        self.read(0x70) & 64 != 0
    }
}
