//! Source lines and inlined functions.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::path::PathBuf;
use std::sync::Arc;

use addr2line::{LookupContinuation, LookupResult, SplitDwarfLoad};
use gimli::{Dwarf, DwarfPackage, EndianSlice, LittleEndian, Reader as _, Section as _, SectionId};
use typed_arena::Arena;

use super::debug::{Parts, missing, shown};
use super::elf::{self, Elf};
use super::name::demangle;
use super::resolve::Interner;
use super::symbols::{Frame, Source};

type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// Nesting of debugging entries beyond which a file's debug information is not used: the lookup
/// recurses once per level. Compilers stay below 100.
const MAX_DEPTH: isize = 400;
/// Inlined frames kept per address.
const MAX_FRAMES: usize = 64;

/// Keeps files and decompressed sections for as long as lookups need them.
#[derive(Default)]
pub(super) struct Memory(Arena<Vec<u8>>);

impl Memory {
    fn keep(&self, bytes: Vec<u8>) -> &[u8] {
        self.0.alloc(bytes)
    }
}

/// Looks up addresses in debug information.
pub(super) struct Lines<'a> {
    context: addr2line::Context<Reader<'a>>,
    parts: &'a Parts<'a>,
    memory: &'a Memory,
    /// Where the debug information is, if not in the program.
    debug: Option<PathBuf>,
    packages: OnceCell<Vec<DwarfPackage<Reader<'a>>>>,
    /// Some of it is in a file that was not found.
    incomplete: bool,
}

impl<'a> Lines<'a> {
    /// A lookup over the debug information of a file, which is the program itself or lies at `debug`; or why there is none: no
    /// debug information is `Ok(None)`.
    pub fn new(
        elf: &Elf<'a>,
        debug: Option<PathBuf>,
        parts: &'a Parts<'a>,
        memory: &'a Memory,
    ) -> Result<Option<Self>, gimli::Error> {
        let mut dwarf = load(elf, memory, |id| Some(id.name()));
        if dwarf.debug_info.reader().is_empty() {
            return Ok(None);
        }
        check_depth(&dwarf)?;
        let shares = parts.supplementary(elf);
        let incomplete = shares.is_none() && elf.shares_debug_information();
        if let Some(shared) = shares {
            let bytes = memory.keep(shared.bytes);
            let shared = Elf::parse(bytes).map(|elf| load(&elf, memory, |id| Some(id.name())));
            if let Ok(shared) = shared {
                check_depth(&shared)?;
                dwarf.set_sup(shared);
            }
        }
        let context = addr2line::Context::from_dwarf(dwarf)?;
        Ok(Some(Self {
            context,
            parts,
            memory,
            debug,
            packages: OnceCell::new(),
            incomplete,
        }))
    }

    /// The source line of an address and the functions inlined there, innermost first. Damaged
    /// debug information gives less, never an error.
    pub fn find(&self, address: u64, names: &mut Interner) -> (Option<Source>, Vec<Frame>) {
        let mut source = None;
        let mut chain: Vec<(Arc<str>, Option<Source>)> = Vec::new();
        let mut lookup = self.context.find_frames(address);
        let found = loop {
            lookup = match lookup {
                LookupResult::Output(found) => break found,
                LookupResult::Load { load, continuation } => {
                    continuation.resume(self.split(&load).map(Arc::new))
                }
            };
        };
        let Ok(mut frames) = found else {
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
                .unwrap_or_else(|| {
                    names.get(match self.incomplete {
                        true => "?? (its name is in a file that was not found)",
                        false => "??",
                    })
                });
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

    /// The debug information that the compiler left in a file beside the object.
    fn split(&self, wanted: &SplitDwarfLoad<Reader<'a>>) -> Option<Dwarf<Reader<'a>>> {
        let packages = self.packages.get_or_init(|| self.open_packages());
        let packed = { packages.iter() }
            .find_map(|package| package.find_cu(wanted.dwo_id, &wanted.parent).ok()?);
        if let Some(found) = packed {
            check_depth(&found).ok()?;
            return Some(found);
        }
        let text = |part: &Option<Reader<'a>>| {
            let bytes = part.as_ref().and_then(|part| part.to_slice().ok());
            bytes.map_or(Vec::new(), Cow::into_owned)
        };
        let (folder, name) = (text(&wanted.comp_dir), text(&wanted.path));
        let mut refused = Vec::new();
        for path in self.parts.split_files(&folder, &name) {
            match self.open_split(&path, wanted) {
                Some(found) => return Some(found),
                None => refused.push(format!("{} is of another build", path.display())),
            }
        }
        let program = self.parts.file.file_name().unwrap_or_default();
        self.parts.missing(missing(
            "inlined functions",
            &format!("{} or {}.dwp", shown(&name), program.display()),
            &refused,
        ));
        None
    }

    fn open_split(
        &self,
        path: &std::path::Path,
        wanted: &SplitDwarfLoad<Reader<'a>>,
    ) -> Option<Dwarf<Reader<'a>>> {
        let elf = Elf::parse(self.memory.keep(elf::read(path).ok()?)).ok()?;
        let mut dwarf = load(&elf, self.memory, SectionId::dwo_name);
        let header = dwarf.units().next().ok()??;
        if dwarf.unit(header).ok()?.dwo_id != Some(wanted.dwo_id) {
            return None;
        }
        dwarf.make_dwo(&wanted.parent);
        check_depth(&dwarf).ok()?;
        Some(dwarf)
    }

    fn open_packages(&self) -> Vec<DwarfPackage<Reader<'a>>> {
        let open = |path: PathBuf| {
            let elf = Elf::parse(self.memory.keep(elf::read(&path).ok()?)).ok()?;
            let section =
                |id: SectionId| Ok::<_, gimli::Error>(section(&elf, self.memory, id.dwo_name()));
            DwarfPackage::load(section, EndianSlice::new(&[], LittleEndian)).ok()
        };
        let files = self.parts.packages(self.debug.as_deref());
        files.into_iter().filter_map(open).collect()
    }
}

/// The sections of a file, decompressed.
fn load<'a>(
    elf: &Elf<'a>,
    memory: &'a Memory,
    name: impl Fn(SectionId) -> Option<&'static str>,
) -> Dwarf<Reader<'a>> {
    let load = |id| Ok::<_, std::convert::Infallible>(section(elf, memory, name(id)));
    let Ok(dwarf) = Dwarf::load(load);
    dwarf
}

fn section<'a>(elf: &Elf<'a>, memory: &'a Memory, name: Option<&str>) -> Reader<'a> {
    let bytes = match name.map_or(Cow::Borrowed(&[][..]), |name| elf.section(name)) {
        Cow::Borrowed(bytes) => bytes,
        Cow::Owned(bytes) => memory.keep(bytes),
    };
    EndianSlice::new(bytes, LittleEndian)
}

/// Refuses debug information that nests deeper than [`MAX_DEPTH`].
fn check_depth(dwarf: &Dwarf<Reader<'_>>) -> Result<(), gimli::Error> {
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
