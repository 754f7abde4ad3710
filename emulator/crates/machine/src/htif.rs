//! Berkeley host-target interface: how bare-metal tests end, print and call the host.

use std::io::Write;

use crate::{Exit, Ram};

const SYS_WRITE: u64 = 64;
const SYS_EXIT: u64 = 93;
const ENOSYS: i64 = -38;
const EBADF: i64 = -9;
const EFAULT: i64 = -14;

/// The `tohost` and `fromhost` words of an ELF file, and where its output goes.
///
/// A command in `tohost` is `device << 56 | command << 48 | payload`. Device 0 takes exit codes
/// (`code << 1 | 1`) and the addresses of system calls, device 1 is the console.
pub struct Htif {
    tohost: u64,
    fromhost: Option<u64>,
    output: Box<dyn Write + Send>,
}

impl Htif {
    /// An interface at the physical addresses of the two symbols.
    pub fn new(tohost: u64, fromhost: Option<u64>, output: Box<dyn Write + Send>) -> Self {
        Self {
            tohost,
            fromhost,
            output,
        }
    }

    /// Address of the `tohost` word.
    pub fn tohost(&self) -> u64 {
        self.tohost
    }

    /// Acts on a command in `tohost`, if there is one.
    pub fn poll(&mut self, ram: &mut Ram) -> Option<Exit> {
        let word = ram.load(self.tohost, 8).filter(|&word| word != 0)?;
        let (device, command) = ((word >> 56) as u8, (word >> 48) as u8);
        let payload = word & 0xffff_ffff_ffff;
        match (device, command) {
            (0, 0) if payload & 1 != 0 => return Some(Exit::Host(payload >> 1)),
            // A negative exit code, whose sign runs over the device number.
            (0xff, 0xff) if payload & 1 != 0 => {
                return Some(Exit::Host((word as i64 >> 1) as u64));
            }
            (0, 0) => {
                if let Some(exit) = self.syscall(payload, ram) {
                    return Some(exit);
                }
                ram.store(self.tohost, 8, 0);
                self.respond(1, ram);
            }
            (1, 1) => {
                // The console is best effort: a closed pipe must not change the run.
                let _ = self.output.write_all(&[payload as u8]);
                if payload as u8 == b'\n' {
                    let _ = self.output.flush();
                }
                ram.store(self.tohost, 8, 0);
            }
            // Console input (device 1, command 0) is not modelled: no test waits for it. Every
            // other command is unknown, and swallowed like Spike does.
            _ => {
                ram.store(self.tohost, 8, 0);
            }
        }
        None
    }

    /// The proxied call whose number and arguments are eight words at `block`; the result goes
    /// to the first.
    fn syscall(&mut self, block: u64, ram: &mut Ram) -> Option<Exit> {
        let mut words = [0; 8];
        for (n, word) in words.iter_mut().enumerate() {
            *word = ram.load(block.wrapping_add(8 * n as u64), 8).unwrap_or(0);
        }
        let [number, fd, buffer, length, ..] = words;
        let result = match number {
            SYS_EXIT => return Some(Exit::Host(fd)),
            SYS_WRITE if fd == 1 || fd == 2 => match ram.slice(buffer, length) {
                Some(bytes) => {
                    let _ = self.output.write_all(bytes);
                    let _ = self.output.flush();
                    length as i64
                }
                None => EFAULT,
            },
            SYS_WRITE => EBADF,
            _ => ENOSYS,
        };
        ram.store(block, 8, result as u64);
        None
    }

    fn respond(&mut self, word: u64, ram: &mut Ram) {
        if let Some(fromhost) = self.fromhost {
            ram.store(fromhost, 8, word);
        }
    }
}

/// The signature of an architecture test: memory from `begin` to `end` as lines of `granularity`
/// bytes in hexadecimal, most significant digit first. `None` unless all of it is RAM.
pub fn signature(ram: &Ram, begin: u64, end: u64, granularity: usize) -> Option<String> {
    let bytes = ram.slice(begin, end.checked_sub(begin)?)?;
    let mut text = String::new();
    for chunk in bytes.chunks(granularity.max(1)) {
        // A short last line is padded with zeros, as Spike pads it.
        text.extend(std::iter::repeat_n("00", granularity.max(1) - chunk.len()));
        text.extend(chunk.iter().rev().map(|byte| format!("{byte:02x}")));
        text.push('\n');
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::Capture;
    use crate::{Bus, Clock, RAM_BASE};

    const TOHOST: u64 = RAM_BASE + 0x1000;
    const FROMHOST: u64 = RAM_BASE + 0x1040;

    fn bus() -> (Bus, Capture) {
        let mut bus = Bus::new(1 << 20, 1, Clock::default()).unwrap();
        let capture = Capture::default();
        bus.attach_htif(Htif::new(TOHOST, Some(FROMHOST), Box::new(capture.clone())));
        (bus, capture)
    }

    fn send(bus: &mut Bus, word: u64) {
        bus.ram.store(TOHOST, 8, word).unwrap();
        bus.watched_store(TOHOST);
    }

    #[test]
    fn exit_codes() {
        let (mut bus, _) = bus();
        assert_ne!(bus.ram.page_flags(TOHOST) & Ram::WATCHED, 0);
        send(&mut bus, 0);
        assert_eq!(bus.exit, None);
        send(&mut bus, 1337 << 1 | 1);
        assert_eq!(bus.exit, Some(Exit::Host(1337)));
    }

    #[test]
    fn console_and_unknown_commands() {
        let (mut bus, capture) = bus();
        for byte in *b"hi\n" {
            send(&mut bus, 1 << 56 | 1 << 48 | u64::from(byte));
            assert_eq!(bus.ram.load(TOHOST, 8), Some(0));
        }
        send(&mut bus, 0xfe << 56);
        assert_eq!(bus.ram.load(TOHOST, 8), Some(0));
        assert_eq!(capture.text(), "hi\n");
    }

    #[test]
    fn proxied_write() {
        let (mut bus, capture) = bus();
        let block = RAM_BASE + 0x2000;
        bus.ram.write(RAM_BASE + 0x3000, b"hello").unwrap();
        let mut call = |fd, buffer, length| {
            for (n, word) in [SYS_WRITE, fd, buffer, length].into_iter().enumerate() {
                bus.ram.store(block + 8 * n as u64, 8, word).unwrap();
            }
            send(&mut bus, block);
            assert_eq!(bus.ram.load(FROMHOST, 8), Some(1));
            bus.ram.load(block, 8).unwrap() as i64
        };
        assert_eq!(call(1, RAM_BASE + 0x3000, 5), 5);
        assert_eq!(call(1, RAM_BASE + 0x3000, u64::MAX), EFAULT);
        assert_eq!(call(7, RAM_BASE + 0x3000, 5), EBADF);
        assert_eq!(capture.text(), "hello");
        send(&mut bus, 0x10);
        assert_eq!(
            bus.ram.load(TOHOST, 8),
            Some(0),
            "a block outside RAM does no harm"
        );
    }

    #[test]
    fn signature_lines() {
        let mut ram = Ram::new(1 << 20).unwrap();
        ram.write(RAM_BASE, &[1, 2, 3, 4, 5, 6]).unwrap();
        assert_eq!(
            signature(&ram, RAM_BASE, RAM_BASE + 6, 4).unwrap(),
            "04030201\n00000605\n"
        );
        assert_eq!(signature(&ram, RAM_BASE + 1, RAM_BASE, 4), None);
        assert_eq!(signature(&ram, 0, RAM_BASE, 4), None);
    }
}
