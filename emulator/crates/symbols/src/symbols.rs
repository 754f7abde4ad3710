//! What a resolved address is called.

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
    /// Why names or source lines are missing: a sentence each, naming the file to hand in.
    pub missing: Vec<String>,
    /// The same for its functions that have no symbol; `None` if there are none.
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
