//! Functional warming: what a hart accesses without timing is in the core's caches and TLBs afterwards.

use std::ops::Range;

use crate::asm::{Commits, Program, State, TEXT};
use isa::{FILTER_LINE_BITS, MemAccess, MemKind, PageWalk, PathSegment, TimingModel, TransferKind};
use timing::{Core, Learning, Preset, Warming};

const DATA: u64 = 0x8100_0000;
const LINE: u64 = 1 << FILTER_LINE_BITS;

fn core() -> Core<Commits> {
    Core::new(&Preset::load("boom-4w").unwrap(), Commits::default())
}

/// Loads or stores in each of some lines of data, without timing. Returns how many of them are shown afterwards.
fn warm(core: &mut Core<Commits>, lines: Range<u64>, kind: MemKind) -> usize {
    let mut warming = Warming::new(core, 1 << 16, Learning::Off);
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
    let mut warming = Warming::new(&mut core, 1 << 16, Learning::Off);
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

/// A loop of seven turns, over and over.
const BRANCHES: &str = "FN(f) li a1,60; \
    1: li a2,7; \
    2: addi a2,a2,-1; bnez a2,2b; \
    addi a1,a1,-1; bnez a1,1b; \
    jalr zero,s3\n";

/// Runs the branches once under the core. Returns how many of them it mispredicted, and where the program went, instruction by instruction.
fn branches(core: &mut Core<Commits>) -> (u64, Vec<PathSegment>) {
    let program = Program::new(BRANCHES);
    program.define(core);
    let mut state = State::new();
    (state.x[19], state.pc) = (0x1000, TEXT);
    core.idle_until(core.cycle() + 10_000);
    let before = core.stats().branch_misses;
    let mut path = Vec::new();
    while let Some(index) = program.at(state.pc) {
        let inst = &program.insts[index];
        program.step(core, &mut state, index);
        let taken = state.pc != inst.pc + 4;
        let kind = TransferKind::of(&inst.decoded);
        let target = if inst.target != 0 { inst.target } else { state.pc };
        path.push(PathSegment::one(kind, inst.pc, 4, taken, target));
    }
    // Sleep flushes.
    path.push(PathSegment::trap(state.pc, TEXT));
    (core.stats().branch_misses - before, path)
}

#[test]
fn predictors_learn_from_the_path() {
    let (cold, path) = branches(&mut core());
    let mut timed = core();
    let mut last = cold;
    for _ in 0..21 {
        (last, _) = branches(&mut timed);
    }
    assert!(last < cold, "{last} of {cold}");
    let learn = |learning: Learning| {
        let mut core = core();
        let mut warming = Warming::new(&mut core, 1 << 16, learning);
        for &segment in path.iter().cycle().take(20 * path.len()) {
            warming.path_log().unwrap().push(segment);
            if warming.path_log().unwrap().is_full() {
                warming.take_path_log();
            }
        }
        core.end_warming();
        assert_eq!(core.stats().branches, 0, "nothing is counted");
        branches(&mut core).0
    };
    // Timed runs teach the same.
    assert_eq!(learn(Learning::Here), last);
    assert_eq!(learn(Learning::Apart(|| ())), last);
    assert_eq!(learn(Learning::Off), cold);
}

/// Trip counts that follow each other in a pattern of 23, which takes a long history to predict.
const TRIPS: &str = "FN(f) li a1,0; \
    1: addi a1,a1,7; addi a3,a1,-23; srli a4,a3,63; bnez a4,3f; addi a1,a1,-23; \
    3: addi a2,a1,1; \
    2: addi a2,a2,-1; bnez a2,2b; \
    addi a5,a5,-1; bnez a5,1b; \
    jalr zero,s3\n";

#[test]
fn a_core_goes_on_where_its_predictors_are() {
    let misses = |learning: Option<Learning>| {
        let program = Program::new(TRIPS);
        let mut core = core();
        program.define(&mut core);
        let mut state = State::new();
        (state.x[15], state.x[19], state.pc) = (8000, 0x1000, TEXT);
        let step = |core: &mut Core<Commits>, state: &mut State, path: &mut Vec<PathSegment>| {
            let Some(index) = program.at(state.pc) else { return };
            let inst = &program.insts[index];
            program.step(core, state, index);
            let taken = state.pc != inst.pc + 4;
            let kind = TransferKind::of(&inst.decoded);
            let target = if inst.target != 0 { inst.target } else { state.pc };
            path.push(PathSegment::one(kind, inst.pc, 4, taken, target));
        };
        let mut path = Vec::new();
        let mut scratch = self::core();
        program.define(&mut scratch);
        for _ in 0..100_003 {
            match learning {
                None => step(&mut core, &mut state, &mut path),
                Some(_) => step(&mut scratch, &mut state, &mut path),
            }
        }
        if let Some(learning) = learning {
            let mut warming = Warming::new(&mut core, 1 << 16, learning);
            for &segment in &path {
                warming.path_log().unwrap().push(segment);
                if warming.path_log().unwrap().is_full() {
                    warming.take_path_log();
                }
            }
            core.end_rest(1_000_000);
            core.wake_at(1_000_000);
        }
        let before = core.stats().branch_misses;
        for _ in 0..2000 {
            step(&mut core, &mut state, &mut path);
        }
        core.stats().branch_misses - before
    };
    let timed = misses(None);
    assert_eq!(misses(Some(Learning::Here)), timed);
    assert!(misses(Some(Learning::Off)) > timed + 20);
}
