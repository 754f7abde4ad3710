//! Sampled instructions (Smpdis/Sspdis, draft of September 2026): one of every so many decoded instructions is followed to its
//! end, and its events, latencies and addresses are recorded, unless a filter discards them. Fetch packets can be sampled in
//! this way, too, which the draft does not have.
//!
//! Beyond the draft, intervals can be random ([`control::RAND`]) or of cycles ([`control::CYC`]), and fetches can be sampled
//! ([`control::FETCH`]). What the draft leaves open is in `linux-patches/DRAFT-NOTES.md`.

mod buffer;
mod record;
mod registers;
mod shared;
#[cfg(test)]
mod tests;

pub use buffer::{Buffer, buffer_control};
pub use record::{LATENCIES, Latencies, RECORD_BYTES, Record, header};
pub use registers::{Register, Totals, control};
pub use shared::{SamplingUnits, SharedSamplingUnits};

use commit_trace::AccessKind;

use crate::{Observed, Outcome};

/// Bits of `spdisevmask` and `spdisevmatch`.
const EVENTS: u64 = (1 << 56) - 1;
/// `spdisfilter`: THRESH, INV, LATSEL.
const FILTER: u64 = 0xffff;
const INVERTED: u64 = 1 << 12;
/// First value beyond the counter of `spdiscounter`, which overflows there.
const WRAP: u64 = 1 << 32;
/// Instructions of four bytes in a fetch packet.
const PER_PACKET: u64 = 4;
/// Most instructions that a core decodes in a cycle, and most that it has in flight.
const MOST_PER_CYCLE: u64 = 8;
const IN_FLIGHT: u64 = 256;

/// A control transfer whose record waits for its target.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    record: Record,
    latencies: [u64; 5],
    following: u64,
}

snapshot::snapshot!(Open { record, latencies, following });

/// The unit of a hart that samples instructions.
#[derive(Clone, Debug, Default)]
pub struct SamplingUnit {
    control: u64,
    count: u32,
    initial: u32,
    mask: u64,
    matches: u64,
    filter: u64,
    /// `mcountinhibit[1]`.
    inhibited: bool,
    buffer: Buffer,
    /// Record that `siselect` 0x60 shows.
    held: Record,
    privilege: u8,
    /// Cycle until which the last selected instruction is active.
    active_until: u64,
    /// Cycle from which on the next decoded instruction is selected, whatever the counter says.
    select_from: Option<u64>,
    /// Record that waits for the target of its transfer.
    open: Option<Open>,
    /// True if the last instruction was a control transfer, whose target comes next; `last_target` is that of the transfer
    /// before.
    transfers: bool,
    last_target: u64,
    random: u64,
    totals: Totals,
    /// True if counter overflow (`sip.LCOFIP`) is to become pending.
    overflow: bool,
}

snapshot::snapshot!(SamplingUnit {
    control,
    count,
    initial,
    mask,
    matches,
    filter,
    inhibited,
    buffer,
    held,
    privilege,
    active_until,
    select_from,
    open,
    transfers,
    last_target,
    random,
    totals,
    overflow
});

impl SamplingUnit {
    /// Returns whether every instruction has to be told: some privilege is sampled, and sampling is not inhibited.
    pub fn is_active(&self) -> bool {
        self.control & (control::U | control::S | control::M) != 0 && !self.inhibited
    }

    /// Sets the privilege of what passes from now on.
    pub fn set_privilege(&mut self, privilege: u8) {
        self.privilege = privilege;
    }

    /// Returns the counters (bits 3 to 31) of which the unit records whether an instruction incurs their events.
    pub fn recorded_counters(&self) -> u32 {
        match self.is_active() {
            true => (self.control & control::HPM) as u32,
            false => 0,
        }
    }

    /// Returns what became of the counter's overflows.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns the record that `siselect` 0x60 shows.
    pub fn held(&self) -> &Record {
        &self.held
    }

    /// Returns the buffer of records on their way to memory, with its registers.
    pub fn buffer(&mut self) -> &mut Buffer {
        &mut self.buffer
    }

