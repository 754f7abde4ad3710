//! CPython 3.13: from its runtime to the frames of a thread.
//!
//! The fields that are followed: runtime, interpreters, their threads, of each the frame that executes, the frames before it, of each the code
//! object and the instruction. An instruction's address stays at the call while a frame has called another one.

mod code;
mod offsets;

use rustc_hash::FxHashMap;

use crate::memory::{word, word_of};
use crate::{Frame, Memory};
use code::{CodeKey, KnownCode};
use offsets::{DEBUG_OFFSETS_COOKIE, Offsets};

/// Frames of a thread that are read: the innermost.
pub const MAX_DEPTH: usize = 512;
/// Interpreters of a process, and threads of all of them, that are looked at for the one that runs.
const MAX_INTERPRETERS: usize = 64;
const MAX_THREADS: usize = 4096;
/// Bytes behind an image's code in which its data lie.
const MAX_DATA: u64 = 32 << 20;
/// Bytes of code that an image has at most.
const MAX_CODE: u64 = 256 << 20;
const PAGE: u64 = 4096;
/// Bytes of a frame that are read at most.
const FRAME_BYTES: usize = 128;
/// Value of a frame's `owner`: one that the interpreter itself made between two of its calls of itself, which has no function.
const OWNED_BY_C_STACK: u8 = 3;
/// Functions that are told apart, and code objects that are remembered at once.
const MAX_FUNCTIONS: usize = 1 << 16;
const MAX_KNOWN: usize = 1 << 16;

/// Code of an interpreter in a process's memory: the executable, or its shared library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// First virtual address of the executable mapping.
    pub start: u64,
    /// Length of the mapping, in bytes.
    pub len: u64,
}

/// True if a file of this path is an interpreter, or the shared library that has one.
pub fn is_python(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with("python3") || name.starts_with("libpython3")
}

/// Looks for the runtime of an image in the data behind its code, as far as these are in memory by now. Takes about a millisecond.
pub fn find_runtime(memory: &impl Memory, image: Image) -> Option<u64> {
    let mut page = [0; PAGE as usize];
    let first = image.start & !(PAGE - 1);
    let bytes = image.len.min(MAX_CODE) + MAX_DATA;
    let pages = (0..bytes / PAGE).map(|number| first.wrapping_add(number * PAGE));
    for address in pages {
        if !memory.read(address, &mut page) {
            continue;
        }
        let words = page.as_chunks::<8>().0.iter().enumerate();
        for (number, _) in words.filter(|(_, word)| **word == DEBUG_OFFSETS_COOKIE) {
            let found = address.wrapping_add(8 * number as u64);
            if Offsets::read(memory, found).is_some() {
                return Some(found);
            }
        }
    }
    None
}

/// A function, as its code object says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Qualified name: `Class.method`, `outer.<locals>.inner`, `<module>`.
    pub name: String,
    /// Source file.
    pub file: String,
    /// First line.
    pub line: u32,
}

/// Reads frames, and remembers what code objects say.
#[derive(Debug, Default)]
pub struct Python {
    functions: Vec<Function>,
    numbers: FxHashMap<Function, u32>,
    known: FxHashMap<(u64, u64), KnownCode>,
    /// Entries of all line tables in `known`.
    lines: usize,
}

impl Python {
    /// The functions that were found until now, by number.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Reads the frames of a thread, given by the kernel's number of it, innermost first; none if it is not in Python. `runtime`: a number of
    /// its program, no two of which have one, and its address.
    pub fn frames(
        &mut self,
        memory: &impl Memory,
        (program, runtime): (u64, u64),
        thread: u32,
        frames: &mut Vec<Frame>,
    ) {
        frames.clear();
        let Some(offsets) = Offsets::read(memory, runtime) else {
            return;
        };
        let Some(state) = find_thread(memory, &offsets, runtime, thread) else {
            return;
        };
        let field = |at: u64, offset: u64| word(memory, at.wrapping_add(offset));
        let mut next = field(state, offsets.current_frame);
        let mut bytes = [0; FRAME_BYTES];
        // No more than that: the next page may not be there.
        let Some(bytes) = bytes.get_mut(..offsets.frame_bytes()) else {
            return;
        };
        // Frames of the interpreter's own between those of functions count, too: a chain may go in a circle.
        for _ in 0..2 * MAX_DEPTH {
            let Some(frame) = next.filter(|frame| *frame != 0) else {
                break;
            };
            if frames.len() == MAX_DEPTH || !memory.read(frame, bytes) {
                break;
            }
            next = word_of(bytes, offsets.previous);
            let owner = usize::try_from(offsets.owner).map(|at| bytes.get(at));
            if owner == Ok(Some(&OWNED_BY_C_STACK)) {
                continue;
            }
            let place = word_of(bytes, offsets.executable).zip(word_of(bytes, offsets.instr_ptr));
            let found = place.and_then(|(code, instruction)| {
                self.frame(memory, &offsets, (program, code), instruction)
            });
            match found {
                Some(frame) => frames.push(frame),
                // No code object: nothing that follows would be right.
                None => break,
            }
        }
    }

    /// The function of a code object, and the line of an instruction.
    fn frame(
        &mut self,
        memory: &impl Memory,
        offsets: &Offsets,
        (program, code): (u64, u64),
        instruction: u64,
    ) -> Option<Frame> {
        let key = CodeKey::read(memory, offsets, code)?;
        let is_known = self.known.get(&(program, code)).is_some_and(|known| known.key == key);
        if !is_known {
            self.learn(memory, offsets, (program, code), key)?;
        }
        let known = self.known.get(&(program, code))?;
        let start = code.wrapping_add(offsets.code);
        Some(Frame { function: known.function, line: known.line(instruction.wrapping_sub(start)) })
    }

    /// Remembers a code object.
    fn learn(
        &mut self,
        memory: &impl Memory,
        offsets: &Offsets,
        place: (u64, u64),
        key: CodeKey,
    ) -> Option<()> {
        let function = key.function(memory, offsets)?;
        let number = match self.numbers.get(&function) {
            Some(number) => *number,
            None if self.functions.len() < MAX_FUNCTIONS => {
                let number = self.functions.len() as u32;
                self.functions.push(function.clone());
                self.numbers.insert(function, number);
                number
            }
            None => Frame::OTHER,
        };
        let known = KnownCode::new(memory, offsets, key, number);
        if self.known.len() >= MAX_KNOWN || self.lines > code::MAX_LINES {
            self.known.clear();
            self.lines = 0;
        }
        self.lines += known.lines();
        self.known.insert(place, known);
        Some(())
    }
}

/// The state of the thread that has this number of the kernel's, in any interpreter of the process.
fn find_thread(memory: &impl Memory, offsets: &Offsets, runtime: u64, thread: u32) -> Option<u64> {
    let field = |at: u64, offset: u64| word(memory, at.wrapping_add(offset));
    let existing = |at: &u64| *at != 0;
    let first = field(runtime, offsets.interpreters_head).filter(existing);
    let interpreters = std::iter::successors(first, |interpreter| {
        field(*interpreter, offsets.next_interpreter).filter(existing)
    });
    let threads = interpreters.take(MAX_INTERPRETERS).flat_map(|interpreter| {
        let first = field(interpreter, offsets.threads_head).filter(existing);
        std::iter::successors(first, |state| field(*state, offsets.next_thread).filter(existing))
    });
    let mut threads = threads.take(MAX_THREADS);
    threads.find(|state| field(*state, offsets.native_thread_id) == Some(thread.into()))
}

#[cfg(test)]
mod tests;
