//! What executes: the functional harts, or the timing cores.

use commit_trace::Event;
use critical_path::CoreDescription;
use timing::Stats;
use truth::SharedLines;

use crate::stream::StreamClosed;
use crate::timed::Timed;

/// What executes instructions: the timing cores, where there are any and they do not rest.
pub struct Engine {
    pub(super) cores: Option<Box<dyn Timed>>,
    pub(super) rests: bool,
}

impl Engine {
    /// Functional, until there are cores.
    pub const FUNCTIONAL: Self = Self { cores: None, rests: false };

    /// The functional harts go on for the timing cores.
    pub fn rest(&mut self) {
        self.rests = true;
    }

    /// The timing cores go on, from cycle `now`, for the functional harts. False if there are none.
    pub fn go_on(&mut self, now: u64) -> bool {
        let Some(cores) = &mut self.cores else {
            return false;
        };
        if std::mem::take(&mut self.rests) {
            cores.go_on(now);
        }
        true
    }

    /// Returns what the timing core of each hart counted, without the cycles in which it rested.
    pub fn stats(&self) -> Option<Vec<Stats>> {
        self.cores.as_ref().map(|cores| cores.stats())
    }

    /// Counts all events from now on.
    pub fn count_all(&mut self) {
        if let Some(cores) = &mut self.cores {
            cores.count_all();
        }
    }

    /// Collects what samples should say, of the region of interest or, if there are no marks, from now on.
    pub fn collect_truth(&mut self, lines: &SharedLines, marked: bool) {
        if let Some(cores) = &mut self.cores {
            cores.collect_truth(lines, marked);
        }
    }

    /// Takes excerpts of the region of interest or, if there are no marks, from now on.
    pub fn take_excerpts(&mut self, description: CoreDescription, marked: bool) {
        if let Some(cores) = &mut self.cores {
            cores.take_excerpts(description, marked);
        }
    }

    /// Running totals of all events on each hart, in the order of `PerfEvent::ALL`; empty without timing cores.
    pub fn counts(&self) -> Vec<Vec<u64>> {
        self.cores.as_ref().map(|cores| cores.counts()).unwrap_or_default()
    }

    /// The timing cores execute, not the functional harts.
    pub fn is_timing(&self) -> bool {
        self.cores.is_some() && !self.rests
    }

    /// Notes in what is recorded of every hart that the region of interest starts, stops or begins anew.
    pub fn region(&mut self, event: &Event) {
        if let Some(cores) = &mut self.cores {
            cores.region(event);
        }
    }

    /// Ends what was recorded; `None` if there is no timing core.
    pub fn finish(self) -> Option<StreamClosed> {
        self.cores.map(Timed::finish)
    }
}
