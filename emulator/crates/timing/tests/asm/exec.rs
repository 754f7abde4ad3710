//! Executes one instruction and hands it to the core.

use commit_trace::CommitSink;
use isa::{
    Exception, Executed, MemAccess, MemKind, Operand, Privilege, StaticId, TimingModel, Trap,
};
use timing::Core;

use super::{Action, HANDLER, Program, State, walk};

impl Program {
    /// Fetches, executes and retires the instruction numbered `index`.
    pub(crate) fn step<S: CommitSink>(&self, core: &mut Core<S>, state: &mut State, index: usize) {
        let inst = &self.insts[index];
        let (id, pc, d) = (StaticId(index as u32), inst.pc, &inst.decoded);
        if state.translated {
            core.translated(pc, &walk(pc));
        }
        core.fetch(id, d, pc, pc, state.translated, 0);
        let x = |r: u8| if r < 32 { state.x[usize::from(r)] } else { 0 };
        let (a, b, imm) = (x(d.rs1), x(d.rs2), i64::from(d.imm) as u64);
        let mut next = pc + 4;
        let mut mem = MemAccess::default();
        let mut access = |kind| {
            let va = a.wrapping_add(if matches!(inst.action, Action::Amo) { 0 } else { imm });
            mem = MemAccess::new(kind, va, va, 8, false);
            va
        };
        let mut trap = None;
        let result = match inst.action {
            Action::AddI => a.wrapping_add(imm),
            Action::Add => a.wrapping_add(b),
            Action::Sub => a.wrapping_sub(b),
            Action::Sll => a << (imm & 63),
            Action::Srl => a >> (imm & 63),
            Action::Xor => a ^ b,
            Action::And => a & imm,
            Action::Lui => imm,
            Action::Mul => a.wrapping_mul(b),
            Action::Div => (a as i64).checked_div(b as i64).unwrap_or(-1) as u64,
            Action::Load => {
                let va = access(MemKind::Load);
                state.peek(va)
            }
            Action::FpLoad => {
                access(MemKind::Load);
                0
            }
            Action::Store => {
                let va = access(MemKind::Store);
                state.poke(va, b);
                0
            }
            Action::FpStore => {
                access(MemKind::Store);
                0
            }
            Action::Amo => {
                let va = access(MemKind::Amo);
                let old = state.peek(va);
                state.poke(va, old.wrapping_add(b));
                old
            }
            Action::Branch { if_zero } => {
                if (a == 0) == if_zero {
                    next = inst.target;
                }
                0
            }
            Action::Jump => {
                next = inst.target;
                pc + 4
            }
            Action::JumpReg => {
                next = a;
                pc + 4
            }
            Action::Csr("mcycle") => core.now(),
            Action::Csr("mepc") => state.epc,
            Action::Csr("mepc=") => {
                state.epc = a;
                0
            }
            Action::Ecall => {
                state.epc = pc;
                next = self.labels[HANDLER];
                trap = Some(Trap { cause: Exception::EcallM, tval: 0 });
                0
            }
            Action::Mret => {
                next = state.epc;
                0
            }
            Action::Csr(_) | Action::Fence | Action::FenceI => 0,
            Action::Fp | Action::FpFromInt | Action::IntFromFp | Action::FpDiv | Action::FpSqrt => {
                0
            }
        };
        let bits = |v: u64| (64 - (v as i64).unsigned_abs().leading_zeros()) as u8;
        let operand = match inst.action {
            Action::Div => Operand { dividend_bits: bits(a), divisor_bits: bits(b) },
            _ => Operand::default(),
        };
        if d.rd != 0 && d.rd < 32 && trap.is_none() {
            state.x[usize::from(d.rd)] = result;
        }
        state.pc = next;
        let executed = Executed {
            id,
            inst: *d,
            pc,
            fetch_pa: pc,
            next_pc: next,
            mem,
            operand,
            privilege: Privilege::Machine,
            trap,
            translated: state.translated,
        };
        if state.translated && mem.kind() != MemKind::None {
            core.translated(mem.va, &walk(mem.va));
        }
        core.retire(&executed);
    }
}
