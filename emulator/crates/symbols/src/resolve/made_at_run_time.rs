//! Names of code that programs made at run time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::rc::Rc;

use super::origin::Mapped;
use super::{FunctionKey, Location, Place, Resolution};
use crate::check::Code;
use crate::jit::{self, JitCode};
use crate::name::demangle;
use crate::symbols::{Function, Module, ModuleId, Source};

/// Processes whose files are searched for the code of a process without files.
const MAX_OTHERS: usize = 16;

impl Resolution<'_> {
    /// Locates the places in code made at run time for which there are map or jitdump files.
    pub(super) fn jit(&mut self, places: &[Place], located: &mut [Option<Location>]) {
        let mut by_process: BTreeMap<u32, Vec<(usize, u64, Option<Code>)>> = BTreeMap::new();
        // Processes that mapped the memory where they executed it.
        let mut in_memory: BTreeSet<u32> = BTreeSet::new();
        for (at, place) in places.iter().enumerate() {
            if let Place::Jit { pid, address, code, otherwise } = place {
                by_process.entry(*pid).or_default().push((at, *address, *code));
                if let Place::File { .. } = **otherwise {
                    in_memory.insert(*pid);
                }
            }
        }
        if by_process.is_empty() {
            return;
        }
        let files = &self.symbolizer.files;
        let files = self.symbolizer.jit.get_or_init(|| jit::files(files));
        for (pid, members) in &by_process {
            let code = match files.get(pid) {
                Some(own) => Some(JitCode::read(own)),
                None => self.other_process(*pid, members, files),
            };
            let Some(code) = code.map(Rc::new) else {
                if in_memory.contains(pid) {
                    self.warn(format!(
                        "process {pid} executed code that it made at run time, and left no perf-{pid}.map or jit-{pid}.dump: hand in \
                         the folder that has it (--debug-dir); in a container with a /tmp of its own that one is gone with the \
                         container, unless the command copies it to /out"
                    ));
                }
                continue;
            };
            self.keep_jit(*pid, &code);
            for (at, address, executed) in members {
                let Some((number, file, function)) = code.find(*address, *executed) else {
                    continue;
                };
                let path = &code.files[file];
                let module = self.module_id(Module {
                    path: path.file_name().unwrap_or_default().to_string_lossy().into(),
                    file: Some(path.clone()),
                    build_id: None,
                    missing: Vec::new(),
                    nameless: None,
                    checksums: BTreeMap::new(),
                });
                let key = FunctionKey::Jit(module, number);
                located[*at] = Some(self.named(module, key, function, *address, *address));
            }
        }
    }

    /// Code of a file that none of its symbols covers, where the program's own map has a name for it: V8's builtins, which are compiled
    /// when node is built, and are data to the linker.
    pub(super) fn named_by_the_program(&mut self, places: &[Place], located: &mut [Location]) {
        let mut by_process: BTreeMap<u32, Vec<(usize, u64, Option<Code>)>> = BTreeMap::new();
        for (at, place) in places.iter().enumerate() {
            if let Place::File { mapped: Mapped(Some((pid, address))), code, .. } = place
                && self.is_rest(&located[at])
            {
                by_process.entry(*pid).or_default().push((at, *address, *code));
            }
        }
        if by_process.is_empty() {
            return;
        }
        let files = &self.symbolizer.files;
        let files = self.symbolizer.jit.get_or_init(|| jit::files(files));
        for (pid, members) in by_process {
            let code = match (self.jit_code.get(&pid), files.get(&pid)) {
                (Some(known), _) => Rc::clone(known),
                (None, Some(own)) => {
                    let code = Rc::new(JitCode::read(own));
                    self.keep_jit(pid, &code);
                    code
                }
                (None, None) => continue,
            };
            for (at, address, executed) in members {
                let Location { module, offset, .. } = located[at];
                if let Some((_, _, function)) = code.find(address, executed) {
                    let start = in_module(function.start, address, offset);
                    let key = FunctionKey::NamedByProgram(module, start);
                    located[at] = self.named(module, key, function, address, offset);
                }
            }
        }
    }

    fn keep_jit(&mut self, pid: u32, code: &Rc<JitCode>) {
        for warning in &code.warnings {
            self.warn(warning.clone());
        }
        self.jit_code.insert(pid, Rc::clone(code));
    }

    /// The code in another process's files, if exactly one process's name most of this one's code: a program in a PID namespace
    /// writes another process id than the kernel's, and a forked process has its parent's code.
    fn other_process(
        &mut self,
        pid: u32,
        members: &[(usize, u64, Option<Code>)],
        files: &HashMap<u32, Vec<PathBuf>>,
    ) -> Option<JitCode> {
        let fit = |files: &Vec<PathBuf>| {
            let code = JitCode::read(files);
            let named = members
                .iter()
                .filter(|(_, address, executed)| code.find(*address, *executed).is_some());
            (2 * named.count() >= members.len()).then_some(code)
        };
        let mut fitting = files.values().take(MAX_OTHERS).filter_map(fit);
        let (Some(code), None) = (fitting.next(), fitting.next()) else {
            return None;
        };
        let names: Vec<String> = code.files.iter().map(|path| path.display().to_string()).collect();
        self.warn(format!(
            "process {pid} has no perf-{pid}.map: {} has most of the code that it made at run time, and is taken for its own",
            names.join(" and ")
        ));
        Some(code)
    }

    /// The location of an address in a function of a program's file of names; `offset` is the address in the module.
    fn named(
        &mut self,
        module: ModuleId,
        key: FunctionKey,
        function: &jit::Function,
        address: u64,
        offset: u64,
    ) -> Location {
        let line = function.lines.partition_point(|line| line.0 <= address);
        let source = line.checked_sub(1).map(|at| &function.lines[at]);
        let source = source.map(|(_, file, line)| Source { file: file.clone(), line: *line });
        let known = self.functions.get(&key).copied();
        let function = known.unwrap_or_else(|| {
            let name = match &*String::from_utf8_lossy(&function.name) {
                "" => format!("{}+{:#x}", self.out.module(module).name(), function.start),
                name => demangle(name),
            };
            let start = in_module(function.start, address, offset);
            let size = function.size;
            self.add(key, Function { module, name: name.into(), start, size, named: true })
        });
        Location { module, offset, function, source, inlined: Vec::new() }
    }
}

/// Where in a module a function starts of which `address` is at `offset` in the module.
const fn in_module(start: u64, address: u64, offset: u64) -> u64 {
    offset.wrapping_sub(address.wrapping_sub(start))
}
