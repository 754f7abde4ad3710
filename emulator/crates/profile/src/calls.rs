//! Call stacks, from the stream alone: a stack of return addresses for each thread, kept from the calls, returns
//! and traps that commit. It needs no frame pointers and no unwind tables, and crosses from the program into the
//! kernel and the firmware.
//!
//! The stream has no register values, but it has every instruction. A return is interpreted by how the stack pointer was
//! written before it: a constant was added to it, a register was added to it, or it was loaded ([`unwind`]).
//! - A return goes to the nearest frame whose return address it is: the caller's call, or one further out.
//! - If no frame has that return address, and the stack pointer was loaded, the return goes to a parked stack that waits
//!   at that call; else to the frame that last called from there (`longjmp`); else to the frame of the function that
//!   the address is in; else to a new, empty stack (a coroutine's first instruction). The stack before it is parked.
//! - If a register was added to the stack pointer (an exception is caught), the return goes to the frame of the function
//!   that the address is in. If that is not known, frames are removed at the next jump or return that tells.
//! - Otherwise, if a parked stack waits at that call, the return goes to that one: the wrong stack was resumed before.
//! - Otherwise, if the frames may be wrong, as the thread may have run on another hart or another coroutine may have been
//!   resumed, the return proves it: the stack is empty from there on, and the wrong coroutine is parked again.
//! - Otherwise the return is a jump, and no frame is removed.
//! - A trap ends when execution continues where it was taken. If the kernel returns elsewhere in the program, that is a
//!   signal handler. Its frame is on top of the interrupted one, and ends when the kernel returns to the interrupted address.
//! - A forked child begins with its parent's frames, a thread with none.
//!
//! Three things cannot be known: which of several coroutines that wait at one address continues (the one that has waited
//! longest is taken, until a return proves otherwise); the calls that a thread made before the stream began or on another
//! hart, as each hart's stream is followed alone; and the function of an address in code that was never called.

mod effect;
mod fold;
mod unwind;

use commit_trace::{CommitRecord, InstId, Span, State, StaticInfo, TeaEvents};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::paged::Paged;
use crate::{ProcessId, ThreadId};
pub use fold::fold;
pub(crate) use fold::sum_up;

use effect::{Pointer, StackEffect, Trapped};
use unwind::{Code, EnteredBy, Frame, Parked, Stack};

/// Depth up to which frames have contexts of their own. Deeper frames share the context of the last of these.
const MAX_DEPTH: usize = 512;
/// Frames that a stack holds at most. Deeper calls are not followed.
const MAX_FRAMES: usize = 1 << 16;
/// Contexts that there are at most. Calls beyond them are charged to the caller's context.
const MAX_CONTEXTS: usize = 1 << 23;

/// Dense number of a calling context.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub struct ContextId(pub u32);

/// A calling context: a thread of a process, or what an instruction of another context calls (or interrupts).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Context {
    /// The process that executes the context.
    pub process: ProcessId,
    /// The thread that executes the context; [`ThreadId::NONE`] if threads are not told apart.
    pub thread: ThreadId,
    /// The call or trapped instruction, and the context that it was executed in; `None` at a stack's bottom.
    pub caller: Option<(ContextId, InstId)>,
}

/// All calling contexts of a stream. A context comes after its caller's.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Contexts(Vec<Context>);

impl Contexts {
    /// Contexts without calls: one for each of `processes` processes, by number.
    pub fn flat(processes: usize) -> Self {
        let context =
            |process| Context { process: ProcessId(process), thread: ThreadId::NONE, caller: None };
        Self((0..processes as u32).map(context).collect())
    }

    /// The context of this number; an unknown one is the boot's.
    pub fn get(&self, id: ContextId) -> Context {
        let unknown = Context { process: ProcessId::BOOT, thread: ThreadId::NONE, caller: None };
        self.0.get(id.0 as usize).copied().unwrap_or(unknown)
    }

    /// Returns the number of contexts.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns all contexts, by number.
    pub fn iter(&self) -> impl Iterator<Item = &Context> {
        self.0.iter()
    }

    /// True if any context is called by another.
    pub fn have_callers(&self) -> bool {
        self.0.iter().any(|context| context.caller.is_some())
    }

    /// True if there are no contexts.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a context, and returns its number.
    pub fn add(&mut self, context: Context) -> ContextId {
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
        self.0.add(u64::from(context.0) << 32 | u64::from(inst.0), units);
    }

