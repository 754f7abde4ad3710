//! Decoded instructions, kept per physical page so that processes which share a page share the
//! work, and the static ids of a timed run, kept per (address space, virtual page, physical page).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use devices::{Event, RAM_BASE, Ram};
use isa::{DecodedInst, SLOTS, Slot};

/// Pages that may be held decoded at once (32 KiB of host memory each).
const MAX_PAGES: usize = 16384;
/// Id pages that may be held at once (8 KiB of host memory each).
const MAX_ID_PAGES: usize = 65536;
/// Stores to a page after which it is taken for data, unless something in it is decoded meanwhile.
const STORES_UNTIL_DATA: u32 = 64;

/// Heat of a slot where nothing is to be translated.
pub(crate) const NEVER: u16 = u16::MAX;

/// Marks an id that is not defined yet.
pub(crate) const NO_ID: u32 = u32::MAX;

/// The decoded instructions of one physical page.
pub(crate) struct CodePage {
    /// Physical address of the page.
    pub pa: u64,
    pub slots: Box<[Slot; SLOTS]>,
    /// Per slot, the number of non-sequential arrivals (jumps), up to the translation threshold; [`NEVER`]: not translatable.
    heat: Box<[Cell<u16>; SLOTS]>,
    /// Regions of this page that were translated under another version are void; 0 if there are none.
    version: Cell<u64>,
    /// Slow stores since something was decoded.
    stores: Cell<u32>,
    /// Id pages that lie over this page.
    ids: RefCell<Vec<Rc<IdPage>>>,
}

/// Static ids of a page's slots in one address space at one virtual address.
pub(crate) struct IdPage {
    pub ids: Box<[Cell<u32>; SLOTS]>,
}

fn boxed<T>(new: impl Fn() -> T) -> Box<[T; SLOTS]> {
    let items: Vec<T> = (0..SLOTS).map(|_| new()).collect();
    match items.into_boxed_slice().try_into() {
        Ok(items) => items,
        Err(_) => unreachable!("built with SLOTS elements"),
    }
}

impl CodePage {
    fn new(pa: u64) -> Rc<Self> {
        Rc::new(Self {
            pa,
            slots: boxed(Slot::empty),
            heat: boxed(|| Cell::new(0)),
            version: Cell::new(0),
            stores: Cell::new(0),
            ids: RefCell::default(),
        })
    }

    /// A page that the cache does not know, for addresses where nothing may be kept.
    pub fn uncached(pa: u64) -> Rc<Self> {
        Self::new(pa)
    }

    /// Fills a slot. Ids that other address spaces gave to what it held before are dropped, unless
    /// it holds the same again.
    pub fn fill(&self, slot: usize, inst: DecodedInst, encodings: &[u32]) {
        self.stores.set(0);
        self.slots[slot].set(inst);
        for page in self.ids.borrow().iter() {
            let id = page.ids[slot].get();
            if id != NO_ID && encodings.get(id as usize) != Some(&inst.raw) {
                page.ids[slot].set(NO_ID);
            }
        }
    }

    /// Counts an arrival at a slot. True if there were `enough` before, so that what starts there is translated, or
    /// worth it; with [`NEVER`] that is never.
    #[inline(always)]
    pub fn is_hot(&self, slot: usize, enough: u16) -> bool {
        let heat = &self.heat[slot];
        let count = heat.get();
        if count == NEVER {
            return false;
        }
        if count >= enough {
            return true;
        }
        heat.set(count + 1);
        false
    }

    /// Nothing at this slot can be translated.
    pub fn set_never_hot(&self, slot: usize) {
        self.heat[slot].set(NEVER);
    }

    /// See [`CodeCache::translates`].
    pub fn version(&self) -> u64 {
        self.version.get()
    }

    /// Empties slots. True if regions of the page were translated: they are void.
    fn clear(&self, from: usize, to: usize) -> bool {
        for slot in &self.slots[from..to] {
            slot.clear();
        }
        self.forget_translations()
    }

    fn forget_translations(&self) -> bool {
        let translated = self.version.replace(0) != 0;
        if translated {
            self.forget_heat();
        }
        translated
    }

    fn forget_heat(&self) {
        self.heat.iter().for_each(|heat| heat.set(0));
    }
}

/// All decoded pages and id pages.
pub(crate) struct CodeCache {
    /// The hart whose they are.
    hart: usize,
    /// By page number relative to the start of RAM.
    pages: Vec<Option<Rc<CodePage>>>,
    decoded: usize,
    ids: HashMap<(u32, u64, u64), Rc<IdPage>>,
    /// Encoding of every static instruction, by id.
    pub encodings: Vec<u32>,
    /// Versions of pages that were given.
    versions: u64,
    /// Counts the times that translated regions became void.
    generation: u64,
}

