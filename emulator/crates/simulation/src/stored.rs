//! Units of a sampled region that are stored, and timed again on any core.

use std::io::{Read, Write};

use commit_trace::{Event, recordings};
use critical_path::Excerpts;
use isa::{SharedCycle, StaticId, TimingModel};
use sampling_units::SharedUnits;
use serde::{Deserialize, Serialize};
use stored_units::{UnitReader, UnitWriter, UnitsError, WriterHandle};
use timing::{Ahead, CoreCall, CoreTap, MissCounts, Preset, SharedMemory, Stats, Warming};
use tip_device::{SideBandRecord, TipUnit};

use crate::check::{retired, tell};
use crate::commit_stage::{SharedTip, StreamClosed};
use crate::cores::{CoreStart, StreamOptions, timing_cores};
use crate::counts::RegionCounts;
use crate::engine::Engine;
use crate::error::SimulationError;
use crate::options::{Region, Threads};
use crate::recording::{IN_FLIGHT, Profilers, Recorded, StreamConsumer, core_description};
use crate::sampling::{Known, PlannedUnit, Sampled, SampledUnits, SamplingPlan, Unit};
use crate::system::System;

/// zstd level of stored units. Higher levels make them hardly shorter and take several times as long.
const COMPRESSION_LEVEL: i32 = 6;

/// What stored units say of the run that stored them.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct UnitsMetadata {
    /// Version of tipsim.
    pub tipsim: String,
    /// The core for which the guest executed.
    pub core: Preset,
    /// The plan of sampling.
    pub plan: SamplingPlan,
    /// The cycle before the core's first one.
    pub start: u64,
}

impl UnitsMetadata {
    pub(crate) fn new(system: &System, core: &Preset, plan: &SamplingPlan) -> Self {
        Self {
            tipsim: env!("CARGO_PKG_VERSION").to_owned(),
            core: core.clone(),
            plan: plan.clone(),
            start: system.harts.first().cycle(),
        }
    }
}

/// Gives calls to the writer, and what the guest's driver writes to the TIP unit at its place among them.
struct UnitTap {
    writer: UnitWriter,
    tip: SharedTip,
    /// The core times from its first call on, and nothing was given yet.
    begins: bool,
}

impl CoreTap for UnitTap {
    fn call(&mut self, call: CoreCall<'_>) {
        if std::mem::take(&mut self.begins) && !matches!(call, CoreCall::Rest { .. }) {
            self.write_side_band();
        }
        let may_have_written = match &call {
            CoreCall::Retire(executed) => executed.mem.mmio(),
            CoreCall::Wake { .. } => true,
            _ => false,
        };
        self.writer.call(call);
        if may_have_written {
            self.write_side_band();
        }
    }
}

impl UnitTap {
    /// Writes what the driver has written to the TIP unit since.
    fn write_side_band(&mut self) {
        let copies = self.tip.change(|tip| tip.copies.as_mut().map(std::mem::take));
        for record in copies.into_iter().flatten() {
            self.writer.call(CoreCall::Note { kind: record.kind, bytes: &record.bytes });
        }
    }
}

/// What writes what a core is told, and the thread that does so.
type TapAndThread = (Box<dyn CoreTap>, WriterHandle);

/// Returns what writes to `out` what a single core is told.
pub(crate) fn writer(
    out: Box<dyn Write + Send>,
    metadata: &UnitsMetadata,
    system: &System,
) -> Result<Option<TapAndThread>, SimulationError> {
    let Some(tip) = system.first_tip().cloned() else { return Ok(None) };
    let recording = |why: String| SimulationError::Recording(format!("stored units: {why}"));
    let metadata = serde_json::to_string(metadata).map_err(|e| recording(e.to_string()))?;
    let (writer, handle) =
        UnitWriter::new(out, &metadata, COMPRESSION_LEVEL, system.on_core_thread())
            .map_err(|e| recording(e.to_string()))?;
    // What was written before the core's first cycle is for the stream, too.
    tip.change(|tip| tip.copies = Some(tip.side_band.clone()));
    Ok(Some((Box::new(UnitTap { writer, tip, begins: true }), handle)))
}

/// What ends a stretch of calls that go to one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    Rest { learns: bool },
    Wake { cycle: u64 },
    Region(Event),
}

/// Stored units, as a core gets them.
pub struct StoredUnits {
    reader: UnitReader<Box<dyn Read>>,
    metadata: UnitsMetadata,
    /// Whether predictors learn while the core rests; `None`: the core times.
    pub(crate) resting: Option<bool>,
    /// Cycles by which the core is behind the one for which the guest executed.
    behind: u64,
    /// Instructions that were timed.
    timed: u64,
    fetched: (StaticId, u64),
    /// The TIP unit of the core that gets them; side-band records that were there before the core's first commit go there.
    tip: Option<SharedTip>,
    /// Nothing has been executed since the core began to time.
    begins: bool,
}

