//! Source lines and inlined functions from DWARF.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use addr2line::{LookupContinuation, LookupResult, SplitDwarfLoad};
use gimli::{
    Dwarf, DwarfPackage, DwoId, EndianSlice, LittleEndian, Reader as _, Section as _, SectionId,
};
use typed_arena::Arena;

use super::debug::{DebugFiles, missing, shown};
use super::elf::{self, Elf};
use super::interner::Interner;
use super::lengths;
use super::name::demangle;
use super::symbols::{Frame, Location, Source};
use super::table::Table;

type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// Nesting of debugging entries beyond which a file's debug information is not used: the lookup
/// recurses once per level. Compilers stay below 100.
const MAX_DEPTH: isize = 400;
/// Source files of a program whose checksums are kept.
const MAX_SOURCES: usize = 100_000;
/// Inlined frames kept per address.
const MAX_FRAMES: usize = 64;

/// Keeps files and decompressed sections for as long as lookups need them.
#[derive(Default)]
pub(super) struct FileArena(Arena<Vec<u8>>);

impl FileArena {
    fn keep(&self, bytes: Vec<u8>) -> &[u8] {
        self.0.alloc(bytes)
    }
}

/// Looks up addresses in debug information.
pub(super) struct Lines<'a> {
    context: addr2line::Context<Reader<'a>>,
    parts: &'a DebugFiles<'a>,
    memory: &'a FileArena,
    table: &'a Table<'a>,
    /// The program's skeleton units, whose debug information is in `.dwo` files, by the IDs of those.
    skeletons: OnceCell<HashMap<DwoId, gimli::Unit<Reader<'a>>>>,
    /// The debug file's path, if the debug information is not in the program.
    debug: Option<PathBuf>,
    packages: OnceCell<Vec<DwarfPackage<Reader<'a>>>>,
    /// Some of the debug information is in a file that was not found.
    incomplete: bool,
    /// MD5 of source files, by their paths.
    checksums: BTreeMap<String, [u8; 16]>,
}

impl<'a> Lines<'a> {
    /// A lookup over the debug information of `elf`, which is the program or, with `debug`, its debug file at that path.
    /// `None` if it has no debug information.
    pub(crate) fn new(
        elf: &Elf<'a>,
        debug: Option<PathBuf>,
        parts: &'a DebugFiles<'a>,
        memory: &'a FileArena,
        table: &'a Table<'a>,
    ) -> Result<Option<Self>, gimli::Error> {
        let mut dwarf = load(elf, memory, |id| Some(id.name()));
        if dwarf.debug_info.reader().is_empty() {
            return Ok(None);
        }
        check_depth(&dwarf)?;
        let shares = parts.supplementary(elf, debug.as_deref());
        let incomplete = shares.is_none() && elf.shares_debug_information();
        if let Some(shared) = shares {
            let bytes = memory.keep(shared.bytes);
            let shared = Elf::parse(bytes).map(|elf| load(&elf, memory, |id| Some(id.name())));
            if let Ok(shared) = shared {
                check_depth(&shared)?;
                dwarf.set_sup(shared);
            }
        }
        let checksums = checksums(&dwarf);
        let context = addr2line::Context::from_dwarf(dwarf)?;
        Ok(Some(Self {
            context,
            checksums,
            parts,
            memory,
            table,
            skeletons: OnceCell::new(),
            debug,
            packages: OnceCell::new(),
            incomplete,
        }))
    }

    /// The source line of an address and the functions inlined there, innermost first. Damaged debug information
    /// gives fewer of these, and never an error.
    pub(crate) fn find(&self, address: u64, names: &mut Interner) -> (Option<Source>, Vec<Frame>) {
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
            let at = frame
                .location
                .and_then(|l| Some(Source { file: names.get(l.file?), line: l.line.unwrap_or(0) }));
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
        // A frame's call site is the location in the next outer frame. The outermost frame is not inlined.
        let calls: Vec<Option<Source>> = chain.iter().skip(1).map(|(_, at)| at.clone()).collect();
        let inlined = chain
            .into_iter()
            .zip(calls)
            .map(|((function, _), call)| Frame { function, call })
            .collect();
        (source, inlined)
    }

