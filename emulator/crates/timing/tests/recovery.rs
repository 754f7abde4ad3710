//! Parameters of a preset, recovered from the cycles of micro-programs.

use crate::asm::{Commits, Program, State, TEXT};
use commit_trace::{Commit, Redirect};
use isa::TimingModel as _;
use timing::{Core, Preset};

const DATA: u64 = 0x8100_0000;
/// Far enough apart for another line, page and DRAM row in every round.
const ROUND: u64 = 0x10_0000;
/// Shorter than a miss that DRAM answers, longer than any other pause of dispatch here.
const SHADOW: u64 = 30;

fn presets() -> impl Iterator<Item = Preset> {
    ["boom-4w", "large-boom", "mega-boom"].map(|n| Preset::load(n).unwrap()).into_iter()
}

/// Instructions `line` that dispatch behind a load that misses every cache, before one must wait for it.
fn in_the_shadow(preset: &Preset, miss: &str, line: &str) -> u32 {
    let lines = vec![line; 300].join("; ");
    let program = Program::new(&format!("FN(f) {miss}; {lines}; jalr zero,s3\n"));
    let mut core = Core::new(preset, Commits::default());
    program.define(&mut core);
    let mut state = State::new();
    let mut start = 0;
    for round in 1..4 {
        start = core.sink().0.len();
        let end = core.cycle() + 1000;
        core.idle_until(end);
        let address = DATA + round * ROUND;
        state.poke(address, DATA);
        (state.x[9], state.x[11], state.x[19], state.pc) = (DATA, address, 0x1000, TEXT);
        program.run(&mut core, &mut state);
    }
    let run = &core.sink().0[start..];
    let stop = run.windows(2).position(|p| p[1].dispatch - p[0].dispatch > SHADOW);
    stop.expect("dispatch stops in the shadow of the miss") as u32
}

/// Dispatch stalls by row, so a resource is seen up to one row short of full, and never beyond it.
#[track_caller]
fn assert_within_a_row(preset: &Preset, what: &str, seen: u32, size: u32) {
    println!("{} {what}: seen {seen}, preset {size}", preset.name);
    assert!(
        seen <= size && size < seen + preset.decode.width,
        "{}: {what} holds {size}, but {seen} were seen",
        preset.name
    );
}

#[test]
fn rob_entries() {
    for mut preset in presets() {
        for entries in [preset.rob.entries, preset.decode.width * 10] {
            preset.set("rob.entries", &entries.to_string()).unwrap();
            let seen = in_the_shadow(&preset, "ld a2,0(a1)", "nop") + 1;
            assert_within_a_row(&preset, "ROB", seen, entries);
        }
    }
}

#[test]
fn integer_issue_queue_entries() {
    for preset in presets() {
        let seen = in_the_shadow(&preset, "ld a2,0(a1)", "add a3,a2,a2");
        assert_within_a_row(&preset, "integer queue", seen, preset.issue.int_entries);
    }
}

#[test]
fn memory_issue_queue_entries() {
    for preset in presets() {
        let seen = in_the_shadow(&preset, "ld a2,0(a1)", "ld a3,0(a2)");
        assert_within_a_row(&preset, "memory queue", seen, preset.issue.mem_entries);
    }
}

/// BOOM's queues are full when the tail would meet the head: one entry stays empty (lsu.scala, `ldq_full`).
#[test]
fn load_queue_entries() {
    for preset in presets() {
        let seen = in_the_shadow(&preset, "ld a2,0(a1)", "ld a3,0(s1)") + 1;
        assert_within_a_row(&preset, "load queue", seen, preset.lsu.loads - 1);
    }
}

#[test]
fn store_queue_entries() {
    for preset in presets() {
        let seen = in_the_shadow(&preset, "ld a2,0(a1)", "sd a3,0(s1)");
        assert_within_a_row(&preset, "store queue", seen, preset.lsu.stores - 1);
    }
}

