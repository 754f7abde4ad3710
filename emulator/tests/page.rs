//! The report's page in a browser: keyboard, filters, themes, narrow windows, and a page of 100 MB.

mod callers;
mod fleet;
mod large;
mod names;
mod pictures;
mod range;

use crate::common::browser::Browser;
use commit_trace::synthetic;
use profile::{Evaluator, Profiler, Region, Sampler, Schedule};
use report::{Comparison, FlameNode, Report, ReportInputs};
use serde_json::json;
use symbols::{SymbolFiles, Symbolizer};

/// A report of a synthetic stream.
fn report(call_stacks: bool, count: u32) -> Report {
    let words: Vec<u32> = (0..count).map(|n| n.wrapping_mul(0x9e37_79b9)).collect();
    let samplers = [Profiler::Tip, Profiler::Lci].map(|p| Sampler::new(p, Schedule::every(97)));
    let mut evaluator = Evaluator::new(&samplers, Region::Whole).in_detail(4);
    if call_stacks {
        evaluator = evaluator.with_call_stacks();
    }
    for batch in synthetic::batches(&words, 4) {
        evaluator.batch(&batch).unwrap();
    }
    let symbolizer = Symbolizer::new(SymbolFiles::default());
    let disassemble = |raw: u32, _: u64| format!("op{raw:x}\ta0,a1");
    let meta = json!({ "name": "synthetic" });
    let evaluation = evaluator.finish();
    Report::build(ReportInputs::new(&evaluation, &symbolizer, &disassemble, meta))
}

#[test]
fn the_answer_comes_first_and_leads_to_its_code() {
    let seen = Browser {
        steps: "const tops = ['verdict', 'timeline', 'flame', 'functions', 'code', 'instructions', 'stacks', 'errors', 'run'];
            say('tops', tops.map((id) => byId(id).getBoundingClientRect().top));
            const link = byId('verdict').querySelector('a[data-function]');
            say('link', link.dataset.pc);
            chosen.process = 0;
            link.click();
            await later(300);
            say('chosen', byId('listing-table').querySelector('tr.chosen td').textContent);
            say('queue', byId('flame-legend').textContent);
            say('published', byId('stack-legend').textContent);",
        ..Browser::default()
    }
    .open("page-order", &report(false, 60_000).html(""));
    let tops: Vec<f64> = serde_json::from_value(seen.get("tops").clone()).unwrap();
    assert!(tops.is_sorted_by(|a, b| a < b), "{tops:?}");
    let chosen = seen.get("chosen").as_str().unwrap();
    assert_eq!(Some(chosen.trim_start_matches("! ")), seen.get("link").as_str());
    assert!(seen.get("queue").as_str().unwrap().contains("Store queue full"));
    assert!(!seen.get("published").as_str().unwrap().contains("Store queue full"));
}

#[test]
fn what_was_brought_in_does_not_run() {
    let evil = "<script>window.ran = 'script'</script><img src=\"x\" onerror=\"window.ran = 'handler'\">\
        <script src=\"data:text/javascript,window.ran='source'\"></script>\
        <a id=\"link\" href=\"javascript:void(window.ran='link')\">x</a></main>";
    let look = |name: &str, page: &str| {
        Browser {
            steps: "byId('link').click(); await later(500);
                say('ran', window.ran || 'nothing');
                fetch('data:text/plain,x').then(() => say('fetched', true), () => say('fetched', false));
                await later(500);",
            ..Browser::default()
        }
        .look(name, page)
    };
    let page = report(false, 20_000).html("").replacen("</main>", evil, 1);
    let seen = look("page-policy", &page);
    assert_eq!(*seen.get("ran"), json!("nothing"));
    assert_eq!(*seen.get("fetched"), json!(false));
    // Without the policy all of it would.
    let start = page.find("<meta http-equiv").unwrap();
    let end = start + page[start..].find('>').unwrap();
    let seen = look("page-without-policy", &(page[..start].to_owned() + &page[end + 1..]));
    assert_ne!(*seen.get("ran"), json!("nothing"));
    assert_eq!(*seen.get("fetched"), json!(true));
}

