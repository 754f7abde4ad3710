//! Decoded instructions, kept per physical page so that processes which share a page share the
//! work, and the static ids of a timed run, kept per (address space, virtual page, physical page).

mod ids;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use devices::{PageEventKind, RAM_BASE, Ram};
use isa::{DecodedInst, SLOTS, Slot};
use translator::SlotSet;

pub(crate) use ids::IdPage;
use ids::IdPages;

/// Pages that may be held decoded at once (32 KiB of host memory each).
const MAX_PAGES: usize = 16384;
/// Stores after which a page with decoded code is first taken for data: its slots are emptied, and its stores leave the slow path. Each time that
/// something in the page is decoded, the count starts again. Each further time takes twice as many stores: if a page holds both code and
/// data, decoding its code anew then costs next to nothing per store.
const STORES_UNTIL_DATA: u32 = 64;
/// Bound of the number of stores after which a page is taken for data.
const MAX_STORES_UNTIL_DATA: u32 = 1 << 20;
/// Number of earlier times that a page's translations became void up to which the page is translated again without a delay. Each further time doubles
/// the delay.
const VOID_TIMES_UNPUNISHED: u32 = 4;
/// Log2 of the arrivals at hot slots that translating a page again waits for at most.
const MAX_TRANSLATION_DELAY_BITS: u32 = 16;

/// Bytes of a page.
const PAGE_BYTES: u16 = 4096;

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
    /// Version of the page's regions: those that were translated under another version are void. 0 if no region is valid.
    version: Cell<u64>,
    /// Slots of which the instruction is part of a valid region.
    translated: SlotSet,
    /// Times that valid regions became void because a store reached them.
    void_times: Cell<u32>,
    /// Arrivals at hot slots until the page may be translated again.
    waiting: Cell<u32>,
    /// Slow stores since something was decoded.
    stores: StoreCount,
    /// Id pages that lie over this page.
    ids: RefCell<Vec<Rc<IdPage>>>,
}

/// Counts the stores to a page that take the slow path.
#[derive(Default)]
struct StoreCount {
    /// Stores since something was decoded.
    stores: Cell<u32>,
    /// Times that the page was taken for data.
    times_data: Cell<u32>,
}

impl StoreCount {
    /// Starts the count again, as something in the page was decoded.
    fn restart(&self) {
        self.stores.set(0);
    }

    /// Counts a store. True if the page is to be taken for data.
    fn add(&self) -> bool {
        self.stores.set(self.stores.get() + 1);
        let times = self.times_data.get();
        let enough = STORES_UNTIL_DATA.saturating_mul(1 << times.min(20));
        let is_data = self.stores.get() >= enough.min(MAX_STORES_UNTIL_DATA);
        if is_data {
            self.stores.set(0);
            self.times_data.set(times + 1);
        }
        is_data
    }
}

