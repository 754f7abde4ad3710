use devices::RAM_BASE;
use machine::ResetState;

use super::*;
use crate::MachineOptions;
use crate::options::Region;
use crate::sampling::{Phase, SamplingPlan};

/// A session over a program of these instructions, which records counts of the marked region.
fn session(program: &[u32], mode: Mode) -> Session {
    session_of(program, mode, false)
}

/// A session as [`session`] makes it, whose core may be kept warm.
fn session_of(program: &[u32], mode: Mode, warm: bool) -> Session {
    let preset = Preset::load("boom-4w").unwrap();
    let mut system = System::new(MachineOptions::new(1 << 20, &preset)).unwrap();
    let bytes: Vec<u8> = program.iter().flat_map(|inst| inst.to_le_bytes()).collect();
    system.board.bus.ram.write(RAM_BASE, &bytes).unwrap();
    system.harts.reset(ResetState { pc: RAM_BASE, ..ResetState::default() });
    let recording =
        Recording { region: Region::Marked, all_events: true, warm, ..Recording::default() };
    Session::new(system, &preset, recording, mode).unwrap()
}

/// addi a0, a0, 1; j -4.
const COUNT: [u32; 2] = [0x0015_0513, 0xffdf_f06f];

fn a0(session: &Session) -> u64 {
    session.system().harts.first().reg(10)
}

fn run(session: &mut Session, goal: &Goal) -> Stop {
    session.run_until(goal, &mut NoObserver).unwrap()
}

#[test]
fn steps_end_at_their_goals() {
    let mut session = session(&COUNT, Mode::Functional);
    assert_eq!(run(&mut session, &Goal::instructions(1000)), Stop::Reached);
    assert_eq!((session.position(), a0(&session)), ((1000, 1000), 500));
    assert_eq!(run(&mut session, &Goal::cycle(1500)), Stop::Reached);
    assert_eq!(session.position(), (1500, 1500));
    // A step to a place that is the present one goes once around.
    let goal = Goal { breakpoint: Some(RAM_BASE), ..Goal::END };
    for expected in [1502, 1504] {
        assert_eq!(run(&mut session, &goal), Stop::Reached);
        assert_eq!(session.position().1, expected);
    }
    assert_eq!(run(&mut session, &Goal::instructions(0)), Stop::Reached);
}

/// A loop that divides, stores and loads 8 bytes each time round, 4 KiB apart, and takes a branch that depends on what it divides:
/// `addi a0, a0, 77; rem a1, a0, a2; slli a3, a1, 12; add a3, a3, s0; sd a0, 0(a3); ld a4, 0(a3); andi a5, a1, 4; beqz a5, 8; addi a6, a6, 1; j -36`, after
/// `li a2, 50; auipc s0, 16`.
const MIXED: [u32; 12] = [
    0x0320_0613,
    0x0001_0417,
    0x04d5_0513,
    0x02c5_65b3,
    0x00c5_9693,
    0x0086_86b3,
    0x00a6_b023,
    0x0006_b703,
    0x0045_f793,
    0x0007_8463,
    0x0018_0813,
    0xfddf_f06f,
];

