//! An interpreter's memory, made up: the structures of CPython 3.13 as Debian's for RISC-V has them.

use std::cell::Cell;
use std::collections::HashMap;

use crate::{Image, Memory};

const PAGE: u64 = 4096;
/// Where code, runtime and objects begin.
pub(crate) const IMAGE: Image = Image { start: 0x1_0000, len: 0x10_0000 };
pub(crate) const RUNTIME: u64 = 0x15_4cd8;
const HEAP: u64 = 0x7f00_0000;
pub(crate) const THREAD: u32 = 42;
/// Fields of `_Py_DebugOffsets` after its cookie.
const DEBUG_OFFSETS: [u64; 72] = [
    0x030d_05f0,
    0,
    283304,
    608,
    632,
    194976,
    7272,
    7264,
    7344,
    7400,
    7656,
    7640,
    7648,
    16,
    7752,
    0,
    7768,
    7760,
    304,
    0,
    8,
    16,
    72,
    152,
    160,
    232,
    32,
    80,
    8,
    0,
    56,
    72,
    70,
    208,
    112,
    120,
    128,
    136,
    68,
    52,
    96,
    104,
    200,
    16,
    8,
    416,
    24,
    88,
    168,
    32,
    24,
    16,
    40,
    24,
    16,
    48,
    32,
    40,
    24,
    16,
    32,
    16,
    24,
    40,
    16,
    32,
    64,
    32,
    16,
    40,
    240,
    200,
];

/// Pages by number.
#[derive(Default)]
pub(crate) struct FakeInterpreter {
    pages: HashMap<u64, [u8; PAGE as usize]>,
    next: u64,
    /// Reads until now.
    pub reads: Cell<u64>,
    /// The state of the thread, and of its frames the innermost.
    pub state: u64,
    pub frame: u64,
}

impl Memory for FakeInterpreter {
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        self.reads.set(self.reads.get() + 1);
        for (n, byte) in bytes.iter_mut().enumerate() {
            let at = address.wrapping_add(n as u64);
            match self.pages.get(&(at / PAGE)) {
                Some(page) => *byte = page[(at % PAGE) as usize],
                None => return false,
            }
        }
        true
    }
}

impl FakeInterpreter {
    /// A runtime with an interpreter, of whose two threads the second is [`THREAD`], in no function yet.
    pub(crate) fn new() -> Self {
        let mut fake = Self { next: HEAP, ..Self::default() };
        fake.put(RUNTIME, b"xdebugpy");
        for (number, field) in (1..).zip(DEBUG_OFFSETS) {
            fake.word(RUNTIME + 8 * number, field);
        }
        let (interpreter, other, state) = (fake.room(8192), fake.room(304), fake.room(304));
        fake.word(RUNTIME + 632, interpreter);
        fake.word(interpreter + 7344, other);
        fake.word(other + 8, state);
        fake.word(other + 160, 41);
        fake.word(state + 160, THREAD.into());
        fake.state = state;
        fake
    }

    /// Writes bytes.
    pub(crate) fn put(&mut self, address: u64, bytes: &[u8]) {
        for (at, byte) in (address..).zip(bytes) {
            let page = self.pages.entry(at / PAGE).or_insert([0; PAGE as usize]);
            page[(at % PAGE) as usize] = *byte;
        }
    }

    /// Writes 8 bytes.
    pub(crate) fn word(&mut self, address: u64, value: u64) {
        self.put(address, &value.to_le_bytes());
    }

    /// Takes zeros of the heap.
    pub(crate) fn room(&mut self, bytes: usize) -> u64 {
        let at = self.next;
        self.put(at, &vec![0; bytes]);
        self.next += bytes.next_multiple_of(16) as u64;
        at
    }

    /// A string of characters of so many bytes each.
    pub(crate) fn string(&mut self, text: &str, kind: u8) -> u64 {
        let characters: Vec<u32> = text.chars().map(u32::from).collect();
        let is_ascii = text.is_ascii() && kind == 1;
        let header = if is_ascii { 40 } else { 56 };
        let at = self.room(header + characters.len() * usize::from(kind) + 4);
        self.word(at + 16, characters.len() as u64);
        let state = u32::from(kind) << 2 | 1 << 5 | u32::from(is_ascii) << 6;
        self.put(at + 32, &state.to_le_bytes());
        for (number, character) in characters.iter().enumerate() {
            let bytes = character.to_le_bytes();
            let to = at + header as u64 + (number * usize::from(kind)) as u64;
            self.put(to, &bytes[..usize::from(kind)]);
        }
        at
    }

    /// A code object with 8 units at its first line and 8 at the next.
    pub(crate) fn code(&mut self, name: &str, kind: u8, line: u32) -> u64 {
        let table = [0x80 | 7, 0, 0x80 | 11 << 3 | 7, 0, 0];
        let (name, file) = (self.string(name, kind), self.string("/home/me/prog.py", 1));
        let lines = self.room(64);
        self.word(lines + 16, table.len() as u64);
        self.put(lines + 32, &table);
        let code = self.room(208 + 64);
        self.put(code + 68, &line.to_le_bytes());
        self.word(code + 112, file);
        self.word(code + 128, name);
        self.word(code + 136, lines);
        code
    }

    /// A frame at a unit of its code, called by the innermost one until now.
    pub(crate) fn call(&mut self, code: u64, unit: u64) -> u64 {
        let frame = self.room(80);
        self.word(frame, code);
        self.word(frame + 8, self.frame);
        self.word(frame + 56, code + 200 + 2 * unit);
        self.frame = frame;
        self.word(self.state + 72, frame);
        frame
    }

    /// A frame of the interpreter's own.
    pub(crate) fn call_from_c(&mut self) {
        let frame = self.call(0x10, 0);
        self.put(frame + 70, &[3]);
    }

    /// Takes a page away.
    pub(crate) fn unmap(&mut self, address: u64) {
        self.pages.remove(&(address / PAGE));
    }

    /// Addresses of all pages, in order.
    pub(crate) fn mapped(&self) -> Vec<u64> {
        let mut pages: Vec<u64> = self.pages.keys().map(|page| page * PAGE).collect();
        pages.sort_unstable();
        pages
    }
}
