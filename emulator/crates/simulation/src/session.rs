//! An experiment in steps: run until something happens, switch between functional harts and timing cores, begin and end regions, save,
//! and finish with all that was recorded.

mod finished;
mod goal;
mod observer;
mod sampling;

use std::path::Path;

use commit_trace::{Event, recordings};
use machine::{DebugStop, Limit, Mark, RunExit};
use phases::Survey;
use stored_units::WriterHandle;
use timing::{MissCounts, Preset, Stats};
use truth::SharedLines;

use crate::checkpoint::{self, CheckpointContext};
use crate::commit_stage::StreamClosed;
use crate::cores::StreamOptions;
use crate::counts::{RegionCounts, totals};
use crate::engine::{BetweenUnits, Engine, Rest};
use crate::error::SimulationError;
use crate::laps::Laps;
use crate::options::Mode;
use crate::recording::{IN_FLIGHT, Recording, StreamConsumer, core_description};
use crate::region::{RegionState, Regions, RunPosition};
use crate::sampling::{Sampled, SampledHarts, Sampler, Scheme};
use crate::stored::{self, UnitsMetadata};
use crate::survey::Surveyor;
use crate::system::System;
use crate::units::uncore::UncoreRegion;

pub use finished::{CollectedTruth, Finished};
pub use goal::{Goal, Stop};
pub use observer::{Flow, NoObserver, Observer, SLICE};

/// A machine, what executes it, and what is recorded of it.
pub struct Session {
    system: System,
    engine: Engine,
    preset: Preset,
    recording: Recording,
    /// What takes the stream, once a timed part has begun.
    consumer: Option<StreamConsumer>,
    /// Cache lines as all harts used them, for the truth.
    lines: SharedLines,
    /// The timing cores execute the region of interest, and the functional harts the rest.
    follows_marks: bool,
    regions: Regions,
    /// Which part of the region is timed; `None`: all of it.
    sampler: Option<Sampler>,
    /// Weight of what is recorded at present: how much of the region it stands for, in relation to other units.
    weight: u32,
    /// State of a sampled region that several harts execute; `None` with one hart, or without sampling.
    sampled_harts: Option<SampledHarts>,
    /// What writes the units to be stored, once a timed part has begun.
    unit_writer: Option<WriterHandle>,
    counts: RegionCounts,
    uncore: UncoreRegion,
    laps: Laps,
}

impl Session {
    /// Begins a session with a machine that is loaded, or goes on from a checkpoint. With a marked region and the functional `mode`, the
    /// timing cores of `preset` execute the region, and the functional harts the rest.
    ///
    /// # Errors
    /// If the recording cannot begin.
    pub fn new(
        system: System,
        preset: &Preset,
        recording: Recording,
        mode: Mode,
    ) -> Result<Self, SimulationError> {
        let mut recording = recording;
        let engine = match recording.survey.take() {
            Some(options) => Engine::surveying(Surveyor::new(options, system.threads())),
            None => Engine::FUNCTIONAL,
        };
        let mut session = Self::with_engine(system, engine, preset, recording);
        session.follows_marks = mode == Mode::Functional && session.recording.region.is_marked();
        if session.recording.scripts {
            session.system.sample_scripts();
        }
        if mode == Mode::Timing {
            session.start_cores()?;
        }
        Ok(session)
    }

    /// Begins a session that goes on in `engine`, and records only what begins later.
    pub fn with_engine(
        mut system: System,
        engine: Engine,
        preset: &Preset,
        recording: Recording,
    ) -> Self {
        system.harts.stop_at_regions(true);
        system.harts.stop_when_stuck(true);
        let mut sampling = recording.sampling.clone();
        let harts = system.harts.len();
        if let Some(plan) = sampling.as_mut().filter(|_| harts > 1) {
            // Calls to the cores of several harts are not logged. Without a log, no unit can be timed twice.
            plan.check = 0;
        }
        if let Some(plan) = sampling.as_mut().filter(|plan| plan.scheme == Scheme::Live) {
            // A live plan knows a unit too late for the long timed warm-up of a unit that is timed twice.
            plan.check = 0;
        }
        let several = sampling.as_ref().filter(|_| harts > 1);
        Self {
            sampled_harts: several.map(|plan| SampledHarts::new(harts, plan.unit)),
            lines: SharedLines::new(system.harts.len()),
            follows_marks: false,
            regions: Regions::new(recording.region),
            sampler: sampling.as_ref().map(|plan| {
                let latencies = (harts == 1).then(|| MissCounts::latencies(preset));
                Sampler::new(plan, &recording.chosen, latencies)
            }),
            weight: 1,
            unit_writer: None,
            counts: match recording.sampling {
                Some(ref plan) => {
                    RegionCounts::new(recording.all_events).of_units(plan.scheme.tells_chance())
                }
                None => RegionCounts::new(recording.all_events),
            },
            uncore: UncoreRegion::default(),
            laps: Laps::new(&system),
            consumer: None,
            preset: preset.clone(),
            recording,
            engine,
            system,
        }
    }

