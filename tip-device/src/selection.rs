//! Sample selection: the unit as a driver of the sampling rules (MICRO'21, figure 6, and the heuristics it is compared with).

use commit_trace::{CommitRecord, InstId, Span, SpanSink, State};
use sampling_rules::{Outcome, Rule, Trigger};

use crate::Sample;
use crate::recent::RecentCommits;
use crate::sample::state_flags;
use crate::unit::{Origin, Pending, TipUnit};

/// The unit, while it is shown the cycles since the last time.
pub(crate) struct Selection<'a> {
    pub unit: &'a mut TipUnit,
    pub recent: &'a RecentCommits,
    pub origin: &'a dyn Fn(InstId) -> Origin,
    /// The cycle in which the interrupt line rose, if it did.
    pub risen: Option<u64>,
}

impl Selection<'_> {
    /// Does what a rule says after it was shown a span. `complete`: the cycle in which a sample is complete.
    fn settle(&mut self, pending: Pending, outcome: Outcome, span: &Span<'_>, complete: u64) {
        let named = match &outcome {
            Outcome::Pending => {
                self.unit.pending = Some(pending);
                return;
            }
            Outcome::Dropped => return,
            Outcome::One(record) => std::slice::from_ref(record),
            Outcome::All => span.records,
        };
        let named = named.iter().map(|record| record.inst);
        let mut sample = Sample::new(pending.cycle, named, self.origin);
        // Heuristics that misplace samples do not see the state of the trigger's cycle.
        if !pending.rule.heuristic().misplaces() {
            sample.flags |= state_flags(span);
        }
        if self.unit.push(sample) {
            self.risen = self.risen.or(Some(complete));
        }
    }
}

impl SpanSink for Selection<'_> {
    fn span(&mut self, span: &Span<'_>) {
        while let Some(cycle) = self.unit.next_trigger(span.end()) {
            if self.unit.pending.is_some() {
                continue;
            }
            let mut rule = Rule::new(self.unit.heuristic());
            let last = self.recent.committed_by(span.start - 1);
            let outcome = rule.trigger(&Trigger { cycle, span, last });
            self.settle(Pending { cycle, rule }, outcome, span, cycle);
        }
        if let Some(mut pending) = self.unit.pending.take() {
            let outcome = pending.rule.span(span);
            let complete = match span.state {
                State::Drained => span.end(),
                _ => span.start,
            };
            self.settle(pending, outcome, span, complete);
        }
    }

    fn trap(&mut self, commit: u64, record: &CommitRecord) {
        let Some(mut pending) = self.unit.pending.take() else {
            return;
        };
        let records = std::slice::from_ref(record);
        let before = commit - u64::from(record.commit_delta);
        let outcome = pending.rule.records(before, records);
        let span = Span { state: State::Flushed, start: commit, cycles: 1, records, commit };
        self.settle(pending, outcome, &span, commit);
    }
}
