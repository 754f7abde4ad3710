//! Functions, source lines and inlined calls from pclntab, the table that a Go program has for its own stack traces and that
//! stripping keeps (`debug/gosym`, `runtime/symtab.go`). It is read here because crates that read it belong to disassemblers and
//! read names alone. Inlined calls are not read from programs of Go before 1.18.

mod module;

use object::{Object, ObjectSection};

use super::elf::Elf;
use super::interner::Interner;
use super::name;
use super::symbols::{Frame, Source};
use module::ModuleData;

/// Sections that begin with the table, or contain it in position-independent programs that an external linker made.
const TABLE_SECTIONS: [&str; 4] =
    [".gopclntab", ".data.rel.ro.gopclntab", ".data.rel.ro", ".rodata"];
/// Longest name that is read.
const MAX_NAME: usize = 4096;
/// Steps of one lookup, and levels of inlining.
const MAX_STEPS: usize = 1 << 20;
const MAX_FRAMES: usize = 64;
/// Number of a function's table that maps addresses to inlined calls (`PCDATA_InlTreeIndex`).
const PCDATA_INL_TREE_INDEX: usize = 2;
/// Number of a function's data that holds its inlined calls (`FUNCDATA_InlTree`).
const FUNCDATA_INL_TREE: usize = 3;

/// Layouts of the table, by the first version of Go that has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TableVersion {
    Go2,
    Go16,
    Go18,
    Go20,
}

/// The table of a program.
pub(super) struct GoTable<'data> {
    version: TableVersion,
    /// Alignment of instructions in bytes: the tables count addresses in these.
    quantum: u64,
    /// Base of the functions' addresses.
    text: u64,
    /// Pairs of a function's address and its record's offset in `records`; then the last function's end.
    functions: &'data [u8],
    count: usize,
    records: &'data [u8],
    names: &'data [u8],
    /// For each compilation unit the offsets of its files' names in `files`; in [`TableVersion::Go2`], for the whole program.
    units: &'data [u8],
    files: &'data [u8],
    /// Values by address.
    values: &'data [u8],
    module: Option<ModuleData<'data>>,
}

/// A function's record.
#[derive(Clone, Copy)]
struct FunctionRecord<'data> {
    start: u64,
    bytes: &'data [u8],
}

impl<'data> GoTable<'data> {
    /// The table of a program, if it has one.
    pub(crate) fn of(elf: &Elf<'data>) -> Option<Self> {
        TABLE_SECTIONS.iter().find_map(|name| {
            let section = elf.object.section_by_name(name)?;
            let data = section.data().ok()?;
            let mut found = (0..data.len()).step_by(8).filter(|at| is_head(&data[*at..]));
            // A section with more candidates than this has no table.
            found
                .by_ref()
                .take(16)
                .find_map(|at| Self::read(elf, &data[at..], section.address() + at as u64))
        })
    }

    fn read(elf: &Elf<'data>, data: &'data [u8], address: u64) -> Option<Self> {
        let version = version(data)?;
        let word = |index: usize| u64_at(data, 8 + 8 * index);
        let part = |index: usize| data.get(usize::try_from(word(index)?).ok()?..);
        let module = ModuleData::find(elf, address, version);
        let mut table = Self {
            version,
            quantum: u64::from(data[6]),
            text: 0,
            functions: &[],
            count: usize::try_from(word(0)?).ok()?,
            records: data,
            names: data,
            units: data,
            files: data,
            values: data,
            module: None,
        };
        if version == TableVersion::Go2 {
            table.functions = data.get(16..)?;
        } else {
            let first = if version == TableVersion::Go16 { 2 } else { 3 };
            table.names = part(first)?;
            table.units = part(first + 1)?;
            table.files = part(first + 2)?;
            table.values = part(first + 3)?;
            table.records = part(first + 4)?;
            table.functions = table.records;
        }
        if version >= TableVersion::Go18 {
            let start = || elf.section_range(".text").map(|(start, _)| start);
            let own = module.as_ref().map(|module| module.text).or_else(start);
            // Without relocation, and of Go 1.26, it is 0 here.
            table.text = word(2).filter(|text| *text != 0).or(own)?;
        }
        let len = (table.count.checked_mul(2)?.checked_add(1)?).checked_mul(table.field())?;
        let after = table.functions.get(len..)?;
        table.functions = &table.functions[..len];
        if version == TableVersion::Go2 {
            table.units = data.get(u32_at(after, 0)? as usize..)?;
        }
        table.module = module;
        (!table.functions().is_empty()).then_some(table)
    }

    /// Bytes of an address or offset in the list of functions.
    fn field(&self) -> usize {
        if self.version >= TableVersion::Go18 { 4 } else { 8 }
    }

    fn entry(&self, index: usize) -> Option<u64> {
        match self.field() {
            4 => Some(self.text.wrapping_add(u32_at(self.functions, 4 * index)?.into())),
            _ => u64_at(self.functions, 8 * index),
        }
    }

    fn start(&self, function: usize) -> Option<u64> {
        self.entry(2 * function)
    }

