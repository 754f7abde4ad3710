//! jitdump files (the kernel's `tools/perf/Documentation/jitdump-specification.txt`). The crate linux-perf-data
//! 0.13 has a reader that panics on the counts of a damaged file, so this is one of our own.

use std::collections::HashMap;
use std::sync::Arc;

use super::jit::Function;

const MAGIC: u32 = 0x4A69_5444;
const CODE_LOAD: u32 = 0;
const CODE_MOVE: u32 = 1;
const DEBUG_INFO: u32 = 2;
/// Bytes of a record's type, length and time.
const RECORD_HEAD: usize = 16;

/// The functions of a file in order of time, and the error that ended it early. A killed program leaves half a record.
pub(super) fn functions(bytes: &[u8]) -> (Vec<Function>, Option<String>) {
    let mut found = Vec::new();
    let error = read(bytes, &mut found);
    (found, error.err())
}

fn read(bytes: &[u8], found: &mut Vec<Function>) -> Result<(), String> {
    let mut head = Fields(bytes);
    match head.u32() {
        Some(MAGIC) => {}
        Some(other) => {
            return Err(format!("expected {MAGIC:#x} (jitdump, little-endian), found {other:#x}"));
        }
        None => return Err("empty".to_owned()),
    }
    head.u32();
    let start = head.u32().unwrap_or(0) as usize;
    let mut rest = bytes.get(start.max(8)..).unwrap_or(&[]);
    let mut files: HashMap<Vec<u8>, Arc<str>> = HashMap::new();
    let mut lines: HashMap<u64, Vec<(u64, Arc<str>, u32)>> = HashMap::new();
    let mut by_index: HashMap<u64, usize> = HashMap::new();
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        let bad = |what: &str| format!("record at {at:#x}: {what}");
        let mut fields = Fields(rest);
        let (kind, size) = (fields.u32(), fields.u32());
        let (Some(kind), Some(size)) = (kind, size) else {
            return Err(bad("cut off"));
        };
        let size = size as usize;
        if size < RECORD_HEAD {
            return Err(bad(&format!("expected a length of at least {RECORD_HEAD}, found {size}")));
        }
        if rest.len() < size {
            return Err(bad("cut off"));
        }
        let mut fields = Fields(&rest[RECORD_HEAD..size]);
        rest = &rest[size..];
        match kind {
            CODE_LOAD => {
                let (mut function, index) =
                    load(&mut fields).ok_or_else(|| bad("its code is cut off"))?;
                function.lines = lines.remove(&function.start).unwrap_or_default();
                by_index.insert(index, found.len());
                found.push(function);
            }
            CODE_MOVE => {
                let (new, size, index) = moved(&mut fields).ok_or_else(|| bad("too short"))?;
                let old = by_index.get(&index);
                let Some(mut function) = old.map(|at| found[*at].clone()) else {
                    return Err(bad(&format!("moves code {index}, which was not loaded")));
                };
                let by = new.wrapping_sub(function.start);
                function.lines.iter_mut().for_each(|line| line.0 = line.0.wrapping_add(by));
                (function.start, function.size) = (new, size);
                by_index.insert(index, found.len());
                found.push(function);
            }
            DEBUG_INFO => {
                let address = fields.u64().ok_or_else(|| bad("too short"))?;
                lines.insert(address, debug_info(&mut fields, &mut files));
            }
            // The end of the file, unwind tables, and what later versions may have.
            _ => {}
        }
    }
    Ok(())
}

/// A JIT_CODE_LOAD record: process, thread, address as mapped, address, size, number of the code, name, instructions. Gives the function
/// and the number.
fn load(fields: &mut Fields<'_>) -> Option<(Function, u64)> {
    fields.take(16)?;
    let (start, size, index) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let name = fields.text()?.to_vec();
    let bytes = fields.take(usize::try_from(size).ok()?)?.to_vec();
    let function = Function { start, size, name, bytes, lines: Vec::new() };
    Some((function, index))
}

/// New address, size and number.
fn moved(fields: &mut Fields<'_>) -> Option<(u64, u64, u64)> {
    fields.take(24)?;
    Some((fields.u64()?, fields.u64()?, fields.u64()?))
}

fn debug_info(
    fields: &mut Fields<'_>,
    files: &mut HashMap<Vec<u8>, Arc<str>>,
) -> Vec<(u64, Arc<str>, u32)> {
    let count = fields.u64().unwrap_or(0);
    let mut found: Vec<(u64, Arc<str>, u32)> = Vec::new();
    for _ in 0..count {
        let Some((address, line, _, name)) =
            (|| Some((fields.u64()?, fields.u32()?, fields.u32()?, fields.text()?)))()
        else {
            break;
        };
        let file = match (name, found.last()) {
            // "The same as before" (perf's reader knows it, the specification does not).
            (b"\xff", Some((_, file, _))) => file.clone(),
            _ => files
                .entry(name.to_vec())
                .or_insert_with(|| super::name::shown(&String::from_utf8_lossy(name)).into())
                .clone(),
        };
        found.push((address, file, line));
    }
    found.sort_by_key(|entry| entry.0);
    found
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    /// Up to a NUL.
    fn text(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let text = self.take(end)?;
        self.take(1)?;
        Some(text)
    }
}
