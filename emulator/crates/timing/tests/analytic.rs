//! Micro-programs whose cycles follow from the machine's parameters.

use crate::asm::{Program, State, TEXT};
use commit_trace::{Commit, CommitSink, CycleClass, Event, Redirect, TeaEvents};
use isa::{Exception, Executed, InstClass, MemAccess, MemKind, StaticId, TimingModel, Trap};
use timing::{Core, Preset, Stats};

#[derive(Default)]
struct Records {
    commits: Vec<Commit>,
    events: Vec<(u64, Event)>,
}

impl CommitSink for Records {
    fn commit(&mut self, commit: &Commit) {
        self.commits.push(*commit);
    }
    fn event(&mut self, cycle: u64, event: Event) {
        self.events.push((cycle, event));
    }
}

const DATA: u64 = 0x8100_0000;

/// Runs `body`, a loop of `n` times, twice to warm up and then once more; the records of the last run.
fn run_on(preset: &Preset, body: &str, n: u64) -> (Vec<Commit>, Stats) {
    let program = Program::new(&format!("FN(f) {body}\n jalr zero,s3\n"));
    let mut core = Core::new(preset, Records::default());
    program.define(&mut core);
    let mut state = State::new();
    state.poke(DATA, DATA);
    let mut start = 0;
    for _ in 0..3 {
        start = core.sink().commits.len();
        state.x[10] = n;
        state.x[11] = DATA;
        state.x[19] = 0x1000;
        state.pc = TEXT;
        program.run(&mut core, &mut state);
    }
    let stats = core.stats();
    let commits = core.into_sink().commits;
    check(&commits, preset);
    (commits[start..].to_vec(), stats)
}

/// What holds for every stream.
fn check(commits: &[Commit], preset: &Preset) {
    let mut in_cycle = 0;
    for pair in commits.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        assert!(after.commit >= before.commit, "commit cycles never decrease");
        assert!(after.dispatch >= before.dispatch, "dispatch is in order");
        assert!(after.decode >= before.decode, "decode is in order");
        in_cycle = if after.commit == before.commit { in_cycle + 1 } else { 0 };
        assert!(in_cycle < preset.decode.width, "at most a row commits in a cycle");
        if after.redirect.is_trap() {
            assert!(after.commit > before.commit, "a trap has its own cycle");
        }
        if before.redirect != Redirect::None && before.redirect != Redirect::Mispredict {
            assert!(after.dispatch > before.commit + 6, "a flush takes seven cycles to refill");
        }
    }
    for c in commits {
        assert!(c.decode < c.dispatch && c.dispatch < c.commit + 1, "{c:?}");
    }
}

/// Cycles per execution of the loop's body, in the long run.
fn per_iteration(preset: &Preset, body: &str) -> f64 {
    let body = format!("1: {body}\n addi a0,a0,-1; bnez a0,1b");
    let cycles = |n: u64| {
        let (commits, _) = run_on(preset, &body, n);
        commits[commits.len() - 1].commit - commits[0].commit
    };
    (cycles(40) - cycles(20)) as f64 / 20.0
}

fn rtl_mega() -> Preset {
    Preset::load("rtl-mega").unwrap()
}

#[track_caller]
fn assert_near(got: f64, want: f64, tolerance: f64) {
    assert!((got - want).abs() <= tolerance, "got {got}, want {want} ± {tolerance}");
}

/// `n` copies of a line.
fn times(n: usize, line: &str) -> String {
    vec![line; n].join("; ")
}

#[test]
fn dependent_additions_take_a_cycle_each() {
    assert_near(per_iteration(&rtl_mega(), &times(64, "addi a2,a2,1")), 65.0, 1.0);
}

#[test]
fn independent_additions_fill_the_width() {
    let eight = "addi a2,a2,1; addi a3,a3,1; addi a4,a4,1; addi a5,a5,1; addi a6,a6,1; addi a7,a7,1; addi t0,t0,1; addi t1,t1,1";
    for (preset, width) in [("rtl-mega", 4.0), ("rtl-large", 3.0), ("boom-4w", 4.0)] {
        let cycles = per_iteration(&Preset::load(preset).unwrap(), &times(8, eight));
        assert_near(64.0 / cycles, width, 0.15 * width);
    }
}

