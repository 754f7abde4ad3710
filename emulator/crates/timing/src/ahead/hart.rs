//! The hart's side.

use std::cell::RefCell;

use isa::{
    DecodedInst, Executed, PageWalk, PerfEvent, Privilege, Run, Selection, SharedCycle, StaticId,
    StaticInst, TimingModel, Watch,
};

use super::batch::{Answer, Batch, Call, Question};
use super::link::{BATCHES, BatchChannel};
use super::reach::Reach;
use crate::path::Path;

/// Instructions of a batch, about: some ten microseconds of work.
const STEPS: usize = 1024;
/// Of one that the core waits for.
const FIRST_STEPS: usize = 64;

/// The timing model that the hart sees.
///
/// Behind a `RefCell`: to say the cycle takes no more than a shared reference, but waits for the core.
pub struct Ahead<'a>(RefCell<Queue<'a>>);

/// What core and machine say to each other beside the timing model's calls.
#[derive(Clone, Copy)]
pub struct Lines<'a> {
    /// A commit up to this cycle does nothing to the machine that the hart could see; `u64::MAX`: none ever does. The
    /// machine may change it while the core has nothing to do, the core's sink after that cycle, and at a change of
    /// privilege one that was not `u64::MAX` before.
    pub quiet: &'a SharedCycle,
    /// The core's sink sets it to a cycle in which an interrupt becomes pending,
    pub raised: &'a SharedCycle,
    /// and this is brought forward to it when the hart looks.
    pub irq_at: &'a SharedCycle,
    /// Does something else, some microseconds of it, if there is anything that the other thread does not do: with two
    /// threads, whichever has to wait for the other.
    pub spare: &'a (dyn Fn(Spare) -> bool + Sync),
}

/// Other work that the hart's or core's thread does while it waits for the other, by urgency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spare {
    /// Whatever there is.
    Any,
    /// What cannot wait.
    Urgent,
}

/// What is given to the core, and what is not yet.
struct Queue<'a> {
    path: &'a mut Path,
    channel: &'a mut dyn BatchChannel,
    batch: Batch,
    /// Steps with which it goes.
    most: usize,
    /// Batches given, and instructions given or in the batch.
    sent: u64,
    instructions: u64,
    /// Instructions up to the end of each batch: of the last ones that were sent.
    until: [u64; BATCHES as usize],
    /// What is known is up to this batch.
    known: u64,
    reach: Reach,
    lines: Lines<'a>,
    /// [`Lines::quiet`], as it was when the core had nothing to do.
    quiet: u64,
    /// What the core said when it had nothing to do, if it still has not.
    answer: Option<Answer>,
    /// An instruction was fetched whose cycle the hart wanted to know: so is what its retirement leads to.
    exact: bool,
    waits: u64,
}

impl<'a> Ahead<'a> {
    pub(super) fn new(
        path: &'a mut Path,
        channel: &'a mut dyn BatchChannel,
        lines: Lines<'a>,
        cycle: u64,
    ) -> Self {
        Self(RefCell::new(Queue {
            path,
            channel,
            batch: Batch::default(),
            most: FIRST_STEPS,
            sent: 0,
            instructions: 0,
            until: [0; BATCHES as usize],
            known: 0,
            reach: Reach::new(cycle),
            quiet: 0,
            lines,
            answer: None,
            exact: false,
            waits: 0,
        }))
    }

    /// How often the hart waited for the core until now.
    pub fn waits(&self) -> u64 {
        self.0.borrow().waits
    }

    /// Gives on what is left, and waits until it is done.
    pub(super) fn finish(self) {
        let mut queue = self.0.into_inner();
        match queue.batch.has_notes() {
            true => queue.ask_for(Question::Nothing),
            false => queue.ask(),
        };
    }
}

