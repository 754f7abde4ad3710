use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use commit_trace::{Class, InstFacts, InstId};
use serde_json::json;

use super::*;
use crate::perf_data::{GuestProfile, GuestSample};
use crate::stacks::number;
use crate::symbolize::{SymbolFiles, Symbolizer};
use crate::{
    Component, CycleStack, CycleStacks, Evaluation, Mapping, Process, ProcessId, Profile, Profiler,
    Sampler, SamplerResult, Schedule, Thread, ThreadId,
};

mod detail;
pub(crate) mod page;

const UNITS: u64 = 840;
/// Build ID of the program: its instructions here are made up.
const INLINED_ID: [u8; 20] = [
    0xa2, 0xac, 0x62, 0xd1, 0xea, 0xbb, 0xef, 0xdd, 0xf2, 0x5e, 0x87, 0xeb, 0xbb, 0xc4, 0xe8, 0xce,
    0xcd, 0xc0, 0x13, 0x04,
];
const QUICKSTART: ProcessId = ProcessId(1);
const SHELL: ProcessId = ProcessId(2);

fn process(id: ProcessId, pid: Option<u32>, name: &str) -> Process {
    Process {
        id,
        pid,
        generation: 0,
        name: name.to_owned(),
        first_cycle: 0,
        end_cycle: None,
        mappings: vec![Mapping {
            start: 0x10000,
            len: 0x1000,
            file_offset: 0,
            build_id: INLINED_ID.to_vec(),
            path: "/usr/bin/quickstart".to_owned(),
            since: 0,
        }],
    }
}

fn fact(id: u32, space: u32, pc: u64, len: u8, class: Class, target: Option<u64>) -> InstFacts {
    let privilege = if space == 1 { 1 } else { 0 };
    InstFacts {
        id: InstId(id),
        space,
        pc,
        raw: 0x1000 + id,
        len,
        privilege,
        class,
        target,
    }
}

/// The loop of `symbolize/tests/inlined.c` as run by "quickstart" and by two shells, and a kernel
/// function that all of them entered.
fn facts() -> Vec<InstFacts> {
    vec![
        fact(0, 2, 0x10150, 2, Class::Load, None),
        fact(1, 2, 0x10152, 2, Class::Int, None),
        fact(2, 2, 0x10154, 4, Class::Int, None),
        fact(3, 2, 0x10158, 2, Class::Int, None),
        fact(4, 2, 0x1015a, 4, Class::Branch, Some(0x10150)),
        fact(5, 2, 0x1015e, 4, Class::Int, None),
        fact(6, 2, 0x10162, 2, Class::IndirectJump, None),
        fact(7, 2, 0x10168, 4, Class::Int, None),
        fact(8, 1, 0xffff_ffff_8000_1000, 4, Class::System, None),
        fact(9, 1, 0xffff_ffff_8000_1004, 4, Class::Store, None),
        fact(10, 3, 0x10150, 2, Class::Load, None),
    ]
}

fn profile(weights: &[(ProcessId, u32, u64)]) -> Profile {
    let mut profile = Profile::new(UNITS);
    for (process, inst, cycles) in weights {
        profile.add(*process, InstId(*inst), cycles * UNITS);
    }
    profile
}

fn sampler(profiler: Profiler, weights: &[(ProcessId, u32, u64)]) -> SamplerResult {
    SamplerResult {
        sampler: Sampler::new(profiler, Schedule::every(1000)),
        profile: profile(weights),
        processes: None,
        samples: 20,
        dropped: 0,
        tail_cycles: 0,
        signatures: None,
        misplaced: Vec::new(),
        by_context: Vec::new(),
        log: Vec::new(),
    }
}