#[test]
fn latencies_of_execution_units() {
    let rtl = rtl_mega();
    let each = |line: &str| per_iteration(&rtl, &times(32, line)) / 32.0;
    assert_near(each("mul a2,a2,a2"), 6.0, 0.1);
    assert_near(each("fadd.d fa0,fa0,fa0"), 7.0, 0.1);
    assert_near(each("fdiv.d fa0,fa0,fa1"), 23.0, 0.2);
    assert_near(each("fsqrt.d fa0,fa0"), 31.0, 0.2);
    assert_near(each("fmv.d.x fa0,a2; fmv.x.d a2,fa0"), 12.0, 0.1);
}

#[test]
fn division_depends_on_its_operands() {
    let rtl = rtl_mega();
    let chain = |n: &str| {
        let body = format!("li a2,{n}; li a3,1; {}", times(16, "div a2,a2,a3"));
        per_iteration(&rtl, &body) / 16.0
    };
    assert_near(chain("100"), 13.0, 0.6);
    assert_near(chain("1000000"), 26.0, 0.6);
}

#[test]
fn issue_width_limits_throughput() {
    let rtl = rtl_mega();
    let rate = |line: &str| 32.0 / per_iteration(&rtl, &times(32, line));
    assert_near(rate("mul a3,a2,a2"), 1.0, 0.06);
    assert_near(rate("fadd.d fa1,fa0,fa0"), 2.0, 0.2);
    assert_near(rate("ld a3,0(a1)"), 2.0, 0.2);
    assert_near(rate("sd a2,0(a1)"), 1.0, 0.06);
    let large = Preset::load("rtl-large").unwrap();
    assert_near(32.0 / per_iteration(&large, &times(32, "ld a3,0(a1)")), 1.0, 0.1);
}

#[test]
fn loads_answer_in_four_cycles_from_the_l1() {
    assert_near(per_iteration(&rtl_mega(), &times(16, "ld a1,0(a1)")) / 16.0, 4.0, 0.1);
}

#[test]
fn a_store_is_forwarded() {
    let cycles = per_iteration(&rtl_mega(), &times(8, "sd a2,0(a1); ld a2,0(a1); addi a2,a2,1"));
    assert_near(cycles / 8.0, 7.0, 0.3);
    let (_, stats) =
        run_on(&rtl_mega(), "1: sd a2,0(a1); ld a3,0(a1); addi a0,a0,-1; bnez a0,1b", 50);
    assert!(stats.forwards >= 150 - 10, "{}", stats.forwards);
    assert_eq!(stats.order_failures, 0);
}

#[test]
fn cold_lines_come_from_memory_and_the_l2() {
    let rtl = rtl_mega();
    let program = Program::new("FN(f) ld a2,0(a1); jalr zero,s3");
    let mut core = Core::new(&rtl, Records::default());
    program.define(&mut core);
    let mut state = State::new();
    let mut load = |core: &mut Core<Records>, address: u64| {
        (state.pc, state.x[11], state.x[19]) = (TEXT, address, 0x1000);
        program.run(core, &mut state);
        core.idle_until(core.cycle() + 500);
        let commits = &core.sink().commits;
        let load = commits[commits.len() - 2];
        (load.commit - load.dispatch, load.class, load.tea)
    };
    load(&mut core, DATA);
    let missed = TeaEvents::ST_L1 | TeaEvents::ST_LLC;
    let (residence, class, tea) = load(&mut core, DATA + 0x10000);
    assert_eq!((class, tea), (CycleClass::LoadDram, missed));
    assert!((100..=115).contains(&residence), "{residence}");
    let (residence, class, _) = load(&mut core, DATA + 0x10000);
    assert_eq!((residence, class), (5, CycleClass::LoadL1));
    // Push it out of its set of the L1, but use other sets of the L2.
    for i in (1..200).filter(|i| i % 16 != 0) {
        load(&mut core, DATA + 0x10000 + i * 4096);
    }
    let (residence, class, tea) = load(&mut core, DATA + 0x10000);
    assert_eq!((class, tea), (CycleClass::LoadL2, TeaEvents::ST_L1));
    assert!((22..=27).contains(&residence), "{residence}");
}

