//! Functional warming: the hart executes without timing, and caches, TLBs, memory rows and predictors become what they would be.
//!
//! Warming accesses the core's own caches, with the code that times accesses. Each access comes long after the one before, so that no line is on its
//! way and nothing is busy; the cycles are forgotten at the end ([`Core::end_warming`]). Filters show the hart the lines whose hits leave no trace in
//! the caches: the hart tells the model only of accesses to other lines.
//!
//! The cores of several harts share one time of accesses ([`SharedMemory::after_all`](crate::SharedMemory)), and the directory is kept as in a timed run: a hart that reads
//! or writes a line of others leaves them messages, which hide the line at their next turn ([`TimingModel::other_harts_executed`]).
//!
//! Predictors and the return stack learn from a log of the path, on a thread of its own ([`follower`]).
//!
//! Not kept warm: the micro BTB, which learns by cycles; the store queue; and the TLBs' bits of use for pages of which only shown lines are accessed.
//! The timed warm-up before a measured unit is for these.

mod executed;
mod follower;
mod misses;
mod state;

use commit_trace::CommitSink;
use isa::{
    DmaLines, LineFilters, MemAccess, MemKind, PageWalk, PathLog, PathSegment, Privilege,
    TimingModel,
};

use crate::Core;
use crate::front::FrontCounts;
use crate::lsu::LsuCounts;
use crate::mem::{L1dCounts, LINE_BITS, Origin, TlbSide, WalkCounts, bits};
use crate::path::{Path, WalkReads, WarmPage};
use crate::pipeline::Pipeline;
use crate::tap::{CoreCall, CoreTap};
use follower::Follower;
pub use follower::Learning;
pub use misses::MissCounts;

/// Cycles from one access to the next: more than any takes.
const APART: u64 = 4096;
/// Lines of a page.
const PAGE_LINES: u64 = 1 << (12 - LINE_BITS);

/// Stands for a core while its hart executes without timing, and keeps the core's caches warm. Several values in a row have the same result as a
/// single one, until [`Core::end_warming`].
pub struct Warming<'a, S> {
    path: &'a mut Path,
    pipeline: &'a mut Pipeline<S>,
    state: &'a mut WarmState,
    tap: Option<&'a mut (dyn CoreTap + 'static)>,
    delay: &'a mut u64,
    /// Cycles for each instruction, in units of 2^-16.
    rate: u64,
}

/// Stands for a core while its hart executes without timing, and leaves caches, TLBs and predictors as they are, but for what the guest itself
/// drops of them, and lines that devices write. The hart executes as fast as without a core.
pub struct FastForward<'a, S>(Warming<'a, S>);

/// What a core keeps from the first [`Warming`] to [`Core::end_warming`].
pub(crate) struct WarmState {
    /// Cycle of the last access, in a time of its own.
    cycle: u64,
    walks: Vec<WalkReads>,
    follower: Follower,
    data_pages: [ShownPage; 64],
    code_pages: [ShownPage; 64],
    /// Counts as the core had them: warming is no part of them.
    counts: MemoryCounts,
    /// Misses as the core had them.
    misses: MissCounts,
    /// Requests for lines that other harts have, up to the last [`TimingModel::take_delay`].
    peer_requests: u64,
}

/// Lines that the filters show of the page in one TLB entry.
#[derive(Clone, Copy, Default)]
struct ShownPage {
    /// Physical number of the page.
    page: u64,
    /// Lines of the page that were shown, a bit each.
    lines: u64,
}

/// Counts of a core that accesses to memory change.
struct MemoryCounts {
    front: FrontCounts,
    lsu: LsuCounts,
    l1d: L1dCounts,
    lower: crate::mem::Counts,
    walk: [WalkCounts; 2],
    walk_reads: (u64, u64),
    dram: (u64, u64),
    tlb_flushes: u64,
}

