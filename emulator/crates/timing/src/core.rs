//! The core: calls the path and then the pipeline, instruction by instruction or run by run.

use commit_trace::{CommitSink, Event};
use isa::{
    DecodedInst, DmaLines, Executed, PageWalk, PerfEvent, Privilege, Run, Selection, StaticId,
    StaticInst, TimingModel, Watch,
};

use crate::Preset;
use crate::mem::SharedMemory;
use crate::path::{Done, Path, PathOutput};
use crate::pipeline::Pipeline;
use crate::stats::Stats;
use crate::tap::{CoreCall, CoreTap};
use crate::warm::{MissCounts, WarmState};

/// The timing model of one hart.
pub struct Core<S> {
    pub(crate) path: Path,
    pub(crate) pipeline: Pipeline<S>,
    /// The path's output for the current call, which the pipeline reads.
    output: PathOutput,
    /// Present while caches are kept warm for a hart that executes without timing.
    pub(crate) warm_state: Option<Box<WarmState>>,
    /// What gets the calls of the core while the core is that of a single hart.
    pub(crate) tap: Option<Box<dyn CoreTap>>,
    /// Misses while the core was kept warm, up to the last time that it was.
    pub(crate) warm_misses: MissCounts,
    /// Cycles that the hart waited for lines of other harts while the core was kept warm.
    pub(crate) warm_delay: u64,
}

impl<S> Core<S> {
    /// Returns a core after reset whose first cycle is the one after `cycle`.
    pub fn starting_at(cycle: u64, preset: &Preset, sink: S) -> Self {
        Self::new(preset, sink).started_at(cycle)
    }

    /// Has the first cycle of a core that was just reset be the one after `cycle`, and returns the core.
    pub fn started_at(mut self, cycle: u64) -> Self {
        self.pipeline.start_at(cycle);
        self
    }

    /// Returns a core after reset.
    pub fn new(preset: &Preset, sink: S) -> Self {
        Self::sharing(&SharedMemory::new(preset, 1), 0, preset, sink)
    }

    /// Returns the core of hart `hart` after reset, connected to `memory`, which it shares with other harts.
    pub fn sharing(memory: &SharedMemory, hart: usize, preset: &Preset, sink: S) -> Self {
        Self {
            path: Path::new(preset),
            pipeline: Pipeline::new(memory, hart, preset, sink),
            output: PathOutput::default(),
            warm_state: None,
            tap: None,
            warm_misses: MissCounts::default(),
            warm_delay: 0,
        }
    }

    /// Returns the sink of the commit records.
    pub fn sink(&self) -> &S {
        &self.pipeline.sink
    }

    /// Returns the sink of the commit records.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.pipeline.sink
    }

    /// Drops the core and returns its sink.
    pub fn into_sink(self) -> S {
        self.pipeline.sink
    }

    /// Returns the core's parameters.
    pub fn preset(&self) -> &Preset {
        self.pipeline.preset()
    }

    /// Returns the cycle of the last commit or trap, or in which the hart woke up last.
    pub fn cycle(&self) -> u64 {
        self.pipeline.cycle()
    }

    /// Returns whether path and pipeline take turns from branch to branch, as the predictor learns by the pipeline's cycles.
    pub fn halves_alternate(&self) -> bool {
        self.path.learns_at_commit()
    }

    /// Passes to a tap, from now on, what [`Ahead`](crate::Ahead), [`Warming`](crate::Warming), [`Self::end_rest`] and [`Self::region`] tell the
    /// core. The tap does not get what the core is told directly as a [`TimingModel`], as the core of one of several harts is.
    pub fn set_tap(&mut self, tap: Box<dyn CoreTap>) {
        self.tap = Some(tap);
    }

    /// Returns everything counted since reset.
    pub fn stats(&self) -> Stats {
        self.pipeline.stats()
    }

    /// Counts all events from now on, not only those that cost next to nothing.
    pub fn count_all(&mut self) {
        self.pipeline.follow();
    }

    /// Reserves the first `count` instruction numbers, which were defined to another core.
    pub fn skip_ids(&mut self, count: usize) {
        self.path.skip_ids(count);
        self.pipeline.skip_ids(count);
    }
}

impl<S: CommitSink> Core<S> {
    /// Passes a run part by part, so that the path knows before each branch and jump what the pipeline has trained with.
    #[cold]
    fn run_in_parts(&mut self, run: &Run<'_>) -> u64 {
        let (mut done, mut decoded) = (Done::default(), 0);
        while let Some((part, packet)) = self.path.part(run, &mut done) {
            if let Some(packet) = packet {
                self.path.told(self.pipeline.untrained(packet));
            }
            self.output.clear();
            let extent = self.path.follow(&part, &mut self.output);
            decoded = self.pipeline.run(extent, &mut self.output.read());
            if packet.is_some() {
                self.follow_wrong_path(part.steps[0].id);
            }
        }
        decoded
    }

