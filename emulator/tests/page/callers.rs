//! Call stacks follow the chosen range of time.

use profile::Evaluation;
use report::{FlameNode, FrameKind, ThreadRow};
use serde_json::{Value, json};

use super::pictures::MAX_DIFFERENCE;
use super::range::{
    HIDE_ALL_BUT_FLAME_GRAPH, INSTRUCTIONS_EACH, START_PC, VIEWS, executed, page, report,
    straight_code,
};
use crate::common::browser::Browser;

/// A hart that executes `length` for so many rounds, and then `_start`, which calls `length` in each round.
fn rounds(alone: u32, called: u32) -> Evaluation {
    let mut code = straight_code();
    let next = code.len() as u32;
    let call = START_PC + 2 * u64::from(INSTRUCTIONS_EACH);
    // `jal ra`, where it returns to, and `c.jr ra` after `length`.
    code.extend([(call, 0xef, 4), (call + 4, 0xa001, 2), (0x10160, 0x8082, 2)]);
    let length: Vec<u32> = (0..INSTRUCTIONS_EACH).collect();
    let start = INSTRUCTIONS_EACH..2 * INSTRUCTIONS_EACH;
    let calling: Vec<u32> =
        start.chain([next]).chain(length.iter().copied()).chain([next + 2, next + 1]).collect();
    let order = [length.repeat(alone as usize), calling.repeat(called as usize)].concat();
    executed(&code, order.into_iter(), true)
}

/// Script that gives each node with at least a hundredth of the time: its path, and its share in thousandths.
const TREE: &str = "
    const tree = () => {
      const found = {};
      const walk = (node, path) => {
        if (node.total < 0.01 * flameRoot().total) return;
        found[path] = Math.round(1000 * node.total / flameRoot().total);
        node.below.forEach((below) => walk(below, path + '/' + below.name));
      };
      flameRoot().below.forEach((below) => walk(below, below.name));
      return found;
    };
";

#[test]
fn callers_in_a_range_are_those_of_a_run_of_it_alone() {
    let harts = [rounds(50_000, 21_000)];
    let seen = |name: &str, harts: &[Evaluation], brush: &str| {
        let steps = format!(
            "{VIEWS} {TREE} {brush}
            say('by', flame.by);
            say('tree', tree());
            say('scope', byId('flame').querySelector('.scope')?.textContent ?? '');
            {HIDE_ALL_BUT_FLAME_GRAPH}"
        );
        let browser = Browser { window: (1100, 300), steps: &steps, ..Browser::default() };
        let seen = browser.open(name, &page(harts));
        assert_eq!(*seen.get("by"), json!("callers"));
        seen
    };
    let whole = seen("page-callers-whole", &harts, "");
    let mut differ = Vec::new();
    for (name, brush, alone) in [
        ("first", "await brushed(0.05, 0.4);", rounds(50_000, 0)),
        ("second", "await brushed(0.6, 0.9);", rounds(0, 21_000)),
    ] {
        let ranged = seen(&format!("page-callers-{name}"), &harts, brush);
        let alone = seen(&format!("page-callers-{name}-alone"), &[alone], "");
        assert_eq!(*ranged.get("scope"), json!("of the chosen range"));
        let (tree, expected) = (ranged.get("tree"), alone.get("tree"));
        assert!(is_same(tree, expected), "{name}: {tree}, not {expected}");
        assert!(!is_same(tree, whole.get("tree")), "{name}: {tree}");
        let difference = ranged.picture.difference(&alone.picture);
        assert!(
            difference < MAX_DIFFERENCE,
            "{name}: {difference} differ from a run of the range alone"
        );
        differ.push(tree.to_string().contains("_start/length"));
    }
    assert_eq!(differ, [false, true], "only the second calls");
}

/// True if two trees have the same nodes, and their shares differ by no more than a round that the end of a range cuts.
fn is_same(tree: &Value, other: &Value) -> bool {
    let [tree, other] = [tree, other].map(|tree| tree.as_object().expect("a tree"));
    let share = |share: &Value| share.as_i64().expect("thousandths");
    tree.len() > 1
        && tree.keys().eq(other.keys())
        && tree.iter().all(|(path, own)| share(own).abs_diff(share(&other[path])) <= 3)
}

#[test]
fn a_range_is_the_same_after_another() {
    let steps = format!(
        "{VIEWS} {TREE}
        await brushed(0.05, 0.4);
        say('once', tree());
        await brushed(0.6, 0.9);
        // A profiler's time is not kept over time.
        byId('flame-column').value = 0; byId('flame-column').dispatchEvent(new Event('change'));
        say('profiler', byId('flame').querySelector('.scope').textContent);
        byId('flame-column').value = -1; byId('flame-column').dispatchEvent(new Event('change'));
        await brushed(0.05, 0.4);
        say('again', tree());
        byId('range').click();
        await later(300);
        say('all', tree());"
    );
    let seen = Browser { steps: &steps, ..Browser::default() }
        .open("page-callers-again", &page(&[rounds(50_000, 21_000)]));
    assert_eq!(seen.get("once"), seen.get("again"));
    assert_eq!(*seen.get("profiler"), json!("whole run"));
    assert_ne!(seen.get("all"), seen.get("again"));
}

#[test]
fn threads_have_their_time_in_a_range() {
    let mut report = report(&[rounds(50_000, 21_000)]);
    let process = report.common.processes[1].name.clone();
    // Another thread of the process has a thousand cycles in the first bin, and as many more in each further one.
    let name = report.common.flame.names.len() as u32;
    report.common.flame.names.push("worker".to_owned());
    let callers = &mut report.common.flame.callers;
    callers.push(FlameNode(1, FrameKind::Thread, name, 0, vec![1000], Vec::new()));
    let node = callers.len() as u32;
    for (bin, nodes) in (1..).zip(&mut report.common.over_time.callers) {
        nodes.push((node, 1000 * bin));
    }
    let row = |name: &str| ThreadRow {
        process: 1,
        name: name.to_owned(),
        tids: vec![1],
        count: 1,
        cycles: 123.0,
        share: 0.5,
    };
    report.sections.threads = vec![row(&process), row("worker")];
    let steps = format!(
        "{VIEWS}
        const cells = () => texts('#threads tbody td').map((cell) => cell.replaceAll(',', ''));
        say('whole', cells());
        await brushed(0.05, 0.4);
        say('range', chosen.range);
        say('cells', cells());
        say('scope', byId('threads').querySelector('.scope').textContent);
        byId('range').click();
        await later(300);
        say('again', cells());"
    );
    let browser = Browser { steps: &steps, ..Browser::default() };
    let seen = browser.open("page-range-threads", &report.html(""));
    let [start, end]: [u64; 2] = serde_json::from_value(seen.get("range").clone()).unwrap();
    let over_time = &report.common.over_time;
    let inside = over_time
        .bins
        .iter()
        .zip(&over_time.callers)
        .filter(|(bin, _)| bin.0 >= start && bin.1 <= end);
    let [mut own, mut worker] = [0, 0];
    for (at, cycles) in inside.flat_map(|(_, nodes)| nodes) {
        *(if *at == node { &mut worker } else { &mut own }) += cycles;
    }
    assert!(worker > 1000 && own > worker, "{own} and {worker}");
    let cells = seen.get("cells");
    assert_eq!((&cells[2], &cells[7]), (&json!(own.to_string()), &json!(worker.to_string())));
    assert_eq!(*seen.get("scope"), json!("of the chosen range"));
    assert_eq!(seen.get("again"), seen.get("whole"));
    assert_eq!(seen.get("whole")[2], json!("123"));
}
