//! A litmus test: what each hart executes, and the outcome that the test is about.

use std::fmt;

/// Most locations of a test.
pub(crate) const MAX_LOCATIONS: usize = 4;
/// Most harts of a test.
pub(crate) const MAX_HARTS: usize = 4;
/// Most registers of a hart that an outcome has.
pub(crate) const MAX_REGISTERS: usize = 8;

/// Number of a shared 32-bit word, which is zero at first: 0 is `x`, then `y`, `z` and `w`.
pub type Location = usize;

/// Number of a register of one hart. Each register is written by one instruction.
pub type Register = usize;

/// What an access does, and with which instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// `lw`.
    Load,
    /// `sw`.
    Store,
    /// `amoswap.w`.
    Swap,
    /// `amoor.w`.
    Or,
    /// `amoadd.w`.
    Add,
    /// `lr.w`.
    LoadReserved,
    /// `sc.w`; its register is 0 if it stored, else 1.
    StoreConditional,
}

impl AccessKind {
    /// Returns whether this is an atomic read-modify-write operation in one instruction.
    pub fn is_amo(self) -> bool {
        matches!(self, Self::Swap | Self::Or | Self::Add)
    }

    /// Returns whether the instruction loads the word.
    pub fn reads(self) -> bool {
        self.is_amo() || matches!(self, Self::Load | Self::LoadReserved)
    }

    /// Returns whether the instruction stores to the word, in the case of `sc.w` if it succeeds.
    pub fn writes(self) -> bool {
        self.is_amo() || matches!(self, Self::Store | Self::StoreConditional)
    }
}

/// The operand that an instruction stores, or combines with what it loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number below 4.
    Constant(u32),
    /// What an earlier instruction loaded into a register.
    Register(Register),
}

/// One access to a shared word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Kind of access.
    pub kind: AccessKind,
    /// The word.
    pub location: Location,
    /// Register that gets what is loaded, or whether `sc.w` failed; `None`: `x0`.
    pub to: Option<Register>,
    /// Operand of stores and read-modify-write operations.
    pub value: Value,
    /// The instruction's bit `aq`.
    pub acquire: bool,
    /// The instruction's bit `rl`.
    pub release: bool,
    /// Register on which the address depends syntactically, though not in its value.
    pub address_from: Option<Register>,
    /// Register on which the operand depends syntactically, though not in its value.
    pub data_from: Option<Register>,
}

impl Access {
    /// Returns a plain access, which loads into no register and whose operand is `value`.
    pub fn new(kind: AccessKind, location: Location, value: u32) -> Self {
        Self {
            kind,
            location,
            to: None,
            value: Value::Constant(value),
            acquire: false,
            release: false,
            address_from: None,
            data_from: None,
        }
    }

    /// Returns a plain load into a register.
    pub fn load(location: Location, to: Register) -> Self {
        Self { to: Some(to), ..Self::new(AccessKind::Load, location, 0) }
    }

    /// Returns a plain store.
    pub fn store(location: Location, value: u32) -> Self {
        Self::new(AccessKind::Store, location, value)
    }
}

/// A fence: which earlier accesses it orders before which later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// Reads and writes before the fence that are ordered.
    pub predecessors: (bool, bool),
    /// Reads and writes after the fence that are ordered.
    pub successors: (bool, bool),
    /// The fence is `fence.tso`: reads before it are ordered before all that follows, writes before it only before writes.
    pub tso: bool,
}

impl Fence {
    /// `fence rw,rw`.
    pub const RW_RW: Self = Self::new((true, true), (true, true));
    /// `fence r,rw`.
    pub const R_RW: Self = Self::new((true, false), (true, true));
    /// `fence rw,w`.
    pub const RW_W: Self = Self::new((true, true), (false, true));
    /// `fence r,r`.
    pub const R_R: Self = Self::new((true, false), (true, false));
    /// `fence w,w`.
    pub const W_W: Self = Self::new((false, true), (false, true));
    /// `fence w,r`.
    pub const W_R: Self = Self::new((false, true), (true, false));
    /// `fence.tso`.
    pub const TSO: Self = Self { tso: true, ..Self::RW_RW };

