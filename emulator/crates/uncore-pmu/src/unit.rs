//! The unit.

use register_table::in_field;

use crate::counter::{Counter, RequestFilter, Totals};
use crate::regs::{self, COUNTERS, CYCLES, control, enable, id, select};
use crate::{Event, Reg, Unit};

/// Cycles between two looks at a counter for an overflow that is near.
const CHECK_INTERVAL: u64 = 1024;
/// Most events of a cycle: an overflow is at least as many cycles away as it takes with so many events in each.
const MAX_EVENTS_PER_CYCLE: u64 = 4096;
/// Most tallies that a unit keeps.
const MAX_TALLIES: usize = 1000;

/// What all counters of a unit counted of one event for one selection, as the host adds it up when they stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of the event; 0: cycles.
    pub event: u8,
    /// Harts and origins whose requests were counted.
    pub of: RequestFilter,
    /// Times that a counter started and stopped.
    pub times: u64,
    /// Events that were counted.
    pub count: u64,
}

snapshot::snapshot!(RequestFilter { harts, origins });
snapshot::snapshot!(Tally { event, of, times, count });

/// A monitoring unit with its counters.
#[derive(Clone, Debug)]
pub struct UncorePmu {
    unit: Unit,
    harts: u8,
    clock_hz: u64,
    /// Events that the machine counts, a bit each.
    events: u64,
    run: bool,
    enable: u64,
    irq_enable: u64,
    overflow: u64,
    counters: [Counter; COUNTERS],
    cycles: Counter,
    tallies: Vec<Tally>,
}

snapshot::snapshot!(UncorePmu {
    run, enable, irq_enable, overflow, counters, cycles, tallies
} keeps {
    unit, harts, clock_hz, events
});

impl UncorePmu {
    /// Returns a unit after reset, of a machine that counts some events.
    pub fn new(unit: Unit, harts: u8, clock_hz: u64, counts: impl Fn(Event) -> bool) -> Self {
        let rows = Event::TABLE.iter();
        let present = rows.filter(|row| row.unit == unit && counts(row.event));
        Self {
            unit,
            harts,
            clock_hz,
            events: present.fold(0, |events, row| events | 1 << row.number),
            run: false,
            enable: 0,
            irq_enable: 0,
            overflow: 0,
            counters: [Counter::default(); COUNTERS],
            cycles: Counter::default(),
            tallies: Vec::new(),
        }
    }

    /// Reads a register, or the one of its number among several, in `cycle`.
    pub fn read(&mut self, (reg, number): (Reg, usize), cycle: u64, totals: &impl Totals) -> u64 {
        self.follow(cycle, totals);
        let counter = self.counters.get(number).copied().unwrap_or_default();
        match reg {
            Reg::Id => {
                regs::MAGIC
                    | in_field(id::VERSION, regs::VERSION)
                    | in_field(id::UNIT, self.unit as u64)
                    | in_field(id::COUNTERS, COUNTERS as u64)
                    | in_field(id::HARTS, self.harts.into())
            }
            Reg::Clock => self.clock_hz,
            Reg::Events => self.events,
            Reg::Control => u64::from(self.run),
            Reg::Enable => self.enable,
            Reg::IrqEnable => self.irq_enable,
            Reg::Overflow => self.overflow,
            Reg::Cycles => self.cycles.value,
            Reg::Select => counter.select.into(),
            Reg::Count => match self.event(&counter) {
                Some(event) if event.row().level => totals.total(event, counter.selection(), cycle),
                _ => counter.value,
            },
        }
    }

    /// Writes a register, or the one of its number among several, in `cycle`. Read-only registers and bits without a
    /// meaning ignore it.
    pub fn write(
        &mut self,
        (reg, number): (Reg, usize),
        value: u64,
        cycle: u64,
        totals: &impl Totals,
    ) {
        self.follow(cycle, totals);
        match reg {
            Reg::Id | Reg::Clock | Reg::Events => return,
            Reg::Control => self.run = value & control::RUN != 0,
            Reg::Enable => self.enable = value & enable::ALL,
            Reg::IrqEnable => self.irq_enable = value & enable::ALL,
            Reg::Overflow => self.overflow &= !value,
            Reg::Cycles => self.cycles.value = value,
            Reg::Select | Reg::Count => {
                let Some(counter) = self.counters.get_mut(number) else {
                    return;
                };
                if reg == Reg::Count {
                    counter.value = value;
                } else {
                    let select = (value & select::ALL) as u32;
                    if counter.counts && counter.select != select {
                        self.stop(number, cycle, totals);
                    }
                    self.counters[number].select = select;
                }
            }
        }
        self.start_and_stop(cycle, totals);
    }

