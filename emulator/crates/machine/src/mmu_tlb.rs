//! The emulator's own TLBs: host pointers for data pages, and decoded pages for fetches. They make emulation fast and are no part of the modelled
//! machine: the timing core has TLBs of its own.

use std::rc::Rc;

use crate::code_cache::{CodePage, IdPage};

const PAGE_MASK: u64 = !0xfff;
/// Entries for each set of access rights.
pub(crate) const TLB_ENTRIES: usize = 256;

/// Entries of the second level, for all rights together; a power of two.
const SECOND_LEVEL_ENTRIES: usize = 32768;

/// Rights of a data access. Each value has entries of its own, so that a trap or return flushes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Rights {
    User = 0,
    Supervisor = 1,
    /// Supervisor with `mstatus.SUM`.
    SupervisorSum = 2,
    Machine = 3,
}
const RIGHTS_COUNT: usize = 4;

impl Rights {
    const ALL: [Self; RIGHTS_COUNT] =
        [Self::User, Self::Supervisor, Self::SupervisorSum, Self::Machine];
}

/// The slots filled since the last flush of all slots: a flush has to empty no others, and kernels flush often.
#[derive(Default)]
struct FilledSlots {
    slots: Vec<u16>,
}

impl FilledSlots {
    /// Most slots that are worth noting: if more are filled, a flush goes through all slots.
    const MOST: usize = 256;

    fn note(&mut self, slot: usize) {
        if self.slots.len() <= Self::MOST {
            self.slots.push(slot as u16);
        }
    }

    fn empty<T: Clone>(&mut self, entries: &mut [T], empty: T) {
        if self.slots.len() > Self::MOST {
            entries.fill(empty);
        } else {
            for &slot in &self.slots {
                entries[usize::from(slot)] = empty.clone();
            }
        }
        self.slots.clear();
    }

    /// Empties the entries that `drop` wants to be dropped.
    fn empty_some<T: Clone>(&self, entries: &mut [T], empty: T, drop: impl Fn(&T) -> bool) {
        let look = |entry: &mut T| {
            if drop(entry) {
                *entry = empty.clone();
            }
        };
        if self.slots.len() > Self::MOST {
            entries.iter_mut().for_each(look);
        } else {
            for &slot in &self.slots {
                look(&mut entries[usize::from(slot)]);
            }
        }
    }
}

/// An entry of the first level, which translated code reads, too.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Entry {
    /// Page-aligned virtual address; a value that is not aligned matches nothing.
    pub tag: u64,
    /// Host address of the page minus `tag`.
    pub host: *mut u8,
}

const EMPTY: Entry = Entry { tag: 1, host: std::ptr::null_mut() };
/// An empty entry of the second level: its generation is 0, which is never valid.
const EMPTY_SECOND_LEVEL: Entry = Entry { tag: 0, ..EMPTY };

/// An entry of the second level. The low 12 bits of its tag hold the second level's generation at the time of the fill, and the rights. The entry is
/// as small as an [`Entry`], so that many fit into the host's caches.
type SecondLevelEntry = Entry;

/// Number of generations of the second level that tags tell apart; generation 0 stands for an empty entry.
const GENERATIONS: u64 = 1 << 10;

/// Direct-mapped translations of one kind of data access, in two levels: the first is small, so that it stays
/// in the host's own caches, the second is asked out of line, before the page tables are walked.
pub(crate) struct DataTlb {
    entries: Box<[Entry; TLB_ENTRIES * RIGHTS_COUNT]>,
    filled: FilledSlots,
    second: Box<[SecondLevelEntry]>,
    /// Present generation of the second level: entries of any other generation are void.
    generation: u64,
    /// Host page that is known to have no entry: flushing it again costs nothing. When harts contend for a lock, the page of the lock is flushed
    /// again and again.
    absent: *mut u8,
}

impl DataTlb {
    pub(crate) fn new() -> Self {
        Self {
            entries: Box::new([EMPTY; TLB_ENTRIES * RIGHTS_COUNT]),
            filled: FilledSlots::default(),
            second: vec![EMPTY_SECOND_LEVEL; SECOND_LEVEL_ENTRIES].into(),
            generation: 1,
            absent: std::ptr::null_mut(),
        }
    }