const TRUTH: [(ProcessId, u32, u64); 12] = [
    (QUICKSTART, 0, 8000),
    (QUICKSTART, 1, 500),
    (QUICKSTART, 2, 2500),
    (QUICKSTART, 3, 500),
    (QUICKSTART, 4, 1000),
    (QUICKSTART, 5, 3000),
    (QUICKSTART, 6, 250),
    (QUICKSTART, 7, 250),
    (QUICKSTART, 8, 1500),
    (QUICKSTART, 9, 500),
    (SHELL, 8, 1500),
    (SHELL, 10, 500),
];

pub(crate) fn evaluation() -> Evaluation {
    let stack = |component, cycles: u64| {
        let mut stack = CycleStack::default();
        stack[Component::Execution] = cycles * UNITS / 4;
        stack[component] = cycles * UNITS - cycles * UNITS / 4;
        stack
    };
    let components = [
        Component::LoadDram,
        Component::Execution,
        Component::Mispredict,
        Component::Divider,
    ];
    let mut stacks = vec![Vec::new(); 3];
    for (process, inst, cycles) in TRUTH {
        let component = match inst {
            0 | 10 => components[0],
            4 => components[2],
            5 => components[3],
            8 => Component::Flush,
            9 => Component::Store,
            _ => components[1],
        };
        let component = if component == Component::Execution {
            Component::Alu
        } else {
            component
        };
        stacks[process.0 as usize].push((InstId(inst), stack(component, cycles)));
    }
    let mut packed = CycleStacks::default();
    for (process, stacks) in (0..).map(ProcessId).zip(stacks) {
        let units = stacks
            .into_iter()
            .flat_map(|(inst, stack): (_, CycleStack)| {
                Component::ALL.map(|component| (number(inst, component), stack[component]))
            });
        packed.set(process, units.collect());
    }
    let same = [
        (QUICKSTART, 0, 9000),
        (QUICKSTART, 2, 3000),
        (QUICKSTART, 4, 1000),
        (QUICKSTART, 5, 3000),
        (QUICKSTART, 8, 2000),
        (SHELL, 8, 2000),
    ];
    let skid = [
        (QUICKSTART, 1, 9000),
        (QUICKSTART, 3, 3000),
        (QUICKSTART, 6, 4000),
        (QUICKSTART, 9, 2000),
        (SHELL, 9, 2000),
    ];
    let facts = facts();
    Evaluation {
        oracle: profile(&TRUTH),
        stacks: packed,
        contexts: None,
        by_context: Vec::new(),
        marked: None,
        samplers: vec![
            sampler(Profiler::Tip, &same),
            sampler(Profiler::Software, &skid),
            {
                let mut fast = sampler(Profiler::Tip, &TRUTH);
                fast.sampler.name = "tip-fast".to_owned();
                fast
            },
        ],
        processes: vec![
            Process {
                mappings: Vec::new(),
                ..process(ProcessId::BOOT, None, "boot")
            },
            process(QUICKSTART, Some(42), "quickstart"),
            process(SHELL, Some(43), "sh"),
        ],
        first_use: vec![0; facts.len()],
        facts,
        spaces: BTreeMap::from([(2, QUICKSTART), (3, SHELL)]),
        kernel_text: None,
        cycles: 21_000,
        idle: 1_000,
        instructions: 15_000,
        traps: 3,
        stream_cycles: 30_000,
        malformed_side_band: 0,
        threads: Vec::new(),
        by_thread: BTreeMap::new(),
        top_down: None,
        signatures: None,
    }
}

pub(crate) fn guest_root() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("usr/bin")).unwrap();
    let elf: &[u8] = include_bytes!("../symbolize/tests/inlined.elf");
    fs::write(root.path().join("usr/bin/quickstart"), elf).unwrap();
    root
}

pub(crate) fn report_of(evaluation: &Evaluation, guest: Option<&GuestProfile>) -> Report {
    let root = guest_root();
    let files = SymbolFiles {
        roots: vec![root.path().to_owned()],
        ..SymbolFiles::default()
    };
    let disassemble = |raw: u32, _: u64| format!("op{raw:x}\ta0, a1");
    let meta = json!({ "name": "a <small> run", "core": { "preset": "boom-4w" } });
    Report::build(
        evaluation,
        &Symbolizer::new(files),
        guest,
        &disassemble,
        meta,
    )
}

