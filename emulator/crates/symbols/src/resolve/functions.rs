//! Numbers functions: each gets one number, whether a symbol names it or not.

use super::Resolution;
use super::locate::ModuleTables;
use crate::name::demangle;
use crate::symbols::{Function, FunctionId, Location, ModuleId};
use crate::table::Entry;

/// Start of the names of PLTs.
const PLT_OF: &str = "[plt of ";

/// True if a function of this name stands for a module's PLT.
pub fn is_plt(function: &str) -> bool {
    function.starts_with(PLT_OF)
}

/// Identifies a function.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum FunctionKey {
    /// A function of a module, by its start address.
    At(ModuleId, u64),
    /// All code in a module's PLT.
    Plt(ModuleId),
    /// All other code of a module that no symbol covers.
    Rest(ModuleId),
    /// Code in memory that its program named, by the function's number in the program's file of names.
    Jit(ModuleId, usize),
    /// Code in the module that its program named, by its start address there.
    NamedByProgram(ModuleId, u64),
}

impl Resolution<'_> {
    /// Returns the function of a table entry, and adds it if it is new.
    pub(super) fn function_of(
        &mut self,
        view: &ModuleTables<'_, '_, '_>,
        entry: &Entry<'_>,
    ) -> FunctionId {
        let key = FunctionKey::At(view.module, entry.start);
        if let Some(&known) = self.functions.get(&key) {
            return known;
        }
        let name = match &entry.name {
            Some(name) => self.names.get_with(name, demangle),
            None => format!("{}+{:#x}", self.out.module(view.module).name(), entry.start).into(),
        };
        let (start, size) = (entry.start, entry.end - entry.start);
        let named = entry.name.is_some();
        self.add(key, Function { module: view.module, name, start, size, named })
    }

    /// The function that stands for a module's PLT, or for its code that no symbol covers.
    pub(super) fn placeholder(&mut self, module: ModuleId, plt: bool) -> FunctionId {
        let key = if plt { FunctionKey::Plt(module) } else { FunctionKey::Rest(module) };
        if let Some(&known) = self.functions.get(&key) {
            return known;
        }
        let file = self.out.module(module).name();
        let name = match (plt, file.starts_with('[')) {
            (true, _) => format!("{PLT_OF}{file}]"),
            (false, true) => file.to_owned(),
            (false, false) => format!("[{file}]"),
        };
        self.add(key, Function { module, name: name.into(), start: 0, size: 0, named: false })
    }

    /// A location in code of a module that no symbol names, other than its PLT.
    pub(super) fn is_rest(&self, location: &Location) -> bool {
        let plt = self.functions.get(&FunctionKey::Plt(location.module));
        !self.out.function(location.function).named && plt != Some(&location.function)
    }

    pub(super) fn add(&mut self, key: FunctionKey, function: Function) -> FunctionId {
        let id = FunctionId(self.out.functions.len() as u32);
        self.out.functions.push(function);
        self.functions.insert(key, id);
        id
    }
}
