//! Registers of the 16550A (National Semiconductor PC16550D data sheet, table II).
//!
//! Not modelled, because no driver needs them: the baud rate (a byte is sent as soon as it is
//! written, so the transmitter is always empty), line errors and breaks.

use std::collections::VecDeque;

const FIFO_DEPTH: usize = 16;

/// After so many reads of the line status while a "transmitter empty" interrupt is pending, the driver counts as one
/// that never reads the interrupt identification (see `status_acknowledges`).
const MAX_UNACKNOWLEDGED_READS: u32 = 1000;

/// After so many reads of the line status with nothing sent between them, the driver counts as one that polls for input. A
/// driver that only sends reads it before each byte, and Linux's reads it some eight times while it opens the port.
const POLLING_READS: u32 = 32;

/// Interrupt enables.
mod ier {
    pub(crate) const RECEIVED: u8 = 1;
    pub(crate) const TRANSMITTER_EMPTY: u8 = 1 << 1;
    pub(crate) const ALL: u8 = 0xf;
}

/// Interrupt identification: the cause, in order of rising priority.
mod iir {
    pub(crate) const NONE: u8 = 1;
    pub(crate) const TRANSMITTER_EMPTY: u8 = 2;
    pub(crate) const RECEIVED: u8 = 4;
    pub(crate) const TIMEOUT: u8 = 0xc;
    pub(crate) const FIFOS: u8 = 0xc0;
}

mod fcr {
    pub(crate) const ENABLE: u8 = 1;
    pub(crate) const CLEAR_RECEIVER: u8 = 2;
}

mod lcr {
    pub(crate) const DIVISOR_LATCH: u8 = 0x80;
}

/// Modem control.
mod mcr {
    pub(crate) const DTR: u8 = 1;
    pub(crate) const RTS: u8 = 2;
    pub(crate) const OUT1: u8 = 4;
    pub(crate) const OUT2: u8 = 8;
    pub(crate) const LOOP: u8 = 0x10;
    pub(crate) const ALL: u8 = 0x1f;
}

/// Line status.
mod lsr {
    pub(crate) const DATA_READY: u8 = 1;
    /// Holding register empty, transmitter empty.
    pub(crate) const EMPTY: u8 = 0x60;
}

/// Modem status.
mod msr {
    pub(crate) const CTS: u8 = 0x10;
    pub(crate) const DSR: u8 = 0x20;
    pub(crate) const RING: u8 = 0x40;
    pub(crate) const CARRIER: u8 = 0x80;
}

/// Register numbers; some mean one thing when read and another when written.
#[derive(Clone, Copy)]
enum Register {
    Data,
    InterruptEnable,
    /// Interrupt identification when read, FIFO control when written.
    InterruptIdFifoControl,
    LineControl,
    ModemControl,
    LineStatus,
    ModemStatus,
    Scratch,
    DivisorLow,
    DivisorHigh,
}

/// The chip's registers and FIFO, without a console.
#[derive(Default)]
pub struct Uart16550 {
    received: VecDeque<u8>,
    interrupt_enable: u8,
    fifo_control: u8,
    line_control: u8,
    modem_control: u8,
    scratch: u8,
    divisor: [u8; 2],
    /// The "transmitter empty" interrupt is pending: the driver has not acknowledged it yet.
    transmitted: bool,
    /// Reads of the line status since it became pending.
    unacknowledged: u32,
    /// A read of the line status also acknowledges "transmitter empty", against the data sheet. xv6 until 2023 and its
    /// derivatives never read the interrupt identification. That works on QEMU, whose PLIC forgets levels; here they
    /// would be interrupted forever.
    status_acknowledges: bool,
    /// Reads of the line status since a byte was sent or the driver reset the receiver, up to [`POLLING_READS`].
    polls: u32,
}

snapshot::snapshot!(Uart16550 {
    received,
    interrupt_enable,
    fifo_control,
    line_control,
    modem_control,
    scratch,
    divisor,
    transmitted,
    unacknowledged,
    status_acknowledges,
    polls,
});

impl Uart16550 {
    /// How many more bytes [`Self::receive`] takes.
    pub fn room(&self) -> usize {
        let depth = if self.fifos() { FIFO_DEPTH } else { 1 };
        depth.saturating_sub(self.received.len())
    }

    /// True if the driver takes input: it has the receiver's interrupt enabled, or polls. The host sends no byte before: one
    /// that comes earlier is lost when a driver opens the port and clears the FIFO, as on a line without a handshake.
    pub fn listens(&self) -> bool {
        self.interrupt_enable & ier::RECEIVED != 0 || self.polls == POLLING_READS
    }

