//! Lines that are accessed as if what they hold were padded: a what-if against false sharing.

use super::LINE_BITS;
use crate::Preset;

/// Log2 of the bytes that have a line of their own: no datum that a program aligns and accesses at once is larger.
const DATUM_BITS: u32 = 3;
/// Log2 of the data in a line.
const DATA_BITS: u32 = LINE_BITS - DATUM_BITS;
/// Number of the first line that stands for a datum: behind all memory, and within what the caches' tags hold.
const FIRST: u64 = 1 << 34;

/// Returns the line of a text, `0xPA`; `None` if it is no physical address.
pub(crate) fn padded_line(text: &str) -> Option<u64> {
    let address = u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()?;
    let line = address >> LINE_BITS;
    (line < FIRST).then_some(line)
}

/// The lines of a preset's `what_if.padded`. Each aligned 8 bytes of these are on a line of their own, which follow each other in the order of their
/// addresses, as in an array of padded elements. Harts that access the same 8 bytes share them as before.
///
/// Not modelled: DMA and page walks, which find the lines where they were; and that what a line held together takes more room in all caches.
pub(crate) struct PaddedLines {
    /// Lines, ascending.
    lines: Vec<u64>,
}

impl PaddedLines {
    /// Returns the padded lines of a preset; `None` if it has none.
    pub(crate) fn of(preset: &Preset) -> Option<Box<Self>> {
        let lines = preset.what_if.padded.iter().filter_map(|text| padded_line(text));
        let mut lines: Vec<u64> = lines.collect();
        lines.sort_unstable();
        lines.dedup();
        (!lines.is_empty()).then(|| Box::new(Self { lines }))
    }

    /// Returns the line on which an address is accessed.
    #[cold]
    #[inline(never)]
    pub(crate) fn line(&self, pa: u64) -> u64 {
        let line = pa >> LINE_BITS;
        match self.lines.binary_search(&line) {
            Ok(number) => {
                let datum = pa >> DATUM_BITS & ((1 << DATA_BITS) - 1);
                FIRST + ((number as u64) << DATA_BITS) + datum
            }
            Err(_) => line,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_datum_of_a_padded_line_has_a_line() {
        let mut preset = Preset::default();
        assert!(PaddedLines::of(&preset).is_none());
        preset.what_if.padded = ["0x80000040", "0x80000100"].map(str::to_owned).into();
        let padded = PaddedLines::of(&preset).unwrap();
        assert_eq!(padded.line(0x8000_0000), 0x0200_0000);
        assert_eq!(padded.line(0x8000_0040), FIRST);
        assert_eq!(padded.line(0x8000_0047), FIRST);
        assert_eq!(padded.line(0x8000_0078), FIRST + 7);
        assert_eq!(padded.line(0x8000_0108), FIRST + 9);
        assert_eq!(padded.line(0x8000_0140), 0x0200_0005);
        for text in ["80000040", "0x", "0xffffffffffffffff"] {
            assert_eq!(padded_line(text), None);
        }
    }
}
