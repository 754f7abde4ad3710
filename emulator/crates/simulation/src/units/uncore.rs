//! The PMUs of last-level cache and memory controller on the bus: what they ask for comes from the timing cores' counts.

use std::cell::RefCell;
use std::rc::Rc;

use devices::memory_map::UNCORE_PMUS;
use devices::{AccessFault, Cx, Device};
use machine::{Board, DeviceNode};
use serde_json::{Map, Value, json};
use snapshot::{Archive, Snapshot};
use timing::{Origin, Preset, UncoreCount, UncoreCounts, refresh_period};
use uncore_pmu::{Event, ORIGINS, Reg, RequestFilter, Totals, UncorePmu, Unit, regs};

/// Bytes of a line.
const LINE_BYTES: u64 = 64;
/// Filter that takes requests of all harts and origins.
const ALL_REQUESTS: RequestFilter = RequestFilter { harts: 0, origins: 0 };

// A bit of a selection is an origin's number.
const _: () = assert!(ORIGINS.len() == Origin::COUNT);

/// What the machine has counted.
#[derive(Clone, Debug)]
struct UncoreTotals {
    counts: UncoreCounts,
    /// Cycles from one refresh to the next, if memory is refreshed.
    refresh_period: Option<u64>,
}

impl Totals for UncoreTotals {
    fn total(&self, event: Event, of: RequestFilter, cycle: u64) -> u64 {
        let sum = |kind| self.counts.sum(kind, of.harts, of.origins);
        match event {
            Event::Lookups => sum(UncoreCount::Lookups),
            Event::Hits => sum(UncoreCount::Lookups) - sum(UncoreCount::Misses),
            Event::Misses => sum(UncoreCount::Misses),
            Event::Evictions => sum(UncoreCount::Evictions),
            Event::Writebacks => sum(UncoreCount::WriteBacks),
            Event::Probes => sum(UncoreCount::Probes),
            Event::Transfers => sum(UncoreCount::Transfers),
            Event::ModifiedTransfers => sum(UncoreCount::ModifiedTransfers),
            Event::Upgrades => sum(UncoreCount::Upgrades),
            Event::Occupancy => sum(UncoreCount::Lines),
            Event::Reads => sum(UncoreCount::Reads),
            Event::Writes => sum(UncoreCount::Writes),
            Event::ReadBytes => LINE_BYTES * sum(UncoreCount::Reads),
            Event::WriteBytes => LINE_BYTES * sum(UncoreCount::Writes),
            Event::Activations => sum(UncoreCount::Activations),
            Event::RowHits => sum(UncoreCount::RowHits),
            Event::RowConflicts => sum(UncoreCount::RowConflicts),
            Event::QueueOccupancy => sum(UncoreCount::Waited),
            Event::Refreshes => self.refresh_period.map_or(0, |period| cycle / period),
        }
    }
}

/// A machine with this core counts the event.
fn has(preset: &Preset, event: Event) -> bool {
    let has_rows = preset.dram.model == timing::preset::DramModel::Ddr;
    match event {
        Event::Lookups
        | Event::Hits
        | Event::Misses
        | Event::Evictions
        | Event::Writebacks
        | Event::Occupancy => preset.llc.kib != 0,
        Event::Activations | Event::RowHits | Event::RowConflicts => has_rows,
        Event::Refreshes => refresh_period(preset).is_some(),
        _ => true,
    }
}

type SharedUnit = Rc<RefCell<UncorePmu>>;

/// A unit as a device.
struct UncoreBus {
    unit: SharedUnit,
    counted: UncoreTotals,
}

impl Snapshot for UncoreBus {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        let Self { unit, counted: _ } = self;
        unit.borrow_mut().snapshot(archive)
    }
}

impl UncoreBus {
    fn place(offset: u64, size: u8) -> Result<(Reg, usize), AccessFault> {
        let place = (size == 8).then(|| register_table::find(regs::TABLE, offset));
        place.flatten().ok_or(AccessFault)
    }
}

impl Device for UncoreBus {
    fn read(&mut self, offset: u64, size: u8, cx: &mut Cx<'_>) -> Result<u64, AccessFault> {
        let place = Self::place(offset, size)?;
        let mut unit = self.unit.borrow_mut();
        let value = unit.read(place, cx.now, &self.counted);
        cx.schedule(unit.next_look(cx.now));
        Ok(value)
    }

    fn write(
        &mut self,
        offset: u64,
        size: u8,
        value: u64,
        cx: &mut Cx<'_>,
    ) -> Result<(), AccessFault> {
        let place = Self::place(offset, size)?;
        let mut unit = self.unit.borrow_mut();
        unit.write(place, value, cx.now, &self.counted);
        cx.schedule(unit.next_look(cx.now));
        Ok(())
    }

