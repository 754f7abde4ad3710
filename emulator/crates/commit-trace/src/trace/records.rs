//! Records as columns: each field is predicted from what the stream did here before.
//!
//! Per record one token byte says what most differ in:
//!
//! ```text
//! bits 2..0  commit delta; 7: it, and whether instruction and flags were predicted, is in the commits column
//! bits 5..3  dispatch delta, less 1 for the first of a row (rows enter the ROB in cycles of their own)
//! bit  6     the decode lead is the last record's; otherwise it follows from the dispatch delta
//! bit  7     first of its row
//! ```
//!
//! A decode group waits in the decode stage for the one before it to be dispatched: in most rows the decode lead is one more
//! than the dispatch delta. Others got to decode late, and have the lead of the row before.
//! Bit 6 without bit 7 would say nothing. It is for records that differ more in these two: bit 3 is then the row's,
//! bits 5..4 say where the decode lead is ([`Lead`]), and the dispatch delta is in a column of its own.
//!
//! Code that runs again leaves the same bytes again, which zstd finds; differences to the token that followed the same
//! instruction last time were up to half as large again, and took it up to twice as long. Encoder and decoder keep the
//! same [`Tables`], emptied at each chunk.

use super::columns::{Column, Columns};
use super::varint::{Cursor, put, put_signed};
use crate::{CommitRecord, InstId};

/// Entries of each table; instructions whose numbers agree in the low bits share one. (Perl with Debian's libraries executes
/// some 140,000: with 2^14 entries a trace of it was 1.15 times as large.)
const ENTRIES: usize = 1 << 16;

const COMMIT_MASK: u32 = 7;
/// In a token's commit bits: the commits column says more.
const MORE: u32 = 7;
const DISPATCH_SHIFT: u32 = 3;
const DISPATCH_MASK: u32 = 7;
const LEAD_KEPT: u32 = 1 << 6;
const FIRST_OF_ROW: u32 = 1 << 7;
/// The bits that tell of a token whether its dispatch delta is elsewhere ...
const FAR_MASK: u32 = LEAD_KEPT | FIRST_OF_ROW;
/// ... and how they say so.
const FAR: u32 = LEAD_KEPT;
/// Stands where [`escape`] is to put a token.
const ESCAPES: u8 = FAR as u8 | MORE as u8;
const FAR_FIRST_OF_ROW: u32 = 1 << 3;
const FAR_LEAD_SHIFT: u32 = 4;

/// Beside a commit delta in its column.
const INST_PREDICTED: u64 = 1 << 0;
const FLAGS_PREDICTED: u64 = 1 << 1;
const MORE_SHIFT: u32 = 2;

const FIRST_OF_ROW_BIT: u32 = 3;
const FIRST_OF_ROW_FLAG: u32 = 1 << FIRST_OF_ROW_BIT;
const RESIDENCE_BITS: u32 = CommitRecord::MAX_RESIDENCE.trailing_ones();
const MAX_DECODE_LEAD: u32 = u32::MAX >> RESIDENCE_BITS;

/// Where a decode lead is, if the dispatch delta is not in the token.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Lead {
    /// It follows from the dispatch delta.
    Derived = 0,
    /// As the last record's.
    Kept = 1,
    /// In a column of its own.
    Own = 2,
}

/// What both sides know of each instruction. Each field in an array of its own: from one record to the next the decoder mostly
/// needs no more than `steps`, which should be near.
#[derive(Debug)]
struct Tables {
    /// Number of the instruction that followed, less that of the next in order.
    steps: [u32; ENTRIES],
    /// Flags of the instruction's last record, less the row bit.
    flags: [u32; ENTRIES],
}

impl Tables {
    const EMPTY: Self = Self {
        steps: [0; ENTRIES],
        flags: [0; ENTRIES],
    };
}

/// Writes records into columns.
#[derive(Debug)]
pub(super) struct RecordEncoder {
    tables: Box<Tables>,
    /// Of the last record.
    inst: u32,
    lead: u32,
}

impl RecordEncoder {
    pub(super) fn new() -> Self {
        Self {
            tables: Box::new(Tables::EMPTY),
            inst: 0,
            lead: 0,
        }
    }

    pub(super) fn clear(&mut self) {
        *self.tables = Tables::EMPTY;
        (self.inst, self.lead) = (0, 0);
    }

