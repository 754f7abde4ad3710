//! What threads wait for, how long, and who wakes them: as the guest's kernel tells ([`SchedulerLog`]), added up ([`Waits`]).

mod follow;
mod history;
mod idle;
mod path;
mod region;
mod replay;
mod sharing;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::merge::MergedNumbers;
use crate::{ContextId, ProcessId, ThreadId};
pub use idle::IdleHarts;
pub use path::{PathEdge, PathKind, PathSegment, PathWait, ThreadPath};
use region::Region;
pub use replay::{FutexKey, ReplayChange, Replayed};
pub use sharing::{ElapsedByThread, ThreadElapsed};

/// What the kernel told of its scheduler, in order of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SchedulerLog {
    /// What happened, in the region of interest and before.
    pub events: Vec<SchedulerEvent>,
    /// The region: stretches of cycles, ascending.
    pub region: Vec<Range<u64>>,
}

/// A side-band record that is about who runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulerEvent {
    /// The cycle in which it happened.
    pub cycle: u64,
    /// The hart that told it.
    pub hart: u32,
    /// What happened.
    pub change: Transition,
    /// The kernel's calling context as the thread entered the kernel, if calls were followed: its callers are the callers of
    /// the system call in which the thread waits, or wakes another one. Only [`Transition::Leaves`] and [`Transition::Wakes`] by a thread
    /// have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<ContextId>,
}

/// What happens to a thread, which is named by the kernel's number of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transition {
    /// The thread is new, and could run.
    Begins(u32),
    /// The hart runs the thread from here on; the thread's number in the evaluation is given, too.
    Runs(u32, ThreadId),
    /// The thread does not run any longer.
    Leaves(u32, SwitchOut),
    /// The thread need not wait any longer: the other thread woke it; `None`: an interrupt did.
    Wakes(u32, Option<u32>),
}

impl Transition {
    /// Returns whether a switch tells who ran before.
    fn tells_who_left(self) -> bool {
        matches!(self, Self::Leaves(..))
    }
}

/// Why a thread does not run any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SwitchOut {
    /// The thread could run: another one has its turn.
    Runnable,
    /// The thread waits in the kernel, which it entered in this way.
    Waits(KernelEntry),
    /// The thread has ended.
    Ended,
}

/// How a thread entered the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KernelEntry {
    /// The thread is the kernel's own.
    Kernel,
    /// By a system call.
    Syscall {
        /// The system call's number; 65535 stands for all numbers above.
        number: u16,
        /// The system call's first argument: for `futex`, the address.
        address: u64,
        /// The low half of the system call's second argument: for `futex`, the operation.
        argument: u32,
        /// Where the program goes on: after the `ecall`.
        pc: u64,
    },
    /// By a page fault.
    Fault {
        /// The address that was accessed.
        address: u64,
        /// The address of the instruction that accessed it.
        pc: u64,
    },
    /// By an interrupt or another exception.
    Other,
}

/// Where a thread entered the kernel to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WaitSite {
    /// The address at which the program goes on, after the `ecall`.
    pub pc: u64,
    /// The kernel's calling context ([`SchedulerEvent::entry`]).
    pub entry: Option<ContextId>,
}

/// What a thread uses a wait for, as the names of the waiting code tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitUse {
    /// The program waits for something of its own.
    #[default]
    Program,
    /// A language's scheduler has no work for the thread.
    Idle,
    /// A language's runtime waits, for what is not known to be of the program.
    Runtime,
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum WaitReason {
    /// A futex of its own program (`FUTEX_PRIVATE_FLAG`): a lock, a condition, a barrier.
    Futex,
    /// A futex that other programs may use, too. glibc's `pthread_join` waits for one.
    SharedFutex,
    /// Work for the thread, in the scheduler of a language's runtime ([`WaitUse::Idle`]).
    Idle,
    /// A futex of a language's runtime ([`WaitUse::Runtime`]).
    Runtime,
    /// A system call of this number.
    Syscall(u16),
    /// A page, after a page fault.
    Fault,
    /// Whatever a thread of the kernel waits for.
    Kernel,
    /// A reason that is not known.
    Other,
}

/// Who ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Waker {
    /// A thread.
    Thread(ThreadId),
    /// An interrupt: a timer or a device.
    Interrupt,
    /// Somebody of whom the kernel did not tell.
    Unknown,
    /// Nobody until the region's end.
    Nobody,
}

/// Cycles of some stretches of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Intervals {
    /// Number of intervals.
    pub count: u64,
    /// Cycles of all intervals in the region.
    pub cycles: u64,
    /// Cycles of the longest interval in the region.
    pub longest: u64,
}

impl Intervals {
    fn add(&mut self, cycles: u64) {
        self.merge(Self { count: 1, cycles, longest: cycles });
    }

    /// Adds the intervals of `other` to these.
    pub fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.cycles = self.cycles.saturating_add(other.cycles);
        self.longest = self.longest.max(other.longest);
    }
}

/// The waits of threads in the region. Intervals that reach out of it count as far as they are in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Threads that were told of in the region, by number.
    pub threads: Vec<ThreadWaits>,
    /// Futexes that were waited for, those with most waiting first.
    pub futexes: Vec<FutexWaits>,
}

/// A thread's time in the region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadWaits {
    /// The thread.
    pub thread: ThreadId,
    /// Intervals in which a hart ran the thread.
    pub running: Intervals,
    /// Intervals in which the thread could run, and no hart ran it.
    pub ready: Intervals,
    /// The thread's waits by reason, the reasons with most waiting first.
    pub waits: Vec<ReasonWaits>,
    /// Cycles in which the thread did not run, and nobody told why.
    pub unknown: u64,
}

