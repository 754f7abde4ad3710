use super::*;
use crate::run_description::RunDescription;
use serde_json::{Value, json};

fn run(main: f64, other: Option<f64>) -> Run {
    let total = main + other.unwrap_or(0.0);
    let mut functions = vec![
        json!({"process": 1, "name": "main", "module": 0, "cycles": main, "share": main / total,
        "stack": [0.0, main / total]}),
    ];
    if let Some(other) = other {
        functions.push(json!({"process": 1, "name": "other", "module": 0, "cycles": other, "stack": [other / total, 0.0]}));
    }
    let row = json!({"process": 1, "label": "main+4", "text": "ld a0, 0(a1)", "source": "a.c:3", "cycles": main,
        "stack": [0.0, main / total]});
    let process = |name: &str| json!({"name": name, "cycles": total, "stack": [other.unwrap_or(0.0) / total, main / total]});
    serde_json::from_value(json!({
        "categories": ["Execution", "Load stall"],
        "totals": {"cycles": total as u64 + 7, "idle": 7, "instructions": 1000, "ipc": 1.0},
        "processes": [process("all"), process("a")],
        "functions": functions,
        "instructions": [row],
        "modules": [{"path": "/bin/a"}],
    }))
    .unwrap()
}

#[test]
fn a_run_equals_itself() {
    let run = run(3e6, Some(1e6));
    let comparison = Comparison::new(&run, &run, &[]).unwrap();
    let all = comparison.functions.iter().chain(&comparison.instructions);
    assert!(all.chain(&comparison.processes).all(|row| row.delta() == 0.0 && row.before > 0.0));
    assert_eq!(comparison.text(10).matches("no change").count(), 3);
}

#[test]
fn what_got_faster_and_why() {
    let (before, after) = (run(3e6, None), run(1e6, Some(5e5)));
    let comparison = Comparison::new(&before, &after, &[]).unwrap();
    let [main, other] = &comparison.functions[..] else {
        panic!("two functions");
    };
    assert_eq!((main.name.as_str(), main.delta(), main.stack[1].round()), ("main", -2e6, -2e6));
    assert_eq!((other.before, other.after), (0.0, 5e5));
    assert_eq!((comparison.instructions[0].before, comparison.instructions[0].after), (3e6, 1e6));
    let text = comparison.text(10);
    for part in ["a: main ", "-2.000", "-66.7 %", "Load stall", "new", "a: main+4  ld a0, 0(a1)"] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(!comparison.text(1).contains("a: other"));
}

#[test]
fn harts_are_told() {
    let one = run(3e6, Some(1e6));
    let two = serde_json::from_value::<Vec<_>>(json!([{}, {}])).unwrap();
    let two = Run { harts: two, ..one.clone() };
    let comparison = Comparison::new(&one, &two, &[]).unwrap();
    let text = comparison.text(10);
    assert!(text.contains("one hart before, 2 harts after"), "{text}");
    assert!(!Comparison::new(&one, &one, &[]).unwrap().text(10).contains("All harts"));
}

#[test]
fn renamed_processes_are_matched_if_one_says_so() {
    let before = run(3e6, None);
    let mut after = run(1e6, None);
    after.processes[1].name = "b".into();
    after.modules[0].path = "/bin/b".into();
    let hint = "--map a=b";
    let unmatched = Comparison::new(&before, &after, &[]).unwrap();
    let text = unmatched.text(10);
    assert!(text.contains(hint) && text.contains("gone"), "{text}");
    let map = [("a".to_owned(), "b".to_owned())];
    let matched = Comparison::new(&before, &after, &map).unwrap();
    let [main] = &matched.functions[..] else {
        panic!("one function: {:?}", matched.functions);
    };
    assert_eq!((main.before, main.after), (3e6, 1e6));
    assert!(!matched.text(10).contains(hint));
    let error = Comparison::new(&before, &before, &map).unwrap_err();
    assert_eq!(error, "expected one of the processes a, found \"b\"");
}

