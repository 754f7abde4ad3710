//! A range of time that is chosen on the timeline: everything that is kept over time follows.

use std::path::Path;

use commit_trace::{
    Class, Commit, CommitSink, CycleClass, HartId, InstId, Redirect, StaticInfo, TeaEvents,
    recording,
};
use profile::{Evaluation, Evaluator, Profiler, Region, Sampler, Schedule};
use report::{Report, ReportInputs};
use serde_json::json;
use symbols::{SymbolFiles, Symbolizer};

use super::pictures::MAX_DIFFERENCE;
use crate::common::browser::Browser;

/// Two functions of the program that `symbols` tests with, eight instructions each: so many lie evenly in any window.
pub(super) const LENGTH_PC: u64 = 0x10150;
pub(super) const START_PC: u64 = 0x10168;
pub(super) const INSTRUCTIONS_EACH: u32 = 8;

/// Addresses, encodings and lengths of instructions, by their numbers: those of `length`, and of `_start`.
pub(super) fn straight_code() -> Vec<(u64, u32, u8)> {
    let of = |start| (0..u64::from(INSTRUCTIONS_EACH)).map(move |at| (start + 2 * at, 0x13, 2));
    of(LENGTH_PC).chain(of(START_PC)).collect()
}

/// A hart that commits an instruction of `code` in each cycle, in this order.
pub(super) fn executed(
    code: &[(u64, u32, u8)],
    order: impl ExactSizeIterator<Item = u32>,
    call_stacks: bool,
) -> Evaluation {
    let (mut recorder, stream) = recording(HartId(0), 0, order.len() / 1000 + 2);
    for (id, (pc, raw, len)) in (0..).zip(code) {
        recorder.define(&StaticInfo {
            id: InstId(id),
            space: 0,
            pc: *pc,
            raw: *raw,
            len: *len,
            privilege: 3,
            class: Class::Int,
            target: None,
        });
    }
    for (cycle, inst) in (0..).zip(order) {
        recorder.commit(&Commit {
            inst: InstId(inst),
            decode: cycle + 4,
            dispatch: cycle + 6,
            commit: cycle + 10,
            redirect: Redirect::None,
            first_of_row: true,
            class: CycleClass::Alu,
            tea: TeaEvents::default(),
        });
    }
    recorder.finish().expect("a valid stream");
    let samplers = [Sampler::new(Profiler::Tip, Schedule::every(997))];
    let mut evaluator = Evaluator::new(&samplers, Region::Whole).in_detail(1);
    if call_stacks {
        evaluator = evaluator.with_call_stacks();
    }
    for batch in stream {
        evaluator.batch(&batch).expect("a valid stream");
    }
    evaluator.finish()
}

/// A hart that executes `length` for so many cycles, and then `_start`.
fn phases(cycles: [u32; 2], call_stacks: bool) -> Evaluation {
    let order = (0..cycles[0] + cycles[1]).map(|cycle| {
        let phase = u32::from(cycle >= cycles[0]);
        phase * INSTRUCTIONS_EACH + cycle % INSTRUCTIONS_EACH
    });
    executed(&straight_code(), order, call_stacks)
}

/// The page of an evaluation, or of those of several harts.
pub(super) fn page(harts: &[Evaluation]) -> String {
    report(harts).html("")
}

/// The report of them.
pub(super) fn report(harts: &[Evaluation]) -> Report {
    let symbols = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/symbols/src/tests");
    // The compiler had the source at /src/inlined.c.
    let sources = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir(sources.path().join("src")).expect("a folder");
    let source = sources.path().join("src/inlined.c");
    std::fs::copy(symbols.join("inlined.c"), source).expect("a file");
    let files = SymbolFiles {
        firmware: Some(symbols.join("inlined.elf")),
        sources: vec![sources.path().to_owned()],
        ..SymbolFiles::default()
    };
    let disassemble = |raw: u32, pc: u64| format!("op{raw:x}\t{pc:x}");
    let evaluation = Evaluation::merged(harts).expect("a hart");
    let meta = json!({ "name": "phases", "harts": vec![0; harts.len()] });
    let symbolizer = Symbolizer::new(files);
    Report::build(ReportInputs {
        harts,
        ..ReportInputs::new(&evaluation, &symbolizer, &disassemble, meta)
    })
}

/// What the views show, by their text; and the brush, from one share of the timeline to another.
pub(super) const VIEWS: &str = "
    const texts = (selector) => [...document.querySelectorAll(selector)].map((element) => element.textContent);
    const brushed = async (from, to) => {
      const brush = document.querySelector('.brush');
      const edges = brush.getBoundingClientRect();
      const pointer = (type, at) => brush.dispatchEvent(new PointerEvent(type,
        { pointerId: 1, isPrimary: true, bubbles: true, clientX: edges.left + at * edges.width, clientY: edges.top + 5 }));
      brush.setPointerCapture = () => {};
      pointer('pointerdown', from); pointer('pointermove', to); pointer('pointerup', to);
      await later(300);
    };
    const shares = () => [...byId('listing-table').querySelectorAll('.oracle')].map((cell) => Number(cell.textContent) || 0);
    const views = () => ({
      functions: texts('#function-table tbody td:first-child').filter(Boolean),
      share: byId('function-table').querySelector('.oracle').textContent,
      frames: texts('.frame.function'),
      tree: flameRoot().below.length,
      listed: texts('#listed option').map((name) => name.split(' ')[0]),
      heat: sum(shares()),
      hot: shares().filter((share) => share > 1).length,
      instructions: texts('#instruction-table tbody td:nth-child(2)').filter(Boolean),
      source: sum([...byId('source-pane').querySelectorAll('.oracle')].map((cell) => Number(cell.textContent) || 0)),
      scopes: Object.fromEntries([...document.querySelectorAll('main > section')].filter((section) => section.querySelector('.scope'))
        .map((section) => [section.id, section.querySelector('.scope').textContent])),
      note: byId('flame-note').textContent,
    });
    chosen.process = 1; await refresh();
