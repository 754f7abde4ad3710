//! Counts of every event on the timing cores: the host's own counts, with which the counts of the guest's counters can be compared.

use commit_trace::Event;
use isa::PerfEvent;
use profile::{Estimate, RatioSums};
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
    /// Sums for estimates of the counts of all harts together, if the region is sampled and its stretches are units.
    units: Option<UnitSums>,
    /// Weight of the next stretches: a stretch stands for this many times its own length of the region.
    weight: f64,
}

/// Sums over units, of which the variance of ratios follows.
#[derive(Clone, Debug, Default)]
struct UnitSums {
    units: f64,
    /// Instructions that were executed in units.
    executed: f64,
    /// Sum of the instructions that units stand for, and of their squares.
    instructions: [f64; 2],
    /// By event, in the order of [`PerfEvent::ALL`]: sums of the counts, of their squares, and of their products with the instructions.
    counts: Vec<[f64; 3]>,
}

impl UnitSums {
    /// Adds a unit, which stands for `weight` times as much as it is.
    fn add(&mut self, counts: impl Iterator<Item = u64>, instructions: u64, weight: f64) {
        self.executed += instructions as f64;
        let instructions = weight * instructions as f64;
        self.units += 1.0;
        self.instructions[0] += instructions;
        self.instructions[1] += instructions * instructions;
        self.counts.resize(PerfEvent::ALL.len(), [0.0; 3]);
        for (sums, count) in self.counts.iter_mut().zip(counts) {
            let count = weight * count as f64;
            sums[0] += count;
            sums[1] += count * count;
            sums[2] += count * instructions;
        }
    }
}

impl RegionCounts {
    /// Returns empty counts of all events, or only of the events that are always counted.
    pub(crate) fn new(all: bool) -> Self {
        Self { all, counted: Vec::new(), before: None, had_region: false, units: None, weight: 1.0 }
    }

    /// Takes the stretches of the region as units of a sampled region from now on. `tell_chance`: the variance between units tells the error by
    /// chance, so that counts get estimates.
    pub(crate) fn of_units(self, tell_chance: bool) -> Self {
        Self { units: tell_chance.then(UnitSums::default), ..self }
    }

    /// Takes the next stretches of the region to stand for `weight` times as much as they are.
    pub(crate) fn weigh(&mut self, weight: u32) {
        self.weight = weight.into();
    }

    /// Notes that the region starts, stops or begins anew.
    pub(crate) fn region(&mut self, event: &Event, engine: &Engine) {
        self.had_region = true;
        match event {
            Event::Region(false) => self.stop(engine),
            Event::Region(true) => self.before = Some(totals(engine)),
            Event::RegionAnew => {
                self.counted.clear();
                self.units = self.units.take().map(|_| UnitSums::default());
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
        if let Some(units) = self.units.as_mut().filter(|_| !now.is_empty()) {
            let mut sums = vec![0; PerfEvent::ALL.len()];
            for (now, before) in now.iter().zip(&before) {
                for ((sum, now), before) in sums.iter_mut().zip(now).zip(before) {
                    *sum += now.wrapping_sub(*before);
                }
            }
            let retired = PerfEvent::ALL.iter().position(|event| *event == PerfEvent::Instructions);
            let retired = retired.map_or(0, |at| sums[at]);
            units.add(sums.into_iter(), retired, self.weight);
        }
        self.counted.resize_with(now.len(), Vec::new);
        for ((counted, now), before) in self.counted.iter_mut().zip(now).zip(before) {
            counted.resize(now.len(), 0);
            for ((counted, now), before) in counted.iter_mut().zip(now).zip(before) {
                *counted += now.wrapping_sub(before);
            }
        }
    }

    /// Ends the run and returns its counts by hart and name; `instructions`: those of the region, if it was sampled. `None`: nothing was timed.
    pub(crate) fn end(mut self, engine: &Engine, instructions: Option<u64>) -> Option<Value> {
        self.stop(engine);
        let estimates = instructions.and_then(|instructions| self.estimates(instructions));
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
        let mut counts = json!({ "region": self.had_region, "harts": harts });
        if let Some(estimates) = estimates {
            counts["estimates"] = json!(estimates);
        }
        (!harts.is_empty()).then_some(counts)
    }

    /// Returns what the counts of units say of a region of so many instructions, by name.
    fn estimates(&self, instructions: u64) -> Option<Map<String, Value>> {
        let UnitSums { units, executed, instructions: [seen, squares], counts } =
            self.units.as_ref()?;
        let rest = 1.0 - (executed / instructions as f64).min(1.0);
        let events = PerfEvent::ALL.iter().zip(counts);
        let events = events.filter(|(event, _)| self.all || !event.is_followed());
        let estimate = |(event, [sum, square, product]): (&PerfEvent, &[f64; 3])| {
            let sums = RatioSums {
                units: *units,
                part: *sum,
                whole: *seen,
                part_squares: *square,
                whole_squares: *squares,
                products: *product,
            };
            let of_all = Estimate::of_sums(&sums, rest)?.times(instructions as f64);
            Some((event.row().name.to_owned(), json!(of_all)))
        };
        let estimates: Map<_, _> = events.filter_map(estimate).collect();
        (!estimates.is_empty()).then_some(estimates)
    }
}

/// Running totals of all events on each hart, in the order of [`PerfEvent::ALL`]; empty without timing cores.
pub(crate) fn totals(engine: &Engine) -> Vec<Vec<u64>> {
    engine.cores().map(|cores| cores.counts()).unwrap_or_default()
}