/// A threaded program with a description: `elapsed` cycles of the region, and the cycles that its second thread waited for `lock`.
fn threaded(elapsed: u64, waited: u64) -> Run {
    let time = |cycles: u64, count: u64| json!({"cycles": cycles, "count": count, "longest": cycles, "share": 0.5});
    let wait = |cycles: u64, count: u64| {
        let mut row = time(cycles, count);
        row["reason"] = json!("futex");
        row["wakers"] = json!([]);
        row
    };
    let thread = |tid: u32, waited: u64| {
        json!({"process": 1, "name": "a", "tid": tid, "cycles": elapsed, "running": time(1_000_000, 3),
            "ready": time(5_000, 2), "waits": [wait(waited, 9)], "unknown": 0.0})
    };
    let mut futex = time(waited, 9);
    futex["process"] = json!(1);
    futex["address"] = json!(format!("{elapsed:#x}"));
    futex["object"] = json!("lock");
    let shell = json!({"process": 2, "name": "sh", "tid": 1, "cycles": elapsed, "running": time(10, 1),
        "ready": time(0, 0), "waits": [wait(elapsed, 1)], "unknown": 0.0});
    let process =
        |name: &str, cycles: f64| json!({"name": name, "cycles": cycles, "stack": [0.5, 0.5]});
    serde_json::from_value(json!({
        "meta": {"name": "a", "regions": {"cycles": elapsed}, "core": {"name": "boom-4w", "clock": {"mhz": 1000}, "rob": {"entries": 96}},
            "spec": {"guest": {"harts": 4}, "run": {"command": "./a\n"}}},
        "categories": ["Execution", "Load stall"],
        "totals": {"cycles": 4 * elapsed, "idle": 4 * elapsed - 2_000_000, "instructions": 1000},
        "processes": [process("all", 2e6), process("a", 2e6), process("sh", 10.0)],
        "functions": [], "instructions": [], "modules": [],
        "waiting": {"programs": [], "threads": [thread(7, 100), thread(8, waited), shell], "more_threads": 0,
            "futexes": [futex], "more_futexes": 0},
    }))
    .unwrap()
}

/// Returns a run's description after a change.
fn changed(run: &Run, change: impl FnOnce(&mut Value)) -> RunDescription {
    let mut content = run.meta.content().clone();
    change(&mut content);
    content.into()
}

#[test]
fn what_a_user_waits_comes_first() {
    let before =
        threaded(36_700_000, 24_000_000).titled("out/a", Some("2026-11-27T19:00:00Z".into()));
    let mut after = threaded(12_800_000, 300_000).titled("out/b", None);
    after.meta = changed(&after, |meta| meta["core"]["rob"]["entries"] = json!(64));
    let comparison = Comparison::new(&before, &after, &[]).unwrap();
    let text = comparison.text(10);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "before     out/a: ./a (boom-4w, 4 harts, 2026-11-27T19:00:00Z)");
    assert_eq!(lines[1], "after      out/b: ./a (boom-4w, 4 harts)");
    assert_eq!(lines[2], "differ in  core.rob.entries 96 → 64");
    let at = |start: &str| lines.iter().position(|line| line.starts_with(start)).unwrap();
    let elapsed = at("M cycles elapsed");
    assert!(lines[elapsed].ends_with("36.700      12.800   -65.1 %"), "{text}");
    assert!(lines[elapsed + 1].ends_with("36.700      12.800   -65.1 %"), "{text}");
    // The work is the same, and so are the busy cycles.
    assert!(lines[elapsed + 2].starts_with("M cycles, not idle"), "{text}");
    assert!(lines[elapsed + 2].ends_with("2.000       2.000    +0.0 %"), "{text}");
    let waiting = comparison.waiting.as_ref().unwrap();
    let waited = |row: &ThreadChange| [row.before, row.after].map(|time| time.unwrap().waiting);
    let threads: Vec<(&str, [u64; 2])> =
        waiting.threads.iter().map(|row| (&*row.name, waited(row))).collect();
    // The shell, which waits for the program's end, is not among them.
    assert_eq!(
        threads,
        [("", [24_000_100, 300_100]), ("a #2", [24_000_000, 300_000]), ("a", [100, 100])]
    );
    assert!(at("a: a #2 ") > at("all ") && at("a: futex ") < at("a: lock "), "{text}");
    let lock = &waiting.futexes[0];
    assert_eq!((&*lock.name, lock.before.cycles, lock.after.cycles), ("lock", 24_000_000, 300_000));
}

/// A lock in the heap, whose address says nothing of another run.
#[test]
fn futexes_without_a_name_are_those_of_who_waits() {
    let run = |function: &str| {
        let mut run = threaded(1_000_000, 500_000);
        let futex = &mut run.waiting.as_mut().unwrap().futexes[0];
        futex.object = None;
        futex.places = serde_json::from_value(json!([{"label": "__lll_lock_wait+0x1e"}])).unwrap();
        futex.callers =
            serde_json::from_value(json!([{"function": "?"}, {"function": function}])).unwrap();
        run
    };
    let rows = |before: &Run, after: &Run| {
        let comparison = Comparison::new(before, after, &[]).unwrap();
        let futexes = comparison.waiting.unwrap().futexes;
        futexes.into_iter().map(|row| row.name).collect::<Vec<_>>()
    };
    assert_eq!(rows(&run("take"), &run("take")), ["in take"]);
    let mut both = rows(&run("take"), &run("put"));
    both.sort();
    assert_eq!(both, ["in put", "in take"]);
    assert_eq!(rows(&run("?"), &run("?")), ["in __lll_lock_wait+0x1e"]);
}