#[test]
fn a_fork_that_is_told_the_same_takes_the_same_cycles() {
    let mut session = session(&MIXED, Mode::Timing);
    let check = |session: &mut Session, warm: u64, plan: &SamplingPlan| {
        let cores = |session: &mut Session, act: &mut dyn FnMut(&mut dyn crate::TimingCores)| {
            act(session.engine.cores_mut().unwrap());
        };
        cores(session, &mut |cores| cores.fork(Phase::Reference));
        run(session, &Goal::instructions(warm));
        cores(session, &mut |cores| cores.mark_phase(Phase::WarmUp));
        run(session, &Goal::instructions(3000));
        cores(session, &mut |cores| cores.mark_phase(Phase::Unit));
        let before = session.awake_cycles();
        run(session, &Goal::instructions(20_000));
        let mut found = None;
        cores(session, &mut |cores| found = cores.end_fork(plan, true).cycles);
        (found.unwrap() as f64, (session.awake_cycles() - before) as f64)
    };
    session.engine.cores_mut().unwrap().tap(None);
    run(&mut session, &Goal::instructions(1234));
    assert!(a0(&session) > 5000);
    // Nothing is warmed: all is timed.
    let (fork, core) = check(&mut session, 0, &SamplingPlan::default());
    assert_eq!(fork, core);
    assert!(core > 20_000.0, "{core}");
    // A stretch that only keeps the fork warm leaves it about where the core is.
    for caches in [None, Some(150_000)] {
        let plan = SamplingPlan { predictors: 100_000, caches, ..SamplingPlan::default() };
        let (fork, core) = check(&mut session, 200_000, &plan);
        assert!((fork / core - 1.0).abs() < 0.01, "{fork} {core}");
    }
    let plan = SamplingPlan::default();
    let cores = session.engine.cores_mut().unwrap();
    assert_eq!(cores.end_fork(&plan, true).cycles, None, "none has begun");
}

#[test]
fn a_fork_misses_what_a_core_misses_that_is_only_kept_warm() {
    let session = || {
        let mut session = session_of(&MIXED, Mode::Timing, true);
        session.engine.cores_mut().unwrap().tap(None);
        run(&mut session, &Goal::instructions(40));
        session
    };
    let misses = |session: &Session| session.engine.cores().unwrap().misses();
    let mut warm = session();
    warm.functional();
    let begin = misses(&warm);
    run(&mut warm, &Goal::instructions(100));
    let unit_from = misses(&warm);
    run(&mut warm, &Goal::instructions(300));
    let expected = (misses(&warm).since(begin), misses(&warm).since(unit_from));
    let plan = SamplingPlan { predictors: 0, ..SamplingPlan::default() };
    for reference in [false, true] {
        let mut timed = session();
        let cores = |session: &mut Session, act: &mut dyn FnMut(&mut dyn crate::TimingCores)| {
            act(session.engine.cores_mut().unwrap());
        };
        // A long warm-up belongs to the stretch, and to no unit.
        let first = if reference { 60 } else { 0 };
        cores(&mut timed, &mut |cores| {
            cores.fork(if reference { Phase::Reference } else { Phase::WarmUp });
        });
        run(&mut timed, &Goal::instructions(first));
        if reference {
            cores(&mut timed, &mut |cores| cores.mark_phase(Phase::WarmUp));
        }
        run(&mut timed, &Goal::instructions(100 - first));
        cores(&mut timed, &mut |cores| cores.mark_phase(Phase::Unit));
        run(&mut timed, &Goal::instructions(300));
        let mut found = crate::cores::ForkMeasurement::default();
        cores(&mut timed, &mut |cores| found = cores.end_fork(&plan, true));
        let misses = found.misses.unwrap();
        assert_eq!((misses.stretch, misses.unit), expected);
        assert!(misses.unit.0[1] > 10, "{misses:?}");
        assert_eq!(found.cycles.is_some(), reference);
    }
    // A stretch that is cut before its unit has none.
    let mut cut = session();
    let cores = cut.engine.cores_mut().unwrap();
    cores.fork(Phase::WarmUp);
    run(&mut cut, &Goal::instructions(100));
    let misses = cut.engine.cores_mut().unwrap().end_fork(&plan, false).misses.unwrap();
    assert_eq!((misses.stretch, misses.unit), (unit_from.since(begin), Default::default()));
}

/// Returns the cycles that the next 3000 instructions of a session take.
fn cycles_of_next(session: &mut Session) -> u64 {
    session.timing().unwrap();
    let before = session.awake_cycles();
    run(session, &Goal::instructions(3000));
    session.awake_cycles() - before
}

