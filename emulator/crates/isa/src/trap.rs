//! Privilege modes, exceptions and interrupts (Privileged ISA 1.13, tables 14 and 22).

/// Privilege mode. The numeric value is the architectural encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Privilege {
    /// User mode.
    User = 0,
    /// Supervisor mode.
    Supervisor = 1,
    /// Machine mode.
    Machine = 3,
}

snapshot::snapshot_enum!(Privilege: User, Supervisor, Machine);

impl Privilege {
    /// Decodes the two-bit architectural encoding; the reserved value 2 gives `None`.
    pub const fn from_bits(bits: u64) -> Option<Self> {
        match bits & 3 {
            0 => Some(Self::User),
            1 => Some(Self::Supervisor),
            3 => Some(Self::Machine),
            _ => None,
        }
    }
}

/// Synchronous exception codes (`mcause` with the interrupt bit clear).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Exception {
    /// Instruction address misaligned.
    InstMisaligned = 0,
    /// Instruction access fault.
    InstAccessFault = 1,
    /// Illegal instruction.
    IllegalInst = 2,
    /// Breakpoint.
    Breakpoint = 3,
    /// Load address misaligned.
    LoadMisaligned = 4,
    /// Load access fault.
    LoadAccessFault = 5,
    /// Store/AMO address misaligned.
    StoreMisaligned = 6,
    /// Store/AMO access fault.
    StoreAccessFault = 7,
    /// Environment call from U-mode.
    EcallU = 8,
    /// Environment call from S-mode.
    EcallS = 9,
    /// Environment call from M-mode.
    EcallM = 11,
    /// Instruction page fault.
    InstPageFault = 12,
    /// Load page fault.
    LoadPageFault = 13,
    /// Store/AMO page fault.
    StorePageFault = 15,
}

/// Interrupt codes (`mcause` with the interrupt bit set; bit numbers of `mip`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Interrupt {
    /// Supervisor software interrupt.
    SupervisorSoftware = 1,
    /// Machine software interrupt.
    MachineSoftware = 3,
    /// Supervisor timer interrupt.
    SupervisorTimer = 5,
    /// Machine timer interrupt.
    MachineTimer = 7,
    /// Supervisor external interrupt.
    SupervisorExternal = 9,
    /// Machine external interrupt.
    MachineExternal = 11,
    /// Local counter overflow (Sscofpmf 1.0, section 2).
    CounterOverflow = 13,
    /// Local asynchronous memory buffer interrupt (Ssamb, a draft).
    MemoryBuffer = 14,
}

/// An exception raised by an instruction, with the value for `xtval`. Interrupts are taken between instructions and go
/// through [`crate::TimingModel::interrupt`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trap {
    /// The cause.
    pub cause: Exception,
    /// The value written to `mtval`/`stval`.
    pub tval: u64,
}
