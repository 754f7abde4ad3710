//! The Oracle's parts in the threads that filters name.

use std::collections::BTreeMap;

use commit_trace::Span;

use super::region_restart::since_restart;
use crate::block::Block;
use crate::oracle::Oracle;
use crate::{Filter, ProcessId, Profile, ThreadPart};

/// The Oracle's part for each thread name that a filter asks for.
#[derive(Default)]
pub(super) struct Parts(Vec<Part>);

struct Part {
    name: String,
    is_open: bool,
    oracle: Oracle,
    /// Profile of the cycles that were marked before the region restarted.
    marked_before: Option<Profile>,
}

impl Parts {
    pub(super) fn new<'a>(filters: impl Iterator<Item = &'a Filter>) -> Self {
        let names = filters.filter_map(|filter| filter.thread.clone());
        let names: std::collections::BTreeSet<String> = names.collect();
        let part = |name| Part { name, is_open: false, oracle: Oracle::new(), marked_before: None };
        Self(names.into_iter().map(part).collect())
    }

    /// Opens the part of the thread that runs from here on, and closes the others.
    pub(super) fn select(&mut self, thread: &str, process: ProcessId, marked: bool) {
        for part in &mut self.0 {
            part.is_open = part.name == thread;
            if part.is_open {
                part.oracle.select(process, marked);
            }
        }
    }

    /// Restarts the region: cycles that were marked so far are no part of it.
    pub(super) fn restart_region(&mut self) {
        for part in &mut self.0 {
            part.marked_before = Some(part.oracle.clone().finish().marked);
        }
    }

    #[inline(always)]
    pub(super) fn span(&mut self, span: &Span<'_>) {
        for part in self.0.iter_mut().filter(|part| part.is_open) {
            part.oracle.span(span);
        }
    }

    #[inline(always)]
    pub(super) fn block(&mut self, block: &Block<'_>) {
        for part in self.0.iter_mut().filter(|part| part.is_open) {
            part.oracle.block(block, |_| ());
        }
    }

    pub(super) fn finish(self) -> BTreeMap<String, ThreadPart> {
        let finished = |part: Part| {
            let charged = part.oracle.finish();
            let part_of = ThreadPart {
                whole: charged.profile,
                marked: since_restart(charged.marked, part.marked_before),
            };
            (part.name, part_of)
        };
        self.0.into_iter().map(finished).collect()
    }
}