#[test]
fn keys_are_enough() {
    let seen = Browser {
        steps: "press('?', document.body);
            say('help', byId('help').open && byId('key-list').children.length > 10);
            byId('help').close();
            press('/', document.body);
            say('filter', document.activeElement.id);
            document.activeElement.blur();
            press('f', document.body);
            const root = document.activeElement;
            say('root', root.getAttribute('role'));
            press('ArrowDown');
            press('ArrowDown');
            say('level', Number(document.activeElement.getAttribute('aria-level')));
            const name = document.activeElement.node.name;
            press('Enter');
            say('zoomed', document.activeElement.node.name === name && document.activeElement.offsetWidth > 900);
            press('Escape');
            say('out', document.activeElement.getAttribute('aria-level'));
            press('t', document.body);
            say('tree', !byId('call-tree').hidden && byId('call-tree').querySelectorAll('tbody tr').length > 2);
            const first = byId('call-tree').querySelector('tr[aria-expanded=true]');
            const rows = byId('call-tree').querySelectorAll('tr').length;
            first.focus();
            press('ArrowLeft', first);
            say('closed', byId('call-tree').querySelectorAll('tr').length < rows);
            const line = byId('function-table').querySelector('tbody tr[tabindex=\"0\"]');
            line.focus();
            press('ArrowDown');
            say('moved', document.activeElement !== line && document.activeElement.tagName === 'TR');
            press('Enter');
            await later(200);
            say('code', byId('listed').selectedIndex >= 0);",
        ..Browser::default()
    }
    .open("page-keys", &report(false, 60_000).html(""));
    assert_eq!(*seen.get("filter"), json!("filter"));
    assert_eq!(*seen.get("root"), json!("treeitem"));
    assert_eq!((seen.get("level"), seen.get("out")), (&json!(3), &json!("1")));
    for done in ["help", "zoomed", "tree", "closed", "moved", "code"] {
        assert_eq!(*seen.get(done), json!(true), "{done}");
    }
}

#[test]
fn filters_say_what_follows_them() {
    let seen = Browser {
        steps: "chosen.process = 0; await refresh();
            const all = byId('function-table').querySelectorAll('tbody tr').length;
            const word = text(data.functions[1][F.name]);
            byId('filter').value = word;
            byId('filter').dispatchEvent(new Event('input'));
            await later(600);
            say('fewer', byId('function-table').querySelectorAll('tbody tr').length < all);
            say('dim', document.querySelectorAll('.frame.dim').length > 0 && document.querySelectorAll('.frame:not(.dim)').length > 0);
            say('matching', byId('flame-matches').textContent);
            press('x', document.body);
            await later(300);
            say('cleared', document.querySelectorAll('.frame.dim').length);
            const whole = byId('stack-bars').textContent;
            press('ArrowRight', document.querySelector('.brush'));
            await later(100);
            say('range', chosen.range.length);
            say('notes', byId('notes').textContent);
            say('follows', byId('stack-bars').textContent !== whole);
            say('shares', rangeStack(0).every((cycles) => cycles >= 0) && sum(rangeStack(0)) < data.totals.cycles);
            press('Escape', document.querySelector('.brush'));
            await later(100);
            say('all', chosen.range === null && byId('notes').textContent === '');
            const brush = document.querySelector('.brush').getBoundingClientRect();
            const pointer = (type, at) => document.querySelector('.brush').dispatchEvent(new PointerEvent(type,
              { pointerId: 1, isPrimary: true, bubbles: true, clientX: brush.left + at * brush.width, clientY: brush.top + 5 }));
            document.querySelector('.brush').setPointerCapture = () => {};
            pointer('pointerdown', 0.2); pointer('pointermove', 0.5); pointer('pointerup', 0.5);
            say('dragged', chosen.range);",
        ..Browser::default()
    }
    .open("page-filters", &report(true, 60_000).html(""));
    for done in ["fewer", "dim", "follows", "shares", "all"] {
        assert_eq!(*seen.get(done), json!(true), "{done}");
    }
    assert!(seen.get("matching").as_str().unwrap().starts_with("matching the filter"));
    assert_eq!((seen.get("cleared"), seen.get("range")), (&json!(0), &json!(2)));
    let notes = seen.get("notes").as_str().unwrap();
    assert!(notes.contains("Of this range") && notes.contains("Of the whole run"), "{notes}");
    let range: Vec<f64> = serde_json::from_value(seen.get("dragged").clone()).unwrap();
    assert!(range[0] < range[1]);
}

