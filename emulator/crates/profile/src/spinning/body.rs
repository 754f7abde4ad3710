//! Whether a loop only waits, by its instructions.

use commit_trace::{InstId, StaticInfo};
use isa::{DecodedInst, InstClass, Op};

/// Instructions of a loop at most: each has a bit in a mask.
pub(super) const MOST_INSTRUCTIONS: usize = 64;

/// The encoding of the hint `pause`, a `fence` without successors.
const PAUSE: u32 = 0x0100_000f;

/// An instruction of a loop.
#[derive(Clone, Copy)]
pub(super) struct BodyInst {
    id: InstId,
    pc: u64,
    target: Option<u64>,
    inst: DecodedInst,
}

impl BodyInst {
    pub(super) fn new(info: &StaticInfo) -> Self {
        Self { id: info.id, pc: info.pc, target: info.target, inst: isa::decode(info.raw) }
    }

    /// Returns the length in bytes.
    pub(super) fn len(&self) -> u8 {
        self.inst.len
    }

    fn next_pc(&self) -> u64 {
        self.pc.wrapping_add(self.inst.len.into())
    }

    /// Returns the addresses at which the hart can go on in the same turn: at the next one, and at a target. An instruction that changes
    /// more than registers has none, and neither has one that calls, returns or enters the kernel.
    fn successors(&self) -> [Option<u64>; 2] {
        match self.inst.class {
            InstClass::Branch => [Some(self.next_pc()), self.target],
            InstClass::Jal if self.inst.rd == 0 => [None, self.target],
            _ if self.changes_registers_only() => [Some(self.next_pc()), None],
            _ => [None, None],
        }
    }

    /// Returns whether an instruction that does not branch changes nothing but registers, if it is executed again and again.
    fn changes_registers_only(&self) -> bool {
        use InstClass::*;
        let DecodedInst { op, rd, rs1, rs2, raw, .. } = self.inst;
        let is_one_of = |all: &[&str]| all.iter().any(|name| op.mnemonic().starts_with(name));
        match self.inst.class {
            IntAlu | IntMul | IntDiv | Load | FpLoad | LoadReserved | FpArith | FpDivSqrt
            | FpToInt | IntToFp => true,
            Fence => op != Op::CboZero,
            // Time and counters may be read.
            Csr => match op {
                Op::Csrrs | Op::Csrrc => rs1 == 0,
                Op::Csrrsi | Op::Csrrci => raw >> 15 & 31 == 0,
                _ => false,
            },
            // What writes the same value again, and is to get the one before.
            Amo if rd == 0 => false,
            Amo => {
                is_one_of(&["amoswap", "amoand", "amoor", "amomin", "amomax"])
                    || is_one_of(&["amoadd"]) && rs2 == 0
            }
            _ => false,
        }
    }

    /// Returns whether the instruction tells that the hart waits.
    fn is_hint(&self) -> bool {
        self.inst.raw == PAUSE || matches!(self.inst.op, Op::WrsNto | Op::WrsSto)
    }

    /// Returns whether the result depends on memory.
    fn loads(&self) -> bool {
        use InstClass::{Amo, FpLoad, Load, LoadReserved};
        matches!(self.inst.class, Load | FpLoad | LoadReserved | Amo)
    }

    /// Returns a bit for each register that is read, in the numbering of [`isa::Reg`].
    fn reads(&self) -> u64 {
        let DecodedInst { op, rs1, rs2, rs3, .. } = self.inst;
        // A division by zero gives the same whatever is divided: the kernel's `cpu_relax` has one.
        if matches!(op, Op::Div | Op::Divu | Op::Divw | Op::Divuw) && rs2 == 0 {
            return 0;
        }
        [rs1, rs2, rs3].into_iter().fold(0, |mask, reg| mask | bit(reg))
    }

    /// Returns a bit for the register that is written.
    fn writes(&self) -> u64 {
        bit(self.inst.rd)
    }

    /// Returns whether the instruction adds a constant to a register.
    fn counts(&self) -> bool {
        matches!(self.inst.op, Op::Addi | Op::Addiw) && self.inst.rd == self.inst.rs1
    }
}

/// Returns a register's bit; none for `x0`.
fn bit(reg: isa::Reg) -> u64 {
    match reg {
        0 => 0,
        reg => 1 << reg,
    }
}

/// A loop: instructions by address, of which the first is where each time round begins, and the last goes back to it.
struct Body<'a> {
    insts: &'a [BodyInst],
    /// A bit for each instruction on a way from the first to the last.
    on_way: u64,
    /// For each instruction a bit for each one that can be executed next, by index in `insts`.
    next: Vec<u64>,
}

