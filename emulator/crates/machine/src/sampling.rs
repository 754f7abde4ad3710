//! The registers of the sampling units: sampled instructions with their buffer in memory (Smpdis/Sspdis, Ssamb), and overflows
//! of counters attributed to instructions (Sspesa). These drafts give their CSRs no numbers: those in [`crate::csr::number`] are ours.

use isa::{Extension, Privilege, TimingModel};
use sampling_units::SharedUnits;
use sampling_units::ctr::TransferRecords;
use sampling_units::pdis::{Record, Register, SamplingUnits};

use crate::csr::{LAMBIP, LCOFIP, number::*};
use crate::hart::{Env, Hart, after};
use crate::mmu::Access;

/// Least cycles between two checks of a unit.
const MIN_CHECK_INTERVAL: u64 = 32;
/// `mcountinhibit[1]` and `scountovf[1]`.
pub(crate) const PDIS_BIT: u64 = 1 << 1;

/// Returns the register of sampled instructions with this CSR number.
const fn register(number: u16) -> Register {
    match number {
        MPDISCTL => Register::MachineControl,
        SPDISCTL => Register::SupervisorControl,
        SPDISCOUNTER => Register::Counter,
        SPDISEVMASK => Register::EventMask,
        SPDISEVMATCH => Register::EventMatch,
        SPDISFILTER => Register::Filter,
        SPDISAMBCS => Register::BufferControl,
        _ => Register::BufferAddress,
    }
}

/// Record that a window of registers shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Record of the last sampled instruction.
    Sampled,
    /// Record of the instruction to which an overflow is due.
    Precise,
}

/// The hart's side of its sampling units.
pub(crate) struct Sampling {
    /// Units, which the hart shares with its commit stage, if it has one.
    pub units: SharedUnits,
    /// Cycle before which the units make no interrupt pending.
    pub due: u64,
    /// True if the timing model watches counters.
    pub watches_counters: bool,
    /// True if overflows of counters are attributed to instructions.
    pub attributes_overflows: bool,
    /// True if samples of counters are to be recorded in memory.
    pub awaits_samples: bool,
    /// True if an instruction has been fetched, but has not left the ROB: events of its fetch are counted already, and must not be attributed to the
    /// instruction that left last.
    pub fetched: bool,
    /// Number, as the hart's `Progress::count` has it, of the first instruction by which a counter may overflow, less one, if overflows are
    /// attributed.
    pub overflows_at: u64,
}

// Between runs, no instruction has been fetched.
snapshot::snapshot!(Sampling {
    units,
    due,
    watches_counters,
    attributes_overflows,
    awaits_samples,
    overflows_at
} keeps { fetched });

impl Default for Sampling {
    /// Returns the state after reset.
    fn default() -> Self {
        Self {
            units: SharedUnits::default(),
            due: u64::MAX,
            watches_counters: false,
            attributes_overflows: false,
            awaits_samples: false,
            fetched: false,
            overflows_at: u64::MAX,
        }
    }
}

impl Sampling {
    /// Keeps the units of the old state, which are reset.
    pub(crate) fn renew(&mut self, old: Self) {
        self.units = old.units;
        let SharedUnits { transfer_records, samplers } = &self.units;
        transfer_records.with(|records| *records = TransferRecords::default());
        samplers.with(|units| *units = SamplingUnits::default());
    }
}

impl Hart {
    /// Returns whether the hart has the register, and whether it may access the register now. The privilege that the CSR's number demands is not
    /// checked here.
    pub(crate) fn may_access_sampling(&self, number: u16) -> bool {
        match number {
            // Access to these registers goes with the counters that machine mode delegates.
            SHPMSPC..=SHPMSAMBADDR => {
                let machine = self.arch.privilege == Privilege::Machine;
                let delegated = machine || self.delegated_counters().is_some();
                self.extensions.has(Extension::Sspesa) && delegated
            }
            _ => self.extensions.has(Extension::Smpdis),
        }
    }

