//! The hart: architectural state, and what it needs at hand to execute quickly.

mod activity;
mod atomics;
mod check;
mod debug;
mod fetch;
mod host_call;
mod memory;
mod onlooker;
mod run;
mod run_buffer;
mod stuck;
mod timed;
mod timed_run;
mod together;
mod translated;
mod trap;
mod untimed;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use devices::{Bus, RAM_BASE};
use isa::{Executed, Extension, Extensions, MemAccess, NOWHERE, Operand, Privilege, Reg, StaticId};
use sampling_units::SharedUnits;
use snapshot::{Archive, Snapshot};
use translator::{Frame, Translator};

use crate::code_cache::{CodeCache, CodePage, NEVER};
use crate::counters::Counters;
use crate::csr::{Csrs, LAMBIP, envcfg, status};
use crate::mmu_tlb::{DataTlb, FetchTlb, Rights, Superpages};
use crate::pmp::Pmp;
use crate::sampling::Sampling;

pub use debug::{DebugStop, Watchpoint};
pub(crate) use fetch::Spaces;
pub use host_call::{Caller, HostCalls, HostResult};
pub use onlooker::{GuestView, Onlooker};
pub use run::{Limit, Mark, RunExit};
pub(crate) use run_buffer::{Accesses, RunBuffer, RunLength};
pub use stuck::{Stuck, TakenException};
pub use together::{run_timed_together, run_together};
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
    /// Number of instructions attempted before it; see [`Hart::count`].
    pub count: u64,
}

/// Bits of [`Hart::after`]: what is left to do once the instruction has retired.
pub(crate) mod after {
    /// The privilege changed.
    pub const PRIVILEGE: u16 = 1;
    /// Translations changed.
    pub const TRANSLATION: u16 = 2;
    /// `wfi` was executed.
    pub const WAIT: u16 = 4;
    /// An interrupt may have become pending or enabled.
    pub const INTERRUPTS: u16 = 8;
    /// A device register was accessed, or a watched page written.
    pub const DEVICE: u16 = 16;
    /// A region trigger was executed, and the run shall end there.
    pub const REGION: u16 = 32;
    /// The run ends for the debugger.
    pub const DEBUG: u16 = 64;
    /// Exceptions repeat themselves without end, and the run ends for that.
    pub const STUCK: u16 = 128;
    /// A trap was taken that freezes the control transfer records.
    pub const FREEZE: u16 = 256;
}

/// One RV64GC hart with M, S and U mode, Sv39 and Sv48, Sscofpmf, and the extensions that it is set to.
pub struct Hart {
    /// Registers by their unified number. Only 64 exist: with 256 places, any [`Reg`] is in bounds.
    pub(crate) regs: [u64; 256],
    pub(crate) load_tlb: DataTlb,
    pub(crate) store_tlb: DataTlb,
    /// Rights of data accesses, from the privilege and `mstatus`.
    pub(crate) rights: Rights,
    /// Cycle in which the loop leaves its fast path.
    pub(crate) check_at: u64,
    /// Cycle of the next thing that is known to happen; `check_at` may be earlier.
    pub(crate) due: u64,
    pub(crate) after: u16,
    /// What is known of the current instruction; the hart fills it in and passes it to the timing model.
    pub(crate) executed: Executed,
    /// Data access of the current instruction, and those before it in its run.
    pub(crate) accesses: Accesses,
    /// Cycle in which the current instruction was decoded; if this is before `exact_from`, it may be later than the real one.
    pub(crate) decoded_at: u64,
    pub(crate) exact_from: u64,
    /// True if the hart takes turns with others under a timing model. Then `reached` is the cycle that the hart has come
    /// to, and before `alone_until`, nothing younger is decoded than the instruction that has the machine to itself.
    pub(crate) in_turns: bool,
    pub(crate) reached: u64,
    pub(crate) alone_until: u64,
    /// Room for instructions that are executed and not timed yet. `None` while they are executed: whatever has to be
    /// seen in its cycle must wait.
    pub(crate) run: Option<Box<RunBuffer>>,
    /// Physical address minus host address of RAM.
    pub(crate) host_to_pa: u64,