    /// Returns the machine.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// Returns the machine, to look at or change between two steps.
    pub fn system_mut(&mut self) -> &mut System {
        &mut self.system
    }

    /// Returns whether the timing cores execute, not the functional harts.
    pub fn is_timing(&self) -> bool {
        self.engine.is_timing()
    }

    /// Returns the cycle of the hart that is furthest, and the instructions of all.
    pub fn position(&self) -> RunPosition {
        (self.system.harts.latest_cycle(), self.system.harts.instructions())
    }

    /// Returns what the timing core of each hart counted, without the cycles in which it rested.
    pub fn stats(&self) -> Vec<Stats> {
        self.engine.cores().map(|cores| cores.stats()).unwrap_or_default()
    }

    /// Returns the running totals of all events on each hart, in the order of `PerfEvent::ALL`; empty before the first timed part.
    pub fn counts(&self) -> Vec<Vec<u64>> {
        totals(&self.engine)
    }

    /// Returns the counts of the region so far, or of all that was timed while there has been none, by hart and event. `None`: nothing
    /// was timed.
    pub fn region_counts(&self) -> Option<serde_json::Value> {
        self.counts.clone().end(&self.engine, None)
    }

    /// Returns true once something could not be recorded.
    pub fn recording_failed(&self) -> bool {
        self.consumer.as_ref().is_some_and(StreamConsumer::failed)
            || self.unit_writer.as_ref().is_some_and(WriterHandle::failed)
    }

    /// Returns whether a region of interest, or a stretch of it, has begun and ended.
    pub fn has_closed_region(&self) -> bool {
        self.regions.count() > 0
    }

    /// Returns whether a region of interest is open.
    pub fn is_region_open(&self) -> bool {
        self.regions.is_open()
    }

    /// Lets the timing cores execute from now on. Those that rested go on with what they have in their caches.
    ///
    /// # Errors
    /// If the recording cannot begin.
    pub fn timing(&mut self) -> Result<(), SimulationError> {
        if self.is_timing() {
            return Ok(());
        }
        self.laps.lap(&self.system, false);
        let now: Vec<u64> = self.system.harts.positions().map(|(_, cycle)| cycle).collect();
        if self.engine.go_on(&now) {
            return Ok(());
        }
        self.start_cores()
    }

    /// Lets the functional harts execute from now on; the timing cores rest, and record nothing.
    pub fn functional(&mut self) {
        if self.is_timing() {
            self.laps.lap(&self.system, true);
            self.engine.rest(match self.warms() {
                true => Rest::BetweenUnits(BetweenUnits::WARM_START),
                false => Rest::Cold,
            });
        }
    }

    /// Keeps the timing core warm from now on while the functional hart executes, if the recording asks for functional warming: what is timed later
    /// begins with the caches, TLBs and predictors that the program left. For the guest, time passes as on a functional hart alone. `warmed_state` is
    /// what a core of the same preset has learnt before, from a checkpoint; it is empty if there is nothing.
    ///
    /// # Errors
    /// If `warmed_state` is not of such a core.
    pub fn keep_warm(&mut self, warmed_state: &[u8]) -> Result<(), SimulationError> {
        if !self.warms() || self.engine.cores().is_some() {
            return Ok(());
        }
        let mut core = self.system.core_to_warm(&self.preset);
        if !warmed_state.is_empty() {
            core.begin_warm(warmed_state)?;
        }
        self.engine.keep_warm(core);
        Ok(())
    }

    /// Brings the core that is kept warm into the state that it would have after a checkpoint was saved and loaded.
    ///
    /// # Errors
    /// If its state cannot be told.
    pub fn settle_warmed_state(&mut self) -> Result<(), SimulationError> {
        self.engine.warmed_state()?;
        Ok(())
    }

    /// Returns whether the functional hart keeps a timing core warm.
    fn warms(&self) -> bool {
        self.recording.warm && self.system.harts.len() == 1
    }

