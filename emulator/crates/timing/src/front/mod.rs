//! The front end: fetch packets, fetch buffer, decode groups (`ifu/frontend.scala`, `ifu/fetch-buffer.scala`).
//!
//! A packet whose F0 is cycle *f* enters the fetch buffer in F4 = *f* + 4, is decoded from *f* + 5 and
//! dispatched from *f* + 6.

mod buffer;
mod control;
mod packet;

use commit_trace::{DataSource, PacketFetch, TeaEvents};

use crate::Preset;
use crate::mem::{Cache, LINE_BITS, ShownLines};
use crate::observe::Translated;
use crate::predict::{Component, MicroBtb};
use crate::ring::Ring;
use buffer::FetchBuffer;

pub(crate) use packet::Below;

/// Cycles from F0 to the packet's entry into the fetch buffer.
const F4: u64 = 4;

/// Counters of the front end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrontCounts {
    pub packets: u64,
    pub l1i_accesses: u64,
    pub l1i_misses: u64,
    pub itlb_misses: u64,
    pub redirects_f2: u64,
    pub redirects_f3: u64,
    pub redirects: u64,
    pub l1i_prefetches: u64,
    /// Cycles by which packets were late for want of their line.
    pub l1i_cycles: u64,
    /// Cycles by which packets were late for want of room in the fetch buffer.
    pub buffer_cycles: u64,
    /// Cycles by which packets were late for want of room in the fetch target queue.
    pub target_cycles: u64,
    /// Restarts by F2 only for a branch that is not taken, which F1 had missed.
    pub history_redirects_f2: u64,
    /// Restarts by F3 only for a branch that is not taken, which F2 had missed.
    pub history_redirects_f3: u64,
    /// Mispredictions, by the [`Component`] that predicted.
    pub misses_by: [u64; Component::COUNT],
    pub btb_hits: u64,
    pub micro_btb_misses: u64,
    /// Calls that found the return stack full.
    pub returns_full: u64,
    /// Returns that found the return stack empty.
    pub returns_empty: u64,
}

snapshot::snapshot!(FrontCounts {
    packets,
    l1i_accesses,
    l1i_misses,
    itlb_misses,
    redirects_f2,
    redirects_f3,
    redirects,
    l1i_prefetches,
    l1i_cycles,
    buffer_cycles,
    target_cycles,
    history_redirects_f2,
    history_redirects_f3,
    misses_by,
    btb_hits,
    micro_btb_misses,
    returns_full,
    returns_empty
});

/// The front end.
pub(crate) struct FrontEnd {
    /// Cycle of the current packet's F0.
    f0: u64,
    /// Cycle of the next packet's F0, if a branch, jump or redirect ended the current one.
    next_f0: u64,
    /// Cycle in which the current packet entered the fetch buffer.
    entered: u64,
    /// Cycle in which the packet before the current one entered the fetch buffer.
    entered_before: u64,
    /// What the predictor stages have predicted of the packet so far.
    view: View,
    /// Events that delayed the packet; they go into the record of its first instruction.
    pub tea: TeaEvents,
    pub buffer: FetchBuffer,
    /// Fetch target queue, an entry per packet.
    targets: Ring,
    micro_btb: MicroBtb,
    l1i: Cache,
    /// The current packet's line.
    line: u64,
    l1i_refill: u64,
    l1i_prefetch: bool,
    /// Cycles by which the F0 of packets was late, added up since [`Self::fetched_packet`] took them last; `source` and `translated` say why.
    late: u64,
    source: DataSource,
    translated: Translated,
    pub counts: FrontCounts,
}

/// What F1, F2 and F3 predict of the packet's branches that are not taken. When an earlier stage differs from a later
/// one, in the next address or in the history, the later one restarts fetch.
#[derive(Clone, Copy, Debug, Default)]
struct View {
    /// F1 predicted a branch to be taken that is not.
    left1: bool,
    /// F2 predicted a branch to be taken that is not.
    left2: bool,
    /// Banks in which F1 knows of a branch that is not taken; a bit each.
    seen1: u8,
    /// Banks in which F2 knows of a branch that is not taken; a bit each.
    seen2: u8,
    /// Banks in which F3 knows of a branch that is not taken; a bit each.
    seen3: u8,
}

snapshot::snapshot!(View { left1, left2, seen1, seen2, seen3 });

impl View {
    /// Returns the cycles from F0 to the next packet's F0. `one`: F1 agrees with F3 on the next address; `two`: F2
    /// does.
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
    f0, next_f0, entered, entered_before, view, tea, buffer, targets, micro_btb, l1i, line, counts
} keeps {
    l1i_refill, l1i_prefetch, late, source, translated
});

impl FrontEnd {
    pub(crate) fn new(preset: &Preset) -> Self {
        Self {
            f0: 0,
            next_f0: 0,
            entered: 0,
            entered_before: 0,
            view: View::default(),
            tea: TeaEvents::default(),
            buffer: FetchBuffer::new(preset),
            // An entry is given back when the packet after next is fetched, and two stay empty.
            targets: Ring::new(preset.fetch.targets - 3),
            micro_btb: MicroBtb::new(preset.predictor.micro_btb),
            l1i: Cache::new(preset.l1i.kib, preset.l1i.ways, 0xcafe),
            line: u64::MAX,
            l1i_refill: u64::from(preset.l1i.refill),
            l1i_prefetch: preset.l1i.prefetch,
            late: 0,
            source: DataSource::L1,
            translated: Translated::default(),
            counts: FrontCounts::default(),
        }
    }

    /// Returns how the fetch of the current packet went, provided that this was called for the packet before, too.
    pub(crate) fn fetched_packet(&mut self) -> PacketFetch {
        let translated = std::mem::take(&mut self.translated);
        PacketFetch {
            asked: self.f0.saturating_sub(std::mem::take(&mut self.late)),
            delivered: self.entered,
            pa: self.line << LINE_BITS,
            source: std::mem::replace(&mut self.source, DataSource::L1),
            translation: translated.by,
            translating: translated.cycles,
        }
    }

    /// Returns F0 of the packet that holds the instruction decoded last.
    #[inline(always)]
    pub(crate) fn fetched(&self) -> u64 {
        self.f0
    }

    /// Returns the number of the current packet's line.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// Restarts fetch with F0 in cycle `f0`, and drops what was fetched.
    pub(crate) fn redirect(&mut self, f0: u64) {
        self.counts.redirects += 1;
        self.next_f0 = f0;
        self.buffer.clear();
    }

    /// Begins to show which lines of code need no access.
    pub(crate) fn begin_warming(&mut self) {
        self.l1i.begin_warming();
    }

    /// Returns the lines of code that need no access while the cache is kept warm.
    #[inline(always)]
    pub(crate) fn shown(&self) -> Option<&ShownLines> {
        self.l1i.shown()
    }

    /// `fence.i`: the instruction cache is emptied.
    pub(crate) fn clear_l1i(&mut self) {
        self.l1i.clear();
        self.line = u64::MAX;
    }
}
