//! The lookup itself: places grouped by module, each module read once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

mod made_at_run_time;

use super::check::{Code, Opened, Wanted};
use super::debug::Parts;
use super::dwarf::{Lines, Memory};
use super::elf::{self, Elf};
use super::go::GoTable;
use super::interner::Interner;
use super::name::demangle;
use super::search::Index;
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
        /// What was executed there, if known: it tells whether a file is the right one.
        code: Option<Code>,
    },
    /// A kernel virtual address.
    Kernel(u64),
    /// A physical address in supervisor mode: the kernel before it turns translation on.
    KernelPhysical(u64),
    /// A physical address in machine mode.
    Firmware(u64),
    /// An address that no mapping covers.
    Unknown(u64),
    /// Code that a process made while it ran.
    Jit {
        /// The kernel's process id.
        pid: u32,
        /// The address.
        address: u64,
        /// What was executed there: it tells code from what was there before.
        code: Option<Code>,
        /// What it is if no file has its name.
        otherwise: Box<Place>,
    },
}

impl Place {
    /// Shorthand for [`Place::File`].
    pub fn file(path: &str, build_id: Option<BuildId>, offset: u64) -> Self {
        Self::File {
            path: path.into(),
            build_id,
            offset,
            code: None,
        }
    }

    fn code(&self) -> Option<Code> {
        match self {
            Self::File { code, .. } | Self::Jit { code, .. } => *code,
            _ => None,
        }
    }

    fn module(&self) -> (Origin, u64) {
        match self {
            Self::File {
                path,
                build_id,
                offset,
                ..
            } if &**path == "[vdso]" => (Origin::Vdso(build_id.clone()), *offset),
            Self::File {
                path,
                build_id,
                offset,
                ..
            } => (Origin::Path(path.clone(), build_id.clone()), *offset),
            Self::Kernel(pc) => (Origin::Kernel { physical: false }, *pc),
            Self::KernelPhysical(pc) => (Origin::Kernel { physical: true }, *pc),
            Self::Firmware(pc) => (Origin::Firmware, *pc),
            Self::Unknown(pc) => (Origin::Unknown, *pc),
            Self::Jit { otherwise, .. } => otherwise.module(),
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
    pub(super) files: SymbolFiles,
    /// Filled when a file is first searched for: it takes a look into every one.
    index: OnceLock<Index>,
    /// Files with names of code that was made at run time, by process id.
    jit: OnceLock<HashMap<u32, Vec<PathBuf>>>,
}

impl Symbolizer {
    /// A symbolizer over these files.
    pub fn new(files: SymbolFiles) -> Self {
        Self {
            files,
            index: OnceLock::new(),
            jit: OnceLock::new(),
        }
    }

    /// The text of source files, as far as they are on the host.
    pub fn sources(&self) -> Sources<'_> {
        Sources::new(&self.files)
    }

    /// What lies below the folders.
    pub(super) fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::of(self.files.folders()))
    }

    /// Names every place. Files that are missing, damaged or of another build leave their
    /// addresses as `module+offset` and a warning; nothing fails.
    pub fn resolve(&self, places: &[Place]) -> Symbols {
        let mut work = Work {
            symbolizer: self,
            names: Interner::default(),
            functions: HashMap::new(),
            out: Symbols::default(),
        };
        let mut located: Vec<Option<Location>> = vec![None; places.len()];
        work.jit(places, &mut located);
        let mut order: Vec<(Origin, Vec<(usize, u64)>)> = Vec::new();
        let mut index: HashMap<Origin, usize> = HashMap::new();
        for (at, place) in places.iter().enumerate() {
            if located[at].is_some() {
                continue;
            }
            let (source, address) = place.module();
            let group = *index.entry(source).or_insert_with_key(|source| {
                order.push((source.clone(), Vec::new()));
                order.len() - 1
            });
            order[group].1.push((at, address));
        }
        for (source, mut members) in order {
            // Neighbours share units of debug information.
            members.sort_unstable_by_key(|&(_, address)| address);
            work.module(source, places, &members, &mut located);
        }
        work.out.locations = located
            .into_iter()
            .map(|l| l.expect("every place has a group"))
            .collect();
        work.out
    }
}