#[test]
fn processes_of_one_command_are_one_row() {
    let crowd = |cycles: &[f64]| -> Run {
        let first = 40 + cycles.len() as u32;
        let whole: f64 = cycles.iter().sum();
        let mut processes = vec![json!({"name": "all", "cycles": whole, "stack": [0.0, 1.0]})];
        processes.extend(cycles.iter().enumerate().map(|(at, cycles)| {
            let pid = first + at as u32;
            json!({"name": format!("curl-{pid}"), "pid": pid, "cycles": cycles, "stack": [0.25, 0.75]})
        }));
        let functions: Vec<_> = (1..=cycles.len())
            .map(|at| json!({"process": at, "name": "inflate", "module": 0, "cycles": cycles[at - 1], "stack": [0.25, 0.75]}))
            .collect();
        serde_json::from_value(json!({
            "categories": ["Execution", "Load stall"],
            "totals": {"cycles": whole as u64, "idle": 0, "instructions": 1000},
            "processes": processes, "functions": functions, "instructions": [],
            "modules": [{"path": "/lib/libz.so"}],
        }))
        .unwrap()
    };
    let comparison = Comparison::new(&crowd(&[3e6, 5e6]), &crowd(&[1e6, 2e6, 3e6]), &[]).unwrap();
    let [.., curl] = &comparison.processes[..] else { panic!("no processes") };
    assert_eq!((&*curl.process, curl.before, curl.after), ("curl", 8e6, 6e6));
    assert_eq!(curl.process_title(), "curl (2 → 3 processes)");
    let members: Vec<_> =
        curl.members.iter().map(|it| (&*it.process, it.before, it.after)).collect();
    // By order of process numbers: 3 to 1, 5 to 2, none to 3.
    assert_eq!(members, [("curl-44", 5e6, 2e6), ("curl-45", 0.0, 3e6), ("curl-43", 3e6, 1e6)]);
    let [inflate] = &comparison.functions[..] else {
        panic!("one function: {:?}", comparison.functions)
    };
    assert_eq!((inflate.before, inflate.after), (8e6, 6e6));
    assert_eq!(comparison.command(true, "curl-43"), "curl");
}

