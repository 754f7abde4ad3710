use profile::waits::{KernelEntry, SchedulerEvent, SchedulerLog, SwitchOut, Transition};

use super::*;
use crate::section::Section as _;

/// One thread makes another on a second hart, and waits for its end.
fn report() -> Report {
    let join = SwitchOut::Waits(KernelEntry::Syscall {
        number: 98,
        address: 0x11008,
        argument: 256 | 9,
        pc: 0x1015e,
    });
    let of_hart = |name: &str, tid: u32, changes: &[(u64, Transition)]| {
        let mut evaluation = evaluation();
        evaluation.threads = vec![Thread::new(ThreadId(0), QUICKSTART, tid, 0, name.to_owned())];
        let event = |&(cycle, change): &_| SchedulerEvent { cycle, hart: 0, change, entry: None };
        evaluation.scheduler = SchedulerLog {
            events: changes.iter().map(event).collect(),
            region: std::iter::once(0..20_000).collect(),
        };
        evaluation
    };
    let harts = [
        of_hart(
            "quickstart",
            42,
            &[
                (0, Transition::Runs(42, ThreadId(0))),
                (1_000, Transition::Begins(50)),
                (2_000, Transition::Leaves(42, join)),
                (18_100, Transition::Runs(42, ThreadId(0))),
            ],
        ),
        of_hart(
            "worker",
            50,
            &[
                (1_200, Transition::Runs(50, ThreadId(0))),
                (18_000, Transition::Wakes(42, Some(50))),
                (18_050, Transition::Leaves(50, SwitchOut::Ended)),
            ],
        ),
    ];
    let merged = Evaluation::merged(&harts).unwrap();
    let (_root, symbolizer) = symbolizer();
    let own = inputs(&merged, &symbolizer);
    Report::build(ReportInputs { of_all_harts: true, harts: &harts, ..own })
}

#[test]
fn the_path_leads_through_the_worker_and_adds_up() {
    let report = report();
    let path = report.sections.thread_path.as_ref().unwrap();
    assert_eq!((path.cycles, path.harts), (20_000, 2));
    let threads: Vec<_> =
        path.threads.iter().map(|row| (&*row.thread, row.cycles, row.segments)).collect();
    assert_eq!(threads, [("worker 50", 17_000, 2), ("quickstart 42", 3_000, 3)]);
    assert_eq!(path.kinds.iter().map(|row| row.cycles).sum::<u64>(), path.cycles);
    let ready = path.kinds.iter().find(|row| row.state == PathState::Ready);
    assert_eq!(ready.unwrap().share, 0.015);
    let functions: f64 = path.functions.iter().map(|row| row.cycles).sum();
    assert!((functions - 19_700.0).abs() < 1e-6, "{:?}", path.functions);
    let edges: Vec<_> = (path.edges.iter())
        .map(|row| (&*row.waker, &*row.waiter, &*row.reason, row.count, row.waited))
        .collect();
    let expected = [
        ("worker 50", "quickstart 42", "futex (shared)", 1, 16_000),
        ("quickstart 42", "worker 50", "new thread", 1, 0),
    ];
    assert_eq!(edges, expected);
    let mut verdict = String::new();
    report.write_verdict(&mut verdict, &Options::default()).unwrap();
    let words = "84.0 % of the critical path (what the end waited for, from wakeup to wakeup) is thread worker 50 running";
    assert!(verdict.replace("\n  ", " ").contains(words), "{verdict}");
}

#[test]
fn the_text_fits_and_every_number_is_explained() {
    let report = report();
    let mut text = String::new();
    report.sections.thread_path.write(&report.common, &Options::default(), &mut text).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    for line in [
        "ready, on no hart                                                        300     1.5\n",
        "all: the region                                                       20,000   100.0\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert!(text.contains("quickstart 42           worker 50                      1               0   new thread\n"), "{text}");
    assert!(report.html("").contains("id=\"thread-path\""));
    let json = report.json();
    for path in [
        "thread_path.cycles",
        "thread_path.kinds.0.share",
        "thread_path.threads.0.running",
        "thread_path.functions.0.cycles",
        "thread_path.edges.0.waited",
        "thread_path.segments.1.start",
    ] {
        let answer = explain(&json, path).unwrap().text();
        assert!(answer.contains("profile/src/waits/path.rs"), "{path}: {answer}");
    }
}

#[test]
fn a_program_of_one_thread_on_one_hart_has_no_path() {
    let report = report_of(&evaluation(), None);
    assert!(report.sections.thread_path.is_none());
    assert!(report.json().get("thread_path").is_none());
}
