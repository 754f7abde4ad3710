//! What is known about a static instruction before it runs, in the form in which the stages want it.

use commit_trace::{Class, CycleClass, InstId, StaticInfo};
use isa::{InstClass, Op, StaticInst, TransferKind};

use crate::Preset;
use crate::schedule::lane;

/// How an instruction goes through the back end. A bit each: see [`Kind::is`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Kind {
    /// One cycle on any integer port.
    Alu = 1 << 0,
    /// One issue, one latency.
    Simple = 1 << 1,
    /// Unpipelined integer division.
    Divide = 1 << 2,
    /// Unpipelined FP division or square root.
    FpDivide = 1 << 3,
    /// Conditional branch.
    Branch = 1 << 4,
    /// Jump.
    Jump = 1 << 5,
    /// Load.
    Load = 1 << 6,
    /// Store.
    Store = 1 << 7,
    /// Dispatches into an empty ROB and flushes on commit.
    Unique = 1 << 8,
    /// Always traps.
    Trap = 1 << 9,
    /// Loses no cycles in some way ([`crate::Without`]); its class says how it goes.
    Ideal = 1 << 10,
}

impl Kind {
    /// Returns whether the kind is `kind`. A row of such tests of single bits becomes a row of branches, which the host predicts one by one; a row of
    /// comparisons would become one jump by kind, which is slower.
    #[inline(always)]
    pub(crate) fn is(self, kind: Self) -> bool {
        self as u16 & kind as u16 != 0
    }
}

/// Port bits of [`crate::schedule::Schedule`].
pub(crate) mod port {
    /// Integer ports are the bits from here up.
    pub(crate) const INT: u32 = 0;
    /// Memory ports.
    pub(crate) const MEM: u32 = 5;
    /// Floating-point ports.
    pub(crate) const FP: u32 = 7;
    /// Number of port bits.
    pub(crate) const COUNT: usize = 9;
}

/// Which register file and which queue an instruction takes an entry of.
pub(crate) mod ring {
    /// None.
    pub(crate) const NONE: u8 = 0;
    /// Integer registers.
    pub(crate) const INT: u8 = 1;
    /// Floating-point registers.
    pub(crate) const FP: u8 = 2;
    /// Load queue.
    pub(crate) const LOAD: u8 = 1;
    /// Store queue.
    pub(crate) const STORE: u8 = 2;
}

/// Destination index of an instruction that writes no register.
pub(crate) const NO_REG: u8 = 64;

/// Kinds of jumps, as counters tell them apart.
pub(crate) mod jump {
    pub(crate) const DIRECT: u8 = 0;
    pub(crate) const DIRECT_CALL: u8 = 1;
    pub(crate) const INDIRECT: u8 = 2;
    pub(crate) const INDIRECT_CALL: u8 = 3;
    pub(crate) const RETURN: u8 = 4;
    /// A power of two above all of them.
    pub(crate) const BOUND: u8 = 8;
}

/// What the stages want to know of a static instruction; 32 bytes, two to a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(crate) struct MicroOp {
    /// Full bits of lanes that stop the dispatch of the instruction.
    pub stops: u64,
    /// Ports that it can issue to.
    pub ports: u32,
    /// Issue-queue slots and tags that it takes.
    pub lanes: u32,
    /// Path through the back end.
    pub kind: Kind,
    /// Class of the table.
    pub class: InstClass,
    /// What it waits for, unless the memory system says otherwise.
    pub waits: CycleClass,
    /// Sources (0: none).
    pub src: [u8; 3],
    /// Destination, or [`NO_REG`].
    pub dst: u8,
    /// Register file of the destination: [`ring::NONE`], `INT`, `FP`.
    pub file: u8,
    /// Queue: [`ring::NONE`], `LOAD`, `STORE`.
    pub queue: u8,
    /// Cycles from issue to the issue of the first dependent.
    pub wake: u8,
    /// Cycles from issue to the first cycle in which the instruction can commit.
    pub done: u8,
    /// Length in bytes.
    pub len: u8,
    /// Kind of a jump.
    pub jump: u8,
}

