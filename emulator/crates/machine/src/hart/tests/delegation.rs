//! Indirect access to CSRs, and counters that machine mode delegated.

use devices::RAM_BASE;
use isa::{Exception, Extension, Extensions, Privilege};

use super::Machine;
use super::asm::*;
use crate::csr::envcfg::{self, CDE};
use crate::csr::number::{self, *};

const OF: u64 = 1 << 63;
const MINH: u64 = 1 << 62;
const SINH: u64 = 1 << 61;
const COUNTER_3: u64 = 0x43;

/// A machine in supervisor mode that delegated the counters of `delegated`.
fn machine(delegated: u64) -> Machine {
    let mut machine = Machine::new(&[]);
    machine.hart.permit_all_memory();
    machine.hart.arch.csrs.menvcfg = CDE;
    machine.hart.arch.csrs.mcounteren = delegated;
    machine.hart.arch.privilege = Privilege::Supervisor;
    machine
}

impl Machine {
    /// Executes an instruction in a privilege; false if it was illegal.
    pub(super) fn executes(&mut self, privilege: Privilege, instruction: u32) -> bool {
        self.write(RAM_BASE, &[instruction]);
        let hart = &mut self.hart;
        hart.set_pc(RAM_BASE);
        hart.arch.privilege = privilege;
        hart.update_rights();
        hart.arch.csrs.mcause = u64::MAX;
        self.steps(1);
        match self.hart.arch.csrs.mcause {
            u64::MAX => true,
            cause => {
                assert_eq!(cause, Exception::IllegalInst as u64);
                assert_eq!(self.hart.arch.csrs.mtval, instruction.into());
                false
            }
        }
    }

    /// Reads a CSR in a privilege; `None` if that was illegal.
    pub(super) fn reads(&mut self, privilege: Privilege, csr: u16) -> Option<u64> {
        self.executes(privilege, csrr(1, csr)).then(|| self.x(1))
    }

    pub(super) fn writes(&mut self, privilege: Privilege, csr: u16, value: u64) -> bool {
        self.hart.set_reg(2, value);
        self.executes(privilege, csrrw(0, csr, 2))
    }

    /// What the supervisor reads and writes, which is legal.
    #[track_caller]
    fn read(&mut self, csr: u16) -> u64 {
        self.reads(Privilege::Supervisor, csr).unwrap()
    }

    #[track_caller]
    fn write_csr(&mut self, csr: u16, value: u64) {
        assert!(self.writes(Privilege::Supervisor, csr, value));
    }
}

/// Smcdeleg 1.0, section 1: every window under every selector, counters delegated and not, in every privilege.
#[test]
fn windows_open_on_delegated_counters_alone() {
    use Privilege::{Machine, Supervisor, User};
    let mut machine = machine(0);
    let others = [Extension::Smctr, Extension::Smpdis, Extension::Sspesa];
    let without = |set: Extensions, extension| set.with(extension, false);
    machine.hart.set_extensions(others.into_iter().fold(Extensions::ALL, without));
    for cde in [false, true] {
        machine.hart.arch.csrs.menvcfg = if cde { CDE } else { 0 };
        for select in [0..=0x80u64, 0x1ff..=0x201, 0xfff..=0xfff].into_iter().flatten() {
            machine.hart.arch.csrs.siselect = select;
            let own = 1u64 << (select & 31);
            for (delegated, window) in [0, own, !own & 0xffff_ffff]
                .into_iter()
                .flat_map(|delegated| (0x150..=0x158).map(move |window| (delegated, window)))
            {
                machine.hart.arch.csrs.mcounteren = delegated;
                let counter = cde && (0x40..=0x5f).contains(&select) && select != 0x41;
                let open = counter && delegated == own && [0x151, 0x152].contains(&window);
                let selector = window == 0x150;
                for (privilege, legal) in
                    [(User, false), (Supervisor, open || selector), (Machine, open || selector)]
                {
                    let said =
                        format!("{select:#x} {window:#x} {delegated:#x} {cde} {privilege:?}");
                    let read = machine.reads(privilege, window);
                    assert_eq!(read.is_some(), legal, "read {said}");
                    let same = if selector { select } else { 0 };
                    assert_eq!(machine.writes(privilege, window, same), legal, "write {said}");
                }
            }
        }
    }
}

#[test]
fn counters_go_on_from_what_their_supervisor_says_alone() {
    use Privilege::{Machine, Supervisor, User};
    let mut machine = machine(0);
    machine.hart.arch.csrs.menvcfg = CDE;
    machine.hart.arch.csrs.mcounteren = 1 << 4 | 1 << 2;
    for (counter, delegated) in [(2, false), (3, false), (4, true)] {
        machine.hart.arch.csrs.siselect = 1 << 63 | (0x40 + counter);
        for (privilege, window, legal) in [
            (User, 0x151, false),
            (Supervisor, 0x151, delegated),
            (Machine, 0x151, delegated),
            (Machine, 0x152, false),
        ] {
            let said = format!("{counter} {window:#x} {privilege:?}");
            assert_eq!(machine.writes(privilege, window, 77), legal, "{said}");
            let read = legal.then_some(77);
            assert_eq!(machine.reads(privilege, window), read, "{said}");
        }
    }
}

