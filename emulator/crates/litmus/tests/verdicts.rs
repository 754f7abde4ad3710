//! The model against published verdicts, and against what can be said of every program.

use std::collections::{BTreeMap, BTreeSet};

use litmus::{Judged, Verdict, catalog};

/// Verdicts on the outcome that each test is about, in three groups. `true`: allowed.
///
/// First: tests of the folder `tests/non-mixed-size/SAFE` of the repository `litmus-tests-riscv` (commit `dcb920f1`), whose configuration says
/// that all of them should not be observed. Second: tests of its folders `RELAX/…`, each named after an edge that the model relaxes. Third: the
/// unprivileged manual's appendix *RVWMO Explanatory Material*, with the outcomes that the captions of its litmus tests permit and forbid (store
/// buffer forwarding, PPOCA, fri-rfi, RSW, and three of rules 12 and 13), and what its text says of CoRR, RDW, forwarding from AMOs, pairs and
/// RCsc annotations.
const PUBLISHED: &[(&str, bool)] = &[
    ("SB+fence.rw.rws", false),
    ("MP+fence.rw.rws", false),
    ("MP+fence.rw.rw+addr", false),
    ("MP+fence.w.w+addr", false),
    ("MP+fence.w.w+fence.r.rw", false),
    ("MP+fence.w.w+poaqp", false),
    ("MP+poprl+poaqp", false),
    ("MP+poprl+addr", false),
    ("LB+fence.rw.rws", false),
    ("LB+addrs", false),
    ("LB+datas", false),
    ("LB+ctrls", false),
    ("LB+data+ctrl", false),
    ("LB+poaqps", false),
    ("LB+poprls", false),
    ("S+fence.rw.rws", false),
    ("S+fence.w.w+data", false),
    ("S+fence.w.w+ctrl", false),
    ("S+poprl+poaqp", false),
    ("R+fence.rw.rws", false),
    ("R+poprl+fence.rw.rw", false),
    ("2+2W+fence.rw.rws", false),
    ("2+2W+fence.w.ws", false),
    ("2+2W+poprls", false),
    ("WRC+fence.rw.rws", false),
    ("WRC+poaqps", false),
    ("WRC+data+addr", false),
    ("RWC+fence.rw.rws", false),
    ("WWC+datas", false),
    ("ISA2+fence.rw.rws", false),
    ("ISA2+poprl+data+addr", false),
    ("ISA2+poprl+poaqp+poaqp", false),
    ("IRIW+fence.rw.rws", false),
    ("IRIW+addrs", false),
    ("IRIW+poaqps", false),
    ("3.SB+fence.rw.rws", false),
    ("3.LB+datas", false),
    ("3.2W+poprls", false),
    ("Z6.0+fence.rw.rws", false),
    ("Z6.2+fence.rw.rws", false),
    ("Z6.3+fence.rw.rws", false),
    ("Z6.5+fence.rw.rws", false),
    ("SB", true),
    ("SB+fence.rw.rw+po", true),
    ("MP+fence.rw.rw+po", true),
    ("MP+fence.w.w+po", true),
    ("MP+poprl+po", true),
    ("MP+fence.rw.rw+ctrl", true),
    ("MP+fence.w.w+ctrl", true),
    ("MP+po+poaqp", true),
    ("LB", true),
    ("S+po+poaqp", true),
    ("R+po+fence.rw.rw", true),
    ("2+2W", true),
    ("CoRR", false),
    ("SB+rfi-fence.r.rs", true),
    ("SB+rfiap-addrs", false),
    ("MP+fence.w.w+fri-rfi-addr", true),
    ("MP+fence.w.w+addr-pos-addr", true),
    ("RDW", false),
    ("MP+fence.w.w+data-rfi-addr", false),
    ("MP+fence.w.w+addr-rfi-addr", false),
    ("MP+fence.w.w+data-wsi-rfi-addr", true),
    ("LB+fence.rw.rw+addr-po", false),
    ("lrsc+W", false),
    ("SB+porlaqs", false),
];

fn all() -> BTreeMap<String, Judged> {
    let judged = catalog().into_iter().map(Judged::new);
    judged.map(|test| (test.program.name.clone(), test)).collect()
}

