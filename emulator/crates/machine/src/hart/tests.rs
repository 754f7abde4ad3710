//! Small programs, written as encodings, run on a hart of their own.

mod asm;
mod counting;
mod debug;
mod delegation;
mod memory;
mod model;
mod privileged;
mod shared;
mod timed;
mod together;
mod transfer_records;
mod translated;

use devices::{Bus, Clock, RAM_BASE};
use isa::Untimed;

use crate::{Hart, Limit, RunExit};
use asm::*;

/// A machine with 1 MiB and a program at the start of RAM.
struct Machine {
    hart: Hart,
    bus: Bus,
}

impl Machine {
    fn new(program: &[u32]) -> Self {
        let mut machine =
            Self { hart: Hart::new(0), bus: Bus::new(1 << 20, 1, Clock::default()).unwrap() };
        machine.write(RAM_BASE, program);
        machine
    }

    fn write(&mut self, pa: u64, program: &[u32]) {
        for (n, &word) in program.iter().enumerate() {
            self.bus.ram.store(pa + 4 * n as u64, 4, word.into()).unwrap();
        }
    }

    /// Executes so many instructions without timing.
    fn steps(&mut self, count: u64) -> RunExit {
        self.hart.run(&mut self.bus, &mut Untimed, Limit::instructions(count))
    }

    fn x(&self, register: u8) -> u64 {
        self.hart.reg(register)
    }
}

#[test]
fn x0_stays_zero() {
    let mut machine = Machine::new(&[addi(0, 0, 5), addi(1, 0, -7), add(0, 1, 1), add(2, 0, 1)]);
    machine.steps(4);
    assert_eq!((machine.x(0), machine.x(2)), (0, -7i64 as u64));
    assert_eq!((machine.hart.instructions(), machine.hart.cycle()), (4, 4));
}

#[test]
fn overwritten_code_runs_anew() {
    // Executes the instruction at 0x10 twice; the second time it was replaced.
    let patch = addi(3, 3, 100);
    let mut machine = Machine::new(&[
        lui(5, patch),
        addi(5, 5, patch as i32 & 0xfff),
        auipc(6, 0),
        jal(0, 4),
        addi(3, 3, 1),
        sw(5, 6, 8),
        jal(0, -8),
    ]);
    machine.steps(7);
    assert_eq!(machine.x(3), 1);
    machine.steps(1);
    assert_eq!(machine.x(3), 101);
}

#[test]
fn devices_overwrite_code() {
    let mut machine = Machine::new(&[addi(3, 3, 1), jal(0, -4)]);
    machine.steps(2);
    machine.write(RAM_BASE, &[addi(3, 3, 2)]);
    machine.steps(1);
    assert_eq!(machine.x(3), 3);
}

#[test]
fn an_instruction_can_straddle_pages() {
    let mut machine = Machine::new(&[]);
    machine.write(RAM_BASE + 0xffe, &[addi(3, 3, 1), jal(0, -4)]);
    machine.hart.set_pc(RAM_BASE + 0xffe);
    machine.steps(10);
    assert_eq!(machine.x(3), 5);
    machine.write(RAM_BASE + 0xffe, &[addi(3, 3, 10)]);
    machine.steps(1);
    assert_eq!(machine.x(3), 15);
}

#[test]
fn limits_are_exact() {
    let mut machine = Machine::new(&[addi(1, 1, 1), jal(0, -4)]);
    assert_eq!(machine.steps(5), RunExit::Limit);
    assert_eq!(machine.hart.pc(), RAM_BASE + 4);
    let limit = Limit::cycle(1000);
    assert_eq!(machine.hart.run(&mut machine.bus, &mut Untimed, limit), RunExit::Limit);
    assert_eq!((machine.hart.cycle(), machine.x(1)), (1000, 500));
    assert_eq!(machine.steps(0), RunExit::Limit);
    assert_eq!(machine.hart.cycle(), 1000);
}

#[test]
fn jumps_into_nowhere_only_trap() {
    // mtvec is 0, where there is nothing either: the hart traps for ever.
    for target in [0, 2, 0xffe, u64::MAX - 1, 1 << 63, RAM_BASE + (1 << 20) - 2, 0x200_0000] {
        let mut machine = Machine::new(&[]);
        machine.hart.set_pc(target);
        assert_eq!(machine.steps(1000), RunExit::Limit);
        assert_eq!(machine.hart.instructions(), 0, "{target:#x}");
    }
}