    /// Returns the first-level entries under some rights, for translated code: [`Self::lookup`] says what to do with them.
    pub(crate) fn base(&self, rights: Rights) -> *const u8 {
        (&raw const self.entries[rights as usize * TLB_ENTRIES]).cast()
    }

    /// Returns the host address of `size` bytes at `va`, if all of them lie in a page that is present.
    #[inline(always)]
    pub(crate) fn lookup(&self, va: u64, size: u64, rights: Rights) -> Option<*mut u8> {
        let entry = &self.entries[slot(va, rights)];
        // Indexed by the first byte and compared by the last: an access that crosses the page's
        // end finds the first page and fails the comparison.
        let hit = va.wrapping_add(size - 1) & PAGE_MASK == entry.tag;
        hit.then(|| entry.host.wrapping_add(va as usize))
    }

    /// Maps the page of `va` to the host page at `host`.
    pub(crate) fn insert(&mut self, va: u64, rights: Rights, host: *mut u8) {
        let tag = va & PAGE_MASK;
        if host == self.absent {
            self.absent = std::ptr::null_mut();
        }
        let host = host.wrapping_sub(tag as usize);
        let entry = Entry { tag, host };
        self.fill(slot(va, rights), entry);
        let tag = self.second_level_tag(va, rights);
        self.second[second_level_slot(va, rights)] = SecondLevelEntry { tag, host };
    }

    /// Returns the host address as [`Self::lookup`] does, from the second level; an entry that is found moves to the first
    /// level.
    pub(crate) fn lookup_second_level(
        &mut self,
        va: u64,
        size: u64,
        rights: Rights,
    ) -> Option<*mut u8> {
        let SecondLevelEntry { tag, host } = self.second[second_level_slot(va, rights)];
        if tag != self.second_level_tag(va.wrapping_add(size - 1), rights) {
            return None;
        }
        let tag = tag & PAGE_MASK;
        self.fill(slot(va, rights), Entry { tag, host });
        Some(host.wrapping_add(va as usize))
    }

    fn second_level_tag(&self, va: u64, rights: Rights) -> u64 {
        va & PAGE_MASK | self.generation << 2 | rights as u64
    }

    fn fill(&mut self, slot: usize, entry: Entry) {
        self.entries[slot] = entry;
        self.filled.note(slot);
    }

    pub(crate) fn flush(&mut self) {
        self.filled.empty(&mut self.entries[..], EMPTY);
        self.flush_second_level();
    }

    fn flush_second_level(&mut self) {
        self.generation += 1;
        if self.generation == GENERATIONS {
            // Generations start again, and entries of the last round would be valid again.
            self.second.fill(EMPTY_SECOND_LEVEL);
            self.generation = 1;
        }
    }

    /// Drops the pages of the naturally aligned region of `2^bits` bytes around `va`.
    pub(crate) fn flush_region(&mut self, va: u64, bits: u32) {
        if bits <= 12 {
            for rights in 0..RIGHTS_COUNT {
                let entry =
                    &mut self.entries[rights * TLB_ENTRIES + (va >> 12) as usize % TLB_ENTRIES];
                if entry.tag == va & PAGE_MASK {
                    *entry = EMPTY;
                }
            }
            for rights in Rights::ALL {
                self.second[second_level_slot(va, rights)] = EMPTY_SECOND_LEVEL;
            }
        } else {
            self.flush_second_level();
            for entry in self.entries.iter_mut().filter(|e| (e.tag ^ va) >> bits == 0) {
                *entry = EMPTY;
            }
        }
    }

    /// Drops every page that maps to the host page at `host`.
    pub(crate) fn flush_host(&mut self, host: *mut u8) {
        if host == self.absent {
            return;
        }
        self.flush_second_level();
        self.filled.empty_some(&mut self.entries[..], EMPTY, |entry| {
            entry.host.wrapping_add(entry.tag as usize) == host
        });
        self.absent = host;
    }
}

#[inline(always)]
fn slot(va: u64, rights: Rights) -> usize {
    ((va >> 12) as usize % TLB_ENTRIES) | (rights as usize * TLB_ENTRIES)
}

fn second_level_slot(va: u64, rights: Rights) -> usize {
    // Different rights to one page lie apart.
    ((va >> 12) as usize ^ (rights as usize) << 11) % SECOND_LEVEL_ENTRIES
}

