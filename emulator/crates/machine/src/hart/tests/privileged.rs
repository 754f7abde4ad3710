//! Traps, returns, interrupts and sleep.

use devices::{CLINT_BASE, RAM_BASE};
use isa::{Exception, Interrupt, Privilege};

use super::Machine;
use super::asm::*;
use crate::RunExit;
use crate::csr::{bit, envcfg, number, status};

const HANDLER: u64 = RAM_BASE + 0x1000;

fn machine(privilege: Privilege, program: &[u32]) -> Machine {
    let mut machine = Machine::new(program);
    let hart = &mut machine.hart;
    hart.arch.csrs.mtvec = HANDLER;
    hart.arch.csrs.stvec = HANDLER + 0x100;
    hart.arch.pmp.set_address(0, u64::MAX);
    hart.arch.pmp.set_config(0, 0x1f);
    hart.arch.privilege = privilege;
    hart.update_rights();
    machine.write(HANDLER, &[addi(9, 9, 1), MRET]);
    machine
}

#[test]
fn ecall_and_return() {
    let mut machine = machine(Privilege::User, &[ECALL]);
    machine.steps(1);
    let hart = &machine.hart;
    assert_eq!((hart.arch.csrs.mcause, hart.arch.csrs.mepc), (Exception::EcallU as u64, RAM_BASE));
    assert_eq!((hart.pc(), hart.privilege()), (HANDLER, Privilege::Machine));
    assert_eq!(hart.instructions(), 0, "ecall does not retire");
    machine.steps(2);
    assert_eq!((machine.hart.pc(), machine.hart.privilege()), (RAM_BASE, Privilege::User));
}

#[test]
fn delegation_goes_to_the_supervisor_but_never_down() {
    for (from, to) in [
        (Privilege::User, Privilege::Supervisor),
        (Privilege::Supervisor, Privilege::Supervisor),
        (Privilege::Machine, Privilege::Machine),
    ] {
        let mut machine = machine(from, &[0]);
        machine.hart.arch.csrs.medeleg = 1 << Exception::IllegalInst as u64;
        machine.steps(1);
        assert_eq!(machine.hart.privilege(), to);
    }
}

#[test]
fn privileged_instructions_are_illegal_where_they_should_be() {
    use Privilege::{Supervisor, User};
    let cases = [
        (User, WFI, 0),
        (User, SRET, 0),
        (User, SFENCE_VMA, 0),
        (Supervisor, MRET, 0),
        (Supervisor, WFI, status::TW),
        (Supervisor, SRET, status::TSR),
        (Supervisor, SFENCE_VMA, status::TVM),
        (Supervisor, csrr(1, number::SATP), status::TVM),
        (Supervisor, csrr(1, number::MSTATUS), 0),
        (Supervisor, csrr(1, number::STIMECMP), 0),
        (User, csrr(1, number::CYCLE), 0),
        (Privilege::Machine, csrrw(0, number::MHARTID, 1), 0),
        (Privilege::Machine, csrr(1, number::FCSR), 0),
    ];
    for (privilege, instruction, mstatus) in cases {
        let mut machine = machine(privilege, &[instruction]);
        machine.hart.arch.csrs.mstatus |= mstatus;
        machine.steps(1);
        let csrs = &machine.hart.arch.csrs;
        assert_eq!(csrs.mcause, Exception::IllegalInst as u64, "{instruction:#x}");
        assert_eq!(csrs.mtval, instruction.into());
        assert_eq!(machine.hart.pc(), HANDLER);
    }
}

#[test]
fn the_machine_timer_interrupts() {
    let mut machine = machine(Privilege::Machine, &[addi(1, 1, 1), jal(0, -4)]);
    machine.bus.store(CLINT_BASE + 0x4000, 8, 2).unwrap(); // due at cycle 640
    machine.hart.arch.csrs.mie = bit(Interrupt::MachineTimer);
    machine.hart.arch.csrs.mstatus |= status::MIE;
    machine.steps(640);
    assert_eq!(machine.hart.pc(), RAM_BASE);
    machine.steps(1);
    assert_eq!((machine.x(9), machine.hart.cycle()), (1, 641));
    assert_eq!(machine.hart.arch.csrs.mcause, 1 << 63 | Interrupt::MachineTimer as u64);
}

#[test]
fn the_supervisor_timer_needs_no_help() {
    let program = [csrrw(0, number::STIMECMP, 2), addi(1, 1, 1), jal(0, -4)];
    let mut machine = machine(Privilege::Supervisor, &program);
    machine.write(HANDLER + 0x100, &[csrr(8, number::SIP), jal(0, 0)]);
    let csrs = &mut machine.hart.arch.csrs;
    csrs.menvcfg = 1 << 63;
    csrs.mcounteren = 2;
    csrs.mideleg = bit(Interrupt::SupervisorTimer);
    csrs.mie = bit(Interrupt::SupervisorTimer);
    csrs.mstatus |= status::SIE;
    machine.hart.set_reg(2, 1);
    machine.steps(320);
    assert_eq!(machine.hart.arch.csrs.scause, 0);
    machine.steps(2);
    assert_eq!(machine.hart.arch.csrs.scause, 1 << 63 | Interrupt::SupervisorTimer as u64);
    assert_eq!(machine.x(8), bit(Interrupt::SupervisorTimer));
}