impl CodeCache {
    /// Of hart number `hart`.
    pub fn new(hart: usize) -> Self {
        Self {
            hart,
            pages: Vec::new(),
            decoded: 0,
            ids: HashMap::new(),
            encodings: Vec::new(),
            versions: 0,
            generation: 0,
        }
    }

    /// Counts the times that translated regions became void.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Regions of `page` are translated: gives it a version, if it has none.
    pub fn translates(&mut self, page: &CodePage) {
        if page.version.get() == 0 {
            self.versions += 1;
            page.version.set(self.versions);
        }
    }

    /// All translated regions are void.
    pub fn drop_translations(&mut self) {
        self.generation += 1;
        for page in self.pages.iter().flatten() {
            page.forget_translations();
        }
    }

    /// What could not be translated may be now.
    pub fn forget_heat(&mut self) {
        self.drop_translations();
        for page in self.pages.iter().flatten() {
            page.forget_heat();
        }
    }

    /// True if there is no room for another page: the caller drops its page handles, then calls
    /// [`Self::clear`].
    pub fn is_full(&self) -> bool {
        self.decoded >= MAX_PAGES || self.ids.len() >= MAX_ID_PAGES
    }

    /// Forgets every page. Static ids keep their numbers, and are defined anew when met again.
    pub fn clear(&mut self, ram: &mut Ram) {
        for page in self.pages.drain(..).flatten() {
            ram.clear_page_flags(page.pa, Ram::HAS_CODE);
        }
        // Others may hold code of these pages.
        ram.tell_everything();
        self.decoded = 0;
        self.ids.clear();
        self.generation += 1;
    }

    /// The decoded page at `pa`, and whether it is new, so that stores to it have to be noticed
    /// from now on. `pa` is in RAM.
    pub fn page(&mut self, pa: u64, ram: &mut Ram) -> (Rc<CodePage>, bool) {
        let index = index(pa);
        if self.pages.len() <= index {
            self.pages.resize((ram.size() >> 12) as usize, None);
        }
        let fresh = self.pages[index].is_none();
        let page = self.pages[index]
            .get_or_insert_with(|| CodePage::new(pa & !0xfff))
            .clone();
        if fresh {
            self.decoded += 1;
        }
        let unmarked = ram.page_flags(pa) & Ram::HAS_CODE == 0;
        if unmarked {
            ram.set_page_flags(pa, Ram::HAS_CODE);
            ram.tell(pa, Event::Noticed, self.hart);
        }
        (page, unmarked)
    }

    /// The ids of a page as it appears at `vpage` in address space `space`.
    pub fn ids(&mut self, space: u32, vpage: u64, page: &CodePage) -> Rc<IdPage> {
        let new = || {
            let ids = Rc::new(IdPage {
                ids: boxed(|| Cell::new(NO_ID)),
            });
            page.ids.borrow_mut().push(ids.clone());
            ids
        };
        self.ids
            .entry((space, vpage, page.pa))
            .or_insert_with(new)
            .clone()
    }

    /// The hart stored `size` bytes to a page with code. True if the page counts as data from now
    /// on, and stores to it need not be noticed any more.
    pub fn stored(&mut self, pa: u64, size: u64, ram: &mut Ram) -> bool {
        ram.tell(pa, Event::Overwritten, self.hart);
        let Some(Some(page)) = self.pages.get(index(pa)) else {
            // Another hart's code, which it drops: it says when it decodes there again.
            ram.clear_page_flags(pa, Ram::HAS_CODE);
            return true;
        };
        let first = (pa & 0xfff) as usize >> 1;
        let last = ((pa & 0xfff) + size - 1) as usize >> 1;
        // A 4-byte instruction that starts one slot earlier reaches into the bytes, too.
        let void = page.clear(first.saturating_sub(1), (last + 1).min(SLOTS));
        self.generation += u64::from(void);
        page.stores.set(page.stores.get() + 1);
        if page.stores.get() < STORES_UNTIL_DATA {
            return false;
        }
        self.generation += u64::from(page.clear(0, SLOTS));
        page.stores.set(0);
        ram.clear_page_flags(pa, Ram::HAS_CODE);
        true
    }

    /// Every page may have been overwritten.
    pub fn all_overwritten(&mut self) {
        for page in self.pages.iter().flatten() {
            page.clear(0, SLOTS);
        }
        self.generation += 1;
    }

    /// Somebody else overwrote the page with number `number` (`pa >> 12`), or some of it.
    pub fn overwritten(&mut self, number: u64) {
        if let Some(Some(page)) = self.pages.get(index(number << 12)) {
            self.generation += u64::from(page.clear(0, SLOTS));
        }
    }
}

/// Number of the page that holds `pa`, counted from the start of RAM.
fn index(pa: u64) -> usize {
    (pa.wrapping_sub(RAM_BASE) >> 12) as usize
}

#[cfg(test)]
#[path = "code_cache_tests.rs"]
mod tests;