    /// Adds records; the sum of their commit deltas.
    pub(super) fn encode(&mut self, records: &[CommitRecord], columns: &mut Columns) -> u64 {
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
                let last = n
                    .checked_sub(1)
                    .map_or(self.lead, |n| records[n].packed().0);
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

/// Dispatch and decode lead as a token has them.
struct Near {
    /// If it can.
    holds: bool,
    token: u32,
}

impl Near {
    /// From the packed words of a record and the last one.
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

/// The decode lead that follows from a dispatch delta: a row was decoded when the last one was dispatched, or, by its pieces,
/// all at once.
#[inline(always)]
fn derived_lead(row: u32, before: u32, dispatch: u32) -> u32 {
    let from = if row != 0 { 1 } else { before };
    from.wrapping_add(dispatch)
}

/// The tokens of records, if instruction and flags are as predicted; [`ESCAPES`] where other columns are needed anyway.
/// A loop of its own, without branches: the compiler makes it take four records at a time.
#[inline(never)]
fn near_tokens(last: u32, records: &[CommitRecord], out: &mut [u8]) {
    let Some((first, _)) = records.split_first() else {
        return;
    };
    let token = |last: u32, record: &CommitRecord| {
        let (lead, flags) = record.packed();
        let commit = record.commit_delta;
        let near = Near::of(commit, lead, last, flags);
        let holds = near.holds & (commit & !COMMIT_MASK == 0) & (commit != MORE);
        (if holds {
            near.token | commit
        } else {
            u32::from(ESCAPES)
        }) as u8
    };
    out[0] = token(last, first);
    for (pair, out) in records.windows(2).zip(&mut out[1..]) {
        *out = token(pair[0].packed().0, &pair[1]);
    }
}

/// The token of a record that needs other columns, which it writes.
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
    // Its numbers wrap around.
    if near.holds && dispatch <= i64::from(DISPATCH_MASK + 1) {
        return (near.token | commit_bits) as u8;
    }
    put_signed(&mut columns[Column::Dispatches], dispatch);
    let row = flags >> FIRST_OF_ROW_BIT & 1;
    let (decode, kept) = (lead >> RESIDENCE_BITS, last >> RESIDENCE_BITS);
    let which = if decode == derived_lead(row, kept, dispatch as u32) {
        Lead::Derived
    } else if decode == kept {
        Lead::Kept
    } else {
        put(&mut columns[Column::Leads], u64::from(decode));
        Lead::Own
    };
    let far = FAR | (row * FAR_FIRST_OF_ROW) | ((which as u32) << FAR_LEAD_SHIFT);
    (far | commit_bits) as u8
}

/// Reads records back.
#[derive(Debug)]
pub(super) struct RecordDecoder {
    tables: Box<Tables>,
    at: At,
}

/// How far the columns were read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    tokens: usize,
    insts: usize,
    flags: usize,
    commits: usize,
    dispatches: usize,
    leads: usize,
}

impl RecordDecoder {
    pub(super) fn new() -> Self {
        Self {
            tables: Box::new(Tables::EMPTY),
            at: At::default(),
        }
    }

    pub(super) fn clear(&mut self) {
        *self.tables = Tables::EMPTY;
        self.at = At::default();
    }