/// A thread's waits for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReasonWaits {
    /// The reason.
    pub reason: WaitReason,
    /// All waits for the reason.
    pub all: Intervals,
    /// The waits by who ended them, those with most waiting first.
    pub wakers: Vec<(Waker, Intervals)>,
}

/// A futex that was waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FutexWaits {
    /// The program in whose memory it is.
    pub process: ProcessId,
    /// The futex's address in that memory.
    pub address: u64,
    /// All waits for the futex.
    pub all: Intervals,
    /// All waits by the thread that waited and who ended its wait, those with most waiting first.
    pub pairs: Vec<(ThreadId, Waker, Intervals)>,
    /// All waits by where the kernel was entered, those with most waiting first.
    pub sites: Vec<(WaitSite, Intervals)>,
    /// The operations of the calls, and their counts.
    pub operations: Vec<(u32, u64)>,
}

/// Number of `futex` in the kernel's table for RISC-V.
const FUTEX_SYSCALL: u16 = 98;
/// Number of `nanosleep` in the kernel's table for RISC-V.
const NANOSLEEP_SYSCALL: u16 = 101;
/// Operations of `futex` that wait, with the names of the kernel's constants.
const FUTEX_WAITS: [(u32, &str); 5] = [
    (0, "FUTEX_WAIT"),
    (6, "FUTEX_LOCK_PI"),
    (9, "FUTEX_WAIT_BITSET"),
    (11, "FUTEX_WAIT_REQUEUE_PI"),
    (13, "FUTEX_LOCK_PI2"),
];
/// Flag beside an operation of `futex`: no other program uses the futex.
pub const FUTEX_PRIVATE: u32 = 128;
/// Flag beside an operation of `futex`: times are those of the real-time clock.
const FUTEX_CLOCK_REALTIME: u32 = 256;

/// Returns the name of the operation that an argument of `futex` asks for, without flags, if the operation waits.
pub fn futex_wait(argument: u32) -> Option<&'static str> {
    let operation = argument & !(FUTEX_PRIVATE | FUTEX_CLOCK_REALTIME);
    let found = FUTEX_WAITS.iter().find(|(number, _)| *number == operation);
    found.map(|(_, name)| *name)
}

impl KernelEntry {
    /// Returns whether code that waits in this way may be a language's runtime, whose names tell what the wait is used for
    /// ([`WaitUse`]).
    fn may_be_of_runtime(self) -> bool {
        match self {
            Self::Syscall { number: NANOSLEEP_SYSCALL, .. } => true,
            _ => matches!(self.reason(WaitUse::Program), WaitReason::Futex),
        }
    }

    fn reason(self, used_for: WaitUse) -> WaitReason {
        match (used_for, self) {
            (WaitUse::Idle, _) => return WaitReason::Idle,
            (WaitUse::Runtime, Self::Syscall { number, .. }) if number == FUTEX_SYSCALL => {
                return WaitReason::Runtime;
            }
            _ => {}
        }
        match self {
            Self::Kernel => WaitReason::Kernel,
            Self::Syscall { number, argument, .. } => match number {
                FUTEX_SYSCALL if futex_wait(argument).is_none() => WaitReason::Syscall(number),
                FUTEX_SYSCALL if argument & FUTEX_PRIVATE == 0 => WaitReason::SharedFutex,
                FUTEX_SYSCALL => WaitReason::Futex,
                _ => WaitReason::Syscall(number),
            },
            Self::Fault { .. } => WaitReason::Fault,
            Self::Other => WaitReason::Other,
        }
    }
}

impl SchedulerLog {
    /// The logs of several harts as one, their threads renumbered.
    pub(crate) fn merged<'a>(harts: impl Iterator<Item = (&'a Self, &'a MergedNumbers)>) -> Self {
        let mut merged = Self::default();
        for ((log, numbers), hart) in harts.zip(0..) {
            merged.add_region(&log.region);
            merged.events.extend(log.events.iter().map(|event| {
                let change = match event.change {
                    Transition::Runs(tid, thread) => Transition::Runs(tid, numbers.thread(thread)),
                    change => change,
                };
                SchedulerEvent {
                    hart,
                    change,
                    entry: event.entry.map(|entry| numbers.context(entry)),
                    ..*event
                }
            }));
        }
        merged.events.sort_by_key(|event| event.cycle);
        merged
    }

    /// Makes the region that of all harts, from that of another one. A mark that one hart executes is in the streams of all of them, in
    /// that of a hart that sleeps where it fell asleep: the latest is where the mark was executed. A hart that slept through a stretch
    /// may not have it.
    fn add_region(&mut self, of_hart: &[Range<u64>]) {
        if of_hart.len() > self.region.len() {
            self.region = of_hart.to_vec();
        } else if of_hart.len() == self.region.len() {
            for (stretch, own) in self.region.iter_mut().zip(of_hart) {
                *stretch = stretch.start.max(own.start)..stretch.end.max(own.end);
            }
        }
    }

    /// Returns the number of cycles in the region.
    pub(crate) fn region_cycles(&self) -> u64 {
        Region::new(&self.region).cycles(0, u64::MAX)
    }

    /// Returns what threads waited for; `None` if the kernel does not tell. `process` returns a thread's process, `used_for`
    /// what a process uses a futex or a sleep for.
    pub fn waits(
        &self,
        process: impl Fn(ThreadId) -> ProcessId,
        used_for: impl Fn(ProcessId, WaitSite) -> WaitUse,
    ) -> Option<Waits> {
        self.tells().then(|| follow::waits(self, &process, &used_for))
    }

    /// Returns whether the kernel tells why threads do not run.
    fn tells(&self) -> bool {
        self.events.iter().any(|event| matches!(event.change, Transition::Leaves(..)))
    }
}

#[cfg(test)]
mod tests;
