//! The trees behind the flame graph.

use super::*;

/// Names from the root to a node.
fn path(flame: &Flame, nodes: &[FlameNode], mut at: usize) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        names.insert(0, flame.names[nodes[at].2 as usize].clone());
        match nodes[at].0 {
            0 => return names,
            above => at = above as usize - 1,
        }
    }
}

#[test]
fn a_tree_leads_from_the_process_to_the_line() {
    let report = report_of(&evaluation(), None);
    let flame = &report.common.flame;
    let paths: Vec<_> =
        (0..flame.lines.len()).map(|at| path(flame, &flame.lines, at).join(" > ")).collect();
    let inlined = paths.iter().find(|path| path.contains("length > sum_of_squares > square > "));
    let inlined = inlined.unwrap_or_else(|| panic!("{paths:#?}"));
    assert!(inlined.starts_with("quickstart > ") && inlined.contains(".c:"), "{inlined}");
    for process in &report.common.processes[1..] {
        let own = (0..flame.lines.len())
            .filter(|at| path(flame, &flame.lines, *at)[0] == process.name)
            .map(|at| flame.lines[at].4.iter().sum::<u64>());
        assert!((own.sum::<u64>() as f64 - process.cycles).abs() <= 8.0, "{}", process.name);
    }
    assert!(flame.callers.is_empty(), "no contexts");
}

#[test]
fn runs_are_merged_by_name() {
    let flame = report_of(&evaluation(), None).common.flame;
    let json = serde_json::to_string(&flame).unwrap();
    let mut after: Flame = serde_json::from_str(&json).unwrap();
    let length = after.names.iter().position(|name| name == "length").unwrap();
    after.names[length] = "size".to_owned();
    let merged = Flame::merged(&flame, &after, [1.0; 2], |_, _, name| name.to_owned());
    let mut moved = (0, 0);
    for (at, FlameNode(.., is, was)) in merged.lines.iter().enumerate() {
        let names = path(&merged, &merged.lines, at);
        let has = |name: &str| names.iter().any(|other| other == name);
        match (has("length"), has("size")) {
            (false, false) => assert_eq!(is, was, "{names:?}"),
            (true, _) => moved.0 += was.iter().sum::<u64>() + 2 * is.iter().sum::<u64>(),
            (_, true) => moved.1 += is.iter().sum::<u64>() + 2 * was.iter().sum::<u64>(),
        }
    }
    assert!(moved.0 > 10_000 && moved.0 == moved.1, "{moved:?}");
}

#[test]
fn a_file_of_another_kind_is_refused() {
    let text = r#"{"names":["a"],"columns":[],"lines":[[0,9,0,0,[],[]]],"callers":[]}"#;
    let error = serde_json::from_str::<Flame>(text).unwrap_err().to_string();
    assert!(error.contains("from 0 to 5, found 9"), "{error}");
    // Nodes that lead nowhere do no harm.
    let text = r#"{"names":[],"columns":[],"lines":[[7,3,5,0,[1],[]]],"callers":[]}"#;
    let flame: Flame = serde_json::from_str(text).unwrap();
    let merged = Flame::merged(&flame, &Flame::default(), [1.0, 2.5], |_, _, name| name.to_owned());
    assert_eq!((merged.lines[0].0, &*merged.names[0]), (0, "?"));
}
