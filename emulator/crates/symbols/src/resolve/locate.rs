//! Functions and lines of the addresses of one module.

use super::{Location, Origin, Resolution};
use crate::dwarf::Lines;
use crate::elf::Elf;
use crate::go::GoTable;
use crate::symbols::ModuleId;
use crate::table::Table;

/// OpenSBI's load address on every RISC-V platform that starts from DRAM at 2 GiB.
const FIRMWARE_BASE: u64 = 0x8000_0000;

/// The tables of one module, as [`Resolution::locate`] reads them.
pub(super) struct ModuleTables<'a, 'data, 'lines> {
    pub(super) module: ModuleId,
    pub(super) elf: &'a Elf<'data>,
    pub(super) table: &'a Table<'data>,
    pub(super) lines: Option<&'a Lines<'lines>>,
    pub(super) go: Option<&'a GoTable<'data>>,
}

impl Resolution<'_> {
    pub(super) fn locate(
        &mut self,
        source: &Origin,
        view: &ModuleTables<'_, '_, '_>,
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
                Some(entry) => self.function_of(view, entry),
                None => {
                    let in_plt =
                        plt.iter().flatten().any(|(from, to)| (*from..*to).contains(&address));
                    self.placeholder(view.module, in_plt)
                }
            };
            let (line, inlined) = match (view.lines, view.go) {
                (Some(lines), _) => lines.find(address, &mut self.names),
                (None, Some(go)) => go.find(address, &mut self.names),
                (None, None) => (None, Vec::new()),
            };
            let location =
                Location { module: view.module, offset: address, function, source: line, inlined };
            previous = Some((address, location.clone()));
            located[at] = Some(location);
        }
    }

    /// The address as linked of a given offset or address; `None` if the file has none for it.
    fn translate(&self, source: &Origin, elf: &Elf<'_>, given: u64) -> Option<u64> {
        match source {
            Origin::Path(..) | Origin::Vdso(_) => elf.address_of(given),
            Origin::Kernel { physical: false } => Some(given),
            Origin::Kernel { physical: true } => {
                let load = self.symbolizer.files.kernel_physical?;
                given.checked_sub(load).map(|within| elf.base().wrapping_add(within))
            }
            Origin::Firmware if elf.is_relocatable() => {
                let base = self.symbolizer.files.firmware_base.unwrap_or(FIRMWARE_BASE);
                given.checked_sub(base).map(|within| elf.base().wrapping_add(within))
            }
            Origin::Firmware => Some(given),
            Origin::Unknown => None,
        }
    }
}