    fn event(&mut self, cx: &mut Cx<'_>) {
        let mut unit = self.unit.borrow_mut();
        unit.follow(cx.now, &self.counted);
        cx.schedule(unit.next_look(cx.now));
    }

    fn irq_level(&self) -> bool {
        self.unit.borrow().irq()
    }
}

/// The two PMUs, and the counts that they read.
pub struct Uncore {
    units: [(Unit, SharedUnit); 2],
    counted: UncoreTotals,
}

/// Totals as they were when the region of interest began, and in it so far.
#[derive(Default)]
pub struct UncoreRegion {
    /// The counts, and the refreshes.
    began: Option<(UncoreCounts, u64)>,
    sum: UncoreCounts,
    refreshes: u64,
}

/// The counts are the device's, not the cores': they outlast them.
impl Snapshot for Uncore {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        // The units are devices of the board.
        let Self { units: _, counted } = self;
        counted.counts.snapshot(archive)
    }
}

impl Uncore {
    /// Adds the units of a machine with so many harts to its board.
    pub fn add_to(
        board: &mut Board,
        harts: usize,
        preset: &Preset,
    ) -> Result<Self, devices::Overlap> {
        let counted = UncoreTotals {
            counts: UncoreCounts::default(),
            refresh_period: refresh_period(preset),
        };
        let clock_hz = board.bus.clock().clock_hz();
        let kinds = [
            (Unit::Llc, "tipsim,llc-pmu"),
            (Unit::MemoryController, "tipsim,memory-controller-pmu"),
        ];
        let units = kinds.map(|(unit, _)| {
            let pmu = UncorePmu::new(unit, harts as u8, clock_hz, |event| has(preset, event));
            (unit, Rc::new(RefCell::new(pmu)))
        });
        for (n, ((_, unit), (_, compatible))) in (0..).zip(units.iter().zip(kinds)) {
            let device = UncoreBus { unit: Rc::clone(unit), counted: counted.clone() };
            board.add(DeviceNode::at("pmu", &[compatible], &UNCORE_PMUS, n), Box::new(device))?;
        }
        Ok(Self { units, counted })
    }

    /// Returns the counts, to which the timing cores add.
    pub fn counts(&self) -> &UncoreCounts {
        &self.counted.counts
    }

    /// Follows the region of interest, which changes in `cycle`: it opens, perhaps anew, or closes.
    pub fn follow(&self, region: &mut UncoreRegion, opens: bool, anew: bool, cycle: u64) {
        let refreshes = self.counted.total(Event::Refreshes, ALL_REQUESTS, cycle);
        if anew {
            *region = UncoreRegion::default();
        }
        if opens {
            region.began = Some((self.counts().copy(), refreshes));
        } else if let Some((before, refreshes_before)) = region.began.take() {
            region.sum.add_since(&before, self.counts());
            region.refreshes += refreshes - refreshes_before;
        }
    }

    /// Returns for run.json the machine's own counts of the region, by hart and origin, and what the guest's counters counted
    /// until `cycle`, since reset.
    pub fn describe(&self, region: &UncoreRegion, harts: usize, cycle: u64) -> Value {
        let counted = UncoreTotals { counts: region.sum.clone(), refresh_period: None };
        let mut units = Map::new();
        for (unit, pmu) in &self.units {
            let pmu = pmu.borrow();
            let events = |of: RequestFilter| -> Map<String, Value> {
                let rows = Event::TABLE.iter().filter(|row| row.unit == *unit);
                rows.filter(|row| pmu.has(row.event) && (row.filtered || of == ALL_REQUESTS))
                    .map(|row| match row.event {
                        Event::Refreshes => (row.name.to_owned(), region.refreshes.into()),
                        event => (row.name.to_owned(), counted.total(event, of, 0).into()),
                    })
                    .collect()
            };
            let of_hart = |hart: usize| {
                let harts = 1 << hart;
                let origins = ORIGINS.iter().enumerate().map(|(n, (name, _))| {
                    let origins = 1 << n;
                    ((*name).to_owned(), events(RequestFilter { harts, origins }).into())
                });
                Value::Object(origins.collect())
            };
            let name = match unit {
                Unit::Llc => "llc",
                Unit::MemoryController => "memory_controller",
            };
            let tallies = pmu.tallies(cycle, &self.counted);
            let counters: Vec<Value> = tallies
                .iter()
                .map(|tally| {
                    json!({
                        "event": Event::of(*unit, tally.event).map_or("cycles", |e| e.row().name),
                        "harts": tally.of.harts,
                        "origins": tally.of.origins,
                        "times": tally.times,
                        "count": tally.count,
                    })
                })
                .collect();
            let described = json!({
                "all": events(ALL_REQUESTS),
                "harts": (0..harts).map(of_hart).collect::<Vec<_>>(),
                "counters": counters,
            });
            units.insert(name.to_owned(), described);
        }
        units.into()
    }
}
