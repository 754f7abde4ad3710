use profile::ProcessId;
use profile::waits::{SchedulerEvent, SchedulerLog, SwitchOut, Transition};

use super::*;

/// Evaluations of two harts. The program's second thread runs on the second hart until cycle 4,000 of 10,500; the first hart is busy all the
/// time, and is in the function of instructions 5 to 7 while it is alone.
fn harts() -> [Evaluation; 2] {
    let thread =
        |id, tid, process, name: &str| Thread::new(ThreadId(id), process, tid, 0, name.to_owned());
    let event = |cycle, change| SchedulerEvent { cycle, hart: 0, change, entry: None };
    let [mut first, mut second] = [evaluation(), evaluation()];
    for hart in [&mut first, &mut second] {
        hart.threads = vec![
            thread(0, 42, QUICKSTART, "quickstart"),
            thread(1, 50, QUICKSTART, "worker"),
            thread(2, 0, ProcessId::BOOT, "swapper"),
        ];
        hart.scheduler.region = std::iter::once(0..10_500).collect();
        hart.shared = vec![Profile::new(UNITS_PER_CYCLE)];
    }
    first.scheduler.events = vec![event(0, Transition::Runs(42, ThreadId(0)))];
    second.scheduler.events = vec![
        event(0, Transition::Runs(50, ThreadId(1))),
        event(4_000, Transition::Leaves(50, SwitchOut::Ended)),
        event(4_000, Transition::Runs(0, ThreadId(2))),
    ];
    let alone = |inst: InstId| (5..=7).contains(&inst.0);
    for (process, inst, units) in first.oracle.clone().iter().filter(|(_, inst, _)| !alone(*inst)) {
        first.shared[0].add(process, inst, units);
    }
    second.shared[0] = second.oracle.clone();
    [first, second]
}

fn report(harts: &[Evaluation]) -> Report {
    let merged = Evaluation::merged(harts).unwrap();
    let (_root, symbolizer) = symbolizer();
    let own = inputs(&merged, &symbolizer);
    Report::build(ReportInputs { of_all_harts: true, harts, ..own })
}

#[test]
fn functions_and_threads_have_all_of_the_elapsed_time() {
    let harts = harts();
    let report = report(&harts);
    let found = report.sections.elapsed_profile.as_ref().unwrap();
    assert_eq!((found.cycles, found.idle, &found.busy[..]), (10_500, 0, &[6_500, 4_000][..]));
    let functions: f64 = found.functions.iter().map(|row| row.cycles).sum();
    let threads: f64 = found.threads.iter().map(|row| row.cycles).sum();
    assert!((functions - 10_500.0).abs() < 1e-6, "{functions}");
    assert!((threads - 10_500.0).abs() < 1e-6, "{threads}");
    let of = |name: &str| found.threads.iter().find(|row| row.name == name).unwrap();
    assert_eq!((of("quickstart").cycles, of("worker").cycles), (8_500.0, 2_000.0));
    // The function that is alone weighs twice as much beside another as among all harts' cycles.
    let merged = Evaluation::merged(&harts).unwrap();
    let busy = (merged.cycles - merged.idle) as f64;
    let elapsed: f64 = merged.elapsed_cycles().map(|(.., cycles)| cycles).sum();
    for row in &found.functions {
        let function = report.common.functions.iter();
        let mut function = function.filter(|of| (of.process, &of.name) == (row.process, &row.name));
        let cycles = function.next().unwrap().cycles;
        assert!((row.of_busy - cycles / busy).abs() < 1e-9, "{row:?}");
        assert!(row.cycles * elapsed / 10_500.0 <= cycles + 1e-6, "{row:?}");
        assert!(row.cycles * elapsed / 10_500.0 >= cycles / 2.0 - 1e-6, "{row:?}");
    }
    assert!(found.functions.iter().map(|row| row.of_busy).sum::<f64>() > 0.99);
}

#[test]
fn the_section_is_as_blessed_and_every_number_is_explained() {
    let report = report(&harts());
    let mut text = String::new();
    let section: &dyn crate::section::Section = &report.sections.elapsed_profile;
    section.write(&report.common, &Options::default(), &mut text).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    golden("elapsed.txt", &text);
    assert!(report.html("").contains("id=\"elapsed\""));
    let json = report.json();
    for path in [
        "elapsed_profile.harts",
        "elapsed_profile.cycles",
        "elapsed_profile.idle",
        "elapsed_profile.busy.1",
        "elapsed_profile.functions.0.cycles",
        "elapsed_profile.functions.0.share",
        "elapsed_profile.functions.0.of_busy",
        "elapsed_profile.threads.0.cycles",
        "elapsed_profile.threads.0.share",
        "elapsed_profile.threads.0.of_busy",
        "elapsed_profile.threads.0.count",
    ] {
        let answer = explain(&json, path).unwrap().text();
        assert!(answer.contains("profile/src/"), "{path}: {answer}");
    }
}

#[test]
fn nothing_is_told_of_one_hart_or_without_the_records() {
    let [first, second] = harts();
    assert!(report(std::slice::from_ref(&first)).sections.elapsed_profile.is_none());
    let silent =
        |hart: &Evaluation| Evaluation { scheduler: SchedulerLog::default(), ..hart.clone() };
    assert!(report(&[silent(&first), silent(&second)]).sections.elapsed_profile.is_none());
    // A recording of an older version does not tell how many harts are busy.
    let older = |hart: &Evaluation| Evaluation { shared: Vec::new(), ..hart.clone() };
    assert!(report(&[older(&first), older(&second)]).sections.elapsed_profile.is_none());
}
