//! What if: a core on which chosen instructions no longer lose cycles in a chosen way. Nothing else changes, so the
//! difference in cycles is what the cause costs, and what its removal would gain.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use isa::{DecodedInst, InstClass, StaticInst};

use crate::Preset;
use crate::dependences::accumulates;
use crate::micro_op::{ALU_DONE, Kind, MicroOp, PortMap, ring};
use crate::schedule::lane;

macro_rules! causes {
    ($($(#[$doc:meta])* $cause:ident = $bit:literal $name:literal $takes:literal,)*) => {
        /// A way to lose cycles.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Cause {
            $($(#[$doc])* $cause = $bit,)*
        }

        impl Cause {
            /// All causes.
            pub const ALL: &'static [Self] = &[$(Self::$cause,)*];

            /// Returns the name of the cause.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$cause => $name,)* }
            }

            /// Returns the instructions that can lose cycles in this way.
            pub const fn takes(self) -> &'static str {
                match self { $(Self::$cause => $takes,)* }
            }
        }
    };
}

causes! {
    /// A branch or jump is mispredicted. Without: every stage of the front end knows where it goes.
    Mispredict = 1 "mispredict" "branches and jumps",
    /// A load or store misses a cache or TLB. Without: its line was in the L1 in time; what it takes to bring it
    /// there, it takes from others.
    Miss = 2 "miss" "loads and stores",
    /// A CSR access, fence or atomic has the machine to itself and flushes the pipeline. Without: it goes like any
    /// other; an atomic like a load.
    Flush = 4 "flush" "CSR accesses, fences and atomics",
    /// A division takes a cycle per bit of its quotient. Without: it takes what a multiplication does.
    Division = 8 "division" "divisions and square roots",
    /// An instruction waits for what it computed itself the last time, as in a sum. Without: it does not, as if the sum
    /// had many accumulators. An instruction is a link of a chain only if all that wrote the register since it executed
    /// last is of its operation and read the register, too.
    Chain = 16 "chain" "arithmetic instructions that read the register that they write",
    /// A branch decides which of two values a register has. Without: both are there, and the condition selects one. So
    /// nothing is mispredicted, but what follows waits for the condition.
    Select = 32 "select" "branches",
}

impl Cause {
    /// Returns true if an instruction can lose cycles in this way.
    pub fn fits(self, inst: &DecodedInst) -> bool {
        use InstClass as C;
        match self {
            Self::Mispredict => matches!(inst.class, C::Branch | C::Jal | C::Jalr),
            Self::Miss => matches!(inst.class, C::Load | C::FpLoad | C::Store | C::FpStore),
            Self::Flush => is_atomic(inst.class) || matches!(inst.class, C::Csr | C::Fence),
            Self::Division => matches!(inst.class, C::IntDiv | C::FpDivSqrt),
            Self::Chain => accumulates(inst),
            Self::Select => inst.class == C::Branch,
        }
    }
}

fn is_atomic(class: InstClass) -> bool {
    use InstClass as C;
    matches!(class, C::Amo | C::LoadReserved | C::StoreConditional)
}

/// A cause that is gone at an instruction; as text `CAUSE PC`, `CAUSE PC ENCODING` or `select PC ENCODING JOIN
/// WRITTEN`, the numbers in hexadecimal with 0x.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Without {
    /// Cause that is gone.
    pub cause: Cause,
    /// Virtual address of the instruction.
    pub pc: u64,
    /// Encoding of the instruction, which tells it from those of other processes at the same address.
    pub raw: Option<u32>,
    /// What takes the place of the branch, if the cause is [`Cause::Select`].
    pub select: Option<Select>,
}

/// A select in the place of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Select {
    /// Virtual address at which the branch's sides meet.
    pub join: u64,
    /// Registers that either side writes; a bit each, in the unified numbering.
    pub written: u64,
}

impl fmt::Display for Without {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:#x}", self.cause.name(), self.pc)?;
        self.raw.map_or(Ok(()), |raw| write!(f, " {raw:#x}"))?;
        match self.select {
            Some(select) => write!(f, " {:#x} {:#x}", select.join, select.written),
            None => Ok(()),
        }
    }
}