#[test]
fn selectors_hold_the_least_range_and_nothing_is_behind_mireg() {
    let mut machine = machine(u64::MAX);
    for (privilege, csr) in [(Privilege::Supervisor, SISELECT), (Privilege::Machine, MISELECT)] {
        // Selectors go up to 0xfff, and as far with the top bit set, for custom use.
        let custom = 1 << 63;
        for (written, read) in
            [(0x40, 0x40), (u64::MAX, custom | 0xfff), (custom, custom), (1 << 62, 0)]
        {
            assert!(machine.writes(privilege, csr, written));
            assert_eq!(machine.reads(privilege, csr), Some(read));
        }
    }
    assert!(!machine.writes(Privilege::Supervisor, MISELECT, 0));
    for (select, window) in
        [0, 0x43, 0xfff].into_iter().flat_map(|s| (0x351..=0x357).map(move |w| (s, w)))
    {
        assert!(machine.writes(Privilege::Machine, MISELECT, select));
        assert_eq!(machine.reads(Privilege::Machine, window), None);
        assert!(!machine.writes(Privilege::Machine, window, 0));
    }
}

#[test]
fn without_the_extensions_there_is_nothing() {
    let machine_mode = Privilege::Machine;
    for (missing, gone) in [
        (Extension::Smcsrind, &[SISELECT, SIREG, SIREG2, MISELECT][..]),
        (Extension::Smcdeleg, &[SIREG, SIREG2, SCOUNTINHIBIT]),
    ] {
        let mut machine = machine(0);
        machine.hart.arch.csrs.siselect = COUNTER_3;
        machine.hart.set_extensions(Extensions::ALL.with(missing, false));
        assert!(machine.writes(machine_mode, MENVCFG, CDE));
        assert!(machine.writes(machine_mode, MCOUNTEREN, u64::MAX));
        let menvcfg = machine.reads(machine_mode, MENVCFG).unwrap();
        assert_eq!(menvcfg & CDE != 0, missing != Extension::Smcdeleg);
        for csr in gone {
            assert_eq!(machine.reads(machine_mode, *csr), None, "{missing:?} {csr:#x}");
            assert_eq!(machine.reads(Privilege::Supervisor, *csr), None, "{missing:?} {csr:#x}");
        }
    }
    assert_eq!(envcfg::legalize(CDE, Extensions::ALL), CDE);
}

/// Smcdeleg 1.0, table 1, note 4.
#[test]
fn filters_of_fixed_counters_need_smcntrpmf() {
    for present in [false, true] {
        let mut machine = machine(u64::MAX);
        machine.hart.set_extensions(Extensions::ALL.with(Extension::Smcntrpmf, present));
        machine.hart.arch.csrs.menvcfg = CDE;
        for (select, expected) in [(0x40, present), (0x42, present), (0x43, true)] {
            machine.write_csr(SISELECT, select);
            assert_eq!(machine.reads(Privilege::Supervisor, SIREG2).is_some(), expected);
            assert!(machine.reads(Privilege::Supervisor, SIREG).is_some());
        }
    }
}

/// Each window and the machine-level CSR that it is.
#[test]
fn windows_are_the_counters_and_their_configuration() {
    let machine_mode = Privilege::Machine;
    let mut machine = machine(u64::MAX);
    // All counters stand still, so that what is read is what was written.
    machine.hart.arch.counters.set_inhibit(u64::MAX);
    let fixed = [(0x40, MCYCLE, MCYCLECFG), (0x42, MINSTRET, MINSTRETCFG)];
    let programmable = (3..=31).map(|n| (0x40 + n, MCYCLE + n as u16, MHPMEVENT3 - 3 + n as u16));
    for (select, counter, configuration) in fixed.into_iter().chain(programmable) {
        let selector = if select > 0x42 { select } else { 0 };
        machine.write_csr(SISELECT, select);
        machine.write_csr(SIREG, select * 0x1_0000_0001);
        machine.write_csr(SIREG2, SINH | selector);
        assert_eq!(machine.reads(machine_mode, counter), Some(select * 0x1_0000_0001));
        assert_eq!(machine.reads(machine_mode, configuration), Some(SINH | selector));
        assert!(machine.writes(machine_mode, counter, 7));
        assert_eq!(machine.read(SIREG), 7);
        // MINH belongs to machine mode: the window neither shows nor changes it.
        machine.write_csr(SIREG2, MINH | SINH);
        assert_eq!(machine.reads(machine_mode, configuration), Some(SINH));
        assert!(machine.writes(machine_mode, configuration, MINH | SINH | selector));
        assert_eq!(machine.read(SIREG2), SINH | selector);
        machine.write_csr(SIREG2, 0);
        assert_eq!(machine.reads(machine_mode, configuration), Some(MINH));
        // By single bits, too.
        machine.hart.set_reg(2, MINH | SINH);
        assert!(machine.executes(Privilege::Supervisor, csrrs(0, SIREG2, 2)));
        assert_eq!(machine.reads(machine_mode, configuration), Some(MINH | SINH));
    }
    // OF belongs to the supervisor.
    machine.write_csr(SISELECT, COUNTER_3);
    machine.write_csr(SIREG2, OF | 1);
    assert_eq!(machine.read(SCOUNTOVF), 1 << 3);
    machine.write_csr(SIREG2, 1);
    assert_eq!(machine.read(SCOUNTOVF), 0);
}