    /// Has the path follow what comes after the branch or jump that was executed last, if it is mispredicted.
    fn follow_wrong_path(&mut self, id: StaticId) {
        match self.pipeline.trainings.missed.take() {
            None => self.path.is_right(),
            Some((fetched, known)) => {
                let packets = self.path.wrong_path(id, known - fetched);
                self.pipeline.trainings.mispredicted(known, packets);
            }
        }
    }

    /// Returns the running totals of all events, in the order of [`PerfEvent::ALL`].
    pub fn counts(&self) -> Vec<u64> {
        let count = |&event| match event {
            // Up to the last commit: nothing is being executed.
            PerfEvent::Cycles | PerfEvent::ReferenceCycles => self.cycle(),
            event => self.pipeline.count(event),
        };
        PerfEvent::ALL.iter().map(count).collect()
    }

    /// Gives the sink the details of all that leaves the ROB from now on, whether or not sampling units want them, or
    /// no longer. Called between runs.
    pub fn observe_for_host(&mut self, on: bool) {
        self.path.observed_by.host = on;
        self.pipeline.observe(self.path.observed_by);
    }

    /// Gives the sink excerpts of some thousand instructions each from `cycle` on; `u64::MAX`: no more. Called between
    /// runs.
    pub fn excerpts_from(&mut self, cycle: u64) {
        self.pipeline.excerpts_from(cycle);
    }

    /// Adds an event of the region of interest (start, stop, restart) to the stream, after all that has committed. The
    /// machine calls it between runs, at a mark of the program.
    pub fn region(&mut self, event: Event) {
        if let Some(tap) = &mut self.tap {
            tap.call(CoreCall::Region(event.clone()));
        }
        self.pipeline.event(event);
    }
}

// `output` is empty between calls.
snapshot::snapshot!(Core<S> { path, pipeline } keeps { output, warm_state, tap, warm_misses, warm_delay });

impl<S: CommitSink> TimingModel for Core<S> {
    const TIMED: bool = true;
    const RUNS: bool = true;

    fn define(&mut self, inst: &StaticInst) {
        self.path.define(inst);
        self.pipeline.define(inst);
    }

    fn translated(&mut self, va: u64, walk: &PageWalk) {
        self.path.translated(va, walk);
    }

    fn fetch(
        &mut self,
        _id: StaticId,
        inst: &DecodedInst,
        pc: u64,
        pa: u64,
        translated: bool,
        _before: u64,
    ) -> u64 {
        let page = pa & !0xfff;
        if self.path.learns_at_commit() && inst.class.transfers() {
            let packet = self.path.next_packet(pc, inst.len);
            self.path.told(self.pipeline.untrained(packet));
        }
        self.output.clear();
        let packet = self.path.fetch(pc, inst.len, page, translated, &mut self.output);
        self.pipeline.fetch(packet, &mut self.output.read())
    }

    fn retire(&mut self, executed: &Executed) {
        self.output.clear();
        let passed = self.path.pass(executed, &mut self.output);
        let output = &mut self.output.read();
        self.pipeline.retire(executed, &passed, output);
        if self.path.learns_at_commit() && executed.inst.class.transfers() {
            self.follow_wrong_path(executed.id);
        }
    }

    fn run(&mut self, run: &Run<'_>, _before: u64) -> u64 {
        if self.path.learns_at_commit() {
            return self.run_in_parts(run);
        }
        self.output.clear();
        let extent = self.path.follow(run, &mut self.output);
        self.pipeline.run(extent, &mut self.output.read())
    }

    fn interrupt(&mut self, id: StaticId, _pc: u64, _handler_pc: u64) {
        self.path.flush();
        self.pipeline.interrupt(id);
    }

    fn idle_until(&mut self, cycle: u64) {
        self.path.flush();
        self.pipeline.idle_until(cycle);
    }

    fn wake_at(&mut self, cycle: u64) {
        self.pipeline.idle_until(cycle);
    }

    fn other_harts_executed(&mut self) {
        self.pipeline.other_harts_executed();
    }

    fn now(&self) -> u64 {
        self.pipeline.now()
    }

    fn count(&self, event: PerfEvent) -> u64 {
        self.pipeline.count(event)
    }

    fn select(&mut self, counter: usize, selection: Selection) {
        self.pipeline.select(counter, selection);
    }

    fn selected(&self, counter: usize) -> u64 {
        self.pipeline.selected(counter)
    }

    fn observe(&mut self, on: bool) {
        self.path.observed_by.units = on;
        self.pipeline.observe(self.path.observed_by);
    }

    fn watch(&mut self, counter: usize, watch: Option<Watch>) {
        self.pipeline.watch(counter, watch);
    }

    fn flush_tlb(&mut self) {
        self.path.flush_tlb();
        self.pipeline.flush_tlb();
    }

    fn dma_write(&mut self, lines: DmaLines) {
        self.pipeline.dma_write(lines);
    }

    fn note(&mut self, kind: u8, bytes: Vec<u8>) {
        self.pipeline.event(Event::SideBand { kind, bytes });
    }

    fn privilege(&mut self, privilege: Privilege) {
        self.pipeline.privilege(privilege);
    }
}
