//! The 16550A serial port: [`Uart16550`] is the chip, [`Uart`] puts it on the bus with a console.

mod chip;

pub use chip::Uart16550;

use snapshot::{Archive, Snapshot};

use crate::{AccessFault, Cx, Device, Input, Output};

/// Size of the register window in bytes.
pub const UART_SIZE: u64 = 0x100;

/// Polls per simulated second: each takes input from the host and flushes an unfinished line of output. With a FIFO of
/// 16 bytes that allows 16,000 bytes of input per second; 115,200 baud are 11,520.
const POLL_HZ: u64 = 1000;

/// The serial port as a device. Registers are bytes (`reg-shift` 0); a wider access reaches the
/// first of its bytes.
pub struct Uart {
    chip: Uart16550,
    output: Output,
    input: Option<Input>,
}

impl Snapshot for Uart {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        let Self { chip, output, input: _ } = self;
        // The buffer of an unfinished output line is not saved.
        output.flush();
        chip.snapshot(archive)
    }
}

impl Uart {
    /// A port that writes to `output` and, if there is an `input`, polls it.
    pub fn new(output: Output, input: Option<Input>) -> Self {
        Self { chip: Uart16550::default(), output, input }
    }

    fn poll_after(cx: &mut Cx<'_>) {
        cx.schedule(cx.now.saturating_add((cx.clock.clock_hz() / POLL_HZ).max(1)));
    }
}

impl Device for Uart {
    fn read(&mut self, offset: u64, _size: u8, _cx: &mut Cx<'_>) -> Result<u64, AccessFault> {
        Ok(self.chip.read(offset).into())
    }

    fn write(
        &mut self,
        offset: u64,
        _size: u8,
        value: u64,
        cx: &mut Cx<'_>,
    ) -> Result<(), AccessFault> {
        if let Some(byte) = self.chip.write(offset, value as u8) {
            let waits = self.output.put(&[byte]);
            if waits && cx.scheduled() == u64::MAX {
                Self::poll_after(cx);
            }
        }
        Ok(())
    }

    fn start(&mut self, cx: &mut Cx<'_>) {
        if self.input.is_some() {
            Self::poll_after(cx);
        }
    }

    fn event(&mut self, cx: &mut Cx<'_>) {
        self.output.flush();
        if let Some(input) = &self.input {
            if self.chip.listens() {
                self.chip.receive(&input.take(self.chip.room()));
            }
            Self::poll_after(cx);
        }
    }

    fn irq_level(&self) -> bool {
        self.chip.interrupt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bus, Capture, Clock};

    #[test]
    fn prompt_appears_after_a_moment_and_input_arrives() {
        let mut bus = Bus::new(1 << 20, 1, Clock::default()).unwrap();
        let (capture, input) = (Capture::default(), Input::default());
        let uart = Uart::new(Output::new(Box::new(capture.clone())), Some(input.clone()));
        bus.add_device(0x1000_0000, UART_SIZE, Some(10), Box::new(uart)).unwrap();
        for &byte in b"$ " {
            bus.store(0x1000_0000, 1, byte.into()).unwrap();
        }
        assert_eq!(capture.text(), "");
        bus.advance(bus.next_event());
        assert_eq!(capture.text(), "$ ");
        input.push(b"l");
        bus.advance(bus.next_event());
        assert!(!input.is_empty(), "no driver has opened the port yet");
        bus.store(0x1000_0001, 1, 1).unwrap();
        assert_eq!(bus.load(0x1000_0005, 1), Ok(0x60));
        input.push(b"s\n");
        bus.advance(bus.next_event());
        let mut line = Vec::new();
        while bus.load(0x1000_0005, 1).unwrap() & 1 != 0 {
            line.push(bus.load(0x1000_0000, 1).unwrap() as u8);
        }
        assert_eq!(line, b"l", "without FIFOs there is room for one byte");
    }

    #[test]
    fn without_input_the_port_sleeps() {
        let mut bus = Bus::new(1 << 20, 1, Clock::default()).unwrap();
        let uart = Uart::new(Output::new(Box::new(Capture::default())), None);
        bus.add_device(0x1000_0000, UART_SIZE, Some(10), Box::new(uart)).unwrap();
        assert_eq!(bus.next_event(), u64::MAX);
        bus.store(0x1000_0000, 1, b'x'.into()).unwrap();
        bus.advance(bus.next_event());
        assert_eq!(bus.next_event(), u64::MAX);
    }
}