/// Smcdeleg 1.0, section 2.
#[test]
fn scountinhibit_has_the_bits_of_delegated_counters() {
    let delegated = 1 << 3 | 1 << 5 | 3;
    let mut machine = machine(delegated);
    assert!(machine.writes(Privilege::Machine, MCOUNTINHIBIT, 1 << 4 | 1 << 5));
    for privilege in [Privilege::Supervisor, Privilege::Machine] {
        assert_eq!(machine.reads(privilege, SCOUNTINHIBIT), Some(1 << 5));
    }
    machine.write_csr(SCOUNTINHIBIT, u64::MAX);
    // 1 is sampled instructions.
    assert_eq!(machine.read(SCOUNTINHIBIT), delegated);
    assert_eq!(machine.reads(Privilege::Machine, MCOUNTINHIBIT), Some(1 << 4 | delegated));
    machine.write_csr(SCOUNTINHIBIT, 0);
    assert_eq!(machine.reads(Privilege::Machine, MCOUNTINHIBIT), Some(1 << 4));
    assert_eq!(machine.reads(Privilege::User, SCOUNTINHIBIT), None);
    machine.hart.arch.csrs.menvcfg = 0;
    for privilege in [Privilege::Supervisor, Privilege::Machine] {
        assert_eq!(machine.reads(privilege, SCOUNTINHIBIT), None);
        assert!(!machine.writes(privilege, SCOUNTINHIBIT, 0));
    }
}

/// Sscofpmf 1.0: `mcounteren` decides, delegation changes nothing.
#[test]
fn scountovf_shows_what_may_be_read() {
    let mut machine = machine(1 << 3);
    for event in [number::MHPMEVENT3, number::MHPMEVENT3 + 1] {
        assert!(machine.writes(Privilege::Machine, event, OF));
    }
    for cde in [0, CDE] {
        machine.hart.arch.csrs.menvcfg = cde;
        assert_eq!(machine.read(SCOUNTOVF), 1 << 3);
        assert_eq!(machine.reads(Privilege::Machine, SCOUNTOVF), Some(3 << 3));
    }
}

/// A counter of instructions that runs: one more at each read, whichever way.
#[test]
fn a_running_counter_reads_alike_by_every_number() {
    let mut machine = machine(u64::MAX);
    machine.write_csr(SISELECT, COUNTER_3);
    machine.write_csr(SIREG2, isa::PerfEvent::Instructions.selector().into());
    machine.write(
        RAM_BASE,
        &[
            csrrw(0, SIREG, 0),
            csrr(3, SIREG),
            csrr(4, MHPMCOUNTER3 + 0x100),
            csrr(5, SIREG),
            csrrw(6, SIREG, 0),
            csrr(7, SIREG),
        ],
    );
    machine.hart.set_pc(RAM_BASE);
    machine.steps(6);
    let read = [3, 4, 5, 6, 7].map(|register| machine.x(register));
    assert_eq!(read[1..4], [read[0] + 1, read[0] + 2, read[0] + 3]);
    assert_eq!(read[4], read[0], "as after the first write");
}

/// Debuggers do not see windows of counters, as they do not see the counters themselves, which only the timing model knows.
#[test]
fn debuggers_do_not_count() {
    let mut machine = machine(u64::MAX);
    let Machine { hart, bus } = &mut machine;
    assert!(hart.set_debug_csr(bus, SISELECT, COUNTER_3));
    assert_eq!(hart.debug_csr(bus, SISELECT), Some(COUNTER_3));
    for csr in [SIREG, SIREG2, SCOUNTINHIBIT] {
        assert_eq!(hart.debug_csr(bus, csr), None);
        assert!(!hart.set_debug_csr(bus, csr, 0));
    }
}
