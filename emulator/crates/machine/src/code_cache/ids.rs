//! Static ids of the instructions of pages, kept per (address space, virtual page, physical page).

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use isa::SLOTS;

use super::{CodePage, NO_ID, boxed};

/// Pages of ids that are held as tables (8 KiB of host memory each); when there are more, all that are not in use are packed.
const MAX_TABLES: usize = if cfg!(test) { 8 } else { 2048 };
/// Ids that are held packed, some 6 bytes each. When there are more, all are forgotten: their instructions get new ids when they are met again.
const MAX_PACKED: usize = if cfg!(test) { 64 } else { 16 << 20 };

/// Static ids of a page's slots in one address space at one virtual address.
pub(crate) struct IdPage {
    pub ids: Box<[Cell<u32>; SLOTS]>,
}

/// Address space, virtual page, physical page.
pub(super) type IdKey = (u32, u64, u64);

/// The ids of an [`IdPage`]: slots, ascending, and the id of each.
struct PackedIds {
    slots: Box<[u16]>,
    ids: Box<[u32]>,
}

/// The ids of all pages.
#[derive(Default)]
pub(super) struct IdPages {
    tables: HashMap<IdKey, Rc<IdPage>>,
    packed: HashMap<IdKey, PackedIds>,
    /// Ids in `packed`.
    packed_ids: usize,
}

impl IdPage {
    fn new() -> Self {
        Self { ids: boxed(|| Cell::new(NO_ID)) }
    }

    fn packed(&self) -> PackedIds {
        let known = || (0..).zip(self.ids.iter()).filter(|(_, id)| id.get() != NO_ID);
        PackedIds {
            slots: known().map(|(slot, _)| slot).collect(),
            ids: known().map(|(_, id)| id.get()).collect(),
        }
    }
}

impl IdPages {
    /// True if there is no room for another table: the caller drops those that it has, and calls [`Self::pack`].
    pub(super) fn is_full(&self) -> bool {
        self.tables.len() >= MAX_TABLES
    }

    /// The ids of `page`. It drops those of slots that hold another instruction by now.
    pub(super) fn get(&mut self, key: IdKey, page: &CodePage, encodings: &[u32]) -> Rc<IdPage> {
        let table = match self.tables.get(&key) {
            Some(known) => known.clone(),
            None => self.unpacked(key),
        };
        page.add_ids(&table, encodings);
        table
    }

    fn unpacked(&mut self, key: IdKey) -> Rc<IdPage> {
        let table = Rc::new(IdPage::new());
        if let Some(packed) = self.packed.remove(&key) {
            self.packed_ids -= packed.ids.len();
            for (slot, id) in packed.slots.iter().zip(&packed.ids) {
                table.ids[usize::from(*slot)].set(*id);
            }
        }
        self.tables.insert(key, table.clone());
        table
    }

    /// Packs the tables that nothing else holds but their pages. The caller makes those pages drop the tables, too.
    pub(super) fn pack(&mut self) {
        let unused = self.tables.extract_if(|_, table| Rc::strong_count(table) <= 2);
        for (key, table) in unused {
            let packed = table.packed();
            self.packed_ids += packed.ids.len();
            self.packed.insert(key, packed);
        }
        if self.packed_ids > MAX_PACKED {
            self.packed.clear();
            self.packed_ids = 0;
        }
    }
}