    /// Sets the core that executes the timed part, which must not have begun. If a core is kept warm, a core of the new preset takes its place and
    /// begins with empty caches and predictors.
    ///
    /// # Errors
    /// If a timed part has begun, or the machine has another clock or other extensions than the core.
    pub fn set_core(&mut self, preset: &Preset) -> Result<(), SimulationError> {
        let refused = |why: String| Err(SimulationError::Options(format!("core: {why}")));
        if self.engine.cores().is_some() {
            return refused("expected it before the first timed part, which has begun".to_owned());
        }
        if preset.clock != self.preset.clock {
            let (expected, found) = (self.preset.clock.mhz, preset.clock.mhz);
            return refused(format!(
                "clock.mhz: expected the machine's, {expected}, found {found}"
            ));
        }
        if preset.isa != self.preset.isa {
            return refused("isa: expected the machine's extensions, found others".to_owned());
        }
        if preset.decode.width != self.preset.decode.width {
            let (expected, found) = (self.preset.decode.width, preset.decode.width);
            return refused(format!(
                "decode.width: expected that of the machine's TIP unit, {expected}, found {found}"
            ));
        }
        self.preset = preset.clone();
        if self.engine.is_warming() {
            self.engine.keep_warm(self.system.core_to_warm(&self.preset));
        }
        Ok(())
    }

    /// Takes a mark, as if a hart executed its instruction now: the region of interest begins or ends.
    ///
    /// # Errors
    /// If the recording cannot begin.
    pub fn mark(&mut self, mark: Mark) -> Result<(), SimulationError> {
        let now = self.position();
        match self.regions.take(mark, now) {
            Some(event) => self.region(&event, now),
            None => Ok(()),
        }
    }

    /// Lets the region start, stop or begin anew at `now`.
    fn region(&mut self, event: &Event, now: RunPosition) -> Result<(), SimulationError> {
        if self.follows_marks && self.sampler.is_some() {
            return self.sample_region(event);
        }
        let retired = self.system.harts.instructions();
        if let Some(surveyor) = self.engine.surveyor_mut() {
            surveyor.take_event(event, retired);
            return Ok(());
        }
        self.record_region(event, now)
    }

    /// Returns the cycles that the harts' cores have spent awake, all together.
    fn awake_cycles(&self) -> u64 {
        let awake = |stats: &Stats| stats.cycles - stats.cycles_idle;
        self.stats().iter().map(awake).sum()
    }

    /// Lets what is recorded start, stop or begin anew at `now`.
    fn record_region(&mut self, event: &Event, now: RunPosition) -> Result<(), SimulationError> {
        let (opens, anew) = (*event != Event::Region(false), *event == Event::RegionAnew);
        self.system.uncore.follow(&mut self.uncore, opens, anew, now.0);
        let is_sampled = self.sampler.is_some();
        if self.follows_marks && opens && !is_sampled {
            self.timing()?;
        }
        // A mark that one hart executes is for all of them.
        if let Some(cores) = self.engine.cores_mut() {
            cores.region(event);
        }
        if self.recording.region.is_marked() {
            self.counts.region(event, &self.engine);
        }
        if self.follows_marks && !opens && !is_sampled {
            self.functional();
        }
        Ok(())
    }

    /// Runs one slice, and takes the mark that ends it, if one does.
    ///
    /// # Errors
    /// If the recording of a region cannot begin.
    pub fn advance(&mut self, limit: Limit) -> Result<RunExit, SimulationError> {
        let exit = self.system.run(&mut self.engine, limit);
        if let RunExit::Region(mark) = exit {
            self.mark(mark)?;
        }
        Ok(exit)
    }

    /// Runs until the goal is reached, the guest ends or comes to nothing, or the observer ends the run. This is the one loop of
    /// every run.
    ///
    /// # Errors
    /// The observer's, and those of [`Self::advance`].
    pub fn run_until<O: Observer>(
        &mut self,
        goal: &Goal,
        observer: &mut O,
    ) -> Result<Stop, O::Error> {
        if let Some(pc) = goal.breakpoint {
            for hart in &mut self.system.harts {
                hart.pass_breakpoint();
                hart.set_breakpoint(pc, true);
            }
        }
        let stop = self.run_slices(goal, observer);
        if let Some(pc) = goal.breakpoint {
            for hart in &mut self.system.harts {
                hart.set_breakpoint(pc, false);
                hart.take_debug_stopped();
            }
        }
        stop
    }