impl WarmState {
    fn begin<S>(pipeline: &mut Pipeline<S>) -> Self {
        pipeline.lsu.l1d.begin_warming();
        pipeline.front.begin_warming();
        let (front, lsu) = (&pipeline.front, &pipeline.lsu);
        let counts = MemoryCounts {
            front: front.counts,
            lsu: lsu.counts,
            l1d: lsu.l1d.counts,
            lower: lsu.lower.counts,
            walk: lsu.walk.counts,
            walk_reads: (lsu.walk.reads, lsu.walk.pte_hits),
            dram: lsu.lower.shared.dram_counts(),
            tlb_flushes: pipeline.stats.tlb_flushes,
        };
        Self {
            cycle: pipeline.cycle(),
            walks: Vec::new(),
            follower: Follower::default(),
            data_pages: [ShownPage::default(); 64],
            code_pages: [ShownPage::default(); 64],
            counts,
            misses: MissCounts::of(pipeline),
            peer_requests: peer_requests(pipeline),
        }
    }
}

/// Returns how often the core has asked for lines that other harts have, to read or to write them.
fn peer_requests<S>(pipeline: &Pipeline<S>) -> u64 {
    let counts = &pipeline.lsu.lower.counts;
    counts.transfers + counts.upgrades
}

impl<S> Core<S> {
    /// Returns a running total of the cycles that the hart waited for lines of other harts while the core was kept warm
    /// ([`TimingModel::take_delay`]).
    pub fn warm_delay(&self) -> u64 {
        self.warm_delay
    }

    /// Ends functional warming, if it has begun: all that is on its way arrives, and counts are what they were before.
    pub fn end_warming(&mut self) {
        let Some(mut state) = self.warm_state.take() else { return };
        let Self { path, pipeline, warm_misses, .. } = self;
        path.leave_page();
        if state.follower.is_learning() {
            state.follower.go_on(Learning::Off, path);
        } else {
            // What is timed next does not follow what was timed last.
            path.flush();
        }
        let lsu = &mut pipeline.lsu;
        lsu.l1d.settle(&mut lsu.lower);
        lsu.walk.settle();
        *warm_misses = warm_misses.plus(MissCounts::of(pipeline).since(state.misses));
        let (front, lsu) = (&mut pipeline.front, &mut pipeline.lsu);
        let counts = &state.counts;
        front.counts = counts.front;
        lsu.counts = counts.lsu;
        lsu.l1d.counts = counts.l1d;
        lsu.lower.counts = counts.lower;
        lsu.walk.counts = counts.walk;
        (lsu.walk.reads, lsu.walk.pte_hits) = counts.walk_reads;
        lsu.lower.shared.set_dram_counts(counts.dram);
        pipeline.stats.tlb_flushes = counts.tlb_flushes;
    }
}

impl<S: CommitSink> Core<S> {
    /// Sleeps until `cycle`, up to which the hart has executed without timing, and ends warming. Predictors that learned meanwhile know the path up to there.
    pub fn end_rest(&mut self, cycle: u64) {
        if let Some(tap) = &mut self.tap {
            if let Some(state) = &self.warm_state {
                tap.call(CoreCall::Path(state.follower.to_follow()));
            }
            tap.call(CoreCall::Wake { cycle });
        }
        match self.warm_state {
            Some(_) => self.end_warming(),
            None => self.path.flush(),
        }
        self.pipeline.idle_until(cycle);
    }
}

impl<'a, S: CommitSink> Warming<'a, S> {
    /// Stands for `core` from now on. To the guest, each instruction takes `rate` cycles, in units of 2^-16.
    pub fn new(core: &'a mut Core<S>, rate: u64, learning: Learning) -> Self {
        let Core { path, pipeline, warm_state, tap, warm_delay: delay, .. } = core;
        let mut tap = tap.as_deref_mut();
        let begins = warm_state.is_none();
        let state = warm_state.get_or_insert_with(|| Box::new(WarmState::begin(pipeline)));
        let learns = !matches!(learning, Learning::Off);
        if let Some(tap) = tap.as_mut().filter(|_| begins || learns != state.follower.is_learning())
        {
            // What was executed before the predictors stop learning comes first.
            tap.call(CoreCall::Path(state.follower.to_follow()));
            tap.call(CoreCall::Rest { learns });
        }
        state.follower.go_on(learning, path);
        Self { path, pipeline, state, tap, delay, rate }
    }