    fn record(&self, function: usize) -> Option<FunctionRecord<'data>> {
        let start = self.start(function)?;
        let at = match self.field() {
            4 => u32_at(self.functions, 8 * function + 4)?.into(),
            _ => u64_at(self.functions, 16 * function + 8)?,
        };
        let bytes = self.records.get(usize::try_from(at).ok()?..)?;
        // The address comes first; the fields after it have 4 bytes each.
        let bytes = bytes.get(self.field()..)?;
        Some(FunctionRecord { start, bytes })
    }

    /// Start, end and name of every function, in order.
    pub(crate) fn functions(&self) -> Vec<(u64, u64, &'data str)> {
        let function = |index| {
            let (start, end) = (self.start(index)?, self.start(index + 1)?);
            let name = text(self.names, self.record(index)?.number(0)?)?;
            (start < end && !name.is_empty()).then_some((start, end, name))
        };
        (0..self.count).filter_map(function).collect()
    }

    /// The source line of an address and the calls inlined there, innermost first.
    pub(crate) fn find(&self, address: u64, names: &mut Interner) -> (Option<Source>, Vec<Frame>) {
        let Some(record) = self.function_at(address) else {
            return (None, Vec::new());
        };
        let source = self.line(record, address, names);
        let mut inlined = Vec::new();
        let mut at = address;
        while inlined.len() < MAX_FRAMES
            && let Some((name, call)) = self.inlined(record, at)
        {
            at = call;
            inlined.push(Frame {
                function: names.get(&name::shown(name)),
                call: self.line(record, at, names),
            });
        }
        (source, inlined)
    }

    fn function_at(&self, address: u64) -> Option<FunctionRecord<'data>> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.start(middle)? <= address {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let record = self.record(low.checked_sub(1)?)?;
        (address < self.start(low)?).then_some(record)
    }

    fn line(
        &self,
        record: FunctionRecord<'data>,
        address: u64,
        names: &mut Interner,
    ) -> Option<Source> {
        let file = self.value(record, record.number(4)?, address)?;
        let line = self.value(record, record.number(5)?, address)?;
        let index = u32::try_from(file).ok()?;
        let offset = match self.version {
            TableVersion::Go2 => u32_at(self.units, 4 * index as usize)?,
            _ => {
                let index = record.number(7)?.checked_add(index)?;
                u32_at(self.units, 4 * index as usize)?
            }
        };
        let file = text(self.files, offset).filter(|file| !file.is_empty())?;
        Some(Source { file: names.get(&name::shown(file)), line: u32::try_from(line).unwrap_or(0) })
    }

    /// The name of the call that an address was inlined for, and an address of the code that it was inlined in.
    fn inlined(&self, record: FunctionRecord<'data>, address: u64) -> Option<(&'data str, u64)> {
        let module = self.module.as_ref()?;
        let tables = record.number(6)? as usize;
        let fixed = if self.version == TableVersion::Go20 { 9 } else { 8 };
        let count = *record.bytes.get(4 * fixed + 3)?;
        if tables <= PCDATA_INL_TREE_INDEX || usize::from(count) <= FUNCDATA_INL_TREE {
            return None;
        }
        let after = fixed + 1;
        let which = self.value(record, record.number(after + PCDATA_INL_TREE_INDEX)?, address)?;
        let which = usize::try_from(which).ok()?;
        let data = record.number(after.checked_add(tables)?.checked_add(FUNCDATA_INL_TREE)?)?;
        let tree = module.data(data)?;
        // Name and address, each in 4 bytes.
        let (size, name) = match self.version {
            TableVersion::Go20 => (16, 4),
            _ => (20, 12),
        };
        let call = tree.get(which.checked_mul(size)?..)?;
        let parent = record.start.checked_add(u32_at(call, name + 4)?.into())?;
        Some((text(self.names, u32_at(call, name)?)?, parent))
    }

    /// The value at an address in the table that begins at `offset`. The table is pairs of the value's change and the number of
    /// bytes for which the value holds.
    fn value(&self, record: FunctionRecord<'data>, offset: u32, address: u64) -> Option<i64> {
        if offset == 0 {
            return None;
        }
        let mut bytes = self.values.get(offset as usize..)?;
        let (mut value, mut at) = (-1i64, record.start);
        for step in 0..MAX_STEPS {
            let change = varint(&mut bytes)?;
            if change == 0 && step > 0 {
                return None;
            }
            let half = i64::from(change >> 1);
            value += if change & 1 == 0 { half } else { !half };
            at = at.checked_add(u64::from(varint(&mut bytes)?) * self.quantum)?;
            if address < at {
                return Some(value);
            }
        }
        None
    }
}

impl FunctionRecord<'_> {
    /// A field after the address, by index: 0 name, 4 files, 5 lines, 6 number of tables, 7 compilation unit.
    fn number(&self, index: usize) -> Option<u32> {
        u32_at(self.bytes, index.checked_mul(4)?)
    }
}

/// True if a table may begin here: its version, two zeros, the quantum of addresses, 8-byte pointers.
fn is_head(bytes: &[u8]) -> bool {
    version(bytes).is_some() && matches!(bytes[4..8], [0, 0, 1 | 2 | 4, 8])
}

fn version(bytes: &[u8]) -> Option<TableVersion> {
    if bytes.len() < 8 {
        return None;
    }
    match u32_at(bytes, 0)? {
        0xffff_fffb => Some(TableVersion::Go2),
        0xffff_fffa => Some(TableVersion::Go16),
        0xffff_fff0 => Some(TableVersion::Go18),
        0xffff_fff1 => Some(TableVersion::Go20),
        _ => None,
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// A string up to its zero byte.
fn text(bytes: &[u8], at: u32) -> Option<&str> {
    let bytes = bytes.get(at as usize..)?;
    let end = bytes.iter().take(MAX_NAME).position(|byte| *byte == 0)?;
    std::str::from_utf8(&bytes[..end]).ok()
}

/// Seven bits a byte, the lowest first.
fn varint(bytes: &mut &[u8]) -> Option<u32> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests;
