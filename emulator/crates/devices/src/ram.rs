//! Guest memory.

mod contention;
mod page_events;
mod reservations;

use std::io;

use memmap2::{Advice, MmapMut, MmapOptions};

use snapshot::Archive;

use crate::memory_map::RAM_BASE;
use contention::{Contention, LineAccess};
pub use page_events::{PageEvent, PageEventKind};
use reservations::{Published, Reservations};

const PAGE_BITS: u32 = 12;
const MIB: u64 = 1 << 20;

/// Why guest memory could not be allocated.
#[derive(Debug, thiserror::Error)]
pub enum RamError {
    /// The size is zero, not a multiple of 1 MiB, or beyond what physical addresses reach.
    #[error("memory size {0:#x}: expected a multiple of 1 MiB from 1 MiB to 64 TiB")]
    Size(u64),
    /// The host refused the mapping.
    #[error("cannot map {0:#x} bytes of guest memory: {1}")]
    Map(u64, io::Error),
}

/// RAM at [`RAM_BASE`]: one anonymous mapping that the host fills with zeros page by page, and a
/// byte of flags per 4 KiB page.
pub struct Ram {
    map: MmapMut,
    flags: Box<[u8]>,
    /// True if more than one hart uses the memory: then harts log [`PageEvent`].
    shared: bool,
    page_events: page_events::Log,
    reservations: Reservations,
    contention: Contention,
    /// A device is being called: what is written now, it writes.
    device_writes: bool,
    dma_writes: Vec<DmaWrite>,
}

/// A write of a device to RAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaWrite {
    /// Physical address.
    pub pa: u64,
    /// Bytes, at least 1.
    pub len: u64,
}

impl Ram {
    /// Page flag: decoded instructions of this page are cached.
    pub const HAS_CODE: u8 = 1;
    /// Page flag: stores to this page are reported to `Bus::watched_store`.
    pub const WATCHED: u8 = 2;
    /// Page flag: the page holds a reservation of a hart that is not executing now (its turn is over).
    pub const RESERVED: u8 = 4;

    /// Memory of `size` bytes, a multiple of 1 MiB.
    pub fn new(size: u64) -> Result<Self, RamError> {
        if size == 0 || !size.is_multiple_of(MIB) || size > 1 << 46 {
            return Err(RamError::Size(size));
        }
        let len = usize::try_from(size).map_err(|_| RamError::Size(size))?;
        let map = MmapOptions::new()
            .len(len)
            .no_reserve_swap()
            .map_anon()
            .map_err(|e| RamError::Map(size, e))?;
        // Random accesses would spend more time on the host's TLB misses than on anything else. A host without huge
        // pages refuses, which costs speed only.
        let _ = map.advise(Advice::HugePage);
        let flags = vec![0; len >> PAGE_BITS].into_boxed_slice();
        Ok(Self {
            map,
            flags,
            shared: false,
            page_events: page_events::Log::default(),
            reservations: Reservations::default(),
            contention: Contention::default(),
            device_writes: false,
            dma_writes: Vec::new(),
        })
    }

    /// Size in bytes.
    #[inline]
    pub fn size(&self) -> u64 {
        self.map.len() as u64
    }

    /// Physical address after the last byte.
    #[inline]
    pub fn end(&self) -> u64 {
        RAM_BASE + self.size()
    }

