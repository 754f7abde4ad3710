//! How a stack is left: returns, jumps out of functions, coroutines, signals.

use std::collections::BTreeSet;

use commit_trace::{InstId, StaticInfo};
use rustc_hash::{FxHashMap, FxHashSet};

use super::effect::{Pointer, Trapped};
use super::{Calls, ContextId};

/// Frames that every search may look at. Beyond these a search spends credit, of which each call adds 4, so that the time
/// of all searches is bounded by the number of calls.
const NEAR: usize = 256;
/// Different stacks that a process can have parked. Beyond, the oldest is dropped.
const MAX_PARKED: usize = 1024;
/// Frames in all parked stacks of a process.
const MAX_PARKED_FRAMES: usize = 1 << 20;
/// Innermost frames of a parked stack that are searched for a return address.
const PARKED_DEPTH: usize = 16;

/// An address space's number, and a virtual address in it.
type SpaceAddress = (u32, u64);

/// A thread's stack.
#[derive(Debug, Default)]
pub(super) struct Stack {
    pub root: ContextId,
    pub frames: Vec<Frame>,
    /// `root` has been set to the thread's outermost context.
    pub is_known: bool,
    /// The frames are copies of the parent's, in the parent's contexts.
    pub is_inherited: bool,
    /// The thread was switched to, and may have run on another hart since it last ran here.
    pub resumed: bool,
    /// Some of the innermost frames have been left, but it is not known how many.
    pub is_loose: bool,
    /// Frames beyond [`NEAR`] that searches may still look at.
    pub credit: usize,
    /// How many of the outermost frames may be wrong: the thread may have made other calls on another hart in between, or
    /// another coroutine may have been resumed.
    pub doubtful: usize,
    /// The coroutine that was taken for the resumed one among those that wait at one address. It is parked again if it proves to be the wrong one.
    pub guess: Option<Guess>,
}

/// A coroutine that was taken for the one that is resumed.
#[derive(Debug, Default)]
pub(super) struct Guess {
    /// How many of the stack's outermost frames are the coroutine's.
    frames: usize,
    /// Frames of the coroutine that have been left since, the innermost first.
    left: Vec<Frame>,
}

/// Equal stacks of coroutines that do not run, such as the workers of a pool, or goroutines that have ended.
#[derive(Debug)]
pub(super) struct Parked {
    frames: Vec<Frame>,
    count: usize,
}

impl Parked {
    fn is_equal(&self, frames: &[Frame]) -> bool {
        let innermost = |frames: &[Frame]| frames.last().map(|frame| frame.context);
        // Different stacks mostly differ in the innermost context.
        innermost(&self.frames) == innermost(frames) && self.frames == frames
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Frame {
    pub entered_by: EnteredBy,
    pub context: ContextId,
    /// Address of the first instruction executed in the frame.
    pub entry: u64,
}

/// How a frame was entered, which determines how it is left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum EnteredBy {
    /// By a call, until a return to this address.
    Return(u64),
    /// By a trap of this instruction.
    Trap(Trapped),
    /// A handler of a signal, by a trap of this instruction.
    Signal(Trapped),
}

/// Calls and function entries seen so far.
#[derive(Debug, Default)]
pub(super) struct Code {
    /// The call instruction that precedes each return address.
    calls: FxHashMap<SpaceAddress, InstId>,
    /// Targets of calls: the functions' entries.
    entries: BTreeSet<SpaceAddress>,
    /// First addresses of signal handlers.
    handlers: FxHashSet<SpaceAddress>,
    /// Pairs of a call and its target that are in `calls` and `entries` already.
    noted: FxHashSet<(InstId, u64)>,
}

impl Code {
    /// Notes that `inst` called the function that begins with `entry`.
    #[inline]
    pub(super) fn called(&mut self, inst: InstId, entered_by: EnteredBy, entry: &StaticInfo) {
        let EnteredBy::Return(back) = entered_by else {
            return;
        };
        if self.noted.insert((inst, entry.pc)) {
            self.calls.insert((entry.space, back), inst);
            self.entries.insert((entry.space, entry.pc));
        }
    }

    /// The entry of the function that an address is in: the nearest call target at or before the address.
    fn function(&self, (space, pc): SpaceAddress) -> Option<u64> {
        let (found, entry) = self.entries.range(..=(space, pc)).next_back()?;
        (*found == space).then_some(*entry)
    }
}

impl Stack {
    pub(super) fn context(&self) -> ContextId {
        self.frames.last().map_or(self.root, |frame| frame.context)
    }

