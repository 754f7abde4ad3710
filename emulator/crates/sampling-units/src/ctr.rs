//! Control transfer records (Smctr/Ssctr 1.0, ratified November 2024): the last 16 to 256 jumps, taken branches, traps and trap
//! returns, with the cycles between them, filtered by privilege and kind.
//!
//! ```
//! use sampling_units::ctr::{Kind, Register, TransferRecords, control};
//! use sampling_units::{Passed, StaticKind};
//!
//! let mut records = TransferRecords::default();
//! records.set_privilege(0);
//! records.write(Register::SupervisorControl, control::U);
//! let kind = StaticKind::transfer(Kind::DirectCall);
//! records.passed(&Passed { kind, cycles: 7, ..Passed::at(0x1000) });
//! records.passed(&Passed::at(0x2000));
//! assert_eq!(records.read(Register::Source(0)), 0x1000 | 1);
//! assert_eq!(records.read(Register::Target(0)), 0x2000);
//! ```

mod kind;
mod shared;
#[cfg(test)]
mod tests;

pub use kind::Kind;
pub use shared::SharedTransferRecords;

use crate::{Outcome, Passed};

/// Most records that there can be (`sctrdepth` 4).
pub const MAX_DEPTH: usize = 256;

/// Fields of `mctrctl`, and of `sctrctl`, which lacks [`M`](control::M) and [`MTE`](control::MTE).
pub mod control {
    /// Records transfers in user mode.
    pub const U: u64 = 1 << 0;
    /// Records transfers in supervisor mode.
    pub const S: u64 = 1 << 1;
    /// Records transfers in machine mode.
    pub const M: u64 = 1 << 2;
    /// Keeps a stack of calls: a return takes the last one away.
    pub const RASEMU: u64 = 1 << 7;
    /// Records traps to supervisor mode where that mode is not recorded.
    pub const STE: u64 = 1 << 8;
    /// Records traps to machine mode where that mode is not recorded.
    pub const MTE: u64 = 1 << 9;
    /// A breakpoint freezes the records.
    pub const BPFRZ: u64 = 1 << 11;
    /// The interrupt of a counter's overflow freezes the records.
    pub const LCOFIFRZ: u64 = 1 << 12;
    /// Records branches that are not taken.
    pub const NTBREN: u64 = 1 << 36;
    /// All filters by kind, [`NTBREN`] among them.
    pub const KINDS: u64 = 0xff3e << 32;
    /// Bits that `mctrctl` holds.
    pub const MACHINE: u64 = U | S | M | RASEMU | STE | MTE | BPFRZ | LCOFIFRZ | KINDS;
    /// Bits of `mctrctl` that `sctrctl` shows.
    pub const SUPERVISOR: u64 = MACHINE & !(M | MTE);
}

/// `ctrsource.V`.
const VALID: u64 = 1;
/// `ctrtarget.MISP`.
const MISPREDICTED: u64 = 1;
/// `ctrdata.CCV`.
const CYCLES_VALID: u64 = 1 << 15;
/// `ctrdata.CC`.
const CYCLES_SHIFT: u32 = 16;
/// Bits that `ctrdata` holds.
const DATA: u64 = 0xffff_800f;
/// `sctrstatus.FROZEN`.
const FROZEN: u64 = 1 << 31;

/// A register of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// `mctrctl`.
    MachineControl,
    /// `sctrctl`.
    SupervisorControl,
    /// `sctrdepth`.
    Depth,
    /// `sctrstatus`.
    Status,
    /// `ctrsource` of a logical entry, 0 the youngest.
    Source(u8),
    /// `ctrtarget`.
    Target(u8),
    /// `ctrdata`.
    Data(u8),
}

/// A record, as its three registers show it.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    source: u64,
    target: u64,
    data: u64,
}

snapshot::snapshot!(Record { source, target, data });

/// A transfer whose target is not known yet: the address of the next instruction.
#[derive(Clone, Copy, Debug, Default)]
struct Transfer {
    source: u64,
    /// Address of the instruction behind it in memory.
    following: u64,
    kind: Kind,
    mispredicted: bool,
    /// Privilege of the instruction.
    from: u8,
}

snapshot::snapshot!(Transfer { source, following, kind, mispredicted, from });

/// The records of a hart.
#[derive(Clone, Debug)]
pub struct TransferRecords {
    /// `mctrctl`.
    control: u64,
    /// `sctrdepth`.
    depth: u8,
    /// `sctrstatus.WRPTR`.
    write: u8,
    frozen: bool,
    records: Box<[Record]>,
    /// Privilege of the hart (0 U, 1 S, 3 M).
    privilege: u8,
    open: Option<Transfer>,
    /// Cycles since the last record, without those in privileges that are not recorded.
    cycles: u64,
    /// True if no cycle is missing in `cycles`.
    cycles_valid: bool,
}

