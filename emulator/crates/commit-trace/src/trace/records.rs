//! Records as columns: each field is predicted from what the stream did here before.
//!
//! Per record one token byte says which predictions held. Code that runs again leaves the same bytes again, which zstd
//! finds; differences to the token that followed the same instruction last time were up to half as large again, and took
//! it up to twice as long. Encoder and decoder keep the same [`Tables`], emptied at each chunk.

use super::columns::{Column, Columns};
use super::varint::{Cursor, put, put_signed};
use crate::{CommitRecord, InstId};

/// Entries of each table; instructions whose numbers agree in the low bits share one. (Perl with Debian's libraries executes
/// some 140,000: with 2^14 entries a trace of it was 1.15 times as large.)
const ENTRIES: usize = 1 << 16;

const INST_PREDICTED: u8 = 1 << 0;
const FLAGS_PREDICTED: u8 = 1 << 1;
const COMMIT_SHIFT: u32 = 2;
const DISPATCH_SHIFT: u32 = 4;
const LEAD_PREDICTED: u8 = 1 << 6;
const FIRST_OF_ROW: u8 = 1 << 7;
/// In a token's two-bit delta: the delta is in its own column.
const ESCAPE: u8 = 3;

const FIRST_OF_ROW_BIT: u32 = 3;
const FIRST_OF_ROW_FLAG: u32 = 1 << FIRST_OF_ROW_BIT;
const RESIDENCE_BITS: u32 = CommitRecord::MAX_RESIDENCE.trailing_ones();

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
        let tables = &mut *self.tables;
        let (mut before, mut last) = (self.inst, self.lead);
        for (record, out) in records.iter().zip(&mut tokens[first..]) {
            let (lead, flags) = record.packed();
            let inst = record.inst.0;
            let (from, to) = (before as usize % ENTRIES, inst as usize % ENTRIES);
            let step = inst.wrapping_sub(before.wrapping_add(1));
            let commit = record.commit_delta;
            cycles += u64::from(commit);
            let dispatch = commit
                .wrapping_sub(lead & CommitRecord::MAX_RESIDENCE)
                .wrapping_add(last & CommitRecord::MAX_RESIDENCE);
            let differs = (step ^ tables.steps[from])
                | ((flags & !FIRST_OF_ROW_FLAG) ^ tables.flags[to])
                | ((lead ^ last) >> RESIDENCE_BITS);
            let is_plain =
                (differs == 0) & (commit < u32::from(ESCAPE)) & (dispatch < u32::from(ESCAPE));
            let row =
                (flags & FIRST_OF_ROW_FLAG) << (FIRST_OF_ROW.trailing_zeros() - FIRST_OF_ROW_BIT);
            *out = if is_plain {
                let predicted = u32::from(INST_PREDICTED | FLAGS_PREDICTED | LEAD_PREDICTED);
                (predicted | commit << COMMIT_SHIFT | dispatch << DISPATCH_SHIFT | row) as u8
            } else {
                escape(record, before, last, tables, columns) | row as u8
            };
            (before, last) = (inst, lead);
        }
        (self.inst, self.lead) = (before, last);
        columns[Column::Tokens] = tokens;
        cycles
    }
}

/// The token, less the row bit, of a record that needs other columns, which it writes.
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
    let mut token = 0;
    let step = inst.wrapping_sub(before.wrapping_add(1));
    let known = &mut tables.steps[before as usize % ENTRIES];
    if *known == step {
        token |= INST_PREDICTED;
    } else {
        *known = step;
        put_signed(&mut columns[Column::Insts], i64::from(step as i32));
    }
    let flags = flags & !FIRST_OF_ROW_FLAG;
    let known = &mut tables.flags[inst as usize % ENTRIES];
    if *known == flags {
        token |= FLAGS_PREDICTED;
    } else {
        *known = flags;
        put(&mut columns[Column::Flags], u64::from(flags));
    }
    let commit = record.commit_delta;
    token |= (commit.min(u32::from(ESCAPE)) as u8) << COMMIT_SHIFT;
    if commit >= u32::from(ESCAPE) {
        put(
            &mut columns[Column::Commits],
            u64::from(commit - u32::from(ESCAPE)),
        );
    }
    let residence = |lead: u32| i64::from(lead & CommitRecord::MAX_RESIDENCE);
    let dispatch = i64::from(commit) - residence(lead) + residence(last);
    if (0..i64::from(ESCAPE)).contains(&dispatch) {
        token |= (dispatch as u8) << DISPATCH_SHIFT;
    } else {
        token |= ESCAPE << DISPATCH_SHIFT;
        put_signed(&mut columns[Column::Dispatches], dispatch);
    }
    if (lead ^ last) >> RESIDENCE_BITS == 0 {
        token |= LEAD_PREDICTED;
    } else {
        put(
            &mut columns[Column::Leads],
            u64::from(lead >> RESIDENCE_BITS),
        );
    }
    token
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
        // All residences so far: none was too long if no bit is.
        let mut residences = 0;
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
                let flags = tables.flags[slot] | row_flag(token);
                sums.add(plain);
                let residence = sums.residence();
                residences |= residence;
                out[n] = CommitRecord::from_packed(InstId(inst), commit, residence | lead, flags);
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
            lead = record.packed().0 - record.residence();
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
        (!fields.damaged && residences <= CommitRecord::MAX_RESIDENCE).then_some(cycles)
    }
}

