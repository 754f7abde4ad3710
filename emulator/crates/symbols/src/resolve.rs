//! The lookup itself: places grouped by module, each module read once.

mod functions;
mod images;
mod locate;
mod made_at_run_time;
mod open;
mod origin;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use super::BuildId;
use super::check::{Opened, Wanted};
use super::debug::DebugFiles;
use super::dwarf::{FileArena, Lines};
use super::elf::Elf;
use super::go::GoTable;
use super::interner::Interner;
use super::jit::JitCode;
use super::search::Index;
use super::symbols::{FunctionId, Location, Module, ModuleId, Symbols};
use super::table::Table;
use super::{Sources, SymbolFiles, embedded};
use functions::FunctionKey;
pub use functions::is_plt;
use locate::ModuleTables;
pub(super) use origin::Origin;
pub use origin::{Mapped, Place};

/// Resolves addresses with the files of one guest.
#[derive(Debug, Default)]
pub struct Symbolizer {
    pub(super) files: SymbolFiles,
    /// Files of the guest's folders by build ID and by name. Made when a file is first searched for, as every file is opened for it.
    index: OnceLock<Index>,
    /// Files with names of code that was made at run time, by process id.
    jit: OnceLock<HashMap<u32, Vec<PathBuf>>>,
}

impl Symbolizer {
    /// Creates a symbolizer over `files`.
    pub fn new(files: SymbolFiles) -> Self {
        Self { files, index: OnceLock::new(), jit: OnceLock::new() }
    }

    /// The text of source files, as far as they are on the host.
    pub fn sources(&self) -> Sources<'_> {
        Sources::new(&self.files)
    }

    /// Returns the index of the files below the folders.
    pub(super) fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::of(self.files.folders()))
    }

    /// Names every place. Files that are missing, damaged or of another build leave their
    /// addresses as `module+offset` and a warning; nothing fails.
    pub fn resolve(&self, places: &[Place]) -> Symbols {
        let mut work = Resolution::new(self);
        let mut located: Vec<Option<Location>> = vec![None; places.len()];
        work.jit(places, &mut located);
        let mut order: Vec<(Origin, Vec<(usize, u64)>)> = Vec::new();
        let mut index: HashMap<Origin, usize> = HashMap::new();
        for (at, place) in places.iter().enumerate() {
            if located[at].is_some() {
                continue;
            }
            let (source, address) = place.module();
            let source = match source {
                Origin::Kernel { .. } if self.files.bare_metal => Origin::Firmware,
                source => source,
            };
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
        let mut located: Vec<Location> =
            located.into_iter().map(|l| l.expect("every place has a group")).collect();
        work.named_by_the_program(places, &mut located);
        work.out.locations = located;
        work.out
    }
}

pub(super) struct Resolution<'a> {
    symbolizer: &'a Symbolizer,
    names: Interner,
    functions: HashMap<FunctionKey, FunctionId>,
    /// By process what its files say of the code that it made at run time, as far as they were read.
    jit_code: HashMap<u32, Rc<JitCode>>,
    out: Symbols,
}

impl<'a> Resolution<'a> {
    pub(crate) fn new(symbolizer: &'a Symbolizer) -> Self {
        Self {
            symbolizer,
            names: Interner::default(),
            functions: HashMap::new(),
            jit_code: HashMap::new(),
            out: Symbols { bare_metal: symbolizer.files.bare_metal, ..Symbols::default() },
        }
    }
}

impl Resolution<'_> {
    fn module(
        &mut self,
        source: Origin,
        places: &[Place],
        members: &[(usize, u64)],
        located: &mut [Option<Location>],
    ) {
        if self.images(&source, places, members, located) {
            return;
        }
        let (name, build_id) = match &source {
            Origin::Path(path, id) => (path.clone(), id.clone()),
            Origin::Vdso(id) => ("[vdso]".into(), id.clone()),
            Origin::Kernel { .. } => ("[kernel]".into(), None),
            Origin::Firmware => ("[firmware]".into(), None),
            Origin::Unknown => ("[unknown]".into(), None),
        };
        let code = |&(at, offset): &(usize, u64)| Some((offset, places[at].code()?));
        let wanted =
            Wanted { build_id: build_id.as_ref(), code: members.iter().filter_map(code).collect() };
        let opened = self.open(&source, &name, &wanted);
        self.opened(&source, name, build_id, opened, members, located);
    }

    /// Names addresses of a module by its file; an error says what to hand in.
    fn opened(
        &mut self,
        source: &Origin,
        name: Arc<str>,
        build_id: Option<BuildId>,
        opened: Result<Opened, Option<String>>,
        members: &[(usize, u64)],
        located: &mut [Option<Location>],
    ) {
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
                checksums: BTreeMap::new(),
            });
            for &(at, offset) in members {
                located[at] = Some(self.unresolved(module, offset));
            }
            return;
        };
        let parts = DebugFiles::new(self.symbolizer, &name, &file.path);
        let debug = if elf.is_stripped() { parts.debug_file(&elf) } else { None };
        let debug_elf = debug.as_ref().and_then(|file| Elf::parse(&file.bytes).ok());
        let mini = if elf.is_stripped() && debug_elf.is_none() {
            embedded::mini_debug_info(&elf)
        } else {
            None
        };
        let mini = mini.as_ref().and_then(|bytes| Elf::parse(bytes).ok());
        let go = (elf.is_stripped() && debug_elf.is_none()).then(|| GoTable::of(&elf)).flatten();
        let table = Table::build(&elf, debug_elf.as_ref().or(mini.as_ref()), go.as_ref());
        let module = self.module_id(Module {
            path: name.clone(),
            file: Some(file.path.clone()),
            build_id: build_id.clone().or_else(|| elf.build_id()),
            missing: Vec::new(),
            nameless: None,
            checksums: BTreeMap::new(),
        });
        let memory = FileArena::default();
        let of = debug_elf.as_ref().unwrap_or(&elf);
        let at = debug.as_ref().map(|file| file.path.clone());
        let lines = Lines::new(of, at, &parts, &memory, &table).unwrap_or_else(|error| {
            parts.missing(format!("debug information not used: {error}"));
            None
        });
        let view = ModuleTables {
            module,
            elf: &elf,
            table: &table,
            lines: lines.as_ref(),
            go: go.as_ref(),
        };
        self.locate(source, &view, members, located);
        if let Some(lines) = &lines {
            let named = members.iter().filter_map(|(at, _)| located[*at].as_ref());
            let checksums = lines.checksums(named);
            self.out.modules[module.0 as usize].checksums.extend(checksums);
        }
        drop(lines);
        let has_nameless = self.out.functions.iter().any(|f| f.module == module && !f.named);
        if debug.is_none() && elf.has_no_symbols() && has_nameless {
            self.out.modules[module.0 as usize].nameless = Some(stripped(&elf) + &parts.answers());
        }
        let (missing, notes) = parts.into_messages();
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
        let function = self.placeholder(module, false);
        Location { module, offset, function, source: None, inlined: Vec::new() }
    }
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
