//! Fills in the functions' lengths in split debug information. GNU as for RISC-V leaves differences of addresses to the linker,
//! which never sees `.dwo` files: functions there have a start and the length 0. A function's end is taken from the symbol
//! table. An inlined one ends where the code from its start on no longer belongs to its source lines.

use std::collections::{BTreeSet, HashMap};

use gimli::{AttributeValue, Dwarf, EndianSlice, LittleEndian, Unit, UnitOffset, constants as dw};

use super::table::Table;

type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// A function, out of line or inlined.
struct Entry {
    depth: isize,
    at: UnitOffset,
    is_inlined: bool,
    low: Option<u64>,
    /// Offset and size in bytes of its length in the section, if the length is 0.
    length: Option<(usize, usize)>,
    /// The entry of the abstract instance or declaration that it refers to.
    origin: Option<UnitOffset>,
    /// File and line of its declaration.
    declared: Option<(u64, u64)>,
}

/// A row of the line table: address, file, line.
type LineRow = (u64, u64, u64);

/// `.debug_info` of `split` with the missing lengths; `None` if none is missing. `skeleton` is its unit in the program `main`.
pub(super) fn completed(
    split: &Dwarf<Reader<'_>>,
    main: &Dwarf<Reader<'_>>,
    skeleton: &Unit<Reader<'_>>,
    table: &Table<'_>,
) -> Result<Option<Vec<u8>>, gimli::Error> {
    let entries = entries(split, main, skeleton)?;
    if !entries.iter().any(|entry| entry.length.is_some() && entry.low.is_some()) {
        return Ok(None);
    }
    let rows = rows(skeleton)?;
    let spans = Spans::new(&entries);
    let mut bytes = gimli::Section::reader(&split.debug_info).slice().to_vec();
    // Depth and end of the functions that contain the present one.
    let mut around: Vec<(isize, u64)> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        around.retain(|(depth, _)| *depth < entry.depth);
        let (Some(low), Some((at, len))) = (entry.low, entry.length) else {
            continue;
        };
        let limit = around.last().map_or(u64::MAX, |(_, end)| *end);
        let end = match entry.is_inlined {
            false => table.find(low).map_or(low, |function| function.end),
            true => {
                let inside =
                    entries[index + 1..].iter().take_while(|inner| inner.depth > entry.depth);
                let owners: Vec<_> = std::iter::once(entry)
                    .chain(inside)
                    .filter_map(|entry| spans.declared(entry))
                    .collect();
                end_of(&rows, low, |row| owners.iter().any(|owner| spans.holds(*owner, row)))
            }
        };
        let end = end.min(limit).max(low);
        around.push((entry.depth, end));
        if let Some(place) = bytes.get_mut(at..at + len) {
            place.copy_from_slice(&(end - low).to_le_bytes()[..len]);
        }
    }
    Ok(Some(bytes))
}

/// The functions of the only unit of `split`.
fn entries(
    split: &Dwarf<Reader<'_>>,
    main: &Dwarf<Reader<'_>>,
    skeleton: &Unit<Reader<'_>>,
) -> Result<Vec<Entry>, gimli::Error> {
    let mut found = Vec::new();
    let Some(header) = split.units().next()? else {
        return Ok(found);
    };
    let start = header.debug_info_offset().map_or(0, |offset| offset.0);
    let abbreviations = split.abbreviations(&header)?;
    let mut input = header.entries_raw(&abbreviations, None)?;
    while !input.is_empty() {
        let (depth, at) = (input.next_depth(), input.next_offset());
        let Some(abbreviation) = input.read_abbreviation()? else {
            continue;
        };
        let is_inlined = abbreviation.tag() == dw::DW_TAG_inlined_subroutine;
        if !is_inlined && abbreviation.tag() != dw::DW_TAG_subprogram {
            input.skip_attributes(abbreviation.attributes())?;
            continue;
        }
        let mut entry =
            Entry { depth, at, is_inlined, low: None, length: None, origin: None, declared: None };
        let (mut file, mut line) = (None, None);
        for spec in abbreviation.attributes() {
            let from = input.next_offset().0;
            let attribute = input.read_attribute(*spec)?;
            let len = input.next_offset().0 - from;
            match (attribute.name(), attribute.value()) {
                (dw::DW_AT_low_pc, AttributeValue::Addr(low)) => entry.low = Some(low),
                (dw::DW_AT_low_pc, AttributeValue::DebugAddrIndex(index)) => {
                    entry.low = main.address(skeleton, index).ok();
                }
                (dw::DW_AT_high_pc, value) if value.udata_value() == Some(0) && len <= 8 => {
                    entry.length = Some((start + from, len));
                }
                (
                    dw::DW_AT_abstract_origin | dw::DW_AT_specification,
                    AttributeValue::UnitRef(origin),
                ) => entry.origin = Some(origin),
                (dw::DW_AT_decl_file, AttributeValue::FileIndex(index)) => file = Some(index),
                (dw::DW_AT_decl_line, value) => line = value.udata_value(),
                _ => {}
            }
        }
        entry.declared = file.zip(line);
        found.push(entry);
    }
    Ok(found)
}

/// Rows of the program's line table, by address.
fn rows(skeleton: &Unit<Reader<'_>>) -> Result<Vec<LineRow>, gimli::Error> {
    let mut found = Vec::new();
    if let Some(program) = &skeleton.line_program {
        let mut rows = program.clone().rows();
        while let Some((_, row)) = rows.next_row()? {
            let line = row.line().map_or(0, |line| line.get());
            let file = if row.end_sequence() { u64::MAX } else { row.file_index() };
            found.push((row.address(), file, line));
        }
    }
    found.sort_by_key(|row| row.0);
    Ok(found)
}

/// The end of the code from `low` on whose rows satisfy `hold`.
fn end_of(rows: &[LineRow], low: u64, hold: impl Fn(&LineRow) -> bool) -> u64 {
    let first = rows.partition_point(|row| row.0 <= low);
    // Where an address has several rows, the last one is valid.
    let rest = &rows[first..];
    let ends = (0..rest.len()).find(|at| {
        let last_of_address = rest.get(at + 1).is_none_or(|next| next.0 != rest[*at].0);
        last_of_address && !hold(&rest[*at])
    });
    ends.map_or(low, |at| rest[at].0)
}

/// Declarations by file and line. A function's lines are those from its declaration to the next one in the file.
struct Spans<'a> {
    by_offset: HashMap<UnitOffset, &'a Entry>,
    starts: BTreeSet<(u64, u64)>,
}

impl<'a> Spans<'a> {
    fn new(entries: &'a [Entry]) -> Self {
        Self {
            by_offset: entries.iter().map(|entry| (entry.at, entry)).collect(),
            starts: entries.iter().filter_map(|entry| entry.declared).collect(),
        }
    }

    /// File and line of the declaration of the function that an entry is an instance of.
    fn declared(&self, entry: &Entry) -> Option<(u64, u64)> {
        let mut entry = entry;
        // The chain is: an instance, its abstract instance, that one's declaration in a class.
        for _ in 0..3 {
            if entry.declared.is_some() {
                return entry.declared;
            }
            entry = self.by_offset.get(&entry.origin?)?;
        }
        entry.declared
    }

    fn holds(&self, declared: (u64, u64), &(_, file, line): &LineRow) -> bool {
        let last = self.starts.range(..=(file, line)).next_back();
        line == 0 && file != u64::MAX || last == Some(&declared) && file == declared.0
    }
}
