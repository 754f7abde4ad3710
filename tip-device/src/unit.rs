//! The unit: registers, FIFO, buffer and interrupt line around timer and sample selection.

use std::collections::VecDeque;

use commit_trace::{Commit, InstId, Redirect};
use register_table::{field, in_field};
use sampling_rules::{Heuristic, Rule};

use crate::buffer::Buffer;
use crate::recent::RecentCommits;
use crate::regs::{HEURISTICS, MAGIC, VERSION, id};
use crate::sample::WIDTH;
use crate::selection::Selection;
use crate::side_band::Assembler;
use crate::timer::Timer;
use crate::{Reg, Sample, SideBandRecord, control, status};

const FIFO_DEPTH: usize = 16;

/// Where an instruction came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Virtual address.
    pub pc: u64,
    /// Privilege (0 U, 1 S, 3 M).
    pub privilege: u8,
    /// The instruction returns from a trap (`sret`, `mret`).
    pub trap_return: bool,
}

/// How far the handling of the unit's interrupt has come, as FREEZE needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FreezeState {
    /// The interrupt is not handled; the timer runs.
    Running,
    /// The hart has taken an interrupt while the line was high.
    Handling,
    /// The trap has returned: the timer runs again from the next instruction's dispatch on.
    Returned,
}

snapshot::snapshot_enum!(FreezeState: Running, Handling, Returned);

/// A trigger that waits for its sample.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    /// The cycle of the trigger.
    pub cycle: u64,
    pub rule: Rule,
}

impl Default for Pending {
    fn default() -> Self {
        Self { cycle: 0, rule: Rule::new(Heuristic::Tip) }
    }
}

snapshot::snapshot!(Pending { cycle, rule });

/// What a register write did beyond the unit itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteEffect {
    /// Nothing.
    None,
    /// A side-band record is complete.
    SideBand(SideBandRecord),
}

/// The TIP unit of one hart.
#[derive(Clone, Debug)]
pub struct TipUnit {
    width: usize,
    clock_hz: u64,
    timer: Timer,
    recent: RecentCommits,
    /// The last cycle that a rule was shown, or in which the hart slept.
    seen: u64,
    pub(crate) pending: Option<Pending>,
    fifo: VecDeque<Sample>,
    buffer: Buffer,
    overruns: u64,
    /// Cycles from the last trigger that gave a sample up to the latest trigger: the weight of the next sample.
    weight: u64,
    /// Cycles from the last trigger to the next.
    trigger_distance: u64,
    freeze_state: FreezeState,
    side_band: Assembler,
}

// What is recent is the recorder's: it is recalled before it is needed.
snapshot::snapshot!(TipUnit {
    timer,
    seen,
    pending,
    fifo,
    buffer,
    overruns,
    weight,
    trigger_distance,
    freeze_state,
    side_band,
} keeps {
    width,
    clock_hz,
    recent,
});

impl TipUnit {
    /// Returns a unit for a core that commits up to `commit_width` instructions a cycle and runs at `clock_hz`. Samples
    /// hold at most four addresses.
    pub fn new(commit_width: usize, clock_hz: u64) -> Self {
        Self {
            width: commit_width.clamp(1, WIDTH),
            clock_hz,
            timer: Timer::new(),
            recent: RecentCommits::default(),
            seen: 0,
            pending: None,
            fifo: VecDeque::with_capacity(FIFO_DEPTH),
            buffer: Buffer::default(),
            overruns: 0,
            weight: 0,
            trigger_distance: 1,
            freeze_state: FreezeState::Running,
            side_band: Assembler::default(),
        }
    }

    /// Returns the cycle of the next trigger; `u64::MAX` while the timer stands still.
    #[inline]
    pub fn next_sample(&self) -> u64 {
        self.timer.next()
    }

    /// Returns true if the timer runs, if only in some privilege modes.
    pub fn is_enabled(&self) -> bool {
        self.timer.control() & control::ENABLE != 0
    }

    /// Returns true if every commit concerns the unit: a sample is pending, or the unit waits for its interrupt to be
    /// taken, or for the return from it.
    pub fn needs_every_commit(&self) -> bool {
        self.pending.is_some() || self.waits_for_trap()
    }

    fn waits_for_trap(&self) -> bool {
        match self.freeze_state {
            FreezeState::Running => self.freezes() && self.wants_interrupt(),
            FreezeState::Handling => !self.wants_interrupt(),
            FreezeState::Returned => true,
        }
    }

    fn freezes(&self) -> bool {
        self.timer.control() & control::FREEZE != 0
    }

    fn uses_buffer(&self) -> bool {
        self.timer.control() & control::BUFFER != 0
    }

    fn enables_interrupt(&self) -> bool {
        self.timer.control() & control::IRQ_ENABLE != 0
    }

