//! ELF files. goblin reads the structures; every offset, size and address is checked here.

use std::ops::Range;

use devices::{RAM_BASE, Ram};
use goblin::container::{Container, Ctx, Endian};
use goblin::elf::header::{self, Header};
use goblin::elf::program_header::{PF_X, PT_LOAD, ProgramHeader};
use goblin::elf::section_header::{SHT_SYMTAB, SectionHeader};
use goblin::elf::sym::{STT_FUNC, STT_NOTYPE, Sym, Symtab};

use super::{Image, LoadError, overlap, write};

const CTX: Ctx = Ctx { container: Container::Big, le: Endian::Little };
/// Largest segment that is worth an attempt, to keep sums of sizes from overflowing.
const SEGMENT_MAX: u64 = 1 << 46;

/// Addresses that test programs publish as symbols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ElfSymbols {
    /// Host-target interface: word to the host.
    pub tohost: Option<u64>,
    /// Host-target interface: word from the host.
    pub fromhost: Option<u64>,
    /// First byte of an architecture test's signature.
    pub begin_signature: Option<u64>,
    /// Byte after the signature.
    pub end_signature: Option<u64>,
}

/// A loaded ELF file.
#[derive(Clone, Debug)]
pub struct Elf {
    /// Physical address of the first instruction.
    pub entry: u64,
    /// Physical addresses of the segments, in the file's order.
    pub segments: Vec<Range<u64>>,
    /// Symbols that mean something to the machine.
    pub symbols: ElfSymbols,
}

impl Elf {
    /// True if the file looks like ELF.
    pub fn recognise(bytes: &[u8]) -> bool {
        bytes.starts_with(b"\x7fELF")
    }

    /// Loads the segments of a 64-bit little-endian RISC-V executable to their physical
    /// addresses. A position-independent file, or a kernel in the upper half of virtual memory, that is not linked for RAM is moved so that its
    /// lowest segment is at `base`.
    pub fn load(image: Image<'_>, base: u64, ram: &mut Ram) -> Result<Self, LoadError> {
        let header = header(image)?;
        // The table usually comes last: a file that was cut ends before it.
        let sections = usize::from(header.e_shnum) * usize::from(header.e_shentsize);
        file_range(image, "section header table", header.e_shoff, sections as u64)?;
        let loads = program_headers(image, &header)?;
        let in_ram = |h: &ProgramHeader| ram.contains(h.p_paddr, h.p_memsz);
        let lowest = loads.iter().map(|h| h.p_paddr).min().unwrap_or(0);
        // A kernel linked for its own virtual addresses says where its parts are to each other: Linux' vmlinux.
        let high = loads
            .iter()
            .all(|h| h.p_vaddr >> 63 != 0 && h.p_paddr.checked_add(h.p_memsz).is_some());
        let movable = (header.e_type == header::ET_DYN || high) && !loads.iter().all(in_ram);
        let bias = if movable { base.wrapping_sub(lowest) } else { 0 };

        let mut segments: Vec<Range<u64>> = Vec::new();
        for (n, load) in loads.iter().enumerate() {
            let what = format!("segment {n}");
            let start = load.p_paddr.wrapping_add(bias);
            let content = file_range(image, &what, load.p_offset, load.p_filesz)?;
            let range = start..start.saturating_add(load.p_memsz);
            if let Some(other) = segments.iter().position(|other| overlap(other, &range)) {
                let (file, other) = (image.name.to_owned(), format!("segment {other}"));
                return Err(LoadError::Overlap { file, what, start, other });
            }
            // Linkers put the file's own headers before a text at the beginning of memory.
            let what = match load.p_offset {
                0 => format!("{what} (with the ELF file's headers, which `ld -n` leaves out)"),
                _ => what,
            };
            segments.push(write(image, &what, start, content, load.p_memsz, ram)?);
        }
        let entry = entry(image, &header, &loads, &segments, bias)?;
        Ok(Self { entry, segments, symbols: symbols(image, &header, bias) })
    }
}