/// Compares with a golden file; `BLESS=1` writes it.
fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        expected == text,
        "{} differs (BLESS=1 accepts):\n{text}",
        path.display()
    );
}

#[test]
fn text_is_as_blessed_and_fits() {
    let text = report_of(&evaluation(), None).text(&Options::default());
    for line in text.lines() {
        assert!(line.chars().count() <= 120, "{line}");
    }
    golden("report.txt", &text);
}

#[test]
fn errors_are_half_the_distance_per_level() {
    let errors = report_of(&evaluation(), None).errors_json();
    let of = |level: &str, profiler: &str| errors["quickstart"][level][profiler].as_f64().unwrap();
    // Per mille of 18,000 cycles; TIP is wrong by what it gives too much: 1000 + 500 + 500.
    assert!((of("instruction", "tip") - 2000.0 / 18_000.0).abs() < 1e-9);
    // The loop's block gets 13,000 instead of 12,500; the kernel's block is right.
    assert!((of("block", "tip") - 500.0 / 18_000.0).abs() < 1e-9);
    // `length` gets 16,000 instead of 15,750.
    assert!((of("function", "tip") - 250.0 / 18_000.0).abs() < 1e-9);
    assert!(of("instruction", "software") > 0.9);
    assert!((of("block", "software") - 750.0 / 18_000.0).abs() < 1e-9);
    assert!(errors["quickstart"]["block"].get("guest-tip").is_none());
    assert_eq!(errors["sh"]["function"]["tip"], json!(0.25));
    assert!(errors["all"]["instruction"]["tip"].as_f64().unwrap() > 0.1);
    assert!(errors.get("boot").is_none(), "no cycles, no errors");
}

#[test]
fn a_profiler_that_says_what_the_oracle_says_has_no_error() {
    let report = report_of(&evaluation(), None);
    let column = report
        .columns
        .iter()
        .position(|c| c.name == "tip-fast")
        .unwrap();
    for process in &report.processes {
        for level in Level::ALL {
            assert_eq!(process.errors[column].unwrap().get(level).error, 0.0);
        }
    }
    assert!(!report.columns[column].primary);
}

fn guest() -> GuestProfile {
    let sample = |pid, period, addresses: &[u64]| GuestSample {
        pid,
        tid: pid,
        period,
        cycle: Some(100),
        privilege: Some(0),
        addresses: addresses.to_vec(),
    };
    GuestProfile {
        event: "tip".to_owned(),
        samples: vec![
            sample(42, 900, &[0x10150, 0x10154, 0x10158]),
            sample(42, 800, &[0xffff_ffff_8000_1000]),
            sample(42, 300, &[0x6666]),
            sample(99, 500, &[0x10150]),
        ],
        ..GuestProfile::default()
    }
}

#[test]
fn samples_from_the_guest_are_a_column() {
    let report = report_of(&evaluation(), Some(&guest()));
    let column = report.columns.last().unwrap();
    assert_eq!((column.name.as_str(), column.samples), ("guest-tip", 4));
    assert_eq!(column.unmatched_cycles, 800.0);
    let errors = report.errors_json();
    // 300 + 300 + 300 of 2000 fall on user code, 800 on the kernel, 300 nowhere.
    let error = errors["quickstart"]["function"]["guest-tip"]
        .as_f64()
        .unwrap();
    let correct = 900.0 / 2000.0 + 2000.0 / 18_000.0;
    assert!((error - (1.0 - correct)).abs() < 1e-9, "{error}");
    assert!(errors["sh"]["function"].get("guest-tip").is_none());
    assert!(
        errors["all"]["function"].get("guest-tip").is_none(),
        "sh was not sampled"
    );
    assert_eq!(report.warnings.len(), 3, "{:?}", report.warnings);
}