impl FromStr for Without {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text).ok_or_else(|| {
            let names: Vec<_> = Cause::ALL.iter().map(|cause| cause.name()).collect();
            format!(
                "CAUSE 0xPC or CAUSE 0xPC 0xENCODING, with a cause of {} (select 0xPC 0xENCODING 0xJOIN 0xWRITTEN)",
                names.join(", ")
            )
        })
    }
}

impl Without {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let name = words.next()?;
        let cause = *Cause::ALL.iter().find(|cause| cause.name() == name)?;
        let hex = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
        let numbers = words.map(hex).collect::<Option<Vec<u64>>>()?;
        let (pc, raw, select) = match (cause, &*numbers) {
            (Cause::Select, &[pc, raw, join, written]) => {
                (pc, Some(raw), Some(Select { join, written }))
            }
            (Cause::Select, _) => return None,
            (_, &[pc]) => (pc, None, None),
            (_, &[pc, raw]) => (pc, Some(raw), None),
            _ => return None,
        };
        let raw = raw.map(u32::try_from).transpose().ok()?;
        Some(Self { cause, pc, raw, select })
    }
}

/// Causes that are gone, by address.
#[derive(Debug, Default)]
pub(crate) struct Removed(HashMap<u64, Vec<Without>>);

impl Removed {
    /// Returns what is gone in a preset.
    pub(crate) fn of(preset: &Preset) -> Self {
        let mut removed = Self::default();
        // What does not parse is no valid preset.
        for without in preset.what_if.without.iter().flat_map(|text| text.parse::<Without>()) {
            removed.0.entry(without.pc).or_default().push(without);
        }
        removed
    }

    /// Returns what is gone at an instruction.
    fn of_inst(&self, inst: &StaticInst) -> impl Iterator<Item = &Without> {
        let of_address = self.0.get(&inst.pc).into_iter().flatten();
        let (raw, decoded) = (inst.inst.raw, inst.inst);
        of_address
            .filter(move |without| without.raw.is_none_or(|of| of == raw))
            .filter(move |without| without.cause.fits(&decoded))
    }

    /// Returns the causes that are gone at an instruction, a bit each.
    pub(crate) fn at(&self, inst: &StaticInst) -> u8 {
        if self.0.is_empty() {
            return 0;
        }
        self.of_inst(inst).fold(0, |causes, without| causes | without.cause as u8)
    }

    /// Returns the select in the place of an instruction.
    pub(crate) fn select_at(&self, inst: &StaticInst) -> Option<Select> {
        self.of_inst(inst).find_map(|without| without.select)
    }

    /// Returns all selects.
    pub(crate) fn selects(&self) -> impl Iterator<Item = Select> {
        self.0.values().flatten().filter_map(|without| without.select)
    }

    /// Returns true if the cause is gone somewhere.
    pub(crate) fn has(&self, cause: Cause) -> bool {
        self.0.values().flatten().any(|without| without.cause == cause)
    }
}

/// Returns true if a set of causes has this one.
#[inline(always)]
pub(crate) fn has(causes: u8, cause: Cause) -> bool {
    causes & cause as u8 != 0
}

impl MicroOp {
    /// Returns the instruction without these causes. What is left as it was is what [`Kind`] decides; chains and
    /// selects are for [`crate::dependences`].
    pub(crate) fn without(self, causes: u8, preset: &Preset, ports: &PortMap) -> Self {
        let mut op = self;
        let is_foreseen = has(causes, Cause::Mispredict) || has(causes, Cause::Select);
        if is_foreseen || has(causes, Cause::Miss) {
            op.kind = Kind::Ideal;
        }
        if has(causes, Cause::Division) {
            let exec = &preset.execute;
            let (kind, ports, latency) = match op.class {
                InstClass::IntDiv => (Kind::Ideal, ports.mul, exec.mul),
                _ => (Kind::Simple, ports.fp, exec.fp),
            };
            let latency = latency as u8;
            op = Self { kind, ports, wake: latency, done: latency, ..op };
        }
        if has(causes, Cause::Flush) {
            op = match is_atomic(op.class) {
                true => Self { kind: Kind::Ideal, lanes: lane::MEM, queue: ring::LOAD, ..op },
                false => Self {
                    kind: Kind::Simple,
                    lanes: lane::INT,
                    ports: ports.alu,
                    wake: 1,
                    done: ALU_DONE,
                    ..op
                },
            };
        }
        op
    }
}
