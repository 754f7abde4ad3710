//! Counter CSRs and overflow interrupts.

use devices::RAM_BASE;
use isa::{Interrupt, Untimed};

use super::Machine;
use super::asm::*;
use super::model::{InRuns, Model};
use crate::csr::{bit, number, status};
use crate::{Limit, Translate};

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
    assert_eq!([2, 3, 4, 5].map(|register| machine.x(register)), [1, 100, 4, 102]);
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
    machine.write(handler, &[csrr(4, MHPMCOUNTER3), csrr(5, MHPMEVENT3), jal(0, 0)]);
    let csrs = &mut machine.hart.arch.csrs;
    csrs.mtvec = handler;
    csrs.mie = bit(Interrupt::CounterOverflow);
    csrs.mstatus |= status::MIE;
    machine.steps(53);
    assert_eq!(machine.hart.arch.csrs.mcause, 0);
    machine.steps(2);
    assert_eq!(machine.hart.arch.csrs.mcause, 1 << 63 | Interrupt::CounterOverflow as u64);
    assert_eq!(machine.x(4), 0, "read in the first cycle of the handler, 50 cycles on");
    assert_eq!(machine.x(5), 1 << 63 | 1);
}

const LOWER: u64 = RAM_BASE + 0x2000;

/// Sets both fixed counters' `filter`, starts them, and goes to `lower` in user mode; its traps go to `handler`, with
/// `lower`'s address in `x2`.
fn filtered(filter: u64, lower: &[u32], handler: &[u32]) -> Machine {
    const HANDLER: u64 = RAM_BASE + 0x3000;
    let mut machine = Machine::new(&[
        csrrw(0, number::MCYCLECFG, 1),
        csrrw(0, number::MINSTRETCFG, 1),
        csrrw(0, number::MCYCLE, 0),
        csrrw(0, number::MINSTRET, 0),
        csrrw(0, number::MEPC, 2),
        MRET,
    ]);
    machine.write(LOWER, lower);
    machine.write(HANDLER, handler);
    let hart = &mut machine.hart;
    hart.arch.csrs.mtvec = HANDLER;
    hart.arch.pmp.set_address(0, u64::MAX);
    hart.arch.pmp.set_config(0, 0x1f);
    hart.set_reg(1, filter);
    hart.set_reg(2, LOWER);
    machine
}

/// `mcycle` and `minstret` leave machine mode out; the `mret` counts as machine mode's, the `ecall` does not retire.
#[test]
fn fixed_counters_can_leave_machine_mode_out() {
    let handler = [addi(4, 4, 1), csrr(5, number::MCYCLE), csrr(6, number::MINSTRET)];
    let minh = 1 << 62;
    let mut machine = filtered(minh, &[addi(3, 3, 1), addi(3, 3, 1), ECALL], &handler);
    machine.steps(12);
    assert_eq!([5, 6].map(|register| machine.x(register)), [3, 2]);
}

/// Three passes of a loop in a lower privilege, each ended by an `ecall`; the same counts in every mode.
#[test]
fn filters_count_alike_interpreted_translated_and_timed() {
    let [minh, sinh, uinh] = [62, 61, 60].map(|bit| 1 << bit);
    let machine = |supervisor: bool, filter: u64| {
        let lower = [addi(3, 0, 50), addi(3, 3, -1), bne(3, 0, -4), ECALL];
        let handler = [
            addi(4, 4, 1),
            bne(4, 7, 16),
            csrr(5, number::MCYCLE),
            csrr(6, number::MINSTRET),
            jal(0, 0),
            csrrw(0, number::MEPC, 2),
            MRET,
        ];
        let mut machine = filtered(filter, &lower, &handler);
        machine.hart.arch.csrs.mstatus |= u64::from(supervisor) << 11; // MPP
        machine.hart.set_reg(7, 3);
        machine
    };
    // Cycles and instructions. An `ecall` takes a cycle of the lower privilege, and does not retire. The write of `mcycle`
    // is in a cycle that counts already.
    let (lower, higher) = ([306, 303], [14, 13]);
    let both = [lower[0] + higher[0], lower[1] + higher[1]];
    for (supervisor, filter, expected) in [
        (false, 0, both),
        (false, minh, lower),
        (false, sinh, both),
        (false, uinh, higher),
        (true, minh, lower),
        (true, sinh, higher),
        (true, uinh, both),
        (true, minh | sinh, [0, 0]),
    ] {
        let limit = Limit::instructions(5000);
        let untimed = |translate| {
            let mut machine = machine(supervisor, filter);
            machine.hart.set_translate(translate).unwrap();
            machine.hart.run(&mut machine.bus, &mut Untimed, limit);
            machine
        };
        let mut timed = machine(supervisor, filter);
        timed.hart.run(&mut timed.bus, &mut Model::new(), limit);
        let mut in_runs = machine(supervisor, filter);
        in_runs.hart.run(&mut in_runs.bus, &mut InRuns::new(), limit);
        let machines = [
            ("interpreted", untimed(Translate::Nothing)),
            ("translated", untimed(Translate::Everything)),
            ("timed", timed),
            ("timed in runs", in_runs),
        ];
        for (mode, machine) in machines {
            let counts = [5, 6].map(|register| machine.x(register));
            assert_eq!(counts, expected, "{mode}, {supervisor}, {filter:#x}");
        }
    }
}

#[test]
fn supervisor_cycles_can_be_left_out() {
    let user = RAM_BASE + 0x2000;
    let mut machine = Machine::new(&[csrrw(0, MHPMEVENT3, 1), csrrw(0, number::MEPC, 2), MRET]);
    machine.write(user, &[addi(3, 3, 1), addi(3, 3, 1), ECALL]);
    machine.write(RAM_BASE + 0x3000, &[addi(4, 4, 1), addi(4, 4, 1), csrr(5, MHPMCOUNTER3)]);
    let hart = &mut machine.hart;
    hart.arch.csrs.mtvec = RAM_BASE + 0x3000;
    hart.arch.pmp.set_address(0, u64::MAX);
    hart.arch.pmp.set_config(0, 0x1f);
    hart.set_reg(1, 1 << 62 | 1); // MINH
    hart.set_reg(2, user);
    machine.steps(9);
    assert_eq!(machine.x(5), 3);
}
