//! Translated code does what the interpreter does, instruction for instruction.

use isa::{Interrupt, Untimed};

use super::Machine;
use super::asm::*;
use crate::csr::status;
use crate::{CLINT_BASE, Limit, RAM_BASE, Translate};

const DATA: i32 = 0x4000;

/// Runs a program from its start for each of some numbers of instructions, interpreted and translated, with register
/// 1 pointing to data, and compares everything. Gives the last machine.
fn same(prepare: impl Fn(&mut Machine), program: &[u32]) -> Machine {
    let mut last = None;
    // The translator stays out of the last 2,048 instructions of a run: in the second half it has to stop in time.
    for steps in (0..40).chain(5000..5100) {
        let machines = [Translate::Nothing, Translate::Everything].map(|what| {
            let mut machine = Machine::new(program);
            machine.hart.set_translate(what).unwrap();
            machine.hart.set_reg(1, RAM_BASE + DATA as u64);
            prepare(&mut machine);
            machine
                .hart
                .run(&mut machine.bus, &mut Untimed, Limit::instructions(steps));
            machine
        });
        let [interpreted, translated] = machines.each_ref().map(|m| {
            let data = m.bus.ram.slice(RAM_BASE, 0x8000).unwrap().to_vec();
            let hart = &m.hart;
            let registers: Vec<u64> = (0..64).map(|reg| hart.reg(reg)).collect();
            (
                hart.pc(),
                hart.cycle(),
                hart.instructions(),
                hart.csrs.mepc,
                registers,
                data,
            )
        });
        assert_eq!(interpreted, translated, "after {steps} instructions");
        last = machines.into_iter().last();
    }
    last.unwrap()
}

#[test]
fn loops_stop_where_the_limit_is() {
    let program = [
        addi(2, 2, 1),
        add(3, 3, 2),
        sd(3, 1, 8),
        ld(4, 1, 8),
        jal(0, -16),
    ];
    let machine = same(|_| (), &program);
    assert!(machine.hart.instructions() > 5000 && machine.x(4) != 0);
}

#[test]
fn a_loop_that_overwrites_itself_runs_anew() {
    // Each turn stores one of two instructions over the one at 12, in turn.
    let (one, other) = (addi(3, 3, 1), addi(3, 3, 100));
    let program = [
        ld(5, 1, 0),
        ld(6, 1, 8),
        sw(5, 2, 12),
        addi(0, 0, 0),
        sd(5, 1, 8),
        sd(6, 1, 0),
        jal(0, -24),
    ];
    let machine = same(
        |machine| {
            machine.hart.set_reg(2, RAM_BASE);
            machine.bus.ram.store(RAM_BASE + DATA as u64, 8, one.into());
            machine
                .bus
                .ram
                .store(RAM_BASE + DATA as u64 + 8, 8, other.into());
        },
        &program,
    );
    assert!(machine.x(3) > 700 * 50);
}

#[test]
fn interrupts_come_after_the_same_instruction() {
    // The handler sets the timer 4 ticks on.
    let handler = [ld(7, 8, 0), addi(7, 7, 4), sd(7, 8, 0), addi(9, 9, 1), MRET];
    let machine = same(
        |machine| {
            machine.write(RAM_BASE + 0x1000, &handler);
            machine.hart.set_reg(8, CLINT_BASE + 0x4000);
            machine.bus.store(CLINT_BASE + 0x4000, 8, 1).unwrap();
            machine.hart.csrs.mtvec = RAM_BASE + 0x1000;
            machine.hart.csrs.mie = 1 << Interrupt::MachineTimer as u64;
            machine.hart.csrs.mstatus |= status::MIE;
        },
        &[addi(2, 2, 1), add(3, 3, 2), jal(0, -8)],
    );
    assert!(machine.x(9) > 0);
}

#[test]
fn a_trap_in_the_middle_of_a_block_leaves_what_came_before() {
    // The store faults from the end of memory on; the handler goes on after it.
    let handler = [
        csrr(7, 0x341),
        addi(7, 7, 4),
        csrrw(0, 0x341, 7),
        addi(9, 9, 1),
        MRET,
    ];
    let machine = same(
        |machine| {
            machine.write(RAM_BASE + 0x1000, &handler);
            machine.hart.csrs.mtvec = RAM_BASE + 0x1000;
            machine.hart.set_reg(1, RAM_BASE + (1 << 20) - 64);
        },
        &[
            addi(2, 2, 1),
            sd(2, 1, 0),
            addi(1, 1, 8),
            add(3, 3, 2),
            jal(0, -16),
        ],
    );
    assert!(machine.x(9) > 100);
}
