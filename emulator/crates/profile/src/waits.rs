//! What threads wait for, how long, and who wakes them: as the guest's kernel tells ([`SchedulerLog`]), added up ([`Waits`]).

mod follow;
mod region;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::merge::MergedNumbers;
use crate::{ContextId, ProcessId, ThreadId};
use region::Region;

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
    /// When.
    pub cycle: u64,
    /// The hart that told it.
    pub hart: u32,
    /// What.
    pub change: Transition,
    /// The kernel's calling context as the thread entered it, if calls were followed: its callers are those of the system call in which
    /// the thread waits. Of [`Transition::Leaves`] only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<ContextId>,
}

/// What happens to a thread, which is told by the kernel's number of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transition {
    /// It is new, and could run.
    Begins(u32),
    /// The hart runs it from here on, as this thread.
    Runs(u32, ThreadId),
    /// It does not run any longer.
    Leaves(u32, SwitchOut),
    /// It need not wait any longer; by whom, or `None`: by an interrupt.
    Wakes(u32, Option<u32>),
}

/// Why a thread does not run any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SwitchOut {
    /// It could: another one has its turn.
    Runnable,
    /// It waits in the kernel, which it entered so.
    Waits(KernelEntry),
    /// It is over.
    Ended,
}

/// How a thread entered the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KernelEntry {
    /// It is the kernel's own.
    Kernel,
    /// By a system call.
    Syscall {
        /// Its number, 65535 for all above.
        number: u16,
        /// Its first argument: of `futex`, the address.
        address: u64,
        /// The low half of its second: of `futex`, the operation.
        argument: u32,
        /// Where the program goes on: after the `ecall`.
        pc: u64,
    },
    /// By a page fault.
    Fault {
        /// What was accessed.
        address: u64,
        /// The instruction.
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
    /// A page.
    Fault,
    /// Whatever a thread of the kernel waits for.
    Kernel,
    /// It is not known.
    Other,
}

/// Who ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Waker {
    /// A thread.
    Thread(ThreadId),
    /// An interrupt: a timer or a device.
    Interrupt,
    /// It was not told.
    Unknown,
    /// Nobody until the region's end.
    Nobody,
}

/// Cycles of some stretches of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Intervals {
    /// How many there were.
    pub count: u64,
    /// Their cycles in the region.
    pub cycles: u64,
    /// Those of the longest.
    pub longest: u64,
}

impl Intervals {
    fn add(&mut self, cycles: u64) {
        self.merge(Self {
            count: 1,
            cycles,
            longest: cycles,
        });
    }

    /// These and those together.
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
    /// Which.
    pub thread: ThreadId,
    /// On a hart.
    pub running: Intervals,
    /// It could run, and no hart ran it.
    pub ready: Intervals,
    /// Waiting, by reason, those with most waiting first.
    pub waits: Vec<ReasonWaits>,
    /// It did not run, and nobody told why.
    pub unknown: u64,
}

/// A thread's waits for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReasonWaits {
    /// Which.
    pub reason: WaitReason,
    /// All of them.
    pub all: Intervals,
    /// The same by who ended them, those with most waiting first.
    pub wakers: Vec<(Waker, Intervals)>,
}

/// A futex that was waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FutexWaits {
    /// The program in whose memory it is.
    pub process: ProcessId,
    /// Where in it.
    pub address: u64,
    /// All waits.
    pub all: Intervals,
    /// The same by who waited and who woke it, those with most waiting first.
    pub pairs: Vec<(ThreadId, Waker, Intervals)>,
    /// All waits by where the kernel was entered, those with most waiting first.
    pub sites: Vec<(WaitSite, Intervals)>,
    /// The operations of the calls, and their counts.
    pub operations: Vec<(u32, u64)>,
}

/// Numbers of `futex` and `nanosleep` in the kernel's table for RISC-V.
const FUTEX_SYSCALL: u16 = 98;
const NANOSLEEP_SYSCALL: u16 = 101;
/// Operations that wait, as the kernel's constants are called.
const FUTEX_WAITS: [(u32, &str); 5] = [
    (0, "FUTEX_WAIT"),
    (6, "FUTEX_LOCK_PI"),
    (9, "FUTEX_WAIT_BITSET"),
    (11, "FUTEX_WAIT_REQUEUE_PI"),
    (13, "FUTEX_LOCK_PI2"),
];
/// Flags beside an operation: no other program uses the futex; times are those of the real-time clock.
pub const FUTEX_PRIVATE: u32 = 128;
const FUTEX_CLOCK_REALTIME: u32 = 256;

/// The operation that an argument of `futex` asks for, without its flags, if it is one that waits.
pub fn futex_wait(argument: u32) -> Option<&'static str> {
    let operation = argument & !(FUTEX_PRIVATE | FUTEX_CLOCK_REALTIME);
    let found = FUTEX_WAITS.iter().find(|(number, _)| *number == operation);
    found.map(|(_, name)| *name)
}

impl KernelEntry {
    /// Returns whether code that waits so may be a language's runtime, whose names tell what for ([`WaitUse`]).
    fn may_be_of_runtime(self) -> bool {
        match self {
            Self::Syscall {
                number: NANOSLEEP_SYSCALL,
                ..
            } => true,
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
            Self::Syscall {
                number, argument, ..
            } => match number {
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
            // A mark that one executes is for all; each has a time of its own for it.
            if merged.region.is_empty() {
                merged.region.clone_from(&log.region);
            }
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

    /// What threads waited for; `None` if the kernel does not tell. `process` is that of a thread, `used_for` says what a process uses a
    /// futex or a sleep for.
    pub fn waits(
        &self,
        process: impl Fn(ThreadId) -> ProcessId,
        used_for: impl Fn(ProcessId, WaitSite) -> WaitUse,
    ) -> Option<Waits> {
        let tells = |event: &SchedulerEvent| matches!(event.change, Transition::Leaves(..));
        { self.events.iter() }
            .any(tells)
            .then(|| follow::waits(self, &process, &used_for))
    }
}

#[cfg(test)]
mod tests;
