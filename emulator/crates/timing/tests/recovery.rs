//! Parameters of a preset, recovered from the cycles of micro-programs.

mod asm;

use asm::{Program, State, TEXT};
use commit_trace::{Commit, CommitSink};
use isa::TimingModel as _;
use timing::{Core, Preset};

#[derive(Default)]
struct Commits(Vec<Commit>);

impl CommitSink for Commits {
    fn commit(&mut self, commit: &Commit) {
        self.0.push(*commit);
    }
}

const DATA: u64 = 0x8100_0000;
/// Far enough apart for another line, page and DRAM row in every round.
const ROUND: u64 = 0x10_0000;
/// Shorter than a miss that DRAM answers, longer than any other pause of dispatch here.
const SHADOW: u64 = 30;

fn presets() -> impl Iterator<Item = Preset> {
    ["boom-4w", "large-boom", "mega-boom"]
        .map(|n| Preset::load(n).unwrap())
        .into_iter()
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
    let stop = run
        .windows(2)
        .position(|p| p[1].dispatch - p[0].dispatch > SHADOW);
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