/// Cycles from one instruction of a chain to the next.
fn chain(preset: &Preset, line: &str) -> u64 {
    let lines = vec![line; 64].join("; ");
    let program = Program::new(&format!("FN(f) {lines}; jalr zero,s3\n"));
    let mut core = Core::new(preset, Commits::default());
    program.define(&mut core);
    let mut state = State::new();
    for _ in 0..3 {
        (state.x[19], state.pc) = (0x1000, TEXT);
        program.run(&mut core, &mut state);
    }
    let commits = &core.sink().0;
    let run = &commits[commits.len() - 65..];
    // The chain's end is steady: the queue feeds it, not the front end.
    (run[63].commit - run[31].commit) / 32
}

#[test]
fn latencies_of_units() {
    for mut preset in presets() {
        for longer in [0, 3] {
            let of = preset.execute.clone();
            for (key, line, was) in [
                ("execute.mul", "mul a2,a2,a2", of.mul),
                ("execute.fp", "fadd.d fa0,fa0,fa0", of.fp),
                ("execute.fdiv", "fdiv.d fa0,fa0,fa1", of.fdiv),
                ("execute.fsqrt", "fsqrt.d fa0,fa0", of.fsqrt),
            ] {
                let want = was + longer;
                preset.set(key, &want.to_string()).unwrap();
                let seen = chain(&preset, line);
                assert_eq!(seen, u64::from(want), "{}: {key}", preset.name);
            }
        }
    }
}

/// The step times of a pointer chase through `ring` in its last round, when `rounds` have warmed everything up.
/// A full set takes many, since replacement is random.
fn chase(preset: &Preset, ring: &[u64], rounds: usize, translated: bool) -> Vec<u64> {
    let source = "FN(f) 1: ld a1,0(a1); addi a0,a0,-1; bnez a0,1b; jalr zero,s3\n";
    let program = Program::new(source);
    let mut core = Core::new(preset, Commits::default());
    program.define(&mut core);
    let mut state = State::new();
    for (i, &at) in ring.iter().enumerate() {
        state.poke(at, ring[(i + 1) % ring.len()]);
    }
    (state.x[11], state.x[19], state.pc) = (ring[0], 0x1000, TEXT);
    (state.x[10], state.translated) = ((ring.len() * rounds) as u64, translated);
    program.run(&mut core, &mut state);
    let loads = core.sink().0.iter().step_by(3).map(|c| c.commit);
    let loads: Vec<_> = loads.take(ring.len() * rounds).collect();
    let steps: Vec<_> = loads.windows(2).map(|p| p[1] - p[0]).collect();
    steps[steps.len() + 1 - ring.len()..].to_vec()
}

/// `count` addresses, each `stride` from the next.
fn addresses(count: usize, stride: u64) -> Vec<u64> {
    (0..count as u64).map(|i| DATA + i * stride).collect()
}

/// Rounds in which a set of up to 16 ways, each replaced at random, comes to hold as many lines.
const SETTLED: usize = 500;

/// Size in KiB and ways of a cache whose hits take at most `limit` cycles: lines that share all index bits
/// tell the ways, the shortest stride at which one line more does not fit tells the span of a way.
fn size_and_ways(preset: &Preset, limit: u64) -> (u64, usize) {
    let fits = |count, stride| {
        let steps = chase(preset, &addresses(count, stride), SETTLED, false);
        steps.iter().all(|&step| step <= limit)
    };
    let ways = (2..40).find(|&k| !fits(k, 1 << 24)).unwrap() - 1;
    let strides = (6..24).map(|bits| 1 << bits);
    let span = { strides }.find(|&stride| !fits(ways + 1, stride)).unwrap();
    (span * ways as u64 / 1024, ways)
}

#[test]
fn size_and_ways_of_caches() {
    for mut preset in presets() {
        preset.set("l1d.prefetch", "false").unwrap();
        let (l1d, l2, llc) = (preset.l1d.clone(), preset.l2.clone(), preset.llc.clone());
        let found = size_and_ways(&preset, 10);
        assert_eq!(found, (l1d.kib.into(), l1d.ways as usize), "L1D");
        // With a level above of one line per set, the lines of a chase are all served by the next.
        preset.set("l1d.ways", "1").unwrap();
        preset.set("l1d.kib", "1").unwrap();
        let found = size_and_ways(&preset, 40);
        assert_eq!(found, (l2.kib.into(), l2.ways as usize), "L2");
        preset.set("l2.ways", "1").unwrap();
        preset.set("l2.kib", "1").unwrap();
        let found = size_and_ways(&preset, 90);
        assert_eq!(found, (llc.kib.into(), llc.ways as usize), "LLC");
    }
}

