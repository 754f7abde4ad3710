//! One ELF file: segments, build ID, sections.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use object::{
    CompressionFormat, Object, ObjectKind, ObjectSection, ObjectSegment, ObjectSymbol, SegmentFlags,
};

use super::BuildId;

/// Largest file that is read, and largest section after decompression: a kernel with full debug
/// information has below 1 GiB.
const MAX_BYTES: u64 = 2 << 30;
const PAGE: u64 = 4096;

/// A loaded segment.
#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    file_size: u64,
    address: u64,
}

/// A loaded segment that holds instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeSegment {
    /// The segment's offset in the file, in bytes.
    pub offset: u64,
    /// The segment's length in the file, in bytes.
    pub size: u64,
    /// The segment's virtual address, as linked.
    pub address: u64,
}

/// The executable segments of a file; none if it cannot be read.
pub fn code_segments(path: &Path) -> Vec<CodeSegment> {
    let Ok(bytes) = read(path) else {
        return Vec::new();
    };
    let Ok(object) = object::File::parse(&*bytes) else {
        return Vec::new();
    };
    object
        .segments()
        .filter(|segment| match segment.flags() {
            SegmentFlags::Elf { p_flags, .. } => p_flags.0 & object::elf::PF_X.0 != 0,
            _ => false,
        })
        .map(|segment| CodeSegment {
            offset: segment.file_range().0,
            size: segment.file_range().1,
            address: segment.address(),
        })
        .collect()
}

/// A parsed file and the parts of it that translate addresses.
pub(super) struct Elf<'data> {
    pub object: object::File<'data>,
    segments: Vec<Segment>,
}

/// Reads a regular file of at most [`MAX_BYTES`].
pub(super) fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    // To open a pipe would wait for whoever writes to it.
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    let file = File::open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() || meta.len() > MAX_BYTES {
        return Err(std::io::Error::other("not a regular file below 2 GiB"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// True if the file says that it is an ELF file.
pub(super) fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    if !std::fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return false;
    }
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && &magic == b"\x7fELF"
}

/// The build ID of a file, if it is an ELF file that has one.
pub(super) fn build_id_of(path: &Path) -> Option<BuildId> {
    if !is_elf(path) {
        return None;
    }
    Elf::parse(&read(path).ok()?).ok()?.build_id()
}

/// The name of a symbol, in whatever encoding: what is not UTF-8 is read as Latin-1, so that different names stay different.
pub(super) fn name_of<'data: 'file, 'file>(
    symbol: &object::Symbol<'data, 'file>,
) -> Option<Cow<'data, str>> {
    let bytes = symbol.name_bytes().ok()?;
    Some(match std::str::from_utf8(bytes) {
        Ok(name) => name.into(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    })
}

impl<'data> Elf<'data> {
    pub(crate) fn parse(bytes: &'data [u8]) -> object::Result<Self> {
        let object = object::File::parse(bytes)?;
        let segments = object
            .segments()
            .map(|segment| {
                let (offset, file_size) = segment.file_range();
                Segment { offset, file_size, address: segment.address() }
            })
            .collect();
        Ok(Self { object, segments })
    }

    pub(crate) fn build_id(&self) -> Option<BuildId> {
        self.object.build_id().ok().flatten().map(|id| BuildId(id.to_vec()))
    }

    /// The virtual address of a byte of the file. A mapping covers whole pages, so that the
    /// bytes around a segment on its first and last page count as the segment's.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        let inside = |first: u64, end: u64| (first..end).contains(&offset);
        let exact = |s: &&Segment| inside(s.offset, s.offset.saturating_add(s.file_size));
        let paged = |s: &&Segment| {
            let end = s.offset.saturating_add(s.file_size).checked_next_multiple_of(PAGE);
            inside(s.offset & !(PAGE - 1), end.unwrap_or(u64::MAX))
        };
        let segment = self.segments.iter().find(exact).or(self.segments.iter().find(paged))?;
        Some(segment.address.wrapping_add(offset.wrapping_sub(segment.offset)))
    }

    /// Lowest virtual address of a segment.
    pub(crate) fn base(&self) -> u64 {
        self.segments.iter().map(|s| s.address).min().unwrap_or(0)
    }

    /// True if the loader chooses where it goes.
    pub(crate) fn is_relocatable(&self) -> bool {
        self.object.kind() == ObjectKind::Dynamic
    }

    /// The bytes of a section, decompressed; empty if it is not there or not usable.
    pub(crate) fn section(&self, name: &str) -> Cow<'data, [u8]> {
        let Some(section) = self.object.section_by_name(name) else {
            return Cow::Borrowed(&[]);
        };
        let Ok(data) = section.compressed_data() else {
            return Cow::Borrowed(&[]);
        };
        if data.format != CompressionFormat::None && data.uncompressed_size > MAX_BYTES {
            return Cow::Borrowed(&[]);
        }
        data.decompress().unwrap_or(Cow::Borrowed(&[]))
    }

    /// True if symbols or debug information were taken out of the file.
    pub(crate) fn is_stripped(&self) -> bool {
        self.object.symbols().next().is_none()
            || self.object.section_by_name(".debug_info").is_none()
    }

    /// True if its symbol table was taken out.
    pub(crate) fn has_no_symbols(&self) -> bool {
        self.object.symbols().next().is_none()
    }

    /// True if a part of its debug information is in a file that it shares with others.
    pub(crate) fn shares_debug_information(&self) -> bool {
        let links = self.object.gnu_debugaltlink();
        matches!(links, Ok(Some(_))) || self.object.section_by_name(".debug_sup").is_some()
    }

    /// True if its instructions were left out: then it is the debug information of another file.
    pub(crate) fn has_no_code(&self) -> bool {
        let mut code = self
            .object
            .sections()
            .filter(|section| section.name().is_ok_and(|name| name == ".text"))
            .peekable();
        code.peek().is_some() && code.all(|text| text.file_range().is_none())
    }

    /// Address range of a section.
    pub(crate) fn section_range(&self, name: &str) -> Option<(u64, u64)> {
        let section = self.object.section_by_name(name)?;
        Some((section.address(), section.address().saturating_add(section.size())))
    }
}
