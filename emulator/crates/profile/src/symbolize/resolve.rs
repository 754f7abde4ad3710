//! The lookup itself: places grouped by module, each module read once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::dwarf::{Lines, Sections};
use super::elf::{self, Elf};
use super::files::scan;
use super::name::demangle;
use super::symbols::{Function, FunctionId, Location, Module, ModuleId, Symbols};
use super::table::{Entry, Table};
use super::{BuildId, Sources, SymbolFiles, inside};

/// OpenSBI's load address on every RISC-V platform that starts from DRAM at 2 GiB.
const FIRMWARE_BASE: u64 = 0x8000_0000;

/// An address, by what backs it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A byte of a file that a process has mapped (`offset` = pc − mapping start + page offset).
    File {
        /// Guest path; names in brackets have no file, except `[vdso]`.
        path: Arc<str>,
        /// Build ID that the guest reported.
        build_id: Option<BuildId>,
        /// Offset in the file, in bytes.
        offset: u64,
    },
    /// A kernel virtual address.
    Kernel(u64),
    /// A physical address in supervisor mode: the kernel before it turns translation on.
    KernelPhysical(u64),
    /// A physical address in machine mode.
    Firmware(u64),
    /// An address that no mapping covers.
    Unknown(u64),
}

impl Place {
    /// Shorthand for [`Place::File`].
    pub fn file(path: &str, build_id: Option<BuildId>, offset: u64) -> Self {
        Self::File {
            path: path.into(),
            build_id,
            offset,
        }
    }

    fn module(&self) -> (Origin, u64) {
        match self {
            Self::File {
                path,
                build_id,
                offset,
            } if &**path == "[vdso]" => (Origin::Vdso(build_id.clone()), *offset),
            Self::File {
                path,
                build_id,
                offset,
            } => (Origin::Path(path.clone(), build_id.clone()), *offset),
            Self::Kernel(pc) => (Origin::Kernel { physical: false }, *pc),
            Self::KernelPhysical(pc) => (Origin::Kernel { physical: true }, *pc),
            Self::Firmware(pc) => (Origin::Firmware, *pc),
            Self::Unknown(pc) => (Origin::Unknown, *pc),
        }
    }
}

/// What a module's symbols come from, and how its addresses are meant.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Origin {
    Path(Arc<str>, Option<BuildId>),
    Vdso(Option<BuildId>),
    Kernel { physical: bool },
    Firmware,
    Unknown,
}

/// Resolves addresses with the files of one guest.
#[derive(Debug, Default)]
pub struct Symbolizer {
    files: SymbolFiles,
    /// Filled when a build ID is first searched for: it takes a look into every file.
    by_build_id: OnceLock<HashMap<BuildId, PathBuf>>,
}

impl Symbolizer {
    /// A symbolizer over these files.
    pub fn new(files: SymbolFiles) -> Self {
        Self {
            files,
            by_build_id: OnceLock::new(),
        }
    }

    /// The text of source files, as far as they are on the host.
    pub(crate) fn sources(&self) -> Sources<'_> {
        Sources::new(&self.files)
    }

    fn search(&self, build_id: &BuildId) -> Option<&PathBuf> {
        self.by_build_id
            .get_or_init(|| scan(&self.files.roots))
            .get(build_id)
    }

    /// Names every place. Files that are missing, damaged or of another build leave their
    /// addresses as `module+offset` and a warning; nothing fails.
    pub fn resolve(&self, places: &[Place]) -> Symbols {
        let mut order: Vec<(Origin, Vec<(usize, u64)>)> = Vec::new();
        let mut index: HashMap<Origin, usize> = HashMap::new();
        for (at, place) in places.iter().enumerate() {
            let (source, address) = place.module();
            let group = *index.entry(source).or_insert_with_key(|source| {
                order.push((source.clone(), Vec::new()));
                order.len() - 1
            });
            order[group].1.push((at, address));
        }
        let mut work = Work {
            symbolizer: self,
            names: Interner::default(),
            functions: HashMap::new(),
            out: Symbols::default(),
        };
        let mut located: Vec<Option<Location>> = vec![None; places.len()];
        for (source, mut members) in order {
            // Neighbours share units of debug information.
            members.sort_unstable_by_key(|&(_, address)| address);
            work.module(source, &members, &mut located);
        }
        work.out.locations = located
            .into_iter()
            .map(|l| l.expect("every place has a group"))
            .collect();
        work.out
    }
}

/// Shares equal strings.
#[derive(Default)]
pub(super) struct Interner {
    plain: HashMap<Box<str>, Arc<str>>,
    derived: HashMap<Box<str>, Arc<str>>,
}

impl Interner {
    pub fn get(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.plain.get(text) {
            return known.clone();
        }
        self.plain
            .entry(text.into())
            .or_insert_with(|| text.into())
            .clone()
    }

    /// The result of `derive`, computed once per distinct input.
    pub fn get_with(&mut self, text: &str, derive: impl Fn(&str) -> String) -> Arc<str> {
        if let Some(known) = self.derived.get(text) {
            return known.clone();
        }
        self.derived
            .entry(text.into())
            .or_insert_with(|| derive(text).into())
            .clone()
    }
}

