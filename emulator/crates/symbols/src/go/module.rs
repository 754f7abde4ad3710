//! Go's `runtime.moduledata`: where a program's code and the data of its functions begin.

use std::collections::HashMap;

use object::{Object, ObjectSection, RelocationTarget};

use super::{TableVersion, u64_at};
use crate::elf::Elf;

/// Sections that may have Go's `runtime.moduledata`.
const MODULE_SECTIONS: [&str; 5] =
    [".go.module", ".noptrdata", ".data", ".data.rel.ro", ".data.rel"];
/// Index of the 8-byte word of Go's `runtime.moduledata` that has the start of the code; word 0 points to the function table.
const TEXT_WORD: u64 = 22;

/// The part of Go's `runtime.moduledata` that is used.
pub(super) struct ModuleData<'data> {
    pub text: u64,
    /// Bytes from the base of the functions' data offsets to the end of its section.
    functions: &'data [u8],
}

impl<'data> ModuleData<'data> {
    /// Finds `runtime.moduledata` by its pointer to the table at `address`. Position-independent programs have pointers as
    /// relocations.
    pub(super) fn find(elf: &Elf<'data>, address: u64, version: TableVersion) -> Option<Self> {
        let functions = match version {
            TableVersion::Go2 | TableVersion::Go16 => return None,
            TableVersion::Go18 => 38,
            TableVersion::Go20 => 40,
        };
        let relocated = relocations(elf);
        let sections = MODULE_SECTIONS.map(|name| {
            let section = elf.object.section_by_name(name)?;
            Some((section.address(), section.data().ok()?))
        });
        let word = |at: u64| {
            let in_file = |(start, data): &(u64, &[u8])| {
                u64_at(data, usize::try_from(at.checked_sub(*start)?).ok()?)
            };
            let known = relocated.get(&at).copied();
            known.or_else(|| sections.iter().flatten().find_map(in_file))
        };
        let code = elf.section_range(".text")?;
        let at = |place: u64| {
            let text = word(place.checked_add(8 * TEXT_WORD)?)?;
            let inside = (code.0..code.1).contains(&text);
            let start = word(place.checked_add(8 * functions)?).filter(|_| inside)?;
            Some(Self { text, functions: from(elf, start)? })
        };
        let mut pointers: Vec<u64> =
            relocated.iter().filter(|(_, to)| **to == address).map(|(place, _)| *place).collect();
        pointers.sort_unstable();
        let plain = sections.iter().flatten().flat_map(|(start, data)| {
            let words = data.chunks_exact(8).enumerate();
            let same = words.filter(|(_, word)| *word == address.to_le_bytes());
            same.map(|(index, _)| *start + 8 * index as u64)
        });
        pointers.into_iter().chain(plain).find_map(at)
    }

    /// The data of a function from an offset on.
    pub(super) fn data(&self, offset: u32) -> Option<&'data [u8]> {
        self.functions.get(offset as usize..)
    }
}

/// Values of relative relocations by the address that the loader writes them to; those against symbols are left out.
fn relocations(elf: &Elf<'_>) -> HashMap<u64, u64> {
    let all = elf.object.dynamic_relocations().into_iter().flatten();
    let relative = all.filter(|(_, relocation)| relocation.target() == RelocationTarget::Absolute);
    relative.map(|(at, relocation)| (at, relocation.addend() as u64)).collect()
}

/// Section data from virtual address `address` to the section's end; `None` if no section holds it.
fn from<'data>(elf: &Elf<'data>, address: u64) -> Option<&'data [u8]> {
    elf.object.sections().find_map(|section| {
        let from = address.checked_sub(section.address())?;
        let inside = from < section.size() && section.address() != 0;
        let data = inside.then(|| section.data().ok()).flatten()?;
        data.get(usize::try_from(from).ok()?..)
    })
}
