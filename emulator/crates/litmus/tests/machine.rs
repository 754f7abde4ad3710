//! What the machine does with the programs: nothing that the model forbids; and a machine that did would be found out.

use litmus::{Access, AccessKind, Instruction, Judged, Mode, Program, Verdict, catalog, run};
use timing::Preset;

/// Runs every `nth` test and returns how many different outcomes of interleavings occurred, and how many there are.
fn run_all(mode: Mode, nth: usize, iterations: u64) -> (usize, usize) {
    let preset = Preset::default();
    let (mut seen, mut all) = (0, 0);
    for program in catalog().into_iter().step_by(nth) {
        let test = Judged::new(program);
        let histogram = run(&test.program, mode, &preset, iterations, 1).expect("it ends");
        let forbidden = test.of_verdict(&histogram, Verdict::Forbidden);
        let described: Vec<String> =
            forbidden.keys().map(|outcome| test.program.describe(*outcome)).collect();
        assert!(described.is_empty(), "{}, {}: {described:?}", test.program.name, mode.name());
        // Memory is accessed in the order of execution, and instructions are executed in program order.
        let weak = test.of_verdict(&histogram, Verdict::Weak);
        assert!(
            weak.is_empty(),
            "{}: README.md says that no weak outcome occurs",
            test.program.name
        );
        seen += histogram.len();
        all += test.sequential.len();
    }
    (seen, all)
}

#[test]
fn interpreted_no_outcome_is_forbidden_and_most_interleavings_occur() {
    let (seen, all) = run_all(Mode::Interpreted, 1, 320);
    assert!(seen * 4 > all * 3, "{seen} of {all} outcomes");
}

#[test]
fn translated_no_outcome_is_forbidden() {
    run_all(Mode::Translated, 30, 320);
}

#[test]
fn timed_no_outcome_is_forbidden_and_most_interleavings_occur() {
    let (seen, all) = run_all(Mode::Timing, 1, 64);
    assert!(seen * 2 > all, "{seen} of {all} outcomes");
}

#[test]
fn a_run_depends_on_its_seed_alone() {
    let programs = catalog();
    let program =
        programs.iter().find(|program| program.name == "IRIW").expect("it is in the list");
    let preset = Preset::default();
    for mode in [Mode::Interpreted, Mode::Timing] {
        let run = |seed| run(program, mode, &preset, 320, seed).expect("it ends");
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }
}

/// Makes another program of one hart's instructions.
type Change = fn(Vec<Instruction>) -> Vec<Instruction>;

/// Reverses the accesses of a hart, each still with its own register and word.
fn reverse(instructions: Vec<Instruction>) -> Vec<Instruction> {
    instructions.into_iter().rev().collect()
}

/// Takes the atomicity away from `lr.w`, `sc.w` and `amoadd.w`.
fn split(instructions: Vec<Instruction>) -> Vec<Instruction> {
    let plain = |instruction: Instruction| -> Vec<Instruction> {
        let Instruction::Access(access) = instruction else { return vec![instruction] };
        let load = Access { kind: AccessKind::Load, ..access };
        let store = Access { kind: AccessKind::Store, to: None, ..access };
        let accesses = match access.kind {
            AccessKind::LoadReserved => vec![load],
            AccessKind::StoreConditional => vec![store],
            AccessKind::Add => vec![load, store],
            _ => vec![access],
        };
        accesses.into_iter().map(Instruction::Access).collect()
    };
    instructions.into_iter().flat_map(plain).collect()
}

/// Runs what a machine with a fault would make of a test, and returns how often the test's own outcome occurred. The model of the test
/// judges it.
fn occurrences(name: &str, mode: Mode, hart: usize, change: Change) -> (u64, Verdict) {
    let program = catalog().into_iter().find(|program| program.name == name);
    let test = Judged::new(program.unwrap_or_else(|| panic!("{name} is not in the list")));
    let mut changed: Program = test.program.clone();
    changed.harts[hart] = change(std::mem::take(&mut changed.harts[hart]));
    let histogram = run(&changed, mode, &Preset::default(), 3200, 1).expect("it ends");
    let forbidden = test.of_verdict(&histogram, Verdict::Forbidden);
    let of_cycle = forbidden.iter().filter(|(outcome, _)| test.program.meets_condition(**outcome));
    (of_cycle.map(|(_, count)| count).sum(), test.verdict_of_condition())
}

#[test]
fn a_machine_that_breaks_the_model_is_found_out() {
    let faults: [(&str, usize, Change); 10] = [
        ("MP+fence.rw.rws", 1, reverse),
        ("SB+fence.rw.rws", 0, reverse),
        ("LB+fence.rw.rws", 0, reverse),
        ("R+fence.rw.rws", 1, reverse),
        ("MP+poprl+poaqp", 0, reverse),
        ("WRC+fence.rw.rws", 2, reverse),
        ("IRIW+fence.rw.rws", 1, reverse),
        ("CoRR", 1, reverse),
        ("lrsc+W", 0, split),
        ("amoadd+W", 0, split),
    ];
    let mut shown_timed = 0;
    for (n, (name, hart, change)) in faults.into_iter().enumerate() {
        let (count, verdict) = occurrences(name, Mode::Interpreted, hart, change);
        assert_eq!(verdict, Verdict::Forbidden, "{name}");
        assert!(count > 0, "{name}: the fault does not show");
        assert_eq!(occurrences(name, Mode::Interpreted, hart, |same| same).0, 0, "{name}");
        // Timed, a hart executes accesses that are a few cycles apart in one turn, and others seldom come between. A fence takes longer.
        if n < 4 {
            shown_timed += u64::from(occurrences(name, Mode::Timing, hart, change).0 > 0);
            assert_eq!(occurrences(name, Mode::Timing, hart, |same| same).0, 0, "{name}");
        }
    }
    assert!(shown_timed >= 2, "{shown_timed} of 4 faults show under timing cores");
}
