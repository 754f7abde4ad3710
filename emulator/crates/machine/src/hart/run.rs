//! Runs: their limits, and what happens before the first and after the last instruction.

use std::rc::Rc;

use devices::{Bus, Exit, RAM_BASE};
use isa::{DecodedInst, InstClass, Op, TimingModel};

use super::arch::Progress;
use super::deadlines::Pace;
use super::{DebugStop, Env, Hart, Stuck, after};
use crate::code_cache::CodePage;
use crate::mmu_tlb::FetchPage;

/// How far to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Instructions to execute in this run, trapped ones included.
    pub instructions: u64,
    /// Cycle since reset at which to stop.
    pub cycle: u64,
}

impl Limit {
    /// A run until the guest ends it.
    pub const NONE: Self = Self { instructions: u64::MAX, cycle: u64::MAX };

    /// Returns a limit of instructions.
    pub const fn instructions(instructions: u64) -> Self {
        Self { instructions, ..Self::NONE }
    }

    /// Returns a limit at a cycle since reset.
    pub const fn cycle(cycle: u64) -> Self {
        Self { cycle, ..Self::NONE }
    }
}

/// Why a run came back. The next run goes on where this one stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunExit {
    /// The limit is reached.
    Limit,
    /// The guest ended the run.
    Exit(Exit),
    /// A [`Mark`] was executed, and [`Hart::stop_at_regions`] is on.
    Region(Mark),
    /// The bus asks for a look of the host: the guest mounts the shared folder, which it has not looked into yet, or a program
    /// misses console input for the first time ([`devices::Bus::unanswered`]).
    Paused,
    /// A breakpoint or a watchpoint was met.
    Debug(DebugStop),
    /// A hart's exceptions repeat themselves without end, and [`Hart::stop_when_stuck`] is on.
    Stuck(Stuck),
    /// The hart sleeps in `wfi` and nothing is scheduled that could wake it: only the host can.
    Idle,
}

impl Hart {
    /// Executes until the limit is reached or the guest ends the run. With [`isa::Untimed`] each
    /// instruction takes one cycle, and cycles slept in `wfi` are skipped. Runs of both kinds can
    /// follow each other; the cycle goes on counting.
    ///
    /// ```
    /// use devices::{Bus, Clock, RAM_BASE};
    /// use machine::{Hart, Limit, RunExit};
    ///
    /// let mut bus = Bus::new(1 << 20, 1, Clock::default())?;
    /// bus.ram.store(RAM_BASE, 4, 0x0050_0513).unwrap(); // li a0, 5
    /// let mut hart = Hart::new(0);
    /// assert_eq!(hart.run(&mut bus, &mut isa::Untimed, Limit::instructions(1)), RunExit::Limit);
    /// assert_eq!((hart.reg(10), hart.cycle()), (5, 1));
    /// # Ok::<(), devices::RamError>(())
    /// ```
    pub fn run<T: TimingModel>(&mut self, bus: &mut Bus, timing: &mut T, limit: Limit) -> RunExit {
        let mut env = Env { bus, timing };
        self.enter(&mut env);
        self.go_on(&mut env, limit)
    }

    /// Executes up to a limit, after [`Self::enter`].
    pub(super) fn go_on<T: TimingModel>(&mut self, env: &mut Env<'_, T>, limit: Limit) -> RunExit {
        let (begins, waited) = (self.progress.count, self.arch.waiting);
        let most = self.attachments.debug.most(limit.instructions);
        self.deadlines.stop_count = self.progress.count.saturating_add(most);
        self.deadlines.stop_cycle = limit.cycle;
        // The world may have changed since the last run.
        self.apply_page_events(&mut env.bus.ram);
        self.deadlines.afterwards(after::DEVICE | after::INTERRUPTS);
        if self.arch.waiting {
            self.deadlines.afterwards(after::WAIT);
        }
        let exit = if T::TIMED { self.run_timed(env) } else { self.run_untimed(env) };
        self.keep_reservation(&mut env.bus.ram);
        self.sync_counters(env, self.progress.count);
        self.progress.cycle = self.now(env, self.progress.count);
        if self.turns.in_turns {
            self.decode_exactly(env);
            let slept = if self.arch.waiting { self.deadlines.stop_cycle } else { 0 };
            let reached = self.instruction.decoded_at.max(self.turns.alone_until).max(slept);
            self.turns.reached = self.turns.reached.max(reached);
        }
        self.debug_stepped(begins, waited && self.arch.waiting, exit)
    }