    pub(crate) pc: u64,
    pub(crate) privilege: Privilege,
    /// Privilege of data accesses (`mstatus.MPRV`).
    pub(crate) data_privilege: Privilege,
    /// Number of instructions attempted since reset, plus, as long as runs are untimed, cycles slept: then it is the current
    /// cycle.
    pub(crate) count: u64,
    /// `count` minus the instructions that retired, modulo 2^64.
    pub(crate) not_retired: u64,
    /// Cycle at the end of the last run.
    pub(crate) cycle: u64,
    /// Value of `count` at which the run ends.
    pub(crate) stop_count: u64,
    /// Cycle at which the run ends.
    pub(crate) stop_cycle: u64,
    /// True if the run is timed.
    pub(crate) timed: bool,
    /// True while the hart sleeps in `wfi`.
    pub(crate) waiting: bool,
    /// True if runs end at region triggers.
    pub(crate) stop_at_regions: bool,
    /// Number of the last [`Mark`] at which a run had to end.
    pub(crate) last_mark: u8,
    pub(crate) csrs: Csrs,
    pub(crate) pmp: Pmp,
    pub(crate) counters: Counters,
    pub(crate) sampling: Sampling,
    /// Cycle before which no counter overflows.
    pub(crate) counters_due: u64,
    /// Cycle at which `time` reaches `stimecmp`.
    pub(crate) stimer_at: u64,
    /// Interrupt lines as last seen.
    pub(crate) lines: u64,
    pub(crate) reservation: Option<atomics::Reservation>,
    pub(crate) fetch_tlb: FetchTlb,
    pub(crate) superpages: Superpages,
    pub(crate) code: CodeCache,
    /// Number of the last news of pages that the hart has heard, see [`devices::News`].
    pub(crate) news_read: u64,
    pub(crate) spaces: Spaces,
    /// State that the hart shares with translated code: TLB pointers, limits, FP state.
    pub(crate) frame: Frame,
    /// What functions that translated code calls work with.
    pub(crate) fallback_context: translated::FallbackContext,
    /// Translates hot code.
    pub(crate) translator: Option<Box<Translator>>,
    /// Arrivals that make a slot hot, in untimed runs and in timed ones.
    pub(crate) hot_after: u16,
    pub(crate) hot_in_runs_after: u16,
    pub(crate) debug: debug::Debug,
    pub(crate) exceptions: stuck::Exceptions,
    /// Number of times that the hart entered user mode since it was made.
    pub(crate) user_entries: u64,
    /// The last page that was fetched from one instruction at a time; it is never filled.
    pub(crate) strict_page: Rc<CodePage>,
    /// Extensions that the hart implements beyond RV64GC.
    pub(crate) extensions: Extensions,
    /// Carries out the calls of programs that know RISC-V semihosting; without it, they are breakpoints.
    pub host_calls: Option<Rc<RefCell<dyn HostCalls>>>,
    /// Looks at the guest in timed runs, from [`count`](Self::count) `look_at` on.
    onlooker: Option<Box<dyn Onlooker>>,
    pub(crate) look_at: u64,
    guest_tag: Rc<Cell<u64>>,
    id: usize,
}

/// What software can see of the hart, between runs, and what a timed run goes on with. Caches fill up again; addresses of the
/// host are found anew at the start of a run.
impl Snapshot for Hart {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        let Self {
            regs,
            after,
            pc,
            privilege,
            count,
            not_retired,
            cycle,
            reached,
            due,
            timed,
            waiting,
            last_mark,
            csrs,
            pmp,
            counters,
            sampling,
            counters_due,
            stimer_at,
            lines,
            reservation,
            guest_tag,
            id,
            // Worked out from the others, or for one run.
            data_privilege: _,
            rights: _,
            check_at: _,
            executed: _,
            accesses: _,
            decoded_at: _,
            exact_from: _,
            alone_until: _,
            run: _,
            host_to_pa: _,
            stop_count: _,
            stop_cycle: _,
            load_tlb: _,
            store_tlb: _,
            fetch_tlb: _,
            superpages: _,
            code: _,
            news_read: _,
            spaces: _,
            frame: _,
            fallback_context: _,
            strict_page: _,
            // How the hart was set up.
            in_turns: _,
            stop_at_regions: _,
            translator: _,
            hot_after: _,
            hot_in_runs_after: _,
            debug: _,
            exceptions: _,
            user_entries: _,
            extensions: _,
            host_calls: _,
            onlooker: _,
            look_at: _,
        } = self;
        archive.same("hart", &id.to_string())?;
        regs[..usize::from(NOWHERE)].snapshot(archive)?;
        after.snapshot(archive)?;
        pc.snapshot(archive)?;
        privilege.snapshot(archive)?;
        count.snapshot(archive)?;
        not_retired.snapshot(archive)?;
        cycle.snapshot(archive)?;
        reached.snapshot(archive)?;
        due.snapshot(archive)?;
        timed.snapshot(archive)?;
        waiting.snapshot(archive)?;
        last_mark.snapshot(archive)?;
        csrs.snapshot(archive)?;
        pmp.snapshot(archive)?;
        counters.snapshot(archive)?;
        sampling.snapshot(archive)?;
        counters_due.snapshot(archive)?;
        stimer_at.snapshot(archive)?;
        lines.snapshot(archive)?;
        reservation.snapshot(archive)?;
        guest_tag.snapshot(archive)?;
        regs[0] = 0;
        *pc &= !1;
        self.update_rights();
        Ok(())
    }
}

