//! Code as a hart has decoded it.

use std::rc::Rc;

use super::Spaces;
use crate::code_cache::{CodeCache, CodePage};

/// Decoded instructions of a hart and their numbers, all found anew in a hart that a checkpoint is loaded into.
pub(crate) struct DecodedCode {
    /// Decoded instructions, by page, and the encodings of all static instructions.
    pub code: CodeCache,
    /// Page that was last fetched from one instruction at a time; it is never filled.
    pub strict_page: Rc<CodePage>,
    /// Numbers of address spaces.
    pub spaces: Spaces,
    /// Number of page events that the hart has applied, see [`devices::PageEvent`].
    pub page_events_seen: u64,
}

impl DecodedCode {
    /// Returns the state of hart number `id` before it has fetched anything.
    pub(crate) fn new(id: usize) -> Self {
        Self {
            code: CodeCache::new(id),
            strict_page: CodePage::uncached(0),
            spaces: Spaces::new(),
            page_events_seen: 0,
        }
    }
}
