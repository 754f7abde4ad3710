//! Names of data: the objects of a module's symbol table.

use object::{Object, ObjectSymbol, SymbolFlags, elf::STT_OBJECT};
use profile::Mapping;

use super::check::Wanted;
use super::debug::DebugFiles;
use super::elf::{Elf, name_of};
use super::name::demangle;
use super::resolve::{Origin, Resolution, Symbolizer};
use super::{BuildId, Place};

/// The data objects of a module.
#[derive(Clone, Debug, Default)]
pub struct DataObjects {
    /// The address, as linked, of the place that was asked for: what lies elsewhere in the guest is off by the same.
    pub linked: u64,
    /// Start, end and name, ascending.
    objects: Vec<(u64, u64, String)>,
}

impl DataObjects {
    /// The object at an address, as linked, and the distance from its start.
    pub fn find(&self, address: u64) -> Option<(&str, u64)> {
        let after = self.objects.partition_point(|(start, ..)| *start <= address);
        let (start, end, name) = self.objects[..after].last()?;
        (address < *end).then_some((name, address - start))
    }
}

/// The data objects of the modules that a program has mapped.
#[derive(Clone, Debug, Default)]
pub struct ProgramData {
    /// Each with how far it is from where it was linked.
    modules: Vec<(DataObjects, u64)>,
}

impl ProgramData {
    /// The object at an address of the guest, and the distance from its start.
    pub fn find(&self, address: u64) -> Option<(&str, u64)> {
        self.modules.iter().find_map(|(data, off)| data.find(address.wrapping_sub(*off)))
    }
}

impl Symbolizer {
    /// The data objects of all modules among these mappings whose files are found.
    pub fn program_data<'a>(&self, mappings: impl Iterator<Item = &'a Mapping>) -> ProgramData {
        let mut known = Vec::new();
        let mut modules = Vec::new();
        for mapping in mappings {
            if known.contains(&mapping.path) || mapping.path.starts_with('[') {
                continue;
            }
            known.push(mapping.path.clone());
            let id = (!mapping.build_id.is_empty()).then(|| BuildId(mapping.build_id.clone()));
            let place = Place::file(&mapping.path, id, mapping.file_offset);
            if let Some(data) = self.data_objects(&place) {
                let off = mapping.start.wrapping_sub(data.linked);
                modules.push((data, off));
            }
        }
        ProgramData { modules }
    }

    /// The data objects of a place's module; `None` if its file is not found.
    pub fn data_objects(&self, place: &Place) -> Option<DataObjects> {
        let (origin, offset) = place.module();
        let name = match &origin {
            Origin::Path(path, _) => path.to_string(),
            _ => String::new(),
        };
        let wanted = Wanted {
            build_id: match &origin {
                Origin::Path(_, id) => id.as_ref(),
                _ => None,
            },
            code: Vec::new(),
        };
        let file = Resolution::new(self).open(&origin, &name, &wanted).ok()?;
        let elf = Elf::parse(&file.bytes).ok()?;
        let parts = DebugFiles::new(self, &name, &file.path);
        let debug = match elf.has_no_symbols() {
            true => parts.debug_file(&elf),
            false => None,
        };
        let debug = debug.as_ref().and_then(|file| Elf::parse(&file.bytes).ok());
        let mut objects = objects(debug.as_ref().unwrap_or(&elf));
        objects.sort();
        // An object with several names keeps the first one.
        objects.dedup_by_key(|(start, ..)| *start);
        Some(DataObjects {
            linked: match origin {
                Origin::Path(..) | Origin::Vdso(_) => elf.address_of(offset)?,
                _ => offset,
            },
            objects,
        })
    }
}

fn objects(elf: &Elf<'_>) -> Vec<(u64, u64, String)> {
    let object = |symbol: object::Symbol<'_, '_>| {
        let SymbolFlags::Elf { st_info, .. } = symbol.flags() else {
            return None;
        };
        let (start, size) = (symbol.address(), symbol.size());
        let wanted = st_info.st_type() == STT_OBJECT && size != 0;
        let name = name_of(&symbol).filter(|_| wanted)?;
        Some((start, start.saturating_add(size), demangle(&name)))
    };
    elf.object.symbols().filter_map(object).collect()
}
