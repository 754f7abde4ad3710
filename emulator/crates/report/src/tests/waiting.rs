use profile::waits::{KernelEntry, SchedulerEvent, SchedulerLog, SwitchOut, Transition};
use profile::{Context, ContextId, Contexts};

use super::*;
use crate::section::Section as _;

/// Two threads: one holds a lock that the other waits for, twice; then that one sleeps to the end.
fn waiting() -> Report {
    waiting_of(false)
}

/// Calling contexts of the kernel below `length`, and below what is inlined there at another line.
fn contexts() -> (Contexts, [ContextId; 2]) {
    let mut contexts = Contexts::default();
    let mut add = |thread, caller| contexts.add(Context { process: QUICKSTART, thread, caller });
    let worker = ThreadId(1);
    let root = add(worker, None);
    let length = add(worker, Some((root, InstId(7))));
    let entries = [3, 5].map(|inst| add(worker, Some((length, InstId(inst)))));
    (contexts, entries)
}

fn waiting_of(followed: bool) -> Report {
    let mut evaluation = evaluation();
    let (contexts, entries) = contexts();
    let of = |id, tid, name: &str| Thread::new(ThreadId(id), QUICKSTART, tid, 0, name.to_owned());
    evaluation.threads = vec![of(0, 42, "quickstart"), of(1, 50, "worker")];
    let call = |number, address, argument| {
        SwitchOut::Waits(KernelEntry::Syscall { number, address, argument, pc: 0x1015e })
    };
    let changes = [
        (0, Transition::Runs(42, ThreadId(0))),
        (0, Transition::Runs(50, ThreadId(1))),
        (2_000, Transition::Leaves(50, call(98, 0x11008, 128))),
        (5_000, Transition::Wakes(50, Some(42))),
        (5_500, Transition::Runs(50, ThreadId(1))),
        (7_000, Transition::Leaves(50, call(98, 0x11008, 128))),
        (12_000, Transition::Wakes(50, Some(42))),
        (12_100, Transition::Runs(50, ThreadId(1))),
        (13_000, Transition::Leaves(50, call(115, 1, 0))),
    ];
    evaluation.scheduler = SchedulerLog {
        events: changes
            .into_iter()
            .map(|(cycle, change)| SchedulerEvent {
                cycle,
                hart: change_hart(change),
                change,
                entry: match change {
                    Transition::Leaves(..) if followed => Some(entries[usize::from(cycle > 5_000)]),
                    _ => None,
                },
            })
            .collect(),
        region: std::iter::once(0..20_000).collect(),
    };
    evaluation.contexts = followed.then_some(contexts);
    let (_root, symbolizer) = symbolizer();
    Report::build(ReportInputs { of_all_harts: true, ..inputs(&evaluation, &symbolizer) })
}

/// The worker has the second hart.
fn change_hart(change: Transition) -> u32 {
    match change {
        Transition::Runs(42, _) | Transition::Wakes(..) => 0,
        _ => 1,
    }
}

#[test]
fn locks_sleep_and_wakers_are_told() {
    let report = waiting();
    let waiting = report.sections.waiting.as_ref().unwrap();
    let worker = &waiting.threads[1];
    assert_eq!((&*worker.name, worker.tid, worker.cycles), ("worker", 50, 20_000));
    let reasons: Vec<_> = worker
        .waits
        .iter()
        .map(|wait| (&*wait.reason, wait.time.count, wait.time.cycles, &*wait.wakers[0].waker))
        .collect();
    let expected = [("futex", 2, 8_000, "quickstart 42"), ("clock_nanosleep", 1, 7_000, "nobody")];
    assert_eq!(reasons, expected);
    let program = &waiting.programs[0];
    assert_eq!((program.threads, program.cycles), (2, 40_000));
    let shares = [program.running, program.ready, program.locks, program.other];
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
    assert_eq!(program.locks, 0.2);
    let futex = &waiting.futexes[0];
    assert_eq!((&*futex.address, &*futex.operations), ("0x11008", &["FUTEX_WAIT".to_owned()][..]));
    assert!(futex.places[0].label.starts_with("length"), "{:?}", futex.places);
    let mut verdict = String::new();
    report.write_verdict(&mut verdict, &Options::default()).unwrap();
    let words = "of its threads' time 20.0 % is waiting for locks and conditions, the most (20.0 %) for 0x11008, woken by quickstart 42 in 100.0 % of that; 17.5 % is otherwise waiting in the kernel (clock_nanosleep 17.5 %)";
    assert!(verdict.replace("\n  ", " ").contains(words), "{verdict}");
    assert!(report.html("").contains("id=\"waiting\""));
}

#[test]
fn who_of_the_program_waits_is_told_if_calls_were_followed() {
    let report = waiting_of(true);
    let futex = &report.sections.waiting.as_ref().unwrap().futexes[0];
    let callers: Vec<_> = futex
        .callers
        .iter()
        .map(|row| {
            let time = &row.time;
            (&*row.function, row.source.as_deref(), time.count, time.cycles)
        })
        .collect();
    let expected = [
        ("length", Some("/src/inlined.c:15"), 1, 5_000),
        ("sum_of_squares", Some("/src/inlined.c:10"), 1, 3_000),
    ];
    assert_eq!(callers, expected);
    let mut text = String::new();
    report.sections.waiting.write(&report.common, &Options::default(), &mut text).unwrap();
    let line =
        "      in length (inlined.c:15) 1x 62.5 %; sum_of_squares (inlined.c:10) 1x 37.5 %\n";
    assert!(text.ends_with(line), "{text}");
    let mut verdict = String::new();
    report.write_verdict(&mut verdict, &Options::default()).unwrap();
    let words = "the most (20.0 %) for 0x11008 in length (inlined.c:15), woken by quickstart 42 in 100.0 % of that; 17.5 % is otherwise waiting in the kernel (clock_nanosleep 17.5 %)";
    assert!(verdict.replace("\n  ", " ").contains(words), "{verdict}");
    let html = report.html("");
    assert!(html.contains("length (inlined.c:15) 1x 62.5 %"));
    assert!(!html.contains("Which functions of the program wait"));
    // Not followed: how to learn it.
    assert!(waiting().html("").contains("Which functions of the program wait"));
}

#[test]
fn the_section_is_as_blessed_and_fits() {
    let mut text = String::new();
    let report = waiting();
    report.sections.waiting.write(&report.common, &Options::default(), &mut text).unwrap();
    for line in text.lines() {
        assert!(line.chars().count() <= 120, "{line}");
    }
    golden("waiting.txt", &text);
}

#[test]
fn every_number_of_it_is_explained() {
    let json = waiting().json();
    for path in [
        "waiting.programs.0.locks",
        "waiting.threads.worker.ready.longest",
        "waiting.threads.worker.waits.0.count",
        "waiting.futexes.0.pairs.0.share",
        "waiting.programs.0.idle",
    ] {
        let answer = explain(&json, path).unwrap().text();
        assert!(answer.contains("waits/follow.rs"), "{path}: {answer}");
    }
}

#[test]
fn a_kernel_that_does_not_tell_has_no_section() {
    let (_root, symbolizer) = symbolizer();
    let evaluation = evaluation();
    let report =
        Report::build(ReportInputs { of_all_harts: true, ..inputs(&evaluation, &symbolizer) });
    assert!(report.sections.waiting.is_none());
    assert!(!report.text(&Options::default()).contains("Waiting"));
}