#[test]
fn tlb_entries() {
    for mut preset in presets() {
        // Each page's word in another line, so that all stay in the L1.
        let hits = |count| {
            let steps = chase(&preset, &addresses(count, 4096 + 64), 20, true);
            steps.iter().all(|&step| step <= 5)
        };
        let entries = (2..64).find(|&k| !hits(k)).unwrap() - 1;
        assert_eq!(entries, preset.dtlb.entries as usize, "{}", preset.name);
        // Pages that share an entry of the second level need a walk each time.
        preset.set("dtlb.entries", "1").unwrap();
        let slowest = |pages: u64| {
            let ring = addresses(2, pages * 4096 + 64);
            chase(&preset, &ring, 20, true).into_iter().max().unwrap()
        };
        let walk = slowest(1 << 20);
        let shared = (0..20).map(|bits| 1 << bits).find(|&s| slowest(s) == walk);
        assert_eq!(shared, Some(u64::from(preset.l2tlb.entries)), "{}", preset.name);
    }
}

/// Misses that are answered together: those before the first one that comes a whole latency later.
fn misses_in_parallel(preset: &Preset) -> u32 {
    let loads: Vec<_> = (0..20).map(|i| format!("ld a2,{}(a1)", i * 64)).collect();
    let source = format!("FN(f) {}; jalr zero,s3\n", loads.join("; "));
    let program = Program::new(&source);
    let mut core = Core::new(preset, Commits::default());
    program.define(&mut core);
    let mut state = State::new();
    let mut start = 0;
    for round in 0..3 {
        start = core.sink().0.len();
        let end = core.cycle() + 10_000;
        core.idle_until(end);
        (state.x[11], state.x[19], state.pc) = (DATA + round * ROUND, 0x1000, TEXT);
        program.run(&mut core, &mut state);
    }
    let run = &core.sink().0[start..];
    let late = run.windows(2).position(|p| p[1].commit - p[0].commit > 200);
    late.map_or(u32::MAX, |n| n as u32 + 1)
}

#[test]
fn miss_status_registers() {
    for mut preset in presets() {
        preset.set("l1d.prefetch", "false").unwrap();
        preset.set("dram.model", "\"fixed\"").unwrap();
        preset.set("dram.latency", "1000").unwrap();
        let sizes = [
            ("l1d.mshrs", preset.l1d.mshrs),
            ("l2.mshrs", preset.l2.mshrs),
            ("llc.mshrs", preset.llc.mshrs),
        ];
        for (key, size) in sizes {
            let mut preset = preset.clone();
            for (other, _) in sizes {
                preset.set(other, "16").unwrap();
            }
            for size in [size, 5] {
                preset.set(key, &size.to_string()).unwrap();
                assert_eq!(misses_in_parallel(&preset), size, "{}: {key}", preset.name);
            }
        }
    }
}

#[test]
fn rows_of_memory() {
    for mut preset in presets() {
        preset.set("l1d.prefetch", "false").unwrap();
        preset.set("dram.refresh", "false").unwrap();
        let p = preset.dram.clone();
        let row = u64::from(p.row_bytes);
        let core_cycles = |memory: u32| u64::from((memory * preset.clock.mhz).div_ceil(p.mhz));
        // One round: every line is cold.
        let steps = chase(&preset, &addresses(1000, 64), 1, false);
        let hit = *steps.iter().min().unwrap();
        let opens: Vec<_> = (0..steps.len()).filter(|&i| steps[i] > hit).collect();
        let apart: Vec<_> = opens.windows(2).map(|p| (p[1] - p[0]) as u64).collect();
        assert!(apart.iter().all(|&lines| lines * 64 == row), "{opens:?}");
        assert_eq!(steps[opens[0]] - hit, core_cycles(p.rcd), "activation");
        let stride = row * u64::from(p.ranks * p.banks);
        let steps = chase(&preset, &addresses(50, stride), 1, false);
        let conflict = core_cycles(p.rp) + core_cycles(p.rcd);
        assert_eq!(steps[20] - hit, conflict, "precharge and activation");
        let steps = chase(&preset, &addresses(50, stride / 2), 1, false);
        assert_eq!(steps[20] - hit, conflict, "two banks in turn");
    }
}