";

#[test]
fn everything_follows_the_range() {
    let steps = format!(
        "{VIEWS}
        say('whole', views());
        await brushed(0.05, 0.4);
        say('first', views());
        byId('profilers').click();
        await later(300);
        say('profilers', texts('#function-table th').length);
        await brushed(0.6, 0.9);
        say('second', views());
        press('Escape', document.querySelector('.brush'));
        await later(300);
        say('columns', texts('#function-table th').length);
        byId('profilers').click();
        byId('listed').value = 0; byId('listed').dispatchEvent(new Event('change'));
        await later(300);
        say('again', views());"
    );
    let seen = Browser { steps: &steps, ..Browser::default() }
        .open("page-range", &page(&[phases([400_000, 400_000], false)]));
    for (phase, function, pcs) in [("first", "length", LENGTH_PC), ("second", "_start", START_PC)] {
        let view = seen.get(phase);
        assert_eq!(view["functions"], json!([function]), "{view}");
        assert_eq!(view["share"], json!("100.0"), "{view}");
        assert_eq!(view["frames"], json!([function]), "{view}");
        assert_eq!(view["listed"], json!([function]), "{view}");
        assert_eq!((view["heat"].as_f64(), &view["hot"]), (Some(100.0), &json!(8)), "{view}");
        let instructions: Vec<String> =
            serde_json::from_value(view["instructions"].clone()).unwrap();
        assert_eq!(instructions.len(), INSTRUCTIONS_EACH as usize, "{view}");
        for text in &instructions {
            let pc = text.rsplit(' ').next().unwrap();
            let pc = u64::from_str_radix(pc, 16).unwrap();
            assert!((pcs..pcs + 16).contains(&pc), "{text}");
        }
        assert!(view["source"].as_f64().unwrap() > 99.0, "{view}");
        for follows in ["flame", "functions", "code", "instructions", "stacks", "top-down"] {
            assert_eq!(view["scopes"][follows], json!("of the chosen range"), "{view}");
        }
        for whole in ["verdict", "errors", "run"] {
            assert_eq!(view["scopes"][whole], json!("whole run"), "{view}");
        }
    }
    let whole = seen.get("whole");
    assert_eq!(whole["functions"].as_array().unwrap().len(), 2, "{whole}");
    assert_eq!(whole["scopes"], json!({}));
    assert_eq!(seen.get("again"), whole, "clearing the brush restores");
    // Profilers are not kept over time: their columns are there without a range only.
    assert_eq!((seen.get("profilers"), seen.get("columns")), (&json!(5), &json!(6)));
}

/// The flame graph alone.
pub(super) const HIDE_ALL_BUT_FLAME_GRAPH: &str = "
    const graph = byId('flame-graph');
    document.body.replaceChildren(graph);
    graph.style.width = '1000px';
    await later(300);
    flameView.draw();
    graph.querySelectorAll('.frame').forEach((frame) => frame.blur());
    await later(100);
";

#[test]
fn a_brushed_flame_graph_is_that_of_a_run_of_the_range_alone() {
    let open = |name: &str, cycles, brush: &str| {
        let steps = format!("{VIEWS} {brush} {HIDE_ALL_BUT_FLAME_GRAPH}");
        let browser = Browser { window: (1100, 300), steps: &steps, ..Browser::default() };
        browser.open(name, &page(&[phases(cycles, false)])).picture
    };
    let brush = "await brushed(0.05, 0.4);";
    let whole = "";
    let ranged = open("page-range-brushed", [400_000, 400_000], brush);
    let all = open("page-range-whole", [400_000, 400_000], whole);
    let alone = open("page-range-alone", [400_000, 0], whole);
    let difference = ranged.difference(&all);
    assert!(difference > 0.02, "{difference} differ from the whole run's");
    let difference = ranged.difference(&alone);
    assert!(difference < MAX_DIFFERENCE, "{difference} differ from a run of the range alone");
}

#[test]
fn a_range_of_several_harts_is_of_all_of_them() {
    // The first hart executes `length` in the first half, the second nothing else.
    let harts = [phases([400_000, 400_000], false), phases([800_000, 0], false)];
    let steps = format!(
        "{VIEWS}
        await brushed(0.6, 0.9);
        say('second', [views().functions.sort(), views().share]);
        say('note', byId('range-limits').textContent);
        await brushed(0.05, 0.4);
        say('first', views().functions);"
    );
    let seen =
        Browser { steps: &steps, ..Browser::default() }.open("page-range-harts", &page(&harts));
    assert_eq!(*seen.get("second"), json!([["_start", "length"], "50.0"]));
    assert_eq!(*seen.get("first"), json!(["length"]));
    assert!(seen.get("note").as_str().unwrap().contains("Harts begin"));
}