    /// Returns the index of the innermost frame that satisfies the predicate. The search ends at the innermost trap, or when it has used up its
    /// credit.
    fn nearest(&mut self, is_it: impl Fn(&Frame) -> bool) -> Option<usize> {
        let most = NEAR + self.credit;
        let (mut seen, mut found) = (0usize, None);
        for (at, frame) in self.frames.iter().enumerate().rev().take(most) {
            seen += 1;
            if is_it(frame) {
                found = Some(at);
                break;
            }
            if matches!(frame.entered_by, EnteredBy::Trap(_)) {
                break;
            }
        }
        self.credit -= seen.saturating_sub(NEAR);
        found
    }

    fn innermost_trap(&self) -> Option<(usize, Trapped)> {
        let frames = self.frames.iter().enumerate().rev();
        { frames }.find_map(|(at, frame)| match frame.entered_by {
            EnteredBy::Trap(trapped) => Some((at, trapped)),
            _ => None,
        })
    }

    fn cut(&mut self, frames: usize) {
        if let Some(guess) = &mut self.guess
            && frames < guess.frames
        {
            let left = &self.frames[frames..guess.frames];
            guess.left.extend(left.iter().rev());
            guess.frames = frames;
        }
        self.doubtful = self.doubtful.min(frames);
        self.frames.truncate(frames);
        self.is_loose = false;
    }

    /// Ends a trap, or a signal's handler, where it began: all is as it was then. Returns how the stack pointer had been
    /// written.
    fn go_on_after(&mut self, frame: usize, at: Trapped) -> Pointer {
        self.cut(frame);
        self.is_loose = at.is_loose;
        at.pointer
    }

    /// Goes on in a frame of a coroutine, which may be the wrong one. `parked` are all its frames.
    fn go_on_in(&mut self, mut parked: Vec<Frame>, frame: usize) {
        let left = parked.split_off(frame);
        self.doubtful = frame;
        self.guess = Some(Guess { frames: frame, left: left.into_iter().rev().collect() });
        self.frames = parked;
        self.is_loose = false;
    }

    /// Makes all frames doubtful: the thread was switched to, and may have run on another hart since it last ran here.
    pub(super) fn resume(&mut self) {
        self.resumed = true;
        self.doubtful = self.frames.len();
    }

    /// Empties a stack whose frames proved wrong. Returns the frames of the coroutine that was taken for the right one, as it
    /// was parked.
    fn take_wrong(&mut self) -> Vec<Frame> {
        let mut frames = std::mem::take(&mut self.frames);
        let guess = self.guess.take().unwrap_or_default();
        frames.truncate(guess.frames);
        frames.extend(guess.left.into_iter().rev());
        self.doubtful = 0;
        self.is_loose = false;
        frames
    }

    /// Empties a stack that does not go on.
    fn take(&mut self) -> Vec<Frame> {
        (self.doubtful, self.guess) = (0, None);
        self.is_loose = false;
        std::mem::take(&mut self.frames)
    }
}

impl Calls {
    /// Handles a return to the instruction `to`.
    pub(super) fn handle_return(&mut self, to: &StaticInfo) {
        let waits = |frame: &Frame| frame.entered_by == EnteredBy::Return(to.pc);
        if self.pointer == Pointer::Loaded && self.resume(to) {
            return;
        }
        match self.stack.nearest(waits) {
            // Another coroutine, of which this hart has no stack, may wait at that call, too.
            Some(at) if self.pointer == Pointer::Loaded && to.privilege == 0 => {
                let mut frames = self.stack.take();
                frames.truncate(at + 1);
                self.stack.go_on_in(frames, at);
            }
            Some(at) => self.stack.cut(at),
            None if self.pointer == Pointer::Kept && self.exchange(to) => {}
            None => self.handle_unmatched_return(to),
        }
    }

    /// Handles an indirect jump, which may go back to a call's end as a return does.
    pub(super) fn jump(&mut self, from: u64, to: &StaticInfo) {
        let at = (to.space, to.pc);
        let is_elsewhere = || self.code.function(at) != self.code.function((to.space, from));
        if self.pointer == Pointer::Loaded && is_elsewhere() {
            self.handle_return(to);
        } else if self.stack.is_loose {
            self.drop_left_frames(to);
        }
    }