    fn run_slices<O: Observer>(&mut self, goal: &Goal, observer: &mut O) -> Result<Stop, O::Error> {
        let retired = |session: &Self| session.system.harts.instructions();
        let last = goal.instructions.map_or(u64::MAX, |count| retired(self).saturating_add(count));
        loop {
            if observer.before_slice(self)? == Flow::End {
                return Ok(Stop::Observer);
            }
            // A slice also counts instructions that trap, which do not retire: after a slice, some of the wanted instructions may be left.
            let left = last.saturating_sub(retired(self));
            if left == 0 || goal.cycle.is_some_and(|cycle| self.position().0 >= cycle) {
                return Ok(Stop::Reached);
            }
            let slice = observer.slice(self).min(left);
            let slice = match &self.sampler {
                Some(sampler) => slice.min(sampler.left(retired(self))),
                None => slice,
            };
            let now = retired(self);
            let slice = match self.engine.surveyor_mut() {
                Some(surveyor) => slice.min(surveyor.left(now)),
                None => slice,
            };
            let limit = Limit { instructions: slice, cycle: goal.cycle.unwrap_or(u64::MAX) };
            let exit = self.advance(limit)?;
            self.sample()?;
            let now = retired(self);
            if let Some(surveyor) = self.engine.surveyor_mut() {
                surveyor.advance(now);
            }
            match observer.after_slice(self, exit)? {
                Flow::End => return Ok(Stop::Observer),
                Flow::GoOn => continue,
                Flow::Default => {}
            }
            match exit {
                RunExit::Exit(exit) => return Ok(Stop::Exit(exit)),
                RunExit::Idle => return Ok(Stop::Idle),
                RunExit::Stuck(stuck) => return Ok(Stop::Stuck(stuck)),
                RunExit::Debug(DebugStop::Breakpoint) if goal.breakpoint.is_some() => {
                    return Ok(Stop::Reached);
                }
                RunExit::Debug(stop) => return Ok(Stop::Debug(stop)),
                RunExit::Region(mark) if goal.mark == Some(mark) => return Ok(Stop::Reached),
                RunExit::Paused if goal.pause => return Ok(Stop::Reached),
                RunExit::Limit | RunExit::Paused | RunExit::Region(_) => {}
            }
        }
    }