    /// Puts `count` records into `out`, in place of what it holds, and returns the sum of their commit deltas; `None` if the
    /// columns do not hold them, or hold what no encoder writes.
    pub(super) fn decode(
        &mut self,
        count: usize,
        columns: &Columns,
        progress: &mut Progress,
        out: &mut Vec<CommitRecord>,
    ) -> Option<u64> {
        let rest = |column: Column, at: usize| Some(Cursor(columns[column].get(at..)?));
        let tokens = columns[Column::Tokens]
            .get(progress.tokens..)?
            .get(..count)?;
        let mut fields = Fields {
            insts: rest(Column::Insts, progress.insts)?,
            flags: rest(Column::Flags, progress.flags)?,
            commits: rest(Column::Commits, progress.commits)?,
            dispatches: rest(Column::Dispatches, progress.dispatches)?,
            leads: rest(Column::Leads, progress.leads)?,
            damaged: false,
        };
        let tables = &mut *self.tables;
        let At {
            mut inst,
            residence,
            mut lead,
        } = self.at;
        let mut sums = Sums::new(residence);
        let mut cycles = 0u64;
        // All residences and leads so far: none was too long if no bit is.
        let (mut residences, mut leads) = (0, 0);
        let mut slot = inst as usize % ENTRIES;
        // What it holds is written over: clearing it first would take as long again.
        out.resize(count, CommitRecord::default());
        let out = &mut out[..count];
        let tokens = &tokens[..count];
        let mut n = 0;
        while n < count {
            let token = tokens[n];
            let plain = PLAIN[usize::from(token)];
            if let Some(commit) = plain.commit() {
                let step = tables.steps[slot];
                // Nearly always the next one: a host that foresees it need not wait for `steps`. Without the black box
                // both are one addition.
                let next = inst.wrapping_add(1);
                inst = if step == 0 {
                    next
                } else {
                    next.wrapping_add(std::hint::black_box(step))
                };
                slot = inst as usize % ENTRIES;
                let flags = tables.flags[slot] | plain.row;
                sums.add(plain);
                let residence = sums.residence();
                lead = plain.lead(lead);
                residences |= residence;
                leads |= lead;
                out[n] = CommitRecord::from_packed(
                    InstId(inst),
                    commit,
                    residence | lead << RESIDENCE_BITS,
                    flags,
                );
                n += 1;
                continue;
            }
            let at = At {
                inst,
                residence: sums.residence(),
                lead,
            };
            let record = at.next(token, tables, &mut fields);
            inst = record.inst.0;
            slot = inst as usize % ENTRIES;
            sums.set_residence(record.residence());
            lead = record.decode_lead();
            cycles += u64::from(record.commit_delta);
            out[n] = record;
            n += 1;
        }
        let residence = sums.residence();
        cycles += u64::from(sums.cycles());
        self.at = At {
            inst,
            residence,
            lead,
        };
        let read = |column: Column, cursor: &Cursor<'_>| columns[column].len() - cursor.0.len();
        *progress = Progress {
            tokens: progress.tokens + count,
            insts: read(Column::Insts, &fields.insts),
            flags: read(Column::Flags, &fields.flags),
            commits: read(Column::Commits, &fields.commits),
            dispatches: read(Column::Dispatches, &fields.dispatches),
            leads: read(Column::Leads, &fields.leads),
        };
        let holds = residences <= CommitRecord::MAX_RESIDENCE && leads <= MAX_DECODE_LEAD;
        (!fields.damaged && holds).then_some(cycles)
    }
}

/// What a token says that needs no other column: nearly all are such.
#[derive(Clone, Copy)]
struct Plain {
    /// The lower half is its commit delta, the upper by how much the residence differs from the last record's.
    sum: u64,
    /// The decode lead: these bits of the last one, and so much more.
    keep: u8,
    add: u8,
    /// The record's flag.
    row: u32,
}

impl Plain {
    /// Of a token that needs other columns.
    const NONE: Self = Self {
        sum: 1 << 31,
        keep: 0,
        add: 0,
        row: 0,
    };

    #[inline(always)]
    fn commit(self) -> Option<u32> {
        ((self.sum as i32) >= 0).then_some(self.sum as u32)
    }

    #[inline(always)]
    fn lead(self, last: u32) -> u32 {
        (last & self.keep as i8 as u32).wrapping_add(u32::from(self.add))
    }
}

/// A sum of [`Plain`]s: one addition for two. The commit deltas of a batch, below 7 each, do not fill the lower half.
#[derive(Clone, Copy)]
struct Sums(u64);

impl Sums {
    fn new(residence: u32) -> Self {
        Self(u64::from(residence) << 32)
    }

    #[inline(always)]
    fn add(&mut self, plain: Plain) {
        self.0 = self.0.wrapping_add(plain.sum);
    }

    #[inline(always)]
    fn residence(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline(always)]
    fn set_residence(&mut self, residence: u32) {
        self.0 = u64::from(residence) << 32 | u64::from(self.cycles());
    }