#[test]
fn floating_point_issue_queue_entries() {
    for preset in presets() {
        let seen = in_the_shadow(&preset, "fld fa1,0(a1)", "fadd.d fa0,fa1,fa1");
        assert_within_a_row(&preset, "FP queue", seen, preset.issue.fp_entries);
    }
}

/// Mispredicted returns of `depth` calls inside each other.
fn wrong_returns(preset: &Preset, depth: usize) -> usize {
    let call = |i| format!("FN(f{i}) sd ra,{}(s1); jal ra,f{}; ld ra,{0}(s1); ret\n", 8 * i, i + 1);
    let calls: String = (0..depth).map(call).collect();
    let start = "FN(start) jal ra,f0; jalr zero,s3\n";
    let program = Program::new(&format!("{start}{calls}FN(f{depth}) ret\n"));
    let mut core = Core::new(preset, Commits::default());
    program.define(&mut core);
    let mut state = State::new();
    let mut from = 0;
    for _ in 0..4 {
        from = core.sink().0.len();
        (state.x[9], state.x[19], state.pc) = (DATA, 0x1000, TEXT);
        program.run(&mut core, &mut state);
    }
    let run = &core.sink().0[from..];
    // The last jump leaves the program, by a register.
    let wrong = |c: &&Commit| c.redirect == Redirect::Mispredict;
    run[..run.len() - 1].iter().filter(wrong).count()
}

#[test]
fn return_stack_depth() {
    for mut preset in presets() {
        for depth in [preset.predictor.returns, 12] {
            preset.set("predictor.returns", &depth.to_string()).unwrap();
            let deepest = (1..60).find(|&d| wrong_returns(&preset, d) != 0).unwrap() - 1;
            // The outermost call's return is one more.
            assert_eq!(deepest as u32 + 1, depth, "{}", preset.name);
        }
    }
}

/// What commits when a program runs that counts `rounds` down in `a0`.
fn counted(preset: &Preset, source: &str, rounds: usize, translated: bool) -> Vec<Commit> {
    let program = Program::new(source);
    let mut core = Core::new(preset, Commits::default());
    program.define(&mut core);
    let mut state = State::new();
    (state.x[10], state.x[19], state.pc) = (rounds as u64, 0x1000, TEXT);
    state.translated = translated;
    program.run(&mut core, &mut state);
    core.into_sink().0
}

/// How many of `count` jumps, each three packets from the next, take more than `limit` cycles when the code is
/// warm.
fn slow_jumps(preset: &Preset, count: usize, limit: u64) -> usize {
    let jumps = format!(".rept {count}; j 3f; .rept 11; nop; .endr; 3: ; .endr");
    let source = format!("FN(f)\n1: {jumps}\n addi a0,a0,-1; bnez a0,1b; jalr zero,s3\n");
    let commits = counted(preset, &source, 30, false);
    let round = count + 2;
    let run = &commits[commits.len() - 1 - 2 * round..][..count + 1];
    run.windows(2).filter(|p| p[1].commit - p[0].commit > limit).count()
}

