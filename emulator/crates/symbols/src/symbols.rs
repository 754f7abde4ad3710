//! What a resolved address is called.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::BuildId;

/// Index into [`Symbols::modules`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub u32);

/// Index into [`Symbols::functions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(pub u32);

/// A program, a shared library, the kernel, the firmware, or code that no file backs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Guest path, or a name in brackets: `[kernel]`, `[firmware]`, `[vdso]`, `[unknown]`.
    pub path: Arc<str>,
    /// The host file that the symbols came from; `None` if there was none that fits.
    pub file: Option<PathBuf>,
    /// Build ID, as the guest named it or else as found in the file.
    pub build_id: Option<BuildId>,
    /// MD5 of the source files that were compiled, by their paths as the compiler saw them; of those that the debug information tells
    /// and that a location names.
    pub checksums: BTreeMap<Arc<str>, [u8; 16]>,
    /// Why names or source lines are missing: a sentence each, naming the file to hand in.
    pub missing: Vec<String>,
    /// Why functions without a symbol have no name, in a sentence that names the file to hand in; `None` if there are none.
    pub nameless: Option<String>,
}

impl Module {
    /// The path's last component.
    pub fn name(&self) -> &str {
        match self.path.rsplit('/').next() {
            Some(name) if !name.is_empty() => name,
            _ => &self.path,
        }
    }
}

/// A function, the unit of a profile's function level. Code without a symbol gets a placeholder: `name+0x…` from unwind
/// tables, one for the PLT, or one for the rest of the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The module it is in.
    pub module: ModuleId,
    /// Demangled name.
    pub name: Arc<str>,
    /// First address, in the module's own (ELF virtual) addresses.
    pub start: u64,
    /// Length in bytes; 0 if unknown.
    pub size: u64,
    /// True if a symbol names it; false for a placeholder.
    pub named: bool,
}

/// A source line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Path as the compiler saw it.
    pub file: Arc<str>,
    /// Line, from 1; 0 where the compiler gave none.
    pub line: u32,
}

/// One level of inlining.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Demangled name of the inlined function.
    pub function: Arc<str>,
    /// Where in its caller it was inlined.
    pub call: Option<Source>,
}

/// A resolved address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The module it is in.
    pub module: ModuleId,
    /// Address in the module: the ELF's virtual address if its file was found, otherwise the
    /// offset in the file (or the bare address, for modules that no file backs).
    pub offset: u64,
    /// The out-of-line function.
    pub function: FunctionId,
    /// Source of the innermost frame.
    pub source: Option<Source>,
    /// Functions inlined at this address, innermost first.
    pub inlined: Vec<Frame>,
}

/// Starts of folders of sources that come with compilers, languages and systems.
const SYSTEM_FOLDERS: [&str; 3] = ["/usr/", "/rustc/", "/nix/store/"];
/// Folders below that hold sources of users.
const USER_FOLDERS: [&str; 3] = ["/usr/src/", "/usr/local/src/", "/usr/home/"];
/// Folders of toolchains and of packages that package managers fetched, wherever they lie.
const FETCHED_FOLDERS: [&str; 6] = [
    "/.cargo/registry/",
    "/.cargo/git/",
    "/.rustup/toolchains/",
    "/lib/rustlib/",
    "/include/c++/",
    "/go/pkg/mod/",
];

impl Source {
    /// Returns whether the file is neither of the compiler, the language's library and the system, nor of a package manager.
    pub fn is_of_program(&self) -> bool {
        let starts = |folders: &[&str]| folders.iter().any(|folder| self.file.starts_with(folder));
        let is_of_system = starts(&SYSTEM_FOLDERS) && !starts(&USER_FOLDERS);
        let is_fetched = FETCHED_FOLDERS.iter().any(|folder| self.file.contains(folder));
        !is_of_system && !is_fetched
    }
}

impl Location {
    /// Returns the innermost line that is in a file of the program: of library code that was inlined, that is the line from which it
    /// was called. If there is none such, the innermost line of all.
    pub fn program_line(&self) -> Option<&Source> {
        let calls = self.inlined.iter().filter_map(|frame| frame.call.as_ref());
        let mut lines = self.source.iter().chain(calls).filter(|source| source.line > 0);
        lines.find(|source| source.is_of_program()).or(self.source.as_ref())
    }

    /// Returns the innermost line, if it is a library's that was inlined below [`Self::program_line`].
    pub fn library_line(&self) -> Option<&Source> {
        let source = self.source.as_ref().filter(|source| !source.is_of_program())?;
        (self.program_line() != Some(source)).then_some(source)
    }
}

