//! How batches get to the core: in one thread, or from one to another.

use std::hint::spin_loop;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use commit_trace::CommitSink;

use super::SpareWork;
use super::batch::{Answer, Batch, Server};
use crate::pipeline::Pipeline;

/// Batches on their way or at work. Enough to even the two sides out, and few enough for the host's caches.
pub(super) const BATCHES: u64 = 16;
/// Spins of a thread that waits, some microseconds in all, before it yields its processor.
const SPINS: u32 = 300;
/// Yields of a thread that waits, before it sleeps: to be woken takes as long as many spins.
const YIELDS: u32 = 400;
/// Longest sleep of a thread that waits. A wake-up is lost if a thread goes to sleep just while the other one looks whether it sleeps. To prevent
/// that, each write would have to reach the other processor before the look, which costs more, with every batch.
const MAX_SLEEP: Duration = Duration::from_micros(200);

/// Backlog of the core, in instructions, from which on the hart's thread does spare work after it sent a batch.
const HELP_BACKLOG: u64 = 4 << 10;
/// Backlog of the core, in instructions, from which on the hart's thread does spare work while it waits.
const WAITING_BACKLOG: u64 = 1 << 8;
/// Backlog, in instructions, from which on the waiting hart's thread sleeps by itself: to wake it would take the core's thread
/// some microseconds.
const SLEEP_BACKLOG: u64 = 12 << 10;
/// How long the waiting hart's thread sleeps by itself, from [`SLEEP_BACKLOG`] on.
const BACKLOG_SLEEP: Duration = Duration::from_micros(50);

/// Carries batches from the hart to the core, and the core's answers back.
pub(super) trait BatchChannel {
    /// Gives a batch to the core, and leaves in its place a batch that is done, which the caller clears. `instructions`: number of instructions given
    /// to the core so far, with those of this batch.
    fn send(&mut self, batch: &mut Batch, instructions: u64);
    /// Returns the cycle to which batch `number` (from 1), one of the last [`BATCHES`], took the core. Waits until the
    /// batch is done.
    fn finish_cycle(&mut self, number: u64) -> u64;
    /// Returns the core's answer to the last batch. Waits until the batch is done.
    fn answer(&mut self) -> Answer;
}

/// Hart and core in one thread: a batch is done when it is sent.
pub(super) struct SameThread<'a, S> {
    server: Server<'a, S>,
    sent: u64,
    finish_cycle: [u64; BATCHES as usize],
    answer: Answer,
}

impl<'a, S: CommitSink> SameThread<'a, S> {
    pub(super) fn new(pipeline: &'a mut Pipeline<S>) -> Self {
        Self {
            server: Server::new(pipeline),
            sent: 0,
            finish_cycle: [0; BATCHES as usize],
            answer: Answer::default(),
        }
    }
}

impl<S: CommitSink> BatchChannel for SameThread<'_, S> {
    fn send(&mut self, batch: &mut Batch, _instructions: u64) {
        let (cycle, answer) = self.server.serve(batch);
        self.sent += 1;
        self.finish_cycle[(self.sent % BATCHES) as usize] = cycle;
        self.answer = answer;
    }

    fn finish_cycle(&mut self, number: u64) -> u64 {
        self.finish_cycle[(number % BATCHES) as usize]
    }

    fn answer(&mut self) -> Answer {
        self.answer
    }
}

/// State shared by the hart's and the core's thread; each part has its own host cache lines, against false sharing.
pub(super) struct Link<'a> {
    slots: [Line<Slot>; BATCHES as usize],
    core: Line<CoreSide>,
    hart: Line<HartSide>,
    sleep: Line<Sleep>,
    hart_thread: Thread,
    spare_work: &'a (dyn Fn(SpareWork) -> bool + Sync),
}

#[repr(align(128))]
struct Line<T>(T);

/// A slot of the ring: a batch on its way, and the cycle to which it took the core. Nobody ever waits for the lock: the
/// counts of batches sent and done say whose it is.
#[derive(Default)]
struct Slot {
    batch: Mutex<Batch>,
    finish_cycle: AtomicU64,
}

