//! Functional warming: what a hart accesses without timing is in the core's caches and TLBs afterwards.

mod asm;

use std::ops::Range;

use asm::{Commits, Program, State, TEXT};
use isa::{FILTER_LINE_BITS, MemAccess, MemKind, PageWalk, TimingModel};
use timing::{Core, Preset, Warming};

const DATA: u64 = 0x8100_0000;
const LINE: u64 = 1 << FILTER_LINE_BITS;

fn core() -> Core<Commits> {
    Core::new(&Preset::load("boom-4w").unwrap(), Commits::default())
}

/// Loads or stores in each of some lines of data, without timing. Returns how many of them are shown afterwards.
fn warm(core: &mut Core<Commits>, lines: Range<u64>, kind: MemKind) -> usize {
    let mut warming = Warming::new(core, 1 << 16);
    for line in lines.clone() {
        let at = DATA + LINE * line;
        warming.warm_access(&MemAccess::new(kind, at, at, 8, false), false);
    }
    let filters = warming.line_filters().unwrap();
    let filter = if kind == MemKind::Load { filters.loads } else { filters.stores };
    lines.filter(|line| filter.shows((DATA >> FILTER_LINE_BITS) + line)).count()
}

/// Loads the first 32 lines of data under the core. Returns the misses of its data cache.
fn misses(core: &mut Core<Commits>) -> u64 {
    let loads: String = (0..32).map(|line| format!("ld a2,{}(a1); ", LINE * line)).collect();
    let program = Program::new(&format!("FN(f) {loads} jalr zero,s3\n"));
    program.define(core);
    let mut state = State::new();
    (state.x[11], state.x[19], state.pc) = (DATA, 0x1000, TEXT);
    core.idle_until(core.cycle() + 10_000);
    program.run(core, &mut state);
    core.stats().l1d_misses
}

#[test]
fn lines_that_were_warmed_hit() {
    assert!(misses(&mut core()) >= 16, "at most half of them are prefetched");
    for kind in [MemKind::Load, MemKind::Store] {
        let mut core = core();
        assert_eq!(warm(&mut core, 0..32, kind), 32);
        core.end_warming();
        let stats = core.stats();
        assert_eq!((stats.l1d_misses, stats.l2_accesses, stats.dram_accesses), (0, 0, 0));
        assert_eq!(misses(&mut core), 0, "{kind:?}");
    }
}

#[test]
fn lines_that_are_evicted_are_hidden() {
    let mut core = core();
    let places = u64::from(core.preset().l1d.kib) * 1024 / LINE;
    let shown = warm(&mut core, 0..8 * places, MemKind::Load) as u64;
    // Replacement is random, and some lines of the cache hide each other in the filter.
    assert!((places / 2..=places).contains(&shown), "{shown} of {places}");
    assert!(misses(&mut core) > 0, "they were the first to be accessed");
}

#[test]
fn lines_of_a_page_that_leaves_the_tlb_are_hidden() {
    let mut core = core();
    let entries = u64::from(core.preset().dtlb.entries);
    let mut warming = Warming::new(&mut core, 1 << 16);
    let mut access = |page: u64| {
        // The lines of the pages lie in different sets.
        let at = DATA + 4096 * page + LINE * (page % 64);
        let walk = PageWalk {
            pte: [0x8200_0000, 0x8200_1000, 0x8200_2000 + 8 * page, 0, 0],
            levels: 3,
            page_bits: 12,
        };
        warming.translated(at, &walk);
        warming.warm_access(&MemAccess::new(MemKind::Load, at, at, 8, false), true);
        let first = (DATA >> FILTER_LINE_BITS, warming.line_filters().unwrap());
        first.1.loads.shows(first.0)
    };
    assert!(access(0));
    assert!(access(1), "there is room for both");
    let last = (2..4 * entries).map(&mut access).last().unwrap();
    assert!(!last, "its page went, and the next access is to be seen");
    warming.flush_tlb();
    let filters = warming.line_filters().unwrap();
    assert!((0..1 << 20).all(|line| !filters.loads.shows((DATA >> FILTER_LINE_BITS) + line)));
}