/// The answer of [`super::Symbolizer::resolve`].
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    /// Modules, in order of first mention.
    pub modules: Vec<Module>,
    /// Functions that an address fell into.
    pub functions: Vec<Function>,
    /// One location per place asked for, in order.
    pub locations: Vec<Location>,
    /// What could not be done, one sentence each.
    pub warnings: Vec<String>,
    /// There is no kernel: the firmware is the one program ([`SymbolFiles::bare_metal`](crate::SymbolFiles)).
    pub bare_metal: bool,
}

/// Shown with names that remain mangled.
const MANGLED_HINT: &str =
    "its name is mangled in a way that cpp_demangle and rustc-demangle do not read (c++filt may)";

/// True if a name is still as a compiler of C++ or Rust encodes them.
fn is_mangled(name: &str) -> bool {
    let rest = name.strip_prefix("_Z").or_else(|| name.strip_prefix("_R"));
    rest.is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_ascii_uppercase() || c.is_ascii_digit())
    })
}

impl Symbols {
    /// The module with this id.
    pub fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id.0 as usize]
    }

    /// The function with this id.
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.0 as usize]
    }

    /// Sentences on why a function's name is missing or mangled, and which file has it.
    pub fn missing(&self, id: FunctionId) -> Vec<String> {
        let function = self.function(id);
        let module = self.module(function.module);
        let nameless = module.nameless.iter().filter(|_| !function.named);
        let mangled = is_mangled(&function.name).then(|| MANGLED_HINT.to_owned());
        let missing = module.missing.iter().chain(nameless).cloned();
        missing.chain(mangled).collect()
    }

    /// `function+0x12` or `module+0x1234` of a location (by its index).
    pub fn label(&self, index: usize) -> String {
        let Some(at) = self.locations.get(index) else {
            return String::new();
        };
        let function = self.function(at.function);
        if function.named {
            match at.offset.wrapping_sub(function.start) {
                0 => function.name.to_string(),
                within => format!("{}+{within:#x}", function.name),
            }
        } else {
            format!("{}+{:#x}", self.module(at.module).name(), at.offset)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(file: &str, line: u32) -> Source {
        Source { file: file.into(), line }
    }

    #[test]
    fn inlined_library_code_has_the_programs_own_line() {
        let map = at("/usr/riscv64-linux-gnu/include/c++/12/bits/stl_tree.h", 1463);
        let own = at("/home/me/logstat.cpp", 26);
        let frame = |call: &Source| Frame { function: "f".into(), call: Some(call.clone()) };
        let mut location = Location {
            module: ModuleId(0),
            offset: 0,
            function: FunctionId(0),
            source: Some(map.clone()),
            inlined: vec![frame(&map), frame(&own), frame(&at("/home/me/logstat.cpp", 80))],
        };
        assert_eq!(location.program_line(), Some(&own));
        assert_eq!(location.library_line(), Some(&map));
        // A function of the library's own, out of line.
        location.inlined.truncate(1);
        assert_eq!(location.program_line(), Some(&map));
        assert_eq!(location.library_line(), None);
        location.source = Some(own.clone());
        assert_eq!((location.program_line(), location.library_line()), (Some(&own), None));
        // A line that the compiler did not give is none.
        location.source = Some(at("/home/me/logstat.cpp", 0));
        location.inlined = vec![frame(&own)];
        assert_eq!((location.program_line(), location.library_line()), (Some(&own), None));
    }

    #[test]
    fn sources_of_programs_and_of_others() {
        for own in [
            "/home/me/a.c",
            "src/main.rs",
            "../x/a.h",
            "/build/project/include/a.hpp",
            "/usr/src/app/a.c",
        ] {
            assert!(at(own, 1).is_of_program(), "{own}");
        }
        for others in [
            "/usr/include/c++/14/bits/basic_string.h",
            "/usr/lib/gcc/riscv64-linux-gnu/14/include/stddef.h",
            "/rustc/90b35a6239c3d8bdabc530a6a0816f7ff89a0aaf/library/core/src/ptr/mut_ptr.rs",
            "/home/me/.cargo/registry/src/index-6f17d22bba15001f/hashbrown-0.15.0/src/raw.rs",
            "/home/me/.rustup/toolchains/stable/lib/rustlib/src/rust/library/std/src/rt.rs",
            "/opt/toolchain/include/c++/12/bits/stl_map.h",
            "/usr/local/go/src/runtime/map.go",
        ] {
            assert!(!at(others, 1).is_of_program(), "{others}");
        }
    }
}
