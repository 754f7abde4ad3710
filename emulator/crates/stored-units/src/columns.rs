//! Numbers in columns: what writes them, and what reads them, behind one interface, so that one piece of code foresees for both.

use commit_trace::varint::{Cursor, put};

use crate::reader::UnitsError;

/// The columns of a chunk. Some have bytes or numbers that follow each other. In those with surprises, the numbers that come with one stand behind the number of times that there
/// was none before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Column {
    /// Kinds of calls and their flags that are not those of the call before.
    Calls,
    /// Numbers of instructions of runs.
    Counts,
    /// Everything that is rare.
    Rest,
    /// Virtual addresses of data that are not as far as last time from the instruction's own one before, or from that of the instruction before it: from which is foreseen by what
    /// was right before.
    Addresses,
    /// Virtual addresses of data that are neither.
    OtherAddresses,
    /// Instructions that are not those that followed last time.
    Steps,
    /// Where the path goes on after a run, if it is not where it went last time.
    Targets,
    /// Pages of code that are elsewhere in memory.
    CodePages,
    /// Pages of data that are elsewhere in memory, and accesses of another kind.
    DataPages,
    /// While nothing is timed: which of the pages that followed an access to a page before is accessed next, a byte each.
    WarmPages,
    /// While nothing is timed: where a page that is none of those is among the last ones that were none, a byte each.
    RecentPages,
    /// While nothing is timed: pages that are in neither list.
    OtherPages,
    /// While nothing is timed: pages that are elsewhere in memory.
    WarmPlaces,
    /// While nothing is timed: lines of pages, a byte each.
    WarmLines,
    /// While nothing is timed, for code: as [`Self::WarmPages`].
    WarmCodePages,
    /// While nothing is timed, for code: as [`Self::RecentPages`].
    RecentCodePages,
    /// While nothing is timed, for code: as [`Self::WarmLines`].
    WarmCodeLines,
    /// Numbers of segments of the path in each rest, and of the other calls there.
    PathCounts,
    /// Segments of the path that do not begin where the one before ends.
    Starts,
    /// Segments of the path that are not what began there last time.
    Segments,
    /// Branches that do not go where they mostly went after the same branches.
    Directions,
}

impl Column {
    pub(crate) const COUNT: usize = Self::Directions as usize + 1;
    /// Columns of bytes, in which nothing is repeated that is worth looking for.
    pub(crate) const BYTE_COLUMNS: [Self; 6] = [
        Self::WarmPages,
        Self::RecentPages,
        Self::WarmLines,
        Self::WarmCodePages,
        Self::RecentCodePages,
        Self::WarmCodeLines,
    ];
}

/// Writes numbers, or reads them.
pub(crate) trait Coder {
    /// Passes a number on: a writer takes `number`, and a reader returns the one that was written.
    fn number(&mut self, column: Column, number: u64) -> Result<u64, UnitsError>;

    /// Passes a byte on, which only a writer asks for. Only for columns that have nothing else.
    fn byte(&mut self, column: Column, byte: impl FnOnce() -> u8) -> Result<u8, UnitsError>;

    /// Passes on whether something is as foreseen. Only for columns that have surprises.
    fn foreseen(&mut self, column: Column, is: bool) -> Result<bool, UnitsError>;

    /// Passes a signed number on.
    fn signed(&mut self, column: Column, number: i64) -> Result<i64, UnitsError> {
        let folded = self.number(column, (number << 1 ^ number >> 63) as u64)?;
        Ok((folded >> 1) as i64 ^ -((folded & 1) as i64))
    }

    /// Passes on a number that is near another one.
    fn near(&mut self, column: Column, other: u64, number: u64) -> Result<u64, UnitsError> {
        let distance = self.signed(column, number.wrapping_sub(other) as i64)?;
        Ok(other.wrapping_add(distance as u64))
    }
}