    /// Returns the level of the interrupt line, as soon as what is on its way to the buffer is there.
    fn wants_interrupt(&self) -> bool {
        let wanted = match self.uses_buffer() {
            true => self.buffer.will_call(),
            false => !self.fifo.is_empty(),
        };
        wanted && self.enables_interrupt()
    }

    /// Returns the level of the interrupt line.
    pub fn irq(&self) -> bool {
        let raised = match self.uses_buffer() {
            true => self.buffer.calls(),
            false => !self.fifo.is_empty(),
        };
        raised && self.enables_interrupt()
    }

    /// Returns true if samples are on their way to the buffer.
    pub fn has_samples_to_write(&self) -> bool {
        !self.buffer.is_written()
    }

    /// Takes the next sample that goes to the buffer in memory, and its physical address. Whoever owns the bus writes
    /// all of them before software reads or writes a register, and before it sees the [line](Self::irq) that has risen.
    pub fn next_to_write(&mut self) -> Option<(u64, Sample)> {
        self.buffer.take()
    }

    /// Notes that the sample that was taken last cannot be written: it is lost with what follows, and their cycles go
    /// into later ones.
    pub fn write_failed(&mut self, sample: &Sample) {
        for lost in std::iter::once(*sample).chain(self.buffer.fail()) {
            self.overruns += 1;
            self.weight = self.weight.saturating_add(lost.weight);
        }
    }

    /// Watches one instruction leave the ROB. Returns the cycle in which the interrupt line
    /// rose, if it did. Costs two compares unless a sample is due.
    #[inline]
    pub fn commit(&mut self, commit: &Commit, origin: &impl Fn(InstId) -> Origin) -> Option<u64> {
        let taken = self.waits_for_trap() && self.follow_trap(commit, origin);
        let due = self.pending.is_some() || commit.commit > self.timer.next();
        let risen = due.then(|| self.show(Some(commit), origin)).flatten();
        if taken {
            self.timer.set_frozen(true, commit.commit);
        }
        self.recent.push(commit);
        risen
    }

    /// Takes the next step of a standstill if this instruction is what it waits for; returns true if it is the
    /// interrupt.
    #[cold]
    fn follow_trap(&mut self, commit: &Commit, origin: &impl Fn(InstId) -> Origin) -> bool {
        if self.freeze_state == FreezeState::Returned {
            self.freeze_state = FreezeState::Running;
            self.timer.set_frozen(false, commit.dispatch);
        }
        match self.freeze_state {
            // Not modelled: which interrupt it was. Another one is only taken first if it goes to machine mode.
            FreezeState::Running
                if self.freezes()
                    && self.wants_interrupt()
                    && commit.redirect == Redirect::Interrupt =>
            {
                self.freeze_state = FreezeState::Handling;
                return true;
            }
            FreezeState::Handling
                if !commit.redirect.is_trap() && origin(commit.inst).trap_return =>
            {
                self.freeze_state = FreezeState::Returned;
            }
            _ => {}
        }
        false
    }

    /// Instead of watching every instruction, a caller may tell what left the ROB last, youngest
    /// first, before [`Self::commit`] and [`Self::slept`], and call `commit` only for an instruction that commits
    /// after [`Self::next_sample`], or while the unit [needs every commit](Self::needs_every_commit).
    pub fn recall(&mut self, youngest_first: impl Iterator<Item = Commit>) {
        self.recent.replace(youngest_first);
    }

    /// Notes that the hart slept in `wfi` for `cycles` after its last commit.
    pub fn slept(&mut self, cycles: u64, origin: &impl Fn(InstId) -> Origin) -> Option<u64> {
        let last = self.recent.oir().map_or(0, |c| c.commit);
        let due = self.pending.is_some() || last >= self.timer.next();
        let risen = due.then(|| self.show(None, origin)).flatten();
        self.seen = self.seen.max(last) + cycles;
        self.timer.slept(cycles, self.seen);
        risen
    }

    /// Notes that the privilege mode changed at `cycle` (0 U, 1 S, 3 M).
    pub fn privilege(&mut self, privilege: u8, cycle: u64) {
        self.timer.set_privilege(privilege, cycle);
    }

    /// Takes the samples of the cycles before `head` leaves the ROB; of a hart that goes to sleep, up to its last commit.
    #[cold]
    fn show(&mut self, head: Option<&Commit>, origin: &impl Fn(InstId) -> Origin) -> Option<u64> {
        let last = self.recent.oir().map_or(0, |oir| oir.commit);
        // The last commit group is not whole yet.
        if head.is_some_and(|head| head.commit <= last) {
            return None;
        }
        let recent = std::mem::take(&mut self.recent);
        let seen = self.seen;
        let mut selection = Selection { unit: self, recent: &recent, origin, risen: None };
        recent.spans(seen, head, &mut selection);
        let risen = selection.risen;
        self.recent = recent;
        self.seen = seen.max(head.map_or(last, |head| head.commit - 1));
        risen
    }

