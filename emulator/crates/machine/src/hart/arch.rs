//! Architectural state of a hart, and how far it has come.

use devices::RAM_BASE;
use isa::{NOWHERE, Privilege};
use snapshot::{Archive, Snapshot};

use super::atomics::Reservation;
use crate::counters::Counters;
use crate::csr::Csrs;
use crate::pmp::Pmp;

/// Integer and FP registers by their unified number. Only 64 exist: with 256 places, any [`isa::Reg`] is in bounds.
pub(crate) struct Registers(pub [u64; 256]);

/// Saves and loads the registers that exist.
impl Snapshot for Registers {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        self.0[..usize::from(NOWHERE)].snapshot(archive)?;
        self.0[0] = 0;
        Ok(())
    }
}

impl Registers {
    /// Returns the integer registers, `x0` to `x31`.
    pub(crate) fn integer(&self) -> &[u64; 32] {
        self.0.first_chunk().expect("it has 256")
    }
}

/// What software can see of a hart, but for time, counts of events and the registers of its sampling units. Registers come
/// first in memory.
#[repr(C)]
pub(crate) struct ArchState {
    /// Integer and FP registers.
    pub registers: Registers,
    /// Virtual address of the next instruction; in the loops, which keep it in a host register, that of an earlier one.
    pub pc: u64,
    /// Present privilege.
    pub privilege: Privilege,
    /// True while the hart sleeps in `wfi`.
    pub waiting: bool,
    /// Interrupt lines as last seen, as bits of `mip`.
    pub lines: u64,
    /// Address and value that load-reserved read, until store-conditional.
    pub reservation: Option<Reservation>,
    /// Control and status registers that are storage.
    pub csrs: Csrs,
    /// Physical memory protection.
    pub pmp: Pmp,
    /// Programmable counters.
    pub counters: Counters,
}

snapshot::snapshot!(ArchState {
    registers,
    pc,
    privilege,
    waiting,
    lines,
    reservation,
    csrs,
    pmp,
    counters
});

impl ArchState {
    /// Returns the state after reset: in machine mode, at the start of RAM.
    pub(crate) fn new() -> Self {
        Self {
            registers: Registers([0; 256]),
            pc: RAM_BASE,
            privilege: Privilege::Machine,
            waiting: false,
            lines: 0,
            reservation: None,
            csrs: Csrs::new(),
            pmp: Pmp::new(),
            counters: Counters::new(),
        }
    }
}

/// How far a hart has come since reset.
#[derive(Default)]
pub(crate) struct Progress {
    /// Number of instructions attempted since reset, plus, as long as runs are untimed, cycles slept: then it is the current
    /// cycle.
    pub count: u64,
    /// `count` minus the instructions that retired, modulo 2^64.
    pub not_retired: u64,
    /// Cycle at the end of the last run.
    pub cycle: u64,
    /// True if the run, or between runs the last one, is timed.
    pub timed: bool,
    /// True if the run, or between runs the last one, had a pace of its own ([`isa::TimingModel::PACED`]).
    pub paced: bool,
}

snapshot::snapshot!(Progress { count, not_retired, cycle, timed } keeps { paced });

impl Progress {
    /// Returns the number of instructions retired since reset.
    pub(crate) fn retired(&self) -> u64 {
        self.count.wrapping_sub(self.not_retired)
    }

    /// Lets cycles pass in which an untimed hart sleeps: [`Self::count`] stays the current cycle.
    pub(crate) fn sleep(&mut self, cycles: u64) {
        self.count += cycles;
        self.not_retired = self.not_retired.wrapping_add(cycles);
    }
}