    /// How many sums there are, but for the last few.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
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
    /// The outermost context of each thread.
    roots: FxHashMap<ThreadId, ContextId>,
    /// The calls and function entries seen so far.
    code: Code,
    stack: Stack,
    thread: ThreadId,
    tid: u32,
    /// The stacks of the threads that do not run, by the kernel's numbers.
    waiting: FxHashMap<u32, Stack>,
    /// Stacks of coroutines that do not run, by process; the one parked first comes first.
    parked: FxHashMap<ProcessId, Vec<Parked>>,
    /// Calls are not followed: every context is its thread's outermost one.
    flat: bool,
    /// What the last instruction did to the stack.
    last: StackEffect,
    /// The address after the last instruction.
    end: u64,
    /// How the stack pointer was written since the last call, return or trap.
    pointer: Pointer,
    /// The commit cycle whose first record [`Self::enter`] has taken already, in a span before it.
    entered: Option<u64>,
    /// The context in which each instruction was executed last, plus 1.
    latest: Paged<u32>,
}

impl Calls {
    /// Knows threads only: no calls.
    pub(crate) fn flat() -> Self {
        Self { flat: true, ..Self::default() }
    }

    /// Notes that another thread runs from here on, or that the thread runs another program. `tid` is the kernel's number of
    /// the thread.
    pub(crate) fn select(&mut self, process: ProcessId, thread: ThreadId, tid: u32) {
        if tid != self.tid {
            let mut next = self.waiting.remove(&tid).unwrap_or_default();
            next.resume();
            let before = std::mem::replace(&mut self.stack, next);
            self.waiting.insert(std::mem::replace(&mut self.tid, tid), before);
        }
        self.thread = thread;
        let contexts = &mut self.contexts;
        let root = self.roots.entry(thread);
        let root = *root.or_insert_with(|| contexts.add(Context { process, thread, caller: None }));
        if self.stack.root == root && self.stack.is_known {
            return;
        }
        let frames = std::mem::take(&mut self.stack.frames);
        let inherited = std::mem::take(&mut self.stack.is_inherited);
        self.stack = Stack { root, is_known: true, ..Stack::default() };
        if inherited {
            self.stack.frames = self.rebased(frames);
        }
    }

    /// The thread that runs has a child, which begins as its copy, or, with `own_stack`, on a stack of its own.
    pub(crate) fn fork(&mut self, parent: u32, tid: u32, own_stack: bool) {
        self.waiting.remove(&tid);
        if own_stack || parent != self.tid || tid == self.tid {
            return;
        }
        let entry =
            |frame: &Frame| matches!(frame.entered_by, EnteredBy::Trap(at) if at.privilege == 0);
        if let Some(at) = self.stack.frames.iter().rposition(entry) {
            let stack = Stack {
                frames: self.stack.frames[..=at].to_vec(),
                is_inherited: true,
                ..Stack::default()
            };
            self.waiting.insert(tid, stack);
        }
    }

    /// A thread is over, by the kernel's number of it.
    pub(crate) fn end(&mut self, tid: u32) {
        self.waiting.remove(&tid);
    }

    /// Sees a span before anything is charged for it.
    pub(crate) fn span(&mut self, span: &Span<'_>, static_info: &[StaticInfo]) {
        if self.flat {
            return;
        }
        match span.state {
            State::Computing => {
                let entered = usize::from(self.entered.take() == Some(span.commit));
                for record in &span.records[entered..] {
                    self.enter(record.inst, static_info);
                }
            }
            State::Stalled | State::Drained if self.entered != Some(span.commit) => {
                self.entered = Some(span.commit);
                span.records.iter().for_each(|record| self.enter(record.inst, static_info));
            }
            State::Stalled | State::Drained | State::Flushed | State::Idle => {}
        }
    }

    /// Sees an instruction that left the ROB without committing.
    pub(crate) fn trap(&mut self, commit: u64, record: &CommitRecord, static_info: &[StaticInfo]) {
        if self.flat {
            return;
        }
        if self.entered.take() != Some(commit) {
            self.enter(record.inst, static_info);
        }
        // A load that is replayed enters no handler.
        self.last = match static_info.get(record.inst.0 as usize) {
            Some(static_info) if !record.tea().contains(TeaEvents::FL_MO) => StackEffect::Trap {
                inst: record.inst,
                at: Trapped {
                    pc: static_info.pc,
                    len: static_info.len,
                    privilege: static_info.privilege,
                    pointer: self.pointer,
                    is_loose: std::mem::take(&mut self.stack.is_loose),
                },
            },
            _ => StackEffect::None,
        };
    }

