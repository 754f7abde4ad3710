//! Breakpoints and watchpoints.

use devices::RAM_BASE;
use isa::Untimed;

use super::Machine;
use super::asm::*;
use super::model::InRuns;
use crate::{DebugStop, Limit, RunExit, Watchpoint};

/// Counts `x1` up and stores it, for ever.
fn counting() -> Machine {
    let mut machine = Machine::new(&[auipc(5, 0), addi(1, 1, 1), sw(1, 5, 0x100), jal(0, -8)]);
    machine.hart.set_pc(RAM_BASE);
    machine
}

/// Goes on, timed or not.
fn run(machine: &mut Machine, model: &mut Option<InRuns>) -> RunExit {
    let limit = Limit::instructions(1000);
    let Machine { hart, bus } = machine;
    match model {
        Some(model) => hart.run(bus, model, limit),
        None => hart.run(bus, &mut Untimed, limit),
    }
}

#[test]
fn a_breakpoint_stops_before_its_instruction_each_time() {
    for mut model in [None, Some(InRuns::new())] {
        let mut machine = counting();
        machine.hart.set_breakpoint(RAM_BASE + 8, true);
        for round in 1..4 {
            let exit = run(&mut machine, &mut model);
            assert_eq!(exit, RunExit::Debug(DebugStop::Breakpoint));
            assert_eq!((machine.hart.pc(), machine.x(1)), (RAM_BASE + 8, round));
        }
        machine.hart.set_breakpoint(RAM_BASE + 8, false);
        assert_eq!(run(&mut machine, &mut model), RunExit::Limit);
    }
}

#[test]
fn a_watchpoint_stops_after_the_access() {
    for mut model in [None, Some(InRuns::new())] {
        let mut machine = counting();
        let watchpoint =
            Watchpoint { range: RAM_BASE + 0x102..RAM_BASE + 0x103, read: false, write: true };
        machine.hart.set_watchpoint(watchpoint.clone(), true);
        for round in 1..4 {
            let stop = DebugStop::Watchpoint { address: RAM_BASE + 0x100, write: true };
            assert_eq!(run(&mut machine, &mut model), RunExit::Debug(stop));
            assert_eq!((machine.hart.pc(), machine.x(1)), (RAM_BASE + 12, round));
            let Machine { hart, bus } = &mut machine;
            let mut bytes = [0; 4];
            assert_eq!(hart.debug_read(bus, RAM_BASE + 0x100, &mut bytes), 4);
            assert_eq!(u64::from(u32::from_le_bytes(bytes)), round);
        }
        machine.hart.set_watchpoint(watchpoint, false);
        assert_eq!(run(&mut machine, &mut model), RunExit::Limit);
    }
}