/// What the core's thread says.
#[derive(Default)]
struct CoreSide {
    /// Batches done.
    done: AtomicU64,
    decoded: AtomicU64,
    now: AtomicU64,
    count: AtomicU64,
}

/// What the hart's thread says.
#[derive(Default)]
struct HartSide {
    /// Batches sent.
    sent: AtomicU64,
    /// True while the hart's thread waits until the core's thread has finished some batches.
    waits: AtomicBool,
}

/// What either thread writes rarely, so that the other may read it often.
#[derive(Default)]
struct Sleep {
    /// The core's thread sleeps until there is a batch.
    core: AtomicBool,
    /// Number of done batches until which the hart's thread sleeps; 0: it is awake.
    hart: AtomicU64,
    /// There will be no more batches.
    over: AtomicBool,
    /// The core's thread has panicked.
    gone: AtomicBool,
}

/// Spins until `condition` is true, for some microseconds at most; returns its last value.
fn spin_until(mut condition: impl FnMut() -> bool) -> bool {
    (0..SPINS).any(|_| {
        let found = condition();
        if !found {
            spin_loop();
        }
        found
    })
}

/// Spins, then yields, until `condition` is true or a sleep is cheaper; returns its last value.
fn spin_or_yield_until(mut condition: impl FnMut() -> bool) -> bool {
    spin_until(&mut condition)
        || (0..YIELDS).any(|_| {
            thread::yield_now();
            condition()
        })
}

impl<'a> Link<'a> {
    /// Returns the link of the hart on `hart_thread`. `spare_work`: see [`CoreWiring::spare_work`](super::CoreWiring::spare_work).
    pub(super) fn new(
        hart_thread: Thread,
        spare_work: &'a (dyn Fn(SpareWork) -> bool + Sync),
    ) -> Self {
        Self {
            slots: std::array::from_fn(|_| Line(Slot::default())),
            core: Line(CoreSide::default()),
            hart: Line(HartSide::default()),
            sleep: Line(Sleep::default()),
            hart_thread,
            spare_work,
        }
    }

    /// Returns the hart's end of the link to the core on `core_thread`.
    pub(super) fn sender(&'a self, core_thread: Thread) -> Sender<'a> {
        Sender { link: self, core_thread, sent: 0, until: [0; BATCHES as usize + 1] }
    }

    fn slot(&self, number: u64) -> &Slot {
        &self.slots[(number % BATCHES) as usize].0
    }

    fn batch(&self, number: u64) -> MutexGuard<'_, Batch> {
        let batch = self.slot(number).batch.lock();
        batch.unwrap_or_else(PoisonError::into_inner)
    }
}

/// The hart's end of a link.
pub(super) struct Sender<'a> {
    link: &'a Link<'a>,
    core_thread: Thread,
    sent: u64,
    /// Instructions up to the end of each of the last batches sent, by the batch's number modulo the length.
    until: [u64; BATCHES as usize + 1],
}

impl Sender<'_> {
    fn until(&self, batch: u64) -> u64 {
        self.until[(batch % (BATCHES + 1)) as usize]
    }

    /// Returns how many instructions the core has still to do.
    fn left(&self) -> u64 {
        self.until(self.sent) - self.until(self.link.core.0.done.load(Relaxed))
    }

    /// Does spare work as long as the core has at least `instructions` instructions to do.
    fn spend(&self, instructions: u64) {
        while self.left() >= instructions && (self.link.spare_work)(SpareWork::Any) {}
    }

    /// Waits until `batches` batches are done.
    fn wait_for(&self, batches: u64) {
        let Link { core, sleep, .. } = self.link;
        let is_done = || {
            if sleep.0.gone.load(Relaxed) {
                // No message of this thread's own: it ends with the panic of the core's thread.
                resume_unwind(Box::new("the timing core is gone"));
            }
            core.0.done.load(Acquire) >= batches
        };
        if is_done() {
            return;
        }
        // Set now, so that the core's thread leaves spare work to this one.
        let waits = &self.link.hart.0.waits;
        waits.store(true, Relaxed);
        let spare = || (self.link.spare_work)(SpareWork::Any);
        while !is_done() && self.left() >= WAITING_BACKLOG {
            if spare() {
                continue;
            }
            if self.left() < SLEEP_BACKLOG {
                break;
            }
            // The core's thread may still be doing spare work.
            if !spin_until(|| is_done() || spare()) {
                thread::sleep(BACKLOG_SLEEP);
            }
        }
        if !spin_or_yield_until(is_done) {
            loop {
                sleep.0.hart.store(batches, SeqCst);
                if is_done() {
                    break;
                }
                thread::park_timeout(MAX_SLEEP);
            }
            sleep.0.hart.store(0, Relaxed);
        }
        waits.store(false, Relaxed);
    }

    fn wake_core(&self) {
        if self.link.sleep.0.core.swap(false, SeqCst) {
            self.core_thread.unpark();
        }
    }
}