    /// The context of an instruction that a profiler names while `process` runs.
    pub(crate) fn context(&self, process: ProcessId, inst: InstId) -> ContextId {
        let latest = self.latest.get(inst.0).and_then(|latest| latest.checked_sub(1));
        let is_own = |context: Context| (context.process, context.thread) == (process, self.thread);
        match latest.map(ContextId) {
            Some(context) if is_own(self.contexts.get(context)) => context,
            // Executed before the last switch of threads.
            _ => self.roots.get(&self.thread).copied().unwrap_or_default(),
        }
    }

    /// Returns the kernel's context as the thread that runs entered it from the program; `None` if that is not known.
    pub(crate) fn kernel_entry(&self) -> Option<ContextId> {
        let frames = self.stack.frames.iter().rev().take(MAX_DEPTH);
        let is_entry =
            |frame: &&Frame| matches!(frame.entered_by, EnteredBy::Trap(at) if at.privilege == 0);
        { frames }.find(is_entry).map(|frame| frame.context)
    }

    /// All contexts so far.
    pub(crate) fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    pub(crate) fn finish(self) -> Contexts {
        self.contexts
    }

    fn enter(&mut self, inst: InstId, static_info: &[StaticInfo]) {
        let Some(static_info) = static_info.get(inst.0 as usize) else {
            return;
        };
        let mut pointer = Pointer::Kept;
        match self.last {
            StackEffect::None => {
                if self.stack.is_loose && static_info.pc != self.end {
                    self.drop_left_frames(static_info);
                }
                pointer = self.pointer;
            }
            StackEffect::Call { inst, back } => {
                self.push(inst, EnteredBy::Return(back), static_info)
            }
            StackEffect::Trap { inst, at } => self.push(inst, EnteredBy::Trap(at), static_info),
            StackEffect::Return => self.handle_return(static_info),
            StackEffect::Jump { from } => self.jump(from, static_info),
            StackEffect::TrapReturn { machine } => {
                pointer = self.handle_trap_return(machine, static_info);
            }
        }
        self.pointer = pointer.after(static_info);
        self.last = StackEffect::of(static_info);
        self.end = static_info.pc.wrapping_add(u64::from(static_info.len));
        *self.latest.entry(inst.0) = self.stack.context().0 + 1;
    }

    fn push(&mut self, inst: InstId, entered_by: EnteredBy, entry: &StaticInfo) {
        let depth = self.stack.frames.len();
        if depth >= MAX_FRAMES {
            return;
        }
        let caller = self.stack.context();
        let context = match depth >= MAX_DEPTH {
            true => caller,
            false => self.child(caller, inst),
        };
        self.code.called(inst, entered_by, entry);
        self.stack.frames.push(Frame { entered_by, context, entry: entry.pc });
        self.stack.credit += 4;
    }

    /// Returns the context of what `inst` calls in `caller`. It is `caller` itself once there are [`MAX_CONTEXTS`].
    fn child(&mut self, caller: ContextId, inst: InstId) -> ContextId {
        if let Some(known) = self.children.get(&(caller, inst)) {
            return *known;
        }
        if self.contexts.len() >= MAX_CONTEXTS {
            return caller;
        }
        let context = Context { caller: Some((caller, inst)), ..self.contexts.get(caller) };
        let context = self.contexts.add(context);
        self.children.insert((caller, inst), context);
        context
    }

    /// Returns the frames with contexts of the thread that runs in place of their own.
    fn rebased(&mut self, frames: Vec<Frame>) -> Vec<Frame> {
        let (mut at, mut before) = (self.stack.root, None);
        let rebased = |frame: Frame| {
            // Frames beyond the deepest share its context.
            if before != Some(frame.context)
                && let Some((_, inst)) = self.contexts.get(frame.context).caller
            {
                at = self.child(at, inst);
            }
            before = Some(frame.context);
            Frame { context: at, ..frame }
        };
        frames.into_iter().map(rebased).collect()
    }
}

#[cfg(test)]
mod tests;