    /// Start of the host mapping, for the hart's fast path: byte `pa - RAM_BASE` of the mapping is
    /// the byte at `pa`. Valid for [`Self::size`] bytes as long as the `Ram` lives (it never
    /// moves, even when the `Ram` value does).
    #[inline]
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.map.as_mut_ptr()
    }

    /// Start of the flag bytes, one per page from [`RAM_BASE`] up; as stable as
    /// [`Self::as_mut_ptr`].
    #[inline]
    pub fn flags_ptr(&mut self) -> *mut u8 {
        self.flags.as_mut_ptr()
    }

    /// True if all of `len` bytes from `pa` are RAM.
    #[inline]
    pub fn contains(&self, pa: u64, len: u64) -> bool {
        self.offset(pa, len).is_some()
    }

    /// Flags of the page that holds `pa`; 0 outside RAM.
    #[inline]
    pub fn page_flags(&self, pa: u64) -> u8 {
        self.offset(pa, 1).map_or(0, |at| self.flags[at >> PAGE_BITS])
    }

    /// Sets `flags` on the page that holds `pa`.
    #[inline]
    pub fn set_page_flags(&mut self, pa: u64, flags: u8) {
        if let Some(at) = self.offset(pa, 1) {
            self.flags[at >> PAGE_BITS] |= flags;
        }
    }

    /// Clears `flags` on the page that holds `pa`.
    #[inline]
    pub fn clear_page_flags(&mut self, pa: u64, flags: u8) {
        if let Some(at) = self.offset(pa, 1) {
            self.flags[at >> PAGE_BITS] &= !flags;
        }
    }

    /// The bytes at `pa`, or `None` unless all of them are RAM.
    #[inline]
    pub fn slice(&self, pa: u64, len: u64) -> Option<&[u8]> {
        let at = self.offset(pa, len)?;
        Some(&self.map[at..at + len as usize])
    }

    /// The bytes at `pa`, for a write that no hart executes (DMA, debugger, loader): code in them counts as
    /// overwritten, and reservations of their lines are lost.
    #[inline]
    pub fn slice_mut(&mut self, pa: u64, len: u64) -> Option<&mut [u8]> {
        let at = self.offset(pa, len)?;
        self.written(at, len as usize);
        Some(&mut self.map[at..at + len as usize])
    }

    /// Says whether what is written by [`Self::slice_mut`] from now on is written by a device.
    #[inline]
    pub(crate) fn set_device_writes(&mut self, on: bool) {
        self.device_writes = on;
    }

    /// Takes what devices have written since the last call, in order. A write that goes on where the one before ended is one with it.
    #[inline]
    pub fn take_dma_writes(&mut self) -> Vec<DmaWrite> {
        std::mem::take(&mut self.dma_writes)
    }

    /// Fills `bytes` from `pa`.
    #[inline]
    pub fn read(&self, pa: u64, bytes: &mut [u8]) -> Option<()> {
        bytes.copy_from_slice(self.slice(pa, bytes.len() as u64)?);
        Some(())
    }

    /// Writes `bytes` at `pa` as DMA.
    #[inline]
    pub fn write(&mut self, pa: u64, bytes: &[u8]) -> Option<()> {
        self.slice_mut(pa, bytes.len() as u64)?.copy_from_slice(bytes);
        Some(())
    }

    /// The pages that are not all zeros: physical address and content.
    pub fn pages(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let pages = self.map.chunks(1 << PAGE_BITS).enumerate();
        pages
            .filter(|(_, page)| page.iter().any(|&byte| byte != 0))
            .map(|(n, page)| (RAM_BASE + ((n as u64) << PAGE_BITS), page))
    }

    /// Loads a little-endian value of `size` (1 to 8) bytes; any alignment.
    #[inline]
    pub fn load(&self, pa: u64, size: u8) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read(pa, bytes.get_mut(..usize::from(size))?)?;
        Some(u64::from_le_bytes(bytes))
    }

    /// Stores the low `size` (1 to 8) bytes of `value` as DMA.
    #[inline]
    pub fn store(&mut self, pa: u64, size: u8, value: u64) -> Option<()> {
        self.write(pa, value.to_le_bytes().get(..usize::from(size))?)
    }

    /// Several harts use the memory from now on: each logs what the others must know.
    pub fn share(&mut self) {
        self.shared = true;
    }

    /// True if [`Self::share`] was called.
    #[inline]
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// A number of harts access the memory in turns from now on, under timing models: which lines they contend for is kept.
    pub fn order_contended_accesses(&mut self, harts: usize) {
        self.contention.begin(self.flags.len(), harts);
    }

    /// Saves or loads which lines harts contend for.
    pub(crate) fn snapshot_contention(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        self.contention.snapshot(archive, self.flags.len())
    }

    /// Notes that simulated time has come to a cycle.
    pub fn pass(&mut self, cycle: u64) {
        self.contention.pass(cycle);
    }

    /// Notes that a hart has accessed RAM at `pa`, by an instruction that is atomic or not. Returns true if the line is contended and was not before.
    #[inline]
    pub fn accessed(&mut self, hart: usize, pa: u64, writes: bool, is_atomic: bool) -> bool {
        let access = LineAccess { hart, writes, is_lock: is_atomic };
        self.contention.accessed(pa.wrapping_sub(RAM_BASE) as usize, access)
    }

    /// Notes that a hart's last access in a run of instructions was to RAM at `pa`.
    #[inline]
    pub fn accessed_last(&mut self, hart: usize, pa: u64) {
        self.contention.accessed_last(hart, pa.wrapping_sub(RAM_BASE) as usize);
    }

    /// Returns whether harts contend for lines in the page that holds `pa`.
    #[inline]
    pub fn has_contended_lines(&self, pa: u64) -> bool {
        self.contention.has_contended(pa.wrapping_sub(RAM_BASE) as usize)
    }

    /// Returns whether a hart has to wait for its turn to access RAM at `pa`, if it is not its turn.
    pub fn must_wait(&mut self, hart: usize, pa: u64, writes: bool) -> bool {
        self.contention.must_wait(hart, pa.wrapping_sub(RAM_BASE) as usize, writes)
    }

    /// Notes that a hart has to wait for its turn to access RAM at `pa`.
    pub fn waits(&mut self, hart: usize, pa: u64, writes: bool) {
        self.contention.waits(hart, pa.wrapping_sub(RAM_BASE) as usize, writes);
    }

    /// Logs what hart `by` did to the page that holds `pa`, if there are other harts to read it.
    pub fn log_page_event(&mut self, pa: u64, kind: PageEventKind, by: usize) {
        if self.shared {
            self.page_events.add(PageEvent { page: pa >> PAGE_BITS, kind, by: Some(by) });
        }
    }

    /// A hart dropped all its decoded code and cleared [`Self::HAS_CODE`] of its pages: the others must drop theirs too.
    pub fn log_all_overwritten(&mut self) {
        if self.shared {
            self.page_events.add_all_overwritten();
        }
    }

    /// Returns the number of page events logged since reset.
    #[inline]
    pub fn page_event_count(&self) -> u64 {
        self.page_events.end()
    }

    /// Returns the page events after the first `seen`; `None` if some of them were dropped from the log.
    pub fn page_events_since(&mut self, seen: u64) -> Option<&[PageEvent]> {
        self.page_events.since(seen)
    }

    /// A hart reserves the line that holds `pa`, instead of the one it had.
    #[inline]
    pub fn reserve(&mut self, hart: usize, pa: u64) {
        self.reservations.reserve(hart, pa);
    }

    /// A hart gives its reservation up. True if it held it until now.
    #[inline]
    pub fn release(&mut self, hart: usize) -> bool {
        self.reservations.release(hart)
    }

    /// True if a hart lost its reservation to another's write and has not released it yet.
    #[inline]
    pub fn lost_reservation(&self, hart: usize) -> bool {
        self.reservations.is_lost(hart)
    }

    /// Called when a hart's turn ends. If it holds a reservation, other harts' stores to that page take the slow path
    /// from now on, where they are compared with it.
    #[inline]
    pub fn publish_reservation(&mut self, hart: usize) {
        if !self.shared {
            return;
        }
        let Published { free, taken } = self.reservations.publish(hart);
        if let Some(page) = free {
            self.clear_page_flags(page << PAGE_BITS, Self::RESERVED);
        }
        if let Some(page) = taken {
            self.set_page_flags(page << PAGE_BITS, Self::RESERVED);
            self.log_page_event(page << PAGE_BITS, PageEventKind::SlowStores, hart);
        }
    }

    /// A hart stored to a page with [`Self::RESERVED`]: other harts lose reservations of the lines.
    #[inline]
    pub fn stored_by(&mut self, hart: usize, pa: u64, len: u64) {
        self.reservations.written(pa, len, Some(hart));
    }

    /// True if a hart's stores to the page that holds `pa` must take the slow path.
    #[inline]
    pub fn stores_need_slow_path(&self, pa: u64, hart: usize) -> bool {
        match self.page_flags(pa) {
            0 => false,
            Self::RESERVED => self.reservations.stores_need_slow_path_for(pa >> PAGE_BITS, hart),
            _ => true,
        }
    }

    #[inline]
    fn offset(&self, pa: u64, len: u64) -> Option<usize> {
        let at = pa.checked_sub(RAM_BASE)?;
        (at.checked_add(len)? <= self.size()).then_some(at as usize)
    }

    /// Records a write that no hart executes.
    #[inline]
    fn written(&mut self, at: usize, len: usize) {
        if len == 0 {
            return;
        }
        let pa = RAM_BASE + at as u64;
        self.reservations.written(pa, len as u64, None);
        if self.device_writes {
            match self.dma_writes.last_mut() {
                Some(last) if last.pa + last.len == pa => last.len += len as u64,
                _ => self.dma_writes.push(DmaWrite { pa, len: len as u64 }),
            }
        }
        for page in at >> PAGE_BITS..=(at + len - 1) >> PAGE_BITS {
            if self.flags[page] & Self::HAS_CODE != 0 {
                let start = page << PAGE_BITS;
                let offset = |at: usize| at.saturating_sub(start).min(1 << PAGE_BITS) as u16;
                self.page_events.add(PageEvent {
                    page: (RAM_BASE >> PAGE_BITS) + page as u64,
                    kind: PageEventKind::Overwritten { from: offset(at), to: offset(at + len) },
                    by: None,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_checked() {
        let mut ram = Ram::new(MIB).unwrap();
        assert_eq!(ram.store(ram.end() - 8, 8, 0x0102_0304_0506_0708), Some(()));
        assert_eq!(ram.load(ram.end() - 4, 4), Some(0x0102_0304));
        assert_eq!(ram.load(ram.end() - 3, 4), None);
        assert_eq!(ram.load(RAM_BASE - 1, 1), None);
        assert_eq!(ram.load(u64::MAX, 8), None);
        assert_eq!(ram.load(RAM_BASE, 9), None);
        assert_eq!(ram.slice(RAM_BASE, u64::MAX), None);
        assert!(ram.contains(RAM_BASE, MIB) && !ram.contains(RAM_BASE, MIB + 1));
    }

    #[test]
    fn sizes() {
        assert!(matches!(Ram::new(0), Err(RamError::Size(0))));
        assert!(matches!(Ram::new(4096), Err(RamError::Size(4096))));
        assert!(Ram::new(u64::MAX - (MIB - 1)).is_err());
    }

    #[test]
    fn writes_of_devices_are_told_from_others() {
        let mut ram = Ram::new(MIB).unwrap();
        ram.write(RAM_BASE, &[1]).unwrap();
        assert_eq!(ram.take_dma_writes(), []);
        ram.set_device_writes(true);
        for at in [8, 16, 64] {
            ram.store(RAM_BASE + at, 8, 0).unwrap();
        }
        ram.set_device_writes(false);
        ram.write(RAM_BASE, &[1]).unwrap();
        let expected =
            [DmaWrite { pa: RAM_BASE + 8, len: 16 }, DmaWrite { pa: RAM_BASE + 64, len: 8 }];
        assert_eq!(ram.take_dma_writes(), expected);
        assert_eq!(ram.take_dma_writes(), []);
    }

    #[test]
    fn dma_over_code_is_listed() {
        let mut ram = Ram::new(MIB).unwrap();
        ram.set_page_flags(RAM_BASE + 0x1000, Ram::HAS_CODE);
        ram.set_page_flags(RAM_BASE + 0x2fff, Ram::HAS_CODE | Ram::WATCHED);
        ram.write(RAM_BASE + 0xffc, &[0; 4]).unwrap();
        assert_eq!(ram.page_event_count(), 0);
        ram.write(RAM_BASE + 0xffc, &[0; 0x1010]).unwrap();
        let overwritten = |page, from, to| PageEvent {
            page,
            kind: PageEventKind::Overwritten { from, to },
            by: None,
        };
        let all = [overwritten(0x80001, 0, 4096), overwritten(0x80002, 0, 12)];
        assert_eq!(ram.page_events_since(0), Some(&all[..]));
        assert_eq!(ram.page_flags(RAM_BASE + 0x1000), Ram::HAS_CODE);
        ram.clear_page_flags(RAM_BASE + 0x2000, Ram::HAS_CODE);
        assert_eq!(ram.page_flags(RAM_BASE + 0x2000), Ram::WATCHED);
    }
}