    /// Returns the MD5 of each source file that some locations name, as far as it is known.
    pub(crate) fn checksums<'l>(
        &self,
        named: impl Iterator<Item = &'l Location>,
    ) -> BTreeMap<Arc<str>, [u8; 16]> {
        let mut found = BTreeMap::new();
        if self.checksums.is_empty() {
            return found;
        }
        for at in named {
            let calls = at.inlined.iter().filter_map(|frame| frame.call.as_ref());
            for Source { file, .. } in at.source.iter().chain(calls) {
                if let (false, Some(known)) =
                    (found.contains_key(file), self.checksums.get(&**file))
                {
                    found.insert(file.clone(), *known);
                }
            }
        }
        found
    }

    /// The debug information that the compiler left in a file beside the object.
    fn split(&self, wanted: &SplitDwarfLoad<Reader<'a>>) -> Option<Dwarf<Reader<'a>>> {
        let packages = self.packages.get_or_init(|| self.open_packages());
        let packed = packages
            .iter()
            .find_map(|package| package.find_cu(wanted.dwo_id, &wanted.parent).ok()?);
        if let Some(found) = packed {
            check_depth(&found).ok()?;
            return Some(self.completed(found, wanted));
        }
        let text = |part: &Option<Reader<'a>>| {
            let bytes = part.as_ref().and_then(|part| part.to_slice().ok());
            bytes.map_or(Vec::new(), Cow::into_owned)
        };
        let (folder, name) = (text(&wanted.comp_dir), text(&wanted.path));
        let mut refused = Vec::new();
        for path in self.parts.split_files(&folder, &name) {
            match self.open_split(&path, wanted) {
                Some(found) => return Some(self.completed(found, wanted)),
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

    /// Split debug information with the functions' lengths filled in, where the assembler left them to the linker.
    fn completed(
        &self,
        mut split: Dwarf<Reader<'a>>,
        wanted: &SplitDwarfLoad<Reader<'a>>,
    ) -> Dwarf<Reader<'a>> {
        let main = &wanted.parent;
        let skeletons = self.skeletons.get_or_init(|| skeletons(main));
        let completed = skeletons
            .get(&wanted.dwo_id)
            .and_then(|unit| lengths::completed(&split, main, unit, self.table).ok()?);
        if let Some(bytes) = completed {
            split.debug_info = EndianSlice::new(self.memory.keep(bytes), LittleEndian).into();
            self.parts.note(
                "functions in its split debug information have no lengths (the assembler left them to the linker): where \
                 inlined ones end was told by source lines",
            );
        }
        split
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

/// The MD5 of source files (DWARF 5, section 6.2.4.1), by their paths as `addr2line` makes them.
fn checksums(dwarf: &Dwarf<Reader<'_>>) -> BTreeMap<String, [u8; 16]> {
    let mut found = BTreeMap::new();
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let Ok(unit) = dwarf.unit(header) else {
            continue;
        };
        let Some(program) = &unit.line_program else {
            continue;
        };
        let header = program.header();
        if !header.file_has_md5() {
            continue;
        }
        let text = |value| {
            let text = dwarf.attr_string(&unit, value).ok()?;
            Some(text.to_string_lossy().into_owned())
        };
        let folder = unit.comp_dir.as_ref().map(|dir| dir.to_string_lossy().into_owned());
        for file in header.file_names() {
            let mut path = PathBuf::from(folder.clone().unwrap_or_default());
            let directory = match file.directory_index() {
                0 => None,
                _ => file.directory(header).and_then(text),
            };
            path.extend(directory);
            path.extend(text(file.path_name()));
            if found.len() < MAX_SOURCES && *file.md5() != [0; 16] {
                found.insert(path.to_string_lossy().into_owned(), *file.md5());
            }
        }
    }
    found
}

fn skeletons<'a>(main: &Dwarf<Reader<'a>>) -> HashMap<DwoId, gimli::Unit<Reader<'a>>> {
    let mut found = HashMap::new();
    let mut units = main.units();
    while let Ok(Some(header)) = units.next() {
        if let Ok(unit) = main.unit(header)
            && let Some(id) = unit.dwo_id
        {
            found.insert(id, unit);
        }
    }
    found
}

/// The sections of a file, decompressed.
fn load<'a>(
    elf: &Elf<'a>,
    memory: &'a FileArena,
    name: impl Fn(SectionId) -> Option<&'static str>,
) -> Dwarf<Reader<'a>> {
    let load = |id| Ok::<_, std::convert::Infallible>(section(elf, memory, name(id)));
    let Ok(dwarf) = Dwarf::load(load);
    dwarf
}

fn section<'a>(elf: &Elf<'a>, memory: &'a FileArena, name: Option<&str>) -> Reader<'a> {
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