    /// Begins a run, for which the bus stays borrowed.
    pub(super) fn enter<T: TimingModel>(&mut self, env: &mut Env<'_, T>) {
        if self.sampling.units.transfer_records.is_active() {
            let (pc, privilege) = (self.arch.pc, self.arch.privilege as u8);
            self.sampling.units.transfer_records.with(|records| {
                records.set_privilege(privilege);
                records.reach(pc);
            });
        }
        // Host pointers in the TLBs are valid only while the bus is borrowed.
        self.host.flush();
        self.host.host_to_pa = RAM_BASE.wrapping_sub(env.bus.ram.as_mut_ptr() as u64);
        let was_timed = std::mem::replace(&mut self.progress.timed, T::TIMED);
        if T::TIMED {
            // The boundary between two timed runs leaves no trace in the timing.
            if !was_timed {
                match self.progress.paced {
                    true => env.timing.wake_at(self.progress.cycle),
                    false => env.timing.idle_until(self.progress.cycle),
                }
                self.turns.reached = self.progress.cycle;
                env.timing.privilege(self.arch.privilege);
            }
        } else {
            // `count` is the cycle again, as `Progress::count` says.
            let Progress { count, cycle, .. } = self.progress;
            let rate = if T::PACED { env.timing.warm_rate() } else { 0 };
            // A paced run goes on from the exact fraction of a cycle at which the last one ended, so that where runs end changes nothing.
            let goes_on = T::PACED && !was_timed && self.progress.paced;
            self.deadlines.pace = match (T::PACED, goes_on && self.deadlines.pace.has_rate(rate)) {
                (false, _) => Pace::PLAIN,
                (true, true) => self.deadlines.pace.renamed(count, cycle),
                (true, false) => Pace::new(cycle, cycle, rate),
            };
            self.attachments.debug.rebase(count, cycle);
            self.progress.count = cycle;
            let ahead = cycle.wrapping_sub(count);
            self.progress.not_retired = self.progress.not_retired.wrapping_add(ahead);
        }
        self.progress.paced = T::PACED;
        self.resume_reservation(&mut env.bus.ram);
        self.rebase_counters(env, was_timed);
    }
}

/// An address with this bit flipped lies in another page than the address.
const ELSEWHERE: u64 = 1 << 63;

impl FetchPage {
    /// Returns a page that does not hold `pc`.
    pub(crate) fn elsewhere(pc: u64, code: Rc<CodePage>) -> Self {
        Self { vpage: pc ^ ELSEWHERE, code, ids: None, space: 0, translated: false, strict: false }
    }

    /// Returns the slot of `pc`; out of range if `pc` is not in this page.
    #[inline(always)]
    pub(crate) fn slot(&self, pc: u64) -> usize {
        (pc.wrapping_sub(self.vpage) >> 1) as usize
    }

    /// Makes sure that the fetch of `pc` looks its page up again.
    pub(crate) fn forget(&mut self, pc: u64) {
        self.vpage = pc ^ ELSEWHERE;
    }
}

/// What a region trigger says: `addi x0, xN, 0`, an instruction without an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A program's region of interest starts (N = 1, as FireSim has it).
    Start,
    /// A program's region of interest stops (N = 2).
    Stop,
    /// The run's command starts (N = 3).
    CommandStart,
    /// The run's command has ended (N = 4).
    CommandStop,
}

impl Mark {
    /// Returns N.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Start => 1,
            Self::Stop => 2,
            Self::CommandStart => 3,
            Self::CommandStop => 4,
        }
    }

    pub(crate) const fn of(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Start,
            2 => Self::Stop,
            3 => Self::CommandStart,
            4 => Self::CommandStop,
            _ => return None,
        })
    }
}

/// Replaces the operation of a [`Mark`] by an illegal one, but keeps its class: its execution then leads to the slow path, and no other `addi` pays
/// for a check.
pub(crate) fn decode_mark(inst: &mut DecodedInst) {
    const ADDI: u32 = 0x13;
    const RS1: u32 = 15;
    if inst.raw & !(31 << RS1) == ADDI && Mark::of((inst.raw >> RS1) as u8).is_some() {
        inst.op = Op::Illegal;
    }
}

/// Returns the mark of an instruction that [`decode_mark`] has changed; `None` for any other.
pub(crate) fn mark_of(inst: &DecodedInst) -> Option<Mark> {
    let marked = inst.op == Op::Illegal && inst.class == InstClass::IntAlu;
    marked.then_some(Mark::of(inst.rs1)).flatten()
}
