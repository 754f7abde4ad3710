//! Berkeley host-target interface: how bare-metal tests end, print, read and call the host.

mod proxy;

use std::collections::VecDeque;
use std::io::{Read, Write};

use crate::{Exit, Ram};

/// Maximum number of different warnings; the guest decides how many it causes.
const MAX_WARNINGS: usize = 16;
/// Maximum number of answers that wait for the guest to read them; it decides how many it asks for.
const MAX_WAITING_ANSWERS: usize = 16;

/// The `tohost` and `fromhost` words of an ELF file, and where its output goes.
///
/// A command in `tohost` is `device << 56 | command << 48 | payload`. Device 0 takes exit codes
/// (`code << 1 | 1`) and the addresses of system calls, device 1 is the console: command 0 reads a byte, command 1
/// prints one. The program writes zero to `fromhost` when it has taken an answer; only then the next is written.
pub struct Htif {
    tohost: u64,
    fromhost: Option<u64>,
    output: Box<dyn Write + Send>,
    input: Option<Box<dyn Read + Send>>,
    arguments: Vec<String>,
    answers: VecDeque<u64>,
    warnings: Vec<String>,
    unanswered: Option<u64>,
}

impl Htif {
    /// An interface at the physical addresses of the two symbols, without input.
    pub fn new(tohost: u64, fromhost: Option<u64>, output: Box<dyn Write + Send>) -> Self {
        Self {
            tohost,
            fromhost,
            output,
            input: None,
            arguments: Vec::new(),
            answers: VecDeque::new(),
            warnings: Vec::new(),
            unanswered: None,
        }
    }

    /// The console's input. It is read when the program asks for a byte; the machine stands still meanwhile.
    pub fn with_input(mut self, input: Box<dyn Read + Send>) -> Self {
        self.input = Some(input);
        self
    }

    /// What the program gets as `argv`.
    pub fn with_arguments(mut self, arguments: Vec<String>) -> Self {
        self.arguments = arguments;
        self
    }

    /// Addresses of its words: whoever writes to their pages calls [`Self::poll`].
    pub fn words(&self) -> impl Iterator<Item = u64> {
        std::iter::once(self.tohost).chain(self.fromhost)
    }

    /// Commands since the program asked for a byte although the input was at its end; `None` if it never did.
    pub fn unanswered(&self) -> Option<u64> {
        self.unanswered
    }

    /// Acts on a command in `tohost`, if there is one, and hands on the next answer, if there is room.
    pub fn poll(&mut self, ram: &mut Ram) -> Option<Exit> {
        let exit = self.command(ram);
        if let Some(fromhost) = self.fromhost
            && !self.answers.is_empty()
            && ram.load(fromhost, 8) == Some(0)
            && let Some(answer) = self.answers.pop_front()
        {
            ram.store(fromhost, 8, answer);
        }
        exit
    }

    fn command(&mut self, ram: &mut Ram) -> Option<Exit> {
        let word = ram.load(self.tohost, 8).filter(|&word| word != 0)?;
        if let Some(commands) = &mut self.unanswered {
            *commands += 1;
        }
        let (device, command) = ((word >> 56) as u8, (word >> 48) as u8);
        let payload = word & 0xffff_ffff_ffff;
        match (device, command) {
            (0, 0) if payload & 1 != 0 => return Some(Exit::Host(payload >> 1)),
            // A negative exit code: its sign extension fills the fields of device and command.
            (0xff, 0xff) if payload & 1 != 0 => {
                return Some(Exit::Host((word as i64 >> 1) as u64));
            }
            (0, 0) => {
                if let Some(exit) = self.syscall(payload, ram) {
                    return Some(exit);
                }
                self.answer(1);
            }
            (1, 0) => match self.read(1).first() {
                Some(&byte) => self.answer(word & 0xffff << 48 | 0x100 | u64::from(byte)),
                // HTIF has no answer for the end of input; Spike gives none either.
                None => {
                    self.unanswered.get_or_insert(0);
                    self.warn_once(
                        "HTIF: the console's input is at its end: the program gets no byte that it \
                         asks for from now on"
                            .to_owned(),
                    );
                }
            },
            (1, 1) => self.print(&[payload as u8]),
            _ => self.warn_once(format!(
                "HTIF: expected device 0 (exit, system calls) or 1 (console: 0 read, 1 write), found \
                 device {device}, command {command} (tohost = {word:#x}): nothing is done"
            )),
        }
        ram.store(self.tohost, 8, 0);
        None
    }

    /// The console is best effort: a closed pipe must not change the run.
    fn print(&mut self, bytes: &[u8]) {
        let _ = self.output.write_all(bytes);
        if bytes.contains(&b'\n') {
            let _ = self.output.flush();
        }
    }