impl Hart {
    /// Hart number `id` after reset: in machine mode, at the start of RAM.
    pub fn new(id: usize) -> Self {
        Self {
            regs: [0; 256],
            load_tlb: DataTlb::new(),
            store_tlb: DataTlb::new(),
            rights: Rights::Machine,
            check_at: 0,
            due: 0,
            after: 0,
            executed: Executed {
                id: StaticId(0),
                inst: isa::decode(0),
                pc: 0,
                fetch_pa: 0,
                next_pc: 0,
                mem: MemAccess::default(),
                operand: Operand::default(),
                privilege: Privilege::Machine,
                trap: None,
                translated: false,
            },
            accesses: Accesses::default(),
            decoded_at: 0,
            exact_from: 0,
            in_turns: false,
            reached: 0,
            alone_until: 0,
            run: Some(Box::default()),
            host_to_pa: 0,
            pc: RAM_BASE,
            privilege: Privilege::Machine,
            data_privilege: Privilege::Machine,
            count: 0,
            not_retired: 0,
            cycle: 0,
            stop_count: 0,
            stop_cycle: 0,
            timed: false,
            waiting: false,
            stop_at_regions: false,
            last_mark: 0,
            csrs: Csrs::new(),
            pmp: Pmp::new(),
            counters: Counters::new(),
            sampling: Sampling::default(),
            counters_due: u64::MAX,
            stimer_at: u64::MAX,
            lines: 0,
            reservation: None,
            news_read: 0,
            fetch_tlb: FetchTlb::new(),
            superpages: Superpages::new(),
            code: CodeCache::new(id),
            spaces: Spaces::new(),
            frame: Frame::default(),
            fallback_context: translated::FallbackContext::default(),
            translator: None,
            hot_after: NEVER,
            hot_in_runs_after: NEVER,
            debug: debug::Debug::default(),
            exceptions: stuck::Exceptions::default(),
            user_entries: 0,
            strict_page: CodePage::uncached(0),
            extensions: Extensions::ALL,
            host_calls: None,
            onlooker: None,
            look_at: u64::MAX,
            guest_tag: Rc::new(Cell::new(0)),
            id,
        }
    }

    /// Makes it what it was when it was new, its debugger's orders and its ties to devices aside; without a translator.
    pub fn renew(&mut self) {
        let old = std::mem::replace(self, Self::new(self.id));
        self.set_extensions(old.extensions);
        self.stop_at_regions = old.stop_at_regions;
        self.debug = old.debug;
        self.exceptions = old.exceptions;
        self.user_entries = old.user_entries;
        self.host_calls = old.host_calls;
        self.set_onlooker(old.onlooker);
        self.guest_tag = old.guest_tag;
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
        self.csrs.menvcfg = u64::from(adue) * envcfg::ADUE;
        if !extensions.has(Extension::Smpdis) {
            self.csrs.mideleg &= !LAMBIP;
        }
    }

    /// Reserves static instruction ids below `count`, which an earlier stream used; new ids start at `count`.
    pub fn skip_ids(&mut self, count: usize) {
        self.code.encodings.resize(count, 0);
    }