/// Returns the slots of the instructions that have at least one of bytes `from..to` of their page.
fn slots_of(from: u16, to: u16) -> Range<usize> {
    // A 4-byte instruction that starts one slot earlier reaches into the bytes, too.
    let first = usize::from(from / 2).saturating_sub(1);
    first..usize::from(to).div_ceil(2).min(SLOTS)
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
            translated: SlotSet::default(),
            void_times: Cell::new(0),
            waiting: Cell::new(0),
            stores: StoreCount::default(),
            ids: RefCell::default(),
        })
    }

    /// A page that the cache does not know, for addresses where nothing may be kept.
    pub(crate) fn uncached(pa: u64) -> Rc<Self> {
        Self::new(pa)
    }

    /// Fills a slot. Ids that other address spaces gave to what it held before are dropped, unless
    /// it holds the same again.
    pub(crate) fn fill(&self, slot: usize, inst: DecodedInst, encodings: &[u32]) {
        self.stores.restart();
        self.slots[slot].set(inst);
        for page in self.ids.borrow().iter() {
            let id = page.ids[slot].get();
            if id != NO_ID && encodings.get(id as usize) != Some(&inst.raw) {
                page.ids[slot].set(NO_ID);
            }
        }
    }

    /// Adds a table of ids to those over this page: whenever an instruction of the page changes from now on, its id is dropped from the table. Ids of
    /// instructions that changed before are dropped at once.
    fn add_ids(&self, table: &Rc<IdPage>, encodings: &[u32]) {
        let mut known = self.ids.borrow_mut();
        if known.iter().any(|other| Rc::ptr_eq(other, table)) {
            return;
        }
        for (slot, id) in self.slots.iter().zip(table.ids.iter()) {
            let (inst, number) = (slot.get(), id.get());
            if inst.len != 0 && number != NO_ID && encodings.get(number as usize) != Some(&inst.raw)
            {
                id.set(NO_ID);
            }
        }
        known.push(table.clone());
    }

    /// Counts an arrival at a slot. Returns true if `enough` arrivals came before, so that the code that starts there is translated or worth
    /// translating; an `enough` of [`NEVER`] is never reached.
    #[inline(always)]
    pub(crate) fn is_hot(&self, slot: usize, enough: u16) -> bool {
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

    /// Notes that nothing can be translated at this slot.
    pub(crate) fn set_never_hot(&self, slot: usize) {
        self.heat[slot].set(NEVER);
    }

    /// See [`CodeCache::translates`].
    pub(crate) fn version(&self) -> u64 {
        self.version.get()
    }

    /// Slots of which the instruction is part of a valid region.
    pub(crate) fn translated(&self) -> &SlotSet {
        &self.translated
    }

    /// Counts an arrival at a hot slot. Returns true if the page may be translated: a page whose code is overwritten again and again is left to the
    /// interpreter for longer and longer.
    pub(crate) fn may_be_translated(&self) -> bool {
        let waiting = self.waiting.get();
        if self.version.get() != 0 || waiting == 0 {
            return true;
        }
        self.waiting.set(waiting - 1);
        false
    }

    /// Empties slots; says what is gone with them.
    fn empty(&self, slots: Range<usize>) -> Invalidated {
        let regions = self.translated.has_any(slots.clone());
        let mut instructions = false;
        for slot in &self.slots[slots] {
            instructions |= !slot.is_empty();
            slot.clear();
        }
        if regions {
            self.forget_translations();
            let times = self.void_times.get();
            self.void_times.set(times.saturating_add(1));
            let bits = times.saturating_sub(VOID_TIMES_UNPUNISHED).min(MAX_TRANSLATION_DELAY_BITS);
            self.waiting.set((1 << bits) - 1);
        }
        Invalidated { instructions, regions }
    }

    fn forget_translations(&self) {
        if self.version.replace(0) != 0 {
            self.translated.clear();
            self.forget_heat();
        }
    }

    fn forget_heat(&self) {
        self.heat.iter().for_each(|heat| heat.set(0));
    }
}

/// What emptied slots have invalidated.
struct Invalidated {
    /// True if some of the slots held an instruction.
    instructions: bool,
    /// True if translated regions, which are void now, had some of the slots.
    regions: bool,
}

/// All decoded pages and id pages of a hart.
pub(crate) struct CodeCache {
    /// Number of the hart.
    hart: usize,
    /// Decoded pages, by page number relative to the start of RAM.
    pages: Vec<Option<Rc<CodePage>>>,
    decoded: usize,
    /// Stores to pages in which only other harts have code, by index.
    elsewhere: HashMap<usize, StoreCount>,
    ids: IdPages,
    /// Encoding of every static instruction, by id.
    pub encodings: Vec<u32>,
    /// Number of versions that pages were given.
    versions: u64,
    /// Number of times that translated regions became void.
    generation: u64,
}

impl CodeCache {
    /// Returns an empty cache for hart number `hart`.
    pub(crate) fn new(hart: usize) -> Self {
        Self {
            hart,
            pages: Vec::new(),
            decoded: 0,
            elsewhere: HashMap::new(),
            ids: IdPages::default(),
            encodings: Vec::new(),
            versions: 0,
            generation: 0,
        }
    }

    /// Returns the number of times that translated regions became void.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Gives `page` a version, if it has none: regions of it are translated.
    pub(crate) fn translates(&mut self, page: &CodePage) {
        if page.version.get() == 0 {
            self.versions += 1;
            page.version.set(self.versions);
        }
    }

    /// Makes all translated regions void.
    pub(crate) fn drop_translations(&mut self) {
        self.generation += 1;
        for page in self.pages.iter().flatten() {
            page.forget_translations();
        }
    }

    /// Forgets all translations and how hot places are: what could not be translated may be now.
    pub(crate) fn forget_heat(&mut self) {
        self.drop_translations();
        for page in self.pages.iter().flatten() {
            page.forget_heat();
        }
    }

    /// True if there is no room for another page: the caller drops its page handles, then calls
    /// [`Self::make_room`].
    pub(crate) fn is_full(&self) -> bool {
        self.decoded >= MAX_PAGES || self.ids.is_full()
    }