#[test]
fn several_runs_are_beside_the_first() {
    let mut runs: Vec<Run> = [3e6, 1e6, 6e6, 3e6, 2e6]
        .into_iter()
        .enumerate()
        .map(|(at, cycles)| {
            run(cycles, (at == 1).then_some(5e5)).titled(&format!("out/{at}"), None)
        })
        .collect();
    runs[2].meta = json!({"part": "it was interrupted"}).into();
    let compared = Compared::new(&runs);
    let main = compared.functions.iter().find(|row| row.name == "main").unwrap();
    assert_eq!(main.cycles, [3e6, 1e6, 6e6, 3e6, 2e6]);
    let other = compared.functions.iter().find(|row| row.name == "other").unwrap();
    assert_eq!(other.cycles, [0.0, 5e5, 0.0, 0.0, 0.0]);
    let text = compared.text(10);
    assert!(text.starts_with("NOT WHOLE: run 3: it was interrupted\n"), "{text}");
    for part in ["run 5      out/4", "+100.0 %", "-66.7 %", "new", "a: main ", "M cycles, not idle"]
    {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    // The fifth run is in a second block of tables.
    assert_eq!(text.matches("Function, M cycles").count(), 2);
    let page = compared.html();
    for part in ["out/4", "run 5", "-66.7\u{a0}%", "a: other", "role=\"alert\">NOT WHOLE: run 3"] {
        assert!(page.contains(part), "{part}");
    }
}

/// A run of 4 M cycles that was sampled: a tenth of it in units.
fn sampled(main: f64, margin: f64) -> Run {
    let mut run = run(main / 10.0, Some(1e5));
    let of_units = json!({
        "in_words": "40 units", "units": 40, "instructions": 10_000, "unit_instructions": 1000,
    });
    run.meta = json!({ "sampling": of_units }).into();
    let margins = |margin: f64| {
        let margins = json!({ "within_95": margin / 10.0, "within_99_7": margin / 5.0 });
        json!({ "share": margins, "of_all": margins, "cycles": margins })
    };
    let of = |margin: f64| Some(serde_json::from_value(margins(margin)).unwrap());
    run.functions[0].margins = of(margin);
    run.functions[1].margins = of(1e5);
    run.processes.iter_mut().for_each(|process| process.margins = of(3e5));
    run
}

#[test]
fn cycles_of_sampled_runs_are_estimates_of_the_region() {
    let comparison = Comparison::new(&sampled(3e6, 3e5), &sampled(2e6, 4e5), &[]).unwrap();
    let [main, _] = &comparison.functions[..] else {
        panic!("two functions");
    };
    assert_eq!((main.before.round(), main.after.round()), (3e6, 2e6));
    assert!((main.margin.unwrap() - 5e5).abs() < 1.0, "{:?}", main.margin);
    assert!(!main.is_within_chance());
    // One margin, wherever it stands.
    assert!((comparison.margin.unwrap() - f64::hypot(3e5, 3e5)).abs() < 1.0);
    assert_eq!(comparison.margin, comparison.processes[0].margin);
    assert_eq!(comparison.before.instructions, 10_000);
    let text = comparison.text(10);
    assert!(text.contains("SAMPLED: before: 40 units; its cycles below are estimates"), "{text}");
    assert!(!text.contains("within chance"), "{text}");

    let (before, after) = (sampled(3e6, 6e5), sampled(2.5e6, 6e5));
    let by_chance = Comparison::new(&before, &after, &[]).unwrap();
    assert!(by_chance.functions[0].is_within_chance());
    assert!(by_chance.text(10).contains("within chance"));
    let several = Compared::new(&[before, after, run(1e6, None)]);
    assert_eq!(several.functions[0].within_chance, [1]);
    assert!(several.text(10).contains("~-16.7 %"), "{}", several.text(10));

    // What the estimate of all cycles knows beside the units holds for all code alike, and for the margin of all cycles.
    let mut known = sampled(3e6, 3e5);
    let of_cycles = |value: f64, half_width: f64| {
        let interval = json!({ "half_width": half_width });
        json!({ "value": value, "within_95": interval, "within_99_7": interval })
    };
    known.meta = changed(&known, |meta| {
        meta["sampling"]["units_alone"] = of_cycles(4e6, 3e5);
        meta["sampling"]["cycles"] = of_cycles(4.2e6, 1e5);
    });
    let comparison = Comparison::new(&sampled(3e6, 3e5), &known, &[]).unwrap();
    let main = comparison.functions.iter().find(|row| row.name == "main").unwrap();
    assert_eq!((main.before.round(), main.after.round()), (3e6, 3.15e6));
    assert!((comparison.margin.unwrap() - f64::hypot(3e5, 1e5)).abs() < 1.0);
    assert_eq!(comparison.after.instructions, 10_000);

    // A run that was timed from end to end is beside them as it is.
    let comparison = Comparison::new(&run(3e6, Some(1e6)), &sampled(3e6, 3e5), &[]).unwrap();
    assert!(comparison.functions.iter().all(|row| row.delta().abs() < 1.0));
}

#[test]
fn what_a_sampled_run_does_not_have_may_have_been_in_no_unit() {
    // `other` takes 0.2 M cycles, and some three fortieths of the 3 M of the sampled run may be in no unit.
    let mut without = sampled(3e6, 3e5);
    without.functions.truncate(1);
    let comparison = Comparison::new(&run(3e6, Some(2e5)), &without, &[]).unwrap();
    let other = comparison.functions.iter().find(|row| row.name == "other").unwrap();
    assert!(other.is_within_chance(), "{other:?}");
    let unseen = 1.0 - 0.05f64.powf(1.0 / 40.0);
    let cycles = without.totals().busy() as f64;
    assert!((other.margin.unwrap() / (unseen * cycles) - 1.0).abs() < 1e-6, "{other:?}");
}

#[test]
fn what_nobody_knows_has_no_margin() {
    // Too few units.
    let mut few = sampled(3e6, 3e5);
    few.processes.iter_mut().for_each(|process| process.margins = None);
    let comparison = Comparison::new(&few, &sampled(3e6, 3e5), &[]).unwrap();
    assert_eq!(comparison.margin, None);
    assert!(comparison.processes.iter().all(|row| row.margin.is_none()));
    // A run that was killed knows its plan, and not how long its region is.
    let mut killed = sampled(3e6, 3e5);
    killed.meta = json!({ "spec": { "run": { "sampling": { "unit": 1000 } } } }).into();
    let comparison = Comparison::new(&killed, &sampled(3e6, 3e5), &[]).unwrap();
    let text = comparison.text(10);
    assert!(
        text.contains("SAMPLED: before: units alone were timed; what follows is of the units"),
        "{text}"
    );
    assert!(comparison.functions.iter().all(|row| row.margin.is_none()));
    assert!(text.contains(" ? "), "{text}");
}
