//! A debugger, as the machine sees it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// GDB's end of its remote protocol.
pub(crate) struct Debugger(BufReader<TcpStream>);

/// Starts a machine that waits for a debugger, and gives the port.
pub(crate) fn start(command: &mut Command) -> (Child, u16) {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    // The simulator may say more, for which its pipe must stay open.
    std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
    let port = line.trim().rsplit(':').next().unwrap();
    (child, port.parse().expect(&line))
}

impl Debugger {
    /// Connects to a machine.
    pub(crate) fn connect(port: u16) -> Self {
        Self(BufReader::new(TcpStream::connect(("127.0.0.1", port)).unwrap()))
    }

    /// Connects to a machine that still has to notice that the debugger before is gone.
    pub(crate) fn next(port: u16) -> Self {
        loop {
            let mut next = Self::connect(port);
            if !next.ask("?").starts_with('E') {
                return next;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }

    /// Sends a packet; the answer, without what the protocol puts around it.
    pub(crate) fn ask(&mut self, packet: &str) -> String {
        let sum = packet.bytes().fold(0u8, u8::wrapping_add);
        // The packet is sent in one piece: a debugger that is refused is answered at the first byte, and may send no more.
        let packet = format!("${packet}#{sum:02x}");
        self.0.get_mut().write_all(packet.as_bytes()).unwrap();
        self.answer()
    }

    /// Lets the machine go on, and does not wait for it.
    pub(crate) fn go_on(&mut self) {
        write!(self.0.get_mut(), "$vCont;c#a8").unwrap();
    }

    /// Ctrl-C while the machine runs; why it stopped.
    pub(crate) fn interrupt(&mut self) -> String {
        self.0.get_mut().write_all(&[3]).unwrap();
        self.answer()
    }

    /// A `monitor` command, and what it prints.
    pub(crate) fn monitor(&mut self, command: &str) -> String {
        let hex: String = command.bytes().map(|byte| format!("{byte:02x}")).collect();
        let mut answer = self.ask(&format!("qRcmd,{hex}"));
        let mut text = String::new();
        while answer != "OK" {
            let hex = answer.strip_prefix('O').expect(&answer);
            for n in (0..hex.len()).step_by(2) {
                text.push(u8::from_str_radix(&hex[n..n + 2], 16).unwrap().into());
            }
            answer = self.answer();
        }
        text
    }

    /// Asks with the machine's number of a thread first.
    pub(crate) fn of_thread(&mut self, thread: u32, number: u16) -> u64 {
        assert_eq!(self.ask(&format!("Hg{thread:x}")), "OK");
        self.register(number)
    }

    /// The next packet.
    pub(crate) fn answer(&mut self) -> String {
        let mut answer = Vec::new();
        self.0.skip_until(b'$').unwrap();
        self.0.read_until(b'#', &mut answer).unwrap();
        self.0.read_exact(&mut [0; 2]).unwrap();
        write!(self.0.get_mut(), "+").unwrap();
        answer.pop();
        // Runs of a character are sent as `c*n`: as many more as the code of n is above 29.
        let mut text: Vec<u8> = Vec::new();
        let mut bytes = answer.into_iter();
        while let Some(byte) = bytes.next() {
            match byte {
                b'*' => {
                    let more = usize::from(bytes.next().unwrap() - 29);
                    text.resize(text.len() + more, text[text.len() - 1]);
                }
                byte => text.push(byte),
            }
        }
        String::from_utf8(text).unwrap()
    }

    /// A register by GDB's number.
    pub(crate) fn register(&mut self, number: u16) -> u64 {
        let hex = self.ask(&format!("p{number:x}"));
        u64::from_str_radix(&hex, 16).expect(&hex).swap_bytes()
    }
}