impl StoredUnits {
    /// Begins to read stored units.
    ///
    /// # Errors
    /// If the file is something else, or of another version.
    pub fn new(file: Box<dyn Read>) -> Result<Self, UnitsError> {
        let reader = UnitReader::new(file)?;
        let metadata = serde_json::from_str(reader.metadata());
        let metadata = metadata.map_err(|_| {
            UnitsError::Damaged("the metadata is not that of this version of tipsim")
        })?;
        Ok(Self {
            reader,
            metadata,
            resting: None,
            behind: 0,
            timed: 0,
            fetched: (StaticId(0), 0),
            tip: None,
            begins: true,
        })
    }

    /// Returns what the file says of the run that stored them.
    pub fn metadata(&self) -> &UnitsMetadata {
        &self.metadata
    }

    pub(crate) fn rest(&mut self, learns: bool) {
        self.resting = Some(learns);
    }

    /// Lets the core time from now on, which the other core did from `cycle` on; returns the cycle to which this one, which is in cycle
    /// `now`, sleeps.
    pub(crate) fn wake(&mut self, cycle: u64, now: u64) -> u64 {
        self.resting = None;
        self.begins = true;
        let to = cycle.max(now);
        self.behind = to - cycle;
        to
    }

    /// Tells what stands for a core that times up to the next switch.
    pub(crate) fn time(&mut self, ahead: &mut Ahead<'_>) -> Result<Option<Switch>, UnitsError> {
        while let Some(call) = self.reader.next_call()? {
            match call {
                CoreCall::Wake { cycle } => return Ok(Some(Switch::Wake { cycle })),
                CoreCall::Rest { learns } => return Ok(Some(Switch::Rest { learns })),
                CoreCall::Region(event) => return Ok(Some(Switch::Region(event))),
                CoreCall::Note { kind, bytes } if self.begins => {
                    // The stream gets them after the first commit, as they were there before.
                    let record = SideBandRecord { kind, bytes: bytes.to_vec() };
                    self.tip.iter().for_each(|tip| {
                        tip.change(|tip| tip.push_side_band(record.clone()));
                    });
                }
                CoreCall::IdleUntil(cycle) => ahead.idle_until(cycle.saturating_add(self.behind)),
                call => {
                    self.begins &= !matches!(call, CoreCall::Run(_) | CoreCall::Fetch { .. });
                    self.timed += retired(&call);
                    if !tell(ahead, call, &mut self.fetched) {
                        return Err(UnitsError::Damaged("a core that times is kept warm"));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Tells what keeps a core warm up to the next switch.
    pub(crate) fn warm<S: commit_trace::CommitSink>(
        &mut self,
        warming: &mut Warming<'_, S>,
    ) -> Result<Option<Switch>, UnitsError> {
        while let Some(call) = self.reader.next_call()? {
            match call {
                CoreCall::WarmAccess { access, translated } => {
                    warming.warm_access(&access, translated);
                }
                CoreCall::WarmFetch { pc, pa, translated } => {
                    warming.warm_fetch(pc, pa, translated);
                }
                CoreCall::Path(segments) => warming.follow(segments),
                CoreCall::Translated { va, walk } => warming.translated(va, &walk),
                CoreCall::FlushTlb => warming.flush_tlb(),
                CoreCall::DmaWrite(lines) => warming.dma_write(lines),
                CoreCall::FenceI => warming.warm_fence_i(),
                CoreCall::Wake { cycle } => return Ok(Some(Switch::Wake { cycle })),
                CoreCall::Rest { learns } => return Ok(Some(Switch::Rest { learns })),
                CoreCall::Region(event) => return Ok(Some(Switch::Region(event))),
                CoreCall::Run(_)
                | CoreCall::Fetch { .. }
                | CoreCall::Retire(_)
                | CoreCall::Interrupt
                | CoreCall::Define(_)
                | CoreCall::IdleUntil(_)
                | CoreCall::Note { .. }
                | CoreCall::Privilege(_) => {
                    return Err(UnitsError::Damaged("a core that rests executes"));
                }
            }
        }
        Ok(None)
    }
}

/// What is to be found of stored units.
pub struct RetimeOptions<'a> {
    /// The core.
    pub core: &'a Preset,
    /// The profilers; `None`: cycles alone.
    pub profilers: Option<Profilers>,
    /// Excerpts are taken.
    pub excerpts: bool,
    /// All events are counted.
    pub all_events: bool,
    /// Units as the run that stored them found them.
    pub units: &'a SampledUnits,
    /// Instructions of the region.
    pub instructions: u64,
    /// Called after each unit with the number of units so far; ends the work by returning false.
    pub after_unit: &'a mut dyn FnMut(usize) -> bool,
    /// The host's threads.
    pub threads: Threads,
    /// Called on each thread that begins.
    pub on_core_thread: fn(),
}

/// What a core made of stored units.
pub struct Retimed {
    /// What became of the sampling.
    pub sampled: Sampled,
    /// The units.
    pub units: SampledUnits,
    /// Counters of the core.
    pub stats: Vec<Stats>,
    /// Counts of every event in the units.
    pub counts: Option<serde_json::Value>,
    /// Excerpts, if they were asked for.
    pub excerpts: Vec<Excerpts>,
    /// What the profilers found, if there were some.
    pub recorded: Option<Recorded>,
}

/// Has a core time stored units. Returns `None` if the work was ended before its time.
///
/// # Errors
/// If the units are damaged or are not those of a run, or the core has other instructions than the one for which they were stored.
pub fn retime(
    mut stored: StoredUnits,
    options: RetimeOptions<'_>,
) -> Result<Option<Retimed>, SimulationError> {
    let preset = options.core;
    let UnitsMetadata { start, core: recorded_core, plan, .. } = stored.metadata().clone();
    if preset.isa != recorded_core.isa {
        return Err(SimulationError::Options(
            "isa: expected the extensions of the core for which the units were stored, found others".to_owned(),
        ));
    }
    let units = |e: UnitsError| SimulationError::Options(e.to_string());
    let mut consumer = None;
    let mut recorders = Vec::new();
    if options.profilers.is_some() {
        let (senders, stream) = recordings(&[start], IN_FLIGHT);
        recorders = senders;
        let width = preset.decode.width;
        let profilers = options.profilers.as_ref();
        let region = Region::Marked;
        consumer = Some(StreamConsumer::start(stream, None, profilers, region, (1, width))?);
    }
    let stream = StreamOptions {
        all_events: options.all_events,
        excerpts: options.excerpts.then(|| core_description(preset)),
        marked: true,
        spare_worker: consumer.as_ref().map(StreamConsumer::spare_worker),
        ..StreamOptions::default()
    };
    let clock_hz = u64::from(preset.clock.mhz) * 1_000_000;
    let tip = SharedTip::new(TipUnit::new(preset.decode.width as usize, clock_hz));
    stored.tip = Some(tip.clone());
    let start = CoreStart {
        start,
        recorder: recorders.pop().unwrap_or_else(|| commit_trace::Recorder::discarding(start)),
        tip: tip.clone(),
        units: SharedUnits::default(),
    };
    let host = (options.threads, options.on_core_thread);
    let irq_at = SharedCycle::new(u64::MAX);
    let memory = SharedMemory::new(preset, 1);
    let cores = timing_cores(&memory, preset, [start].into_iter(), &irq_at, &stream, host);
    // The consumer ends once nobody else holds a handle to it.
    drop(stream);
    let mut engine = Engine::timing(cores);
    let mut counts = RegionCounts::new(options.all_events).of_units(plan.scheme.tells_chance());
    let mut retimed = Vec::new();
    let mut expected = options.units.planned();
    let none = Unit {
        planned: PlannedUnit::at(0),
        instructions: 0,
        cycles: 0,
        misses: MissCounts::default(),
    };
    let mut unit = none;
    let mut opened: Option<(u64, u64)> = None;
    let mut is_whole = true;
    while let Some(cores) = engine.cores_mut() {
        let Some(event) = cores.replay(&mut stored).map_err(units)? else { break };
        let awake = cores.stats().first().map_or(0, |stats| stats.cycles - stats.cycles_idle);
        if let Event::Weight(weight) = event {
            cores.weigh(weight);
            counts.weigh(weight);
            continue;
        }
        cores.region(&event);
        counts.region(&event, &engine);
        if event == Event::RegionAnew {
            retimed.clear();
            expected = options.units.planned();
            unit = none;
        }
        if event != Event::Region(false) {
            opened = Some((stored.timed, awake));
            continue;
        }
        let Some((timed, before)) = opened.take() else { continue };
        unit.instructions += stored.timed - timed;
        unit.cycles += awake - before;
        // A unit may have several stretches.
        let Some((planned, instructions)) = expected.clone().next() else {
            return Err(units(UnitsError::Damaged("more units than the run had")));
        };
        if unit.instructions > instructions {
            return Err(units(UnitsError::Damaged("another unit than the run had")));
        }
        if unit.instructions == instructions {
            // What the run's core missed tells units apart for any core.
            let misses = options.units.unit_misses(retimed.len());
            retimed.push(Unit { planned, misses, ..unit });
            expected.next();
            unit = none;
            if !(options.after_unit)(retimed.len()) {
                is_whole = false;
                break;
            }
        }
    }
    if let Some(cores) = engine.cores_mut() {
        cores.end_warming();
    }
    let stats = engine.cores().map(|cores| cores.stats()).unwrap_or_default();
    let counts = counts.end(&engine, Some(options.instructions));
    let mut closed = engine.finish();
    let excerpts = closed.as_mut().map_or_else(Vec::new, StreamClosed::take_excerpts);
    let recorded = consumer.zip(closed);
    let recorded = recorded.map(|(consumer, closed)| consumer.finish(closed, false)).transpose()?;
    if !is_whole {
        return Ok(None);
    }
    if expected.next().is_some() {
        return Err(units(UnitsError::Damaged("fewer units than the run had")));
    }
    let strata = &options.units.strata_instructions;
    let misses = options.units.region_misses();
    let known = Known { strata, misses: misses.as_ref(), ..Known::default() };
    let sampled = Sampled::new(&plan, options.instructions, stored.timed, &retimed, known);
    let units = SampledUnits::of(&retimed, options.units.phases.clone(), known);
    Ok(Some(Retimed { sampled, units, stats, counts, excerpts, recorded }))
}
