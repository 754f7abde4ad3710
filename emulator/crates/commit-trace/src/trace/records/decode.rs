//! From columns back to records.

use super::{
    COMMIT_MASK, DISPATCH_MASK, DISPATCH_SHIFT, ENTRIES, FAR, FAR_FIRST_OF_ROW, FAR_LEAD_SHIFT,
    FAR_MASK, FIRST_OF_ROW, FIRST_OF_ROW_BIT, FLAGS_PREDICTED, INST_PREDICTED, LEAD_IS_DERIVED,
    LEAD_IS_KEPT, LEAD_IS_OWN, LEAD_KEPT, MAX_DECODE_LEAD, MORE, MORE_SHIFT, RESIDENCE_BITS,
    Tables, derived_lead,
};
use crate::trace::columns::{Column, Columns};
use crate::trace::varint::Cursor;
use crate::{CommitRecord, InstId};

/// Reads records back.
#[derive(Debug)]
pub(in crate::trace) struct RecordDecoder {
    tables: Box<Tables>,
    at: DecoderState,
}

/// How far each column was read, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::trace) struct Progress {
    tokens: usize,
    insts: usize,
    flags: usize,
    commits: usize,
    dispatches: usize,
    leads: usize,
}

impl RecordDecoder {
    pub(in crate::trace) fn new() -> Self {
        Self { tables: Box::new(Tables::EMPTY), at: DecoderState::default() }
    }

    pub(in crate::trace) fn clear(&mut self) {
        *self.tables = Tables::EMPTY;
        self.at = DecoderState::default();
    }

    /// Puts `count` records into `out`, in place of what it holds, and returns the sum of their commit deltas; `None` if the
    /// columns do not hold them, or hold what no encoder writes.
    pub(in crate::trace) fn decode(
        &mut self,
        count: usize,
        columns: &Columns,
        progress: &mut Progress,
        out: &mut Vec<CommitRecord>,
    ) -> Option<u64> {
        let rest = |column: Column, at: usize| Some(Cursor(columns[column].get(at..)?));
        let tokens = columns[Column::Tokens].get(progress.tokens..)?.get(..count)?;
        let mut fields = Fields {
            insts: rest(Column::Insts, progress.insts)?,
            flags: rest(Column::Flags, progress.flags)?,
            commits: rest(Column::Commits, progress.commits)?,
            dispatches: rest(Column::Dispatches, progress.dispatches)?,
            leads: rest(Column::Leads, progress.leads)?,
            damaged: false,
        };
        let tables = &mut *self.tables;
        let DecoderState { mut inst, residence, mut lead } = self.at;
        let mut sums = Sums::new(residence);
        let mut cycles = 0u64;
        // All residences so far, and all leads, combined by OR: if the result is not too long, none of them was.
        let (mut residences, mut leads) = (0, 0);
        let mut slot = inst as usize % ENTRIES;
        // What `out` holds is written over: clearing it first would take as long again.
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
                inst = if step == 0 { next } else { next.wrapping_add(std::hint::black_box(step)) };
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
            let at = DecoderState { inst, residence: sums.residence(), lead };
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
        self.at = DecoderState { inst, residence, lead };
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

/// What a token says if it needs no other column, which is true of nearly all tokens.
#[derive(Clone, Copy)]
struct Plain {
    /// In the lower half the commit delta, in the upper half by how much the residence differs from the last record's.
    sum: u64,
    /// Mask of the last record's decode lead: all bits if this record's lead is counted from it, else none.
    keep: u8,
    /// What is added to the masked lead to get this record's decode lead, in cycles.
    add: u8,
    /// The record's flag for the first of a row.
    row: u32,
}

impl Plain {
    /// Stands for a token that needs other columns.
    const NONE: Self = Self { sum: 1 << 31, keep: 0, add: 0, row: 0 };

    #[inline(always)]
    fn commit(self) -> Option<u32> {
        ((self.sum as i32) >= 0).then_some(self.sum as u32)
    }

    #[inline(always)]
    fn lead(self, last: u32) -> u32 {
        (last & self.keep as i8 as u32).wrapping_add(u32::from(self.add))
    }
}

/// The sum of the [`Plain::sum`]s so far: one addition for commit delta and residence together. The commit deltas of a
/// batch, below 7 each, do not fill the lower half.
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

/// What a decoder knows of the last record.
#[derive(Clone, Copy, Debug, Default)]
struct DecoderState {
    inst: u32,
    /// Residence of the last record, in cycles; it is above its maximum only in columns that no encoder wrote.
    residence: u32,
    /// Decode lead of the last record, in cycles; it is above its maximum only in columns that no encoder wrote.
    lead: u32,
}

impl DecoderState {
    /// Returns the record of a token that needs other columns. `self` is taken by value, so that the loop's state stays in
    /// registers.
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
        let row = if is_far { (token / FAR_FIRST_OF_ROW) & 1 } else { token / FIRST_OF_ROW };
        let flags = &mut tables.flags[inst as usize % ENTRIES];
        if predicted & FLAGS_PREDICTED == 0 {
            *flags = fields.flags();
        }
        let flags = *flags | row << FIRST_OF_ROW_BIT;

        let (dispatch, lead) = if is_far {
            let dispatch = fields.dispatch();
            let lead = match token >> FAR_LEAD_SHIFT & 3 {
                LEAD_IS_DERIVED => derived_lead(row, self.lead, dispatch as u32),
                LEAD_IS_KEPT => self.lead,
                LEAD_IS_OWN => fields.lead(),
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
        let lead = if lead <= MAX_DECODE_LEAD { lead } else { damaged(&mut fields.damaged) };
        let before = i64::from(self.residence);
        let residence = i64::from(commit).wrapping_sub(dispatch.wrapping_sub(before));
        let residence = u32::try_from(residence)
            .ok()
            .filter(|residence| *residence <= CommitRecord::MAX_RESIDENCE)
            .unwrap_or_else(|| damaged(&mut fields.damaged));
        CommitRecord::from_packed(InstId(inst), commit, residence | lead << RESIDENCE_BITS, flags)
    }
}

/// The columns that few records need. What is missing or out of range reads as 0 and sets
/// `damaged`, which is looked at once per batch.
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
        self.insts.signed().unwrap_or_else(|| damaged(&mut self.damaged)) as u32
    }

    fn flags(&mut self) -> u32 {
        self.flags.narrow().unwrap_or_else(|| damaged(&mut self.damaged))
    }

    /// Reads a commit delta, and which fields were predicted.
    fn commit(&mut self) -> (u32, u64) {
        let more = self.commits.number().and_then(|more| {
            let commit = u32::try_from(more >> MORE_SHIFT).ok()?;
            Some((commit, more & (INST_PREDICTED | FLAGS_PREDICTED)))
        });
        more.unwrap_or_else(|| damaged(&mut self.damaged))
    }

    fn dispatch(&mut self) -> i64 {
        self.dispatches.signed().unwrap_or_else(|| damaged(&mut self.damaged))
    }

    fn lead(&mut self) -> u32 {
        self.leads.narrow().unwrap_or_else(|| damaged(&mut self.damaged))
    }
}

#[cold]
fn damaged<T: Default>(flag: &mut bool) -> T {
    *flag = true;
    T::default()
}