/// Returns the instructions of a loop on the ways from its first to its last one if the loop only waits; nothing otherwise. `insts` are
/// those that are known between the two, ascending by address.
pub(super) fn spinning_body(insts: &[BodyInst]) -> Vec<InstId> {
    let Some(body) = Body::new(insts) else { return Vec::new() };
    match body.only_waits() {
        true => body.all().map(|(_, inst)| inst.id).collect(),
        false => Vec::new(),
    }
}

impl<'a> Body<'a> {
    /// Returns the loop; `None` if the last instruction does not go back to the first.
    fn new(insts: &'a [BodyInst]) -> Option<Self> {
        let last = insts.len().checked_sub(1)?;
        let first_pc = insts[0].pc;
        if !insts[last].successors().contains(&Some(first_pc)) {
            return None;
        }
        let index_of = |pc: u64| insts.binary_search_by_key(&pc, |inst| inst.pc).ok();
        let of_inst = |inst: &BodyInst| {
            let next = inst.successors().into_iter().flatten();
            // A way ends where the next time round begins.
            let next = next.filter(|pc| *pc != first_pc).filter_map(index_of);
            next.fold(0, |mask, at| mask | 1 << at)
        };
        let next: Vec<u64> = insts.iter().map(of_inst).collect();
        let from_first = closure(1, |mask| {
            (0..insts.len()).filter(|at| mask >> at & 1 != 0).fold(0, |more, at| more | next[at])
        });
        let to_last = closure(1 << last, |mask| {
            (0..insts.len()).filter(|at| next[*at] & mask != 0).fold(0, |more, at| more | 1 << at)
        });
        let on_way = from_first & to_last;
        (on_way >> last & 1 != 0).then_some(Self { insts, on_way, next })
    }

    /// Returns the instructions on the ways, with their indices.
    fn all(&self) -> impl Iterator<Item = (usize, &'a BodyInst)> {
        let on_way = self.on_way;
        self.insts.iter().enumerate().filter(move |(at, _)| on_way >> at & 1 != 0)
    }

    fn only_waits(&self) -> bool {
        let loaded = self.loaded();
        let writes_again =
            |inst: &BodyInst| inst.inst.class != InstClass::Amo || bit(inst.inst.rs2) & loaded == 0;
        self.all().all(|(_, inst)| writes_again(inst))
            && self.carries_nothing()
            && (self.depends_on_memory(loaded) || self.all().any(|(_, inst)| inst.is_hint()))
    }

    /// Returns whether an address is of an instruction on the ways, so that a branch to it stays in the loop.
    fn stays(&self, pc: u64) -> bool {
        self.all().any(|(_, inst)| inst.pc == pc)
    }

    /// Returns a bit for each register whose value can come from what the loop loads.
    fn loaded(&self) -> u64 {
        closure(0, |loaded| {
            let from_memory =
                self.all().filter(|(_, inst)| inst.loads() || inst.reads() & loaded != 0);
            from_memory.fold(0, |mask, (_, inst)| mask | inst.writes())
        })
    }

    /// Returns whether a branch that can leave the loop decides by what was loaded.
    fn depends_on_memory(&self, loaded: u64) -> bool {
        self.all().any(|(_, inst)| {
            inst.inst.class == InstClass::Branch
                && inst.reads() & loaded != 0
                && inst.successors().into_iter().flatten().any(|pc| !self.stays(pc))
        })
    }

    /// Returns whether no register brings a value from one time round to the next, but for counters that only branches read.
    fn carries_nothing(&self) -> bool {
        let written = self.all().fold(0, |mask, (_, inst)| mask | inst.writes());
        let before = self.written_before();
        let carried =
            self.all().fold(0, |mask, (at, inst)| mask | inst.reads() & written & !before[at]);
        self.all().all(|(_, inst)| {
            let (reads, writes) = (inst.reads() & carried, inst.writes() & carried);
            match (reads, writes) {
                (0, 0) => true,
                (_, 0) => inst.inst.class == InstClass::Branch,
                _ => inst.counts(),
            }
        })
    }

    /// Returns for each instruction a bit for each register that this time round has written by then, whatever way it went.
    fn written_before(&self) -> Vec<u64> {
        let mut before = vec![u64::MAX; self.insts.len()];
        before[0] = 0;
        loop {
            let mut changes = false;
            for (at, inst) in self.all() {
                let written = before[at] | inst.writes();
                let next = self.next[at];
                for (to, before) in before.iter_mut().enumerate() {
                    let less = *before & written;
                    if next >> to & 1 != 0 && less != *before {
                        *before = less;
                        changes = true;
                    }
                }
            }
            if !changes {
                return before;
            }
        }
    }
}

/// Returns the smallest mask that has `mask` and whatever `step` finds from it.
fn closure(mut mask: u64, step: impl Fn(u64) -> u64) -> u64 {
    loop {
        let more = mask | step(mask);
        if more == mask {
            return mask;
        }
        mask = more;
    }
}
