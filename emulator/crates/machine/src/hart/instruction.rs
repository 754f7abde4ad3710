//! The instructions that a hart executes and has timed, and its turns among others.

use isa::{Executed, MemAccess, Operand, Privilege, StaticId};

use super::{Accesses, RunBuffer};

/// What the timing model gets of the current instruction, or of the current run of instructions. Cycles are at its
/// beginning in memory, beside the deadlines that they are compared with.
#[repr(C)]
pub(crate) struct InstructionBeingTimed {
    /// Cycle in which the current instruction was decoded; if this is before `exact_from`, it may be later than the real one.
    pub decoded_at: u64,
    /// Cycle from which on `decoded_at` is exact.
    pub exact_from: u64,
    /// Room for instructions that are executed and not timed yet. `None` while they are executed: whatever has to be
    /// seen in its cycle must wait.
    pub run: Option<Box<RunBuffer>>,
    /// What is known of the current instruction; the hart fills it in and passes it to the timing model.
    pub executed: Executed,
    /// Data access of the current instruction, and those before it in its run.
    pub accesses: Accesses,
}

impl InstructionBeingTimed {
    /// Returns the state between instructions.
    pub(crate) fn new() -> Self {
        Self {
            executed: Executed {
                id: StaticId(0),
                inst: isa::decode(0),
                pc: 0,
                fetch_pa: 0,
                next_pc: 0,
                mem: MemAccess::default(),
                operand: Operand::default(),
                privilege: Privilege::Machine,
                trap: None,
                translated: false,
            },
            accesses: Accesses::default(),
            decoded_at: 0,
            exact_from: 0,
            run: Some(Box::default()),
        }
    }
}

/// Where a hart stands among others with which it takes turns under a timing model.
#[derive(Default)]
pub(crate) struct Turns {
    /// True if the hart takes turns with others under a timing model.
    pub in_turns: bool,
    /// Cycle that the hart has come to, if it takes turns.
    pub reached: u64,
    /// Cycle before which nothing younger is decoded than the instruction that has the machine to itself, if the hart takes
    /// turns.
    pub alone_until: u64,
    /// Cycle before which no other hart has anything left to do: what this hart does before is in order.
    pub in_order_until: u64,
    /// Whether the next run of instructions begins before [`Self::in_order_until`].
    pub next_is_in_order: bool,
    /// Whether the present run of instructions began before [`Self::in_order_until`].
    pub run_is_in_order: bool,
    /// Whether the last run of instructions ended before one that may have to wait for the hart's turn.
    pub awaits_turn: bool,
    /// Physical address of that instruction's access, if it is not to a device, and whether it is a store.
    pub awaited_line: Option<(u64, bool)>,
    /// Each instruction has its turn ([`Hart::order_each_instruction`](super::Hart::order_each_instruction)).
    pub order_each: bool,
}

// How the hart was set up, and what one run works out, stay as they are.
snapshot::snapshot!(Turns { reached } keeps {
    in_turns,
    alone_until,
    in_order_until,
    next_is_in_order,
    run_is_in_order,
    awaits_turn,
    awaited_line,
    order_each
});
