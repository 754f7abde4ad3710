//! The standard machine: a bus with its devices, and the tree that describes them.

use std::ops::Range;

use devices::memory_map::{RTC, SYSCON, UART, VIRTIO};
use devices::virtio::{Backend, Latency, VirtioMmio};
use devices::{Bus, Clock, Device, Input, Output, Overlap, RamError, Rtc, Syscon, Uart};

use crate::{DeviceNode, DeviceTree, Isa, Property};

/// Why a board cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum BoardError {
    /// No guest memory.
    #[error(transparent)]
    Ram(#[from] RamError),
    /// A device in the way of another.
    #[error(transparent)]
    Overlap(#[from] Overlap),
    /// A ninth virtio device.
    #[error("more than {} virtio devices", VIRTIO.count)]
    VirtioSlots,
}

/// A machine with power switch and clock; other devices are added. Where they are says [`devices::memory_map`].
pub struct Board {
    /// The bus.
    pub bus: Bus,
    /// Virtio devices that are added from now on have the legacy interface (version 1).
    pub virtio_legacy: bool,
    harts: usize,
    /// Number of virtio devices.
    virtio: u32,
    stdout: Option<String>,
    devices: Vec<DeviceNode>,
}

impl Board {
    /// A board with `ram_size` bytes of memory whose clock shows `epoch_seconds` (Unix time) at
    /// reset.
    pub fn new(
        ram_size: u64,
        harts: usize,
        clock: Clock,
        epoch_seconds: u64,
    ) -> Result<Self, BoardError> {
        let bus = Bus::new(ram_size, harts, clock)?;
        let mut board =
            Self { bus, virtio_legacy: false, harts, virtio: 0, stdout: None, devices: Vec::new() };
        let syscon = ["sifive,test1", "sifive,test0", "syscon"];
        board.add(DeviceNode::at("test", &syscon, &SYSCON, 0), Box::new(Syscon))?;
        board.add(
            DeviceNode::at("rtc", &["google,goldfish-rtc"], &RTC, 0),
            Box::new(Rtc::new(epoch_seconds)),
        )?;
        Ok(board)
    }

    /// Adds any device with its node.
    pub fn add(&mut self, node: DeviceNode, device: Box<dyn Device>) -> Result<(), Overlap> {
        self.bus.add_device(node.base, node.size, node.irq, device)?;
        self.devices.push(node);
        Ok(())
    }

    /// Adds devices that one node describes: each has an equal part of its registers, and the interrupt after that of
    /// the one before.
    pub fn add_units(
        &mut self,
        mut node: DeviceNode,
        units: Vec<Box<dyn Device>>,
    ) -> Result<(), Overlap> {
        node.units = units.len() as u32;
        let size = node.size / units.len().max(1) as u64;
        for (n, device) in units.into_iter().enumerate() {
            let base = node.base + size * n as u64;
            let irq = node.irq.map(|irq| irq + n as u32);
            self.bus.add_device(base, size, irq, device)?;
        }
        self.devices.push(node);
        Ok(())
    }

    /// Adds the serial port and makes it the console.
    pub fn add_uart(&mut self, output: Output, input: Option<Input>) -> Result<(), Overlap> {
        let node = DeviceNode::at("serial", &["ns16550a"], &UART, 0)
            .with("clock-frequency", Property::Cells(vec![3_686_400]))
            .with("current-speed", Property::Cells(vec![115_200]));
        let path = node.path();
        self.add(node, Box::new(Uart::new(output, input)))?;
        self.stdout = Some(path);
        Ok(())
    }

    /// Adds a virtio device. The guest numbers disks in the order in which they are added.
    pub fn add_virtio(
        &mut self,
        backend: Box<dyn Backend>,
        latency: Latency,
    ) -> Result<(), BoardError> {
        if self.virtio == VIRTIO.count {
            return Err(BoardError::VirtioSlots);
        }
        let node = DeviceNode::at("virtio_mmio", &["virtio,mmio"], &VIRTIO, self.virtio)
            .with("dma-coherent", Property::Flag);
        let device = VirtioMmio::new(backend, latency);
        let device = match self.virtio_legacy {
            true => device.legacy(),
            false => device,
        };
        self.add(node, Box::new(device))?;
        self.virtio += 1;
        Ok(())
    }

    /// The tree of this board, with performance counters and no caches; every part of it can
    /// still be changed.
    pub fn device_tree(&self, isa: Isa, bootargs: &str, initrd: Option<Range<u64>>) -> DeviceTree {
        DeviceTree {
            harts: self.harts,
            ram_size: self.bus.ram.size(),
            clock: self.bus.clock(),
            isa,
            caches: None,
            bootargs: bootargs.to_owned(),
            initrd,
            stdout: self.stdout.clone(),
            seed: 0,
            pmu: true,
            syscon: Some(SYSCON.base),
            devices: self.devices.clone(),
        }
    }
}
