//! The hart's side.

use std::cell::RefCell;

use isa::{
    DecodedInst, DmaLines, Executed, PageWalk, PerfEvent, Privilege, Run, Selection, SharedCycle,
    StaticId, StaticInst, TimingModel, Watch,
};

use super::batch::{Answer, Batch, Call, Question};
use super::cycle_bound::CycleBound;
use super::link::{BATCHES, BatchChannel};
use crate::path::{Done, NextPacket, Path};
use crate::tap::{CoreCall, CoreTap};

/// Instructions of a batch, about: some ten microseconds of the core's work.
const STEPS: usize = 1024;
/// Instructions of the first batch, and of the next one after the hart waited for the core: the core has nothing to do
/// until it comes.
const FIRST_STEPS: usize = 64;

/// The timing model that the hart sees.
///
/// Behind a `RefCell`: to say the cycle takes no more than a shared reference, but waits for the core.
pub struct Ahead<'a>(RefCell<Queue<'a>>);

/// What core and machine say to each other beside the timing model's calls.
#[derive(Clone, Copy)]
pub struct CoreWiring<'a> {
    /// Cycle up to which no commit changes anything in the machine that the hart could see; `u64::MAX`: no commit ever does. The machine may set this
    /// cycle while the core has nothing to do. The core's sink may set it after that cycle and, unless it is `u64::MAX`, at a change of privilege.
    pub quiet_until: &'a SharedCycle,
    /// Cycle in which an interrupt becomes pending, as the core's sink tells; `u64::MAX`: none does.
    pub raised: &'a SharedCycle,
    /// The machine's cycle of the next interrupt. The hart brings it forward to [`Self::raised`] when it waits for the
    /// core.
    pub irq_at: &'a SharedCycle,
    /// Does some microseconds of other work, unless there is none that the other thread does not do already; returns
    /// true if there was some. With two threads, the one that waits for the other calls it.
    pub spare_work: &'a (dyn Fn(SpareWork) -> bool + Sync),
}

/// Other work that the hart's or core's thread does while it waits for the other, by urgency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpareWork {
    /// Whatever there is.
    Any,
    /// What cannot wait.
    Urgent,
}

/// The hart's calls on their way to the core: batches that were sent, and the one that was not yet.
struct Queue<'a> {
    path: &'a mut Path,
    tap: Option<&'a mut (dyn CoreTap + 'static)>,
    channel: &'a mut dyn BatchChannel,
    batch: Batch,
    /// Number of instructions from which on the batch is sent.
    most: usize,
    /// Batches sent.
    sent: u64,
    /// Instructions sent or in the batch.
    instructions: u64,
    /// Instructions up to the end of each of the last batches sent, by the batch's number modulo [`BATCHES`].
    until: [u64; BATCHES as usize],
    /// Number of the last batch whose finish cycle is known.
    known: u64,
    bound: CycleBound,
    wiring: CoreWiring<'a>,
    /// [`CoreWiring::quiet_until`], as it was when the core had nothing to do.
    quiet: u64,
    /// The core's last answer, while the core has nothing to do.
    answer: Option<Answer>,
    /// True if the hart waited for the exact cycle of the instruction fetched last: its retirement may then change something in the machine.
    exact: bool,
    /// How often the hart has waited for the core.
    waits: u64,
}

impl<'a> Ahead<'a> {
    pub(super) fn new(
        path: &'a mut Path,
        tap: Option<&'a mut (dyn CoreTap + 'static)>,
        channel: &'a mut dyn BatchChannel,
        wiring: CoreWiring<'a>,
        cycle: u64,
    ) -> Self {
        Self(RefCell::new(Queue {
            path,
            tap,
            channel,
            batch: Batch::default(),
            most: FIRST_STEPS,
            sent: 0,
            instructions: 0,
            until: [0; BATCHES as usize],
            known: 0,
            bound: CycleBound::new(cycle),
            quiet: 0,
            wiring,
            answer: None,
            exact: false,
            waits: 0,
        }))
    }

    /// Returns how often the hart has waited for the core.
    pub fn waits(&self) -> u64 {
        self.0.borrow().waits
    }

    /// Sends the calls that are left, and waits until the core has done them.
    pub(super) fn finish(self) {
        let mut queue = self.0.into_inner();
        match queue.batch.has_notes() {
            true => queue.ask_for(Question::Nothing),
            false => queue.ask(),
        };
    }
}

