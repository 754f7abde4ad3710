//! What the timing cores counted, of every event: the host's own count, beside which those of the guest's counters can be put.

use commit_trace::Event;
use isa::PerfEvent;
use serde_json::{Map, Value, json};

use crate::engine::Engine;

/// Counts of the region of interest, or of all that was timed while there has been none.
#[derive(Clone, Debug)]
pub(crate) struct RegionCounts {
    /// Whether the result also has the events that are counted only if somebody asks.
    all: bool,
    /// Counts of the region's stretches that have ended, by hart, in the order of [`PerfEvent::ALL`].
    counted: Vec<Vec<u64>>,
    /// Counts before the region's open stretch, by hart, in the order of [`PerfEvent::ALL`]; `None`: no stretch is open.
    before: Option<Vec<Vec<u64>>>,
    had_region: bool,
}

impl RegionCounts {
    /// Returns empty counts of all events, or only of the events that are always counted.
    pub fn new(all: bool) -> Self {
        Self { all, counted: Vec::new(), before: None, had_region: false }
    }

    /// Notes that the region starts, stops or begins anew.
    pub fn region(&mut self, event: &Event, engine: &Engine) {
        self.had_region = true;
        match event {
            Event::Region(false) => self.stop(engine),
            Event::Region(true) => self.before = Some(totals(engine)),
            Event::RegionAnew => {
                self.counted.clear();
                self.before = Some(totals(engine));
            }
            _ => {}
        }
    }

    fn stop(&mut self, engine: &Engine) {
        let Some(before) = self.before.take() else {
            return;
        };
        let now = totals(engine);
        self.counted.resize_with(now.len(), Vec::new);
        for ((counted, now), before) in self.counted.iter_mut().zip(now).zip(before) {
            counted.resize(now.len(), 0);
            for ((counted, now), before) in counted.iter_mut().zip(now).zip(before) {
                *counted += now.wrapping_sub(before);
            }
        }
    }

    /// Ends the run and returns its counts by hart and name. `None`: nothing was timed.
    pub fn end(mut self, engine: &Engine) -> Option<Value> {
        self.stop(engine);
        let counts = match self.had_region {
            true => self.counted,
            false => totals(engine),
        };
        let named = |counts: Vec<u64>| {
            PerfEvent::ALL
                .iter()
                .zip(counts)
                .filter(|(event, _)| self.all || !event.is_followed())
                .map(|(event, count)| (event.row().name.to_owned(), Value::from(count)))
                .collect()
        };
        let harts: Vec<Map<String, Value>> = counts.into_iter().map(named).collect();
        (!harts.is_empty()).then(|| json!({ "region": self.had_region, "harts": harts }))
    }
}

/// Running totals of all events on each hart, in the order of [`PerfEvent::ALL`]; empty without timing cores.
pub(crate) fn totals(engine: &Engine) -> Vec<Vec<u64>> {
    engine.cores().map(|cores| cores.counts()).unwrap_or_default()
}
