//! What an instruction does to the stack, told by its encoding.

use commit_trace::{InstId, StaticInfo};

/// What an instruction does to the stack when the next instruction is executed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum StackEffect {
    #[default]
    None,
    Call {
        inst: InstId,
        back: u64,
    },
    Return,
    /// A jump to an address in a register that is no link register.
    Jump {
        from: u64,
    },
    Trap {
        inst: InstId,
        at: Trapped,
    },
    TrapReturn {
        machine: bool,
    },
}

/// An instruction that trapped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trapped {
    pub pc: u64,
    pub len: u8,
    pub privilege: u8,
    /// How the stack pointer had been written by then.
    pub pointer: Pointer,
    /// Some of the innermost frames had been left by then, but it was not known how many.
    pub is_loose: bool,
}

impl Trapped {
    /// True if execution goes on at `pc`: with the instruction, or after it.
    pub(super) fn goes_on_at(self, pc: u64) -> bool {
        pc == self.pc || pc == self.pc.wrapping_add(u64::from(self.len))
    }
}

impl StackEffect {
    /// Returns an instruction's effect. Calls and returns are told by their registers (Unprivileged ISA, section
    /// 2.5.1, table 3).
    pub(super) fn of(static_info: &StaticInfo) -> Self {
        let link = |register: u32| matches!(register & 31, 1 | 5);
        let raw = static_info.raw;
        let call = Self::Call {
            inst: static_info.id,
            back: static_info.pc.wrapping_add(u64::from(static_info.len)),
        };
        let jump = Self::Jump { from: static_info.pc };
        if static_info.len == 2 {
            let is_jump = raw & 0xe07f == 0x8002 && raw >> 7 & 31 != 0;
            return match raw >> 12 & 1 {
                1 if is_jump => call,
                0 if is_jump && link(raw >> 7) => Self::Return,
                0 if is_jump => jump,
                _ => Self::None,
            };
        }
        match raw & 0x7f {
            0x6f | 0x67 if link(raw >> 7) => call,
            0x67 if link(raw >> 15) => Self::Return,
            0x67 => jump,
            // `sret` and `mret`.
            0x73 if raw == 0x1020_0073 => Self::TrapReturn { machine: false },
            0x73 if raw == 0x3020_0073 => Self::TrapReturn { machine: true },
            _ => Self::None,
        }
    }
}

/// How the stack pointer was written since the last call, return or trap: the greatest of its writes, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pointer {
    /// The stack pointer was not written, or was moved by a constant.
    #[default]
    Kept,
    /// A register was added to the stack pointer.
    Added,
    /// The stack pointer was loaded from memory or copied from another register.
    Loaded,
}

impl Pointer {
    /// Returns how the stack pointer was written up to and including this instruction.
    pub(super) fn after(self, static_info: &StaticInfo) -> Self {
        const SP: u32 = 2;
        const FP: u32 = 8;
        // Go keeps the goroutine that runs there.
        const GOROUTINE: u32 = 27;
        let raw = static_info.raw;
        let (rd, rs1) = (raw >> 7 & 31, raw >> 15 & 31);
        if rd != SP {
            return self;
        }
        let written = match (static_info.len, raw & 0x7f, raw >> 12 & 7) {
            // `c.mv` and `c.add` (whose source is not `x0`), `c.ldsp`.
            (2, _, _) if raw & 3 == 2 && raw >> 13 == 4 && raw >> 2 & 31 != 0 => {
                match (raw >> 12 & 1, raw >> 2 & 31) {
                    (0, FP) => Self::Kept,
                    (0, _) => Self::Loaded,
                    _ => Self::Added,
                }
            }
            (2, _, _) if raw & 3 == 2 && raw >> 13 == 3 => Self::Loaded,
            // `addi` to `sp` or from the frame pointer moves it by a constant; from another register it is a copy.
            (4, 0x13, 0) if rs1 != SP && rs1 != FP => Self::Loaded,
            (4, 0x33, 0) if rs1 == SP || raw >> 20 & 31 == SP => Self::Added,
            // `systemstack` of Go returns to the goroutine that called it. What changes goroutines loads the pointer from
            // elsewhere.
            (4, 0x03, 3) if rs1 == GOROUTINE => Self::Kept,
            (4, 0x03, 3) => Self::Loaded,
            _ => Self::Kept,
        };
        self.max(written)
    }
}