impl Queue<'_> {
    /// Sends the batch to the core.
    fn send(&mut self) {
        self.refresh_quiet();
        self.channel.send(&mut self.batch, self.instructions);
        self.batch.clear();
        self.most = (2 * self.most).min(STEPS);
        self.sent += 1;
        self.until[(self.sent % BATCHES) as usize] = self.instructions;
        self.answer = None;
        // The next batch takes the place of an old one in `until`.
        if self.sent - self.known > BATCHES - 1 {
            self.learn();
        }
    }

    /// Waits for the oldest batch whose finish cycle is not known yet.
    fn learn(&mut self) {
        self.known += 1;
        let cycle = self.channel.finish_cycle(self.known);
        let until = self.until[(self.known % BATCHES) as usize];
        self.bound.learn(cycle, until);
    }

    /// Waits until the core has done everything that it was given; returns its answer.
    fn ask(&mut self) -> Answer {
        match self.answer {
            Some(answer) if self.batch.is_empty() => answer,
            _ => self.ask_for(Question::Nothing),
        }
    }

    fn ask_for(&mut self, question: Question) -> Answer {
        self.waits += 1;
        self.batch.question = question;
        self.send();
        while self.known < self.sent {
            self.learn();
        }
        let answer = self.channel.answer();
        self.answer = Some(answer);
        self.most = FIRST_STEPS;
        let CoreWiring { raised, irq_at, .. } = self.wiring;
        if raised.get() != u64::MAX {
            irq_at.set(irq_at.get().min(raised.get()));
            raised.set(u64::MAX);
        }
        answer
    }

    /// Adds a run part by part, so that the path knows before each branch and jump what the core has trained with.
    #[cold]
    fn run_in_parts(&mut self, run: &Run<'_>) {
        let mut done = Done::default();
        while let Some((part, packet)) = self.path.part(run, &mut done) {
            if let Some(packet) = packet {
                self.tell(packet);
            }
            self.add(&part);
            if packet.is_some() {
                self.follow_wrong_path(part.steps[0].id);
            }
        }
    }

    /// Has the path follow what comes after the branch or jump that was executed last, if it is mispredicted.
    fn follow_wrong_path(&mut self, id: StaticId) {
        if !self.path.may_be_wrong() {
            return;
        }
        match self.ask_for(Question::Mispredicted).count {
            0 => self.path.is_right(),
            cycles => {
                let packets = self.path.wrong_path(id, cycles);
                self.ask_for(Question::Repair(packets));
            }
        }
    }

    /// Adds a run.
    #[inline(always)]
    fn add(&mut self, run: &Run<'_>) {
        self.batch.run(run, self.path);
        self.instructions += run.steps.len() as u64;
    }

    /// Tells the path what the core has trained with when it fetches a packet.
    fn tell(&mut self, packet: NextPacket) {
        let untrained = self.ask_for(Question::Untrained(packet)).count;
        self.path.told(untrained);
    }

    /// Reads [`CoreWiring::quiet_until`] if the core has nothing to do; while the core works, its sink may change it.
    fn refresh_quiet(&mut self) {
        if self.answer.is_some() {
            self.quiet = self.wiring.quiet_until.get();
        }
    }

    /// Gives the tap a call, if there is one.
    #[inline(always)]
    fn tap<'c>(&mut self, call: impl FnOnce() -> CoreCall<'c>) {
        if let Some(tap) = &mut self.tap {
            tap.call(call());
        }
    }

    /// Adds a call whose cycle the hart does not ask for.
    #[inline]
    fn note(&mut self, call: Call) {
        self.batch.push(call);
    }

    /// Returns a cycle that the core has very probably not passed after all instructions that it has been given; `None` if something that the hart
    /// has to know may happen before that cycle.
    #[inline]
    fn reaches(&mut self, before: u64) -> Option<u64> {
        self.refresh_quiet();
        // A commit in the quiet cycle itself is quiet, too.
        let deadline = before.min(self.quiet.saturating_add(1));
        loop {
            let cycle = self.bound.after(self.instructions);
            if cycle < deadline {
                return Some(cycle);
            }
            if self.known == self.sent {
                return None;
            }
            self.learn();
        }
    }
}