fn field(
    image: Image<'_>,
    field: &'static str,
    expected: impl Into<String>,
    found: impl Into<String>,
) -> LoadError {
    let (file, expected, found) = (image.name.to_owned(), expected.into(), found.into());
    LoadError::Field { file, field, expected, found }
}

fn malformed(image: Image<'_>, error: &goblin::error::Error) -> LoadError {
    LoadError::Malformed { file: image.name.to_owned(), reason: error.to_string() }
}

fn file_range<'a>(
    image: Image<'a>,
    what: &str,
    offset: u64,
    size: u64,
) -> Result<&'a [u8], LoadError> {
    let end = offset.saturating_add(size);
    let range = usize::try_from(offset).ok().zip(usize::try_from(end).ok());
    range.and_then(|(start, end)| image.bytes.get(start..end)).ok_or_else(|| {
        let (file, what) = (image.name.to_owned(), what.to_owned());
        LoadError::Truncated { file, what, end, size: image.bytes.len() as u64 }
    })
}

fn header(image: Image<'_>) -> Result<Header, LoadError> {
    if !Elf::recognise(image.bytes) {
        let start = image.bytes.get(..4).unwrap_or(image.bytes);
        return Err(field(image, "magic", "7f 45 4c 46 (ELF)", format!("{start:02x?}")));
    }
    let identification = file_range(image, "ELF header", 0, 64)?;
    let (class, data) = (identification[header::EI_CLASS], identification[header::EI_DATA]);
    if class != header::ELFCLASS64 {
        return Err(field(image, "EI_CLASS", "2 (64-bit)", class.to_string()));
    }
    if data != header::ELFDATA2LSB {
        return Err(field(image, "EI_DATA", "1 (little-endian)", data.to_string()));
    }
    let header = goblin::elf::Elf::parse_header(image.bytes).map_err(|e| malformed(image, &e))?;
    if header.e_machine != header::EM_RISCV {
        let found = format!("{} ({})", header.e_machine, header::machine_to_str(header.e_machine));
        return Err(field(image, "e_machine", "243 (RISC-V)", found));
    }
    if !matches!(header.e_type, header::ET_EXEC | header::ET_DYN) {
        let found = format!("{} ({})", header.e_type, header::et_to_str(header.e_type));
        return Err(field(image, "e_type", "2 (executable) or 3 (position-independent)", found));
    }
    Ok(header)
}

/// The loadable segments that have a size.
fn program_headers(image: Image<'_>, header: &Header) -> Result<Vec<ProgramHeader>, LoadError> {
    let count = usize::from(header.e_phnum);
    let size = ProgramHeader::size(CTX);
    if count != 0 && usize::from(header.e_phentsize) != size {
        return Err(field(image, "e_phentsize", size.to_string(), header.e_phentsize.to_string()));
    }
    file_range(image, "program header table", header.e_phoff, (count * size) as u64)?;
    let headers = ProgramHeader::parse(image.bytes, header.e_phoff as usize, count, CTX)
        .map_err(|e| malformed(image, &e))?;
    let loads: Vec<_> =
        headers.into_iter().filter(|h| h.p_type == PT_LOAD && h.p_memsz != 0).collect();
    if loads.is_empty() {
        return Err(field(image, "program headers", "a segment to load", "none"));
    }
    for load in &loads {
        if load.p_memsz < load.p_filesz || load.p_memsz > SEGMENT_MAX {
            let expected = format!("at least p_filesz ({:#x})", load.p_filesz);
            return Err(field(image, "p_memsz", expected, format!("{:#x}", load.p_memsz)));
        }
    }
    Ok(loads)
}