    /// Takes the next record that is to be written to memory, with its address.
    pub fn take_record(&mut self) -> Option<(u64, Record)> {
        let next = self.buffer.take_record();
        self.totals.samples += u64::from(next.is_some());
        next
    }

    /// Says that the record that was taken last, for `address`, cannot be written: it and those behind it are lost.
    pub fn fault(&mut self, address: u64) {
        self.totals.samples -= 1;
        self.totals.dropped += self.buffer.fault(address);
    }

    /// Returns `mpdisctl.OF`.
    pub fn overflowed(&self) -> bool {
        self.control & control::OF != 0
    }

    /// Returns, once, that counter overflow is to become pending.
    pub fn take_overflow(&mut self) -> bool {
        std::mem::take(&mut self.overflow)
    }

    /// Sets `mcountinhibit[1]`.
    pub fn inhibit(&mut self, inhibited: bool) {
        self.inhibited = inhibited;
        if inhibited {
            // A sample that is active is not recorded.
            self.forget();
        }
    }

    /// Returns `mcountinhibit[1]`.
    pub fn is_inhibited(&self) -> bool {
        self.inhibited
    }

    fn forget(&mut self) {
        let lost = [self.open.take().is_some(), self.select_from.take().is_some()];
        self.totals.dropped += lost.map(u64::from).iter().sum::<u64>();
        self.active_until = 0;
        self.transfers = false;
    }

    /// Reads a register. All that left the ROB before has [passed](Self::passed).
    pub fn read(&self, register: Register) -> u64 {
        match register {
            Register::MachineControl => self.control,
            Register::SupervisorControl => self.control & control::SUPERVISOR,
            Register::Counter => u64::from(self.count) | u64::from(self.initial) << 32,
            Register::EventMask => self.mask,
            Register::EventMatch => self.matches,
            Register::Filter => self.filter,
            Register::BufferControl => self.buffer.control(),
            Register::BufferAddress => self.buffer.address(),
        }
    }

    /// Writes a register, under the same condition.
    pub fn write(&mut self, register: Register, value: u64) {
        match register {
            Register::MachineControl => self.set_control(value & control::MACHINE),
            Register::SupervisorControl => {
                let kept = self.control & control::M;
                self.set_control(value & control::SUPERVISOR | kept);
            }
            Register::Counter => {
                self.count = value as u32;
                self.initial = (value >> 32) as u32;
            }
            Register::EventMask => self.mask = value & EVENTS,
            Register::EventMatch => self.matches = value & EVENTS,
            // LATSEL has five values.
            Register::Filter if value >> 13 & 7 <= 4 => self.filter = value & FILTER,
            Register::Filter => self.filter = value & (FILTER >> 3) | self.filter & 7 << 13,
            Register::BufferControl => self.buffer.set_control(value),
            Register::BufferAddress => self.buffer.set_address(value),
        }
    }

    fn set_control(&mut self, value: u64) {
        let sel = match value & control::SEL {
            sel @ 0..=4 => sel,
            _ => self.control & control::SEL,
        };
        let was_active = self.is_active();
        self.control = value & !control::SEL | sel;
        if !was_active {
            self.forget();
        }
    }

    /// Takes an instruction that left the ROB. Only while [active](Self::is_active).
    pub fn passed(&mut self, observed: &Observed<'_>) {
        let passed = observed.passed;
        self.reach(passed.pc);
        self.transfers = passed.kind.kind().is_some() && passed.outcome.retires();
        let on = self.control >> 60 >> self.privilege.min(2) & 1 != 0;
        if !on || self.inhibited {
            return;
        }
        if self.control & control::FETCH != 0 {
            self.fetched(observed);
            return;
        }
        let counts = self.counts(observed);
        let overflows = match self.control & control::CYC {
            0 => self.count_up(counts.into()) != 0,
            _ => {
                for _ in 0..self.count_up(passed.cycles) {
                    self.select_later(passed.cycle);
                }
                false
            }
        };
        let decode = observed.detail.decode;
        let at_last = counts && self.select_from.is_some_and(|from| from <= decode);
        // A collision if something waits to be selected.
        if overflows && self.may_select(decode) || at_last {
            self.select(observed);
        }
        self.pass_flushed(observed);
    }

