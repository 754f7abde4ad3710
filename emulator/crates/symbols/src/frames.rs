//! Function bounds from unwind tables, for files whose symbols were stripped.

use gimli::{BaseAddresses, CieOrFde, EhFrame, EndianSlice, LittleEndian, UnwindSection};

use super::elf::Elf;

/// More than any real file has: guards against tables that were made to be slow.
const MAX_FUNCTIONS: usize = 4_000_000;

/// `(start, end)` of every function with an entry in `.eh_frame`, sorted, without overlaps.
pub(super) fn functions(elf: &Elf<'_>) -> Vec<(u64, u64)> {
    let bytes = elf.section(".eh_frame");
    let Some((address, _)) = elf.section_range(".eh_frame") else {
        return Vec::new();
    };
    let text = elf.section_range(".text").map_or(0, |(start, _)| start);
    let bases = BaseAddresses::default().set_eh_frame(address).set_text(text);
    let section = EhFrame::from(EndianSlice::new(&bytes, LittleEndian));
    let mut entries = section.entries(&bases);
    let mut found = Vec::new();
    while let Ok(Some(entry)) = entries.next() {
        if let CieOrFde::Fde(partial) = entry
            && let Ok(fde) = partial.parse(EhFrame::cie_from_offset)
            && fde.len() != 0
            && found.len() < MAX_FUNCTIONS
        {
            let start = fde.initial_address();
            found.push((start, start.saturating_add(fde.len())));
        }
    }
    found.sort_unstable();
    let mut end = 0;
    found.retain(|&(from, to)| {
        let keep = from >= end;
        if keep {
            end = to;
        }
        keep
    });
    found
}