    /// Reads a register of the units.
    pub(crate) fn read_sampling<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        number: u16,
        count: u64,
    ) -> u64 {
        self.reach_sampling(env, count);
        self.sampling.units.samplers.with(|units| match number {
            SHPMSPC => units.precise.pc(),
            SHPMSDATA => units.precise.data(),
            SHPMSCTL => units.precise.memory.control(),
            SHPMSAMBCS => units.precise.memory.buffer.control(),
            SHPMSAMBADDR => units.precise.memory.buffer.address(),
            _ => units.instructions.read(register(number)),
        })
    }

    /// Returns a word of the record that a window shows: `sireg` is word 0.
    pub(crate) fn read_sample<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        (shown, word): (Shown, usize),
        count: u64,
    ) -> u64 {
        self.reach_sampling(env, count);
        let record = self.sampling.units.samplers.with(|units| match shown {
            Shown::Sampled => *units.instructions.held(),
            Shown::Precise => *units.precise.record(),
        });
        self.words(env, &record).get(word).copied().unwrap_or(0)
    }

    /// Writes a register of the units.
    pub(crate) fn write_sampling<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        number: u16,
        value: u64,
        count: u64,
    ) {
        self.change_sampling(env, count, |units| match number {
            SHPMSPC => units.precise.set_pc(value & !1),
            SHPMSDATA => units.precise.set_data(value),
            SHPMSCTL => units.precise.memory.set_control(value),
            SHPMSAMBCS => units.precise.memory.buffer.set_control(value),
            SHPMSAMBADDR => units.precise.memory.buffer.set_address(value),
            _ => units.instructions.write(register(number), value),
        });
        self.watch_counters(env, count);
    }

    /// Stops or starts the sampling of instructions by `mcountinhibit` or `scountinhibit`.
    pub(crate) fn inhibit_sampling<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        value: u64,
        count: u64,
    ) {
        let inhibited = value & PDIS_BIT != 0;
        let is = |units: &mut SamplingUnits| units.instructions.is_inhibited();
        if self.extensions.has(Extension::Smpdis)
            && self.sampling.units.samplers.with(is) != inhibited
        {
            self.change_sampling(env, count, |units| units.instructions.inhibit(inhibited));
        }
    }

    /// Returns [`PDIS_BIT`] of `mcountinhibit`, which is set if the sampling of instructions is inhibited.
    pub(crate) fn sampling_inhibited(&self) -> u64 {
        let inhibited =
            self.sampling.units.samplers.with(|units| units.instructions.is_inhibited());
        if inhibited { PDIS_BIT } else { 0 }
    }

    /// Returns [`PDIS_BIT`] of `scountovf`, which is set if an instruction was sampled.
    pub(crate) fn sampling_overflowed<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        count: u64,
    ) -> u64 {
        if !self.extensions.has(Extension::Smpdis) {
            return 0;
        }
        self.reach_sampling(env, count);
        let overflowed = self.sampling.units.samplers.with(|units| units.instructions.overflowed());
        if overflowed { PDIS_BIT } else { 0 }
    }

    /// Changes the units, after all that retired has passed them.
    fn change_sampling<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        count: u64,
        act: impl FnOnce(&mut SamplingUnits),
    ) {
        self.reach_sampling(env, count);
        let before = self.sampling.units.samplers.is_active();
        let privilege = self.arch.privilege as u8;
        self.sampling.units.samplers.with(|units| {
            units.instructions.set_privilege(privilege);
            act(units);
        });
        let active = self.sampling.units.samplers.is_active();
        if active != before {
            env.timing.observe(active);
        }
        self.sampling.due = 0;
        self.deadlines.afterwards(after::INTERRUPTS);
    }

    /// Brings the units up to date: every instruction that retired has passed them, and their records are in memory. The current instruction passes
    /// them next.
    fn reach_sampling<T: TimingModel>(&mut self, env: &mut Env<'_, T>, count: u64) {
        self.now(env, count);
        let pc = self.instruction.executed.pc;
        self.sampling.units.samplers.with(|units| units.instructions.reach(pc));
        self.sync_counters(env, count);
        if self.sampling.awaits_samples {
            self.record_samples(env, pc, count);
        }
        self.sync_samples(env, count);
    }

    /// Has the units checked at once, since instructions may pass them again.
    pub(crate) fn resume_sampling(&mut self) {
        if self.sampling.units.samplers.is_active() {
            self.sampling.due = 0;
        }
    }

    /// Writes to memory what is on its way, makes the units' interrupts pending, and sets when to look again.
    pub(crate) fn sync_samples<T: TimingModel>(&mut self, env: &mut Env<'_, T>, count: u64) {
        let now = self.now(env, count);
        while let Some((address, record)) =
            self.sampling.units.samplers.with(|units| units.instructions.take_record())
        {
            let words = self.words(env, &record);
            if self.write_words(env, address, words).is_none() {
                self.sampling.units.samplers.with(|units| units.instructions.fault(address));
            }
        }
        let (overflow, buffer, due) = self.sampling.units.samplers.with(|units| {
            let instructions = &mut units.instructions;
            let due = instructions.deadline(now);
            (instructions.take_overflow(), instructions.buffer().take_interrupt(), due)
        });
        if overflow {
            self.arch.csrs.mip_soft |= LCOFIP;
        }
        if buffer {
            self.arch.csrs.mip_soft |= LAMBIP;
        }
        // Nothing passes while the hart sleeps, or is not timed.
        self.sampling.due = match T::TIMED && !self.arch.waiting {
            true if self.sampling.awaits_samples => now.saturating_add(MIN_CHECK_INTERVAL),
            true => due.max(now.saturating_add(MIN_CHECK_INTERVAL)),
            false => u64::MAX,
        };
    }

    /// Writes the words of a record to memory, as supervisor mode would; `None` if it may not.
    pub(crate) fn write_words<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        address: u64,
        words: [u64; 8],
    ) -> Option<()> {
        let privilege = Privilege::Supervisor;
        let (leaf, _) = self.translate(env, address, Access::Store, privilege).ok()?;
        let bytes = size_of_val(&words) as u64;
        let allowed = leaf.pa >> 56 == 0
            && self.arch.pmp.allows(leaf.pa, bytes, Access::Store, privilege)
            && env.bus.ram.contains(leaf.pa, bytes);
        if !allowed {
            return None;
        }
        // The time of these writes is not modelled.
        for (at, word) in (leaf.pa..).step_by(8).zip(words) {
            self.store_ram(env.bus, at, 8, word);
        }
        Some(())
    }

    /// Returns a record's words, with the time in place of the core's cycle; 0: no time is wanted.
    pub(crate) fn words<T: TimingModel>(&self, env: &Env<'_, T>, record: &Record) -> [u64; 8] {
        record.words(match record.cycle {
            0 => 0,
            cycle => env.bus.mtime(cycle),
        })
    }

    /// Tells the timing model which counters to watch, now that counters, units or privilege have changed.
    pub(crate) fn watch_counters<T: TimingModel>(&mut self, env: &mut Env<'_, T>, count: u64) {
        let (attributed, recorded, in_memory) = self.sampling.units.samplers.with(|units| {
            let recorded = units.instructions.recorded_counters();
            let in_memory = units.precise.recorded_counters();
            (units.precise.is_active(), recorded, in_memory)
        });
        // A counter that machine mode keeps for itself is none of the supervisor's.
        let delegated = self.delegated_counters().unwrap_or(u64::MAX) as u32;
        let timed = if T::TIMED { u32::MAX } else { 0 };
        self.arch.counters.set_recorded(in_memory & delegated & timed);
        let wanted = attributed || recorded != 0;
        if !T::TIMED || !wanted && !self.sampling.watches_counters {
            return;
        }
        self.sampling.watches_counters = wanted;
        self.sampling.attributes_overflows = attributed;
        let now = self.now(env, count);
        let mut cycles = Vec::new();
        for (counter, watch) in self.arch.counters.watches().into_iter().enumerate() {
            let number = counter as u8 + 3;
            let watch = watch.filter(|_| attributed || recorded >> number & 1 != 0);
            match watch {
                Some(watch) if watch.selection.is_cycles() => {
                    cycles.extend(attributed.then(|| (now.saturating_add(watch.to_go), number)));
                    env.timing.watch(counter, None);
                }
                _ => env.timing.watch(counter, watch),
            }
        }
        self.sampling.units.samplers.with(|units| units.precise.watch_cycles(cycles.into_iter()));
        self.expect_overflow(count);
    }

    /// Sets up to which instruction no watched counter overflows. The counters are up to date before instruction `count`.
    pub(crate) fn expect_overflow(&mut self, count: u64) {
        let steps = match self.sampling.attributes_overflows {
            true => self.arch.counters.instructions_to_overflow(),
            false => u64::MAX,
        };
        self.sampling.overflows_at = count.saturating_add(steps);
    }

    /// Looks whether an instruction has made a watched counter overflow: the interrupt comes before the next then (Ssplcofi).
    #[cold]
    #[inline(never)]
    pub(crate) fn look_for_overflow<T: TimingModel>(&mut self, env: &mut Env<'_, T>) {
        let pending = self.arch.csrs.mip_soft & LCOFIP;
        self.sync_counters(env, self.progress.count);
        if self.arch.csrs.mip_soft & LCOFIP != pending {
            self.deadlines.afterwards(after::INTERRUPTS);
        }
    }

    /// Attributes overflows of counters (by bit) to the instruction that left last, the best guess where it is not known which
    /// one it was.
    pub(crate) fn attribute_imprecisely(&mut self, overflowed: u32) {
        if !self.sampling.attributes_overflows {
            return;
        }
        if self.arch.counters.any_recorded() {
            self.sampling.units.samplers.with(|units| units.precise.interrupt_instead(overflowed));
        }
        let unknown = |&counter: &usize| {
            let selection = self.arch.counters.selection(counter);
            overflowed >> counter & 1 != 0 && !selection.is_attributable()
        };
        if let Some(counter) = (3..32).find(unknown) {
            self.sampling.units.samplers.with(|units| units.precise.imprecise(counter as u8));
        }
    }

    /// Lets the next overflow be attributed: software has cleared the pending counter overflow.
    pub(crate) fn overflow_cleared(&mut self) {
        if self.sampling.attributes_overflows {
            self.sampling.units.samplers.with(|units| units.precise.release());
        }
    }
}
