//! What every sample should have said: of each static instruction how often it executed, missed, was mispredicted and how long it
//! took; of each cache line who accessed it, who waited for whom, and whether harts shared its bytes or only its line.
//!
//! A [`Collector`] hears what leaves one hart's ROB, with the [details](commit_trace::Detail) that the timing core gives while it is
//! observed. Collectors of several harts share [`Lines`]. [`Truth`] is the file made of both, with names.
//!
//! ```
//! use commit_trace::{CommitRecord, Detail, InstId};
//! use truth::{Collector, SharedLines};
//!
//! let mut collector = Collector::new(0, SharedLines::new(1));
//! collector.open();
//! let detail = Detail { decode: 1, dispatch: 3, issue: 4, complete: 6, ..Detail::default() };
//! collector.commits(0, &[CommitRecord::from_packed(InstId(0), 7, 0, 0)], &[detail]);
//! let counts = &collector.finish(|_| true).instructions[0].counts;
//! assert_eq!((counts.executed, counts.total_cycles, counts.head_cycles), (1, 6, 4));
//! ```
//!
//! Not modelled: accesses of page-table walks, of prefetchers and of wrong paths are in no count; hardware counters have the first two.

mod collect;
mod counts;
mod file;
mod hex;
mod lines;
mod metric;
mod records;
mod row;
mod rows;
mod schema;
mod short;

pub use collect::Collector;
pub use counts::{BUCKETS, Counts, Memory, bucket};
pub use file::{
    Exchange, FORMAT, Instruction, LeftOut, Line, LineAccess, Process, Sharing, Truth, UnitTotals,
};
pub use lines::{ExchangeCounts, ExchangeKey, LINE_BYTES, LineUse, Lines, SharedLines};
pub use metric::Metric;
pub use records::{Executions, LatencyCount, RecordFilter, step};
pub use row::Columns;
pub use rows::{Counted, HartCounts};
pub use schema::ClassName;

#[cfg(test)]
mod tests;
