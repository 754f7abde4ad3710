//! A chunk's columns: like lies beside like, and compresses.

/// What each column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Column {
    /// Static instructions.
    StaticInfo,
    /// Per batch: its number, start cycle and sizes.
    Batches,
    /// Events.
    Events,
    /// One byte per record: which of its fields were predicted, small deltas.
    Tokens,
    /// Instruction numbers that were not predicted.
    Insts,
    /// Flags that were not predicted.
    Flags,
    /// Commit deltas beyond what a token holds.
    Commits,
    /// Dispatch deltas beyond what a token holds.
    Dispatches,
    /// Decode leads that were not predicted.
    Leads,
    /// Fetch, relative to decode. This column and the next two are empty unless the run records stages.
    Fetches,
    /// Issue, relative to dispatch; 0: never.
    Issues,
    /// Cycles from completion to commit.
    Completes,
}

impl Column {
    pub(super) const COUNT: usize = 12;
}

/// The bytes of all columns, before compression.
#[derive(Debug, Default)]
pub(super) struct Columns([Vec<u8>; Column::COUNT]);

impl Columns {
    pub(super) fn clear(&mut self) {
        for column in &mut self.0 {
            column.clear();
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.0.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Vec<u8>> {
        self.0.iter_mut()
    }
}

impl std::ops::Index<Column> for Columns {
    type Output = Vec<u8>;
    fn index(&self, column: Column) -> &Vec<u8> {
        &self.0[column as usize]
    }
}

impl std::ops::IndexMut<Column> for Columns {
    fn index_mut(&mut self, column: Column) -> &mut Vec<u8> {
        &mut self.0[column as usize]
    }
}