struct Work<'a> {
    symbolizer: &'a Symbolizer,
    names: Interner,
    functions: HashMap<Key, FunctionId>,
    out: Symbols,
}

/// A file that was opened and fits.
struct Opened {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Work<'_> {
    fn module(
        &mut self,
        source: Origin,
        members: &[(usize, u64)],
        located: &mut [Option<Location>],
    ) {
        let (name, build_id) = match &source {
            Origin::Path(path, id) => (path.clone(), id.clone()),
            Origin::Vdso(id) => ("[vdso]".into(), id.clone()),
            Origin::Kernel { .. } => ("[kernel]".into(), None),
            Origin::Firmware => ("[firmware]".into(), None),
            Origin::Unknown => ("[unknown]".into(), None),
        };
        let opened = self.open(&source, &name, build_id.as_ref());
        let parsed = opened
            .as_ref()
            .and_then(|file| Elf::parse(&file.bytes).ok());
        let found_id = parsed.as_ref().and_then(Elf::build_id);
        let module = self.module_id(Module {
            path: name,
            file: opened.as_ref().map(|file| file.path.clone()),
            build_id: build_id.or(found_id),
        });
        let Some(elf) = parsed else {
            for &(at, offset) in members {
                located[at] = Some(self.unresolved(module, offset));
            }
            return;
        };
        let debug = if elf.is_stripped() {
            self.debug_file(&elf)
        } else {
            None
        };
        let debug = debug.as_ref().and_then(|file| Elf::parse(&file.bytes).ok());
        let mini = if elf.is_stripped() && debug.is_none() {
            inside::mini_debug_info(&elf)
        } else {
            None
        };
        let mini = mini.as_ref().and_then(|bytes| Elf::parse(bytes).ok());
        let table = Table::build(&elf, debug.as_ref().or(mini.as_ref()));
        let sections = Sections::load(debug.as_ref().unwrap_or(&elf));
        let lines = sections.lines().unwrap_or_else(|error| {
            let path = &self.out.module(module).path;
            self.warn(format!("{path}: debug information not used: {error}"));
            None
        });
        let view = View {
            module,
            elf: &elf,
            table: &table,
            lines: lines.as_ref(),
        };
        self.locate(&source, &view, members, located);
    }

    fn locate(
        &mut self,
        source: &Origin,
        view: &View<'_, '_>,
        members: &[(usize, u64)],
        located: &mut [Option<Location>],
    ) {
        let plt = [".plt", ".plt.sec", ".iplt"].map(|name| view.elf.section_range(name));
        let mut previous: Option<(u64, Location)> = None;
        for &(at, given) in members {
            let Some(address) = self.translate(source, view.elf, given) else {
                located[at] = Some(self.unresolved(view.module, given));
                continue;
            };
            if let Some((same, location)) = &previous
                && *same == address
            {
                located[at] = Some(location.clone());
                continue;
            }
            let function = match view.table.find(address) {
                Some(entry) => self.known(view, entry),
                None => {
                    let in_plt = plt
                        .iter()
                        .flatten()
                        .any(|(from, to)| (*from..*to).contains(&address));
                    self.made_up(view.module, in_plt)
                }
            };
            let (line, inlined) = match view.lines {
                Some(lines) => lines.find(address, &mut self.names),
                None => (None, Vec::new()),
            };
            let location = Location {
                module: view.module,
                offset: address,
                function,
                source: line,
                inlined,
            };
            previous = Some((address, location.clone()));
            located[at] = Some(location);
        }
    }

    /// The address in the file's own terms.
    fn translate(&self, source: &Origin, elf: &Elf<'_>, given: u64) -> Option<u64> {
        match source {
            Origin::Path(..) | Origin::Vdso(_) => elf.address_of(given),
            Origin::Kernel { physical: false } => Some(given),
            Origin::Kernel { physical: true } => {
                let load = self.symbolizer.files.kernel_physical?;
                given
                    .checked_sub(load)
                    .map(|within| elf.base().wrapping_add(within))
            }
            Origin::Firmware if elf.is_relocatable() => {
                let base = self.symbolizer.files.firmware_base.unwrap_or(FIRMWARE_BASE);
                given
                    .checked_sub(base)
                    .map(|within| elf.base().wrapping_add(within))
            }
            Origin::Firmware => Some(given),
            Origin::Unknown => None,
        }
    }

