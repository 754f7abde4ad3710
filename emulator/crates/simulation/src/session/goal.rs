//! Where a step of a session is to end, and why it did.

use devices::Exit;
use machine::{DebugStop, Mark, Stuck};

/// Where a step is to end: where the first of these is reached. Without any, where the guest ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Goal {
    /// Instructions that retire in this step, on all harts together. One hart ends at exactly so many; several may execute up to as many
    /// each before all stop.
    pub instructions: Option<u64>,
    /// Cycle since reset that the furthest hart comes to.
    pub cycle: Option<u64>,
    /// A mark that a hart executes.
    pub mark: Option<Mark>,
    /// Virtual address of an instruction that a hart is about to execute.
    pub breakpoint: Option<u64>,
    /// The guest has mounted the folder that it shares with the host, and not looked into it yet: the last place at which a machine
    /// with such a folder can be saved. A bare-metal program: it misses console input.
    pub pause: bool,
}

impl Goal {
    /// The guest's own end.
    pub const END: Self =
        Self { instructions: None, cycle: None, mark: None, breakpoint: None, pause: false };

    /// Returns the goal of so many more instructions.
    pub const fn instructions(count: u64) -> Self {
        Self { instructions: Some(count), ..Self::END }
    }

    /// Returns the goal of a cycle since reset.
    pub const fn cycle(cycle: u64) -> Self {
        Self { cycle: Some(cycle), ..Self::END }
    }

    /// Returns the goal of a mark.
    pub const fn mark(mark: Mark) -> Self {
        Self { mark: Some(mark), ..Self::END }
    }
}

/// Why a step of a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The goal is reached.
    Reached,
    /// The guest ended.
    Exit(Exit),
    /// All harts sleep, and nothing is scheduled that could wake one.
    Idle,
    /// A hart's exceptions repeat themselves without end.
    Stuck(Stuck),
    /// A debugger's breakpoint, watchpoint or single step.
    Debug(DebugStop),
    /// The observer ended it.
    Observer,
}
