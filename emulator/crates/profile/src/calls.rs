//! Call stacks, from the stream alone: a stack of return addresses for each thread, kept from the calls, returns
//! and traps that commit. It needs no frame pointers and no unwind tables, and crosses from the program into the
//! kernel and the firmware.

use commit_trace::{CommitRecord, InstFacts, InstId, Span, State, TeaEvents};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::ProcessId;
use crate::paged::Paged;

/// Frames that have contexts of their own: deeper ones belong to the last of these.
const MAX_DEPTH: usize = 512;
/// Frames that are kept at all.
const MAX_FRAMES: usize = 1 << 16;
/// How far down a return may find its caller (`longjmp`, exceptions).
const MAX_UNWOUND: usize = 256;
/// Contexts that are told apart. What is called from those beyond counts as its caller's.
const MAX_CONTEXTS: usize = 1 << 23;

/// Dense number of a calling context.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub struct ContextId(pub u32);

/// A calling context: a process, or what an instruction of another context calls (or interrupts).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// Who executes it.
    pub process: ProcessId,
    /// The call or trapped instruction, and the context that it was executed in; `None` at a stack's bottom.
    pub caller: Option<(ContextId, InstId)>,
}

/// All calling contexts of a stream. A context comes after its caller's.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Contexts(Vec<Context>);

impl Contexts {
    /// Contexts without calls: one for each of so many processes, by their numbers.
    pub fn flat(processes: usize) -> Self {
        let context = |process| Context {
            process: ProcessId(process),
            caller: None,
        };
        Self((0..processes as u32).map(context).collect())
    }

    /// The context of this number; an unknown one is the boot's.
    pub fn get(&self, id: ContextId) -> Context {
        let unknown = Context {
            process: ProcessId::BOOT,
            caller: None,
        };
        self.0.get(id.0 as usize).copied().unwrap_or(unknown)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn add(&mut self, context: Context) -> ContextId {
        self.0.push(context);
        ContextId(self.0.len() as u32 - 1)
    }
}

/// Units by context and instruction.
pub type ContextWeights = Vec<(ContextId, InstId, u64)>;

/// Sums per context and instruction.
#[derive(Debug, Default)]
pub(crate) struct ContextTally(crate::tally::Tally);

impl ContextTally {
    #[inline]
    pub(crate) fn add(&mut self, context: ContextId, inst: InstId, units: u64) {
        self.0
            .add(u64::from(context.0) << 32 | u64::from(inst.0), units);
    }

    pub(crate) fn finish(self) -> ContextWeights {
        let split = |(key, units)| (ContextId((key >> 32) as u32), InstId(key as u32), units);
        self.0.finish().into_iter().map(split).collect()
    }
}

/// Follows one hart's calls.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    contexts: Contexts,
    children: FxHashMap<(ContextId, InstId), ContextId>,
    /// The bottom of each process's stacks.
    roots: FxHashMap<ProcessId, ContextId>,
    stack: Stack,
    thread: u32,
    /// The stacks of the threads that do not run.
    waiting: FxHashMap<u32, Stack>,
    /// What the last instruction did.
    last: Step,
    /// The first record to commit in this cycle has been entered.
    entered: Option<u64>,
    /// The context in which each instruction was executed last, plus 1.
    latest: Paged<u32>,
}

#[derive(Debug, Default)]
struct Stack {
    root: ContextId,
    frames: Vec<Frame>,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    /// Where it returns to; `None`: by `sret` or `mret`.
    back: Option<u64>,
    context: ContextId,
}

/// What an instruction does to the stack, once it is known what comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Step {
    #[default]
    None,
    Call {
        inst: InstId,
        back: u64,
    },
    Return,
    Trap(InstId),
    TrapReturn,
}

impl Step {
    /// Calls and returns are told by their registers (Unprivileged ISA, section 2.5.1, table 3).
    fn of(facts: &InstFacts) -> Self {
        let link = |register: u32| matches!(register & 31, 1 | 5);
        let raw = facts.raw;
        let call = Self::Call {
            inst: facts.id,
            back: facts.pc.wrapping_add(u64::from(facts.len)),
        };
        if facts.len == 2 {
            let is_jump = raw & 0xe07f == 0x8002 && raw >> 7 & 31 != 0;
            return match raw >> 12 & 1 {
                1 if is_jump => call,
                0 if is_jump && link(raw >> 7) => Self::Return,
                _ => Self::None,
            };
        }
        match raw & 0x7f {
            0x6f | 0x67 if link(raw >> 7) => call,
            0x67 if link(raw >> 15) => Self::Return,
            // `sret` and `mret`.
            0x73 if raw == 0x1020_0073 || raw == 0x3020_0073 => Self::TrapReturn,
            _ => Self::None,
        }
    }
}

