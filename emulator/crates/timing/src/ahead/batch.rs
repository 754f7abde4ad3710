//! What the hart's side gives to the core's.

use commit_trace::{CommitSink, Event};
use isa::{DmaLines, Executed, PerfEvent, Privilege, Run, Selection, StaticId, StaticInst, Watch};

use crate::observe::ObservedBy;
use crate::path::{Extent, InstOutput, NextPacket, Packet, Path, PathOutput};
use crate::pipeline::Pipeline;

/// Calls of a batch, at most.
const CALLS: usize = 128;

/// One call of [`Pipeline`], in order.
#[derive(Clone, Copy)]
pub(super) enum Call {
    /// The next of [`Batch::defined`].
    Define,
    Run(Extent),
    Fetch(Option<Packet>),
    /// The next of [`Batch::retired`].
    Retire,
    Interrupt(StaticId),
    IdleUntil(u64),
    FlushTlb,
    DmaWrite(DmaLines),
    Privilege(Privilege),
    Select(usize, Selection),
    Observe(ObservedBy),
    Watch(usize, Option<Watch>),
    /// The next of [`Batch::notes`].
    Note,
}

/// What the hart waits for after a batch.
#[derive(Clone, Copy, Default)]
pub(super) enum Question {
    #[default]
    Nothing,
    Count(PerfEvent),
    /// The total of the events that a counter is set to.
    Selected(usize),
    /// How many packets before the last one the predictor has not been trained with when a packet is fetched.
    Untrained(NextPacket),
    /// For how many cycles after the fetch of its packet the branch or jump that was executed last is not known to be mispredicted; 0: it is not.
    Mispredicted,
    /// Nothing: the repair of predictors after that goes over so many packets.
    Repair(u64),
}

/// What the core says after a batch.
#[derive(Clone, Copy, Default)]
pub(super) struct Answer {
    /// Cycle in which the last instruction was decoded.
    pub decoded: u64,
    /// Cycle in which a CSR instruction that was fetched last accesses its register ([`Pipeline::now`]).
    pub now: u64,
    /// The total that the batch's [`Question`] asks for; 0 without one.
    pub count: u64,
}

/// Calls, and what the hart wants to know after them.
#[derive(Default)]
pub(super) struct Batch {
    calls: Vec<Call>,
    output: PathOutput,
    defined: Vec<StaticInst>,
    retired: Vec<(Executed, InstOutput)>,
    /// Side-band records of the simulator's own. They do not count towards the size of a batch, since the guest could see where batches end.
    notes: Vec<(u8, Vec<u8>)>,
    instructions: usize,
    pub question: Question,
}

impl Batch {
    /// Returns true if the batch has nothing but notes, which can wait.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.len() == self.notes.len()
    }

    pub(super) fn has_notes(&self) -> bool {
        !self.notes.is_empty()
    }

    /// Returns true if the batch has at least `instructions` instructions, or as many calls as a batch may have.
    pub(super) fn is_full(&self, instructions: usize) -> bool {
        self.instructions >= instructions || self.calls.len() - self.notes.len() >= CALLS
    }

    #[inline]
    pub(super) fn push(&mut self, call: Call) {
        self.calls.push(call);
    }

    pub(super) fn note(&mut self, kind: u8, bytes: Vec<u8>) {
        self.notes.push((kind, bytes));
        self.push(Call::Note);
    }

    pub(super) fn define(&mut self, inst: &StaticInst) {
        self.defined.push(*inst);
        self.push(Call::Define);
    }

    #[inline]
    pub(super) fn run(&mut self, run: &Run<'_>, path: &mut Path) {
        self.instructions += run.steps.len();
        let extent = path.follow(run, &mut self.output);
        self.push(Call::Run(extent));
    }

    /// Fetches the next instruction, which is at `pc`, has `len` bytes, and is in the page at physical address `page`.
    pub(super) fn fetch(&mut self, pc: u64, len: u8, page: u64, translated: bool, path: &mut Path) {
        let packet = path.fetch(pc, len, page, translated, &mut self.output);
        self.push(Call::Fetch(packet));
    }

    pub(super) fn retire(&mut self, executed: &Executed, path: &mut Path) {
        self.instructions += 1;
        let passed = path.pass(executed, &mut self.output);
        self.retired.push((*executed, passed));
        self.push(Call::Retire);
    }

    pub(super) fn clear(&mut self) {
        self.calls.clear();
        self.output.clear();
        self.defined.clear();
        self.retired.clear();
        self.notes.clear();
        self.instructions = 0;
        self.question = Question::Nothing;
    }
}

/// Makes the calls of batches to the pipeline, the half of the core that keeps time.
pub(super) struct Server<'a, S> {
    pipeline: &'a mut Pipeline<S>,
    /// Cycle in which the last instruction was decoded.
    decoded: u64,
}

impl<'a, S: CommitSink> Server<'a, S> {
    pub(super) fn new(pipeline: &'a mut Pipeline<S>) -> Self {
        let decoded = pipeline.cycle();
        Self { pipeline, decoded }
    }

    /// Does what a batch says; returns the cycle to which that takes the core, and the answer.
    pub(super) fn serve(&mut self, batch: &Batch) -> (u64, Answer) {
        let Self { pipeline, decoded } = self;
        let mut output = batch.output.read();
        let (mut defined, mut retired) = (batch.defined.iter(), batch.retired.iter());
        let mut notes = batch.notes.iter();
        for call in &batch.calls {
            match *call {
                Call::Define => defined.next().into_iter().for_each(|d| pipeline.define(d)),
                Call::Run(extent) => *decoded = pipeline.run(extent, &mut output),
                Call::Fetch(packet) => *decoded = pipeline.fetch(packet, &mut output),
                Call::Retire => {
                    if let Some((executed, passed)) = retired.next() {
                        pipeline.retire(executed, passed, &mut output);
                    }
                }
                Call::Interrupt(id) => pipeline.interrupt(id),
                Call::IdleUntil(cycle) => pipeline.idle_until(cycle),
                Call::FlushTlb => pipeline.flush_tlb(),
                Call::DmaWrite(lines) => pipeline.dma_write(lines),
                Call::Privilege(privilege) => pipeline.privilege(privilege),
                Call::Select(counter, selection) => pipeline.select(counter, selection),
                Call::Observe(by) => pipeline.observe(by),
                Call::Watch(counter, watch) => pipeline.watch(counter, watch),
                Call::Note => {
                    if let Some((kind, bytes)) = notes.next() {
                        let (kind, bytes) = (*kind, bytes.clone());
                        pipeline.event(Event::SideBand { kind, bytes });
                    }
                }
            }
        }
        let count = match batch.question {
            Question::Nothing => 0,
            Question::Count(event) => pipeline.count(event),
            Question::Selected(counter) => pipeline.selected(counter),
            Question::Untrained(packet) => pipeline.untrained(packet),
            Question::Mispredicted => pipeline.trainings.missed.map_or(0, |(f0, known)| known - f0),
            Question::Repair(packets) => {
                if let Some((_, known)) = pipeline.trainings.missed.take() {
                    pipeline.trainings.mispredicted(known, packets);
                }
                0
            }
        };
        let answer = Answer { decoded: *decoded, now: pipeline.now(), count };
        (pipeline.cycle().max(*decoded), answer)
    }
}