    /// Waits for up to `most` bytes of input; none at its end.
    fn read(&mut self, most: usize) -> Vec<u8> {
        let _ = self.output.flush();
        let mut bytes = vec![0; most];
        let count = self.input.as_mut().map(|input| input.read(&mut bytes));
        // An error counts as the end of input.
        bytes.truncate(count.and_then(Result::ok).unwrap_or(0));
        bytes
    }

    fn answer(&mut self, word: u64) {
        // A program that never takes answers needs no more of them.
        if self.fromhost.is_some() && self.answers.len() < MAX_WAITING_ANSWERS {
            self.answers.push_back(word);
        }
    }

    /// Logs a warning, unless it was logged before.
    fn warn_once(&mut self, what: String) {
        if self.warnings.len() < MAX_WARNINGS && !self.warnings.contains(&what) {
            tracing::warn!("{what}");
            self.warnings.push(what);
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
    use super::proxy::{EBADF, EFAULT, SYS_WRITE};
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
    fn console_input_waits_until_the_byte_before_was_taken() {
        let mut bus = Bus::new(1 << 20, 1, Clock::default()).unwrap();
        let htif = Htif::new(TOHOST, Some(FROMHOST), Box::new(std::io::sink()));
        bus.attach_htif(htif.with_input(Box::new(&b"ab"[..])));
        let read = 1 << 56;
        send(&mut bus, read);
        send(&mut bus, read);
        for byte in *b"ab" {
            assert_eq!(bus.ram.load(FROMHOST, 8), Some(read | 0x100 | u64::from(byte)));
            bus.ram.store(FROMHOST, 8, 0).unwrap();
            bus.watched_store(FROMHOST);
        }
        send(&mut bus, read);
        assert_eq!(bus.ram.load(FROMHOST, 8), Some(0), "nothing at the end");
        assert_eq!(bus.ram.load(TOHOST, 8), Some(0));
        assert!(bus.pause, "whoever runs it can ask");
        assert_eq!(bus.unanswered(), Some(0));
        bus.pause = false;
        send(&mut bus, 1 << 56 | 1 << 48 | u64::from(b'x'));
        assert_eq!((bus.unanswered(), bus.pause), (Some(1), false));
    }

    #[test]
    fn proxied_read_and_arguments() {
        let mut bus = Bus::new(1 << 20, 1, Clock::default()).unwrap();
        let htif = Htif::new(TOHOST, Some(FROMHOST), Box::new(std::io::sink()))
            .with_input(Box::new(&b"abc"[..]))
            .with_arguments(vec!["prog".to_owned(), "x".to_owned()]);
        bus.attach_htif(htif);
        let (block, buffer) = (RAM_BASE + 0x2000, RAM_BASE + 0x3000);
        let mut call = |number: u64, arguments: [u64; 3]| {
            bus.ram.store(block, 8, number).unwrap();
            for (n, word) in arguments.into_iter().enumerate() {
                bus.ram.store(block + 8 + 8 * n as u64, 8, word).unwrap();
            }
            bus.ram.store(FROMHOST, 8, 0).unwrap();
            send(&mut bus, block);
            let mut bytes = [0; 8];
            bytes.copy_from_slice(bus.ram.slice(buffer, 8).unwrap());
            (bus.ram.load(block, 8).unwrap() as i64, bytes)
        };
        assert_eq!(call(63, [0, buffer, 2]), (2, *b"ab\0\0\0\0\0\0"));
        assert_eq!(call(63, [0, buffer, 9]).0, 1);
        assert_eq!(call(63, [0, buffer, 9]).0, 0, "the end");
        assert_eq!(call(63, [0, buffer, u64::MAX]).0, -14);
        assert_eq!(call(63, [5, buffer, 1]).0, -9);
        let (result, count) = call(2011, [buffer, 100, 0]);
        assert_eq!((result, u64::from_le_bytes(count)), (0, 2));
        assert_eq!(call(2011, [buffer, 40, 0]).0, -12, "no room");
        assert_eq!(call(1234, [0; 3]).0, -38);
        let second = bus.ram.load(buffer + 16, 8).unwrap();
        assert_eq!(bus.ram.slice(second, 2), Some(&b"x\0"[..]));
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
        assert_eq!(bus.ram.load(TOHOST, 8), Some(0), "a block outside RAM does no harm");
    }

    #[test]
    fn signature_lines() {
        let mut ram = Ram::new(1 << 20).unwrap();
        ram.write(RAM_BASE, &[1, 2, 3, 4, 5, 6]).unwrap();
        assert_eq!(signature(&ram, RAM_BASE, RAM_BASE + 6, 4).unwrap(), "04030201\n00000605\n");
        assert_eq!(signature(&ram, RAM_BASE + 1, RAM_BASE, 4), None);
        assert_eq!(signature(&ram, 0, RAM_BASE, 4), None);
    }
}
