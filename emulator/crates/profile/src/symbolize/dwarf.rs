//! Source lines and inlined functions.

use std::borrow::Cow;
use std::sync::Arc;

use gimli::{DwarfSections, EndianSlice, LittleEndian, Section};

use super::elf::Elf;
use super::name::demangle;
use super::resolve::Interner;
use super::symbols::{Frame, Source};

type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// Nesting of debugging entries beyond which a file's debug information is not used: the lookup
/// recurses once per level. Compilers stay below 100.
const MAX_DEPTH: isize = 400;
/// Inlined frames kept per address.
const MAX_FRAMES: usize = 64;

/// The debug sections of a file, decompressed.
pub(super) struct Sections<'data>(DwarfSections<Cow<'data, [u8]>>);

/// Looks up addresses in debug information.
pub(super) struct Lines<'a>(addr2line::Context<Reader<'a>>);

impl<'data> Sections<'data> {
    pub fn load(elf: &Elf<'data>) -> Self {
        let load = |id: gimli::SectionId| Ok::<_, std::convert::Infallible>(elf.section(id.name()));
        let Ok(sections) = DwarfSections::load(load);
        Self(sections)
    }

    /// A lookup over the sections, or why there is none: no debug information is `Ok(None)`.
    pub fn lines(&self) -> Result<Option<Lines<'_>>, gimli::Error> {
        let dwarf = self.0.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
        if dwarf.debug_info.reader().is_empty() {
            return Ok(None);
        }
        check_depth(&dwarf)?;
        addr2line::Context::from_dwarf(dwarf).map(|context| Some(Lines(context)))
    }
}

/// Refuses debug information that nests deeper than [`MAX_DEPTH`].
fn check_depth(dwarf: &gimli::Dwarf<Reader<'_>>) -> Result<(), gimli::Error> {
    let mut units = dwarf.units();
    while let Some(header) = units.next()? {
        let abbreviations = dwarf.abbreviations(&header)?;
        let mut entries = header.entries_raw(&abbreviations, None)?;
        while !entries.is_empty() {
            if entries.next_depth() > MAX_DEPTH {
                return Err(gimli::Error::TooManyIterations);
            }
            if let Some(abbreviation) = entries.read_abbreviation()? {
                entries.skip_attributes(abbreviation.attributes())?;
            }
        }
    }
    Ok(())
}

impl Lines<'_> {
    /// The source line of an address and the functions inlined there, innermost first. Damaged
    /// debug information gives less, never an error.
    pub fn find(&self, address: u64, names: &mut Interner) -> (Option<Source>, Vec<Frame>) {
        let mut source = None;
        let mut chain: Vec<(Arc<str>, Option<Source>)> = Vec::new();
        let Ok(mut frames) = self.0.find_frames(address).skip_all_loads() else {
            return (None, Vec::new());
        };
        while let Ok(Some(frame)) = frames.next() {
            let at = frame.location.and_then(|l| {
                Some(Source {
                    file: names.get(l.file?),
                    line: l.line.unwrap_or(0),
                })
            });
            if chain.is_empty() {
                source.clone_from(&at);
            }
            let name = frame
                .function
                .and_then(|f| f.raw_name().ok().map(|raw| names.get_with(&raw, demangle)))
                .unwrap_or_else(|| names.get("??"));
            chain.push((name, at));
            if chain.len() > MAX_FRAMES {
                break;
            }
        }
        // A frame's call site is the location of the frame around it; the outermost is no inline.
        let calls: Vec<Option<Source>> = chain.iter().skip(1).map(|(_, at)| at.clone()).collect();
        let inlined = chain
            .into_iter()
            .zip(calls)
            .map(|((function, _), call)| Frame { function, call })
            .collect();
        (source, inlined)
    }
}
