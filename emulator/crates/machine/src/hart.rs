//! The hart: architectural state, and what it needs at hand to execute quickly.

mod activity;
mod arch;
mod atomics;
mod attachments;
mod check;
mod deadlines;
mod debug;
mod decoded;
mod fetch;
mod host_call;
mod host_translations;
mod instruction;
mod memory;
mod onlooker;
mod path_log;
mod run;
mod run_buffer;
mod stuck;
mod timed;
mod timed_run;
mod together;
mod translated;
mod trap;
mod untimed;

use std::cell::Cell;
use std::rc::Rc;

use devices::Bus;
use isa::{Extension, Extensions, Privilege, Reg};
use sampling_units::SharedUnits;
use snapshot::{Archive, Snapshot};

use crate::csr::{LAMBIP, envcfg, status};
use crate::mmu_tlb::Rights;
use crate::sampling::Sampling;

use arch::{ArchState, Progress};
use attachments::Attachments;
use deadlines::Deadlines;
use decoded::DecodedCode;
use host_translations::HostTranslations;
use instruction::{InstructionBeingTimed, Turns};
use translated::TranslatedCode;

pub(crate) use deadlines::after;
pub use debug::{DebugStop, Watchpoint};
pub(crate) use fetch::Spaces;
pub use host_call::{Caller, HostCalls, HostResult};
pub use onlooker::{GuestView, Onlooker};
pub use run::{Limit, Mark, RunExit};
pub(crate) use run_buffer::{Accesses, RunBuffer, RunLength};
pub use stuck::{Stuck, TakenException};
pub use together::{run_paced_together, run_timed_together, run_together};
pub use translated::Translate;

/// What the machine lends to an executing instruction.
pub(crate) struct Env<'a, T> {
    pub bus: &'a mut Bus,
    pub timing: &'a mut T,
}

/// Where an instruction stands.
#[derive(Clone, Copy)]
pub(crate) struct InstPosition {
    /// Virtual address of the instruction.
    pub pc: u64,
    /// Number of instructions attempted before it; see [`Progress::count`].
    pub count: u64,
}

/// One RV64GC hart with M, S and U mode, Sv39 and Sv48, Sscofpmf, and the extensions that it is set to.
///
/// In memory the groups are in this order: registers at offset 0, and what the loops compare for each run side by side.
#[repr(C)]
pub struct Hart {
    /// What software can see.
    pub(crate) arch: ArchState,
    /// Instructions and cycles so far.
    pub(crate) progress: Progress,
    /// When the loops leave their fast paths, and what the last instruction left to do.
    pub(crate) deadlines: Deadlines,
    /// What the timing model gets of the current instruction or run.
    pub(crate) instruction: InstructionBeingTimed,
    /// Where the hart stands among others with which it takes turns.
    pub(crate) turns: Turns,
    /// Host pointers and decoded pages by virtual address.
    pub(crate) host: HostTranslations,
    /// Decoded instructions and their numbers.
    pub(crate) decoded: DecodedCode,
    /// Host code for hot guest code.
    pub(crate) translations: TranslatedCode,
    /// Registers of the sampling units.
    pub(crate) sampling: Sampling,
    /// What the host attached to the hart.
    pub(crate) attachments: Attachments,
    /// Extensions that the hart implements beyond RV64GC.
    pub(crate) extensions: Extensions,
    id: usize,
}

/// What software can see of the hart, between runs, and what a timed run goes on with. Caches fill up again; addresses of the
/// host are found anew at the start of a run.
impl Snapshot for Hart {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        let Self {
            id,
            arch,
            progress,
            deadlines,
            turns,
            sampling,
            attachments,
            // Worked out from the others, or for one run.
            instruction: _,
            host: _,
            decoded: _,
            translations: _,
            // How the hart was set up.
            extensions: _,
        } = self;
        archive.same("hart", &id.to_string())?;
        arch.snapshot(archive)?;
        progress.snapshot(archive)?;
        deadlines.snapshot(archive)?;
        turns.snapshot(archive)?;
        sampling.snapshot(archive)?;
        attachments.snapshot(archive)?;
        self.set_pc(self.pc());
        self.update_rights();
        Ok(())
    }
}

impl Hart {
    /// Hart number `id` after reset: in machine mode, at the start of RAM.
    pub fn new(id: usize) -> Self {
        Self {
            arch: ArchState::new(),
            progress: Progress::default(),
            deadlines: Deadlines::new(),
            instruction: InstructionBeingTimed::new(),
            turns: Turns::default(),
            host: HostTranslations::new(),
            decoded: DecodedCode::new(id),
            translations: TranslatedCode::new(),
            sampling: Sampling::default(),
            attachments: Attachments::default(),
            extensions: Extensions::ALL,
            id,
        }
    }

    /// Makes it what it was when it was new, its debugger's orders and its ties to devices aside; without a translator.
    pub fn renew(&mut self) {
        let old = std::mem::replace(self, Self::new(self.id));
        self.set_extensions(old.extensions);
        self.attachments.renew(old.attachments);
        self.sampling.renew(old.sampling);
    }

