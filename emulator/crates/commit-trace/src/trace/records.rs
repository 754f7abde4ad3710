//! Records as columns: each field is predicted from what the stream did here before.
//!
//! Per record one token byte says which predictions held. It is stored as the difference (XOR) to
//! the token that followed the same instruction last time: a loop in its steady state is all zeros,
//! and what varies is still skewed enough for the entropy coder. Encoder and decoder keep the same
//! [`Predictor`], emptied at each chunk.

use super::columns::{Column, Columns};
use super::varint::{Cursor, put, put_signed};
use crate::{CommitRecord, InstId};

/// Entries of the table; instructions whose numbers agree in the low bits share one.
const ENTRIES: usize = 1 << 14;

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

#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(16))]
struct Entry {
    /// Number of the instruction that followed, less that of the next in order.
    next: u32,
    /// Flags of the instruction's last record, less the row bit.
    flags: u32,
    /// Token of the record that followed.
    token: u8,
}

/// What both sides know after each record.
#[derive(Debug)]
struct Predictor {
    table: Box<[Entry; ENTRIES]>,
    inst: u32,
    /// Dispatch of the last record, relative to its commit: never positive.
    dispatch: i64,
    lead: u32,
}

impl Predictor {
    fn new() -> Self {
        let table = vec![Entry::default(); ENTRIES].into_boxed_slice();
        let table = table.try_into().expect("the length is the array's");
        Self {
            table,
            inst: 0,
            dispatch: 0,
            lead: 0,
        }
    }

    fn clear(&mut self) {
        self.table.fill(Entry::default());
        (self.inst, self.dispatch, self.lead) = (0, 0, 0);
    }

    #[inline]
    fn entry(&mut self, inst: u32) -> &mut Entry {
        &mut self.table[inst as usize % ENTRIES]
    }
}

/// Writes records into columns.
#[derive(Debug)]
pub(super) struct RecordEncoder(Predictor);

impl RecordEncoder {
    pub(super) fn new() -> Self {
        Self(Predictor::new())
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn encode(&mut self, records: &[CommitRecord], columns: &mut Columns) {
        columns[Column::Tokens].reserve(records.len());
        for record in records {
            self.record(record, columns);
        }
    }

    #[inline]
    fn record(&mut self, record: &CommitRecord, columns: &mut Columns) {
        let state = &mut self.0;
        let (lead_word, flags_word) = record.packed();
        let inst = record.inst.0;
        let mut token = 0;

        let next = inst.wrapping_sub(state.inst.wrapping_add(1));
        let before = state.inst;
        let entry = state.entry(before);
        let last_token = entry.token;
        if entry.next == next {
            token |= INST_PREDICTED;
        } else {
            entry.next = next;
            put_signed(&mut columns[Column::Insts], i64::from(next as i32));
        }

        let flags = flags_word & !FIRST_OF_ROW_FLAG;
        let entry = state.entry(inst);
        if entry.flags == flags {
            token |= FLAGS_PREDICTED;
        } else {
            entry.flags = flags;
            put(&mut columns[Column::Flags], u64::from(flags));
        }
        if flags_word & FIRST_OF_ROW_FLAG != 0 {
            token |= FIRST_OF_ROW;
        }

        let commit = record.commit_delta;
        token |= (commit.min(u32::from(ESCAPE)) as u8) << COMMIT_SHIFT;
        if commit >= u32::from(ESCAPE) {
            put(
                &mut columns[Column::Commits],
                u64::from(commit - u32::from(ESCAPE)),
            );
        }

        let residence = i64::from(lead_word & CommitRecord::MAX_RESIDENCE);
        let dispatch = i64::from(commit) - residence - state.dispatch;
        if (0..i64::from(ESCAPE)).contains(&dispatch) {
            token |= (dispatch as u8) << DISPATCH_SHIFT;
        } else {
            token |= ESCAPE << DISPATCH_SHIFT;
            put_signed(&mut columns[Column::Dispatches], dispatch);
        }
        state.dispatch = -residence;

        let lead = lead_word >> RESIDENCE_BITS;
        if lead == state.lead {
            token |= LEAD_PREDICTED;
        } else {
            put(&mut columns[Column::Leads], u64::from(lead));
        }
        state.lead = lead;

        columns[Column::Tokens].push(token ^ last_token);
        state.entry(before).token = token;
        state.inst = inst;
    }
}

/// What the decoder knows: the same as the [`Predictor`], each field in an array of its own. From one record to the next
/// the decoder mostly needs no more than `steps`, which should be near.
#[derive(Debug)]
struct Tables {
    /// From the instruction's number to that of the one that followed.
    steps: [u32; ENTRIES],
    flags: [u32; ENTRIES],
    tokens: [u8; ENTRIES],
}

impl Tables {
    const EMPTY: Self = Self {
        steps: [1; ENTRIES],
        flags: [0; ENTRIES],
        tokens: [0; ENTRIES],
    };
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
            let token = tokens[n] ^ tables.tokens[slot];
            let plain = PLAIN[usize::from(token)];
            if let Some(commit) = plain.commit() {
                tables.tokens[slot] = token;
                let step = tables.steps[slot];
                // Nearly always the next one: a host that foresees it need not wait for `steps`. Without the black box
                // both are one addition.
                inst = if step == 1 {
                    inst.wrapping_add(1)
                } else {
                    inst.wrapping_add(std::hint::black_box(step))
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
        tables.tokens[before] = token;
        if token & INST_PREDICTED == 0 {
            tables.steps[before] = fields.inst().wrapping_add(1);
        }
        let inst = self.inst.wrapping_add(tables.steps[before]);

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
