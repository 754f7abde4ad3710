//! Functional warming of several cores: the directory says who holds which line, as after the same accesses under the cores.

use crate::asm::{Commits, Program, State, TEXT};
use isa::{FILTER_LINE_BITS, MemAccess, MemKind, TimingModel};
use timing::{Core, Learning, Preset, SharedMemory, Warming};

const DATA: u64 = 0x8100_0000;
const LINE: u64 = 1 << FILTER_LINE_BITS;

/// A hart, whether it writes, and the number of a line.
type Access = (usize, bool, u64);

fn cores() -> [Core<Commits>; 2] {
    let mut preset = Preset::load("boom-4w").unwrap();
    preset.l1d.prefetch = false;
    let memory = SharedMemory::new(&preset, 2);
    [0, 1].map(|hart| Core::sharing(&memory, hart, &preset, Commits::default()))
}

/// Lets harts access lines in turns, without timing.
fn warm(cores: &mut [Core<Commits>; 2], accesses: &[Access]) {
    for &(hart, writes, line) in accesses {
        let mut warming = Warming::new(&mut cores[hart], 1 << 16, Learning::Off);
        warming.other_harts_executed();
        let (kind, at) = (if writes { MemKind::Store } else { MemKind::Load }, DATA + LINE * line);
        let filters = warming.line_filters().unwrap();
        let filter = if writes { filters.stores } else { filters.loads };
        // A hart tells the model of what is not shown, too.
        if !filter.shows(at >> FILTER_LINE_BITS) {
            warming.warm_access(&MemAccess::new(kind, at, at, 8, false), false);
        }
    }
    cores.iter_mut().for_each(Core::end_warming);
}

/// Executes accesses under the core of a hart, each to its end. Returns what the core counted of misses, of lines that the other core gave, and of those
/// that it asked to write.
fn time(core: &mut Core<Commits>, accesses: &[Access], now: u64) -> [u64; 3] {
    let lines = accesses.iter().map(|(_, writes, line)| {
        let name = if *writes { "sd" } else { "ld" };
        format!("{name} a2,{}(a1); fence; ", LINE * line)
    });
    let program = Program::new(&format!("FN(f) {} jalr zero,s3\n", lines.collect::<String>()));
    program.define(core);
    let mut state = State::new();
    (state.x[11], state.x[19], state.pc) = (DATA, 0x1000, TEXT);
    core.idle_until(now);
    core.other_harts_executed();
    let before = core.stats();
    program.run(core, &mut state);
    let after = core.stats();
    [
        after.l1d_misses - before.l1d_misses,
        after.transfers - before.transfers,
        after.upgrades - before.upgrades,
    ]
}

#[test]
fn the_directory_is_as_after_timed_execution() {
    let lines = [0, 2, 4, 6, 8, 10];
    let all = |hart: usize, writes: bool| lines.map(|line| (hart, writes, line));
    let mut seen = std::collections::BTreeSet::new();
    // Both harts have the code before, which is as long whatever the lines are.
    let primed = || {
        let mut cores = cores();
        for (hart, now) in [(0, 100_000), (1, 200_000)] {
            time(&mut cores[hart], &lines.map(|line| (hart, false, line + 16)), now);
        }
        cores
    };
    // What both harts did, step by step, and what the second one does then.
    for steps in 0..64u32 {
        let step = |n: u32| {
            let bits = steps >> (2 * n);
            all((bits & 1) as usize, bits & 2 != 0)
        };
        let before: Vec<[Access; 6]> = (0..3).map(step).collect();
        for last in [all(1, false), all(1, true)] {
            let mut warmed = primed();
            warm(&mut warmed, &before.concat());
            let mut timed = primed();
            let mut now = 200_000;
            for accesses in &before {
                now += 100_000;
                time(&mut timed[accesses[0].0], accesses, now);
            }
            let [found, expected] =
                [&mut warmed, &mut timed].map(|cores| time(&mut cores[1], &last, 600_000));
            assert_eq!(found, expected, "{before:?} {last:?}");
            seen.insert(expected);
        }
    }
    // Hits, writes to lines that are shared, and misses in lines that the other hart has.
    assert_eq!(seen, [[0, 0, 0], [0, 0, 6], [6, 6, 0]].into(), "every kind was seen");
}

#[test]
fn a_line_that_another_hart_takes_is_hidden() {
    let mut cores = cores();
    let line = DATA >> FILTER_LINE_BITS;
    let shown = |cores: &mut [Core<Commits>; 2], hart: usize| {
        let mut warming = Warming::new(&mut cores[hart], 1 << 16, Learning::Off);
        warming.other_harts_executed();
        let filters = warming.line_filters().unwrap();
        (filters.loads.shows(line), filters.stores.shows(line))
    };
    let access = |cores: &mut [Core<Commits>; 2], hart: usize, kind: MemKind| {
        let mut warming = Warming::new(&mut cores[hart], 1 << 16, Learning::Off);
        warming.other_harts_executed();
        warming.warm_access(&MemAccess::new(kind, DATA, DATA, 8, false), false);
    };
    access(&mut cores, 0, MemKind::Store);
    assert_eq!(shown(&mut cores, 0), (true, true));
    access(&mut cores, 1, MemKind::Load);
    assert!(!shown(&mut cores, 0).1, "the next write has to ask");
    assert_eq!(shown(&mut cores, 1), (true, false));
    access(&mut cores, 0, MemKind::Store);
    assert_eq!(shown(&mut cores, 1), (false, false), "it is gone");
    assert_eq!(shown(&mut cores, 0), (true, true));
}

/// To read what another hart wrote takes as long as a request that comes back with its line; so does to write what it read.
#[test]
fn a_hart_waits_for_lines_of_others() {
    let mut cores = cores();
    let access = |cores: &mut [Core<Commits>; 2], hart: usize, kind: MemKind| {
        let mut warming = Warming::new(&mut cores[hart], 1 << 16, Learning::Off);
        warming.other_harts_executed();
        for line in 0..3 {
            let at = DATA + LINE * line;
            warming.warm_access(&MemAccess::new(kind, at, at, 8, false), false);
        }
        warming.take_delay()
    };
    let preset = Preset::load("boom-4w").unwrap();
    let latency = preset.l2.latency + preset.llc.latency + preset.coherence.transfer;
    let three = 3 * u64::from(latency);
    assert_eq!(access(&mut cores, 0, MemKind::Store), 0, "nobody has them");
    assert_eq!(access(&mut cores, 1, MemKind::Load), three, "they come from the other hart");
    assert_eq!(access(&mut cores, 1, MemKind::Load), 0, "they are there");
    assert_eq!(
        access(&mut cores, 1, MemKind::Store),
        three,
        "the other hart is asked to drop them"
    );
    assert_eq!(access(&mut cores, 1, MemKind::Store), 0, "they are its own");
    assert_eq!(cores.each_ref().map(Core::warm_delay), [0, 2 * three]);
    cores.iter_mut().for_each(Core::end_warming);
    assert_eq!(access(&mut cores, 0, MemKind::Store), three);
    assert_eq!(cores[0].warm_delay(), three);
}