    /// Opens the file of a module: the first candidate whose build ID is the wanted one.
    fn open(&mut self, source: &Origin, name: &str, wanted: Option<&BuildId>) -> Option<Opened> {
        let candidates = match source {
            Origin::Path(path, _) if path.starts_with('/') => {
                self.symbolizer.files.candidates(path, wanted)
            }
            Origin::Path(..) | Origin::Unknown => return None,
            Origin::Vdso(_) => self.symbolizer.files.vdso.iter().cloned().collect(),
            Origin::Kernel { .. } => self.symbolizer.files.kernel.iter().cloned().collect(),
            Origin::Firmware => self.symbolizer.files.firmware.iter().cloned().collect(),
        };
        let mut refused = Vec::new();
        for path in candidates {
            match open_checked(&path, wanted) {
                Ok(opened) => return Some(opened),
                Err(why) => refused.push(why),
            }
        }
        if let (Origin::Vdso(_), Some(kernel)) = (source, &self.symbolizer.files.kernel)
            && let Some(image) = vdso_in(kernel)
        {
            match checked(kernel, image, wanted) {
                Ok(opened) => return Some(opened),
                Err(why) => refused.push(why),
            }
        }
        if let (Origin::Path(..), Some(id)) = (source, wanted)
            && let Some(path) = self.symbolizer.search(id)
            && let Ok(opened) = open_checked(path, wanted)
        {
            return Some(opened);
        }
        if refused.is_empty() {
            refused.push("no file found on the host".to_owned());
        }
        self.warn(format!("{name}: no symbols: {}", refused.join("; ")));
        None
    }

    fn warn(&mut self, warning: String) {
        if !self.out.warnings.contains(&warning) {
            self.out.warnings.push(warning);
        }
    }

    /// What was stripped from a file, if it is kept in one of its own.
    fn debug_file(&self, elf: &Elf<'_>) -> Option<Opened> {
        let id = elf.build_id()?;
        let files = self.symbolizer.files.debug_files(&id);
        files
            .iter()
            .find_map(|path| open_checked(path, Some(&id)).ok())
    }

    /// The two kinds of kernel address share one module.
    fn module_id(&mut self, module: Module) -> ModuleId {
        let known = self.out.modules.iter().position(|known| *known == module);
        ModuleId(known.unwrap_or_else(|| {
            self.out.modules.push(module);
            self.out.modules.len() - 1
        }) as u32)
    }

    fn unresolved(&mut self, module: ModuleId, offset: u64) -> Location {
        let function = self.made_up(module, false);
        Location {
            module,
            offset,
            function,
            source: None,
            inlined: Vec::new(),
        }
    }

    /// The function of a table entry.
    fn known(&mut self, view: &View<'_, '_>, entry: &Entry<'_>) -> FunctionId {
        let key = Key::At(view.module, entry.start);
        if let Some(&known) = self.functions.get(&key) {
            return known;
        }
        let name = match entry.name {
            Some(name) => self.names.get_with(name, demangle),
            None => format!("{}+{:#x}", self.out.module(view.module).name(), entry.start).into(),
        };
        let (start, size) = (entry.start, entry.end - entry.start);
        let named = entry.name.is_some();
        self.add(
            key,
            Function {
                module: view.module,
                name,
                start,
                size,
                named,
            },
        )
    }

    /// The function that stands for code of a module without a symbol.
    fn made_up(&mut self, module: ModuleId, plt: bool) -> FunctionId {
        let key = if plt {
            Key::Plt(module)
        } else {
            Key::Rest(module)
        };
        if let Some(&known) = self.functions.get(&key) {
            return known;
        }
        let file = self.out.module(module).name();
        let name = match (plt, file.starts_with('[')) {
            (true, _) => format!("[plt of {file}]"),
            (false, true) => file.to_owned(),
            (false, false) => format!("[{file}]"),
        };
        self.add(
            key,
            Function {
                module,
                name: name.into(),
                start: 0,
                size: 0,
                named: false,
            },
        )
    }

    fn add(&mut self, key: Key, function: Function) -> FunctionId {
        let id = FunctionId(self.out.functions.len() as u32);
        self.out.functions.push(function);
        self.functions.insert(key, id);
        id
    }
}

/// What makes two functions the same.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    At(ModuleId, u64),
    Plt(ModuleId),
    Rest(ModuleId),
}

struct View<'a, 'data> {
    module: ModuleId,
    elf: &'a Elf<'data>,
    table: &'a Table<'data>,
    lines: Option<&'a Lines<'a>>,
}

fn open_checked(path: &Path, wanted: Option<&BuildId>) -> Result<Opened, String> {
    let bytes = elf::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    checked(path, bytes, wanted)
}

/// The vDSO within the kernel's file.
fn vdso_in(kernel: &Path) -> Option<Vec<u8>> {
    let bytes = elf::read(kernel).ok()?;
    inside::vdso(&Elf::parse(&bytes).ok()?)
}

fn checked(path: &Path, bytes: Vec<u8>, wanted: Option<&BuildId>) -> Result<Opened, String> {
    let shown = path.display();
    let elf = Elf::parse(&bytes).map_err(|error| format!("{shown}: {error}"))?;
    match (wanted, elf.build_id()) {
        (Some(wanted), Some(found)) if *wanted != found => Err(format!(
            "{shown} has build ID {found}, the guest ran {wanted}"
        )),
        (Some(wanted), None) => Err(format!("{shown} has no build ID, the guest ran {wanted}")),
        _ => Ok(Opened {
            path: path.to_owned(),
            bytes,
        }),
    }
}
