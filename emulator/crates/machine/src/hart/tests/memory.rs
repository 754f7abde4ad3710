//! Data accesses, atomics and address translation.

use devices::RAM_BASE;
use isa::{Exception, Privilege};

use super::Machine;
use super::asm::*;
use crate::csr::status;
use crate::mmu::{Satp, pte};

const DATA: u64 = RAM_BASE + 0x8000;
const HANDLER: u64 = RAM_BASE + 0x4000;

/// The machine with register 1 set, and traps going to a handler.
fn machine(address: u64, program: &[u32]) -> Machine {
    let mut machine = Machine::new(program);
    machine.hart.arch.csrs.mtvec = HANDLER;
    machine.hart.set_reg(1, address);
    machine
}

fn cause(machine: &Machine) -> (u64, u64) {
    (machine.hart.arch.csrs.mcause, machine.hart.arch.csrs.mtval)
}

#[test]
fn misaligned_accesses_within_and_across_pages() {
    for address in [DATA + 1, DATA + 0xffd] {
        let mut machine =
            machine(address, &[addi(2, 0, -2), sd(2, 1, 0), ld(3, 1, 0), ld(4, 1, 1)]);
        machine.steps(4);
        assert_eq!(machine.x(3), -2i64 as u64, "{address:#x}");
        assert_eq!(machine.x(4), u64::MAX >> 8, "{address:#x}");
    }
}

#[test]
fn an_access_off_the_end_of_memory_faults_at_the_part_that_is_missing() {
    let end = RAM_BASE + (1 << 20);
    let mut machine = machine(end - 4, &[addi(2, 0, -1), sd(2, 1, 0)]);
    machine.steps(2);
    assert_eq!(cause(&machine), (Exception::StoreAccessFault as u64, end));
    assert_eq!(machine.bus.ram.load(end - 4, 4), Some(0), "nothing is stored");
}

#[test]
fn misaligned_atomics_trap() {
    for (program, expected) in [
        (lr_d(2, 1), Exception::LoadMisaligned),
        (sc_d(2, 3, 1), Exception::StoreMisaligned),
        (amoadd_d(2, 3, 1), Exception::StoreMisaligned),
    ] {
        let mut machine = machine(DATA + 4, &[program]);
        machine.steps(1);
        assert_eq!(cause(&machine), (expected as u64, DATA + 4));
    }
}

#[test]
fn store_conditional_needs_the_reservation_and_the_value() {
    let mut machine = machine(
        DATA,
        &[
            addi(2, 0, 7),
            sc_d(3, 2, 1),
            lr_d(4, 1),
            sc_d(5, 2, 1),
            lr_d(6, 1),
            sd(0, 1, 0),
            sc_d(7, 2, 1),
            amoadd_d(8, 2, 1),
            ld(9, 1, 0),
        ],
    );
    machine.steps(9);
    let results = [3, 4, 5, 6, 7, 8, 9].map(|register| machine.x(register));
    assert_eq!(results, [1, 0, 0, 7, 1, 0, 7]);
}

/// Sv39 tables: the first GiB of virtual addresses maps page 0 to `DATA`, with these bits; the
/// GiB from 0x8000_0000 maps to itself. Execution starts in supervisor mode.
fn translated(bits: u64, program: &[u32]) -> Machine {
    let mut machine = machine(0, program);
    let table = |n: u64| RAM_BASE + 0x1_0000 + n * 0x1000;
    let pointer = |n| (table(n) >> 12 << 10) | pte::V;
    let kernel = pte::V | pte::R | pte::W | pte::X | pte::A | pte::D;
    let ram = &mut machine.bus.ram;
    ram.store(table(0), 8, pointer(1)).unwrap();
    ram.store(table(0) + 16, 8, (RAM_BASE >> 12 << 10) | kernel).unwrap();
    ram.store(table(1), 8, pointer(2)).unwrap();
    ram.store(table(2), 8, (DATA >> 12 << 10) | bits).unwrap();
    let hart = &mut machine.hart;
    hart.arch.pmp.set_address(0, u64::MAX);
    hart.arch.pmp.set_config(0, 0x1f);
    hart.arch.csrs.satp = Satp(8 << 60 | table(0) >> 12);
    hart.arch.privilege = Privilege::Supervisor;
    hart.update_rights();
    machine
}

#[test]
fn translation_and_clear_accessed_and_dirty_bits() {
    let read_write = pte::V | pte::R | pte::W;
    let mut machine = translated(read_write | pte::A | pte::D, &[sd(2, 1, 8), ld(3, 1, 8)]);
    machine.hart.set_reg(2, 99);
    machine.steps(2);
    assert_eq!((machine.x(3), machine.bus.ram.load(DATA + 8, 8)), (99, Some(99)));

    let mut machine = translated(read_write | pte::A, &[ld(3, 1, 8), sd(2, 1, 8)]);
    machine.steps(2);
    assert_eq!(cause(&machine), (Exception::StorePageFault as u64, 8));
    let mut machine = translated(read_write | pte::D, &[ld(3, 1, 8)]);
    machine.steps(1);
    assert_eq!(cause(&machine), (Exception::LoadPageFault as u64, 8));
}

#[test]
fn user_pages_need_sum() {
    let user = pte::V | pte::R | pte::U | pte::A;
    let mut machine = translated(user, &[ld(3, 1, 0)]);
    machine.steps(1);
    assert_eq!(cause(&machine).0, Exception::LoadPageFault as u64);
    let mut machine = translated(user, &[ld(3, 1, 0)]);
    machine.hart.arch.csrs.mstatus |= status::SUM;
    machine.hart.update_rights();
    machine.steps(1);
    assert_eq!(machine.hart.pc(), RAM_BASE + 4);
}

#[test]
fn a_fence_makes_a_new_mapping_seen() {
    let bits = pte::V | pte::R | pte::W | pte::A | pte::D;
    // The table itself is in the kernel's mapping: store the new entry there.
    let mut machine = translated(bits, &[ld(3, 1, 0), sd(5, 4, 0), 0x1200_8073, ld(6, 1, 0)]);
    machine.bus.ram.store(DATA, 8, 1).unwrap();
    machine.bus.ram.store(DATA + 0x1000, 8, 2).unwrap();
    machine.hart.set_reg(4, RAM_BASE + 0x1_2000);
    machine.hart.set_reg(5, ((DATA + 0x1000) >> 12 << 10) | bits);
    machine.steps(4);
    assert_eq!((machine.x(3), machine.x(6)), (1, 2));
}

#[test]
fn protection_within_a_page_holds_for_data_and_code() {
    let mut machine = machine(DATA, &[ld(2, 1, 0), ld(2, 1, 16), addi(3, 0, 1), addi(3, 0, 2)]);
    let hart = &mut machine.hart;
    // 16 bytes at DATA + 16 and the fourth instruction, locked without rights.
    hart.arch.pmp.set_address(0, (DATA + 16) >> 2 | 1);
    hart.arch.pmp.set_address(1, (RAM_BASE + 12) >> 2);
    hart.arch.pmp.set_config(0, 0x9098);
    machine.steps(2);
    assert_eq!(cause(&machine), (Exception::LoadAccessFault as u64, DATA + 16));
    machine.hart.set_pc(RAM_BASE + 8);
    machine.steps(2);
    assert_eq!(cause(&machine), (Exception::InstAccessFault as u64, RAM_BASE + 12));
    assert_eq!(machine.x(3), 1);
}
