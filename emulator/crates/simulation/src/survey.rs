//! A pass over a region before it is sampled: the functional hart executes it, and basic blocks are counted interval by interval.

use std::io::Write;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use commit_trace::Event;
use isa::{PathLog, Privilege, TimingModel};
use phases::{BlockCounter, PageAccess, Survey};

use crate::error::SimulationError;
use crate::options::Threads;

/// Logs that are written, wait, or are counted.
const LOGS: usize = 4;

/// What is counted while a region is executed functionally, before it is sampled.
#[derive(Default)]
pub struct SurveyOptions {
    /// Instructions of an interval.
    pub interval: u64,
    /// Numbers that basic-block vectors are projected to.
    pub dimensions: usize,
    /// Where basic-block vectors are written as SimPoint's tools read them, if anywhere.
    pub vectors: Option<Box<dyn Write + Send>>,
}

/// Surveys a region, over all of its stretches. Places are as a [`Sampler`](crate::sampling::Sampler) has them.
pub(crate) struct Surveyor {
    interval: u64,
    log: PathLog,
    /// Data pages that the present interval touched, some of them several times.
    pages: Vec<PageAccess>,
    counting: CounterHost,
    is_open: bool,
    /// Instructions that the machine had retired when the open stretch began, or the present interval in it.
    since: u64,
    /// Instructions of the present interval in stretches that have ended.
    before: u64,
}

impl Surveyor {
    /// Returns one that waits for a region, and counts on a thread of its own if there may be more than one.
    pub(crate) fn new(options: SurveyOptions, threads: Threads) -> Self {
        let interval = options.interval.max(1);
        let mut counter = BlockCounter::new(interval, options.dimensions);
        if let Some(vectors) = options.vectors {
            counter = counter.writing(vectors);
        }
        let counting = match threads.of_this_host() {
            Threads::One => CounterHost::Here(Box::new(counter)),
            Threads::Auto | Threads::Two => CounterHost::apart(counter),
        };
        Self {
            interval,
            log: PathLog::default(),
            pages: Vec::new(),
            counting,
            is_open: false,
            since: 0,
            before: 0,
        }
    }

    /// Returns whether the region is open, so that what is executed is part of it.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Begins or ends a stretch of the region, or begins the region anew.
    pub(crate) fn take_event(&mut self, event: &Event, retired: u64) {
        if self.is_open {
            self.close(retired);
        }
        if *event == Event::RegionAnew {
            self.restart();
        }
        if *event != Event::Region(false) {
            self.open(retired);
        }
    }

    /// Returns how many instructions are left of the interval.
    pub(crate) fn left(&self, retired: u64) -> u64 {
        match self.is_open {
            true => self.interval.saturating_sub(self.done(retired)),
            false => u64::MAX,
        }
    }

    /// Begins a stretch of the region.
    fn open(&mut self, retired: u64) {
        (self.is_open, self.since) = (true, retired);
    }

    /// Ends a stretch of the region.
    pub(crate) fn close(&mut self, retired: u64) {
        self.before = self.done(retired);
        self.is_open = false;
        self.take_path_log();
        self.counting.take(CounterMessage::Interruption);
    }

    /// Ends the interval, if it is over.
    pub(crate) fn advance(&mut self, retired: u64) {
        if self.left(retired) == 0 {
            self.take_path_log();
            self.end_interval(self.done(retired));
            (self.since, self.before) = (retired, 0);
        }
    }

    /// Forgets what was counted: the region begins anew.
    fn restart(&mut self) {
        self.before = 0;
        self.log.clear();
        self.pages.clear();
        self.counting.take(CounterMessage::Anew);
    }

    fn end_interval(&mut self, instructions: u64) {
        let pages = std::mem::take(&mut self.pages);
        self.counting.take(CounterMessage::Interval { instructions, pages });
    }

    /// Returns the survey. The region is closed.
    ///
    /// # Errors
    /// If vectors could not be written.
    pub(crate) fn finish(mut self) -> Result<Survey, SimulationError> {
        if self.before > 0 {
            self.end_interval(self.before);
        }
        self.counting
            .finish()
            .map_err(|e| SimulationError::Options(format!("basic-block vectors: {e}")))
    }

