//! From an address to a name: module, function, inlined frames, source line.
//!
//! [`SymbolFiles`] knows where the guest's files lie on the host, [`Symbolizer`] resolves
//! [`Place`]s in one batch per module, so that a module is read once and its memory is given back:
//!
//! ```
//! use symbols::{Place, SymbolFiles, Symbolizer};
//!
//! let symbolizer = Symbolizer::new(SymbolFiles::default());
//! let symbols = symbolizer.resolve(&[Place::file("/bin/true", None, 0x1234)]);
//! assert_eq!(symbols.label(0), "true+0x1234"); // no such file: the offset is the name
//! ```
//!
//! Guest files are hostile input: every count and offset in them is checked by the parsers that
//! we use, and what they do not limit (nesting, decompressed size, length of a demangled name) is limited here.

mod calls;
mod check;
mod data;
mod debug;
mod dwarf;
mod elf;
mod embedded;
mod files;
mod frames;
mod go;
mod interner;
mod jit;
mod jitdump;
mod lengths;
mod name;
pub mod place;
mod resolve;
mod search;
mod servers;
mod sources;
mod symbols;
#[cfg(feature = "synthetic")]
pub mod synthetic;
mod table;

pub use check::Code;
pub use data::{DataObjects, ProgramData};
pub use elf::{CodeSegment, code_segments};
pub use files::{BuildId, Shared, SymbolFiles};
pub use jit::is_jit_file;
pub use resolve::{Mapped, Place, Symbolizer, is_plt};
pub use servers::FileServer;
pub use sources::Sources;
pub use symbols::{Frame, Function, FunctionId, Location, Module, ModuleId, Source, Symbols};

#[cfg(test)]
mod tests;
