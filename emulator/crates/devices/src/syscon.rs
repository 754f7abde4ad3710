//! SiFive's test finisher, which Linux uses as `syscon-poweroff` and `syscon-reboot`.

use crate::{AccessFault, Cx, Device, Exit};

/// Size of the register window in bytes.
pub const SYSCON_SIZE: u64 = 0x1000;

/// Command that ends the run with a status, given in the upper half of the word.
const FAIL: u32 = 0x3333;
/// Command that ends the run well.
pub const SYSCON_POWER_OFF: u32 = 0x5555;
/// Command that resets the machine.
pub const SYSCON_RESET: u32 = 0x7777;

/// The finisher: one write-only register of 2 or 4 bytes at offset 0.
pub struct Syscon;

snapshot::snapshot!(Syscon {});

impl Device for Syscon {
    fn read(&mut self, _offset: u64, _size: u8, _cx: &mut Cx<'_>) -> Result<u64, AccessFault> {
        Ok(0)
    }

    fn write(
        &mut self,
        offset: u64,
        _size: u8,
        value: u64,
        cx: &mut Cx<'_>,
    ) -> Result<(), AccessFault> {
        let value = value as u32;
        match (offset, value & 0xffff) {
            (0, FAIL) => cx.exit(Exit::PowerOff(value >> 16)),
            (0, SYSCON_POWER_OFF) => cx.exit(Exit::PowerOff(0)),
            (0, SYSCON_RESET) => cx.exit(Exit::Reset),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bus, Clock};

    #[test]
    fn commands() {
        for (value, exit) in [
            (0x5555, Some(Exit::PowerOff(0))),
            (0x0003_3333, Some(Exit::PowerOff(3))),
            (0x7777, Some(Exit::Reset)),
            (0x1234, None),
        ] {
            let mut bus = Bus::new(1 << 20, 1, Clock::default()).unwrap();
            bus.add_device(0x10_0000, SYSCON_SIZE, None, Box::new(Syscon)).unwrap();
            bus.store(0x10_0004, 4, value).unwrap();
            assert_eq!(bus.exit, None);
            bus.store(0x10_0000, 4, value).unwrap();
            assert_eq!(bus.exit, exit);
        }
    }
}