struct Work<'a> {
    symbolizer: &'a Symbolizer,
    names: Interner,
    functions: HashMap<Key, FunctionId>,
    out: Symbols,
}

impl Work<'_> {
    fn module(
        &mut self,
        source: Origin,
        places: &[Place],
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
        let code = |&(at, offset): &(usize, u64)| Some((offset, places[at].code()?));
        let wanted = Wanted {
            build_id: build_id.as_ref(),
            code: members.iter().filter_map(code).collect(),
        };
        let opened = self.open(&source, &name, &wanted);
        let parsed = match &opened {
            Ok(file) => Elf::parse(&file.bytes).ok(),
            Err(_) => None,
        };
        let (Ok(file), Some(elf)) = (&opened, parsed) else {
            let module = self.module_id(Module {
                path: name,
                file: None,
                build_id,
                missing: opened.err().into_iter().flatten().collect(),
                nameless: None,
            });
            for &(at, offset) in members {
                located[at] = Some(self.unresolved(module, offset));
            }
            return;
        };
        let parts = Parts::new(self.symbolizer, &name, &file.path);
        let debug = if elf.is_stripped() {
            parts.debug_file(&elf)
        } else {
            None
        };
        let debug_elf = debug.as_ref().and_then(|file| Elf::parse(&file.bytes).ok());
        let mini = if elf.is_stripped() && debug_elf.is_none() {
            inside::mini_debug_info(&elf)
        } else {
            None
        };
        let mini = mini.as_ref().and_then(|bytes| Elf::parse(bytes).ok());
        let go = (elf.is_stripped() && debug_elf.is_none())
            .then(|| GoTable::of(&elf))
            .flatten();
        let table = Table::build(&elf, debug_elf.as_ref().or(mini.as_ref()), go.as_ref());
        let module = self.module_id(Module {
            path: name.clone(),
            file: Some(file.path.clone()),
            build_id: build_id.clone().or_else(|| elf.build_id()),
            missing: Vec::new(),
            nameless: None,
        });
        let memory = Memory::default();
        let of = debug_elf.as_ref().unwrap_or(&elf);
        let at = debug.as_ref().map(|file| file.path.clone());
        let lines = Lines::new(of, at, &parts, &memory, &table).unwrap_or_else(|error| {
            parts.missing(format!("debug information not used: {error}"));
            None
        });
        let view = View {
            module,
            elf: &elf,
            table: &table,
            lines: lines.as_ref(),
            go: go.as_ref(),
        };
        self.locate(&source, &view, members, located);
        drop(lines);
        let has_nameless = self
            .out
            .functions
            .iter()
            .any(|f| f.module == module && !f.named);
        if debug.is_none() && elf.has_no_symbols() && has_nameless {
            self.out.modules[module.0 as usize].nameless = Some(stripped(&elf));
        }
        let (missing, notes) = parts.into_words();
        for note in notes {
            self.warn(format!("{name}: {note}"));
        }
        for missing in missing {
            self.warn(format!("{name}: {missing}"));
            let all = &mut self.out.modules[module.0 as usize].missing;
            if !all.contains(&missing) {
                all.push(missing);
            }
        }
    }

    fn locate(
        &mut self,
        source: &Origin,
        view: &View<'_, '_, '_>,
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
            let (line, inlined) = match (view.lines, view.go) {
                (Some(lines), _) => lines.find(address, &mut self.names),
                (None, Some(go)) => go.find(address, &mut self.names),
                (None, None) => (None, Vec::new()),
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

    /// Opens the file of a module: the first candidate that is what the guest ran; or what to hand in.
    fn open(
        &mut self,
        source: &Origin,
        name: &str,
        wanted: &Wanted<'_>,
    ) -> Result<Opened, Option<String>> {
        let files = &self.symbolizer.files;
        let own = |file: &Option<PathBuf>| -> Vec<(PathBuf, bool)> {
            file.iter().map(|path| (path.clone(), false)).collect()
        };
        let candidates = match source {
            Origin::Path(path, _) if path.starts_with('/') && !path.starts_with("//") => {
                let found = files.candidates(path, wanted.build_id).into_iter();
                found.map(|file| (file.path, file.needs_proof)).collect()
            }
            Origin::Path(..) | Origin::Unknown => return Err(None),
            Origin::Vdso(_) => own(&files.vdso),
            Origin::Kernel { .. } => own(&files.kernel),
            Origin::Firmware => own(&files.firmware),
        };
        let mut refused = Vec::new();
        for (path, needs_proof) in candidates {
            match wanted.open(&path, needs_proof) {
                Ok(opened) => return Ok(opened),
                Err(why) => refused.push(why),
            }
        }
        if let (Origin::Vdso(_), Some(kernel)) = (source, &files.kernel)
            && let Some(image) = vdso_in(kernel)
        {
            match wanted.check(kernel, image, false) {
                Ok(opened) => return Ok(opened),
                Err(why) => refused.push(why),
            }
        }
        if let Origin::Path(path, _) = source {
            let path = path.strip_suffix(" (deleted)").unwrap_or(path);
            let index = self.symbolizer.index();
            let by_id = wanted.build_id.and_then(|id| index.with_build_id(id));
            let named = index.named(path).iter();
            for file in by_id.into_iter().chain(named) {
                match wanted.open(file, true) {
                    Ok(opened) => return Ok(opened),
                    Err(why) if !refused.contains(&why) => refused.push(why),
                    Err(_) => {}
                }
            }
        }
        if refused.is_empty() {
            refused.push("no file found on the host".to_owned());
        }
        let mut missing = format!("no symbols: {}", refused.join("; "));
        if let Origin::Path(..) = source {
            let id = { wanted.build_id }.map_or(String::new(), |id| format!(" with build ID {id}"));
            missing += &format!("; hand in the folder of the file{id} (--debug-dir)");
        }
        self.warn(format!("{name}: {missing}"));
        Err(Some(missing))
    }

    fn warn(&mut self, warning: String) {
        if !self.out.warnings.contains(&warning) {
            self.out.warnings.push(warning);
        }
    }

    /// The two kinds of kernel address share one module.
    fn module_id(&mut self, module: Module) -> ModuleId {
        let same = |known: &Module| {
            (&known.path, &known.file, &known.build_id)
                == (&module.path, &module.file, &module.build_id)
        };
        let known = self.out.modules.iter().position(same);
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
    fn known(&mut self, view: &View<'_, '_, '_>, entry: &Entry<'_>) -> FunctionId {
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
    Jit(ModuleId, usize),
}

struct View<'a, 'data, 'lines> {
    module: ModuleId,
    elf: &'a Elf<'data>,
    table: &'a Table<'data>,
    lines: Option<&'a Lines<'lines>>,
    go: Option<&'a GoTable<'data>>,
}

/// The vDSO within the kernel's file.
fn vdso_in(kernel: &Path) -> Option<Vec<u8>> {
    let bytes = elf::read(kernel).ok()?;
    inside::vdso(&Elf::parse(&bytes).ok()?)
}

/// What to hand in for a file whose symbols were stripped.
fn stripped(elf: &Elf<'_>) -> String {
    match elf.build_id().and_then(|id| Some((id.debug_path()?, id))) {
        Some((path, id)) => format!(
            "stripped: its names and source lines are in the debug file of build ID {id}: hand in the folder that has {} \
             (--debug-dir)",
            path.display()
        ),
        None => "stripped, without a build ID: hand in the folder of the file with its symbols (--debug-dir)".to_owned(),
    }
}
