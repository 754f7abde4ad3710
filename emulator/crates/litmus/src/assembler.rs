//! The few instructions that the tests and their harness consist of, as machine code.

use crate::program::Fence;

/// Number of an integer register of the machine, `x0` to `x31`.
pub(crate) type X = u32;

/// Machine code that grows, one instruction after the other.
#[derive(Default)]
pub(crate) struct Assembler {
    /// The instructions.
    pub(crate) code: Vec<u32>,
}

/// Condition of a branch.
#[derive(Clone, Copy)]
pub(crate) enum Condition {
    Equal,
    NotEqual,
    Less,
}

/// Operation on two registers.
#[derive(Clone, Copy)]
pub(crate) enum Operation {
    Add,
    Xor,
    Or,
}

/// Operations of the extension A on words, by the value of `funct5`.
#[derive(Clone, Copy)]
pub(crate) enum Atomic {
    Add = 0,
    Swap = 1,
    LoadReserved = 2,
    StoreConditional = 3,
    Or = 8,
}

impl Assembler {
    /// Returns the place of the next instruction, for a branch back to it.
    pub(crate) fn here(&self) -> usize {
        self.code.len()
    }

    /// `addi`.
    pub(crate) fn addi(&mut self, to: X, from: X, value: i32) {
        self.code.push(immediate(value) | from << 15 | to << 7 | 0x13);
    }

    /// `slli`.
    pub(crate) fn slli(&mut self, to: X, from: X, by: u32) {
        self.code.push(by << 20 | from << 15 | 1 << 12 | to << 7 | 0x13);
    }

    /// `srli`.
    pub(crate) fn srli(&mut self, to: X, from: X, by: u32) {
        self.code.push(by << 20 | from << 15 | 5 << 12 | to << 7 | 0x13);
    }

    /// `andi`.
    pub(crate) fn andi(&mut self, to: X, from: X, value: i32) {
        self.code.push(immediate(value) | from << 15 | 7 << 12 | to << 7 | 0x13);
    }

    /// `add`, `xor` or `or`.
    pub(crate) fn operate(&mut self, operation: Operation, to: X, a: X, b: X) {
        let function = match operation {
            Operation::Add => 0,
            Operation::Xor => 4,
            Operation::Or => 6,
        };
        self.code.push(b << 20 | a << 15 | function << 12 | to << 7 | 0x33);
    }

    /// `lui` and `addiw`: a number below 2^31 - 2^11.
    pub(crate) fn li(&mut self, to: X, value: u32) {
        let upper = (value + 0x800) & !0xfff;
        self.code.push(upper | to << 7 | 0x37);
        let lower = value.wrapping_sub(upper).cast_signed();
        self.code.push(immediate(lower) | to << 15 | to << 7 | 0x1b);
    }

    /// `lw`.
    pub(crate) fn lw(&mut self, to: X, base: X, offset: i32) {
        self.code.push(immediate(offset) | base << 15 | 2 << 12 | to << 7 | 3);
    }

    /// `sw`.
    pub(crate) fn sw(&mut self, from: X, base: X, offset: i32) {
        let offset = offset.cast_unsigned();
        let (high, low) = (offset >> 5 & 0x7f, offset & 0x1f);
        self.code.push(high << 25 | from << 20 | base << 15 | 2 << 12 | low << 7 | 0x23);
    }

    /// An operation of the extension A on a word.
    pub(crate) fn atomic(
        &mut self,
        atomic: Atomic,
        (acquire, release): (bool, bool),
        to: X,
        operand: X,
        base: X,
    ) {
        let annotations = u32::from(acquire) << 26 | u32::from(release) << 25;
        let function = (atomic as u32) << 27;
        self.code
            .push(function | annotations | operand << 20 | base << 15 | 2 << 12 | to << 7 | 0x2f);
    }

    /// `fence` with its sets, or `fence.tso`.
    pub(crate) fn fence(&mut self, fence: Fence) {
        let set = |(reads, writes)| u32::from(reads) << 1 | u32::from(writes);
        let mode = if fence.tso { 8 } else { 0 };
        self.code
            .push(mode << 28 | set(fence.predecessors) << 24 | set(fence.successors) << 20 | 0xf);
    }

    /// A branch to a place.
    pub(crate) fn branch(&mut self, condition: Condition, a: X, b: X, target: usize) {
        let function = match condition {
            Condition::Equal => 0,
            Condition::NotEqual => 1,
            Condition::Less => 4,
        };
        let at = self.here();
        let offset = (target.cast_signed() - at.cast_signed()) * 4;
        let offset = i32::try_from(offset).expect("code is short").cast_unsigned();
        let high = (offset >> 12 & 1) << 31 | (offset >> 5 & 0x3f) << 25;
        let low = (offset >> 1 & 0xf) << 8 | (offset >> 11 & 1) << 7;
        self.code.push(high | b << 20 | a << 15 | function << 12 | low | 0x63);
    }
}

fn immediate(value: i32) -> u32 {
    assert!((-2048..2048).contains(&value));
    value.cast_unsigned() << 20
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_what_the_disassembler_says() {
        let mut asm = Assembler::default();
        asm.addi(5, 6, -7);
        asm.slli(5, 6, 13);
        asm.srli(5, 6, 7);
        asm.andi(5, 6, 15);
        asm.operate(Operation::Add, 5, 6, 7);
        asm.operate(Operation::Xor, 5, 6, 7);
        asm.operate(Operation::Or, 5, 6, 7);
        asm.li(5, 0x41_0fff);
        asm.lw(5, 6, 124);
        asm.sw(5, 6, -20);
        asm.atomic(Atomic::Add, (true, true), 0, 5, 8);
        asm.atomic(Atomic::Swap, (false, true), 0, 5, 8);
        asm.atomic(Atomic::Or, (true, false), 10, 0, 8);
        asm.atomic(Atomic::LoadReserved, (false, false), 10, 0, 8);
        asm.atomic(Atomic::StoreConditional, (false, false), 11, 5, 8);
        asm.fence(Fence::RW_W);
        asm.fence(Fence::W_R);
        asm.fence(Fence::TSO);
        asm.branch(Condition::NotEqual, 5, 0, 18);
        asm.branch(Condition::Less, 5, 9, 22);
        asm.branch(Condition::Equal, 0, 0, 22);
        let text: Vec<String> = asm
            .code
            .iter()
            .map(|raw| isa::disasm(&isa::decode(*raw), 0).replace('\t', " "))
            .collect();
        let expected = [
            "addi t0,t1,-7",
            "slli t0,t1,0xd",
            "srli t0,t1,0x7",
            "andi t0,t1,15",
            "add t0,t1,t2",
            "xor t0,t1,t2",
            "or t0,t1,t2",
            "lui t0,0x411",
            "addiw t0,t0,-1",
            "lw t0,124(t1)",
            "sw t0,-20(t1)",
            "amoadd.w.aqrl zero,t0,(s0)",
            "amoswap.w.rl zero,t0,(s0)",
            "amoor.w.aq a0,zero,(s0)",
            "lr.w a0,(s0)",
            "sc.w a1,t0,(s0)",
            "fence rw,w",
            "fence w,r",
            "fence.tso",
            "bnez t0,0xfffffffffffffffc",
            "blt t0,s1,0x8",
            "beqz zero,0x4",
        ];
        assert_eq!(text, expected);
    }
}