    /// Handles a return to an address that is no frame's return address in this stack.
    fn handle_unmatched_return(&mut self, to: &StaticInfo) {
        let pointer = self.pointer;
        match pointer {
            // This is a jump, or a return to another address of the caller than the one after the call.
            Pointer::Kept => {
                let function = self.code.function((to.space, to.pc));
                let is_it = |frame: &Frame| Some(frame.entry) == function;
                if let [.., caller, own] = &self.stack.frames[..]
                    && matches!(own.entered_by, EnteredBy::Return(_))
                    && is_it(caller)
                    && !is_it(own)
                {
                    self.stack.cut(self.stack.frames.len() - 1);
                } else if self.is_stale(to) {
                    // The callers of this function are not known: the stack has callers of another coroutine, or from before
                    // the thread ran elsewhere.
                    let wrong = self.stack.take_wrong();
                    self.park_frames(wrong);
                }
            }
            Pointer::Added => {
                self.stack.is_loose = true;
                self.drop_left_frames(to);
            }
            Pointer::Loaded => {
                // Neither `longjmp` nor an exception goes to where a function begins.
                let place = (to.space, to.pc);
                let begins =
                    self.code.entries.contains(&place) && !self.code.calls.contains_key(&place);
                let is_known = !begins
                    && (self.back_to_caller(to) || !self.is_new(to) && self.back_to_function(to));
                // Otherwise a coroutine begins. The kernel has no coroutines, only threads.
                if !is_known && to.privilege == 0 {
                    self.code.entries.insert((to.space, to.pc));
                    self.park();
                }
            }
        }
    }

    /// True if the frames prove wrong: the program returns to an address at which no frame waits.
    fn is_stale(&self, to: &StaticInfo) -> bool {
        let stack = &self.stack;
        let is_called =
            stack.frames.last().is_some_and(|own| matches!(own.entered_by, EnteredBy::Return(_)));
        let place = (to.space, to.pc);
        let from = (to.space, self.end.wrapping_sub(1));
        let is_return = || {
            self.code.calls.contains_key(&place)
                || self.code.function(place) != self.code.function(from)
        };
        to.privilege == 0 && is_called && stack.frames.len() <= stack.doubtful && is_return()
    }

    /// True if the instruction was never executed before.
    fn is_new(&self, inst: &StaticInfo) -> bool {
        self.latest.get(inst.id.0).is_none_or(|latest| *latest == 0)
    }

    /// Returns to the frame that last executed the call before this address (`longjmp`).
    fn back_to_caller(&mut self, to: &StaticInfo) -> bool {
        let call = self.code.calls.get(&(to.space, to.pc));
        let latest = call.and_then(|inst| self.latest.get(inst.0));
        let Some(context) = latest.and_then(|latest| latest.checked_sub(1)) else {
            return false;
        };
        let context = ContextId(context);
        if let Some(at) = self.stack.nearest(|frame| frame.context == context) {
            self.stack.cut(at + 1);
            return true;
        }
        let is_bottom = context == self.stack.root && to.privilege == 0;
        if is_bottom {
            self.stack.cut(0);
        }
        is_bottom
    }

    /// Returns to the nearest frame of the function that an address is in.
    fn back_to_function(&mut self, to: &StaticInfo) -> bool {
        let Some(entry) = self.code.function((to.space, to.pc)) else {
            return false;
        };
        let found = self.stack.nearest(|frame| frame.entry == entry);
        if let Some(at) = found {
            self.stack.cut(at + 1);
        }
        found.is_some()
    }

    /// Removes the frames within the frame of the function jumped to, if that function has a frame.
    pub(super) fn drop_left_frames(&mut self, to: &StaticInfo) {
        self.back_to_function(to);
    }

    /// Resumes the stack that was parked in the call before this address.
    fn resume(&mut self, to: &StaticInfo) -> bool {
        let Some((parked, frame)) = self.take_parked(to) else {
            return false;
        };
        self.park();
        self.stack.go_on_in(parked, frame);
        true
    }

    /// A return to a caller in a parked stack shows that, of several stacks parked at one address, the wrong one was resumed.
    /// Parks the wrong one again, as it was, and resumes the right one.
    fn exchange(&mut self, to: &StaticInfo) -> bool {
        let Some((parked, frame)) = self.take_parked(to) else {
            return false;
        };
        let wrong = match self.stack.guess {
            Some(_) => self.stack.take_wrong(),
            None => self.stack.take(),
        };
        self.park_frames(wrong);
        self.stack.go_on_in(parked, frame);
        true
    }

