//! What a core has learnt while it was kept warm, as bytes.

use commit_trace::CommitSink;
use snapshot::{Archive, Snapshot as _};

use crate::Core;

impl<S: CommitSink> Core<S> {
    /// Ends warming, and saves what a core that has timed nothing yet learnt while it was [kept warm](super::Warming); or loads that into a core that
    /// has done nothing yet, whose cycle and counts stay as they are. Only for the core of a single hart, which has the last-level cache and memory
    /// for itself.
    ///
    /// # Errors
    /// If what is loaded is not the state of such a core.
    pub fn warmed_state(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        self.end_warming();
        let next = self.pipeline.cycle() + 1;
        let (front, lsu) = (&mut self.pipeline.front, &mut self.pipeline.lsu);
        self.path.warmed_state(archive)?;
        let counts = front.counts;
        front.snapshot(archive)?;
        lsu.snapshot(archive)?;
        if archive.is_loading() {
            front.redirect(next);
            front.counts = counts;
        }
        Ok(())
    }
}
