//! Where the fields of CPython's structures lie: `_Py_DebugOffsets` of CPython 3.13 (Include/internal/pycore_debug_offsets.h), which
//! its runtime begins with.

use crate::memory::{Memory, word_of};

/// What the structure begins with.
pub(crate) const DEBUG_OFFSETS_COOKIE: [u8; 8] = *b"xdebugpy";
/// Upper half of the version (`PY_VERSION_HEX`) whose structure this is: 3.13.
pub(crate) const VERSION: u64 = 0x030d;
/// Bytes of the structure.
pub(crate) const SIZE: usize = 73 * 8;
/// Offsets in the runtime and the interpreter's state are below this; in other structures below [`MAX_SMALL_OFFSET`].
const MAX_OFFSET: u64 = 1 << 24;
const MAX_SMALL_OFFSET: u64 = 1 << 10;

/// The fields that are read, each as its offset in bytes from the start of its structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offsets {
    /// In the runtime: the first interpreter.
    pub interpreters_head: u64,
    /// In an interpreter: the next one, and its first thread.
    pub next_interpreter: u64,
    pub threads_head: u64,
    /// In a thread's state: the next one, its frame, and the kernel's number of the thread.
    pub next_thread: u64,
    pub current_frame: u64,
    pub native_thread_id: u64,
    /// In a frame.
    pub previous: u64,
    pub executable: u64,
    pub instr_ptr: u64,
    pub owner: u64,
    /// In a code object.
    pub filename: u64,
    pub qualname: u64,
    pub linetable: u64,
    pub firstlineno: u64,
    pub code: u64,
    /// In a bytes object.
    pub bytes_size: u64,
    pub bytes_content: u64,
    /// In a string.
    pub string_state: u64,
    pub string_length: u64,
    pub ascii_size: u64,
}

impl Offsets {
    /// Reads the structure at the start of a runtime; `None` if it is none of CPython 3.13 with its global lock.
    pub(super) fn read(memory: &impl Memory, runtime: u64) -> Option<Self> {
        let mut bytes = [0; SIZE];
        if !memory.read(runtime, &mut bytes) {
            return None;
        }
        // Numbers of 8 bytes, in the structure's order.
        let field = |number: u64| word_of(&bytes, number * 8);
        let is_known = bytes.starts_with(&DEBUG_OFFSETS_COOKIE) && field(1)? >> 16 == VERSION;
        let free_threaded = field(2)? != 0;
        if !is_known || free_threaded {
            return None;
        }
        let large = |number| field(number).filter(|offset| *offset < MAX_OFFSET);
        let small = |number| field(number).filter(|offset| *offset < MAX_SMALL_OFFSET);
        Some(Self {
            interpreters_head: large(5)?,
            next_interpreter: large(8)?,
            threads_head: large(9)?,
            next_thread: small(21)?,
            current_frame: small(23)?,
            native_thread_id: small(25)?,
            previous: small(29)?,
            executable: small(30)?,
            instr_ptr: small(31)?,
            owner: small(33)?,
            filename: small(35)?,
            qualname: small(37)?,
            linetable: small(38)?,
            firstlineno: small(39)?,
            code: small(43)?,
            bytes_size: small(65)?,
            bytes_content: small(66)?,
            string_state: small(68)?,
            string_length: small(69)?,
            ascii_size: small(70)?,
        })
    }

    /// Bytes of a frame up to the last field that is read.
    pub(super) fn frame_bytes(&self) -> usize {
        let fields = [self.previous, self.executable, self.instr_ptr];
        let last = fields.into_iter().max().unwrap_or(0) + 8;
        last.max(self.owner + 1) as usize
    }

    /// Bytes of a code object up to the last field that is read.
    pub(super) fn code_bytes(&self) -> usize {
        let fields = [self.filename, self.qualname, self.linetable];
        let last = fields.into_iter().max().unwrap_or(0) + 8;
        last.max(self.firstlineno + 4) as usize
    }
}
