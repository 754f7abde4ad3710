//! The timed loop against a model that checks the contract.

use devices::{CLINT_BASE, RAM_BASE};
use isa::{Exception, Executed, Interrupt, MemKind, Privilege, Untimed};

use super::Machine;
use super::asm::*;
use super::model::{InRuns, Model};
use crate::csr::{bit, number, status};
use crate::{Limit, Mark, RunExit};

impl Machine {
    fn timed(&mut self, model: &mut Model, instructions: u64) -> RunExit {
        self.hart.run(&mut self.bus, model, Limit::instructions(instructions))
    }
}

#[test]
fn what_retires_is_described() {
    let program =
        [auipc(1, 0), sd(1, 1, 64), ld(2, 1, 64), divu(3, 1, 2), lr_d(4, 1), sc_d(5, 0, 2), 0];
    let (mut machine, mut model) = (Machine::new(&program), Model::new());
    machine.timed(&mut model, 7);
    let kinds: Vec<_> = model
        .retired
        .iter()
        .map(|e| match e.mem.kind() {
            MemKind::None => (MemKind::None, 0),
            kind => (kind, e.mem.size()),
        })
        .collect();
    let expected = [
        (MemKind::None, 0),
        (MemKind::Store, 8),
        (MemKind::Load, 8),
        (MemKind::None, 0),
        (MemKind::Load, 8),
        (MemKind::Store, 8),
    ];
    assert_eq!(kinds[..5], expected[..5]);
    assert_eq!(model.retired[1].mem.pa(), RAM_BASE + 64);
    assert_eq!(model.retired[3].operand.dividend_bits, 32);
    assert_eq!(model.retired[4].next_pc, RAM_BASE + 20);
    assert_eq!(kinds[5], expected[5], "the reservation was for the same word");
    assert_eq!(model.retired[6].trap.unwrap().cause, Exception::IllegalInst);
    assert_eq!(model.retired[6].next_pc, 0);
    assert_eq!((machine.hart.instructions(), machine.hart.cycle()), (6, 7));
}

/// A loop with data accesses, a division, a device register, a fault, an atomic, a trigger, and a store that
/// overwrites an instruction of the loop by itself.
fn mixed_machine() -> Machine {
    let program = [
        auipc(1, 0),
        addi(2, 0, 8), // the loop starts here
        sd(2, 1, 256),
        ld(3, 1, 256),
        divu(4, 1, 3),
        ld(5, 6, 0), // mtime
        ld(7, 0, 0), // faults; the handler skips it
        sw(9, 1, 4),
        lr_d(8, 1),
        REGION_START,
        add(10, 4, 5),
        jal(0, -40),
    ];
    let mut machine = Machine::new(&program);
    machine.write(
        RAM_BASE + 0x800,
        &[csrr(20, number::MEPC), addi(20, 20, 4), csrrw(0, number::MEPC, 20), MRET],
    );
    machine.hart.arch.csrs.mtvec = RAM_BASE + 0x800;
    machine.hart.set_reg(6, CLINT_BASE + 0xbff8);
    machine.hart.set_reg(9, addi(2, 0, 8).into());
    machine
}

#[test]
fn runs_are_what_single_instructions_are() {
    let (mut machine, mut model) = (mixed_machine(), Model::new());
    machine.timed(&mut model, 1000);
    let (mut again, mut in_runs) = (mixed_machine(), InRuns::new());
    let limit = Limit::instructions(1000);
    assert_eq!(again.hart.run(&mut again.bus, &mut in_runs, limit), RunExit::Limit);
    let described = |model: &Model| -> Vec<_> {
        let access = |e: &Executed| match e.mem.kind() {
            MemKind::None => None,
            _ => Some((e.mem.va, e.mem.pa(), e.mem.size(), e.mem.mmio())),
        };
        let one =
            |e: &Executed| (e.id, e.pc, e.next_pc, e.operand.dividend_bits, e.trap, access(e));
        model.retired.iter().map(one).collect()
    };
    assert_eq!(described(&in_runs.model), described(&model));
    assert!((1..32).all(|r| again.hart.reg(r) == machine.hart.reg(r)));
    assert_eq!(again.hart.cycle(), machine.hart.cycle());
    let in_run: usize = in_runs.lengths.iter().sum();
    assert!(in_run > 300, "{in_run} of 1000 instructions in runs");
}