impl TimingModel for Ahead<'_> {
    const TIMED: bool = true;
    const RUNS: bool = true;

    fn define(&mut self, inst: &StaticInst) {
        let queue = self.0.get_mut();
        queue.tap(|| CoreCall::Define(*inst));
        queue.path.define(inst);
        queue.batch.define(inst);
    }

    fn translated(&mut self, va: u64, walk: &PageWalk) {
        let queue = self.0.get_mut();
        // Most pages were translated before.
        if queue.tap.is_some() && !queue.path.has_walk(va, walk) {
            queue.tap(|| CoreCall::Translated { va, walk: *walk });
        }
        queue.path.translated(va, walk);
    }

    fn fetch(
        &mut self,
        id: StaticId,
        inst: &DecodedInst,
        pc: u64,
        pa: u64,
        translated: bool,
        before: u64,
    ) -> u64 {
        let queue = self.0.get_mut();
        queue.tap(|| CoreCall::Fetch { id, inst: *inst, pc, pa, translated });
        if queue.path.learns_at_commit() && inst.class.transfers() {
            let packet = queue.path.next_packet(pc, inst.len);
            queue.tell(packet);
        }
        let page = pa & !0xfff;
        queue.batch.fetch(pc, inst.len, page, translated, queue.path);
        queue.instructions += 1;
        let reached = queue.reaches(before);
        queue.exact = reached.is_none();
        reached.unwrap_or_else(|| queue.ask().decoded)
    }

    fn exactly(&mut self, _decoded: u64) -> u64 {
        self.0.get_mut().ask().decoded
    }

    fn interrupt(&mut self, id: StaticId, _pc: u64, _handler_pc: u64) {
        let queue = self.0.get_mut();
        queue.tap(|| CoreCall::Interrupt);
        queue.path.flush();
        queue.note(Call::Interrupt(id));
        queue.ask();
    }

    fn retire(&mut self, executed: &Executed) {
        let queue = self.0.get_mut();
        queue.tap(|| CoreCall::Retire(*executed));
        queue.batch.retire(executed, queue.path);
        if queue.path.learns_at_commit() && executed.inst.class.transfers() {
            queue.follow_wrong_path(executed.id);
        }
        // The retirement may do something to the machine.
        if queue.exact && queue.reaches(u64::MAX).is_none() {
            queue.ask();
        } else if queue.batch.is_full(queue.most) {
            queue.send();
        }
    }

    #[inline]
    fn run(&mut self, run: &Run<'_>, before: u64) -> u64 {
        let queue = self.0.get_mut();
        queue.tap(|| CoreCall::Run(*run));
        match queue.path.learns_at_commit() {
            true => queue.run_in_parts(run),
            false => queue.add(run),
        }
        let Some(reached) = queue.reaches(before) else {
            return queue.ask().decoded;
        };
        if queue.batch.is_full(queue.most) {
            queue.send();
        }
        reached
    }

    fn idle_until(&mut self, cycle: u64) {
        let queue = self.0.get_mut();
        queue.tap(|| CoreCall::IdleUntil(cycle));
        queue.path.flush();
        self.wake_at(cycle);
    }

    fn wake_at(&mut self, cycle: u64) {
        let queue = self.0.get_mut();
        queue.note(Call::IdleUntil(cycle));
        queue.ask();
        queue.bound.sleep(cycle);
    }

    fn now(&self) -> u64 {
        self.0.borrow_mut().ask().now
    }

    fn latest(&self) -> u64 {
        let queue = self.0.borrow();
        match queue.answer {
            Some(answer) if queue.batch.is_empty() => answer.now,
            _ => queue.bound.after(queue.instructions),
        }
    }

    fn count(&self, event: PerfEvent) -> u64 {
        self.0.borrow_mut().ask_for(Question::Count(event)).count
    }

    fn select(&mut self, counter: usize, selection: Selection) {
        self.0.get_mut().note(Call::Select(counter, selection));
    }

    fn selected(&self, counter: usize) -> u64 {
        let mut queue = self.0.borrow_mut();
        queue.ask_for(Question::Selected(counter)).count
    }

    fn observe(&mut self, on: bool) {
        let queue = self.0.get_mut();
        queue.path.observed_by.units = on;
        queue.note(Call::Observe(queue.path.observed_by));
    }

    fn watch(&mut self, counter: usize, watch: Option<Watch>) {
        self.0.get_mut().note(Call::Watch(counter, watch));
    }

    fn flush_tlb(&mut self) {
        let queue = self.0.get_mut();
        queue.tap(|| CoreCall::FlushTlb);
        queue.path.flush_tlb();
        queue.note(Call::FlushTlb);
    }

    fn dma_write(&mut self, lines: DmaLines) {
        let queue = self.0.get_mut();
        queue.tap(|| CoreCall::DmaWrite(lines));
        queue.note(Call::DmaWrite(lines));
    }

    fn note(&mut self, kind: u8, bytes: Vec<u8>) {
        let queue = self.0.get_mut();
        queue.tap(|| CoreCall::Note { kind, bytes: &bytes });
        queue.batch.note(kind, bytes);
    }

    fn privilege(&mut self, privilege: Privilege) {
        let queue = self.0.get_mut();
        queue.tap(|| CoreCall::Privilege(privilege));
        queue.note(Call::Privilege(privilege));
        if queue.wiring.quiet_until.get() != u64::MAX {
            // The change may move the quiet cycle, to a later or an earlier one.
            queue.ask();
        }
    }
}
