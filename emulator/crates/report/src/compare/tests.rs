use super::*;
use serde_json::json;

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
    assert!(
        all.chain(&comparison.processes)
            .all(|row| row.delta() == 0.0 && row.before > 0.0)
    );
    assert_eq!(comparison.text(10).matches("no change").count(), 3);
}

#[test]
fn what_got_faster_and_why() {
    let (before, after) = (run(3e6, None), run(1e6, Some(5e5)));
    let comparison = Comparison::new(&before, &after, &[]).unwrap();
    let [main, other] = &comparison.functions[..] else {
        panic!("two functions");
    };
    assert_eq!(
        (main.name.as_str(), main.delta(), main.stack[1].round()),
        ("main", -2e6, -2e6)
    );
    assert_eq!((other.before, other.after), (0.0, 5e5));
    assert_eq!(
        (
            comparison.instructions[0].before,
            comparison.instructions[0].after
        ),
        (3e6, 1e6)
    );
    let text = comparison.text(10);
    for part in [
        "a: main ",
        "-2.000",
        "-66.7 %",
        "Load stall",
        "new",
        "a: main+4  ld a0, 0(a1)",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(!comparison.text(1).contains("a: other"));
}

#[test]
fn harts_are_told() {
    let one = run(3e6, Some(1e6));
    let two = serde_json::from_value::<Vec<_>>(json!([{}, {}])).unwrap();
    let two = Run {
        harts: two,
        ..one.clone()
    };
    let comparison = Comparison::new(&one, &two, &[]).unwrap();
    let text = comparison.text(10);
    assert!(text.contains("one hart before, 2 harts after"), "{text}");
    assert!(
        !Comparison::new(&one, &one, &[])
            .unwrap()
            .text(10)
            .contains("hart")
    );
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
