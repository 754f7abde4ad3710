//! The front end: fetch packets, fetch buffer, decode groups (`ifu/frontend.scala`, `ifu/fetch-buffer.scala`).
//!
//! A packet whose F0 is cycle *f* enters the fetch buffer in F4 = *f* + 4, is decoded from *f* + 5 and
//! dispatched from *f* + 6.

mod buffer;
mod control;
mod packet;

use commit_trace::TeaEvents;

use crate::Preset;
use crate::mem::{Cache, Tlb};
use crate::predict::{History, Predictor, Returns};
use crate::ring::Ring;
use buffer::FetchBuffer;

pub(crate) use control::Jump;
pub(crate) use packet::{Below, Fetched};

/// F0 to the cycle in which the packet enters the fetch buffer.
const F4: u64 = 4;

/// Counters.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrontCounts {
    pub packets: u64,
    pub l1i_accesses: u64,
    pub l1i_misses: u64,
    pub redirects_f2: u64,
    pub redirects_f3: u64,
}

snapshot::snapshot!(FrontCounts {
    packets,
    l1i_accesses,
    l1i_misses,
    redirects_f2,
    redirects_f3
});

/// The front end.
pub(crate) struct FrontEnd {
    /// Current packet: bytes [`start`, `end`) of code, instructions that still fit.
    start: u64,
    end: u64,
    room: u32,
    /// Where the next instruction must end to belong to the packet: `end`, or 0 if a jump or a redirect
    /// closed it.
    limit: u64,
    /// F0 of the packet, and, if it is closed, of the next one.
    f0: u64,
    next_f0: u64,
    /// Cycle in which the packet, and the one before, entered the fetch buffer.
    entered: u64,
    entered_before: u64,
    /// What the predictor stages think of the packet so far.
    view: View,
    /// What delayed the packet, for its first instruction.
    pub tea: TeaEvents,
    pub buffer: FetchBuffer,
    /// Fetch target queue: entries by packet.
    targets: Ring,
    history: History,
    predictor: Predictor,
    returns: Returns,
    l1i: Cache,
    line: u64,
    /// Page of the last translated fetch.
    page: u64,
    pub itlb: Tlb,
    packet_bytes: u64,
    packet_insts: u32,
    l1i_refill: u64,
    l1i_prefetch: bool,
    pub counts: FrontCounts,
}

/// What F1, F2 and F3 believe of the packet. When an earlier stage differs from a later one, in the
/// next address or in the history, the later one restarts fetch.
#[derive(Clone, Copy, Debug, Default)]
struct View {
    /// F1 and F2 would have left the packet before.
    left1: bool,
    left2: bool,
    /// Banks in which F1, F2, F3 know of a branch that is not taken; a bit each.
    seen1: u8,
    seen2: u8,
    seen3: u8,
}

snapshot::snapshot!(View {
    left1,
    left2,
    seen1,
    seen2,
    seen3
});

impl View {
    /// F0 to the next packet's F0, if F3 agrees with what F1 (`one`) and F2 (`two`) finally do.
    fn distance(&self, one: bool, two: bool) -> u64 {
        if !two || self.left2 || self.seen2 != self.seen3 {
            3
        } else if !one || self.left1 || self.seen1 != self.seen3 {
            2
        } else {
            1
        }
    }
}

snapshot::snapshot!(FrontEnd {
    start, end, room, limit, f0, next_f0, entered, entered_before, view, tea, buffer, targets,
    history, predictor, returns, l1i, line, page, itlb, counts
} keeps {
    packet_bytes, packet_insts, l1i_refill, l1i_prefetch
});

impl FrontEnd {
    pub fn new(preset: &Preset) -> Self {
        Self {
            start: 0,
            end: 0,
            room: 0,
            limit: 0,
            f0: 0,
            next_f0: 0,
            entered: 0,
            entered_before: 0,
            view: View::default(),
            tea: TeaEvents::default(),
            buffer: FetchBuffer::new(preset),
            // An entry is given back when the packet after next is fetched, and two stay empty.
            targets: Ring::new(preset.fetch.targets - 3),
            history: History::default(),
            predictor: Predictor::new(preset),
            returns: Returns::new(preset.predictor.returns),
            l1i: Cache::new(preset.l1i.kib, preset.l1i.ways, 0xcafe),
            line: u64::MAX,
            page: u64::MAX,
            itlb: Tlb::new(preset.itlb.entries),
            packet_bytes: u64::from(preset.fetch.bytes),
            packet_insts: preset.fetch.insts,
            l1i_refill: u64::from(preset.l1i.refill),
            l1i_prefetch: preset.l1i.prefetch,
            counts: FrontCounts::default(),
        }
    }

    /// F0 of the packet that holds the instruction decoded last.
    #[inline(always)]
    pub fn fetched(&self) -> u64 {
        self.f0
    }

    /// Fetch restarts with F0 in cycle `f0`; what was fetched is dropped.
    pub fn redirect(&mut self, f0: u64) {
        self.close_packet();
        self.next_f0 = f0;
        self.buffer.clear();
    }

    #[inline(always)]
    fn close_packet(&mut self) {
        self.limit = 0;
    }

    /// Fetch restarts after a flush at commit: the history is cleared too (`exu/core.scala:410`).
    pub fn flush(&mut self, f0: u64) {
        self.redirect(f0);
        self.history = History::default();
    }

    /// `fence.i`: the instruction cache is emptied.
    pub fn clear_l1i(&mut self) {
        self.l1i.clear();
        self.line = u64::MAX;
    }

    /// Translations changed.
    pub fn flush_tlb(&mut self) {
        self.itlb.clear();
        self.page = u64::MAX;
    }
}