    /// Returns the heuristic that CONTROL asks for.
    pub(crate) fn heuristic(&self) -> Heuristic {
        let number = field(self.timer.control(), control::HEURISTIC);
        HEURISTICS.get(number as usize).copied().unwrap_or(Heuristic::Tip)
    }

    /// Takes the cycle of the next trigger, if it falls before `until`: the trigger is no longer due, and its cycles
    /// are in the next sample's weight.
    pub(crate) fn next_trigger(&mut self, until: u64) -> Option<u64> {
        let cycle = self.timer.next();
        if cycle >= until {
            return None;
        }
        self.weight += self.trigger_distance;
        self.trigger_distance = self.timer.reload();
        Some(cycle)
    }

    /// Queues a sample; returns true if the interrupt line rises.
    pub(crate) fn push(&mut self, mut sample: Sample) -> bool {
        let low = !self.wants_interrupt();
        for address in &mut sample.address[self.width..] {
            *address = 0;
        }
        let uses_buffer = self.uses_buffer();
        let full = match uses_buffer {
            true => self.buffer.is_full() || self.buffer.has_fault(),
            false => self.fifo.len() == FIFO_DEPTH,
        };
        if full {
            self.overruns += 1;
            return false;
        }
        sample.weight = std::mem::take(&mut self.weight);
        match uses_buffer {
            true => self.buffer.push(sample),
            false => self.fifo.push_back(sample),
        }
        low && self.wants_interrupt()
    }

    /// Reads a register at cycle `now`.
    pub fn read(&self, reg: Reg, now: u64) -> u64 {
        let oldest = self.fifo.front().copied().unwrap_or_default();
        match reg {
            Reg::Id => {
                let heuristics = (1 << HEURISTICS.len()) - 1;
                MAGIC
                    | in_field(id::VERSION, VERSION)
                    | in_field(id::WIDTH, self.width as u64)
                    | in_field(id::FIFO_DEPTH, FIFO_DEPTH as u64)
                    | in_field(id::HEURISTICS, heuristics)
            }
            Reg::Control => self.timer.control(),
            Reg::Period => self.timer.period(),
            Reg::Count => self.timer.cycles_left(now),
            Reg::Status => {
                // A trigger that no commit has shown yet waits, too.
                let pending = self.pending.is_some() || self.timer.next() < now;
                let flag = |set, bit| if set { bit } else { 0 };
                self.fifo.len() as u64
                    | flag(pending, status::PENDING)
                    | flag(self.buffer.is_full(), status::FULL)
                    | flag(self.buffer.has_fault(), status::FAULT)
            }
            Reg::Overrun => self.overruns,
            Reg::Clock => self.clock_hz,
            Reg::Cycle => oldest.cycle,
            Reg::Flags => oldest.flags,
            Reg::Address0 => oldest.address[0],
            Reg::Address1 => oldest.address[1],
            Reg::Address2 => oldest.address[2],
            Reg::Address3 => oldest.address[3],
            Reg::Weight => oldest.weight,
            Reg::Seed => self.timer.seed(),
            Reg::Frozen => self.timer.frozen_cycles(now),
            Reg::BufferBase => self.buffer.base(),
            Reg::BufferConfig => self.buffer.config(),
            Reg::BufferHead => self.buffer.head(),
            Reg::BufferTail => self.buffer.tail(),
            Reg::Pop | Reg::SbData | Reg::SbCommit => 0,
        }
    }

    /// Writes a register at cycle `now`. Writes to read-only registers are ignored.
    pub fn write(&mut self, reg: Reg, value: u64, now: u64) -> WriteEffect {
        match reg {
            Reg::Control => {
                self.freeze_state = FreezeState::Running;
                self.timer.set_control(value, now);
            }
            Reg::Period => self.timer.set_period(value),
            Reg::Count => {
                self.timer.set_left(value, now);
                // A count that a driver restores ends a period whose start was counted earlier.
                self.trigger_distance = self.timer.period();
                self.weight = 0;
            }
            Reg::Status => {
                if value & status::PENDING != 0 {
                    self.pending = None;
                }
                if value & status::FAULT != 0 {
                    self.buffer.clear_fault();
                }
            }
            Reg::Overrun => self.overruns = 0,
            Reg::Pop => {
                if value & 1 != 0 {
                    self.fifo.pop_front();
                }
            }
            Reg::Seed => self.timer.set_seed(value),
            Reg::BufferBase => self.buffer.set_base(value),
            Reg::BufferConfig => self.buffer.set_config(value),
            Reg::BufferTail => self.buffer.set_tail(value),
            Reg::SbData => self.side_band.push(value),
            Reg::SbCommit => return WriteEffect::SideBand(self.side_band.finish(value)),
            Reg::Id
            | Reg::Frozen
            | Reg::BufferHead
            | Reg::Clock
            | Reg::Cycle
            | Reg::Flags
            | Reg::Address0
            | Reg::Address1
            | Reg::Address2
            | Reg::Address3
            | Reg::Weight => {}
        }
        WriteEffect::None
    }
}