/// Issue to commit of an ALU instruction: register read, execute, write back, commit.
pub(crate) const ALU_DONE: u8 = 4;
/// Issue of an integer instruction to that of its dependents, if they are woken when it writes back.
const WRITTEN_BACK: u32 = 4;
/// An ALU behind the multiplier's pipeline writes back this much later (`execution-unit.scala:212`).
pub(crate) const ALU_BEHIND_MUL: u64 = 2;

/// The ports of a preset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortMap {
    /// Every integer port.
    pub alu: u32,
    /// Jumps and `auipc`.
    pub jump: u32,
    /// CSR accesses.
    pub csr: u32,
    /// Multiplier.
    pub mul: u32,
    /// Divider.
    pub div: u32,
    /// Integer to FP.
    pub int_to_fp: u32,
    /// Memory.
    pub mem: u32,
    /// FP arithmetic.
    pub fp: u32,
    /// FP division, and FP to integer (and FP store data): port 0 only.
    pub fp0: u32,
}

impl PortMap {
    /// Distributes the functions as `ExecutionUnits` does (`execution-units.scala:115-133`).
    pub(crate) fn new(preset: &Preset) -> Self {
        let issue = &preset.issue;
        let nth = |n: u32| 1 << (port::INT + n % issue.int_width);
        Self {
            alu: ((1 << issue.int_width) - 1) << port::INT,
            jump: nth(0),
            csr: nth(1),
            mul: nth(2),
            div: nth(3),
            int_to_fp: nth(4),
            mem: ((1 << issue.mem_width) - 1) << port::MEM,
            fp: ((1 << issue.fp_width) - 1) << port::FP,
            fp0: 1 << port::FP,
        }
    }
}

impl MicroOp {
    /// Stands for a number that was never defined: an ALU instruction without operands.
    pub(crate) const UNKNOWN: Self = Self {
        ports: 1,
        lanes: lane::INT,
        stops: lane::STOPS_ANY,
        kind: Kind::Simple,
        class: InstClass::IntAlu,
        waits: CycleClass::Alu,
        src: [0; 3],
        dst: NO_REG,
        file: ring::NONE,
        queue: ring::NONE,
        wake: 1,
        done: ALU_DONE,
        len: 4,
        jump: jump::DIRECT,
    };