    /// Returns the level of the interrupt line.
    pub fn irq(&self) -> bool {
        self.overflow & self.irq_enable != 0
    }

    /// Looks in `cycle` whether a counter has overflowed.
    pub fn follow(&mut self, cycle: u64, totals: &impl Totals) {
        for number in 0..COUNTERS {
            let counter = self.counters[number];
            let Some(event) = self.event(&counter).filter(|_| counter.counts) else {
                continue;
            };
            let total = totals.total(event, counter.selection(), cycle);
            // A level overflows nothing.
            if self.counters[number].follow(total) && !event.row().level {
                self.overflow |= 1 << number;
            }
        }
        if self.cycles.counts && self.cycles.follow(cycle) {
            self.overflow |= 1 << CYCLES;
        }
    }

    /// Returns the cycle in which to [`follow`](Self::follow) again for the sake of the interrupt line; `u64::MAX`:
    /// only at an access.
    pub fn next_look(&self, cycle: u64) -> u64 {
        let waits = |number: usize| (self.irq_enable & !self.overflow) >> number & 1 != 0;
        let mut next = u64::MAX;
        for (number, counter) in self.counters.iter().enumerate() {
            let counts = counter.counts && self.event(counter).is_some_and(|e| !e.row().level);
            if waits(number) && counts {
                let soon = CHECK_INTERVAL.max(!counter.value / MAX_EVENTS_PER_CYCLE);
                next = next.min(cycle.saturating_add(soon));
            }
        }
        if waits(CYCLES) && self.cycles.counts {
            let at = cycle.saturating_add(!self.cycles.value).saturating_add(1);
            next = next.min(at);
        }
        next
    }

    /// Returns true if the machine counts the event.
    pub fn has(&self, event: Event) -> bool {
        let row = event.row();
        row.unit == self.unit && self.events >> row.number & 1 != 0
    }

    /// Returns what was counted until `cycle` by event and selection, by the host's own sums: every stretch is the
    /// total at its end less the one at its start. Only the first thousand kinds are kept.
    pub fn tallies(&self, cycle: u64, totals: &impl Totals) -> Vec<Tally> {
        let mut ended = self.clone();
        ended.run = false;
        ended.start_and_stop(cycle, totals);
        ended.tallies
    }

    /// Returns what a counter counts, if the machine has it.
    fn event(&self, counter: &Counter) -> Option<Event> {
        counter.event(self.unit).filter(|&event| self.has(event))
    }

    fn start_and_stop(&mut self, cycle: u64, totals: &impl Totals) {
        let on = if self.run { self.enable } else { 0 };
        for number in 0..COUNTERS {
            let counter = self.counters[number];
            match (counter.counts, on >> number & 1 != 0) {
                (false, true) => {
                    let event = self.event(&counter);
                    let total = event.map(|e| totals.total(e, counter.selection(), cycle));
                    self.counters[number].start(total.unwrap_or(0));
                }
                (true, false) => self.stop(number, cycle, totals),
                _ => {}
            }
        }
        match (self.cycles.counts, on >> CYCLES & 1 != 0) {
            (false, true) => self.cycles.start(cycle),
            (true, false) => {
                let count = self.cycles.stop(cycle);
                self.note(0, RequestFilter::default(), count);
            }
            _ => {}
        }
    }

    fn stop(&mut self, number: usize, cycle: u64, totals: &impl Totals) {
        let counter = self.counters[number];
        let event = self.event(&counter);
        let of = counter.selection();
        let total = event.map_or(0, |event| totals.total(event, of, cycle));
        let count = self.counters[number].stop(total);
        if let Some(event) = event.filter(|event| !event.row().level) {
            self.note(event.row().number, of, count);
        }
    }

    fn note(&mut self, event: u8, of: RequestFilter, count: u64) {
        let mut tallies = self.tallies.iter_mut();
        if let Some(tally) = tallies.find(|t| (t.event, t.of) == (event, of)) {
            tally.times += 1;
            tally.count = tally.count.wrapping_add(count);
        } else if self.tallies.len() < MAX_TALLIES {
            self.tallies.push(Tally { event, of, times: 1, count });
        }
    }
}