    /// Saves the machine, and the timing cores if they execute, as a checkpoint; `printed`: what the guest's console has; `guest` names the
    /// guest that booted.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(
        &mut self,
        path: &Path,
        printed: Vec<u8>,
        guest: Vec<u8>,
    ) -> Result<(), SimulationError> {
        let warmed_state = self.engine.warmed_state()?.unwrap_or_default();
        let region = self.regions.state();
        let mut context = CheckpointContext { printed, region, guest, warmed_state };
        checkpoint::save(path, &mut self.system, &mut self.engine, &self.preset, &mut context)
    }

    /// Restores the region of interest from a checkpoint. The session must have the checkpoint's machine, and must not have run it yet.
    ///
    /// # Errors
    /// If the recording cannot begin.
    pub fn resume_region(&mut self, region: &RegionState) -> Result<(), SimulationError> {
        let now = self.position();
        match self.regions.resume(region, self.recording.region, now) {
            Some(event) => self.region(&event, now),
            None => Ok(()),
        }
    }

    /// Returns the state of machine and timing cores, for [`Self::restore`].
    ///
    /// # Errors
    /// If a device cannot be saved.
    pub fn state(&mut self) -> Result<Vec<u8>, SimulationError> {
        Ok(checkpoint::to_memory(&mut self.system, &mut self.engine)?)
    }

    /// Puts the machine back into an earlier state of its own; it goes on in `mode`, and records nothing.
    ///
    /// # Errors
    /// If the state is not one of this machine.
    pub fn restore(&mut self, state: &[u8], mode: Mode) -> Result<(), SimulationError> {
        self.engine = checkpoint::from_memory(state, &mut self.system, mode, &self.preset)?;
        Ok(())
    }

    /// Ends the sampling of the region and returns what became of it; `None` if it is not sampled.
    ///
    /// # Errors
    /// If the recording of a region cannot begin.
    pub fn sampled(&mut self) -> Result<Option<Sampled>, SimulationError> {
        self.end_sampling()?;
        let sampled = self.sampler.as_mut().map(Sampler::summary);
        Ok(match &mut self.sampled_harts {
            Some(harts) => sampled.map(|sampled| sampled.of_several(harts.estimates())),
            None => sampled,
        })
    }

    /// Ends the survey of the region and returns it; `None` if there was none.
    ///
    /// # Errors
    /// If basic-block vectors could not be written.
    pub fn take_survey(&mut self) -> Result<Option<Survey>, SimulationError> {
        let retired = self.system.harts.instructions();
        let Some(mut surveyor) = self.engine.take_surveyor() else { return Ok(None) };
        if surveyor.is_open() {
            surveyor.close(retired);
        }
        surveyor.finish().map(Some)
    }

    /// Ends the session, waits until its recording has been read, and returns the results. `is_part`: the run ended before its time, and the trace is
    /// to say that.
    ///
    /// # Errors
    /// If a thread of the recording died.
    pub fn finish(mut self, is_part: bool) -> Result<Finished, SimulationError> {
        if let Some(cores) = self.engine.cores_mut() {
            cores.end_warming();
        }
        let (end_at, stats) = (self.position(), self.stats());
        self.end_sampling()?;
        let regions = self.regions.end(end_at);
        let mut sampled = self.sampler.map(Sampler::finish);
        if let Some(harts) = &mut self.sampled_harts {
            sampled =
                sampled.map(|(sampled, units)| (sampled.of_several(harts.estimates()), units));
        }
        let (system, timing) = (&self.system, self.engine.is_timing());
        system.uncore.follow(&mut self.uncore, false, false, end_at.0);
        let uncore = system.uncore.describe(&self.uncore, system.harts.len(), end_at.0);
        let instructions = sampled.as_ref().map(|(sampled, _)| sampled.instructions);
        let counts = self.counts.end(&self.engine, instructions);
        let mut closed = self.engine.finish();
        // The core held the sending end of the writer's channel. The core has ended, so the writer can end, too.
        let stored_units = self.unit_writer.map(WriterHandle::finish);
        let collectors = closed.as_mut().map_or_else(Vec::new, StreamClosed::take_truth);
        let excerpts = closed.as_mut().map_or_else(Vec::new, StreamClosed::take_excerpts);
        let truth = (!collectors.is_empty()).then(|| CollectedTruth {
            collectors,
            lines: self.lines,
            units: system.sampled(),
        });
        if let Some(error) = closed.as_ref().and_then(StreamClosed::error) {
            tracing::error!("{error}");
        }
        let recorded = self.consumer.zip(closed);
        let recorded = recorded.map(|(consumer, closed)| consumer.finish(closed, is_part));
        let recorded = recorded.transpose()?;
        // The lap includes the time in which the consumer read the rest of the stream.
        self.laps.lap(system, timing);
        if let Some(stats) = stats.first() {
            self.laps.timing.cycles = stats.cycles;
        }
        Ok(Finished {
            regions,
            sampled,
            laps: self.laps,
            stats,
            counts,
            tip_frozen_cycles: system.tip_frozen_cycles(),
            uncore,
            truth,
            excerpts,
            stored_units,
            recorded,
        })
    }

    /// Starts the timing cores, and the recording, if there is to be one.
    fn start_cores(&mut self) -> Result<(), SimulationError> {
        let warmed_state = self.engine.warmed_state()?;
        let recording = &mut self.recording;
        let stages = recording.stages && recording.trace.is_some();
        let mut recorders = Vec::new();
        if recording.has_stream() {
            let starts: Vec<u64> = self.system.harts.positions().map(|(_, cycle)| cycle).collect();
            let (senders, stream) = recordings(&starts, IN_FLIGHT);
            recorders = senders;
            self.consumer = Some(StreamConsumer::start(
                stream,
                recording.trace.take(),
                recording.profilers.as_ref(),
                recording.region,
                (self.system.harts.len(), self.preset.decode.width),
            )?);
        }
        let options = StreamOptions {
            stages,
            all_events: recording.all_events,
            truth: recording.truth.then(|| self.lines.clone()),
            excerpts: recording.excerpts.then(|| core_description(&self.preset)),
            marked: recording.region.is_marked(),
            spare_worker: self.consumer.as_ref().map(StreamConsumer::spare_worker),
        };
        self.engine = self.system.timing(&self.preset, recorders, &options);
        if let (Some(warmed_state), Some(cores)) = (warmed_state, self.engine.cores_mut()) {
            cores.begin_warm(&warmed_state)?;
        }
        let (Some(sampler), Some(cores)) = (&self.sampler, self.engine.cores_mut()) else {
            return Ok(());
        };
        let plan = sampler.plan();
        let mut store = None;
        if let Some(out) = self.recording.stored_units.take() {
            let metadata = UnitsMetadata::new(&self.system, &self.preset, plan);
            let writer = stored::writer(out, &metadata, &self.system)?;
            (store, self.unit_writer) = writer.unzip();
        }
        if store.is_some() || plan.check != 0 || sampler.asks_for_misses() {
            cores.tap(store);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