#[test]
fn a_second_miss_of_a_line_waits_for_the_first() {
    let program = Program::new("FN(f) ld a2,0(a1); ld a3,8(a1); jalr zero,s3");
    let mut core = Core::new(&rtl_mega(), Records::default());
    program.define(&mut core);
    let mut state = State::new();
    (state.x[11], state.x[19]) = (DATA, 0x1000);
    program.run(&mut core, &mut state);
    let commits = &core.sink().commits;
    assert_eq!(commits[1].class, CycleClass::LoadDram, "as far away as the first");
    assert!(commits[1].commit - commits[0].commit <= 2);
    assert_eq!(core.stats().l1d_load_misses, 1);
}

#[test]
fn loads_come_before_the_writes_of_stores() {
    // Stores are written on the first port, where a pair of loads has one of its two: eight cycles and four. Measured in RTL:
    // 12.8 with the loop, and 17.6 on LargeBoom, whose loads have no other port.
    let all = |op, from| {
        let registers = ["a2", "a3", "a4", "a5", "a6", "a7", "s4", "s5"];
        let one = |(n, register)| format!("{op} {register},{}(a1)", from + 8 * n);
        (0..).zip(registers).map(one).collect::<Vec<_>>().join("; ")
    };
    let copy = format!("{}; {}", all("ld", 0), all("sd", 1024));
    assert_near(per_iteration(&rtl_mega(), &copy), 12.0, 1.0);
    let large = Preset::load("rtl-large").unwrap();
    assert_near(per_iteration(&large, &copy), 16.0, 1.6);
}

/// Cycles for each line of a stream of stores into memory that nobody touched, each done so many times.
fn stored_line(times_each: usize) -> f64 {
    let stores = times(times_each, "sd a2,0(a1)");
    let program = Program::new(&format!(
        "FN(f) 1: {stores}; addi a1,a1,8; addi a0,a0,-1; bnez a0,1b; jalr zero,s3"
    ));
    let mut core = Core::new(&rtl_mega(), Records::default());
    program.define(&mut core);
    let mut state = State::new();
    let lines = 256;
    (state.pc, state.x[10], state.x[11]) = (TEXT, 8 * lines, DATA);
    state.x[19] = 0x1000;
    program.run(&mut core, &mut state);
    core.cycle() as f64 / lines as f64
}

#[test]
fn stores_that_miss_wait_in_few_entries() {
    // There are 17: for the 16 stores of a line and the first of the next one, or for the 8 of two lines. Measured in RTL: 75
    // (of four bytes each) and 44 cycles.
    assert_near(stored_line(2), 75.0, 10.0);
    assert_near(stored_line(1), 44.0, 4.0);
}

#[test]
fn csr_accesses_empty_the_rob_for_seven_cycles() {
    let rtl = rtl_mega();
    let (commits, stats) = run_on(&rtl, &times(8, "csrr a2,mstatus"), 1);
    for pair in commits[..8].windows(2) {
        assert_eq!(pair[1].commit - pair[0].commit, 12);
        assert_eq!(pair[1].dispatch - pair[0].commit - 1, 7);
        assert_eq!(pair[0].redirect, Redirect::Flush);
        assert_eq!(pair[0].class, CycleClass::Serialize);
    }
    assert_eq!(stats.flushes, 24);
}

#[test]
fn fences_and_atomics_serialise() {
    let rtl = rtl_mega();
    let each = |line: &str| per_iteration(&rtl, &times(16, line)) / 16.0;
    assert_near(each("fence"), 8.5, 0.3);
    assert_near(each("amoadd.d a2,a3,(a1)"), 14.5, 0.3);
    assert_near(each("sd a2,0(a1); fence"), 19.0, 1.0);
    assert_near(each("fence.i"), 22.0, 2.0);
}

#[test]
fn a_random_branch_costs_seventeen_cycles_per_mispredict() {
    let body = "li a2,0x1234567
 1: slli a3,a2,13; xor a2,a2,a3; srli a3,a2,7; xor a2,a2,a3; slli a3,a2,17; xor a2,a2,a3
 andi a4,a2,1; beqz a4,2f
 addi t1,t1,1; addi t1,t1,1; addi t1,t1,1; addi t1,t1,1; addi t1,t1,1; addi t1,t1,1
 2: addi a0,a0,-1; bnez a0,1b";
    let steady = body.replace("andi a4,a2,1; beqz", "andi a4,a2,0; bnez");
    let measure = |body: &str| {
        let (commits, _) = run_on(&rtl_mega(), body, 3000);
        let missed = commits.iter().filter(|c| c.redirect == Redirect::Mispredict);
        ((commits[commits.len() - 1].commit - commits[0].commit) as f64, missed.count() as f64)
    };
    let (random, missed) = measure(body);
    let (predicted, _) = measure(&steady);
    assert!(missed > 1000.0, "{missed}");
    // The body is a chain of six cycles, shorter than its fetch; half of the iterations skip the additions.
    let per_miss = (random - predicted) / missed;
    assert!((10.0..20.0).contains(&per_miss), "{per_miss}");
}

