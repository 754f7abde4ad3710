//! `tipsim trace verify`.

use std::collections::BTreeMap;

use commit_trace::{Batch, Event, Span, SpanBuilder, SpanSink, State, TraceEnd};
use serde_json::json;

use super::gaps::UnitGaps;
use super::{is_sampled, open, status};
use crate::cli::{Format, TraceArgs};
use crate::failure::{BadInput, bad_input};

/// Cycles by commit state.
struct Totals {
    cycles: BTreeMap<&'static str, u64>,
    instructions: u64,
    /// What lies between units, by hart.
    gaps: BTreeMap<u32, UnitGaps>,
    /// The hart whose stream comes next.
    hart: u32,
    is_sampled: bool,
}

impl Totals {
    fn print(&self, format: Format, whole: bool) {
        let (sum, instructions) = (self.cycles.values().sum::<u64>(), self.instructions);
        if format == Format::Json {
            println!(
                "{:#}",
                json!({"whole": whole, "cycles": sum, "states": self.cycles, "instructions": instructions})
            );
            return;
        }
        let whole = if whole { "whole" } else { "not whole; up to there" };
        println!("{whole}: {instructions} instructions, {sum} cycles");
        for (state, cycles) in &self.cycles {
            println!(
                "{state:13} {cycles:>11}  {:5.1} %",
                100.0 * *cycles as f64 / sum.max(1) as f64
            );
        }
    }
}

impl Totals {
    /// Returns the gaps of the hart whose stream comes.
    fn gaps(&mut self) -> &mut UnitGaps {
        let is_sampled = self.is_sampled;
        self.gaps.entry(self.hart).or_insert_with(|| UnitGaps::new(is_sampled, true))
    }
}

impl SpanSink for Totals {
    fn span(&mut self, span: &Span<'_>) {
        let name = match span.state {
            State::Computing => "computing",
            State::Stalled => "stalled",
            State::Flushed => "flushed",
            State::Drained => "drained",
            State::Idle if self.gaps().idle(span.cycles) => "between units",
            State::Idle => "idle",
        };
        if span.state != State::Idle {
            self.gaps().works();
        }
        *self.cycles.entry(name).or_default() += span.cycles;
        if span.state == State::Computing {
            self.instructions += span.records.len() as u64;
        }
    }

    fn event(&mut self, _cycle: u64, event: &Event) {
        self.gaps().event(event);
    }
}

/// Checks every chunk and the stream's invariants, and says how much of it is whole.
pub(super) fn verify(args: &TraceArgs) -> anyhow::Result<u8> {
    let mut reader = open(&args.trace)?;
    let mut spans: BTreeMap<u32, SpanBuilder> = BTreeMap::new();
    let mut totals = Totals {
        cycles: BTreeMap::new(),
        instructions: 0,
        gaps: BTreeMap::new(),
        hart: 0,
        is_sampled: is_sampled(&reader),
    };
    let mut batch = Batch::default();
    let wrong = loop {
        match reader.next_batch(&mut batch) {
            Ok(true) => {}
            Ok(false) if matches!(reader.end(), TraceEnd::Complete | TraceEnd::Part) => break None,
            Ok(false) => break Some(bad_input(&args.trace, reader.end())),
            Err(e) => break Some(BadInput(e.to_string())),
        }
        totals.hart = batch.hart.0;
        let spans = spans.entry(batch.hart.0).or_default();
        if let Err(e) = spans.batch(&batch, &mut totals) {
            break Some(bad_input(&args.trace, e));
        }
    };
    totals.print(args.format, wrong.is_none());
    match wrong {
        Some(wrong) => Err(wrong.into()),
        None => Ok(status(&args.trace, reader.end())),
    }
}