    /// Virtual address of the next instruction.
    pub fn pc(&self) -> u64 {
        self.pc
    }

    /// Sets the address of the next instruction; bit 0 is dropped.
    pub fn set_pc(&mut self, pc: u64) {
        self.pc = pc & !1;
    }

    /// Reads a register: 0–31 `x0`–`x31`, 32–63 `f0`–`f31`; others read as zero.
    pub fn reg(&self, reg: Reg) -> u64 {
        self.regs[usize::from(reg)]
    }

    /// Writes a register; `x0` and numbers above 63 stay zero.
    pub fn set_reg(&mut self, reg: Reg, value: u64) {
        if (1..64).contains(&reg) {
            self.regs[usize::from(reg)] = value;
        }
    }

    /// Gives every privilege all of memory, by entry 0 of the PMP: as Spike resets a hart, for the sake of programs that
    /// know nothing of protection.
    pub fn permit_all_memory(&mut self) {
        self.pmp.set_address(0, u64::MAX);
        self.pmp.set_config(0, 0x1f);
        self.flush_translations();
    }

    /// Returns the current privilege.
    pub fn privilege(&self) -> Privilege {
        self.privilege
    }

    /// Returns whether the hart sleeps in `wfi`.
    pub fn is_asleep(&self) -> bool {
        self.waiting
    }

    /// Returns the cycles since reset, at the end of the last run.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Returns the number of instructions retired since reset.
    pub fn instructions(&self) -> u64 {
        self.count.wrapping_sub(self.not_retired)
    }

    /// Returns the current value of `satp`.
    pub fn satp(&self) -> u64 {
        self.csrs.satp.0
    }

    /// Returns a cell through which a device tells the hart that the guest switched to another program: user code with another
    /// tag is another address space in a timed run. The cell is read after every access to a device register.
    pub fn guest_tag(&self) -> Rc<Cell<u64>> {
        self.guest_tag.clone()
    }

    /// Returns the hart's sampling units, which its commit stage tells what passes.
    pub fn sampling_units(&self) -> SharedUnits {
        self.sampling.units.clone()
    }

    /// Sets the tag of the guest's program from outside a run.
    pub fn set_guest_tag(&mut self, tag: u64) {
        self.guest_tag.set(tag);
        self.adopt_guest_tag();
    }

    /// Lets runs end with [`RunExit::Region`] after each [`Mark`], so that the caller can note it and go
    /// on in another mode. Off at reset: then marks have no effect.
    pub fn stop_at_regions(&mut self, stop: bool) {
        self.stop_at_regions = stop;
    }

    /// Notes that a region trigger was executed.
    pub(crate) fn region(&mut self, mark: Mark) {
        self.last_mark = mark.number();
        if self.stop_at_regions {
            self.afterwards(after::REGION);
        }
    }

    /// Writes an integer or FP register from an instruction, or [`NOWHERE`].
    #[inline(always)]
    pub(crate) fn put(&mut self, reg: Reg, value: u64) {
        debug_assert_ne!(reg, 0, "decoded to NOWHERE");
        self.regs[usize::from(reg)] = value;
    }

    #[inline(always)]
    pub(crate) fn get(&self, reg: Reg) -> u64 {
        self.regs[usize::from(reg)]
    }

    /// Works out the rights of data accesses after `mstatus` or the privilege changed.
    pub(crate) fn update_rights(&mut self) {
        let mstatus = self.csrs.mstatus;
        self.data_privilege =
            if mstatus & status::MPRV != 0 { self.csrs.mpp() } else { self.privilege };
        self.rights = match self.data_privilege {
            Privilege::User => Rights::User,
            Privilege::Supervisor if mstatus & status::SUM != 0 => Rights::SupervisorSum,
            Privilege::Supervisor => Rights::Supervisor,
            Privilege::Machine => Rights::Machine,
        };
    }

    /// Asks for [`Self::after`] to be looked at before the next instruction.
    pub(crate) fn afterwards(&mut self, what: u16) {
        self.after |= what;
        self.check_at = 0;
    }

    /// Drops every cached translation.
    pub(crate) fn flush_translations(&mut self) {
        self.load_tlb.flush();
        self.store_tlb.flush();
        self.fetch_tlb.flush();
        self.superpages.clear();
    }
}

#[cfg(test)]
mod tests;