#[test]
fn wfi_skips_to_the_timer_even_if_interrupts_are_masked() {
    let mut machine = machine(Privilege::Machine, &[WFI, addi(1, 0, 1)]);
    machine.bus.store(CLINT_BASE + 0x4000, 8, 1000).unwrap();
    machine.hart.arch.csrs.mie = bit(Interrupt::MachineTimer);
    machine.steps(2);
    assert_eq!((machine.x(1), machine.hart.cycle()), (1, 320_001));
    assert_eq!(machine.hart.instructions(), 2);
}

#[test]
fn wfi_with_nothing_to_wait_for_is_idle_until_the_host_acts() {
    let mut machine = machine(Privilege::Machine, &[WFI, addi(1, 0, 1)]);
    machine.hart.arch.csrs.mie = bit(Interrupt::MachineSoftware);
    assert_eq!(machine.steps(2), RunExit::Idle);
    assert_eq!(machine.steps(2), RunExit::Idle);
    machine.bus.store(CLINT_BASE, 4, 1).unwrap();
    machine.steps(1);
    assert_eq!(machine.x(1), 1);
}

#[test]
fn setting_a_bit_of_mip_does_not_latch_lines() {
    let program = [csrrs(1, number::MIP, 2), csrr(3, number::MIP)];
    let mut machine = machine(Privilege::Machine, &program);
    machine.bus.store(CLINT_BASE, 4, 1).unwrap();
    machine.hart.set_reg(2, bit(Interrupt::SupervisorSoftware));
    machine.steps(2);
    let msip = bit(Interrupt::MachineSoftware);
    assert_eq!(machine.x(3), msip | bit(Interrupt::SupervisorSoftware));
    assert_eq!(machine.hart.arch.csrs.mip_soft, bit(Interrupt::SupervisorSoftware));
}

#[test]
fn mprv_accesses_with_the_previous_privilege() {
    let mut machine = machine(Privilege::Machine, &[ld(2, 1, 0), sd(2, 1, 0)]);
    let hart = &mut machine.hart;
    // User mode may read the first 2 KiB of the page, machine mode everything.
    hart.arch.pmp.set_config(0, 0);
    hart.arch.pmp.set_address(0, (RAM_BASE + 0x8000) >> 2 | 0xff);
    hart.arch.pmp.set_config(0, 0x19);
    hart.arch.csrs.mstatus |= status::MPRV;
    hart.update_rights();
    hart.set_reg(1, RAM_BASE + 0x8000);
    machine.steps(2);
    assert_eq!(machine.hart.arch.csrs.mcause, Exception::StoreAccessFault as u64);
    assert_eq!(machine.hart.arch.csrs.mepc, RAM_BASE + 4);
}

/// `sh1add a0, a0, a0`, `c.not`, `cbo.zero (a0)`, `csrr x1, stimecmp`, `csrr x1, mcyclecfg`, `fadd.h`, `fli.h` (which needs two), `fmv.x.h`:
/// illegal where the extension is off, and `misa.B`
/// and the fields of `menvcfg` follow.
#[test]
fn extensions_can_be_off() {
    use isa::{Extension, Extensions};
    let cases = [
        (0x20a5_2533, Extension::Zba),
        (0x9d75, Extension::Zcb),
        (0x0045_200f, Extension::Zicboz),
        (0x14d0_20f3, Extension::Sstc),
        (0x3210_20f3, Extension::Smcntrpmf),
        (0x04b5_7553, Extension::Zfh),
        (0xf415_8553, Extension::Zfh),
        (0xf415_8553, Extension::Zfa),
        (0xe405_0553, Extension::Zfhmin),
    ];
    for (raw, extension) in cases {
        for on in [true, false] {
            let mut machine = machine(Privilege::Machine, &[raw]);
            machine.hart.set_reg(10, RAM_BASE + 0x2000);
            machine.hart.arch.csrs.mstatus |= status::FS;
            let set = Extensions::ALL.with(extension, on);
            machine.hart.set_extensions(set);
            machine.steps(1);
            assert_eq!(machine.hart.instructions(), u64::from(on), "{extension:?}");
        }
    }
    for on in [true, false] {
        let read_misa = 0x3010_20f3;
        let mut machine = machine(Privilege::Machine, &[read_misa]);
        let set = Extensions::ALL.with(Extension::Zbs, on);
        machine.hart.set_extensions(set);
        machine.steps(1);
        assert_eq!(machine.x(1) >> 1 & 1, u64::from(on));
    }
    assert_eq!(envcfg::legalize(u64::MAX, Extensions::NONE), envcfg::FIOM);
    assert_eq!(envcfg::legalize(2 << 4, Extensions::ALL), 0, "CBIE 2 is reserved");
}