snapshot::snapshot!(TransferRecords {
    control,
    depth,
    write,
    frozen,
    records,
    privilege,
    open,
    cycles,
    cycles_valid
});

impl Default for TransferRecords {
    /// After reset: 32 records, which are empty, in machine mode.
    fn default() -> Self {
        Self {
            control: 0,
            depth: 1,
            write: 0,
            frozen: false,
            records: vec![Record::default(); MAX_DEPTH].into(),
            privilege: 3,
            open: None,
            cycles: 0,
            cycles_valid: false,
        }
    }
}

impl TransferRecords {
    /// Returns whether every instruction has to be told: some privilege is recorded, and nothing is frozen.
    pub fn is_active(&self) -> bool {
        self.control & (control::U | control::S | control::M) != 0 && !self.frozen
    }

    /// Returns `mctrctl`.
    pub fn control(&self) -> u64 {
        self.control
    }

    /// Sets the privilege of what passes from now on.
    pub fn set_privilege(&mut self, privilege: u8) {
        self.privilege = privilege;
    }

    /// Takes an instruction that left the ROB. Only while [active](Self::is_active).
    pub fn passed(&mut self, passed: &Passed) {
        self.reach(passed.pc);
        if self.records_in(self.privilege) {
            self.cycles = self.cycles.saturating_add(passed.cycles);
        }
        let kind = match passed.outcome {
            Outcome::Replayed => None,
            Outcome::Exception => Some(Kind::Exception),
            Outcome::Interrupt => Some(Kind::Interrupt),
            Outcome::Retired | Outcome::Mispredicted => passed.kind.kind(),
        };
        self.open = kind.map(|kind| Transfer {
            source: passed.pc,
            following: passed.pc.wrapping_add(passed.kind.bytes().into()),
            kind,
            mispredicted: passed.outcome == Outcome::Mispredicted,
            from: self.privilege,
        });
    }

    /// Adds cycles that the hart slept after what passed last.
    pub fn slept(&mut self, cycles: u64) {
        // Nothing sleeps behind a transfer, unless the hart went on where nobody heard it.
        self.open = None;
        if self.records_in(self.privilege) {
            self.cycles = self.cycles.saturating_add(cycles);
        }
    }

    /// Says that the instruction at `pc` comes next: it is the target of the transfer before.
    pub fn reach(&mut self, pc: u64) {
        if let Some(transfer) = self.open.take() {
            self.close(&transfer, pc);
        }
    }

    /// Freezes the records for the trap that was taken last, which is not recorded.
    pub fn freeze(&mut self) {
        self.open = None;
        self.frozen = true;
    }

    /// Clears the records (`sctrclr`).
    pub fn clear(&mut self) {
        self.records.fill(Record::default());
        self.open = None;
        self.restart_cycles();
    }

    /// Reads a register. All that retired before the read has [passed](Self::passed), and what reads was [reached](Self::reach).
    pub fn read(&self, register: Register) -> u64 {
        let record = |entry| self.physical(entry).map(|place| self.records[place]);
        match register {
            Register::MachineControl => self.control,
            Register::SupervisorControl => self.control & control::SUPERVISOR,
            Register::Depth => self.depth.into(),
            Register::Status => u64::from(self.write) | if self.frozen { FROZEN } else { 0 },
            Register::Source(entry) => record(entry).unwrap_or_default().source,
            Register::Target(entry) => record(entry).unwrap_or_default().target,
            Register::Data(entry) => record(entry).unwrap_or_default().data,
        }
    }

    /// Writes a register, under the conditions of [`Self::read`].
    pub fn write(&mut self, register: Register, value: u64) {
        let kept = match register {
            Register::SupervisorControl => control::MACHINE & !control::SUPERVISOR,
            _ => 0,
        };
        match register {
            Register::MachineControl | Register::SupervisorControl => {
                self.control = self.control & kept | value & control::MACHINE & !kept;
                self.restart_cycles();
            }
            Register::Depth => {
                if value & 7 <= 4 {
                    self.depth = value as u8 & 7;
                    self.write &= self.mask();
                }
            }
            Register::Status => {
                self.write = value as u8 & self.mask();
                self.frozen = value & FROZEN != 0;
            }
            Register::Source(entry) | Register::Target(entry) | Register::Data(entry) => {
                let Some(place) = self.physical(entry) else {
                    return;
                };
                let record = &mut self.records[place];
                match register {
                    Register::Source(_) => record.source = value,
                    Register::Target(_) => record.target = value,
                    _ => record.data = value & DATA,
                }
            }
        }
    }