/// Ways are chosen by hashes of tags, so a buffer that is just full loses some branches: what tells its size is
/// where most are lost.
#[test]
fn target_buffer_capacity() {
    for mut preset in presets() {
        let most_are_slow = |preset: &Preset, limit| {
            let counts = (1..12).map(|bits| 1 << bits);
            { counts }.find(|&n| slow_jumps(preset, n, limit) > n / 2).unwrap()
        };
        let ways = preset.predictor.micro_btb as usize;
        assert_eq!(most_are_slow(&preset, 1), 2 * ways, "{}", preset.name);
        preset.set("l1i.kib", "512").unwrap();
        for sets in [preset.predictor.btb_sets, 64] {
            preset.set("predictor.btb_sets", &sets.to_string()).unwrap();
            let lost = most_are_slow(&preset, 2);
            println!("{}: {sets} sets, most lost at {lost}", preset.name);
            assert_eq!(lost, 4 * sets as usize, "{}", preset.name);
        }
    }
}

/// The longest step in the last of `rounds` rounds through `count` pieces of code, each `stride` bytes from the
/// next, to which it jumps.
fn slowest_jump(
    preset: &Preset,
    count: usize,
    stride: u64,
    rounds: usize,
    translated: bool,
) -> u64 {
    let jump = format!("j 3f; .skip {}; 3: ;", stride - 4);
    let source = format!(
        "FN(f)\n1: .rept {}; {jump} .endr\n addi a0,a0,-1; beqz a0,2f; j 1b; 2: jalr zero,s3\n",
        count - 1
    );
    let commits = counted(preset, &source, rounds, translated);
    // From the jump back in the round before to the last piece's first instruction.
    let run = &commits[commits.len() - 3 - count..][..=count];
    let steps = run.windows(2).map(|p| p[1].commit - p[0].commit);
    steps.max().unwrap()
}

/// A jump to code that is not in the L1I, or whose page is not in the ITLB, takes longer than one that no target buffer knows.
const SLOW_JUMP: u64 = 5;

#[test]
fn size_and_ways_of_the_instruction_cache() {
    for preset in presets() {
        let fits =
            |count, stride| slowest_jump(&preset, count, stride, SETTLED, false) <= SLOW_JUMP;
        let ways = (2..20).find(|&k| !fits(k, 1 << 16)).unwrap() - 1;
        let strides = (6..17).map(|bits| 1 << bits);
        let span = { strides }.find(|&stride| !fits(ways + 1, stride)).unwrap();
        let found = (span * ways as u64 / 1024, ways as u32);
        assert_eq!(found, (preset.l1i.kib.into(), preset.l1i.ways), "{}", preset.name);
    }
}

#[test]
fn instruction_tlb_entries() {
    for mut preset in presets() {
        for entries in [preset.itlb.entries, 12] {
            preset.set("itlb.entries", &entries.to_string()).unwrap();
            // Each page's jump in another line, so that all stay in the L1I.
            let fits = |count| slowest_jump(&preset, count, 4096 + 64, 20, true) <= SLOW_JUMP;
            let most = (2..64).find(|&k| !fits(k)).unwrap() - 1;
            assert_eq!(most as u32, entries, "{}", preset.name);
        }
    }
}

/// Two branches with opposite directions share a counter if their places differ by a multiple of the table's span: its
/// rows of 16 bytes of code.
#[test]
fn bimodal_rows() {
    for mut preset in presets() {
        for key in ["predictor.tage", "predictor.loops"] {
            preset.set(key, "false").unwrap();
        }
        for rows in [preset.predictor.bimodal_sets, 256] {
            preset.set("predictor.bimodal_sets", &rows.to_string()).unwrap();
            let disturb = |span: u64| {
                let skip = span - 8;
                let source = format!(
                    "FN(f)\n1: bnez s3,2f; nop; .skip {skip}; 2: beqz s3,2b; addi a0,a0,-1; beqz a0,3f; j 1b; 3: jalr zero,s3\n"
                );
                let commits = counted(&preset, &source, 60, false);
                let late = &commits[commits.len() / 2..];
                late.iter().filter(|c| c.redirect == Redirect::Mispredict).count() > 20
            };
            let spans = (6..20).map(|bits| 1 << bits);
            let shared = { spans }.find(|&span| disturb(span)).unwrap();
            assert_eq!(shared, 16 * u64::from(rows), "{}", preset.name);
        }
    }
}