#[test]
fn an_interrupt_waits_for_the_end_of_a_run() {
    let mut machine = Machine::new(&[addi(3, 3, 1), jal(0, -4)]);
    machine.write(RAM_BASE + 0x100, &[jal(0, 0)]);
    machine.hart.arch.csrs.mtvec = RAM_BASE + 0x100;
    machine.hart.arch.csrs.mie = bit(Interrupt::MachineTimer);
    machine.hart.arch.csrs.mstatus |= status::MIE;
    machine.bus.store(CLINT_BASE + 0x4000, 8, 1).unwrap(); // cycle 320
    let mut in_runs = InRuns::new();
    let limit = Limit::instructions(400);
    machine.hart.run(&mut machine.bus, &mut in_runs, limit);
    let retired = &in_runs.model.retired;
    let before = retired.iter().take_while(|e| e.pc < RAM_BASE + 0x100);
    let late = before.count() - 319;
    assert!(late <= 32, "{late} instructions late");
    assert_eq!(in_runs.model.interrupts.len(), 1);
}

#[test]
fn runs_are_long_while_nothing_is_due() {
    let mut machine = Machine::new(&[addi(3, 3, 1), jal(0, -4)]);
    let mut in_runs = InRuns::new();
    let limit = Limit::instructions(400);
    machine.hart.run(&mut machine.bus, &mut in_runs, limit);
    machine.hart.run(&mut machine.bus, &mut in_runs, limit);
    // The first instruction of each call says how far the time has come.
    let lengths = [isa::RUN_STEPS, isa::RUN_STEPS, isa::RUN_STEPS, 15];
    assert_eq!(in_runs.lengths, [lengths, lengths].concat());
}

#[test]
fn ids_are_defined_once_and_again_when_code_changes() {
    let mut machine = Machine::new(&[addi(3, 3, 1), jal(0, -4)]);
    let mut model = Model::new();
    machine.timed(&mut model, 10);
    assert_eq!(model.defined.len(), 2);
    // The id stays where the same bytes are written again; other bytes get a new one.
    machine.write(RAM_BASE, &[addi(3, 3, 1)]);
    machine.timed(&mut model, 2);
    assert_eq!(model.defined.len(), 2);
    machine.write(RAM_BASE, &[addi(3, 3, 2)]);
    machine.timed(&mut model, 2);
    assert_eq!(model.defined.len(), 3);
    assert_eq!(model.retired.last().unwrap().id.0, 1);
}

#[test]
fn a_straddling_instruction_keeps_its_id_until_it_changes() {
    let mut machine = Machine::new(&[]);
    machine.write(RAM_BASE + 0xffe, &[addi(3, 3, 1), jal(0, -4)]);
    machine.hart.set_pc(RAM_BASE + 0xffe);
    let mut model = Model::new();
    machine.timed(&mut model, 6);
    assert_eq!((model.defined.len(), machine.x(3)), (2, 3));
    machine.bus.ram.store(RAM_BASE + 0x1000, 2, 0x0021).unwrap(); // immediate 2
    machine.timed(&mut model, 6);
    assert_eq!((model.defined.len(), machine.x(3)), (3, 9));
}

#[test]
fn fetch_faults_have_one_id_for_each_address() {
    let mut machine = Machine::new(&[jalr(0, 1, 0)]);
    machine.hart.arch.csrs.mtvec = RAM_BASE;
    machine.hart.set_reg(1, 0x1234_0000);
    let mut model = Model::new();
    machine.timed(&mut model, 8);
    assert_eq!(model.defined.len(), 2);
    let fault = model.retired[7].trap.unwrap();
    assert_eq!((fault.cause, fault.tval), (Exception::InstAccessFault, 0x1234_0000));
}

#[test]
fn region_triggers_retire_like_any_addi() {
    let program = [REGION_START, addi(1, 0, 1), REGION_STOP, addi(0, 0, 0)];
    let (mut machine, mut model) = (Machine::new(&program), Model::new());
    machine.timed(&mut model, 4);
    assert!(model.retired.iter().all(|e| e.trap.is_none()));
    assert_eq!(model.defined[0].inst.op, isa::Op::Addi);
    assert_eq!((machine.hart.pc(), machine.hart.instructions()), (RAM_BASE + 16, 4));
    let mut machine = Machine::new(&program);
    machine.steps(4);
    assert_eq!((machine.hart.pc(), machine.hart.instructions()), (RAM_BASE + 16, 4));
}

