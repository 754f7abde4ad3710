//! Fetch packets: from F0 to the fetch buffer, through ITLB and instruction cache.

use commit_trace::TeaEvents;
use isa::PageWalker;

use super::{F4, FrontEnd};
use crate::mem::{L1d, LINE_BITS, Lower, Walk};
use crate::predict::Outcome;

/// What the machine asks the front end for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fetched {
    pub pc: u64,
    pub pa: u64,
    pub len: u64,
    pub translated: bool,
}

/// Below the front end: shared with the load/store unit.
pub(crate) struct Below<'a> {
    pub walk: &'a mut Walk,
    pub l1d: &'a mut L1d,
    pub lower: &'a mut Lower,
}

impl FrontEnd {
    /// True if the instruction belongs to the current packet and decode group.
    #[inline(always)]
    pub fn continues(&self, pc: u64, len: u8) -> bool {
        (pc.wrapping_add(u64::from(len)) <= self.limit) & self.buffer.has_left()
    }

    /// True if the instruction does not belong to the current packet.
    #[inline(always)]
    pub fn packet_is_over(&mut self, inst: &Fetched) -> bool {
        self.room = self.room.wrapping_sub(self.buffer.settle());
        (inst.pc.wrapping_add(inst.len) > self.limit) | (self.room == 0)
    }

    /// Lets as many instructions be decoded as the packet and the group both take.
    #[inline(always)]
    pub fn grant(&mut self) {
        self.buffer.grant(self.room);
    }

    /// Starts a decode group; its cycle.
    #[inline(always)]
    pub fn start_group(&mut self, dispatched: u64) -> u64 {
        self.buffer.start(self.entered + 1, dispatched)
    }

    /// Decodes the next instruction of packet and group; the cycle.
    #[inline(always)]
    pub fn decode(&mut self) -> u64 {
        self.buffer.decode()
    }

    /// Starts the packet that `inst` is the first of. The instructions of the one before committed up to
    /// `committed`.
    #[inline(always)]
    pub fn packet(
        &mut self,
        inst: &Fetched,
        committed: u64,
        below: Below<'_>,
        walker: &impl PageWalker,
    ) {
        self.counts.packets += 1;
        let bank = self.packet_bytes / 2;
        let end = inst.pc.wrapping_add(inst.len);
        let sequential = self.limit != 0;
        let mut f0 = if sequential {
            self.f0 + self.run_on()
        } else {
            self.next_f0
        };
        // F4, F3 and F2 hold a packet each while the buffer is full.
        f0 = f0.max(self.entered_before.saturating_sub(F4 - 2));
        let mut start = if sequential && end > self.end {
            self.end
        } else {
            inst.pc & !(bank - 1)
        };
        self.end = self.packet_end(start);
        if end > self.end {
            // The instruction straddles the end: it belongs to the packet that has its second half.
            f0 += 1;
            start = self.end;
            self.end = self.packet_end(start);
        }
        self.start = start;
        f0 = self.itlb(start, f0, inst.translated, below, walker, inst);
        self.f0 = f0;
        self.entered_before = self.entered;
        self.entered = (f0 + F4)
            .max(self.entered + 1)
            .max(self.buffer.room())
            .max(self.targets.available());
        // The target queue's entry of a packet is free when the next packet commits; noted is its last
        // instruction, in hardware it is the first.
        self.targets.take(committed + 1);
        self.buffer.arrives(self.entered + 1);
        self.room = self.packet_insts;
        self.view = super::View::default();
        self.limit = self.end;
    }

    /// A packet is two banks, or one in the last bank of a line (`ifu/frontend.scala:153`).
    #[inline(always)]
    fn packet_end(&self, start: u64) -> u64 {
        let line_end = (start | ((1 << LINE_BITS) - 1)).wrapping_add(1);
        start.wrapping_add(self.packet_bytes).min(line_end)
    }

    /// Leaves a packet that no branch ended: how many cycles later the next one starts.
    #[inline(always)]
    fn run_on(&mut self) -> u64 {
        if self.view.seen3 == 0 {
            // All stages agree that there is no branch.
            self.history.pass();
            return 1;
        }
        let outcome = |bank: u8| match self.view.seen3 >> bank & 1 {
            0 => Outcome::None,
            _ => Outcome::NotTaken,
        };
        let single = self.end - self.start < self.packet_bytes;
        self.history = self.history.after(outcome(0), outcome(1), single);
        let distance = self.view.distance(true, true);
        self.count(distance);
        distance
    }

    /// Counts a packet that the next one follows in so many cycles.
    #[inline(always)]
    pub(super) fn count(&mut self, distance: u64) {
        if distance != 1 {
            self.counts.redirects_f2 += u64::from(distance == 2);
            self.counts.redirects_f3 += u64::from(distance == 3);
        }
    }

    /// ITLB in F1, instruction cache in F2; the F0 with which the packet finally gets through.
    #[inline(always)]
    fn itlb(
        &mut self,
        start: u64,
        f0: u64,
        translated: bool,
        below: Below<'_>,
        walker: &impl PageWalker,
        inst: &Fetched,
    ) -> u64 {
        let mut f0 = f0;
        if translated && start >> 12 != self.page {
            if !self.itlb.hit(start) {
                let Below { walk, l1d, lower } = below;
                let (ready, bits) = walk.translate(start, f0 + 1, walker, l1d, lower);
                self.itlb.fill(start, bits);
                self.tea |= TeaEvents::DR_TLB;
                f0 = ready + 1;
                self.page = start >> 12;
                return self.l1i(start, f0, lower, inst);
            }
            self.page = start >> 12;
        }
        self.l1i(start, f0, below.lower, inst)
    }

    #[inline(always)]
    fn l1i(&mut self, start: u64, f0: u64, lower: &mut Lower, inst: &Fetched) -> u64 {
        // A packet of the page after the instruction's first half is taken to follow in memory: the machine
        // tells one physical address per instruction.
        let line = inst.pa.wrapping_add(start.wrapping_sub(inst.pc)) >> LINE_BITS;
        self.counts.l1i_accesses += 1;
        if line == self.line {
            return f0;
        }
        self.line = line;
        let f2 = f0 + 2;
        let ready = match self.l1i.hit(line, f2, false) {
            Some(filled) if filled > f2 => filled,
            Some(_) => return f0,
            None => self.l1i_miss(line, f2, lower),
        };
        self.tea |= TeaEvents::DR_L1;
        // Until the line is there, the packet is fetched again every other cycle.
        f0 + (ready - f2).next_multiple_of(2)
    }

    #[cold]
    #[inline(never)]
    fn l1i_miss(&mut self, line: u64, f2: u64, lower: &mut Lower) -> u64 {
        self.counts.l1i_misses += 1;
        // Not modelled: that the L2 evicting a line it shares with the data cache is delayed by it.
        let (arrives, _) = lower.read(line, f2, |_| false);
        let ready = arrives + self.l1i_refill;
        self.l1i.fill(line, ready, false, 0);
        if self.l1i_prefetch && !self.l1i.contains(line + 1) {
            let (arrives, _) = lower.read(line + 1, f2 + 1, |_| false);
            self.l1i.fill(line + 1, arrives + self.l1i_refill, false, 0);
        }
        ready
    }
}