    fn restart_cycles(&mut self) {
        self.cycles = 0;
        self.cycles_valid = false;
    }

    /// Returns the number of records less one.
    fn mask(&self) -> u8 {
        ((16u32 << self.depth.min(4)) - 1) as u8
    }

    /// Returns the place of a logical entry in `records`, if there is one.
    fn physical(&self, entry: u8) -> Option<usize> {
        (entry <= self.mask()).then(|| {
            let place = self.write.wrapping_sub(entry).wrapping_sub(1);
            usize::from(place & self.mask())
        })
    }

    /// Returns whether transfers in a privilege are recorded.
    fn records_in(&self, privilege: u8) -> bool {
        self.control >> privilege.min(2) & 1 != 0
    }

    /// Returns whether traps from a recorded privilege to one that is not are recorded: the control bits of the latter and of
    /// all between say so.
    fn records_external(&self, from: u8, to: u8) -> bool {
        let supervisor = from != 0 || self.control & control::STE != 0;
        let machine = to != 3 || self.control & control::MTE != 0;
        supervisor && machine
    }

    /// Ends the transfer, which went to `target`, in the privilege that there is now.
    fn close(&mut self, transfer: &Transfer, target: u64) {
        let Transfer { from, kind, .. } = *transfer;
        let (on, target_on) = (self.records_in(from), self.records_in(self.privilege));
        let stack = self.control & control::RASEMU != 0;
        let kind = match kind {
            Kind::Taken if target == transfer.following => Kind::NotTaken,
            kind => kind,
        };
        let mut record = Record {
            source: transfer.source & !VALID,
            target: target & !MISPREDICTED,
            data: kind as u64,
        };
        let wanted = match kind {
            Kind::Exception | Kind::Interrupt if on && !target_on => {
                record.target = 0;
                !stack && self.records_external(from, self.privilege)
            }
            Kind::Exception | Kind::Interrupt => {
                if !on {
                    record.source = 0;
                }
                target_on && self.wants(kind)
            }
            Kind::TrapReturn => {
                if !target_on {
                    record.target = 0;
                }
                on && self.wants(kind)
            }
            _ => on && self.wants(kind),
        };
        if !wanted {
            return;
        }
        record.source |= VALID;
        if transfer.mispredicted {
            record.target |= MISPREDICTED;
        }
        match kind {
            Kind::Return if stack => self.pop(),
            Kind::CoroutineSwap if stack => {
                self.pop();
                self.push(record);
            }
            _ => self.push(record),
        }
    }

    /// Returns whether the filters let a kind through.
    fn wants(&self, kind: Kind) -> bool {
        if self.control & control::RASEMU != 0 {
            return matches!(
                kind,
                Kind::IndirectCall | Kind::DirectCall | Kind::Return | Kind::CoroutineSwap
            );
        }
        let bit = self.control >> (32 + kind as u32) & 1 != 0;
        bit == (kind == Kind::NotTaken)
    }

    fn push(&mut self, mut record: Record) {
        record.data |= compress(self.cycles) << CYCLES_SHIFT;
        if self.cycles_valid {
            record.data |= CYCLES_VALID;
        }
        self.records[usize::from(self.write)] = record;
        self.write = self.write.wrapping_add(1) & self.mask();
        self.cycles = 0;
        self.cycles_valid = true;
    }

    /// Takes the youngest call away. Its cycles go to the next record, whose count begins with the call before.
    fn pop(&mut self) {
        self.write = self.write.wrapping_sub(1) & self.mask();
        let call = &mut self.records[usize::from(self.write)];
        self.cycles = (self.cycles).saturating_add(expand(call.data >> CYCLES_SHIFT));
        self.cycles_valid &= call.data & CYCLES_VALID != 0;
        call.source &= !VALID;
    }
}

/// Returns cycles as `ctrdata.CC` has them: an exponent of 4 bits over a mantissa of 12.
fn compress(cycles: u64) -> u64 {
    match cycles.checked_ilog2().unwrap_or(0) {
        0..=11 => cycles,
        top @ 12..=26 => u64::from(top - 11) << 12 | cycles >> (top - 12) & 0xfff,
        _ => 0xffff,
    }
}

/// Returns the least number of cycles that `ctrdata.CC` shows in this way.
fn expand(compressed: u64) -> u64 {
    let (exponent, mantissa) = (compressed >> 12 & 15, compressed & 0xfff);
    match exponent {
        0 => mantissa,
        _ => (1 << 12 | mantissa) << (exponent - 1),
    }
}
