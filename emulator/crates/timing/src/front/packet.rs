//! Fetch packets: from F0 to the fetch buffer, through ITLB and instruction cache.

use commit_trace::{DataSource, TeaEvents};

use super::{F4, FrontEnd};
use crate::mem::{L1d, Lower, Origin, TlbSide, Walk};
use crate::observe::Translated;
use crate::path::{NextPacket, Packet, WalkReads};

/// The memory system below the front end, which the load/store unit shares.
pub(crate) struct Below<'a> {
    pub walk: &'a mut Walk,
    pub l1d: &'a mut L1d,
    pub lower: &'a mut Lower,
}

impl FrontEnd {
    /// Starts a decode group; returns the cycle of its decode.
    #[inline(always)]
    pub(crate) fn start_group(&mut self, dispatched: u64) -> u64 {
        self.buffer.start(self.entered + 1, dispatched)
    }

    /// Decodes the next instruction of packet and group; returns the cycle.
    #[inline(always)]
    pub(crate) fn decode(&mut self) -> u64 {
        self.buffer.decode()
    }

    /// Starts a packet. `reads`: the page-table entries that an ITLB miss reads. `committed`: last commit of the packet before.
    #[inline(always)]
    pub(crate) fn packet(
        &mut self,
        packet: Packet,
        reads: Option<&WalkReads>,
        committed: u64,
        below: Below<'_>,
    ) {
        self.counts.packets += 1;
        let mut f0 = if packet.sequential() { self.f0 + self.run_on() } else { self.next_f0 };
        // F4, F3 and F2 hold a packet each while the buffer is full.
        f0 = f0.max(self.entered_before.saturating_sub(F4 - 2));
        f0 += u64::from(packet.straddles());
        f0 = self.itlb(packet, f0, reads, below);
        self.f0 = f0;
        self.entered_before = self.entered;
        let arrives = (f0 + F4).max(self.entered + 1);
        let (room, target) = (self.buffer.room(), self.targets.available());
        self.entered = arrives.max(room).max(target);
        if self.entered != arrives {
            self.counts.buffer_cycles += room.saturating_sub(arrives);
            self.counts.target_cycles += target.saturating_sub(arrives.max(room));
        }
        // The target queue's entry of a packet is free when the next packet commits. Here that is the commit of the packet's
        // last instruction, in hardware of its first.
        self.targets.take(committed + 1);
        self.buffer.arrives(self.entered + 1);
        self.view = super::View::default();
    }

    /// Returns the cycle in which a packet is fetched first.
    pub(crate) fn fetches(&self, packet: NextPacket) -> u64 {
        let f0 = match packet {
            NextPacket::Same => return self.f0,
            NextPacket::Sequential if self.view.seen3 == 0 => self.f0 + 1,
            NextPacket::Sequential => self.f0 + self.view.distance(true, true),
            NextPacket::AfterTransfer => self.next_f0,
        };
        f0.max(self.entered_before.saturating_sub(F4 - 2))
    }

    /// Returns the cycles from F0 to the next packet's F0, for a packet that no branch ended.
    #[inline(always)]
    fn run_on(&mut self) -> u64 {
        if self.view.seen3 == 0 {
            // All stages agree that there is no branch.
            return 1;
        }
        let distance = self.view.distance(true, true);
        self.count(distance, true, true);
        distance
    }

    /// Counts a packet whose next one starts `distance` cycles later. `one` and `two`: see [`View::distance`](super::View).
    #[inline(always)]
    pub(super) fn count(&mut self, distance: u64, one: bool, two: bool) {
        if distance != 1 {
            let view = &self.view;
            self.counts.redirects_f2 += u64::from(distance == 2);
            self.counts.redirects_f3 += u64::from(distance == 3);
            let left_in_f1 = !one | view.left1;
            let left_in_f2 = !two | view.left2;
            self.counts.history_redirects_f2 += u64::from(distance == 2 && !left_in_f1);
            self.counts.history_redirects_f3 += u64::from(distance == 3 && !left_in_f2);
        }
    }

    /// Looks up the ITLB in F1 and the instruction cache in F2; returns the cycle of F0 of the packet's last, successful fetch.
    #[inline(always)]
    fn itlb(
        &mut self,
        packet: Packet,
        f0: u64,
        reads: Option<&WalkReads>,
        below: Below<'_>,
    ) -> u64 {
        let mut f0 = f0;
        if let Some(reads) = reads {
            let Below { walk, l1d, lower } = below;
            self.counts.itlb_misses += 1;
            self.tea |= TeaEvents::DR_TLB;
            let walks = walk.counts[TlbSide::Code as usize].walks;
            let again = walk.translate(TlbSide::Code, f0 + 1, reads, l1d, lower) + 1;
            let walked = walk.counts[TlbSide::Code as usize].walks != walks;
            self.translated = Translated::new(walked, f0, again);
            self.late += again - f0;
            f0 = again;
            return self.l1i(packet.line(), f0, lower);
        }
        self.l1i(packet.line(), f0, below.lower)
    }

    #[inline(always)]
    fn l1i(&mut self, line: u64, f0: u64, lower: &mut Lower) -> u64 {
        self.counts.l1i_accesses += 1;
        if line == self.line {
            return f0;
        }
        self.line = line;
        let f2 = f0 + 2;
        let ready = match self.l1i.hit(line, f2, false) {
            Some(filled) if filled > f2 => {
                self.source = DataSource::InFlight;
                filled
            }
            Some(_) => return f0,
            None => self.l1i_miss(line, f2, lower),
        };
        self.tea |= TeaEvents::DR_L1;
        // Until the line is there, the packet is fetched again every other cycle.
        let late = (ready - f2).next_multiple_of(2);
        self.counts.l1i_cycles += late;
        self.late += late;
        f0 + late
    }

    /// Shows a line again, if it is there, so that another fetch changes nothing; returns whether that is so.
    pub(crate) fn show_again(&self, line: u64) -> bool {
        self.l1i.show_again(line, false)
    }

    /// Fetches a line for functional warming, and shows it from now on.
    pub(crate) fn warm(&mut self, line: u64, cycle: u64, lower: &mut Lower) {
        if self.l1i.hit(line, cycle, false).is_none() {
            self.l1i_miss(line, cycle, lower);
            self.l1i.settle();
        }
        // The line that was prefetched may have taken the place of this one.
        if self.l1i.contains(line) {
            self.l1i.show(line, false);
        }
        self.line = u64::MAX;
    }

    #[cold]
    #[inline(never)]
    fn l1i_miss(&mut self, line: u64, f2: u64, lower: &mut Lower) -> u64 {
        self.counts.l1i_misses += 1;
        // Not modelled: that the L2 evicting a line it shares with the data cache is delayed by it.
        let (arrives, level) = lower.read(line, f2, Origin::Fetch, |_| false);
        self.source = lower.source(level);
        let ready = arrives + self.l1i_refill;
        self.l1i.fill(line, ready, false, 0);
        if self.l1i_prefetch && !self.l1i.contains(line + 1) {
            self.counts.l1i_prefetches += 1;
            let (arrives, _) = lower.read(line + 1, f2 + 1, Origin::Prefetch, |_| false);
            self.l1i.fill(line + 1, arrives + self.l1i_refill, false, 0);
        }
        ready
    }
}
