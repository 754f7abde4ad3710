//! Guest memory.

use std::io;

use memmap2::{Advice, MmapMut, MmapOptions};

/// Physical address of the first byte of RAM.
pub const RAM_BASE: u64 = 0x8000_0000;

const PAGE_BITS: u32 = 12;
const MIB: u64 = 1 << 20;

/// Why guest memory could not be had.
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
    dirty_code: Vec<u64>,
    /// More than one hart uses it.
    shared: bool,
    /// See [`Self::take_code_news`].
    code_news: Vec<u64>,
}

impl Ram {
    /// Page flag: decoded instructions of this page are cached.
    pub const HAS_CODE: u8 = 1;
    /// Page flag: stores to this page are reported to `Bus::watched_store`.
    pub const WATCHED: u8 = 2;

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
            dirty_code: Vec::new(),
            shared: false,
            code_news: Vec::new(),
        })
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.map.len() as u64
    }

    /// Physical address after the last byte.
    pub fn end(&self) -> u64 {
        RAM_BASE + self.size()
    }

    /// Start of the host mapping, for the hart's fast path: byte `pa - RAM_BASE` of the mapping is
    /// the byte at `pa`. Valid for [`Self::size`] bytes as long as the `Ram` lives (it never
    /// moves, even when the `Ram` value does).
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.map.as_mut_ptr()
    }

    /// Start of the flag bytes, one per page from [`RAM_BASE`] up; as stable as
    /// [`Self::as_mut_ptr`].
    pub fn flags_ptr(&mut self) -> *mut u8 {
        self.flags.as_mut_ptr()
    }

    /// True if all of `len` bytes from `pa` are RAM.
    pub fn contains(&self, pa: u64, len: u64) -> bool {
        self.offset(pa, len).is_some()
    }

    /// Flags of the page that holds `pa`; 0 outside RAM.
    pub fn page_flags(&self, pa: u64) -> u8 {
        self.offset(pa, 1)
            .map_or(0, |at| self.flags[at >> PAGE_BITS])
    }

    /// Sets `flags` on the page that holds `pa`.
    pub fn set_page_flags(&mut self, pa: u64, flags: u8) {
        if let Some(at) = self.offset(pa, 1) {
            self.flags[at >> PAGE_BITS] |= flags;
        }
    }

    /// Clears `flags` on the page that holds `pa`.
    pub fn clear_page_flags(&mut self, pa: u64, flags: u8) {
        if let Some(at) = self.offset(pa, 1) {
            self.flags[at >> PAGE_BITS] &= !flags;
        }
    }

    /// The bytes at `pa`, or `None` unless all of them are RAM.
    pub fn slice(&self, pa: u64, len: u64) -> Option<&[u8]> {
        let at = self.offset(pa, len)?;
        Some(&self.map[at..at + len as usize])
    }

    /// The bytes at `pa`, to be written by a device: code in them counts as changed.
    pub fn slice_mut(&mut self, pa: u64, len: u64) -> Option<&mut [u8]> {
        let at = self.offset(pa, len)?;
        self.note_dirty(at, len as usize);
        Some(&mut self.map[at..at + len as usize])
    }

    /// Fills `bytes` from `pa`.
    pub fn read(&self, pa: u64, bytes: &mut [u8]) -> Option<()> {
        bytes.copy_from_slice(self.slice(pa, bytes.len() as u64)?);
        Some(())
    }

    /// Writes `bytes` at `pa` as DMA.
    pub fn write(&mut self, pa: u64, bytes: &[u8]) -> Option<()> {
        self.slice_mut(pa, bytes.len() as u64)?
            .copy_from_slice(bytes);
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
    pub fn load(&self, pa: u64, size: u8) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read(pa, bytes.get_mut(..usize::from(size))?)?;
        Some(u64::from_le_bytes(bytes))
    }

    /// Stores the low `size` (1 to 8) bytes of `value` as DMA.
    pub fn store(&mut self, pa: u64, size: u8, value: u64) -> Option<()> {
        self.write(pa, value.to_le_bytes().get(..usize::from(size))?)
    }

    /// Takes the list of physical page numbers (`pa >> 12`) whose code was overwritten by DMA
    /// since the last call. A page can be listed more than once.
    pub fn take_dirty_code(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.dirty_code)
    }

    /// True if [`Self::take_dirty_code`] would return something.
    pub fn has_dirty_code(&self) -> bool {
        !self.dirty_code.is_empty()
    }

    /// Several harts use it from now on: each has to hear what the others do to code.
    pub(crate) fn share(&mut self) {
        self.shared = true;
    }

    /// A hart stored to the page with code that holds `pa`, or decoded code in a page that had none. Notes it if
    /// there are other harts.
    pub(crate) fn note_code(&mut self, pa: u64) {
        if self.shared && self.code_news.last() != Some(&(pa >> PAGE_BITS)) {
            self.code_news.push(pa >> PAGE_BITS);
        }
    }

    /// Takes the numbers of the pages (`pa >> 12`) for which harts noted something.
    pub(crate) fn take_code_news(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.code_news)
    }

    fn offset(&self, pa: u64, len: u64) -> Option<usize> {
        let at = pa.checked_sub(RAM_BASE)?;
        (at.checked_add(len)? <= self.size()).then_some(at as usize)
    }

    fn note_dirty(&mut self, at: usize, len: usize) {
        if len == 0 {
            return;
        }
        for page in at >> PAGE_BITS..=(at + len - 1) >> PAGE_BITS {
            if self.flags[page] & Self::HAS_CODE != 0 {
                let number = (RAM_BASE >> PAGE_BITS) + page as u64;
                if self.dirty_code.last() != Some(&number) {
                    self.dirty_code.push(number);
                }
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
    fn dma_over_code_is_listed() {
        let mut ram = Ram::new(MIB).unwrap();
        ram.set_page_flags(RAM_BASE + 0x1000, Ram::HAS_CODE);
        ram.set_page_flags(RAM_BASE + 0x2fff, Ram::HAS_CODE | Ram::WATCHED);
        ram.write(RAM_BASE + 0xffc, &[0; 4]).unwrap();
        assert!(!ram.has_dirty_code());
        ram.write(RAM_BASE + 0xffc, &[0; 0x3000]).unwrap();
        assert_eq!(ram.take_dirty_code(), [0x80001, 0x80002]);
        assert!(ram.take_dirty_code().is_empty());
        assert_eq!(ram.page_flags(RAM_BASE + 0x1000), Ram::HAS_CODE);
        ram.clear_page_flags(RAM_BASE + 0x2000, Ram::HAS_CODE);
        assert_eq!(ram.page_flags(RAM_BASE + 0x2000), Ram::WATCHED);
    }
}
