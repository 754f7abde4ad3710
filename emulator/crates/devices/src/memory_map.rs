//! The memory map: where the machine has its devices, and which source of the interrupt controller each one's line is. One
//! table for the bus, the board, the device tree and the documentation. Addresses are those of QEMU's `virt` machine where that
//! has the device, so that software that has them built in works.

use crate::clint::CLINT_SIZE;
use crate::plic::PLIC_SIZE;
use crate::rtc::RTC_SIZE;
use crate::syscon::SYSCON_SIZE;
use crate::uart::UART_SIZE;
use crate::virtio::VIRTIO_SIZE;

/// First physical address of RAM. It has as many bytes as the machine is given.
pub const RAM_BASE: u64 = 0x8000_0000;

/// Harts of a machine at most: so many TIP units have a place.
const HARTS: u32 = 16;

/// Place of a device, or of several of the same kind one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// What is there, in words.
    pub name: &'static str,
    /// Physical address of the first register of the first device.
    pub base: u64,
    /// Bytes of each device's registers.
    pub size: u64,
    /// Number of devices that have a place here.
    pub count: u32,
    /// Source of the interrupt controller that the first device's line is, if it has one; the next device's is one more.
    pub first_source: Option<u32>,
}

impl Region {
    /// Returns the place of one device, with its interrupt source if it has one.
    const fn one(name: &'static str, base: u64, size: u64, first_source: Option<u32>) -> Self {
        Self { name, base, size, count: 1, first_source }
    }

    /// Returns the physical address of device `number`, from 0.
    pub const fn base_of(&self, number: u32) -> u64 {
        self.base + self.size * number as u64
    }

    /// Returns the interrupt source of device `number`, from 0, if these devices have one.
    pub const fn source_of(&self, number: u32) -> Option<u32> {
        match self.first_source {
            Some(first) => Some(first + number),
            None => None,
        }
    }

    /// Returns the physical address after the last device.
    pub const fn end(&self) -> u64 {
        self.base_of(self.count)
    }
}

/// Power switch.
pub const SYSCON: Region = Region::one("power switch", 0x10_0000, SYSCON_SIZE, None);
/// Clock.
pub const RTC: Region = Region::one("clock", 0x10_1000, RTC_SIZE, Some(11));
/// Core-local interruptor: timers and software interrupts.
pub const CLINT: Region = Region::one("CLINT", 0x200_0000, CLINT_SIZE, None);
/// Interrupt controller.
pub const PLIC: Region = Region::one("PLIC", 0xc00_0000, PLIC_SIZE, None);
/// Serial port.
pub const UART: Region = Region::one("serial port", 0x1000_0000, UART_SIZE, Some(10));
/// Virtio devices.
pub const VIRTIO: Region = Region {
    name: "virtio devices",
    base: 0x1000_1000,
    size: VIRTIO_SIZE,
    count: 8,
    first_source: Some(1),
};
/// TIP units, one for each hart.
pub const TIP_UNITS: Region = Region {
    name: "TIP units",
    base: 0x1004_0000,
    size: 0x1000,
    count: HARTS,
    first_source: Some(32),
};
/// Performance monitoring units of the last-level cache and of the memory controller.
pub const UNCORE_PMUS: Region = Region {
    name: "PMUs of last-level cache and memory controller",
    base: 0x1005_0000,
    size: 0x1000,
    count: 2,
    first_source: Some(48),
};

/// All devices that have a place of their own, in order of address.
pub const ALL: [Region; 8] = [SYSCON, RTC, CLINT, PLIC, UART, VIRTIO, TIP_UNITS, UNCORE_PMUS];

/// Physical address of the core-local interruptor.
pub const CLINT_BASE: u64 = CLINT.base;
/// Physical address of the interrupt controller.
pub const PLIC_BASE: u64 = PLIC.base;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PLIC_SOURCES;

    #[test]
    fn no_addresses_overlap() {
        for two in ALL.windows(2) {
            assert!(two[0].end() <= two[1].base, "{} and {}", two[0].name, two[1].name);
        }
        assert!(ALL[ALL.len() - 1].end() <= RAM_BASE);
    }

    #[test]
    fn no_interrupt_source_has_two_devices() {
        let mut taken = [""; PLIC_SOURCES as usize + 1];
        for region in ALL {
            for source in (0..region.count).filter_map(|number| region.source_of(number)) {
                assert!((1..=PLIC_SOURCES).contains(&source), "{}: {source}", region.name);
                let other = std::mem::replace(&mut taken[source as usize], region.name);
                assert_eq!(other, "", "{source} is also of: {}", region.name);
            }
        }
    }
}