    /// Counts the instructions of a wrong path behind one that passed. Their type is not known.
    fn pass_flushed(&mut self, observed: &Observed<'_>) {
        let flushed = u64::from(observed.detail.flushed);
        let all = self.control & control::SEL == 0 && self.control & control::CYC == 0;
        if flushed == 0 || !all {
            return;
        }
        let overflows = self.count_up(flushed);
        let Some(others) = overflows.checked_sub(1) else {
            return;
        };
        // Only the first of several in one wrong path can be followed.
        let may_select = self.may_select(observed.detail.decode);
        self.collide(others);
        if !may_select {
            return;
        }
        let (record, latencies) = Record::flushed(observed);
        self.active_until = record.cycle;
        self.select_from = None;
        self.finish(record, latencies.by_number());
    }

    /// Counts, and perhaps samples, the packet that an instruction starts, if it starts one.
    fn fetched(&mut self, observed: &Observed<'_>) {
        let by_cycles = self.control & control::CYC != 0;
        let starts = observed.detail.packet.delivered != 0;
        let counted = match by_cycles {
            true => observed.passed.cycles,
            false => starts.into(),
        };
        for _ in 0..self.count_up(counted) {
            self.select_later(0);
        }
        if starts && self.select_from.take().is_some() {
            let (record, latencies) = Record::of_packet(observed, self.control & control::PA != 0);
            self.finish(record, latencies.by_number());
        }
        if !by_cycles {
            self.fetches_aborted(observed);
        }
    }

    /// Counts the packets of a wrong path behind an instruction that passed: as many as hold what decode can have taken of it.
    fn fetches_aborted(&mut self, observed: &Observed<'_>) {
        let packets = u64::from(observed.detail.flushed).div_ceil(PER_PACKET);
        let overflows = self.count_up(packets);
        let Some(others) = overflows.checked_sub(1) else {
            return;
        };
        self.collide(others);
        self.totals.selected += 1;
        if self.select_from.is_some() {
            self.totals.collisions += 1;
            return;
        }
        let (record, latencies) = Record::aborted(observed);
        self.finish(record, latencies.by_number());
    }

    /// Returns whether an instruction, decoded in cycle `decode`, is selected when the counter overflows for it. If not, it is
    /// a collision.
    fn may_select(&mut self, decode: u64) -> bool {
        let free = decode >= self.active_until && self.select_from.is_none();
        self.totals.selected += 1;
        self.totals.collisions += u64::from(!free);
        free
    }

    /// Counts overflows that find something selected already.
    fn collide(&mut self, overflows: u64) {
        self.totals.selected += overflows;
        self.totals.collisions += overflows;
    }

    /// Selects what is decoded from cycle `from` on, unless something is selected already.
    fn select_later(&mut self, from: u64) {
        self.totals.selected += 1;
        self.totals.collisions += u64::from(self.select_from.is_some());
        self.select_from.get_or_insert(from);
    }

    /// Returns whether the instruction is of the type that is counted. An instruction in whose place an interrupt is taken is
    /// counted when it is decoded again, except where everything that is decoded counts.
    fn counts(&self, observed: &Observed<'_>) -> bool {
        if self.control & control::SEL != 0 && observed.passed.outcome == Outcome::Interrupt {
            return false;
        }
        let access = observed.passed.kind.access();
        match self.control & control::SEL {
            0 => true,
            1 => matches!(access, AccessKind::Load | AccessKind::Atomic),
            2 => matches!(access, AccessKind::Store | AccessKind::Atomic),
            3 => access != AccessKind::None,
            _ => observed.passed.kind.kind().is_some(),
        }
    }

    /// Adds to the counter and returns how often it overflows. What is counted beyond an overflow belongs to the next interval.
    fn count_up(&mut self, by: u64) -> u64 {
        let mut count = u64::from(self.count) + by;
        let mut overflows = 0;
        while count >= WRAP {
            overflows += 1;
            count = count - WRAP + u64::from(self.interval_start());
        }
        self.count = count as u32;
        overflows
    }