/// A page that instructions come from.
#[derive(Clone)]
pub(crate) struct FetchPage {
    /// Page-aligned virtual address; one that is not aligned matches nothing.
    pub vpage: u64,
    pub code: Rc<CodePage>,
    /// Static ids; `None` in an untimed run.
    pub ids: Option<Rc<IdPage>>,
    /// Address space, for static ids.
    pub space: u32,
    /// The address was translated.
    pub translated: bool,
    /// True if each fetch from the page has to be checked: physical memory protection differs within the page, or the page has a breakpoint.
    pub strict: bool,
}

/// Direct-mapped pages for each privilege.
pub(crate) struct FetchTlb {
    entries: Vec<Option<FetchPage>>,
    filled: FilledSlots,
    /// Counts the times that something was dropped.
    generation: u64,
}

const PRIVILEGES: usize = 4;

impl FetchTlb {
    pub(crate) fn new() -> Self {
        Self {
            entries: vec![None; TLB_ENTRIES * PRIVILEGES],
            filled: FilledSlots::default(),
            generation: 0,
        }
    }

    /// Counts the times that something was dropped.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) fn lookup(&self, va: u64, privilege: isa::Privilege) -> Option<&FetchPage> {
        let index = (va >> 12) as usize % TLB_ENTRIES + privilege as usize * TLB_ENTRIES;
        self.entries[index].as_ref().filter(|page| page.vpage == va & PAGE_MASK)
    }

    pub(crate) fn insert(&mut self, privilege: isa::Privilege, page: FetchPage) {
        let index = (page.vpage >> 12) as usize % TLB_ENTRIES + privilege as usize * TLB_ENTRIES;
        self.entries[index] = Some(page);
        self.filled.note(index);
    }

    pub(crate) fn flush(&mut self) {
        self.generation += 1;
        self.filled.empty(&mut self.entries, None);
    }

    /// Drops user pages only.
    pub(crate) fn flush_user(&mut self) {
        self.generation += 1;
        self.entries[..TLB_ENTRIES].fill(None);
    }

    /// Drops the pages of the naturally aligned region of `2^bits` bytes around `va`.
    pub(crate) fn flush_region(&mut self, va: u64, bits: u32) {
        self.generation += 1;
        let (first, step) =
            if bits <= 12 { ((va >> 12) as usize % TLB_ENTRIES, TLB_ENTRIES) } else { (0, 1) };
        for entry in self.entries[first..].iter_mut().step_by(step) {
            if entry.as_ref().is_some_and(|page| (page.vpage ^ va) >> bits == 0) {
                *entry = None;
            }
        }
    }
}

/// Regions that superpages have mapped since the last full flush, so that a fence for one address knows how much to drop. They may include regions
/// without a superpage.
#[derive(Clone, Debug)]
pub(crate) struct Superpages {
    /// One bit per 2 MiB region, hashed.
    mega: [u64; 64],
    /// Some page of 1 GiB or more was seen.
    larger: bool,
}

impl Superpages {
    pub(crate) fn new() -> Self {
        Self { mega: [0; 64], larger: false }
    }