/// The flag that a token holds.
#[inline(always)]
fn row_flag(token: u8) -> u32 {
    u32::from(token) >> (FIRST_OF_ROW.trailing_zeros() - FIRST_OF_ROW_BIT) & FIRST_OF_ROW_FLAG
}

/// What a token says that needs no other column: nearly all are such. The lower half is its commit delta, the upper by
/// how much the residence differs from the last record's.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Plain(u64);

impl Plain {
    /// Of a token that needs other columns.
    const NONE: Self = Self(1 << 31);

    #[inline(always)]
    fn commit(self) -> Option<u32> {
        ((self.0 as i32) >= 0).then_some(self.0 as u32)
    }
}

/// A sum of [`Plain`]s: one addition for two. The commit deltas of a batch, below 3 each, do not fill the lower half.
#[derive(Clone, Copy)]
struct Sums(u64);

impl Sums {
    fn new(residence: u32) -> Self {
        Self(u64::from(residence) << 32)
    }

    #[inline(always)]
    fn add(&mut self, plain: Plain) {
        self.0 = self.0.wrapping_add(plain.0);
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
    let predicted = INST_PREDICTED | FLAGS_PREDICTED | LEAD_PREDICTED;
    let mut token = 0;
    while token < plain.len() {
        let bits = token as u8;
        let commit = bits >> COMMIT_SHIFT & ESCAPE;
        let dispatch = bits >> DISPATCH_SHIFT & ESCAPE;
        if bits & predicted == predicted && commit != ESCAPE && dispatch != ESCAPE {
            let change = commit as i32 - dispatch as i32;
            plain[token] = Plain((change as u32 as u64) << 32 | commit as u64);
        }
        token += 1;
    }
    plain
};

/// Where a decoder is.
#[derive(Clone, Copy, Debug, Default)]
struct At {
    inst: u32,
    /// Of the last record; above its maximum in what no encoder writes.
    residence: u32,
    /// As a record packs it.
    lead: u32,
}

impl At {
    /// The record of a token that needs other columns. By value, so that the loop's state stays in registers.
    #[inline(never)]
    fn next(self, token: u8, tables: &mut Tables, fields: &mut Fields<'_>) -> CommitRecord {
        let before = self.inst as usize % ENTRIES;
        if token & INST_PREDICTED == 0 {
            tables.steps[before] = fields.inst();
        }
        let inst = self.inst.wrapping_add(1).wrapping_add(tables.steps[before]);

        let flags = &mut tables.flags[inst as usize % ENTRIES];
        if token & FLAGS_PREDICTED == 0 {
            *flags = fields.flags();
        }
        let flags = *flags | row_flag(token);

        let mut commit = u32::from(token >> COMMIT_SHIFT & ESCAPE);
        if commit == u32::from(ESCAPE) {
            commit = fields.commit();
        }
        let mut dispatch = i64::from(token >> DISPATCH_SHIFT & ESCAPE);
        if dispatch == i64::from(ESCAPE) {
            dispatch = fields.dispatch();
        }
        let before = i64::from(self.residence);
        let residence = i64::from(commit).wrapping_sub(dispatch.wrapping_sub(before));
        let residence = u32::try_from(residence)
            .ok()
            .filter(|residence| *residence <= CommitRecord::MAX_RESIDENCE)
            .unwrap_or_else(|| damaged(&mut fields.damaged));

        let mut lead = self.lead;
        if token & LEAD_PREDICTED == 0 {
            lead = fields.lead() << RESIDENCE_BITS;
        }
        CommitRecord::from_packed(InstId(inst), commit, residence | lead, flags)
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

    fn commit(&mut self) -> u32 {
        let delta = self
            .commits
            .narrow::<u32>()
            .and_then(|n| n.checked_add(u32::from(ESCAPE)));
        delta.unwrap_or_else(|| damaged(&mut self.damaged))
    }

    fn dispatch(&mut self) -> i64 {
        self.dispatches
            .signed()
            .unwrap_or_else(|| damaged(&mut self.damaged))
    }

    fn lead(&mut self) -> u32 {
        let lead = self
            .leads
            .narrow()
            .filter(|lead| *lead <= u32::MAX >> RESIDENCE_BITS);
        lead.unwrap_or_else(|| damaged(&mut self.damaged))
    }
}

#[cold]
fn damaged<T: Default>(flag: &mut bool) -> T {
    *flag = true;
    T::default()
}