    /// Returns the instructions of the present interval.
    fn done(&self, retired: u64) -> u64 {
        self.before + if self.is_open { retired - self.since } else { 0 }
    }
}

impl TimingModel for Surveyor {
    const TIMED: bool = false;
    const LOGS: bool = true;

    #[inline(always)]
    fn path_log(&mut self) -> Option<&mut PathLog> {
        Some(&mut self.log)
    }

    #[cold]
    fn take_path_log(&mut self) {
        self.counting.take_log(&mut self.log);
    }

    /// A hart begins each run without translations, and no interval ends within a run: the first access of an interval to a page is among these.
    fn touch_page(&mut self, pa: u64, written: bool) {
        if self.is_open {
            self.pages.push(PageAccess { page: pa >> 12, written });
        }
    }

    isa::methods_without_timing!();
    fn flush_tlb(&mut self) {}
    fn privilege(&mut self, _: Privilege) {}
}

/// What the counter is told, in order.
enum CounterMessage {
    /// What was executed.
    Log(PathLog),
    /// An interval ended.
    Interval { instructions: u64, pages: Vec<PageAccess> },
    /// The region was left for a while.
    Interruption,
    /// The region began anew.
    Anew,
}

/// Who counts: the hart's thread, or one beside it.
enum CounterHost {
    Here(Box<BlockCounter>),
    Apart {
        told: SyncSender<CounterMessage>,
        /// Logs that were counted, to be written again.
        emptied: Receiver<PathLog>,
        thread: JoinHandle<BlockCounter>,
    },
}

impl CounterHost {
    fn apart(counter: BlockCounter) -> Self {
        let (told, tells) = sync_channel::<CounterMessage>(LOGS);
        let (back, emptied) = sync_channel(LOGS);
        for _ in 1..LOGS {
            _ = back.try_send(PathLog::default());
        }
        let (give, given) = sync_channel::<BlockCounter>(1);
        let count = move || {
            let mut counter = given.recv().unwrap_or_else(|_| unreachable!("given at once"));
            for what in tells {
                if let Some(log) = take(&mut counter, what) {
                    // There are as many logs as there is room for; at the end nobody takes them.
                    _ = back.try_send(log);
                }
            }
            counter
        };
        match thread::Builder::new().name("blocks".to_owned()).spawn(count) {
            Ok(thread) => {
                _ = give.send(counter);
                Self::Apart { told, emptied, thread }
            }
            // The host has no more threads.
            Err(_) => Self::Here(Box::new(counter)),
        }
    }

    fn take_log(&mut self, log: &mut PathLog) {
        match self {
            Self::Here(counter) => {
                counter.count(log.segments());
                log.clear();
            }
            // If the thread is gone, `finish` says why.
            Self::Apart { told, emptied, .. } => {
                let empty = emptied.recv().unwrap_or_default();
                _ = told.send(CounterMessage::Log(std::mem::replace(log, empty)));
            }
        }
    }

    fn take(&mut self, what: CounterMessage) {
        match self {
            Self::Here(counter) => _ = take(counter, what),
            Self::Apart { told, .. } => _ = told.send(what),
        }
    }

    fn finish(self) -> std::io::Result<Survey> {
        match self {
            Self::Here(counter) => counter.finish(),
            Self::Apart { told, thread, .. } => {
                drop(told);
                thread.join().unwrap_or_else(|panic| resume_unwind(panic)).finish()
            }
        }
    }
}

/// Lets a counter take what it is told. Returns a log that was counted, emptied.
fn take(counter: &mut BlockCounter, what: CounterMessage) -> Option<PathLog> {
    match what {
        CounterMessage::Log(mut log) => {
            counter.count(log.segments());
            log.clear();
            return Some(log);
        }
        CounterMessage::Interval { instructions, pages } => {
            counter.end_interval(instructions, pages);
        }
        CounterMessage::Interruption => counter.interrupt(),
        CounterMessage::Anew => counter.restart(),
    }
    None
}
