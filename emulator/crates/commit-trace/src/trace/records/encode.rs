//! From records to columns.

use multiversion::multiversion;

use super::{
    COMMIT_MASK, DISPATCH_MASK, DISPATCH_SHIFT, ENTRIES, FAR, FAR_FIRST_OF_ROW, FAR_LEAD_SHIFT,
    FIRST_OF_ROW, FIRST_OF_ROW_BIT, FIRST_OF_ROW_FLAG, FLAGS_PREDICTED, INST_PREDICTED,
    LEAD_IS_DERIVED, LEAD_IS_KEPT, LEAD_IS_OWN, LEAD_KEPT, MORE, MORE_SHIFT, RESIDENCE_BITS,
    Tables, derived_lead,
};
use crate::CommitRecord;
use crate::trace::columns::{Column, Columns};
use crate::trace::varint::{put, put_signed};

/// Stands where [`escape`] is to put a token.
const ESCAPES: u8 = FAR as u8 | MORE as u8;

/// Writes records into columns.
#[derive(Debug)]
pub(in crate::trace) struct RecordEncoder {
    tables: Box<Tables>,
    /// Number of the last record's instruction.
    inst: u32,
    /// The last record's packed word of residence and decode lead.
    lead: u32,
}

impl RecordEncoder {
    pub(in crate::trace) fn new() -> Self {
        Self { tables: Box::new(Tables::EMPTY), inst: 0, lead: 0 }
    }

    pub(in crate::trace) fn clear(&mut self) {
        *self.tables = Tables::EMPTY;
        (self.inst, self.lead) = (0, 0);
    }

    /// Adds records, and returns the sum of their commit deltas.
    pub(in crate::trace) fn encode(
        &mut self,
        records: &[CommitRecord],
        columns: &mut Columns,
    ) -> u64 {
        let mut cycles = 0;
        let mut tokens = std::mem::take(&mut columns[Column::Tokens]);
        let first = tokens.len();
        tokens.resize(first + records.len(), 0);
        let out = &mut tokens[first..];
        near_tokens(self.lead, records, out);
        let tables = &mut *self.tables;
        let mut before = self.inst;
        for n in 0..records.len().min(out.len()) {
            let record = &records[n];
            let flags = record.packed().1;
            let inst = record.inst.0;
            let (from, to) = (before as usize % ENTRIES, inst as usize % ENTRIES);
            let step = inst.wrapping_sub(before.wrapping_add(1));
            let differs =
                (step ^ tables.steps[from]) | ((flags & !FIRST_OF_ROW_FLAG) ^ tables.flags[to]);
            cycles += u64::from(record.commit_delta);
            if (differs != 0) | (out[n] == ESCAPES) {
                let last = n.checked_sub(1).map_or(self.lead, |n| records[n].packed().0);
                out[n] = escape(record, before, last, tables, columns);
            }
            before = inst;
        }
        if let Some(record) = records.last() {
            (self.inst, self.lead) = (record.inst.0, record.packed().0);
        }
        columns[Column::Tokens] = tokens;
        cycles
    }
}

/// Dispatch delta and decode lead as a token holds them.
struct Near {
    /// True if a token can hold them.
    holds: bool,
    /// The token's bits, except those of the commit delta.
    token: u32,
}

impl Near {
    /// Computes dispatch delta and decode lead from the packed words of a record and of the last one.
    #[inline(always)]
    fn of(commit: u32, lead: u32, last: u32, flags: u32) -> Self {
        let row = flags >> FIRST_OF_ROW_BIT & 1;
        let dispatch = commit
            .wrapping_sub(lead & CommitRecord::MAX_RESIDENCE)
            .wrapping_add(last & CommitRecord::MAX_RESIDENCE);
        let small = dispatch.wrapping_sub(row);
        let (decode, before) = (lead >> RESIDENCE_BITS, last >> RESIDENCE_BITS);
        let is_derived = decode == derived_lead(row, before, dispatch);
        let is_kept = (decode ^ before) | (row ^ 1) == 0;
        Self {
            holds: (small & !DISPATCH_MASK == 0) & (is_derived | is_kept),
            token: (small << DISPATCH_SHIFT)
                | (u32::from(!is_derived) * LEAD_KEPT)
                | (row * FIRST_OF_ROW),
        }
    }
}

/// Writes the tokens of records whose instruction and flags are as predicted; [`ESCAPES`] where other columns are needed
/// anyway. It is a loop of its own, without branches: the compiler makes it take four to sixteen records at a time.
#[multiversion(targets = "simd")]
fn near_tokens(mut last: u32, records: &[CommitRecord], out: &mut [u8]) {
    for (record, out) in records.iter().zip(out) {
        let (lead, flags) = record.packed();
        let commit = record.commit_delta;
        let near = Near::of(commit, lead, last, flags);
        let holds = near.holds & (commit & !COMMIT_MASK == 0) & (commit != MORE);
        let token = if holds { near.token | commit } else { u32::from(ESCAPES) };
        *out = token as u8;
        last = lead;
    }
}

/// Returns the token of a record that needs other columns, and writes those.
#[inline(never)]
fn escape(
    record: &CommitRecord,
    before: u32,
    last: u32,
    tables: &mut Tables,
    columns: &mut Columns,
) -> u8 {
    let (lead, flags) = record.packed();
    let inst = record.inst.0;
    let commit = record.commit_delta;
    let mut predicted = 0;
    let step = inst.wrapping_sub(before.wrapping_add(1));
    let known = &mut tables.steps[before as usize % ENTRIES];
    if *known == step {
        predicted |= INST_PREDICTED;
    } else {
        *known = step;
        put_signed(&mut columns[Column::Insts], i64::from(step as i32));
    }
    let stable = flags & !FIRST_OF_ROW_FLAG;
    let known = &mut tables.flags[inst as usize % ENTRIES];
    if *known == stable {
        predicted |= FLAGS_PREDICTED;
    } else {
        *known = stable;
        put(&mut columns[Column::Flags], u64::from(stable));
    }
    let commit_bits = if predicted == INST_PREDICTED | FLAGS_PREDICTED && commit < MORE {
        commit
    } else {
        let more = u64::from(commit) << MORE_SHIFT | predicted;
        put(&mut columns[Column::Commits], more);
        MORE
    };
    let residence = |lead: u32| i64::from(lead & CommitRecord::MAX_RESIDENCE);
    let dispatch = i64::from(commit) - residence(lead) + residence(last);
    let near = Near::of(commit, lead, last, flags);
    // The numbers in `near` wrap around: the dispatch delta may be too large all the same.
    if near.holds && dispatch <= i64::from(DISPATCH_MASK + 1) {
        return (near.token | commit_bits) as u8;
    }
    put_signed(&mut columns[Column::Dispatches], dispatch);
    let row = flags >> FIRST_OF_ROW_BIT & 1;
    let (decode, kept) = (lead >> RESIDENCE_BITS, last >> RESIDENCE_BITS);
    let which = if decode == derived_lead(row, kept, dispatch as u32) {
        LEAD_IS_DERIVED
    } else if decode == kept {
        LEAD_IS_KEPT
    } else {
        put(&mut columns[Column::Leads], u64::from(decode));
        LEAD_IS_OWN
    };
    let far = FAR | (row * FAR_FIRST_OF_ROW) | (which << FAR_LEAD_SHIFT);
    (far | commit_bits) as u8
}