    /// What the pipeline needs to know of an instruction, on a core of `preset` with these issue ports.
    pub(crate) fn new(inst: &StaticInst, preset: &Preset, ports: &PortMap) -> Self {
        use InstClass as C;
        let d = &inst.inst;
        let exec = &preset.execute;
        let (kind, port, lanes, waits) = match d.class {
            C::IntAlu if d.op == Op::Auipc => {
                (Kind::Simple, ports.jump, lane::INT, CycleClass::Alu)
            }
            C::IntAlu => (Kind::Alu, ports.alu, lane::INT, CycleClass::Alu),
            C::IntMul => (Kind::Simple, ports.mul, lane::INT, CycleClass::Alu),
            C::IntDiv => (Kind::Divide, ports.div, lane::INT, CycleClass::Divider),
            C::Branch => (Kind::Branch, ports.alu, lane::INT | lane::TAG, CycleClass::Alu),
            C::Jal => (Kind::Jump, ports.jump, lane::INT, CycleClass::Alu),
            C::Jalr => (Kind::Jump, ports.jump, lane::INT | lane::TAG, CycleClass::Alu),
            C::Load | C::FpLoad => (Kind::Load, ports.mem, lane::MEM, CycleClass::LoadL1),
            C::Store => (Kind::Store, ports.mem, lane::MEM, CycleClass::Store),
            C::FpStore => (Kind::Store, ports.mem, lane::MEM | lane::FP, CycleClass::Store),
            C::FpArith => (Kind::Simple, ports.fp, lane::FP, CycleClass::Alu),
            C::FpToInt => (Kind::Simple, ports.fp0, lane::FP, CycleClass::Alu),
            C::FpDivSqrt => (Kind::FpDivide, ports.fp0, lane::FP, CycleClass::Divider),
            C::IntToFp => (Kind::Simple, ports.int_to_fp, lane::INT, CycleClass::Alu),
            C::Amo | C::LoadReserved | C::StoreConditional | C::SfenceVma => {
                (Kind::Unique, ports.mem, 0, CycleClass::Serialize)
            }
            C::Csr | C::Fence | C::FenceI | C::Ecall | C::Xret | C::Wfi => {
                (Kind::Unique, ports.csr, 0, CycleClass::Serialize)
            }
            C::Illegal => (Kind::Trap, ports.alu, 0, CycleClass::Alu),
        };
        // FP results wake dependents when they are written back: they can issue in the cycle in
        // which the instruction itself can first commit.
        let (wake, done) = match d.class {
            C::IntMul => (exec.mul, exec.mul),
            C::FpArith | C::FpToInt => (exec.fp, exec.fp),
            C::IntToFp => (exec.int_to_fp, exec.int_to_fp),
            C::FpDivSqrt if d.is_square_root() => (exec.fsqrt, exec.fsqrt),
            C::FpDivSqrt => (exec.fdiv, exec.fdiv),
            // Not bypassed (`exu/decode.scala:219-221`).
            C::Jal | C::Jalr => (WRITTEN_BACK, u32::from(ALU_DONE)),
            C::IntAlu if d.op == Op::Auipc => (WRITTEN_BACK, u32::from(ALU_DONE)),
            _ => (1, u32::from(ALU_DONE)),
        };
        let queue = match kind {
            Kind::Load => ring::LOAD,
            Kind::Store => ring::STORE,
            _ => ring::NONE,
        };
        let stops = if lanes & lane::TAG != 0 { lane::STOPS_BRANCH } else { lane::STOPS_ANY };
        let register = |r: u8| if r < 64 { r } else { 0 };
        let rd = register(d.rd);
        Self {
            ports: port,
            lanes,
            stops: stops | if preset.registers_are_scarce() { lane::ALWAYS } else { 0 },
            kind,
            class: d.class,
            waits,
            src: [register(d.rs1), register(d.rs2), register(d.rs3)],
            dst: if rd == 0 { NO_REG } else { rd },
            file: [ring::NONE, ring::INT, ring::FP][usize::from(rd > 0) + usize::from(rd > 31)],
            queue,
            wake: wake as u8,
            done: done as u8,
            len: d.len,
            jump: match TransferKind::of(d) {
                Some(TransferKind::Return) => jump::RETURN,
                Some(TransferKind::IndirectCall) => jump::INDIRECT_CALL,
                Some(TransferKind::Indirect) => jump::INDIRECT,
                Some(TransferKind::DirectCall) => jump::DIRECT_CALL,
                _ => jump::DIRECT,
            },
        }
    }
}

/// The static info that goes into the stream.
pub(crate) fn for_stream(inst: &StaticInst) -> StaticInfo {
    use InstClass as C;
    let class = match inst.inst.class {
        C::Load | C::FpLoad => Class::Load,
        C::Store | C::FpStore => Class::Store,
        C::FpArith | C::FpDivSqrt | C::FpToInt | C::IntToFp => Class::Fp,
        C::Branch => Class::Branch,
        C::Jal => Class::Jump,
        C::Jalr => Class::IndirectJump,
        C::Amo | C::LoadReserved | C::StoreConditional => Class::Atomic,
        C::Csr | C::Fence | C::FenceI | C::SfenceVma | C::Ecall | C::Xret | C::Wfi | C::Illegal => {
            Class::System
        }
        C::IntAlu | C::IntMul | C::IntDiv => Class::Int,
    };
    StaticInfo {
        id: InstId(inst.id.0),
        space: inst.space,
        pc: inst.pc,
        raw: inst.inst.raw,
        len: inst.inst.len,
        privilege: inst.privilege as u8,
        class,
        target: inst.direct_target(),
    }
}