#[test]
fn runs_can_end_at_region_triggers() {
    let program = [
        addi(1, 0, 1),
        REGION_START,
        addi(1, 0, 1),
        REGION_STOP,
        COMMAND_START,
        COMMAND_STOP,
        // No marks: another register, a number, a destination, and none at all.
        0x0002_8013,
        0x0010_8013,
        0x0000_8093,
        addi(0, 0, 0),
    ];
    let (mut machine, mut model) = (Machine::new(&program), Model::new());
    machine.hart.stop_at_regions(true);
    assert_eq!(machine.steps(5), RunExit::Region(Mark::Start));
    assert_eq!(machine.timed(&mut model, 5), RunExit::Region(Mark::Stop));
    assert_eq!((machine.hart.instructions(), model.retired.len()), (4, 2));
    assert_eq!(machine.steps(5), RunExit::Region(Mark::CommandStart));
    assert_eq!(machine.timed(&mut model, 5), RunExit::Region(Mark::CommandStop));
    assert_eq!(machine.steps(4), RunExit::Limit);
    assert_eq!(machine.hart.instructions(), 10);
}

#[test]
fn an_interrupt_drops_the_instruction_that_decodes_too_late() {
    let mut machine = Machine::new(&[addi(1, 1, 1), jal(0, -4)]);
    machine.write(RAM_BASE + 0x100, &[jal(0, 0)]);
    machine.hart.arch.csrs.mtvec = RAM_BASE + 0x100;
    machine.hart.arch.csrs.mie = bit(Interrupt::MachineTimer);
    machine.hart.arch.csrs.mstatus |= status::MIE;
    machine.bus.store(CLINT_BASE + 0x4000, 8, 1).unwrap(); // cycle 320
    let mut model = Model::with_latency(10);
    machine.timed(&mut model, 40);
    assert_eq!(model.interrupts, [(RAM_BASE, RAM_BASE + 0x100)]);
    // Instructions decode in cycles 1, 11, …, 311; the one in 321 is dropped.
    let before = model.retired.iter().take_while(|e| e.pc < RAM_BASE + 0x100).count();
    assert_eq!(before, 32);
    assert_eq!(machine.hart.arch.csrs.mepc, RAM_BASE);
}

#[test]
fn an_external_unit_can_interrupt_between_events() {
    let mut machine = Machine::new(&[addi(1, 1, 1), jal(0, -4)]);
    machine.hart.arch.csrs.mie = bit(Interrupt::MachineSoftware);
    let mut model = Model::new();
    machine.timed(&mut model, 10);
    machine.bus.irq_at.set(15);
    machine.timed(&mut model, 10);
    assert_eq!(machine.bus.irq_at.get(), u64::MAX, "it was looked at");
}

#[test]
fn user_spaces_are_told_apart_by_tag() {
    let mut machine = Machine::new(&[addi(1, 1, 1), jal(0, -4)]);
    let mut model = Model::new();
    machine.timed(&mut model, 4);
    machine.hart.set_guest_tag(7);
    machine.timed(&mut model, 4);
    assert_eq!(model.defined.len(), 2, "machine mode is always space 0");
    assert!(model.defined.iter().all(|inst| inst.space == 0));
}

#[test]
fn privilege_changes_and_fences_are_reported() {
    let program = [csrrw(0, number::MEPC, 1), MRET];
    let mut machine = Machine::new(&program);
    machine.write(RAM_BASE + 0x1000, &[SFENCE_VMA, ECALL]);
    machine.hart.set_reg(1, RAM_BASE + 0x1000);
    machine.hart.arch.csrs.mstatus |= 1 << status::MPP_SHIFT;
    machine.hart.arch.pmp.set_address(0, u64::MAX);
    machine.hart.arch.pmp.set_config(0, 0x1f);
    let mut model = Model::new();
    machine.timed(&mut model, 5); // the last one is a fetch fault at address 0, in machine mode
    assert_eq!(model.flushes, 1);
    let privileges: Vec<_> = model.retired.iter().map(|e| e.privilege).collect();
    use Privilege::{Machine as M, Supervisor as S};
    assert_eq!(privileges, [M, M, S, S, M]);
}

#[test]
fn runs_of_both_kinds_continue_each_other() {
    let mut machine = Machine::new(&[addi(1, 1, 1), jal(0, -4)]);
    machine.steps(100);
    let mut model = Model::with_latency(3);
    machine.timed(&mut model, 10);
    assert_eq!((machine.hart.cycle(), machine.hart.instructions()), (130, 110));
    machine.steps(10);
    assert_eq!((machine.hart.cycle(), machine.hart.instructions()), (140, 120));
    let limit = Limit::cycle(200);
    assert_eq!(machine.hart.run(&mut machine.bus, &mut model, limit), RunExit::Limit);
    // The last one decodes in cycle 201.
    assert_eq!((model.now, machine.hart.instructions()), (203, 141));
    assert_eq!(machine.hart.run(&mut machine.bus, &mut Untimed, limit), RunExit::Limit);
    assert_eq!(machine.hart.cycle(), 203);
}
