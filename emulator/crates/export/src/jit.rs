//! Writes code that was made at run time into ELF files, for formats whose readers look names up by themselves.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use object::elf;
use object::write::elf::{FileHeader, SectionHeader, Sym, Writer};
use symbols::{FunctionId, ModuleId, is_jit_file};

use super::Export;

/// Bytes up to which a function is written whole; of a longer one, the part from its first executed instruction to its last.
const MAX_FUNCTION: u64 = 16 << 20;
/// Limit on the bytes of all functions of a file.
const MAX_FILE: u64 = 256 << 20;
/// Offset of the instructions in a file, and their virtual address as linked.
const TEXT_OFFSET: u64 = 4096;
const FUNCTION_ALIGNMENT: u64 = 16;

/// A function in one of the ELF files.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacedFunction {
    /// First address in the guest.
    pub start: u64,
    pub size: u64,
    /// Offset of `start` in the file.
    pub offset: u64,
    pub module: ModuleId,
}

/// The functions made at run time that any row is in.
#[derive(Debug, Default)]
pub(super) struct JitFunctions {
    pub functions: BTreeMap<FunctionId, PlacedFunction>,
    /// Number of functions beyond [`MAX_FUNCTION`] or [`MAX_FILE`], which are not written.
    pub left_out: usize,
}

impl JitFunctions {
    pub(crate) fn of(export: &Export<'_>) -> Self {
        let mut executed: BTreeMap<FunctionId, (u64, u64)> = BTreeMap::new();
        for row in 0..export.rows().len() {
            if !is_jit(export, row) {
                continue;
            }
            let static_info = export.static_info(row);
            let (first, end) =
                (static_info.pc, static_info.pc.saturating_add(u64::from(static_info.len)));
            let range = executed.entry(export.location(row).function).or_insert((first, end));
            *range = (range.0.min(first), range.1.max(end));
        }
        let mut code = Self::default();
        let mut ends: BTreeMap<ModuleId, u64> = BTreeMap::new();
        for (id, (first, end)) in executed {
            let function = export.symbols.function(id);
            let (start, size) = match function.size {
                size if size <= MAX_FUNCTION => (function.start, size),
                _ => (first, end - first),
            };
            let offset = *ends.get(&function.module).unwrap_or(&TEXT_OFFSET);
            if size > MAX_FUNCTION || offset + size > MAX_FILE {
                code.left_out += 1;
                continue;
            }
            let next = (offset + size).next_multiple_of(FUNCTION_ALIGNMENT);
            ends.insert(function.module, next);
            let module = function.module;
            let placed = PlacedFunction { start, size, offset, module };
            code.functions.insert(id, placed);
        }
        code
    }

    /// Writes a file for each map or jitdump file that the names are from, see [`file_name`].
    pub(crate) fn write(&self, export: &Export<'_>, folder: &Path) -> io::Result<()> {
        let mut modules: Vec<_> = self.functions.values().map(|placed| placed.module).collect();
        modules.sort_unstable();
        modules.dedup();
        if !modules.is_empty() {
            fs::create_dir_all(folder)?;
        }
        for module in modules {
            let own = self.functions.iter().filter(|(_, at)| at.module == module);
            let own: Vec<_> = own.map(|(id, placed)| (*id, *placed)).collect();
            let file = self.file(export, module, &own).map_err(io::Error::other)?;
            fs::write(folder.join(file_name(export, module)), file)?;
        }
        Ok(())
    }

    /// A shared object of these functions. It has only those of their instructions that a profiler names.
    fn file(
        &self,
        export: &Export<'_>,
        module: ModuleId,
        functions: &[(FunctionId, PlacedFunction)],
    ) -> object::write::Result<Vec<u8>> {
        let end = functions.iter().map(|(_, at)| at.offset + at.size).max();
        let mut text = vec![0; (end.unwrap_or(TEXT_OFFSET) - TEXT_OFFSET) as usize];
        for row in 0..export.rows().len() {
            let static_info = export.static_info(row);
            let placed = self.functions.get(&export.location(row).function);
            let Some(at) = placed.filter(|at| at.module == module) else {
                continue;
            };
            let from = static_info.pc.wrapping_sub(at.start).wrapping_add(at.offset - TEXT_OFFSET);
            let bytes = static_info.raw.to_le_bytes();
            let len = usize::from(static_info.len).min(bytes.len());
            let to = usize::try_from(from).ok();
            if let Some(to) = to.and_then(|from| text.get_mut(from..from.checked_add(len)?)) {
                to.copy_from_slice(&bytes[..len]);
            }
        }
        let mut bytes = Vec::new();
        let mut writer = Writer::new(object::Endianness::Little, true, &mut bytes);
        let names: Vec<_> = functions
            .iter()
            .map(|(id, at)| {
                let name = &export.symbols.function(*id).name;
                (writer.add_string(name.as_bytes()), *at)
            })
            .collect();
        let text_name = writer.add_section_name(b".text");
        writer.reserve_null_section_index();
        let text_index = writer.reserve_section_index();
        writer.reserve_symtab_section_index();
        writer.reserve_strtab_section_index();
        writer.reserve_shstrtab_section_index();
        writer.reserve_null_symbol_index();
        for _ in &names {
            writer.reserve_symbol_index(None);
        }
        writer.reserve_file_header();
        writer.reserve_until(TEXT_OFFSET);
        writer.reserve(text.len() as u64, 1);
        writer.reserve_symtab();
        writer.reserve_strtab()?;
        writer.reserve_shstrtab()?;
        writer.reserve_section_headers();
        writer.write_file_header(&FileHeader {
            os_abi: elf::ELFOSABI_NONE,
            abi_version: 0,
            e_type: elf::ET_DYN,
            e_machine: elf::EM_RISCV,
            e_entry: 0,
            e_flags: elf::FileFlags(0),
        })?;
        writer.pad_until(TEXT_OFFSET);
        writer.write(&text);
        writer.write_null_symbol();
        for (name, at) in names {
            writer.write_symbol(&Sym {
                section: Some(text_index.0),
                st_name: writer.string_offset(Some(name)),
                st_info: elf::SymbolInfo::new(elf::STB_GLOBAL, elf::STT_FUNC),
                st_other: elf::SymbolOther(0),
                st_shndx: elf::SymbolSection(0),
                st_value: at.offset,
                st_size: at.size,
            });
        }
        writer.write_strtab();
        writer.write_shstrtab();
        writer.write_null_section_header();
        writer.write_section_header(&SectionHeader {
            sh_name: writer.section_name_offset(Some(text_name)),
            sh_type: elf::SHT_PROGBITS,
            sh_flags: elf::SHF_ALLOC | elf::SHF_EXECINSTR,
            sh_addr: TEXT_OFFSET,
            sh_offset: TEXT_OFFSET,
            sh_size: text.len() as u64,
            sh_link: 0,
            sh_info: 0,
            sh_addralign: FUNCTION_ALIGNMENT,
            sh_entsize: 0,
        });
        writer.write_symtab_section_header(1);
        writer.write_strtab_section_header();
        writer.write_shstrtab_section_header();
        Ok(bytes)
    }
}

/// True if a row's name is from a map or jitdump file, which the program that made the code wrote.
fn is_jit(export: &Export<'_>, row: usize) -> bool {
    let module = export.module(row);
    module.file.is_some() && is_jit_file(&module.path) && !export.is_kernel(row)
}

/// `perf-123.map.so`: the name of the map or jitdump file, which has no characters to escape, and `.so`.
pub(super) fn file_name(export: &Export<'_>, module: ModuleId) -> String {
    format!("{}.so", export.symbols.module(module).name())
}