    /// Returns where the counter starts after an overflow.
    fn interval_start(&mut self) -> u32 {
        if self.control & control::RAND != 0 {
            // xorshift64: the same intervals in every run.
            self.random |= 1;
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            let offset = (self.random >> 32) as i32 % 128;
            return self.initial.saturating_add_signed(offset);
        }
        self.initial
    }

    /// Selects the instruction that passes.
    fn select(&mut self, observed: &Observed<'_>) {
        let passed = observed.passed;
        self.active_until = passed.cycle;
        self.select_from = None;
        let (mut record, latencies) = Record::of(observed, self.control & control::PA != 0);
        record.header |= u64::from(observed.detail.incurred) & self.control & control::HPM;
        let latencies = latencies.by_number();
        match passed.kind.kind() {
            Some(_) if passed.outcome.retires() => {
                let following = passed.pc.wrapping_add(passed.kind.bytes().into());
                self.open = Some(Open { record, latencies, following });
            }
            _ => self.finish(record, latencies),
        }
    }

    /// Says that the instruction at `pc` comes next: it is the target of the transfer before.
    pub fn reach(&mut self, pc: u64) {
        if let Some(Open { mut record, latencies, following }) = self.open.take() {
            let prior = (self.control & control::EPT != 0).then_some(self.last_target);
            record.transferred(pc, following, prior);
            self.finish(record, latencies);
        }
        if std::mem::take(&mut self.transfers) {
            self.last_target = pc;
        }
    }

    /// Records a sample that is complete, or discards it.
    fn finish(&mut self, record: Record, latencies: [u64; 5]) {
        let latency = latencies[(self.filter >> 13 & 7).min(4) as usize];
        let long = latency >= self.filter & 0xfff;
        let inverted = self.filter & INVERTED != 0;
        let qualified = (self.matches ^ record.header) & self.mask == 0 && long != inverted;
        if !qualified {
            self.totals.filtered += 1;
            self.discarded(record.cycle);
            return;
        }
        let memory = self.control & control::MEM != 0;
        let taken = match memory {
            true => self.buffer.push(self.timed(record)),
            // Software has not taken the record before.
            false if self.overflowed() => false,
            false => {
                self.held = self.timed(record);
                true
            }
        };
        if !taken {
            self.totals.dropped += 1;
            self.discarded(record.cycle);
            return;
        }
        // Samples in memory are counted when they are written.
        self.totals.samples += u64::from(!memory);
        if !self.overflowed() {
            self.control |= control::OF;
            self.overflow = true;
        }
    }

    /// Returns the record, without a time if none is wanted.
    fn timed(&self, record: Record) -> Record {
        match self.control & control::TS {
            0 => Record { cycle: 0, ..record },
            _ => record,
        }
    }

    fn discarded(&mut self, cycle: u64) {
        if self.control & control::ACC != 0 {
            self.select_later(cycle);
        }
    }

    /// Returns a cycle before which the unit makes no interrupt pending, given that all has passed up to `now`; `u64::MAX`: it
    /// never will.
    pub fn deadline(&self, now: u64) -> u64 {
        if !self.is_active() {
            return u64::MAX;
        }
        let memory = self.control & control::MEM != 0;
        let records = match (self.overflowed(), memory) {
            (false, _) => 1,
            (true, false) => return u64::MAX,
            (true, true) => self.buffer.records_to_write(),
        };
        let ready = self.select_from.is_some() || self.open.is_some();
        let period = WRAP - u64::from(self.initial);
        let period = match self.control & control::RAND {
            0 => period,
            _ => period.saturating_sub(128),
        };
        let first = match ready {
            true => 0,
            false => WRAP - u64::from(self.count),
        };
        let counted = first.saturating_add(period.saturating_mul(records - 1));
        let cycles = match self.control & control::CYC {
            0 => counted.saturating_sub(IN_FLIGHT) / MOST_PER_CYCLE,
            _ => counted,
        };
        now.saturating_add(cycles.max(1))
    }
}