impl Calls {
    /// Another thread runs from here on, or the same one another program.
    pub(crate) fn select(&mut self, process: ProcessId, thread: u32) {
        if thread != self.thread {
            let next = self.waiting.remove(&thread).unwrap_or_default();
            let before = std::mem::replace(&mut self.stack, next);
            self.waiting
                .insert(std::mem::replace(&mut self.thread, thread), before);
        }
        let contexts = &mut self.contexts;
        let root = self.roots.entry(process);
        let root = *root.or_insert_with(|| {
            contexts.add(Context {
                process,
                caller: None,
            })
        });
        if self.stack.root != root {
            self.stack = Stack {
                root,
                frames: Vec::new(),
            };
        }
    }

    /// Sees a span before anything is charged for it.
    pub(crate) fn span(&mut self, span: &Span<'_>, facts: &[InstFacts]) {
        match span.state {
            State::Computing => {
                let entered = usize::from(self.entered.take() == Some(span.commit));
                for record in &span.records[entered..] {
                    self.enter(record.inst, facts);
                }
            }
            State::Stalled | State::Drained if self.entered != Some(span.commit) => {
                self.entered = Some(span.commit);
                span.records
                    .iter()
                    .for_each(|record| self.enter(record.inst, facts));
            }
            State::Stalled | State::Drained | State::Flushed | State::Idle => {}
        }
    }

    /// Sees an instruction that left the ROB without committing.
    pub(crate) fn trap(&mut self, commit: u64, record: &CommitRecord, facts: &[InstFacts]) {
        if self.entered.take() != Some(commit) {
            self.enter(record.inst, facts);
        }
        // A load that is replayed enters no handler.
        self.last = match record.tea().contains(TeaEvents::FL_MO) {
            true => Step::None,
            false => Step::Trap(record.inst),
        };
    }

    /// The context of an instruction that a profiler names while `process` runs.
    pub(crate) fn context(&self, process: ProcessId, inst: InstId) -> ContextId {
        let latest = self
            .latest
            .get(inst.0)
            .and_then(|latest| latest.checked_sub(1));
        match latest.map(ContextId) {
            Some(context) if self.contexts.get(context).process == process => context,
            // Executed before the last switch of processes.
            _ => self.roots.get(&process).copied().unwrap_or_default(),
        }
    }

    pub(crate) fn finish(self) -> Contexts {
        self.contexts
    }

    fn enter(&mut self, inst: InstId, facts: &[InstFacts]) {
        let Some(facts) = facts.get(inst.0 as usize) else {
            return;
        };
        match self.last {
            Step::None => {}
            Step::Call { inst, back } => self.push(inst, Some(back)),
            Step::Trap(inst) => self.push(inst, None),
            Step::Return => self.stack.unwind(facts.pc),
            Step::TrapReturn => self.stack.leave_trap(),
        }
        self.last = Step::of(facts);
        *self.latest.entry(inst.0) = self.stack.context().0 + 1;
    }

    fn push(&mut self, inst: InstId, back: Option<u64>) {
        let depth = self.stack.frames.len();
        if depth >= MAX_FRAMES {
            return;
        }
        let caller = self.stack.context();
        let contexts = &mut self.contexts;
        let context = match self.children.get(&(caller, inst)) {
            _ if depth >= MAX_DEPTH => caller,
            Some(known) => *known,
            None if contexts.0.len() >= MAX_CONTEXTS => caller,
            None => {
                let process = contexts.get(caller).process;
                let context = contexts.add(Context {
                    process,
                    caller: Some((caller, inst)),
                });
                self.children.insert((caller, inst), context);
                context
            }
        };
        self.stack.frames.push(Frame { back, context });
    }
}

impl Stack {
    fn context(&self) -> ContextId {
        self.frames.last().map_or(self.root, |frame| frame.context)
    }

    /// A return to `pc`: to the caller, or past several. To anywhere else it still ends its function.
    fn unwind(&mut self, pc: u64) {
        let frames = self.frames.iter().rev().take(MAX_UNWOUND);
        let mut own = frames.take_while(|frame| frame.back.is_some());
        let popped = own
            .position(|frame| frame.back == Some(pc))
            .map_or(1, |above| above + 1);
        if self.frames.last().is_some_and(|frame| frame.back.is_some()) {
            self.frames.truncate(self.frames.len() - popped);
        }
    }

    /// A return from the innermost trap. What was never entered by one (a new thread) has no frames below.
    fn leave_trap(&mut self) {
        let trap = self.frames.iter().rposition(|frame| frame.back.is_none());
        self.frames.truncate(trap.unwrap_or(0));
    }
}

#[cfg(test)]
mod tests;
