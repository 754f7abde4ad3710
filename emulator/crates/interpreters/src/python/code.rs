//! Code objects: names, and lines by instruction. Strings.

use std::rc::Rc;

use super::Function;
use super::offsets::Offsets;
use crate::Memory;
use crate::memory::{half_of, word_of};

/// Bytes of a code object that are read at most.
const CODE_BYTES: usize = 256;
/// Bytes of an object's header that are read.
const OBJECT_BYTES: usize = 64;
/// Longest name, in characters; of a longer one this is its end.
const MAX_NAME: u64 = 256;
/// Longest line table, in bytes: a longer one's code has only its first line.
const MAX_TABLE: u64 = 256 << 10;
/// Entries of line tables that are remembered at once, of all code objects.
pub(super) const MAX_LINES: usize = 1 << 20;
/// Bytes of an instruction or cache entry.
const CODE_UNIT_BYTES: u64 = 2;

/// What of a code object tells whether another one has taken its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CodeKey {
    file: u64,
    name: u64,
    line_table: u64,
    line: u32,
}

/// What is remembered of a code object.
#[derive(Clone, Debug)]
pub(super) struct KnownCode {
    /// What it was when it was read.
    pub key: CodeKey,
    /// Number of its function.
    pub function: u32,
    /// End of each entry, in units from the start of the code, and the line of the entry; 0: it has none.
    lines: Rc<[(u32, u32)]>,
}

impl CodeKey {
    /// Reads the code object at an address; `None` if there cannot be one.
    pub(super) fn read(memory: &impl Memory, offsets: &Offsets, address: u64) -> Option<Self> {
        let mut bytes = [0; CODE_BYTES];
        let bytes = bytes.get_mut(..offsets.code_bytes())?;
        if address == 0 || !memory.read(address, bytes) {
            return None;
        }
        Some(Self {
            file: word_of(bytes, offsets.filename)?,
            name: word_of(bytes, offsets.qualname)?,
            line_table: word_of(bytes, offsets.linetable)?,
            line: half_of(bytes, offsets.firstlineno)?,
        })
    }

    /// Reads the names; `None` if these are no strings.
    pub(super) fn function(&self, memory: &impl Memory, offsets: &Offsets) -> Option<Function> {
        Some(Function {
            name: string(memory, offsets, self.name)?,
            file: string(memory, offsets, self.file)?,
            line: self.line,
        })
    }
}

impl KnownCode {
    /// Reads the lines of a code object.
    pub(super) fn new(
        memory: &impl Memory,
        offsets: &Offsets,
        key: CodeKey,
        function: u32,
    ) -> Self {
        let table = table(memory, offsets, key.line_table).unwrap_or_default();
        Self { key, function, lines: lines(&table, key.line).into() }
    }

    /// How many entries it has.
    pub(super) fn lines(&self) -> usize {
        self.lines.len()
    }

    /// The line at so many bytes from the start of the code; its first one if that is not known.
    pub(super) fn line(&self, offset: u64) -> u32 {
        let unit = offset / CODE_UNIT_BYTES;
        let at = self.lines.partition_point(|(end, _)| u64::from(*end) <= unit);
        self.lines.get(at).map_or(self.key.line, |(_, line)| *line)
    }
}

/// The content of a bytes object.
fn table(memory: &impl Memory, offsets: &Offsets, address: u64) -> Option<Vec<u8>> {
    let mut header = [0; OBJECT_BYTES];
    if address == 0 || !memory.read(address, header.get_mut(..offsets.bytes_content as usize)?) {
        return None;
    }
    let size = word_of(&header, offsets.bytes_size)?;
    let size = Some(size).filter(|size| *size <= MAX_TABLE)? as usize;
    let mut content = vec![0; size];
    let from = address.wrapping_add(offsets.bytes_content);
    memory.read(from, &mut content).then_some(content)
}