impl BatchChannel for Sender<'_> {
    fn send(&mut self, batch: &mut Batch, instructions: u64) {
        let number = self.sent + 1;
        if number > BATCHES {
            self.wait_for(number - BATCHES);
        }
        std::mem::swap(&mut *self.link.batch(number), batch);
        self.until[(number % (BATCHES + 1)) as usize] = instructions;
        self.sent = number;
        self.link.hart.0.sent.store(number, Release);
        if self.link.sleep.0.core.load(Relaxed) {
            self.wake_core();
        }
        self.spend(HELP_BACKLOG);
    }

    fn finish_cycle(&mut self, number: u64) -> u64 {
        self.wait_for(number);
        self.link.slot(number).finish_cycle.load(Relaxed)
    }

    fn answer(&mut self) -> Answer {
        self.wait_for(self.sent);
        let core = &self.link.core.0;
        Answer {
            decoded: core.decoded.load(Relaxed),
            now: core.now.load(Relaxed),
            count: core.count.load(Relaxed),
        }
    }
}

impl Drop for Sender<'_> {
    fn drop(&mut self) {
        self.link.sleep.0.over.store(true, SeqCst);
        self.wake_core();
    }
}

/// Tells the hart's thread if the core's thread panics.
struct Alarm<'a>(&'a Link<'a>);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.sleep.0.gone.store(true, SeqCst);
            self.0.hart_thread.unpark();
        }
    }
}

/// Runs the core's thread: does the batches in order, until no more come.
pub(super) fn serve<S: CommitSink>(pipeline: &mut Pipeline<S>, link: &Link<'_>) {
    let _alarm = Alarm(link);
    let mut server = Server::new(pipeline);
    let mut done = 0;
    while wait_for_batch(link, done + 1) {
        done += 1;
        // While the hart's thread waits, spare work would hold it up, too.
        let waits = || link.hart.0.waits.load(Relaxed);
        while !waits() && (link.spare_work)(SpareWork::Urgent) {
            spin_loop();
        }
        let (cycle, answer) = server.serve(&link.batch(done));
        link.slot(done).finish_cycle.store(cycle, Relaxed);
        link.core.0.decoded.store(answer.decoded, Relaxed);
        link.core.0.now.store(answer.now, Relaxed);
        link.core.0.count.store(answer.count, Relaxed);
        link.core.0.done.store(done, Release);
        let sleeps = link.sleep.0.hart.load(Relaxed);
        if sleeps != 0 && sleeps <= done {
            link.hart_thread.unpark();
        }
    }
}

/// Waits for batch `number`; returns false if there will be no more.
fn wait_for_batch(link: &Link<'_>, number: u64) -> bool {
    let is_sent = || link.hart.0.sent.load(Acquire) >= number;
    // The hart's thread sets `over` before it waits for the end of this thread.
    let is_over = || link.sleep.0.over.load(SeqCst);
    let is_there = || is_sent() || is_over();
    loop {
        if spin_or_yield_until(is_there) {
            // Read after the end was seen: a batch that was sent before it counts.
            return is_sent();
        }
        if !(link.spare_work)(SpareWork::Any) {
            break;
        }
    }
    loop {
        link.sleep.0.core.store(true, SeqCst);
        if is_there() {
            link.sleep.0.core.store(false, Relaxed);
            return is_sent();
        }
        thread::park_timeout(MAX_SLEEP);
    }
}