    /// Bytes that come in from the line. Those that there is no room for are lost.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.received.extend(bytes.iter().take(self.room()));
    }

    /// Level of the interrupt line.
    pub fn interrupt(&self) -> bool {
        self.cause() != iir::NONE
    }

    /// Reads a register (0 to 7; higher numbers wrap around).
    pub fn read(&mut self, register: u64) -> u8 {
        match self.register(register) {
            Register::Data => self.received.pop_front().unwrap_or(0),
            Register::InterruptEnable => self.interrupt_enable,
            Register::InterruptIdFifoControl => {
                let cause = self.cause();
                if cause == iir::TRANSMITTER_EMPTY {
                    (self.transmitted, self.unacknowledged) = (false, 0);
                }
                cause | if self.fifos() { iir::FIFOS } else { 0 }
            }
            Register::LineControl => self.line_control,
            Register::ModemControl => self.modem_control,
            Register::LineStatus => {
                self.polls = (self.polls + 1).min(POLLING_READS);
                self.note_status_read();
                lsr::EMPTY | if self.received.is_empty() { 0 } else { lsr::DATA_READY }
            }
            Register::ModemStatus => self.modem_status(),
            Register::Scratch => self.scratch,
            Register::DivisorLow => self.divisor[0],
            Register::DivisorHigh => self.divisor[1],
        }
    }

    /// Writes a register; returns the byte that goes out on the line, if one does.
    pub fn write(&mut self, register: u64, value: u8) -> Option<u8> {
        match self.register(register) {
            Register::Data => {
                (self.transmitted, self.unacknowledged) = (true, 0);
                if self.polls < POLLING_READS {
                    self.polls = 0;
                }
                if self.modem_control & mcr::LOOP == 0 {
                    return Some(value);
                }
                self.receive(&[value]);
            }
            Register::InterruptEnable => {
                let risen = value & !self.interrupt_enable;
                self.interrupt_enable = value & ier::ALL;
                // To enable the interrupt while the transmitter is empty raises it.
                self.transmitted |= risen & ier::TRANSMITTER_EMPTY != 0;
            }
            Register::InterruptIdFifoControl => {
                let switched = (value ^ self.fifo_control) & fcr::ENABLE != 0;
                if switched || value & fcr::CLEAR_RECEIVER != 0 {
                    self.received.clear();
                    self.polls = 0;
                }
                self.fifo_control = value;
            }
            Register::LineControl => self.line_control = value,
            Register::ModemControl => self.modem_control = value & mcr::ALL,
            Register::LineStatus | Register::ModemStatus => {}
            Register::Scratch => self.scratch = value,
            Register::DivisorLow => self.divisor[0] = value,
            Register::DivisorHigh => self.divisor[1] = value,
        }
        None
    }

    fn register(&self, number: u64) -> Register {
        let latch = self.line_control & lcr::DIVISOR_LATCH != 0;
        match number & 7 {
            0 if latch => Register::DivisorLow,
            1 if latch => Register::DivisorHigh,
            0 => Register::Data,
            1 => Register::InterruptEnable,
            2 => Register::InterruptIdFifoControl,
            3 => Register::LineControl,
            4 => Register::ModemControl,
            5 => Register::LineStatus,
            6 => Register::ModemStatus,
            _ => Register::Scratch,
        }
    }

    fn note_status_read(&mut self) {
        if self.cause() != iir::TRANSMITTER_EMPTY {
            return;
        }
        self.unacknowledged += 1;
        if self.unacknowledged == MAX_UNACKNOWLEDGED_READS && !self.status_acknowledges {
            self.status_acknowledges = true;
            tracing::warn!(
                "serial port: the guest handles its interrupt without end: expected a read of the interrupt \
                 identification register (16550 data sheet, table IV), found {MAX_UNACKNOWLEDGED_READS} of the line status alone. \
                 From now on these do"
            );
        }
        if self.status_acknowledges {
            (self.transmitted, self.unacknowledged) = (false, 0);
        }
    }

    fn fifos(&self) -> bool {
        self.fifo_control & fcr::ENABLE != 0
    }

    /// Number of received bytes that raise an interrupt.
    fn trigger(&self) -> usize {
        if self.fifos() { [1, 4, 8, 14][usize::from(self.fifo_control >> 6)] } else { 1 }
    }

    /// The most urgent enabled cause. Bytes below the trigger level make a timeout at once: the
    /// four character times that it takes on the chip are not modelled.
    fn cause(&self) -> u8 {
        let enabled = |bit| self.interrupt_enable & bit != 0;
        if enabled(ier::RECEIVED) && self.received.len() >= self.trigger() {
            iir::RECEIVED
        } else if enabled(ier::RECEIVED) && !self.received.is_empty() {
            iir::TIMEOUT
        } else if enabled(ier::TRANSMITTER_EMPTY) && self.transmitted {
            iir::TRANSMITTER_EMPTY
        } else {
            iir::NONE
        }
    }

    /// The other end is always ready, except in the loop, where the inputs are our own outputs.
    fn modem_status(&self) -> u8 {
        if self.modem_control & mcr::LOOP == 0 {
            return msr::CTS | msr::DSR | msr::CARRIER;
        }
        let wires = [
            (mcr::RTS, msr::CTS),
            (mcr::DTR, msr::DSR),
            (mcr::OUT1, msr::RING),
            (mcr::OUT2, msr::CARRIER),
        ];
        let on = wires.iter().filter(|(output, _)| self.modem_control & output != 0);
        on.fold(0, |status, (_, input)| status | input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: u64 = 0;
    const IER: u64 = 1;
    const IIR_FCR: u64 = 2;
    const LCR: u64 = 3;
    const MCR: u64 = 4;
    const LSR: u64 = 5;
    const MSR: u64 = 6;

    #[test]
    fn transmitter_interrupt() {
        let mut uart = Uart16550::default();
        assert_eq!(uart.write(DATA, b'a'), Some(b'a'));
        assert!(!uart.interrupt());
        uart.write(IER, ier::TRANSMITTER_EMPTY);
        assert!(uart.interrupt());
        assert_eq!(uart.read(IIR_FCR), iir::TRANSMITTER_EMPTY);
        assert!(!uart.interrupt(), "reading the cause clears it");
        assert_eq!(uart.read(IIR_FCR), iir::NONE);
        uart.write(DATA, b'b');
        assert!(uart.interrupt());
        uart.write(IER, 0);
        assert!(!uart.interrupt());
    }

    #[test]
    fn the_line_status_acknowledges_only_for_who_never_reads_the_cause() {
        let mut uart = Uart16550::default();
        uart.write(IER, ier::TRANSMITTER_EMPTY);
        for _ in 1..MAX_UNACKNOWLEDGED_READS {
            assert_eq!(uart.read(LSR), lsr::EMPTY);
        }
        assert!(uart.interrupt());
        uart.read(IIR_FCR);
        for round in 0..3 {
            uart.write(DATA, b'x');
            for _ in 1..MAX_UNACKNOWLEDGED_READS {
                assert!(uart.interrupt(), "{round}");
                uart.read(LSR);
            }
        }
        uart.read(LSR);
        assert!(!uart.interrupt());
        uart.write(DATA, b'y');
        assert!(uart.interrupt(), "each byte still makes one");
        uart.read(LSR);
        assert!(!uart.interrupt());
    }

    #[test]
    fn receiver_trigger_and_timeout() {
        let mut uart = Uart16550::default();
        uart.write(IIR_FCR, 0x41);
        uart.write(IER, ier::RECEIVED | ier::TRANSMITTER_EMPTY);
        uart.receive(b"abc");
        assert_eq!(uart.read(IIR_FCR), iir::FIFOS | iir::TIMEOUT);
        uart.receive(b"d");
        assert_eq!(uart.read(IIR_FCR), iir::FIFOS | iir::RECEIVED);
        assert_eq!([(); 5].map(|()| uart.read(DATA)), *b"abcd\0");
        assert_eq!(uart.read(IIR_FCR), iir::FIFOS | iir::TRANSMITTER_EMPTY);
    }

    #[test]
    fn input_waits_for_a_driver_that_takes_it() {
        let mut uart = Uart16550::default();
        let prints = |uart: &mut Uart16550, count: usize| {
            for _ in 0..count {
                uart.read(LSR);
                uart.write(DATA, b'x');
            }
        };
        prints(&mut uart, 200);
        assert!(!uart.listens(), "a driver that only sends");
        for _ in 0..POLLING_READS {
            assert!(!uart.listens());
            uart.read(LSR);
        }
        assert!(uart.listens(), "a driver that polls");
        prints(&mut uart, 1);
        assert!(uart.listens(), "it echoes what it got");
        uart.write(IIR_FCR, fcr::ENABLE | fcr::CLEAR_RECEIVER);
        assert!(!uart.listens(), "another driver begins");
        uart.write(IER, ier::RECEIVED);
        assert!(uart.listens(), "a driver that is interrupted");
        uart.write(IER, 0);
        assert!(!uart.listens());
    }

    #[test]
    fn fifo_is_bounded_and_clears() {
        let mut uart = Uart16550::default();
        uart.receive(b"xy");
        assert_eq!((uart.read(DATA), uart.read(LSR) & lsr::DATA_READY), (b'x', 0));
        uart.write(IIR_FCR, fcr::ENABLE);
        uart.receive(&[1; 40]);
        assert_eq!((uart.received.len(), uart.room()), (FIFO_DEPTH, 0));
        uart.write(IIR_FCR, fcr::ENABLE | fcr::CLEAR_RECEIVER);
        assert_eq!(uart.read(LSR), lsr::EMPTY);
    }

    #[test]
    fn divisor_latch_and_scratch() {
        let mut uart = Uart16550::default();
        uart.write(LCR, 0x83);
        assert_eq!(uart.write(DATA, 0x12), None);
        uart.write(IER, 0x34);
        assert_eq!((uart.read(DATA), uart.read(IER)), (0x12, 0x34));
        uart.write(LCR, 0x03);
        assert_eq!((uart.read(DATA), uart.read(IER)), (0, 0));
        uart.write(7, 0xa5);
        assert_eq!(uart.read(7), 0xa5);
        uart.write(LSR, 0xff);
        assert_eq!(uart.read(LSR), lsr::EMPTY);
    }

    #[test]
    fn loop_back() {
        let mut uart = Uart16550::default();
        uart.write(MCR, mcr::LOOP | 0x0a);
        assert_eq!(uart.read(MSR), 0x90, "what Linux probes for");
        assert_eq!(uart.write(DATA, b'q'), None);
        assert_eq!(uart.read(DATA), b'q');
    }
}