impl Queue<'_> {
    /// Gives the batch to the core.
    fn send(&mut self) {
        self.look_whether_quiet();
        self.channel.send(&mut self.batch, self.instructions);
        self.batch.clear();
        self.most = (2 * self.most).min(STEPS);
        self.sent += 1;
        self.until[(self.sent % BATCHES) as usize] = self.instructions;
        self.answer = None;
        // The place of an older one is used again.
        if self.sent - self.known > BATCHES - 1 {
            self.learn();
        }
    }

    /// Waits for the next batch of which nothing is known yet.
    fn learn(&mut self) {
        self.known += 1;
        let cycle = self.channel.finish_cycle(self.known);
        let until = self.until[(self.known % BATCHES) as usize];
        self.reach.learn(cycle, until);
    }

    /// Waits until everything is done that was given; what the core says then.
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
        let Lines { raised, irq_at, .. } = self.lines;
        if raised.get() != u64::MAX {
            irq_at.set(irq_at.get().min(raised.get()));
            raised.set(u64::MAX);
        }
        answer
    }

    /// The core changes it while it works, the hart while it does not.
    fn look_whether_quiet(&mut self) {
        if self.answer.is_some() {
            self.quiet = self.lines.quiet.get();
        }
    }

    /// A call whose cycle the hart does not ask for.
    #[inline]
    fn note(&mut self, call: Call) {
        self.batch.push(call);
    }

    /// A cycle that the core will hardly have passed with all that it is given by now, if the hart need not know
    /// what happens until then.
    #[inline]
    fn reaches(&mut self, before: u64) -> Option<u64> {
        self.look_whether_quiet();
        // What reaches the quiet cycle is quiet, still.
        let deadline = before.min(self.quiet.saturating_add(1));
        loop {
            let cycle = self.reach.after(self.instructions);
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
        queue.path.define(inst);
        queue.batch.define(inst);
    }

    fn translated(&mut self, va: u64, walk: &PageWalk) {
        self.0.get_mut().path.translated(va, walk);
    }

    fn fetch(
        &mut self,
        _id: StaticId,
        inst: &DecodedInst,
        pc: u64,
        pa: u64,
        translated: bool,
        before: u64,
    ) -> u64 {
        let queue = self.0.get_mut();
        let page = pa & !0xfff;
        { &mut queue.batch }.fetch(pc, inst.len, page, translated, queue.path);
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
        queue.path.flush();
        queue.note(Call::Interrupt(id));
        queue.ask();
    }

    fn retire(&mut self, executed: &Executed) {
        let queue = self.0.get_mut();
        queue.batch.retire(executed, queue.path);
        // It may do something to the machine.
        if queue.exact && queue.reaches(u64::MAX).is_none() {
            queue.ask();
        } else if queue.batch.is_full(queue.most) {
            queue.send();
        }
    }

    #[inline]
    fn run(&mut self, run: &Run<'_>, before: u64) -> u64 {
        let queue = self.0.get_mut();
        queue.batch.run(run, queue.path);
        queue.instructions += run.steps.len() as u64;
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
        queue.path.flush();
        queue.note(Call::IdleUntil(cycle));
        queue.ask();
        queue.reach.sleep(cycle);
    }

    fn now(&self) -> u64 {
        self.0.borrow_mut().ask().now
    }

    fn latest(&self) -> u64 {
        let queue = self.0.borrow();
        match queue.answer {
            Some(answer) if queue.batch.is_empty() => answer.now,
            _ => queue.reach.after(queue.instructions),
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
        queue.path.flush_tlb();
        queue.note(Call::FlushTlb);
    }

    fn note(&mut self, kind: u8, bytes: Vec<u8>) {
        self.0.get_mut().batch.note(kind, bytes);
    }

    fn privilege(&mut self, privilege: Privilege) {
        let queue = self.0.get_mut();
        queue.note(Call::Privilege(privilege));
        if queue.lines.quiet.get() != u64::MAX {
            // It may be quiet for longer, or not as long.
            queue.ask();
        }
    }
}