    /// Gives the tap a call, if there is one.
    fn tap<'c>(&mut self, call: impl FnOnce() -> CoreCall<'c>) {
        if let Some(tap) = &mut self.tap {
            tap.call(call());
        }
    }

    /// Lets the predictors, if they learn, follow a path that was logged elsewhere, after the path in the [log](TimingModel::path_log).
    pub fn follow(&mut self, segments: &[PathSegment]) {
        for segment in segments {
            let log = &mut self.state.follower.log;
            log.push(*segment);
            if log.is_full() {
                self.take_path_log();
            }
        }
    }

    /// Returns the cycle of the next access.
    fn next_cycle(&mut self) -> u64 {
        let lower = &self.pipeline.lsu.lower;
        self.state.cycle = match lower.coherent {
            true => lower.shared.after_all(self.state.cycle, APART),
            false => self.state.cycle + APART,
        };
        self.state.cycle
    }

    /// Reads the page-table entries of the walks that the last access caused.
    fn walk(&mut self, side: TlbSide) {
        for reads in std::mem::take(&mut self.state.walks) {
            let cycle = self.next_cycle();
            let lsu = &mut self.pipeline.lsu;
            lsu.walk.translate(side, cycle, &reads, &mut lsu.l1d, &mut lsu.lower);
        }
    }

    /// Notes that the filters will show a line of a page that a TLB entry holds. If the entry held another page before, the lines of that page are
    /// hidden, so that the model is told of the next access to one of them.
    fn note_page(&mut self, side: TlbSide, found: WarmPage, pa: u64) {
        let pages = match side {
            TlbSide::Data => &mut self.state.data_pages,
            TlbSide::Code => &mut self.state.code_pages,
        };
        let Some(known) = pages.get_mut(found.entry) else { return };
        let page = pa >> 12;
        let line = 1 << ((pa >> LINE_BITS) % PAGE_LINES);
        if !found.missed {
            // A superpage's entry knows the lines of one of its 4 KiB pages only; lines of the other pages stay shown when the entry goes.
            match known.page {
                0 => *known = ShownPage { page, lines: line },
                same if same == page => known.lines |= line,
                _ => {}
            }
            return;
        }
        let before = std::mem::replace(known, ShownPage { page, lines: line });
        let Some(filters) = self.line_filters() else { return };
        for line in bits(before.lines).map(|line| before.page * PAGE_LINES + line as u64) {
            match side {
                TlbSide::Data => {
                    filters.loads.hide(line);
                    filters.stores.hide(line);
                }
                TlbSide::Code => filters.fetches.hide(line),
            }
        }
    }
}

impl<'a, S: CommitSink> FastForward<'a, S> {
    /// Stands for `core` from now on. To the guest, each instruction takes `rate` cycles, in units of 2^-16.
    pub fn new(core: &'a mut Core<S>, rate: u64) -> Self {
        Self(Warming::new(core, rate, Learning::Off))
    }
}

impl<S: CommitSink> TimingModel for FastForward<'_, S> {
    const TIMED: bool = false;
    const PACED: bool = true;

    fn warm_rate(&self) -> u64 {
        self.0.rate
    }

    fn warm_fence_i(&mut self) {
        self.0.warm_fence_i();
    }

    fn flush_tlb(&mut self) {
        self.0.flush_tlb();
    }

    fn dma_write(&mut self, lines: DmaLines) {
        self.0.dma_write(lines);
    }

    isa::methods_without_timing!();
    fn privilege(&mut self, _: Privilege) {}
}