    /// Takes the stack that has been parked longest with a frame that returns to this address. Returns the stack's frames, and
    /// the number of frames outside of that frame.
    fn take_parked(&mut self, to: &StaticInfo) -> Option<(Vec<Frame>, usize)> {
        if to.privilege != 0 {
            return None;
        }
        let process = self.contexts.get(self.stack.root).process;
        let parked = self.parked.get_mut(&process)?;
        let waits = |frame: &Frame| frame.entered_by == EnteredBy::Return(to.pc);
        let (number, at) = parked.iter().enumerate().find_map(|(number, parked)| {
            let frames = &parked.frames;
            let top = frames.len().saturating_sub(PARKED_DEPTH);
            let at = top + frames[top..].iter().rposition(waits)?;
            Some((number, at))
        })?;
        let mut frames = match &mut parked[number] {
            Parked { count: 1, .. } => parked.remove(number).frames,
            equal => {
                equal.count -= 1;
                equal.frames.clone()
            }
        };
        let is_own = frames
            .first()
            .is_none_or(|frame| self.contexts.get(frame.context).thread == self.thread);
        if !is_own {
            frames = self.rebased(frames);
        }
        Some((frames, at))
    }

    /// Parks the running stack: the program switches to another of its own.
    fn park(&mut self) {
        let frames = self.stack.take();
        self.park_frames(frames);
    }

    /// Parks frames that do not run.
    fn park_frames(&mut self, frames: Vec<Frame>) {
        let process = self.contexts.get(self.stack.root).process;
        if frames.is_empty() {
            return;
        }
        let parked = self.parked.entry(process).or_default();
        if let Some(equal) = parked.iter_mut().find(|parked| parked.is_equal(&frames)) {
            equal.count += 1;
            return;
        }
        parked.push(Parked { frames, count: 1 });
        let total: usize = parked.iter().map(|parked| parked.frames.len()).sum();
        if parked.len() > MAX_PARKED || total > MAX_PARKED_FRAMES {
            parked.remove(0);
        }
    }

    /// A return from the innermost trap to the instruction `to`: how the stack pointer has been written since the last call or
    /// return before `to`. A stack without a trap, as of a new thread, has no frames left.
    pub(super) fn handle_trap_return(&mut self, machine: bool, to: &StaticInfo) -> Pointer {
        let is_user = to.privilege == 0;
        let resumed = self.stack.resumed;
        self.stack.resumed &= !is_user;
        let Some((trap, at)) = self.stack.innermost_trap() else {
            self.stack.cut(0);
            return Pointer::Kept;
        };
        if at.goes_on_at(to.pc) {
            return self.stack.go_on_after(trap, at);
        }
        if machine && to.privilege == 1 {
            // The firmware delegates the trap to the kernel.
            self.stack.cut(trap + 1);
        } else if !is_user || at.privilege != 0 {
            self.stack.cut(trap);
        } else {
            self.stack.cut(trap + 1);
            return self.redirected(trap, at, resumed, to);
        }
        Pointer::Kept
    }

    /// The kernel returns to another place of the program than it was entered from.
    fn redirected(&mut self, trap: usize, at: Trapped, resumed: bool, to: &StaticInfo) -> Pointer {
        let goes_on = |(number, frame): (usize, &Frame)| match frame.entered_by {
            EnteredBy::Signal(at) if at.goes_on_at(to.pc) => Some((number, at)),
            _ => None,
        };
        if let Some((handled, at)) = self.stack.frames.iter().enumerate().rev().find_map(goes_on) {
            return self.stack.go_on_after(handled, at);
        }
        let place = (to.space, to.pc);
        if resumed && !self.is_new(to) && !self.code.handlers.contains(&place) {
            // The thread ran on another hart in between.
            self.stack.cut(trap);
            if !self.back_to_function(to) {
                self.stack.cut(0);
            }
            return Pointer::Kept;
        }
        self.code.handlers.insert(place);
        self.code.entries.insert(place);
        let frame = &mut self.stack.frames[trap];
        (frame.entered_by, frame.entry) = (EnteredBy::Signal(at), to.pc);
        Pointer::Kept
    }
}