    pub(crate) fn note(&mut self, va: u64, page_bits: u8) {
        match page_bits {
            12 => {}
            21 => {
                let (word, bit) = Self::place(va);
                self.mega[word] |= bit;
            }
            _ => self.larger = true,
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }

    /// Returns log2 of the bytes of the region around `va` that a fence for `va` must drop; `None`: everything.
    pub(crate) fn reach(&self, va: u64) -> Option<u32> {
        let (word, bit) = Self::place(va);
        match self.larger {
            true => None,
            false if self.mega[word] & bit != 0 => Some(21),
            false => Some(12),
        }
    }

    fn place(va: u64) -> (usize, u64) {
        let hash = (va >> 21) ^ (va >> 33);
        ((hash >> 6) as usize % 64, 1 << (hash % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_must_lie_in_the_page() {
        let mut tlb = DataTlb::new();
        let mut page = [0u8; 16];
        tlb.insert(0x7000_1234, Rights::User, page.as_mut_ptr());
        assert_eq!(
            tlb.lookup(0x7000_1002, 8, Rights::User),
            Some(page.as_mut_ptr().wrapping_add(2))
        );
        assert!(tlb.lookup(0x7000_1ff8, 8, Rights::User).is_some());
        assert!(tlb.lookup(0x7000_1ff9, 8, Rights::User).is_none());
        assert!(tlb.lookup(0x7000_0fff, 2, Rights::User).is_none());
        assert!(tlb.lookup(0x7000_1000, 8, Rights::Supervisor).is_none());
        assert!(tlb.lookup(0, 1, Rights::User).is_none());
        assert!(tlb.lookup(u64::MAX, 8, Rights::User).is_none());
    }

    #[test]
    fn a_flush_empties_many_slots_as_it_does_few() {
        let mut tlb = DataTlb::new();
        let pages = |count: u64| (0..count).map(|page| page << 12);
        for count in [3, FilledSlots::MOST as u64 + 100, 3] {
            for rights in Rights::ALL {
                pages(count).for_each(|va| tlb.insert(va, rights, 0x10_0000 as *mut u8));
                assert!(tlb.lookup((count - 1) << 12, 8, rights).is_some());
            }
            tlb.flush();
            for rights in Rights::ALL {
                assert!(pages(count).all(|va| tlb.lookup(va, 8, rights).is_none()));
            }
        }
    }

    #[test]
    fn flushes() {
        let mut tlb = DataTlb::new();
        let host = 0x10_0000 as *mut u8;
        tlb.insert(0x1000, Rights::User, host);
        tlb.insert(0x1000, Rights::Machine, host);
        tlb.insert(0x20_0000, Rights::User, host.wrapping_add(0x1000));
        tlb.flush_region(0x1fff, 12);
        assert!(tlb.lookup(0x1000, 1, Rights::User).is_none());
        assert!(tlb.lookup(0x20_0000, 1, Rights::User).is_some());
        tlb.flush_host(host.wrapping_add(0x1000));
        assert!(tlb.lookup(0x20_0000, 1, Rights::User).is_none());
        tlb.insert(0x20_1000, Rights::User, host);
        tlb.flush_region(0x3f_ffff, 21);
        assert!(tlb.lookup(0x20_1000, 1, Rights::User).is_none());
        for _ in 0..3 {
            tlb.insert(0x1000, Rights::User, host);
            tlb.flush_host(host);
            tlb.flush_host(host);
            assert!(tlb.lookup(0x1000, 1, Rights::User).is_none());
            assert!(tlb.lookup_second_level(0x1000, 1, Rights::User).is_none());
        }
    }

    #[test]
    fn the_second_level_remembers_and_forgets_with_the_first() {
        let mut tlb = DataTlb::new();
        let host = 0x10_0000 as *mut u8;
        let (user, far) = (Rights::User, (TLB_ENTRIES as u64) << 12);
        let again = |tlb: &mut DataTlb| {
            tlb.insert(0x1000, user, host);
            // Takes the place of the first.
            tlb.insert(0x1000 + far, user, host);
            assert!(tlb.lookup(0x1008, 8, user).is_none());
        };
        again(&mut tlb);
        let found = tlb.lookup_second_level(0x1008, 8, user);
        assert_eq!(found, Some(host.wrapping_add(8)));
        assert_eq!(tlb.lookup(0x1008, 8, user), found, "it moved up");
        assert!(tlb.lookup_second_level(0x1ffc, 8, user).is_none(), "crosses");
        let supervisor = Rights::Supervisor;
        assert!(tlb.lookup_second_level(0x1008, 8, supervisor).is_none());
        let forget: [fn(&mut DataTlb); 4] = [
            |tlb| tlb.flush(),
            |tlb| tlb.flush_region(0x1000, 12),
            |tlb| tlb.flush_region(0x1000, 21),
            |tlb| tlb.flush_host(0x10_0000 as *mut u8),
        ];
        for forget in forget {
            again(&mut tlb);
            forget(&mut tlb);
            assert!(tlb.lookup_second_level(0x1008, 8, user).is_none());
        }
    }

    #[test]
    fn superpages_widen_a_fence() {
        let mut seen = Superpages::new();
        seen.note(0x1000, 12);
        assert_eq!(seen.reach(0x1000), Some(12));
        seen.note(0x4020_0000, 21);
        assert_eq!(seen.reach(0x403f_f000), Some(21));
        seen.note(0, 30);
        assert_eq!(seen.reach(0x9999_0000), None);
    }
}