/// Columns that are written.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    pub bytes: [Vec<u8>; Column::COUNT],
    /// Surprises that have not come since the last one, by column.
    foreseen: [u64; Column::COUNT],
}

impl Columns {
    /// Returns the bytes of all columns.
    pub(crate) fn len(&self) -> usize {
        self.bytes.iter().map(Vec::len).sum()
    }

    /// Ends what is counted.
    pub(crate) fn end(&mut self) {
        for (bytes, foreseen) in self.bytes.iter_mut().zip(&mut self.foreseen) {
            if *foreseen > 0 {
                put(bytes, std::mem::take(foreseen));
            }
        }
    }

    /// Empties all columns.
    pub(crate) fn clear(&mut self) {
        self.bytes.iter_mut().for_each(Vec::clear);
        self.foreseen = Default::default();
    }
}

impl Coder for Columns {
    #[inline]
    fn number(&mut self, column: Column, number: u64) -> Result<u64, UnitsError> {
        put(&mut self.bytes[column as usize], number);
        Ok(number)
    }

    #[inline]
    fn byte(&mut self, column: Column, byte: impl FnOnce() -> u8) -> Result<u8, UnitsError> {
        let byte = byte();
        self.bytes[column as usize].push(byte);
        Ok(byte)
    }

    #[inline]
    fn foreseen(&mut self, column: Column, is: bool) -> Result<bool, UnitsError> {
        let foreseen = &mut self.foreseen[column as usize];
        match is {
            true => *foreseen += 1,
            false => put(&mut self.bytes[column as usize], std::mem::take(foreseen)),
        }
        Ok(is)
    }
}

/// Columns that are read.
#[derive(Debug, Default)]
pub(crate) struct ReadColumns {
    /// All columns, one after the other.
    bytes: Vec<u8>,
    /// What is left of each column.
    left: [std::ops::Range<usize>; Column::COUNT],
    /// How often nothing surprises before the next surprise, and one more, by column; 0: the column's next number says so.
    foreseen: [u64; Column::COUNT],
}

impl ReadColumns {
    /// Returns columns of so many bytes each, out of all of them.
    pub(crate) fn new(bytes: Vec<u8>, lengths: [usize; Column::COUNT]) -> Option<Self> {
        let mut at = 0;
        let left = lengths.map(|len| {
            let from = at;
            at += len;
            from..at
        });
        (at == bytes.len()).then_some(Self { bytes, left, foreseen: Default::default() })
    }

    /// Returns whether there are no more calls.
    pub(crate) fn is_empty(&self) -> bool {
        let calls = &self.left[Column::Calls as usize];
        calls.start >= calls.end && self.foreseen[Column::Calls as usize] <= 1
    }
}

impl Coder for ReadColumns {
    #[inline]
    fn number(&mut self, column: Column, _: u64) -> Result<u64, UnitsError> {
        let left = &mut self.left[column as usize];
        let mut cursor = Cursor(&self.bytes[left.clone()]);
        let number = cursor.number();
        left.start = left.end - cursor.0.len();
        number.ok_or(UnitsError::Damaged(
            "a column ends before its time, or a number has too many bytes",
        ))
    }

    #[inline]
    fn byte(&mut self, column: Column, _: impl FnOnce() -> u8) -> Result<u8, UnitsError> {
        let left = &mut self.left[column as usize];
        let byte = self.bytes[left.clone()].first();
        let byte = *byte.ok_or(UnitsError::Damaged("a column ends before its time"))?;
        left.start += 1;
        Ok(byte)
    }

    #[inline(always)]
    fn foreseen(&mut self, column: Column, _: bool) -> Result<bool, UnitsError> {
        if self.foreseen[column as usize] == 0 {
            self.foreseen[column as usize] = self.number(column, 0)?.saturating_add(1);
        }
        let left = &mut self.foreseen[column as usize];
        *left -= 1;
        Ok(*left > 0)
    }
}