#[test]
fn a_core_that_is_kept_warm_begins_about_as_one_that_timed_all() {
    let mut timed = session(&MIXED, Mode::Timing);
    let mut cold = session(&MIXED, Mode::Functional);
    let mut warm = session_of(&MIXED, Mode::Functional, true);
    warm.keep_warm(&[]).unwrap();
    let [timed, cold, warm_cycles] = [&mut timed, &mut cold, &mut warm].map(|session| {
        run(session, &Goal::instructions(200_000));
        (session.position(), cycles_of_next(session))
    });
    assert_eq!(warm_cycles.0, cold.0, "the guest's time is that of a functional hart");
    let [timed, cold, warm_cycles] = [timed, cold, warm_cycles].map(|(_, cycles)| cycles as f64);
    assert!((warm_cycles / timed - 1.0).abs() < 0.02, "{warm_cycles} {timed}");
    assert!(cold > 1.2 * timed, "{cold} {timed}");
    // Only what was timed is counted.
    let counts = &warm.counts()[0];
    let count = |event: isa::PerfEvent| counts[event as usize];
    assert_eq!(count(isa::PerfEvent::Instructions), 3000);
    assert_eq!(count(isa::PerfEvent::Cycles), warm.stats()[0].cycles);
    // What pauses stays warm, too, and what rests without that does not know what was executed meanwhile.
    warm.functional();
    run(&mut warm, &Goal::instructions(20_000));
    let again = cycles_of_next(&mut warm) as f64;
    assert!((again / timed - 1.0).abs() < 0.02, "{again} {timed}");
}

#[test]
fn a_core_is_as_warm_as_it_was_when_a_checkpoint_was_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("warm.ckpt");
    let mut first = session_of(&MIXED, Mode::Functional, true);
    first.keep_warm(&[]).unwrap();
    run(&mut first, &Goal::instructions(100_000));
    first.save(&path, Vec::new(), Vec::new()).unwrap();
    let restored = || {
        let mut session = session_of(&MIXED, Mode::Functional, true);
        let preset = session.preset.clone();
        let saved = crate::Checkpoint::open(&path).unwrap();
        let found = saved.load(session.system_mut(), Mode::Functional, &preset).unwrap().1;
        (session, found.warmed_state)
    };
    let (mut second, warmed_state) = restored();
    second.keep_warm(&warmed_state).unwrap();
    let (mut colder, _) = restored();
    colder.keep_warm(&[]).unwrap();
    let [first, second, colder] = [&mut first, &mut second, &mut colder].map(|session| {
        run(session, &Goal::instructions(100));
        (cycles_of_next(session), session.position())
    });
    assert_eq!(first, second);
    assert!(colder.0 > first.0, "{colder:?} {first:?}");
    // What is no core's state is refused.
    let (mut third, mut warmed_state) = restored();
    warmed_state.truncate(warmed_state.len() - 1);
    assert!(third.keep_warm(&warmed_state).is_err());
}

#[test]
fn another_core_is_kept_warm_once_it_is_chosen() {
    let mut session = session_of(&MIXED, Mode::Functional, true);
    session.keep_warm(&[]).unwrap();
    run(&mut session, &Goal::instructions(1000));
    let mut preset = Preset::load("boom-4w").unwrap();
    preset.set_all([("l1d.kib", "16"), ("l1d.ways", "4")]).unwrap();
    session.set_core(&preset).unwrap();
    run(&mut session, &Goal::instructions(200_000));
    let warm = cycles_of_next(&mut session);
    run(&mut session, &Goal::instructions(3000));
    let timed = cycles_of_next(&mut session);
    assert!((warm as f64 / timed as f64 - 1.0).abs() < 0.02, "{warm} {timed}");
}