#[test]
fn the_model_says_what_is_published() {
    let tests = all();
    let mut wrong = Vec::new();
    for (name, allowed) in PUBLISHED {
        let Some(test) = tests.get(*name) else {
            wrong.push(format!("{name} is not in the list"));
            continue;
        };
        if (test.verdict_of_condition() != Verdict::Forbidden) != *allowed {
            wrong.push(format!("{name}: published as allowed: {allowed}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn plain_accesses_to_different_words_are_not_ordered() {
    let tests = all();
    for family in [
        "MP", "SB", "LB", "S", "R", "2+2W", "WRC", "RWC", "WWC", "ISA2", "W+RWC", "3.SB", "3.LB",
        "3.2W", "Z6.0", "Z6.3", "Z6.5", "IRIW", "IRRWIW", "IRWIW", "4.SB",
    ] {
        assert_eq!(tests[family].verdict_of_condition(), Verdict::Weak, "{family}");
    }
}

#[test]
fn the_list_has_200_programs_of_two_to_four_harts_with_different_names_and_code() {
    let programs = catalog();
    assert!(programs.len() >= 200, "{}", programs.len());
    assert!(programs.iter().all(|program| (2..=4).contains(&program.harts.len())));
    let names: BTreeSet<&str> = programs.iter().map(|program| program.name.as_str()).collect();
    assert_eq!(names.len(), programs.len());
    let code: BTreeSet<String> =
        programs.iter().map(|program| format!("{:?}", program.harts)).collect();
    assert_eq!(code.len(), programs.len());
    assert_eq!(programs, catalog(), "always the same list");
}

#[test]
fn what_interleavings_have_is_allowed_and_no_cycle_is_among_it() {
    for test in all().values() {
        let name = &test.program.name;
        assert!(test.sequential.is_subset(&test.allowed), "{name}");
        assert!(!test.sequential.is_empty(), "{name}");
        assert_ne!(test.verdict_of_condition(), Verdict::Sequential, "{name}");
    }
}

/// Interleaves the harts of a program in all ways and executes each interleaving, in which `sc.w` may fail at any time.
mod interleavings {
    use std::collections::BTreeSet;

    use litmus::{Access, AccessKind, Field, Instruction, Outcome, Program, Value};

    #[derive(Clone)]
    struct State {
        next: Vec<usize>,
        words: [u32; 4],
        registers: Vec<[u32; 8]>,
        reservations: Vec<Option<usize>>,
    }

    pub(super) fn outcomes(program: &Program) -> BTreeSet<Outcome> {
        let harts = program.harts.len();
        let state = State {
            next: vec![0; harts],
            words: [0; 4],
            registers: vec![[0; 8]; harts],
            reservations: vec![None; harts],
        };
        let mut found = BTreeSet::new();
        explore(program, state, &mut found);
        found
    }

    fn explore(program: &Program, state: State, found: &mut BTreeSet<Outcome>) {
        let mut ended = true;
        for hart in 0..program.harts.len() {
            let Some(instruction) = program.harts[hart].get(state.next[hart]) else { continue };
            ended = false;
            let mut after = state.clone();
            after.next[hart] += 1;
            let Instruction::Access(access) = instruction else {
                explore(program, after, found);
                continue;
            };
            if access.kind == AccessKind::StoreConditional {
                let mut failed = after.clone();
                failed.registers[hart][access.to.unwrap()] = 1;
                failed.reservations[hart] = None;
                explore(program, failed, found);
                if after.reservations[hart] != Some(access.location) {
                    continue;
                }
            }
            execute(&mut after, hart, access);
            explore(program, after, found);
        }
        if ended {
            let value = |field: &Field| match *field {
                Field::Register(hart, register) => state.registers[hart][register],
                Field::Memory(location) => state.words[location],
            };
            let fields = program.fields.iter().enumerate();
            found.insert(fields.map(|(n, field)| value(field) << (2 * n)).sum());
        }
    }

    fn execute(state: &mut State, hart: usize, access: &Access) {
        let word = access.location;
        let old = state.words[word];
        let operand = match access.value {
            Value::Constant(value) => value,
            Value::Register(register) => state.registers[hart][register],
        };
        let (loaded, stored) = match access.kind {
            AccessKind::Load => (old, None),
            AccessKind::Store => (0, Some(operand)),
            AccessKind::Swap => (old, Some(operand)),
            AccessKind::Or => (old, Some(old | operand)),
            AccessKind::Add => (old, Some(old + operand)),
            AccessKind::LoadReserved => {
                state.reservations[hart] = Some(word);
                (old, None)
            }
            AccessKind::StoreConditional => {
                state.reservations[hart] = None;
                (0, Some(operand))
            }
        };
        if let Some(register) = access.to {
            state.registers[hart][register] = loaded;
        }
        if let Some(value) = stored {
            state.words[word] = value;
            for (other, reservation) in state.reservations.iter_mut().enumerate() {
                if other != hart && *reservation == Some(word) {
                    *reservation = None;
                }
            }
        }
    }
}

#[test]
fn sequential_consistency_is_what_interleavings_have() {
    for test in all().values() {
        let name = &test.program.name;
        assert_eq!(interleavings::outcomes(&test.program), test.sequential, "{name}");
    }
}

#[test]
fn a_fence_between_all_accesses_leaves_interleavings_only() {
    use litmus::{Fence, Instruction};
    for mut program in catalog() {
        for instructions in &mut program.harts {
            let fenced =
                instructions.iter().flat_map(|one| [Instruction::Fence(Fence::RW_RW), *one]);
            *instructions = fenced.collect();
        }
        let test = Judged::new(program);
        assert_eq!(test.allowed, test.sequential, "{}", test.program.name);
    }
}

#[test]
fn a_forbidden_outcome_is_reported_in_every_form() {
    use litmus::{Histogram, Mode, Results, TestResult};
    let Some(test) = all().remove("SB+fence.rw.rws") else { panic!("it is in the list") };
    // Both loads read zero three times; the other outcome is that of one hart after the other.
    let histogram = Histogram::from([(0, 3), (1, 5)]);
    let tests = vec![TestResult { test, histograms: vec![histogram] }];
    let results = Results { modes: vec![Mode::Interpreted], tests, seconds: vec![1.0] };
    assert_eq!(results.forbidden(), 3);
    let line = "FORBIDDEN: SB+fence.rw.rws, interpreted: 0:r0=0 1:r0=0, 3 times";
    assert!(results.text().lines().any(|text| text == line), "{}", results.text());
    assert!(results.markdown().contains("| SB | 2 | 1 | 3 | 0 | 1 of 3 | 0 | 3 |"));
    assert_eq!(results.json()["totals"]["interpreted"]["forbidden"], 3);
}