#[test]
fn a_user_mode_profile_is_compared_with_user_mode() {
    let mut guest = guest();
    guest.exclude_kernel = true;
    guest.exclude_machine = true;
    guest.samples.truncate(1);
    let errors = report_of(&evaluation(), Some(&guest)).errors_json();
    let error = errors["quickstart"]["function"]["guest-tip"]
        .as_f64()
        .unwrap();
    assert!((error - 250.0 / 16_000.0).abs() < 1e-9, "{error}");
}

#[test]
fn processes_of_one_name_are_told_apart() {
    let mut evaluation = evaluation();
    for process in &mut evaluation.processes[1..] {
        process.name = "all".to_owned();
    }
    let errors = report_of(&evaluation, None).errors_json();
    let names: Vec<&String> = errors.as_object().unwrap().keys().collect();
    assert_eq!(names, ["all", "all?-42", "all?-43"]);
    evaluation.processes[2].pid = Some(42);
    evaluation.processes[2].generation = 1;
    let errors = report_of(&evaluation, None).errors_json();
    assert!(errors.get("all?-42.0").is_some() && errors.get("all?-42.1").is_some());
}

#[test]
fn an_empty_evaluation_is_an_empty_report() {
    let mut empty = evaluation();
    empty.oracle = Profile::new(UNITS);
    empty.stacks = CycleStacks::default();
    empty
        .samplers
        .iter_mut()
        .for_each(|s| s.profile = Profile::new(UNITS));
    let report = report_of(&empty, None);
    assert_eq!(report.processes.len(), 1);
    assert!(report.text(&Options::default()).contains("all"));
    assert!(report.html("").contains("</html>"));
}

#[test]
fn cycle_stacks_and_listings() {
    let report = report_of(&evaluation(), None);
    let quickstart = &report.processes[1];
    assert_eq!(
        (quickstart.name.as_str(), quickstart.class),
        ("quickstart", "flush")
    );
    assert!((quickstart.stack.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    let listing = &report.listings[0];
    assert_eq!(report.functions[listing.function].name, "length");
    let shape: Vec<(&str, bool, bool)> = listing
        .rows
        .iter()
        .map(|r| (&*r.instruction.pc, r.leader, r.gap))
        .collect();
    assert_eq!(shape[0], ("10150", true, false));
    assert_eq!(shape[5], ("1015e", true, false));
    assert_eq!(
        listing.rows[2].instruction.inlined,
        ["square", "sum_of_squares"]
    );
    assert_eq!(report.json()["functions"][0]["name"], json!("length"));
}

#[test]
fn threads_of_one_name_are_one_row_of_every_report() {
    let mut evaluation = evaluation();
    let thread = |(id, tid, name, cycles): (u32, u32, &str, u64)| {
        let mut thread = Thread::new(ThreadId(id), QUICKSTART, tid, 0, name.to_owned());
        thread.cycles = cycles;
        thread
    };
    let passing = (2..40).map(|id| (id, 100 + id, "<passing>", 50));
    let threads = [(0, 100, "quickstart", 9000), (1, 101, "idle", 0)];
    evaluation.threads = threads.into_iter().chain(passing).map(thread).collect();
    let report = report_of(&evaluation, None);
    let rows: Vec<_> = { report.threads.iter() }
        .map(|row| (&*row.name, row.count, row.cycles))
        .collect();
    assert_eq!(rows, [("quickstart", 1, 9000.0), ("<passing>", 38, 1900.0)]);
    let text = report.text(&Options::default());
    let line = { text.lines() }
        .find(|line| line.contains("<passing>"))
        .unwrap();
    assert!(
        line.contains("1,900") && line.ends_with("102 103 104 105 106 107 …"),
        "{line}"
    );
    let page = report.html("");
    assert!(
        page.contains("<td>quickstart</td><td>&lt;passing&gt;</td><td>1,900</td>"),
        "{page}"
    );
    assert_eq!(json!(report)["threads"][1]["count"], 38);
}