    const fn new(predecessors: (bool, bool), successors: (bool, bool)) -> Self {
        Self { predecessors, successors, tso: false }
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.tso {
            return write!(f, "fence.tso");
        }
        let set = |(reads, writes)| match (reads, writes) {
            (true, true) => "rw",
            (true, false) => "r",
            _ => "w",
        };
        write!(f, "fence.{}.{}", set(self.predecessors), set(self.successors))
    }
}

/// One step of a hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// An access to a shared word.
    Access(Access),
    /// A fence.
    Fence(Fence),
    /// A conditional branch on a register; both of its ways lead to the next instruction.
    Branch(Register),
}

/// Part of an outcome: 2 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// A register of a hart at the end.
    Register(usize, Register),
    /// A word in memory at the end.
    Memory(Location),
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Register(hart, register) => write!(f, "{hart}:r{register}"),
            Self::Memory(location) => write!(f, "{}", location_name(*location)),
        }
    }
}

/// Returns the name of a word.
fn location_name(location: Location) -> char {
    ['x', 'y', 'z', 'w'][location]
}

/// An outcome as a number: 2 bits of each field, the first field's in the lowest bits.
pub type Outcome = u32;

/// Most fields of an outcome, for which the guest's histogram has room.
pub(crate) const MAX_FIELDS: usize = 10;

/// A litmus test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Name, as in the literature: family, then what links the accesses of each hart.
    pub name: String,
    /// Family: the kinds of accesses and the edges between harts.
    pub family: String,
    /// Instructions of each hart.
    pub harts: Vec<Vec<Instruction>>,
    /// The outcome that the test is about: fields with their values. Other fields have any value.
    pub condition: Vec<(Field, u32)>,
    /// What an outcome consists of.
    pub fields: Vec<Field>,
}

impl Program {
    /// Returns the test with the fields of its outcomes: all registers, and each word that is written more than once.
    pub fn new(
        family: &str,
        name: impl Into<String>,
        harts: Vec<Vec<Instruction>>,
        condition: Vec<(Field, u32)>,
    ) -> Self {
        let mut fields = Vec::new();
        let mut writes = [0; MAX_LOCATIONS];
        for (hart, instructions) in harts.iter().enumerate() {
            for instruction in instructions {
                let Instruction::Access(access) = instruction else { continue };
                fields.extend(access.to.map(|to| Field::Register(hart, to)));
                writes[access.location] += usize::from(access.kind.writes());
            }
        }
        for (location, _) in writes.iter().enumerate().filter(|(_, count)| **count > 1) {
            fields.push(Field::Memory(location));
        }
        let name = name.into();
        assert!(fields.len() <= MAX_FIELDS, "{name}: too many fields");
        assert!(harts.len() <= MAX_HARTS, "{name}: too many harts");
        let is_small =
            |field: &Field| !matches!(field, Field::Register(_, n) if *n >= MAX_REGISTERS);
        assert!(fields.iter().all(is_small), "{name}: too many registers");
        Self { name, family: family.to_owned(), harts, condition, fields }
    }

    /// Returns the number of words that the test uses.
    pub fn locations(&self) -> usize {
        let instructions = self.harts.iter().flatten();
        let accesses = instructions.map(|instruction| match instruction {
            Instruction::Access(access) => access.location + 1,
            _ => 0,
        });
        accesses.max().unwrap_or(0)
    }

    /// Returns the value of a field in an outcome; `None`: the outcome does not have that field.
    pub fn value(&self, outcome: Outcome, field: Field) -> Option<u32> {
        let at = self.fields.iter().position(|f| *f == field)?;
        Some(outcome >> (2 * at) & 3)
    }

    /// Returns whether an outcome is the one that the test is about. Words that are written once have the values that they must have.
    pub fn meets_condition(&self, outcome: Outcome) -> bool {
        self.condition.iter().all(|(field, value)| match self.value(outcome, *field) {
            Some(found) => found == *value,
            None => true,
        })
    }

    /// Returns an outcome in words, as `1:r0=1 1:r1=0 x=2`.
    pub fn describe(&self, outcome: Outcome) -> String {
        let fields = self.fields.iter().enumerate();
        let texts = fields.map(|(n, field)| format!("{field}={}", outcome >> (2 * n) & 3));
        texts.collect::<Vec<_>>().join(" ")
    }
}
