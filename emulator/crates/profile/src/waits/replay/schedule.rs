//! Executes actions of threads on harts, first come, first served.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::actions::{Action, Program};
use crate::waits::history::HistoryId;

/// What a thread does after all that takes no time.
enum Next {
    /// The thread runs for so many cycles.
    Run(u64),
    /// The thread is to have its turn again after the others.
    Yield,
    /// The thread waits, sleeps or has ended.
    Off,
}

/// What happens at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A thread has run for as long as it was to.
    Ran(HistoryId),
    /// A thread can go on.
    Ready(HistoryId),
}

#[derive(Clone, Default)]
struct Thread {
    /// Number of actions that are done.
    done: usize,
    has_ended: bool,
    /// Threads that wait for the end of this one.
    joiners: Vec<HistoryId>,
}

struct Replay<'a> {
    program: &'a Program,
    threads: Vec<Thread>,
    now: u64,
    /// What will happen, by time and in order.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    /// Number of events so far.
    made: u64,
    free_harts: usize,
    /// Threads without a hart, with the cycles that each is to run next.
    queue: VecDeque<(HistoryId, u64)>,
    /// By wait: whether it was ended, and who waits.
    waits: Vec<(bool, Option<HistoryId>)>,
    /// By meeting, the threads that wait for others; and how many came.
    meetings: Vec<(Vec<HistoryId>, usize)>,
}

/// Returns the cycles until a thread has ended or done all of its actions; `None` if it waits for ever.
pub(super) fn elapsed(program: &Program, harts: usize, last: HistoryId) -> Option<u64> {
    let mut replay = Replay {
        program,
        threads: vec![Thread::default(); program.threads.len()],
        now: 0,
        events: BinaryHeap::new(),
        made: 0,
        free_harts: harts,
        queue: VecDeque::new(),
        waits: vec![(false, None); program.waits],
        meetings: vec![(Vec::new(), 0); program.meetings.len()],
    };
    for id in &program.first {
        replay.at(0, Event::Ready(*id));
    }
    while let Some(Reverse((time, _, event))) = replay.events.pop() {
        replay.now = time;
        match event {
            Event::Ran(id) => replay.ran(id),
            Event::Ready(id) => match replay.advance(id) {
                Next::Run(cycles) => replay.queue.push_back((id, cycles)),
                Next::Yield => replay.at(0, Event::Ready(id)),
                Next::Off => {}
            },
        }
        if replay.threads[last].has_ended {
            return Some(replay.now);
        }
        replay.dispatch();
    }
    None
}

impl Replay<'_> {
    fn at(&mut self, after: u64, event: Event) {
        self.made += 1;
        self.events.push(Reverse((self.now.saturating_add(after), self.made, event)));
    }

    fn dispatch(&mut self) {
        while self.free_harts > 0
            && let Some((id, cycles)) = self.queue.pop_front()
        {
            self.free_harts -= 1;
            self.at(cycles, Event::Ran(id));
        }
    }

    /// A thread on a hart has run.
    fn ran(&mut self, id: HistoryId) {
        loop {
            match self.advance(id) {
                Next::Run(cycles) => return self.at(cycles, Event::Ran(id)),
                Next::Yield if self.queue.is_empty() => {}
                Next::Yield => {
                    self.at(0, Event::Ready(id));
                    break;
                }
                Next::Off => break,
            }
        }
        self.free_harts += 1;
    }

    /// Does what takes a thread no time, up to what does.
    fn advance(&mut self, id: HistoryId) -> Next {
        let program = self.program;
        let latency = program.latency;
        loop {
            let thread = &mut self.threads[id];
            let Some(action) = program.threads[id].get(thread.done) else {
                thread.has_ended = true;
                for joiner in std::mem::take(&mut thread.joiners) {
                    self.at(latency, Event::Ready(joiner));
                }
                return Next::Off;
            };
            thread.done += 1;
            match *action {
                Action::Run(cycles) if cycles < 1.0 => {}
                Action::Run(cycles) => return Next::Run(cycles.round() as u64),
                Action::Yield => return Next::Yield,
                Action::Sleep(cycles) => {
                    self.at(cycles, Event::Ready(id));
                    return Next::Off;
                }
                Action::Wait(wait) => match &mut self.waits[wait] {
                    (true, _) => {}
                    (false, waiter) => {
                        *waiter = Some(id);
                        return Next::Off;
                    }
                },
                Action::Wake(wait) => {
                    let (is_ended, waiter) = &mut self.waits[wait];
                    *is_ended = true;
                    if let Some(waiter) = waiter.take() {
                        self.at(latency, Event::Ready(waiter));
                    }
                }
                Action::Meet(meeting) => {
                    let (waiting, came) = &mut self.meetings[meeting];
                    *came += 1;
                    if *came < program.meetings[meeting] {
                        waiting.push(id);
                        return Next::Off;
                    }
                    for waiter in std::mem::take(waiting) {
                        self.at(latency, Event::Ready(waiter));
                    }
                }
                Action::Start(other) => self.at(latency, Event::Ready(other)),
                Action::Join(other) => {
                    if !self.threads[other].has_ended {
                        self.threads[other].joiners.push(id);
                        return Next::Off;
                    }
                }
            }
        }
    }
}