#[test]
fn the_flame_graph_is_as_wide_as_the_time() {
    for call_stacks in [false, true] {
        let report = report(call_stacks, 60_000);
        assert_eq!(report.common.flame.callers.is_empty(), !call_stacks);
        let own = |nodes: &[FlameNode]| nodes.iter().flat_map(|node| &node.4).sum::<u64>() as f64;
        let busy = (report.common.totals.cycles - report.common.totals.idle) as f64;
        let trees = [&report.common.flame.lines, &report.common.flame.callers];
        for nodes in &trees[..1 + usize::from(call_stacks)] {
            assert!((own(nodes) / busy - 1.0).abs() < 0.01, "{} of {busy}", own(nodes));
        }
        let seen = Browser {
            steps: "chosen.process = 0; await refresh();
                const frames = [...document.querySelectorAll('.frame')];
                const host = byId('flame-graph').clientWidth;
                say('inside', frames.every((f) => f.offsetLeft >= 0 && f.offsetLeft + f.offsetWidth <= host + 1));
                say('root', frames[0].offsetWidth / host);
                const [node] = frames.map((f) => f.node).filter((n) => n.kind === KIND.process);
                const frame = frames.find((f) => f.node === node);
                say('share', [frame.offsetWidth / host, node.total / flameRoot().total]);
                say('split', getComputedStyle(frame).backgroundImage.split('%').length > 3);
                byId('flame-column').value = 0; byId('flame-column').dispatchEvent(new Event('change'));
                say('tip', document.querySelectorAll('.frame').length > 3);",
            ..Browser::default()
        }
        .open(&format!("page-flame-{call_stacks}"), &report.html(""));
        assert_eq!((seen.get("inside"), seen.get("tip")), (&json!(true), &json!(true)));
        assert_eq!(*seen.get("split"), json!(true));
        assert!(seen.get("root").as_f64().unwrap() > 0.99);
        let [width, share]: [f64; 2] = serde_json::from_value(seen.get("share").clone()).unwrap();
        assert!((width - share).abs() < 0.01, "{width} for {share}");
    }
}

#[test]
fn both_themes_and_narrow_windows() {
    let page = report(true, 60_000).html("");
    let steps = "say('colour', getComputedStyle(document.body).backgroundColor);
        say('wide', document.documentElement.scrollWidth - innerWidth);
        for (const box of document.querySelectorAll('main details')) box.open = true;
        chosen.profilers = byId('profilers').checked = true; await refresh();
        say('wider', document.documentElement.scrollWidth - innerWidth);
        chosen.profilers = byId('profilers').checked = false; await refresh();
        for (const box of document.querySelectorAll('main details')) box.open = false;
        press('d', document.body); press('d', document.body);
        say('chosen', [document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor]);
        press('d', document.body);
        scrollTo(0, 0);
        say('bar', document.querySelector('nav').getBoundingClientRect().bottom);";
    let (mut colours, mut pictures) = (Vec::new(), Vec::new());
    for scheme in ["light", "dark"] {
        for width in [800, 1100] {
            let window = (width, 1400);
            let browser = Browser { window, scheme, steps, ..Browser::default() };
            let seen = browser.open(&format!("page-{scheme}-{width}"), &page);
            assert!(seen.get("wide").as_f64().unwrap() <= 0.0, "{scheme} {width}: {:?}", seen.said);
            assert!(
                seen.get("wider").as_f64().unwrap() <= 0.0,
                "{scheme} {width}: {:?}",
                seen.said
            );
            assert_eq!(seen.get("chosen")[0], json!("dark"));
            let edge = seen.get("bar").as_f64().unwrap();
            assert!(edge.fract() == 0.0, "{scheme} {width}: {edge}");
            colours.push((seen.get("colour").clone(), seen.get("chosen")[1].clone()));
            pictures.push((format!("{scheme} {width}"), browser, seen.picture));
        }
    }
    pictures::check(&page, &pictures);
    assert!(colours[0].0 != colours[2].0, "{colours:?}");
    assert!(colours.iter().all(|(_, dark)| *dark == colours[2].0), "{colours:?}");
}

#[test]
fn two_runs_have_a_differential_flame_graph() {
    let runs = [report(false, 60_000), report(false, 70_000)];
    let of = |report: &Report| serde_json::from_value(report.json()).unwrap();
    let comparison = Comparison::new(&of(&runs[0]), &of(&runs[1]), &[]).unwrap();
    let [before, after] = runs.map(|report| report.common.flame);
    let seen = Browser {
        window: (800, 900),
        steps: "const frames = [...document.querySelectorAll('.frame')];
            say('title', frames[0].title);
            say('painted', frames.some((f) => f.style.backgroundImage.includes('--over')));
            byId('flame-width').value = 'before'; byId('flame-width').dispatchEvent(new Event('change'));
            say('before', document.querySelectorAll('.frame').length > 2);
            say('rows', byId('function-table').querySelectorAll('tbody tr').length > 2);
            say('wide', document.documentElement.scrollWidth - innerWidth);",
        ..Browser::default()
    }
    .open("page-compared", &comparison.html(&before, &after, &[]));
    let title = seen.get("title").as_str().unwrap();
    assert!(title.contains("cycles before") && title.contains('+'), "{title}");
    for done in ["painted", "before", "rows"] {
        assert_eq!(*seen.get(done), json!(true), "{done}");
    }
    assert!(seen.get("wide").as_f64().unwrap() <= 0.0);
    assert!(seen.picture.colours() > 50, "{}", seen.picture.colours());
}
