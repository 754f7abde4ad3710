use commit_trace::{CycleClass, DataSource, InstId};
use critical_path::{Cause, Excerpt, Excerpts, InstTimes, Widths};
use profile::synthetic::evaluation;

use crate::explain::{Answer, explain};
use crate::tests::page::check_nesting;
use crate::tests::{inputs, report_of, symbolizer};
use crate::{Options, Report, ReportInputs};

/// Cycles of an iteration: a load of memory whose address the one before loaded, one operation and a branch.
const ITERATION: u64 = 25;
const ITERATIONS: u64 = 12;

/// An excerpt of the loop of the synthetic evaluation, instructions 0 to 4.
fn excerpts() -> Excerpts {
    let mut rows = Vec::new();
    for begin in (0..ITERATIONS).map(|n| 1000 + n * ITERATION) {
        let row = |inst: u32, issue: u64, latency: u64| InstTimes {
            inst: InstId(inst),
            decode: begin - 8,
            dispatch: begin - 7,
            issue,
            wake: issue + latency,
            complete: issue + latency + 3,
            commit: begin + ITERATION + 5,
            first_of_row: inst == 0,
            class: CycleClass::Alu,
            ..InstTimes::default()
        };
        rows.push(InstTimes {
            source: DataSource::Memory,
            pa: 0x8000_1000,
            complete: begin + ITERATION,
            ..row(0, begin, ITERATION)
        });
        rows.extend((1..5).map(|inst| row(inst, begin + ITERATION, 1)));
    }
    // The last row is what the loop waits for.
    for iteration in rows.chunks_mut(5) {
        let last = iteration[4].complete;
        iteration.iter_mut().for_each(|row| row.commit = last);
    }
    Excerpts {
        widths: Widths { decode: 4, int: 4, mem: 2, fp: 2 },
        list: vec![Excerpt { from: 900, rows }],
        ..Excerpts::default()
    }
}

fn report() -> Report {
    let mut evaluation = evaluation();
    // ld a0,0(a0); addi a1,a0,0 three times; bnez a0.
    for (inst, raw) in
        [0x0005_3503, 0x0005_0593, 0x0005_0593, 0x0005_0593, 0x0005_1063].into_iter().enumerate()
    {
        evaluation.static_info[inst].raw = raw;
    }
    let (_root, symbolizer) = symbolizer();
    Report::build(ReportInputs {
        disassemble: &|raw, _| format!("op{raw:x}\ta0, <a1>"),
        excerpts: Some(&excerpts()),
        ..inputs(&evaluation, &symbolizer)
    })
}

#[test]
fn a_chain_through_memory_bounds_its_loop() {
    let report = report();
    let loops = report.sections.loops.as_ref().unwrap();
    assert_eq!((loops.excerpts, loops.instructions), (1, 60));
    let [found] = &loops.loops[..] else {
        panic!("{loops:?}");
    };
    assert_eq!(report.common.processes[found.process].name, "quickstart");
    assert_eq!((found.cycles, found.depth, found.trips), (12_500.0, 0, None));
    assert_eq!(found.measured as u64, ITERATIONS - 1);
    assert_eq!(found.instructions_per_iteration, 5.0);
    assert_eq!(found.range, [ITERATION, ITERATION, 1029 - 900]);
    assert_eq!((found.least.mem, found.least.int, found.least.decode), (0.5, 1.0, 1.25));
    assert_eq!(found.causes[0].cause, Cause::LoadMemory);
    let sum: f64 = found.causes.iter().map(|part| part.cycles).sum();
    assert!((sum - found.cycles_per_iteration).abs() < 1e-9, "{sum}");
    assert!(found.chain[0].text.starts_with("op53503"), "{:?}", found.chain);
    assert_eq!(found.chain[0].cause, Cause::LoadMemory);
    assert!(report.sections.loops.as_ref().is_some_and(|loops| loops.loops[0].views.len() == 3));
}

#[test]
fn text_and_page_have_them() {
    let report = report();
    let text = report.text(&Options::default());
    assert!(text.contains("\nLoops. From 1 excerpts"), "{text}");
    assert!(text.contains("memory latency"), "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 120, "{line}");
    }
    let page = report.html("");
    check_nesting(&page);
    let at = |id: &str| page.find(&format!("<section id=\"{id}\"")).unwrap();
    let order = ["timeline", "flame", "functions", "code", "loops", "stacks", "errors"];
    assert!(order.map(at).is_sorted(), "{order:?}");
    assert!(page.contains("id=\"pipeline-data\"") && !page.contains("<a1>"));
    let (_, data) = page.split_once("id=\"pipeline-data\">").unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let view = &data["loops"][0]["views"][1];
    assert_eq!(view["cycles"], ITERATION);
    // A load: in the issue queue, then executing for as long as memory takes.
    let load = &view["rows"][view["iteration"][0].as_u64().unwrap() as usize];
    let execution = load[2].as_array().unwrap().iter().find(|it| it[0] == 4).unwrap();
    let [from, to] = [1, 2].map(|at| execution[at].as_u64().unwrap());
    assert_eq!(to - from, ITERATION);
    assert_eq!(data["causes"][execution[3].as_u64().unwrap() as usize][1], "memory latency");
    assert!(!report_of(&evaluation(), None).html("").contains("id=\"loops\""));
}

#[test]
fn every_number_has_a_rule() {
    let json = report().json();
    for path in [
        "loops.excerpts",
        "loops.widths.mem",
        "loops.loops.0.process",
        "loops.loops.0.share",
        "loops.loops.0.own_share",
        "loops.loops.0.iterations",
        "loops.loops.0.range.2",
        "loops.loops.0.least.fp",
        "loops.loops.0.causes.0.cycles",
        "loops.loops.0.chain.0.cycles",
    ] {
        let Ok(Answer::Explained(found)) = explain(&json, path) else {
            panic!("{path}");
        };
        assert!(!found[0].meaning.contains("no rule"), "{path}");
        if let Some(check) = found[0].check {
            assert!((check - found[0].value).abs() < 1e-9, "{path}");
        }
    }
}
