//! What functional warming shares between the hart, which executes without timing, and the model whose caches are kept warm meanwhile.

use std::cell::Cell;

/// Lines that a [`LineFilter`] can show; a power of two.
pub const FILTER_LINES: usize = 4096;
/// Log2 of the bytes of a line.
pub const FILTER_LINE_BITS: u32 = 6;

/// Lines of which another access is known to change nothing in the model, direct-mapped by the number of the line.
///
/// The model shows a line once its cache holds it, and hides it when the cache no longer does. The hart tells the model of an access
/// only if the filter does not show the access's line, so that most accesses cost one comparison.
pub struct LineFilter(Box<[Cell<u32>; FILTER_LINES]>);

impl Default for LineFilter {
    fn default() -> Self {
        Self(Box::new([const { Cell::new(0) }; FILTER_LINES]))
    }
}

impl LineFilter {
    /// Returns the entry of a line, and what the entry holds if it shows the line: the low 32 bits of the line's number, which are unique in 256 GiB.
    /// An entry of 0 shows no line, since RAM begins above.
    #[inline(always)]
    fn entry(&self, line: u64) -> (&Cell<u32>, u32) {
        (&self.0[line as usize % FILTER_LINES], line as u32)
    }

    /// Returns true if another access to the line changes nothing.
    #[inline(always)]
    pub fn shows(&self, line: u64) -> bool {
        let (entry, number) = self.entry(line);
        entry.get() == number
    }

    /// Shows a line, in the place of another one.
    pub fn show(&self, line: u64) {
        let (entry, number) = self.entry(line);
        entry.set(number);
    }

    /// Hides a line if it is shown.
    #[inline(always)]
    pub fn hide(&self, line: u64) {
        let (entry, number) = self.entry(line);
        if entry.get() == number {
            entry.set(0);
        }
    }

    /// Hides all lines.
    pub fn clear(&self) {
        self.0.iter().for_each(|entry| entry.set(0));
    }

    /// Returns the address of the entries, 4 bytes each, for translated code. It stays the same while the filter lives.
    pub fn address(&self) -> *const u8 {
        self.0.as_ptr().cast()
    }
}

/// The filters of a model that [warms](crate::TimingModel::WARMS).
#[derive(Clone, Copy)]
pub struct LineFilters<'a> {
    /// Lines that may be read.
    pub loads: &'a LineFilter,
    /// Lines that may be written.
    pub stores: &'a LineFilter,
    /// Lines of code.
    pub fetches: &'a LineFilter,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_shows_what_was_shown_last_in_a_place() {
        let filter = LineFilter::default();
        let line = 0x8000_0000 >> FILTER_LINE_BITS;
        let other = line + FILTER_LINES as u64;
        assert!(!filter.shows(line));
        filter.show(line);
        assert!(filter.shows(line) && !filter.shows(other));
        filter.hide(other);
        assert!(filter.shows(line));
        filter.show(other);
        assert!(!filter.shows(line) && filter.shows(other));
        filter.hide(other);
        assert!(!filter.shows(other));
    }
}