#[test]
fn a_mispredicted_branch_refills_in_eleven_cycles() {
    let (commits, _) = run_on(&rtl_mega(), "1: addi a0,a0,-1; bnez a0,1b", 100);
    let at = commits.iter().position(|c| c.redirect == Redirect::Mispredict).unwrap();
    let (branch, target) = (&commits[at], &commits[at + 1]);
    assert_eq!(branch.tea, TeaEvents::FL_MB);
    assert!(target.dispatch - branch.dispatch >= 11, "{branch:?} {target:?}");
}

#[test]
fn the_rob_hides_a_miss_only_as_far_as_it_reaches() {
    // A chain of misses, each with so many additions behind it: free until they fill the ROB.
    let cost = |entries: u32, additions: usize| {
        let mut preset = rtl_mega();
        preset.set("rob.entries", &entries.to_string()).unwrap();
        let body = format!(
            "ld a2,0(a1); addi a1,a1,4096; {}",
            times(additions / 4, "addi a3,a3,1; addi a4,a4,1; addi a5,a5,1; addi a6,a6,1")
        );
        per_iteration(&preset, &body)
    };
    assert!(cost(128, 40) < cost(32, 40) * 0.6, "a larger ROB overlaps misses");
    assert!(cost(32, 8) < cost(32, 40));
}

#[test]
fn jumps_between_packets() {
    let rtl = rtl_mega();
    // To the next packet: as good as straight on.
    let near = per_iteration(&rtl, &times(32, "j 3f; nop; nop; nop; 3:"));
    assert_near(near / 32.0, 1.06, 0.06);
    // Known to nobody before decode: two bubbles.
    let far = per_iteration(&rtl, &times(200, &format!("j 3f; {}; 3:", times(15, "nop"))));
    assert_near(far / 200.0, 3.0, 0.6);
}

#[test]
fn code_larger_than_the_instruction_cache_misses_per_line() {
    let eight = "addi a2,a2,1; addi a3,a3,1; addi a4,a4,1; addi a5,a5,1; addi a6,a6,1; addi a7,a7,1; addi t0,t0,1; addi t1,t1,1";
    let body = format!("1: {}\n addi a0,a0,-1; beqz a0,2f; j 1b\n2: nop", times(1536, eight));
    let (commits, stats) = run_on(&rtl_mega(), &body, 2);
    let lines = commits.len() as f64 / 16.0;
    let cycles = (commits[commits.len() - 1].commit - commits[0].commit) as f64;
    assert_near(cycles / lines, 11.4, 1.5);
    assert!(stats.l1i_misses > 1000);
    assert!(commits.iter().any(|c| c.tea.0 & TeaEvents::DR_L1.0 != 0));
}

#[test]
fn a_load_that_ran_ahead_of_its_store_is_fetched_again() {
    let body = "li t0,1; addi a3,a1,0
 1: div a3,a3,t0; sd a2,0(a3); ld a4,0(a1); add a2,a4,t0; addi a0,a0,-1; bnez a0,1b";
    let (commits, stats) = run_on(&rtl_mega(), body, 20);
    assert_eq!(stats.order_failures, 60);
    let at = commits.iter().position(|c| c.tea.0 & TeaEvents::FL_MO.0 != 0).unwrap();
    assert_eq!(commits[at].redirect, Redirect::Exception, "it left the ROB without committing");
    assert_eq!(commits[at].inst, commits[at + 1].inst, "and commits when it comes back");
}

/// Fetches and retires `count` times the same instruction.
fn feed(core: &mut Core<Records>, executed: &Executed, count: usize) {
    for _ in 0..count {
        core.fetch(executed.id, &executed.inst, executed.pc, executed.pc, false, 0);
        core.retire(executed);
    }
}