#[test]
fn modes_take_turns_and_regions_are_counted() {
    let mut session = session(&COUNT, Mode::Functional);
    run(&mut session, &Goal::instructions(100));
    assert!(!session.is_timing() && session.counts().is_empty());
    session.mark(Mark::Start).unwrap();
    assert!(session.is_timing() && session.is_region_open());
    run(&mut session, &Goal::instructions(1000));
    session.mark(Mark::Stop).unwrap();
    assert!(!session.is_timing() && !session.is_region_open());
    run(&mut session, &Goal::instructions(100));
    session.timing().unwrap();
    run(&mut session, &Goal::instructions(100));
    session.functional();
    let finished = session.finish(false).unwrap();
    assert_eq!((finished.regions.count, finished.regions.instructions), (1, 1000));
    assert_eq!(finished.counts.unwrap()["harts"][0]["INST.RET"], 1000);
    assert_eq!(finished.laps.timing.instructions, 1100);
    assert_eq!(finished.laps.functional.instructions, 200);
    assert!(finished.recorded.is_none());
}

#[test]
fn a_state_is_gone_back_to() {
    let mut session = session(&COUNT, Mode::Timing);
    run(&mut session, &Goal::instructions(500));
    let (state, position) = (session.state().unwrap(), session.position());
    run(&mut session, &Goal::instructions(500));
    let end = (session.position(), a0(&session));
    session.restore(&state, Mode::Timing).unwrap();
    assert_eq!(session.position(), position);
    run(&mut session, &Goal::instructions(500));
    assert_eq!((session.position(), a0(&session)), end);
}

#[test]
fn a_core_is_chosen_before_the_timed_part() {
    let mut session = session(&COUNT, Mode::Functional);
    let mut preset = Preset::load("boom-4w").unwrap();
    preset.set_all([("rob.entries", "64")]).unwrap();
    session.set_core(&preset).unwrap();
    let other_clock = Preset { clock: timing::preset::Clock { mhz: 1 }, ..preset.clone() };
    assert!(session.set_core(&other_clock).unwrap_err().to_string().contains("clock.mhz"));
    session.timing().unwrap();
    assert!(session.set_core(&preset).unwrap_err().to_string().contains("has begun"));
}

/// Half of what this program executes traps.
#[test]
fn what_traps_does_not_retire() {
    // la t0, handler; csrw mtvec, t0; ecall; j -4. The handler: csrr t1, mepc; addi t1, t1, 4; csrw mepc, t1; mret.
    let program = [
        0x0000_0297,
        0x0142_8293,
        0x3052_9073,
        0x0000_0073,
        0xffdf_f06f,
        0x3410_2373,
        0x0043_0313,
        0x3413_1073,
        0x3020_0073,
    ];
    let mut session = session(&program, Mode::Functional);
    for step in [1000, 1, 333] {
        let before = session.position().1;
        assert_eq!(run(&mut session, &Goal::instructions(step)), Stop::Reached);
        assert_eq!(session.position().1 - before, step);
    }
}

#[test]
fn a_guest_that_sleeps_for_ever_ends_the_step() {
    // wfi with no interrupt enabled.
    let mut session = session(&[0x1050_0073, 0xffdf_f06f], Mode::Functional);
    assert_eq!(run(&mut session, &Goal::END), Stop::Idle);
}

#[test]
fn a_region_goes_on_from_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in-the-region.ckpt");
    let mut first = session(&COUNT, Mode::Functional);
    run(&mut first, &Goal::instructions(100));
    first.mark(Mark::Start).unwrap();
    run(&mut first, &Goal::instructions(10));
    first.save(&path, b"printed".to_vec(), b"guest".to_vec()).unwrap();
    let mut second = session(&COUNT, Mode::Functional);
    let saved = crate::Checkpoint::open(&path).unwrap();
    let preset = second.preset.clone();
    let (_, found) = saved.load(second.system_mut(), Mode::Functional, &preset).unwrap();
    assert_eq!((&found.printed[..], &found.guest[..]), (&b"printed"[..], &b"guest"[..]));
    second.resume_region(&found.region).unwrap();
    assert!(second.is_timing() && second.is_region_open());
    run(&mut second, &Goal::instructions(50));
    second.mark(Mark::Stop).unwrap();
    let finished = second.finish(false).unwrap();
    assert_eq!((finished.regions.count, finished.regions.instructions), (1, 50));
    assert_eq!(finished.regions.warning(), None);
}
