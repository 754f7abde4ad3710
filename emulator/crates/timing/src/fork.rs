//! A core that goes on from where another one is, with a sink of its own.

use commit_trace::CommitSink;
use snapshot::{Archive, Snapshot as _};

use crate::Core;

impl<S: CommitSink> Core<S> {
    /// Returns a core that is as this one is, between runs, and that shares nothing with it: not even last-level cache and memory. This core is that of a
    /// single hart, and [does not rest](Self::end_rest).
    ///
    /// # Errors
    /// If the state cannot be saved or loaded.
    pub fn fork<T: CommitSink>(&mut self, sink: T) -> snapshot::Result<Core<T>> {
        let mut saved = Archive::saving();
        self.snapshot(&mut saved)?;
        let preset = self.preset();
        let mut fork = Core::new(preset, sink);
        fork.snapshot(&mut Archive::loading(&saved.into_bytes()))?;
        // What is announced to a core is no part of its state.
        fork.path.announced_as(&self.path);
        fork.pipeline.announced_as(&self.pipeline);
        Ok(fork)
    }
}