    #[inline(always)]
    fn cycles(self) -> u32 {
        self.0 as u32
    }
}

const PLAIN: [Plain; 256] = {
    let mut plain = [Plain::NONE; 256];
    let mut token = 0;
    while token < plain.len() {
        let bits = token as u32;
        let commit = bits & COMMIT_MASK;
        if commit != MORE && bits & FAR_MASK != FAR {
            let row = bits / FIRST_OF_ROW;
            let dispatch = (bits >> DISPATCH_SHIFT & DISPATCH_MASK) + row;
            let change = commit.wrapping_sub(dispatch);
            let (keep, add) = match (row, bits & LEAD_KEPT) {
                (0, _) => (u8::MAX, dispatch),
                (_, 0) => (0, dispatch + 1),
                _ => (u8::MAX, 0),
            };
            plain[token] = Plain {
                sum: (change as u64) << 32 | commit as u64,
                keep,
                add: add as u8,
                row: row << FIRST_OF_ROW_BIT,
            };
        }
        token += 1;
    }
    plain
};

/// Where a decoder is.
#[derive(Clone, Copy, Debug, Default)]
struct At {
    inst: u32,
    /// Of the last record; above their maxima in what no encoder writes.
    residence: u32,
    lead: u32,
}

impl At {
    /// The record of a token that needs other columns. By value, so that the loop's state stays in registers.
    #[inline(never)]
    fn next(self, token: u8, tables: &mut Tables, fields: &mut Fields<'_>) -> CommitRecord {
        let token = u32::from(token);
        let (commit, predicted) = match token & COMMIT_MASK {
            MORE => fields.commit(),
            commit => (commit, INST_PREDICTED | FLAGS_PREDICTED),
        };
        let before = self.inst as usize % ENTRIES;
        if predicted & INST_PREDICTED == 0 {
            tables.steps[before] = fields.inst();
        }
        let inst = self.inst.wrapping_add(1).wrapping_add(tables.steps[before]);

        let is_far = token & FAR_MASK == FAR;
        let row = if is_far {
            (token / FAR_FIRST_OF_ROW) & 1
        } else {
            token / FIRST_OF_ROW
        };
        let flags = &mut tables.flags[inst as usize % ENTRIES];
        if predicted & FLAGS_PREDICTED == 0 {
            *flags = fields.flags();
        }
        let flags = *flags | row << FIRST_OF_ROW_BIT;

        let (dispatch, lead) = if is_far {
            let dispatch = fields.dispatch();
            let lead = match token >> FAR_LEAD_SHIFT & 3 {
                lead if lead == Lead::Derived as u32 => {
                    derived_lead(row, self.lead, dispatch as u32)
                }
                lead if lead == Lead::Kept as u32 => self.lead,
                lead if lead == Lead::Own as u32 => fields.lead(),
                _ => u32::MAX,
            };
            (dispatch, lead)
        } else {
            let dispatch = (token >> DISPATCH_SHIFT & DISPATCH_MASK) + row;
            let lead = if token & LEAD_KEPT == 0 {
                derived_lead(row, self.lead, dispatch)
            } else {
                self.lead
            };
            (i64::from(dispatch), lead)
        };
        let lead = if lead <= MAX_DECODE_LEAD {
            lead
        } else {
            damaged(&mut fields.damaged)
        };
        let before = i64::from(self.residence);
        let residence = i64::from(commit).wrapping_sub(dispatch.wrapping_sub(before));
        let residence = u32::try_from(residence)
            .ok()
            .filter(|residence| *residence <= CommitRecord::MAX_RESIDENCE)
            .unwrap_or_else(|| damaged(&mut fields.damaged));
        CommitRecord::from_packed(
            InstId(inst),
            commit,
            residence | lead << RESIDENCE_BITS,
            flags,
        )
    }
}

/// The columns that few records need. What is missing or out of range reads as 0 and sets `damaged`,
/// which is looked at once per batch.
struct Fields<'a> {
    insts: Cursor<'a>,
    flags: Cursor<'a>,
    commits: Cursor<'a>,
    dispatches: Cursor<'a>,
    leads: Cursor<'a>,
    damaged: bool,
}

impl Fields<'_> {
    fn inst(&mut self) -> u32 {
        self.insts
            .signed()
            .unwrap_or_else(|| damaged(&mut self.damaged)) as u32
    }

    fn flags(&mut self) -> u32 {
        self.flags
            .narrow()
            .unwrap_or_else(|| damaged(&mut self.damaged))
    }

    /// A commit delta, and which fields were predicted.
    fn commit(&mut self) -> (u32, u64) {
        let more = self.commits.number().and_then(|more| {
            let commit = u32::try_from(more >> MORE_SHIFT).ok()?;
            Some((commit, more & (INST_PREDICTED | FLAGS_PREDICTED)))
        });
        more.unwrap_or_else(|| damaged(&mut self.damaged))
    }

    fn dispatch(&mut self) -> i64 {
        self.dispatches
            .signed()
            .unwrap_or_else(|| damaged(&mut self.damaged))
    }

    fn lead(&mut self) -> u32 {
        self.leads
            .narrow()
            .unwrap_or_else(|| damaged(&mut self.damaged))
    }
}

#[cold]
fn damaged<T: Default>(flag: &mut bool) -> T {
    *flag = true;
    T::default()
}
