//! Stages as columns. Each is stored as what the record does not already say: most are small constants.

use super::columns::{Column, Columns};
use super::varint::{Cursor, put, put_signed};
use crate::{CommitRecord, Stages};

/// How far the columns were read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress([usize; 3]);

const COLUMNS: [Column; 3] = [Column::Fetches, Column::Issues, Column::Completes];

/// Returns the cycles from a record's decode to its commit, and from its dispatch to its commit.
fn before_commit(record: &CommitRecord) -> (i64, i64) {
    let residence = i64::from(record.residence());
    (residence + i64::from(record.decode_lead()), residence)
}

pub(super) fn encode(records: &[CommitRecord], stages: &[Stages], columns: &mut Columns) {
    for (record, stages) in records.iter().zip(stages) {
        let (decode, dispatch) = before_commit(record);
        put_signed(&mut columns[Column::Fetches], i64::from(stages.fetch) - decode);
        let issues = &mut columns[Column::Issues];
        match stages.issue {
            0 => issues.push(0),
            issue => {
                // The number is never 0, which says that the instruction never issued.
                let after = dispatch - i64::from(issue);
                put(issues, ((after << 1 ^ after >> 63) + 1) as u64);
            }
        }
        put(&mut columns[Column::Completes], u64::from(stages.complete));
    }
}

/// Appends the stages of `records` to `out`; `None` if the columns do not hold them.
pub(super) fn decode(
    records: &[CommitRecord],
    columns: &Columns,
    progress: &mut Progress,
    out: &mut Vec<Stages>,
) -> Option<()> {
    let rest = |n: usize| Some(Cursor(columns[COLUMNS[n]].get(progress.0[n]..)?));
    let (mut fetches, mut issues, mut completes) = (rest(0)?, rest(1)?, rest(2)?);
    for record in records {
        let (decode, dispatch) = before_commit(record);
        let fetch = decode.checked_add(fetches.signed()?)?;
        let issue = match issues.number()? {
            0 => 0,
            stored => {
                let folded = stored - 1;
                let after = (folded >> 1) as i64 ^ -((folded & 1) as i64);
                dispatch.checked_sub(after)?
            }
        };
        out.push(Stages {
            fetch: fetch.try_into().ok()?,
            issue: issue.try_into().ok()?,
            complete: completes.narrow()?,
        });
    }
    let left = [fetches, issues, completes].map(|cursor| cursor.0.len());
    progress.0 = std::array::from_fn(|n| columns[COLUMNS[n]].len() - left[n]);
    Some(())
}
