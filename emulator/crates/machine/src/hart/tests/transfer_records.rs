//! Control transfer records (Smctr/Ssctr 1.0): who may access what.

use isa::{Extension, Extensions, Privilege};
use sampling_units::ctr::control;

use super::Machine;
use super::asm::*;
use crate::csr::number::*;

const SCTRCLR: u32 = 0x1040_0073;
/// Not a window: `0x154`.
const WINDOWS: [u16; 6] = [0x151, 0x152, 0x153, 0x155, 0x156, 0x157];

fn machine() -> Machine {
    let mut machine = Machine::new(&[]);
    machine.hart.permit_all_memory();
    machine
}

#[test]
fn registers_by_privilege() {
    use Privilege::{Machine, Supervisor, User};
    for present in [false, true] {
        let mut machine = machine();
        let extensions = Extensions::ALL.with(Extension::Smctr, present);
        machine.hart.set_extensions(extensions);
        machine.hart.arch.csrs.siselect = 0x200;
        for privilege in [User, Supervisor, Machine] {
            let supervisor = present && privilege != User;
            for csr in [SCTRCTL, SCTRSTATUS, SCTRDEPTH] {
                assert_eq!(machine.reads(privilege, csr).is_some(), supervisor);
                assert_eq!(machine.writes(privilege, csr, 0), supervisor);
            }
            assert_eq!(
                machine.reads(privilege, MCTRCTL).is_some(),
                supervisor && privilege == Machine
            );
            assert_eq!(machine.executes(privilege, SCTRCLR), supervisor);
            for window in WINDOWS {
                assert_eq!(machine.reads(privilege, window).is_some(), supervisor);
                assert_eq!(machine.writes(privilege, window, 0), supervisor);
            }
            assert_eq!(machine.reads(privilege, 0x154), None);
        }
    }
}

/// Windows show the entry that is selected, those beyond the depth are zero, and `sctrclr` clears all of them.
#[test]
fn windows_show_the_selected_record() {
    let mut machine = machine();
    let supervisor = Privilege::Supervisor;
    assert!(machine.writes(supervisor, SCTRDEPTH, 0));
    for entry in [0, 15, 16, 255] {
        machine.hart.arch.csrs.siselect = 0x200 + entry;
        for (window, value) in WINDOWS.into_iter().zip([7, 9, 0x1234_8005, 1, 1, 1]) {
            assert!(machine.writes(supervisor, window, value));
        }
        let found = WINDOWS.map(|window| machine.reads(supervisor, window).unwrap());
        let held = [7, 9, 0x1234_8005, 0, 0, 0];
        assert_eq!(found, if entry < 16 { held } else { [0; 6] }, "{entry}");
    }
    assert!(machine.executes(supervisor, SCTRCLR));
    for entry in 0..256 {
        machine.hart.arch.csrs.siselect = 0x200 + entry;
        assert_eq!(machine.reads(supervisor, SIREG), Some(0));
    }
}

/// A breakpoint, and the interrupt of a counter, in functional mode, where nothing is recorded.
#[test]
fn traps_freeze_if_asked_to() {
    const EBREAK: u32 = 0x0010_0073;
    for asked in [0, control::BPFRZ, control::LCOFIFRZ] {
        let mut machine = machine();
        assert!(machine.writes(Privilege::Machine, MCTRCTL, control::S | asked));
        machine.write(devices::RAM_BASE, &[EBREAK]);
        machine.hart.set_pc(devices::RAM_BASE);
        machine.hart.arch.csrs.mtvec = devices::RAM_BASE + 0x100;
        machine.write(devices::RAM_BASE + 0x100, &[addi(0, 0, 0)]);
        machine.steps(2);
        let frozen = machine.reads(Privilege::Machine, SCTRSTATUS).unwrap() >> 31;
        assert_eq!(frozen == 1, asked == control::BPFRZ);
    }
}