fn one(line: &str) -> (Core<Records>, Program, Executed) {
    let program = Program::new(&format!("FN(f) {line}; nop"));
    let mut core = Core::new(&Preset::default(), Records::default());
    program.define(&mut core);
    let inst = program.insts[0];
    let executed = Executed {
        id: StaticId(0),
        inst: inst.decoded,
        pc: inst.pc,
        fetch_pa: inst.pc,
        next_pc: inst.pc + 4,
        mem: MemAccess::default(),
        operand: isa::Operand::default(),
        privilege: isa::Privilege::Machine,
        trap: None,
        translated: false,
    };
    (core, program, executed)
}

#[test]
fn exceptions_and_interrupts_wait_for_the_head() {
    let (mut core, _, mut load) = one("ld a2,0(a1)");
    load.trap = Some(Trap { cause: Exception::LoadPageFault, tval: 0 });
    feed(&mut core, &load, 2);
    core.fetch(load.id, &load.inst, load.pc, load.pc, false, 0);
    core.interrupt(load.id, load.pc, TEXT);
    let commits = core.sink().commits.clone();
    check(&commits, &Preset::default());
    assert_eq!(commits[0].redirect, Redirect::Exception);
    assert_eq!(commits[2].redirect, Redirect::Interrupt);
    let refill = commits[1].dispatch - commits[0].commit - 1;
    assert!((7..=11).contains(&refill), "{refill}");
    let stats = core.stats();
    assert_eq!((stats.exceptions, stats.interrupts, stats.instructions), (2, 1, 0));
}

#[test]
fn device_registers_are_read_at_the_head_one_by_one() {
    let (mut core, _, mut load) = one("ld a2,0(a1)");
    load.mem = MemAccess::new(MemKind::Load, 0x1000_0000, 0x1000_0000, 4, true);
    feed(&mut core, &load, 3);
    let commits = &core.sink().commits;
    assert_eq!(commits[1].class, CycleClass::Device);
    assert!(commits[2].commit - commits[1].commit >= u64::from(core.preset().mmio.latency));
    assert_eq!(core.stats().l1d_misses, 0);
}

#[test]
fn sleep_is_an_event_and_execution_goes_on_after_it() {
    let (mut core, _, nop) = one("nop");
    feed(&mut core, &nop, 1);
    let before = core.cycle();
    core.idle_until(before + 1000);
    core.idle_until(before + 500);
    feed(&mut core, &nop, 1);
    let records = core.sink();
    assert_eq!(records.events, [(before, Event::Idle { cycles: 1000 })]);
    assert!(records.commits[1].decode > before + 1000);
    assert_eq!(core.stats().cycles_idle, 1000);
    assert!(core.now() >= core.cycle());
}

#[test]
fn now_is_when_a_csr_instruction_reads() {
    let rtl = rtl_mega();
    let program = Program::new("FN(f) csrr a2,mcycle; csrr a3,mcycle; jalr zero,s3");
    let mut core = Core::new(&rtl, Records::default());
    program.define(&mut core);
    let mut state = State::new();
    state.x[19] = 0x1000;
    program.run(&mut core, &mut state);
    assert_eq!(state.x[13] - state.x[12], 12);
    let second = core.sink().commits[1];
    assert_eq!(state.x[13] + 1, second.commit, "write back is the cycle before commit");
}

#[test]
fn the_same_stream_gives_the_same_cycles() {
    let body =
        "1: ld a2,0(a1); addi a1,a1,832; mul a3,a2,a2; sd a3,0(a1); addi a0,a0,-1; bnez a0,1b";
    let run =
        || run_on(&Preset::default(), body, 500).0.iter().map(|c| c.commit).collect::<Vec<_>>();
    assert_eq!(run(), run());
}

#[test]
fn cycles_are_all_accounted_for() {
    let (commits, stats) = run_on(
        &Preset::default(),
        "1: ld a2,0(a1); addi a1,a1,4096; addi a0,a0,-1; bnez a0,1b",
        300,
    );
    let mut computing = commits.iter().map(|c| c.commit).collect::<Vec<_>>();
    computing.dedup();
    let total = stats.cycles;
    let without = stats.cycles_stalled + stats.cycles_flushed + stats.cycles_drained;
    assert!(without < total && without + computing.len() as u64 <= total, "{stats:?}");
    assert_eq!(stats.instructions % 3, 0);
    assert!(commits.iter().all(|c| c.redirect != Redirect::Flush));
    assert_eq!(InstClass::ALL.len(), 25, "a new class needs a kind in micro_op.rs");
}