/// The physical address of the entry point, which the file gives as a virtual one.
fn entry(
    image: Image<'_>,
    header: &Header,
    loads: &[ProgramHeader],
    segments: &[Range<u64>],
    bias: u64,
) -> Result<u64, LoadError> {
    let entry = header.e_entry;
    let inside = |h: &&ProgramHeader| entry.wrapping_sub(h.p_vaddr) < h.p_memsz;
    if let Some(home) = loads.iter().find(inside) {
        return Ok((entry - home.p_vaddr).wrapping_add(home.p_paddr).wrapping_add(bias));
    }
    let physical = entry.wrapping_add(bias);
    if segments.iter().any(|s| s.contains(&physical)) {
        return Ok(physical);
    }
    Err(field(image, "e_entry", "an address in a loaded segment", format!("{entry:#x}")))
}

/// The symbols that matter. A file without a symbol table, or with a broken one, has none: it
/// runs all the same.
fn symbols(image: Image<'_>, header: &Header, bias: u64) -> ElfSymbols {
    let mut symbols = ElfSymbols::default();
    each_symbol(image, header, |name, symbol| {
        let target = match name {
            b"tohost" => &mut symbols.tohost,
            b"fromhost" => &mut symbols.fromhost,
            b"begin_signature" => &mut symbols.begin_signature,
            b"end_signature" => &mut symbols.end_signature,
            _ => return,
        };
        *target = Some(symbol.st_value.wrapping_add(bias));
    });
    symbols
}

/// Calls `found` with each symbol and its name, as far as the table can be read.
fn each_symbol(image: Image<'_>, header: &Header, mut found: impl FnMut(&[u8], &Sym)) {
    let mut read = || {
        let (count, at) = (usize::from(header.e_shnum), usize::try_from(header.e_shoff).ok()?);
        let size = count.checked_mul(SectionHeader::size(CTX))?;
        image.bytes.get(at..at.checked_add(size)?)?;
        let sections = SectionHeader::parse_from(image.bytes, at, count, CTX).ok()?;
        let table = sections.iter().find(|s| s.sh_type == SHT_SYMTAB)?;
        let strings = sections.get(table.sh_link as usize)?;
        let names = file_range(image, "strings", strings.sh_offset, strings.sh_size).ok()?;
        file_range(image, "symbols", table.sh_offset, table.sh_size).ok()?;
        let count = table.sh_size as usize / goblin::elf::sym::Sym::size(CTX.container);
        let table = Symtab::parse(image.bytes, table.sh_offset as usize, count, CTX).ok()?;
        for symbol in table.iter() {
            if let Some(name) = names.get(symbol.st_name..)
                && let Some(name) = name.split(|&byte| byte == 0).next()
            {
                found(name, &symbol);
            }
        }
        Some(())
    };
    let _ = read();
}

/// The last function or label of code at or before an address that is in the file's code, and how far before. Of a file
/// that was moved where it was loaded, addresses mean nothing.
pub fn nearest_symbol(image: Image<'_>, address: u64) -> Option<(String, u64)> {
    let header = header(image).ok()?;
    let code = program_headers(image, &header).ok()?.into_iter().find(|load| {
        load.p_flags & PF_X != 0
            && (load.p_vaddr..load.p_vaddr.saturating_add(load.p_memsz)).contains(&address)
    })?;
    let mut best: Option<(String, u64)> = None;
    each_symbol(image, &header, |name, symbol| {
        let labels = matches!(symbol.st_type(), STT_FUNC | STT_NOTYPE);
        let here = symbol.st_shndx != 0 && (code.p_vaddr..=address).contains(&symbol.st_value);
        // `$x` and `.L` are the assembler's own.
        if !labels || !here || name.is_empty() || name[0] == b'$' || name.starts_with(b".L") {
            return;
        }
        let before = address - symbol.st_value;
        if best.as_ref().is_none_or(|(_, least)| before < *least) {
            best = Some((String::from_utf8_lossy(name).into_owned(), before));
        }
    });
    best
}

/// Where position-independent firmware goes.
pub(super) const FIRMWARE_BASE: u64 = RAM_BASE;