/// Decodes a line table (CPython's InternalDocs/code_objects.md, "Format of the locations table") of code whose first line is `line`.
fn lines(table: &[u8], line: u32) -> Vec<(u32, u32)> {
    let mut bytes = table.iter().copied().peekable();
    let mut found: Vec<(u32, u32)> = Vec::new();
    let (mut end, mut line) = (0u32, i64::from(line));
    while let Some(first) = bytes.next() {
        end = end.saturating_add(u32::from(first & 7) + 1);
        let kind = first >> 3 & 15;
        let mut rest = std::iter::from_fn(|| bytes.next_if(|byte| byte & 0x80 == 0));
        let change = match kind {
            // Long form, and lines without columns.
            13 | 14 => signed(number(&mut rest)),
            // The next line or the one after, by the kind.
            10..=12 => i64::from(kind) - 10,
            _ => 0,
        };
        line = line.saturating_add(change);
        // Columns and last lines.
        rest.for_each(drop);
        let own = match kind {
            15 => 0,
            _ => u32::try_from(line).unwrap_or(0),
        };
        match found.last_mut() {
            Some((before, same)) if *same == own => *before = end,
            _ => found.push((end, own)),
        }
    }
    found
}

/// A number in groups of six bits, the least significant first; bit 6 says that another group follows.
fn number(bytes: &mut impl Iterator<Item = u8>) -> u64 {
    let mut value = 0u64;
    for shift in (0..60).step_by(6) {
        let byte = bytes.next().unwrap_or(0);
        value |= u64::from(byte & 0x3f) << shift;
        if byte & 0x40 == 0 {
            break;
        }
    }
    value
}

/// A number whose lowest bit is its sign.
fn signed(value: u64) -> i64 {
    let size = (value >> 1) as i64;
    match value & 1 {
        0 => size,
        _ => -size,
    }
}

/// A string of Python's (PEP 393), compact as all names of code are.
fn string(memory: &impl Memory, offsets: &Offsets, address: u64) -> Option<String> {
    let mut header = [0; OBJECT_BYTES];
    if address == 0 || !memory.read(address, header.get_mut(..offsets.ascii_size as usize)?) {
        return None;
    }
    let state = half_of(&header, offsets.string_state)?;
    let length = word_of(&header, offsets.string_length)?;
    let (kind, is_compact, is_ascii) = (state >> 2 & 7, state >> 5 & 1 != 0, state >> 6 & 1 != 0);
    if !is_compact {
        return None;
    }
    let header_size = match is_ascii {
        true => offsets.ascii_size,
        // Length and address of its UTF-8 form follow.
        false => offsets.ascii_size + 16,
    };
    let size = match kind {
        1 | 2 | 4 => u64::from(kind),
        _ => return None,
    };
    let characters = length.min(MAX_NAME);
    let skipped = (length - characters).checked_mul(size)?;
    let mut content = vec![0; (characters * size) as usize];
    let from = address.wrapping_add(header_size).wrapping_add(skipped);
    if !memory.read(from, &mut content) {
        return None;
    }
    let characters = content.chunks_exact(size as usize).map(|bytes| {
        let value = bytes.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
        char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER)
    });
    let cut = if skipped > 0 { "…" } else { "" };
    Some(cut.chars().chain(characters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_each_form() {
        // Short form of one unit, one line on with columns, long form two lines back, none, two lines on without columns.
        let table = [
            0x80,
            0x12,
            0x80 | 11 << 3 | 1,
            4,
            9,
            0x80 | 14 << 3,
            2 << 1 | 1,
            0,
            1,
            2,
            0x80 | 15 << 3 | 7,
            0x80 | 13 << 3,
            2 << 1,
        ];
        let expected = [(1, 10), (3, 11), (4, 9), (12, 0), (13, 11)];
        assert_eq!(lines(&table, 10), expected);
        // More than six bits: 100 lines on.
        let table = [0x80 | 13 << 3, 200 & 0x3f | 0x40, 200 >> 6];
        assert_eq!(lines(&table, 10), [(1, 110)]);
    }

    #[test]
    fn any_table_has_lines() {
        for length in 0..64u32 {
            let bytes = |number: u32| (number.wrapping_mul(0x9e37_79b9) >> 13) as u8;
            let table: Vec<u8> = (0..length).map(|n| bytes(n + 64 * length)).collect();
            lines(&table, u32::MAX);
            lines(&vec![0xff; length as usize], 0);
        }
    }
}