/// Svadu: a page whose A and D bits are clear, accessed by a load, a store and a fetch.
#[test]
fn accessed_and_dirty_bits_are_written_by_hardware_if_it_has_svadu() {
    use crate::csr::envcfg::ADUE;
    use crate::mmu::{Satp, pte};
    use isa::{Extension, Extensions};

    const TABLE: u64 = RAM_BASE + 0x1_0000;
    let leaf = RAM_BASE >> 12 << 10 | pte::V | pte::R | pte::W | pte::X;
    let access = |svadu: bool, adue: bool, permitted: u64, first: u32| {
        let mut machine = machine(Privilege::Supervisor, &[first, WFI]);
        let hart = &mut machine.hart;
        hart.set_extensions(Extensions::ALL.with(Extension::Svadu, svadu));
        assert_eq!(hart.arch.csrs.menvcfg & ADUE != 0, svadu, "its value at reset");
        if !adue {
            hart.arch.csrs.menvcfg &= !ADUE;
        }
        hart.permit_all_memory();
        hart.arch.csrs.satp = Satp(8 << 60 | TABLE >> 12);
        // Code is mapped with A; data, at the second GiB, without.
        hart.set_reg(1, 0x4000_0800);
        machine.bus.ram.store(TABLE + 16, 8, leaf | pte::A).unwrap();
        machine.bus.ram.store(TABLE + 8, 8, leaf & !permitted).unwrap();
        machine.steps(1);
        let entry = machine.bus.ram.load(TABLE + 8, 8).unwrap();
        (machine.hart.instructions() == 1, entry & (pte::A | pte::D))
    };
    assert_eq!(access(true, true, 0, ld(2, 1, 0)), (true, pte::A));
    assert_eq!(access(true, true, 0, sd(0, 1, 0)), (true, pte::A | pte::D));
    assert_eq!(access(true, true, 0, lr_d(2, 1)), (true, pte::A));
    let amo = access(true, true, 0, amoadd_d(2, 0, 1));
    assert_eq!(amo, (true, pte::A | pte::D));
    // An access that is not permitted leaves no trace; nor does any without Svadu, or with ADUE clear.
    assert_eq!(access(true, true, pte::W, sd(0, 1, 0)), (false, 0));
    for (svadu, adue) in [(false, false), (true, false)] {
        assert_eq!(access(svadu, adue, 0, ld(2, 1, 0)), (false, 0));
        assert_eq!(access(svadu, adue, 0, sd(0, 1, 0)), (false, 0));
    }
    // A fetch sets the accessed bit.
    let mut machine = machine(Privilege::Supervisor, &[addi(2, 0, 7)]);
    machine.hart.set_extensions(Extensions::ALL);
    machine.hart.permit_all_memory();
    machine.hart.arch.csrs.satp = Satp(8 << 60 | TABLE >> 12);
    machine.bus.ram.store(TABLE + 16, 8, leaf).unwrap();
    machine.steps(1);
    assert_eq!(machine.x(2), 7);
    let entry = machine.bus.ram.load(TABLE + 16, 8);
    assert_eq!(entry, Some(leaf | pte::A));
}

#[test]
fn a_loop_of_wfi_with_interrupts_off_is_a_halted_hart() {
    let programs: [(&[u32], bool); 5] = [
        (&[WFI, jal(0, -4)], true),
        (&[jal(0, 0)], true),
        (&[addi(1, 1, 1), jal(0, -4)], false),
        // The loop calls something, or looks at memory, between two sleeps.
        (&[WFI, jal(1, -4)], false),
        (&[WFI, ld(1, 0, 0), jal(0, -8)], false),
    ];
    for (program, halted) in programs {
        let mut machine = machine(Privilege::Machine, program);
        // A pending interrupt keeps `wfi` from sleeping.
        machine.hart.arch.csrs.mie = bit(Interrupt::MachineSoftware);
        machine.bus.store(CLINT_BASE, 4, 1).unwrap();
        for steps in [0, 1, 2, 3] {
            machine.steps(steps);
            let found = machine.hart.is_halted(&mut machine.bus);
            assert_eq!(found, halted, "{program:x?} after {steps} more");
            if program.len() == 3 {
                break;
            }
        }
        machine.hart.arch.csrs.mstatus |= status::MIE;
        assert!(!machine.hart.is_halted(&mut machine.bus), "it would take the interrupt");
    }
}

#[test]
fn entries_into_user_mode_are_counted() {
    let mut machine = machine(Privilege::Machine, &[ECALL]);
    assert_eq!(machine.hart.user_entries(), Some(0));
    machine.hart.arch.csrs.mepc = RAM_BASE;
    machine.hart.set_pc(HANDLER + 4);
    machine.steps(1);
    assert_eq!(machine.hart.user_entries(), None, "it is there");
    machine.steps(1);
    assert_eq!(machine.hart.user_entries(), Some(1));
}