    /// Makes room: packs static ids and, if there are too many decoded pages, forgets all of those.
    pub(crate) fn make_room(&mut self, ram: &mut Ram) {
        if self.decoded >= MAX_PAGES {
            self.clear(ram);
        }
        self.ids.pack();
        for page in self.pages.iter().flatten() {
            // A table that nothing but the page holds was packed just now.
            let mut tables = page.ids.borrow_mut();
            tables.retain(|table| Rc::strong_count(table) > 1);
        }
    }

    /// Forgets every decoded page. Static ids keep their numbers.
    pub(crate) fn clear(&mut self, ram: &mut Ram) {
        for page in self.pages.drain(..).flatten() {
            ram.clear_page_flags(page.pa, Ram::HAS_CODE);
        }
        // Stores to these pages are no longer noted, so that other harts have to drop their code of the pages, too.
        ram.log_all_overwritten();
        self.decoded = 0;
        self.elsewhere.clear();
        self.generation += 1;
    }

    /// Returns the decoded page at `pa`, which is in RAM, and whether the page was not marked as code before: stores to it then have to take the slow
    /// path from now on.
    pub(crate) fn page(&mut self, pa: u64, ram: &mut Ram) -> (Rc<CodePage>, bool) {
        let index = index(pa);
        if self.pages.len() <= index {
            self.pages.resize((ram.size() >> 12) as usize, None);
        }
        let fresh = self.pages[index].is_none();
        let page = self.pages[index].get_or_insert_with(|| CodePage::new(pa & !0xfff)).clone();
        if fresh {
            self.decoded += 1;
        }
        let unmarked = ram.page_flags(pa) & Ram::HAS_CODE == 0;
        if unmarked {
            ram.set_page_flags(pa, Ram::HAS_CODE);
            ram.log_page_event(pa, PageEventKind::SlowStores, self.hart);
        }
        (page, unmarked)
    }

    /// The ids of a page as it appears at `vpage` in address space `space`.
    pub(crate) fn ids(&mut self, space: u32, vpage: u64, page: &CodePage) -> Rc<IdPage> {
        let key = (space, vpage, page.pa);
        self.ids.get(key, page, &self.encodings)
    }

    /// Notes that the hart stored `size` bytes to a page with code. Returns true if instructions that the hart had decoded are gone.
    pub(crate) fn stored(&mut self, pa: u64, size: u64, ram: &mut Ram) -> bool {
        let from = (pa & 0xfff) as u16;
        let to = from + size as u16;
        let index = index(pa);
        let is_data = match self.pages.get(index) {
            Some(Some(page)) => page.stores.add(),
            _ => self.elsewhere.entry(index).or_default().add(),
        };
        if !is_data {
            ram.log_page_event(pa, PageEventKind::Overwritten { from, to }, self.hart);
            return self.empty(index, slots_of(from, to));
        }
        // Stores to the page no longer take the slow path, until somebody decodes there again.
        let (from, to) = (0, PAGE_BYTES);
        ram.log_page_event(pa, PageEventKind::Overwritten { from, to }, self.hart);
        ram.clear_page_flags(pa, Ram::HAS_CODE);
        self.empty(index, 0..SLOTS)
    }

    /// Empties all slots, as every page may have been overwritten.
    pub(crate) fn all_overwritten(&mut self) {
        for page in self.pages.iter().flatten() {
            page.empty(0..SLOTS);
        }
        self.generation += 1;
    }

    /// Empties the slots of bytes `from..to` of the page with number `number` (`pa >> 12`), as another hart or a device overwrote some of these
    /// bytes.
    pub(crate) fn overwritten(&mut self, number: u64, from: u16, to: u16) {
        self.empty(index(number << 12), slots_of(from, to));
    }

    /// Empties slots of a page, if it is known. True if they held instructions.
    fn empty(&mut self, index: usize, slots: Range<usize>) -> bool {
        let Some(Some(page)) = self.pages.get(index) else {
            return false;
        };
        let gone = page.empty(slots);
        self.generation += u64::from(gone.regions);
        gone.instructions
    }
}

/// Number of the page that holds `pa`, counted from the start of RAM.
fn index(pa: u64) -> usize {
    (pa.wrapping_sub(RAM_BASE) >> 12) as usize
}

#[cfg(test)]
#[path = "code_cache_tests.rs"]
mod tests;