impl<S: CommitSink> TimingModel for Warming<'_, S> {
    const TIMED: bool = false;
    const WARMS: bool = true;

    fn line_filters(&self) -> Option<LineFilters<'_>> {
        let pipeline = &*self.pipeline;
        let (data, code) = (pipeline.lsu.l1d.shown()?, pipeline.front.shown()?);
        Some(LineFilters { loads: &data.reads, stores: &data.writes, fetches: &code.reads })
    }

    fn warm_rate(&self) -> u64 {
        self.rate
    }

    fn take_delay(&mut self) -> u64 {
        let requests = peer_requests(self.pipeline);
        let new = requests - std::mem::replace(&mut self.state.peer_requests, requests);
        if new == 0 {
            return 0;
        }
        let preset = self.pipeline.preset();
        let latency = preset.l2.latency + preset.llc.latency + preset.coherence.transfer;
        let delay = new * u64::from(latency);
        *self.delay += delay;
        delay
    }

    #[cold]
    fn warm_access(&mut self, access: &MemAccess, translated: bool) {
        let origin = match access.kind() {
            MemKind::Load => Origin::Load,
            _ => Origin::Store,
        };
        let line = access.pa() >> LINE_BITS;
        let page = translated.then(|| self.path.warm_data(access.va, &mut self.state.walks));
        if let Some(page) = page {
            self.note_page(TlbSide::Data, page, access.pa());
        }
        if page.is_none_or(|page| page.unchanged) && self.pipeline.lsu.l1d.show_again(line, origin)
        {
            return;
        }
        self.tap(|| CoreCall::WarmAccess { access: *access, translated });
        self.walk(TlbSide::Data);
        let cycle = self.next_cycle();
        let lsu = &mut self.pipeline.lsu;
        lsu.l1d.warm(line, cycle, origin, &mut lsu.lower);
    }

    #[cold]
    fn warm_fetch(&mut self, pc: u64, pa: u64, translated: bool) {
        let line = pa >> LINE_BITS;
        let page = translated.then(|| self.path.warm_code(pc, &mut self.state.walks));
        if let Some(page) = page {
            self.note_page(TlbSide::Code, page, pa);
        }
        if page.is_none_or(|page| page.unchanged) && self.pipeline.front.show_again(line) {
            return;
        }
        self.tap(|| CoreCall::WarmFetch { pc, pa, translated });
        self.walk(TlbSide::Code);
        let cycle = self.next_cycle();
        let pipeline = &mut *self.pipeline;
        pipeline.front.warm(line, cycle, &mut pipeline.lsu.lower);
    }

    #[inline(always)]
    fn path_log(&mut self) -> Option<&mut PathLog> {
        Some(&mut self.state.follower.log)
    }

    #[cold]
    fn take_path_log(&mut self) {
        if let Some(tap) = &mut self.tap {
            tap.call(CoreCall::Path(self.state.follower.to_follow()));
        }
        let preset = self.pipeline.preset();
        self.state.follower.follow(self.path, preset);
    }

    fn warm_fence_i(&mut self) {
        self.tap(|| CoreCall::FenceI);
        self.pipeline.front.clear_l1i();
    }

    /// Drops and hides lines that other harts took, so that the next access to one is seen.
    fn other_harts_executed(&mut self) {
        self.pipeline.other_harts_executed();
    }

    fn translated(&mut self, va: u64, walk: &PageWalk) {
        // Most pages were translated before.
        if self.tap.is_some() && !self.path.has_walk(va, walk) {
            self.tap(|| CoreCall::Translated { va, walk: *walk });
        }
        self.path.translated(va, walk);
    }

    fn dma_write(&mut self, lines: DmaLines) {
        self.tap(|| CoreCall::DmaWrite(lines));
        self.pipeline.dma_write(lines);
    }

    fn flush_tlb(&mut self) {
        self.tap(|| CoreCall::FlushTlb);
        self.path.flush_tlb();
        self.pipeline.flush_tlb();
        (self.state.data_pages, self.state.code_pages) =
            ([ShownPage::default(); 64], [ShownPage::default(); 64]);
        if let Some(filters) = self.line_filters() {
            for filter in [filters.loads, filters.stores, filters.fetches] {
                filter.clear();
            }
        }
    }

    isa::methods_without_timing!();
    fn privilege(&mut self, _: Privilege) {}
}
