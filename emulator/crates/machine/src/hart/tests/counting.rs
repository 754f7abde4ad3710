//! Counter CSRs and overflow interrupts.

use isa::Interrupt;

use super::Machine;
use super::asm::*;
use crate::RAM_BASE;
use crate::csr::{bit, number, status};

const MHPMEVENT3: u16 = number::MHPMEVENT3;
const MHPMCOUNTER3: u16 = number::MHPMCOUNTER3;

#[test]
fn cycle_and_instret() {
    let mut machine = Machine::new(&[
        addi(1, 0, 100),
        csrr(2, number::MINSTRET),
        csrrw(0, number::MINSTRET, 1),
        csrr(3, number::MINSTRET),
        csrr(4, number::MCYCLE),
        csrr(5, number::MINSTRET),
    ]);
    machine.steps(6);
    assert_eq!(
        [2, 3, 4, 5].map(|register| machine.x(register)),
        [1, 100, 4, 102]
    );
}

#[test]
fn an_overflow_interrupts_in_its_cycle() {
    let handler = RAM_BASE + 0x1000;
    let mut machine = Machine::new(&[
        addi(1, 0, 1), // selector: cycles
        csrrw(0, MHPMEVENT3, 1),
        addi(2, 0, -50),
        csrrw(0, MHPMCOUNTER3, 2), // cycle 3
        addi(3, 3, 1),
        jal(0, -4),
    ]);
    machine.write(
        handler,
        &[csrr(4, MHPMCOUNTER3), csrr(5, MHPMEVENT3), jal(0, 0)],
    );
    let csrs = &mut machine.hart.csrs;
    csrs.mtvec = handler;
    csrs.mie = bit(Interrupt::CounterOverflow);
    csrs.mstatus |= status::MIE;
    machine.steps(53);
    assert_eq!(machine.hart.csrs.mcause, 0);
    machine.steps(2);
    assert_eq!(
        machine.hart.csrs.mcause,
        1 << 63 | Interrupt::CounterOverflow as u64
    );
    assert_eq!(
        machine.x(4),
        0,
        "read in the first cycle of the handler, 50 cycles on"
    );
    assert_eq!(machine.x(5), 1 << 63 | 1);
}

/// `mcycle` and `minstret` leave machine mode out; the `mret` counts as machine mode's, the `ecall` does not retire.
#[test]
fn fixed_counters_can_leave_machine_mode_out() {
    let user = RAM_BASE + 0x2000;
    let mut machine = Machine::new(&[
        csrrw(0, number::MCYCLECFG, 1),
        csrrw(0, number::MINSTRETCFG, 1),
        csrrw(0, number::MCYCLE, 0),
        csrrw(0, number::MINSTRET, 0),
        csrrw(0, number::MEPC, 2),
        MRET,
    ]);
    machine.write(user, &[addi(3, 3, 1), addi(3, 3, 1), ECALL]);
    let handler = [
        addi(4, 4, 1),
        csrr(5, number::MCYCLE),
        csrr(6, number::MINSTRET),
    ];
    machine.write(RAM_BASE + 0x3000, &handler);
    let hart = &mut machine.hart;
    hart.csrs.mtvec = RAM_BASE + 0x3000;
    hart.pmp.set_address(0, u64::MAX);
    hart.pmp.set_config(0, 0x1f);
    hart.set_reg(1, 1 << 62); // MINH
    hart.set_reg(2, user);
    machine.steps(12);
    assert_eq!([5, 6].map(|register| machine.x(register)), [3, 2]);
}

#[test]
fn supervisor_cycles_can_be_left_out() {
    let user = RAM_BASE + 0x2000;
    let mut machine = Machine::new(&[csrrw(0, MHPMEVENT3, 1), csrrw(0, number::MEPC, 2), MRET]);
    machine.write(user, &[addi(3, 3, 1), addi(3, 3, 1), ECALL]);
    machine.write(
        RAM_BASE + 0x3000,
        &[addi(4, 4, 1), addi(4, 4, 1), csrr(5, MHPMCOUNTER3)],
    );
    let hart = &mut machine.hart;
    hart.csrs.mtvec = RAM_BASE + 0x3000;
    hart.pmp.set_address(0, u64::MAX);
    hart.pmp.set_config(0, 0x1f);
    hart.set_reg(1, 1 << 62 | 1); // MINH
    hart.set_reg(2, user);
    machine.steps(9);
    assert_eq!(machine.x(5), 3);
}