    /// Number of the hart (`mhartid`).
    pub fn id(&self) -> usize {
        self.id
    }

    /// Says what it implements beyond RV64GC; everything, after reset. Before its first run.
    pub fn set_extensions(&mut self, extensions: Extensions) {
        self.extensions = extensions;
        // Firmware that knows nothing of it finds it on, as a machine with Svadu but not Svade in its device tree has it
        // (Linux's riscv/extensions.yaml; QEMU does the same).
        let adue = extensions.has(Extension::Svadu);
        self.arch.csrs.menvcfg = u64::from(adue) * envcfg::ADUE;
        if !extensions.has(Extension::Smpdis) {
            self.arch.csrs.mideleg &= !LAMBIP;
        }
    }

    /// Reserves static instruction ids below `count`, which an earlier stream used; new ids start at `count`.
    pub fn skip_ids(&mut self, count: usize) {
        self.decoded.code.encodings.resize(count, 0);
    }

    /// Virtual address of the next instruction.
    pub fn pc(&self) -> u64 {
        self.arch.pc
    }

    /// Sets the address of the next instruction; bit 0 is dropped.
    pub fn set_pc(&mut self, pc: u64) {
        self.arch.pc = pc & !1;
    }

    /// Reads a register: 0–31 `x0`–`x31`, 32–63 `f0`–`f31`; others read as zero.
    pub fn reg(&self, reg: Reg) -> u64 {
        self.arch.registers.0[usize::from(reg)]
    }

    /// Writes a register; `x0` and numbers above 63 stay zero.
    pub fn set_reg(&mut self, reg: Reg, value: u64) {
        if (1..64).contains(&reg) {
            self.arch.registers.0[usize::from(reg)] = value;
        }
    }

    /// Gives every privilege all of memory, by entry 0 of the PMP: as Spike resets a hart, for the sake of programs that
    /// know nothing of protection.
    pub fn permit_all_memory(&mut self) {
        self.arch.pmp.set_address(0, u64::MAX);
        self.arch.pmp.set_config(0, 0x1f);
        self.host.flush();
    }

    /// Returns the current privilege.
    pub fn privilege(&self) -> Privilege {
        self.arch.privilege
    }

    /// Returns whether the hart sleeps in `wfi`.
    pub fn is_asleep(&self) -> bool {
        self.arch.waiting
    }

    /// Returns the cycles since reset, at the end of the last run.
    pub fn cycle(&self) -> u64 {
        self.progress.cycle
    }

    /// Returns the number of instructions retired since reset.
    pub fn instructions(&self) -> u64 {
        self.progress.retired()
    }

    /// Returns the current value of `satp`.
    pub fn satp(&self) -> u64 {
        self.arch.csrs.satp.0
    }

    /// Returns a cell through which a device tells the hart that the guest switched to another program: user code with another
    /// tag is another address space in a timed run. The cell is read after every access to a device register.
    pub fn guest_tag(&self) -> Rc<Cell<u64>> {
        self.attachments.guest_tag.clone()
    }

    /// Returns the hart's sampling units, which its commit stage tells what passes.
    pub fn sampling_units(&self) -> SharedUnits {
        self.sampling.units.clone()
    }

    /// Sets the tag of the guest's program from outside a run.
    pub fn set_guest_tag(&mut self, tag: u64) {
        self.attachments.guest_tag.set(tag);
        self.adopt_guest_tag();
    }

    /// Lets runs end with [`RunExit::Region`] after each [`Mark`], so that the caller can note it and go
    /// on in another mode. Off at reset: then marks have no effect.
    pub fn stop_at_regions(&mut self, stop: bool) {
        self.attachments.stop_at_regions = stop;
    }

    /// Notes that a region trigger was executed.
    pub(crate) fn region(&mut self, mark: Mark) {
        self.deadlines.last_mark = mark.number();
        if self.attachments.stop_at_regions {
            self.deadlines.afterwards(after::REGION);
        }
    }

    /// Writes an integer or FP register from an instruction, or [`NOWHERE`].
    #[inline(always)]
    pub(crate) fn put(&mut self, reg: Reg, value: u64) {
        debug_assert_ne!(reg, 0, "decoded to NOWHERE");
        self.arch.registers.0[usize::from(reg)] = value;
    }

    #[inline(always)]
    pub(crate) fn get(&self, reg: Reg) -> u64 {
        self.arch.registers.0[usize::from(reg)]
    }

    /// Works out the rights of data accesses after `mstatus` or the privilege changed.
    pub(crate) fn update_rights(&mut self) {
        let mstatus = self.arch.csrs.mstatus;
        self.host.data_privilege =
            if mstatus & status::MPRV != 0 { self.arch.csrs.mpp() } else { self.arch.privilege };
        self.host.rights = match self.host.data_privilege {
            Privilege::User => Rights::User,
            Privilege::Supervisor if mstatus & status::SUM != 0 => Rights::SupervisorSum,
            Privilege::Supervisor => Rights::Supervisor,
            Privilege::Machine => Rights::Machine,
        };
    }
}

#[cfg(test)]
mod tests;
