//! Kinds of control transfers (Smctr 1.0, "Transfer Type Filtering"; those of the E-trace specification).

use isa::{DecodedInst, InstClass};

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// A kind of transfer; its number is `ctrdata.TYPE`, and its place among the filters of `mctrctl`.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[$doc])* $name = $number,)*
        }

        snapshot::snapshot_enum!(Kind: $($name),*);

        impl Kind {
            /// The kind of a number.
            pub const fn of_number(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// A trap by an exception.
    #[default]
    Exception = 1,
    /// A trap by an interrupt.
    Interrupt = 2,
    /// `sret`, `mret`.
    TrapReturn = 3,
    /// A branch that is not taken: what comes next tells, and before that, it is [`Self::Taken`].
    NotTaken = 4,
    /// A branch that is taken.
    Taken = 5,
    /// `jalr` that writes a link register (`x1`, `x5`), unless it is another kind.
    IndirectCall = 8,
    /// `jal` that writes a link register.
    DirectCall = 9,
    /// `jalr` that writes no register, from one that is no link register.
    IndirectJump = 10,
    /// `jal` that writes no register.
    DirectJump = 11,
    /// `jalr` from one link register that writes the other.
    CoroutineSwap = 12,
    /// `jalr` from a link register that writes none.
    Return = 13,
    /// `jalr` that writes a register which is no link register, from another one.
    OtherIndirect = 14,
    /// `jal` that writes a register which is no link register.
    OtherDirect = 15,
}

impl Kind {
    /// What an instruction is, unless it traps; `None`: it transfers nothing.
    pub fn of(inst: &DecodedInst) -> Option<Self> {
        let is_link = |register: u32| register == 1 || register == 5;
        let raw = inst.raw;
        let (rd, rs) = match inst.len {
            // `c.jalr` writes `x1`, the other compressed jumps nothing.
            2 => (u32::from(raw >> 12 == 9), raw >> 7 & 31),
            _ => (raw >> 7 & 31, raw >> 15 & 31),
        };
        Some(match inst.class {
            InstClass::Branch => Self::Taken,
            InstClass::Xret => Self::TrapReturn,
            InstClass::Jal if rd == 0 => Self::DirectJump,
            InstClass::Jal if is_link(rd) => Self::DirectCall,
            InstClass::Jal => Self::OtherDirect,
            InstClass::Jalr => match (is_link(rd), is_link(rs)) {
                (true, true) if rd != rs => Self::CoroutineSwap,
                (true, _) => Self::IndirectCall,
                (false, true) => Self::Return,
                (false, false) if rd == 0 => Self::IndirectJump,
                (false, false) => Self::OtherIndirect,
            },
            _ => return None,
        })
    }
}
