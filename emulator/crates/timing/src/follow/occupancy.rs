//! How many instructions a queue holds in each cycle.

use std::collections::VecDeque;

use isa::{Condition, PerfEvent, Selection};

use super::watch::Watch;

/// A counter's condition of how many instructions a queue holds, or some queues together: they enter and leave in order.
#[derive(Default)]
pub(super) struct OccupancyWatch {
    pub counter: usize,
    pub watch: Watch,
    /// How much each instruction counts for.
    each: u32,
    /// How much a load counts for in addition.
    load: u32,
    /// Instructions inside, oldest first: the last cycle of each, and how much it counts for.
    inside: VecDeque<(u64, u32)>,
    /// What the instructions inside count for together.
    level: u32,
    /// The first cycle that the watch was not told of.
    next: u64,
}

snapshot::snapshot!(OccupancyWatch { counter, watch, each, load, inside, level, next });

impl OccupancyWatch {
    /// Returns the watch of a condition from after cycle `cycle` on; `None`: not all events are occupancies.
    pub(super) fn of(
        counter: usize,
        selection: Selection,
        condition: Condition,
        cycle: u64,
    ) -> Option<Self> {
        let of = |event| selection.events().filter(|&e| e == event).count();
        let each = of(PerfEvent::RobOccupancy);
        let load = of(PerfEvent::LoadQueueOccupancy);
        (each + load == selection.events().count()).then(|| Self {
            counter,
            watch: Watch::new(condition, cycle + 1),
            each: each as u32,
            load: load as u32,
            next: cycle + 1,
            ..Self::default()
        })
    }

    /// Adds an instruction that is in the ROB from cycle `first` to `last`.
    pub(super) fn enter(&mut self, first: u64, last: u64, is_load: bool) {
        self.pass(first);
        let weight = self.each + if is_load { self.load } else { 0 };
        if weight != 0 {
            self.level += weight;
            self.inside.push_back((last, weight));
        }
    }

    /// Tells the watch of the cycles before `cycle`, in which nothing more enters.
    fn pass(&mut self, cycle: u64) {
        while let Some(&(last, weight)) = self.inside.front()
            && last < cycle
        {
            self.notify_watch(last + 1);
            self.level -= weight;
            self.inside.pop_front();
        }
        self.notify_watch(cycle);
    }

    fn notify_watch(&mut self, cycle: u64) {
        if cycle > self.next {
            self.watch.span(self.next, cycle, self.level);
            self.next = cycle;
        }
    }

    /// Closes the cycles before `cycle`, in which nothing more enters.
    pub(super) fn close(&mut self, cycle: u64) {
        self.pass(cycle);
    }

    /// Leaves out the cycles from after `from` to `to`, in which the core sleeps.
    pub(super) fn sleep(&mut self, from: u64, to: u64) {
        self.pass(from + 1);
        self.next = self.next.max(to + 1);
        self.watch.skip(self.next);
    }
}
